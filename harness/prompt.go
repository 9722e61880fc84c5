package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// Prompt says text to the model and runs until the harness is idle. It returns
// the last answer of the run, whose StopReason tells how it went; nil when
// there is none that counts: the run failed before a request, or the answer was
// cut short for want of room in the context and is hidden.
//
// The error is an *Error; the documentation of the package says what its kinds
// mean for the run.
func (h *Harness) Prompt(ctx context.Context, text string, images ...*llm.Image) (*llm.Assistant, error) {
	return h.PromptMessages(ctx, h.userMessage(text, images))
}

// PromptMessages is Prompt with messages as they are.
func (h *Harness) PromptMessages(ctx context.Context, messages ...agent.Message) (*llm.Assistant, error) {
	const op = "prompt"
	if len(messages) == 0 {
		return nil, &Error{KindInvalidArgument, op, errors.New("no message given")}
	}
	if err := checkMessages(op, messages); err != nil {
		return nil, err
	}
	return h.start(ctx, op, func(r *run, patch []agent.Message) ([]agent.Message, error) {
		r.unsaid, r.own = slices.Concat(h.nextTurn, messages), len(messages)
		h.nextTurn = nil
		return slices.Concat(patch, r.unsaid), nil
	})
}

// Continue asks the model to go on from the conversation as it is. When the
// last message is an answer, the messages that wait in the queues are the
// prompt; without any that is an *Error of kind invalid_state.
func (h *Harness) Continue(ctx context.Context) (*llm.Assistant, error) {
	const op = "continue"
	return h.start(ctx, op, func(r *run, patch []agent.Message) ([]agent.Message, error) {
		last := lastMessage(h.sess.Context().Messages)
		if last == nil {
			return nil, &Error{KindInvalidState, op, errors.New("the conversation is empty: give a prompt first")}
		}
		if last.Role() != llm.RoleAssistant {
			return patch, nil
		}
		if queued := h.takeQueued(r); len(queued) > 0 {
			return append(patch, queued...), nil
		}
		return nil, &Error{KindInvalidState, op, errors.New("the last message is an answer and nothing is queued: give a prompt")}
	})
}

// lastMessage is the last message that is no system message.
func lastMessage(messages []agent.Message) agent.Message {
	for _, m := range slices.Backward(messages) {
		if m.Role() != llm.RoleSystem {
			return m
		}
	}
	return nil
}

// start makes the harness busy, runs, and settles. begin chooses the prompts,
// with h.mu held; patch is the change of the system prompt.
func (h *Harness) start(ctx context.Context, op string, begin func(r *run, patch []agent.Message) ([]agent.Message, error)) (answer *llm.Assistant, err error) {
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{op: op, ctx: runCtx, cancel: cancel, done: make(chan struct{})}
	if err := h.claim(r); err != nil {
		return nil, err
	}
	// Deferred, so that the harness is idle again even when a listener ends
	// the goroutine, as a failing test does.
	accepted := false
	defer func() { answer, err = h.settle(ctx, r, accepted, err) }()
	prompts, err := h.prepare(r, begin)
	if err != nil {
		return nil, err
	}
	accepted = true
	return nil, h.drive(r, prompts)
}

// claim makes r the active run.
func (h *Harness) claim(r *run) error {
	h.saving.Lock() // a write that is under way belongs before the run
	defer h.saving.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return closedError(r.op)
	case h.run != nil:
		return &Error{KindBusy, r.op, errors.New("a run is active: use Steer or FollowUp, or wait for it")}
	}
	h.run, h.done = r, r.done
	return nil
}

// prepare does what can refuse a run, and takes the prompts when nothing does.
func (h *Harness) prepare(r *run, begin func(r *run, patch []agent.Message) ([]agent.Message, error)) (prompts []agent.Message, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{KindUnknown, r.op, fmt.Errorf("a callback of the options panicked: %v", v)}
		}
	}()
	h.saving.Lock()
	err = h.flush(&h.turnWrites, &h.runWrites)
	h.saving.Unlock()
	if err != nil {
		return nil, &Error{KindSession, r.op, err}
	}
	// Who answers in place of a virtual model is only known at the request.
	if m := h.Model(); h.router(m) == nil {
		r.keyed = m
		if r.key, err = h.credentials(r.ctx, r.keyed); err != nil {
			r.keyed = nil
			if r.ctx.Err() == nil {
				return nil, &Error{KindAuth, r.op, err}
			}
		}
	}
	patch := h.promptPatch()
	h.mu.Lock()
	defer h.mu.Unlock()
	return begin(r, patch)
}

// settle ends r, whatever became of it: nothing that was taken for it is lost,
// and an accepted one tells so.
func (h *Harness) settle(ctx context.Context, r *run, accepted bool, err error) (*llm.Assistant, error) {
	defer close(r.done)
	ctx = context.WithoutCancel(ctx)
	if r.attempt > 0 {
		final := abortedText
		if err != nil {
			final = err.Error()
		}
		err = first(err, wrap(r.op, h.endRetries(ctx, r, false, final)))
	}
	err = first(err, h.rest(r))
	if !accepted {
		h.deliver()
		return nil, err
	}
	settled := &Event{Event: agent.Event{Type: AgentSettled}, Aborted: r.ctx.Err() != nil}
	err = first(err, wrap(r.op, h.emit(ctx, settled)))
	return r.last, err
}

// rest makes the harness idle.
func (h *Harness) rest(r *run) error {
	h.saving.Lock() // from here on a write is either in the lists or waits until h.run is nil
	defer h.saving.Unlock()
	err := h.flush(&h.turnWrites, &h.runWrites)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run = nil
	if n := len(r.unsaid) - r.own; n > 0 {
		h.nextTurn = slices.Concat(r.unsaid[:n], h.nextTurn)
	}
	steering, followUp := h.steering.restore(), h.followUp.restore()
	if steering || followUp {
		h.postQueues()
	}
	if err != nil {
		return &Error{KindSession, r.op, err}
	}
	return nil
}

// first is the first error of several.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
