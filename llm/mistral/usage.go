package mistral

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// The spellings under which the service and its libraries report how much of a
// prompt came from the cache. The first one that is there counts.
const (
	cachedCamelTokensDetails = iota // promptTokensDetails.cachedTokens
	cachedTokensDetails             // prompt_tokens_details.cached_tokens
	cachedCamelTokenDetails         // promptTokenDetails.cachedTokens
	cachedTokenDetails              // prompt_token_details.cached_tokens
	cachedCamelNumber               // numCachedTokens
	cachedNumber                    // num_cached_tokens
	cachedSpellings
)

// wireUsage is a usage object.
type wireUsage struct {
	prompt, completion, total int64
	cached                    [cachedSpellings]int64
	has                       [cachedSpellings]bool
}

func readUsage(r *jsonwire.Reader) wireUsage {
	var u wireUsage
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "prompt_tokens":
			u.prompt = r.Int()
		case "completion_tokens":
			u.completion = r.Int()
		case "total_tokens":
			u.total = r.Int()
		case "promptTokensDetails":
			u.readDetails(r, cachedCamelTokensDetails, "cachedTokens")
		case "prompt_tokens_details":
			u.readDetails(r, cachedTokensDetails, "cached_tokens")
		case "promptTokenDetails":
			u.readDetails(r, cachedCamelTokenDetails, "cachedTokens")
		case "prompt_token_details":
			u.readDetails(r, cachedTokenDetails, "cached_tokens")
		case "numCachedTokens":
			u.readCached(r, cachedCamelNumber)
		case "num_cached_tokens":
			u.readCached(r, cachedNumber)
		default:
			r.Skip()
		}
	}
	return u
}

func (u *wireUsage) readDetails(r *jsonwire.Reader, spelling int, name string) {
	for r.Object(); r.More(); {
		if string(r.Key()) == name {
			u.readCached(r, spelling)
		} else {
			r.Skip()
		}
	}
}

func (u *wireUsage) readCached(r *jsonwire.Reader, spelling int) {
	if r.Null() {
		return
	}
	u.has[spelling], u.cached[spelling] = true, r.Int()
}

// usage converts u and prices it for m. Services have reported more cached
// tokens than the prompt holds.
func (u *wireUsage) usage(m *llm.Model) llm.Usage {
	prompt := max(0, u.prompt)
	var read int64
	for i, has := range u.has {
		if has {
			read = min(prompt, max(0, u.cached[i]))
			break
		}
	}
	out := llm.Usage{Input: prompt - read, Output: max(0, u.completion), CacheRead: read, TotalTokens: u.total}
	if out.TotalTokens <= 0 {
		out.TotalTokens = out.Input + out.Output + out.CacheRead
	}
	out.Cost = m.Cost.Price(&out)
	return out
}
