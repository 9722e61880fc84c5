package tool

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// strictPreferred asks services to hold the model to the schema where they can.
const strictPreferred = `{"type":"json_schema","strict":"prefer"}`

// prompt is what a model reads about a tool, from the Markdown file of the
// tool's name: one line for the list of tools, rules as bullets, and under
// headings the description and one text for each parameter.
type prompt struct {
	snippet  string
	rules    []string
	sections map[string]string
}

func parsePrompt(md string) prompt {
	head, rest, _ := strings.Cut(strings.ReplaceAll(md, "\r\n", "\n"), "\n# ")
	p := prompt{sections: map[string]string{}}
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if rule, ok := strings.CutPrefix(line, "- "); ok {
			p.rules = append(p.rules, rule)
		} else if line != "" {
			p.snippet = line
		}
	}
	for section := range strings.SplitSeq(rest, "\n# ") {
		name, text, _ := strings.Cut(section, "\n")
		p.sections[strings.TrimSpace(name)] = strings.TrimSpace(text)
	}
	return p
}

// param is one parameter: its JSON type, or the schema of an array's items.
type param struct {
	name     string
	typ      string
	required bool
	items    []param // members of the objects that an array holds
}

// schema is the JSON Schema of an object with the given members. Other members
// are allowed, as models like to add some.
func (p prompt) schema(params []param) []byte {
	b := []byte(`{"type":"object",`)
	var required []string
	for _, m := range params {
		if m.required {
			required = append(required, m.name)
		}
	}
	if required != nil {
		b = append(jsonwire.AppendStrings(append(b, `"required":`...), required), ',')
	}
	b = append(b, `"properties":{`...)
	for i, m := range params {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonwire.AppendString(b, m.name)
		b = append(append(append(b, `:{"type":"`...), m.typ...), `","description":`...)
		b = jsonwire.AppendString(b, p.sections[m.name])
		if m.items != nil {
			b = append(append(b, `,"items":`...), p.schema(m.items)...)
		}
		b = append(b, '}')
	}
	return append(b, `}}`...)
}

// declare makes a tool without a body of its prompt and parameters.
func declare(name, md string, params ...param) *agent.Tool {
	p := parsePrompt(md)
	return &agent.Tool{
		Tool: llm.Tool{
			Name:                name,
			Description:         p.sections["description"],
			Parameters:          jsontext.Value(p.schema(params)),
			ConstrainedSampling: jsontext.Value(strictPreferred),
		},
		Label:      name,
		Snippet:    p.snippet,
		Guidelines: p.rules,
	}
}
