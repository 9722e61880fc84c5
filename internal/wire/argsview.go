package wire

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// argsView reads argument text as far as it has come and keeps a JSON text of
// what it understood. Escapes and plain bytes are carried over as they are, so
// that showing the value takes no decoding: the text, the end of what is still
// open, and the closing brackets.
type argsView struct {
	state  viewState
	pos    int    // bytes of the text read
	token  int    // start in the text of the number or word being read
	out    []byte // JSON without its closing brackets
	safe   int    // length of out without the member or element that has not begun to show
	key    int    // start in out of the key being read
	stack  []viewFrame
	double bool // two members of one object have one name
}

type viewState uint8

const (
	beforeRoot  viewState = iota
	beforeKey             // in an object
	inKey                 // in the string of a key
	afterKey              // before the value of a member
	beforeValue           // in an array
	inString
	inToken   // in a number or word
	afterRoot // the rest is ignored
)

type viewFrame struct {
	closer byte
	full   bool // has a member or element
	names  nameSet
}

// maxToken bounds the numbers that show before they have ended, so that
// showing an endless one stays cheap.
const maxToken = 64

func (v *argsView) reset() {
	*v = argsView{out: v.out[:0], stack: v.stack[:0]}
}

// read reads on in text, which begins with what was read before.
func (v *argsView) read(text []byte) {
	for v.pos < len(text) {
		c := text[v.pos]
		switch v.state {
		case inString, inKey:
			if !v.readString(text) {
				return
			}
		case inToken:
			if !v.readToken(text) {
				return
			}
		case afterRoot:
			v.pos = len(text)
		case beforeRoot:
			v.pos++
			switch {
			case isSpace(c):
			case c == '{':
				v.push('{')
			default:
				v.state = afterRoot
			}
		case beforeKey:
			v.pos++
			switch c {
			case '"':
				v.begin()
				v.key = len(v.out)
				v.out = append(v.out, '"')
				v.state = inKey
			case '}', ']':
				v.pop()
			}
		case afterKey:
			switch {
			case isSpace(c) || c == ':':
				v.pos++
			case c == ',' || c == '}' || c == ']':
				v.drop()
			default:
				v.startValue(c)
			}
		case beforeValue:
			switch {
			case isSpace(c) || c == ',' || c == ':':
				v.pos++
			case c == ']' || c == '}':
				v.pos++
				v.pop()
			default:
				v.begin()
				v.startValue(c)
			}
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// begin starts a member or element, which drop takes back.
func (v *argsView) begin() {
	v.safe = len(v.out)
	if v.top().full {
		v.out = append(v.out, ',')
	}
}

func (v *argsView) top() *viewFrame { return &v.stack[len(v.stack)-1] }

func (v *argsView) drop() {
	v.out = v.out[:v.safe]
	v.next()
}

// next waits for the next member or element of the innermost container.
func (v *argsView) next() {
	switch {
	case len(v.stack) == 0:
		v.state = afterRoot
	case v.top().closer == '}':
		v.state = beforeKey
	default:
		v.state = beforeValue
	}
}

func (v *argsView) startValue(c byte) {
	switch c {
	case '"':
		v.pos++
		v.top().full = true
		v.out = append(v.out, '"')
		v.state = inString
	case '{', '[':
		v.pos++
		if len(v.stack) >= jsonwire.MaxDepth {
			v.out = v.out[:v.safe]
			v.state = afterRoot
			return
		}
		v.top().full = true
		v.push(c)
	default:
		v.token = v.pos
		v.pos++
		v.state = inToken
	}
}

func (v *argsView) push(opener byte) {
	v.out = append(v.out, opener)
	closer := opener + 2
	if n := len(v.stack); n < cap(v.stack) {
		// Keep the memory of the frame that stood here before.
		v.stack = v.stack[:n+1]
		f := &v.stack[n]
		f.closer, f.full = closer, false
		f.names.reset()
	} else {
		v.stack = append(v.stack, viewFrame{closer: closer})
	}
	v.next()
}

func (v *argsView) pop() {
	v.out = append(v.out, v.top().closer)
	v.stack = v.stack[:len(v.stack)-1]
	v.next()
}

// readString reads on in a string. It reports whether it came to the string's
// end; it stops in front of what is not complete.
func (v *argsView) readString(text []byte) bool {
	for {
		start := v.pos
		i := start
		for i < len(text) && text[i] != '"' && text[i] != '\\' {
			i++
		}
		span := text[start:i]
		if i == len(text) {
			span = span[:len(span)-incomplete(span)]
		}
		v.pos = start + len(span)
		v.out = appendSpan(v.out, span)
		if v.pos == len(text) || i == len(text) {
			return false
		}
		if text[i] == '"' {
			v.pos++
			v.out = append(v.out, '"')
			if v.state == inKey {
				if !v.top().names.add(v.out[v.key:]) {
					v.double = true
				}
				v.out = append(v.out, ':')
				v.state = afterKey
			} else {
				v.next()
			}
			return true
		}
		n, ok := escapeLen(text[i:])
		switch {
		case !ok: // the backslash is text
			v.out = append(v.out, '\\', '\\')
			v.pos++
		case n == 0:
			return false
		default:
			v.out = append(v.out, text[i:i+n]...)
			v.pos += n
		}
	}
}

// appendSpan appends plain bytes of a string.
func appendSpan(dst, span []byte) []byte {
	for _, c := range span {
		if c < 0x20 || c >= utf8.RuneSelf {
			return appendInner(dst, span)
		}
	}
	return append(dst, span...)
}

// incomplete is how many bytes at the end of b may be the begin of a character.
func incomplete(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			tail := b[len(b)-n:]
			half := c == 0xED && n == 2 && tail[1] >= 0xA0 && tail[1] <= 0xBF
			if half || !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// readToken reads on in a number or word. It reports whether the token has ended.
func (v *argsView) readToken(text []byte) bool {
	i := v.pos
	for i < len(text) {
		switch c := text[i]; {
		case isSpace(c), c == ',', c == ':', c == '"', c == '{', c == '}', c == '[', c == ']':
			v.pos = i
			if shown := ended(text[v.token:i]); shown != nil {
				v.out = append(v.out, shown...)
				v.top().full = true
				v.next()
			} else {
				v.drop()
			}
			return true
		}
		i++
	}
	v.pos = i
	return false
}

// ended is the JSON of a complete token, nil when it is none.
func ended(token []byte) []byte {
	switch string(token) {
	case "true", "false", "null":
		return token
	}
	return numberText(token)
}

// numberText is the number that a token is, an exponent without digits aside; nil
// when it is none.
func numberText(token []byte) []byte {
	if c := token[0]; c != '-' && (c < '0' || c > '9') {
		return nil
	}
	n := len(token)
	if n > 1 && (token[n-1] == '+' || token[n-1] == '-') && token[n-2]|0x20 == 'e' {
		n--
	}
	if token[n-1]|0x20 == 'e' {
		n--
	}
	if jsonwire.Check(token[:n]) != nil {
		return nil
	}
	return token[:n]
}

// partial is what an unfinished token shows as, nil for nothing.
func partial(token []byte) []byte {
	for _, word := range []string{"true", "false", "null"} {
		if len(token) <= len(word) && word[:len(token)] == string(token) {
			return []byte(word)
		}
	}
	if len(token) > maxToken {
		return nil
	}
	return numberText(token)
}

// value is the object so far, in memory of its own.
func (v *argsView) value(text []byte) jsontext.Value {
	if len(v.out) == 0 {
		return jsontext.Value("{}")
	}
	shown := v.out
	var tail []byte
	switch v.state {
	case inKey, afterKey:
		shown = v.out[:v.safe]
	case inString:
		tail = []byte{'"'}
	case inToken:
		if tail = partial(text[v.token:v.pos]); tail == nil {
			shown = v.out[:v.safe]
		}
	}
	out := make([]byte, 0, len(shown)+len(tail)+len(v.stack))
	out = append(append(out, shown...), tail...)
	for _, f := range slices.Backward(v.stack) {
		out = append(out, f.closer)
	}
	if v.double {
		// The last of two members with one name counts.
		if compact, err := jsonwire.AppendCompact(nil, out); err == nil {
			return compact
		}
	}
	return out
}

// nameSet remembers the names of an object's members by their hashes: a name
// taken for another one costs time only.
type nameSet struct {
	few  []uint64
	many map[uint64]struct{}
}

const fewNames = 16

func (s *nameSet) reset() { s.few, s.many = s.few[:0], nil }

// add reports whether the name, as its JSON string, is new.
func (s *nameSet) add(name []byte) bool {
	if bytes.IndexByte(name, '\\') >= 0 {
		// One name can be spelled in several ways.
		if plain, ok := jsonwire.StringValue(name); ok {
			name = jsonwire.AppendString(nil, plain)
		}
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range name {
		h = (h ^ uint64(c)) * 1099511628211
	}
	if s.many == nil {
		if slices.Contains(s.few, h) {
			return false
		}
		if s.few = append(s.few, h); len(s.few) <= fewNames {
			return true
		}
		s.many = make(map[uint64]struct{}, 2*fewNames)
		for _, have := range s.few {
			s.many[have] = struct{}{}
		}
		return true
	}
	if _, ok := s.many[h]; ok {
		return false
	}
	s.many[h] = struct{}{}
	return true
}
