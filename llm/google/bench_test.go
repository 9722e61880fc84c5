package google

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// response is an answer of the service.
func response(r *http.Request, status int, contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), Request: r}
}

// answers is an HTTP client that answers each request with the next body.
func answers(bodies ...io.Reader) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if len(bodies) == 0 {
			return nil, fmt.Errorf("unexpected request to %s", r.URL)
		}
		body := bodies[0]
		bodies = bodies[1:]
		return response(r, http.StatusOK, "text/event-stream", body), nil
	})}
}

func noEnv(string) string { return "" }

func testModel(id string) *llm.Model {
	return &llm.Model{
		ID: id, API: ID, Provider: "google", BaseURL: "http://service.test/v1beta", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 1_000_000, MaxTokens: 60_000,
		Cost: llm.Rates{Input: 0.5, Output: 3, CacheRead: 0.05},
	}
}

// repeated is a body that sends two chunks again and again.
type repeated struct {
	chunks []byte
	at     int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.chunks[r.at:])
		n += c
		r.at = (r.at + c) % len(r.chunks)
	}
	return n, nil
}

// deltas is chunks of the kinds that make up long answers, with counts that
// change from one to the next, as the service sends them.
func deltas() map[string]string {
	chunk := func(part string, count int) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[%s],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":1834,"candidatesTokenCount":%d,"totalTokenCount":%d,"cachedContentTokenCount":1024,`+
			`"promptTokensDetails":[{"modality":"TEXT","tokenCount":1834}],"thoughtsTokenCount":%d},`+
			`"modelVersion":"gemini-2.5-pro","responseId":"Qm9fZ8TnJ6uxkdUP1d6a6Qk"}`+"\r\n\r\n", part, count, 1834+count, 2*count)
	}
	pair := func(part string) string { return chunk(part, 11) + chunk(part, 12) }
	return map[string]string{
		"text":    pair(`{"text":" the tide turns at \"noon\""}`),
		"thought": pair(`{"text":" the tide turns at noon","thought":true}`),
	}
}

func openRepeated(tb testing.TB, chunks string) *llm.Stream {
	tb.Helper()
	api := New(Config{Client: answers(&repeated{chunks: []byte(chunks)}), Getenv: noEnv})
	s, err := api.Stream(context.Background(), testModel("gemini-2.5-pro"), &llm.Request{
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

func BenchmarkGoogleDelta(b *testing.B) {
	for name, chunks := range deltas() {
		b.Run(name, func(b *testing.B) {
			s := openRepeated(b, chunks)
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
	for name, chunks := range deltas() {
		s := openRepeated(t, chunks)
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
