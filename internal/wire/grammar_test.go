package wire

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func grammarTool(name, sampling, schema string) llm.Tool {
	return llm.Tool{Name: name, Parameters: jsontext.Value(schema), ConstrainedSampling: jsontext.Value(sampling)}
}

func TestGrammarOf(t *testing.T) {
	const one = `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`
	const lark = `{"type":"grammar","variants":{"openai_lark":"L","openai_regex":"R"}}`
	for _, c := range []struct {
		sampling, schema string
		want             Grammar // zero for none
	}{
		{lark, one, Grammar{"f", "p", "lark", "L"}},
		{`{"type":"grammar","variants":{"openai_regex":"R","openai_lark":""}}`, one, Grammar{"f", "p", "regex", "R"}},
		{`{"type":"grammar","variants":{}}`, one, Grammar{}},
		{`{"type":"json_schema"}`, one, Grammar{}},
		{`false`, one, Grammar{}},
		{lark, `{"type":"object","properties":{"p":{"type":"string"}}}`, Grammar{}},
		{lark, `{"type":"object","properties":{"p":{"type":"number"}},"required":["p"]}`, Grammar{}},
		{lark, `{"type":"object","properties":{"q":{"type":"number"},"p":{"type":"string"}},"required":["p"]}`, Grammar{"f", "p", "lark", "L"}},
		{lark, `{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"}},"required":["p","q"]}`, Grammar{}},
		{lark, `{"type":"object","properties":{"p":{"type":"string"}},"required":["q"]}`, Grammar{}},
		{`{"type":"grammar","variants":{"openai_lark":" \n","openai_regex":"R"}}`, one, Grammar{"f", "p", "regex", "R"}},
	} {
		tool := grammarTool("f", c.sampling, c.schema)
		got, ok := GrammarOf(&tool)
		if ok != (c.want != Grammar{}) || ok && got != c.want {
			t.Errorf("%s %s: got %+v %v", c.sampling, c.schema, got, ok)
		}
	}
	g := Grammars{}.Add([]llm.Tool{grammarTool("f", lark, one), grammarTool("g", lark, one)})
	key := g.Key()
	g = g.Add([]llm.Tool{grammarTool("f", `false`, one)})
	if g.Find("f") != nil || g.Find("g") == nil || g.Find("") != nil || g.Key() == key {
		t.Errorf("grammars %+v", g)
	}
	if g = g.Add([]llm.Tool{grammarTool("f", lark, one)}); g.Find("f") == nil {
		t.Errorf("grammars %+v", g)
	}
}

func TestGrammarInput(t *testing.T) {
	g := GrammarInput{Property: `a"b`}
	if got := string(g.Empty()); got != `{"a\"b":""}` {
		t.Errorf("empty %s", got)
	}
	var pieces []byte
	for _, input := range []string{"", "x\n", "", `"é`} {
		piece := g.Piece([]byte(input))
		if (len(piece) == 0) != (input == "") {
			t.Errorf("%q became %q", input, piece)
		}
		pieces = append(pieces, piece...)
	}
	empty := GrammarInput{Property: "p"}
	if got := string(empty.Piece(nil)) + string(empty.End()); got != `{"p":""}` {
		t.Errorf("no input became %s", got)
	}
	got := string(pieces) + string(g.End())
	if want := `{"a\"b":"x\n\"é"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if whole := string(g.Whole([]byte("x\n\"é"))) + GrammarEnd; whole != got {
		t.Errorf("whole %s, pieces %s", whole, got)
	}
}
