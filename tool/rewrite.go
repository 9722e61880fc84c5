package tool

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// document is a text file that is being edited.
type document struct {
	bom  bool
	raw  string // valid UTF-8, without the byte order mark, with the line ends of the file
	text string // raw with LF line ends; the same string when it has no others
}

const byteOrderMark = "\uFEFF"

func newDocument(data []byte) *document {
	if !utf8.Valid(data) {
		data = jsonwire.AppendUTF8(nil, data)
	}
	d := &document{}
	d.raw, d.bom = strings.CutPrefix(string(data), byteOrderMark)
	d.text = withLF(d.raw)
	return d
}

// withLF makes all line ends LF.
func withLF(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for {
		i := strings.IndexByte(s, '\r')
		if i < 0 {
			return string(append(out, s...))
		}
		out = append(append(out, s[:i]...), '\n')
		s = strings.TrimPrefix(s[i+1:], "\n")
	}
}

// piece is a part of an edited document: a range of its text that stays, or new
// text that follows what stands at start.
type piece struct {
	start, end int
	text       string // with LF line ends
	isNew      bool
}

func keep(start, end int) piece        { return piece{start: start, end: end} }
func put(start int, text string) piece { return piece{start: start, text: text, isNew: true} }

// pieces cuts the document into what stays and what is new, in order.
//
// When the matches were found in the folded text, the lines that they touch are
// taken from the folded text as a whole; all other lines stay as they are.
func (d *document) pieces(space string, found []match) []piece {
	if space != d.text {
		return foldedPieces(d.text, space, found)
	}
	var out []piece
	pos := 0
	for _, m := range found {
		out = append(out, keep(pos, m.start), put(m.start, m.text))
		pos = m.end
	}
	return append(out, keep(pos, len(d.text)))
}

// foldedPieces walks through the lines of a text and its folded form side by side.
func foldedPieces(text, folded string, found []match) []piece {
	var out []piece
	t, f := 0, 0 // starts of the current line
	ends := func() (int, int) { return lineEnd(text, t), lineEnd(folded, f) }
	// to moves to the line that holds offset pos of folded.
	to := func(pos int) {
		for {
			te, fe := ends()
			if pos <= fe || fe == len(folded) {
				return
			}
			t, f = te+1, fe+1
		}
	}
	kept := 0 // all of text before it is in out
	pos := -1 // in a touched line: all of folded before it is in out
	finish := func() {
		te, fe := ends()
		out = append(out, put(t, folded[pos:fe]))
		kept, pos = te, -1
	}
	for _, m := range found {
		if _, fe := ends(); pos >= 0 && m.start > fe {
			finish()
		}
		if pos < 0 {
			to(m.start)
			out = append(out, keep(kept, t))
			pos = f
		}
		out = append(out, put(t, folded[pos:m.start]), put(t, m.text))
		to(m.end)
		kept, pos = t, m.end
		if m.end == f && m.end > m.start {
			pos = -1 // it ended with a line feed: the line behind is not touched
		}
	}
	if pos >= 0 {
		finish()
	}
	return append(out, keep(kept, len(text)))
}

func lineEnd(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(s)
}

// parts compares the edited text with the text before, as whole lines. changed
// is false when they are the same.
func (d *document) parts(ps []piece) (parts []textPart, changed bool) {
	text := d.text
	var new strings.Builder // what the lines from start on become
	start, end := -1, 0     // the changed lines under way; start is -1 outside
	covered := 0            // end of the text in parts
	closePart := func() {
		parts = append(parts, samePart(text[covered:start]))
		if old := text[start:end]; old == new.String() {
			parts = append(parts, samePart(old))
		} else {
			parts = append(parts, changedPart(old, new.String()))
			changed = true
		}
		covered, start = end, -1
		new.Reset()
	}
	pos := 0 // end of the old text passed so far
	for _, p := range ps {
		if p.isNew {
			if start < 0 {
				start = strings.LastIndexByte(text[:pos], '\n') + 1
				new.WriteString(text[start:pos])
			}
			new.WriteString(p.text)
			continue
		}
		if start < 0 && p.start > pos {
			start = strings.LastIndexByte(text[:pos], '\n') + 1
			new.WriteString(text[start:pos])
		}
		if start >= 0 && p.end > p.start {
			// The change reaches to the end of the line that the kept range
			// begins in; a range within one line is part of the change.
			stop := p.end
			if i := strings.IndexByte(text[p.start:p.end], '\n'); i >= 0 {
				stop = p.start + i + 1
			}
			new.WriteString(text[p.start:stop])
			if stop < p.end || text[stop-1] == '\n' {
				end = stop
				closePart()
			}
		}
		pos = p.end
	}
	if start >= 0 {
		end = len(text)
		closePart()
	}
	return append(parts, samePart(text[covered:])), changed
}

// bytes is the edited document as its file holds it: what stays keeps its bytes,
// new text gets the line ends of the place where it stands.
func (d *document) bytes(ps []piece) []byte {
	n := len(byteOrderMark)
	for _, p := range ps {
		if p.isNew {
			n += len(p.text)
		} else {
			n += p.end - p.start
		}
	}
	out := make([]byte, 0, n+len(d.raw)-len(d.text))
	if d.bom {
		out = append(out, byteOrderMark...)
	}
	at := cursor{raw: d.raw}
	for _, p := range ps {
		var next string
		if p.isNew {
			next = p.text
			if len(d.raw) > 0 && strings.IndexByte(next, '\n') >= 0 {
				pos := at
				if eol := d.lineEndAt(pos.to(p.start)); eol != "\n" {
					next = strings.ReplaceAll(next, "\n", eol)
				}
			}
		} else {
			from := at.to(p.start)
			next = d.raw[from:at.to(p.end)]
		}
		if next == "" {
			continue
		}
		if next[0] == '\n' && bytes.HasSuffix(out, []byte{'\r'}) {
			// The two would become one line break; they are two.
			out = append(out, '\n')
		}
		out = append(out, next...)
	}
	return out
}

// cursor finds offsets of a text with LF line ends in the raw text, going forward.
type cursor struct {
	raw       string
	lf, inRaw int // the same place in both
}

func (p *cursor) to(lf int) int {
	for p.lf < lf {
		i := strings.IndexByte(p.raw[p.inRaw:], '\r')
		if i < 0 || i >= lf-p.lf {
			p.inRaw += lf - p.lf
			p.lf = lf
			break
		}
		p.inRaw += i + 1
		p.lf += i + 1
		if strings.HasPrefix(p.raw[p.inRaw:], "\n") {
			p.inRaw++
		}
	}
	return p.inRaw
}

// lineEndAt is the line end that text put at an offset of raw gets: that of the
// line there, of the line before for a last line without one. A lone CR counts
// only in a file that has nothing else.
func (d *document) lineEndAt(at int) string {
	i := strings.IndexAny(d.raw[at:], "\r\n")
	if i >= 0 {
		i += at
	} else if i = strings.LastIndexAny(d.raw[:at], "\r\n"); i < 0 {
		return "\n"
	} else if i > 0 && d.raw[i-1:i+1] == "\r\n" {
		i--
	}
	switch {
	case d.raw[i] == '\n':
		return "\n"
	case strings.HasPrefix(d.raw[i:], "\r\n"):
		return "\r\n"
	case strings.IndexByte(d.raw, '\n') < 0:
		return "\r"
	}
	return "\n"
}
