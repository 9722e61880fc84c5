package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
)

// answer is how a service words an answer of many text deltas in one wire
// format.
type answer struct {
	api, provider        string
	media                string // "" for server-sent events
	opens, delta, closes string
	key                  string // "" for any
}

const piece = " a word or two"

func data(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("data: " + l + "\n\n")
	}
	return b.String()
}

// frame is a message of an AWS event stream.
func frame(event, payload string) string {
	var headers bytes.Buffer
	for _, h := range [][2]string{{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers.WriteByte(byte(len(h[0])))
		headers.WriteString(h[0])
		headers.WriteByte(7)
		binary.Write(&headers, binary.BigEndian, uint16(len(h[1])))
		headers.WriteString(h[1])
	}
	var b bytes.Buffer
	binary.Write(&b, binary.BigEndian, [2]uint32{uint32(16 + headers.Len() + len(payload)), uint32(headers.Len())})
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(b.Bytes()))
	b.Write(headers.Bytes())
	b.WriteString(payload)
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(b.Bytes()))
	return b.String()
}

func answers() []answer {
	responses := answer{
		opens: data(`{"type":"response.created","response":{"id":"r"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.content_part.added","item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}`),
		delta: data(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"` + piece + `"}`),
		closes: data(`{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}}}`),
	}
	family := func(api, provider, key string) answer {
		a := responses
		a.api, a.provider, a.key = api, provider, key
		return a
	}
	google := answer{
		delta:  data(`{"candidates":[{"content":{"parts":[{"text":"` + piece + `"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":7,"totalTokenCount":16},"modelVersion":"m","responseId":"r"}`),
		closes: data(`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9,"totalTokenCount":18},"modelVersion":"m","responseId":"r"}`),
	}
	vertex := google
	google.api, google.provider = "google-generative-ai", "google"
	vertex.api, vertex.provider = "google-vertex", "google-vertex"
	return []answer{
		{api: "anthropic-messages", provider: "anthropic", opens: anthropicFormat.opens, delta: anthropicFormat.delta, closes: anthropicFormat.closes},
		{api: "openai-completions", provider: "openai", opens: completionsFormat.opens, delta: completionsFormat.delta, closes: completionsFormat.closes},
		family("openai-responses", "openai", ""),
		family("azure-openai-responses", "azure", ""),
		family("openai-codex-responses", "openai-codex", "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.x"),
		google, vertex,
		{api: "bedrock-converse-stream", provider: "amazon-bedrock", media: "application/vnd.amazon.eventstream",
			opens: frame("messageStart", `{"role":"assistant"}`),
			delta: frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+piece+`"},"p":"abcdefghijklm"}`),
			closes: frame("contentBlockStop", `{"contentBlockIndex":0}`) + frame("messageStop", `{"stopReason":"end_turn"}`) +
				frame("metadata", `{"usage":{"inputTokens":9,"outputTokens":9,"totalTokens":18},"metrics":{"latencyMs":1}}`)},
		{api: "mistral-conversations", provider: "mistral",
			delta:  data(`{"id":"c","object":"chat.completion.chunk","created":1750000000,"model":"m","choices":[{"index":0,"delta":{"content":"` + piece + `"},"finish_reason":null}]}`),
			closes: data(`{"id":"c","object":"chat.completion.chunk","created":1750000000,"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, "[DONE]")},
		{api: "pi-messages", provider: "radius",
			opens:  data(`{"type":"start"}`, `{"type":"text_start","contentIndex":0}`),
			delta:  data(`{"type":"text_delta","contentIndex":0,"delta":"` + piece + `"}`),
			closes: data(`{"type":"text_end","contentIndex":0,"content":"x"}`, `{"type":"done","reason":"stop","usage":{"input":9,"output":9,"cacheRead":0,"cacheWrite":0,"totalTokens":18,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}`)},
	}
}

// body is an answer of n deltas.
func (a *answer) body(n int) io.Reader {
	return io.MultiReader(strings.NewReader(a.opens), &repeated{chunk: []byte(a.delta), left: n * len(a.delta)}, strings.NewReader(a.closes))
}

// reader is a service of one answer.
type reader struct {
	a *answer
	n int
}

// RoundTrip implements http.RoundTripper.
func (r reader) RoundTrip(req *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, req.Body)
	media := r.a.media
	if media == "" {
		media = "text/event-stream"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(r.a.body(r.n)), Request: req}, nil
}

// read takes an answer of n deltas through a wire format.
func (a *answer) read(tb testing.TB, registry *llm.Registry, n int) {
	key := a.key
	if key == "" {
		key = "key"
	}
	m := &llm.Model{ID: "m", API: a.api, Provider: a.provider, BaseURL: "https://service.invalid/v1", Input: []string{"text"}, MaxTokens: 4096, ContextWindow: 1 << 20}
	stream, err := registry.Stream(context.Background(), m, &llm.Request{
		Messages: []llm.Message{&llm.User{Content: llm.Plain("hi")}},
		Options:  llm.Options{APIKey: key, Client: &http.Client{Transport: reader{a, n}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	deltas := 0
	for {
		ev, ok := stream.Next()
		if !ok {
			break
		}
		if ev.Type == llm.EventTextDelta && ev.Delta == piece {
			deltas++
		}
		if ev.Type == llm.EventError {
			tb.Fatal(ev.Message.ErrorMessage)
		}
	}
	if deltas != n {
		tb.Fatalf("%d deltas of %d", deltas, n)
	}
}

func noEnv(string) string { return "" }

// TestWireDeltaBudget: no wire format allocates for a delta more than the text
// that grows.
func TestWireDeltaBudget(t *testing.T) {
	registry := llm.NewRegistry(all.Formats(all.Config{Getenv: noEnv})...)
	seen := map[string]bool{}
	for _, a := range answers() {
		seen[a.api] = true
		t.Run(a.api, func(t *testing.T) {
			const few, many = 1_000, 21_000
			a.read(t, registry, few)
			short := count(func() { a.read(t, registry, few) })
			long := count(func() { a.read(t, registry, many) })
			if per := (float64(long.mallocs) - float64(short.mallocs)) / (many - few); per > 0.02 {
				t.Errorf("%.3f allocations per delta, the budget is 0.02", per)
			}
			if per := (float64(long.bytes) - float64(short.bytes)) / (many - few); per > 16*float64(len(piece)) {
				t.Errorf("%.0f bytes per delta", per)
			}
		})
	}
	for _, id := range registry.IDs() {
		if !seen[id] {
			t.Errorf("the budget of %s is not checked", id)
		}
	}
}

// BenchmarkWireDelta reports the processor time of a delta from the bytes of the
// body to the event.
func BenchmarkWireDelta(b *testing.B) {
	const deltas = 20_000
	registry := llm.NewRegistry(all.Formats(all.Config{Getenv: noEnv})...)
	for _, a := range answers() {
		b.Run(a.api, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.read(b, registry, deltas)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/delta")
		})
	}
}
