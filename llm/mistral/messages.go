package mistral

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Texts that stand in for what a tool result does not say, and the mark of one
// that failed: the protocol has no field for either.
const (
	textAttachedImage = "(see attached image)"
	textNoOutput      = "(no tool output)"
	textToolError     = "[tool error] "
)

// encoded is a message in wire form. It stays in its History's slot, so a
// conversation encodes each message once.
type encoded struct {
	done bool
	json []byte // empty for a message that is not sent
	head *head  // in the slot of the transcript's head
}

// head is the wire form of the system prompt and the tools; nil for none.
type head struct{ prompt, tools []byte }

// appendMessages appends the messages of a transcript as an array.
func appendMessages(dst []byte, t *transcript.Transcript[encoded], prompt []byte, images bool) []byte {
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
	for i := range t.Items {
		it := &t.Items[i]
		if !it.Wire.done {
			it.Wire = encoded{done: true, json: appendMessage(nil, it.Message, images)}
		}
		add(it.Wire.json)
	}
	return append(dst, ']')
}

// appendMessage appends a message, or nothing when it says nothing.
func appendMessage(dst []byte, m llm.Message, images bool) []byte {
	switch m := m.(type) {
	case *llm.System:
		if text := transcript.UpdateText(m); text != "" {
			return appendPlain(dst, "system", text)
		}
	case *llm.User:
		return appendUser(dst, m)
	case *llm.Assistant:
		return appendAssistant(dst, m)
	case *llm.ToolResult:
		return appendResult(dst, m, images)
	}
	return dst
}

// appendPlain appends a message whose content is a string.
func appendPlain(dst []byte, role, text string) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", role)
	o.Text("content", text)
	return o.End()
}

// parts appends the elements of a content list.
type parts struct {
	b []byte
	n int
}

func (p *parts) next() *jsonwire.Object {
	if p.n > 0 {
		p.b = append(p.b, ',')
	}
	p.n++
	o := jsonwire.Begin(p.b)
	return &o
}

func (p *parts) text(s string) {
	o := p.next()
	o.Text("type", "text")
	o.Text("text", s)
	p.b = o.End()
}

func (p *parts) image(m *llm.Image) {
	o := p.next()
	o.Text("type", "image_url")
	o.Text("image_url", "data:"+m.MimeType+";base64,"+m.Data)
	p.b = o.End()
}

func (p *parts) thinking(s string) {
	o := p.next()
	o.Text("type", "thinking")
	o.Key("thinking")
	inner := parts{b: append(o.B, '[')}
	inner.text(s)
	o.B = append(inner.b, ']')
	p.b = o.End()
}

func appendUser(dst []byte, m *llm.User) []byte {
	if m.Content.Blocks == nil {
		return appendPlain(dst, "user", m.Content.Text)
	}
	if len(m.Content.Blocks) == 0 {
		return dst
	}
	o := jsonwire.Begin(dst)
	o.Text("role", "user")
	o.Key("content")
	p := parts{b: append(o.B, '[')}
	for _, b := range m.Content.Blocks {
		switch b := b.(type) {
		case *llm.Text:
			p.text(b.Text)
		case *llm.Image:
			p.image(b)
		}
	}
	o.B = append(p.b, ']')
	return o.End()
}

// appendAssistant appends an answer without its blank parts.
func appendAssistant(dst []byte, m *llm.Assistant) []byte {
	given := len(dst)
	o := jsonwire.Begin(dst)
	o.Text("role", "assistant")
	o.Bool("prefix", false)
	said := appendAnswer(&o, m.Content)
	called := appendCalls(&o, m.Content)
	if !said && !called {
		return dst[:given]
	}
	return o.End()
}

// appendAnswer appends the content of an answer, when there is any.
func appendAnswer(o *jsonwire.Object, content []llm.Block) bool {
	p := parts{}
	part := func() {
		if p.n == 0 {
			o.Key("content")
			p.b = append(o.B, '[')
		}
	}
	for _, b := range content {
		switch b := b.(type) {
		case *llm.Text:
			if !jsonwire.Blank(b.Text) {
				part()
				p.text(b.Text)
			}
		case *llm.Thinking:
			if s := jsonwire.DropSurrogates(b.Thinking); !b.Redacted && !jsonwire.Blank(s) {
				part()
				p.thinking(s)
			}
		}
	}
	if p.n == 0 {
		return false
	}
	o.B = append(p.b, ']')
	return true
}

// appendCalls appends the tool calls of an answer, when there are any.
func appendCalls(o *jsonwire.Object, content []llm.Block) bool {
	p := parts{}
	for _, b := range content {
		c, ok := b.(*llm.ToolCall)
		if !ok {
			continue
		}
		if p.n == 0 {
			o.Key("tool_calls")
			p.b = append(o.B, '[')
		}
		call := p.next()
		call.Text("id", c.ID)
		call.Text("type", "function")
		call.Key("function")
		f := jsonwire.Begin(call.B)
		f.Text("name", c.Name)
		f.Key("arguments")
		f.B = jsonwire.AppendString(f.B, compactOr(c.Current(), "{}"))
		call.B = f.End()
		call.Int("index", 0)
		p.b = call.End()
	}
	if p.n == 0 {
		return false
	}
	o.B = append(p.b, ']')
	return true
}

// compactOr is v in its compact form, other when it is no JSON.
func compactOr(v jsontext.Value, other string) []byte {
	b, err := jsonwire.AppendCompact(nil, v)
	if err != nil {
		return []byte(other)
	}
	return b
}

func appendResult(dst []byte, m *llm.ToolResult, images bool) []byte {
	pictures := 0
	for _, b := range m.Content {
		if _, ok := b.(*llm.Image); ok && images {
			pictures++
		}
	}
	text := jsonwire.Trim(llm.TextOf(m.Content, "\n"))
	switch {
	case text != "":
	case pictures > 0:
		text = textAttachedImage
	default:
		text = textNoOutput
	}
	if m.IsError {
		text = textToolError + text
	}
	o := jsonwire.Begin(dst)
	o.Text("role", "tool")
	o.Text("name", m.ToolName)
	o.Key("content")
	p := parts{b: append(o.B, '[')}
	p.text(text)
	if pictures > 0 {
		for _, b := range m.Content {
			if image, ok := b.(*llm.Image); ok {
				p.image(image)
			}
		}
	}
	o.B = append(p.b, ']')
	o.Text("tool_call_id", m.ToolCallID)
	return o.End()
}

// appendTools appends the declarations of tools as an array. Its error says
// which tool cannot be declared the way it demands.
func appendTools(dst []byte, tools []llm.Tool, strict bool) ([]byte, error) {
	dst = append(dst, '[')
	for i := range tools {
		t := &tools[i]
		parameters, enforced, err := wire.StrictTool(t, strict, true, nil)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		o := jsonwire.Begin(dst)
		o.Text("type", "function")
		o.Key("function")
		f := jsonwire.Begin(o.B)
		f.Text("name", t.Name)
		f.Text("description", t.Description)
		f.Raw("parameters", parameters)
		f.Bool("strict", enforced)
		o.B = f.End()
		dst = o.End()
	}
	return append(dst, ']'), nil
}
