package llm

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// ParseMessage reads a message in the form of session files. Roles that a model
// does not know give an *UnknownRoleError. Wrong kinds of values read as absent
// ones, as old files hold null where lists are expected.
func ParseMessage(raw []byte) (Message, error) {
	role, _ := jsonwire.StringValue(jsonwire.Get(raw, "role"))
	var r jsonwire.Reader
	r.Reset(raw)
	m, err := ReadMessage(&r, Role(role))
	if unknown, ok := err.(*UnknownRoleError); ok {
		if err := jsonwire.Check(raw); err != nil {
			return nil, err
		}
		return nil, unknown
	}
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ReadMessage is ParseMessage for the value at which r stands, whose role is
// known already. Of another role than the four it reads nothing.
func ReadMessage(r *jsonwire.Reader, role Role) (Message, error) {
	var m Message
	switch role {
	case RoleSystem:
		m = readSystem(r)
	case RoleUser:
		m = readUser(r)
	case RoleAssistant:
		m = readAssistant(r)
	case RoleToolResult:
		m = readToolResult(r)
	default:
		return nil, &UnknownRoleError{Role: string(role)}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// UnknownRoleError says that a message has a role that no model knows.
type UnknownRoleError struct{ Role string }

func (e *UnknownRoleError) Error() string { return fmt.Sprintf("unknown message role %q", e.Role) }

func raw(r *jsonwire.Reader) jsontext.Value {
	if r.Null() {
		return nil
	}
	return r.Keep()
}

func extra(r *jsonwire.Reader, list []Member, key []byte) []Member {
	name := string(key)
	return append(list, Member{Name: name, Value: r.Keep()})
}

func optText(r *jsonwire.Reader) *string {
	if r.Kind() != '"' {
		r.Skip()
		return nil
	}
	return new(r.Text())
}

func optInt(r *jsonwire.Reader) *int64 {
	if r.Kind() != '0' {
		r.Skip()
		return nil
	}
	return new(r.Int())
}

func optBool(r *jsonwire.Reader) *bool {
	if k := r.Kind(); k != 't' && k != 'f' {
		r.Skip()
		return nil
	}
	return new(r.Bool())
}

func readSystem(r *jsonwire.Reader) *System {
	m := &System{}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "content":
			m.Content = ReadContent(r)
		case "sections":
			for r.Object(); r.More(); {
				s := Section{Name: string(r.Key())}
				if r.Null() {
					s.Removed = true
				} else {
					s.Text = r.Text()
				}
				m.Sections = append(m.Sections, s)
			}
		case "toolsAdded":
			for r.Array(); r.More(); {
				m.ToolsAdded = append(m.ToolsAdded, ReadTool(r))
			}
		case "toolsRemoved":
			for r.Array(); r.More(); {
				name, _ := jsonwire.StringValue(jsonwire.Get(r.Raw(), "name"))
				m.ToolsRemoved = append(m.ToolsRemoved, name)
			}
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = extra(r, m.Extra, k)
		}
	}
	return m
}

func readUser(r *jsonwire.Reader) *User {
	m := &User{Content: Content{Blocks: []Block{}}}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "content":
			if r.Null() {
				continue
			}
			m.Content = ReadContent(r)
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = extra(r, m.Extra, k)
		}
	}
	return m
}

func readAssistant(r *jsonwire.Reader) *Assistant {
	m := &Assistant{Content: []Block{}}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "content":
			m.Content = ReadBlocks(r)
		case "api":
			m.API = r.Text()
		case "provider":
			m.Provider = r.Text()
		case "model":
			m.Model = r.Text()
		case "responseModel":
			m.ResponseModel = r.Text()
		case "responseId":
			m.ResponseID = r.Text()
		case "providerThinkingLevel":
			m.ProviderThinkingLevel = r.Text()
		case "thinkingLevel":
			m.ThinkingLevel = ThinkingLevel(r.Text())
		case "diagnostics":
			for r.Array(); r.More(); {
				m.Diagnostics = append(m.Diagnostics, readDiagnostic(r))
			}
		case "usage":
			m.Usage = ReadUsage(r)
		case "stopReason":
			m.StopReason = StopReason(r.Text())
		case "deferred":
			m.Deferred = raw(r)
		case "errorMessage":
			m.ErrorMessage = r.Text()
		case "rawStopReason":
			m.RawStopReason = r.Text()
		case "endTurn":
			m.EndTurn = optBool(r)
		case "timestamp":
			m.Timestamp = r.Int()
		case "durationMs":
			m.DurationMs = optInt(r)
		default:
			m.Extra = extra(r, m.Extra, k)
		}
	}
	return m
}

func readToolResult(r *jsonwire.Reader) *ToolResult {
	m := &ToolResult{Content: []Block{}}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "toolCallId":
			m.ToolCallID = r.Text()
		case "toolName":
			m.ToolName = r.Text()
		case "content":
			m.Content = ReadBlocks(r)
		case "details":
			m.Details = raw(r)
		case "usage":
			if r.Kind() == '{' {
				m.Usage = new(ReadUsage(r))
			} else {
				r.Skip()
			}
		case "nestedCalls":
			m.NestedCalls = raw(r)
		case "isError":
			m.IsError = r.Bool()
		case "timestamp":
			m.Timestamp = r.Int()
		case "durationMs":
			m.DurationMs = optInt(r)
		default:
			m.Extra = extra(r, m.Extra, k)
		}
	}
	return m
}

func readDiagnostic(r *jsonwire.Reader) Diagnostic {
	var d Diagnostic
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "type":
			d.Type = r.Text()
		case "timestamp":
			d.Timestamp = r.Int()
		case "error":
			d.Error = &DiagnosticError{}
			for r.Object(); r.More(); {
				switch string(r.Key()) {
				case "name":
					d.Error.Name = r.Text()
				case "message":
					d.Error.Message = r.Text()
				case "stack":
					d.Error.Stack = r.Text()
				case "code":
					d.Error.Code = raw(r)
				default:
					r.Skip()
				}
			}
		case "details":
			d.Details = raw(r)
		default:
			d.Extra = extra(r, d.Extra, k)
		}
	}
	return d
}

// ReadContent reads a message's content: a string, or a list of blocks. Other
// kinds read as the empty string.
func ReadContent(r *jsonwire.Reader) Content {
	if r.Kind() == '[' {
		return Content{Blocks: ReadBlocks(r)}
	}
	return Content{Text: r.Text()}
}

// ReadBlocks reads a list of content blocks, never nil. A string reads as one
// text block; elements that are no objects are left out.
func ReadBlocks(r *jsonwire.Reader) []Block {
	if r.Kind() == '"' {
		return []Block{&Text{Text: r.Text()}}
	}
	var few [8]Block
	blocks := few[:0]
	for r.Array(); r.More(); {
		if r.Kind() != '{' {
			r.Skip()
			continue
		}
		if b := readBlock(r); b != nil {
			blocks = append(blocks, b)
		}
	}
	return append(make([]Block, 0, len(blocks)), blocks...)
}

// readBlock reads a content block in one go, of the type that its first member
// belongs to: writers that sort members put the type last. Where that turns out
// wrong the block is read once more.
func readBlock(r *jsonwire.Reader) Block {
	r.Kind()
	at := r.Offset()
	var b memberReader
	typed, wrong := false, false
	for r.Object(); r.More(); {
		k := r.Key()
		if string(k) == "type" {
			name := r.String()
			if b == nil {
				b = newBlock(name)
			}
			typed = true
			wrong = wrong || b == nil || b.BlockType() != string(name)
			continue
		}
		if b == nil {
			b = newBlock(typeOfMember(k))
		}
		if wrong || b == nil {
			wrong = true
			r.Skip()
			continue
		}
		b.read(r, k)
	}
	switch {
	case r.Err() != nil:
		return nil
	case typed && !wrong:
		return finished(b)
	}
	r.Rewind(at)
	src := r.Keep()
	typ, _ := jsonwire.StringValue(jsonwire.Get(src, "type"))
	if b = newBlock([]byte(typ)); b == nil {
		return &UnknownBlock{Type: typ, Raw: src}
	}
	r.Rewind(at)
	for r.Object(); r.More(); {
		if k := r.Key(); string(k) == "type" {
			r.Skip()
		} else {
			b.read(r, k)
		}
	}
	return finished(b)
}

// memberReader is a block that is being read.
type memberReader interface {
	Block
	read(r *jsonwire.Reader, key []byte)
}

// finished fills in what a block must not lack.
func finished(b memberReader) Block {
	if c, ok := b.(*ToolCall); ok && c.Arguments == nil {
		c.Arguments = jsontext.Value("{}")
	}
	return b
}

// newBlock is an empty block of a type, nil for types that are not known.
func newBlock(typ []byte) memberReader {
	switch string(typ) {
	case "text":
		return &Text{}
	case "thinking":
		return &Thinking{}
	case "image":
		return &Image{}
	case "toolCall":
		return &ToolCall{}
	}
	return nil
}

// typeOfMember is the type of block that has a member of that name.
func typeOfMember(name []byte) []byte {
	switch string(name) {
	case "text", "textSignature":
		return []byte("text")
	case "thinking", "thinkingSignature", "redacted":
		return []byte("thinking")
	case "data", "mimeType":
		return []byte("image")
	case "id", "name", "arguments", "argumentsError", "thoughtSignature", "namespace":
		return []byte("toolCall")
	}
	return nil
}

func (t *Text) read(r *jsonwire.Reader, key []byte) {
	switch string(key) {
	case "text":
		t.Text = r.Text()
	case "textSignature":
		t.Signature = optText(r)
	default:
		t.Extra = extra(r, t.Extra, key)
	}
}

func (t *Thinking) read(r *jsonwire.Reader, key []byte) {
	switch string(key) {
	case "thinking":
		t.Thinking = r.Text()
	case "thinkingSignature":
		t.Signature = optText(r)
	case "redacted":
		t.Redacted = r.Bool()
	default:
		t.Extra = extra(r, t.Extra, key)
	}
}

func (m *Image) read(r *jsonwire.Reader, key []byte) {
	switch string(key) {
	case "data":
		m.Data = r.Text()
	case "mimeType":
		m.MimeType = r.Text()
	default:
		m.Extra = extra(r, m.Extra, key)
	}
}

func (c *ToolCall) read(r *jsonwire.Reader, key []byte) {
	switch string(key) {
	case "id":
		c.ID = r.Text()
	case "name":
		c.Name = r.Text()
	case "arguments":
		if r.Kind() == '{' {
			c.Arguments = r.Keep()
		} else {
			r.Skip()
		}
	case "thoughtSignature":
		c.ThoughtSignature = optText(r)
	case "namespace":
		c.Namespace = r.Text()
	case "argumentsError":
		c.ArgumentsError = r.Text()
	default:
		c.Extra = extra(r, c.Extra, key)
	}
}

// ReadTool reads a tool declaration.
func ReadTool(r *jsonwire.Reader) Tool {
	var t Tool
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "name":
			t.Name = r.Text()
		case "description":
			t.Description = r.Text()
		case "parameters":
			t.Parameters = raw(r)
		case "constrainedSampling":
			t.ConstrainedSampling = raw(r)
		default:
			t.Extra = extra(r, t.Extra, k)
		}
	}
	return t
}

// money reads an amount. One beyond all that a float holds reads as 0, as what is
// no number does: JSON has no word for an infinite one to write it with.
func money(r *jsonwire.Reader) float64 {
	f := r.Float()
	if math.IsInf(f, 0) {
		return 0
	}
	return f
}

// ReadUsage reads a usage object.
func ReadUsage(r *jsonwire.Reader) Usage {
	var u Usage
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "input":
			u.Input = r.Int()
		case "output":
			u.Output = r.Int()
		case "cacheRead":
			u.CacheRead = r.Int()
		case "cacheWrite":
			u.CacheWrite = r.Int()
		case "cacheWrite1h":
			u.CacheWrite1h = optInt(r)
		case "reasoning":
			u.Reasoning = optInt(r)
		case "totalTokens":
			u.TotalTokens = r.Int()
		case "cost":
			for r.Object(); r.More(); {
				switch k := r.Key(); string(k) {
				case "input":
					u.Cost.Input = money(r)
				case "output":
					u.Cost.Output = money(r)
				case "cacheRead":
					u.Cost.CacheRead = money(r)
				case "cacheWrite":
					u.Cost.CacheWrite = money(r)
				case "total":
					u.Cost.Total = money(r)
				case "totalFromProvider":
					u.Cost.TotalFromProvider = optBool(r)
				default:
					u.Cost.Extra = extra(r, u.Cost.Extra, k)
				}
			}
		default:
			u.Extra = extra(r, u.Extra, k)
		}
	}
	return u
}
