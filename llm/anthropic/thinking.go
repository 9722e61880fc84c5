package anthropic

import (
	"strconv"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

const (
	defaultBudget  = 1024
	displayDefault = "summarized"
	displayOmitted = "omitted"
)

// thinking is what a request asks for, decided once per body.
type thinking struct {
	maxTokens      int
	enabled        bool   // asked for, whether or not the model can
	explicit       bool   // said on or off rather than nothing
	budget         int    // of models with a budget
	effort         string // of models without, "" for the service's own
	display        string
	interleave     bool
	inConversation bool // effort goes into system messages
}

// decideThinking settles thinking and the token limit. estimate is the size of
// the prompt in tokens.
func decideThinking(m *llm.Model, c *Compat, o *llm.Options, own *Options, estimate int) thinking {
	limit := o.MaxTokens
	if limit <= 0 {
		limit = m.MaxTokens
	}
	t := thinking{maxTokens: limit, display: displayDefault, interleave: true}
	if own != nil {
		if own.ThinkingEnabled != nil {
			t.enabled, t.explicit = *own.ThinkingEnabled, true
		}
		t.budget, t.effort = own.ThinkingBudgetTokens, own.Effort
		if own.ThinkingDisplay != "" {
			t.display = own.ThinkingDisplay
		}
		if own.InterleavedThinking != nil {
			t.interleave = *own.InterleavedThinking
		}
	} else {
		t.explicit = true
		t.maxTokens = transcript.ClampMaxTokens(m.ContextWindow, estimate, limit)
		if o.Reasoning != "" && o.Reasoning != llm.LevelOff {
			t.enabled = true
			if c.AdaptiveThinking {
				t.effort = transcript.Effort(m, o.Reasoning)
			} else {
				t.maxTokens, t.budget = transcript.BudgetedTokens(m, o, estimate, t.maxTokens)
			}
		}
	}
	if t.budget <= 0 {
		t.budget = defaultBudget
	}
	t.inConversation = c.MidConvoEffort && !t.disabled(m)
	if t.inConversation && t.effort == "" {
		t.effort = "high"
	}
	return t
}

// disabled reports whether the request tells a model that can think not to.
func (t *thinking) disabled(m *llm.Model) bool {
	off, mapped := m.ThinkingLevelMap[llm.LevelOff]
	return m.Reasoning && t.explicit && !t.enabled && !(mapped && off == nil)
}

// knownEffort reports whether an effort recorded in a message is one that the
// model can be told.
func knownEffort(m *llm.Model, effort string) bool {
	switch effort {
	case "low", "medium", "high", "xhigh", "max":
		return true
	}
	for _, v := range m.ThinkingLevelMap {
		if v != nil && *v == effort && effort != "" {
			return true
		}
	}
	return false
}

// append writes the members thinking and output_config, each with a comma in front.
func (t *thinking) append(b []byte, m *llm.Model, c *Compat) []byte {
	switch {
	case t.disabled(m):
		return append(b, `,"thinking":{"type":"disabled"}`...)
	case !t.inConversation && (!m.Reasoning || !t.enabled):
		return b
	case !t.inConversation && !c.AdaptiveThinking:
		b = append(b, `,"thinking":{"type":"enabled","budget_tokens":`...)
		b = strconv.AppendInt(b, int64(t.budget), 10)
		b = append(b, `,"display":`...)
		b = jsonwire.AppendString(b, t.display)
		return append(b, '}')
	}
	b = append(b, `,"thinking":{"type":"adaptive","display":`...)
	b = jsonwire.AppendString(b, t.display)
	effort := t.effort
	if t.inConversation {
		b = append(b, `,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`...)
		effort = "low" // what the conversation says counts; a fixed value keeps the cache
	}
	b = append(b, '}')
	if effort == "" {
		return b
	}
	b = append(b, `,"output_config":{"effort":`...)
	b = jsonwire.AppendString(b, effort)
	return append(b, '}')
}

// interleavedBeta reports whether thinking between tool calls must be asked for.
func (t *thinking) interleavedBeta(m *llm.Model, c *Compat) bool {
	return m.Reasoning && t.enabled && t.interleave && !c.AdaptiveThinking
}
