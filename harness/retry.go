package harness

import (
	"context"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// Retry says how failed requests are repeated. Only failures that pass by
// themselves are: overload, rate limits, broken connections; not a used-up
// quota, a wrong key or a prompt that does not fit.
type Retry struct {
	Disabled   bool
	MaxRetries int           // 0 for 3
	BaseDelay  time.Duration // before the first retry, doubled for each further one; 0 for 2 s
	MaxDelay   time.Duration // 0 for a minute
}

func (r Retry) max() int {
	switch {
	case r.Disabled:
		return 0
	case r.MaxRetries == 0:
		return 3
	}
	return r.MaxRetries
}

// delay is the wait before retry n, counted from 1.
func (r Retry) delay(n int) time.Duration {
	base := r.BaseDelay
	if base <= 0 {
		base = 2 * time.Second
	}
	return llm.RetryDelay(base, r.MaxDelay, n)
}

// repeats reports whether the answer m, after attempts retries, is worth a
// further one: a passing failure that is no overflow of the context.
func (r Retry) repeats(m *llm.Assistant, window, attempts int) bool {
	return m != nil && attempts < r.max() && m.StopReason == llm.StopError &&
		!llm.IsContextOverflow(m, window) && llm.IsRetryable(m)
}

func (h *Harness) willRetry(r *run) bool {
	return r.ctx.Err() == nil && r.broken == nil && h.opts.Retry.repeats(r.last, r.answers(h).ContextWindow, r.attempt)
}

// retry hides the failed answer, waits, and reports whether to ask again.
func (h *Harness) retry(r *run) (bool, error) {
	if !h.willRetry(r) {
		if r.attempt > 0 && r.last != nil && r.last.StopReason == llm.StopError {
			return false, h.endRetries(r.ctx, r, false, r.last.ErrorMessage)
		}
		return false, nil
	}
	r.attempt++
	delay := h.opts.Retry.delay(r.attempt)
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
		Attempt: r.attempt, MaxAttempts: h.opts.Retry.max(),
		DelayMs:      delay.Milliseconds(),
		ErrorMessage: r.last.ErrorMessage,
	})
	if err = first(err, h.hide(r)); err != nil {
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
