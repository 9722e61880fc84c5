package harness

import (
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// promptPatch is the system message that brings the recorded prompt up to date,
// if it differs from the one wanted.
func (h *Harness) promptPatch() []agent.Message {
	var want []llm.Section
	switch {
	case h.opts.Sections != nil:
		want = h.opts.Sections(h.Tools())
	case h.opts.SystemPrompt != "":
		want = []llm.Section{{Name: "preamble", Text: h.opts.SystemPrompt}}
	}
	var have []llm.Section
	for _, m := range h.sess.Context().Messages {
		if s, ok := m.(*llm.System); ok {
			have = foldSections(have, s.Sections)
		}
	}
	patch := diffSections(have, want)
	if len(patch) == 0 {
		return nil
	}
	return []agent.Message{&llm.System{Sections: patch, Timestamp: h.now().UnixMilli()}}
}

// foldSections applies a patch: removed sections go, known ones keep their
// place, new ones go last.
func foldSections(have, patch []llm.Section) []llm.Section {
	for _, p := range patch {
		i := slices.IndexFunc(have, func(s llm.Section) bool { return s.Name == p.Name })
		switch {
		case p.Removed && i >= 0:
			have = slices.Delete(have, i, i+1)
		case p.Removed:
		case i >= 0:
			have[i].Text = p.Text
		default:
			have = append(have, p)
		}
	}
	return have
}

// diffSections is the patch that turns have into want.
func diffSections(have, want []llm.Section) []llm.Section {
	var patch []llm.Section
	for _, w := range want {
		i := slices.IndexFunc(have, func(s llm.Section) bool { return s.Name == w.Name })
		if i < 0 || have[i].Text != w.Text {
			patch = append(patch, w)
		}
	}
	for _, s := range have {
		if !slices.ContainsFunc(want, func(w llm.Section) bool { return w.Name == s.Name }) {
			patch = append(patch, llm.Section{Name: s.Name, Removed: true})
		}
	}
	return patch
}
