package compact

import (
	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Cut is where a conversation is cut in two.
type Cut struct {
	FirstKept int  // index of the first entry that stays; that of the first entry keeps all
	Split     bool // the cut stands inside a turn
	TurnStart int  // index of the entry that began that turn; -1 when none is split
}

// CutPoint decides where entries are cut so that about keep tokens of them stay.
//
// The cut stands before a message of the user, of the model, of a program or
// before a summary, never before a tool result: what a kept call gave stays
// with it. Entries without messages right before the cut stay too. An older
// compaction among the entries says nothing.
//
// Where an answer that failed was taken out of the context at the very end, the
// question before it need not be kept by itself: it goes into the summary of
// the split turn.
func CutPoint(entries []session.Projected, keep int64) Cut {
	first, last := -1, -1
	for i := range entries {
		if mayBeginTail(&entries[i]) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return Cut{TurnStart: -1}
	}
	cut, reached := first, false
	var sum int64
	for i := len(entries) - 1; i >= 0; i-- {
		n := weight(&entries[i])
		if n == 0 {
			continue
		}
		if sum += n; sum >= keep {
			reached = true
			for cut = i; cut < last && !mayBeginTail(&entries[cut]); cut++ {
			}
			cut = min(cut, last)
			break
		}
	}
	if reached && endsInOmittedAnswer(entries[cut+1:]) {
		cut++
	}
	for cut > 0 && len(entries[cut-1].Messages) == 0 && entries[cut-1].Entry.Type != session.TypeCompaction {
		cut--
	}
	c := Cut{FirstKept: cut, TurnStart: -1}
	if beginsTurn(&entries[cut]) {
		return c
	}
	for i := cut - 1; i >= 0; i-- {
		if beginsTurn(&entries[i]) {
			c.Split, c.TurnStart = true, i
			break
		}
	}
	return c
}

// weight is what an entry takes of the context.
func weight(p *session.Projected) (n int64) {
	if p.Entry.Type == session.TypeCompaction {
		return 0
	}
	for _, m := range p.Messages {
		n += session.Tokens(m)
	}
	return n
}

// beginsTurn reports whether the entry is one that a model answers to, or that
// stands for what came before.
func beginsTurn(p *session.Projected) bool {
	return p.Entry.Type != session.TypeCompaction && says(p.Messages, startsTurn)
}

func mayBeginTail(p *session.Projected) bool {
	return p.Entry.Type != session.TypeCompaction && says(p.Messages, func(r llm.Role) bool {
		return r == llm.RoleAssistant || startsTurn(r)
	})
}

func startsTurn(r llm.Role) bool {
	switch r {
	case llm.RoleUser, session.RoleBashExecution, session.RoleCustom, session.RoleBranchSummary, session.RoleCompactionSummary:
		return true
	}
	return false
}

func says(messages []agent.Message, is func(llm.Role) bool) bool {
	for _, m := range messages {
		if is(m.Role()) {
			return true
		}
	}
	return false
}

// endsInOmittedAnswer reports whether all that the entries would say was taken
// out by edits, an answer among it. Nothing else may depend on them: no older
// compaction is among them, and no edit that rewrites what stands before.
func endsInOmittedAnswer(entries []session.Projected) bool {
	omitted := map[string]bool{}
	answer := false
	for i := range entries {
		e := entries[i].Entry
		if e.Type == session.TypeCompaction || len(entries[i].Messages) > 0 {
			return false
		}
		for _, m := range session.ProjectSelected([]*session.Entry{e})[0].Messages {
			omitted[e.ID] = true
			answer = answer || m.Role() == llm.RoleAssistant
		}
	}
	if !answer {
		return false
	}
	for i := range entries {
		if d, ok := entries[i].Entry.Data().(*session.ContextEditEntry); ok && d.Replacement != nil && !omitted[d.TargetID] {
			return false
		}
	}
	return true
}
