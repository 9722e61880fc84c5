package harness

import (
	"context"
	"errors"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
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

	snap      *snapshot // what the requests of the turn are made of
	fresh     bool      // snap was not used by a run of the loop yet
	forced    *string   // prompt of all requests, in the place of the recorded one; nil for none
	rewritten bool      // what the request shows is not what the loop has

	stale     bool                            // the session has other messages than the loop
	replaced  map[agent.Message]agent.Message // by hooks
	drafts    []draft                         // entries that hooks want
	turns     int                             // of the run of the loop, so far
	resultIDs []string                        // entries of the results of the turn

	compacted   bool // after the last run of the loop
	hookFailed  bool // a hook failed before anybody aborted the run
	uncompacted bool // a compaction between turns failed; another is not tried

	last    *llm.Assistant // the last answer
	lastID  string         // its entry
	attempt int            // retries so far
	broken  error          // results could not be written: the run ends with its turn
	unnoted error          // a call could not be noted in the journal: likewise

	cutOff *cutOff  // calls to run again, until the loop has them
	calls  underWay // of the run of the loop
	places places   // of the calls of its last answer

	returned bool            // drive did, and no listener ended the goroutine
	mayGoOn  bool            // with what was said while it came to rest
	late     []agent.Message // that

	// What was looked up before the run began, for its first request: a lookup
	// may run a command that asks the person something.
	keyed *llm.Model // for this model; nil once used
	key   Credentials

	// What listeners have been told and not yet that it is over.
	begun, ended, inTurn bool
	open                 agent.Message
	executing            []agent.Event // tool_execution_start of those that run

	phase     Phase
	alone     bool            // no run, but an operation on the session
	over      bool            // agent_end was told
	fault     error           // of a listener, at an event that was posted
	hookFault error           // of a hook, while an answer arrived
	primed    bool            // the prompts came from the steering queue
	unsaid    []agent.Message // prompts that are not in the transcript yet
	own       int             // of them, at the end, those of the caller; the others are of NextTurn
	stopWait  func()          // ends a wait for a retry, nil when there is none
	gaveUp    bool            // the wait was ended by AbortRetry

	stopSummary func() // ends a compaction or the summary of a branch, nil while there is none
}

// structural reports whether r is no run but an operation on the session.
func (r *run) structural() bool { return r.alone }

// drive runs the loop until nothing is left to do: retries, and messages that
// listeners queued while the last run was ending.
func (h *Harness) drive(r *run, prompts []agent.Message) error {
	for {
		if err := h.loop(r, prompts); err != nil {
			return err
		}
		if err := h.takeFault(r); err != nil {
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
		if again, r.compacted, err = h.fit(r, false); err != nil {
			return wrap(r.op, err)
		}
		if again {
			prompts = nil
			continue
		}
		if prompts = h.takeLeftOver(r); len(prompts) == 0 {
			more, err := h.beforeSettle(r)
			if err != nil {
				return wrap(r.op, err)
			}
			if !more {
				// The hooks took their time, and somebody may have spoken meanwhile.
				if prompts = h.takeLeftOver(r); len(prompts) == 0 {
					return nil
				}
			}
		}
	}
}

func (h *Harness) takeLeftOver(r *run) []agent.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leftOver(r)
}

// leftOver takes what is queued after a run of the loop, unless that was aborted
// or its retries were; h.mu is held. A program decides itself what comes after a
// failed answer.
func (h *Harness) leftOver(r *run) []agent.Message {
	failed := !r.compacted && r.last != nil && r.last.StopReason == llm.StopError
	if r.ctx.Err() != nil || failed && (r.gaveUp || h.opts.Embedded) {
		return nil
	}
	return h.takeQueued(r)
}

// loop is one run of the agent's loop. A failure that is not the model's
// becomes a failed answer, so that listeners see the run end.
func (h *Harness) loop(r *run, prompts []agent.Message) error {
	if r.snap == nil || !r.fresh {
		snap, err := h.capture(r.ctx, r.snap)
		if err != nil {
			return wrap(r.op, err)
		}
		r.snap = snap
		prompts = slices.Concat(snap.patches(), prompts)
	}
	r.fresh = false
	messages, revision := h.conversation(r.snap)
	if err := h.sess.Err(); err != nil {
		return &Error{KindSession, r.op, err} // the conversation would miss what could not be read
	}
	h.wire.rebase(r.snap.head, revision, len(messages))
	cfg := agent.Config{
		Model:         r.snap.model,
		ThinkingLevel: r.snap.level,
		Stream: func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
			return h.stream(ctx, r, m, req)
		},
		Options:   llm.Options{Memo: &h.memo},
		Execution: h.opts.Execution,
		ToLLM:     func(messages []agent.Message) []llm.Message { return h.toLLM(r, messages) },
		TransformContext: func(ctx context.Context, messages []agent.Message) ([]agent.Message, error) {
			return h.transform(ctx, r, messages)
		},
		Steering: func() []agent.Message { return h.pollSteering(r) },
		FollowUp: func() []agent.Message { return h.pollFollowUp(r) },
		PrepareNextTurn: func(ctx context.Context, t agent.Turn) (agent.NextTurn, error) {
			return h.prepareNextTurn(ctx, r, t)
		},
		PrepareRequest: func(ctx context.Context, c agent.Context, m *llm.Model, level llm.ThinkingLevel) (agent.NextTurn, error) {
			return h.prepareRequest(ctx, r, c, m, level)
		},
		FinishTurn: func(ctx context.Context, t agent.Turn) (agent.Decision, error) { return h.turnEnd(ctx, r, t) },
		BeforeToolCall: func(ctx context.Context, info agent.CallInfo) (*agent.Block, error) {
			if block, err := h.toolCall(ctx, info); block != nil || err != nil {
				return block, err
			}
			return nil, h.noteCall(r, info)
		},
		AfterToolCall: h.toolResult,
		Now:           h.now,
	}
	from := agent.Context{Messages: messages, Tools: r.snap.tools, Room: true}
	r.begun, r.ended, r.inTurn, r.open, r.executing, r.broken, r.unnoted = false, false, false, nil, nil, nil, nil
	r.answering, r.unrouted = nil, nil
	r.stale, r.replaced, r.turns, r.resultIDs, r.calls = false, nil, 0, nil, nil
	h.mu.Lock()
	r.over = false
	h.mu.Unlock()
	sink := func(ctx context.Context, ev agent.Event) error { return h.sink(ctx, r, ev) }
	var err error
	if c := r.cutOff; c != nil {
		left := agent.Unfinished{Answer: c.answer.Message().(*llm.Assistant), Calls: c.again}
		r.cutOff, r.last, r.lastID = nil, left.Answer, c.answer.ID
		_, err = agent.Finish(r.ctx, cfg, from, left, prompts, sink)
	} else if len(prompts) > 0 {
		_, err = agent.Run(r.ctx, cfg, from, prompts, sink)
	} else {
		_, err = agent.Resume(r.ctx, cfg, from, sink)
	}
	if err != nil {
		err = wrap(r.op, err)
		r.hookFailed = isHook(err) && r.ctx.Err() == nil
		return h.fail(r, err)
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
		out.TurnIndex = r.turns
	case agent.MessageStart:
		r.open = ev.Message
		h.show(ev.Message)
	case agent.MessageEnd:
		return h.finish(ctx, r, ev.Message)
	case agent.ToolExecutionStart:
		if r.broken != nil {
			return r.broken
		}
		r.executing = append(r.executing, ev)
	case agent.ToolExecutionEnd:
		if i := slices.IndexFunc(r.executing, func(c agent.Event) bool { return c.ToolCallID == ev.ToolCallID }); i >= 0 {
			copy(r.executing[1:], r.executing[:i]) // calls end about in their order: little is moved
			r.executing[0] = agent.Event{}
			r.executing = r.executing[1:]
		}
		h.noteResult(r, ev)
	case agent.TurnEnd:
		r.inTurn = false
		out.TurnIndex = r.turns
		r.turns++
		r.resultIDs = nil
		err := h.emit(ctx, &out)
		return first(r.broken, r.unnoted, h.endTurn(r), err)
	case agent.AgentEnd:
		h.mu.Lock()
		fault := r.fault
		r.fault, r.over = nil, fault == nil
		h.mu.Unlock()
		if fault != nil {
			return fault // the run fails before it ends
		}
		r.ended = true
		out.Messages = r.replacedIn(out.Messages)
		out.WillRetry = h.willRetry(r)
	}
	return h.emit(ctx, &out)
}

// show takes a message off the queue that it came from.
func (h *Harness) show(m agent.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (h.steering.show(m) || h.followUp.show(m)) && !h.opts.Embedded {
		h.postQueues()
	}
}

// finish tells that m is complete and appends it to the session, also when a
// listener fails.
func (h *Harness) finish(ctx context.Context, r *run, m agent.Message) error {
	r.open = nil
	now, hookErr := h.messageEnd(ctx, r, m)
	err := h.emit(ctx, &Event{Event: agent.Event{Type: agent.MessageEnd, Message: now}})
	return first(h.record(ctx, r, m, now), hookErr, err)
}

// record appends a finished message to the session. now is what hooks made of
// it.
func (h *Harness) record(ctx context.Context, r *run, m, now agent.Message) error {
	if m, ok := now.(*llm.Assistant); ok {
		h.noteAnswer(r, m)
	}
	e, err := h.save(now)
	if err != nil {
		err = &Error{KindSession, r.op, err}
	}
	h.mu.Lock()
	h.steering.said(m)
	h.followUp.said(m)
	if i := slices.Index(r.unsaid, m); i >= 0 {
		r.unsaid = r.unsaid[i+1:]
	}
	h.mu.Unlock()
	h.rearm(r, now)
	switch m := now.(type) {
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
		id := ""
		if e != nil {
			id = e.ID
		}
		r.resultIDs = append(r.resultIDs, id)
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
	tell := func(ev agent.Event, turn int) { _ = h.emit(ctx, &Event{Event: ev, TurnIndex: turn}) }
	partial, streaming := r.open.(*llm.Assistant)
	if r.open != nil && !streaming {
		_ = h.finish(ctx, r, r.open)
	}
	m := h.failure(r, cause, partial)
	for _, c := range r.executing { // their results are not said
		c.Type, c.IsError = agent.ToolExecutionEnd, true
		c.Result = &agent.Result{Content: []llm.Block{&llm.Text{Text: m.ErrorMessage}}, IsError: true}
		tell(c, 0)
	}
	if !r.inTurn {
		tell(agent.Event{Type: agent.TurnStart}, r.turns)
	}
	if !streaming {
		tell(agent.Event{Type: agent.MessageStart, Message: m}, 0)
	}
	if isBroken(cause) {
		tell(agent.Event{Type: agent.MessageEnd, Message: m}, 0)
	} else if err := h.finish(ctx, r, m); isBroken(err) {
		cause = err
	}
	tell(agent.Event{Type: agent.TurnEnd, Message: m}, r.turns)
	_ = h.endTurn(r) // what fails here fails again when the run settles
	h.mu.Lock()
	r.over = true
	h.mu.Unlock()
	tell(agent.Event{Type: agent.AgentEnd, Messages: []agent.Message{m}}, 0)
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
	if e, ok := errors.AsType[*HookError](cause); ok {
		m.ErrorMessage = e.Err.Error()
	}
	if err := r.ctx.Err(); err != nil {
		m.StopReason = llm.StopAborted
		if isHook(cause) {
			m.ErrorMessage = abortedText
		}
	}
	return m
}
