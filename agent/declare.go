package agent

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// declared is the loadout that the first n messages of a transcript declare.
type declared struct {
	tools []llm.Tool
	n     int
}

// replay goes on through messages.
func (d *declared) replay(messages []Message) {
	for _, m := range messages[d.n:] {
		if s, ok := m.(*llm.System); ok {
			d.tools = llm.PatchTools(d.tools, s)
		}
	}
	d.n = len(messages)
}

func indexTool(tools []llm.Tool, name string) int {
	return slices.IndexFunc(tools, func(t llm.Tool) bool { return t.Name == name })
}

// declare makes pending declare the tools that can run, when the transcript
// followed by pending would declare others. The difference stands on the last
// system message of pending, or on a new one before all other messages.
func (r *run) declare(pending []Message) []Message {
	r.declared.replay(r.messages)
	before, last := r.declared.tools, -1
	after := before
	for i, m := range pending {
		if s, ok := m.(*llm.System); ok {
			before, last = after, i
			after = llm.PatchTools(slices.Clone(after), s) // before keeps its own
		}
	}
	if added, removed := toolChange(after, r.tools); len(added) == 0 && len(removed) == 0 {
		return pending
	}
	added, removed := toolChange(before, r.tools)
	if last >= 0 {
		s := *pending[last].(*llm.System)
		s.ToolsAdded, s.ToolsRemoved = added, removed
		out := slices.Clone(pending)
		out[last] = &s
		return out
	}
	s := &llm.System{ToolsAdded: added, ToolsRemoved: removed, Timestamp: r.cfg.millis()}
	return slices.Insert(slices.Clone(pending), 0, Message(s))
}

// toolChange is what turns the declared loadout into the executable one. A
// changed definition is removed and added. Of several tools with one name the
// first counts.
func toolChange(declared []llm.Tool, tools []*Tool) (added []llm.Tool, removed []string) {
	for i := range declared {
		d := &declared[i]
		if t := findTool(tools, d.Name, i); t == nil || !sameTool(d, &t.Tool) {
			removed = append(removed, d.Name)
		}
	}
	for i, t := range tools {
		at := i
		if at >= len(declared) || declared[at].Name != t.Name {
			at = indexTool(declared, t.Name)
		}
		if at >= 0 && sameTool(&declared[at], &t.Tool) || findTool(tools, t.Name, 0) != t {
			continue
		}
		added = append(added, t.Tool)
	}
	return added, removed
}

// findTool is the first tool called name. It looks at position hint first,
// where the two lists that toolChange compares mostly agree.
func findTool(tools []*Tool, name string, hint int) *Tool {
	if hint < len(tools) && tools[hint].Name == name {
		return tools[hint]
	}
	for _, t := range tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func sameTool(a, b *llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description &&
		sameJSON(a.Parameters, b.Parameters) && sameJSON(a.ConstrainedSampling, b.ConstrainedSampling)
}

// sameJSON compares values as they would be written. White space, the notation
// of numbers and escapes do not count, the order of members does.
func sameJSON(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	ca, errA := jsonwire.AppendCompact(nil, a)
	cb, errB := jsonwire.AppendCompact(nil, b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}
