package wire

import (
	"math"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Bill is what OpenRouter says in its usage objects about the price of an
// answer, whatever the wire format.
type Bill struct {
	cost               amount
	byok, hasBYOK      bool // the caller's key at the provider was used
	hasDetails         bool
	upstream           amount
	upstreamPrompt     amount
	upstreamOutput     amount
	upstreamUnreadable bool // neither a number nor null
}

// amount is an amount of money; negative ones, and those beyond a float, are none.
type amount struct {
	dollars float64
	ok      bool
}

// Take reads the member key of a usage object. It reports false, and has read
// nothing, when the member says nothing about the price.
func (b *Bill) Take(key []byte, r *jsonwire.Reader) bool {
	switch string(key) {
	case "cost":
		b.cost = readAmount(r)
	case "is_byok":
		k := r.Kind()
		b.hasBYOK = k == 't' || k == 'f'
		b.byok = r.Bool()
	case "cost_details":
		b.hasDetails = r.Kind() == '{'
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "upstream_inference_cost":
				if r.Null() {
					continue
				}
				b.upstream = readAmount(r)
				b.upstreamUnreadable = !b.upstream.ok
			case "upstream_inference_prompt_cost":
				b.upstreamPrompt = readAmount(r)
			case "upstream_inference_completions_cost":
				b.upstreamOutput = readAmount(r)
			default:
				r.Skip()
			}
		}
	default:
		return false
	}
	return true
}

func readAmount(r *jsonwire.Reader) amount {
	if r.Kind() != '0' {
		r.Skip()
		return amount{}
	}
	f := r.Float()
	return amount{f, f >= 0 && !math.IsInf(f, 0)}
}

// Apply puts what was charged in the place of the estimated total, for models
// that OpenRouter serves and bills that are complete.
func (b *Bill) Apply(m *llm.Model, u *llm.Usage) {
	if !IsOpenRouter(m) {
		return
	}
	if total, ok := b.total(); ok {
		u.Cost.Total = total
		u.Cost.TotalFromProvider = new(true)
	}
}

// total is OpenRouter's own price, and with the caller's key at the provider
// also the provider's. ok is false when a part is missing.
func (b *Bill) total() (dollars float64, ok bool) {
	switch {
	case !b.cost.ok || !b.hasBYOK:
		return 0, false
	case !b.byok:
		return b.cost.dollars, true
	case !b.hasDetails || b.upstreamUnreadable:
		return 0, false
	case b.upstream.ok:
		return b.cost.dollars + b.upstream.dollars, true
	case b.upstreamPrompt.ok && b.upstreamOutput.ok:
		return b.cost.dollars + (b.upstreamPrompt.dollars + b.upstreamOutput.dollars), true
	default:
		return 0, false
	}
}
