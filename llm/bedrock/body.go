package bedrock

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// encoded is what a history keeps of one message, or of its head.
type encoded struct {
	done bool
	// json is a message, or the block of a tool result; empty when nothing of
	// the message is sent.
	json []byte
	rare *rare // nil for none
}

type rare struct {
	// after are blocks that follow all results of a message, each with a comma
	// in front.
	after []byte
	head  *head
}

func (e *encoded) after() []byte {
	if e.rare == nil {
		return nil
	}
	return e.rare.after
}

// head is the encoded system prompt and tool list.
type head struct {
	loose      bool
	system     []byte // the text block, nil for none
	tools      []byte // the array, nil for none
	strictSent bool   // a tool that only prefers to be strict is
	err        error  // what keeps the tools from being sent
}

// historyKey tells apart what the encoding of messages depends on.
type historyKey struct {
	provider, id, name string
	images             bool
}

// body builds the request body.
func (x *exchange) body() ([]byte, error) {
	m, o := x.model, &x.opts
	h := transcript.HistoryOf[encoded](o.Memo, historyKey{provider: m.Provider, id: m.ID, name: m.Name, images: m.AcceptsImages()})
	t := h.Build(x.messages, &transcript.Rules{
		Model: m, NormalizeID: transcript.WordID, LegalID: transcript.IsWordID, NormalizeName: legalName,
	})
	defer t.Done()
	if t.Head.rare == nil || t.Head.rare.head.loose != x.loose {
		t.Head.rare = &rare{head: x.encodeHead(t)}
	}
	top := t.Head.rare.head
	size := 0
	for i := range t.Items {
		e := &t.Items[i].Wire
		if !e.done {
			if err := x.encode(t.Items[i].Message, e); err != nil {
				return nil, err
			}
		}
		size += len(e.json) + len(e.after()) + len(userOpening+`]},`)
	}
	point := x.cachePoint()
	think := x.decideThinking(t.Estimate.Tokens)

	b := make([]byte, 0, 1024+len(top.system)+len(top.tools)+size)
	b = append(b, `{"messages":`...)
	b = appendMessages(b, t.Items, point)
	if top.system != nil {
		b = append(b, `,"system":[`...)
		b = append(b, top.system...)
		if point != "" {
			b = append(b, ',')
			b = append(b, point...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"inferenceConfig":{`...)
	if think.maxTokens > 0 {
		b = append(b, `"maxTokens":`...)
		b = strconv.AppendInt(b, int64(think.maxTokens), 10)
	}
	// Claude takes no temperature while it thinks.
	if o.Temperature != nil && !think.enabled {
		if think.maxTokens > 0 {
			b = append(b, ',')
		}
		b = append(b, `"temperature":`...)
		b = jsonwire.AppendFloat(b, *o.Temperature)
	}
	b = append(b, '}')
	choice, none := x.toolChoice()
	if x.toolless = top.tools == nil || none; x.toolless && x.standIns {
		// The head that is kept stays as it is: other requests ask without.
		top = x.encodeHead(&transcript.Transcript[encoded]{Tools: transcript.StandIns(t.Items, legalName)})
		choice, none = "", false
	}
	x.strictSent = false
	if !none && top.err != nil {
		return nil, top.err
	}
	if top.tools != nil && !none {
		x.strictSent = top.strictSent
		b = append(b, `,"toolConfig":{"tools":`...)
		b = append(b, top.tools...)
		if choice != "" {
			b = append(b, `,"toolChoice":`...)
			b = append(b, choice...)
		}
		b = append(b, '}')
	}
	b = x.appendThinking(b, &think)
	if meta := x.own.RequestMetadata; jsonwire.IsObject(meta) {
		b = append(b, `,"requestMetadata":`...)
		b = append(b, compact(meta)...)
	}
	return append(b, '}'), nil
}

// compact is v without white space, null when it is no JSON.
func compact(v jsontext.Value) []byte {
	out, err := jsonwire.AppendCompact(nil, v)
	if err != nil {
		return []byte("null")
	}
	return out
}

// legalName makes a name that the service takes of one that a model invented.
func legalName(name string) string { return transcript.WordID(name, nil) }

// cachePoint is the block that ends a cached part of the prompt, "" for none.
func (x *exchange) cachePoint() string {
	retention := x.api.host.CacheRetention(&x.opts)
	switch {
	case retention == "none", !x.kind.caches && x.env("AWS_BEDROCK_FORCE_CACHE") != "1":
		return ""
	case retention == "long":
		return `{"cachePoint":{"type":"default","ttl":"1h"}}`
	}
	return `{"cachePoint":{"type":"default"}}`
}

// toolChoice is the choice as JSON, "" for the default; none tells that no tool
// may be called, which the protocol says by declaring none.
func (x *exchange) toolChoice() (choice string, none bool) {
	word := x.opts.ToolChoice
	if own := x.own.ToolChoice; own != nil {
		typ := jsonwire.Get(own, "type")
		if typ == nil {
			typ = own
		}
		word, _ = jsonwire.StringValue(typ)
		if name, ok := jsonwire.StringValue(jsonwire.Get(own, "name")); ok && word == "tool" {
			b := append([]byte(nil), `{"tool":{"name":`...)
			return string(append(jsonwire.AppendString(b, name), `}}`...)), false
		}
	}
	switch word {
	case "none":
		return "", true
	case "auto":
		return `{"auto":{}}`, false
	case "any":
		return `{"any":{}}`, false
	}
	return "", false
}

// encodeHead encodes the system prompt and the tools of the request.
func (x *exchange) encodeHead(t *transcript.Transcript[encoded]) *head {
	h := &head{loose: x.loose}
	if t.System != nil {
		if text := transcript.SystemText(t.System); !jsonwire.Blank(text) {
			h.system = appendText(nil, text)
		}
	}
	for i := range t.Tools {
		tool := &t.Tools[i]
		schema, strict, err := wire.StrictTool(tool, x.kind.strict, !x.loose, nil)
		if err != nil {
			h.tools, h.err = nil, err
			return h
		}
		b := h.tools
		if i == 0 {
			b = append(b, '[')
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"toolSpec":{"name":`...)
		b = jsonwire.AppendString(b, tool.Name)
		b = append(b, `,"inputSchema":{"json":`...)
		b = append(b, compact(schema)...)
		b = append(b, '}')
		if tool.Description != "" { // an empty one is refused
			b = append(b, `,"description":`...)
			b = jsonwire.AppendString(b, tool.Description)
		}
		if strict {
			b = append(b, `,"strict":true`...)
			strictness, _ := jsonwire.StringValue(jsonwire.Get(tool.ConstrainedSampling, "strict"))
			h.strictSent = h.strictSent || strictness != "require"
		}
		h.tools = append(b, `}}`...)
	}
	if h.tools != nil {
		h.tools = append(h.tools, ']')
	}
	return h
}

const (
	userOpening      = `{"role":"user","content":[`
	assistantOpening = `{"role":"assistant","content":[`
)

// appendMessages assembles the encoded messages. Results that stand together
// share a message; the cache point goes to the end of the last one when it is
// the user's.
func appendMessages(b []byte, items []transcript.Item[encoded], point string) []byte {
	b = append(b, '[')
	start, user := len(b), false
	for i := 0; i < len(items); i++ {
		e := &items[i].Wire
		if len(e.json) == 0 {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		if user = items[i].Message.Role() != llm.RoleAssistant; items[i].Message.Role() != llm.RoleToolResult {
			b = append(b, e.json...)
			continue
		}
		b = append(b, userOpening...)
		from := i
		for ; i < len(items) && items[i].Message.Role() == llm.RoleToolResult; i++ {
			if i > from {
				b = append(b, ',')
			}
			b = append(b, items[i].Wire.json...)
		}
		for _, it := range items[from:i] {
			b = append(b, it.Wire.after()...)
		}
		i--
		b = append(b, `]}`...)
	}
	if user && point != "" {
		b = append(b[:len(b)-len(`]}`)], ',')
		b = append(b, point...)
		b = append(b, `]}`...)
	}
	return append(b, ']')
}
