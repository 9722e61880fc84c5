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
	bill               wire.Bill
}

// readUsage reads a usage object.
func readUsage(r *jsonwire.Reader) wireUsage {
	var u wireUsage
	for r.Object(); r.More(); {
		key := r.Key()
		if u.bill.Take(key, r) {
			continue
		}
		switch string(key) {
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
	u.bill.Apply(m, &out)
	return out
}
