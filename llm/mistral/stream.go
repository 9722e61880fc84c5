package mistral

import (
	"bytes"
	"strconv"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	host    *wire.Host
	model   *llm.Model
	compat  compat
	req     *llm.Request
	own     Options
	limited bool   // the token limit follows the rules of API.Stream
	session string // "" when nothing is to be cached

	known wire.Template
	leaf  leaf // of the string that the chunk at hand, or the known template, brings
	view  chunkView
	chunk jsonwire.Reader
	value jsonwire.Reader // of single values in a chunk
	piece jsonwire.Reader // of a text in a thought

	open   *wire.Block // of text or thinking, nil for none
	half   []byte      // first half of a character, which the open block waits with
	calls  []call
	finish string // finish_reason
	joined []byte // scratch for a thought in pieces
}

// call is a tool call that is streaming.
type call struct {
	block *wire.Block
	index int64
}

// EventError says that an event of the stream is none of the protocol.
type EventError struct{ Cause error } // nil when it is JSON

func (e *EventError) Error() string {
	if e.Cause == nil {
		return "Invalid Mistral streaming event"
	}
	return "Invalid Mistral streaming event: " + e.Cause.Error()
}

func (e *EventError) Unwrap() error { return e.Cause }

// FinishError says that an answer did not end well.
type FinishError struct{ Reason string } // the service's word, "" for none

func (e *FinishError) Error() string {
	switch e.Reason {
	case "":
		return "Mistral stream ended without a finish reason"
	case "error":
		return "Provider stopped with: error (server error)"
	default:
		return "Provider stopped with: " + e.Reason
	}
}

// leaf is a string of a chunk that adds to a block.
type leaf struct {
	raw      []byte // nil when the chunk brings none, or more than one
	thinking bool
	call     *wire.Block // whose arguments it adds to; nil for text and thinking
	parts    int         // of the chunk
}

// chunkView is what a chunk holds, as slices of it; nil for absent.
type chunkView struct {
	id, usage, finish, content []byte
	pad                        []byte // random letters
	choices                    bool   // there is a list of choices
	tools                      []toolEntry
}

// toolEntry is an entry of a delta's tool_calls, as slices of it.
type toolEntry struct {
	id, name, args []byte
	index          int64
	hasIndex       bool
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, _, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		a.KeepAlive()
		return nil
	}
	if string(data) == "[DONE]" {
		return wire.ErrFinished
	}
	piece, known := x.known.Match(data)
	if !known {
		if err := x.read(data); err != nil {
			return &EventError{Cause: err}
		}
	}
	if x.req.OnProviderEvent != nil {
		if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
			return err
		}
	}
	if known {
		x.take(a, piece)
		return nil
	}
	c := &x.view
	if !c.choices {
		return &EventError{}
	}
	x.known.Forget()
	x.leaf = leaf{}
	if a.Message.ResponseID == "" && c.id != nil {
		a.Message.ResponseID = x.text(c.id)
	}
	if isObject(c.usage) {
		x.value.Reset(c.usage)
		u := readUsage(&x.value)
		a.Message.Usage = u.usage(x.model)
	}
	if isText(c.finish) {
		x.finish = x.text(c.finish)
		a.Message.RawStopReason = x.finish
	}
	if c.silent() {
		a.KeepAlive()
		return nil
	}
	x.takeContent(a, c.content)
	for i := range c.tools {
		x.takeCall(a, &c.tools[i])
	}
	if l := &x.leaf; l.parts == 1 && l.raw != nil && !isText(c.finish) && !isObject(c.usage) {
		x.known.Keep(data, l.raw, c.pad)
		l.raw = nil
	}
	return nil
}

// take adds the string of a chunk of the known template to what the string of the
// chunk before it was added to.
func (x *exchange) take(a *wire.Answer, piece []byte) {
	switch l := &x.leaf; {
	case l.call != nil:
		x.close()
		l.call.Append(piece)
	case len(piece) == 0:
		a.KeepAlive()
	default:
		x.say(a, piece, l.thinking)
	}
}

// read takes a chunk apart in one pass.
func (x *exchange) read(data []byte) error {
	c := &x.view
	*c = chunkView{tools: c.tools[:0]}
	r := &x.chunk
	r.Reset(data)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			c.id = r.Raw()
		case "usage":
			c.usage = r.Raw()
		case "p":
			if r.Kind() == '"' {
				c.pad = r.Raw()
			} else {
				r.Skip()
			}
		case "choices":
			c.choices = r.Kind() == '['
			first := true
			for r.Array(); r.More(); first = false {
				if first {
					c.readChoice(r)
				} else {
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	return r.End()
}

func (c *chunkView) readChoice(r *jsonwire.Reader) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "finish_reason":
			c.finish = r.Raw()
		case "delta":
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "content":
					c.content = r.Raw()
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
		default:
			r.Skip()
		}
	}
}

func readToolEntry(r *jsonwire.Reader) (e toolEntry) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			e.id = r.Raw()
		case "index":
			if e.hasIndex = r.Kind() == '0'; e.hasIndex {
				e.index = r.Int()
			} else {
				r.Skip()
			}
		case "function":
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "name":
					e.name = r.Raw()
				case "arguments":
					e.args = r.Raw()
				default:
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	return e
}

// silent reports whether the chunk brings nothing of an answer.
func (c *chunkView) silent() bool {
	return !isText(c.content) && !isList(c.content) && len(c.tools) == 0 && !isText(c.finish) && !isObject(c.usage)
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isList(raw []byte) bool   { return len(raw) > len("[]") && raw[0] == '[' }
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// isText reports whether raw is a string that is not empty.
func isText(raw []byte) bool { return isString(raw) && len(raw) > len(`""`) }

// text is the string raw, "" for other kinds.
func (x *exchange) text(raw []byte) string {
	x.value.Reset(raw)
	return x.value.Text()
}

// takeContent takes a delta's content: a string, or a list of parts.
func (x *exchange) takeContent(a *wire.Answer, content []byte) {
	if isText(content) {
		x.leaf = leaf{raw: content, parts: 1}
		x.value.Reset(content)
		x.say(a, x.value.String(), false)
		return
	}
	if !isList(content) {
		return
	}
	r := &x.chunk // it is done with the chunk
	r.Reset(content)
	for r.Array(); r.More(); {
		x.takePart(a, r)
	}
}

// takePart takes one part of a content list: a text, plain or in an object, or a
// thought that is a list of texts itself. Other kinds of parts, such as
// references, are no text.
func (x *exchange) takePart(a *wire.Answer, r *jsonwire.Reader) {
	var typ, text, thinking []byte
	if r.Kind() == '"' {
		typ, text = []byte(`"text"`), r.Raw()
	} else {
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "type":
				typ = r.Raw()
			case "text":
				text = r.Raw()
			case "thinking":
				thinking = r.Raw()
			default:
				r.Skip()
			}
		}
	}
	x.leaf.parts++
	switch string(typ) {
	case `"text"`:
		if isText(text) {
			x.leaf.raw, x.leaf.thinking = text, false
			x.value.Reset(text)
			x.say(a, x.value.String(), false)
		}
	case `"thinking"`:
		x.say(a, x.thought(thinking), true)
	}
}

// thought is the text of a thinking part.
func (x *exchange) thought(thinking []byte) []byte {
	x.leaf.raw, x.leaf.thinking = nil, true
	r := &x.value
	r.Reset(thinking)
	if isString(thinking) {
		return r.String()
	}
	x.joined = x.joined[:0]
	n := 0
	for r.Array(); r.More(); {
		for r.Object(); r.More(); {
			if string(r.Key()) != "text" {
				r.Skip()
				continue
			}
			raw := r.Raw()
			x.piece.Reset(raw)
			x.joined = append(x.joined, x.piece.String()...)
			if x.leaf.raw = raw; n > 0 || !isText(raw) {
				x.leaf.raw = nil
			}
			n++
		}
	}
	return x.joined
}

// say appends to the open block, or opens one of the right kind. An empty piece
// does neither: services send an empty thought between two texts.
func (x *exchange) say(a *wire.Answer, piece []byte, thinking bool) {
	if len(piece) == 0 {
		return
	}
	if x.open != nil && (x.open.ThinkingBlock() != nil) != thinking {
		x.close()
	}
	if piece = x.clean(piece); len(piece) == 0 {
		return
	}
	if x.open == nil {
		if thinking {
			x.open = a.Thinking(nil)
		} else {
			x.open = a.Text(nil)
		}
	}
	x.open.Append(piece)
}

func (x *exchange) close() {
	if x.open != nil {
		x.open.End()
	}
	x.open, x.half = nil, x.half[:0]
}

// clean is a piece of text without halves of surrogate pairs. The first half of
// a character at its end waits for the next piece.
func (x *exchange) clean(piece []byte) []byte {
	// 0xED begins the three-byte form of a half, and little else.
	if len(x.half) == 0 && bytes.IndexByte(piece, 0xED) < 0 {
		return piece
	}
	whole := append(x.half, piece...)
	x.half = nil
	if n := len(whole) - 3; n >= 0 {
		if r := jsonwire.SurrogateAt(whole, n); r != 0 && r < 0xDC00 {
			x.half = bytes.Clone(whole[n:])
			whole = whole[:n]
		}
	}
	return []byte(jsonwire.DropSurrogates(string(whole)))
}

// takeCall takes an entry of tool_calls to its call.
func (x *exchange) takeCall(a *wire.Answer, e *toolEntry) {
	x.close()
	block := x.call(a, e)
	x.leaf.parts++
	switch {
	case isString(e.args):
		// An entry without index finds its call by the state of the others.
		if e.hasIndex {
			x.leaf.raw, x.leaf.call = e.args, block
		}
		x.value.Reset(e.args)
		block.Append(x.value.String())
	case isObject(e.args):
		// The service may send the arguments as an object in one piece.
		block.Append(compactOr(e.args, "{}"))
	}
}

// call is the block of the call that an entry belongs to.
func (x *exchange) call(a *wire.Answer, e *toolEntry) *wire.Block {
	id := x.id(e)
	if at := x.find(e, id); at >= 0 {
		block := x.calls[at].block
		if c := block.Call(); c.Name == "" && isText(e.name) {
			c.Name = x.text(e.name)
		}
		return block
	}
	c := call{index: e.index}
	if !e.hasIndex && len(x.calls) > 0 {
		c.index = x.calls[len(x.calls)-1].index + 1
	}
	named := string(id)
	if named == "" {
		named = shortID("toolcall:"+strconv.FormatInt(c.index, 10), 0)
	}
	name := ""
	if isText(e.name) {
		name = x.text(e.name)
	}
	c.block = a.ToolCall(named, name, nil)
	x.calls = append(x.calls, c)
	return c.block
}

// id is the id of an entry, empty for none; it is valid until x.value is used.
// Some versions of the service write the word null where they have none.
func (x *exchange) id(e *toolEntry) []byte {
	if !isText(e.id) || string(e.id) == `"null"` {
		return nil
	}
	x.value.Reset(e.id)
	return x.value.String()
}

// find is the position of the call that an entry belongs to, -1 for a new one.
// An entry without index is found by its id, and without both continues the
// last call.
func (x *exchange) find(e *toolEntry, id []byte) int {
	for i := range x.calls {
		c := &x.calls[i]
		if e.hasIndex && c.index == e.index || !e.hasIndex && len(id) > 0 && c.block.Call().ID == string(id) {
			return i
		}
	}
	if !e.hasIndex && len(id) == 0 {
		return len(x.calls) - 1
	}
	return -1
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	if cause != nil {
		return cause
	}
	x.close()
	for i := range x.calls {
		x.calls[i].block.End()
	}
	switch x.finish {
	case "stop":
		a.Message.StopReason = llm.StopStop
	case "length", "model_length":
		a.Message.StopReason = llm.StopLength
	case "tool_calls":
		a.Message.StopReason = llm.StopToolUse
	default:
		return &FinishError{Reason: x.finish}
	}
	return nil
}
