package anthropic

import (
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The placeholder keeps the list of deferred tools from being empty, so that
// the first change of tools does not invalidate the cache.
const placeholderTool = `{"name":"__pi_deferred_placeholder__","description":"Reserved placeholder. Never available. Never call this.",` +
	`"input_schema":{"type":"object","properties":{},"required":[]},"defer_loading":true}`

// encodeHead encodes the system prompt and the tools of the request.
func (x *exchange) encodeHead(t *transcript.Transcript[encoded], marker string, changes bool) (*head, error) {
	h := &head{marker: marker}
	tools := t.Tools
	if t.System != nil {
		if text := jsonwire.DropSurrogates(transcript.SystemText(t.System)); !jsonwire.Blank(text) {
			b := append([]byte(nil), `[{"type":"text","text":`...)
			b = jsonwire.AppendString(b, text)
			b = appendMarker(b, marker)
			h.system = append(b, `}]`...)
		}
		if changes {
			tools = transcript.CurrentTools([]llm.Message{t.System})
		}
	}
	if len(tools) == 0 {
		return h, nil
	}
	b := []byte{'['}
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		var loose bool
		var err error
		if b, loose, err = x.appendTool(b, &tools[i]); err != nil {
			return nil, err
		}
		h.strictSent = h.strictSent || loose
		h.names = append(h.names, tools[i].Name)
		if i == len(tools)-1 && x.compat.CacheControlOnTools {
			b = appendMarker(b, marker)
		}
		b = append(b, '}')
	}
	if changes {
		b = append(b, ',')
		b = append(b, placeholderTool...)
	}
	h.tools = append(b, ']')
	return h, nil
}

func appendMarker(b []byte, marker string) []byte {
	if marker == "" {
		return b
	}
	b = append(b, markerField...)
	return append(b, marker...)
}

// appendTool appends a tool without its closing brace. preferred tells that it
// is strict although it could do without.
func (x *exchange) appendTool(b []byte, t *llm.Tool) (out []byte, preferred bool, err error) {
	schema, strict, err := wire.StrictTool(t, x.compat.StrictTools, !x.loose, refuses)
	if err != nil {
		return nil, false, err
	}
	b = append(b, `{"name":`...)
	b = jsonwire.AppendString(b, x.compat.toolName(t.Name))
	b = append(b, `,"description":`...)
	b = jsonwire.AppendString(b, t.Description)
	if x.compat.EagerToolInputStreaming {
		b = append(b, `,"eager_input_streaming":true`...)
	}
	if strict {
		b = append(b, `,"strict":true,"input_schema":`...)
		b = append(b, schema...)
		if jsonwire.Get(schema, "properties") == nil {
			b = append(b[:len(b)-1], `,"properties":{}}`...)
		}
		strictness, _ := jsonwire.StringValue(jsonwire.Get(t.ConstrainedSampling, "strict"))
		return b, strictness != "require", nil
	}
	b = append(b, `,"input_schema":{"type":"object","properties":`...)
	b = appendMember(b, schema, "properties", "{}")
	b = append(b, `,"required":`...)
	b = appendMember(b, schema, "required", "[]")
	for _, name := range [...]string{"additionalProperties", "$defs", "definitions"} {
		if v := jsonwire.Get(schema, name); v != nil {
			b = append(b, ',', '"')
			b = append(b, name...)
			b = append(b, '"', ':')
			b = appendMember(b, schema, name, "null")
		}
	}
	return append(b, '}'), false, nil
}

// appendMember appends a member of an object; null and nothing as otherwise.
func appendMember(b, object []byte, name, otherwise string) []byte {
	v := jsonwire.Get(object, name)
	if v == nil || string(v) == "null" {
		return append(b, otherwise...)
	}
	n := len(b)
	b, err := jsonwire.AppendCompact(b, v)
	if err != nil {
		return append(b[:n], otherwise...)
	}
	return b
}

// refuses lists what Anthropic cannot enforce beside what no service can.
func refuses(keyword string, value []byte) bool {
	switch keyword {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "uniqueItems",
		"minContains", "maxContains", "minProperties", "maxProperties":
		return true
	case "minItems":
		return string(value) != "0" && string(value) != "1"
	case "format":
		name, _ := jsonwire.StringValue(value)
		switch name {
		case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
			return false
		}
		return true
	}
	return false
}

// encode fills the slot of one message.
func (x *exchange) encode(it *transcript.Item[encoded], changes bool) error {
	e := &it.Wire
	var err error
	switch m := it.Message.(type) {
	case *llm.System:
		var strict bool
		if e.json, strict, err = x.encodeSystem(m, changes && !it.ToolsFolded); strict {
			e.rare = &rare{strictSent: true}
		}
	case *llm.User:
		e.json = appendUser(fresh(m), m)
	case *llm.Assistant:
		e.json = x.appendAssistant(fresh(m), m)
	case *llm.ToolResult:
		e.json = appendResult(fresh(m), m)
		e.setAfter(imagesAfter(m))
	}
	e.done = err == nil
	return err
}

// fresh is memory for the encoded message.
func fresh(m llm.Message) []byte { return make([]byte, 0, sizeOf(m)) }

// sizeOf is about how many bytes a message takes when it is encoded, rather too
// many than too few.
func sizeOf(m llm.Message) int {
	switch m := m.(type) {
	case *llm.User:
		return len(userBlocks+`]}`) + sizeOfText(m.Content.Text) + sizeOfBlocks(m.Content.Blocks)
	case *llm.Assistant:
		return len(assistantBlocks+`]}`) + sizeOfBlocks(m.Content)
	case *llm.ToolResult:
		return len(resultID+`"","content":[],"is_error":false}`) + len(m.ToolCallID) + sizeOfBlocks(m.Content)
	}
	return 0
}

// sizeOfText allows for some escapes.
func sizeOfText(text string) int { return len(text) + len(text)/8 }

func sizeOfBlocks(blocks []llm.Block) (n int) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *llm.Text:
			n += len(`{"type":"text","text":""},`) + sizeOfText(b.Text)
		case *llm.Thinking:
			n += len(`{"type":"thinking","thinking":"","signature":""},`) + sizeOfText(b.Thinking)
			if b.Signature != nil {
				n += len(*b.Signature)
			}
		case *llm.Image:
			n += 96 + len(b.Data)
		case *llm.ToolCall:
			n += len(`{"type":"tool_use","id":"","name":"","input":},`) + len(b.ID) + len(b.Name) + len(b.Arguments)
		}
	}
	return n
}

func (x *exchange) encodeSystem(m *llm.System, changes bool) (json []byte, strictSent bool, err error) {
	const opening = `{"role":"system","content":[`
	b := []byte(opening)
	next := func() {
		if len(b) > len(opening) {
			b = append(b, ',')
		}
	}
	if text := jsonwire.DropSurrogates(transcript.UpdateText(m)); !jsonwire.Blank(text) {
		b = appendText(b, text)
	}
	if changes {
		for _, name := range m.ToolsRemoved {
			if slices.ContainsFunc(m.ToolsAdded, func(t llm.Tool) bool { return t.Name == name }) {
				continue
			}
			next()
			b = append(b, `{"type":"tool_removal","tool":{"type":"tool_reference","name":`...)
			b = jsonwire.AppendString(b, x.compat.toolName(name))
			b = append(b, `}}`...)
		}
		for i := range m.ToolsAdded {
			next()
			b = append(b, `{"type":"tool_addition","tool":{"type":"tool_definition","definition":`...)
			var preferred bool
			if b, preferred, err = x.appendTool(b, &m.ToolsAdded[i]); err != nil {
				return nil, false, err
			}
			strictSent = strictSent || preferred
			b = append(b, `}}}`...)
		}
	}
	if len(b) == len(opening) {
		return nil, false, nil
	}
	return append(b, `]}`...), strictSent, nil
}

func appendText(b []byte, text string) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = jsonwire.AppendString(b, text)
	return append(b, '}')
}

func appendImage(b []byte, m *llm.Image) []byte {
	b = append(b, `{"type":"image","source":{"type":"base64","media_type":`...)
	b = jsonwire.AppendString(b, m.MimeType)
	b = append(b, `,"data":`...)
	b = jsonwire.AppendString(b, m.Data)
	return append(b, `}}`...)
}

// appendUser appends a user message, or nothing when it says nothing.
func appendUser(b []byte, m *llm.User) []byte {
	start := len(b)
	if m.Content.Blocks == nil {
		if jsonwire.Blank(m.Content.Text) {
			return b
		}
		b = append(b, userString...)
		b = jsonwire.AppendString(b, m.Content.Text)
		return append(b, '}')
	}
	b = append(b, userBlocks...)
	first := len(b)
	for _, block := range m.Content.Blocks {
		n := len(b)
		if n > first {
			b = append(b, ',')
		}
		switch block := block.(type) {
		case *llm.Text:
			if jsonwire.Blank(block.Text) {
				b = b[:n]
				continue
			}
			b = appendText(b, block.Text)
		case *llm.Image:
			b = appendImage(b, block)
		default:
			b = b[:n]
		}
	}
	if len(b) == first {
		return b[:start]
	}
	return append(b, `]}`...)
}

// appendAssistant appends an answer, or nothing when it says nothing.
func (x *exchange) appendAssistant(b []byte, m *llm.Assistant) []byte {
	start := len(b)
	b = append(b, assistantBlocks...)
	first := len(b)
	for _, block := range m.Content {
		n := len(b)
		if n > first {
			b = append(b, ',')
		}
		from := len(b)
		switch block := block.(type) {
		case *llm.Text:
			if !jsonwire.Blank(block.Text) {
				b = appendText(b, block.Text)
			}
		case *llm.Thinking:
			b = x.appendThinking(b, block)
		case *llm.ToolCall:
			b = append(b, `{"type":"tool_use","id":`...)
			b = jsonwire.AppendString(b, block.ID)
			b = append(b, `,"name":`...)
			b = jsonwire.AppendString(b, x.compat.toolName(block.Name))
			b = append(b, `,"input":`...)
			at := len(b)
			out, err := jsonwire.AppendCompact(b, block.Arguments)
			if err != nil || out[at] != '{' {
				out = append(b[:at], `{}`...)
			}
			b = append(out, '}')
		}
		if len(b) == from {
			b = b[:n]
		}
	}
	if len(b) == first {
		return b[:start]
	}
	return append(b, `]}`...)
}

// appendThinking appends a block of reasoning, or nothing.
func (x *exchange) appendThinking(b []byte, t *llm.Thinking) []byte {
	signature := ""
	if t.Signature != nil && !jsonwire.Blank(*t.Signature) {
		signature = *t.Signature
	}
	switch {
	case t.Redacted:
		if signature == "" {
			return b // nothing that the service could read
		}
		b = append(b, `{"type":"redacted_thinking","data":`...)
		b = jsonwire.AppendString(b, signature)
		return append(b, '}')
	case signature == "" && jsonwire.Blank(t.Thinking):
		return b
	case signature == "" && !x.compat.EmptySignature:
		return appendText(b, t.Thinking)
	}
	b = append(b, `{"type":"thinking","thinking":`...)
	b = jsonwire.AppendString(b, t.Thinking)
	b = append(b, `,"signature":`...)
	b = jsonwire.AppendString(b, signature)
	return append(b, '}')
}

const seeImage = "(see attached image)"

// appendResult appends the block of a tool result. The protocol takes no
// pictures in an error result; imagesAfter has them.
func appendResult(b []byte, m *llm.ToolResult) []byte {
	var few [4]string
	texts := few[:0]
	images, inRun := 0, false
	for _, c := range m.Content {
		switch c := c.(type) {
		case *llm.Text:
			texts = append(texts, c.Text)
			inRun = false
		case *llm.Image:
			images++
			if m.IsError && !inRun {
				texts = append(texts, transcript.ImageAfterResults)
			}
			inRun = true
		}
	}
	b = append(b, resultID...)
	b = jsonwire.AppendString(b, m.ToolCallID)
	b = append(b, `,"content":`...)
	if images == 0 || m.IsError {
		b = jsonwire.AppendString(b, strings.Join(texts, "\n"))
	} else {
		b = append(b, '[')
		from := len(b)
		if len(texts) == 0 {
			b = appendText(b, seeImage)
		}
		for _, c := range m.Content {
			n := len(b)
			if n > from {
				b = append(b, ',')
			}
			switch c := c.(type) {
			case *llm.Text:
				b = appendText(b, c.Text)
			case *llm.Image:
				b = appendImage(b, c)
			default:
				b = b[:n]
			}
		}
		b = append(b, ']')
	}
	b = append(b, `,"is_error":`...)
	if m.IsError {
		return append(b, `true}`...)
	}
	return append(b, `false}`...)
}

// imagesAfter are the blocks with the pictures of an error result, which follow
// all results of the message, each with a comma in front; nil for none.
func imagesAfter(m *llm.ToolResult) (after []byte) {
	if !m.IsError {
		return nil
	}
	for _, c := range m.Content {
		img, ok := c.(*llm.Image)
		if !ok {
			continue
		}
		if after == nil {
			after = append(after, ',')
			after = appendText(after, transcript.ErrorImagesTitle(m))
		}
		after = append(after, ',')
		after = appendImage(after, img)
	}
	return after
}
