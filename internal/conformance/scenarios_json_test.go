package conformance

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Reading and writing the JSON of bodies and events.

// quoted is s as a JSON string.
func quoted(s string) string { return string(jsonwire.AppendString(nil, s)) }

// str is v when it is a string.
func str(v any) string {
	s, _ := v.(string)
	return s
}

// at is the value at a path of members, nil when there is none.
func at(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

// encoded is v as JSON with sorted members.
func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// canonical is a JSON text in the form of encoded.
func canonical(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	return encoded(v)
}

// joined is a content's text: that of a string, or of the parts of a list.
func joined(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	var texts []string
	for _, part := range asObjects(content) {
		if text, ok := part["text"].(string); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// dataOf is what a data URL holds.
func dataOf(url any) string {
	_, data, _ := strings.Cut(str(url), ";base64,")
	return data
}

// withMember is the JSON object body with one more member.
func withMember(body jsontext.Value, member string) jsontext.Value {
	return append(append(jsontext.Value(nil), body[:len(body)-1]...), ","+member+"}"...)
}
