package completions

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// wireUsage is a usage object of the protocol or of one of its dialects. The
// has fields tell zero from absent, as a present zero wins over a dialect's field.
type wireUsage struct {
	prompt, completion int64
	detailCached       int64
	hasDetailCached    bool
	hitTokens          int64
	hasHitTokens       bool
	cached             int64
	detailCacheWrite   int64
	detailReasoning    int64
	reasoning          int64
	cost               float64
	hasCost            bool
	byok, hasBYOK      bool
	hasCostDetails     bool
	upstream           float64
	hasUpstream        bool
	upstreamPrompt     float64
	hasUpstreamPrompt  bool
	upstreamOutput     float64
	hasUpstreamOutput  bool
	upstreamUnreadable bool // neither a number nor null
}

// readUsage reads a usage object.
func readUsage(r *jsonwire.Reader) wireUsage {
	var u wireUsage
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "prompt_tokens":
			u.prompt = r.Int()
		case "completion_tokens":
			u.completion = r.Int()
		case "prompt_cache_hit_tokens":
			u.hitTokens, u.hasHitTokens = count(r)
		case "cached_tokens":
			u.cached, _ = count(r)
		case "reasoning_tokens":
			u.reasoning = r.Int()
		case "prompt_tokens_details":
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "cached_tokens":
					u.detailCached, u.hasDetailCached = count(r)
				case "cache_write_tokens":
					u.detailCacheWrite = r.Int()
				default:
					r.Skip()
				}
			}
		case "completion_tokens_details":
			for r.Object(); r.More(); {
				if string(r.Key()) == "reasoning_tokens" {
					u.detailReasoning = r.Int()
				} else {
					r.Skip()
				}
			}
		case "cost":
			u.cost, u.hasCost = price(r)
		case "is_byok":
			k := r.Kind()
			u.hasBYOK = k == 't' || k == 'f'
			u.byok = r.Bool()
		case "cost_details":
			u.hasCostDetails = r.Kind() == '{'
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "upstream_inference_cost":
					if r.Null() {
						continue
					}
					u.upstream, u.hasUpstream = price(r)
					u.upstreamUnreadable = !u.hasUpstream
				case "upstream_inference_prompt_cost":
					u.upstreamPrompt, u.hasUpstreamPrompt = price(r)
				case "upstream_inference_completions_cost":
					u.upstreamOutput, u.hasUpstreamOutput = price(r)
				default:
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	return u
}

func count(r *jsonwire.Reader) (int64, bool) {
	if r.Kind() != '0' {
		r.Skip()
		return 0, false
	}
	return r.Int(), true
}

// price reads an amount of money; negative ones don't count.
func price(r *jsonwire.Reader) (float64, bool) {
	if r.Kind() != '0' {
		r.Skip()
		return 0, false
	}
	f := r.Float()
	return f, f >= 0
}

// usage converts u and prices it for m.
func (u *wireUsage) usage(m *llm.Model) llm.Usage {
	read := u.cached
	if u.hasHitTokens {
		read = u.hitTokens
	}
	if u.hasDetailCached {
		read = u.detailCached
	}
	reasoning := u.detailReasoning
	if reasoning == 0 {
		reasoning = u.reasoning
	}
	out := llm.Usage{
		Input:      max(0, u.prompt-read-u.detailCacheWrite),
		Output:     u.completion,
		CacheRead:  read,
		CacheWrite: u.detailCacheWrite,
		Reasoning:  new(reasoning),
	}
	out.TotalTokens = out.Input + out.Output + out.CacheRead + out.CacheWrite
	out.Cost = m.Cost.Price(&out)
	if wire.IsOpenRouter(m) {
		if billed, ok := u.billed(); ok {
			out.Cost.Total = billed
			out.Cost.TotalFromProvider = new(true)
		}
	}
	return out
}

// billed is what OpenRouter charged: its own price, and with the caller's key
// at the provider also the provider's. ok is false when a part is missing.
func (u *wireUsage) billed() (total float64, ok bool) {
	switch {
	case !u.hasCost || !u.hasBYOK:
		return 0, false
	case !u.byok:
		return u.cost, true
	case !u.hasCostDetails || u.upstreamUnreadable:
		return 0, false
	case u.hasUpstream:
		return u.cost + u.upstream, true
	case u.hasUpstreamPrompt && u.hasUpstreamOutput:
		return u.cost + (u.upstreamPrompt + u.upstreamOutput), true
	default:
		return 0, false
	}
}
