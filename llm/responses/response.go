package responses

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// response is the object that closes an answer.
type response struct {
	id, status, tier string
	reason           string // of an incomplete answer
	usage            []byte // object, nil for none
	output           []byte // list of items
	transformations  []byte // list
	problem          []byte // error object
	endTurn          []byte
}

func readResponse(raw []byte) *response {
	resp := &response{}
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			resp.id = r.Text()
		case "status":
			resp.status = r.Text()
		case "service_tier":
			resp.tier = r.Text()
		case "incomplete_details":
			resp.reason, _ = jsonwire.StringValue(jsonwire.Get(r.Raw(), "reason"))
		case "usage":
			if r.Kind() == '{' {
				resp.usage = r.Raw()
			} else {
				r.Skip()
			}
		case "output":
			resp.output = r.Raw()
		case "input_transformations":
			resp.transformations = r.Raw()
		case "error":
			resp.problem = r.Raw()
		case "end_turn":
			resp.endTurn = r.Raw()
		default:
			r.Skip()
		}
	}
	return resp
}

// rawStop is the service's own word for why the answer ended.
func (r *response) rawStop() string {
	if r.reason != "" {
		return r.status + "." + r.reason
	}
	return r.status
}

// StopError says that a response ended in a status that is no answer.
type StopError struct {
	Status string
	Reason string // of an incomplete response, "" for none
	Detail string // what the service says, "" for nothing
}

func (e *StopError) Error() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.Status == "incomplete" && e.Reason != "":
		return "Response incomplete: " + e.Reason
	case e.Status == "incomplete":
		return "Response incomplete without a provider reason"
	case e.Status == "failed", e.Status == "cancelled":
		return "Response " + e.Status + " without error details"
	default:
		return "Unhandled stop reason: " + e.Status
	}
}

// stop is how the answer ended, before its tool calls are looked at.
func (r *response) stop() (llm.StopReason, error) {
	switch r.status {
	case "completed", "in_progress", "queued", "":
		return llm.StopStop, nil
	case "incomplete":
		if r.reason == "max_output_tokens" {
			return llm.StopLength, nil
		}
	case "failed", "cancelled":
		return "", &StopError{Status: r.status, Detail: problemText(r.problem)}
	}
	return "", &StopError{Status: r.status, Reason: r.reason}
}

// known reports whether the status is one of the protocol.
func (r *response) known() bool {
	switch r.status {
	case "completed", "in_progress", "queued", "incomplete", "failed", "cancelled", "":
		return true
	}
	return false
}

// finish takes the response that closes an answer.
func (x *exchange) finish(a *wire.Answer, raw []byte) error {
	r := readResponse(raw)
	if x.dialect.anyStatus && !r.known() {
		r.status, r.reason = "", ""
	}
	// What is kept behind this event must not be a slice of it.
	x.last = &response{status: r.status, reason: r.reason, problem: append([]byte(nil), r.problem...)}
	m := a.Message
	if r.id != "" {
		m.ResponseID = r.id
	}
	m.RawStopReason = r.rawStop()
	x.takeUsage(m, r)
	if m.Usage.Cost.TotalFromProvider == nil {
		m.Usage.Cost.TotalFromProvider = new(false)
	}
	if k := string(r.endTurn); x.dialect.endTurn && (k == "true" || k == "false") {
		m.EndTurn = new(k == "true")
	}
	if list := removedReasoning(r.transformations); list != nil {
		m.Diagnostics = append(m.Diagnostics, llm.Diagnostic{
			Type: "openai_input_transformations", Timestamp: x.host.Now().UnixMilli(), Details: list,
		})
	}
	if len(x.outputs) == 0 {
		x.outputAtOnce(a, r.output)
	}
	x.backfill(r.output)
	return wire.ErrFinished
}

// outputAtOnce makes the blocks of an answer whose items came with its end only,
// as some gateways send it.
func (x *exchange) outputAtOnce(a *wire.Answer, items []byte) {
	var r jsonwire.Reader
	r.Reset(items)
	index := int64(0)
	for r.Array(); r.More(); index++ {
		x.done(a, index, r.Raw())
	}
}

// failed takes the response of an answer that failed.
func (x *exchange) failed(a *wire.Answer, raw []byte) error {
	r := readResponse(raw)
	if r.id != "" {
		a.Message.ResponseID = r.id
	}
	x.takeUsage(a.Message, r)
	if x.dialect.failed != nil {
		return x.dialect.failed(raw)
	}
	a.Message.RawStopReason = r.status
	text := problemText(r.problem)
	switch {
	case text != "":
	case r.reason != "":
		text = "incomplete: " + r.reason
	default:
		text = "Unknown error (no error details in response)"
	}
	return &wire.ProviderError{Message: text}
}

// problemText words an error object as <code>: <message>, with what there is of
// it; "" when there is nothing.
func problemText(raw []byte) string {
	code, _ := jsonwire.StringValue(jsonwire.Get(raw, "code"))
	message, _ := jsonwire.StringValue(jsonwire.Get(raw, "message"))
	switch {
	case code == "":
		return message
	case message == "":
		return code
	default:
		return code + ": " + message
	}
}

// statedError is the error of an event of type error: what it, or the error
// object in it, says. One without a name in the stream tells its code too.
func statedError(name, event []byte) error {
	code, _ := jsonwire.StringValue(jsonwire.Get(event, "code"))
	if text, _ := jsonwire.StringValue(jsonwire.Get(event, "message")); len(name) == 0 && code != "" && text != "" {
		return &wire.ProviderError{Message: "Error Code " + code + ": " + text}
	}
	for _, obj := range [][]byte{event, jsonwire.Get(event, "error")} {
		if text, _ := jsonwire.StringValue(jsonwire.Get(obj, "message")); text != "" {
			return &wire.ProviderError{Message: text}
		}
	}
	for _, obj := range [][]byte{event, jsonwire.Get(event, "error")} {
		if code, _ := jsonwire.StringValue(jsonwire.Get(obj, "code")); code != "" {
			return &wire.ProviderError{Message: code}
		}
	}
	return &wire.ProviderError{Message: wire.Truncate(string(jsonwire.AppendUTF8(nil, event)), wire.MaxErrorText)}
}

// takeUsage reads and prices the usage of a response that tells one.
func (x *exchange) takeUsage(m *llm.Assistant, r *response) {
	if r.usage == nil {
		return
	}
	m.Usage = readUsage(r.usage)
	m.Usage.Cost = x.model.Cost.Price(&m.Usage)
	tier := r.tier
	if tier == "" {
		tier = x.own.ServiceTier
	}
	scaleCost(&m.Usage.Cost, tierFactor(x.model.ID, tier))
}

func readUsage(raw []byte) llm.Usage {
	var input, read, write, output, reasoning, total int64
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "input_tokens":
			input = r.Int()
		case "output_tokens":
			output = r.Int()
		case "total_tokens":
			total = r.Int()
		case "input_tokens_details":
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "cached_tokens":
					read = r.Int()
				case "cache_write_tokens":
					write = r.Int()
				default:
					r.Skip()
				}
			}
		case "output_tokens_details":
			for r.Object(); r.More(); {
				if string(r.Key()) == "reasoning_tokens" {
					reasoning = r.Int()
				} else {
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
	return llm.Usage{
		Input: max(0, input-read-write), Output: output, CacheRead: read, CacheWrite: write,
		Reasoning: new(reasoning), TotalTokens: total,
	}
}

// tierFactor is how much more a service tier costs.
func tierFactor(model, tier string) float64 {
	switch tier {
	case "flex":
		return 0.5
	case "priority", "fast":
		if model == "gpt-5.5" {
			return 2.5
		}
		return 2
	}
	return 1
}

func scaleCost(c *llm.Cost, factor float64) {
	if factor == 1 {
		return
	}
	c.Input *= factor
	c.Output *= factor
	c.CacheRead *= factor
	c.CacheWrite *= factor
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
}

// removedReasoning is the details of a diagnostic on the reasoning that the
// service took out of the input, nil for none. At the end of a turn it does
// that as a rule.
func removedReasoning(list []byte) jsontext.Value {
	var out []byte
	var r jsonwire.Reader
	r.Reset(list)
	for r.Array(); r.More(); {
		raw := r.Raw()
		member := func(name string) string {
			s, _ := jsonwire.StringValue(jsonwire.Get(raw, name))
			return s
		}
		reason := member("reason")
		if member("type") != "reasoning" || member("action") != "removed" || reason == "turn_boundary" {
			continue
		}
		if out == nil {
			out = append(out, `{"transformations":[`...)
		} else {
			out = append(out, ',')
		}
		o := jsonwire.Begin(out)
		o.Text("type", "reasoning")
		o.OptText("id", member("id"))
		o.Text("action", "removed")
		o.OptText("reason", reason)
		out = o.End()
	}
	if out == nil {
		return nil
	}
	return append(out, `]}`...)
}

// backfill gives stored reasoning the encrypted content that only the response
// at the end holds.
func (x *exchange) backfill(items []byte) {
	var r jsonwire.Reader
	r.Reset(items)
	for r.Array(); r.More(); {
		raw := r.Raw()
		secret := jsonwire.Get(raw, "encrypted_content")
		if kind, _ := jsonwire.StringValue(jsonwire.Get(raw, "type")); kind != "reasoning" || !isString(secret) {
			continue
		}
		id, _ := jsonwire.StringValue(jsonwire.Get(raw, "id"))
		for _, o := range x.outputs {
			t := o.block.ThinkingBlock()
			if t == nil || t.Signature == nil {
				continue
			}
			stored := []byte(*t.Signature)
			if have, _ := jsonwire.StringValue(jsonwire.Get(stored, "id")); have == id && !isString(jsonwire.Get(stored, "encrypted_content")) {
				*t.Signature = string(withMember(stored, "encrypted_content", secret))
			}
		}
	}
}

// withMember is an object with a member set: in its place, or at the end.
func withMember(object []byte, name string, value []byte) []byte {
	o := jsonwire.Begin(nil)
	found := false
	var r jsonwire.Reader
	r.Reset(object)
	for r.Object(); r.More(); {
		key := string(r.Key())
		v := r.Raw()
		if key == name {
			found, v = true, value
		}
		o.Name(key)
		o.B, _ = jsonwire.AppendCompact(o.B, v)
	}
	if !found {
		o.Member(name, value)
	}
	return o.End()
}
