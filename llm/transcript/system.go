package transcript

import (
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// SystemText is the text of a leading system message: its content and its
// sections, parted by blank lines, without halves of surrogate pairs.
func SystemText(m *llm.System) string {
	var parts paragraphs
	parts.add(contentText(m.Content))
	for _, s := range m.Sections {
		if !s.Removed {
			parts.add(s.Text)
		}
	}
	return parts.text()
}

// UpdateText is the text of a later system message that is sent in place: its
// content, and what it changes in the sections of the prompt.
func UpdateText(m *llm.System) string {
	var parts paragraphs
	parts.add(contentText(m.Content))
	for _, s := range m.Sections {
		if s.Removed {
			parts.add(`Removed system prompt section "` + s.Name + `".`)
		} else {
			parts.add(`Updated system prompt section "` + s.Name + `":` + "\n\n" + s.Text)
		}
	}
	return parts.text()
}

// Collapse makes one leading system message of all system messages, for models
// that take none later. Without system messages it returns messages itself.
func Collapse(messages []llm.Message) []llm.Message {
	s := collapse(messages, CurrentTools(messages))
	if s == nil {
		return messages
	}
	out := []llm.Message{s}
	for _, m := range messages {
		if m.Role() != llm.RoleSystem {
			out = append(out, m)
		}
	}
	return out
}

func collapse(messages []llm.Message, tools []llm.Tool) *llm.System {
	var out *llm.System
	var text paragraphs
	for _, m := range messages {
		s, ok := m.(*llm.System)
		if !ok {
			continue
		}
		if out == nil {
			out = &llm.System{Timestamp: s.Timestamp, ToolsAdded: tools}
		}
		text.add(contentText(s.Content))
		out.Sections = llm.PatchSections(out.Sections, s.Sections)
	}
	if out != nil {
		out.Content = llm.Plain(strings.Join(text, blankLine))
	}
	return out
}

const blankLine = "\n\n"

// paragraphs are the parts of a text that are not empty.
type paragraphs []string

func (p *paragraphs) add(s string) {
	if s != "" {
		*p = append(*p, s)
	}
}

func (p paragraphs) text() string { return jsonwire.DropSurrogates(strings.Join(p, blankLine)) }

func contentText(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return llm.TextOf(c.Blocks, "\n")
}
