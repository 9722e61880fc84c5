package demo

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Server plays a scenario on a loopback port.
type Server struct {
	// URL is the base address of the wire format, Key the key that requests
	// must bear. Both are new for each server.
	URL string
	Key string

	http *http.Server
	done chan struct{}

	mu     sync.Mutex
	player player
	calls  int
}

// Serve starts a server. Close ends it.
func Serve(s *Scenario) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open a loopback port for the scripted model: %w", err)
	}
	srv := &Server{
		URL:    "http://" + l.Addr().String(),
		Key:    "demo-" + rand.Text(),
		player: player{scenario: s},
		done:   make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", srv.messages)
	srv.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(srv.done)
		srv.http.Serve(l) // returns when Close is called
	}()
	return srv, nil
}

// Close ends the server and the answers that it is giving.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

type request struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
	} `json:"messages"`
}

// lastText is the text of the last message: of a prompt, or of tool results.
func (r *request) lastText() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return textOf(r.Messages[len(r.Messages)-1].Content)
}

// prompt is the text of the last message that a person wrote.
func (r *request) prompt() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := &r.Messages[i]; m.Role == "user" {
			if t := promptText(m.Content); t != "" {
				return t
			}
		}
	}
	return ""
}

type block struct {
	Type    string         `json:"type"`
	Text    string         `json:"text"`
	Content jsontext.Value `json:"content"`
}

func blocksOf(content jsontext.Value) []block {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []block{{Type: "text", Text: s}}
	}
	var list []block
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}

func textOf(content jsontext.Value) string {
	var parts []string
	for _, b := range blocksOf(content) {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "tool_result":
			parts = append(parts, textOf(b.Content))
		}
	}
	return strings.Join(parts, "\n")
}

func promptText(content jsontext.Value) string {
	var parts []string
	for _, b := range blocksOf(content) {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("x-api-key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(s.Key)) != 1 {
		fail(w, http.StatusUnauthorized, "authentication_error", "the scripted model answers only the program that started it")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 256<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "the request could not be read")
		return
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil || !req.Stream {
		fail(w, http.StatusBadRequest, "invalid_request_error", "the scripted model takes streamed requests of the messages format only")
		return
	}
	s.mu.Lock()
	turn := s.player.answer(req.lastText())
	first := s.calls
	s.calls += len(turn.ToolCalls)
	delay := time.Duration(s.player.scenario.DelayMs) * time.Millisecond
	s.mu.Unlock()
	if turn.Status != 0 {
		fail(w, turn.Status, errorType(turn.Status), turn.Error)
		return
	}
	out := &answer{w: w, flush: http.NewResponseController(w), ctx: r.Context(), delay: delay, prompt: req.prompt()}
	usage := turn.Usage
	if usage == nil {
		usage = &Usage{Input: len(body) / 4, Output: turn.size() / 4}
	}
	if err := out.play(req.Model, turn, *usage, first); err != nil {
		return // the reader has gone
	}
	switch {
	case turn.Hang:
		<-r.Context().Done()
	case turn.Drop:
		panic(http.ErrAbortHandler)
	default:
		out.end(turn, *usage)
	}
}

func errorType(status int) string {
	switch {
	case status == 429:
		return "rate_limit_error"
	case status == 529:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	if message == "" {
		message = http.StatusText(status)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.MarshalWrite(w, object{"type": "error", "error": object{"type": kind, "message": message}})
}

func (t *Turn) size() int {
	n := 0
	for _, p := range t.Thinking {
		n += len(p)
	}
	for _, p := range t.Text {
		n += len(p)
	}
	for _, c := range t.ToolCalls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

type object = map[string]any

// answer writes one answer as server-sent events.
type answer struct {
	w      io.Writer
	flush  *http.ResponseController
	ctx    context.Context
	delay  time.Duration
	prompt string
	index  int
	begun  bool
	err    error
}

var errGone = errors.New("the reader has gone")

func (a *answer) event(name string, data object) {
	if a.err != nil {
		return
	}
	if !a.begun {
		a.begun = true
		if h, ok := a.w.(http.ResponseWriter); ok {
			h.Header().Set("Content-Type", "text/event-stream")
		}
	}
	data["type"] = name
	b, err := json.Marshal(data)
	if err == nil {
		_, err = fmt.Fprintf(a.w, "event: %s\ndata: %s\n\n", name, b)
	}
	if err == nil {
		err = a.flush.Flush()
	}
	a.err = err
}

func (a *answer) pause() {
	if a.delay <= 0 || a.err != nil {
		return
	}
	t := time.NewTimer(a.delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.ctx.Done():
		a.err = errGone
	}
}

// play writes the content of a turn. firstCall numbers its tool calls.
func (a *answer) play(model string, t Turn, u Usage, firstCall int) error {
	a.event("message_start", object{"message": object{
		"id": "msg_demo_" + rand.Text()[:12], "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": 0},
	}})
	if len(t.Thinking) > 0 {
		a.block(object{"type": "thinking", "thinking": "", "signature": ""}, func() {
			for _, p := range t.Thinking {
				a.delta(object{"type": "thinking_delta", "thinking": a.fill(p)})
				a.pause()
			}
			a.delta(object{"type": "signature_delta", "signature": "c2NyaXB0ZWQ="})
		})
	}
	if len(t.Text) > 0 {
		a.block(object{"type": "text", "text": ""}, func() {
			for _, p := range t.Text {
				a.delta(object{"type": "text_delta", "text": a.fill(p)})
				a.pause()
			}
		})
	}
	for i, c := range t.ToolCalls {
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("toolu_demo_%d", firstCall+i+1)
		}
		a.block(object{"type": "tool_use", "id": id, "name": c.Name, "input": object{}}, func() {
			for piece := range pieces(string(c.Args), 24) {
				a.delta(object{"type": "input_json_delta", "partial_json": piece})
			}
			a.pause()
		})
	}
	return a.err
}

// pieces cuts s into parts of at least n bytes that do not split characters.
func pieces(s string, n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := range s {
			if i-start >= n {
				if !yield(s[start:i]) {
					return
				}
				start = i
			}
		}
		yield(s[start:])
	}
}

// fill puts the prompt in the place of {{prompt}}.
func (a *answer) fill(text string) string { return strings.ReplaceAll(text, "{{prompt}}", a.prompt) }

func (a *answer) block(start object, deltas func()) {
	a.event("content_block_start", object{"index": a.index, "content_block": start})
	deltas()
	a.event("content_block_stop", object{"index": a.index})
	a.index++
}

func (a *answer) delta(d object) {
	a.event("content_block_delta", object{"index": a.index, "delta": d})
}

func (a *answer) end(t Turn, u Usage) {
	reason := t.StopReason
	if reason == "" {
		reason = "end_turn"
		if len(t.ToolCalls) > 0 {
			reason = "tool_use"
		}
	}
	a.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": u.Output}})
	a.event("message_stop", object{})
}
