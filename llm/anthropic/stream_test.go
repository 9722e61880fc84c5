package anthropic_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
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

func kinds() map[string]wiretest.Deltas {
	return map[string]wiretest.Deltas{"text": {Start: opening,
		Event: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word 42, and\\n\"}}\n\n"}}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := anthropic.New(anthropic.Config{}).Stream(t.Context(), testModel, request(client.Transport))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkAnthropicDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, kinds(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, kinds(), openDeltas) }

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
		lines, m := wiretest.Read(stream)
		wiretest.Whole(t, lines, m)
	})
}
