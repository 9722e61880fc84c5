package completions

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	if !authorized(x.model, &x.req.Options) {
		return nil, &llm.KeyError{Provider: x.model.Provider}
	}
	url, err := x.address()
	if err != nil {
		return nil, err
	}
	x.retention = x.host.CacheRetention(&x.req.Options)
	if x.retention != "none" {
		x.session = x.req.SessionID
	}
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	body, _, err = wire.Payload(body, x.model, &x.req.Options)
	if err != nil {
		return nil, err
	}
	return &wire.Call{URL: url, Header: x.headers(), Body: body, ErrorText: statusText}, nil
}

// address is where the request goes. It also settles the name of the model,
// which on Azure is that of a deployment.
func (x *exchange) address() (string, error) {
	const operation = "/chat/completions"
	x.served = x.model.ID
	if x.model.Provider == "azure" {
		at, err := x.host.Azure(x.model, &x.req.Options, wire.Azure{}, "")
		if err != nil {
			return "", err
		}
		x.served = at.Deployment
		at.APIVersion = "" // which this operation does not need
		return at.URL(operation), nil
	}
	base, err := x.host.BaseURL(x.model, &x.req.Options)
	return wire.Join(base, operation), err
}

// Rejected implements wire.Exchange.
func (x *exchange) Rejected(*wire.StatusError) bool { return false }

// body builds the request.
func (x *exchange) body() ([]byte, error) {
	c := x.compat
	e := &encoder{model: x.model, compat: c}
	t := transcript.HistoryOf[encoded](x.req.Memo, e.historyKey()).Build(x.req.Messages, e.rules())
	defer t.Done()

	marker := x.marker()
	h, err := e.head(t, marker)
	if err != nil {
		return nil, err
	}
	x.grammars = h.grammars

	params := wire.MergeSamplingParams(x.model, x.level, x.req.SamplingParams)
	w := wire.BeginBody(make([]byte, 0, x.bodyHint(t)), params)
	w.Text("model", x.served)
	if w.Key("messages") {
		if w.B, err = e.messages(w.B, t, h.prompt, marker); err != nil {
			return nil, err
		}
	}
	w.Bool("stream", true)
	x.appendCacheFields(w)
	if c.SupportsUsageInStreaming {
		w.JSON("stream_options", `{"include_usage":true}`)
	}
	if c.SupportsStore {
		w.Bool("store", false)
	}
	limit := x.maxTokens(t.Estimate.Tokens)
	if limit > 0 {
		w.Int(c.MaxTokensField, int64(limit))
	}
	if x.req.Temperature != nil {
		w.Float("temperature", *x.req.Temperature)
	}
	switch {
	case h.tools != nil:
		w.JSON("tools", string(h.tools))
	case c.RequiresToolsWithToolHistory && hasToolHistory(t.Items):
		w.JSON("tools", "[]")
	}
	if h.tools != nil {
		if c.ZaiToolStream {
			w.Bool("tool_stream", true)
		}
		if len(x.own.ToolChoice) > 0 {
			w.Raw("tool_choice", x.own.ToolChoice)
		} else if x.req.ToolChoice != "" {
			w.Text("tool_choice", x.req.ToolChoice)
		}
	}
	if c.VLLMPriority != nil {
		w.Int("priority", *c.VLLMPriority)
	}
	if x.model.Reasoning {
		x.appendThinking(w, limit)
	}
	if c.OpenRouterRouting != nil {
		w.Raw("provider", c.OpenRouterRouting)
	}
	appendGatewayRouting(w, c)
	return w.End(), nil
}

// bodyHint is the room that the messages take, so that the body grows once.
func (x *exchange) bodyHint(t *transcript.Transcript[encoded]) int {
	n := 4096
	for i := range t.Items {
		n += len(t.Items[i].Wire.json) + len(t.Items[i].Wire.images) + 1
	}
	return n
}

// head encodes the system prompt and the tools unless that is done already.
func (e *encoder) head(t *transcript.Transcript[encoded], marker string) (*head, error) {
	if h := t.Head.head; h != nil && h.marker == marker && !e.addsTools() {
		e.setGrammars(h.grammars)
		return h, nil
	}
	h := &head{marker: marker}
	if e.compat.SupportsOpenAIGrammarTools {
		h.grammars = h.grammars.Add(t.Tools)
	}
	if e.addsTools() {
		for i := range t.Items {
			if m, ok := t.Items[i].Message.(*llm.System); ok && !t.Items[i].ToolsFolded {
				h.grammars = h.grammars.Add(m.ToolsAdded)
			}
		}
	}
	e.setGrammars(h.grammars)
	if t.System != nil {
		if text := jsonwire.DropSurrogates(transcript.SystemText(t.System)); text != "" {
			h.prompt = e.prompt(nil, text, marker)
		}
	}
	if len(t.Tools) > 0 {
		var err error
		if h.tools, err = appendTools(nil, e.compat, t.Tools, marker); err != nil {
			return nil, err
		}
	}
	t.Head.head = h
	return h, nil
}

// addsTools reports whether system messages in the middle can add grammar tools.
func (e *encoder) addsTools() bool {
	c := e.compat
	return c.SupportsMidConvoSystemMessages && c.SupportsMidConvoToolAdditions && c.SupportsOpenAIGrammarTools
}

func (e *encoder) setGrammars(g wire.Grammars) { e.grammars, e.grammarKey = g, g.Key() }

// marker is the JSON of the cache marker, "" for none.
func (x *exchange) marker() string {
	switch {
	case x.compat.CacheControlFormat != "anthropic" || x.retention == "none":
		return ""
	case x.retention == "long" && x.compat.SupportsLongCacheRetention:
		return `{"type":"ephemeral","ttl":"1h"}`
	default:
		return `{"type":"ephemeral"}`
	}
}

func (x *exchange) appendCacheFields(w *wire.Body) {
	long := x.retention == "long" && x.compat.SupportsLongCacheRetention
	if x.session != "" {
		keyed := false
		switch x.compat.PromptCacheKeyMode {
		case "enabled":
			keyed = true
		case "disabled":
		default:
			keyed = long || strings.Contains(x.model.BaseURL, "api.openai.com")
		}
		if keyed {
			w.Text("prompt_cache_key", transcript.PromptCacheKey(x.session))
		}
	}
	if long {
		w.Text("prompt_cache_retention", "24h")
	}
}

// maxTokens is the token limit to send, 0 for none.
func (x *exchange) maxTokens(estimate int) int {
	if !x.limited {
		return x.req.MaxTokens
	}
	return transcript.MaxTokens(x.model, &x.req.Options, estimate)
}

func (x *exchange) appendThinking(w *wire.Body, limit int) {
	if limit == 0 {
		limit = x.model.MaxTokens
	}
	t := thinking{level: x.level, mapping: x.model.ThinkingLevelMap}
	if t.on() {
		t.budget = transcript.FitBudget(transcript.LevelBudget(t.level, x.req.ThinkingBudgets), limit)
	}
	t.append(w, x.compat)
	if field := x.compat.budgetField(); field != "" && t.budget > 0 {
		w.Int(field, int64(t.budget))
	}
}

func appendGatewayRouting(w *wire.Body, c *Compat) {
	only, order := jsonwire.Get(c.VercelGatewayRouting, "only"), jsonwire.Get(c.VercelGatewayRouting, "order")
	if only == nil && order == nil || !w.Key("providerOptions") {
		return
	}
	w.B = append(w.B, `{"gateway":{`...)
	if only != nil {
		w.B = append(w.B, `"only":`...)
		w.B = wire.AppendRaw(w.B, only)
	}
	if order != nil {
		if only != nil {
			w.B = append(w.B, ',')
		}
		w.B = append(w.B, `"order":`...)
		w.B = wire.AppendRaw(w.B, order)
	}
	w.B = append(w.B, `}}`...)
}

// maxID is the longest tool call id that the original service takes, in
// characters.
const maxID = 40

// normalizeID makes a legal tool call id of another model's. Ids of the
// Responses family are pairs around a bar; each half keeps what is legal, and a
// pair that is too long keeps its beginning and a hash of the whole.
func normalizeID(provider, id string) string {
	first, second, pair := strings.Cut(id, "|")
	if !pair {
		if provider == "openai" {
			return jsonwire.UTF16Prefix(id, maxID)
		}
		return id
	}
	first, second = legal(first), legal(second)
	whole := first
	if second != "" {
		whole += "_" + second
	}
	if len(whole) <= maxID {
		return whole
	}
	hash := jsonwire.UTF16Prefix(transcript.ShortHash(id), 8)
	return jsonwire.UTF16Prefix(first, maxID-len(hash)-1) + "_" + hash
}

// variantID makes a further id of one that another call has, within what OpenAI
// takes.
func variantID(id string, n int) string {
	if id == "" {
		id = "call"
	}
	suffix := "_" + strconv.Itoa(n)
	return jsonwire.UTF16Prefix(id, maxID-len(suffix)) + suffix
}

// legal replaces what an id may not hold, by UTF-16 unit.
func legal(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			out = append(out, byte(r))
		case r > 0xFFFF:
			out = append(out, '_', '_')
		default:
			out = append(out, '_')
		}
	}
	return string(out)
}

// statusText words an error response: the family's form, and what a gateway
// quotes of the service behind it.
func statusText(e *wire.StatusError) string {
	return withRawDetail(wire.StructuredError("")(e), e.ErrorObject())
}

// withRawDetail appends an error object's metadata.raw to its text unless it is
// part of it.
func withRawDetail(text string, errorObject []byte) string {
	raw := jsonwire.Get(jsonwire.Get(errorObject, "metadata"), "raw")
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return text
	}
	detail, ok := jsonwire.StringValue(raw)
	if !ok {
		detail = string(wire.AppendRaw(nil, raw))
	}
	if detail == "" || strings.Contains(text, detail) {
		return text
	}
	return text + "\n" + wire.Truncate(detail, wire.MaxErrorText)
}
