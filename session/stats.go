package session

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Stats sums up a session over all its entries, compacted and abandoned ones
// included.
type Stats struct {
	Messages          int // of any role
	UserMessages      int
	AssistantMessages int
	ToolCalls         int
	ToolResults       int
	Usage             llm.Usage // of answers, tools, summaries and usage entries
}

// tally is the Stats of the first n entries.
type tally struct {
	n     int
	first bool // something was added
	Stats
}

// Stats sums up the session. It looks only at entries that are new since the
// last call.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readWhole()
	s.settleDoubt()
	s.tally.add(s.order[s.tally.n:])
	s.tally.n = len(s.order)
	return s.tally.Stats
}

func (t *tally) add(list []*Entry) {
	for _, e := range list {
		if e.Type != TypeMessage {
			continue
		}
		t.Messages++
		switch e.role {
		case llm.RoleUser:
			t.UserMessages++
		case llm.RoleAssistant:
			t.AssistantMessages++
		case llm.RoleToolResult:
			t.ToolResults++
		}
	}
	for e, raw := range rawLines(list, defaultChunk, spends) {
		if e.Type != TypeMessage {
			t.book(usageOf(raw))
			continue
		}
		raw = jsonwire.Get(raw, "message")
		t.book(usageOf(raw))
		if e.role == llm.RoleAssistant {
			t.countCalls(raw)
		}
	}
}

// spends reports whether an entry may have a usage.
func spends(e *Entry) bool {
	switch e.Type {
	case TypeMessage:
		return e.role == llm.RoleAssistant || e.role == llm.RoleToolResult
	case TypeUsage, TypeCompaction, TypeBranchSummary:
		return true
	}
	return false
}

// countCalls counts the calls of an answer, without decoding one that nobody
// needed so far.
func (t *tally) countCalls(raw []byte) {
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(raw, "content"))
	for r.Array(); r.More(); {
		call := false
		for r.Object(); r.More(); {
			if string(r.Key()) == "type" {
				call = string(r.String()) == "toolCall"
			} else {
				r.Skip()
			}
		}
		if call {
			t.ToolCalls++
		}
	}
}

func usageOf(raw []byte) *llm.Usage {
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(raw, "usage"))
	return optUsage(&r)
}

func (t *tally) book(u *llm.Usage) {
	switch {
	case u == nil:
	case !t.first:
		t.Usage, t.first = *u, true
	default:
		t.Usage = AddUsage(t.Usage, *u)
	}
}

// AddUsage adds two usages. What only one of them reports is kept; the total
// cost counts as billed by the provider only when both are.
func AddUsage(a, b llm.Usage) llm.Usage {
	billed := func(u *llm.Usage) bool { return u.Cost.TotalFromProvider != nil && *u.Cost.TotalFromProvider }
	return llm.Usage{
		Input:        a.Input + b.Input,
		Output:       a.Output + b.Output,
		CacheRead:    a.CacheRead + b.CacheRead,
		CacheWrite:   a.CacheWrite + b.CacheWrite,
		CacheWrite1h: addOptional(a.CacheWrite1h, b.CacheWrite1h),
		Reasoning:    addOptional(a.Reasoning, b.Reasoning),
		TotalTokens:  a.TotalTokens + b.TotalTokens,
		Cost: llm.Cost{
			Input:             a.Cost.Input + b.Cost.Input,
			Output:            a.Cost.Output + b.Cost.Output,
			CacheRead:         a.Cost.CacheRead + b.Cost.CacheRead,
			CacheWrite:        a.Cost.CacheWrite + b.Cost.CacheWrite,
			Total:             a.Cost.Total + b.Cost.Total,
			TotalFromProvider: new(billed(&a) && billed(&b)),
		},
	}
}

func addOptional(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}
