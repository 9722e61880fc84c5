package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
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
	// ActiveTools names those of Tools that are in force; nil for all of them.
	ActiveTools []string
	// Resources are skills and templates that the program itself calls.
	Resources Resources

	// Prompt says where the system prompt lives; "" for RecordedPrompt.
	Prompt PromptKind
	// SystemPrompt is the prompt as one text. PromptText, when set, is used
	// instead, and Sections, which returns the named parts of the prompt for
	// the tools in force, instead of both.
	//
	// A recorded prompt is asked for at the start of each prompt, and between
	// turns when model, level, tools or resources have changed. Only parts that
	// changed are added to the transcript, so that prompt caches stay valid; a
	// conversation without a prompt gets all of them. A fixed prompt is asked
	// for once for each turn.
	SystemPrompt string
	PromptText   func(ctx context.Context, t TurnState) (string, error)
	Sections     func(tools []*agent.Tool) []llm.Section

	// Embedded makes the harness the engine of a program rather than the
	// conversation of a person: see the documentation of the package.
	Embedded bool

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

	Request      llm.Options     // options of every request; Memo and Reasoning are set here, SessionID where it is ""
	Execution    agent.Execution // of tool calls; "" for parallel
	SteeringMode QueueMode       // "" for OneAtATime
	FollowUpMode QueueMode       // "" for OneAtATime
	Retry        Retry

	// Compaction says when the conversation is compacted by itself and what of
	// it stays; the zero value compacts.
	Compaction compact.Settings
	// BranchReserveTokens is how much of the context window the summary of a
	// branch leaves for itself; nil for compact.DefaultReserveTokens.
	BranchReserveTokens *int64

	Hooks     []Hooks       // called in this order; see AddHooks for later ones
	HookGrace time.Duration // how long a hook may take once its context has ended; 0 for a second

	// Hooks of the loop, see agent.Config. They are called before Hooks.
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

	routing  routerState   // of the run
	meter    compact.Meter // likewise
	recorded recorded      // of the run
	head     head          // of the run
	spoken   spoken        // of the run
	// recovered says that an answer was repeated after an overflow. It belongs to
	// the run.
	recovered bool
	futile    futile // likewise

	recovery Recovery // what New found

	// saving is held by who writes to the session. It comes before mu and is
	// never held while listeners run.
	saving  sync.Mutex
	cutOff  *cutOff // calls that Continue is to run again, nil for none; under saving
	noteBuf []byte  // of the last line for the journal; likewise

	mu         sync.Mutex
	free       sync.Cond // the delivery is free
	delivering bool      // somebody is calling the listeners
	hurry      func()    // ends the context of that, where it is not a run's; nil while none
	listeners  []*subscription
	hooks      []*hookSet
	posted     []Event // events that wait for the delivery
	model      *llm.Model
	level      llm.ThinkingLevel
	tools      []*agent.Tool // in force
	allTools   []*agent.Tool
	request    llm.Options
	resources  Resources
	// resourcesVersion tells resources apart.
	resourcesVersion int
	steeringMode     QueueMode
	followUpMode     QueueMode
	steering         queue
	followUp         queue
	nextTurn         []agent.Message
	unsaved          []agent.Message // were said and could not be written
	turnWrites       []session.Data  // wait for the end of the turn
	runWrites        []session.Data  // wait for the end of the run
	run              *run            // nil while idle
	done             chan struct{}   // of the last run, closed when its listeners are done; nil before the first
	closed           bool

	life    context.Context // ends when the harness is closed
	endLife context.CancelFunc
	last    context.Context // ends a grace later
	endLast context.CancelFunc
}

// New makes a Harness. A new session first records the model and the thinking
// level; a resumed one where they are others, or where it has none. Where a run
// of it was cut off, it is brought up to date first: see Recovered. After an
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
	switch o.Prompt {
	case "", RecordedPrompt, FixedPrompt:
	default:
		return nil, &Error{KindInvalidArgument, op, fmt.Errorf("Options.Prompt is %q: it is recorded or fixed", o.Prompt)}
	}
	switch o.Execution {
	case "", agent.Parallel, agent.Sequential:
	default:
		return nil, &Error{KindInvalidArgument, op, fmt.Errorf("Options.Execution is %q: it is parallel or sequential", o.Execution)}
	}
	if err := o.Compaction.Validate(); err != nil {
		return nil, &Error{KindInvalidArgument, op, err}
	}
	h := &Harness{
		opts: o, sess: o.Session, now: o.Now, model: o.Model,
		tools: slices.Clone(o.Tools), allTools: slices.Clone(o.Tools),
		request: copyOptions(o.Request), resources: o.Resources.clone(),
		steeringMode: o.SteeringMode, followUpMode: o.FollowUpMode,
	}
	if o.ActiveTools != nil {
		var err error
		if h.tools, err = pickTools(op, o.Tools, o.ActiveTools); err != nil {
			return nil, err
		}
	}
	for _, hooks := range o.Hooks {
		h.hooks = append(h.hooks, &hookSet{Hooks: hooks})
	}
	h.free.L = &h.mu
	h.life, h.endLife = context.WithCancel(context.Background())
	h.last, h.endLast = context.WithCancel(context.Background())
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
	if o.Embedded {
		// The session ends in a move that nothing followed yet. Its target may be
		// missing, in a fork or in a damaged log: the move then leads nowhere.
		if leaf := h.sess.Leaf(); leaf != nil && leaf.Type == session.TypeLeaf {
			err := h.sess.Branch(leaf.Data().(*session.LeafEntry).TargetID)
			if err != nil && !errors.Is(err, &session.Error{Kind: session.NotFound}) {
				return nil, &Error{KindSession, op, err}
			}
		}
	}
	if err := h.takeUp(); err != nil {
		return nil, &Error{KindSession, op, err}
	}
	if o.Embedded {
		return h, nil
	}
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
// agent_settled, unless somebody has begun another run meanwhile.
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

// Abort ends what is active: a run with its request, its tools and its wait for
// a retry, a compaction, a branch summary, and hooks that take long over its
// outcome. AbortRetry, AbortCompaction and AbortBranchSummary end one of them
// alone. It does not wait (WaitForIdle does) and leaves the queues alone
// (ClearQueues and AbortAndClear take them). While the harness is idle it does
// nothing.
func (h *Harness) Abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.run != nil:
		h.run.cancel()
	case h.hurry != nil:
		h.hurry()
	}
}

// Cleared are messages that AbortAndClear took from the queues.
type Cleared struct{ Steering, FollowUp []agent.Message }

// AbortAndClear is Abort for a program that wants to start anew: it empties the
// queues of steering and follow-ups, ends what is active, waits for that, tells
// listeners of abort, and returns what it took. What waits for the next turn
// stays. As it waits, listeners and hooks must leave it to a goroutine of their
// own.
//
// The error is that of ctx, when it ended before the harness was idle; what was
// taken is returned all the same.
func (h *Harness) AbortAndClear(ctx context.Context) (Cleared, error) {
	h.mu.Lock()
	told := Event{Event: agent.Event{Type: AbortDone}, Steering: texts(h.steering.waiting), FollowUp: texts(h.followUp.waiting)}
	out := Cleared{Steering: h.steering.clear(), FollowUp: h.followUp.clear()}
	h.postQueues()
	h.mu.Unlock()
	h.deliver()
	h.Abort()
	if err := h.WaitForIdle(ctx); err != nil {
		return out, err
	}
	h.Tell(told)
	return out, nil
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
// the conversation are refused; the conversation can still be read. A tool or a
// listener that ignores its context holds it up; one that calls it waits for
// itself, for ever.
func (h *Harness) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.endLife()
	h.Abort()
	time.AfterFunc(h.grace(), h.endLast)
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
