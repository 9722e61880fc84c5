package google

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// defaultBaseURL is where models without a base URL are.
const defaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	o := &x.req.Options
	var address string
	header := x.api.host.Header(x.model, o)
	header.Set("Accept", "*/*")
	if x.api.vertex {
		var err error
		if address, err = x.vertexTarget(header); err != nil {
			return nil, err
		}
	} else {
		if o.APIKey == "" {
			return nil, &llm.KeyError{Provider: x.model.Provider}
		}
		base, err := x.api.host.BaseURL(x.model, o)
		if err != nil {
			return nil, err
		}
		if base == "" {
			base = defaultBaseURL
		}
		address = wire.Join(base, "/"+modelPath(x.model.ID)+stream)
		header.Set("X-Goog-Api-Key", o.APIKey)
	}
	wire.Override(header, x.model, o)
	if x.thinkingErr != nil {
		return nil, x.thinkingErr
	}
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	body, _, err = wire.Payload(body, x.model, o)
	if err != nil {
		return nil, err
	}
	return &wire.Call{URL: address, Header: header, Body: body, ErrorText: statusText}, nil
}

// stream is the operation on a model, and how its answer is to come.
const stream = ":streamGenerateContent?alt=sse"

// modelPath is the resource of a model: its id may name the resource already.
func modelPath(id string) string {
	if !strings.HasPrefix(id, "models/") && !strings.HasPrefix(id, "tunedModels/") {
		id = "models/" + id
	}
	return escape(id)
}

// escape makes a path of an id that may hold anything.
func escape(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// body builds the request.
func (x *exchange) body() ([]byte, error) {
	e := &encoder{model: x.model, rules: x.rules, vertex: x.api.vertex, cautious: x.cautious}
	t := transcript.HistoryOf[encoded](x.req.Memo, e.historyKey()).Build(x.req.Messages, e.transcriptRules())
	defer t.Done()
	h := e.head(t)
	if h.err != nil {
		return nil, h.err
	}
	size := 1024 + len(h.prompt) + len(h.tools)
	for i := range t.Items {
		size += len(t.Items[i].Wire.json) + len(t.Items[i].Wire.images) + 32
	}
	o := jsonwire.Begin(make([]byte, 0, size))
	o.Key("contents")
	o.B, x.risky = e.contents(o.B, t)
	if h.prompt != nil {
		o.Key("systemInstruction")
		o.B = append(o.B, h.prompt...)
	}
	if h.tools != nil {
		o.Key("tools")
		o.B = append(o.B, h.tools...)
		if mode := x.callingMode(h.strict); mode != "" {
			o.Key("toolConfig")
			o.B = append(o.B, `{"functionCallingConfig":{"mode":"`...)
			o.B = append(o.B, mode...)
			o.B = append(o.B, `"}}`...)
		}
	}
	o.Key("generationConfig")
	g := jsonwire.Begin(o.B)
	if x.req.Temperature != nil {
		g.Float("temperature", *x.req.Temperature)
	}
	if n := x.maxTokens(t.Estimate.Tokens); n > 0 {
		g.Int("maxOutputTokens", int64(n))
	}
	if x.thinking != nil {
		g.Key("thinkingConfig")
		g.B = x.thinking.append(g.B)
	}
	o.B = g.End()
	return o.End(), nil
}

// head encodes the system prompt and the tools unless that is done already.
func (e *encoder) head(t *transcript.Transcript[encoded]) *head {
	if t.Head.head != nil {
		return t.Head.head
	}
	h := &head{}
	if t.System != nil {
		if text := transcript.SystemText(t.System); text != "" {
			h.prompt = append([]byte(`{"parts":[{"text":`), jsonwire.AppendString(nil, text)...)
			h.prompt = append(h.prompt, `}],"role":"user"}`...)
		}
	}
	if len(t.Tools) > 0 {
		h.tools, h.strict, h.err = appendTools(nil, t.Tools, e.rules)
	}
	t.Head.head = h
	return h
}

// callingMode is how the model is to call tools, "" for the service's default.
func (x *exchange) callingMode(strict bool) string {
	choice := x.own.ToolChoice
	if choice == "" {
		choice = x.req.ToolChoice
	}
	switch {
	case choice == "none":
		return "NONE"
	case choice == "any":
		return "ANY"
	case strict:
		return "VALIDATED"
	case choice == "":
		return ""
	default:
		return "AUTO"
	}
}

// maxTokens is the token limit to send, 0 for none.
func (x *exchange) maxTokens(estimate int) int {
	if !x.limited {
		return x.req.MaxTokens
	}
	return transcript.MaxTokens(x.model, &x.req.Options, estimate)
}

// statusText words an error response: its JSON, which is an error object or a list
// of one, or JSON of that form that holds its text and status.
func statusText(e *wire.StatusError) string {
	if compact, err := jsonwire.AppendCompact(nil, e.Body); err == nil && (compact[0] == '[' || jsonwire.Get(compact, "error") != nil) {
		return wire.Truncate(string(compact), wire.MaxErrorText)
	}
	text := wire.Truncate(string(jsonwire.AppendUTF8(nil, e.Body)), wire.MaxErrorText)
	o := jsonwire.Begin(nil)
	o.Key("error")
	in := jsonwire.Begin(o.B)
	in.Text("message", text)
	in.Int("code", int64(e.Status))
	in.Text("status", http.StatusText(e.Status))
	o.B = in.End()
	return string(o.End())
}
