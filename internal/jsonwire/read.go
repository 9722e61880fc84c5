// Package jsonwire reads and writes JSON text the way model services and
// session files need it.
//
// It exists beside encoding/json for three reasons. Strings are WTF-8: half of
// a UTF-16 surrogate pair, which peers written in JavaScript do send and store,
// survives as its three-byte form instead of turning into U+FFFD. Reading
// pulls values from a byte slice without reflection and, except for strings
// that the caller keeps, without allocation, so that the cost of a stream event
// is the cost of its bytes. Writing follows JSON.stringify to the byte, because
// prompt caches and recorded requests compare bytes.
package jsonwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth bounds nesting. Deeper input is an error rather than a deep stack.
const MaxDepth = 10_000

// SyntaxError says where and why a text is not JSON.
type SyntaxError struct {
	Offset int // byte offset of the problem
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

// Reader pulls values from one JSON text. The zero Reader is ready for Reset.
//
// The first problem is kept; after it every method returns zero values and
// More returns false, so callers check Err once at the end.
//
//	r.Reset(line)
//	for r.Object(); r.More(); {
//		switch string(r.Key()) {
//		case "index":
//			index = r.Int()
//		default:
//			r.Skip()
//		}
//	}
//	if err := r.Err(); err != nil { … }
type Reader struct {
	b       []byte
	i       int
	err     error
	scratch []byte
	shared  bool   // what is kept may share b
	first   bool   // just behind an opening bracket
	refused bool   // Object or Array met another kind: the next More ends at once
	open    []byte // closing brackets of the containers around, innermost last
}

// Reset starts reading b, which the Reader only borrows.
func (r *Reader) Reset(b []byte) {
	r.b, r.i, r.err, r.shared, r.first, r.refused, r.open = b, 0, nil, false, false, false, r.open[:0]
}

// ResetShared is Reset for bytes that never change: what Text and Keep return
// shares their memory where it can.
func (r *Reader) ResetShared(b []byte) {
	r.Reset(b)
	r.shared = true
}

// ResetBehind starts reading b inside an object that begins it, behind the
// member that ends at the byte offset at. The caller has read, and checked, what
// is before; More goes on to the next member.
func (r *Reader) ResetBehind(b []byte, at int) {
	r.Reset(b)
	r.i = at
	r.open = append(r.open, '}')
}

// Err is the first problem met, or nil.
func (r *Reader) Err() error { return r.err }

// Offset is the position of the next unread byte.
func (r *Reader) Offset() int { return r.i }

// End reports an error when anything but white space is left, and returns Err.
func (r *Reader) End() error {
	if r.err == nil {
		if r.ws(); r.i < len(r.b) {
			r.fail("text after the value")
		}
	}
	return r.err
}

func (r *Reader) fail(msg string) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: r.i, Msg: msg}
	}
	r.i = len(r.b)
}

// ws skips white space and returns the next byte, 0 at the end.
func (r *Reader) ws() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

// Kind is the kind of the next value by its first byte: '{', '[', '"', 't',
// 'f', 'n', '0' for any number, 0 for the end of input or no JSON value.
func (r *Reader) Kind() byte {
	switch c := r.ws(); {
	case c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n':
		return c
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	default:
		return 0
	}
}

// Object enters an object. A value of another kind is skipped and reads as an
// object without members, as services send null where nothing is to be said;
// callers that must tell look at Kind first.
func (r *Reader) Object() bool { return r.enter('{') }

// Array enters an array, and treats other kinds as Object does.
func (r *Reader) Array() bool { return r.enter('[') }

func (r *Reader) enter(open byte) bool {
	if r.ws() != open {
		r.Skip()
		r.refused = true
		return false
	}
	if len(r.open) >= MaxDepth {
		r.fail("nested too deeply")
		return false
	}
	r.i++
	r.first = true
	r.open = append(r.open, open+2) // in ASCII both closers stand two behind their openers
	return true
}

// More reports whether the container just entered has another member or
// element, and leaves the container when it has none.
func (r *Reader) More() bool {
	if r.refused || r.err != nil {
		r.refused = false
		return false
	}
	c := r.ws()
	if c == '}' || c == ']' {
		n := len(r.open) - 1
		if n < 0 || r.open[n] != c {
			r.fail("mismatched bracket")
			return false
		}
		r.i++
		r.first = false
		r.open = r.open[:n]
		return false
	}
	if !r.first {
		if c != ',' {
			r.fail("expected a comma or a closing bracket")
			return false
		}
		r.i++
		if c = r.ws(); c == '}' || c == ']' {
			r.fail("comma before a closing bracket")
			return false
		}
	}
	r.first = false
	if c == 0 {
		r.fail("unexpected end")
		return false
	}
	return true
}

// Key reads a member's name and the colon behind it. The bytes are valid until
// the next call on r.
func (r *Reader) Key() []byte {
	if r.ws() != '"' {
		r.Skip()
		r.fail("expected the name of a member")
		return nil
	}
	k := r.String()
	if r.err == nil {
		if r.ws() != ':' {
			r.fail("expected a colon")
			return nil
		}
		r.i++
	}
	return k
}

// Text reads a string that may be kept; null and other kinds read as "".
func (r *Reader) Text() string {
	b := r.String()
	if r.shared && len(b) > 0 {
		// Where the string stands if it was not put together elsewhere.
		if from := r.i - 1 - len(b); from >= 0 && &r.b[from] == &b[0] {
			return view(b)
		}
	}
	return string(b)
}

// String reads a string. The bytes are valid until the next call on r. Null
// and other kinds are skipped and read as empty.
func (r *Reader) String() []byte {
	if r.ws() != '"' {
		r.Skip()
		return nil
	}
	r.i++
	start := r.i
	b := r.b
	n, ascii := Plain(b[start:])
	i := start + n
	if i == len(b) {
		r.i = i
		r.fail("unterminated string")
		return nil
	}
	switch b[i] {
	case '"':
		r.i = i + 1
		s := b[start:i]
		if !ascii && !utf8.Valid(s) {
			r.scratch = appendValid(r.scratch[:0], s)
			return r.scratch
		}
		return s
	case '\\':
		return r.escaped(start, i)
	default:
		r.i = i
		r.fail("control character in a string")
		return nil
	}
}

// stops marks, by their high bits, the bytes of x at which the plain part of a
// string ends; the lowest mark is always a true one.
func stops(x uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & highs
}

// Plain is how many bytes at the start of b stand for themselves inside a
// string: no quote, no backslash, no control character. ascii is true only when
// all of them are ASCII.
func Plain(b []byte) (n int, ascii bool) {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	var seen uint64
	for n+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[n:])
		quote := x ^ ones*'"'
		slash := x ^ ones*'\\'
		// The lowest flagged byte is always a true find.
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & highs
		seen |= x
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8, seen&highs == 0
		}
		n += 8
	}
	for ; n < len(b); n++ {
		c := b[n]
		if c == '"' || c == '\\' || c < 0x20 {
			break
		}
		seen |= uint64(c)
	}
	return n, seen&highs == 0
}

// escaped reads on from the first backslash, at i, of the string that began at start.
func (r *Reader) escaped(start, i int) []byte {
	b := r.b
	out := appendValid(r.scratch[:0], b[start:i])
	for i < len(b) {
		c := b[i]
		if c == '"' {
			r.i = i + 1
			r.scratch = out
			return out
		}
		if c != '\\' {
			n, ascii := Plain(b[i:])
			j := i + n
			if j < len(b) && b[j] < 0x20 {
				r.i = j
				r.fail("control character in a string")
				return nil
			}
			if ascii {
				out = append(out, b[i:j]...)
			} else {
				out = appendValid(out, b[i:j])
			}
			i = j
			continue
		}
		if i+1 >= len(b) {
			break
		}
		switch e := b[i+1]; e {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case '"', '\\', '/':
			c = e
		case 'u':
			u, ok := hex4(b, i+2)
			if !ok {
				r.i = i
				r.fail("bad \\u escape")
				return nil
			}
			i += 6
			if u >= 0xD800 && u < 0xDC00 && i+1 < len(b) && b[i] == '\\' && b[i+1] == 'u' {
				if lo, ok := hex4(b, i+2); ok && lo >= 0xDC00 && lo < 0xE000 {
					u = 0x10000 + (u-0xD800)<<10 + (lo - 0xDC00)
					i += 6
				}
			}
			out = appendRune(out, u)
			continue
		default:
			r.i = i
			r.fail("bad escape")
			return nil
		}
		out = append(out, c)
		i += 2
	}
	r.i = len(b)
	r.fail("unterminated string")
	return nil
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var u rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

// Null consumes a null and reports whether there was one.
func (r *Reader) Null() bool {
	if r.ws() != 'n' {
		return false
	}
	r.literal("null")
	return r.err == nil
}

// Bool reads true or false; other kinds are skipped and read as false.
func (r *Reader) Bool() bool {
	if r.ws() == 't' {
		r.literal("true")
		return r.err == nil
	}
	r.Skip()
	return false
}

// Int reads a number and cuts its fraction; other kinds, and numbers outside
// int64, are skipped and read as 0.
func (r *Reader) Int() int64 {
	raw := r.number()
	if raw == nil {
		return 0
	}
	var n int64
	s := raw
	neg := s[0] == '-'
	if neg {
		s = s[1:]
	}
	if len(s) <= 18 {
		plain := true
		for _, c := range s {
			if c < '0' || c > '9' {
				plain = false
				break
			}
			n = n*10 + int64(c-'0')
		}
		if plain {
			if neg {
				n = -n
			}
			return n
		}
	}
	f, err := strconv.ParseFloat(view(raw), 64)
	if err != nil || math.IsNaN(f) || f >= math.MaxInt64 || f <= math.MinInt64 {
		return 0
	}
	return int64(f)
}

// Float reads a number; other kinds are skipped and read as 0.
func (r *Reader) Float() float64 {
	raw := r.number()
	if raw == nil {
		return 0
	}
	if len(raw) == 1 && raw[0] != '-' {
		return float64(raw[0] - '0') // prices are mostly 0
	}
	f, err := strconv.ParseFloat(view(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return f
}

func (r *Reader) number() []byte {
	if r.Kind() != '0' {
		r.Skip()
		return nil
	}
	return r.Raw()
}

// Raw reads any value and returns its bytes, which belong to the input.
func (r *Reader) Raw() []byte {
	r.ws()
	start := r.i
	r.Skip()
	if r.err != nil {
		return nil
	}
	return r.b[start:r.i]
}

// Keep is Raw in memory that may be kept; nil after a failure.
func (r *Reader) Keep() []byte {
	v := r.Raw()
	if r.shared || v == nil {
		return v[:len(v):len(v)]
	}
	return append(make([]byte, 0, len(v)), v...)
}

// Rewind goes back to the byte offset at, where a value of the container being
// read began, to read it once more. It does nothing after a failure.
func (r *Reader) Rewind(at int) {
	if r.err == nil {
		r.i, r.first = at, false
	}
}

// Skip reads past any value and checks its syntax.
func (r *Reader) Skip() {
	switch c := r.ws(); {
	case c == '"':
		r.skipString()
	case c == '{' || c == '[':
		r.skipContainer()
	case c == 't':
		r.literal("true")
	case c == 'f':
		r.literal("false")
	case c == 'n':
		r.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		r.skipNumber()
	case c == 0:
		r.fail("unexpected end")
	default:
		r.fail("unexpected character")
	}
}

// skipContainer reads past the object or array at the next byte in one loop:
// most of what a log or an event holds is only read past.
func (r *Reader) skipContainer() {
	b, i, base := r.b, r.i, len(r.open)
	var c byte
value:
	for {
		for i < len(b) && space(b[i]) {
			i++
		}
		if i >= len(b) {
			break
		}
		switch c = b[i]; {
		case c == '"':
			if i = r.stringEnd(i); i < 0 {
				return
			}
		case c == '{' || c == '[':
			if len(r.open) >= MaxDepth {
				r.i = i
				r.fail("nested too deeply")
				return
			}
			r.open = append(r.open, c+2)
			i++
			for i < len(b) && space(b[i]) {
				i++
			}
			if i >= len(b) {
				break value
			}
			if b[i] == c+2 {
				break // empty: the closing bracket is read below
			}
			if b[i] == '}' || b[i] == ']' {
				r.i = i
				r.fail("mismatched bracket")
				return
			}
			if c == '[' {
				continue
			}
			if i = r.keyEnd(i); i < 0 {
				return
			}
			continue
		case c >= '1' && c <= '9':
			start := i
			for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; {
				i++
			}
			if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
				r.i = start
				r.skipNumber()
				i = r.i
			}
		default:
			r.i = i
			r.Skip()
			i = r.i
		}
		if r.err != nil {
			return // of a number or a literal
		}
		// Behind a value: brackets close, or a comma leads to the next one.
		for {
			for i < len(b) && space(b[i]) {
				i++
			}
			if i >= len(b) {
				break value
			}
			n := len(r.open) - 1
			if c = b[i]; c == r.open[n] {
				i++
				if r.open = r.open[:n]; n == base {
					r.i, r.first = i, false
					return
				}
				continue
			}
			if c != ',' {
				r.i = i
				if c == '}' || c == ']' {
					r.fail("mismatched bracket")
				} else {
					r.fail("expected a comma or a closing bracket")
				}
				return
			}
			i++
			if r.open[n] == '}' {
				if i = r.keyEnd(i); i < 0 {
					return
				}
				break
			}
			for i < len(b) && space(b[i]) {
				i++
			}
			if i < len(b) && (b[i] == ']' || b[i] == '}') {
				r.i = i
				r.fail("comma before a closing bracket")
				return
			}
			break
		}
	}
	r.i = i
	r.fail("unexpected end")
}

// keyEnd is the place behind the name and colon of the member at i, -1 after a
// failure.
func (r *Reader) keyEnd(i int) int {
	b := r.b
	for i < len(b) && space(b[i]) {
		i++
	}
	if i >= len(b) || b[i] != '"' {
		r.i = i
		switch {
		case i >= len(b):
			r.fail("unexpected end")
		case b[i] == '}' || b[i] == ']':
			r.fail("comma before a closing bracket")
		default:
			r.fail("expected a string")
		}
		return -1
	}
	if i = r.stringEnd(i); i < 0 {
		return -1
	}
	for i < len(b) && space(b[i]) {
		i++
	}
	if i >= len(b) || b[i] != ':' {
		r.i = i
		r.fail("expected a colon")
		return -1
	}
	return i + 1
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (r *Reader) literal(s string) {
	if len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		r.fail("unexpected character")
		return
	}
	r.i += len(s)
}

func (r *Reader) skipString() {
	if r.ws() != '"' {
		r.fail("expected a string")
		return
	}
	if end := r.stringEnd(r.i); end >= 0 {
		r.i = end
	}
}

// stringEnd is the place behind the string whose opening quote is at i, -1
// after a failure.
func (r *Reader) stringEnd(i int) int {
	b := r.b
	i++
	for {
		found := uint64(0)
		for i+8 <= len(b) {
			if found = stops(binary.LittleEndian.Uint64(b[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for found == 0 && i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			r.i = i
			r.fail("control character in a string")
			return -1
		}
		if i++; i >= len(b) {
			break
		}
		switch b[i] {
		case 'n', 't', 'r', 'b', 'f', '"', '\\', '/':
			i++
		case 'u':
			if _, ok := hex4(b, i+1); !ok {
				r.i = i
				r.fail("bad \\u escape")
				return -1
			}
			i += 5
		default:
			r.i = i
			r.fail("bad escape")
			return -1
		}
	}
	r.i = len(b)
	r.fail("unterminated string")
	return -1
}

func (r *Reader) skipNumber() {
	b, i := r.b, r.i
	digits := func() bool {
		s := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > s
	}
	if b[i] == '-' {
		i++
	}
	ok := true
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(b) && b[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		r.i = i
		r.fail("bad number")
		return
	}
	r.i = i
}

// view is b as a string without a copy; it must not outlive b's contents.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
