package llm

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Role names who speaks in a message.
type Role string

// The roles that a model knows.
const (
	RoleSystem     Role = "system"
	RoleUser       Role = "user"
	RoleAssistant  Role = "assistant"
	RoleToolResult Role = "toolResult"
)

// Message is one message of a transcript: a *System, *User, *Assistant or
// *ToolResult. A message is immutable once it is part of a transcript: wire
// formats keep what they made of it under its pointer. To change one, copy it.
type Message interface {
	Role() Role
	// Time is the message's timestamp in Unix milliseconds.
	Time() int64
	// AppendJSON appends the message in the form that session files hold.
	AppendJSON(dst []byte) []byte
	message()
}

// Member is a JSON member that this version does not know. Unknown members are
// kept in order and written back.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Content is what a system or user message says: a plain string, or blocks.
// The two forms are kept apart because files and wire formats tell them apart.
type Content struct {
	Text   string
	Blocks []Block // nil for the string form; empty but not nil for no blocks
}

// Plain is the string form.
func Plain(text string) Content { return Content{Text: text} }

// Blocks is the block form.
func Blocks(blocks ...Block) Content {
	if blocks == nil {
		blocks = []Block{}
	}
	return Content{Blocks: blocks}
}

// System sets or changes the system prompt and the declared tools. A transcript
// may hold several: the first is the base, later ones change it in place.
type System struct {
	Content      Content
	Sections     []Section // named parts of the prompt, in order
	ToolsAdded   []Tool
	ToolsRemoved []string // names
	Timestamp    int64    // Unix milliseconds
	Extra        []Member
}

// Section is a named part of the system prompt. Removed takes a section of that
// name out of the prompt so far.
type Section struct {
	Name    string
	Text    string
	Removed bool
}

// User is what a person, or a program in their place, says.
type User struct {
	Content   Content // text and images
	Timestamp int64   // Unix milliseconds
	Extra     []Member
}

// Assistant is a model's answer. Text is what it says, Err whether it failed.
type Assistant struct {
	Content  []Block // text, thinking, tool calls
	API      string  // wire format that produced it
	Provider string
	Model    string // id of the model asked for

	ResponseModel         string // set when the server names another model
	ResponseID            string
	ProviderThinkingLevel string        // native effort, where it is sent inside the conversation
	ThinkingLevel         ThinkingLevel // level that the agent asked for; "" when none was recorded
	Diagnostics           []Diagnostic
	Usage                 Usage
	StopReason            StopReason
	Deferred              jsontext.Value // handle of a deferred answer, nil for none
	ErrorMessage          string         // set with StopError and StopAborted
	RawStopReason         string         // the provider's own word
	EndTurn               *bool
	Timestamp             int64  // start of the request, Unix milliseconds
	DurationMs            *int64 // nil while streaming and in old files
	Extra                 []Member
}

// ToolResult is the outcome of one tool call.
type ToolResult struct {
	ToolCallID  string
	ToolName    string
	Content     []Block        // text and images
	Details     jsontext.Value // for hosts and renderers, never sent to a model; nil for none
	Usage       *Usage         // tokens that the tool itself spent
	NestedCalls jsontext.Value // calls made by the tool, never sent to a model; nil for none
	IsError     bool
	Timestamp   int64  // Unix milliseconds
	DurationMs  *int64 // nil when the tool body did not run
	Extra       []Member
}

// StopReason says why an answer ended.
type StopReason string

// The stop reasons. StopPending is only seen while streaming and never stored.
const (
	StopPending  StopReason = "pending"
	StopStop     StopReason = "stop"
	StopLength   StopReason = "length"
	StopToolUse  StopReason = "toolUse"
	StopError    StopReason = "error"
	StopAborted  StopReason = "aborted"
	StopDeferred StopReason = "deferred"
)

// Diagnostic records a repair or a fallback that happened on the way to an answer.
type Diagnostic struct {
	Type      string
	Timestamp int64            // Unix milliseconds
	Error     *DiagnosticError // nil for none
	Details   jsontext.Value   // nil for none
	Extra     []Member
}

// DiagnosticError is the error behind a Diagnostic.
type DiagnosticError struct {
	Name    string
	Message string
	Stack   string
	Code    jsontext.Value // string or number; nil for none
}

// Block is one content block: a *Text, *Thinking, *Image, *ToolCall or *UnknownBlock.
type Block interface {
	// BlockType is the JSON type name: text, thinking, image, toolCall.
	BlockType() string
	AppendJSON(dst []byte) []byte
	block()
}

// Text is text of any role.
type Text struct {
	Text      string
	Signature *string // provider's data for replay; nil for none
	Extra     []Member
}

// Thinking is a model's reasoning.
type Thinking struct {
	Thinking  string
	Signature *string // provider's data for replay; nil for none
	Redacted  bool
	Extra     []Member
}

// Image is a picture.
type Image struct {
	Data     string // base64 without prefix
	MimeType string
	Extra    []Member
}

// ToolCall asks for a tool to run.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object: the bytes that the model sent, compacted;
	// {} when ArgumentsError is set. While the call streams it is {} and
	// Current gives the value so far.
	Arguments        jsontext.Value
	ThoughtSignature *string // nil for none
	Namespace        string
	// ArgumentsError is set when the complete argument text was no JSON
	// object: the problem, a blank line, "Received arguments:" and the text.
	// Such a call must fail with it.
	ArgumentsError string
	Extra          []Member

	// Streaming gives the arguments so far while the call arrives, nil after.
	Streaming interface{ Value() jsontext.Value }
}

// Current is the value of the arguments at this moment: the final ones, or
// while the call streams an object built from the text so far. The latter costs
// as much as the text is long, so consumers ask only when they show it.
func (c *ToolCall) Current() jsontext.Value {
	if c.Streaming != nil {
		return c.Streaming.Value()
	}
	return c.Arguments
}

// UnknownBlock is a content block of a type that this version does not know.
// It survives a read and a write and is never sent to a model.
type UnknownBlock struct {
	Type string
	Raw  jsontext.Value
}

// Tool declares a tool to a model.
type Tool struct {
	Name        string
	Description string
	Parameters  jsontext.Value // JSON Schema of the arguments, an object
	// ConstrainedSampling is false, or an object of type json_schema or
	// grammar; nil for none.
	ConstrainedSampling jsontext.Value
	Extra               []Member
}

func (*System) Role() Role     { return RoleSystem }
func (*User) Role() Role       { return RoleUser }
func (*Assistant) Role() Role  { return RoleAssistant }
func (*ToolResult) Role() Role { return RoleToolResult }

func (m *System) Time() int64     { return m.Timestamp }
func (m *User) Time() int64       { return m.Timestamp }
func (m *Assistant) Time() int64  { return m.Timestamp }
func (m *ToolResult) Time() int64 { return m.Timestamp }

func (*System) message()     {}
func (*User) message()       {}
func (*Assistant) message()  {}
func (*ToolResult) message() {}

func (*Text) BlockType() string           { return "text" }
func (*Thinking) BlockType() string       { return "thinking" }
func (*Image) BlockType() string          { return "image" }
func (*ToolCall) BlockType() string       { return "toolCall" }
func (b *UnknownBlock) BlockType() string { return b.Type }

func (*Text) block()         {}
func (*Thinking) block()     {}
func (*Image) block()        {}
func (*ToolCall) block()     {}
func (*UnknownBlock) block() {}

// UserText is a user message that says text, at a time in Unix milliseconds.
func UserText(text string, timestamp int64) *User {
	return &User{Content: Blocks(&Text{Text: text}), Timestamp: timestamp}
}

// TextOf joins the text blocks of content with sep.
func TextOf(content []Block, sep string) string {
	out, n := "", 0
	for _, b := range content {
		if t, ok := b.(*Text); ok {
			if n > 0 {
				out += sep
			}
			out += t.Text
			n++
		}
	}
	return out
}

// ToolCalls lists the tool calls of the message in order.
func (m *Assistant) ToolCalls() []*ToolCall {
	var calls []*ToolCall
	for _, b := range m.Content {
		if c, ok := b.(*ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Snapshot copies a message that is still streaming, so that it can be kept.
func (m *Assistant) Snapshot() *Assistant {
	c := *m
	c.Content = make([]Block, len(m.Content))
	for i, b := range m.Content {
		switch b := b.(type) {
		case *Text:
			t := *b
			c.Content[i] = &t
		case *Thinking:
			t := *b
			c.Content[i] = &t
		case *ToolCall:
			t := *b
			t.Arguments, t.Streaming = b.Current(), nil
			c.Content[i] = &t
		default:
			c.Content[i] = b
		}
	}
	return &c
}
