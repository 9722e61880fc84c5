package wire

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Grammar is a tool whose input follows a grammar of the service: a custom tool
// of the OpenAI protocols.
type Grammar struct {
	Tool       string
	Property   string // the one argument, which holds the input
	Syntax     string // lark or regex
	Definition string
}

// GrammarOf is the grammar of a tool; ok is false for a tool that is declared
// as a function.
func GrammarOf(t *llm.Tool) (g Grammar, ok bool) {
	c := t.ConstrainedSampling
	if kind, _ := jsonwire.StringValue(jsonwire.Get(c, "type")); kind != "grammar" {
		return g, false
	}
	variants := jsonwire.Get(c, "variants")
	g.Tool = t.Name
	if g.Definition, ok = jsonwire.StringValue(jsonwire.Get(variants, "openai_lark")); ok && !jsonwire.Blank(g.Definition) {
		g.Syntax = "lark"
	} else if g.Definition, ok = jsonwire.StringValue(jsonwire.Get(variants, "openai_regex")); ok && !jsonwire.Blank(g.Definition) {
		g.Syntax = "regex"
	} else {
		return g, false
	}
	g.Property, ok = onlyString(t.Parameters)
	return g, ok
}

// onlyString is the name of the one required property of a schema, a string. A
// call of the tool has no others.
func onlyString(schema jsontext.Value) (name string, ok bool) {
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(schema, "required"))
	n := 0
	for r.Array(); r.More(); n++ {
		name = r.Text()
	}
	if r.End() != nil || n != 1 {
		return "", false
	}
	kind, _ := jsonwire.StringValue(jsonwire.Get(jsonwire.Get(jsonwire.Get(schema, "properties"), name), "type"))
	return name, kind == "string"
}

// Grammars are the grammar tools of a request.
type Grammars []Grammar

// Add adds the grammar tools among tools; a tool that is declared again
// replaces the earlier one.
func (g Grammars) Add(tools []llm.Tool) Grammars {
	for i := range tools {
		one, ok := GrammarOf(&tools[i])
		if have := g.Find(tools[i].Name); have != nil {
			*have = one // the zero Grammar when it is a function now
		} else if ok {
			g = append(g, one)
		}
	}
	return g
}

// Find is the grammar of a tool, nil when it is a function.
func (g Grammars) Find(tool string) *Grammar {
	for i := range g {
		if g[i].Tool == tool && tool != "" {
			return &g[i]
		}
	}
	return nil
}

// Key identifies what the encoding of calls and results depends on.
func (g Grammars) Key() string {
	if len(g) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range g {
		fmt.Fprintf(&b, "%q:%q;", g[i].Tool, g[i].Property)
	}
	return b.String()
}

// GrammarInput turns the input of a grammar tool, as it streams, into the JSON
// of the arguments {property: input}.
type GrammarInput struct {
	Property string
	begun    bool
	out      []byte
}

// Empty is the arguments before any input came.
func (g *GrammarInput) Empty() jsontext.Value {
	b := jsonwire.AppendString([]byte{'{'}, g.Property)
	return append(b, `:""}`...)
}

// Piece is the JSON of a piece of the input, with the beginning of the object
// in front of the first that is not empty. It is valid until the next call.
func (g *GrammarInput) Piece(input []byte) []byte {
	if len(input) == 0 {
		return nil
	}
	g.out = appendInner(g.begin(), input)
	return g.out
}

// End is what closes the object after the pieces.
func (g *GrammarInput) End() []byte { return append(g.begin(), GrammarEnd...) }

// begin is the beginning of the object, once.
func (g *GrammarInput) begin() []byte {
	if g.begun {
		return g.out[:0]
	}
	g.begun = true
	out := jsonwire.AppendString(append(g.out[:0], '{'), g.Property)
	return append(out, `:"`...)
}

// Whole is the JSON of the complete input without the end of the object, as
// the pieces of it would make.
func (g *GrammarInput) Whole(input []byte) []byte {
	whole := GrammarInput{Property: g.Property}
	out := whole.begin()
	if len(input) > 0 {
		out = appendInner(out, input)
	}
	return out
}

// GrammarEnd closes the object of the arguments.
const GrammarEnd = `"}`
