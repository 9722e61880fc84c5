package compact

import (
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Reason is why a conversation is compacted.
type Reason string

// The reasons.
const (
	Manual    Reason = "manual"    // the user asked for it
	Threshold Reason = "threshold" // the room that is reserved for an answer is used up
	Overflow  Reason = "overflow"  // a request did not fit, or an answer had no room to end
)

// Situation is where a conversation stands when it is asked whether to compact.
type Situation struct {
	Path     []*session.Entry // from the root to the leaf
	Model    *llm.Model       // that the next request goes to
	Settings Settings
	Meter    *Meter // of the conversation; nil for none

	// BeforePrompt says that a new prompt is about to be sent: an aborted answer
	// counts then, which after a run it does not.
	BeforePrompt bool
	// Recovered says that an answer was repeated after an overflow already, and
	// neither a good answer nor a message of the user came since.
	Recovered bool
}

// Decision is what to do about a Situation.
type Decision struct {
	Reason Reason // to compact for; "" not to
	// Answer is the answer that did not fit, to be taken out of the context
	// before and repeated after the compaction; nil otherwise.
	Answer *session.Entry
	// GaveUp says that the context is too long still after a recovery: nothing
	// is compacted, and the user is told.
	GaveUp bool
	Tokens int64 // size of the context that was decided on, where it was looked at
}

// Decide says whether to compact by itself, after a run, or before a prompt. It
// judges the last answer that the context shows.
func Decide(s Situation) Decision {
	l := s.Settings.For(s.Model)
	if !l.Enabled || s.Model == nil {
		return Decision{}
	}
	e, m := lastAnswer(s.Path)
	if m == nil || m.StopReason == llm.StopAborted && !s.BeforePrompt {
		return Decision{}
	}
	window := s.Model.ContextWindow
	if m.Provider == s.Model.Provider && m.Model == s.Model.ID &&
		(llm.IsContextOverflow(m, window) || llm.IsCutShort(m, s.Model.MaxTokens)) {
		switch {
		case m.StopReason == llm.StopStop:
			return Decision{Reason: Overflow}
		case s.Recovered:
			return Decision{GaveUp: true}
		}
		return Decision{Reason: Overflow, Answer: e}
	}
	return threshold(s, m, window, l)
}

// Between says whether to compact between two turns of a run, where only the
// size of the context counts. meter is the conversation's; nil for none.
func Between(path []*session.Entry, m *llm.Model, s Settings, meter *Meter) Decision {
	l := s.For(m)
	if m == nil || !l.Enabled || m.ContextWindow <= 0 {
		return Decision{}
	}
	d := Decision{Tokens: meter.Tokens(path)}
	if Should(d.Tokens, int64(m.ContextWindow), l) {
		d.Reason = Threshold
	}
	return d
}

func threshold(s Situation, m *llm.Assistant, window int, l Limits) (d Decision) {
	if window <= 0 {
		return d
	}
	d.Tokens = m.Usage.Context()
	if m.StopReason == llm.StopError || d.Tokens == 0 || hasEdits(s.Path) {
		d.Tokens = s.Meter.Tokens(s.Path)
	}
	if Should(d.Tokens, int64(window), l) {
		d.Reason = Threshold
	}
	return d
}

func hasEdits(path []*session.Entry) bool {
	for _, e := range path {
		if e.Type == session.TypeContextEdit {
			return true
		}
	}
	return false
}

// lastAnswer is the last answer on the path that stands after the last
// compaction and was not taken out by an edit.
func lastAnswer(path []*session.Entry) (*session.Entry, *llm.Assistant) {
	omitted := map[string]bool{}
	for i := len(path) - 1; i >= 0; i-- {
		e := path[i]
		switch {
		case e.Type == session.TypeCompaction:
			return nil, nil
		case e.Type == session.TypeContextEdit:
			d := e.Data().(*session.ContextEditEntry)
			if _, later := omitted[d.TargetID]; !later {
				omitted[d.TargetID] = d.Replacement == nil
			}
		case e.Role() == llm.RoleAssistant && !omitted[e.ID]:
			if m, ok := e.Message().(*llm.Assistant); ok {
				return e, m
			}
		}
	}
	return nil, nil
}
