package pimessages

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

// repeated is a body that begins with a start and then sends one event again
// and again.
type repeated struct {
	start, event []byte
	at           int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.start)
	r.start = r.start[n:]
	for n < len(p) {
		c := copy(p[n:], r.event[r.at:])
		n += c
		r.at = (r.at + c) % len(r.event)
	}
	return n, nil
}

func testModel() *llm.Model {
	return &llm.Model{
		ID: "m-1", API: ID, Provider: "radius", BaseURL: "http://backend.test/v1", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
	}
}

func noEnv(string) string { return "" }

func openRepeated(tb testing.TB, kind string) *llm.Stream {
	tb.Helper()
	event := fmt.Sprintf(`{"type":"%s_delta","contentIndex":0,"delta":" the tide turns at \"noon\""}`, kind)
	body := &repeated{start: []byte(sse(`{"type":"start"}`, start(kind, 0))), event: []byte(sse(event))}
	s, err := New(Config{Client: answers(body), Getenv: noEnv}).Stream(context.Background(), testModel(), hello())
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

func BenchmarkPiMessagesDelta(b *testing.B) {
	for _, kind := range []string{"text", "thinking", "toolcall"} {
		b.Run(kind, func(b *testing.B) {
			s := openRepeated(b, kind)
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
	for _, kind := range []string{"text", "thinking", "toolcall"} {
		s := openRepeated(t, kind)
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
			t.Errorf("%s: %v allocations for %d deltas", kind, allocs, n)
		}
		s.Close()
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			build := turn(turns)
			build()
			b.ReportAllocs()
			for b.Loop() {
				build()
			}
		})
	}
}

// turn builds the body of one turn of a conversation again and again. The
// leading message is made anew for each, as callers do.
func turn(turns int) func() {
	prompt, tools, history := conversation(turns)
	memo := &llm.Memo{}
	a := New(Config{Getenv: noEnv})
	return func() {
		req := &llm.Request{Messages: llm.Fold(prompt, tools, history), Options: llm.Options{APIKey: "k", Memo: memo}}
		(&exchange{host: a.host, model: testModel(), req: req}).body()
	}
}
