package bedrock

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// discard answers without keeping what was sent.
type discard struct{}

func (discard) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	return replyOf(r, join(start, ended, meta)), nil
}

func replyOf(r *http.Request, body []byte) *http.Response {
	header := http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
}

// served answers every request with one body.
type served []byte

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	return replyOf(r, s), nil
}

// deltas is an answer of n pieces of text, in the form of the service.
func deltas(n int) served {
	piece := text(0, " word 42, and\n")
	body := append(bytes.Clone(start), bytes.Repeat(piece, n)...)
	return append(body, join(stop0, ended, meta)...)
}

func consume(tb testing.TB, api *API, client http.RoundTripper) (events int) {
	stream, err := api.Stream(context.Background(), testModel, request(client))
	if err != nil {
		tb.Fatal(err)
	}
	for {
		ev, ok := stream.Next()
		if !ok {
			return events
		}
		events++
		if ev.Type == llm.EventError {
			tb.Fatal(ev.Message.ErrorMessage)
		}
	}
}

const benchDeltas = 20_000

func BenchmarkBedrockDelta(b *testing.B) {
	client, api := deltas(benchDeltas), quick()
	b.ReportAllocs()
	for b.Loop() {
		if n := consume(b, api, client); n != benchDeltas+4 {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchDeltas, "ns/delta")
}

// What a stream allocates must not grow with the number of its deltas, the
// text itself aside.
func TestAllocationsPerDelta(t *testing.T) {
	api := quick()
	measure := func(n int) uint64 {
		client := deltas(n)
		consume(t, api, client)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		consume(t, api, client)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	few, many := measure(100), measure(20_100)
	if per := float64(many-few) / 20_000; per > 0.05 {
		t.Errorf("%.3f allocations per delta (%d for 100 deltas, %d for 20100)", per, few, many)
	}
}
