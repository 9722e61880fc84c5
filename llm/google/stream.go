package google

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	api         *API
	ctx         context.Context // ends the request for a token
	model       *llm.Model
	rules       Rules
	req         *llm.Request
	own         Options
	limited     bool // the token limit follows the rules of API.Stream
	thinking    *thinkingConfig
	thinkingErr error
	token       *token // that Vertex was asked with, nil for a key
	renewed     bool   // the service refused a token, and another was fetched
	risky       bool   // the request has something that some endpoints refuse
	cautious    bool   // and is made without

	frame   frame
	view    chunkView
	chunk   jsonwire.Reader
	value   jsonwire.Reader // of single values in a chunk
	open    *wire.Block     // text or thinking that may go on
	called  bool
	usage   wireUsage
	counted bool   // usage was reported
	finish  string // the service's word, "" until it came
}

// FinishError says that an answer did not end well.
type FinishError struct {
	Service string // Google or Google Vertex
	Reason  string // the service's word, "" for none
	Unknown bool   // it is none of the documented ones
}

func (e *FinishError) Error() string {
	switch {
	case e.Reason == "":
		return e.Service + " stream ended without a finish reason"
	case e.Unknown:
		return "Unhandled stop reason: " + e.Reason
	default:
		return "Provider stopped with: " + e.Reason
	}
}

// chunkView is what a chunk holds, as slices of it; nil for absent.
type chunkView struct {
	failure, id   []byte
	finish, usage []byte
	parts         []partView
}

// partView is a part of a content.
type partView struct {
	text, signature, call []byte
	thought               bool
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, _, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		a.KeepAlive()
		return nil
	}
	if string(data) == "[DONE]" { // which some gateways add
		return wire.ErrFinished
	}
	text, u, framed := x.inFrame(data)
	if !framed {
		if err := x.read(data); err != nil {
			return fmt.Errorf("the stream holds a chunk that cannot be read: %w", err)
		}
	}
	if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
		return err
	}
	if framed {
		x.say(a, x.frame.thought, nil, text)
		if x.counted {
			x.usage = u
			u.report(&a.Message.Usage)
		}
		return nil
	}
	c := &x.view
	if err := streamError(data, c.failure); err != nil {
		return err
	}
	if len(c.parts) == 0 && c.finish == nil && c.usage == nil {
		a.KeepAlive()
	}
	if a.Message.ResponseID == "" && isText(c.id) {
		a.Message.ResponseID = x.string(c.id)
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.text != nil {
			x.value.Reset(p.text)
			x.say(a, p.thought, p.signature, x.value.String())
		}
		if p.call != nil {
			x.toolCall(a, p)
		}
	}
	if isText(c.finish) {
		x.finish = x.string(c.finish)
		a.Message.RawStopReason = x.finish
		if !knownFinish(x.finish) {
			return &FinishError{Service: x.service(), Reason: x.finish, Unknown: true}
		}
	}
	if c.usage != nil {
		x.value.Reset(c.usage)
		x.usage, x.counted = readUsage(&x.value), true
		x.usage.report(&a.Message.Usage)
	}
	x.keepFrame(data)
	return nil
}

// read takes a chunk apart in one pass. A chunk that is no object has no parts.
func (x *exchange) read(data []byte) error {
	c := &x.view
	*c = chunkView{parts: c.parts[:0]}
	r := &x.chunk
	r.Reset(data)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "error":
			c.failure = r.Raw()
		case "responseId":
			c.id = r.Raw()
		case "usageMetadata":
			if r.Kind() == '{' {
				c.usage = r.Raw()
			} else {
				r.Skip()
			}
		case "candidates":
			first := true
			for r.Array(); r.More(); {
				if first {
					c.readCandidate(r)
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

func (c *chunkView) readCandidate(r *jsonwire.Reader) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "finishReason":
			c.finish = r.Raw()
		case "content":
			for r.Object(); r.More(); {
				if string(r.Key()) != "parts" {
					r.Skip()
					continue
				}
				c.parts = c.parts[:0]
				for r.Array(); r.More(); {
					c.parts = append(c.parts, readPart(r))
				}
			}
		default:
			r.Skip()
		}
	}
}

func readPart(r *jsonwire.Reader) (p partView) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "text":
			if r.Kind() == '"' {
				p.text = r.Raw()
			} else {
				r.Skip()
			}
		case "thought":
			p.thought = r.Bool()
		case "thoughtSignature":
			p.signature = r.Raw()
		case "functionCall":
			if r.Kind() == '{' {
				p.call = r.Raw()
			} else {
				r.Skip()
			}
		default:
			r.Skip()
		}
	}
	return p
}

// streamError is the error that a chunk reports, nil for none. Gateways write
// theirs as a string.
func streamError(chunk, reported []byte) error {
	compact := func() string {
		text, _ := jsonwire.AppendCompact(nil, chunk)
		return wire.Truncate(string(text), wire.MaxErrorText)
	}
	switch {
	case isText(reported):
		return &wire.ProviderError{Message: compact()}
	case len(reported) == 0 || reported[0] != '{':
		return nil
	}
	status, ok := jsonwire.StringValue(jsonwire.Get(reported, "status"))
	if !ok {
		status = string(jsonwire.Get(reported, "code"))
	}
	return &wire.ProviderError{Message: "got status: " + status + ". " + compact()}
}

// say takes a text or a thought to the block of its kind that is open.
func (x *exchange) say(a *wire.Answer, thought bool, signature, text []byte) {
	if x.open == nil || (x.open.ThinkingBlock() != nil) != thought {
		x.close()
		if thought {
			x.open = a.Thinking(nil)
		} else {
			x.open = a.Text(nil)
		}
	}
	x.open.Append(text)
	if isText(signature) {
		x.sign(signature)
	}
}

// sign gives the open block a signature; the last one counts.
func (x *exchange) sign(raw []byte) {
	s := x.string(raw)
	if t := x.open.ThinkingBlock(); t != nil {
		t.Signature = &s
	} else {
		x.open.TextBlock().Signature = &s
	}
}

// close ends the open block.
func (x *exchange) close() {
	if x.open != nil {
		x.open.End()
		x.open = nil
	}
}

// toolCall takes a call, which comes in one piece.
func (x *exchange) toolCall(a *wire.Answer, p *partView) {
	x.close()
	var id, name string
	args := []byte("{}")
	x.value.Reset(p.call)
	r := &x.value
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			id = r.Text()
		case "name":
			name = r.Text()
		case "args":
			if r.Null() {
				continue
			}
			if compact, err := jsonwire.AppendCompact(nil, r.Raw()); err == nil {
				args = compact
			}
		default:
			r.Skip()
		}
	}
	if id == "" || taken(a, id) {
		id = x.newID(name)
	}
	initial := args
	if args[0] != '{' {
		initial = nil
	}
	b := a.ToolCall(id, name, initial)
	if isText(p.signature) {
		b.Call().ThoughtSignature = new(x.string(p.signature))
	}
	b.Append(args)
	b.End()
	x.called = true
}

// taken reports whether an earlier call of the answer has an id.
func taken(a *wire.Answer, id string) bool {
	for _, b := range a.Blocks() {
		if c := b.Call(); c != nil && c.ID == id {
			return true
		}
	}
	return false
}

// newID makes an id for a call that came without one of its own.
func (x *exchange) newID(name string) string {
	id := append([]byte(name), '_')
	id = strconv.AppendInt(id, x.api.host.Now().UnixMilli(), 10)
	id = append(id, '_')
	return string(strconv.AppendInt(id, x.api.calls.Add(1), 10))
}

func isText(raw []byte) bool { return len(raw) > len(`""`) && raw[0] == '"' }

func (x *exchange) string(raw []byte) string {
	x.value.Reset(raw)
	return x.value.Text()
}

// knownFinish reports whether a finish reason is one of the documented ones.
func knownFinish(reason string) bool {
	switch reason {
	case "STOP", "MAX_TOKENS", "CONTINUATION",
		"FINISH_REASON_UNSPECIFIED", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
		"MALFORMED_RESPONSE", "MODEL_ARMOR", "NO_IMAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER":
		return true
	}
	return false
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	if x.counted {
		x.usage.price(&a.Message.Usage, x.model)
	}
	if cause != nil {
		return cause
	}
	x.close()
	switch x.finish {
	case "STOP":
		a.Message.StopReason = llm.StopStop
		if x.called {
			a.Message.StopReason = llm.StopToolUse
		}
	case "MAX_TOKENS", "CONTINUATION":
		a.Message.StopReason = llm.StopLength
	default:
		return &FinishError{Service: x.service(), Reason: x.finish}
	}
	return nil
}

func (x *exchange) service() string {
	if x.api.vertex {
		return "Google Vertex"
	}
	return "Google"
}

// Rejected implements wire.Exchange. A token that the service refuses, because it
// was revoked or a clock is wrong, is replaced once. A request that is refused as
// it stands is made once more without what most endpoints take and some do not: a
// session that has such a thing must be able to go on.
func (x *exchange) Rejected(err *wire.StatusError) bool {
	switch {
	case err.Status == http.StatusUnauthorized && x.token != nil && !x.renewed:
		x.renewed = true
		x.api.tokens.drop(x.token)
		return true
	case err.Status == http.StatusBadRequest && x.risky && !x.cautious && !overflows(err):
		x.cautious = true
		return true
	}
	return false
}

// overflows reports whether a refusal is for the length of the request.
func overflows(err *wire.StatusError) bool {
	return llm.IsContextOverflow(&llm.Assistant{StopReason: llm.StopError, ErrorMessage: err.Message}, 0)
}
