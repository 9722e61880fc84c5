package agent

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/internal/panics"
	"github.com/pinch-agent/pinch/llm"
)

// Agent keeps a transcript, queues and listeners between runs. Its methods are
// safe for concurrent use; one run is active at a time.
type Agent struct {
	mu        sync.Mutex
	cfg       Config
	tools     []*Tool
	messages  []Message
	steering  queue
	followUp  queue
	listeners []*subscription
	streaming *llm.Assistant // view of the answer that arrives
	calls     []string       // ids of calls that run
	failure   string
	active    *activity // nil while idle
}

// activity is a run and the telling of its end.
type activity struct {
	cancel context.CancelFunc
	idle   chan struct{} // closed when it is over
}

// Options set up an Agent. Only Config.Model and Config.Stream are needed.
type Options struct {
	// Config is how runs run. The agent's queues stand in for Steering and
	// FollowUp.
	Config Config
	// SystemPrompt and Tools become a system message at the head of the
	// transcript, unless Messages starts with one.
	SystemPrompt string
	Tools        []*Tool
	Messages     []Message

	SteeringMode QueueMode // "" for OneAtATime
	FollowUpMode QueueMode // "" for OneAtATime
}

// New makes an idle Agent. The lists of o are copied.
func New(o Options) *Agent {
	a := &Agent{
		cfg:      o.Config,
		tools:    slices.Clone(o.Tools),
		steering: queue{mode: o.SteeringMode},
		followUp: queue{mode: o.FollowUpMode},
	}
	a.cfg.validators = &validators{}
	if a.cfg.Options.Memo == nil {
		a.cfg.Options.Memo = &llm.Memo{}
	}
	leads := len(o.Messages) > 0 && o.Messages[0].Role() == llm.RoleSystem
	if !leads && (o.SystemPrompt != "" || len(o.Tools) > 0) {
		added, _ := toolChange(nil, o.Tools)
		a.messages = append(a.messages, &llm.System{Content: llm.Plain(o.SystemPrompt), ToolsAdded: added})
	}
	a.messages = append(a.messages, o.Messages...)
	return a
}

// State is an Agent at one moment. Its lists are copies.
type State struct {
	Model         *llm.Model
	ThinkingLevel llm.ThinkingLevel
	Tools         []*Tool
	Messages      []Message // complete ones; an answer joins them at its message_end
	SystemPrompt  string    // as the system messages of the transcript make it
	Running       bool      // until the listeners of agent_end have returned
	PendingCalls  []string  // ids of the tool calls that run, in order of their start
	ErrorMessage  string    // of the last answer, when it failed; a new run clears it
}

// State is the state of the agent now.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	level := a.cfg.ThinkingLevel
	if level == "" {
		level = llm.LevelOff
	}
	return State{
		Model: a.cfg.Model, ThinkingLevel: level,
		Tools: slices.Clone(a.tools), Messages: slices.Clone(a.messages),
		SystemPrompt: promptText(fold(a.messages)),
		Running:      a.active != nil,
		PendingCalls: slices.Clone(a.calls),
		ErrorMessage: a.failure,
	}
}

// StreamingMessage is the answer that is arriving, nil when there is none. It
// is a view: only a listener may call it, and use it until it returns.
func (a *Agent) StreamingMessage() *llm.Assistant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streaming
}

// Configure changes how runs run. A run that is active is not affected.
func (a *Agent) Configure(change func(*Config)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.cfg)
}

// SetModel changes the model for the next run.
func (a *Agent) SetModel(m *llm.Model) { a.Configure(func(c *Config) { c.Model = m }) }

// SetThinkingLevel changes the thinking level for the next run.
func (a *Agent) SetThinkingLevel(l llm.ThinkingLevel) {
	a.Configure(func(c *Config) { c.ThinkingLevel = l })
}

// SetTools changes the tools for the next run, which declares the difference.
func (a *Agent) SetTools(tools []*Tool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools = slices.Clone(tools)
}

// SetMessages replaces the transcript. A run that is active goes on with its
// own and adds its messages to the new one.
func (a *Agent) SetMessages(messages []Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages = slices.Clone(messages)
}

// SetQueueModes changes how much the queues give at a time. "" keeps a mode.
func (a *Agent) SetQueueModes(steering, followUp QueueMode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if steering != "" {
		a.steering.mode = steering
	}
	if followUp != "" {
		a.followUp.mode = followUp
	}
}

// Steer queues messages for the running turn's successor, or for the first turn
// of the next run.
func (a *Agent) Steer(messages ...Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.messages = append(a.steering.messages, messages...)
}

// FollowUp queues messages for when the model has nothing left to do.
func (a *Agent) FollowUp(messages ...Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followUp.messages = append(a.followUp.messages, messages...)
}

// ClearSteering empties the steering queue and returns what was in it.
func (a *Agent) ClearSteering() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.steering.messages
	a.steering.messages = nil
	return out
}

// ClearFollowUps empties the follow-up queue and returns what was in it.
func (a *Agent) ClearFollowUps() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.followUp.messages
	a.followUp.messages = nil
	return out
}

// ClearQueues empties both queues.
func (a *Agent) ClearQueues() {
	a.ClearSteering()
	a.ClearFollowUps()
}

// HasQueued reports whether a message waits in a queue.
func (a *Agent) HasQueued() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.steering.messages)+len(a.followUp.messages) > 0
}

// NextQueued is what would be taken next: from the steering queue, and when
// that is empty from the follow-ups.
func (a *Agent) NextQueued() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next := a.steering.next(); len(next) > 0 {
		return slices.Clone(next)
	}
	return slices.Clone(a.followUp.next())
}

// Listener receives the events of runs. The run waits for it; an error ends
// the run. Event says which parts of an event may be kept.
type Listener func(ctx context.Context, ev Event) error

type subscription struct{ listener Listener }

// Subscribe adds a listener. Listeners are called one after another in the
// order of their subscription, and all see each event before the next one. The
// returned function takes the listener off from the next event on.
func (a *Agent) Subscribe(l Listener) (unsubscribe func()) {
	s := &subscription{l}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(slices.Clone(a.listeners), s) // a list that is being walked stays as it is
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.listeners = slices.DeleteFunc(slices.Clone(a.listeners), func(o *subscription) bool { return o == s })
	}
}

// Prompt adds messages to the transcript and runs. It returns when the run is
// over and its listeners are done; ctx ends it early, as Abort does.
//
// How the run went is in the transcript: a failure of the model, of a hook or
// of a listener is an answer with an error message, not an error. The error is
// an *Error of kind Busy while a run is active, NoMessages without messages, or
// Unreported when a listener failed at the end of the run.
func (a *Agent) Prompt(ctx context.Context, messages ...Message) error {
	if len(messages) == 0 {
		return &Error{Kind: NoMessages, Op: "prompt"}
	}
	return a.run(ctx, "prompt", func() ([]Message, bool, error) { return slices.Clone(messages), false, nil })
}

// PromptText prompts with text, followed by images.
func (a *Agent) PromptText(ctx context.Context, text string, images ...*llm.Image) error {
	a.mu.Lock()
	clock := a.cfg
	a.mu.Unlock()
	m := llm.UserText(text, clock.millis())
	for _, image := range images {
		m.Content.Blocks = append(m.Content.Blocks, image)
	}
	return a.Prompt(ctx, m)
}

// Continue runs on from the transcript. When that ends with an answer, what
// waits in the steering queue, or else in the follow-up queue, is the prompt.
// The error is as that of Prompt, and an *Error of kind NoMessages or
// LastIsAssistant when there is nothing to run on from.
func (a *Agent) Continue(ctx context.Context) error {
	return a.run(ctx, "continue", func() ([]Message, bool, error) {
		if !slices.ContainsFunc(a.messages, func(m Message) bool { return m.Role() != llm.RoleSystem }) {
			return nil, false, &Error{Kind: NoMessages, Op: "continue"}
		}
		if a.messages[len(a.messages)-1].Role() != llm.RoleAssistant {
			return nil, false, nil
		}
		if prompts := a.steering.drain(); len(prompts) > 0 {
			return prompts, true, nil
		}
		if prompts := a.followUp.drain(); len(prompts) > 0 {
			return prompts, false, nil
		}
		return nil, false, &Error{Kind: LastIsAssistant, Op: "continue"}
	})
}

// Abort ends the active run. It does not wait for that, and leaves the queues
// as they are. It does nothing while the agent is idle.
func (a *Agent) Abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		a.active.cancel()
	}
}

// WaitForIdle waits until no run is active and its listeners are done. A
// listener must not call it. The error is that of ctx.
func (a *Agent) WaitForIdle(ctx context.Context) error {
	for {
		a.mu.Lock()
		active := a.active
		a.mu.Unlock()
		if active == nil {
			return nil
		}
		select {
		case <-active.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reset drops the transcript, except for one system message that says what all
// of its system messages said, and empties the queues. The error is an *Error
// of kind Busy while a run is active.
func (a *Agent) Reset() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return &Error{Kind: Busy, Op: "reset"}
	}
	base := fold(a.messages)
	a.messages = nil
	if base != nil {
		a.messages = []Message{base}
	}
	a.steering.messages, a.followUp.messages = nil, nil
	a.failure = ""
	a.cfg.Options.Memo = &llm.Memo{}
	return nil
}

// run claims the agent, runs and reports. choose gives the prompts and whether
// they come from the steering queue; it is called under the lock.
func (a *Agent) run(ctx context.Context, op string, choose func() ([]Message, bool, error)) error {
	a.mu.Lock()
	if a.active != nil {
		a.mu.Unlock()
		return &Error{Kind: Busy, Op: op}
	}
	cfg := a.cfg
	if cfg.Model == nil || cfg.Stream == nil {
		a.mu.Unlock()
		return &Error{Kind: InvalidConfig, Op: op, Err: errors.New("model and stream function are needed")}
	}
	prompts, primed, err := choose()
	if err != nil {
		a.mu.Unlock()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	active := &activity{cancel: cancel, idle: make(chan struct{})}
	a.active, a.failure = active, ""
	c := Context{Messages: slices.Clone(a.messages), Tools: slices.Clone(a.tools)}
	a.mu.Unlock()

	defer func() {
		cancel()
		a.mu.Lock()
		a.active, a.streaming, a.calls = nil, nil, nil
		a.mu.Unlock()
		close(active.idle)
	}()

	cfg.Steering = func() []Message { return a.drain(&a.steering) }
	cfg.FollowUp = func() []Message { return a.drain(&a.followUp) }
	report := reporter{agent: a}
	if _, err := start(ctx, cfg, c, nil, prompts, report.tell, primed); err != nil {
		return report.fail(ctx, op, cfg, err)
	}
	return nil
}

func (a *Agent) drain(q *queue) []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return q.drain()
}

// take brings the state up to date with ev and returns who must hear of it.
func (a *Agent) take(ev *Event) []*subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch ev.Type {
	case MessageStart:
		a.streaming, _ = ev.Message.(*llm.Assistant)
	case MessageEnd:
		a.streaming = nil
		a.messages = append(a.messages, ev.Message)
	case ToolExecutionStart:
		a.calls = append(a.calls, ev.ToolCallID)
	case ToolExecutionEnd:
		if i := slices.Index(a.calls, ev.ToolCallID); i >= 0 {
			copy(a.calls[1:], a.calls[:i]) // calls end about in their order: little is moved
			a.calls = a.calls[1:]
		}
	case TurnEnd:
		if m, ok := ev.Message.(*llm.Assistant); ok && m.ErrorMessage != "" {
			a.failure = m.ErrorMessage
		}
	case AgentEnd:
		a.streaming = nil
	}
	return a.listeners
}

// reporter tells the listeners of an Agent about one run.
type reporter struct {
	agent *Agent
	ended bool // agent_end was told
}

// tell is the sink of the run. At agent_end every listener is told, whatever
// those before it say: there is no second one.
func (r *reporter) tell(ctx context.Context, ev Event) error {
	listeners := r.agent.take(&ev)
	if ev.Type == AgentEnd {
		r.ended = true
		return tellAll(ctx, listeners, ev)
	}
	for _, s := range listeners {
		if err := s.listener(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

func tellAll(ctx context.Context, listeners []*subscription, ev Event) error {
	var errs []error
	for _, s := range listeners {
		errs = append(errs, panics.Do("listener", func() error { return s.listener(ctx, ev) }))
	}
	return errors.Join(errs...)
}

// fail reports what ended a run before its agent_end as an answer that says so.
func (r *reporter) fail(ctx context.Context, op string, cfg Config, cause error) error {
	if r.ended {
		r.agent.mu.Lock()
		r.agent.failure = cause.Error()
		r.agent.mu.Unlock()
		return &Error{Kind: Unreported, Op: op, Err: cause}
	}
	m := blankAnswer(cfg.Model, cfg.millis())
	m.Content = append(m.Content, &llm.Text{})
	m.StopReason, m.ErrorMessage = llm.StopError, cause.Error()
	if ctx.Err() != nil {
		m.StopReason = llm.StopAborted
	}
	var errs []error
	for _, ev := range []Event{
		{Type: MessageStart, Message: m},
		{Type: MessageEnd, Message: m},
		{Type: TurnEnd, Message: m},
		{Type: AgentEnd, Messages: []Message{m}},
	} {
		errs = append(errs, tellAll(ctx, r.agent.take(&ev), ev))
	}
	if err := errors.Join(errs...); err != nil {
		return &Error{Kind: Unreported, Op: op, Err: errors.Join(cause, err)}
	}
	return nil
}
