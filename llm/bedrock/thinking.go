package bedrock

import (
	"strconv"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// thinking is what a request asks for, decided once per body.
type thinking struct {
	maxTokens int  // 0 for none
	enabled   bool // of Claude: fields for it are sent
	budget    int  // of Claude with a budget
}

// decideThinking settles thinking and the token limit. estimate is the size of
// the prompt in tokens.
func (x *exchange) decideThinking(estimate int) thinking {
	m, o := x.model, &x.opts
	t := thinking{maxTokens: o.MaxTokens}
	if t.maxTokens <= 0 && (x.neutral || x.kind.claude) {
		t.maxTokens = m.MaxTokens
	}
	if x.neutral {
		t.maxTokens = transcript.ClampMaxTokens(m.ContextWindow, estimate, t.maxTokens)
	}
	t.enabled = x.kind.claude && x.thinks()
	if t.enabled && !x.kind.adaptive {
		if x.neutral {
			t.maxTokens, t.budget = transcript.BudgetedTokens(m, o, estimate, t.maxTokens)
		} else {
			t.budget = transcript.FitBudget(transcript.LevelBudget(o.Reasoning, o.ThinkingBudgets), t.maxTokens)
		}
	}
	return t
}

// thinks reports whether the model can think and is asked to.
func (x *exchange) thinks() bool {
	level := x.opts.Reasoning
	return x.model.Reasoning && level != "" && level != llm.LevelOff
}

// appendThinking appends the fields that the vendor of the model has for
// thinking, which the protocol itself has none for.
func (x *exchange) appendThinking(b []byte, t *thinking) []byte {
	const opening = `,"additionalModelRequestFields":`
	switch {
	case t.enabled:
		return x.appendClaude(append(b, opening...), t)
	case !x.thinks():
		return b
	case x.kind.gptOSS:
		b = append(b, opening+`{"reasoning_effort":`...)
		b = jsonwire.AppendString(b, ossEffort(x.model, x.opts.Reasoning))
		return append(b, '}')
	case x.kind.gpt:
		b = append(b, opening+`{"reasoning":{"effort":`...)
		b = jsonwire.AppendString(b, gptEffort(x.model, x.opts.Reasoning))
		return append(b, `}}`...)
	}
	return b
}

func (x *exchange) appendClaude(b []byte, t *thinking) []byte {
	plain := govCloud(x.model, x.region)
	if x.kind.adaptive {
		b = append(b, `{"thinking":{"type":"adaptive"`...)
	} else {
		b = append(b, `{"thinking":{"type":"enabled","budget_tokens":`...)
		b = strconv.AppendInt(b, int64(t.budget), 10)
	}
	if !plain {
		display := x.own.ThinkingDisplay
		if display == "" {
			display = "summarized"
		}
		b = append(b, `,"display":`...)
		b = jsonwire.AppendString(b, display)
	}
	beta := ""
	if x.kind.adaptive {
		if x.kind.binding && !plain {
			b = append(b, `,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`...)
			beta = "thinking-binding-controls-2026-08-01"
		}
		b = append(b, `},"output_config":{"effort":`...)
		b = jsonwire.AppendString(b, x.claudeEffort())
	} else if x.own.InterleavedThinking == nil || *x.own.InterleavedThinking {
		beta = "interleaved-thinking-2025-05-14"
	}
	b = append(b, '}')
	if beta != "" {
		b = append(b, `,"anthropic_beta":["`...)
		b = append(b, beta...)
		b = append(b, `"]`...)
	}
	return append(b, '}')
}

// claudeEffort is the effort of Claude that chooses its budget itself. The
// versions whose thinking can be bound know xhigh by itself.
func (x *exchange) claudeEffort() string {
	if x.opts.Reasoning == llm.LevelXHigh && x.kind.binding {
		return string(llm.LevelXHigh)
	}
	return transcript.Effort(x.model, x.opts.Reasoning)
}

// ossEffort is one of the three efforts that gpt-oss knows.
func ossEffort(m *llm.Model, level llm.ThinkingLevel) string {
	switch effort := transcript.Effort(m, level); effort {
	case "low", "medium", "high":
		return effort
	case "minimal", "none":
		return "low"
	default:
		return "high"
	}
}

// gptEffort is the effort of the other GPT models, which have a word of their
// own for every level but the first.
func gptEffort(m *llm.Model, level llm.ThinkingLevel) string {
	if v := m.ThinkingLevelMap[level]; v != nil {
		return *v
	}
	if level == llm.LevelMinimal {
		level = llm.LevelLow
	}
	return string(level)
}
