// Package faux is a scripted model: a wire format without a wire. It answers
// with what a test, a demo or a replay put into its queue, streamed as a real
// model streams, and keeps what it was asked.
//
//	model := faux.New(faux.Options{})
//	model.Script(
//		faux.Reply(faux.ToolCall("add", `{"a":1,"b":2}`)),
//		faux.Say("3"),
//	)
//	stream, err := model.Stream(ctx, model.Model(), &llm.Request{…})
//
// Its Stream method is an agent.StreamFunc, and an *API goes into an
// llm.Registry like any other wire format.
//
// An answer is cut into pieces of three to five tokens of four characters, the
// same for the same seed. Options.TokensPerSecond slows it down. Between two
// pieces it looks at its context and ends as aborted.
//
// Usage is an estimate of one token for four characters. With a session id and
// a cache retention other than none, what a request shares with the session's
// last one counts as read from a cache and the rest as written to it.
//
// Answers that are deferred are not part of it: no wire format of this module
// gives them.
package faux

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// Options set up an API. The zero value works.
type Options struct {
	ID string // name of the wire format; "" for faux
	// Models are what the API offers; API and an empty Provider are filled in.
	// Nil for one, faux/faux-1, with text, images and a window of 128,000 tokens.
	Models []llm.Model
	// TokensPerSecond is the speed of answers; 0 for as fast as they are read.
	TokensPerSecond float64
	Seed            uint64 // of the sizes of pieces
}

// API is a scripted model. Its methods are safe for concurrent use.
type API struct {
	opts   Options
	models []*llm.Model

	mu       sync.Mutex
	script   []Response
	requests []Call
	cached   map[string]string // prompt of the last request by session id
	ids      int
}

// Call is one request to the model.
type Call struct {
	N       int // 1 for the first request
	Model   *llm.Model
	Request *llm.Request
}

// Response answers one request. Its message is copied; API, provider, model,
// usage and missing ids of calls are filled in. A stop reason of StopError or
// StopAborted ends the stream with an error after the content. StopPending
// never ends it: the stream hangs until its context does. An error becomes an
// answer that failed with its text.
//
// It runs when the stream is first read, with the context of the request.
type Response func(ctx context.Context, c Call) (*llm.Assistant, error)

// New makes a model with an empty script.
func New(o Options) *API {
	if o.ID == "" {
		o.ID = "faux"
	}
	a := &API{opts: o, cached: map[string]string{}}
	models := o.Models
	if len(models) == 0 {
		models = []llm.Model{{
			ID: "faux-1", Name: "Faux Model", BaseURL: "http://localhost:0",
			Input: []string{"text", "image"}, ContextWindow: 128_000, MaxTokens: 16_384,
		}}
	}
	for _, m := range models {
		m.API = o.ID
		if m.Provider == "" {
			m.Provider = "faux"
		}
		a.models = append(a.models, &m)
	}
	return a
}

// ID implements llm.API.
func (a *API) ID() string { return a.opts.ID }

// Model is the first model.
func (a *API) Model() *llm.Model { return a.models[0] }

// Models lists the models.
func (a *API) Models() []*llm.Model { return slices.Clone(a.models) }

// Script appends responses to the queue. Each request takes one; a request
// that finds none fails.
func (a *API) Script(responses ...Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.script = append(a.script, responses...)
}

// Rescript replaces what is left of the queue.
func (a *API) Rescript(responses ...Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.script = slices.Clone(responses)
}

// Left is the number of responses in the queue.
func (a *API) Left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.script)
}

// Requests lists what the model was asked, oldest first.
func (a *API) Requests() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Stream implements llm.API.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := Call{N: len(a.requests) + 1, Model: m, Request: req}
	a.requests = append(a.requests, c)
	respond := Fail("No more faux responses queued")
	if len(a.script) > 0 {
		respond = a.script[0]
		a.script = a.script[1:]
	}
	return llm.NewStream(newSource(ctx, a, c, respond)), nil
}

// Reply answers with blocks. The stop reason is toolUse when there is a call
// among them.
func Reply(blocks ...llm.Block) Response {
	stop := llm.StopStop
	for _, b := range blocks {
		if _, ok := b.(*llm.ToolCall); ok {
			stop = llm.StopToolUse
		}
	}
	return Message(&llm.Assistant{Content: blocks, StopReason: stop})
}

// Say answers with text.
func Say(text string) Response { return Reply(Text(text)) }

// Message answers with m, whose stop reason is stop when it has none.
func Message(m *llm.Assistant) Response {
	return func(context.Context, Call) (*llm.Assistant, error) { return m, nil }
}

// Fail answers with an error, after blocks.
func Fail(text string, blocks ...llm.Block) Response {
	return Message(&llm.Assistant{Content: blocks, StopReason: llm.StopError, ErrorMessage: text})
}

// Hang streams blocks and then waits until the request is aborted.
func Hang(blocks ...llm.Block) Response {
	return Message(&llm.Assistant{Content: blocks, StopReason: llm.StopPending})
}

// Text is a text block.
func Text(text string) *llm.Text { return &llm.Text{Text: text} }

// Think is a block of thinking.
func Think(text string) *llm.Thinking { return &llm.Thinking{Thinking: text} }

// ToolCall is a call of the tool called name with a JSON object of arguments,
// "" for none. Its id is given when the answer is.
func ToolCall(name, args string) *llm.ToolCall {
	if args == "" {
		args = "{}"
	}
	return &llm.ToolCall{Name: name, Arguments: jsontext.Value(args)}
}

// nextID is an id for a call that has none.
func (a *API) nextID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids++
	return "tool:" + strconv.Itoa(a.ids)
}
