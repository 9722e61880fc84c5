package mistral

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
		ID: "m-1", API: ID, Provider: "mistral", BaseURL: "http://service.test", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
		Cost: llm.Rates{Input: 1, Output: 4, CacheRead: 0.1},
	}
}

// deltas is chunks of the kinds that make up long answers.
func deltas() map[string]string {
	chunk := func(delta string) string {
		return `data: {"id":"7e0f5e1c2b","object":"chat.completion.chunk","created":1750000000,"model":"m-1",` +
			`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}],"p":"abcdefghijklm"}` + "\n\n"
	}
	return map[string]string{
		"text":     chunk(`{"content":" the tide turns at \"noon\""}`),
		"parts":    chunk(`{"content":[{"type":"text","text":" the tide turns at noon"}]}`),
		"thinking": chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":" the tide turns at noon"}]}]}`),
		"tool":     chunk(`{"tool_calls":[{"id":"abcdefghi","function":{"name":"write","arguments":"\\n the tide"},"index":0}]}`),
	}
}

func openRepeated(tb testing.TB, chunk string) *llm.Stream {
	tb.Helper()
	api := New(Config{Client: answers(&repeated{chunk: []byte(chunk)}), Getenv: noEnv})
	s, err := api.Stream(context.Background(), testModel(), hello())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func noEnv(string) string { return "" }

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

func BenchmarkMistralDelta(b *testing.B) {
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

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			build := turn(b, turns)
			build()
			b.ReportAllocs()
			for b.Loop() {
				build()
			}
		})
	}
}

// turn builds the body of one turn of a conversation again and again.
func turn(tb testing.TB, turns int) func() {
	m := testModel()
	all := conversation(m, turns)
	a := New(Config{Getenv: noEnv})
	memo := &llm.Memo{}
	return func() {
		if _, err := a.exchange(m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}}).body(); err != nil {
			tb.Fatal(err)
		}
	}
}
