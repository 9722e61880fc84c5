package compact

import (
	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Estimate is about how many tokens a context takes.
type Estimate struct {
	Tokens   int64
	Measured int64 // the part that the provider counted; 0 when it counted nothing
	Trailing int64 // the part that was estimated
	// Last is the index of the message whose usage was Measured, -1 for none. In
	// the estimate of a path it is that of its entry.
	Last int
}

// EstimateMessages estimates a list of messages: what the provider counted for
// the last answer that did not fail, and session.Tokens for what follows it.
func EstimateMessages(messages []agent.Message) Estimate {
	e := Estimate{Last: -1}
	for i := len(messages) - 1; i >= 0; i-- {
		if n := measured(messages[i]); n > 0 {
			e.Measured, e.Last = n, i
			break
		}
		e.Trailing += session.Tokens(messages[i])
	}
	e.Tokens = e.Measured + e.Trailing
	return e
}

// measured is the provider's count of the context with this answer, 0 when it
// gave none that counts.
func measured(m agent.Message) int64 {
	a, ok := m.(*llm.Assistant)
	if !ok || a.StopReason == llm.StopError || a.StopReason == llm.StopAborted {
		return 0
	}
	return a.Usage.Context()
}

// EstimatePath estimates the context at the end of a path from a root. A count
// of the provider is trusted only when nothing was edited or compacted after
// it; without one all messages are estimated, the system prompt as it is now.
func EstimatePath(path []*session.Entry) Estimate {
	if e, ok := MeasuredPath(path); ok {
		return e
	}
	e := Estimate{Last: -1}
	messages := session.ContextOf(path).Messages
	for _, m := range messages {
		if m.Role() != llm.RoleSystem {
			e.Trailing += session.Tokens(m)
		}
	}
	if sys := session.FoldSystem(messages); sys != nil {
		e.Trailing += session.Tokens(sys)
	}
	e.Tokens = e.Trailing
	return e
}

// Meter estimates the growing path of one conversation at the cost of what is
// new, also where the provider counts nothing. The zero value is ready.
type Meter struct {
	at     *session.Entry // the end of the path that was estimated last
	tokens int64
}

// Tokens is what EstimatePath gives, but for the system prompt, whose changes are
// weighed when something else has all to be weighed anew. A nil Meter remembers
// nothing.
func (m *Meter) Tokens(path []*session.Entry) int64 {
	if m == nil || len(path) == 0 {
		return EstimatePath(path).Tokens
	}
	tokens, ok := m.trailing(path)
	if !ok {
		tokens = EstimatePath(path).Tokens
	}
	m.at, m.tokens = path[len(path)-1], tokens
	return tokens
}

// trailing goes back to what is known: the last count, or that of the provider.
func (m *Meter) trailing(path []*session.Entry) (tokens int64, ok bool) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == m.at {
			return tokens + m.tokens, true
		}
		if t := path[i].Type; t == session.TypeContextEdit || t == session.TypeCompaction {
			return 0, false
		}
		for _, msg := range session.ProjectSelected(path[i : i+1])[0].Messages {
			if n := measured(msg); n > 0 {
				return tokens + n, true
			}
			tokens += session.Tokens(msg)
		}
	}
	return 0, false
}

// MeasuredPath is EstimatePath where a count of the provider can be trusted; ok
// is false otherwise, as after a compaction until the next answer: a display of
// how full the context is then shows that it does not know. It looks at the
// path's end only.
func MeasuredPath(path []*session.Entry) (e Estimate, ok bool) {
	e.Last = -1
	for i := len(path) - 1; i >= 0; i-- {
		if t := path[i].Type; t == session.TypeContextEdit || t == session.TypeCompaction {
			break
		}
		for _, m := range session.ProjectSelected(path[i : i+1])[0].Messages {
			if n := measured(m); n > 0 {
				e.Measured, e.Last = n, i
				e.Tokens = e.Measured + e.Trailing
				return e, true
			}
			e.Trailing += session.Tokens(m)
		}
	}
	return Estimate{Last: -1}, false
}
