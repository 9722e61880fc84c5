package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// A scripted model: a loopback server that speaks the chat-completions and the
// messages protocol and answers its requests with the turns of a vector, in
// order. The tools, json, rpc and cli drivers run against it.
//
//	srv := startScripted(t, turns)
//	models := srv.modelsJSON()          // for <agent dir>/models.json
//	…
//	for _, r := range srv.requests() { … }

// scriptedTurn is one answer of the scripted model, as vectors write it.
type scriptedTurn struct {
	Text      scriptedText    `json:"text"`
	Thinking  scriptedText    `json:"thinking"`
	ToolCalls []scriptedCall  `json:"toolCalls"`
	Finish    string          `json:"finish"` // as the wire format says it; "" for what the content asks for
	Usage     *scriptedUsage  `json:"usage"`
	Status    int             `json:"status"` // an HTTP failure with Body
	Body      json.RawMessage `json:"body"`   // a string is sent as it is, other values as JSON
	GapMs     int             `json:"gapMs"`  // pause after each chunk
	Hang      bool            `json:"hang"`   // the stream stays open after the content
	Drop      bool            `json:"drop"`   // the connection is cut after the content
}

// scriptedText is a string or a list of chunks; each chunk is one delta.
type scriptedText []string

func (s *scriptedText) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*s = scriptedText{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

// scriptedCall is a tool call. RawArgs is sent as it is; Args as compact JSON.
type scriptedCall struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
	RawArgs *string         `json:"rawArgs"`
	Chunks  int             `json:"chunks"` // number of argument deltas; 0 for 1
}

type scriptedUsage struct {
	Input     *int `json:"input"`
	Output    *int `json:"output"`
	CacheRead *int `json:"cacheRead"`
}

// scriptedRequest is one request as it came.
type scriptedRequest struct {
	Path     string // behind the lane, such as /v1/chat/completions
	Lane     string // first part of the path
	Header   http.Header
	Raw      []byte                     // the whole body
	Body     map[string]json.RawMessage // its members
	Model    string
	Messages []json.RawMessage // all messages; the messages protocol has its system text in Body["system"]
	Tools    []string          // names
}

// withoutSystem is the request's messages except system and developer ones.
func (r scriptedRequest) withoutSystem() []json.RawMessage {
	out := []json.RawMessage{}
	for _, m := range r.Messages {
		var v struct{ Role string }
		if json.Unmarshal(m, &v) == nil && v.Role != "system" && v.Role != "developer" {
			out = append(out, m)
		}
	}
	return out
}

// scriptedServer is a running scripted model.
type scriptedServer struct {
	srv *httptest.Server

	mu    sync.Mutex
	turns []scriptedTurn
	next  int
	seen  []scriptedRequest
}

// startScripted starts a server that ends with the test.
func startScripted(t testing.TB, turns []scriptedTurn) *scriptedServer {
	t.Helper()
	s := &scriptedServer{turns: turns}
	s.srv = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.srv.Config.BaseContext = func(net.Listener) context.Context { return context.Background() }
	s.srv.Start()
	t.Cleanup(func() {
		s.srv.CloseClientConnections()
		s.srv.Close()
	})
	return s
}

// addr is the server's host and port.
func (s *scriptedServer) addr() string { return s.srv.Listener.Addr().String() }

// requests lists the requests so far.
func (s *scriptedServer) requests() []scriptedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// scriptedLane is the first part of the path in the base addresses below.
const scriptedLane = "lane"

// modelsJSON is the models.json that declares the scripted models at this server.
func (s *scriptedServer) modelsJSON() string {
	return fmt.Sprintf(`{
  "providers": {
    "scripted": {
      "baseUrl": "http://%[1]s/%[2]s/v1",
      "api": "openai-completions",
      "apiKey": "scripted-key",
      "models": [
        {"id": "plain", "name": "Scripted Plain", "reasoning": false, "input": ["text", "image"],
         "cost": {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 0}, "contextWindow": 200000, "maxTokens": 8000},
        {"id": "thinker", "name": "Scripted Thinker", "reasoning": true, "input": ["text"],
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 100000, "maxTokens": 4000},
        {"id": "tiny", "name": "Scripted Tiny", "reasoning": false, "input": ["text"],
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 20000, "maxTokens": 1000}
      ]
    },
    "scripted2": {
      "baseUrl": "http://%[1]s/%[2]s",
      "api": "anthropic-messages",
      "apiKey": "scripted-key-2",
      "models": [
        {"id": "claudish", "name": "Scripted Claudish", "reasoning": true, "input": ["text", "image"],
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 150000, "maxTokens": 8000}
      ]
    }
  }
}
`, s.addr(), scriptedLane)
}

func (s *scriptedServer) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	req := scriptedRequest{Header: r.Header.Clone(), Raw: raw, Path: r.URL.Path}
	if lane, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); ok {
		req.Lane, req.Path = lane, "/"+rest
	}
	var body struct {
		Model    string
		Messages []json.RawMessage
		Tools    []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if json.Unmarshal(raw, &req.Body) == nil && json.Unmarshal(raw, &body) == nil {
		req.Model, req.Messages = body.Model, body.Messages
		for _, t := range body.Tools {
			req.Tools = append(req.Tools, t.Name+t.Function.Name)
		}
	}
	anthropic := strings.HasSuffix(req.Path, "/messages")

	s.mu.Lock()
	s.seen = append(s.seen, req)
	turn := scriptedTurn{Text: scriptedText{"(end of script)"}}
	if s.next < len(s.turns) {
		turn = s.turns[s.next]
		s.next++
	}
	s.mu.Unlock()

	if turn.Status != 0 {
		text := []byte(turn.Body)
		var plain string
		if json.Unmarshal(turn.Body, &plain) == nil {
			text = []byte(plain)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		w.Write(text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &scriptedStream{w: w, ctx: r.Context(), gap: time.Duration(turn.GapMs) * time.Millisecond}
	finish := func(end func()) {
		switch {
		case turn.Drop:
			panic(http.ErrAbortHandler)
		case turn.Hang:
			out.flush()
			<-r.Context().Done()
		default:
			end()
		}
	}
	if anthropic {
		out.messages(req.Model, turn, finish)
	} else {
		out.completions(req.Model, turn, finish)
	}
}

// scriptedStream writes one answer as server-sent events.
type scriptedStream struct {
	w   http.ResponseWriter
	ctx context.Context
	gap time.Duration
}

func (o *scriptedStream) flush() { o.w.(http.Flusher).Flush() }

func (o *scriptedStream) event(name string, data any) {
	if o.ctx.Err() != nil {
		return
	}
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(o.w, "event: %s\n", name)
	}
	fmt.Fprintf(o.w, "data: %s\n\n", b)
	o.flush()
}

// pause waits between chunks.
func (o *scriptedStream) pause() {
	if o.gap <= 0 {
		return
	}
	select {
	case <-time.After(o.gap):
	case <-o.ctx.Done():
	}
}

type object = map[string]any

func (t scriptedTurn) usage() (input, output, cacheRead int) {
	input, output = 100, 10
	if u := t.Usage; u != nil {
		if u.Input != nil {
			input = *u.Input
		}
		if u.Output != nil {
			output = *u.Output
		}
		if u.CacheRead != nil {
			cacheRead = *u.CacheRead
		}
	}
	return
}

// pieces cuts the argument text into its deltas, of equal length in UTF-16
// units except the last.
func (c scriptedCall) pieces() []string {
	text := "{}"
	if c.RawArgs != nil {
		text = *c.RawArgs
	} else if b, err := jsonwire.AppendCompact(nil, c.Args); err == nil {
		text = string(b)
	}
	if c.Chunks < 2 {
		return []string{text}
	}
	units := utf16.Encode([]rune(text))
	size := max(1, (len(units)+c.Chunks-1)/c.Chunks)
	var out []string
	for p := range slices.Chunk(units, size) {
		out = append(out, string(utf16.Decode(p)))
	}
	return out
}

func (o *scriptedStream) completions(model string, t scriptedTurn, finish func(end func())) {
	chunk := func(delta object, reason any, usage any) {
		c := object{
			"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
		}
		if usage != nil {
			c["usage"] = usage
		}
		o.event("", c)
	}
	chunk(object{"role": "assistant", "content": ""}, nil, nil)
	for _, s := range t.Thinking {
		chunk(object{"reasoning_content": s}, nil, nil)
		o.pause()
	}
	for _, s := range t.Text {
		chunk(object{"content": s}, nil, nil)
		o.pause()
	}
	for i, c := range t.ToolCalls {
		for j, p := range c.pieces() {
			call := object{"index": i, "function": object{"arguments": p}}
			if j == 0 {
				call = object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": p}}
			}
			chunk(object{"tool_calls": []object{call}}, nil, nil)
		}
		o.pause()
	}
	finish(func() {
		reason := t.Finish
		if reason == "" {
			reason = "stop"
			if len(t.ToolCalls) > 0 {
				reason = "tool_calls"
			}
		}
		in, outTokens, read := t.usage()
		usage := object{"prompt_tokens": in + read, "completion_tokens": outTokens, "total_tokens": in + read + outTokens}
		if read > 0 {
			usage["prompt_tokens_details"] = object{"cached_tokens": read}
		}
		chunk(object{}, reason, usage)
		fmt.Fprint(o.w, "data: [DONE]\n\n")
		o.flush()
	})
}

func (o *scriptedStream) messages(model string, t scriptedTurn, finish func(end func())) {
	in, outTokens, read := t.usage()
	o.event("message_start", object{"type": "message_start", "message": object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": in, "output_tokens": 1, "cache_read_input_tokens": read, "cache_creation_input_tokens": 0},
	}})
	index := 0
	block := func(start object, deltas func(delta func(object))) {
		o.event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start})
		deltas(func(d object) {
			o.event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
		})
		o.event("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	if len(t.Thinking) > 0 {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) {
			for _, s := range t.Thinking {
				delta(object{"type": "thinking_delta", "thinking": s})
				o.pause()
			}
			delta(object{"type": "signature_delta", "signature": "c2ln"})
		})
	}
	if len(t.Text) > 0 {
		block(object{"type": "text", "text": ""}, func(delta func(object)) {
			for _, s := range t.Text {
				delta(object{"type": "text_delta", "text": s})
				o.pause()
			}
		})
	}
	for _, c := range t.ToolCalls {
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, func(delta func(object)) {
			for _, p := range c.pieces() {
				delta(object{"type": "input_json_delta", "partial_json": p})
			}
			o.pause()
		})
	}
	finish(func() {
		reason := map[string]string{"": "end_turn", "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[t.Finish]
		if t.Finish == "" && len(t.ToolCalls) > 0 {
			reason = "tool_use"
		}
		if reason == "" {
			reason = t.Finish
		}
		o.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil},
			"usage": object{"output_tokens": outTokens}})
		o.event("message_stop", object{"type": "message_stop"})
	})
}
