package compact

import (
	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Preparation is what a compaction would keep and what it would sum up.
type Preparation struct {
	FirstKept string          // id of the entry at which the kept tail begins
	History   []agent.Message // to be summed up, without the turn that is split
	// TurnPrefix is the beginning of a turn whose end is kept. It gets a summary
	// of its own. Empty when no turn is split.
	TurnPrefix      []agent.Message
	SplitTurn       bool   // the cut stands inside a turn
	PreviousSummary string // of the compaction before; "" for none
	TokensBefore    int64  // size of the context now
	Files           Files  // that History and TurnPrefix read and changed, those of the compaction before included
	Limits          Limits
}

// Prepare decides what a compaction at the end of a path from a root would keep
// and sum up. It calls no model. The error is an *Error: AlreadyCompacted when
// the path ends in a compaction, NothingToCompact when nothing precedes what
// has to be kept.
func Prepare(path []*session.Entry, l Limits) (*Preparation, error) {
	p, err := PrepareAll(path, l)
	if err == nil && len(p.History) == 0 && len(p.TurnPrefix) == 0 {
		return nil, &Error{Kind: NothingToCompact, Op: "compact"}
	}
	return p, err
}

// PrepareHalf is Prepare for a conversation that does not fit although it is no
// longer than what Limits keep, as where a server's context window is smaller
// than it says: half of it is kept. Below 500 tokens a summary would not be
// shorter, and there is nothing to compact.
func PrepareHalf(path []*session.Entry, l Limits) (*Preparation, error) {
	var tokens int64
	for _, p := range session.Project(path) {
		tokens += weight(&p)
	}
	if tokens < minHalved {
		return nil, &Error{Kind: NothingToCompact, Op: "compact"}
	}
	l.KeepRecentTokens = min(l.KeepRecentTokens, tokens/2)
	return Prepare(path, l)
}

const minHalved = 500

// PrepareAll is Prepare for a caller that wants a summary also where everything
// is recent: the history may be empty, and the model is asked about none. There
// is NothingToCompact only where the path says nothing at all.
func PrepareAll(path []*session.Entry, l Limits) (*Preparation, error) {
	const op = "compact"
	if len(path) > 0 && path[len(path)-1].Type == session.TypeCompaction {
		return nil, &Error{Kind: AlreadyCompacted, Op: op}
	}
	selected := session.Project(path)
	p := &Preparation{Limits: l}
	start := 0
	// One that an edit took out of the context says nothing.
	if len(selected) > 0 && selected[0].Entry.Type == session.TypeCompaction && len(selected[0].Messages) > 0 {
		before := selected[0].Entry.Data().(*session.CompactionEntry)
		p.PreviousSummary = before.Summary
		if before.FromHook == nil || !*before.FromHook {
			p.Files.addDetails(before.Details)
		}
		start = 1
	}
	rest := selected[start:]
	if len(rest) == 0 {
		return nil, &Error{Kind: NothingToCompact, Op: op}
	}
	cut := CutPoint(rest, l.KeepRecentTokens)
	end := cut.FirstKept
	if cut.Split {
		end = cut.TurnStart
		p.TurnPrefix = messagesOf(rest[cut.TurnStart:cut.FirstKept])
	}
	p.SplitTurn = cut.Split
	p.History = messagesOf(rest[:end])
	p.FirstKept = rest[cut.FirstKept].Entry.ID
	p.TokensBefore = EstimatePath(path).Tokens
	for _, list := range [][]agent.Message{p.History, p.TurnPrefix} {
		for _, m := range list {
			p.Files.addMessage(m, true)
		}
	}
	return p, nil
}

// messagesOf is what entries say, without system prompts and what an older
// compaction says.
func messagesOf(entries []session.Projected) []agent.Message {
	var out []agent.Message
	for _, p := range entries {
		if p.Entry.Type == session.TypeCompaction {
			continue
		}
		for _, m := range p.Messages {
			if m.Role() != llm.RoleSystem {
				out = append(out, m)
			}
		}
	}
	return out
}
