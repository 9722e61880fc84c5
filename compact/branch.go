package compact

import (
	"context"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Left lists what is abandoned when the leaf moves from the end of one path to
// the end of another: the entries of from that are not on to, oldest first,
// across compactions. shared is the deepest entry on both, nil for none.
func Left(from, to []*session.Entry) (left []*session.Entry, shared *session.Entry) {
	on := make(map[*session.Entry]bool, len(to))
	for _, e := range to {
		on[e] = true
	}
	for i := len(from) - 1; i >= 0; i-- {
		if on[from[i]] {
			return from[i+1:], from[i]
		}
	}
	return from, nil
}

// BranchBudget is how many tokens of a branch are summed up by a model with
// such a context window, 0 for unknown. reserve is what the settings leave for
// the answer; where that is all of the window, half of it is used.
func BranchBudget(window, reserve int64) int64 {
	if window <= 0 {
		window = DefaultWindow
	}
	if reserve < window {
		return window - reserve
	}
	return max(window/2, 1) // 0 would be no bound at all
}

// BranchPreparation is what a summary of a branch is made of.
type BranchPreparation struct {
	Messages []agent.Message
	Tokens   int64 // of Messages, estimated
	Files    Files
}

// PrepareBranch picks what of a branch fits into a budget of tokens, 0 for all:
// the newest messages without tool results, and the summary before them also
// when it is somewhat too long.
func PrepareBranch(entries []*session.Entry, budget int64) *BranchPreparation {
	p := &BranchPreparation{}
	for _, e := range entries {
		if d, ok := e.Data().(*session.BranchSummaryEntry); ok && (d.FromHook == nil || !*d.FromHook) {
			p.Files.addDetails(d.Details)
		}
	}
	for _, e := range slices.Backward(projectBranch(entries)) {
		summary := e.Entry.Type == session.TypeCompaction || e.Entry.Type == session.TypeBranchSummary
		full := false
		for _, m := range e.Messages {
			if m.Role() == llm.RoleToolResult {
				continue
			}
			p.Files.addMessage(m, false)
			n := session.Tokens(m)
			if full = budget > 0 && p.Tokens+n > budget; full && !(summary && 10*p.Tokens < 9*budget) {
				break
			}
			p.Messages = append(p.Messages, m)
			p.Tokens += n
		}
		if full {
			break
		}
	}
	slices.Reverse(p.Messages)
	return p
}

// projectBranch is what the entries of a branch say, edits applied to what can be
// edited. Unlike in a context each compaction among them counts, without its
// system prompt, and a summary without words too.
func projectBranch(entries []*session.Entry) []session.Projected {
	out := session.ProjectSelected(entries)
	for i, e := range entries {
		switch d := e.Data().(type) {
		case *session.CompactionEntry:
			alone := session.ProjectSelected([]*session.Entry{e})[0]
			out[i].Messages = slices.DeleteFunc(slices.Clone(alone.Messages), func(m agent.Message) bool {
				return m.Role() == llm.RoleSystem
			})
		case *session.BranchSummaryEntry:
			out[i].Messages = []agent.Message{&session.BranchSummary{Summary: d.Summary, FromID: d.FromID, Timestamp: e.Time().UnixMilli()}}
		}
	}
	return out
}

// BranchResult is the summary of a branch.
type BranchResult struct {
	Summary string     // with a preamble, and the lists of files at its end
	Usage   *llm.Usage // nil when no model was asked
	Files   Files
}

// Entry is the entry for Session.BranchWithSummary.
func (r *BranchResult) Entry() session.BranchSummaryEntry {
	e := session.BranchSummaryEntry{Summary: r.Summary, Usage: r.Usage, FromHook: new(false)}
	if r.Usage != nil {
		e.Details = r.Files.details()
	}
	return e
}

// RunBranch writes the summary of a branch. It changes nothing. Without
// messages it answers NothingToSummarize and asks no model. Errors are those of
// Run.
func RunBranch(ctx context.Context, p *BranchPreparation, o Options) (*BranchResult, error) {
	if len(p.Messages) == 0 {
		return &BranchResult{Summary: NothingToSummarize()}, nil
	}
	w, err := newWriter("sum up branch", o)
	if err != nil {
		return nil, err
	}
	text, err := w.write(ctx, Branch, p.Messages, "")
	if err != nil {
		return nil, err
	}
	return &BranchResult{
		Summary: BranchPreamble() + text + FormatFiles(p.Files.Lists()),
		Usage:   &w.usage, Files: p.Files,
	}, nil
}
