package harness

import (
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
			have = llm.PatchSections(have, s.Sections)
		}
	}
	patch := llm.DiffSections(have, want)
	if len(patch) == 0 {
		return nil
	}
	return []agent.Message{&llm.System{Sections: patch, Timestamp: h.now().UnixMilli()}}
}
