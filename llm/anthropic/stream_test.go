package anthropic_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

// served answers every request with one body, without a network.
type served struct {
	status int
	body   string
	seen   []string    // request bodies
	header http.Header // of the last request
}

func (s *served) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.seen, s.header = append(s.seen, string(sent)), r.Header
	status := s.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

var testModel = &llm.Model{
	ID: "claude-test", API: anthropic.ID, Provider: "anthropic", BaseURL: "https://example.test", Input: []string{"text", "image"},
	Cost: llm.Rates{Input: 3, Output: 15}, ContextWindow: 200_000, MaxTokens: 8000,
}

func request(client http.RoundTripper, messages ...llm.Message) *llm.Request {
	if messages == nil {
		messages = []llm.Message{llm.UserText("hello", 1)}
	}
	return &llm.Request{Messages: messages, Options: llm.Options{APIKey: "key", Client: &http.Client{Transport: client}}}
}

const (
	opening = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-test\",\"usage\":{\"input_tokens\":21,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	closing = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// deltas is an answer with n text deltas.
func deltas(n int) string {
	var b bytes.Buffer
	b.WriteString(opening)
	for i := range n {
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word %d, and\\n\"}}\n\n", i%100)
	}
	b.WriteString(closing)
	return b.String()
}

func consume(t testing.TB, api *anthropic.API, client http.RoundTripper) (events int) {
	stream, err := api.Stream(context.Background(), testModel, request(client))
	if err != nil {
		t.Fatal(err)
	}
	for {
		ev, ok := stream.Next()
		if !ok {
			return events
		}
		events++
		if ev.Type == llm.EventError {
			t.Fatal(ev.Message.ErrorMessage)
		}
	}
}

const benchDeltas = 20_000

func BenchmarkAnthropicDelta(b *testing.B) {
	client := &served{body: deltas(benchDeltas)}
	api := anthropic.New(anthropic.Config{})
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
	api := anthropic.New(anthropic.Config{})
	measure := func(n int) uint64 {
		client := &served{body: deltas(n)}
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

// FuzzStream feeds arbitrary bytes as an answer.
func FuzzStream(f *testing.F) {
	f.Add([]byte(deltas(2)))
	f.Add([]byte(opening))
	f.Add([]byte("event: error\ndata: {\"type\":\"error\"}\n\n"))
	f.Add([]byte(opening + "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"text\":\"\\ud83d\"}}\n\n" + closing))
	f.Add([]byte("event: content_block_start\ndata: {\"index\":3,\"content_block\":{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"y\",\"input\":{\"a\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"index\":3,\"delta\":{\"partial_json\":\"{\\\"a\\\":\\\"\\\\ud83d\"}}\n\n"))
	f.Add([]byte("event: content_block_start\r\ndata: {\"index\":1,\"content_block\":{\"type\":\"thinking\",\"signature\":\"s\"}}\r\r\nevent:content_block_delta\ndata: {\"index\":1,\"delta\":{\"signature\":\"t\"}}"))
	f.Add([]byte("event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"refusal\"},\"input_transformations\":[{\"type\":\"x\"},2]}\n\n"))
	api := anthropic.New(anthropic.Config{})
	f.Fuzz(func(t *testing.T, body []byte) {
		stream, err := api.Stream(context.Background(), testModel, request(&served{body: string(body)}))
		if err != nil {
			t.Fatal(err)
		}
		terminal := 0
		for ev := range stream.Events() {
			if terminal > 0 {
				t.Fatal("an event after the terminal one")
			}
			switch ev.Type {
			case llm.EventDone, llm.EventError:
				terminal++
				if _, err := llm.ParseMessage(ev.Message.AppendJSON(nil)); err != nil {
					t.Fatalf("message does not read back: %v", err)
				}
				for _, c := range ev.Message.ToolCalls() {
					if c.Streaming != nil {
						t.Fatal("a tool call still streams")
					}
				}
			case llm.EventTextEnd, llm.EventThinkingEnd:
				_ = ev.Text()
			case llm.EventToolCallDelta:
				_ = ev.ToolCall().Current()
			}
		}
		if terminal != 1 {
			t.Fatalf("%d terminal events", terminal)
		}
	})
}
