package compact

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pinch-agent/pinch/llm"
)

// What holds where the settings say nothing, in tokens.
const (
	DefaultReserveTokens    = 16384
	DefaultKeepRecentTokens = 20000
	DefaultWindow           = 128000 // of a model whose context window is not known
)

// Settings say when a conversation is compacted and what of it stays. The zero
// value works.
type Settings struct {
	Disabled         bool   // never by itself; on demand it still works
	ReserveTokens    *int64 // of the context window, for the next answer; nil for DefaultReserveTokens
	KeepRecentTokens *int64 // of the conversation's end that stay as they are, about; nil for DefaultKeepRecentTokens

	// Overrides are for single models, by provider/id. What one leaves out
	// comes from the fields above.
	Overrides map[string]Override
}

// Override is what Settings say for one model.
type Override struct {
	Enabled          *bool
	ReserveTokens    *int64
	KeepRecentTokens *int64
}

// Limits are the settings for one model, with everything filled in.
type Limits struct {
	Enabled          bool
	ReserveTokens    int64
	KeepRecentTokens int64
}

// For is what the settings say for a model, nil for any. Where they reserve all
// of its context window, half of it is reserved; where they keep all that is not
// reserved, half of that is kept: a compaction would leave no room otherwise.
func (s Settings) For(m *llm.Model) Limits {
	var o Override
	if m != nil {
		o = s.Overrides[m.Ref()]
	}
	l := Limits{
		Enabled:          first(!s.Disabled, o.Enabled),
		ReserveTokens:    first(DefaultReserveTokens, o.ReserveTokens, s.ReserveTokens),
		KeepRecentTokens: first(DefaultKeepRecentTokens, o.KeepRecentTokens, s.KeepRecentTokens),
	}
	if m != nil && m.ContextWindow > 0 {
		window := int64(m.ContextWindow)
		if l.ReserveTokens >= window {
			l.ReserveTokens = window / 2
		}
		if room := window - l.ReserveTokens; l.KeepRecentTokens >= room {
			l.KeepRecentTokens = room / 2
		}
	}
	return l
}

// first is the first value that is given.
func first[T any](otherwise T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return otherwise
}

// Validate refuses numbers below zero with an *Error of kind InvalidSettings
// that names the first of them.
func (s Settings) Validate() error {
	check := func(name string, v *int64) error {
		if v == nil || *v >= 0 {
			return nil
		}
		return &Error{
			Kind: InvalidSettings, Op: "check compaction settings",
			Err:    fmt.Errorf("%s is %d", name, *v),
			Advice: "give a whole number of tokens, 0 or more",
		}
	}
	err := check("reserveTokens", s.ReserveTokens)
	if err == nil {
		err = check("keepRecentTokens", s.KeepRecentTokens)
	}
	for _, ref := range slices.Sorted(maps.Keys(s.Overrides)) {
		if err == nil {
			err = check("modelOverrides."+ref+".reserveTokens", s.Overrides[ref].ReserveTokens)
		}
		if err == nil {
			err = check("modelOverrides."+ref+".keepRecentTokens", s.Overrides[ref].KeepRecentTokens)
		}
	}
	return err
}

// Should reports whether a context of so many tokens leaves less room in the
// window than is reserved. It is false when compaction is off.
func Should(tokens, window int64, l Limits) bool {
	return l.Enabled && tokens > window-l.ReserveTokens
}
