package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/session"
)

// service answers requests without a network: a client's cost is all there is.
type service struct {
	// answer gives the body of the n-th answer, counted from 0.
	answer func(n int) io.Reader
	// asked sees the size of each request's body.
	asked func(n int, size int64)

	n int
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	size, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	n := s.n
	s.n++
	if s.asked != nil {
		s.asked(n, size)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(s.answer(n)), Request: r,
	}, nil
}

// format is a wire format and how its service words answers.
type format struct {
	api    string
	compat string // flags of the model; "" for none
	make   func(client *http.Client) llm.API
	opens  string
	delta  string // of text
	closes string
	opensC string // of a tool call
	deltaC string // of its arguments; %s is a part of the JSON string
	closeC string
}

var anthropicFormat = format{
	api:    anthropic.ID,
	make:   func(c *http.Client) llm.API { return anthropic.New(anthropic.Config{Client: c}) },
	opens:  sse(`{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":9,"output_tokens":1}}}`) + sse(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	delta:  sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a word or two"}}`),
	closes: sse(`{"type":"content_block_stop","index":0}`) + sse(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`) + sse(`{"type":"message_stop"}`),
	opensC: sse(`{"type":"message_start","message":{"id":"msg_2","usage":{"input_tokens":9,"output_tokens":1}}}`) + sse(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"%s","name":"note","input":{}}}`),
	deltaC: sse(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"%s"}}`),
	closeC: sse(`{"type":"content_block_stop","index":0}`) + sse(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`) + sse(`{"type":"message_stop"}`),
}

var completionsFormat = format{
	api:    completions.ID,
	make:   func(c *http.Client) llm.API { return completions.New(completions.Config{Client: c}) },
	opens:  chunk(`{"role":"assistant","content":""}`, "null"),
	delta:  chunk(`{"content":" a word or two"}`, "null"),
	closes: chunk(`{}`, `"stop"`) + "data: [DONE]\n\n",
	opensC: chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"%s","type":"function","function":{"name":"note","arguments":""}}]}`, "null"),
	deltaC: chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, "null"),
	closeC: chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n",
}

// sse is an event that is named as its data is.
func sse(data string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + name + "\ndata: " + data + "\n\n"
}

func chunk(delta, finish string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1750000000,"model":"m","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n"
}

// text is an answer of n deltas.
func (f *format) text(n int) io.Reader { return f.body(f.opens, f.delta, n, f.closes) }

// call is an answer that calls the tool note, whose argument comes in n deltas
// of 40 bytes.
func (f *format) call(id string, n int) io.Reader {
	part := fmt.Sprintf(f.deltaC, `0123456789 \\\"quoted\\\" and a line\\n abcdef`)
	return f.body(fmt.Sprintf(f.opensC, id)+fmt.Sprintf(f.deltaC, `{\"text\":\"`), part, n, fmt.Sprintf(f.deltaC, `\"}`)+f.closeC)
}

func (f *format) body(head, part string, n int, tail string) io.Reader {
	return io.MultiReader(bytes.NewReader([]byte(head)), &repeated{chunk: []byte(part), left: n * len(part)}, bytes.NewReader([]byte(tail)))
}

// repeated reads as one chunk again and again.
type repeated struct {
	chunk    []byte
	at, left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		c := copy(p[n:min(len(p), n+r.left)], r.chunk[r.at:])
		n, r.left, r.at = n+c, r.left-c, (r.at+c)%len(r.chunk)
	}
	return n, nil
}

// note is a tool that takes a text and says little.
func note() *agent.Tool {
	return &agent.Tool{
		Tool: llm.Tool{Name: "note", Description: "Takes a note.",
			Parameters: jsontext.Value(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		Execute: func(context.Context, agent.Call) (agent.Result, error) {
			return agent.Result{Content: []llm.Block{&llm.Text{Text: "noted"}}}, nil
		},
	}
}

// converse makes a harness that talks to s. A nil session is one in memory.
func converse(tb testing.TB, f *format, s *service, sess *session.Session) *harness.Harness {
	tb.Helper()
	h, err := harness.New(harness.Options{
		Model: &llm.Model{
			ID: "m", Provider: "acme", API: f.api, BaseURL: "http://service.test",
			Input: []string{"text"}, ContextWindow: 1 << 30, MaxTokens: 4096, Compat: jsontext.Value(f.compat),
		},
		Stream:       llm.NewRegistry(f.make(&http.Client{Transport: s})).Stream,
		Session:      sess,
		Tools:        []*agent.Tool{note()},
		SystemPrompt: "Take notes.",
		Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
			return harness.Credentials{Key: "k"}, nil
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// finished fails unless an answer came to a good end.
func finished(tb testing.TB, m *llm.Assistant, err error) {
	tb.Helper()
	switch {
	case err != nil:
		tb.Fatal(err)
	case m == nil || m.StopReason != llm.StopStop:
		tb.Fatalf("the answer ended as %+v", m)
	}
}
