package harness

import (
	"context"
	"errors"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

func idle(t *testing.T, hooks ...Hooks) *Harness {
	t.Helper()
	model := faux.New(faux.Options{})
	model.Script(faux.Say("a"))
	h, err := New(Options{Model: model.Model(), Stream: model.Stream, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func kind(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// An operation on the session keeps everything else out, what is recorded
// meanwhile waits for its end, and Abort ends it.
func TestStructuralOperation(t *testing.T) {
	h := idle(t)
	ctx := t.Context()
	before := len(h.sess.Entries())
	err := h.structural(ctx, "compact", PhaseCompaction, func(ctx context.Context, r *run) error {
		if h.Phase() != PhaseCompaction || h.IsIdle() {
			t.Error(h.Phase())
		}
		if _, err := h.Prompt(ctx, "go"); kind(err) != KindBusy {
			t.Error(err)
		}
		if err := h.structural(ctx, "navigate", PhaseBranchSummary, nil); kind(err) != KindBusy {
			t.Error(err)
		}
		leave := h.enter(r, PhaseBranchSummary)
		if h.Phase() != PhaseBranchSummary {
			t.Error(h.Phase())
		}
		leave()
		if err := h.AppendMessage(llm.UserText("held", 1)); err != nil {
			t.Error(err)
		}
		if n := len(h.sess.Entries()); n != before {
			t.Errorf("%d entries", n)
		}
		h.Abort()
		return &Error{KindCompaction, "compact", ctx.Err()}
	})
	if kind(err) != KindCompaction || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(h.sess.Entries()); n != before+1 || h.Phase() != PhaseIdle {
		t.Errorf("%d entries, %s", n, h.Phase())
	}
	if err := h.structural(ctx, "compact", PhaseCompaction, func(context.Context, *run) error { panic("no") }); kind(err) != KindUnknown {
		t.Error(err)
	}
	if _, err := h.Prompt(ctx, "go"); err != nil {
		t.Error(err)
	}
}

// The first refusal ends the question, else the last word on each thing counts.
func TestStructuralHooks(t *testing.T) {
	asked := 0
	says := func(c *CompactDecision, d *TreeDecision, err error) Hooks {
		return Hooks{
			SessionBeforeCompact: func(context.Context, Compacting) (*CompactDecision, error) { asked++; return c, err },
			SessionBeforeTree:    func(context.Context, TreeMove) (*TreeDecision, error) { asked++; return d, err },
		}
	}
	one := says(&CompactDecision{Compaction: &session.CompactionEntry{Summary: "1"}},
		&TreeDecision{Summary: &session.BranchSummaryEntry{Summary: "1"}, Label: new("l")}, nil)
	two := says(&CompactDecision{Compaction: &session.CompactionEntry{Summary: "2"}},
		&TreeDecision{Instructions: new("i"), ReplaceInstructions: new(true)}, nil)
	none, no := says(nil, nil, nil), says(&CompactDecision{Cancel: true}, &TreeDecision{Cancel: true}, nil)
	fails := says(nil, nil, errors.New("failed"))

	h := idle(t, one, none, two)
	c, err := h.beforeCompact(t.Context(), Compacting{Reason: CompactManual})
	if err != nil || c.Cancel || c.Compaction.Summary != "2" || !*c.Compaction.FromHook {
		t.Error(c, err)
	}
	d, err := h.beforeTree(t.Context(), TreeMove{})
	if err != nil || d.Cancel || d.Summary.Summary != "1" || !*d.Summary.FromHook || *d.Label != "l" || *d.Instructions != "i" || !*d.ReplaceInstructions {
		t.Error(d, err)
	}
	h = idle(t, one, no, fails)
	asked = 0
	if c, err := h.beforeCompact(t.Context(), Compacting{}); err != nil || !c.Cancel || c.Compaction != nil {
		t.Error(c, err)
	}
	if d, err := h.beforeTree(t.Context(), TreeMove{}); err != nil || !d.Cancel || d.Summary != nil || asked != 4 {
		t.Error(d, err, asked)
	}
	h = idle(t, fails)
	if _, err := h.beforeCompact(t.Context(), Compacting{}); kind(err) != KindHook {
		t.Error(err)
	}
	if _, err := h.beforeTree(t.Context(), TreeMove{}); kind(err) != KindHook {
		t.Error(err)
	}
	fails.Report = func(context.Context, *HookError) {}
	h = idle(t, fails, one)
	if c, err := h.beforeCompact(t.Context(), Compacting{}); err != nil || c.Compaction == nil {
		t.Error(c, err)
	}
}
