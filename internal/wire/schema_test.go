package wire

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func TestStrictSchema(t *testing.T) {
	for _, c := range []struct{ schema, want string }{ // no want: it has no strict form
		{`{"type":"object"}`, `{"type":"object","required":[],"additionalProperties":false}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		{`{"required":[],"type":"object","properties":{"b":{"type":"integer"},"a":{"enum":[1,null]}}}`,
			`{"required":["b","a"],"type":"object","properties":{"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"a":{"enum":[1,null]}},"additionalProperties":false}`},
		{`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}}},"required":["l"]}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"anyOf":[{"type":"number"},{"type":"null"}]}},"required":["x"],"additionalProperties":false}}},"required":["l"],"additionalProperties":false}`},
		// A property may be called like a keyword.
		{`{"type":"object","properties":{"not":{"type":"string"}},"required":["not"]}`,
			`{"type":"object","properties":{"not":{"type":"string"}},"required":["not"],"additionalProperties":false}`},
		{`{"type":"string"}`, ""},
		{`{"type":["object","null"]}`, ""},
		{`{"type":"object","additionalProperties":true}`, ""},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, ""},
		{`{"type":"object","properties":{"a":true}}`, ""},
		{`{"type":"object","properties":{"a":{}}}`, ""},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}`, ""},
		{`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, ""},
		{`{"type":"object","properties":{"a":{"anyOf":[{"type":"array"},{"type":"string"}]}}}`, ""},
		{`{"type":"object","required":["a"]}`, ""},
		{`{"type":"object","patternProperties":{}}`, ""},
		{`[]`, ""},
		{``, ""},
	} {
		got, err := StrictSchema([]byte(c.schema), nil)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s\ngot  %s, %v\nwant %s", c.schema, got, err, c.want)
		}
	}
}

func TestStrictTool(t *testing.T) {
	loose, closed := `{"type":"object","patternProperties":{}}`, `{"type":"object"}`
	for _, c := range []struct {
		schema, sampling  string
		supported, prefer bool
		strict            bool
		err               string
	}{
		{closed, ``, true, true, false, ""},
		{closed, `false`, true, true, false, ""},
		{closed, `{"type":"grammar"}`, true, true, false, ""},
		{closed, `{"type":"json_schema","strict":"prefer"}`, true, true, true, ""},
		{closed, `{"type":"json_schema","strict":"prefer"}`, true, false, false, ""},
		{closed, `{"type":"json_schema","strict":"prefer"}`, false, true, false, ""},
		{loose, `{"type":"json_schema","strict":"prefer"}`, true, true, false, ""},
		{closed, `{"type":"json_schema","strict":"require"}`, true, false, true, ""},
		{closed, `{"type":"json_schema","strict":"require"}`, false, true, false,
			`Tool "t" requires JSON-schema constrained sampling, but strict tools are unsupported.`},
		{loose, `{"type":"json_schema","strict":"require"}`, true, true, false,
			`Tool "t" requires JSON-schema constrained sampling, but its keyword patternProperties cannot be enforced.`},
	} {
		tool := &llm.Tool{Name: "t", Parameters: jsontext.Value(c.schema), ConstrainedSampling: jsontext.Value(c.sampling)}
		_, strict, err := StrictTool(tool, c.supported, c.prefer, nil)
		if strict != c.strict || text(err) != c.err {
			t.Errorf("%s of %s: strict = %v, %v", c.sampling, c.schema, strict, err)
		}
	}
}
