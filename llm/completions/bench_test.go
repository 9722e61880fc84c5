package completions

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

// repeated is a body that sends one chunk again and again.
type repeated struct {
	chunk []byte
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.chunk[r.at:])
		n += c
		r.at = (r.at + c) % len(r.chunk)
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

// deltas is chunks of the kinds that make up long answers.
func deltas() map[string]string {
	chunk := func(delta string) string {
		return `data: {"id":"chatcmpl-9f2c","object":"chat.completion.chunk","created":1750000000,"model":"m-1",` +
			`"system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	}
	return map[string]string{
		"text":      chunk(`{"content":" the tide turns at \"noon\""}`),
		"reasoning": chunk(`{"role":"assistant","content":null,"reasoning_content":" the tide turns at noon"}`),
		"details": chunk(`{"role":"assistant","content":"","reasoning":" turns","reasoning_details":` +
			`[{"type":"reasoning.text","text":" turns","format":"f-1","index":0}]}`),
		"tool": chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"\\n the tide"}}]}`),
	}
}

func openRepeated(tb testing.TB, chunk string) *llm.Stream {
	tb.Helper()
	api := New(Config{Client: answers(&repeated{chunk: []byte(chunk)}), Getenv: func(string) string { return "" }})
	s, err := api.Stream(context.Background(), testModel(), &llm.Request{
		Messages: []llm.Message{llm.UserText("When?", 1)}, Options: llm.Options{APIKey: "k"},
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

func BenchmarkCompletionsDelta(b *testing.B) {
	for name, chunk := range deltas() {
		b.Run(name, func(b *testing.B) {
			s := openRepeated(b, chunk)
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
	for name, chunk := range deltas() {
		s := openRepeated(t, chunk)
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
