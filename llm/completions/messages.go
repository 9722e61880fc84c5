package completions

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Texts that stand in for what the protocol has no room for.
const (
	textAttachedImage = "(see attached image)"
	textNoOutput      = "(no tool output)"
	textToolImages    = "Attached image(s) from tool result:"
)

// textBridge is the answer between tool results and a user's message, where a
// server wants one.
const textBridge = "I have processed the tool results."

// encoded is a message in wire form. It stays in its History's slot, so a
// conversation encodes each message once; what depends on a message's
// neighbours (the images behind a run of tool results, the bridge in front of a
// user message, the moving cache marker) is added when a body is put together.
type encoded struct {
	done    bool
	json    []byte // the message, or several with commas between; empty for none
	images  []byte // of a tool result: its image parts with commas between
	text    bool   // there is text that can carry a cache marker
	tools   bool   // it is a tool call or a tool result
	grammar string // wire.Grammars.Key of the encoding, for messages with tool calls
	head    *head  // in the slot of the transcript's head
}

// head is the wire form of the system prompt and the tools.
type head struct {
	marker   string
	prompt   []byte
	tools    []byte // nil for none
	grammars wire.Grammars
}

// encoder writes messages for one model.
type encoder struct {
	model      *llm.Model
	compat     *Compat
	grammars   wire.Grammars
	grammarKey string
	dst        []byte
}

// systemRole is the role of the system prompt and of its later changes.
func (e *encoder) systemRole() string {
	if e.model.Reasoning && e.compat.SupportsDeveloperRole {
		return "developer"
	}
	return "system"
}

// encode fills the slot of an item unless it is filled already.
func (e *encoder) encode(it *transcript.Item[encoded]) error {
	w := &it.Wire
	if w.done && (w.grammar == e.grammarKey || !w.tools) {
		return nil
	}
	fresh := encoded{done: true, grammar: e.grammarKey}
	e.dst = nil
	if err := e.message(&fresh, it, ""); err != nil {
		return err
	}
	fresh.json = e.dst
	*w = fresh
	return nil
}

// message appends an item to e.dst and notes in w what is to know of it.
func (e *encoder) message(w *encoded, it *transcript.Item[encoded], marker string) error {
	switch m := it.Message.(type) {
	case *llm.System:
		return e.system(m, it.ToolsFolded, marker)
	case *llm.User:
		w.text = e.user(m, marker)
	case *llm.Assistant:
		w.text, w.tools = e.assistant(m, marker)
	case *llm.ToolResult:
		w.text, w.tools = true, true
		w.images = e.toolResult(m, marker)
	}
	return nil
}

// prompt appends the leading system message.
func (e *encoder) prompt(dst []byte, text, marker string) []byte {
	e.dst = append(dst, `{"role":"`...)
	e.str(e.systemRole(), `","content":`)
	e.content(text, marker)
	e.dst = append(e.dst, '}')
	return e.dst
}

func (e *encoder) str(parts ...string) {
	for _, s := range parts {
		e.dst = append(e.dst, s...)
	}
}

// content appends text as a message's content; one that carries a cache marker
// must be in the form of a part.
func (e *encoder) content(text, marker string) {
	if marker == "" {
		e.dst = jsonwire.AppendString(e.dst, text)
		return
	}
	e.dst = append(e.dst, '[')
	e.textPart(text, marker)
	e.dst = append(e.dst, ']')
}

func (e *encoder) textPart(text, marker string) {
	e.str(`{"type":"text","text":`)
	e.dst = jsonwire.AppendString(e.dst, text)
	if marker != "" {
		e.str(`,"cache_control":`, marker)
	}
	e.dst = append(e.dst, '}')
}

func (e *encoder) imagePart(m *llm.Image) {
	e.str(`{"type":"image_url","image_url":{"url":`)
	e.dst = jsonwire.AppendString(e.dst, "data:"+m.MimeType+";base64,"+m.Data)
	e.str(`}}`)
}

// system appends a system message that stays in its place: the tools that it
// adds, then its text. The marker is for a first message with text.
func (e *encoder) system(m *llm.System, toolsFolded bool, marker string) error {
	if !toolsFolded && len(m.ToolsAdded) > 0 {
		e.str(`{"role":"system","tools":`)
		var err error
		if e.dst, err = appendTools(e.dst, e.compat, m.ToolsAdded, ""); err != nil {
			return err
		}
		e.dst = append(e.dst, '}')
	}
	text := jsonwire.DropSurrogates(transcript.UpdateText(m))
	if text == "" {
		return nil
	}
	if len(e.dst) > 0 {
		e.dst = append(e.dst, ',')
		marker = ""
	}
	e.str(`{"role":"`, e.systemRole(), `","content":`)
	e.content(text, marker)
	e.dst = append(e.dst, '}')
	return nil
}

// user appends a user message and reports whether it has text.
func (e *encoder) user(m *llm.User, marker string) (hasText bool) {
	if m.Content.Blocks == nil {
		e.str(`{"role":"user","content":`)
		if m.Content.Text == "" {
			marker = ""
		}
		e.content(m.Content.Text, marker)
		e.dst = append(e.dst, '}')
		return m.Content.Text != ""
	}
	last, parts := -1, 0
	for i, b := range m.Content.Blocks {
		switch b := b.(type) {
		case *llm.Text:
			if b.Text != "" {
				last = i
				parts++
			}
		case *llm.Image:
			parts++
		}
	}
	if parts == 0 {
		return false
	}
	e.str(`{"role":"user","content":[`)
	n := 0
	for i, b := range m.Content.Blocks {
		switch b := b.(type) {
		case *llm.Text:
			if b.Text == "" {
				continue
			}
			e.comma(&n)
			if i == last {
				e.textPart(b.Text, marker)
			} else {
				e.textPart(b.Text, "")
			}
		case *llm.Image:
			e.comma(&n)
			e.imagePart(b)
		}
	}
	e.str(`]}`)
	return last >= 0
}

func (e *encoder) comma(n *int) {
	if *n > 0 {
		e.dst = append(e.dst, ',')
	}
	*n++
}

// reasoning is how an assistant message's thinking is sent.
type reasoning struct {
	details []jsontext.Value // reasoning_details
	field   string           // name of the text's field, "" for none
	text    string
	asText  bool // text is a part of the content
}

func (e *encoder) reasoning(m *llm.Assistant) (r reasoning) {
	var texts []string
	var legacy []jsontext.Value
	first := ""
	for _, b := range m.Content {
		switch b := b.(type) {
		case *llm.Thinking:
			if list := storedDetails(b.Signature); list != nil && r.details == nil {
				r.details = list
			}
			if jsonwire.Blank(b.Thinking) {
				continue
			}
			if len(texts) == 0 && b.Signature != nil {
				first = *b.Signature
			}
			texts = append(texts, jsonwire.DropSurrogates(b.Thinking))
		case *llm.ToolCall:
			if d := legacyDetail(b.ThoughtSignature); d != nil {
				legacy = append(legacy, d)
			}
		}
	}
	if r.details == nil {
		r.details = legacy
	}
	switch {
	case len(texts) == 0:
	case e.compat.RequiresThinkingAsText:
		r.asText = true
		r.text = strings.Join(texts, "\n\n")
	case r.details != nil: // the same in another form
	case first == fieldReasoningContent || first == fieldReasoning || first == fieldReasoningText:
		r.field = reasoningField(e.model.Provider, first)
		r.text = strings.Join(texts, "\n")
	}
	return r
}

// The fields that servers put reasoning into; the one that was used is a
// thinking block's signature.
const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
	fieldReasoningText    = "reasoning_text"
)

// reasoningField is the field to use with a provider: one answers in one field
// and reads another.
func reasoningField(provider, name string) string {
	if provider == "opencode-go" && name == fieldReasoning {
		return fieldReasoningContent
	}
	return name
}

// needsReasoningContent reports whether every answer has to have the field, be it
// empty, as some servers ask of models that think.
func (e *encoder) needsReasoningContent() bool {
	return e.compat.RequiresReasoningContentOnAssistantMessages && e.model.Reasoning
}

// assistant appends an answer, or nothing when it says nothing.
func (e *encoder) assistant(m *llm.Assistant, marker string) (hasText, hasCalls bool) {
	think := e.reasoning(m)
	texts, calls := 0, 0
	for _, b := range m.Content {
		switch b := b.(type) {
		case *llm.Text:
			if !jsonwire.Blank(b.Text) {
				texts++
			}
		case *llm.ToolCall:
			calls++
		}
	}
	hasText = texts > 0 || think.asText
	if !hasText && calls == 0 {
		return false, false
	}
	e.str(`{"role":"assistant","content":`)
	switch {
	case think.asText:
		e.assistantParts(m, think.text, texts, marker)
	case texts > 0:
		e.content(joinedText(m), marker)
	case e.compat.RequiresAssistantAfterToolResult || e.compat.RequiresNonNullAssistantContent:
		e.str(`""`)
	default:
		e.str(`null`)
	}
	if think.field != "" {
		e.str(`,"`, think.field, `":`)
		e.dst = jsonwire.AppendString(e.dst, think.text)
	}
	if calls > 0 {
		e.str(`,"tool_calls":[`)
		n := 0
		for _, b := range m.Content {
			if c, ok := b.(*llm.ToolCall); ok {
				e.comma(&n)
				e.toolCall(c)
			}
		}
		e.dst = append(e.dst, ']')
	}
	if len(think.details) > 0 {
		e.str(`,"reasoning_details":[`)
		n := 0
		for _, d := range think.details {
			e.comma(&n)
			e.dst = wire.AppendRaw(e.dst, d)
		}
		e.dst = append(e.dst, ']')
	}
	if e.needsReasoningContent() && think.field != fieldReasoningContent {
		e.str(`,"reasoning_content":""`)
	}
	e.dst = append(e.dst, '}')
	return hasText, calls > 0
}

// assistantParts appends content in the form of parts: the thinking, then the texts.
func (e *encoder) assistantParts(m *llm.Assistant, thinking string, texts int, marker string) {
	mark := func() string {
		if texts == 0 {
			return marker
		}
		return ""
	}
	e.dst = append(e.dst, '[')
	e.textPart(thinking, mark())
	for _, b := range m.Content {
		if t, ok := b.(*llm.Text); ok && !jsonwire.Blank(t.Text) {
			texts--
			e.dst = append(e.dst, ',')
			e.textPart(t.Text, mark())
		}
	}
	e.dst = append(e.dst, ']')
}

func joinedText(m *llm.Assistant) string {
	var parts []string
	for _, b := range m.Content {
		if t, ok := b.(*llm.Text); ok && !jsonwire.Blank(t.Text) {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "")
}

func (e *encoder) toolCall(c *llm.ToolCall) {
	e.str(`{"id":`)
	e.dst = jsonwire.AppendString(e.dst, c.ID)
	args := c.Current()
	if g := e.grammars.Find(c.Name); g != nil {
		input, _ := jsonwire.StringValue(jsonwire.Get(args, g.Property))
		e.str(`,"type":"custom","custom":{"name":`)
		e.dst = jsonwire.AppendString(e.dst, c.Name)
		e.str(`,"input":`)
		e.dst = jsonwire.AppendString(e.dst, jsonwire.DropSurrogates(input))
		e.str(`}}`)
		return
	}
	e.str(`,"type":"function","function":{"name":`)
	e.dst = jsonwire.AppendString(e.dst, c.Name)
	e.str(`,"arguments":`)
	compact, err := jsonwire.AppendCompact(nil, args)
	if err != nil {
		compact = []byte("{}")
	}
	e.dst = jsonwire.AppendString(e.dst, compact)
	e.str(`}}`)
}

// toolResult appends a tool result and returns its images, which follow the
// last result of a run in a message of their own.
func (e *encoder) toolResult(m *llm.ToolResult, marker string) (images []byte) {
	text := llm.TextOf(m.Content, "\n")
	rest := e.dst
	e.dst = nil
	n := 0
	for _, b := range m.Content {
		if image, ok := b.(*llm.Image); ok && e.model.AcceptsImages() {
			e.comma(&n)
			e.imagePart(image)
		}
	}
	images, e.dst = e.dst, rest
	if jsonwire.Blank(text) {
		text = textNoOutput
		if n > 0 {
			text = textAttachedImage
		}
	}
	e.str(`{"role":"tool","content":`)
	e.content(text, marker)
	e.str(`,"tool_call_id":`)
	e.dst = jsonwire.AppendString(e.dst, m.ToolCallID)
	if e.compat.RequiresToolResultName && m.ToolName != "" {
		e.str(`,"name":`)
		e.dst = jsonwire.AppendString(e.dst, m.ToolName)
	}
	e.dst = append(e.dst, '}')
	return images
}

// messages appends all messages of a transcript.
func (e *encoder) messages(dst []byte, t *transcript.Transcript[encoded], prompt []byte, marker string) ([]byte, error) {
	for i := range t.Items {
		if err := e.encode(&t.Items[i]); err != nil {
			return dst, err
		}
	}
	mark, instructions := marked{item: -1}, -1
	if marker != "" {
		mark = e.lastText(t.Items)
		if prompt == nil {
			instructions = firstSystem(t.Items)
		}
	}
	dst = append(dst, '[')
	start := len(dst)
	add := func(json []byte) {
		if len(json) == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(dst, json...)
	}
	add(prompt)
	var images []byte // of the run of tool results at hand
	for i := range t.Items {
		it := &t.Items[i]
		json := it.Wire.json
		if mark.item == i && mark.part == ownText || instructions == i {
			e.dst = nil
			if err := e.message(&encoded{}, it, marker); err != nil {
				return dst, err
			}
			json = e.dst
		}
		add(json)
		if !isResult(it) {
			continue
		}
		if len(it.Wire.images) > 0 {
			if len(images) > 0 {
				images = append(images, ',')
			}
			images = append(images, it.Wire.images...)
		}
		if !endOfRun(t.Items, i) {
			continue
		}
		marking := func(part markedText) string {
			if mark.item == i && mark.part == part {
				return marker
			}
			return ""
		}
		if len(images) > 0 && e.compat.RequiresAssistantAfterToolResult || e.bridged(t.Items, i) {
			add(e.bridge(marking(bridgeText)))
		}
		if len(images) > 0 {
			add(e.toolImages(images, marking(imagesText)))
			images = images[:0]
		}
	}
	return append(dst, ']'), nil
}

// bridged reports whether a user speaks right after the tool result at i, to a
// server that wants an answer in between. Of messages that say nothing only those of
// the system are in between.
func (e *encoder) bridged(items []transcript.Item[encoded], i int) bool {
	if !e.compat.RequiresAssistantAfterToolResult {
		return false
	}
	for i++; i < len(items); i++ {
		_, system := items[i].Message.(*llm.System)
		if system || len(items[i].Wire.json) > 0 {
			return isUser(&items[i])
		}
	}
	return false
}

func (e *encoder) bridge(marker string) []byte {
	e.dst = nil
	e.str(`{"role":"assistant","content":`)
	e.content(textBridge, marker)
	e.dst = append(e.dst, '}')
	return e.dst
}

// toolImages is the message with the images of a run of tool results.
func (e *encoder) toolImages(images []byte, marker string) []byte {
	e.dst = nil
	e.str(`{"role":"user","content":[`)
	e.textPart(textToolImages, marker)
	e.dst = append(e.dst, ',')
	e.dst = append(e.dst, images...)
	e.str(`]}`)
	return e.dst
}

func isResult(it *transcript.Item[encoded]) bool {
	_, ok := it.Message.(*llm.ToolResult)
	return ok
}

func isUser(it *transcript.Item[encoded]) bool {
	_, ok := it.Message.(*llm.User)
	return ok
}

// endOfRun reports whether the tool result at i is the last of its run.
func endOfRun(items []transcript.Item[encoded], i int) bool {
	return i+1 == len(items) || !isResult(&items[i+1])
}

// marked is the place of the moving cache marker: the text of an item, or of a
// message that follows the run of tool results that ends with it.
type marked struct {
	item int // -1 for none
	part markedText
}

type markedText int

const (
	ownText markedText = iota
	bridgeText
	imagesText
)

// lastText finds the last message of a user, the model or a tool with text.
func (e *encoder) lastText(items []transcript.Item[encoded]) marked {
	for i := len(items) - 1; i >= 0; i-- {
		it := &items[i]
		if isResult(it) && endOfRun(items, i) {
			for k := i; k >= 0 && isResult(&items[k]); k-- {
				if len(items[k].Wire.images) > 0 {
					return marked{item: i, part: imagesText}
				}
			}
			if e.bridged(items, i) {
				return marked{item: i, part: bridgeText}
			}
		}
		if it.Wire.text {
			return marked{item: i}
		}
	}
	return marked{item: -1}
}

// firstSystem finds the first system message that is sent, -1 for none. Where
// there is no prompt before the conversation it carries the prompt's marker.
func firstSystem(items []transcript.Item[encoded]) int {
	return slices.IndexFunc(items, func(it transcript.Item[encoded]) bool {
		_, ok := it.Message.(*llm.System)
		return ok && len(it.Wire.json) > 0
	})
}

// hasToolHistory reports whether a call or a result is in the transcript.
func hasToolHistory(items []transcript.Item[encoded]) bool {
	for i := range items {
		if items[i].Wire.tools {
			return true
		}
	}
	return false
}
