package harness

import (
	"context"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/session"
)

// The events of a harness besides those of package agent, by their JSON names.
const (
	AgentSettled         agent.EventType = "agent_settled"          // the harness is idle: the end of everything a prompt caused
	QueueUpdate          agent.EventType = "queue_update"           // Steering and FollowUp changed
	AutoRetryStart       agent.EventType = "auto_retry_start"       // a failed request will be repeated after DelayMs
	AutoRetryEnd         agent.EventType = "auto_retry_end"         // the retries succeeded or were given up
	EntryAppended        agent.EventType = "entry_appended"         // an entry that is no message was added
	SessionInfoChanged   agent.EventType = "session_info_changed"   // the session has a new name
	ThinkingLevelChanged agent.EventType = "thinking_level_changed" // Level is in force from the next turn on
)

// Event is one step of what a harness does: an event of a run, or one of the
// harness itself. Which fields are set depends on Type.
type Event struct {
	agent.Event

	WillRetry bool // agent_end: the harness will repeat the request

	Aborted bool // agent_settled: Abort was called, or the context of the prompt ended

	Steering, FollowUp []string // queue_update: the texts that wait

	Attempt      int    // auto_retry_*: counts from 1
	MaxAttempts  int    // auto_retry_start
	DelayMs      int64  // auto_retry_start
	ErrorMessage string // auto_retry_start
	Success      bool   // auto_retry_end
	FinalError   string // auto_retry_end without success

	Entry *session.Entry // entry_appended
	Name  string         // session_info_changed
	Level string         // thinking_level_changed
}

// Listener receives events one at a time, in their one order. The harness waits
// for it, and its context ends with the run. Partial messages are views that
// end with the call; what else an event holds may be kept and not changed.
//
// An error or a panic ends the run, when one is active; the other listeners get
// the event all the same.
//
// A listener may call every method that does not wait for the harness: Steer,
// FollowUp, ClearQueues, Abort, AbortRetry, SetModel, AppendMessage and the
// like. Events that they cause follow the one being delivered. Prompt,
// Continue, WaitForIdle and Close wait, and belong into a goroutine of their
// own.
type Listener func(ctx context.Context, ev Event) error

// Subscribe adds a listener; listeners are called in the order of subscription.
// unsubscribe takes it off from the next event on.
func (h *Harness) Subscribe(fn Listener) (unsubscribe func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &fn
	h.listeners = append(slices.Clone(h.listeners), s) // a list that is being walked stays as it is
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listeners = slices.DeleteFunc(slices.Clone(h.listeners), func(o *Listener) bool { return o == s })
	}
}

// emit delivers ev behind everything that was posted before, and returns when
// every listener has seen it. Only the goroutine of the run calls it: nobody
// else may wait for listeners. The error is the first of a listener, also one
// at an event that was posted during the run.
func (h *Harness) emit(ctx context.Context, ev *Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.delivering {
		h.free.Wait()
	}
	h.delivering = true
	defer h.delivered()
	h.drain(ctx)
	err := h.tell(ctx, ev)
	h.drain(ctx)
	if r := h.run; r != nil && err == nil {
		err, r.fault = r.fault, nil
	}
	return err
}

// post queues an event for delivery; h.mu is held, so that events of the same
// kind come in the order of the states that they tell. deliver must follow.
func (h *Harness) post(ev Event) { h.posted = append(h.posted, ev) }

// deliver sees to it that posted events reach the listeners: it does so itself,
// unless somebody is delivering already, who then takes them along. So a
// listener may cause events and never waits for itself.
func (h *Harness) deliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.delivering || len(h.posted) == 0 {
		return
	}
	ctx := context.Background()
	if h.run != nil {
		ctx = h.run.ctx
	}
	h.delivering = true
	defer h.delivered()
	h.drain(ctx)
}

// delivered gives the delivery up; h.mu is held.
func (h *Harness) delivered() {
	h.delivering = false
	h.free.Signal()
}

// drain delivers what was posted; h.mu is held between the events. A failure of
// a listener ends the run, if there is one: it is kept for the next emit.
func (h *Harness) drain(ctx context.Context) {
	for len(h.posted) > 0 {
		ev := h.posted[0]
		h.posted = h.posted[1:]
		if err := h.tell(ctx, &ev); err != nil && h.run != nil && h.run.fault == nil {
			h.run.fault = err
		}
	}
}

// tell calls all listeners and returns the first error; h.mu is held, except
// while they run.
func (h *Harness) tell(ctx context.Context, ev *Event) (err error) {
	listeners := h.listeners
	h.mu.Unlock()
	defer h.mu.Lock()
	for _, fn := range listeners {
		if e := call(ctx, *fn, ev); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func call(ctx context.Context, fn Listener, ev *Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a listener panicked: %v", v)
		}
	}()
	return fn(ctx, *ev)
}
