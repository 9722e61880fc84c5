package anthropic

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// decoder is the state of reading an answer.
type decoder struct {
	r, inner jsonwire.Reader
	open     []openBlock // blocks without their stop
	started  bool
	finished bool
	stop     llm.StopReason
	refusal  string // what an answer that ends in StopError says
	changes  []byte // input_transformations, the last list
	rates    *llm.Rates
}

// openBlock is a block by its number on the wire, which counts blocks that are
// not shown.
type openBlock struct {
	index int64
	block *wire.Block
}

func (d *decoder) find(index int64) *wire.Block {
	for i := range d.open {
		if d.open[i].index == index {
			return d.open[i].block
		}
	}
	return nil
}

// event is an event's members as they stand in its data.
type event struct {
	index   int64
	message []byte
	block   []byte
	delta   []byte
	usage   []byte
	changes []byte // input_transformations

	// Of a block's delta: the member that has its text, and the text, which is
	// valid until the next event is read.
	kind pieceKind
	text []byte
}

// pieceKind tells what a block's delta brings. Each kind has its text in a
// member of its own name.
type pieceKind uint8

const (
	noPiece pieceKind = iota
	textPiece
	thinkingPiece
	argumentsPiece
	signaturePiece
)

// quick reads a block's delta that is written the way Anthropic writes it: most
// events are, and this makes one of them cost little more than its text. ok is
// false for everything else, right or wrong, which is for read to tell.
func (d *decoder) quick(data []byte) (ev event, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"content_block_delta","index":`))
	if !ok {
		return ev, false
	}
	n := 0
	for n < len(rest) && n < 9 && rest[n] >= '0' && rest[n] <= '9' {
		ev.index = ev.index*10 + int64(rest[n]-'0')
		n++
	}
	if n == 0 || n > 1 && rest[0] == '0' {
		return ev, false
	}
	if rest, ok = bytes.CutPrefix(rest[n:], []byte(`,"delta":{"type":"`)); !ok {
		return ev, false
	}
	if after, ok := bytes.CutPrefix(rest, []byte(`text_delta","text":`)); ok {
		ev.kind, rest = textPiece, after
	} else if after, ok := bytes.CutPrefix(rest, []byte(`input_json_delta","partial_json":`)); ok {
		ev.kind, rest = argumentsPiece, after
	} else if after, ok := bytes.CutPrefix(rest, []byte(`thinking_delta","thinking":`)); ok {
		ev.kind, rest = thinkingPiece, after
	} else {
		return ev, false
	}
	r := &d.inner
	r.Reset(rest)
	if len(rest) == 0 || rest[0] != '"' {
		return ev, false
	}
	ev.text = r.String()
	if r.Err() != nil {
		return ev, false
	}
	// Both objects must end here; white space before a brace is usual.
	closed := 0
	for _, c := range rest[r.Offset():] {
		switch c {
		case '}':
			closed++
		case ' ':
		default:
			return ev, false
		}
	}
	return ev, closed == 2
}

// read reads an event. The delta of a block is taken apart at once.
func (d *decoder) read(data []byte, blockDelta bool) (ev event, err error) {
	var piece []byte // a string, decoded once the whole event is known to be right
	r := &d.r
	r.Reset(data)
	if r.Kind() != '{' {
		if err := jsonwire.Check(data); err != nil {
			return ev, err
		}
		return ev, errors.New("not an object")
	}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "index":
			ev.index = r.Int()
		case "message":
			ev.message = r.Raw()
		case "content_block":
			ev.block = r.Raw()
		case "delta":
			if !blockDelta {
				ev.delta = r.Raw()
				continue
			}
			for r.Object(); r.More(); {
				kind := noPiece
				switch string(r.Key()) {
				case "text":
					kind = textPiece
				case "thinking":
					kind = thinkingPiece
				case "partial_json":
					kind = argumentsPiece
				case "signature":
					kind = signaturePiece
				}
				if kind != noPiece && r.Kind() == '"' {
					ev.kind, piece = kind, r.Raw()
				} else {
					r.Skip()
				}
			}
		case "usage":
			ev.usage = r.Raw()
		case "input_transformations":
			ev.changes = r.Raw()
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil || piece == nil {
		return ev, err
	}
	d.inner.Reset(piece)
	ev.text = d.inner.String()
	return ev, nil
}

// Event implements wire.Exchange.
func (x *exchange) Event(a *wire.Answer, name, data []byte) error {
	if string(name) == "content_block_delta" && x.req.OnProviderEvent == nil {
		if ev, ok := x.quick(data); ok {
			x.blockDelta(&ev)
			return nil
		}
	}
	switch string(name) {
	case "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop":
	case "error":
		return &wire.ProviderError{Message: string(data)}
	case "ping":
		// While thinking is not shown, pings are the only sign of life.
		if x.thinking.display != displayOmitted {
			a.KeepAlive()
		}
		return nil
	default:
		return nil
	}
	blockDelta := string(name) == "content_block_delta"
	ev, err := x.read(data, blockDelta)
	if err != nil {
		mended := wire.RepairJSON(data)
		if ev, err = x.read(mended, blockDelta); err != nil {
			return fmt.Errorf("Could not parse Anthropic SSE event %s: %w; data=%s; raw=%s", name, err, data, x.source.Raw(`\n`))
		}
		data = mended
	}
	if x.req.OnProviderEvent != nil {
		if err := wire.ProviderEvent(data, x.model, &x.req.Options); err != nil {
			return err
		}
	}
	switch string(name) {
	case "content_block_delta":
		x.blockDelta(&ev)
	case "content_block_start":
		return x.blockStart(a, &ev)
	case "content_block_stop":
		x.blockStop(ev.index)
	case "message_start":
		x.messageStart(a.Message, &ev)
	case "message_delta":
		return x.messageDelta(a.Message, &ev)
	case "message_stop":
		x.finished = true
		return wire.ErrFinished
	}
	return nil
}

func (x *exchange) blockDelta(ev *event) {
	b := x.find(ev.index)
	if b == nil {
		return
	}
	switch ev.kind {
	case textPiece:
		if b.TextBlock() != nil {
			b.Append(ev.text)
		}
	case thinkingPiece:
		if b.ThinkingBlock() != nil {
			b.Append(ev.text)
		}
	case argumentsPiece:
		if b.Call() != nil {
			b.Append(ev.text)
		}
	case signaturePiece:
		if t := b.ThinkingBlock(); t != nil {
			signature := string(ev.text)
			if t.Signature != nil {
				signature = *t.Signature + signature
			}
			t.Signature = &signature // a new one: snapshots keep the old
		}
	}
}

func (x *exchange) blockStart(a *wire.Answer, ev *event) error {
	var typ, id, name, signature, data string
	var text []byte
	var input jsontext.Value
	r := &x.inner
	r.Reset(ev.block)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			typ = r.Text()
		case "text", "thinking":
			text = append(text, r.String()...)
		case "signature":
			signature = r.Text()
		case "data":
			data = r.Text()
		case "id":
			id = r.Text()
		case "name":
			name = r.Text()
		case "input":
			if r.Kind() == '{' {
				input, _ = jsonwire.AppendCompact(nil, r.Raw())
			} else {
				r.Skip()
			}
		default:
			r.Skip()
		}
	}
	var b *wire.Block
	switch typ {
	case "text":
		b = a.Text(text)
	case "thinking":
		b = a.Thinking(text)
		b.ThinkingBlock().Signature = &signature
	case "redacted_thinking":
		b = a.Redacted(data)
	case "tool_use":
		b = a.ToolCall(id, x.declaredName(name), input)
	case "fallback":
		if len(a.Blocks()) > 0 {
			return errors.New("Anthropic switched to a fallback model after its answer had begun")
		}
		return nil
	default:
		return nil // blocks of server-side tools are not shown
	}
	x.open = append(x.open, openBlock{ev.index, b})
	return nil
}

func (x *exchange) blockStop(index int64) {
	for i := range x.open {
		if x.open[i].index == index {
			x.open[i].block.End()
			x.open = append(x.open[:i], x.open[i+1:]...)
			return
		}
	}
}

func (x *exchange) messageStart(m *llm.Assistant, ev *event) {
	x.started = true
	x.rates = &x.model.Cost
	var usage []byte
	changes := ev.changes
	r := &x.inner
	r.Reset(ev.message)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			m.ResponseID = r.Text()
		case "model":
			if name := r.Text(); name != "" && name != x.model.ID {
				m.ResponseModel = name
				for i := range x.compat.FallbackModels {
					if f := &x.compat.FallbackModels[i]; f.Model == name {
						x.rates = &f.Cost
					}
				}
			}
		case "usage":
			usage = r.Raw()
		case "input_transformations":
			changes = r.Raw()
		default:
			r.Skip()
		}
	}
	m.Usage.CacheWrite1h = new(int64(0))
	x.usage(m, usage)
	x.transformed(changes)
}

// usage takes over the counts that are given; null leaves what was there. It
// returns what a gateway says about the price.
func (x *exchange) usage(m *llm.Assistant, usage []byte) (bill wire.Bill) {
	u := &m.Usage
	r := &x.inner
	r.Reset(usage)
	for r.Object(); r.More(); {
		key := r.Key()
		if bill.Take(key, r) {
			continue
		}
		var n *int64
		switch string(key) {
		case "input_tokens":
			n = &u.Input
		case "output_tokens":
			n = &u.Output
		case "cache_read_input_tokens":
			n = &u.CacheRead
		case "cache_creation_input_tokens":
			n = &u.CacheWrite
		case "cache_creation":
			for r.Object(); r.More(); {
				if string(r.Key()) == "ephemeral_1h_input_tokens" && r.Kind() == '0' {
					u.CacheWrite1h = new(r.Int())
				} else {
					r.Skip()
				}
			}
			continue
		case "output_tokens_details":
			for r.Object(); r.More(); {
				if string(r.Key()) == "thinking_tokens" && r.Kind() == '0' {
					u.Reasoning = new(r.Int())
				} else {
					r.Skip()
				}
			}
			continue
		}
		if n != nil && r.Kind() == '0' {
			*n = r.Int()
		} else {
			r.Skip()
		}
	}
	u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	rates := x.rates
	if rates == nil {
		rates = &x.model.Cost
	}
	u.Cost = rates.Price(u)
	return bill
}

func (x *exchange) messageDelta(m *llm.Assistant, ev *event) error {
	var reason, explanation string
	r := &x.inner
	r.Reset(ev.delta)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "stop_reason":
			reason = r.Text()
		case "stop_details":
			for r.Object(); r.More(); {
				if string(r.Key()) == "explanation" {
					explanation = r.Text()
				} else {
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	if reason != "" {
		m.RawStopReason = reason
		switch reason {
		case "end_turn", "stop_sequence", "pause_turn":
			x.stop = llm.StopStop
		case "max_tokens":
			x.stop = llm.StopLength
		case "tool_use":
			x.stop = llm.StopToolUse
		case "refusal":
			x.stop, x.refusal = llm.StopError, explanation
			if explanation == "" {
				x.refusal = "The model refused to complete the request"
			}
		case "sensitive":
			x.stop, x.refusal = llm.StopError, "Provider stopped with: sensitive"
		default:
			return &wire.ProviderError{Message: "Unhandled stop reason: " + reason}
		}
	}
	if ev.usage != nil {
		bill := x.usage(m, ev.usage)
		bill.Apply(x.model, &m.Usage)
	}
	x.transformed(ev.changes)
	return nil
}

// transformed keeps the list of what the service did to the conversation before
// the model saw it; the last one counts.
func (x *exchange) transformed(list []byte) {
	if len(list) > 0 && list[0] == '[' {
		x.changes = bytes.Clone(list)
	}
}

// transformations records them.
func (x *exchange) transformations() {
	var r, one jsonwire.Reader
	r.Reset(x.changes)
	b := []byte(`{"transformations":[`)
	n := 0
	for r.Array(); r.More(); n++ {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		from := len(b)
		one.Reset(r.Raw())
		for one.Object(); one.More(); {
			switch key := one.Key(); string(key) {
			case "type", "path", "reason":
				if len(b) > from {
					b = append(b, ',')
				}
				b = jsonwire.AppendString(b, key)
				b = append(b, ':')
				b, _ = jsonwire.AppendCompact(b, one.Raw())
			default:
				one.Skip()
			}
		}
		b = append(b, '}')
	}
	if n > 0 {
		x.diagnose("anthropic_input_transformations", nil, string(append(b, `]}`...)))
	}
}

// End implements wire.Exchange.
func (x *exchange) End(a *wire.Answer, cause error) error {
	m := a.Message
	if x.thinking.inConversation {
		m.ProviderThinkingLevel = x.thinking.effort
	}
	switch {
	case cause != nil:
		return cause
	case x.started && !x.finished:
		return errors.New("Anthropic stream ended before message_stop")
	case x.stop == llm.StopError:
		return &wire.ProviderError{Message: x.refusal}
	case x.stop == "":
		return errors.New("Anthropic stream ended without a stop reason")
	}
	m.StopReason = x.stop
	x.transformations()
	x.recordThread(m)
	return nil
}
