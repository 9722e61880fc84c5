package bench

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
	"github.com/pinch-agent/pinch/session/jsonl"
)

var long = flag.Bool("long", false, "run the long proofs")

// counting is a wire format that makes no requests: it encodes what an item has
// no encoded form of, and counts.
type counting struct {
	answer  func() *llm.Assistant
	asked   func()
	encoded int64 // bytes that were encoded, of all requests
	body    int64 // bytes of the last request
}

func (c *counting) stream(_ context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	t := transcript.HistoryOf[[]byte](req.Options.Memo, m.Ref()).Build(req.Messages, &transcript.Rules{Model: m})
	c.body = 0
	for i := range t.Items {
		it := &t.Items[i]
		if it.Wire == nil {
			it.Wire = it.Message.AppendJSON(nil)
			c.encoded += int64(len(it.Wire))
		}
		c.body += int64(len(it.Wire))
	}
	t.Done()
	c.asked()
	return llm.NewStream(&said{m: c.answer()}), nil
}

// said streams an answer at once.
type said struct {
	m    *llm.Assistant
	done bool
}

func (s *said) Next() (llm.Event, bool) {
	if s.done {
		return llm.Event{}, false
	}
	s.done = true
	return llm.Event{Type: llm.EventDone, Message: s.m}, true
}

func (*said) Close() {}

// turnCost is what a turn took.
type turnCost struct{ mallocs, bytes, encoded int64 }

// A conversation of 10,000 turns (with -long; 1,500 otherwise) allocates and
// encodes as much in its last turns as in its first.
func TestTurnsCostTheSame(t *testing.T) {
	turns := 1_500
	if *long {
		turns = 10_000
	}
	const each = 10 // turns for a prompt
	sess, err := jsonl.Open(filepath.Join(t.TempDir(), "s.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	costs := make([]turnCost, 0, turns)
	var last runtime.MemStats
	var encoded int64
	c := &counting{}
	n := 0
	c.answer = func() *llm.Assistant {
		n++
		m := &llm.Assistant{Provider: "acme", API: "count", Model: "m", StopReason: llm.StopStop,
			Content: []llm.Block{&llm.Text{Text: "something that is said"}}}
		if n%each != 0 {
			m.StopReason = llm.StopToolUse
			m.Content = append(m.Content, &llm.ToolCall{ID: fmt.Sprintf("call_%06d", n), Name: "note", Arguments: jsontext.Value(`{"text":"a line"}`)})
		}
		return m
	}
	c.asked = func() {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		if last.Mallocs > 0 {
			costs = append(costs, turnCost{int64(now.Mallocs - last.Mallocs), int64(now.TotalAlloc - last.TotalAlloc), c.encoded - encoded})
		}
		encoded = c.encoded
		runtime.ReadMemStats(&last)
	}
	h, err := harness.New(harness.Options{
		Model:  &llm.Model{ID: "m", Provider: "acme", API: "count", Input: []string{"text"}, ContextWindow: 1 << 30, MaxTokens: 4096},
		Stream: c.stream, Session: sess, Tools: []*agent.Tool{note()}, SystemPrompt: "Take notes.",
	})
	if err != nil {
		t.Fatal(err)
	}
	for n < turns {
		m, err := h.Prompt(context.Background(), "go on")
		finished(t, m, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	// A prompt and its turns are one. The first prompt also makes what there is
	// one of; lists that are full get more room now and then, which the median
	// leaves out and the bound on the mean does not.
	var prompts []turnCost
	for i := each; i+each <= len(costs); i += each {
		var p turnCost
		for _, c := range costs[i : i+each] {
			p.mallocs, p.bytes, p.encoded = p.mallocs+c.mallocs, p.bytes+c.bytes, p.encoded+c.encoded
		}
		prompts = append(prompts, p)
	}
	window := len(prompts) / 10
	start, end := prompts[:window], prompts[len(prompts)-window:]
	for _, f := range []struct {
		what string
		of   func(turnCost) int64
	}{
		{"allocations", func(c turnCost) int64 { return c.mallocs }},
		{"bytes", func(c turnCost) int64 { return c.bytes }},
		{"encoded bytes", func(c turnCost) int64 { return c.encoded }},
	} {
		middle := func(list []turnCost) (typical, mean int64) {
			var all []int64
			for _, c := range list {
				all = append(all, f.of(c)/each)
				mean += f.of(c) / each
			}
			return median(all), mean / int64(len(list))
		}
		a, aMean := middle(start)
		b, bMean := middle(end)
		t.Logf("%s in a turn: %d (mean %d) in the first tenth, %d (mean %d) in the last of %d turns", f.what, a, aMean, b, bMean, turns)
		if a == 0 || b > a+a/10 || bMean > 2*aMean {
			t.Errorf("a turn takes %d %s at the end, mean %d; %d at the start, mean %d", b, f.what, bMean, a, aMean)
		}
	}
	if c.body < int64(turns)*200 {
		t.Errorf("a request of %d bytes after %d turns", c.body, turns)
	}
}
