package responses

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Texts of changes of the tool list that the model is told in words.
const (
	noticeMoreTools = "This is an incremental tools update. Previously declared tools remain available unless explicitly " +
		"marked unavailable. A tool declared again here is available again, and its latest definition replaces the earlier one."
	noticeStill   = "Still unavailable: "
	noticeRemoved = "The following tools are no longer available. Do not call them:"
)

// toolSets is what the system messages up to here said about tools.
type toolSets struct {
	declared bool     // there was a set
	removed  []string // names that are not available any more
}

// change takes a system message into account.
func (t *toolSets) change(m *llm.System) {
	for _, name := range m.ToolsRemoved {
		if !slices.Contains(t.removed, name) {
			t.removed = append(t.removed, name)
		}
	}
	t.removed = t.without(m.ToolsAdded)
	t.declared = t.declared || len(m.ToolsAdded) > 0
}

// without is the removed names that are not among tools.
func (t *toolSets) without(tools []llm.Tool) []string {
	var left []string
	for _, name := range t.removed {
		if !slices.ContainsFunc(tools, func(tool llm.Tool) bool { return tool.Name == name }) {
			left = append(left, name)
		}
	}
	return left
}

// system appends a system message that stays in its place, the message at
// position n: the tools that it adds, then what it says.
func (e *encoder) system(m *llm.System, folded bool, n int) error {
	text := transcript.UpdateText(m)
	switch {
	case folded:
	case e.sets():
		if len(m.ToolsAdded) > 0 {
			if e.toolSets.declared {
				notice := noticeMoreTools
				if still := e.toolSets.without(m.ToolsAdded); len(still) > 0 {
					notice += "\n" + noticeStill + strings.Join(still, ", ") + "."
				}
				e.comma()
				e.instruction(notice)
			}
			e.comma()
			if err := e.toolSet(m.ToolsAdded); err != nil {
				return err
			}
		}
		text = withRemoved(text, m)
	case e.searches():
		if len(m.ToolsAdded) > 0 {
			if err := e.toolSearch(m.ToolsAdded, n); err != nil {
				return err
			}
		}
	}
	if text != "" {
		e.comma()
		e.instruction(text)
	}
	return nil
}

// withRemoved adds to the text of a system message the tools that it removes
// for good.
func withRemoved(text string, m *llm.System) string {
	var list strings.Builder
	for _, name := range m.ToolsRemoved {
		if !slices.ContainsFunc(m.ToolsAdded, func(t llm.Tool) bool { return t.Name == name }) {
			list.WriteString("\n- " + name)
		}
	}
	if list.Len() == 0 {
		return text
	}
	if text != "" {
		text += "\n\n"
	}
	return text + noticeRemoved + list.String()
}

// toolSet appends a set of tools as an item.
func (e *encoder) toolSet(tools []llm.Tool) (err error) {
	e.str(`{"type":"additional_tools","role":"developer","tools":`)
	if e.dst, err = e.appendTools(e.dst, tools, false); err != nil {
		return err
	}
	e.str(`}`)
	return nil
}

// toolSearch appends tools as what a search of the client found.
func (e *encoder) toolSearch(tools []llm.Tool, n int) (err error) {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	id := "pi_tool_load_" + transcript.ShortHash("system:"+strconv.Itoa(n)+":"+strings.Join(names, ","))
	e.comma()
	e.str(`{"type":"tool_search_call","call_id":"`, id, `","execution":"client","status":"completed","arguments":{"query":`)
	e.quote(strings.Join(names, " "))
	e.str(`,"limit":`, strconv.Itoa(len(tools)), `}},`)
	e.str(`{"type":"tool_search_output","call_id":"`, id, `","execution":"client","status":"completed","tools":`)
	if e.dst, err = e.appendTools(e.dst, tools, true); err != nil {
		return err
	}
	e.str(`}`)
	return nil
}
