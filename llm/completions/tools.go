package completions

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// ToolError says that a tool cannot be declared the way it demands.
type ToolError struct {
	Tool   string
	Reason string
}

func (e *ToolError) Error() string {
	return `Tool "` + e.Tool + `" requires JSON-schema constrained sampling, but ` + e.Reason + "."
}

// grammar is a tool whose input follows a grammar of the service.
type grammar struct {
	tool       string
	property   string // the one argument
	syntax     string // lark or regex
	definition string
}

// grammars are the grammar tools of a request.
type grammars []grammar

func (g grammars) find(tool string) *grammar {
	for i := range g {
		if g[i].tool == tool {
			return &g[i]
		}
	}
	return nil
}

// key identifies what history encoding depends on.
func (g grammars) key() string {
	if len(g) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range g {
		fmt.Fprintf(&b, "%q:%q;", g[i].tool, g[i].property)
	}
	return b.String()
}

// grammarOf is the grammar of a tool; ok is false for a tool that is declared
// as a function.
func grammarOf(t *llm.Tool) (g grammar, ok bool) {
	c := t.ConstrainedSampling
	if kind, _ := jsonwire.StringValue(jsonwire.Get(c, "type")); kind != "grammar" {
		return g, false
	}
	variants := jsonwire.Get(c, "variants")
	g.tool = t.Name
	if g.definition, ok = jsonwire.StringValue(jsonwire.Get(variants, "openai_lark")); ok && g.definition != "" {
		g.syntax = "lark"
	} else if g.definition, ok = jsonwire.StringValue(jsonwire.Get(variants, "openai_regex")); ok && g.definition != "" {
		g.syntax = "regex"
	} else {
		return g, false
	}
	g.property, ok = onlyString(t.Parameters)
	return g, ok
}

// onlyString is the name of the one required string property of a schema.
func onlyString(schema jsontext.Value) (name string, ok bool) {
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(schema, "properties"))
	n := 0
	for r.Object(); r.More(); n++ {
		name = string(r.Key())
		kind, _ := jsonwire.StringValue(jsonwire.Get(r.Raw(), "type"))
		ok = kind == "string"
	}
	if n != 1 || !ok {
		return "", false
	}
	r.Reset(jsonwire.Get(schema, "required"))
	required := 0
	for r.Array(); r.More(); required++ {
		ok = ok && r.Text() == name
	}
	return name, ok && required == 1
}

// grammarsOf collects the grammar tools of lists of tools.
func grammarsOf(c *Compat, tools []llm.Tool) grammars {
	if !c.SupportsOpenAIGrammarTools {
		return nil
	}
	var g grammars
	for i := range tools {
		if one, ok := grammarOf(&tools[i]); ok {
			g = append(g, one)
		}
	}
	return g
}

// appendTools appends a list of tool declarations. The last one carries the
// cache marker.
func appendTools(dst []byte, c *Compat, tools []llm.Tool, marker string) ([]byte, error) {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendTool(dst, c, &tools[i]); err != nil {
			return dst, err
		}
		if marker != "" && i == len(tools)-1 {
			dst = append(dst[:len(dst)-1], `,"cache_control":`...)
			dst = append(dst, marker...)
			dst = append(dst, '}')
		}
	}
	return append(dst, ']'), nil
}

func appendTool(dst []byte, c *Compat, t *llm.Tool) ([]byte, error) {
	if c.SupportsOpenAIGrammarTools {
		if g, ok := grammarOf(t); ok {
			dst = append(dst, `{"type":"custom","custom":{"name":`...)
			dst = jsonwire.AppendString(dst, t.Name)
			dst = append(dst, `,"description":`...)
			dst = jsonwire.AppendString(dst, t.Description)
			dst = append(dst, `,"format":{"type":"grammar","grammar":{"syntax":"`...)
			dst = append(dst, g.syntax...)
			dst = append(dst, `","definition":`...)
			dst = jsonwire.AppendString(dst, g.definition)
			return append(dst, `}}}}`...), nil
		}
	}
	parameters, strict, err := strictParameters(t, c.SupportsStrictMode)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = jsonwire.AppendString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = jsonwire.AppendString(dst, t.Description)
	if len(bytes.TrimSpace(parameters)) > 0 {
		dst = append(dst, `,"parameters":`...)
		dst = appendRaw(dst, parameters)
	}
	if c.SupportsStrictMode {
		if strict {
			dst = append(dst, `,"strict":true`...)
		} else {
			dst = append(dst, `,"strict":false`...)
		}
	}
	return append(dst, `}}`...), nil
}

// strictParameters is the schema to send for a tool and whether it is strict.
func strictParameters(t *llm.Tool, supported bool) (jsontext.Value, bool, error) {
	kind, _ := jsonwire.StringValue(jsonwire.Get(t.ConstrainedSampling, "type"))
	if kind != "json_schema" {
		return t.Parameters, false, nil
	}
	mode, _ := jsonwire.StringValue(jsonwire.Get(t.ConstrainedSampling, "strict"))
	reason := "strict tools are unsupported"
	if supported {
		schema, err := wire.StrictSchema(t.Parameters)
		if err == nil {
			return schema, true, nil
		}
		reason = err.Error()
	}
	if mode == "require" {
		return nil, false, &ToolError{Tool: t.Name, Reason: reason}
	}
	return t.Parameters, false, nil
}
