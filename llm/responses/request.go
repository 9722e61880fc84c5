package responses

import (
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// minOutputTokens is the smallest limit that the service takes.
const minOutputTokens = 16

// conversation is what the members of a body are made of.
type conversation struct {
	x       *exchange
	enc     *encoder
	items   []transcript.Item[encoded]
	head    *head
	context int // estimate of the input in tokens
}

// body builds the request.
func (x *exchange) body() ([]byte, error) {
	if x.effortUpdates() {
		x.effort, _ = x.effortWord()
	}
	e := &encoder{dialect: x.dialect, model: x.model, compat: x.compat}
	t := transcript.HistoryOf[encoded](x.req.Memo, e.historyKey()).Build(x.req.Messages, e.rules())
	defer t.Done()
	h, err := e.encode(t)
	if err != nil {
		return nil, err
	}
	x.grammars = h.grammars

	room := 4096 + len(h.items) + len(h.tools)
	for i := range t.Items {
		room += len(t.Items[i].Wire.json) + 1
	}
	var params wire.SamplingParams
	if !x.dialect.noSampling {
		params = wire.MergeSamplingParams(x.model, x.level(), x.req.SamplingParams)
	}
	w := wire.BeginBody(make([]byte, 0, room), params)
	x.dialect.members(x, w, &conversation{x: x, enc: e, items: t.Items, head: h, context: t.Estimate.Tokens})
	return w.End(), nil
}

// members is the body of the wire format openai-responses.
func (x *exchange) members(w *wire.Body, c *conversation) {
	w.Text("model", x.name)
	c.input(w)
	w.Bool("stream", true)
	c.cacheKey(w)
	if !x.signedIn() {
		c.cacheRetention(w)
	}
	w.Bool("store", false)
	if !x.signedIn() {
		c.maxOutputTokens(w)
		c.temperature(w)
	}
	c.serviceTier(w)
	c.tools(w)
	c.toolChoice(w)
	c.reasoning(w)
}

// signedIn reports whether the key is a token of "Sign in with ChatGPT", which
// the service gives fewer options.
func (x *exchange) signedIn() bool {
	key := x.req.APIKey
	return x.model.Provider == "openai" && x.model.BaseURL == "https://api.openai.com/v1" &&
		key != "" && !strings.HasPrefix(key, "sk-")
}

// input appends the items of the conversation.
func (c *conversation) input(w *wire.Body) {
	if !w.Key("input") {
		return
	}
	updates := c.x.effortUpdates()
	w.B = append(w.B, '[')
	start := len(w.B)
	add := func(json []byte) {
		if len(json) == 0 {
			return
		}
		if len(w.B) > start {
			w.B = append(w.B, ',')
		}
		w.B = append(w.B, json...)
	}
	add(c.head.items)
	for i := range c.items {
		it := &c.items[i]
		if m, ok := it.Message.(*llm.Assistant); ok && updates && it.SameModel && len(it.Wire.json) > 0 && c.x.knownEffort(m.ProviderThinkingLevel) {
			add(effortUpdate(m.ProviderThinkingLevel))
		}
		add(it.Wire.json)
	}
	if c.x.effort != "" {
		add(effortUpdate(c.x.effort))
	}
	w.B = append(w.B, ']')
}

func effortUpdate(effort string) []byte {
	b := append([]byte(nil), `{"type":"configuration_update","reasoning":{"effort":`...)
	b = jsonwire.AppendString(b, effort)
	return append(b, `}}`...)
}

// cacheKey appends the key of the session.
func (c *conversation) cacheKey(w *wire.Body) {
	if c.x.session != "" && c.x.compat.PromptCacheKeyMode != "disabled" {
		w.Text("prompt_cache_key", transcript.PromptCacheKey(c.x.session))
	}
}

// cacheRetention appends how long the prompt is to be kept.
func (c *conversation) cacheRetention(w *wire.Body) {
	long := c.x.retention == "long" && c.x.compat.SupportsLongCacheRetention
	switch explicit := c.x.compat.SupportsExplicitPromptCacheMode; {
	case explicit && c.x.retention == "none":
		w.JSON("prompt_cache_options", `{"mode":"explicit"}`)
	case explicit && long:
		w.JSON("prompt_cache_options", `{"ttl":"30m"}`)
	case long:
		w.Text("prompt_cache_retention", "24h")
	}
}

// maxOutputTokens appends the token limit.
func (c *conversation) maxOutputTokens(w *wire.Body) {
	x := c.x
	limit := x.req.MaxTokens
	if x.limited {
		limit = transcript.MaxTokens(x.model, &x.req.Options, c.context)
	}
	if limit > 0 && x.compat.SupportsMaxOutputTokens {
		w.Int("max_output_tokens", int64(max(limit, minOutputTokens)))
	}
}

func (c *conversation) temperature(w *wire.Body) {
	if t := c.x.req.Temperature; t != nil {
		w.Float("temperature", *t)
	}
}

func (c *conversation) serviceTier(w *wire.Body) {
	if tier := c.x.own.ServiceTier; tier != "" {
		w.Text("service_tier", tier)
	}
}

// tools appends the tools that the request declares.
func (c *conversation) tools(w *wire.Body) {
	if len(c.head.tools) > 0 && w.Key("tools") {
		w.B = append(w.B, c.head.tools...)
	}
}

func (c *conversation) toolChoice(w *wire.Body) {
	if own := c.x.own.ToolChoice; len(own) > 0 {
		w.Raw("tool_choice", own)
	} else if choice := c.x.req.ToolChoice; choice != "" {
		w.Text("tool_choice", choice)
	}
}

// reasoning appends what is asked of a reasoning model.
func (c *conversation) reasoning(w *wire.Body) {
	x := c.x
	if !x.model.Reasoning {
		return
	}
	word, ok := x.effortWord()
	if ok && x.effortUpdates() {
		word = fixedEffort
	}
	on := x.thinks()
	switch {
	case on:
		x.appendReasoning(w, word)
	case ok:
		appendEffort(w, word)
	}
	if on || x.model.Provider == "xai" {
		w.JSON("include", encryptedReasoning)
	}
}

// fixedEffort is the effort of requests whose efforts are items of the input.
const fixedEffort = "medium"

// encryptedReasoning asks for reasoning in the form that later requests send back.
const encryptedReasoning = `["reasoning.encrypted_content"]`

// appendEffort appends the effort alone.
func appendEffort(w *wire.Body, effort string) {
	if !w.Key("reasoning") {
		return
	}
	w.B = append(w.B, `{"effort":`...)
	w.B = jsonwire.AppendString(w.B, effort)
	w.B = append(w.B, '}')
}

// appendReasoning appends the effort and how the reasoning is to be told.
func (x *exchange) appendReasoning(w *wire.Body, effort string) {
	if !w.Key("reasoning") {
		return
	}
	summary := x.own.ReasoningSummary
	if summary == "" {
		summary = "auto"
	}
	w.B = append(w.B, `{"effort":`...)
	w.B = jsonwire.AppendString(w.B, effort)
	w.B = append(w.B, `,"summary":`...)
	w.B = jsonwire.AppendString(w.B, summary)
	w.B = append(w.B, '}')
}

// level is the level of reasoning that the request asks for, "" for none. A
// summary alone asks for a medium one where off is not an effort like others.
func (x *exchange) level() llm.ThinkingLevel {
	if x.own.ReasoningEffort == "" && x.own.ReasoningSummary != "" && !x.dialect.offIsEffort {
		return llm.LevelMedium
	}
	return x.own.ReasoningEffort
}

// thinks reports whether the request asks for reasoning.
func (x *exchange) thinks() bool { return x.level() != "" }

// effortWord is the provider's word for the effort that is asked for, or for
// none; ok is false when the model cannot be told not to think.
func (x *exchange) effortWord() (word string, ok bool) {
	if level := x.level(); level != "" {
		if x.own.ReasoningEffort == "" {
			return string(level), true // the summary's own
		}
		if v := x.model.ThinkingLevelMap[level]; v != nil {
			return *v, true
		}
		return string(level), true
	}
	if x.model.Provider == "github-copilot" {
		return "", false
	}
	switch v, mapped := x.model.ThinkingLevelMap[llm.LevelOff]; {
	case !mapped:
		return "none", true
	case v == nil:
		return "", false
	default:
		return *v, true
	}
}

// knownEffort reports whether a recorded effort is a word of the service.
func (x *exchange) knownEffort(word string) bool {
	switch word {
	case "none", "minimal", "low", "medium", "high", "xhigh", "max":
		return true
	}
	for _, v := range x.model.ThinkingLevelMap {
		if v != nil && *v == word && word != "" {
			return true
		}
	}
	return false
}

// reasons reports whether anything is said of reasoning: to models that do it,
// and where it is an effort like others to each that the caller gives an effort.
func (x *exchange) reasons() bool {
	return x.model.Reasoning || x.dialect.offIsEffort && x.own.ReasoningEffort != ""
}

// effortUpdates reports whether efforts are items of the input.
func (x *exchange) effortUpdates() bool {
	if !x.compat.SupportsMidConvoEffort || x.signedIn() {
		return false
	}
	return x.own.ReasoningEffort != "" || x.model.Reasoning && x.dialect.offIsEffort && x.limited
}
