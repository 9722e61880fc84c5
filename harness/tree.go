package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/session"
)

// TreeOptions say how to move in the tree of a session. The zero value moves
// and leaves what was left without a summary.
type TreeOptions struct {
	Summarize           bool   // sum up the branch that is left
	Instructions        string // that the summary should mind; "" for none
	ReplaceInstructions bool   // Instructions stand in the place of the built-in ones
	Label               string // of the summary, or without one of the target; "" for none
}

// Navigated is what a move in the tree did.
type Navigated struct {
	Cancelled bool // a hook refused the move, or it was aborted; nothing has changed
	Aborted   bool // it was aborted
	// EditorText is what the user said at the target, to be said differently;
	// Editable says that there is one, also an empty one.
	EditorText string
	Editable   bool
	Summary    *session.Entry // of the branch that was left; nil for none
	Leaf       string         // id of the leaf now; "" for the place before the first entry
}

// NavigateTree goes to another place of the session: before a message of the
// user or of an extension, whose text comes back for editing, or behind any
// other entry. The next prompt goes on from there, with the tools that were in
// force there where the prompt is recorded.
//
// The harness must be idle. The error is an *Error: invalid_argument for an
// unknown entry, branch_summary, with a *compact.Error, when the summary could
// not be written, hook, auth or session.
func (h *Harness) NavigateTree(ctx context.Context, id string, o TreeOptions) (Navigated, error) {
	const op = "navigate"
	var out Navigated
	err := h.structural(ctx, op, PhaseBranchSummary, func(_ context.Context, r *run) (err error) {
		out, err = h.navigate(r, id, o)
		return err
	})
	return out, err
}

func (h *Harness) navigate(r *run, id string, o TreeOptions) (Navigated, error) {
	old := h.sess.LeafID()
	stay := Navigated{Cancelled: true, Leaf: old}
	target, err := h.sess.Target(id)
	if err != nil {
		return Navigated{Leaf: old}, &Error{KindInvalidArgument, r.op, fmt.Errorf("there is no place %q in the session: %w", id, err)}
	}
	if id == old {
		return Navigated{Leaf: old}, nil
	}
	left, shared := compact.Left(h.sess.Path(), h.sess.PathTo(id))
	move := TreeMove{
		Target: id, OldLeaf: old, Entries: left, Summarize: o.Summarize,
		Instructions: o.Instructions, ReplaceInstructions: o.ReplaceInstructions, Label: o.Label,
	}
	if shared != nil {
		move.CommonAncestor = shared.ID
	}
	ctx, done := h.abortable(r)
	defer done()
	d, err := h.beforeTree(ctx, move)
	switch {
	case ctx.Err() != nil:
		stay.Aborted = true
		return stay, nil
	case err != nil:
		return Navigated{Leaf: old}, err
	case d.Cancel:
		return stay, nil
	}
	if d.Instructions != nil {
		o.Instructions = *d.Instructions
	}
	if d.ReplaceInstructions != nil {
		o.ReplaceInstructions = *d.ReplaceInstructions
	}
	if d.Label != nil {
		o.Label = *d.Label
	}
	var summary *session.BranchSummaryEntry
	switch {
	case !o.Summarize:
	case d.Summary != nil:
		summary = d.Summary
	case len(left) > 0:
		summary, err = h.sumUpBranch(ctx, r, left, o)
	}
	switch {
	case ctx.Err() != nil:
		stay.Aborted = true
		return stay, nil
	case err != nil:
		return Navigated{Leaf: old}, err
	}
	out := Navigated{EditorText: target.Text, Editable: target.Editable}
	h.saving.Lock()
	out.Summary, err = h.move(target.Leaf, summary)
	if err == nil && o.Label != "" {
		labelled := id
		if out.Summary != nil {
			labelled = out.Summary.ID
		}
		_, err = h.sess.SetLabel(labelled, o.Label)
	}
	h.saving.Unlock()
	out.Leaf = h.sess.LeafID()
	if err == nil || out.Leaf != old { // where only a part failed, the leaf has moved all the same
		h.mu.Lock()
		h.restoreTools()
		h.post(Event{
			Event: agent.Event{Type: SessionTree}, Entry: out.Summary, OldLeaf: old, NewLeaf: out.Leaf,
			FromHook: out.Summary != nil && d.Summary != nil,
		})
		h.mu.Unlock()
	}
	if err != nil {
		return out, &Error{KindSession, r.op, err}
	}
	return out, nil
}

// sumUpBranch has the model sum up what is left behind.
func (h *Harness) sumUpBranch(ctx context.Context, r *run, left []*session.Entry, o TreeOptions) (*session.BranchSummaryEntry, error) {
	reserve := int64(compact.DefaultReserveTokens)
	if h.opts.BranchReserveTokens != nil {
		reserve = *h.opts.BranchReserveTokens
	}
	window := int64(h.nextModel(r).ContextWindow)
	p := compact.PrepareBranch(left, compact.BranchBudget(window, reserve))
	var entry session.BranchSummaryEntry
	err := h.withSummaries(ctx, r, "branchSummary", "", func(ctx context.Context, c compact.Options) error {
		c.Instructions, c.Replace = o.Instructions, o.ReplaceInstructions
		result, err := compact.RunBranch(ctx, p, c)
		if err == nil {
			entry = result.Entry()
		}
		return err
	})
	if e, ok := errors.AsType[*compact.Error](err); ok {
		err = &Error{KindBranchSummary, r.op, e}
	}
	return &entry, err
}

// move moves the leaf. A program's session records the move itself, a person's
// only what follows it. h.saving is held.
func (h *Harness) move(leaf string, summary *session.BranchSummaryEntry) (*session.Entry, error) {
	switch {
	case !h.opts.Embedded && summary != nil:
		return h.sess.BranchWithSummary(leaf, *summary)
	case !h.opts.Embedded:
		return nil, h.sess.Branch(leaf)
	}
	if _, err := h.sess.Append(&session.LeafEntry{TargetID: leaf}); err != nil {
		return nil, err
	}
	if err := h.sess.Branch(leaf); err != nil || summary == nil {
		return nil, err
	}
	if summary.FromID = leaf; leaf == "" {
		summary.FromID = "root"
	}
	return h.sess.Append(summary)
}
