package tool

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/lineregex"
)

// fileMatches is what was found in one file.
type fileMatches struct {
	name    string
	list    listing
	matches int  // at most as many as were asked for
	more    bool // there are others
	clipped bool
}

// fileSearch searches one file after another. Its memory is bounded: files are
// read in pieces of whole lines, and of lines that are too long for that only
// the start is kept.
type fileSearch struct {
	fs       env.FileSystem
	searcher *lineregex.Searcher
	context  int
	room     int // of the listings
	size     int // of the pieces that files are read in
	longest  int // line that is searched in one piece
	buf      []byte

	// The file at hand.
	out   *fileMatches
	limit int
	src   io.Reader
	left  int64  // bytes to come at most; -1 for any number
	ended bool   // all is read
	data  []byte // what is read and not yet dropped, from the start of a line on
	start int    // of what is to be searched: the lines before are kept as context
	shown int    // end of the last line shown, or of those that may not be shown again
	// Number of the line that starts at counted.
	line    int
	counted int
	after   int // lines still to be shown after the last match
}

// Sizes of the pieces. The memory of a worker is a few of them.
const (
	pieceSize = 512 << 10
	longLine  = 4 << 20
	// keptLine is how much of a line is kept to be shown. It is more than
	// maxShownLine characters take.
	keptLine = 4 << 10
	// keptContext bounds the lines before a match that are kept from one piece
	// to the next.
	keptContext = 128 << 10
)

func newFileSearch(g *grep, s *lineregex.Searcher) *fileSearch {
	return &fileSearch{fs: g.fs, searcher: s, context: g.context, room: g.list.room, size: pieceSize, longest: longLine}
}

// search finds up to limit matches in a file. name is what it is called in the
// result. A file that was not asked for by itself is given up where it turns out
// to be binary.
func (s *fileSearch) search(ctx context.Context, path, name string, limit int, asked bool) (*fileMatches, error) {
	f, err := s.fs.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s.out = &fileMatches{name: name, list: listing{room: s.room}}
	s.limit, s.src, s.left, s.ended = limit, f, f.Size(), false
	s.data, s.start, s.shown, s.line, s.counted, s.after = s.buf[:0], 0, 0, 1, 0, 0
	if s.left == 0 {
		s.left = -1 // files that the system makes up say so
	}
	for first := true; !s.finished(); first = false {
		if !s.ended {
			if err := s.fill(); err != nil {
				return nil, err
			}
		}
		if first {
			if err := s.decode(); err != nil {
				return nil, err
			}
		}
		end := len(s.data)
		if !s.ended {
			end = bytes.LastIndexByte(s.data, '\n') + 1
		}
		if !asked {
			if nul := bytes.IndexByte(s.data[s.start:], 0); nul >= 0 {
				end, s.ended = s.beforeBinary(s.start+nul), true
			}
		}
		switch {
		case s.ended:
			s.lines(end)
		case end > s.start:
			s.lines(end)
			s.drop(end)
			continue
		case len(s.data)-s.start < s.longest:
			continue // the line is longer than what was read
		default:
			if err := s.searchLong(asked); err != nil {
				return nil, err
			}
			continue
		}
		break
	}
	s.buf = s.data[:0]
	return s.out, nil
}

// finished tells whether what follows cannot change the result.
func (s *fileSearch) finished() bool { return s.out.more && s.after == 0 }

// fill reads the next piece behind the data.
func (s *fileSearch) fill() error {
	want := s.size
	if s.left >= 0 && s.left < int64(want) {
		want = int(s.left)
	}
	s.data = slices.Grow(s.data, want)
	n, err := io.ReadFull(s.src, s.data[len(s.data):len(s.data)+want])
	s.data = s.data[:len(s.data)+n]
	if s.left >= 0 {
		s.left -= int64(n)
	}
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF || s.left == 0:
		s.ended = true
		return nil
	}
	return err
}

// decode looks for a byte order mark. Text in UTF-16 is turned into UTF-8.
func (s *fileSearch) decode() error {
	switch {
	case bytes.HasPrefix(s.data, []byte{0xEF, 0xBB, 0xBF}):
		s.start, s.shown, s.counted = 3, 3, 3
		return nil
	case bytes.HasPrefix(s.data, []byte{0xFF, 0xFE}):
		return s.fromUTF16(binary.LittleEndian)
	case bytes.HasPrefix(s.data, []byte{0xFE, 0xFF}):
		return s.fromUTF16(binary.BigEndian)
	}
	return nil
}

func (s *fileSearch) fromUTF16(order binary.ByteOrder) error {
	rest := s.src
	if s.left >= 0 {
		rest = io.LimitReader(rest, s.left)
	}
	s.src = &utf16Reader{order: order, src: io.MultiReader(bytes.NewReader(bytes.Clone(s.data[2:])), rest)}
	s.data, s.left, s.ended = s.data[:0], -1, false
	return s.fill()
}

// beforeBinary is the end of what is searched of a file that has a NUL byte in
// its data. Those who read in blocks of 64 KiB see it with the block that it is
// in, and search the lines that were complete before.
func (s *fileSearch) beforeBinary(nul int) int {
	const block = 64 << 10
	end := s.start
	for end+block <= nul {
		n := bytes.LastIndexByte(s.data[end:end+block], '\n') + 1
		if n == 0 {
			break
		}
		end += n
	}
	return end
}

// lines searches the lines up to an offset.
func (s *fileSearch) lines(end int) {
	s.searcher.Search(s.data[s.start:end])
	for !s.finished() {
		from, to, ok := s.searcher.Next()
		if !ok {
			break
		}
		from, to = from+s.start, to+s.start
		s.showAfter(from)
		if s.out.matches == s.limit {
			s.out.more = true
			continue // it may still be shown as context
		}
		s.showBefore(from)
		s.show(from, to, true)
		s.out.matches++
		s.after = s.context
	}
	s.showAfter(end)
}

// next is the end of the line that starts at an offset, and where the next one
// starts.
func (s *fileSearch) next(from int) (end, next int) {
	if n := bytes.IndexByte(s.data[from:], '\n'); n >= 0 {
		return from + n, from + n + 1
	}
	return len(s.data), len(s.data)
}

// showAfter shows what is due after the last match, up to an offset.
func (s *fileSearch) showAfter(limit int) {
	for s.after > 0 && s.shown < limit {
		end, next := s.next(s.shown)
		s.show(s.shown, end, false)
		s.shown = next
		s.after--
	}
}

// showBefore shows the lines before a match.
func (s *fileSearch) showBefore(match int) {
	from := match
	for n := s.context; n > 0 && from > s.shown; n-- {
		from = bytes.LastIndexByte(s.data[s.shown:from-1], '\n') + 1 + s.shown
	}
	for from < match {
		end, next := s.next(from)
		s.show(from, end, false)
		from = next
	}
}

// show adds a line to the result.
func (s *fileSearch) show(from, end int, match bool) {
	line := s.data[from:end]
	if end < len(s.data) {
		line = bytes.TrimSuffix(line, []byte{'\r'})
	}
	s.showLine(s.lineAt(from), line, match)
	s.shown = min(end+1, len(s.data))
}

// lineAt is the number of the line that starts at an offset, which does not
// decrease from call to call.
func (s *fileSearch) lineAt(from int) int {
	s.line += bytes.Count(s.data[s.counted:from], lf)
	s.counted = from
	return s.line
}

func (s *fileSearch) showLine(number int, line []byte, match bool) {
	between := byte('-')
	if match {
		between = ':'
	}
	b := jsonwire.AppendUTF8(nil, s.out.name)
	b = strconv.AppendInt(append(b, between), int64(number), 10)
	b = append(b, between, ' ')
	var cut bool
	b, cut = appendClipped(b, line)
	s.out.clipped = s.out.clipped || cut
	s.out.list.line(b)
}

// drop forgets what was searched, up to an offset, but for the lines that the
// next match may show before it.
func (s *fileSearch) drop(end int) {
	keep := end
	for n := s.context; n > 0 && keep > s.shown && end-keep < keptContext; n-- {
		keep = bytes.LastIndexByte(s.data[s.shown:keep-1], '\n') + 1 + s.shown
	}
	s.lineAt(max(keep, s.counted))
	s.data = append(s.data[:0], s.data[keep:]...)
	s.start = end - keep
	s.shown = max(0, s.shown-keep)
	s.counted -= keep
}

// searchLong searches a line of which the data has only a part, and drops it.
func (s *fileSearch) searchLong(asked bool) error {
	number := s.line + bytes.Count(s.data[s.counted:s.start], lf)
	var head []byte
	s.searcher.StartLine()
	matches := false
	rest := s.data[s.start:]
	for {
		end := bytes.IndexByte(rest, '\n')
		piece := rest
		if end >= 0 {
			piece = rest[:end]
		}
		head = append(head, piece[:min(len(piece), keptLine-len(head))]...)
		matches = s.searcher.AddToLine(piece)
		if end >= 0 || s.ended {
			matches = matches || s.searcher.EndLine()
			rest = rest[min(len(piece)+1, len(rest)):]
			if end >= 0 {
				head = bytes.TrimSuffix(head, []byte{'\r'})
			}
			break
		}
		s.data = s.data[:s.start]
		if err := s.fill(); err != nil {
			return err
		}
		rest = s.data[s.start:]
		if !asked && bytes.IndexByte(rest, 0) >= 0 {
			s.data, s.ended = s.data[:s.start], true
			return nil
		}
	}
	switch {
	case matches && s.out.matches < s.limit:
		s.showBefore(s.start)
		s.showLine(number, head, true)
		s.out.matches++
		s.after = s.context
	case s.after > 0:
		s.showLine(number, head, false)
		s.after--
		fallthrough
	default:
		s.out.more = s.out.more || matches
	}
	// What follows is read on; nothing before it is left to be shown.
	s.data = append(s.data[:0], rest...)
	s.start, s.shown, s.counted, s.line = 0, 0, 0, number+1
	return nil
}

// maxShownLine is how much of a line is shown, in UTF-16 units.
const maxShownLine = 500

// appendClipped adds a line as valid UTF-8, cut where it is too long.
func appendClipped(dst, line []byte) (_ []byte, cut bool) {
	if len(line) <= maxShownLine && utf8.Valid(line) {
		return append(dst, line...), false
	}
	text := jsonwire.AppendUTF8(nil, line[:min(len(line), keptLine)])
	units := 0
	for i, r := range string(text) {
		units += utf16.RuneLen(r)
		if units > maxShownLine {
			return append(append(dst, text[:i]...), "... [truncated]"...), true
		}
	}
	return append(dst, text...), false
}

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	order binary.ByteOrder
	src   io.Reader
	raw   [4 << 10]byte
	have  int    // bytes at the start of raw that wait for others
	out   []byte // decoded, not yet read
	err   error
}

func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.more()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *utf16Reader) more() {
	n, err := io.ReadAtLeast(r.src, r.raw[r.have:], 1)
	r.have += n
	r.err = err
	units := make([]uint16, 0, r.have/2)
	at := 0
	for ; at+1 < r.have; at += 2 {
		units = append(units, r.order.Uint16(r.raw[at:]))
	}
	// A high surrogate waits for its twin.
	if k := len(units); k > 0 && err == nil && units[k-1]&0xFC00 == 0xD800 {
		units, at = units[:k-1], at-2
	}
	r.out = utf8Of(r.out[:0], units)
	r.have = copy(r.raw[:], r.raw[at:r.have])
	if err != nil && r.have > 0 {
		r.out = append(r.out, replacementChar...)
		r.have = 0
	}
}

func utf8Of(dst []byte, units []uint16) []byte {
	for _, c := range utf16.Decode(units) {
		dst = utf8.AppendRune(dst, c)
	}
	return dst
}
