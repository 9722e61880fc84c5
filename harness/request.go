package harness

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// wire is the context as a model knows it. It grows with the context, so that a
// request converts only what is new. It belongs to the goroutine of the run.
type wire struct {
	revision uint64      // of the session's context
	head     *llm.System // the fixed prompt at its head
	messages []llm.Message
	n        int // messages of the context that are in it
}

// rebase makes the list one of other messages. What it holds stays when they
// only grew.
func (w *wire) rebase(head *llm.System, revision uint64, n int) {
	if w.revision != revision || w.head != head || w.n > n {
		*w = wire{revision: revision, head: head}
	}
}

// of converts a context that begins with what was converted before.
func (w *wire) of(messages []agent.Message) []llm.Message {
	w.messages = slices.Grow(w.messages, len(messages)-w.n)
	for _, m := range messages[w.n:] {
		if c := session.Convert(m); c != nil {
			w.messages = append(w.messages, c)
		}
	}
	w.n = len(messages)
	return slices.Clip(w.messages)
}

// toLLM turns what a request shows into messages that a model knows.
func (h *Harness) toLLM(r *run, messages []agent.Message) []llm.Message {
	switch {
	case h.opts.ToLLM != nil:
		return h.opts.ToLLM(messages)
	case r.rewritten:
		return session.ToLLM(messages) // the context is another one each time
	}
	return h.wire.of(messages)
}

// refresh is the conversation where it is no longer the one that the loop has,
// nil where it is: messages that were added beside the run, edits and branches
// made since, messages that hooks replaced, another fixed prompt.
func (h *Harness) refresh(r *run, has []agent.Message) []agent.Message {
	messages, revision := h.conversation(r.snap)
	if !r.stale && revision == h.wire.revision && r.snap.head == h.wire.head && len(messages) == len(has) {
		return nil
	}
	r.stale = false
	h.wire.rebase(r.snap.head, revision, len(messages))
	return slices.Clip(messages)
}

func (h *Harness) prepareNextTurn(ctx context.Context, r *run, t agent.Turn) (agent.NextTurn, error) {
	// What was said since the turn ended, by whoever heard of its end.
	_, err := h.writeWaiting(r)
	h.deliver()
	if err != nil {
		return agent.NextTurn{}, err
	}
	if err := h.fitBetween(r); err != nil {
		return agent.NextTurn{}, err
	}
	snap, err := h.capture(ctx, r.snap)
	if err != nil {
		return agent.NextTurn{}, err
	}
	r.snap = snap
	next := agent.NextTurn{Model: snap.model, ThinkingLevel: snap.level, Messages: snap.patches()}
	messages := h.refresh(r, t.Context.Messages)
	switch {
	case messages != nil:
		next.Context = &agent.Context{Messages: messages, Tools: snap.tools}
	case !slices.Equal(snap.tools, t.Context.Tools):
		next.Context = &agent.Context{Messages: t.Context.Messages, Tools: snap.tools}
	}
	return next, nil
}

func (h *Harness) prepareRequest(ctx context.Context, r *run, c agent.Context, m *llm.Model, level llm.ThinkingLevel) (agent.NextTurn, error) {
	messages := h.refresh(r, c.Messages)
	from := messages
	if from == nil {
		from = c.Messages
	}
	next, err := h.route(ctx, r, from, m, level)
	if messages != nil {
		next.Context = &agent.Context{Messages: messages, Tools: c.Tools}
	}
	return next, err
}

// credentials asks the host what a request to m needs.
func (h *Harness) credentials(ctx context.Context, m *llm.Model) (Credentials, error) {
	if h.opts.Credentials == nil {
		return Credentials{}, nil
	}
	return h.opts.Credentials(ctx, m)
}

// stream adds credentials to a request and sends it. What fails before the
// request is an answer of its own, as everything later is.
func (h *Harness) stream(ctx context.Context, r *run, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	switch {
	case ctx.Err() != nil:
		return h.unsent(ctx, m, ctx.Err()), nil
	case r.unrouted != nil:
		return h.unsent(ctx, m, r.unrouted), nil
	}
	c, err := r.key, error(nil)
	if r.keyed != m {
		c, err = h.credentials(ctx, m)
	}
	r.keyed = nil
	if err != nil {
		return h.unsent(ctx, m, err), nil
	}
	level := req.Reasoning
	req.Options = r.snap.request
	req.Reasoning = level
	m = c.addTo(m, req)
	if err := h.beforeRequest(ctx, r, m, req); err != nil {
		return nil, err
	}
	s, err := h.opts.Stream(ctx, m, req)
	switch {
	case err != nil && ctx.Err() == nil:
		kind := KindUnknown
		if _, keyless := errors.AsType[*llm.KeyError](err); keyless {
			kind = KindAuth
		}
		return nil, &Error{kind, r.op, err}
	case err != nil:
		return h.unsent(ctx, m, err), nil
	case s == nil:
		return h.unsent(ctx, m, errors.New("the stream function returned no stream")), nil
	}
	return s, nil
}

// addTo adds credentials to a request, and returns the model to send it to.
func (c Credentials) addTo(m *llm.Model, req *llm.Request) *llm.Model {
	if req.APIKey == "" {
		req.APIKey = c.Key
	}
	if len(c.Headers) > 0 {
		headers := maps.Clone(c.Headers)
		maps.Copy(headers, req.Headers)
		req.Headers = headers
	}
	if len(c.Env) > 0 {
		env := maps.Clone(c.Env)
		maps.Copy(env, req.Env)
		req.Env = env
	}
	if c.BaseURL != "" && c.BaseURL != m.BaseURL {
		copied := *m
		copied.BaseURL = c.BaseURL
		m = &copied
	}
	return m
}

// unsent is the answer to a request that was not sent.
func (h *Harness) unsent(ctx context.Context, m *llm.Model, err error) *llm.Stream {
	if ctx.Err() == nil {
		return llm.Failed(m, err, h.now().UnixMilli())
	}
	return llm.NewStream(&aborted{&llm.Assistant{
		Content: []llm.Block{},
		API:     m.API, Provider: m.Provider, Model: m.ID,
		StopReason: llm.StopAborted, ErrorMessage: unsentText,
		Timestamp: h.now().UnixMilli(),
	}})
}

// The errors of answers that were aborted: while one was on its way, and before
// it was asked for.
const (
	abortedText = "Request was aborted"
	unsentText  = "This operation was aborted"
)

// aborted is a stream whose only event says that the request was aborted.
type aborted struct{ message *llm.Assistant }

func (a *aborted) Next() (llm.Event, bool) {
	m := a.message
	a.message = nil
	return llm.Event{Type: llm.EventError, Message: m}, m != nil
}

func (*aborted) Close() {}
