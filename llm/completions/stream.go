package completions

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	host    *wire.Host
	model   *llm.Model
	compat  *Compat
	req     *llm.Request
	own     Options
	level   llm.ThinkingLevel // "" for no thinking
	limited bool              // the token limit follows the rules of API.Stream

	retention string // none, short, long
	session   string // "" when nothing is to be cached
	served    string // name of the model in the request
	grammars  wire.Grammars

	modelJSON string // model id as JSON, to compare with each chunk's
	frame     frame
	view      chunkView
	chunk     jsonwire.Reader
	value     jsonwire.Reader // of single values in a chunk

	text     *wire.Block
	thinking *wire.Block
	details  details
	calls    []call
	usage    wireUsage
	finish   string // finish_reason
}

// call is a tool call that is streaming.
type call struct {
	block    *wire.Block
	index    int64
	hasIndex bool
	input    *wire.GrammarInput // of a grammar tool, else nil
}

// ServerError is an error that the server reports inside a stream.
type ServerError struct{ Message string }

func (e *ServerError) Error() string { return e.Message }

// FinishError says that an answer did not end well.
type FinishError struct{ Reason string } // the server's word, "" for none

func (e *FinishError) Error() string {
	if e.Reason == "" {
		return "Stream ended without finish_reason"
	}
	return "Provider finish_reason: " + e.Reason
}

// chunkView is what a chunk holds, as slices of it; nil for absent.
type chunkView struct {
	errorObject, id, model, usage []byte
	choiceUsage, finish           []byte
	content                       []byte
	reasoningContent              []byte
	reasoning                     []byte
	reasoningText                 []byte
	details                       []detailView // the valid ones
	tools                         []toolEntry
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, _, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		a.KeepAlive()
		return nil
	}
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return wire.ErrFinished
	}
	piece, framed := x.frame.around.Match(data)
	if x.frame.leaf == leafReasoning && len(piece) == 0 {
		framed = false // another field, part of the frame, may have the reasoning
	}
	if !framed {
		if err := x.read(data); err != nil {
			return fmt.Errorf("the stream holds a chunk that cannot be read: %w", err)
		}
	}
	if x.req.OnProviderEvent != nil {
		if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
			return err
		}
	}
	if framed {
		if !x.takePiece(piece) {
			a.KeepAlive()
		}
		return nil
	}
	c := &x.view
	if c.silent() {
		a.KeepAlive()
	}
	if err := x.envelope(a, c); err != nil {
		return err
	}
	x.takeReasoning(a, c)
	for i := range c.details {
		x.openThinking(a)
		x.details.add(&c.details[i])
	}
	if isText(c.content) {
		if x.text == nil {
			x.text = a.Text(nil)
		}
		x.value.Reset(c.content)
		x.text.Extend(x.value.String())
	}
	called := -1
	for i := range c.tools {
		called = x.toolDelta(a, &c.tools[i])
	}
	x.keepFrame(data, c, called)
	return nil
}

// envelope takes what surrounds the delta.
func (x *exchange) envelope(a *wire.Answer, c *chunkView) error {
	if err := streamError(c.errorObject); err != nil {
		return err
	}
	if a.Message.ResponseID == "" && isString(c.id) {
		x.value.Reset(c.id)
		a.Message.ResponseID = x.value.Text()
	}
	if a.Message.ResponseModel == "" && isString(c.model) && string(c.model) != x.modelJSON {
		x.value.Reset(c.model)
		if name := x.value.Text(); name != x.model.ID {
			a.Message.ResponseModel = name
		}
	}
	switch {
	case isObject(c.usage):
		x.readUsage(a, c.usage)
	case isObject(c.choiceUsage):
		x.readUsage(a, c.choiceUsage)
	}
	if isText(c.finish) {
		x.finish = x.string(c.finish)
		a.Message.RawStopReason = x.finish
	}
	return nil
}

// read takes a chunk apart in one pass. A chunk that is no object has no parts.
func (x *exchange) read(data []byte) error {
	c := &x.view
	c.reset()
	r := &x.chunk
	r.Reset(data)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "error":
			c.errorObject = r.Raw()
		case "id":
			c.id = r.Raw()
		case "model":
			c.model = r.Raw()
		case "usage":
			c.usage = r.Raw()
		case "choices":
			first := true
			for r.Array(); r.More(); {
				if first {
					c.readChoice(r, data)
				} else {
					r.Skip()
				}
				first = false
			}
		default:
			r.Skip()
		}
	}
	return r.End()
}

// reset empties c for another chunk and keeps the memory of its lists.
func (c *chunkView) reset() {
	*c = chunkView{details: c.details[:0], tools: c.tools[:0]}
}

// silent reports whether the chunk brings nothing of an answer: some services
// and proxies send such chunks to keep the connection open.
func (c *chunkView) silent() bool {
	return !isText(c.content) && !isText(c.reasoningContent) && !isText(c.reasoning) && !isText(c.reasoningText) &&
		!isText(c.finish) && !isObject(c.usage) && !isObject(c.choiceUsage) && len(c.details) == 0 && len(c.tools) == 0
}

func (c *chunkView) readChoice(r *jsonwire.Reader, data []byte) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "usage":
			c.choiceUsage = r.Raw()
		case "finish_reason":
			c.finish = r.Raw()
		case "delta":
			c.readDelta(r, data)
		default:
			r.Skip()
		}
	}
}

// readDelta reads the delta that r, which reads data, stands at.
func (c *chunkView) readDelta(r *jsonwire.Reader, data []byte) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "content":
			c.content = r.Raw()
		case fieldReasoningContent:
			c.reasoningContent = r.Raw()
		case fieldReasoning:
			c.reasoning = r.Raw()
		case fieldReasoningText:
			c.reasoningText = r.Raw()
		case "reasoning_details":
			c.details = c.details[:0]
			for r.Array(); r.More(); {
				r.Kind() // moves to the entry
				from := r.Offset()
				if d, ok := readDetail(r); ok {
					d.raw = data[from:r.Offset()]
					c.details = append(c.details, d)
				}
			}
		case "tool_calls":
			c.tools = c.tools[:0]
			for r.Array(); r.More(); {
				if r.Kind() == '{' {
					c.tools = append(c.tools, readToolEntry(r))
				} else {
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// streamError is the error that a chunk reports, nil for none.
func streamError(raw []byte) error {
	switch string(raw) {
	case "", "null", "false", "0", `""`:
		return nil
	}
	text, ok := jsonwire.StringValue(jsonwire.Get(raw, "message"))
	if !ok || text == "" {
		text = string(wire.AppendRaw(nil, raw))
	}
	return &ServerError{Message: withRawDetail(text, raw)}
}

// readUsage takes a usage object; servers that send one with each chunk repeat it.
func (x *exchange) readUsage(a *wire.Answer, raw []byte) {
	x.value.Reset(raw)
	u := readUsage(&x.value)
	if u == x.usage && a.Message.Usage.Reasoning != nil {
		return
	}
	x.usage = u
	a.Message.Usage = u.usage(x.model)
}

// takeReasoning takes the first field with reasoning; some servers send the
// same text in two.
func (x *exchange) takeReasoning(a *wire.Answer, c *chunkView) {
	field, raw := c.reasoningLeaf()
	if raw == nil {
		return
	}
	b := x.openThinking(a)
	if t := b.ThinkingBlock(); *t.Signature == "" {
		*t.Signature = reasoningField(x.model.Provider, field)
	}
	x.value.Reset(raw)
	b.Extend(x.value.String())
}

// reasoningLeaf is the field with the reasoning and its value, nil for none.
func (c *chunkView) reasoningLeaf() (field string, raw []byte) {
	switch {
	case isText(c.reasoningContent):
		return fieldReasoningContent, c.reasoningContent
	case isText(c.reasoning):
		return fieldReasoning, c.reasoning
	case isText(c.reasoningText):
		return fieldReasoningText, c.reasoningText
	}
	return "", nil
}

// isText reports whether raw is a string that is not empty.
func isText(raw []byte) bool { return isString(raw) && len(raw) > len(`""`) }

func (x *exchange) openThinking(a *wire.Answer) *wire.Block {
	if x.thinking == nil {
		x.thinking = a.Thinking(nil)
		x.thinking.ThinkingBlock().Signature = new("")
	}
	return x.thinking
}

// toolEntry is an entry of a delta's tool_calls, as slices of it.
type toolEntry struct {
	id, name, args []byte // strings
	index          int64
	hasIndex       bool
	custom         bool // the call of a grammar tool
}

func readToolEntry(r *jsonwire.Reader) (e toolEntry) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "index":
			if e.hasIndex = r.Kind() == '0'; e.hasIndex {
				e.index = r.Int()
			} else {
				r.Skip()
			}
		case "id":
			e.id = r.Raw()
		case "function":
			e.readCall(r, "arguments")
		case "custom":
			e.custom = r.Kind() == '{'
			e.readCall(r, "input")
		default:
			r.Skip()
		}
	}
	return e
}

// readCall reads the object with a call's name and its arguments or input.
func (e *toolEntry) readCall(r *jsonwire.Reader, args string) {
	for r.Object(); r.More(); {
		switch k := r.Key(); {
		case string(k) == "name":
			e.name = r.Raw()
		case string(k) == args:
			e.args = r.Raw()
		default:
			r.Skip()
		}
	}
}

// toolDelta takes one entry to its call and returns the call's position.
func (x *exchange) toolDelta(a *wire.Answer, e *toolEntry) int {
	at := x.findCall(e)
	if at < 0 {
		at = x.openCall(a, e)
	} else {
		c := &x.calls[at]
		t := c.block.Call()
		if t.ID == "" && isText(e.id) {
			t.ID = x.string(e.id)
		}
		if t.Name == "" && isText(e.name) {
			t.Name = x.string(e.name)
		}
		if !c.hasIndex && e.hasIndex {
			c.index, c.hasIndex = e.index, true
		}
	}
	var piece []byte
	switch {
	case isString(e.args):
		x.value.Reset(e.args)
		piece = x.value.String()
	case isObject(e.args):
		// Some servers send the arguments as an object in one piece.
		piece = e.args
	}
	x.calls[at].append(piece)
	return at
}

// append adds a piece of the arguments or of a grammar tool's input.
func (c *call) append(piece []byte) {
	if c.input != nil {
		if piece = c.input.Piece(piece); len(piece) == 0 {
			c.block.Touch()
			return
		}
	}
	c.block.Append(piece)
}

func (x *exchange) string(raw []byte) string {
	x.value.Reset(raw)
	return x.value.Text()
}

// findCall is the position of the call that an entry belongs to, -1 for a new one.
func (x *exchange) findCall(e *toolEntry) int {
	if e.hasIndex {
		for i := range x.calls {
			if c := &x.calls[i]; c.hasIndex && c.index == e.index {
				return i
			}
		}
	}
	if isText(e.id) {
		x.value.Reset(e.id)
		id := x.value.String()
		for i := range x.calls {
			c := &x.calls[i]
			if c.block.Call().ID == string(id) && !(c.hasIndex && e.hasIndex) {
				return i
			}
		}
		return -1
	}
	last := len(x.calls) - 1
	if e.hasIndex || isText(e.name) || last < 0 {
		return -1
	}
	// Neither index nor id nor name: more of the last call, unless that one is
	// complete. A call of its own could not be answered, as it has no id.
	if isText(e.args) || isObject(e.args) {
		if raw := x.calls[last].block.Raw(); strings.HasSuffix(raw, "}") && jsonwire.IsObject([]byte(raw)) {
			return -1
		}
	}
	return last
}

func (x *exchange) openCall(a *wire.Answer, e *toolEntry) int {
	c := call{index: e.index, hasIndex: e.hasIndex}
	id, name := "", ""
	if isString(e.id) {
		id = x.string(e.id)
	}
	if isString(e.name) {
		name = x.string(e.name)
	}
	if e.custom {
		c.input = &wire.GrammarInput{Property: "input"}
		if g := x.grammars.Find(name); g != nil {
			c.input.Property = g.Property
		}
		c.block = a.ToolCall(id, name, c.input.Empty())
	} else {
		c.block = a.ToolCall(id, name, nil)
	}
	x.calls = append(x.calls, c)
	return len(x.calls) - 1
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	if len(x.details.list) > 0 {
		*x.thinking.ThinkingBlock().Signature = string(x.details.appendJSON(nil))
	}
	if cause != nil && !errors.Is(cause, wire.ErrAborted) {
		return cause
	}
	calls := x.calls // in the order of their blocks
	for _, b := range a.Blocks() {
		if len(calls) > 0 && calls[0].block == b {
			if calls[0].input != nil {
				b.Append(calls[0].input.End())
			}
			calls = calls[1:]
		}
		b.End()
	}
	if cause != nil {
		return cause
	}
	switch x.finish {
	case "stop", "end":
		a.Message.StopReason = llm.StopStop
	case "length":
		a.Message.StopReason = llm.StopLength
	case "tool_calls", "function_call":
		a.Message.StopReason = llm.StopToolUse
	case "":
		switch {
		case x.compat.SupportsFinishReason:
			return &FinishError{}
		case len(x.calls) > 0:
			a.Message.StopReason = llm.StopToolUse
		default:
			a.Message.StopReason = llm.StopStop
		}
	default:
		return &FinishError{Reason: x.finish}
	}
	return nil
}
