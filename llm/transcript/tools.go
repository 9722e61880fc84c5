package transcript

import (
	"github.com/go-json-experiment/json/jsontext"

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

// StandIns declare the tools that the calls of a built transcript name, with
// parameters that say nothing, for services that refuse a history with calls in a
// request that declares no tools. legal makes a name that may be declared.
func StandIns[T any](items []Item[T], legal func(name string) string) []llm.Tool {
	var tools []llm.Tool
	seen := map[string]bool{}
	for i := range items {
		m, ok := items[i].Message.(*llm.Assistant)
		if !ok {
			continue
		}
		for _, c := range m.ToolCalls() {
			if name := legal(c.Name); !seen[name] {
				seen[name] = true
				tools = append(tools, llm.Tool{Name: name, Parameters: jsontext.Value(`{"type":"object","properties":{}}`)})
			}
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
