package responses

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// decoder is what is known of an answer so far.
type decoder struct {
	frame   frame
	view    eventView
	event   jsonwire.Reader
	value   jsonwire.Reader // of single values in an event
	outputs []*output
	last    *response // that closed the answer, nil while it is open
}

// output is an item of the answer that is a block of the message.
type output struct {
	index  int64 // of the item in the answer
	block  *wire.Block
	done   bool
	id     string             // of the finished item
	input  *wire.GrammarInput // of the call of a grammar tool, else nil
	unsent []byte             // of the input, shown with the start
	closed bool               // the input is whole
}

// eventType tells what an event reports.
type eventType uint8

const (
	eventOther     eventType = iota
	eventKeepAlive           // not of the protocol
	eventCreated
	eventItemAdded
	eventItemDone
	eventText
	eventThinking
	eventThinkingPart // a paragraph of reasoning is complete
	eventArguments
	eventArgumentsDone
	eventInput
	eventInputDone
	eventLast
	eventDone // another name of eventLast in one dialect
	eventFailed
	eventError
)

func eventOf(name []byte) eventType {
	switch string(name) {
	case "response.output_text.delta", "response.refusal.delta":
		return eventText
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return eventThinking
	case "response.function_call_arguments.delta":
		return eventArguments
	case "response.custom_tool_call_input.delta":
		return eventInput
	case "response.created":
		return eventCreated
	case "response.output_item.added":
		return eventItemAdded
	case "response.output_item.done":
		return eventItemDone
	case "response.reasoning_summary_part.done":
		return eventThinkingPart
	case "response.function_call_arguments.done":
		return eventArgumentsDone
	case "response.custom_tool_call_input.done":
		return eventInputDone
	case "response.completed", "response.incomplete":
		return eventLast
	case "response.done":
		return eventDone
	case "response.failed":
		return eventFailed
	case "error":
		return eventError
	}
	if bytes.HasPrefix(name, []byte("response.")) {
		return eventOther
	}
	return eventKeepAlive
}

// eventView is what an event holds, as slices of it; nil for absent.
type eventView struct {
	typ      eventType
	index    int64  // output_index, -1 for none
	delta    []byte // string
	whole    []byte // string: arguments or input
	item     []byte // object
	response []byte // object
	trouble  []byte // error

	holes   [maxHoles]hole // what is new in each event of a kind, in order
	n       int
	crowded bool // there are more
	named   bool // the type stands in the name of the event, not in the event
}

// hole notes a value that differs between the events of a kind.
func (v *eventView) hole(kind holeKind, from, to int) {
	if v.n == maxHoles {
		v.crowded = true
		return
	}
	v.holes[v.n] = hole{kind, from, to}
	v.n++
}

// read takes an event apart in one pass.
func (x *exchange) read(name, data []byte) error {
	v := &x.view
	*v = eventView{index: -1}
	r := &x.event
	r.Reset(data)
	typed := false
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			v.typ, typed = eventOf(r.String()), true
		case "output_index":
			if r.Kind() == '0' {
				v.index = r.Int()
			} else {
				r.Skip()
			}
		case "delta":
			r.Kind() // moves to the value
			from := r.Offset()
			v.delta = r.Raw()
			v.hole(holePiece, from, r.Offset())
		case "sequence_number":
			kind := r.Kind()
			from := r.Offset()
			r.Skip()
			if kind == '0' {
				v.hole(holeNumber, from, r.Offset())
			}
		case "obfuscation":
			r.Kind()
			from := r.Offset()
			r.Skip()
			v.hole(holePadding, from, r.Offset())
		case "arguments", "input":
			v.whole = r.Raw()
		case "item":
			v.item = r.Raw()
		case "response":
			v.response = r.Raw()
		case "error":
			v.trouble = r.Raw()
		default:
			r.Skip()
		}
	}
	if !typed {
		v.typ, v.named = eventOf(name), true
	}
	// Gateways report what went wrong behind them in an object of their own.
	if len(v.trouble) > 0 && v.trouble[0] == '{' && (v.typ == eventKeepAlive || v.typ == eventOther) {
		v.typ = eventError
	}
	return r.End()
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, name, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		a.KeepAlive()
		return nil
	}
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return wire.ErrFinished
	}
	v := &x.view
	piece, framed := x.frame.match(data, &x.value)
	if framed {
		v.typ, v.index = x.frame.typ, x.frame.index
	} else {
		if err := x.read(name, data); err != nil {
			return fmt.Errorf("the stream holds an event that cannot be read: %w", err)
		}
		x.frame.keep(data, v)
		piece = x.string(v.delta)
	}
	if x.req.OnProviderEvent != nil {
		if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
			return err
		}
	}
	switch v.typ {
	case eventText:
		if o := x.output(v.index); o != nil && o.block.TextBlock() != nil {
			o.block.Extend(piece)
		}
	case eventThinking:
		if o := x.output(v.index); o != nil && o.block.ThinkingBlock() != nil {
			o.block.Extend(piece)
		}
	case eventThinkingPart:
		if o := x.output(v.index); o != nil && o.block.ThinkingBlock() != nil {
			o.block.Append([]byte(paragraphs))
		}
	case eventArguments:
		if o := x.output(v.index); o != nil && o.block.Call() != nil && o.input == nil {
			o.block.Append(piece)
		}
	case eventArgumentsDone:
		if o := x.output(v.index); o != nil && o.block.Call() != nil && o.input == nil && isString(v.whole) {
			o.block.Complete(x.string(v.whole))
		}
	case eventInput:
		if o := x.output(v.index); o != nil && o.input != nil {
			if part := o.piece(piece); len(part) > 0 {
				o.block.Append(part)
			}
		}
	case eventInputDone:
		if o := x.output(v.index); o != nil && o.input != nil && isString(v.whole) {
			o.closeInput(x.string(v.whole))
		}
	case eventCreated:
		x.takeID(a, v.response)
	case eventItemAdded:
		x.added(a, v)
	case eventItemDone:
		x.done(a, v.index, v.item)
	case eventDone:
		if x.dialect.done {
			return x.finish(a, v.response)
		}
	case eventLast:
		return x.finish(a, v.response)
	case eventFailed:
		return x.failed(a, v.response)
	case eventError:
		return x.dialect.errorEvent(name, data)
	case eventKeepAlive:
		a.KeepAlive()
	}
	return nil
}

// paragraphs parts the paragraphs of reasoning.
const paragraphs = "\n\n"

// output is the open block of the item at a position, nil for none.
func (x *exchange) output(index int64) *output {
	for i := len(x.outputs) - 1; i >= 0; i-- {
		if o := x.outputs[i]; o.index == index {
			if o.done {
				return nil
			}
			return o
		}
	}
	return nil
}

// isDone reports whether the item with this id has closed its block.
func (x *exchange) isDone(index int64, id string) bool {
	return slices.ContainsFunc(x.outputs, func(o *output) bool { return o.done && o.index == index && o.id == id })
}

// string is the decoded string raw, empty for other kinds. It is valid until
// the next call.
func (x *exchange) string(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	x.value.Reset(raw)
	return x.value.String()
}

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

func (x *exchange) takeID(a *wire.Answer, response []byte) {
	if id, _ := jsonwire.StringValue(jsonwire.Get(response, "id")); id != "" {
		a.Message.ResponseID = id
	}
}

// item is an item of the answer, as slices of its event.
type item struct {
	raw                   []byte
	typ, id, callID, name string
	namespace, phase      string
	arguments, input      []byte // values
	summary, content      []byte // lists
	secret                bool   // there is encrypted content
}

func readItem(raw []byte) (it item) {
	it.raw = raw
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			it.typ = r.Text()
		case "id":
			it.id = r.Text()
		case "call_id":
			it.callID = r.Text()
		case "name":
			it.name = r.Text()
		case "namespace":
			it.namespace = r.Text()
		case "phase":
			it.phase = r.Text()
		case "arguments":
			it.arguments = r.Raw()
		case "input":
			it.input = r.Raw()
		case "summary":
			it.summary = r.Raw()
		case "content":
			it.content = r.Raw()
		case "encrypted_content":
			it.secret = len(r.String()) > 0
		default:
			r.Skip()
		}
	}
	return it
}

// id of a tool call: that of the call and that of the item.
func (it *item) toolCallID() string {
	switch {
	case it.callID == "":
		return it.id
	case it.id == "":
		return it.callID
	default:
		return it.callID + "|" + it.id
	}
}

// added opens the block of an item.
func (x *exchange) added(a *wire.Answer, v *eventView) {
	it := readItem(v.item)
	o := x.open(a, v.index, &it)
	if o == nil || o.block.Call() == nil {
		return
	}
	// Some services send the first piece of the arguments with the start.
	if args := x.string(it.arguments); o.input == nil && len(args) > 0 {
		o.block.Replace(args)
	}
}

// open makes the block of an item, nil for an item that is none.
func (x *exchange) open(a *wire.Answer, index int64, it *item) *output {
	o := &output{index: index}
	switch it.typ {
	case "reasoning":
		o.block = a.Thinking(nil)
	case "message":
		o.block = a.Text(nil)
	case "function_call":
		o.block = a.ToolCall(it.toolCallID(), it.name, nil)
		o.block.Call().Namespace = it.namespace
	case "custom_tool_call":
		o.input = &wire.GrammarInput{Property: "input"}
		if g := x.grammars.Find(it.name); g != nil {
			o.input.Property = g.Property
		}
		o.unsent = slices.Clone(x.string(it.input))
		o.block = a.ToolCall(it.toolCallID(), it.name, append(o.input.Whole(o.unsent), wire.GrammarEnd...))
	default:
		return nil
	}
	x.outputs = append(x.outputs, o)
	return o
}

// done closes the block of an item, whose final form raw is.
func (x *exchange) done(a *wire.Answer, index int64, raw []byte) {
	it := readItem(raw)
	o := x.output(index)
	if o == nil {
		if x.isDone(index, it.id) {
			return // told twice
		}
		if o = x.open(a, index, &it); o == nil {
			return
		}
	}
	o.done, o.id = true, it.id
	b := o.block
	switch {
	case b.ThinkingBlock() != nil:
		text := joined(it.summary, paragraphs)
		if text == "" {
			text = joined(it.content, paragraphs)
		}
		if text != "" {
			b.Replace([]byte(text))
		}
		if signature, err := jsonwire.AppendCompact(nil, it.raw); err == nil {
			b.ThinkingBlock().Signature = new(string(signature))
		}
	case b.TextBlock() != nil:
		if text := joined(it.content, ""); text != "" {
			b.Replace([]byte(text))
		}
		b.TextBlock().Signature = textSignature(it.id, it.phase)
		if it.phase == phaseFinal {
			a.Message.StopReason = llm.StopStop
		}
	default:
		c := b.Call()
		if it.callID != "" {
			c.ID = it.toolCallID()
		}
		if it.name != "" {
			c.Name = it.name
		}
		if it.namespace != "" {
			c.Namespace = it.namespace
		}
		x.finalArguments(o, &it)
	}
	b.End()
}

// finalArguments gives a call the arguments of its finished item.
func (x *exchange) finalArguments(o *output, it *item) {
	switch {
	case o.input == nil && isString(it.arguments):
		if args := x.string(it.arguments); len(args) > 0 {
			o.block.Replace(args)
		}
	case o.input == nil && len(it.arguments) > 0 && it.arguments[0] == '{':
		o.block.Replace(it.arguments) // some services send the object itself
	case o.input == nil:
	default:
		o.closeInput(x.string(it.input))
	}
}

// piece is the JSON of a piece of the input of a grammar tool. What came with
// the start is shown there, and told with the first delta.
func (o *output) piece(input []byte) []byte {
	if len(o.unsent) > 0 {
		input, o.unsent = append(o.unsent, input...), nil
	}
	return o.input.Piece(input)
}

// closeInput makes input the whole input of a grammar tool, and what is missing
// of it one more delta. An empty one says nothing of what was streamed.
func (o *output) closeInput(input []byte) {
	switch {
	case len(input) > 0:
		o.block.Complete(append(o.input.Whole(input), wire.GrammarEnd...))
	case !o.closed:
		rest := slices.Clone(o.piece(nil))
		o.block.Append(append(rest, o.input.End()...))
	}
	o.closed = true
}

// joined joins the texts of a list of parts.
func joined(parts []byte, sep string) string {
	var b []byte
	n := 0
	var r jsonwire.Reader
	r.Reset(parts)
	for r.Array(); r.More(); n++ {
		if n > 0 {
			b = append(b, sep...)
		}
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "text", "refusal":
				b = append(b, r.String()...)
			default:
				r.Skip()
			}
		}
	}
	return string(b)
}

// ErrTruncated says that an answer broke off: the stream ended without the
// event that closes it.
var ErrTruncated = errors.New("OpenAI Responses stream ended before a terminal response event")

// UnfinishedCallError says that an answer ended well although the arguments of
// one of its calls did not.
type UnfinishedCallError struct{ Name, ID string }

func (e *UnfinishedCallError) Error() string {
	return fmt.Sprintf("OpenAI Responses stream completed with an unfinished tool call: %s (%s)", e.Name, e.ID)
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	a.Message.ProviderThinkingLevel = x.effort
	if cause != nil {
		return cause
	}
	if x.last == nil {
		return ErrTruncated
	}
	stop, err := x.last.stop()
	if err != nil {
		return err
	}
	for _, o := range x.outputs {
		c := o.block.Call()
		switch {
		case c == nil:
			o.block.End() // what the service left open is complete
		case stop == llm.StopLength:
		case !o.done:
			return &UnfinishedCallError{Name: c.Name, ID: c.ID}
		default:
			stop = llm.StopToolUse
		}
	}
	a.Message.StopReason = stop
	return nil
}
