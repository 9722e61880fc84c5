package compact

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

func TestSerialize(t *testing.T) {
	result := func(text string) *llm.ToolResult {
		return &llm.ToolResult{Content: []llm.Block{&llm.Text{Text: text}, &llm.Image{}}}
	}
	for _, c := range []struct {
		name string
		m    agent.Message
		want string
	}{
		{"plain user text", &llm.User{Content: llm.Plain("hi")}, "[User]: hi"},
		{"empty user text", &llm.User{Content: llm.Plain("")}, ""},
		{"system", &llm.System{Content: llm.Plain("hi")}, ""},
		{"unknown role", &session.Unknown{}, ""},
		{"excluded run", &session.BashExecution{Command: "x", ExcludeFromContext: true}, ""},
		{"empty answer text", &llm.Assistant{Content: []llm.Block{&llm.Text{}}}, "[Assistant]: "},
		{"thinking", &llm.Assistant{Content: []llm.Block{&llm.Thinking{Thinking: "x"}}}, ""},
		{
			"arguments keep their order", &llm.Assistant{Content: []llm.Block{&llm.ToolCall{Name: "t", Arguments: jsontext.Value(`{"b": [1, 2.50],"a":"é\n"}`)}}},
			`[Assistant tool calls]: t(b=[1,2.5], a="é\n")`,
		},
		{"result", result("out"), "[Tool result]: out"},
		{"result without text", result(""), ""},
		{"long result of wide characters", result(strings.Repeat("é", 2001)), "[Tool result]: " + strings.Repeat("é", 2000) + "\n\n[... 1 more characters truncated]"},
		{"half a pair at the limit", result(strings.Repeat("x", 1999) + "\xed\xa0\xbd!"), "[Tool result]: " + strings.Repeat("x", 1999) + "\xed\xa0\xbd\n\n[... 1 more characters truncated]"},
	} {
		if got := Serialize([]agent.Message{c.m}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCompareUTF16(t *testing.T) {
	list := []string{"", "B", "_", "a", "a\U0001F600", "a\U0001F601", "a\uE000", "a\uFF5E", "b", "é", "\U0001F600", "\uFF5E"}
	for i, a := range list {
		for j, b := range list {
			if got := compareUTF16(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	var f Files
	f.addDetails(jsontext.Value(`{"readFiles":["old",1,"old"],"modifiedFiles":{"a":1}}`))
	f.addDetails(jsontext.Value(`[1]`))
	f.addDetails(nil)
	call := func(name, arguments string) llm.Block {
		return &llm.ToolCall{Name: name, Arguments: jsontext.Value(arguments)}
	}
	f.addMessage(&llm.Assistant{Content: []llm.Block{
		call("read", `{"path":"r"}`), call("read", `{"path":""}`), call("read", `{"path":1}`), call("read", `{}`),
		call("write", `{"path":"w"}`), call("edit", `{"path":"r"}`), call("edit", `{"path":"e"}`), call("ls", `{"path":"l"}`),
	}}, true)
	nested := &llm.ToolResult{NestedCalls: jsontext.Value(`{"calls":[{"name":"write","arguments":{"path":"n"}},{"name":1},7]}`)}
	f.addMessage(nested, false)
	if len(f.Written) != 1 {
		t.Errorf("nested calls count: %v", f.Written)
	}
	f.addMessage(nested, true)
	read, modified := f.Lists()
	if !slices.Equal(read, []string{"old"}) || !slices.Equal(modified, []string{"e", "n", "r", "w"}) {
		t.Errorf("%v, %v", read, modified)
	}
	if got := string(f.details()); got != `{"readFiles":["old"],"modifiedFiles":["e","n","r","w"]}` {
		t.Error(got)
	}
	if err := jsonwire.Check(f.details()); err != nil {
		t.Error(err)
	}
}

func TestHalve(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name        string
		in          []string
		left, right []int // lengths
	}{
		{"even", []string{x(2000), x(2000)}, []int{2000}, []int{2000}},
		{"short", []string{x(3999)}, nil, nil},
		{"nothing", nil, nil, nil},
		{"one", []string{x(5000)}, []int{2500}, []int{2500}},
		{"long at the end", []string{x(10), x(5000)}, []int{10, 2495}, []int{2505}},
		{"long at the beginning", []string{x(5000), x(10)}, []int{2505}, []int{2495, 10}},
		{"near the middle", []string{x(1500), x(2000), x(1500)}, []int{1500}, []int{2000, 1500}},
		{"before the middle", []string{x(500), x(2400), x(1500)}, []int{500, 2400}, []int{1500}},
	} {
		left, right, ok := halve(c.in)
		lengths := func(list []string) (out []int) {
			for _, s := range list {
				out = append(out, len(s))
			}
			return out
		}
		if ok != (c.left != nil) || !slices.Equal(lengths(left), c.left) || !slices.Equal(lengths(right), c.right) {
			t.Errorf("%s: %v | %v", c.name, lengths(left), lengths(right))
		}
	}
}

func TestPrompts(t *testing.T) {
	headings := []string{"## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress", "### Blocked", "## Key Decisions", "## Next Steps"}
	for part, want := range map[Part][]string{
		Initial:    append(slices.Clone(headings), "## Critical Context"),
		Update:     append(slices.Clone(headings), "## Critical Context"),
		Branch:     headings,
		TurnPrefix: {"## Original Request", "## Progress So Far", "## Context Needed"},
	} {
		var got []string
		for line := range strings.Lines(Instructions(part)) {
			if strings.HasPrefix(line, "#") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the headings %q", part, got)
		}
	}
	if Instructions("other") != "" {
		t.Error("an unknown part has instructions")
	}
}
