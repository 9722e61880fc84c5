package compact

import (
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// maxResult is how much of a tool result a summary is made from, in UTF-16
// units.
const maxResult = 2000

// Serialize writes a conversation as a text about it, so that a model that sums
// it up does not take it for its own. Thinking, images and system prompts are
// left out, long tool results cut.
func Serialize(messages []agent.Message) string {
	return strings.Join(paragraphs(messages), "\n\n")
}

// paragraphs are the parts of Serialize.
func paragraphs(messages []agent.Message) (out []string) {
	for _, m := range messages {
		switch m := session.Convert(m).(type) {
		case *llm.User:
			if text := userText(m.Content); text != "" {
				out = append(out, "[User]: "+text)
			}
		case *llm.Assistant:
			out = append(out, answer(m)...)
		case *llm.ToolResult:
			if text := llm.TextOf(m.Content, ""); text != "" {
				out = append(out, "[Tool result]: "+shorten(text))
			}
		}
	}
	return out
}

func userText(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return llm.TextOf(c.Blocks, "")
}

func answer(m *llm.Assistant) (out []string) {
	for _, b := range m.Content {
		if _, ok := b.(*llm.Text); ok {
			out = append(out, "[Assistant]: "+llm.TextOf(m.Content, "\n"))
			break
		}
	}
	if calls := m.ToolCalls(); len(calls) > 0 {
		b := []byte("[Assistant tool calls]: ")
		for i, c := range calls {
			if i > 0 {
				b = append(b, "; "...)
			}
			b = appendCall(b, c)
		}
		out = append(out, string(b))
	}
	return out
}

// appendCall writes a call as name(argument=JSON, …).
func appendCall(b []byte, c *llm.ToolCall) []byte {
	b = append(append(b, c.Name...), '(')
	var r jsonwire.Reader
	r.Reset(c.Arguments)
	n := 0
	for r.Object(); r.More(); n++ {
		if n > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, r.Key()...), '=')
		value := r.Raw()
		compact, err := jsonwire.AppendCompact(b, value)
		if err != nil {
			compact = append(b, value...)
		}
		b = compact
	}
	return append(b, ')')
}

// shorten cuts a text to maxResult UTF-16 units, never inside a character, and
// says how much is missing.
func shorten(text string) string {
	if len(text) <= maxResult {
		return text
	}
	n := jsonwire.UTF16Len(text)
	if n <= maxResult {
		return text
	}
	return jsonwire.UTF16Prefix(text, maxResult) + "\n\n[... " + strconv.Itoa(n-maxResult) + " more characters truncated]"
}
