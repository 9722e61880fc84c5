package harness

import (
	"context"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// run is one activity from Prompt or Continue to agent_settled. Fields in the
// second group belong to Harness.mu, the others to the goroutine of the run.
type run struct {
	op     string
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	answering *llm.Model // who answers the request, a physical model; nil before the first
	unrouted  error      // why a virtual model names nobody for it

	last    *llm.Assistant // the last answer
	lastID  string         // its entry
	attempt int            // retries so far
	broken  error          // results could not be written: the run ends with its turn

	// What was looked up before the run began, for its first request: a lookup
	// may run a command that asks the person something.
	keyed *llm.Model // for this model; nil once used
	key   Credentials

	// What listeners have been told and not yet that it is over.
	begun, ended, inTurn bool
	open                 agent.Message

	fault    error           // of a listener, at an event that was posted
	primed   bool            // the prompts came from the steering queue
	unsaid   []agent.Message // prompts that are not in the transcript yet
	own      int             // of them, at the end, those of the caller; the others are of NextTurn
	stopWait func()          // ends a wait for a retry, nil when there is none
	gaveUp   bool            // the wait was ended by AbortRetry
}

// drive runs the loop until nothing is left to do: retries, and messages that
// listeners queued while the last run was ending.
func (h *Harness) drive(r *run, prompts []agent.Message) error {
	for {
		if err := h.loop(r, prompts); err != nil {
			return err
		}
		again, err := h.retry(r)
		if err != nil {
			return wrap(r.op, err)
		}
		if again {
			prompts = nil
			continue
		}
		if !h.opts.KeepCutShort && h.isCutShort(r) {
			if err := h.hide(r); err != nil {
				return wrap(r.op, err)
			}
			r.last = nil
		}
		if r.ctx.Err() != nil || r.last != nil && r.last.StopReason == llm.StopError {
			return nil
		}
		h.mu.Lock()
		prompts = h.takeQueued(r)
		h.mu.Unlock()
		if len(prompts) == 0 {
			return nil
		}
	}
}

// isCutShort reports whether the last answer was cut before the output limit of its model: by
// a limit that was lowered to fit the context. Such an answer is hidden, as the
// next request would go on from half a sentence.
func (h *Harness) isCutShort(r *run) bool {
	m, model := r.last, r.answers(h)
	return m != nil && m.Provider == model.Provider && m.Model == model.ID && llm.IsCutShort(m, model.MaxTokens)
}

// hide takes the last answer out of the context and announces the edit.
func (h *Harness) hide(r *run) error {
	e, err := h.omit(r.op, r.lastID)
	if err != nil {
		return err
	}
	return h.emit(r.ctx, &Event{Event: agent.Event{Type: EntryAppended}, Entry: e})
}

// loop is one run of the agent's loop. A failure that is not the model's
// becomes a failed answer, so that listeners see the run end.
func (h *Harness) loop(r *run, prompts []agent.Message) error {
	c := h.sess.Context()
	h.wire.rebase(c)
	h.mu.Lock()
	cfg := agent.Config{
		Model:         h.model,
		ThinkingLevel: h.model.ClampLevel(h.level),
		Stream: func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
			return h.stream(ctx, r, m, req)
		},
		Options:          h.opts.Request,
		Execution:        h.opts.Execution,
		ToLLM:            h.wire.of,
		TransformContext: h.opts.TransformContext,
		Steering:         func() []agent.Message { return h.pollSteering(r) },
		FollowUp:         h.pollFollowUp,
		PrepareNextTurn:  h.prepareNextTurn,
		PrepareRequest: func(ctx context.Context, c agent.Context, m *llm.Model, level llm.ThinkingLevel) (agent.NextTurn, error) {
			return h.prepareRequest(ctx, r, c, m, level)
		},
		BeforeToolCall: h.opts.BeforeToolCall,
		AfterToolCall:  h.opts.AfterToolCall,
		Now:            h.now,
	}
	from := agent.Context{Messages: c.Messages, Tools: h.tools}
	h.mu.Unlock()
	switch {
	case h.opts.ToLLM != nil:
		cfg.ToLLM = h.opts.ToLLM
	case cfg.TransformContext != nil:
		cfg.ToLLM = session.ToLLM // the context is another one each time
	}
	cfg.Options.Memo = &h.memo
	if cfg.Options.SessionID == "" {
		cfg.Options.SessionID = h.sess.ID()
	}
	r.begun, r.ended, r.inTurn, r.open, r.broken = false, false, false, nil, nil
	r.answering, r.unrouted = nil, nil
	sink := func(ctx context.Context, ev agent.Event) error { return h.sink(ctx, r, ev) }
	var err error
	if len(prompts) > 0 {
		_, err = agent.Run(r.ctx, cfg, from, prompts, sink)
	} else {
		_, err = agent.Resume(r.ctx, cfg, from, sink)
	}
	if err != nil {
		return h.fail(r, wrap(r.op, err))
	}
	return nil
}

// sink receives the loop's events: listeners first, then the session.
func (h *Harness) sink(ctx context.Context, r *run, ev agent.Event) error {
	out := Event{Event: ev}
	switch ev.Type {
	case agent.AgentStart:
		r.begun = true
	case agent.TurnStart:
		r.inTurn = true
	case agent.MessageStart:
		r.open = ev.Message
		h.show(ev.Message)
	case agent.MessageEnd:
		return h.finish(ctx, r, ev.Message)
	case agent.ToolExecutionStart:
		if r.broken != nil {
			return r.broken
		}
	case agent.TurnEnd:
		r.inTurn = false
		err := h.emit(ctx, &out)
		return first(r.broken, h.endTurn(r.op), err)
	case agent.AgentEnd:
		r.ended = true
		out.WillRetry = h.willRetry(r)
	}
	return h.emit(ctx, &out)
}

// show takes a message off the queue that it came from.
func (h *Harness) show(m agent.Message) {
	u := asUser(m)
	if u == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.steering.show(u) || h.followUp.show(u) {
		h.postQueues()
	}
}

// finish tells that m is complete and appends it to the session, also when a
// listener fails.
func (h *Harness) finish(ctx context.Context, r *run, m agent.Message) error {
	r.open = nil
	err := h.emit(ctx, &Event{Event: agent.Event{Type: agent.MessageEnd, Message: m}})
	return first(h.record(ctx, r, m), err)
}

// record appends a finished message to the session.
func (h *Harness) record(ctx context.Context, r *run, m agent.Message) error {
	e, err := h.save(m)
	if err != nil {
		err = &Error{KindSession, r.op, err}
	}
	h.mu.Lock()
	if u := asUser(m); u != nil {
		h.steering.said(u)
		h.followUp.said(u)
	}
	if i := slices.Index(r.unsaid, m); i >= 0 {
		r.unsaid = r.unsaid[i+1:]
	}
	h.mu.Unlock()
	switch m := m.(type) {
	case *llm.Assistant:
		r.last, r.lastID = m, ""
		if e != nil {
			r.lastID = e.ID
		}
		if r.attempt > 0 && m.StopReason != llm.StopError {
			return first(err, h.endRetries(ctx, r, true, ""))
		}
	case *llm.User:
		r.last, r.lastID = nil, ""
	case *llm.ToolResult:
		// The calls of this answer have run: what they did must be said before
		// the run ends.
		r.broken = first(r.broken, err)
		return nil
	}
	return err
}

// fail ends a run of the loop that cause cut short: what listeners saw begin
// ends, with a failed answer. That is recorded, unless the session is what
// failed.
func (h *Harness) fail(r *run, cause error) error {
	if !r.begun || r.ended {
		return cause
	}
	ctx := r.ctx
	// The listener that failed may fail again; the others must still see the
	// run end, and its first error is the one that counts.
	tell := func(ev agent.Event) { _ = h.emit(ctx, &Event{Event: ev}) }
	partial, streaming := r.open.(*llm.Assistant)
	if r.open != nil && !streaming {
		_ = h.finish(ctx, r, r.open)
	}
	m := h.failure(r, cause, partial)
	if !r.inTurn {
		tell(agent.Event{Type: agent.TurnStart})
	}
	if !streaming {
		tell(agent.Event{Type: agent.MessageStart, Message: m})
	}
	if isBroken(cause) {
		tell(agent.Event{Type: agent.MessageEnd, Message: m})
	} else if err := h.finish(ctx, r, m); isBroken(err) {
		cause = err
	}
	tell(agent.Event{Type: agent.TurnEnd, Message: m})
	_ = h.endTurn(r.op) // what fails here fails again when the run settles
	tell(agent.Event{Type: agent.AgentEnd, Messages: []agent.Message{m}})
	return cause
}

// failure is the answer that tells of cause: what had arrived of an answer, or
// one empty text.
func (h *Harness) failure(r *run, cause error, partial *llm.Assistant) *llm.Assistant {
	model := r.answers(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	var m *llm.Assistant
	if partial != nil {
		m = partial.Snapshot()
	} else {
		m = &llm.Assistant{
			Content: []llm.Block{&llm.Text{}},
			API:     model.API, Provider: model.Provider, Model: model.ID,
			Timestamp: h.now().UnixMilli(),
		}
	}
	m.StopReason, m.ErrorMessage = llm.StopError, cause.Error()
	if e, ok := cause.(*Error); ok {
		m.ErrorMessage = e.Err.Error() // the operation says nothing to a person
	}
	if r.ctx.Err() != nil {
		m.StopReason = llm.StopAborted
	}
	return m
}
