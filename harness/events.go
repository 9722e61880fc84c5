package harness

import (
	"context"
	"net/http"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/panics"
	"github.com/pinch-agent/pinch/llm"
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
	CompactionStart      agent.EventType = "compaction_start"       // the conversation is being compacted, for Reason
	CompactionEnd        agent.EventType = "compaction_end"         // it is: Compacted; or not: Aborted or ErrorMessage

	SummarizationRetryScheduled    agent.EventType = "summarization_retry_scheduled"     // a summary failed and is asked for again after DelayMs
	SummarizationRetryAttemptStart agent.EventType = "summarization_retry_attempt_start" // now, for Source
	SummarizationRetryFinished     agent.EventType = "summarization_retry_finished"      // the retries succeeded or were given up
)

// Notifications are events for programs that embed a harness or extend it. They
// stand in the one order of events, and only SubscribeAll and Hooks.On get them.
const (
	SavePoint             agent.EventType = "save_point"              // after turn_end: what the turn said and what waited is in the session
	AbortDone             agent.EventType = "abort"                   // AbortAndClear is done: Steering and FollowUp are what it took from the queues
	ModelSelect           agent.EventType = "model_select"            // Model was set in the place of PreviousModel
	ThinkingLevelSelect   agent.EventType = "thinking_level_select"   // Level was set in the place of PreviousLevel
	ResourcesUpdate       agent.EventType = "resources_update"        // Resources were set
	AfterProviderResponse agent.EventType = "after_provider_response" // a provider answers with Status and Header
	SessionCompact        agent.EventType = "session_compact"         // the session was compacted: Compacted
	SessionCompactFailed  agent.EventType = "session_compact_failed"  // it was not: Aborted, ErrorMessage
	SessionTree           agent.EventType = "session_tree"            // the leaf moved from OldLeaf to NewLeaf; Entry is the summary, nil for none
	SessionStart          agent.EventType = "session_start"           // of a host, by Tell
	SessionShutdown       agent.EventType = "session_shutdown"        // of a host, by Tell
)

// isNotification reports whether an event is only for SubscribeAll and hooks.
func isNotification(t agent.EventType) bool {
	switch t {
	case SavePoint, AbortDone, ModelSelect, ThinkingLevelSelect, ResourcesUpdate, AfterProviderResponse,
		SessionCompact, SessionCompactFailed, SessionTree, SessionStart, SessionShutdown:
		return true
	}
	return false
}

// Event is one step of what a harness does: an event of a run, or one of the
// harness itself. Which fields are set depends on Type.
type Event struct {
	agent.Event

	WillRetry bool // agent_end, compaction_end: the harness will repeat the request

	TurnIndex int // turn_start, turn_end: of the run, from 0

	Aborted       bool // agent_settled: Abort was called, or the context of the prompt ended; compaction_end, session_compact_failed: likewise, or a hook refused
	NextTurnCount int  // agent_settled: messages that wait for the next prompt

	Steering, FollowUp []string // queue_update: the texts that wait; abort: those that were taken
	NextTurn           []string // queue_update, with Options.Embedded: those that wait for the next prompt

	Attempt      int    // auto_retry_*, summarization_retry_scheduled: counts from 1
	MaxAttempts  int    // auto_retry_start, summarization_retry_scheduled
	DelayMs      int64  // auto_retry_start, summarization_retry_scheduled
	ErrorMessage string // auto_retry_start, summarization_retry_scheduled; of a compaction that was not made: compaction_end, session_compact_failed
	Success      bool   // auto_retry_end
	FinalError   string // auto_retry_end without success

	Entry *session.Entry // entry_appended
	Name  string         // session_info_changed
	Level string         // thinking_level_changed, thinking_level_select

	HadPendingMutations bool        // save_point: something had waited for the end of the turn
	Model               *llm.Model  // model_select, after_provider_response
	PreviousModel       *llm.Model  // model_select
	PreviousLevel       string      // thinking_level_select
	Resources           *Resources  // resources_update
	Status              int         // after_provider_response
	Header              http.Header // after_provider_response
	Reason              string      // session_start, session_shutdown; compaction_*: a compact.Reason
	Compacted           *Compacted  // compaction_end and session_compact of one that was made
	Source              string      // summarization_retry_attempt_start: compaction or branchSummary
	OldLeaf, NewLeaf    string      // session_tree; "" for the place before the first entry
	FromHook            bool        // session_tree: a hook gave the summary
	SessionFile         string      // session_start: the one before; session_shutdown: the one to come; "" for none

	seen chan struct{} // no event: closed when those before have been delivered
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
// Continue, Compact, NavigateTree, WaitForIdle and Close wait, and belong into a
// goroutine of their own, with a context of their own.
type Listener func(ctx context.Context, ev Event) error

// Subscribe adds a listener; listeners are called in the order of subscription.
// unsubscribe takes it off from the next event on.
func (h *Harness) Subscribe(fn Listener) (unsubscribe func()) { return h.subscribe(fn, false) }

// SubscribeAll is Subscribe for a listener that gets the notifications too.
func (h *Harness) SubscribeAll(fn Listener) (unsubscribe func()) { return h.subscribe(fn, true) }

// subscription is a listener; its address tells it from others.
type subscription struct {
	fn  Listener
	all bool // notifications too
}

func (h *Harness) subscribe(fn Listener, all bool) (unsubscribe func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscription{fn, all}
	h.listeners = append(slices.Clone(h.listeners), s) // a list that is being walked stays as it is
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listeners = slices.DeleteFunc(slices.Clone(h.listeners), func(o *subscription) bool { return o == s })
	}
}

// Tell delivers an event of the host, such as session_start, behind those that
// wait. It may return before the listeners have seen it.
func (h *Harness) Tell(ev Event) {
	h.mu.Lock()
	h.post(ev)
	h.mu.Unlock()
	h.deliver()
}

// Delivered waits until the listeners have seen everything that was told before,
// such as what a change of the queues or of the model caused. The error is that
// of ctx. As it waits, listeners and hooks must leave it to a goroutine of their
// own.
func (h *Harness) Delivered(ctx context.Context) error {
	seen := make(chan struct{})
	h.Tell(Event{seen: seen})
	select {
	case <-seen:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watched reports whether anybody gets notifications of a type.
func (h *Harness) watched(t agent.EventType) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.listeners, func(s *subscription) bool { return s.all }) ||
		anyHook(h.hooks, func(s *Hooks) bool { return s.On[t] != nil })
}

// emit delivers ev behind everything that was posted before, and returns when
// every listener has seen it. Only the goroutine of the run calls it: nobody
// else may wait for listeners. The error is the first of a listener, also one
// at an event that was posted during the run.
func (h *Harness) emit(ctx context.Context, ev *Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seize(ctx)
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
	h.delivering = true
	defer h.delivered()
	if h.run != nil {
		h.drain(h.run.ctx)
		return
	}
	ctx, cancel := h.outliving(context.Background())
	defer cancel()
	h.hurry = cancel
	h.drain(ctx)
}

// seize waits until the delivery is free and takes it; h.mu is held. A delivery
// that belongs to no run would otherwise hold up one that is to end: its context
// ends once ctx has.
func (h *Harness) seize(ctx context.Context) {
	for h.delivering {
		stop := context.AfterFunc(ctx, h.hasten)
		h.free.Wait()
		stop()
	}
	h.delivering = true
}

// hasten ends the context of a delivery that belongs to no run.
func (h *Harness) hasten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hurry != nil {
		h.hurry()
	}
}

// delivered gives the delivery up; h.mu is held.
func (h *Harness) delivered() {
	h.delivering, h.hurry = false, nil
	h.free.Signal()
}

// insideKey is the key under which a context names the harness whose listeners
// and hooks get it.
type insideKey struct{}

func (h *Harness) inside(ctx context.Context) context.Context {
	return context.WithValue(ctx, insideKey{}, h)
}

// outliving is a context with the values of ctx for what belongs to no run, or
// follows its end. It ends when Close has waited long enough for that.
func (h *Harness) outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(h.inside(context.WithoutCancel(ctx)))
	stop := context.AfterFunc(h.last, cancel)
	return ctx, func() { stop(); cancel() }
}

// rested makes the harness idle and tells that r has settled. Nobody else
// delivers in between, so that the events of the next run come behind. late is
// what r has to say first instead.
func (h *Harness) rested(ctx context.Context, hurry func(), r *run) (late []agent.Message, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seize(ctx)
	defer h.delivered()
	h.hurry = hurry
	err = func() error {
		h.mu.Unlock()
		defer h.mu.Lock()
		return h.rest(r)
	}()
	h.drain(ctx)
	if len(r.late) > 0 {
		return r.late, err
	}
	ev := &Event{Event: agent.Event{Type: AgentSettled}, Aborted: r.ctx.Err() != nil, NextTurnCount: len(h.nextTurn)}
	told := wrap(r.op, h.tell(ctx, ev))
	if ctx.Err() != nil && isHook(told) {
		told = nil // the hook was ended
	}
	h.drain(ctx)
	return nil, first(err, told)
}

// drain delivers what was posted; h.mu is held between the events. A failure of
// a listener ends the run, if there is one: it is kept for the next emit.
func (h *Harness) drain(ctx context.Context) {
	for len(h.posted) > 0 {
		ev := h.posted[0]
		h.posted = h.posted[1:]
		if ev.seen != nil {
			close(ev.seen)
			continue
		}
		if err := h.tell(ctx, &ev); err != nil && h.run != nil && h.run.fault == nil {
			h.run.fault = err
		}
	}
}

// tell calls all listeners and returns the first error; h.mu is held, except
// while they run.
func (h *Harness) tell(ctx context.Context, ev *Event) (err error) {
	listeners, sets := h.listeners, h.hooks
	h.mu.Unlock()
	defer h.mu.Lock()
	err = h.notify(ctx, sets, ev)
	noted := isNotification(ev.Type)
	for _, s := range listeners {
		if noted && !s.all {
			continue
		}
		if e := panics.Do("a listener", func() error { return s.fn(ctx, *ev) }); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// told delivers what was posted and returns the failure of a listener. As emit
// it is for the goroutine of the run.
func (h *Harness) told(ctx context.Context, r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seize(ctx)
	defer h.delivered()
	h.drain(ctx)
	err := r.fault
	r.fault = nil
	return err
}
