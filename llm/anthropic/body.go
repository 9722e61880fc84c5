package anthropic

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The beta features that requests ask for.
const (
	betaEagerTools  = "fine-grained-tool-streaming-2025-05-14"
	betaInterleaved = "interleaved-thinking-2025-05-14"
	betaFallback    = "server-side-fallback-2026-07-01"
	betaEffort      = "mid-conversation-output-config-2026-07-01"
	betaBinding     = "thinking-binding-controls-2026-08-01"
	betaInlineTools = "inline-tools-2026-09-15"
)

// encoded is what a history keeps of one message, or of its head. A long
// history has many, so it holds itself only what nearly all have.
type encoded struct {
	done bool
	// json is a message, or the tool_result block of a result; empty when
	// nothing of the message is sent.
	json []byte
	sum  uint64 // of json and after for threads, 0 when not computed
	rare *rare  // nil for none
}

type rare struct {
	// after are blocks that follow all results of a message, each with a comma
	// in front.
	after      []byte
	strictSent bool // declares a tool that is strict only by preference
	head       *head
}

// after are blocks that follow all results of the message.
func (e *encoded) after() []byte {
	if e.rare == nil {
		return nil
	}
	return e.rare.after
}

func (e *encoded) setAfter(blocks []byte) {
	if blocks != nil {
		e.rare = &rare{after: blocks}
	}
}

// head is the encoded system prompt and tool list.
type head struct {
	marker     string // cache marker that is in them
	system     []byte // the array, nil for none
	tools      []byte // the array, nil for none
	strictSent bool   // a tool that only prefers to be strict is
	names      []string
}

// historyKey tells apart what the encoding of messages depends on.
type historyKey struct {
	provider, id, compat string
	images               bool
	changes              bool // tool changes stay in place
	loose                bool
}

// body builds the request body and the list of beta features.
func (x *exchange) body() (body []byte, betas []string, err error) {
	m, o, c := x.model, &x.req.Options, &x.compat
	changes := c.MidConvoSystemMessages && c.MidConvoToolChanges && declaresTools(x.req.Messages)
	rules := &transcript.Rules{Model: m, SystemInPlace: c.MidConvoSystemMessages, NormalizeID: transcript.WordID,
		LegalID: transcript.IsWordID}
	if changes {
		rules.Tools = transcript.ToolChanges
	}
	h := transcript.HistoryOf[encoded](o.Memo, historyKey{
		provider: m.Provider, id: m.ID, compat: string(m.Compat), images: m.AcceptsImages(), changes: changes, loose: x.loose,
	})
	t := h.Build(x.req.Messages, rules)
	defer t.Done()

	marker := x.marker()
	if t.Head.rare == nil || t.Head.rare.head.marker != marker {
		top, err := x.encodeHead(t, marker, changes)
		if err != nil {
			return nil, nil, err
		}
		t.Head.rare = &rare{head: top}
	}
	top := t.Head.rare.head
	if x.toolless = top.tools == nil; x.toolless && x.standIns {
		// The head that is kept stays as it is: other requests ask without.
		legal := func(name string) string { return transcript.WordID(c.toolName(name), nil) }
		with := &transcript.Transcript[encoded]{System: t.System, Tools: transcript.StandIns(t.Items, legal)}
		if top, err = x.encodeHead(with, marker, false); err != nil {
			return nil, nil, err
		}
	}
	x.strictSent, x.toolNames = top.strictSent, top.names
	if changes && c.ClaudeCodeToolNames {
		x.toolNames = nil
		for _, tool := range transcript.CurrentTools(x.req.Messages) {
			x.toolNames = append(x.toolNames, tool.Name)
		}
	}
	thread := x.continuable()
	if err := x.encodeItems(t.Items, changes, thread == nil && o.OnPayload == nil); err != nil {
		return nil, nil, err
	}
	x.thinking = decideThinking(m, c, o, x.own, t.Estimate.Tokens)
	betas = x.betas(top, changes)
	items := t.Items
	if x.names() {
		betas = append(betas, betaThreads)
	}
	if x.threaded() {
		x.planThread(items, x.settingsSum(top, betas), thread)
		items = items[x.thread.skip:]
	}
	continued := x.thread.previous != ""

	b := make([]byte, 0, 1024+len(top.system)+len(top.tools)+x.sizeOfItems(items))
	b = append(b, `{"model":`...)
	b = jsonwire.AppendString(b, m.ID)
	b = append(b, `,"messages":`...)
	b = x.messages(b, items, marker)
	x.sumThread(t.Items)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(x.thinking.maxTokens), 10)
	b = append(b, `,"stream":true`...)
	if top.system != nil && !continued {
		b = append(b, `,"system":`...)
		b = append(b, top.system...)
	}
	if o.Temperature != nil && !x.thinking.enabled && c.Temperature && !c.MidConvoEffort {
		b = append(b, `,"temperature":`...)
		b = jsonwire.AppendFloat(b, *o.Temperature)
	}
	if top.tools != nil && !continued {
		b = append(b, `,"tools":`...)
		b = append(b, top.tools...)
	}
	b = x.thinking.append(b, m, c)
	if user, ok := jsonwire.StringValue(jsonwire.Get(o.Metadata, "user_id")); ok {
		b = append(b, `,"metadata":{"user_id":`...)
		b = jsonwire.AppendString(b, user)
		b = append(b, '}')
	}
	b = x.toolChoice(b)
	if len(c.FallbackModels) > 0 {
		b = append(b, `,"fallbacks":`...)
		b = jsonwire.AppendArray(b, c.FallbackModels, func(f FallbackModel, b []byte) []byte {
			return append(jsonwire.AppendString(append(b, `{"model":`...), f.Model), '}')
		})
	}
	b = x.thread.append(b)
	return append(b, '}'), betas, nil
}

// encodeItems fills the slots of new messages.
//
// Where nearly everything is new, as after a session was opened, it leaves most
// to messages, which encodes while it writes the body, and the slots share the
// body's memory: a long history would be twice in memory otherwise. mayShare
// says that nobody changes the body and that nothing is needed before.
func (x *exchange) encodeItems(items []transcript.Item[encoded], changes, mayShare bool) error {
	const many = 64
	stored, fresh, n := 0, 0, 0
	for i := range items {
		if e := &items[i].Wire; e.done {
			stored += len(e.json)
		} else if n++; mayShare {
			fresh += sizeOf(items[i].Message)
		}
	}
	share := n > many && fresh > 4*stored
	for i := range items {
		it := &items[i]
		if _, system := it.Message.(*llm.System); !it.Wire.done && (system || !share) {
			if err := x.encode(it, changes); err != nil {
				return err
			}
		}
		x.strictSent = x.strictSent || it.Wire.rare != nil && it.Wire.rare.strictSent
	}
	return nil
}

// sizeOfItems is about how many bytes the messages of a body take.
func (x *exchange) sizeOfItems(items []transcript.Item[encoded]) (n int) {
	around := len(`,`)
	if x.thinking.inConversation {
		around += 80
	}
	for i := range items {
		n += around
		if _, ok := items[i].Message.(*llm.ToolResult); ok {
			n += len(userBlocks + `]}`)
		}
		if e := &items[i].Wire; e.done {
			n += len(e.json) + len(e.after())
		} else {
			n += sizeOf(items[i].Message)
		}
	}
	return n
}

func (x *exchange) betas(top *head, changes bool) []string {
	c := &x.compat
	var list []string
	if (isAccessToken(x.key) || x.workload != (identity{})) && x.model.Provider != "github-copilot" {
		list = append(list, betaOAuth)
	}
	if top.tools != nil && !c.EagerToolInputStreaming {
		list = append(list, betaEagerTools)
	}
	if x.thinking.interleavedBeta(x.model, c) {
		list = append(list, betaInterleaved)
	}
	if len(c.FallbackModels) > 0 {
		list = append(list, betaFallback)
	}
	if c.MidConvoEffort {
		list = append(list, betaEffort, betaBinding)
	}
	if changes {
		list = append(list, betaInlineTools)
	}
	return list
}

func (x *exchange) toolChoice(b []byte) []byte {
	choice := jsontext.Value(nil)
	if x.own != nil && x.own.ToolChoice != nil {
		choice = x.own.ToolChoice
	} else if tc := x.req.ToolChoice; tc != "" {
		choice = jsonwire.AppendString(nil, tc)
	}
	if choice == nil && x.toolless && x.standIns {
		choice = jsontext.Value(`"none"`)
	}
	if choice == nil {
		return b
	}
	n := len(b)
	b = append(b, `,"tool_choice":`...)
	if _, word := jsonwire.StringValue(choice); word {
		b = append(b, `{"type":`...)
		b = append(b, choice...)
		return append(b, '}')
	}
	out, err := jsonwire.AppendCompact(b, choice)
	if err != nil {
		return b[:n]
	}
	return out
}

// marker is the cache marker of this request, "" for none.
func (x *exchange) marker() string {
	switch x.api.host.CacheRetention(&x.req.Options) {
	case "none":
		return ""
	case "long":
		if x.compat.LongCacheRetention {
			return `{"type":"ephemeral","ttl":"1h"}`
		}
	}
	return `{"type":"ephemeral"}`
}

const (
	userString      = `{"role":"user","content":`
	userBlocks      = `{"role":"user","content":[`
	assistantBlocks = `{"role":"assistant","content":[`
	resultID        = `{"type":"tool_result","tool_use_id":`
	markerField     = `,"cache_control":`
)

// messages assembles the encoded messages. The moving parts, the cache marker on
// the last message and the results that share a message, are put around stored
// bytes, or around those that are encoded only here and stay where they are.
func (x *exchange) messages(b []byte, items []transcript.Item[encoded], marker string) []byte {
	b = append(b, '[')
	start := len(b)
	var last lastMessage
	comma := func() {
		if len(b) > start {
			b = append(b, ',')
		}
	}
	var held []*encoded // system messages that wait for their place
	release := func() {
		for _, e := range held {
			comma()
			last = lastMessage{at: len(b), markable: true}
			b = append(b, e.json...)
		}
		held = held[:0]
	}
	for i := 0; i < len(items); i++ {
		e := &items[i].Wire
		switch m := items[i].Message.(type) {
		case *llm.System:
			if len(e.json) > 0 {
				held = append(held, e)
			}
		case *llm.Assistant:
			if !e.done && len(held) > 0 {
				// Whether they are released depends on what comes of it.
				e.json, e.done = x.appendAssistant(nil, m), true
			}
			if e.done && len(e.json) == 0 {
				continue
			}
			release()
			before, was := len(b), last
			if x.thinking.inConversation && m.Provider == x.model.Provider && knownEffort(x.model, m.ProviderThinkingLevel) {
				comma()
				b = appendEffort(b, m.ProviderThinkingLevel)
			}
			comma()
			last = lastMessage{at: len(b)}
			if e.done {
				b = append(b, e.json...)
			} else if b = e.keep(b, x.appendAssistant(b, m)); len(e.json) == 0 {
				b, last = b[:before], was
			}
		case *llm.ToolResult:
			comma()
			last = lastMessage{at: len(b), markable: true}
			n := resultsAhead(items[i:])
			b = appendResults(b, items[i:i+n], &last)
			i += n - 1
		case *llm.User:
			if e.done && len(e.json) == 0 {
				continue
			}
			before := len(b)
			comma()
			at := len(b)
			if e.done {
				b = append(b, e.json...)
				last = lastMessage{at: at, markable: true}
			} else if b = e.keep(b, appendUser(b, m)); len(e.json) > 0 {
				last = lastMessage{at: at, markable: true, slot: e}
			} else {
				b = b[:before]
				continue
			}
			if e.json[len(userString)] == '"' {
				last.text = e.json[len(userString) : len(e.json)-1]
			}
		}
	}
	release()
	if marker != "" && last.markable {
		b = last.mark(b, marker)
	}
	if x.thinking.inConversation {
		comma()
		b = appendEffort(b, x.thinking.effort)
	}
	return append(b, ']')
}

// resultsAhead counts the tool results that items begin with.
func resultsAhead(items []transcript.Item[encoded]) int {
	for n := range items {
		if _, ok := items[n].Message.(*llm.ToolResult); !ok {
			return n
		}
	}
	return len(items)
}

// appendResults appends the message that results share: all of them, and behind
// them the images that belong to them.
func appendResults(b []byte, results []transcript.Item[encoded], last *lastMessage) []byte {
	b = append(b, userBlocks...)
	for i := range results {
		if i > 0 {
			b = append(b, ',')
		}
		if e := &results[i].Wire; e.done {
			b = append(b, e.json...)
		} else {
			r := results[i].Message.(*llm.ToolResult)
			last.slot = e
			b = e.keep(b, appendResult(b, r))
			e.setAfter(imagesAfter(r))
		}
	}
	for i := range results {
		b = append(b, results[i].Wire.after()...)
	}
	return append(b, `]}`...)
}

// keep fills the slot with what was just appended to b, which gave grown.
func (e *encoded) keep(b, grown []byte) []byte {
	e.json, e.done = grown[len(b):len(grown):len(grown)], true
	return grown
}

// lastMessage is the message at the end of the body.
type lastMessage struct {
	at       int
	markable bool
	text     []byte   // content of the string form, as JSON
	slot     *encoded // that has its bytes in the body; nil when it has its own
}

// mark puts the cache marker on the last block; a string becomes a block. Stored
// bytes that stand there move to a place of their own first.
func (l *lastMessage) mark(b []byte, marker string) []byte {
	if l.slot != nil {
		l.slot.json = slices.Clone(l.slot.json)
		if l.text != nil {
			l.text = l.slot.json[len(userString) : len(l.slot.json)-1]
		}
	}
	if l.text != nil {
		b = append(b[:l.at], userBlocks+`{"type":"text","text":`...)
		b = append(b, l.text...)
	} else {
		b = b[:len(b)-len(`}]}`)]
	}
	b = append(b, markerField...)
	b = append(b, marker...)
	return append(b, `}]}`...)
}

func appendEffort(b []byte, effort string) []byte {
	b = append(b, `{"role":"system","content":[],"output_config":{"effort":`...)
	b = jsonwire.AppendString(b, effort)
	return append(b, `}}`...)
}

// declaresTools reports whether the leading system message declares tools.
func declaresTools(messages []llm.Message) bool {
	if len(messages) == 0 {
		return false
	}
	s, ok := messages[0].(*llm.System)
	return ok && len(s.ToolsAdded) > 0
}

// streamed is body with stream set to true, whatever a caller made of it.
func streamed(body []byte) []byte {
	if string(jsonwire.Get(body, "stream")) == "true" || !jsonwire.IsObject(body) {
		return body
	}
	out := []byte{'{'}
	var r jsonwire.Reader
	r.Reset(body)
	for r.Object(); r.More(); {
		key := string(r.Key())
		if key == "stream" {
			r.Skip()
			continue
		}
		out = jsonwire.AppendString(out, key)
		out = append(out, ':')
		out = append(out, r.Raw()...)
		out = append(out, ',')
	}
	return append(out, `"stream":true}`...)
}
