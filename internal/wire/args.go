package wire

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Args collects the JSON text of a tool call's arguments as it streams. Write
// costs a copy of the bytes it is given. Value reads each byte once, however
// often it is asked, and then costs a copy of the object so far. The zero value
// is ready. It implements the Streaming interface of llm.ToolCall.
type Args struct {
	raw   []byte
	view  argsView
	shown jsontext.Value // what Value made of the first at bytes
	at    int
}

// Write adds a piece of the text.
func (a *Args) Write(delta []byte) { a.raw = append(a.raw, delta...) }

// WriteString adds a piece of the text.
func (a *Args) WriteString(delta string) { a.raw = append(a.raw, delta...) }

// Len is the length of the text so far in bytes.
func (a *Args) Len() int { return len(a.raw) }

// Text is the text so far. Halves of a surrogate pair that came in two pieces
// are joined.
func (a *Args) Text() string {
	if s := string(a.raw); utf8.ValidString(s) {
		return s
	}
	s, _ := jsonwire.StringValue(jsonwire.AppendString(nil, a.raw))
	return s
}

// Value is the object that the text so far describes: a value of its own that
// later pieces don't change. Strings show as far as they have come, numbers and
// words as soon as they are one, members whose value has not begun not at all.
// Text that is no JSON shows as far as it can be understood, a root that is no
// object as {}; Final decides whether it is an error.
func (a *Args) Value() jsontext.Value {
	if a.shown != nil && a.at == len(a.raw) {
		return a.shown
	}
	a.view.read(a.raw)
	a.shown, a.at = a.view.value(a.raw), len(a.raw)
	return a.shown
}

// Final reads the complete text strictly, with repairs of what models get
// wrong inside strings. It returns the arguments as a compact JSON object and
// "", or {} and the text for llm.ToolCall.ArgumentsError.
func (a *Args) Final() (args jsontext.Value, argumentsError string) {
	return FinalArgs(a.raw)
}

// FinalArgs is Final for a text that came in one piece.
func FinalArgs(raw []byte) (args jsontext.Value, argumentsError string) {
	if jsonwire.Blank(string(raw)) {
		return jsontext.Value("{}"), ""
	}
	text := escapeHalves(raw)
	out, err := jsonwire.AppendCompact(make([]byte, 0, len(text)), text)
	if err != nil {
		var again error
		if out, again = jsonwire.AppendCompact(out[:0], RepairJSON(text)); again == nil {
			err = nil
		}
	}
	problem := "Tool arguments must be a JSON object"
	switch {
	case err != nil:
		problem = err.Error()
	case out[0] == '{':
		return out, ""
	}
	received := Args{raw: raw}
	return jsontext.Value("{}"), problem + "\n\nReceived arguments:\n" + received.Text()
}

// Reset empties a for another text and keeps its memory.
func (a *Args) Reset() {
	a.raw, a.shown, a.at = a.raw[:0], nil, 0
	a.view.reset()
}

// RepairJSON is text with what models get wrong inside JSON strings made right:
// raw control characters are escaped, and so are backslashes that begin no
// escape. It returns text itself when nothing is wrong.
func RepairJSON(text []byte) []byte {
	var out []byte
	inString, from := false, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			inString = !inString
		case !inString:
		case c == '\\':
			if n, ok := escapeLen(text[i:]); ok && n > 0 {
				i += n - 1
				continue
			}
			out = append(out, text[from:i]...)
			out = append(out, '\\', '\\')
			from = i + 1
		case c < 0x20:
			out = append(out, text[from:i]...)
			out = appendInner(out, text[i:i+1])
			from = i + 1
		}
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

// escapeLen is the length of the escape at the start of b, which is a
// backslash. ok is false when it is none; a length of 0 means that b ends
// before that is known.
func escapeLen(b []byte) (n int, ok bool) {
	if len(b) < 2 {
		return 0, true
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		for i := 2; i < 6; i++ {
			if i == len(b) {
				return 0, true
			}
			if c := b[i] | 0x20; (b[i] < '0' || b[i] > '9') && (c < 'a' || c > 'f') {
				return 0, false
			}
		}
		return 6, true
	}
	return 0, false
}

// appendInner appends s as it stands between the quotes of a JSON string.
func appendInner(dst, s []byte) []byte {
	n := len(dst)
	dst = jsonwire.AppendString(dst, s)
	copy(dst[n:], dst[n+1:])
	return dst[:len(dst)-2]
}

// escapeHalves is raw with halves of surrogate pairs in their escaped form, so
// that two that came apart meet when the text is read.
func escapeHalves(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+16)
	from := 0
	for i := 0; i+2 < len(raw); i++ {
		if raw[i] == 0xED && raw[i+1] >= 0xA0 && raw[i+1] <= 0xBF && raw[i+2]&0xC0 == 0x80 {
			out = append(out, raw[from:i]...)
			out = appendInner(out, raw[i:i+3])
			from = i + 3
			i += 2
		}
	}
	return append(out, raw[from:]...)
}
