package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Prompt says text to the model and runs until the harness is idle. It returns
// the last answer of the run, whose StopReason tells how it went; nil when
// there is none that counts: the run failed before a request, the answer was
// cut short for want of room in the context and is hidden, or a hook handled the
// text itself.
//
// The error is an *Error; the documentation of the package says what its kinds
// mean for the run.
func (h *Harness) Prompt(ctx context.Context, text string, images ...*llm.Image) (*llm.Assistant, error) {
	return h.Submit(ctx, Input{Text: text, Images: images})
}

// Submit is Prompt for an input whose source is known. While a run is active it
// queues the input as in.Behavior says, and returns no answer; without a
// behaviour the input is refused as busy.
func (h *Harness) Submit(ctx context.Context, in Input) (*llm.Assistant, error) {
	const op = "prompt"
	switch in.Behavior {
	case "", AsSteering, AsFollowUp:
	default:
		return nil, &Error{KindInvalidArgument, op, fmt.Errorf("the behaviour %q is neither %s nor %s", in.Behavior, AsSteering, AsFollowUp)}
	}
	if in.Behavior == "" {
		if err := h.mustBeIdle(op); err != nil {
			return nil, err
		}
	}
	asked, done := context.WithCancel(ctx)
	defer context.AfterFunc(h.life, done)() // no run holds the hooks yet, which Close could end
	in, handled, err := h.input(asked, op, in)
	done()
	if err != nil {
		return nil, err
	}
	if handled {
		in.accepted(InputHandled)
		return nil, nil
	}
	m, err := h.userMessage(op, in.Text, in.Images)
	if err != nil {
		return nil, err
	}
	if in.Behavior != "" {
		h.mu.Lock()
		if r := h.run; r != nil && !r.structural() {
			h.queueFor(in.Behavior).add(m)
			h.postQueues()
			h.mu.Unlock()
			h.deliver()
			in.accepted(InputQueued)
			return nil, nil
		}
		h.mu.Unlock()
	}
	return h.promptMessages(ctx, in.accepted, m)
}

// PromptMessages is Prompt with messages as they are; hooks for inputs are not
// asked.
func (h *Harness) PromptMessages(ctx context.Context, messages ...agent.Message) (*llm.Assistant, error) {
	return h.promptMessages(ctx, func(Disposition) {}, messages...)
}

func (h *Harness) promptMessages(ctx context.Context, accepted func(Disposition), messages ...agent.Message) (*llm.Assistant, error) {
	const op = "prompt"
	if len(messages) == 0 {
		return nil, &Error{KindInvalidArgument, op, errors.New("no message given")}
	}
	if err := checkMessages(op, messages); err != nil {
		return nil, err
	}
	return h.start(ctx, op, false, func(r *run) ([]agent.Message, error) {
		h.mu.Lock()
		waited := len(h.nextTurn) > 0
		r.unsaid, r.own = slices.Concat(h.nextTurn, messages), len(messages)
		h.nextTurn = nil
		if waited && h.opts.Embedded {
			h.postQueues()
		}
		h.mu.Unlock()
		if waited && h.opts.Embedded {
			if err := h.told(r.ctx, r); err != nil {
				return nil, &Error{KindHook, op, err}
			}
		}
		added, err := h.beforeStart(r, r.unsaid)
		if err != nil && r.ctx.Err() == nil {
			return nil, err
		}
		accepted(InputStarted)
		return slices.Concat(r.snap.patches(), r.unsaid, added), nil
	})
}

// Continue asks the model to go on from the conversation as it is, after calls
// that a crash cut off have run again where that is safe. When the last message
// is an answer, and none of its calls is to run, the messages that wait in the
// queues are the prompt; without any that is an *Error of kind invalid_state.
func (h *Harness) Continue(ctx context.Context) (*llm.Assistant, error) {
	const op = "continue"
	return h.start(ctx, op, true, func(r *run) ([]agent.Message, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		patch := r.snap.patches()
		last := lastMessage(h.sess.Context().Messages)
		if last == nil {
			return nil, &Error{KindInvalidState, op, errors.New("the conversation is empty: give a prompt first")}
		}
		if last.Role() != llm.RoleAssistant || r.cutOff != nil {
			return patch, nil
		}
		if queued := h.takeQueued(r); len(queued) > 0 {
			return append(patch, queued...), nil
		}
		return nil, &Error{KindInvalidState, op, errors.New("the last message is an answer and nothing is queued: give a prompt")}
	})
}

// lastMessage is the last message that a model answers or has answered: no
// system message, and none that models do not see, such as a person's own shell
// command.
func lastMessage(messages []agent.Message) agent.Message {
	for _, m := range slices.Backward(messages) {
		if m.Role() != llm.RoleSystem && session.Convert(m) != nil {
			return m
		}
	}
	return nil
}

// start makes the harness busy, runs, and settles. again says that calls which
// wait for it are run again. begin chooses the prompts, the change of the system
// prompt first.
func (h *Harness) start(ctx context.Context, op string, again bool, begin func(r *run) ([]agent.Message, error)) (answer *llm.Assistant, err error) {
	runCtx, cancel := context.WithCancel(h.inside(ctx))
	defer cancel()
	r := &run{op: op, ctx: runCtx, cancel: cancel, done: make(chan struct{}), phase: PhaseTurn}
	if err := h.claim(ctx, r); err != nil {
		return nil, err
	}
	// Deferred, so that the harness is idle again even when a listener ends
	// the goroutine, as a failing test does.
	accepted := false
	defer func() { answer, err = h.settle(ctx, r, accepted, err) }()
	var prompts []agent.Message
	err = guarded(op, func() (err error) {
		prompts, err = h.prepare(r, again, begin)
		return err
	})
	if err != nil {
		return nil, err
	}
	accepted = true
	return nil, h.goOn(r, prompts)
}

// goOn drives r to its end. A hook that was ended together with it has not
// failed.
func (h *Harness) goOn(r *run, prompts []agent.Message) error {
	r.returned = false
	err := guarded(r.op, func() error { return h.drive(r, prompts) })
	r.returned = true
	if r.ctx.Err() != nil && isHook(err) && !r.hookFailed {
		return nil
	}
	return err
}

// claim makes r the active run. ctx is that of who asks for it.
func (h *Harness) claim(ctx context.Context, r *run) error {
	h.saving.Lock() // a write that is under way belongs before the run
	defer h.saving.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return closedError(r.op)
	case h.run != nil:
		return h.busy(r.op)
	case ctx.Value(insideKey{}) == h:
		return &Error{KindInvalidState, r.op, errors.New("a listener or a hook of this conversation, for which it would wait, asks for it: " +
			"do it in a goroutine of its own, with another context")}
	}
	h.run, h.done = r, r.done
	return nil
}

// prepare does what can refuse a run, and takes the prompts when nothing does.
func (h *Harness) prepare(r *run, again bool, begin func(r *run) ([]agent.Message, error)) (prompts []agent.Message, err error) {
	h.saving.Lock()
	if again {
		r.cutOff = h.takeCutOff()
	} else {
		err = h.giveUp()
	}
	if err == nil {
		err = h.flush(&h.turnWrites, &h.runWrites)
	}
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
	if r.cutOff == nil { // nothing comes between a call and its result
		if _, _, err := h.fit(r, true); err != nil {
			return nil, wrap(r.op, err)
		}
	}
	if r.snap, err = h.capture(r.ctx, nil); err != nil {
		return nil, wrap(r.op, fmt.Errorf("the system prompt could not be made: %w", err))
	}
	r.fresh = true
	return begin(r)
}

// settle ends r, whatever became of it: nothing that was taken for it is lost,
// and an accepted one tells so.
func (h *Harness) settle(ctx context.Context, r *run, accepted bool, err error) (*llm.Assistant, error) {
	defer close(r.done)
	ctx, cancel := h.outliving(ctx)
	defer cancel()
	// Listeners and hooks have some time for the end of an aborted run, not for ever.
	defer context.AfterFunc(r.ctx, func() { time.AfterFunc(h.grace(), cancel) })()
	for {
		if r.attempt > 0 {
			final := abortedText
			if err != nil {
				final = Explain(err)
			}
			err = first(err, wrap(r.op, h.endRetries(ctx, r, false, final)))
		}
		if !accepted {
			err = first(err, h.rest(r))
			h.deliver()
			return nil, err
		}
		r.mayGoOn = r.returned && err == nil
		late, e := h.rested(ctx, cancel, r)
		if len(late) == 0 {
			return r.last, first(err, e)
		}
		func() {
			defer func() {
				if !r.returned { // a listener ends the goroutine
					r.mayGoOn = false
					_, _ = h.rested(ctx, cancel, r)
				}
			}()
			err = h.goOn(r, late)
		}()
	}
}

// rest makes the harness idle, unless r may go on and somebody spoke when it had
// looked for the last time: nobody who finds a run active is left to wait for
// the next prompt. The messages are then in r.late.
func (h *Harness) rest(r *run) error {
	h.saving.Lock() // from here on a write is either in the lists or waits until h.run is nil
	defer h.saving.Unlock()
	err := h.flush(&h.turnWrites, &h.runWrites)
	if h.cutOff == nil {
		h.cutOff = r.cutOff
	}
	h.endJournal()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.late = nil; err == nil && r.mayGoOn {
		if r.late = h.leftOver(r); len(r.late) > 0 {
			return nil
		}
	}
	h.run = nil
	next := false
	if n := len(r.unsaid) - r.own; n > 0 {
		h.nextTurn = slices.Concat(r.unsaid[:n], h.nextTurn)
		next = h.opts.Embedded
	}
	steering, followUp := h.steering.restore(), h.followUp.restore()
	if steering || followUp || next {
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
