package llm

import (
	"math"
	"time"
)

// Prompt caches forget what is not used for some minutes, and filling one anew
// costs more than reading it. A host that expects another request can keep a
// cache warm: it repeats the last request with WarmingOptions before the cache
// is forgotten. The functions here decide when and whether; the host has the
// clock, and the last request.

// How long a host goes on warming a cache at most: while an agent works, and
// after it has stopped, when nobody may come back.
const (
	WarmWorking = 60 * time.Minute
	WarmIdle    = 30 * time.Minute
)

// WarmingMargin is how much earlier than a cache is forgotten it is refreshed at
// the latest, for the time that the request takes.
const WarmingMargin = 10 * time.Second

// WarmingDelay is how long after a request its prompt is to be refreshed in a
// cache that keeps prompts for lifetime, in whole milliseconds. ok is false
// when the time is too short to do so.
func WarmingDelay(lifetime time.Duration) (delay time.Duration, ok bool) {
	if lifetime <= WarmingMargin {
		return 0, false
	}
	const nine = 0.9
	ms := float64(lifetime) / float64(time.Millisecond)
	ms = min(nine*ms, ms-float64(WarmingMargin/time.Millisecond))
	return time.Duration(math.Floor(ms)) * time.Millisecond, true
}

// Lifetime is how long a provider keeps a prompt at a cache retention, short or
// long; 0 when it keeps none, or nobody knows. A nil PromptCache keeps none.
func (c *PromptCache) Lifetime(retention string) time.Duration {
	if c == nil {
		return 0
	}
	switch retention {
	case "short":
		return time.Duration(c.Short * float64(time.Second))
	case "long":
		return time.Duration(c.Long * float64(time.Second))
	}
	return 0
}

// Warming is the decision about one refresh, with what it was made of. All
// costs are in US dollars.
type Warming struct {
	WarmCost     float64 // of the refresh
	MissCost     float64 // what the next request costs more when the cache is cold
	Continuation float64 // probability that there is a next request
	Warm         bool    // whether the refresh is worth it
}

// Saving is what a refresh saves on average.
func (w *Warming) Saving() float64 {
	return float64(w.Continuation*w.MissCost) - w.WarmCost
}

const (
	minSaving        = 0.05 // US dollars; below it the traffic is not worth it
	continuationIdle = 0.15 // how many agents that have stopped are asked again in time
)

// DecideWarming decides whether to refresh a cached prompt of a model. last is
// the usage of its last request, whose whole input is in the cache now; working
// tells that the agent is still at it, so that another request is certain.
func DecideWarming(m *Model, last *Usage, working bool) Warming {
	prompt := last.Input + last.CacheRead + last.CacheWrite
	w := Warming{Continuation: continuationIdle}
	if working {
		w.Continuation = 1
	}
	price := func(u Usage) float64 {
		c := m.Cost.Price(&u)
		return c.Total
	}
	warm := price(Usage{CacheRead: prompt})
	w.WarmCost = price(Usage{CacheRead: prompt, Output: 1})
	cold := Usage{Input: prompt}
	if m.Cost.CacheWrite > 0 {
		// A provider that charges for filling the cache charges for that in
		// place of the input; filling it for an hour costs more.
		cold = Usage{CacheWrite: prompt}
		if last.CacheWrite1h != nil && *last.CacheWrite1h > 0 {
			cold.CacheWrite1h = &prompt
		}
	}
	w.MissCost = max(0, price(cold)-warm)
	w.Warm = w.Saving() >= minSaving
	return w
}

// WarmingOptions are the options of a refresh: those of the request that it
// repeats, for an answer of one token that is not to be waited for twice and
// leaves no trace in a conversation that the service keeps.
//
// A model that thinks within a budget of tokens cannot be asked so briefly, as
// the limit of an answer must be above the budget (see transcript.FitBudget).
func WarmingOptions(o Options) Options {
	o.MaxTokens = 1
	o.DisableContinuation = true
	o.MaxRetries = 0
	return o
}
