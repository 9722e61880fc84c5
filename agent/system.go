package agent

import (
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// fold makes one system message of all in messages: texts joined, sections
// patched, the tools that are declared at the end. Nil when there is none.
func fold(messages []Message) *llm.System {
	var out *llm.System
	var texts []string
	for _, m := range messages {
		s, ok := m.(*llm.System)
		if !ok {
			continue
		}
		if out == nil {
			out = &llm.System{Timestamp: s.Timestamp}
		}
		if text := contentText(s.Content); text != "" {
			texts = append(texts, text)
		}
		out.Sections = llm.PatchSections(out.Sections, s.Sections)
		out.ToolsAdded = llm.PatchTools(out.ToolsAdded, s)
	}
	if out != nil {
		out.Content = llm.Plain(strings.Join(texts, "\n\n"))
	}
	return out
}

// promptText is the system prompt that s gives a model.
func promptText(s *llm.System) string {
	if s == nil {
		return ""
	}
	parts := make([]string, 0, 1+len(s.Sections))
	if text := contentText(s.Content); text != "" {
		parts = append(parts, text)
	}
	for _, section := range s.Sections {
		if section.Text != "" && !section.Removed {
			parts = append(parts, section.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

func contentText(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return llm.TextOf(c.Blocks, "\n")
}
