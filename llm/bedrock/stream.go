package bedrock

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// decoder is the state of reading an answer.
type decoder struct {
	frames eventStream
	r      jsonwire.Reader
	open   []openBlock // blocks without their stop
	stop   llm.StopReason
	code   string // of the exception that ended the answer
}

// openBlock is a block by its number on the wire, which counts blocks that are
// not shown.
type openBlock struct {
	index    int64
	block    *wire.Block
	redacted []byte // reasoning that only the provider can read
}

// close gives the block what was gathered for it.
func (o *openBlock) close() {
	if o.redacted != nil {
		o.block.ThinkingBlock().Signature = new(base64.StdEncoding.EncodeToString(o.redacted))
	}
}

// find is the open block of a number, nil for none. The one that grows is
// nearly always the last.
func (d *decoder) find(index int64) *openBlock {
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i].index == index {
			return &d.open[i]
		}
	}
	return nil
}

// opened is the open block of a number, made by open when there is none.
func (d *decoder) opened(index int64, open func([]byte) *wire.Block) *openBlock {
	if b := d.find(index); b != nil {
		return b
	}
	d.open = append(d.open, openBlock{index: index, block: open(nil)})
	return &d.open[len(d.open)-1]
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, name, data []byte) error {
	switch string(x.frames.messageType) {
	case "exception":
		return x.exception(string(x.frames.exceptionType), data)
	case "error":
		return x.failure(string(x.frames.errorCode), string(x.frames.errorMessage))
	}
	if x.opts.OnProviderEvent != nil {
		if err := x.show(name, data); err != nil {
			return err
		}
	}
	switch string(name) {
	case "contentBlockDelta":
		a.Start()
		return x.blockDelta(a, data)
	case "contentBlockStart":
		a.Start()
		return x.blockStart(a, data)
	case "contentBlockStop":
		return x.blockStop(data)
	case "messageStart":
		a.Start()
	case "messageStop":
		a.Start()
		return x.messageStop(a.Message, data)
	case "metadata":
		a.Start()
		if err := x.metadata(a.Message, data); err != nil {
			return err
		}
		if x.stop != "" {
			return wire.ErrFinished // it is the last event
		}
	}
	return nil
}

// show gives the event to the caller in the form that the protocol's own
// clients have: an object with one member, named like the event.
func (x *exchange) show(name, data []byte) error {
	b := append(jsonwire.AppendString([]byte{'{'}, name), ':')
	n := len(b)
	if b = append(b, data...); len(data) == 0 || jsonwire.Check(data) != nil {
		b = append(b[:n], `null`...)
	}
	return wire.ProviderEvent(append(b, '}'), x.model, &x.opts)
}

// malformed says that the payload of an event is no JSON.
func malformed(event string, err error) error {
	return &wire.FrameError{Problem: "the payload of " + event + " is no JSON: " + err.Error()}
}

// piece is what a delta brings.
type piece uint8

const (
	noPiece piece = iota
	textPiece
	argumentsPiece
	reasoningPiece
	signaturePiece
	redactedPiece
)

func (x *exchange) blockDelta(a *wire.Answer, data []byte) error {
	var index int64
	var raw []byte // a JSON string
	kind := noPiece
	r := &x.r
	r.Reset(data)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "contentBlockIndex":
			index = r.Int()
		case "delta":
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "text":
					kind, raw = take(r, textPiece, kind, raw)
				case "toolUse":
					for r.Object(); r.More(); {
						if string(r.Key()) == "input" {
							kind, raw = take(r, argumentsPiece, kind, raw)
						} else {
							r.Skip()
						}
					}
				case "reasoningContent":
					for r.Object(); r.More(); {
						switch string(r.Key()) {
						case "text":
							kind, raw = take(r, reasoningPiece, kind, raw)
						case "signature":
							kind, raw = take(r, signaturePiece, kind, raw)
						case "redactedContent":
							kind, raw = take(r, redactedPiece, kind, raw)
						default:
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
	if err := r.End(); err != nil {
		return malformed("contentBlockDelta", err)
	}
	if kind == noPiece {
		return nil
	}
	r.Reset(raw)
	text := r.String()
	switch kind {
	case textPiece:
		if b := x.opened(index, a.Text); b.block.TextBlock() != nil {
			b.block.Append(text)
		}
	case argumentsPiece:
		if b := x.find(index); b != nil && b.block.Call() != nil {
			b.block.Append(text)
		}
	default:
		b := x.opened(index, a.Thinking)
		if t := b.block.ThinkingBlock(); t != nil {
			return b.reason(t, kind, text)
		}
	}
	return nil
}

// take reads a string that a delta brings; other kinds leave what was there.
func take(r *jsonwire.Reader, kind, otherwise piece, raw []byte) (piece, []byte) {
	if r.Kind() != '"' {
		r.Skip()
		return otherwise, raw
	}
	return kind, r.Raw()
}

// reason takes a piece of reasoning.
func (o *openBlock) reason(t *llm.Thinking, kind piece, text []byte) error {
	if t.Signature == nil {
		t.Signature = new("")
	}
	switch kind {
	case reasoningPiece:
		if len(text) > 0 { // an empty piece opens the block, and is no delta
			o.block.Append(text)
		}
	case signaturePiece:
		t.Signature = new(*t.Signature + string(text)) // a new one: snapshots keep the old
	case redactedPiece:
		bytes, err := base64.StdEncoding.AppendDecode(o.redacted, text)
		if err != nil {
			return &wire.FrameError{Problem: "redacted reasoning is no base64"}
		}
		if !t.Redacted {
			t.Redacted = true
			o.block.Append([]byte(wire.RedactedThinking))
		}
		o.redacted = bytes
	}
	return nil
}

func (x *exchange) blockStart(a *wire.Answer, data []byte) error {
	var index int64
	var id, name string
	tool := false
	r := &x.r
	r.Reset(data)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "contentBlockIndex":
			index = r.Int()
		case "start":
			for r.Object(); r.More(); {
				if string(r.Key()) != "toolUse" {
					r.Skip()
					continue
				}
				tool = r.Kind() == '{'
				for r.Object(); r.More(); {
					switch string(r.Key()) {
					case "toolUseId":
						id = r.Text()
					case "name":
						name = r.Text()
					default:
						r.Skip()
					}
				}
			}
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return malformed("contentBlockStart", err)
	}
	if tool && x.find(index) == nil {
		x.open = append(x.open, openBlock{index: index, block: a.ToolCall(id, name, nil)})
	}
	return nil
}

func (x *exchange) blockStop(data []byte) error {
	var index int64
	r := &x.r
	r.Reset(data)
	for r.Object(); r.More(); {
		if string(r.Key()) == "contentBlockIndex" {
			index = r.Int()
		} else {
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return malformed("contentBlockStop", err)
	}
	for i := range x.open {
		if b := &x.open[i]; b.index == index {
			b.close()
			b.block.End()
			x.open = append(x.open[:i], x.open[i+1:]...)
			break
		}
	}
	return nil
}

func (x *exchange) messageStop(m *llm.Assistant, data []byte) error {
	r := &x.r
	r.Reset(data)
	for r.Object(); r.More(); {
		if string(r.Key()) == "stopReason" {
			m.RawStopReason = r.Text()
		} else {
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return malformed("messageStop", err)
	}
	switch m.RawStopReason {
	case "":
	case "end_turn", "stop_sequence":
		x.stop = llm.StopStop
	case "max_tokens", "model_context_window_exceeded":
		x.stop = llm.StopLength
	case "tool_use":
		x.stop = llm.StopToolUse
	default:
		x.stop = llm.StopError
	}
	return nil
}

func (x *exchange) metadata(m *llm.Assistant, data []byte) error {
	u := &m.Usage
	counted, total := false, false
	r := &x.r
	r.Reset(data)
	for r.Object(); r.More(); {
		if string(r.Key()) != "usage" {
			r.Skip()
			continue
		}
		counted = r.Kind() == '{'
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "inputTokens":
				u.Input = r.Int()
			case "outputTokens":
				u.Output = r.Int()
			case "cacheReadInputTokens":
				u.CacheRead = r.Int()
			case "cacheWriteInputTokens":
				u.CacheWrite = r.Int()
			case "totalTokens":
				u.TotalTokens = r.Int()
				total = u.TotalTokens > 0
			case "cacheDetails":
				u.CacheWrite1h = readDetails(r)
			default:
				r.Skip()
			}
		}
	}
	if err := r.End(); err != nil {
		return malformed("metadata", err)
	}
	if counted {
		if !total {
			u.TotalTokens = u.Input + u.Output
		}
		u.Cost = x.model.Cost.Price(u)
	}
	return nil
}

// readDetails sums the tokens that were written to the cache for an hour, nil
// when there are none of that kind.
func readDetails(r *jsonwire.Reader) *int64 {
	var sum *int64
	for r.Array(); r.More(); {
		var ttl string
		var n int64
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "ttl":
				ttl = r.Text()
			case "inputTokens":
				n = r.Int()
			default:
				r.Skip()
			}
		}
		if ttl == "1h" {
			if sum == nil {
				sum = new(int64)
			}
			*sum += n
		}
	}
	return sum
}

// exception is the error of an exception event.
func (x *exchange) exception(typ string, data []byte) error {
	if typ != "" {
		typ = strings.ToUpper(typ[:1]) + typ[1:]
	}
	return x.failure(typ, errorMessage(data))
}

func (x *exchange) failure(code, message string) error {
	x.code = code
	if message == "" {
		message = "no reason is given"
	}
	return &wire.ProviderError{Message: errorText(code, message)}
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	for i := range x.open {
		x.open[i].close()
	}
	err := cause
	switch {
	case cause != nil:
	case x.stop == "":
		err = errors.New("Bedrock stream ended without a stop reason")
	case x.stop == llm.StopError:
		err = &wire.ProviderError{Message: "Provider stopped with: " + a.Message.RawStopReason}
	default:
		a.Message.StopReason = x.stop
		return nil
	}
	if errors.Is(err, wire.ErrAborted) {
		return err
	}
	// A response that says 200 and holds an error has no code of a status.
	x.diagnose("bedrock_response_failure", nil, failureDetails(0, x.code, requestID(x.source.Header())))
	return err
}

func (x *exchange) diagnose(typ string, err error, details []byte) {
	d := llm.Diagnostic{Type: typ, Timestamp: x.api.host.Now().UnixMilli(), Details: jsontext.Value(details)}
	if err != nil {
		d.Error = &llm.DiagnosticError{Message: err.Error()}
	}
	out := x.source.Message()
	out.Diagnostics = append(out.Diagnostics, d)
}

// errorMessage is the message of an error's body; the body itself when it is
// none of the service's own.
func errorMessage(body []byte) string {
	for _, name := range [...]string{"message", "Message", "errorMessage"} {
		if s, ok := jsonwire.StringValue(jsonwire.Get(body, name)); ok && s != "" {
			return s
		}
	}
	text := bytes.TrimSpace(body)
	if jsonwire.IsObject(text) && len(bytes.TrimSpace(text[1:len(text)-1])) == 0 {
		return ""
	}
	return wire.Truncate(string(jsonwire.AppendUTF8(nil, text)), wire.MaxErrorText)
}
