package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string // words, separated by |
		want Args
	}{
		{"hello", Args{Messages: []string{"hello"}}},
		{"", Args{Messages: []string{""}}},
		{"-p|hi|there", Args{Print: true, Messages: []string{"hi", "there"}}},
		{"-p|@f|hi", Args{Print: true, Files: []string{"f"}, Messages: []string{"hi"}}},
		{"-p|-c", Args{Print: true, Continue: true}},
		{"-p|---\nfront", Args{Print: true, Messages: []string{"---\nfront"}}},
		{"-p|--|-x|@y|--model", Args{Print: true, Messages: []string{"-x", "--model"}, Files: []string{"y"}}},
		{"--model|a|--model|b", Args{Model: "b"}},
		{"--model|-x", Args{Model: "-x"}},
		{"-t|read, ls,", Args{Tools: []string{"read", "ls"}}},
		{"-t|", Args{Tools: []string{}}},
		{"-xt|bash|-nt|-nbt|-ne|-ns|-np|-nc|-na", Args{
			ExcludeTools: []string{"bash"}, NoTools: true, NoBuiltinTools: true, NoExtensions: true,
			NoSkills: true, NoTemplates: true, NoContextFiles: true, Approve: new(false)}},
		{"-e|a|-e|b|--skill|s|--prompt-template|t|--theme|u", Args{
			Extensions: []string{"a", "b"}, Skills: []string{"s"}, PromptTemplates: []string{"t"}, Themes: []string{"u"}}},
		{"--append-system-prompt|a|--append-system-prompt|b", Args{AppendSystemPrompt: []string{"a", "b"}}},
		{"--system-prompt|", Args{SystemPrompt: new("")}},
		{"--list-models|-h", Args{ListModels: new(""), Help: true}},
		{"--list-models|gpt", Args{ListModels: new("gpt")}},
		{"--thinking|high", Args{Thinking: llm.LevelHigh}},
		{"--mystery=1|x", Args{Unknown: []Flag{{"mystery", new("1")}}, Messages: []string{"x"}}},
		{"--mystery|x|y", Args{Unknown: []Flag{{"mystery", new("x")}}, Messages: []string{"y"}}},
		{"--mystery|-p", Args{Unknown: []Flag{{"mystery", nil}}, Print: true}},
		{"--mystery|@f", Args{Unknown: []Flag{{"mystery", nil}}, Files: []string{"f"}}},
		{"--model=a", Args{Unknown: []Flag{{"model", new("a")}}}},
		{"-n| A b ", Args{Name: "A b"}},
	} {
		got := Parse(strings.Split(c.line, "|"))
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%q\n got %+v\nwant %+v", c.line, *got, c.want)
		}
	}
}

func TestParseDiagnostics(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"-z", []string{"Error: Unknown option: -z"}},
		{"-pz", []string{"Error: Unknown option: -pz"}},
		{"--mode", []string{"Error: --mode requires text, json, or rpc"}},
		{"--mode|xml", []string{`Error: Invalid mode "xml". Valid values: text, json, rpc`}},
		{"--model", []string{"Error: --model requires a value"}},
		{"--thinking|huge", []string{`Warning: Invalid thinking level "huge". Valid values: off, minimal, low, medium, high, xhigh, max`}},
		{"-n|  ", []string{"Error: --name requires a non-empty value"}},
		{"-n|\uFEFF\u00A0", []string{"Error: --name requires a non-empty value"}},
		{"--fork|x|--no-session|-r|--session|y", []string{"Error: --fork cannot be combined with --session, --resume, --no-session"}},
		{"--session-id|a|-c", []string{"Error: --session-id cannot be combined with --continue"}},
		{"--fork|x|--session-id|a", nil},
		{"--session-id|a.", []string{"Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character"}},
		{"--session-id|a-b_c.d", nil},
	} {
		var got []string
		for _, d := range Parse(strings.Split(c.line, "|")).Diagnostics {
			got = append(got, d.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

// TestOptionNames keeps one meaning for each name.
func TestOptionNames(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options {
		for _, name := range []string{o.long, o.short} {
			if name == "" {
				continue
			}
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if !strings.HasPrefix(o.long, "--") || o.short != "" && (strings.HasPrefix(o.short, "--") || o.short[0] != '-') {
			t.Errorf("odd names %q %q", o.long, o.short)
		}
		if o.set == nil {
			t.Errorf("%s does nothing", o.long)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-p|--model|x|@y|--|z")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "|")
		a := Parse(words)
		if n := len(a.Messages) + len(a.Files); n > len(words) {
			t.Errorf("%d messages and files of %d words", n, len(words))
		}
	})
}
