package google

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// wireUsage is the token counts of the service. Thoughts are counted beside the
// answer, cached tokens inside the prompt.
type wireUsage struct {
	prompt, cached, candidates, thoughts, total int64
}

func readUsage(r *jsonwire.Reader) (u wireUsage) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "promptTokenCount":
			u.prompt = r.Int()
		case "cachedContentTokenCount":
			u.cached = r.Int()
		case "candidatesTokenCount":
			u.candidates = r.Int()
		case "thoughtsTokenCount":
			u.thoughts = r.Int()
		case "totalTokenCount":
			u.total = r.Int()
		default:
			r.Skip()
		}
	}
	return u
}

// report puts what is counted into a usage. The service repeats its counts with
// each chunk, so what would allocate waits for price.
func (u *wireUsage) report(out *llm.Usage) {
	out.Input = max(0, u.prompt-u.cached)
	out.Output = u.candidates + u.thoughts
	out.CacheRead = u.cached
	out.TotalTokens = u.total
}

// price completes a usage at the end of an answer.
func (u *wireUsage) price(out *llm.Usage, m *llm.Model) {
	out.Reasoning = new(u.thoughts)
	out.Cost = m.Cost.Price(out)
}
