package harness

import (
	"reflect"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// own copies a message that a hook may change in place, so that the conversation
// stays as it is. A type of the host's own is not copied.
func own(m agent.Message) agent.Message {
	switch m := m.(type) {
	case *llm.System:
		c := *m
		c.Content, c.Sections, c.Extra = ownContent(m.Content), slices.Clone(m.Sections), slices.Clone(m.Extra)
		c.ToolsAdded, c.ToolsRemoved = slices.Clone(m.ToolsAdded), slices.Clone(m.ToolsRemoved)
		return &c
	case *llm.User:
		c := *m
		c.Content, c.Extra = ownContent(m.Content), slices.Clone(m.Extra)
		return &c
	case *llm.Assistant:
		c := *m
		c.Content, c.Diagnostics, c.Extra = ownBlocks(m.Content), slices.Clone(m.Diagnostics), slices.Clone(m.Extra)
		return &c
	case *llm.ToolResult:
		c := *m
		c.Content, c.Details, c.Extra = ownBlocks(m.Content), slices.Clone(m.Details), slices.Clone(m.Extra)
		if m.Usage != nil {
			c.Usage = new(*m.Usage)
		}
		return &c
	case *session.Custom:
		return &session.Custom{
			CustomType: m.CustomType, Content: ownContent(m.Content), Display: m.Display, Details: slices.Clone(m.Details),
			Timestamp: m.Timestamp, Extra: slices.Clone(m.Extra),
		}
	case *session.BashExecution:
		return &session.BashExecution{
			Command: m.Command, Output: m.Output, ExitCode: m.ExitCode, Cancelled: m.Cancelled, Truncated: m.Truncated,
			FullOutputPath: m.FullOutputPath, ExcludeFromContext: m.ExcludeFromContext, Timestamp: m.Timestamp, Extra: slices.Clone(m.Extra),
		}
	case *session.BranchSummary:
		return &session.BranchSummary{Summary: m.Summary, FromID: m.FromID, Timestamp: m.Timestamp, Extra: slices.Clone(m.Extra)}
	case *session.CompactionSummary:
		return &session.CompactionSummary{Summary: m.Summary, TokensBefore: m.TokensBefore, Timestamp: m.Timestamp, Extra: slices.Clone(m.Extra)}
	case *session.Unknown:
		c := *m
		c.Raw = slices.Clone(m.Raw)
		return &c
	}
	return m
}

func ownContent(c llm.Content) llm.Content {
	return llm.Content{Text: c.Text, Blocks: ownBlocks(c.Blocks)}
}

func ownBlocks(blocks []llm.Block) []llm.Block {
	out := slices.Clone(blocks)
	for i, b := range out {
		switch b := b.(type) {
		case *llm.Text:
			out[i] = new(*b)
		case *llm.Thinking:
			out[i] = new(*b)
		case *llm.Image:
			out[i] = new(*b)
		case *llm.ToolCall:
			c := *b
			c.Arguments = slices.Clone(b.Arguments)
			out[i] = &c
		}
	}
	return out
}

// owned are copies of messages and what they are copies of.
type owned map[agent.Message]agent.Message

// ownAll copies a list for a hook.
func ownAll(messages []agent.Message) ([]agent.Message, owned) {
	out, of := make([]agent.Message, len(messages)), make(owned, len(messages))
	for i, m := range messages {
		out[i] = own(m)
		of[out[i]] = m
	}
	return out, of
}

// original is the message that m is a copy of, else m.
func (o owned) original(m agent.Message) agent.Message {
	if was := o[m]; was != nil {
		return was
	}
	return m
}

// unchanged is the message that m is a copy of as long as nobody changed the
// copy, else m: wire formats remember what they made of a message.
func (o owned) unchanged(m agent.Message) agent.Message {
	if was := o[m]; was != nil && (was == m || reflect.DeepEqual(own(was), m)) {
		return was
	}
	return m
}
