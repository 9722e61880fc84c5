package llm_test

import (
	"slices"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestDiffThenPatchGivesWhatWasWanted(t *testing.T) {
	s := func(name, text string) llm.Section { return llm.Section{Name: name, Text: text} }
	for _, c := range []struct {
		have, want, patch []llm.Section
	}{
		{nil, nil, nil},
		{nil, []llm.Section{s("a", "1")}, []llm.Section{s("a", "1")}},
		{[]llm.Section{s("a", "1"), s("b", "2")}, []llm.Section{s("a", "1"), s("b", "3")}, []llm.Section{s("b", "3")}},
		{[]llm.Section{s("a", "1"), s("b", "2")}, []llm.Section{s("b", "2"), s("c", "")}, []llm.Section{s("c", ""), {Name: "a", Removed: true}}},
	} {
		patch := llm.DiffSections(c.have, c.want)
		if !slices.Equal(patch, c.patch) {
			t.Errorf("from %v to %v: %v, want %v", c.have, c.want, patch, c.patch)
		}
		if got := llm.PatchSections(slices.Clone(c.have), patch); !slices.Equal(got, c.want) {
			t.Errorf("%v patched with %v is %v, want %v", c.have, patch, got, c.want)
		}
	}
	if got := llm.PatchSections(nil, []llm.Section{{Name: "gone", Removed: true}}); len(got) != 0 {
		t.Errorf("removing what is not there gives %v", got)
	}
}

func TestPatchTools(t *testing.T) {
	tools := func(names ...string) (out []llm.Tool) {
		for _, n := range names {
			out = append(out, llm.Tool{Name: n[:1], Description: n[1:]})
		}
		return out
	}
	have := tools("a1", "b1", "c1")
	got := llm.PatchTools(have, &llm.System{ToolsRemoved: []string{"a", "x"}, ToolsAdded: tools("b2", "a2", "b3")})
	var names []string
	for _, tool := range got {
		names = append(names, tool.Name+tool.Description)
	}
	if want := []string{"b3", "c1", "a2"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
}
