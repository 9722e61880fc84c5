package bedrock

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// emptyText stands for a message or result that says nothing, which the service
// refuses.
const emptyText = "<empty>"

// ImageTypeError says that the service does not take a kind of picture.
type ImageTypeError struct{ MimeType string }

func (e *ImageTypeError) Error() string { return "Unknown image type: " + e.MimeType }

// encode fills the slot of one message.
func (x *exchange) encode(m llm.Message, e *encoded) error {
	var err error
	switch m := m.(type) {
	case *llm.User:
		e.json, err = encodeUser(m)
	case *llm.Assistant:
		e.json = x.encodeAssistant(m)
	case *llm.ToolResult:
		err = x.encodeResult(m, e)
	}
	e.done = err == nil
	return err
}

func appendText(b []byte, text string) []byte {
	b = append(b, `{"text":`...)
	b = jsonwire.AppendString(b, text)
	return append(b, '}')
}

func appendImage(b []byte, m *llm.Image) ([]byte, error) {
	var format string
	switch m.MimeType {
	case "image/jpeg", "image/jpg":
		format = "jpeg"
	case "image/png":
		format = "png"
	case "image/gif":
		format = "gif"
	case "image/webp":
		format = "webp"
	default:
		return b, &ImageTypeError{MimeType: m.MimeType}
	}
	b = fmt.Appendf(b, `{"image":{"format":%q,"source":{"bytes":`, format)
	b = jsonwire.AppendString(b, m.Data)
	return append(b, `}}}`...), nil
}

// comma parts what was appended behind from by a comma.
func comma(b []byte, from int) []byte {
	if len(b) > from {
		return append(b, ',')
	}
	return b
}

// sizeOf is about how many bytes blocks take when they are encoded.
func sizeOf(blocks []llm.Block) int {
	n := 64
	for _, c := range blocks {
		switch c := c.(type) {
		case *llm.Text:
			n += 16 + len(c.Text) + len(c.Text)/8
		case *llm.Thinking:
			n += 80 + len(c.Thinking) + len(c.Thinking)/8
			if c.Signature != nil {
				n += len(*c.Signature)
			}
		case *llm.Image:
			n += 64 + len(c.Data)
		case *llm.ToolCall:
			n += 64 + len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

func encodeUser(m *llm.User) ([]byte, error) {
	content := m.Content.Blocks
	if content == nil {
		content = []llm.Block{&llm.Text{Text: m.Content.Text}}
	}
	b := append(make([]byte, 0, sizeOf(content)), userOpening...)
	b, err := appendParts(b, content)
	return append(b, `]}`...), err
}

// appendParts appends the texts that say something and the pictures of content,
// or a text in place of nothing.
func appendParts(b []byte, content []llm.Block) ([]byte, error) {
	from := len(b)
	for _, c := range content {
		switch c := c.(type) {
		case *llm.Text:
			if !jsonwire.Blank(c.Text) {
				b = appendText(comma(b, from), c.Text)
			}
		case *llm.Image:
			var err error
			if b, err = appendImage(comma(b, from), c); err != nil {
				return b, err
			}
		}
	}
	if len(b) == from {
		b = appendText(b, emptyText)
	}
	return b, nil
}

// encodeAssistant is an answer, nil when it says nothing.
func (x *exchange) encodeAssistant(m *llm.Assistant) []byte {
	b := append(make([]byte, 0, sizeOf(m.Content)), assistantOpening...)
	from := len(b)
	for _, c := range m.Content {
		switch c := c.(type) {
		case *llm.Text:
			if !jsonwire.Blank(c.Text) {
				b = appendText(comma(b, from), c.Text)
			}
		case *llm.Thinking:
			b = x.appendReasoning(b, from, c)
		case *llm.ToolCall:
			b = append(comma(b, from), `{"toolUse":{"toolUseId":`...)
			b = jsonwire.AppendString(b, c.ID)
			b = append(b, `,"name":`...)
			b = jsonwire.AppendString(b, c.Name)
			b = append(b, `,"input":`...)
			b = appendInput(b, c.Arguments)
			b = append(b, `}}`...)
		}
	}
	if len(b) == from {
		return nil
	}
	return append(b, `]}`...)
}

// appendReasoning appends a block of reasoning, or nothing. Only Claude signs
// its reasoning, and takes back only what it signed; other models refuse the
// member.
func (x *exchange) appendReasoning(b []byte, from int, t *llm.Thinking) []byte {
	signature := ""
	if t.Signature != nil && !jsonwire.Blank(*t.Signature) {
		signature = *t.Signature
	}
	switch {
	case t.Redacted:
		if _, err := base64.StdEncoding.DecodeString(signature); err != nil || signature == "" {
			return b // nothing that the service could read
		}
		b = append(comma(b, from), `{"reasoningContent":{"redactedContent":`...)
		b = jsonwire.AppendString(b, signature)
		return append(b, `}}`...)
	case x.kind.claude && signature != "":
		b = append(comma(b, from), `{"reasoningContent":{"reasoningText":{"text":`...)
		b = jsonwire.AppendString(b, t.Thinking)
		b = append(b, `,"signature":`...)
		b = jsonwire.AppendString(b, signature)
		return append(b, `}}}`...)
	case jsonwire.Blank(t.Thinking):
		return b
	}
	text := jsonwire.DropSurrogates(t.Thinking)
	if x.kind.claude {
		return appendText(comma(b, from), text)
	}
	b = append(comma(b, from), `{"reasoningContent":{"reasoningText":{"text":`...)
	b = jsonwire.AppendString(b, text)
	return append(b, `}}}`...)
}

// encodeResult encodes a tool result as a block, and what is to follow all
// results of its message.
func (x *exchange) encodeResult(m *llm.ToolResult, e *encoded) error {
	content := m.Content
	var after []byte
	if x.kind.claude && m.IsError {
		var err error
		if content, after, err = imagesApart(m); err != nil {
			return err
		}
	}
	b := append(make([]byte, 0, sizeOf(content)+len(m.ToolCallID)), `{"toolResult":{"toolUseId":`...)
	b = jsonwire.AppendString(b, m.ToolCallID)
	b = append(b, `,"content":[`...)
	b, err := appendParts(b, content)
	if err != nil {
		return err
	}
	if m.IsError {
		b = append(b, `],"status":"error"}}`...)
	} else {
		b = append(b, `],"status":"success"}}`...)
	}
	e.json = b
	if after != nil {
		e.rare = &rare{after: after}
	}
	return nil
}

// imagesApart takes the pictures out of a result, as Claude takes none in one
// that failed: content has a text for each run of them, after the blocks with
// the pictures, each with a comma in front; nil for none.
func imagesApart(m *llm.ToolResult) (content []llm.Block, after []byte, err error) {
	inRun := false
	for _, c := range m.Content {
		img, ok := c.(*llm.Image)
		if !ok {
			content, inRun = append(content, c), false
			continue
		}
		if !inRun {
			content = append(content, &llm.Text{Text: transcript.ImageAfterResults})
		}
		inRun = true
		if after == nil {
			after = appendText(append(after, ','), transcript.ErrorImagesTitle(m))
		}
		if after, err = appendImage(append(after, ','), img); err != nil {
			return nil, nil, err
		}
	}
	return content, after, nil
}

// appendInput appends the arguments of a call without members whose name is
// empty, which the service refuses at any depth.
func appendInput(b []byte, args jsontext.Value) []byte {
	at := len(b)
	b, err := jsonwire.AppendCompact(b, args)
	if err != nil || b[at] != '{' {
		return append(b[:at], `{}`...)
	}
	if !bytes.Contains(b[at:], []byte(`"":`)) {
		return b
	}
	var r jsonwire.Reader
	r.Reset(bytes.Clone(b[at:]))
	return appendNamed(b[:at], &r)
}

// appendNamed appends the next value without members whose name is empty.
func appendNamed(b []byte, r *jsonwire.Reader) []byte {
	switch r.Kind() {
	case '{':
		b = append(b, '{')
		from := len(b)
		for r.Object(); r.More(); {
			key := string(r.Key())
			if key == "" {
				r.Skip()
				continue
			}
			b = append(jsonwire.AppendString(comma(b, from), key), ':')
			b = appendNamed(b, r)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		from := len(b)
		for r.Array(); r.More(); {
			b = appendNamed(comma(b, from), r)
		}
		return append(b, ']')
	default:
		return append(b, r.Raw()...)
	}
}
