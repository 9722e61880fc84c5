package tool

import (
	"strings"
)

// change is a range of a file and what stands there instead.
type change struct {
	start, end int    // in the raw text
	text       string // with LF line ends
	raw        string // as the file gets it
}

// changes are the changed ranges that matches make, in order.
//
// When the matches were found in the folded text, the lines that they touch are
// taken from the folded text as a whole; all other lines stay as they are.
func (s *source) changes(sp *space, found []match) []change {
	var out []change
	for len(found) > 0 {
		c := change{}
		if sp.kind == asFolded {
			c, found = s.foldedChange(sp, found)
		} else {
			m := found[0]
			c.start, c.end, c.text = sp.offset(m.start), sp.offset(m.end), m.text
			c.raw = s.withLineEnd(c.text, c.start)
			found = found[1:]
		}
		c.raw = keepBytes(c.raw, s.raw[c.start:c.end])
		out = append(out, c)
	}
	return out
}

// foldedChange makes one change of the first matches, those whose lines meet.
func (s *source) foldedChange(sp *space, found []match) (change, []match) {
	c := change{start: found[0].start.line}
	line, col := c.start, 0 // how far the folded text is in c
	view := sp.lineAt(line)
	put := func(text, raw string) { c.text, c.raw = c.text+text, c.raw+raw }
	for {
		m := found[0]
		found = found[1:]
		put(view[col:m.start.col], view[col:m.start.col])
		put(m.text, s.withLineEnd(m.text, c.start))
		col = m.end.col
		if m.end.line != line {
			line = m.end.line
			if col == 0 {
				// It ended with a line feed: the line behind is not touched.
				c.end = line
				return c, found
			}
			view = sp.lineAt(line)
		}
		if len(found) == 0 || found[0].start.line != line {
			put(view[col:], view[col:])
			var next int
			c.end, next = s.line(line)
			// The end of the last line goes with the lines that are new, unless
			// the text is found as it stands.
			if end := s.lineEndAt(c.start); c.end < next && s.raw[c.end:next] != end && !sp.isText() {
				put("\n", end)
				c.end = next
			}
			return c, found
		}
	}
}

// withLineEnd gives new text the line ends of the place where it stands.
func (s *source) withLineEnd(text string, at int) string {
	if strings.IndexByte(text, '\n') < 0 || s.raw == "" {
		return text
	}
	if end := s.lineEndAt(at); end != "\n" {
		return strings.ReplaceAll(text, "\n", end)
	}
	return text
}

// keepBytes puts the bytes that are no UTF-8 back into new text that was written
// from what a model saw of them. It saw U+FFFD for each; when the new text has
// as many of those as the old one, they stand for the same bytes.
func keepBytes(text, old string) string {
	const mark = "\uFFFD"
	n := strings.Count(text, mark)
	if n == 0 || strings.Count(decoded(old), mark) != n {
		return text
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, mark)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		for text = ""; text != mark; {
			at := old
			text, old = nextDecoded(at)
			if text == mark {
				b.WriteString(at[:len(at)-len(old)])
			}
		}
		text = rest
	}
}

// parts compares the edited text with the text before, as whole lines. changed
// is false when they are the same.
func (s *source) parts(list []change) (parts []textPart, changed bool) {
	covered := 0 // end of the text in parts
	for len(list) > 0 {
		start, end := s.start(list[0].start), 0
		var text strings.Builder // what the lines from start on become
		text.WriteString(s.text(start, list[0].start))
		for {
			text.WriteString(list[0].text)
			pos := list[0].end
			list = list[1:]
			kept := len(s.raw)
			if len(list) > 0 {
				kept = list[0].start
			}
			// The change reaches to the end of the line that the kept range
			// begins in; a range within one line is part of the change.
			lineEnd, next := s.line(pos)
			end = min(next, kept)
			text.WriteString(s.text(pos, end))
			if len(list) == 0 || end > lineEnd {
				break
			}
		}
		old := s.text(start, end)
		parts = append(parts, samePart(s, covered, start))
		if text.String() == old {
			parts = append(parts, samePart(s, start, end))
		} else {
			parts = append(parts, changedPart(old, text.String()))
			changed = true
		}
		covered = end
	}
	return append(parts, samePart(s, covered, len(s.raw))), changed
}

// segments are the pieces of the edited file, in order: what stays is not copied.
func (s *source) segments(list []change) []string {
	var out []string
	last := byte(0) // of what is in out
	put := func(text string) {
		if text == "" {
			return
		}
		if text[0] == '\n' && last == '\r' {
			// The two would become one line break; they are two.
			out = append(out, "\n")
		}
		out = append(out, text)
		last = text[len(text)-1]
	}
	if s.bom {
		put(byteOrderMark)
	}
	pos := 0
	for _, c := range list {
		put(s.raw[pos:c.start])
		put(c.raw)
		pos = c.end
	}
	put(s.raw[pos:])
	return out
}
