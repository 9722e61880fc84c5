package harness

import (
	"context"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Retry says how failed requests are repeated.
type Retry = llm.Retry

// SetAutoRetry says whether failed requests are repeated, from the next failure
// on.
func (h *Harness) SetAutoRetry(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opts.Retry.Disabled = !on
}

func (h *Harness) repeats() Retry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opts.Retry
}

func (h *Harness) willRetry(r *run) bool {
	return r.ctx.Err() == nil && r.broken == nil && !h.faulted(r) && h.repeats().Repeats(r.last, r.answers(h).ContextWindow, r.attempt)
}

// faulted reports whether a hook failed while the last answer arrived: that is
// no failure of the model's that could pass.
func (h *Harness) faulted(r *run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.hookFault != nil
}

// retry hides the failed answer, waits, and reports whether to ask again.
func (h *Harness) retry(r *run) (bool, error) {
	if !h.willRetry(r) {
		if r.attempt > 0 && r.last != nil && r.last.StopReason == llm.StopError {
			return false, h.endRetries(r.ctx, r, false, r.last.ErrorMessage)
		}
		return false, nil
	}
	defer h.enter(r, PhaseRetry)()
	r.attempt++
	delay := h.repeats().Delay(r.attempt)
	wait, stop := context.WithCancel(r.ctx)
	defer stop()
	h.mu.Lock()
	r.stopWait, r.gaveUp = stop, false
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		r.stopWait = nil
	}()
	err := h.emit(r.ctx, &Event{
		Event:   agent.Event{Type: AutoRetryStart},
		Attempt: r.attempt, MaxAttempts: h.repeats().Max(),
		DelayMs:      delay.Milliseconds(),
		ErrorMessage: r.last.ErrorMessage,
	})
	if err = first(err, h.edit(r, &session.ContextEditEntry{TargetID: r.lastID})); err != nil {
		return false, err
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wait.Done():
	}
	h.mu.Lock()
	r.stopWait = nil
	cancelled := r.gaveUp || r.ctx.Err() != nil
	h.mu.Unlock()
	if cancelled {
		return false, h.endRetries(r.ctx, r, false, "Retry cancelled")
	}
	return true, nil
}

// endRetries tells how the retries ended.
func (h *Harness) endRetries(ctx context.Context, r *run, success bool, final string) error {
	n := r.attempt
	r.attempt = 0
	return h.emit(ctx, &Event{
		Event: agent.Event{Type: AutoRetryEnd}, Success: success, Attempt: n, FinalError: final,
	})
}
