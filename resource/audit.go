package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Severity says how much a finding matters.
type Severity int

// The severities.
const (
	// Note is what a reader of the file may have missed; it is often fine.
	Note Severity = iota
	// Suspicious is worth a look before the file is used.
	Suspicious
	// Dangerous is text that nobody can see, or that shows as something else.
	// It is acted on: see Findings in the package's documentation.
	Dangerous
)

func (s Severity) String() string {
	switch s {
	case Suspicious:
		return "suspicious"
	case Dangerous:
		return "dangerous"
	}
	return "note"
}

// Kind is a kind of finding.
type Kind string

// The kinds of findings.
const (
	TagCharacters      Kind = "tag-characters"      // the invisible twins of ASCII, U+E0000 to U+E007F, outside of flags
	VariationSelectors Kind = "variation-selectors" // in runs, or behind characters that have no variants
	ZeroWidth          Kind = "zero-width"          // characters without a width where no script or emoji needs them
	BidiControl        Kind = "bidi-control"        // characters that change the order in which text shows
	EscapeSequence     Kind = "escape-sequence"     // what moves or colours the text of a terminal
	ControlCharacter   Kind = "control-character"   // other control characters
	Encoding           Kind = "encoding"            // bytes that are no UTF-8
	Padding            Kind = "padding"             // text behind so much white space that it is out of sight
	LongLine           Kind = "long-line"           // a line that nobody reads to its end
	OpaqueData         Kind = "opaque-data"         // long encoded data
	DataAddress        Kind = "data-address"        // a data: address
	Comment            Kind = "comment"             // text that a rendered page does not show
	FrameMarkup        Kind = "frame-markup"        // the tags that mark skills and context files for a model
	RemoteCode         Kind = "remote-code"         // a command that runs what it fetches
	Outside            Kind = "outside"             // a reference or link that leaves the folder
	Lookalike          Kind = "lookalike"           // a name whose letters look like others
	UnknownField       Kind = "unknown-field"       // a field of the frontmatter that means nothing
)

// Finding is something in a loaded file that a person who looks at the file may
// not see or expect. Of several of one kind and severity in a file the first is
// kept.
type Finding struct {
	Kind     Kind
	Severity Severity
	Path     string
	Line     int    // from 1; 0 when it concerns the file as a whole
	Column   int    // in characters, from 1; 0 with Line 0
	Count    int    // how many there are in the file, at least 1
	Message  string // what it is
	Advice   string // what to do
}

// String is the finding as a line of a report.
func (f Finding) String() string {
	where := f.Path
	if f.Line > 0 {
		where += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	more := ""
	if f.Count > 1 {
		more = fmt.Sprintf(" (%d times)", f.Count)
	}
	return fmt.Sprintf("%s: %s: %s%s; %s", where, f.Severity, f.Message, more, f.Advice)
}

// worst is the highest severity of findings.
func worst(list []Finding) Severity {
	s := Note
	for _, f := range list {
		s = max(s, f.Severity)
	}
	return s
}

// findings collects what is found in one file.
type findings struct {
	path string
	list []Finding
}

// place is where something stands: byte at of the line of a number. The zero
// place is the file as a whole.
type place struct {
	number int
	line   string
	at     int
}

// add keeps a finding. The column is counted only for what is kept: a line can
// hold a million findings.
func (f *findings) add(kind Kind, severity Severity, p place, message, advice string) {
	for i := range f.list {
		if g := &f.list[i]; g.Kind == kind && g.Severity == severity {
			g.Count++
			return
		}
	}
	column := 0
	if p.number > 0 {
		column = utf8.RuneCountInString(p.line[:p.at]) + 1
	}
	f.list = append(f.list, Finding{kind, severity, f.path, p.number, column, 1, message, advice})
}

// sorted are the findings, worst first, then in the order of the text.
func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f.list
}

// Audit looks through the content of a file for characters that cannot be seen
// and for other tricks. path is named in the findings. Emoji, text that runs
// from right to left, and the joiners of scripts that need them are no findings.
func Audit(path string, content []byte) []Finding {
	f := &findings{path: path}
	f.text(content)
	return f.sorted()
}

const (
	hideAdvice  = "it is kept from the model; open the file in an editor that shows such characters, and remove them"
	lookAdvice  = "open the file in an editor that shows such characters, and remove them unless you put them there"
	readAdvice  = "read it before you use the file"
	trustAdvice = "make sure that you want what it names"
)

// Limits of the audit, in characters and lines.
const (
	longLine      = 10_000
	longCommand   = 2000
	longPadding   = 200
	blankLines    = 100
	opaqueData    = 400
	longDataBytes = 200
)

func (f *findings) text(content []byte) {
	text := decode(content)
	if !utf8.Valid(content) {
		f.add(Encoding, Suspicious, place{}, "the file is not UTF-8; what could not be read was replaced", "save it as UTF-8")
	}
	if strings.Count(text, "\r") > strings.Count(text, "\r\n") && strings.Contains(text, "\n") {
		f.add(ControlCharacter, Suspicious, place{}, "carriage returns within lines, which hide text in a terminal", lookAdvice)
	}
	text = withLF(text)
	var fence string
	var comment commentScan
	blank, number := 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		f.characters(line, number)
		f.shape(line, number)
		if strings.TrimSpace(line) == "" {
			blank++
		} else {
			if blank >= blankLines {
				f.add(Padding, Suspicious, place{number, line, 0}, fmt.Sprintf("text behind %d blank lines", blank), readAdvice)
			}
			blank = 0
		}
		f.frames(line, number)
		f.dataAddresses(line, number)
		fence = nextFence(fence, line)
		if fence == "" { // a code block shows its comments
			f.comments(&comment, line, number)
		}
	}
	for _, c := range commandLines(text) {
		if runsWhatItFetches(c.text) {
			f.add(RemoteCode, Suspicious, place{c.number, c.text, 0}, "a command that runs what it fetches", trustAdvice)
		}
	}
}

// characters reports what cannot be seen in a line.
func (f *findings) characters(line string, number int) {
	for _, h := range hiddenIn(line) {
		f.add(h.kind, h.severity, place{number, line, h.start}, h.message(line), h.advice())
	}
}

// shape reports lines that are too long to be read.
func (f *findings) shape(line string, number int) {
	if len(line) < longPadding {
		return
	}
	if n := utf8.RuneCountInString(line); n > longLine {
		f.add(LongLine, Suspicious, place{number, line, 0}, fmt.Sprintf("a line of %d characters", n), readAdvice)
	}
	// The cells of a table are padded to the widest.
	if at := paddedText(line); at > 0 && !strings.HasPrefix(line, "|") {
		f.add(Padding, Suspicious, place{number, line, at}, "text behind a long stretch of white space", readAdvice)
	}
	if at := opaqueRun(line); at >= 0 {
		f.add(OpaqueData, Suspicious, place{number, line, at}, "a long stretch of encoded data", "decode it before you use the file")
	}
}

// paddedText is where text stands behind a long stretch of white space; 0 for
// nowhere.
func paddedText(line string) int {
	run := 0
	for i, r := range line {
		switch {
		case jsonwire.IsSpace(r):
			run++
		case run >= longPadding:
			return i
		default:
			run = 0
		}
	}
	return 0
}

// opaqueRun is where a long stretch of letters and digits begins that is not
// made of words; -1 for nowhere.
func opaqueRun(line string) int {
	start, digits, letters := 0, 0, 0
	for i := 0; i <= len(line); i++ {
		c := byte(' ')
		if i < len(line) {
			c = line[i]
		}
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		case c == '+' || c == '/' || c == '=' || c == '_' || c == '-':
		default:
			if i-start >= opaqueData && digits > 0 && letters > 0 {
				return start
			}
			start, digits, letters = i+1, 0, 0
		}
	}
	return -1
}
