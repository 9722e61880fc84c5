package agent

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// Message is one message of an agent's transcript. The messages of llm are
// such; packages above add roles of their own, which Config.ToLLM turns into
// messages that a model knows, or drops.
type Message interface {
	Role() llm.Role
	// Time is the message's timestamp in Unix milliseconds.
	Time() int64
	// AppendJSON appends the message in the form that session files hold.
	AppendJSON(dst []byte) []byte
}

// Execution says how the calls of one assistant message run.
type Execution string

// The ways to run calls. One sequential tool makes its whole batch sequential.
const (
	Parallel   Execution = "parallel"
	Sequential Execution = "sequential"
)

// Tool is something that a model can call. NewTool makes one of a function.
type Tool struct {
	llm.Tool
	Label     string    // for people; "" for Name
	Execution Execution // Sequential forbids running beside other calls; "" for Parallel

	// Prepare may rewrite the arguments as they came, before validation.
	Prepare func(args jsontext.Value) (jsontext.Value, error)

	OutputSchema jsontext.Value // JSON Schema of StructuredContent; nil for none
	// ReplaySafe says that running a call twice does no harm, however much later
	// and whatever happened in between, so that a call whose outcome a crash hid
	// may run again. Tools that only look are; a tool that writes the same thing
	// twice is not, as somebody may have gone on from the first.
	ReplaySafe bool

	Snippet    string   // one line for the system prompt's list of tools; "" leaves the tool out
	Guidelines []string // rules for the system prompt while the tool is active

	// Reserve takes the place of a call in an order that the tool keeps, such as
	// the queue of edits to one file; nil for none. The loop calls it for each
	// call that is about to run, in source order, before the bodies of the batch
	// start. done is called once, when the call is over, whether it ran or not.
	Reserve func(call Call) (done func())

	// Execute runs a call. ctx ends with the run. An error becomes an error
	// result for the model with the error's text.
	Execute func(ctx context.Context, call Call) (Result, error)
}

// Call is one validated call of a tool.
type Call struct {
	ID   string
	Args jsontext.Value // a JSON object that satisfies the tool's Parameters, after coercion
	// Update shows progress. Calls after Execute has returned are ignored. It
	// is never nil and safe for concurrent use.
	Update func(Result)
}

// Result is what a tool gives back.
type Result struct {
	Content           []llm.Block
	Details           jsontext.Value // for hosts and renderers, never sent to a model; nil for none
	StructuredContent jsontext.Value // travels in the end event only; nil for none
	Usage             *llm.Usage
	IsError           bool
	// Terminate asks the loop not to ask the model again. It takes effect when
	// every result of the batch asks for it.
	Terminate bool
}

// TextResult is a result that says text.
func TextResult(text string) Result {
	return Result{Content: []llm.Block{&llm.Text{Text: text}}}
}

// Text joins the text blocks of the result.
func (r Result) Text() string { return llm.TextOf(r.Content, "") }

// EventType names an event by its JSON name.
type EventType string

// The events of a run, in the order of a run.
const (
	AgentStart          EventType = "agent_start"
	TurnStart           EventType = "turn_start"
	MessageStart        EventType = "message_start"
	MessageUpdate       EventType = "message_update"
	MessageEnd          EventType = "message_end"
	ToolExecutionStart  EventType = "tool_execution_start"
	ToolExecutionUpdate EventType = "tool_execution_update"
	ToolExecutionEnd    EventType = "tool_execution_end"
	TurnEnd             EventType = "turn_end"
	AgentEnd            EventType = "agent_end"
)

// Event is one step of a run. Which fields are set depends on Type.
type Event struct {
	Type EventType

	// Message is the message of message_* and turn_end events. In
	// message_start and message_update of an answer it is a view, valid until
	// the listener returns.
	Message Message
	Update  *llm.Event // message_update: what the model's stream said; valid until the listener returns

	ToolResults []*llm.ToolResult // turn_end, in source order
	Messages    []Message         // agent_end: all messages that the run added

	ToolCallID string // tool_execution_*
	ToolName   string
	Args       jsontext.Value // the arguments as the model sent them
	Result     *Result        // partial in updates, final at the end
	IsError    bool
	// Err, of tool_execution_end, is the error of the tool or of a hook whose text
	// is the result; nil when the tool gave one. A panic is a *PanicError.
	Err        error
	DurationMs *int64 // nil when the tool body did not run
}

// Sink receives the events of a run, one at a time, in their one order. The run
// waits for it. An error ends the run.
type Sink func(ctx context.Context, ev Event) error

// StreamFunc asks a model. llm.Registry.Stream is one.
type StreamFunc func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error)

// Context is what a run starts from.
type Context struct {
	Messages []Message
	Tools    []*Tool
	// Room says that the run may put its messages into what Messages has room
	// for: nobody else writes there. Without it a run copies the list.
	Room bool
}

// Turn describes a finished turn to hooks.
type Turn struct {
	Message     *llm.Assistant
	ToolResults []*llm.ToolResult
	Context     Context   // as it stands after the turn
	NewMessages []Message // all that the run has added so far; live
}

// NextTurn is what PrepareNextTurn may change. Nil and zero fields keep what
// there is; changes hold for the rest of the run.
type NextTurn struct {
	Context       *Context
	Messages      []Message // stand at the head of the turn, before queued ones
	Model         *llm.Model
	ThinkingLevel llm.ThinkingLevel
}

// Decision is what FinishTurn decides.
type Decision string

// The decisions of FinishTurn.
const (
	Default  Decision = ""         // as tools and queues ask
	End      Decision = "end"      // end the run without polling the queues
	Continue Decision = "continue" // guarantee one more request, which ends in the answer when nothing follows it
)

// CallInfo describes a call to hooks.
type CallInfo struct {
	Message *llm.Assistant
	Call    *llm.ToolCall
	Tool    *Tool
	Args    jsontext.Value // validated and coerced
	Context Context

	// SetArgs makes the call run with other arguments, which are not validated
	// again. It is set for hooks before a call and works until they return.
	SetArgs func(args jsontext.Value)
}

// Block keeps a call from running.
type Block struct {
	Reason    string // "" for a fixed text
	Terminate bool
}

// ResultPatch replaces fields of a result; nil fields keep what there is.
// Replacing Content alone drops StructuredContent.
type ResultPatch struct {
	Content           *[]llm.Block
	Details           *jsontext.Value
	StructuredContent *jsontext.Value
	IsError           *bool
	Usage             **llm.Usage
	Terminate         *bool
}

// Config says how to run. Model and Stream are needed; everything else may be zero.
type Config struct {
	Model         *llm.Model
	ThinkingLevel llm.ThinkingLevel // "" for off
	Stream        StreamFunc
	Options       llm.Options // Reasoning, APIKey and Headers are set for each request
	Execution     Execution   // "" for Parallel

	// ToLLM turns the transcript into messages that a model knows: the only
	// way down. Nil keeps llm messages and drops others.
	ToLLM func(messages []Message) []llm.Message
	// TransformContext changes what a request sees; the transcript stays.
	TransformContext func(ctx context.Context, messages []Message) ([]Message, error)
	// Credentials looks up key and headers for each request.
	Credentials func(ctx context.Context, m *llm.Model) (key string, headers map[string]*string, err error)

	// Steering and FollowUp take messages from the queues.
	Steering func() []Message
	FollowUp func() []Message

	PrepareNextTurn func(ctx context.Context, t Turn) (NextTurn, error)
	PrepareRequest  func(ctx context.Context, c Context, m *llm.Model, level llm.ThinkingLevel) (NextTurn, error)
	FinishTurn      func(ctx context.Context, t Turn) (Decision, error)
	// BeforeToolCall may block a call; an error blocks it with its text.
	BeforeToolCall func(ctx context.Context, c CallInfo) (*Block, error)
	// AfterToolCall may patch the result of a call that ran; an error turns
	// the result into an error with its text.
	AfterToolCall func(ctx context.Context, c CallInfo, r Result) (*ResultPatch, error)

	Now func() time.Time // clock of the timestamps; nil for the system's

	validators *validators // compiled schemas, kept between the runs of an Agent
}
