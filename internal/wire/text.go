package wire

import (
	"unicode/utf8"
	"unsafe"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Text is text that grows by pieces. Each Append returns its piece as a view of
// the text, so a delta costs its bytes and no allocation of its own. Views stay
// valid: bytes once written never change, growth moves the text elsewhere.
//
// A piece that ends in the first half of a UTF-16 surrogate pair, which
// JSON strings of some services do, is shown without that half; it comes with
// the next piece, joined with its twin.
type Text struct {
	buf  []byte
	half [3]byte // the held-back half, in its three-byte form
	held bool
}

// Append adds p and returns what became visible.
func (t *Text) Append(p []byte) string {
	from := len(t.buf)
	if t.held && len(p) > 0 {
		t.held = false
		if lo := jsonwire.SurrogateAt(p, 0); lo >= 0xDC00 {
			hi := jsonwire.SurrogateAt(t.half[:], 0)
			t.buf = utf8.AppendRune(t.buf, 0x10000+(hi-0xD800)<<10+(lo-0xDC00))
			p = p[3:]
		} else {
			t.buf = append(t.buf, t.half[:]...)
		}
	}
	if n := len(p) - 3; n >= 0 && p[n] == 0xED {
		if hi := jsonwire.SurrogateAt(p, n); hi != 0 && hi < 0xDC00 {
			t.half, t.held = [3]byte(p[n:]), true
			p = p[:n]
		}
	}
	t.buf = append(t.buf, p...)
	return t.view(from, len(t.buf))
}

// Flush makes a held-back half visible, as no twin will come, and returns it.
func (t *Text) Flush() string {
	if !t.held {
		return ""
	}
	t.held = false
	from := len(t.buf)
	t.buf = append(t.buf, t.half[:]...)
	return t.view(from, len(t.buf))
}

// same reports whether p is all of the text, with a half that is held back.
func (t *Text) same(p []byte) bool {
	if t.held {
		n := len(t.buf)
		return len(p) == n+3 && string(p[:n]) == t.String() && string(p[n:]) == string(t.half[:])
	}
	return string(p) == t.String()
}

// Len is the length of the visible text in bytes.
func (t *Text) Len() int { return len(t.buf) }

// String is the visible text.
func (t *Text) String() string { return t.view(0, len(t.buf)) }

// Prefix is the first n bytes of the text.
func (t *Text) Prefix(n int) string { return t.view(0, n) }

func (t *Text) view(from, to int) string {
	return unsafe.String(unsafe.SliceData(t.buf[from:to]), to-from)
}
