package tool

import (
	"bytes"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// cleaner turns the output of a command into plain text, piece by piece: without
// the sequences that colour a terminal and move on it, and without control
// characters except tab and line feed.
type cleaner struct {
	state   sequence
	pending []byte // start of a UTF-8 sequence
}

// sequence is how far into a sequence for a terminal the output is.
type sequence uint8

const (
	noSequence   sequence = iota
	escaped               // behind ESC
	intermediate          // behind ESC and an intermediate character
	inControl             // in a control sequence, such as that of a colour
	inString              // in a string, such as a title
	stringEscape          // in a string, behind ESC
)

// append appends what is text in p to dst.
func (c *cleaner) append(dst, p []byte) []byte {
	if len(c.pending) > 0 {
		p = append(c.pending, p...)
	}
	p, cut := jsonwire.SplitUTF8(p)
	c.pending = bytes.Clone(cut)
	if !utf8.Valid(p) {
		p = jsonwire.AppendUTF8(nil, p)
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if c.shows(r) {
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return dst
}

// rest appends what stands for a character that was cut off at the end.
func (c *cleaner) rest(dst []byte) []byte {
	if len(c.pending) > 0 && c.shows(utf8.RuneError) {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	c.pending = nil
	return dst
}

// shows takes the next character and reports whether it is text. What breaks a
// sequence off is looked at as if there had been none, so that a sequence
// without an end does not swallow the output.
func (c *cleaner) shows(r rune) bool {
	const (
		bell       = 0x07
		escape     = 0x1B
		control    = 0x9B
		terminator = 0x9C
	)
	if r == escape {
		if c.state == inString {
			c.state = stringEscape
		} else {
			c.state = escaped
		}
		return false
	}
	before := c.state
	c.state = noSequence
	switch before {
	case noSequence:
		if r == control {
			c.state = inControl
			return false
		}
		return r == '\t' || r == '\n' || r >= ' ' && (r < 0xFFF9 || r > 0xFFFB)
	case escaped:
		switch {
		case r == '[':
			c.state = inControl
		case r == ']', r == 'P', r == 'X', r == '^', r == '_':
			c.state = inString
		case r >= ' ' && r <= '/':
			c.state = intermediate
		case r < ' ' || r > '~':
			return c.shows(r)
		}
	case intermediate:
		switch {
		case r >= ' ' && r <= '/':
			c.state = intermediate
		case r < ' ' || r > '~':
			return c.shows(r)
		}
	case inControl:
		switch {
		case r >= ' ' && r <= '?':
			c.state = inControl
		case r < ' ' || r > '~':
			return c.shows(r)
		}
	case inString:
		switch r {
		case bell, terminator:
		case '\n':
			return true
		default:
			c.state = inString
		}
	case stringEscape:
		if r != '\\' {
			c.state = escaped
			return c.shows(r)
		}
	}
	return false
}
