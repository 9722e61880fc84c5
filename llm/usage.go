package llm

import "math"

// Usage counts the tokens of one answer.
type Usage struct {
	Input        int64 // without cached tokens
	Output       int64
	CacheRead    int64
	CacheWrite   int64
	CacheWrite1h *int64 // part of CacheWrite kept for an hour; nil when not reported
	Reasoning    *int64 // part of Output; nil when not reported
	TotalTokens  int64
	Cost         Cost
	Extra        []Member
}

// Cost is the price of a Usage in US dollars.
type Cost struct {
	Input      float64
	Output     float64
	CacheRead  float64
	CacheWrite float64
	Total      float64
	// TotalFromProvider is true when Total is what the provider billed, false
	// when it was computed from Rates, nil when nothing was computed.
	TotalFromProvider *bool
	Extra             []Member
}

// Context is the number of tokens that the request and its answer took of the
// context window.
func (u *Usage) Context() int64 {
	if u.TotalTokens != 0 {
		return u.TotalTokens
	}
	return sum(u.Input, u.Output, u.CacheRead, u.CacheWrite)
}

// sum adds counts, which a service may make as large as it likes: one that is
// too large for an int64 is the largest there is, not a negative one.
func sum(counts ...int64) (n int64) {
	for _, c := range counts {
		if c > 0 && n > math.MaxInt64-c {
			return math.MaxInt64
		}
		n += c
	}
	return n
}

// Price computes the cost of u at r. The products are rounded one by one, as
// recorded sessions hold sums of rounded doubles.
func (r *Rates) Price(u *Usage) Cost {
	in, out, read, write := r.Input, r.Output, r.CacheRead, r.CacheWrite
	n := u.Input + u.CacheRead + u.CacheWrite
	above := int64(-1)
	for i := range r.Tiers {
		if t := &r.Tiers[i]; t.InputTokensAbove < n && t.InputTokensAbove > above {
			above = t.InputTokensAbove
			in, out, read, write = t.Input, t.Output, t.CacheRead, t.CacheWrite
		}
	}
	var hour int64
	if u.CacheWrite1h != nil {
		hour = *u.CacheWrite1h
	}
	c := Cost{
		Input:     float64(in / 1000000 * float64(u.Input)),
		Output:    float64(out / 1000000 * float64(u.Output)),
		CacheRead: float64(read / 1000000 * float64(u.CacheRead)),
		CacheWrite: float64(float64(write*float64(u.CacheWrite-hour))+
			float64(float64(in*2)*float64(hour))) / 1000000,
		TotalFromProvider: new(false),
	}
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	return c
}
