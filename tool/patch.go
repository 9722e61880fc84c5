package tool

import (
	"fmt"
	"slices"
	"strings"
)

// patchFile is what a patch does to one file.
type patchFile struct {
	kind   patchKind
	path   string
	moveTo string      // "" for staying where it is
	text   string      // of an added file
	hunks  []patchHunk // of an updated file
}

type patchKind int

const (
	patchAdd patchKind = iota
	patchUpdate
	patchDelete
)

// patchHunk changes one place of a file.
type patchHunk struct {
	line    int      // number in the patch, for errors
	context []string // lines to go past, one after the other, before the place
	lines   []patchLine
	atEnd   bool // the place is the end of the file
}

// patchLine is a line of a hunk: ' ' stays, '-' goes, '+' comes.
type patchLine struct {
	sign byte
	text string
}

// old are the lines that a hunk is found by.
func (h *patchHunk) old() []string {
	var out []string
	for _, l := range h.lines {
		if l.sign != '+' {
			out = append(out, l.text)
		}
	}
	return out
}

const (
	patchBegin  = "*** Begin Patch"
	patchEnd    = "*** End Patch"
	patchAtEnd  = "*** End of File"
	patchMoveTo = "*** Move to: "
)

var patchHeaders = [...]struct {
	text string
	kind patchKind
}{
	{"*** Add File: ", patchAdd},
	{"*** Update File: ", patchUpdate},
	{"*** Delete File: ", patchDelete},
}

// patchReader goes through the lines of a patch.
type patchReader struct {
	lines []string
	at    int
	first int // number of the first line, from 1
}

func (r *patchReader) more() bool   { return r.at < len(r.lines) }
func (r *patchReader) line() string { return r.lines[r.at] }

func (r *patchReader) fail(format string, args ...any) error {
	return fmt.Errorf("Invalid patch, line %d: %s", r.first+r.at, fmt.Sprintf(format, args...))
}

// parsePatch reads a patch, of any line ends. It accepts the here-document that
// some models wrap around it.
func parsePatch(text string) ([]patchFile, error) {
	r := patchReader{lines: strings.Split(withLF(text), "\n"), first: 1}
	r.trim()
	if n := len(r.lines); n >= 2 {
		if _, word, ok := strings.Cut(r.lines[0], "<<"); ok && !strings.HasPrefix(r.lines[0], "***") {
			if strings.TrimSpace(r.lines[n-1]) == strings.Trim(strings.TrimSpace(word), `'"-`) {
				r.lines, r.first = r.lines[1:n-1], r.first+1
				r.trim()
			}
		}
	}
	if len(r.lines) == 0 || strings.TrimSpace(r.lines[0]) != patchBegin {
		return nil, r.fail("a patch begins with the line %q", patchBegin)
	}
	last := len(r.lines) - 1
	if last == 0 || strings.TrimSpace(r.lines[last]) != patchEnd {
		r.at = last
		return nil, r.fail("a patch ends with the line %q", patchEnd)
	}
	r.lines, r.first = r.lines[1:last], r.first+1
	var files []patchFile
	for r.more() {
		if strings.TrimSpace(r.line()) == "" {
			r.at++
			continue
		}
		f, err := r.file()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, r.fail("there is no file in the patch")
	}
	return files, nil
}

// trim drops blank lines around the patch.
func (r *patchReader) trim() {
	for len(r.lines) > 0 && strings.TrimSpace(r.lines[0]) == "" {
		r.lines, r.first = r.lines[1:], r.first+1
	}
	for n := len(r.lines); n > 0 && strings.TrimSpace(r.lines[n-1]) == ""; n-- {
		r.lines = r.lines[:n-1]
	}
}

// header reads the line that begins a file.
func header(line string) (f patchFile, ok bool) {
	for _, h := range patchHeaders {
		if path, ok := strings.CutPrefix(line, h.text); ok {
			return patchFile{kind: h.kind, path: strings.TrimSpace(path)}, true
		}
	}
	return f, false
}

func (r *patchReader) file() (patchFile, error) {
	f, ok := header(r.line())
	if !ok {
		return f, r.fail("%q is no beginning of a file: expected *** Add File:, *** Update File: or *** Delete File: with a path", excerpt(r.line()))
	}
	if f.path == "" {
		return f, r.fail("the path is missing")
	}
	r.at++
	switch f.kind {
	case patchAdd:
		var text strings.Builder
		for ; r.more() && strings.HasPrefix(r.line(), "+"); r.at++ {
			text.WriteString(r.line()[1:] + "\n")
		}
		f.text = text.String()
		if r.more() && !strings.HasPrefix(r.line(), "*** ") && strings.TrimSpace(r.line()) != "" {
			return f, r.fail("every line of an added file starts with +, an empty one too: %q", excerpt(r.line()))
		}
	case patchUpdate:
		if r.more() {
			if path, ok := strings.CutPrefix(r.line(), patchMoveTo); ok {
				if f.moveTo = strings.TrimSpace(path); f.moveTo == "" {
					return f, r.fail("the path is missing")
				}
				r.at++
			}
		}
		return f, r.hunks(&f)
	}
	return f, nil
}

// hunks reads the changes of an updated file.
func (r *patchReader) hunks(f *patchFile) error {
	for r.more() && !strings.HasPrefix(r.line(), "*** ") {
		h := patchHunk{line: r.first + r.at}
		for ; r.more() && strings.HasPrefix(r.line(), "@@"); r.at++ {
			if c := hunkContext(r.line()[2:]); c != "" {
				h.context = append(h.context, c)
			}
		}
		for ; r.more(); r.at++ {
			line := r.line()
			if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "*** ") {
				break
			}
			switch {
			case line == "":
				// Empty lines that stay, whose blanks got lost; blank lines
				// between the parts of a patch mean nothing.
				behind := r.behindBlank(r.at)
				if !r.ends(behind) {
					h.lines = append(h.lines, slices.Repeat([]patchLine{{' ', ""}}, behind-r.at)...)
				}
				r.at = behind - 1
			case line[0] == ' ', line[0] == '-', line[0] == '+':
				h.lines = append(h.lines, patchLine{line[0], line[1:]})
			default:
				return r.fail("every line of a change starts with a space, - or +: %q", excerpt(line))
			}
		}
		if len(h.lines) == 0 {
			return r.fail("the change of %s that begins in line %d is empty", f.path, h.line)
		}
		if r.more() && strings.TrimRight(r.line(), " \t") == patchAtEnd {
			h.atEnd = true
			r.at++
		}
		f.hunks = append(f.hunks, h)
		for h.atEnd && r.more() && r.line() == "" {
			r.at++
		}
	}
	if len(f.hunks) == 0 {
		return r.fail("the update of %s holds no change", f.path)
	}
	return nil
}

// behindBlank is where the empty lines from a place on end.
func (r *patchReader) behindBlank(at int) int {
	for at < len(r.lines) && r.lines[at] == "" {
		at++
	}
	return at
}

// ends reports whether the next file or the end is at a place.
func (r *patchReader) ends(at int) bool {
	if at == len(r.lines) {
		return true
	}
	_, ok := header(r.lines[at])
	return ok
}

// hunkContext is the text behind @@. Line numbers, which unified diffs have
// there, are not looked at: models cannot count.
func hunkContext(s string) string {
	s = strings.TrimPrefix(s, " ")
	if numbers, _, ok := strings.Cut(s, " @@"); ok && strings.HasPrefix(numbers, "-") && strings.Trim(numbers, "-+, 0123456789") == "" {
		return ""
	}
	return strings.TrimRight(s, " \t")
}

// excerpt is the beginning of a line for an error.
func excerpt(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
