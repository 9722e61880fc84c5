package conformance

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Reading and writing the JSON of bodies and events.

// scenarioQuote is s as a JSON string.
func scenarioQuote(s string) string { return string(jsonwire.AppendString(nil, s)) }

// scenarioString is v when it is a string.
func scenarioString(v any) string {
	s, _ := v.(string)
	return s
}

// scenarioAt is the value at a path of members, nil when there is none.
func scenarioAt(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

// scenarioJSON is v as JSON with sorted members.
func scenarioJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// scenarioCanonical is a JSON text in the form of scenarioJSON.
func scenarioCanonical(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	return scenarioJSON(v)
}

// scenarioJoin is a content's text: that of a string, or of the parts of a list.
func scenarioJoin(content any) string {
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

// scenarioData is what a data URL holds.
func scenarioData(url any) string {
	_, data, _ := strings.Cut(scenarioString(url), ";base64,")
	return data
}

// scenarioWithMember is the JSON object body with one more member.
func scenarioWithMember(body jsontext.Value, member string) jsontext.Value {
	return append(append(jsontext.Value(nil), body[:len(body)-1]...), ","+member+"}"...)
}
