package transcript

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestSystemTexts(t *testing.T) {
	m := &llm.System{
		Content: llm.Blocks(&llm.Text{Text: "one"}, &llm.Text{Text: "two\xed\xa0\xbd"}),
		Sections: []llm.Section{
			{Name: "env", Text: "linux"}, {Name: "old", Removed: true}, {Name: "empty"},
		},
	}
	if got, want := SystemText(m), "one\ntwo\n\nlinux"; got != want {
		t.Errorf("SystemText = %q, want %q", got, want)
	}
	want := "one\ntwo\n\nUpdated system prompt section \"env\":\n\nlinux\n\n" +
		"Removed system prompt section \"old\".\n\nUpdated system prompt section \"empty\":\n\n"
	if got := UpdateText(m); got != want {
		t.Errorf("UpdateText = %q, want %q", got, want)
	}
	if got := SystemText(&llm.System{}) + UpdateText(&llm.System{}); got != "" {
		t.Errorf("nothing gives %q", got)
	}
}

func TestCollapseLeavesItsInputAlone(t *testing.T) {
	first := &llm.System{Sections: []llm.Section{{Name: "a", Text: "1"}, {Name: "b", Text: "2"}}, ToolsAdded: []llm.Tool{{Name: "t"}}}
	given := []llm.Message{first, &llm.System{Sections: []llm.Section{{Name: "a", Removed: true}, {Name: "b", Text: "3"}}, ToolsAdded: []llm.Tool{{Name: "t", Description: "new"}}}}
	before := appendAll(given)
	out := Collapse(given)[0].(*llm.System)
	if len(out.Sections) != 1 || out.Sections[0].Text != "3" || len(out.ToolsAdded) != 1 || out.ToolsAdded[0].Description != "new" {
		t.Errorf("collapsed to %s", out.AppendJSON(nil))
	}
	CurrentTools(given)
	SplitTools(given, ToolAdditions)
	if appendAll(given) != before {
		t.Error("a message was changed")
	}
}

func TestSplitTools(t *testing.T) {
	add := func(names ...string) *llm.System {
		m := &llm.System{}
		for _, n := range names {
			m.ToolsAdded = append(m.ToolsAdded, llm.Tool{Name: n})
		}
		return m
	}
	remove := func(name string) *llm.System { return &llm.System{ToolsRemoved: []string{name}} }
	for _, c := range []struct {
		name   string
		given  []llm.Message
		tools  string
		folded int
	}{
		{"additions stay", []llm.Message{add("a"), user("q"), add("b")}, "a", 1},
		{"a replacement folds", []llm.Message{add("a"), add("b"), add("a"), add("c")}, "a,b", 3},
		{"so it does after a removal", []llm.Message{add("a"), remove("a"), add("b"), add("a")}, "b,a", 4},
		{"no leading message", []llm.Message{user("q"), add("a")}, "", 0},
		{"re-adding keeps the place", []llm.Message{add("a", "b"), add("a")}, "a,b", 2},
	} {
		tools, folded := SplitTools(c.given, ToolAdditions)
		var names []string
		for _, x := range tools {
			names = append(names, x.Name)
		}
		if got := strings.Join(names, ","); got != c.tools || folded != c.folded {
			t.Errorf("%s: %s, %d, want %s, %d", c.name, got, folded, c.tools, c.folded)
		}
	}
}

func TestShortHashTakesHalvesAsUnits(t *testing.T) {
	whole, halves := ShortHash("🙈"), ShortHash("\xed\xa0\xbd\xed\xb9\x88")
	if whole != halves {
		t.Errorf("%s, in halves %s", whole, halves)
	}
	if ShortHash("\xed\xa0\xbd") == ShortHash("\uFFFD") {
		t.Error("a half hashes like its replacement")
	}
	ShortHash("\xed\xa0") // must not read beyond the end
}

func TestEstimateMessage(t *testing.T) {
	for _, c := range []struct {
		m    llm.Message
		want int
	}{
		{user("1234567"), 2},
		{user("🙈🙈🙈🙈"), 3},
		{&llm.User{Content: llm.Plain("12345678")}, 3},
		{&llm.System{Content: llm.Plain("1234567"), ToolsRemoved: []string{"a", "b"}}, 2 + 8},                                       // [{"name":"a"},{"name":"b"}]
		{&llm.System{ToolsAdded: []llm.Tool{{Name: "a", Description: "d", Parameters: []byte(`{ "type": "object" }`)}}}, 18},        // [{"name":"a","description":"d","parameters":{"type":"object"}}]
		{&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "1"}, &llm.ToolCall{Name: "t", Arguments: []byte(`{"a": 1.50}`)}}}, 4}, // 1t{"a":1.5}
		{&llm.Assistant{Content: []llm.Block{&llm.ToolCall{Name: "t", Arguments: []byte(`{`)}}}, 1},
		{&llm.Assistant{Content: []llm.Block{&llm.Thinking{Thinking: "1"}, &llm.Text{Text: "2"}, &llm.Text{Text: "3"}}}, 1}, // rounded once
	} {
		if got := EstimateMessage(c.m); got != c.want {
			t.Errorf("%s: %d tokens, want %d", c.m.AppendJSON(nil), got, c.want)
		}
	}
}

func TestLevelBudgets(t *testing.T) {
	over := map[llm.ThinkingLevel]int{llm.LevelHigh: 5, llm.LevelMax: 7}
	for level, want := range map[llm.ThinkingLevel]int{"": 0, "off": 0, "minimal": 1024, "low": 2048, "medium": 8192, "high": 5, "xhigh": 5, "max": 5} {
		if got := LevelBudget(level, over); got != want {
			t.Errorf("%s: %d, want %d", level, got, want)
		}
	}
}
