package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Hooks are functions of one host or extension that the harness calls at
// certain places, to be told and to change what happens. Those that are nil are
// left out. Options.Hooks and AddHooks register them; of several Hooks the one
// that was registered first is called first, and the next sees what it changed.
//
// # What each may change
//
//	hook                   payload                          may change                          a failure
//	Input                  text, images, source             the text and images; or handles     refuses the input
//	                                                        the input itself
//	BeforeAgentStart       prompt, images, system prompt,   adds messages behind the prompt;    refuses the prompt
//	                       resources                        replaces the prompt of requests
//	Context                messages without system ones     what a request shows                ends the run
//	ContextWithSystem      all messages                     what a request shows                ends the run
//	BeforeProviderRequest  model, session id, options       a RequestPatch of the options       ends the run
//	BeforeProviderHeaders  model, headers                   the headers, in place               ends the run
//	BeforeProviderPayload  model, body                      the body                            ends the run
//	AfterProviderResponse  model, status, headers           nothing                             ends the run
//	ProviderStreamEvent    model, event of the provider     nothing                             ends the run
//	ToolCall               call, arguments                  the arguments, which are not        blocks the call
//	                                                        validated again; or blocks the call
//	ToolResult             call, arguments, result          fields of the result                is the result
//	MessageEnd             message                          the message, of the same role       ends the run
//	TurnEnd                message, results, context        adds entries; asks the model again  ends the run
//	AgentBeforeSettle      context                          adds entries; asks the model again  ends the run
//	SessionBeforeCompact   what would be summed up          the summary; or refuses             fails the compaction
//	SessionBeforeTree      where to, what would be left     the summary, instructions, label;   fails the move
//	                                                        or refuses
//	SessionBeforeSwitch    reason, target                   refuses                             refuses
//	SessionBeforeFork      entry, position                  refuses                             refuses
//	ResourcesDiscover      folder, reason                   adds paths                          fails the discovery
//	UserBash               command                          the command's outcome               fails the command
//	On[type]               event                            nothing                             as that of a listener
//
// # Failures
//
// An error, a panic, a goroutine that is left with runtime.Goexit and a hook
// that does not return though its context has ended are failures. The table
// says what a failure does when Report is nil. A run that it ends gets a failed
// answer, as with a listener, and its error is of kind hook. With Report a
// failure is reported and the hook passed over; only ToolCall, UserBash,
// SessionBeforeSwitch and SessionBeforeFork fail as the table says all the
// same, because they guard.
//
// # Calls
//
// Each call has a goroutine of its own and a context that ends with the run.
// The harness waits for the hook; once the context has ended, for
// Options.HookGrace more, and then goes on without it: nothing but its own
// goroutine is left behind, which may still be at work when the next hook is
// called. A hook may call the methods that a Listener may. The hooks of a run are
// called one at a time; those for what a program asks, such as Input at a Steer
// and UserBash, may be called meanwhile. Input at a prompt comes before the run:
// its context ends with that of the prompt, and with Close.
//
// What a hook may say otherwise is its own copy, to be changed in place and
// returned: the messages of Context, ContextWithSystem and MessageEnd, the result
// of ToolResult, headers, bodies, and each list. Copying costs as much as the
// conversation has messages. All other messages and entries are the
// conversation's own and only to be read: those of TurnEnd, AgentBeforeSettle,
// BeforeAgentStart, SessionBeforeCompact, SessionBeforeTree and of events.
type Hooks struct {
	Name string // whose they are, for errors
	// Report takes failures, which then do no harm; nil for the strict rule.
	Report func(ctx context.Context, err *HookError)

	Input            func(ctx context.Context, in Input) (*InputChange, error)
	BeforeAgentStart func(ctx context.Context, s Starting) (*StartingChange, error)

	// Context and ContextWithSystem return the list that the request shows, nil
	// to leave it. The first never sees system messages: they are put back where
	// they were.
	Context           func(ctx context.Context, messages []agent.Message) ([]agent.Message, error)
	ContextWithSystem func(ctx context.Context, messages []agent.Message) ([]agent.Message, error)

	BeforeProviderRequest func(ctx context.Context, q ProviderRequest) (*RequestPatch, error)
	BeforeProviderHeaders func(ctx context.Context, q ProviderHeaders) error
	// BeforeProviderPayload returns the body to send, nil to leave it. It is
	// what other programs call before_provider_request when they pass a payload.
	BeforeProviderPayload func(ctx context.Context, p ProviderPayload) (jsontext.Value, error)
	AfterProviderResponse func(ctx context.Context, p ProviderResponse) error
	// ProviderStreamEvent costs each event of a stream a call and a copy.
	ProviderStreamEvent func(ctx context.Context, ev ProviderEvent) error

	// ToolCall keeps a call from running with a Block; the first one counts.
	ToolCall   func(ctx context.Context, c *ToolCall) (*agent.Block, error)
	ToolResult func(ctx context.Context, r ToolResult) (*agent.ResultPatch, error)

	// MessageEnd sees a message before listeners and session do, and returns
	// the one that takes its place, nil to leave it. The id and the name of a
	// tool result's call stay.
	MessageEnd func(ctx context.Context, m agent.Message) (agent.Message, error)

	TurnEnd func(ctx context.Context, t TurnEnding) (*Drafts, error)
	// AgentBeforeSettle comes when nothing is left to do, and not in runs that
	// were aborted.
	AgentBeforeSettle func(ctx context.Context, s Settling) (*Drafts, error)

	SessionBeforeCompact func(ctx context.Context, c Compacting) (*CompactDecision, error)
	SessionBeforeTree    func(ctx context.Context, t TreeMove) (*TreeDecision, error)
	SessionBeforeSwitch  func(ctx context.Context, s Switching) (cancel bool, err error)
	SessionBeforeFork    func(ctx context.Context, f Forking) (cancel bool, err error)
	ResourcesDiscover    func(ctx context.Context, d Discovery) (*Discovered, error)
	UserBash             func(ctx context.Context, b UserBash) (*session.BashExecution, error)

	// On are told events of their types, before the listeners; all types of
	// SubscribeAll are there.
	On map[agent.EventType]Listener
}

// HookName names a hook in errors by its JSON name.
type HookName string

// The hooks. Those of Hooks.On have the names of their events.
const (
	HookInput                 HookName = "input"
	HookBeforeAgentStart      HookName = "before_agent_start"
	HookContext               HookName = "context"
	HookContextWithSystem     HookName = "context_with_system"
	HookBeforeProviderRequest HookName = "before_provider_request"
	HookBeforeProviderHeaders HookName = "before_provider_headers"
	HookBeforeProviderPayload HookName = "before_provider_payload"
	HookAfterProviderResponse HookName = "after_provider_response"
	HookProviderStreamEvent   HookName = "provider_stream_event"
	HookToolCall              HookName = "tool_call"
	HookToolResult            HookName = "tool_result"
	HookMessageEnd            HookName = "message_end"
	HookTurnEnd               HookName = "turn_end"
	HookAgentBeforeSettle     HookName = "agent_before_settle"
	HookSessionBeforeCompact  HookName = "session_before_compact"
	HookSessionBeforeTree     HookName = "session_before_tree"
	HookSessionBeforeSwitch   HookName = "session_before_switch"
	HookSessionBeforeFork     HookName = "session_before_fork"
	HookResourcesDiscover     HookName = "resources_discover"
	HookUserBash              HookName = "user_bash"
)

// HookError says that a hook failed.
type HookError struct {
	Hook HookName
	Set  string // Hooks.Name
	Err  error
}

func (e *HookError) Error() string {
	if e.Set == "" {
		return fmt.Sprintf("hook %s: %v", e.Hook, e.Err)
	}
	return fmt.Sprintf("hook %s of %s: %v", e.Hook, e.Set, e.Err)
}

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Err }

// InputSource says who gives an input.
type InputSource string

// The sources of inputs. The zero value counts as FromPerson.
const (
	FromPerson    InputSource = "interactive"
	FromRPC       InputSource = "rpc"
	FromExtension InputSource = "extension"
)

// Input is a text on its way to the model. See Submit.
type Input struct {
	Text   string
	Images []*llm.Image
	Source InputSource
	// Behavior says what becomes of it while a run is active; "" refuses it as
	// busy.
	Behavior QueueBehavior
	// Accepted, when not nil, is told once what becomes of an input that is not
	// refused, before the first event of its run. The harness waits for it. Hooks
	// do not see it.
	Accepted func(Disposition)
}

// Disposition is what became of an input.
type Disposition string

// The dispositions.
const (
	InputStarted Disposition = "started" // a run begins with it
	InputQueued  Disposition = "queued"  // it waits for a run
	InputHandled Disposition = "handled" // a hook did what it asks for
)

func (in Input) accepted(d Disposition) {
	if in.Accepted != nil {
		in.Accepted(d)
	}
}

// InputChange is what a hook makes of an input. Handled ends its way: the hook
// has done what it asks for. Otherwise Text and Images take the place of those
// of the input.
type InputChange struct {
	Handled bool
	Text    string
	Images  []*llm.Image // nil keeps those of the input
}

// Starting is a run that is about to begin with a prompt. Nothing is said yet.
type Starting struct {
	Prompt       string        // text of Message; "" when it has none
	Images       []*llm.Image  // of Message
	Message      agent.Message // the last message of the prompt, a *llm.User or a *session.Custom
	SystemPrompt string        // as requests would have it, with what earlier hooks said
	Resources    Resources
}

// StartingChange is what a hook adds to a run.
type StartingChange struct {
	Messages []agent.Message // said behind the prompt
	// SystemPrompt, when not nil, is the prompt that requests have in place of
	// the conversation's, which stays as it is recorded: for the whole run, or
	// with a fixed prompt for its first turn.
	SystemPrompt *string
}

// ProviderRequest is a request before it is put together.
type ProviderRequest struct {
	Model     *llm.Model
	SessionID string
	Options   llm.Options // with earlier patches; without key, callbacks and client
}

// ProviderHeaders are the headers that a request adds to those of its wire
// format. A nil value takes the wire format's own header out.
type ProviderHeaders struct {
	Model   *llm.Model
	Headers map[string]*string // never nil; the hook may change it
}

// ProviderPayload is the body of a request just before it is sent.
type ProviderPayload struct {
	Model   *llm.Model
	Payload jsontext.Value // with what earlier hooks changed
}

// ProviderResponse is the head of a provider's response.
type ProviderResponse struct {
	Model  *llm.Model
	Status int
	Header http.Header
}

// ProviderEvent is one event of a provider's stream, as it came.
type ProviderEvent struct {
	Model *llm.Model
	Data  jsontext.Value
}

// ToolCall is a validated call that is about to run.
type ToolCall struct {
	ToolCallID string
	ToolName   string
	// Input are the arguments, a JSON object. A hook may put others in their
	// place; they are not validated again.
	//
	// They may have members that the tool does not know. A hook that decides by
	// them reads them with Decode, as the tool does.
	Input jsontext.Value
}

// Decode reads the arguments into a struct as agent.NewTool does. With
// encoding/json a gate would have a hole: that takes "Path" for "path", and the
// second of two for the first.
func (c *ToolCall) Decode(into any) error {
	if err := json.Unmarshal(c.Input, into); err != nil {
		return fmt.Errorf("the arguments of %s cannot be read: %w", c.ToolName, err)
	}
	return nil
}

// ToolResult is the result of a call that ran.
type ToolResult struct {
	ToolCallID string
	ToolName   string
	Input      jsontext.Value
	Result     agent.Result // with what earlier hooks changed
}

// TurnOutcome says how a turn went.
type TurnOutcome string

// The outcomes of a turn.
const (
	TurnCompleted TurnOutcome = "completed"
	TurnFailed    TurnOutcome = "failed"
	TurnAborted   TurnOutcome = "aborted"
)

// TurnEnding is a turn whose calls all have results. Its turn_end follows.
type TurnEnding struct {
	TurnIndex      int // of the run, from 0
	Message        *llm.Assistant
	ToolResults    []*llm.ToolResult
	MessageEntryID string   // "" when the message could not be written
	ResultEntryIDs []string // of ToolResults, in their order
	Outcome        TurnOutcome
	Drafts         Drafts          // of earlier hooks
	Context        []agent.Message // the conversation without the drafts
}

// Settling is a run that has nothing left to do.
type Settling struct {
	Drafts  Drafts          // of earlier hooks
	Context []agent.Message // the conversation without the drafts
}

// Drafts are what a hook wants to happen next.
type Drafts struct {
	// Entries are appended to the session after turn_end: *session.CustomEntry,
	// *session.CustomMessageEntry, *session.ContextEditEntry or
	// *session.CompactionEntry. They are added to those of earlier hooks.
	Entries []session.Data
	// Continue asks the model once more than tools and queues do. It is ignored
	// after a failed answer, and where the conversation would end in an answer:
	// some services refuse that, others take it for the beginning of the next
	// one. The entries then have to give the model something to answer, or to
	// take the answer out of the context.
	Continue bool
}

// CompactReason says why a conversation is compacted.
type CompactReason string

// The reasons for a compaction.
const (
	CompactManual    CompactReason = "manual"
	CompactThreshold CompactReason = "threshold"
	CompactOverflow  CompactReason = "overflow"
)

// Compacting is a compaction before its summary is made.
type Compacting struct {
	FirstKept       string          // id of the entry at which the kept tail begins
	Messages        []agent.Message // that the summary stands for
	TurnPrefix      []agent.Message // beginning of the turn that is cut, summed up by itself
	PreviousSummary string          // "" for none
	TokensBefore    int64
	Branch          []*session.Entry // from the root to the leaf
	Instructions    string           // of the person; "" for none
	Reason          CompactReason
	WillRetry       bool // a failed request is repeated afterwards
}

// CompactDecision is what a hook makes of a compaction: it refuses it, or gives
// the entry to append, whose FromHook the harness sets. Of the entry only its
// FirstKept is checked: an empty or cut summary is the hook's to notice, as it
// stands in the place of what was said.
type CompactDecision struct {
	Cancel     bool
	Compaction *session.CompactionEntry
}

// TreeMove is a move to another place of the session's tree before it is made.
type TreeMove struct {
	Target              string           // id of the entry to go to
	OldLeaf             string           // "" for none
	CommonAncestor      string           // "" for none
	Entries             []*session.Entry // that are left, oldest first
	Summarize           bool             // the person wants a summary of them
	Instructions        string
	ReplaceInstructions bool
	Label               string
}

// TreeDecision is what a hook makes of a move. Nil fields change nothing.
type TreeDecision struct {
	Cancel              bool
	Summary             *session.BranchSummaryEntry // FromHook is set by the harness
	Instructions        *string
	ReplaceInstructions *bool
	Label               *string
}

// Switching is a move to another session.
type Switching struct {
	Reason string // new or resume
	Target string // file of the session; "" for a new one
}

// Forking is a fork of the session.
type Forking struct {
	EntryID  string
	Position string // before or at
}

// Discovery asks for paths of resources besides those that are known.
type Discovery struct {
	Cwd    string
	Reason string // startup or reload
}

// Discovered are paths of resources.
type Discovered struct{ Skills, Prompts, Themes []string }

// UserBash is a shell command of a person.
type UserBash struct {
	Command            string
	ExcludeFromContext bool
	Cwd                string
}

// AddHooks registers hooks behind those that are registered. remove takes them
// off; what is being asked at that moment still counts.
func (h *Harness) AddHooks(hooks Hooks) (remove func()) {
	s := &hookSet{Hooks: hooks}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks = append(slices.Clone(h.hooks), s)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hooks = slices.DeleteFunc(slices.Clone(h.hooks), func(o *hookSet) bool { return o == s })
	}
}
