package cli

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestListModels(t *testing.T) {
	models := []*llm.Model{
		{Provider: "b", ID: "one", ContextWindow: 1000, MaxTokens: 10, Input: []string{"text"}},
		{Provider: "a", ID: "two", ContextWindow: 200_000, MaxTokens: 8000, Reasoning: true, Input: []string{"text", "image"}},
	}
	for _, c := range []struct{ search, want string }{
		{"", "provider  model  context  max-out  thinking  images\n" +
			"a         two    200K     8K       yes       yes   \n" +
			"b         one    1K       10       no        no    \n"},
		{"ATW", "provider  model  context  max-out  thinking  images\na         two    200K     8K       yes       yes   \n"},
		{"b \xff", "No models matching \"b \xff\"\n"},
		{"zz", "No models matching \"zz\"\n"},
	} {
		var out strings.Builder
		listModels(&out, models, c.search)
		if out.String() != c.want {
			t.Errorf("%q:\n%s", c.search, out.String())
		}
	}
	var out strings.Builder
	listModels(&out, []*llm.Model{{Provider: "a\x1b[2J", ID: "one\nfake  line\u202e\u2028\u009b"}}, "")
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "a\uFFFD[2J     one\uFFFDfake  line\uFFFD\uFFFD\uFFFD") {
		t.Errorf("%q", got)
	}
	out.Reset()
	listModels(&out, nil, "")
	if !strings.HasPrefix(out.String(), "No models available.") {
		t.Error(out.String())
	}
}

func TestChooseMode(t *testing.T) {
	for _, c := range []struct {
		line    string
		in, out bool
		want    Mode
	}{
		{"hi", true, true, ""},
		{"-p|hi", true, true, ModeText},
		{"hi", false, true, ModeText},
		{"hi", true, false, ModeText},
		{"--mode|text|hi", true, true, ""},
		{"--mode|text|hi", false, false, ModeText},
		{"--mode|json|-p", true, true, ModeJSON},
		{"--mode|rpc", false, false, ModeRPC},
	} {
		if got := chooseMode(Parse(strings.Split(c.line, "|")), c.in, c.out); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}
