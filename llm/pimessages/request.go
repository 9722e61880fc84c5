package pimessages

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	o := &x.req.Options
	if o.APIKey == "" {
		return nil, &KeyError{Provider: x.model.Provider}
	}
	base, err := x.host.BaseURL(x.model, o)
	if err != nil {
		return nil, err
	}
	operation := "/messages"
	if x.own.Debug {
		operation += "?debug=1"
	}
	x.url = wire.Join(base, operation)
	body, _, err := wire.Payload(x.body(), x.model, o)
	if err != nil {
		return nil, err
	}
	header := x.host.Header(x.model, o)
	header.Set("Accept", "text/event-stream")
	header.Set("Authorization", "Bearer "+o.APIKey)
	wire.Override(header, x.model, o)
	return &wire.Call{
		URL: x.url, Header: header, Body: body,
		ErrorText: statusText, AllResponses: true, NoRetry: true, OwnStart: true,
	}, nil
}

// body builds the request.
func (x *exchange) body() []byte {
	o := &x.req.Options
	w := jsonwire.Begin(nil)
	w.Text("model", x.model.ID)
	w.Key("context")
	w.B = append(w.B, `{"messages":[`...)
	w.B = storedOf(o.Memo).append(w.B, x.req.Messages, 512)
	w.B = append(w.B, `]}`...)
	w.Key("options")
	opts := jsonwire.Begin(w.B)
	if o.Temperature != nil {
		opts.Float("temperature", *o.Temperature)
	}
	if o.MaxTokens > 0 {
		opts.Int("maxTokens", int64(o.MaxTokens))
	}
	if o.Reasoning != llm.LevelOff {
		opts.OptText("reasoning", string(o.Reasoning))
	}
	opts.OptText("cacheRetention", x.retention())
	opts.OptText("sessionId", o.SessionID)
	opts.OptText("toolChoice", o.ToolChoice)
	w.B = opts.End()
	return w.End()
}

// retention is the wish of the caller, else that of the environment, "" for none.
func (x *exchange) retention() string {
	if o := &x.req.Options; o.CacheRetention != "" || x.host.CacheRetention(o) == "long" {
		return x.host.CacheRetention(o)
	}
	return ""
}

// failure is what an error response says.
type failure struct {
	object  []byte // the error object, nil when there is none
	message string
	code    string
	body    string // when there is no error object
}

func failureOf(e *wire.StatusError) failure {
	f := failure{message: jsonwire.Trim(string(jsonwire.AppendUTF8(nil, e.Body)))}
	if f.object = e.ErrorObject(); !jsonwire.IsObject(f.object) {
		f.object, f.body = nil, f.message
		return f
	}
	if s, ok := jsonwire.StringValue(jsonwire.Get(f.object, "message")); ok {
		f.message = s
	}
	f.code, _ = jsonwire.StringValue(jsonwire.Get(f.object, "code"))
	return f
}

// statusText words an error response.
func statusText(e *wire.StatusError) string {
	f := failureOf(e)
	text := strings.TrimSpace(strconv.Itoa(e.Status) + " " + e.Reason)
	if f.message != "" {
		text += ": " + wire.Truncate(f.message, wire.MaxErrorText)
	}
	if f.code != "" {
		text += " (" + f.code + ")"
	}
	return text
}

// Rejected implements wire.Exchange: it keeps the parts of an error response.
func (x *exchange) Rejected(e *wire.StatusError) bool {
	f := failureOf(e)
	now := x.host.Now().UnixMilli()
	d := llm.Diagnostic{
		Type: "pi_messages_response_failure", Timestamp: now,
		Error: &llm.DiagnosticError{Name: "PiMessagesResponseError", Message: e.Message},
	}
	if f.code != "" {
		d.Error.Code = jsontext.Value(jsonwire.AppendString(nil, f.code))
	}
	w := jsonwire.Begin(nil)
	w.Int("version", 1)
	w.Text("provider", x.model.Provider)
	w.Text("model", x.model.ID)
	w.Text("url", publicAddress(x.url))
	w.Int("status", int64(e.Status))
	w.Text("statusText", e.Reason)
	switch {
	case f.object == nil:
		w.Text("body", wire.Truncate(f.body, wire.MaxErrorText))
	case len(f.object) <= maxDetail:
		w.Raw("error", f.object)
	}
	w.Int("timestampMs", now)
	d.Details = w.End()
	m := x.source.Message()
	m.Diagnostics = append(m.Diagnostics, d)
	return false
}

// maxDetail bounds the error object that a session keeps, in bytes.
const maxDetail = 16 << 10

// publicAddress is an address without the credentials that it may hold.
func publicAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return wire.PublicAddress(u)
}
