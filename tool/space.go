package tool

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// space is a form of a file's text in which pieces of it are looked for. It is
// never made as a whole: ranges of lines that are the same in the file are
// searched there, others are formed a range at a time.
type space struct {
	src  *source
	kind spaceKind

	chunks []chunk // as far as they have been looked at
}

type spaceKind int

const (
	asIs     spaceKind = iota // the bytes of the file
	asText                    // decoded lines
	asFolded                  // folded lines
)

// exactSpace is the one in which the old texts of edits are found as they are:
// only where one holds U+FFFD it matters what cannot be decoded.
func exactSpace(src *source, edits []replacement) *space {
	s := &space{src: src, kind: asIs}
	if slices.ContainsFunc(edits, func(e replacement) bool { return strings.Contains(e.old, "\uFFFD") }) {
		s.kind = asText
	}
	return s
}

// position is a place in a space: the offset of its line in the file and a column,
// in bytes of the line's form.
type position struct{ line, col int }

func (p position) less(q position) bool { return p.line < q.line || p.line == q.line && p.col < q.col }

// span is a range of a space.
type span struct{ start, end position }

// chunk is a range of whole lines of the file.
type chunk struct {
	start, end int
	same       bool // its form is what is in the file
}

// chunkSize bounds what of a file is formed at a time, long lines aside.
const chunkSize = 64 << 10

// chunk is the number i of the chunks, false behind the last.
func (s *space) chunk(i int) (chunk, bool) {
	for len(s.chunks) <= i {
		start := 0
		if n := len(s.chunks); n > 0 {
			start = s.chunks[n-1].end
		}
		if start == len(s.src.raw) {
			return chunk{}, false
		}
		c := chunk{start: start, end: len(s.src.raw), same: true}
		if s.kind != asIs {
			if start+chunkSize < c.end {
				_, c.end = s.src.line(start + chunkSize)
			}
			c.same = s.isSame(s.src.raw[start:c.end])
		}
		s.chunks = append(s.chunks, c)
	}
	return s.chunks[i], true
}

func (s *space) isSame(raw string) bool {
	switch s.kind {
	case asText:
		return utf8.ValidString(raw)
	case asFolded:
		return isFolded(raw)
	}
	return true
}

// isText reports whether the space is the text of the file.
func (s *space) isText() bool {
	for i := 0; ; i++ {
		c, ok := s.chunk(i)
		if !ok {
			return true
		}
		for at := c.start; !c.same && at < c.end; {
			end, next := s.src.line(at)
			if line := s.src.raw[at:end]; s.form(line) != decoded(line) {
				return false
			}
			at = next
		}
	}
}

// lineAt is the form of the line that starts at an offset of the file.
func (s *space) lineAt(start int) string {
	end, _ := s.src.line(start)
	return s.form(s.src.raw[start:end])
}

// form is the form of a line without its line end.
func (s *space) form(line string) string {
	switch s.kind {
	case asText:
		return decoded(line)
	case asFolded:
		if !isFolded(line) {
			return string(appendFolded(nil, decoded(line)))
		}
	}
	return line
}

// offset is a place as an offset in the file. It knows no folded places.
func (s *space) offset(p position) int {
	if s.kind == asIs {
		return p.line + p.col
	}
	at := p.line
	for col := 0; col < p.col; {
		c, rest := nextDecoded(s.src.raw[at:])
		col += len(c)
		at = len(s.src.raw) - len(rest)
	}
	return at
}

// key is a text to look for: its lines, of which the longest is searched and the
// others are compared around it.
type key struct {
	lines  []string
	anchor int
	finder finder
}

func (s *space) key(text string) *key {
	k := &key{lines: strings.Split(text, "\n")}
	for i, l := range k.lines {
		if len(l) > len(k.lines[k.anchor]) {
			k.anchor = i
		}
	}
	k.finder = newFinder(s.src.raw, k.lines[k.anchor])
	return k
}

// find is the first place of text, which is not empty.
func (s *space) find(text string) (at span, ok bool) {
	s.each(text, func(found span) bool {
		at, ok = found, true
		return false
	})
	return at, ok
}

// count counts the places of text, which is not empty, that do not overlap.
func (s *space) count(text string) int {
	n := 0
	s.each(text, func(span) bool { n++; return true })
	return n
}

// each hands over the places of text that do not overlap, in order, until yield
// is false.
func (s *space) each(text string, yield func(span) bool) {
	k := s.key(text)
	var last position // end of the last one
	var form formed
	for i := 0; ; i++ {
		c, ok := s.chunk(i)
		if !ok {
			return
		}
		lines := lineCursor(&sameLines{src: s.src, line: c.start, from: c.start})
		view := s.src.raw[c.start:c.end]
		if !c.same {
			form.make(s, c)
			view, lines = form.text, &form
		}
		for at := 0; at < len(view); {
			hit := at + k.finder.next(view[at:])
			if hit < at {
				break
			}
			line, col := lines.at(hit)
			if len(k.lines) == 1 {
				at = hit + len(text)
				if !yield(span{position{line, col}, position{line, col + len(text)}}) {
					return
				}
				continue
			}
			if at = lines.next(); line < last.line {
				continue // it would begin within the last one
			}
			if found, ok := s.verify(k, line); ok && !found.start.less(last) {
				last = found.end
				if !yield(found) {
					return
				}
			}
		}
	}
}

// verify looks whether a key of several lines has its anchor in the line that
// starts at an offset of the file.
func (s *space) verify(k *key, line int) (found span, ok bool) {
	final := len(k.lines) - 1
	at := line
	for i := k.anchor - 1; i >= 0; i-- {
		if at = s.src.before(at); at < 0 || i > 0 && s.lineAt(at) != k.lines[i] {
			return found, false
		}
	}
	for i, want := range k.lines {
		end, next := s.src.line(at)
		form := s.form(s.src.raw[at:end])
		switch i {
		case 0:
			if !strings.HasSuffix(form, want) {
				return found, false
			}
			found.start = position{at, len(form) - len(want)}
		case final:
			if !strings.HasPrefix(form, want) {
				return found, false
			}
			found.end = position{at, len(want)}
			return found, true
		default:
			if form != want {
				return found, false
			}
		}
		if end == next {
			return found, false // the last line has no end
		}
		at = next
	}
	return found, false
}

// lineCursor finds lines of a chunk, going forward.
type lineCursor interface {
	// at is the place of an offset in the chunk's form.
	at(offset int) (line, col int)
	// next is where the line after that begins in the form.
	next() int
}

// sameLines are those of a chunk whose form is what is in the file.
type sameLines struct {
	src  *source
	line int // start of the line that the last offset was in
	from int // start of the chunk
	seen int // end of what was looked through for line ends
}

func (l *sameLines) at(offset int) (line, col int) {
	pos := l.from + offset
	passed := l.src.raw[max(l.seen, l.line):pos]
	i := strings.LastIndexByte(passed, '\n')
	if l.src.crs {
		i = strings.LastIndexAny(passed, "\r\n")
	}
	if i >= 0 {
		l.line = pos - len(passed) + i + 1
	}
	l.seen = pos
	return l.line, pos - l.line
}

func (l *sameLines) next() int {
	_, next := l.src.line(max(l.seen, l.line))
	return next - l.from
}

// formed is a chunk in another form than the file has, with LF line ends.
type formed struct {
	text   string
	raw    []int // starts of the lines in the file
	starts []int // and in text
	line   int

	buf, decoded []byte
}

func (f *formed) make(s *space, c chunk) {
	f.raw, f.starts, f.buf, f.line = f.raw[:0], f.starts[:0], f.buf[:0], 0
	dec := source{raw: s.src.raw[c.start:c.end], crs: s.src.crs}
	if !utf8.ValidString(dec.raw) {
		f.decoded = jsonwire.AppendUTF8(f.decoded[:0], dec.raw)
		dec.raw = string(f.decoded)
	}
	for at, from := c.start, 0; at < c.end; {
		f.raw, f.starts = append(f.raw, at), append(f.starts, len(f.buf))
		end, next := dec.line(from)
		if s.kind == asFolded {
			f.buf = appendFolded(f.buf, dec.raw[from:end])
		} else {
			f.buf = append(f.buf, dec.raw[from:end]...)
		}
		if next > end {
			f.buf = append(f.buf, '\n')
		}
		from = next
		_, at = s.src.line(at)
	}
	f.text = string(f.buf)
}

func (f *formed) at(offset int) (line, col int) {
	for f.line+1 < len(f.starts) && f.starts[f.line+1] <= offset {
		f.line++
	}
	return f.raw[f.line], offset - f.starts[f.line]
}

func (f *formed) next() int {
	if f.line+1 < len(f.starts) {
		return f.starts[f.line+1]
	}
	return len(f.text)
}
