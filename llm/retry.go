package llm

import "time"

// Retry says how failed requests are repeated. Only failures that pass by
// themselves are: overload, rate limits, broken connections; not a used-up
// quota, a wrong key or a prompt that does not fit.
type Retry struct {
	Disabled   bool
	MaxRetries int           // 0 for 3
	BaseDelay  time.Duration // before the first retry, doubled for each further one; 0 for 2 s
	MaxDelay   time.Duration // 0 for a minute
}

// Max is the number of retries.
func (r Retry) Max() int {
	switch {
	case r.Disabled:
		return 0
	case r.MaxRetries == 0:
		return 3
	}
	return r.MaxRetries
}

// Delay is the wait before retry n, counted from 1.
func (r Retry) Delay(n int) time.Duration {
	base := r.BaseDelay
	if base <= 0 {
		base = 2 * time.Second
	}
	return RetryDelay(base, r.MaxDelay, n)
}

// Repeats reports whether the answer m, after so many retries, is worth a
// further one: a passing failure that is no overflow of a context window of so
// many tokens, 0 for unknown.
func (r Retry) Repeats(m *Assistant, window, retries int) bool {
	return m != nil && retries < r.Max() && m.StopReason == StopError &&
		!IsContextOverflow(m, window) && IsRetryable(m)
}
