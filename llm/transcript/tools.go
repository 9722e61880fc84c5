package transcript

import (
	"github.com/pinch-agent/pinch/llm"
)

// ToolMode says how a wire format can change the tools of a conversation in
// the middle of it.
type ToolMode uint8

// The tool modes.
const (
	// ToolsFolded: not at all. The request declares the current tools.
	ToolsFolded ToolMode = iota
	// ToolAdditions: tools can be added in place, not removed or replaced. The
	// request declares the tools up to the last removal or replacement.
	ToolAdditions
	// ToolChanges: every change can stay in place; the request declares none.
	ToolChanges
)

// CurrentTools are the tools that a history has declared and not removed, in
// the order of their first declaration.
func CurrentTools(messages []llm.Message) []llm.Tool {
	var tools []llm.Tool
	for _, m := range messages {
		if s, ok := m.(*llm.System); ok {
			tools = llm.PatchTools(tools, s)
		}
	}
	return tools
}

// SplitTools divides the tool declarations of a history: tools are those that
// the request declares, folded is how many of the system messages, from the
// first on, have all their changes in it.
func SplitTools(messages []llm.Message, mode ToolMode) (tools []llm.Tool, folded int) {
	if mode == ToolChanges {
		return nil, 0
	}
	declared := map[string]struct{}{}
	n := 0 // system messages so far
	for i, m := range messages {
		s, ok := m.(*llm.System)
		if !ok {
			continue
		}
		n++
		fold := mode == ToolsFolded || i == 0 || len(s.ToolsRemoved) > 0
		for _, t := range s.ToolsAdded {
			if _, again := declared[t.Name]; again {
				fold = true
			}
		}
		for _, t := range s.ToolsAdded {
			declared[t.Name] = struct{}{}
		}
		if fold {
			folded = n
		}
	}
	n = 0
	for _, m := range messages {
		if s, ok := m.(*llm.System); ok && n < folded {
			tools = llm.PatchTools(tools, s)
			n++
		}
	}
	return tools, folded
}
