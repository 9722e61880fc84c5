// Package harness is the front door of the engine: one conversation with a
// model, its tools, its session and its queues.
//
//	h, err := harness.New(harness.Options{
//		Model:  model,
//		Stream: llm.NewRegistry(anthropic.New(anthropic.Config{})).Stream,
//		Tools:  []*agent.Tool{tool.Read(…)},
//	})
//	…
//	defer h.Close()
//	h.Subscribe(func(ctx context.Context, ev harness.Event) error { … })
//	answer, err := h.Prompt(ctx, "What does this module do?")
//
// # Runs
//
// Prompt and Continue run until the harness is idle again: the model answers,
// tools run, failed requests are repeated, queued messages are delivered. One
// run is active at a time; another prompt is refused as busy. Abort, or the end
// of the prompt's context, ends the run: the request, the tools, the wait for a
// retry. The partial answer is kept.
//
// While a run is active, Steer and FollowUp queue what the person says
// meanwhile: steering is delivered before the next request, a follow-up when
// nothing else is left to do. Neither an abort nor a failure empties the
// queues: what waits goes out with the next run, or comes back through
// ClearQueues.
//
// A model, a thinking level and tools that are set during a run hold from the
// next turn on; a request on its way is never changed.
//
// # Events
//
// Listeners see everything that happens, one event at a time and in one order:
//
//	agent_start
//	  turn_start
//	    message_start, message_end              system and user messages
//	    message_start, message_update…, message_end   the answer
//	    tool_execution_start, …_update…, …_end  for each call
//	    message_start, message_end              for each result
//	  turn_end
//	  …                                         further turns
//	agent_end
//	auto_retry_start, entry_appended, agent_start, …   where a request is repeated
//	agent_settled
//
// agent_end comes once for each agent_start, agent_settled once for each prompt
// that was accepted, whatever fails. Only agent_settled says that the harness
// is done. queue_update comes right before the message_start of the message
// that left its queue, and whenever a queue changes otherwise.
//
// # Session
//
// Every message is appended to the session when it ends, after the listeners
// have seen it: system messages, prompts, answers (the partial answer of an
// aborted run too) and tool results. Before each request the context is taken
// from the session, so what was edited or branched meanwhile counts; it costs
// what is new.
//
// What is recorded beside the messages of a run waits: SetModel,
// SetThinkingLevel and AppendMessage write at the end of the turn, so that
// nothing comes between a call and its result, and AppendMessage of a shell
// command of the user at the end of the run.
//
// # Virtual models
//
// A virtual model stands for others: its llm.Router, which Options.Router finds,
// says before each request who answers it. The session records the virtual model
// as the one that was chosen, and each answer records the model that gave it and
// its thinking level. A state that the router wants to keep is written to the
// branch before the request is sent.
//
// # Errors
//
// What goes wrong with a model is in its message: StopReason error or aborted,
// and ErrorMessage. Failures that pass by themselves are repeated, see Retry;
// the failed answer stays in the session and leaves the context. An *Error from
// Prompt says that there was no run (busy, invalid_state, invalid_argument,
// auth), that the session could not be written (session), or that a listener, a
// hook or the stream function failed (unknown). In the last two cases the run
// ends early with a failed answer, which the listeners see and Prompt returns
// or the session has.
//
// A message that could not be written is kept in memory and seen by Messages.
// The next prompt, and Close, write it first; while that fails, prompts are
// refused. Once there is room again nothing needs to be said twice: Continue
// goes on from the last message.
//
// A Harness is safe for concurrent use.
package harness

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// QueueMode says how much of a queue one poll delivers.
type QueueMode string

// The queue modes.
const (
	OneAtATime QueueMode = "one-at-a-time"
	All        QueueMode = "all"
)

// Credentials are what a request to a model needs. Zero fields change nothing.
type Credentials struct {
	Key     string
	Headers map[string]*string // nil values suppress default headers
	BaseURL string             // replaces the model's
	Env     map[string]string
}

// Options configure a Harness. Model and Stream are needed.
type Options struct {
	Model         *llm.Model
	ThinkingLevel llm.ThinkingLevel // clamped to what the model supports; "" for off
	Stream        agent.StreamFunc  // such as the Stream method of an llm.Registry

	// Session is the conversation to go on with; nil for a new one in memory.
	// The harness owns it once New has succeeded: nobody else writes to it, and
	// Close closes it.
	Session *session.Session

	Tools []*agent.Tool

	// SystemPrompt is the prompt as one text. Sections, when set, is used
	// instead: it returns the named parts of the prompt for the tools in
	// force, and is asked at the start of each prompt. Only parts that changed
	// are added to the transcript, so that prompt caches stay valid; a
	// conversation without a prompt gets all of them.
	SystemPrompt string
	Sections     func(tools []*agent.Tool) []llm.Section

	// Expand rewrites a text that a person typed: templates, skills.
	Expand func(text string) string

	// Credentials looks up what a request needs. It is asked before each run,
	// where an error refuses the prompt, and before each request, where it
	// becomes a failed answer. What Request names itself is left as it is.
	Credentials func(ctx context.Context, m *llm.Model) (Credentials, error)

	// Router is the router behind a virtual model, nil for a physical one. It is
	// asked by provider and id; a catalogue's Router method is one. Nil when all
	// models are physical.
	Router func(m *llm.Model) llm.Router

	Request      llm.Options     // options of every request; Memo, SessionID and Reasoning are set here
	Execution    agent.Execution // of tool calls; "" for parallel
	SteeringMode QueueMode       // "" for OneAtATime
	FollowUpMode QueueMode       // "" for OneAtATime
	Retry        Retry

	// KeepCutShort leaves an answer in the context that ended before the output
	// limit of its model for want of room. It is hidden otherwise, so that the
	// conversation does not go on from half a sentence.
	KeepCutShort bool

	// Hooks of the loop, see agent.Config.
	BeforeToolCall func(ctx context.Context, c agent.CallInfo) (*agent.Block, error)
	AfterToolCall  func(ctx context.Context, c agent.CallInfo, r agent.Result) (*agent.ResultPatch, error)
	// ToLLM turns the conversation into messages that a model knows; nil for
	// session.ToLLM. It should give the same pointer for the same message, so
	// that requests encode only what is new.
	ToLLM func(messages []agent.Message) []llm.Message
	// TransformContext changes what a request sees; the session stays.
	TransformContext func(ctx context.Context, messages []agent.Message) ([]agent.Message, error)

	Now func() time.Time // of the timestamps of messages; nil for time.Now
}

// Harness is one conversation. New makes one.
type Harness struct {
	opts Options
	sess *session.Session
	now  func() time.Time
	memo llm.Memo // encoded messages of this conversation
	wire wire     // of the run

	routing routerState // of the run

	// saving is held by who writes to the session. It comes before mu and is
	// never held while listeners run.
	saving sync.Mutex

	mu         sync.Mutex
	free       sync.Cond // the delivery is free
	delivering bool      // somebody is calling the listeners
	listeners  []*Listener
	posted     []Event // events that wait for the delivery
	model      *llm.Model
	level      llm.ThinkingLevel
	tools      []*agent.Tool
	steering   queue
	followUp   queue
	nextTurn   []agent.Message
	unsaved    []agent.Message // were said and could not be written
	turnWrites []session.Data  // wait for the end of the turn
	runWrites  []session.Data  // wait for the end of the run
	run        *run            // nil while idle
	done       chan struct{}   // of the last run, closed when its listeners are done; nil before the first
	closed     bool
}

// New makes a Harness. A new session first records the model and the thinking
// level; a resumed one where they are others, or where it has none. After an
// error the session in o is still the caller's to close.
func New(o Options) (*Harness, error) {
	const op = "new harness"
	switch {
	case o.Model == nil:
		return nil, &Error{KindInvalidArgument, op, errors.New("Options.Model is missing")}
	case o.Stream == nil:
		return nil, &Error{KindInvalidArgument, op, errors.New("Options.Stream is missing: give the Stream method of an llm.Registry")}
	}
	if err := checkTools(op, o.Tools); err != nil {
		return nil, err
	}
	h := &Harness{opts: o, sess: o.Session, now: o.Now, model: o.Model, tools: append([]*agent.Tool(nil), o.Tools...)}
	h.free.L = &h.mu
	if h.now == nil {
		h.now = time.Now
	}
	if h.sess == nil {
		s, err := memory.Open(session.Options{Now: o.Now})
		if err != nil {
			return nil, &Error{KindSession, op, err}
		}
		h.sess = s
	}
	if o.ThinkingLevel == "" {
		o.ThinkingLevel = llm.LevelOff
	}
	h.level = o.Model.ClampLevel(o.ThinkingLevel)
	if err := h.recordStart(); err != nil {
		return nil, &Error{KindSession, op, err}
	}
	return h, nil
}

// Session is the conversation's session. It may be read at any time; appending
// to it is the harness's own business. Branch may move its leaf while the harness
// is idle: the next prompt goes on from there.
func (h *Harness) Session() *session.Session { return h.sess }

// Messages is the conversation as the next request will see it, with what could
// not be written to the session. The list may be appended to, its elements must
// not be replaced.
func (h *Harness) Messages() []agent.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(h.sess.Context().Messages, h.unsaved...)
}

// IsIdle reports whether no run is active. It is true for the listeners of
// agent_settled.
func (h *Harness) IsIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run == nil
}

// WaitForIdle waits until no run is active and the listeners of agent_settled
// are done. The error is that of ctx.
func (h *Harness) WaitForIdle(ctx context.Context) error {
	for {
		h.mu.Lock()
		done := h.done
		h.mu.Unlock()
		if done == nil {
			return nil
		}
		select {
		case <-done:
		default:
			select {
			case <-done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		h.mu.Lock()
		last := h.done == done
		h.mu.Unlock()
		if last {
			return nil
		}
	}
}

// Abort ends the active run: the request, the tools, the wait for a retry. It
// does not wait (WaitForIdle does) and leaves the queues alone (ClearQueues
// takes them). Without a run it does nothing.
func (h *Harness) Abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != nil {
		h.run.cancel()
	}
}

// AbortRetry gives up the wait for a retry; the run then ends with the failure
// it has. Without a wait it does nothing.
func (h *Harness) AbortRetry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != nil && h.run.stopWait != nil {
		h.run.gaveUp = true
		h.run.stopWait()
	}
}

// Close aborts what is running, waits for it, writes what could not be written
// so far and closes the session. Later calls of Prompt and of whatever changes
// the conversation are refused; the conversation can still be read.
func (h *Harness) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Abort()
	if err := h.WaitForIdle(context.Background()); err != nil {
		return err
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	err := h.flush(&h.turnWrites, &h.runWrites)
	if e := h.sess.Close(); err == nil {
		err = e
	}
	if err != nil {
		return &Error{KindSession, "close", err}
	}
	return nil
}
