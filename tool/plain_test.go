package tool

import (
	"bytes"
	"errors"
	"sort"
	"strings"
)

// The plain model of an edit, which the tool is held against: it copies, decodes
// and folds the whole file and compares whole texts. It knows valid UTF-8 only.

var errPlain = errors.New("refused")

// plainEdit is the new content of a file and the text of the details.
func plainEdit(data string, edits []replacement) (after string, patch string, err error) {
	d := &plainDocument{}
	d.raw, d.bom = strings.CutPrefix(data, byteOrderMark)
	d.text = withLF(d.raw)
	space, found, err := plainMatches(d.text, edits)
	if err != nil {
		return "", "", err
	}
	ps := d.pieces(space, found)
	var b strings.Builder
	for _, p := range ps {
		if p.isNew {
			b.WriteString(p.text)
		} else {
			b.WriteString(d.text[p.start:p.end])
		}
	}
	if b.String() == d.text {
		return "", "", errPlain
	}
	c := compare([]textPart{changedPart(d.text, b.String())})
	hunks := c.hunks()
	return string(d.bytes(ps)), c.display(hunks) + c.patch("f", hunks), nil
}

type plainDocument struct {
	bom       bool
	raw, text string
}

type plainMatch struct {
	edit, start, end int
	text             string
}

// plainMatches finds replacements in the text, or all in the folded text.
func plainMatches(text string, edits []replacement) (space string, found []plainMatch, err error) {
	space = text
	folded := fold(text)
	for _, e := range edits {
		if e.old == "" {
			return "", nil, errPlain
		}
		if !strings.Contains(text, e.old) {
			space = folded
		}
	}
	for i, e := range edits {
		old, key := e.old, fold(e.old)
		start := strings.Index(space, old)
		if start < 0 && key != "" {
			old = key
			start = strings.Index(space, old)
		}
		if start < 0 {
			return "", nil, errPlain
		}
		if key == "" && strings.Count(space, old) > 1 || key != "" && strings.Count(folded, key) > 1 {
			return "", nil, errPlain
		}
		found = append(found, plainMatch{i, start, start + len(old), e.new})
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].start < found[b].start })
	for i := 1; i < len(found); i++ {
		if found[i-1].end > found[i].start {
			return "", nil, errPlain
		}
	}
	return space, found, nil
}

// plainPiece is a part of an edited document: a range of its text that stays, or new
// text that follows what stands at start.
type plainPiece struct {
	start, end int
	text       string // with LF line ends
	isNew      bool
}

func keep(start, end int) plainPiece        { return plainPiece{start: start, end: end} }
func put(start int, text string) plainPiece { return plainPiece{start: start, text: text, isNew: true} }

// plainPieces cuts the document into what stays and what is new, in order.
//
// When the matches were found in the folded text, the lines that they touch are
// taken from the folded text as a whole; all other lines stay as they are.
func (d *plainDocument) pieces(space string, found []plainMatch) []plainPiece {
	if space != d.text {
		return plainFolded(d.text, space, found)
	}
	var out []plainPiece
	pos := 0
	for _, m := range found {
		out = append(out, keep(pos, m.start), put(m.start, m.text))
		pos = m.end
	}
	return append(out, keep(pos, len(d.text)))
}

// plainFolded walks through the lines of a text and its folded form side by side.
func plainFolded(text, folded string, found []plainMatch) []plainPiece {
	var out []plainPiece
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
	kept := 0  // all of text before it is in out
	pos := -1  // in a touched line: all of folded before it is in out
	first := 0 // the first of the touched lines: the others end as it does
	finish := func() {
		te, fe := ends()
		out = append(out, put(first, folded[pos:fe]))
		kept, pos = te, -1
		if te < len(text) {
			out = append(out, put(first, "\n"))
			kept++
		}
	}
	for _, m := range found {
		if _, fe := ends(); pos >= 0 && m.start > fe {
			finish()
		}
		if pos < 0 {
			to(m.start)
			out = append(out, keep(kept, t))
			pos, first = f, t
		}
		out = append(out, put(first, folded[pos:m.start]), put(first, m.text))
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

// bytes is the edited document as its file holds it: what stays keeps its bytes,
// new text gets the line ends of the place where it stands.
func (d *plainDocument) bytes(ps []plainPiece) []byte {
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
	at := plainCursor{raw: d.raw}
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

// plainCursor finds offsets of a text with LF line ends in the raw text, going forward.
type plainCursor struct {
	raw       string
	lf, inRaw int // the same place in both
}

func (p *plainCursor) to(lf int) int {
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
// next line feed, of the one before where none follows. A lone CR counts only in
// a file without line feeds.
func (d *plainDocument) lineEndAt(at int) string {
	i := strings.IndexByte(d.raw[at:], '\n') + at
	if i < at {
		i = strings.LastIndexByte(d.raw[:at], '\n')
	}
	switch {
	case i < 0 && strings.IndexByte(d.raw, '\r') >= 0:
		return "\r"
	case i > 0 && d.raw[i-1] == '\r':
		return "\r\n"
	}
	return "\n"
}
