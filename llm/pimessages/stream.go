package pimessages

import (
	"bytes"
	"fmt"
	"math"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	host   *wire.Host
	model  *llm.Model
	req    *llm.Request
	own    Options
	source *wire.Source
	url    string // of the request

	view  eventView
	event jsonwire.Reader
	value jsonwire.Reader // of single values in an event

	stop   llm.StopReason // of a done event
	failed *ServerError   // of an error event
}

// ServerError is a failure that the backend reports in an error event.
type ServerError struct {
	Message string
	Aborted bool // the backend gave up because it was told to
}

func (e *ServerError) Error() string { return e.Message }

// Is reports an aborted answer as one of those.
func (e *ServerError) Is(target error) bool { return e.Aborted && target == wire.ErrAborted }

// EventError says that an event is not of the protocol.
type EventError struct {
	Event  string // its type, "" when it has none
	Member string // what is wrong in it, "" when the type is
	Value  string // as JSON, undefined when it is absent
	Cause  error  // when it is no JSON
}

func (e *EventError) Error() string {
	switch {
	case e.Cause != nil:
		return "Invalid pi-messages event: " + e.Cause.Error()
	case e.Member == "":
		return fmt.Sprintf("Invalid pi-messages event of type %q", e.Event)
	default:
		return fmt.Sprintf("Invalid %s %s in pi-messages %s event", e.Member, e.Value, e.Event)
	}
}

func (e *EventError) Unwrap() error { return e.Cause }

// CutError says that a stream ended before the event that ends an answer.
type CutError struct{ Provider string }

func (e *CutError) Error() string { return e.Provider + " stream ended without a terminal event" }

// eventView is what an event holds, as slices of it; nil for absent and null.
type eventView struct {
	typ, index, delta           []byte
	content, signature, redact  []byte
	id, toolName, toolCall      []byte
	reason, usage, rewrite      []byte
	responseID, responseModel   []byte
	thinkingLevel, errorMessage []byte
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, _, data []byte) error {
	data = bytes.TrimSpace(data)
	// Some servers in the middle end every stream with this word.
	if len(data) == 0 || string(data) == "[DONE]" {
		a.KeepAlive()
		return nil
	}
	if err := x.read(data); err != nil {
		return &EventError{Cause: err}
	}
	if x.req.OnProviderEvent != nil {
		if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
			return err
		}
	}
	if string(x.view.typ) != `"error"` {
		a.Start()
	}
	switch string(x.view.typ) {
	case `"start"`:
		if len(a.Blocks()) > 0 {
			return x.invalid("", nil)
		}
		return nil
	case `"text_start"`, `"thinking_start"`, `"toolcall_start"`:
		return x.start(a)
	case `"text_delta"`:
		return x.delta(a, llm.EventTextDelta)
	case `"thinking_delta"`:
		return x.delta(a, llm.EventThinkingDelta)
	case `"toolcall_delta"`:
		return x.delta(a, llm.EventToolCallDelta)
	case `"text_end"`:
		return x.endText(a)
	case `"thinking_end"`:
		return x.endThinking(a)
	case `"toolcall_end"`:
		return x.endCall(a)
	case `"done"`, `"error"`:
		return x.finish(a)
	}
	return x.invalid("", nil)
}

// read takes an event apart in one pass. One that is no object has no parts.
func (x *exchange) read(data []byte) error {
	v := &x.view
	*v = eventView{}
	r := &x.event
	r.Reset(data)
	for r.Object(); r.More(); {
		var to *[]byte
		switch string(r.Key()) {
		case "type":
			to = &v.typ
		case "contentIndex":
			to = &v.index
		case "delta":
			to = &v.delta
		case "content":
			to = &v.content
		case "contentSignature":
			to = &v.signature
		case "redacted":
			to = &v.redact
		case "id":
			to = &v.id
		case "toolName":
			to = &v.toolName
		case "toolCall":
			to = &v.toolCall
		case "reason":
			to = &v.reason
		case "usage":
			to = &v.usage
		case "rewrite":
			to = &v.rewrite
		case "responseId":
			to = &v.responseID
		case "responseModel":
			to = &v.responseModel
		case "providerThinkingLevel":
			to = &v.thinkingLevel
		case "errorMessage":
			to = &v.errorMessage
		default:
			r.Skip()
			continue
		}
		*to = nil
		if !r.Null() {
			*to = r.Raw()
		}
	}
	return r.End()
}

// invalid is the error of the event at hand; member is what is wrong in it, ""
// when it is the event itself.
func (x *exchange) invalid(member string, value []byte) error {
	const shown = 100
	e := &EventError{Member: member, Value: "undefined"}
	if e.Event, _ = jsonwire.StringValue(x.view.typ); e.Event == "" {
		e.Event = string(x.view.typ)
	}
	e.Event = wire.Truncate(jsonwire.ToValidUTF8(e.Event), shown)
	if value != nil {
		e.Value = wire.Truncate(string(jsonwire.AppendUTF8(nil, value)), shown)
	}
	return e
}

// index is the block number of the event, -1 for none.
func (x *exchange) index() int {
	raw := x.view.index
	if len(raw) == 1 && raw[0] >= '0' && raw[0] <= '9' {
		return int(raw[0] - '0')
	}
	x.value.Reset(raw)
	if x.value.Kind() != '0' {
		return -1
	}
	if f := x.value.Float(); f >= 0 && f <= math.MaxInt32 && f == math.Trunc(f) {
		return int(f)
	}
	return -1
}

// string is a string member, "" when it is absent. ok is false for other kinds.
func (x *exchange) string(raw []byte) (s string, ok bool) {
	if raw == nil {
		return "", true
	}
	if raw[0] != '"' {
		return "", false
	}
	x.value.Reset(raw)
	return x.value.Text(), true
}

// start opens the block of a start event.
func (x *exchange) start(a *wire.Answer) error {
	v := &x.view
	if x.index() != len(a.Blocks()) {
		return x.invalid("contentIndex", v.index)
	}
	switch string(v.typ) {
	case `"text_start"`:
		a.Text(nil)
	case `"thinking_start"`:
		a.Thinking(nil)
	default:
		id, ok := x.string(v.id)
		if !ok || id == "" {
			return x.invalid("id", v.id)
		}
		name, ok := x.string(v.toolName)
		if !ok || name == "" {
			return x.invalid("toolName", v.toolName)
		}
		a.ToolCall(id, name, nil)
	}
	return nil
}

// block is the open block that a delta or end event is about.
func (x *exchange) block(a *wire.Answer) (*wire.Block, error) {
	i := x.index()
	if blocks := a.Blocks(); i >= 0 && i < len(blocks) && !blocks[i].Ended() {
		return blocks[i], nil
	}
	return nil, x.invalid("contentIndex", x.view.index)
}

func (x *exchange) delta(a *wire.Answer, typ llm.EventType) error {
	b, err := x.block(a)
	if err != nil {
		return err
	}
	if kindOf(b) != typ {
		return x.invalid("contentIndex", x.view.index)
	}
	if len(x.view.delta) == 0 || x.view.delta[0] != '"' {
		return x.invalid("delta", x.view.delta)
	}
	x.value.Reset(x.view.delta)
	b.Append(x.value.String())
	return nil
}

// kindOf is the type of a block's deltas.
func kindOf(b *wire.Block) llm.EventType {
	switch {
	case b.TextBlock() != nil:
		return llm.EventTextDelta
	case b.ThinkingBlock() != nil:
		return llm.EventThinkingDelta
	default:
		return llm.EventToolCallDelta
	}
}

// final takes the whole text that an end event repeats, and its signature.
func (x *exchange) final(b *wire.Block) (signature *string, err error) {
	v := &x.view
	if v.content != nil && v.content[0] != '"' {
		return nil, x.invalid("content", v.content)
	}
	if v.signature != nil {
		s, ok := x.string(v.signature)
		if !ok {
			return nil, x.invalid("contentSignature", v.signature)
		}
		signature = &s
	}
	if v.content != nil {
		x.value.Reset(v.content)
		b.Replace(x.value.String())
	}
	return signature, nil
}

func (x *exchange) endText(a *wire.Answer) error {
	b, err := x.block(a)
	if err != nil {
		return err
	}
	if b.TextBlock() == nil {
		return x.invalid("contentIndex", x.view.index)
	}
	signature, err := x.final(b)
	if err != nil {
		return err
	}
	b.TextBlock().Signature = signature
	b.End()
	return nil
}

func (x *exchange) endThinking(a *wire.Answer) error {
	b, err := x.block(a)
	if err != nil {
		return err
	}
	if b.ThinkingBlock() == nil {
		return x.invalid("contentIndex", x.view.index)
	}
	redacted := x.view.redact
	if redacted != nil && redacted[0] != 't' && redacted[0] != 'f' {
		return x.invalid("redacted", redacted)
	}
	signature, err := x.final(b)
	if err != nil {
		return err
	}
	b.ThinkingBlock().Signature = signature
	b.ThinkingBlock().Redacted = redacted != nil && redacted[0] == 't'
	b.End()
	return nil
}

// endCall takes the whole tool call that its end event repeats.
func (x *exchange) endCall(a *wire.Answer) error {
	b, err := x.block(a)
	if err != nil {
		return err
	}
	if b.Call() == nil {
		return x.invalid("contentIndex", x.view.index)
	}
	raw := x.view.toolCall
	if raw == nil {
		b.End()
		return nil
	}
	given := readCall(raw)
	if given == nil {
		return x.invalid("toolCall", raw)
	}
	c := b.Call()
	c.ID, c.Name = given.ID, given.Name
	c.ThoughtSignature, c.Namespace, c.Extra = given.ThoughtSignature, given.Namespace, given.Extra
	// A call whose arguments are no object keeps the text that streamed, which
	// says what is wrong with it.
	if given.ArgumentsError == "" && !x.streamed(b, given.Arguments) {
		b.Replace(given.Arguments)
	}
	b.End()
	return nil
}

// streamed reports whether the pieces of a call add up to its arguments.
func (x *exchange) streamed(b *wire.Block, arguments []byte) bool {
	compact, err := jsonwire.AppendCompact(nil, []byte(b.Raw()))
	return err == nil && bytes.Equal(compact, arguments)
}

// readCall reads a tool call with compact arguments, nil when it is none.
func readCall(raw []byte) *llm.ToolCall {
	arguments := jsonwire.Get(raw, "arguments")
	if len(arguments) == 0 || arguments[0] != '{' {
		return nil
	}
	for _, name := range []string{"id", "name"} {
		if s, ok := jsonwire.StringValue(jsonwire.Get(raw, name)); !ok || s == "" {
			return nil
		}
	}
	var r jsonwire.Reader
	r.Reset(append(append([]byte{'['}, raw...), ']'))
	blocks := llm.ReadBlocks(&r)
	if len(blocks) != 1 {
		return nil
	}
	c, ok := blocks[0].(*llm.ToolCall)
	if !ok {
		return nil
	}
	compact, err := jsonwire.AppendCompact(nil, c.Arguments)
	if err != nil {
		return nil
	}
	c.Arguments = compact
	return c
}

// finish takes a done or error event. Everything is checked before anything
// is taken.
func (x *exchange) finish(a *wire.Answer) error {
	v := &x.view
	failed := string(v.typ) == `"error"`
	reason, _ := x.string(v.reason)
	stop := llm.StopReason(reason)
	switch {
	case failed && (stop == llm.StopError || stop == llm.StopAborted):
	case !failed && (stop == llm.StopStop || stop == llm.StopLength || stop == llm.StopToolUse):
	default:
		return x.invalid("reason", v.reason)
	}
	if !validUsage(v.usage, failed) {
		return x.invalid("usage", v.usage)
	}
	var texts [4]string
	for i, m := range []struct {
		name string
		raw  []byte
	}{
		{"responseId", v.responseID}, {"responseModel", v.responseModel},
		{"providerThinkingLevel", v.thinkingLevel}, {"errorMessage", v.errorMessage},
	} {
		var ok bool
		if texts[i], ok = x.string(m.raw); !ok {
			return x.invalid(m.name, m.raw)
		}
	}
	if v.rewrite != nil && v.rewrite[0] != '{' {
		return x.invalid("rewrite", v.rewrite)
	}
	m := a.Message
	if v.usage != nil {
		x.value.Reset(v.usage)
		m.Usage = llm.ReadUsage(&x.value)
	}
	m.ResponseID, m.ProviderThinkingLevel = texts[0], texts[2]
	if texts[1] != x.model.ID {
		m.ResponseModel = texts[1]
	}
	if v.rewrite != nil {
		m.Diagnostics = append(m.Diagnostics, llm.Diagnostic{
			Type: "pi_messages_rewrite", Timestamp: x.host.Now().UnixMilli(), Details: bytes.Clone(v.rewrite),
		})
	}
	if !failed {
		x.stop = stop
		return wire.ErrFinished
	}
	x.failed = &ServerError{Message: texts[3], Aborted: stop == llm.StopAborted}
	if x.failed.Message == "" {
		x.failed.Message = x.model.Provider + " reported " + reason + " without saying why"
	}
	return wire.ErrFinished
}

// validUsage reports whether raw counts tokens and money: numbers that are not
// negative, so that no backend lowers what a session has cost.
func validUsage(raw []byte, optional bool) bool {
	if raw == nil {
		return optional
	}
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '{' {
		return false
	}
	count := func() bool { return r.Kind() == '0' && r.Float() >= 0 }
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "input", "output", "cacheRead", "cacheWrite", "totalTokens":
			if !count() {
				return false
			}
		case "cacheWrite1h", "reasoning":
			if !r.Null() && !count() {
				return false
			}
		case "cost":
			if r.Kind() != '{' {
				return false
			}
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "input", "output", "cacheRead", "cacheWrite", "total":
					if !count() {
						return false
					}
				default:
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	return r.Err() == nil
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	switch {
	case cause == nil && x.failed != nil:
		return x.failed
	case cause == nil && x.stop != "":
		for _, b := range a.Blocks() {
			b.End()
		}
		a.Message.StopReason = x.stop
		return nil
	case cause == nil:
		cause = &CutError{Provider: x.model.Provider}
	}
	// Nobody can tell which part of the answer was meant.
	a.Message.Content = []llm.Block{}
	return cause
}
