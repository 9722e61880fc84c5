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
	revision uint64 // of the session's context
	messages []llm.Message
	n        int // messages of the context that are in it
}

// rebase makes the list one of the context c. What it holds stays when c only
// grew.
func (w *wire) rebase(c session.Context) {
	if w.revision != c.Revision || w.n > len(c.Messages) {
		*w = wire{revision: c.Revision}
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

// refresh is the session's context where it is no longer the one that the loop
// has, nil where it is: messages that were added beside the run, edits and
// branches made since.
func (h *Harness) refresh(has []agent.Message) []agent.Message {
	c := h.sess.Context()
	if c.Revision == h.wire.revision && len(c.Messages) == len(has) {
		return nil
	}
	h.wire.rebase(c)
	return c.Messages
}

func (h *Harness) prepareNextTurn(_ context.Context, t agent.Turn) (agent.NextTurn, error) {
	h.mu.Lock()
	next := agent.NextTurn{Model: h.model, ThinkingLevel: h.model.ClampLevel(h.level)}
	tools := h.tools
	h.mu.Unlock()
	messages := h.refresh(t.Context.Messages)
	switch {
	case messages != nil:
		next.Context = &agent.Context{Messages: messages, Tools: tools}
	case !slices.Equal(tools, t.Context.Tools):
		next.Context = &agent.Context{Messages: t.Context.Messages, Tools: tools}
	}
	return next, nil
}

func (h *Harness) prepareRequest(ctx context.Context, r *run, c agent.Context, m *llm.Model, level llm.ThinkingLevel) (agent.NextTurn, error) {
	messages := h.refresh(c.Messages)
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
	if r.unrouted != nil {
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
	s, err := h.opts.Stream(ctx, m, req)
	switch {
	case err != nil:
		return h.unsent(ctx, m, err), nil
	case s == nil:
		return h.unsent(ctx, m, errors.New("the stream function returned no stream")), nil
	}
	return s, nil
}

// unsent is the answer to a request that was not sent.
func (h *Harness) unsent(ctx context.Context, m *llm.Model, err error) *llm.Stream {
	if ctx.Err() == nil {
		return llm.Failed(m, err, h.now().UnixMilli())
	}
	return llm.NewStream(&aborted{&llm.Assistant{
		Content: []llm.Block{},
		API:     m.API, Provider: m.Provider, Model: m.ID,
		StopReason: llm.StopAborted, ErrorMessage: abortedText,
		Timestamp: h.now().UnixMilli(),
	}})
}

// abortedText is the error of an answer that was aborted.
const abortedText = "Request was aborted"

// aborted is a stream whose only event says that the request was aborted.
type aborted struct{ message *llm.Assistant }

func (a *aborted) Next() (llm.Event, bool) {
	m := a.message
	a.message = nil
	return llm.Event{Type: llm.EventError, Message: m}, m != nil
}

func (*aborted) Close() {}
