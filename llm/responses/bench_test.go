package responses

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// answers is an HTTP client that answers each request with the next body.
func answers(bodies ...io.Reader) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if len(bodies) == 0 {
			return nil, fmt.Errorf("unexpected request to %s", r.URL)
		}
		body := bodies[0]
		bodies = bodies[1:]
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(body), Request: r,
		}, nil
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// repeated is a body that sends one event again and again behind a beginning.
type repeated struct {
	first string
	event []byte
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.first != "" {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.event[r.at:])
		n += c
		r.at = (r.at + c) % len(r.event)
	}
	return n, nil
}

func testModel() *llm.Model {
	return &llm.Model{
		ID: "m-1", API: ID, Provider: "openai", BaseURL: "http://service.test/v1", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
		Cost: llm.Rates{Input: 1, Output: 4, CacheRead: 0.1},
	}
}

func event(data string) string { return "event: x\ndata: " + data + "\n\n" }

func added(item string) string {
	return event(`{"type":"response.output_item.added","sequence_number":3,"output_index":0,"item":` + item + `}`)
}

// deltas is events of the kinds that make up long answers, with what comes
// before them.
func deltas() map[string]*repeated {
	delta := func(first, typ, text string) *repeated {
		return &repeated{first: first, event: []byte(event(`{"type":"response.` + typ + `.delta","sequence_number":412,` +
			`"item_id":"msg_68a1f0c2d3e481908d0b6c1f2a3b4c5d0123456789abcdef","output_index":0,"content_index":0,"delta":"` + text +
			`","logprobs":[],"obfuscation":"kT3vQz81mPaX"}`))}
	}
	return map[string]*repeated{
		"text":      delta(added(`{"type":"message","id":"msg_1"}`), "output_text", ` the tide turns at \"noon\"`),
		"reasoning": delta(added(`{"type":"reasoning","id":"rs_1","summary":[]}`), "reasoning_summary_text", ` the tide turns at noon`),
		"tool": delta(added(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"write","arguments":""}`),
			"function_call_arguments", `\\n the tide`),
		"grammar": delta(added(`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"patch","input":""}`),
			"custom_tool_call_input", `\n+ the \"tide\"`),
	}
}

func quiet(client *http.Client) Config {
	return Config{Client: client, Getenv: func(string) string { return "" }}
}

func openRepeated(tb testing.TB, body *repeated) *llm.Stream {
	tb.Helper()
	s, err := New(quiet(answers(body))).Stream(context.Background(), testModel(), &llm.Request{
		Messages: []llm.Message{llm.UserText("When?", 1)}, Options: llm.Options{APIKey: "sk-k"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func nextDelta(tb testing.TB, s *llm.Stream) {
	for {
		ev, ok := s.Next()
		if !ok || ev.Type == llm.EventError {
			tb.Fatalf("the stream ended: %+v", ev.Message)
		}
		if strings.HasSuffix(ev.Type.String(), "_delta") {
			return
		}
	}
}

func BenchmarkResponsesDelta(b *testing.B) {
	for name, body := range deltas() {
		b.Run(name, func(b *testing.B) {
			s := openRepeated(b, body)
			defer s.Close()
			nextDelta(b, s)
			b.ReportAllocs()
			for b.Loop() {
				nextDelta(b, s)
			}
		})
	}
}

// A delta allocates nothing; only the text of the answer grows.
func TestDeltaAllocatesNothing(t *testing.T) {
	const n = 20_000
	for name, body := range deltas() {
		s := openRepeated(t, body)
		for range 10 {
			nextDelta(t, s)
		}
		allocs := testing.AllocsPerRun(1, func() {
			for range n {
				nextDelta(t, s)
			}
		})
		// Doubling buffers: a handful of allocations for any length.
		if allocs > 100 {
			t.Errorf("%s: %v allocations for %d deltas", name, allocs, n)
		}
		s.Close()
	}
}
