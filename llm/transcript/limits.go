package transcript

import (
	"math"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// ContextEstimate is the estimated size of a history in tokens.
type ContextEstimate struct {
	Tokens     int // Usage + Trailing
	Usage      int // counted by the service up to the last usable answer
	Trailing   int // estimated for the messages behind it, or for all
	UsageIndex int // position of that answer, -1 for none
}

// Estimate measures a history: what the last usable answer reported, and
// EstimateMessage for the messages behind it. An answer is usable when it did
// not fail, counted something, and is not older than a message before it, as an
// answer from before a rewritten prefix is.
func Estimate(messages []llm.Message) ContextEstimate {
	e := ContextEstimate{UsageIndex: -1}
	latest := int64(math.MinInt64)
	for i, m := range messages {
		t := m.Time()
		if t < latest {
			continue
		}
		latest = t
		if n, ok := usageOf(m); ok {
			e.Usage, e.UsageIndex = n, i
		}
	}
	var scratch []byte
	for _, m := range messages[e.UsageIndex+1:] {
		var n int
		n, scratch = estimateMessage(m, scratch)
		e.Trailing += n
	}
	e.Tokens = e.Usage + e.Trailing
	return e
}

func usageOf(m llm.Message) (int, bool) {
	a, ok := m.(*llm.Assistant)
	if !ok || failed(a) {
		return 0, false
	}
	n := a.Usage.Context()
	return int(n), n > 0
}

// EstimateMessage is the estimated size of a message in tokens: 3.5 UTF-16
// units each, 4800 units for a picture.
func EstimateMessage(m llm.Message) int {
	n, _ := estimateMessage(m, nil)
	return n
}

const imageChars = 4800

func tokensOf(chars int) int { return (2*chars + 6) / 7 }

func estimateMessage(m llm.Message, scratch []byte) (int, []byte) {
	switch m := m.(type) {
	case *llm.System:
		n := tokensOf(jsonwire.UTF16Len(SystemText(m)))
		if len(m.ToolsAdded) > 0 {
			scratch = llm.AppendTools(scratch[:0], m.ToolsAdded)
			n += tokensOf(jsonwire.UTF16Len(scratch))
		}
		if len(m.ToolsRemoved) > 0 {
			chars := 1
			for _, name := range m.ToolsRemoved {
				scratch = jsonwire.AppendString(scratch[:0], name)
				chars += len(`{"name":},`) + jsonwire.UTF16Len(scratch)
			}
			n += tokensOf(chars)
		}
		return n, scratch
	case *llm.User:
		if m.Content.Blocks == nil {
			return tokensOf(jsonwire.UTF16Len(m.Content.Text)), scratch
		}
		return tokensOf(partChars(m.Content.Blocks)), scratch
	case *llm.ToolResult:
		return tokensOf(partChars(m.Content)), scratch
	case *llm.Assistant:
		n := 0
		for _, b := range m.Content {
			switch b := b.(type) {
			case *llm.Text:
				n += jsonwire.UTF16Len(b.Text)
			case *llm.Thinking:
				n += jsonwire.UTF16Len(b.Thinking)
			case *llm.ToolCall:
				var err error
				if scratch, err = jsonwire.AppendCompact(scratch[:0], b.Arguments); err != nil {
					scratch = append(scratch[:0], "{}"...)
				}
				n += jsonwire.UTF16Len(b.Name) + jsonwire.UTF16Len(scratch)
			}
		}
		return tokensOf(n), scratch
	}
	return 0, scratch
}

func partChars(content []llm.Block) int {
	n := 0
	for _, b := range content {
		switch b := b.(type) {
		case *llm.Text:
			n += jsonwire.UTF16Len(b.Text)
		case *llm.Image:
			n += imageChars
		}
	}
	return n
}

// Room that a request leaves in the context window, in tokens.
const (
	safety    = 4096  // for what the estimate missed, at least
	fullRoom  = 32768 // below this the margin shrinks to safety
	margin    = 0.15  // of the estimate
	answerMin = 1024  // for the answer behind the thinking
)

// MaxTokens is how many output tokens to ask for with the plain options of a
// request: those that it names, else all that the model gives, clamped.
func MaxTokens(m *llm.Model, o *llm.Options, estimate int) int {
	wanted := o.MaxTokens
	if wanted == 0 {
		wanted = m.MaxTokens
	}
	return ClampMaxTokens(m.ContextWindow, estimate, wanted)
}

// ClampMaxTokens is how many output tokens to ask for when wanted are wished
// and the context window holds the estimated input already: at least 1. A
// window of 0 is unknown and does not limit.
func ClampMaxTokens(window, estimate, wanted int) int {
	if window <= 0 {
		return max(1, wanted)
	}
	room := window - estimate - max(safety, int(math.Ceil(margin*float64(estimate))))
	if room < fullRoom {
		room = min(fullRoom, window-estimate-safety)
	}
	return min(wanted, max(1, room))
}

// ThinkingBudget gives the output limit and the thinking budget of a request
// with budgeted thinking. base is the limit without thinking, 0 for none, which
// takes modelMax; overrides change the budgets of single levels, in tokens.
func ThinkingBudget(base, modelMax int, level llm.ThinkingLevel, overrides map[llm.ThinkingLevel]int) (maxTokens, budget int) {
	budget = LevelBudget(level, overrides)
	maxTokens = modelMax
	if base > 0 {
		maxTokens = min(base+budget, modelMax)
	}
	if maxTokens <= budget {
		budget = FitBudget(budget, maxTokens)
	}
	return maxTokens, budget
}

// LevelBudget is the thinking budget of a level in tokens.
func LevelBudget(level llm.ThinkingLevel, overrides map[llm.ThinkingLevel]int) int {
	if level == llm.LevelXHigh || level == llm.LevelMax {
		level = llm.LevelHigh
	}
	if n, ok := overrides[level]; ok {
		return n
	}
	switch level {
	case llm.LevelMinimal:
		return 1024
	case llm.LevelLow:
		return 2048
	case llm.LevelMedium:
		return 8192
	case llm.LevelHigh:
		return 16384
	}
	return 0
}

// FitBudget is a thinking budget cut so that an output limit leaves room for
// an answer.
func FitBudget(budget, maxTokens int) int { return min(budget, max(0, maxTokens-answerMin)) }

// BudgetedTokens gives the output limit and the thinking budget of a request
// for a level of thinking on a model with budgeted thinking: the limit grows by
// the budget, up to that of the model, and fits into the context window beside
// the estimated input; the budget leaves room for an answer.
func BudgetedTokens(m *llm.Model, o *llm.Options, estimate, base int) (maxTokens, budget int) {
	most, budget := ThinkingBudget(base, m.MaxTokens, o.Reasoning, o.ThinkingBudgets)
	maxTokens = ClampMaxTokens(m.ContextWindow, estimate, most)
	return maxTokens, FitBudget(budget, maxTokens)
}

// Effort is the effort that a level of thinking stands for on Claude models
// that choose their budget themselves.
func Effort(m *llm.Model, level llm.ThinkingLevel) string {
	if v := m.ThinkingLevelMap[level]; v != nil {
		return *v
	}
	switch level {
	case llm.LevelMinimal, llm.LevelLow:
		return "low"
	case llm.LevelMedium:
		return "medium"
	default:
		return "high"
	}
}
