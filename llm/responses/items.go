package responses

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Texts that stand in for what a tool did not say.
const (
	textAttachedImage = "(see attached image)"
	textNoOutput      = "(no tool output)"
)

// encoded is a message as items of the input. It stays in its History's slot,
// so a conversation encodes each message once.
type encoded struct {
	done     bool
	json     []byte   // items with commas between; empty for none
	ids      []string // of its items, as far as the history chose them
	grammars string   // wire.Grammars.Key of the encoding
	head     *head    // in the slot of the transcript's head
}

// head is the wire form of the leading system message and the tools.
type head struct {
	items    []byte // of the input, with commas between
	tools    []byte // of the request, nil for none
	grammars wire.Grammars
	taken    itemIDs
}

// encoder writes messages for one model.
type encoder struct {
	dialect    *dialect
	model      *llm.Model
	compat     *Compat
	grammars   wire.Grammars
	grammarKey string
	toolSets   toolSets
	items      []transcript.Item[encoded]
	taken      itemIDs
	dst        []byte
	ids        []string // of the items in dst
}

// historyKey tells apart what the encoding of a message depends on.
type historyKey struct {
	format, provider, model string
	images, developer       bool
	strict, grammar         bool
	inPlace, sets, search   bool
}

func (e *encoder) historyKey() historyKey {
	c := e.compat
	return historyKey{
		format: e.dialect.id, provider: e.model.Provider, model: e.model.ID,
		images: e.model.AcceptsImages(), developer: e.role() == "developer",
		strict: c.SupportsStrictMode, grammar: c.SupportsOpenAIGrammarTools,
		inPlace: c.SupportsMidConvoSystemMessages, sets: c.SupportsAdditionalTools, search: c.SupportsToolSearch,
	}
}

// rules are what the format asks of a transcript.
func (e *encoder) rules() *transcript.Rules {
	r := &transcript.Rules{
		Model:         e.model,
		SystemInPlace: e.compat.SupportsMidConvoSystemMessages,
		NormalizeID: func(id string, from *llm.Assistant) string {
			return normalizeID(e.dialect, e.model, id, from)
		},
		LegalID:   legalID,
		VariantID: variantID,
		NormalizeName: func(name string) string {
			return transcript.WordID(name, nil) // names are words of the same kind
		},
		CallKey: callKey,
	}
	switch {
	case e.sets():
		r.Tools = transcript.ToolChanges
	case e.searches():
		r.Tools = transcript.ToolAdditions
	}
	return r
}

// sets reports whether sets of tools are items of the input.
func (e *encoder) sets() bool {
	return e.compat.SupportsMidConvoSystemMessages && e.compat.SupportsAdditionalTools
}

// searches reports whether tools that are added later are results of a search.
func (e *encoder) searches() bool {
	return e.compat.SupportsMidConvoSystemMessages && e.compat.SupportsToolSearch && !e.sets()
}

// role is the role of the system prompt and of its later changes.
func (e *encoder) role() string {
	if e.model.Reasoning && e.compat.SupportsDeveloperRole {
		return "developer"
	}
	return "system"
}

// encode fills the slots of a transcript unless they are filled already.
func (e *encoder) encode(t *transcript.Transcript[encoded]) (*head, error) {
	h := t.Head.head
	if h == nil {
		h = &head{}
		if e.compat.SupportsOpenAIGrammarTools {
			h.grammars = h.grammars.Add(t.Tools)
		}
		if t.System != nil {
			if err := e.leading(h, t.System); err != nil {
				return nil, err
			}
		}
		if len(t.Tools) > 0 {
			var err error
			if h.tools, err = e.appendTools(nil, t.Tools, false); err != nil {
				return nil, err
			}
		}
		t.Head.head = h
	}
	e.grammars = h.grammars
	if e.compat.SupportsOpenAIGrammarTools && e.compat.SupportsMidConvoSystemMessages {
		e.laterGrammars(t)
	}
	e.grammarKey = e.grammars.Key()
	if t.System != nil {
		e.toolSets.change(t.System)
	}
	if h.taken == nil {
		h.taken = itemIDs{}
		for i := range t.Items {
			h.taken.add(t.Items[i].Wire.ids, i)
		}
	}
	e.items, e.taken = t.Items, h.taken
	for i := range t.Items {
		if err := e.item(&t.Items[i], i); err != nil {
			return nil, err
		}
	}
	return &head{items: h.items, tools: h.tools, grammars: e.grammars}, nil
}

// laterGrammars adds the grammar tools of the system messages in place.
func (e *encoder) laterGrammars(t *transcript.Transcript[encoded]) {
	own := append(wire.Grammars(nil), e.grammars...)
	if t.System != nil {
		own = own.Add(t.System.ToolsAdded)
	}
	for i := range t.Items {
		if m, ok := t.Items[i].Message.(*llm.System); ok {
			own = own.Add(m.ToolsAdded)
		}
	}
	e.grammars = own
}

// leading encodes the leading system message.
func (e *encoder) leading(h *head, m *llm.System) error {
	e.dst = nil
	if e.sets() && len(m.ToolsAdded) > 0 {
		if err := e.toolSet(m.ToolsAdded); err != nil {
			return err
		}
	}
	if text := transcript.SystemText(m); text != "" {
		e.comma()
		e.instruction(text)
	}
	h.items = e.dst
	return nil
}

// item fills the slot of the item at position n.
func (e *encoder) item(it *transcript.Item[encoded], n int) error {
	w := &it.Wire
	system, isSystem := it.Message.(*llm.System)
	if isSystem {
		defer e.toolSets.change(system)
	}
	if w.done && w.grammars == e.grammarKey {
		return nil
	}
	e.dst, e.ids = nil, nil
	switch m := it.Message.(type) {
	case *llm.System:
		if err := e.system(m, it.ToolsFolded, n); err != nil {
			return err
		}
	case *llm.User:
		e.user(m)
	case *llm.Assistant:
		e.assistant(m, it.SameModel, n)
	case *llm.ToolResult:
		e.toolResult(m)
	}
	*w = encoded{done: true, json: e.dst, ids: e.ids, grammars: e.grammarKey}
	e.taken.add(e.ids, n)
	return nil
}

func (e *encoder) str(parts ...string) {
	for _, s := range parts {
		e.dst = append(e.dst, s...)
	}
}

func (e *encoder) quote(s string) { e.dst = jsonwire.AppendString(e.dst, s) }

// comma parts an item from the one before.
func (e *encoder) comma() {
	if len(e.dst) > 0 {
		e.dst = append(e.dst, ',')
	}
}

// instruction appends an item with what the model is told.
func (e *encoder) instruction(text string) {
	e.str(`{"role":"`, e.role(), `","content":`)
	e.quote(text)
	e.str(`}`)
}

func (e *encoder) user(m *llm.User) {
	if m.Content.Blocks != nil && !sendable(m.Content.Blocks) {
		return
	}
	e.str(`{"role":"user","content":`)
	if m.Content.Blocks == nil {
		e.str(`[`)
		e.inputText(m.Content.Text)
		e.str(`]`)
	} else {
		e.parts(m.Content.Blocks)
	}
	e.str(`}`)
}

// sendable reports whether there is a text or a picture among blocks.
func sendable(blocks []llm.Block) bool {
	for _, b := range blocks {
		switch b.(type) {
		case *llm.Text, *llm.Image:
			return true
		}
	}
	return false
}

// parts appends texts and pictures as a list of content parts.
func (e *encoder) parts(blocks []llm.Block) {
	e.str(`[`)
	n := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case *llm.Text:
			e.next(&n)
			e.inputText(b.Text)
		case *llm.Image:
			e.next(&n)
			e.inputImage(b)
		}
	}
	e.str(`]`)
}

func (e *encoder) next(n *int) {
	if *n > 0 {
		e.dst = append(e.dst, ',')
	}
	*n++
}

func (e *encoder) inputText(text string) {
	e.str(`{"type":"input_text","text":`)
	e.quote(text)
	e.str(`}`)
}

func (e *encoder) inputImage(m *llm.Image) {
	e.str(`{"type":"input_image","detail":"auto","image_url":`)
	e.quote("data:" + m.MimeType + ";base64," + m.Data)
	e.str(`}`)
}

// assistant appends the items of an answer, the message at position n.
func (e *encoder) assistant(m *llm.Assistant, same bool, n int) {
	texts := 0
	reasoned := 0 // length of dst in front of reasoning that nothing follows yet
	pending := false
	// The service knows an item by the reasoning that led to it, and refuses the
	// one without the other: behind reasoning that is left out, as in an answer
	// of a sibling model, items have no ids that it knows.
	sibling := !same && m.Provider == e.model.Provider && m.API == e.model.API
	known := !sibling
	for _, b := range m.Content {
		switch b := b.(type) {
		case *llm.Thinking:
			item, id := storedReasoning(b.Signature)
			if item == nil || !e.take(id, n) {
				known = known && (b.Signature == nil || *b.Signature == "")
				continue
			}
			known = !sibling
			if !pending {
				reasoned, pending = len(e.dst), true
			}
			e.comma()
			e.dst = append(e.dst, item...)
		case *llm.Text:
			e.comma()
			e.text(b, known, n, texts)
			texts++
			pending = false
		case *llm.ToolCall:
			e.comma()
			e.toolCall(b, same, known, n)
			pending = false
		}
	}
	if pending {
		// The service refuses reasoning without what it led to, as answers that
		// reached their token limit leave it.
		e.dst = e.dst[:reasoned]
	}
}

// storedReasoning is the reasoning item that a signature holds and its id, nil
// when it holds none that the service takes: what edits and other programs left
// there must not make it refuse the session. It keeps nothing itself, so an
// item that was given without its content says nothing and is refused.
func storedReasoning(signature *string) (item []byte, id string) {
	if signature == nil {
		return nil, ""
	}
	raw := []byte(*signature)
	it := readItem(raw)
	if it.typ != "reasoning" || !it.secret && !hasElements(it.content) {
		return nil, ""
	}
	item, err := jsonwire.AppendCompact(nil, raw)
	if err != nil {
		return nil, ""
	}
	return item, it.id
}

func hasElements(list []byte) bool {
	var r jsonwire.Reader
	r.Reset(list)
	return r.Kind() == '[' && r.Array() && r.More()
}

// itemIDs is where the ids of items in the input stand: the position of the
// last message that has one. Positions behind the message at hand, and those of
// messages that have changed, say nothing.
type itemIDs map[string]int

func (t itemIDs) add(ids []string, n int) {
	for _, id := range ids {
		t[id] = n
	}
}

// take reports whether an id is free for an item of the message at position n,
// and takes it. Histories hold ids twice when a service numbers the items of
// each answer anew, or when messages were copied; the service refuses them.
func (e *encoder) take(id string, n int) bool {
	if id == "" {
		return true
	}
	if at, ok := e.taken[id]; ok && at < n && slices.Contains(e.items[at].Wire.ids, id) || slices.Contains(e.ids, id) {
		return false
	}
	e.ids = append(e.ids, id)
	return true
}

// text appends the message item of the text that has k texts of its message,
// the one at position n, before it; known tells that it may have its own id.
func (e *encoder) text(b *llm.Text, known bool, n, k int) {
	id, phase := readTextSignature(b.Signature)
	if !known {
		id = ""
	}
	if jsonwire.UTF16Len(id) > maxID {
		id = "msg_" + transcript.ShortHash(id)
	}
	if id == "" || !e.take(id, n) {
		id = "msg_pi_" + strconv.Itoa(n)
		if k > 0 {
			id += "_" + strconv.Itoa(k)
		}
		for !e.take(id, n) {
			id += "_"
		}
	}
	e.str(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`)
	e.quote(b.Text)
	e.str(`,"annotations":[]}],"status":"completed","id":`)
	e.quote(id)
	if phase != "" {
		e.str(`,"phase":"`, phase, `"`)
	}
	e.str(`}`)
}

// toolCall appends a call of the answer at position n; same tells that the
// target gave it, known that its item may have its own id.
func (e *encoder) toolCall(c *llm.ToolCall, same, known bool, n int) {
	call, item := splitID(c.ID)
	grammar := e.grammars.Find(c.Name)
	kind, prefix := "function_call", functionItem
	if grammar != nil {
		kind, prefix = "custom_tool_call", customItem
	}
	e.str(`{"type":"`, kind, `"`)
	if strings.HasPrefix(item, prefix) && known && e.take(item, n) {
		e.str(`,"id":`)
		e.quote(item)
	}
	e.str(`,"call_id":`)
	e.quote(call)
	e.str(`,"name":`)
	e.quote(c.Name)
	args := c.Current()
	if grammar != nil {
		input, _ := jsonwire.StringValue(jsonwire.Get(args, grammar.Property))
		e.str(`,"input":`)
		e.quote(jsonwire.DropSurrogates(input))
	} else {
		compact, err := jsonwire.AppendCompact(nil, args)
		if err != nil {
			compact = []byte("{}")
		}
		e.str(`,"arguments":`)
		e.dst = jsonwire.AppendString(e.dst, compact)
	}
	if same && c.Namespace != "" {
		e.str(`,"namespace":`)
		e.quote(c.Namespace)
	}
	e.str(`}`)
}

func (e *encoder) toolResult(m *llm.ToolResult) {
	kind := "function_call_output"
	if e.grammars.Find(m.ToolName) != nil {
		kind = "custom_tool_call_output"
	}
	call, _ := splitID(m.ToolCallID)
	e.str(`{"type":"`, kind, `","call_id":`)
	e.quote(call)
	e.str(`,"output":`)
	text := llm.TextOf(m.Content, "\n")
	blank := jsonwire.Blank(text)
	pictures := false
	for _, b := range m.Content {
		if _, ok := b.(*llm.Image); ok {
			pictures = true
		}
	}
	switch {
	case pictures && e.model.AcceptsImages():
		n := 0
		e.str(`[`)
		if !blank {
			e.next(&n)
			e.inputText(text)
		}
		for _, b := range m.Content {
			if b, ok := b.(*llm.Image); ok {
				e.next(&n)
				e.inputImage(b)
			}
		}
		e.str(`]`)
	case !blank:
		e.quote(text)
	case pictures:
		e.quote(textAttachedImage)
	default:
		e.quote(textNoOutput)
	}
	e.str(`}`)
}
