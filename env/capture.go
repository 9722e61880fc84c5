package env

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Capture keeps a bounded part of a command's output as text, counts all of it,
// and copies it to a file once it grows. It is the Output of a Command:
//
//	c := &env.Capture{Head: 1 << 20, Tail: 512 << 10}
//	exit, err := e.Exec(ctx, env.Command{Line: line, Output: c})
//	c.Close()
//	fmt.Println(c.Last(1000))
//
// The text is UTF-8, decoded as the output arrives, with U+FFFD for bytes that
// are none and without a byte order mark at its start; the file has all bytes. A
// Capture is safe for concurrent use. Its fields must not change once it is
// written to.
type Capture struct {
	Head int // bytes of text kept from the start
	Tail int // bytes of text kept from the end, beyond Head; up to twice as many are held

	// Spill opens the file that gets the output byte for byte when more than
	// SpillBytes or SpillLines have come; nil for none. Head must be at least
	// SpillBytes.
	Spill      func() (io.WriteCloser, error)
	SpillBytes int64
	SpillLines int

	mu      sync.Mutex
	head    []byte
	tail    []byte // follows head
	pending []byte // start of a UTF-8 sequence
	begun   bool   // some text has come

	total    int64 // bytes of text
	newlines int
	current  int64 // bytes behind the last line feed
	previous int64 // bytes of the last line that a line feed ended

	early    []byte // raw output while there is no file
	file     io.WriteCloser
	buffered *bufio.Writer
	spillErr error
	closed   bool
}

// Write takes output. It never fails: a file that cannot be written is given up
// and its problem kept for SpillErr.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return len(p), nil
	}
	c.spill(p)
	text := p
	if len(c.pending) > 0 {
		text = append(c.pending, p...)
		c.pending = nil
	}
	if !utf8.Valid(text) {
		var cut []byte
		text, cut = jsonwire.SplitUTF8(text)
		c.pending = bytes.Clone(cut)
		if !utf8.Valid(text) {
			text = jsonwire.AppendUTF8(nil, text)
		}
	}
	if !c.begun && len(text) > 0 {
		c.begun = true
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	c.add(text)
	c.spillIfLong()
	return len(p), nil
}

func (c *Capture) add(text []byte) {
	if len(text) == 0 {
		return
	}
	c.total += int64(len(text))
	if i := bytes.LastIndexByte(text, '\n'); i < 0 {
		c.current += int64(len(text))
	} else {
		before := c.current
		if j := bytes.LastIndexByte(text[:i], '\n'); j >= 0 {
			before = int64(-j - 1)
		}
		c.previous = before + int64(i)
		c.current = int64(len(text) - i - 1)
		c.newlines += bytes.Count(text, lineFeed)
	}
	if room := c.Head - len(c.head); room > 0 {
		n := min(room, len(text))
		c.head = append(c.head, text[:n]...)
		text = text[n:]
	}
	if c.Tail == 0 {
		return
	}
	if len(text) > c.Tail {
		c.tail = append(c.tail[:0], text[len(text)-c.Tail:]...)
		return
	}
	if len(c.tail)+len(text) > 2*c.Tail {
		n := copy(c.tail, c.tail[len(c.tail)-(c.Tail-len(text)):])
		c.tail = c.tail[:n]
	}
	c.tail = append(c.tail, text...)
}

var (
	lineFeed      = []byte{'\n'}
	byteOrderMark = []byte("\uFEFF")
)

// spill copies raw output to the file, or keeps it while there is none.
func (c *Capture) spill(p []byte) {
	switch {
	case c.Spill == nil || c.spillErr != nil:
	case c.file == nil:
		c.early = append(c.early, p...)
	default:
		if _, err := c.buffered.Write(p); err != nil {
			c.spillErr = err
		}
	}
}

func (c *Capture) spillIfLong() {
	if c.Spill == nil || c.file != nil || c.spillErr != nil {
		return
	}
	lines := c.newlines
	if c.current > 0 {
		lines++
	}
	if c.total <= c.SpillBytes && lines <= c.SpillLines {
		return
	}
	c.file, c.spillErr = c.Spill()
	early := c.early
	c.early = nil
	if c.spillErr == nil {
		c.buffered = bufio.NewWriterSize(c.file, 64<<10)
		c.spill(early)
	}
}

// Close ends the output and the file. Later output is dropped.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if len(c.pending) > 0 {
		c.pending = nil
		c.add([]byte("\uFFFD"))
		c.spillIfLong()
	}
	if c.file == nil {
		return nil
	}
	err := c.spillErr
	if flushErr := c.buffered.Flush(); err == nil {
		err = flushErr
	}
	if closeErr := c.file.Close(); err == nil {
		err = closeErr
	}
	c.spillErr = err
	return err
}

// Size tells how much has come: bytes of text, line feeds among them, and the
// length of the last line, without its line feed if it has one.
func (c *Capture) Size() (total int64, newlines int, lastLine int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lastLine = c.current
	if lastLine == 0 && c.newlines > 0 {
		lastLine = c.previous
	}
	return c.total, c.newlines, lastLine
}

// First is the first n bytes of the text, fewer when there are not so many or
// more than Head are asked for.
func (c *Capture) First(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.head[:min(n, len(c.head))])
}

// Last is the last n bytes of the text, fewer when there are not so many. What
// is neither in the head nor in the tail is gone.
func (c *Capture) Last(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tail) >= n || int64(len(c.head)+len(c.tail)) < c.total {
		return bytes.Clone(c.tail[max(0, len(c.tail)-n):])
	}
	return append(bytes.Clone(c.head[max(0, len(c.head)-(n-len(c.tail))):]), c.tail...)
}

// SpillErr is the problem that the file had, nil for none.
func (c *Capture) SpillErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spillErr
}
