package session

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
	"sync/atomic"
)

// ReadAll is the whole log in memory, without the lines that are too long.
func (l *Log) ReadAll() ([]byte, error) { return newSource(l, "").all() }

// source is where the lines of a log are read from: memory, or a store that
// reads in pieces. Its methods may be called from any number of goroutines.
type source struct {
	data    []byte      // the log, when in is nil
	in      io.ReaderAt // the log's store
	size    int64       // bytes of the log
	maxLine int64       // bytes of the longest line that counts; 0 for no bound in memory
	chunk   int         // bytes that are read at a time
	path    string      // for errors

	// doubt says that a line which counted by its beginning was read and is no
	// entry after all, or another one.
	doubt atomic.Bool
	// broken is the first failure to read.
	broken atomic.Pointer[Error]
}

func newSource(l *Log, path string) *source {
	if l.Reader == nil {
		return memorySource(l.Data)
	}
	s := &source{in: l.Reader, size: l.Size, maxLine: l.MaxLine, chunk: defaultChunk, path: path}
	if s.maxLine <= 0 || s.maxLine > math.MaxInt32 {
		s.maxLine = math.MaxInt32
	}
	return s
}

func memorySource(data []byte) *source { return &source{data: data, size: int64(len(data))} }

// read is the part of the log at an offset, which nobody may change. What is in
// memory already is not copied.
func (s *source) read(at int64, n int) ([]byte, error) {
	if s.in == nil {
		return s.data[at : at+int64(n) : at+int64(n)], nil
	}
	b := make([]byte, n)
	return b, s.fill(b, at)
}

// fill reads all of b, or fails for good: a log that was loaded has its bytes.
func (s *source) fill(b []byte, at int64) error {
	n, err := s.in.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok:
	case err == nil || err == io.EOF:
		e = &Error{Kind: Conflict, Op: "read", Path: s.path, Err: errors.New("the log is shorter than it was when it was opened"),
			Advice: "open the session again to go on with what is left of it"}
	default:
		e = &Error{Kind: IO, Op: "read", Path: s.path, Err: err}
	}
	s.broken.CompareAndSwap(nil, e)
	return e
}

// failed is the first failure to read, nil for none.
func (s *source) failed() error {
	if e := s.broken.Load(); e != nil {
		return e
	}
	return nil
}

// all is the whole log without the lines that are too long.
func (s *source) all() ([]byte, error) {
	if s.in == nil {
		return s.data, nil
	}
	if s.maxLine <= 0 || s.size <= s.maxLine {
		return s.read(0, int(s.size))
	}
	var out []byte
	for l, err := range s.lines() {
		if err == nil {
			var raw []byte
			raw, err = l.whole(s)
			out = append(append(out, raw...), '\n')
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// span is a line of a log without the white space around it.
type span struct {
	at   int64 // offset of the first byte
	size int
	// head is the line, or the beginning of one that is longer than a chunk. It
	// is valid until the next line is asked for.
	head []byte
	last byte // of the line; 0 for an empty one
}

// whole is all of the line, valid as long as the head.
func (l *span) whole(s *source) ([]byte, error) {
	if len(l.head) == l.size {
		return l.head, nil
	}
	return s.read(l.at, l.size)
}

// defaultChunk is little beside what a session takes, and enough that the calls
// cost nothing beside the bytes.
const defaultChunk = 256 << 10

// lines walks through the lines of the log, a chunk in memory at a time. After
// an error it ends.
func (s *source) lines() iter.Seq2[span, error] {
	return func(yield func(span, error) bool) {
		buf, n := s.data, len(s.data) // n bytes of buf, from the offset at
		var part []byte               // for the ends of long lines
		if s.in != nil {
			buf, n = make([]byte, min(s.size, int64(s.chunk))), 0
		}
		for at := int64(0); at+int64(n) < s.size || n > 0; {
			more := int(min(int64(len(buf)-n), s.size-at-int64(n)))
			if more > 0 {
				if err := s.fill(buf[n:n+more], at+int64(n)); err != nil {
					yield(span{}, err)
					return
				}
				n += more
			}
			end := at+int64(n) == s.size
			i := 0 // bytes of buf that are behind
			for i < n {
				k := bytes.IndexByte(buf[i:n], '\n')
				if k < 0 && !end {
					break
				}
				length := k + 1
				if k < 0 {
					k, length = n-i, n-i
				}
				if s.maxLine <= 0 || int64(length) <= s.maxLine {
					if !yield(trimmed(buf[i:i+k], at+int64(i)), nil) {
						return
					}
				}
				i += length
			}
			if i > 0 || end {
				n = copy(buf, buf[i:n])
				at += int64(i)
				continue
			}
			if part == nil {
				part = make([]byte, s.chunk)
			}
			l, next, err := s.long(buf, at, part)
			if err != nil {
				yield(span{}, err)
				return
			}
			if s.maxLine <= 0 || next-at <= s.maxLine {
				if !yield(l, nil) {
					return
				}
			}
			at, n = next, 0
		}
	}
}

func trimmed(line []byte, at int64) span {
	from, to := 0, len(line)
	if at == 0 && bytes.HasPrefix(line, []byte(byteOrderMark)) {
		from = len(byteOrderMark)
	}
	for from < to && jsonSpace(line[from]) {
		from++
	}
	for to > from && jsonSpace(line[to-1]) {
		to--
	}
	l := span{at: at + int64(from), size: to - from, head: line[from:to:to]}
	if to > from {
		l.last = line[to-1]
	}
	return l
}

// long finds the end of a line of which buf, at an offset, holds the beginning,
// and the offset of the line behind it. It reads into part.
func (s *source) long(buf []byte, at int64, part []byte) (l span, next int64, err error) {
	l = trimmed(buf, at)
	began := l.size > 0
	end := l.at + int64(l.size) // behind the last byte that is no white space
	next = at + int64(len(buf))
	for more := true; more && next < s.size; {
		p := part[:min(int64(len(part)), s.size-next)]
		if err := s.fill(p, next); err != nil {
			return l, 0, err
		}
		k := bytes.IndexByte(p, '\n')
		if more = k < 0; !more {
			p = p[:k]
		}
		if t := trimmed(p, next); t.size > 0 {
			if !began {
				l.at, began = t.at, true
			}
			end, l.last = t.at+int64(t.size), t.last
		}
		if next += int64(len(p)); !more {
			next++
		}
	}
	if l.size = int(end - l.at); l.size > len(l.head) {
		// White space at the end of the chunk is inside the line.
		n := int64(len(buf))
		l.head = buf[min(l.at-at, n):min(end-at, n)]
	}
	return l, next, nil
}

// rawLines walks through entries and their lines, nil where the log cannot be
// read; without filter all, else those that pass. Lines that stand side by side
// in a store are read at once, up to limit bytes, and share memory.
func rawLines(list []*Entry, limit int64, filter func(*Entry) bool) iter.Seq2[*Entry, []byte] {
	return func(yield func(*Entry, []byte) bool) {
		var batch []*Entry
		var log *source
		var from, to int64
		flush := func() bool {
			if len(batch) == 0 {
				return true
			}
			b, err := log.read(from, int(to-from))
			for _, e := range batch {
				var raw []byte
				if err != nil {
					raw = e.Raw() // which may be there
				} else {
					raw = b[e.at-from : e.at-from+int64(e.size) : e.at-from+int64(e.size)]
				}
				if !yield(e, raw) {
					return false
				}
			}
			batch = batch[:0]
			return true
		}
		for _, e := range list {
			if filter != nil && !filter(e) {
				continue
			}
			end := e.at + int64(e.size)
			if len(batch) > 0 && (e.log != log || e.at < to || e.at-to > gap || end-from > limit) {
				if !flush() {
					return
				}
			}
			if len(batch) == 0 {
				log, from = e.log, e.at
			}
			batch, to = append(batch, e), end
		}
		flush()
	}
}

// gap is how many bytes are read in vain rather than reading twice.
const gap = 4 << 10
