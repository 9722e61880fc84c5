package llm

import (
	"math"
	"testing"
	"time"
)

func TestWarmingDelay(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		-time.Second:              -1,
		0:                         -1,
		10 * time.Second:          -1,
		10*time.Second + 1:        0,
		11 * time.Second:          time.Second,
		time.Minute:               50 * time.Second,
		100 * time.Second:         90 * time.Second,
		5 * time.Minute:           270 * time.Second,
		time.Hour:                 54 * time.Minute,
		200*time.Second + 1_500e3: 180*time.Second + time.Millisecond,
	} {
		got, ok := WarmingDelay(lifetime)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%v: got %v %v, want %v", lifetime, got, ok, want)
		}
	}
}

func TestLifetime(t *testing.T) {
	c := &PromptCache{Short: 300, Long: 3600.5}
	for retention, want := range map[string]time.Duration{"short": 5 * time.Minute, "long": time.Hour + 500*time.Millisecond, "none": 0, "": 0} {
		if got := c.Lifetime(retention); got != want {
			t.Errorf("%s: %v", retention, got)
		}
		if got := (*PromptCache)(nil).Lifetime(retention); got != 0 {
			t.Errorf("without a cache, %s: %v", retention, got)
		}
	}
}

func TestDecideWarming(t *testing.T) {
	claude := &Model{Cost: Rates{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
	gpt := &Model{Cost: Rates{Input: 3, Output: 15, CacheRead: 0.3}}
	tiered := &Model{Cost: Rates{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75,
		Tiers: []RateTier{{InputTokensAbove: 200_000, Input: 6, Output: 22.5, CacheRead: 0.6, CacheWrite: 7.5}}}}
	free := &Model{}
	for name, c := range map[string]struct {
		m          *Model
		last       Usage
		working    bool
		warm, miss float64 // US dollars
		want       bool
	}{
		"long prompt at work":  {claude, Usage{Input: 1000, CacheRead: 98_000, CacheWrite: 1000}, true, 0.030015, 0.345, true},
		"long prompt idle":     {claude, Usage{Input: 100_000}, false, 0.030015, 0.345, false},
		"longer prompt idle":   {claude, Usage{Input: 300_000}, false, 0.090015, 1.035, true},
		"short prompt at work": {claude, Usage{Input: 10_000}, true, 0.003015, 0.0345, false},
		"just worth it":        {claude, Usage{Input: 15_878}, true, 0.0047784, 0.0547791, true},
		"just not":             {claude, Usage{Input: 15_877}, true, 0.0047781, 0.05477565, false},
		"kept for an hour":     {claude, Usage{CacheWrite: 100_000, CacheWrite1h: new(int64(100_000))}, true, 0.030015, 0.57, true},
		"no price of filling":  {gpt, Usage{Input: 100_000}, true, 0.030015, 0.27, true},
		"tier of long prompts": {tiered, Usage{CacheRead: 300_000}, false, 0.1800225, 2.07, true},
		"nothing costs":        {free, Usage{Input: 1_000_000}, true, 0, 0, false},
		"output is not input":  {claude, Usage{Output: 100_000}, true, 0.000015, 0, false},
	} {
		w := DecideWarming(c.m, &c.last, c.working)
		if math.Abs(w.WarmCost-c.warm) > 1e-9 || math.Abs(w.MissCost-c.miss) > 1e-9 || w.Warm != c.want {
			t.Errorf("%s: got %+v (saving %v), want %v %v %v", name, w, w.Saving(), c.warm, c.miss, c.want)
		}
		if p := map[bool]float64{true: 1, false: 0.15}[c.working]; w.Continuation != p {
			t.Errorf("%s: continuation %v", name, w.Continuation)
		}
	}
}

func TestWarmingOptions(t *testing.T) {
	o := Options{APIKey: "k", MaxTokens: 900, MaxRetries: 3, SessionID: "s", Reasoning: LevelHigh}
	got := WarmingOptions(o)
	if got.MaxTokens != 1 || !got.DisableContinuation || got.MaxRetries != 0 {
		t.Errorf("%+v", got)
	}
	if got.APIKey != "k" || got.SessionID != "s" || got.Reasoning != LevelHigh || o.MaxTokens != 900 {
		t.Errorf("the rest of the options: %+v, %+v", got, o)
	}
}
