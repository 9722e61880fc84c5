package harness

import (
	"context"
	"errors"
	"time"

	"github.com/pinch-agent/pinch/internal/panics"
)

// Phase says what a harness is doing.
type Phase string

// The phases. Operations on the structure of a session need PhaseIdle.
const (
	PhaseIdle          Phase = "idle"
	PhaseTurn          Phase = "turn"
	PhaseCompaction    Phase = "compaction"
	PhaseBranchSummary Phase = "branch_summary"
	PhaseRetry         Phase = "retry" // the wait before a request is repeated
)

// Phase is what the harness is doing now.
func (h *Harness) Phase() Phase {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run == nil {
		return PhaseIdle
	}
	return h.run.phase
}

// enter puts r into another phase; leave puts it back.
func (h *Harness) enter(r *run, p Phase) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := r.phase
	r.phase = p
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		r.phase = before
	}
}

// busy refuses op because of what the harness does; h.mu is held.
func (h *Harness) busy(op string) error {
	switch h.run.phase {
	case PhaseCompaction:
		return &Error{KindBusy, op, errors.New("the conversation is being compacted: wait for it, or abort it")}
	case PhaseBranchSummary:
		return &Error{KindBusy, op, errors.New("a branch is being summed up: wait for it, or abort it")}
	}
	return &Error{KindBusy, op, errors.New("a run is active: use Steer or FollowUp, or wait for it")}
}

// structural does an operation on the structure of the session. Until it has
// returned the harness is in phase p: prompts are refused as busy, what others
// record waits, and Abort ends the operation's context. Nothing settles
// afterwards. The error of do, wrapped, is the result.
//
// do runs in the goroutine of the caller, may emit events and append to the
// session with h.saving held.
func (h *Harness) structural(ctx context.Context, op string, p Phase, do func(ctx context.Context, r *run) error) (err error) {
	outer := ctx
	ctx, cancel := context.WithCancel(h.inside(ctx))
	defer cancel()
	r := &run{op: op, ctx: ctx, cancel: cancel, done: make(chan struct{}), phase: p, alone: true}
	if err := h.claim(outer, r); err != nil {
		return err
	}
	defer func() {
		if v := recover(); v != nil {
			err = &Error{KindUnknown, op, panics.Recovered("", v)}
		}
		err = first(err, h.rest(r))
		// As in settle: who asked has some patience with hooks.
		stop := context.AfterFunc(outer, func() {
			time.AfterFunc(h.grace(), func() {
				select {
				case <-r.done:
				default:
					h.hasten()
				}
			})
		})
		h.deliver()
		stop()
		close(r.done)
	}()
	h.saving.Lock()
	if err = h.giveUp(); err == nil {
		err = h.flush(&h.turnWrites, &h.runWrites)
	}
	h.saving.Unlock()
	if err != nil {
		return &Error{KindSession, op, err}
	}
	return wrap(op, do(ctx, r))
}
