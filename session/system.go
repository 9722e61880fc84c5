package session

import (
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// FoldSystem folds the system messages of a transcript into the one that they
// amount to, nil when there are none. It has the time of the first.
func FoldSystem(messages []agent.Message) *llm.System {
	var out *llm.System
	var texts []string
	for _, m := range messages {
		sys, ok := m.(*llm.System)
		if !ok {
			continue
		}
		if out == nil {
			out = &llm.System{Timestamp: sys.Timestamp}
		}
		if text := contentText(sys.Content, "\n"); text != "" {
			texts = append(texts, text)
		}
		out.Sections = llm.PatchSections(out.Sections, sys.Sections)
		out.ToolsAdded = llm.PatchTools(out.ToolsAdded, sys)
	}
	if out != nil {
		out.Content = llm.Plain(strings.Join(texts, "\n\n"))
	}
	return out
}

// DeclaredTools names the tools that a transcript declares at its end: an empty list
// for none, nil where it has no system messages and says nothing of tools.
func DeclaredTools(messages []agent.Message) []string {
	folded := FoldSystem(messages)
	if folded == nil {
		return nil
	}
	names := make([]string, 0, len(folded.ToolsAdded))
	for i := range folded.ToolsAdded {
		names = append(names, folded.ToolsAdded[i].Name)
	}
	return names
}

// Prompt renders a folded system message as one text: its content, then its
// sections, joined by blank lines; empty parts are left out.
func Prompt(m *llm.System) string {
	if m == nil {
		return ""
	}
	var parts []string
	if text := contentText(m.Content, "\n"); text != "" {
		parts = append(parts, text)
	}
	for _, s := range m.Sections {
		if !s.Removed && s.Text != "" {
			parts = append(parts, s.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// ToolChanges compares declared tools with wanted ones: what to add, and the
// names to remove. A tool whose declaration changed is in both.
func ToolChanges(declared, wanted []llm.Tool) (added []llm.Tool, removed []string) {
	form := func(t *llm.Tool) string {
		plain := llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, ConstrainedSampling: t.ConstrainedSampling}
		return string(plain.AppendJSON(nil))
	}
	old := make(map[string]string, len(declared))
	for i := range declared {
		old[declared[i].Name] = form(&declared[i])
	}
	same := make(map[string]bool, len(wanted))
	for i := range wanted {
		if f, ok := old[wanted[i].Name]; ok && f == form(&wanted[i]) {
			same[wanted[i].Name] = true
			continue
		}
		added = append(added, wanted[i])
	}
	for i := range declared {
		if !same[declared[i].Name] {
			removed = append(removed, declared[i].Name)
		}
	}
	return added, removed
}

func contentText(c llm.Content, sep string) string {
	if c.Blocks == nil {
		return c.Text
	}
	return llm.TextOf(c.Blocks, sep)
}

// Tokens estimates how many tokens a message takes: a quarter of its
// characters, counted in UTF-16 units, rounded up.
func Tokens(m agent.Message) int64 {
	n := 0
	switch m := m.(type) {
	case *llm.System:
		n = contentChars(m.Content)
		for _, s := range m.Sections {
			n += jsonwire.UTF16Len(s.Text)
		}
		if len(m.ToolsAdded) > 0 {
			n += jsonwire.UTF16Len(llm.AppendTools(nil, m.ToolsAdded))
		}
	case *llm.User:
		n = contentChars(m.Content)
	case *llm.Assistant:
		for _, b := range m.Content {
			switch b := b.(type) {
			case *llm.Text:
				n += jsonwire.UTF16Len(b.Text)
			case *llm.Thinking:
				n += jsonwire.UTF16Len(b.Thinking)
			case *llm.ToolCall:
				args, err := jsonwire.AppendCompact(nil, b.Current())
				if err == nil {
					n += jsonwire.UTF16Len(string(args))
				}
				n += jsonwire.UTF16Len(b.Name)
			}
		}
	case *llm.ToolResult:
		n = blockChars(m.Content)
	case *BashExecution:
		n = jsonwire.UTF16Len(m.Command) + jsonwire.UTF16Len(m.Output)
	case *Custom:
		n = contentChars(m.Content)
	case *BranchSummary:
		n = jsonwire.UTF16Len(m.Summary)
	case *CompactionSummary:
		n = jsonwire.UTF16Len(m.Summary)
	}
	return int64(n+3) / 4
}

// imageChars is what an image counts for.
const imageChars = 4800

func contentChars(c llm.Content) int {
	if c.Blocks == nil {
		return jsonwire.UTF16Len(c.Text)
	}
	return blockChars(c.Blocks)
}

func blockChars(blocks []llm.Block) int {
	n := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case *llm.Text:
			n += jsonwire.UTF16Len(b.Text)
		case *llm.Image:
			n += imageChars
		}
	}
	return n
}
