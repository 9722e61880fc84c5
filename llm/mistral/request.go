package mistral

import (
	"fmt"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	o := &x.req.Options
	if o.APIKey == "" {
		return nil, &llm.KeyError{Provider: x.model.Provider}
	}
	base, err := x.host.BaseURL(x.model, o)
	if err != nil {
		return nil, err
	}
	if x.host.CacheRetention(o) != "none" {
		x.session = o.SessionID
	}
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	body, _, err = wire.Payload(body, x.model, o)
	if err != nil {
		return nil, err
	}
	return &wire.Call{
		URL:    wire.Join(base, "/v1/chat/completions"),
		Header: x.headers(), Body: body,
		ErrorText: statusText, AllResponses: true, NoRetry: true,
	}, nil
}

// Rejected implements wire.Exchange.
func (x *exchange) Rejected(*wire.StatusError) bool { return false }

// statusText words an error response: the body as it came, else the words of
// the status.
func statusText(e *wire.StatusError) string {
	text := jsonwire.Trim(string(jsonwire.AppendUTF8(nil, e.Body)))
	if text == "" {
		text = e.Reason
	}
	return fmt.Sprintf("Mistral API error (%d): %s", e.Status, wire.Truncate(text, wire.MaxErrorText))
}

// body builds the request.
func (x *exchange) body() ([]byte, error) {
	m, o := x.model, &x.req.Options
	key := historyKey{provider: m.Provider, model: m.ID, images: m.AcceptsImages(), compat: x.compat}
	t := transcript.HistoryOf[encoded](o.Memo, key).Build(x.req.Messages, x.rules())
	defer t.Done()
	h, err := x.head(t)
	if err != nil {
		return nil, err
	}
	w := jsonwire.Begin(make([]byte, 0, bodySize(t, h)))
	w.Text("model", m.ID)
	w.Bool("stream", true)
	w.Key("messages")
	w.B = appendMessages(w.B, t, h.prompt, key.images)
	if h.tools != nil {
		w.Key("tools")
		w.B = append(w.B, h.tools...)
	}
	if o.Temperature != nil {
		w.Float("temperature", *o.Temperature)
	}
	if limit := x.maxTokens(t.Estimate.Tokens); limit > 0 {
		w.Int("max_tokens", int64(limit))
	}
	if h.tools != nil {
		if len(x.own.ToolChoice) > 0 {
			w.Raw("tool_choice", x.own.ToolChoice)
		} else {
			w.OptText("tool_choice", o.ToolChoice)
		}
	}
	w.OptText("reasoning_effort", x.own.ReasoningEffort)
	w.OptText("prompt_mode", x.own.PromptMode)
	w.OptText("prompt_cache_key", x.session)
	return w.End(), nil
}

// bodySize is the room that a body takes, so that it grows once.
func bodySize(t *transcript.Transcript[encoded], h *head) int {
	n := 4096 + len(h.prompt) + len(h.tools)
	for i := range t.Items {
		n += len(t.Items[i].Wire.json) + 1
	}
	return n
}

// head encodes the system prompt and the tools unless that is done already.
func (x *exchange) head(t *transcript.Transcript[encoded]) (*head, error) {
	if t.Head.head != nil {
		return t.Head.head, nil
	}
	h := &head{}
	if t.System != nil {
		if text := transcript.SystemText(t.System); text != "" {
			h.prompt = appendPlain(nil, "system", text)
		}
	}
	if len(t.Tools) > 0 {
		var err error
		if h.tools, err = appendTools(nil, t.Tools, x.compat.strict); err != nil {
			return nil, err
		}
	}
	t.Head.head = h
	return h, nil
}

// maxTokens is the token limit to send, 0 for none.
func (x *exchange) maxTokens(estimate int) int {
	if !x.limited {
		return x.req.MaxTokens
	}
	return transcript.MaxTokens(x.model, &x.req.Options, estimate)
}
