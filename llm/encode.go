package llm

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// members appends the members that this version does not know.
func members(o *jsonwire.Object, list []Member) {
	for _, m := range list {
		o.Member(m.Name, m.Value)
	}
}

// AppendJSON appends c as JSON: a string or a list of blocks.
func (c Content) AppendJSON(dst []byte) []byte {
	if c.Blocks == nil {
		return jsonwire.AppendString(dst, c.Text)
	}
	return AppendBlocks(dst, c.Blocks)
}

// AppendBlocks appends blocks as a JSON array.
func AppendBlocks(dst []byte, blocks []Block) []byte {
	return jsonwire.AppendArray(dst, blocks, Block.AppendJSON)
}

// AppendTools appends tools as a JSON array.
func AppendTools(dst []byte, tools []Tool) []byte {
	return jsonwire.AppendArray(dst, tools, func(t Tool, b []byte) []byte { return t.AppendJSON(b) })
}

// AppendJSON implements Message.
func (m *System) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleSystem))
	o.Key("content")
	o.B = m.Content.AppendJSON(o.B)
	if len(m.Sections) > 0 {
		o.Key("sections")
		o.B = append(o.B, '{')
		for i, s := range m.Sections {
			if i > 0 {
				o.B = append(o.B, ',')
			}
			o.B = jsonwire.AppendString(o.B, s.Name)
			o.B = append(o.B, ':')
			if s.Removed {
				o.B = append(o.B, "null"...)
			} else {
				o.B = jsonwire.AppendString(o.B, s.Text)
			}
		}
		o.B = append(o.B, '}')
	}
	if len(m.ToolsAdded) > 0 {
		o.Key("toolsAdded")
		o.B = AppendTools(o.B, m.ToolsAdded)
	}
	if len(m.ToolsRemoved) > 0 {
		o.Key("toolsRemoved")
		o.B = jsonwire.AppendArray(o.B, m.ToolsRemoved, func(name string, b []byte) []byte {
			return append(jsonwire.AppendString(append(b, `{"name":`...), name), '}')
		})
	}
	o.Int("timestamp", m.Timestamp)
	members(&o, m.Extra)
	return o.End()
}

// AppendJSON implements Message.
func (m *User) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleUser))
	o.Key("content")
	o.B = m.Content.AppendJSON(o.B)
	o.Int("timestamp", m.Timestamp)
	members(&o, m.Extra)
	return o.End()
}

// AppendJSON implements Message.
func (m *Assistant) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleAssistant))
	o.Key("content")
	o.B = AppendBlocks(o.B, m.Content)
	o.Text("api", m.API)
	o.Text("provider", m.Provider)
	o.Text("model", m.Model)
	o.Key("usage")
	o.B = m.Usage.AppendJSON(o.B)
	o.Text("stopReason", string(m.StopReason))
	o.Int("timestamp", m.Timestamp)
	o.Raw("deferred", m.Deferred)
	o.OptText("errorMessage", m.ErrorMessage)
	o.OptText("responseId", m.ResponseID)
	o.OptText("responseModel", m.ResponseModel)
	o.OptText("rawStopReason", m.RawStopReason)
	o.OptText("providerThinkingLevel", m.ProviderThinkingLevel)
	if m.Diagnostics != nil {
		o.Key("diagnostics")
		o.B = jsonwire.AppendArray(o.B, m.Diagnostics, func(d Diagnostic, b []byte) []byte { return d.AppendJSON(b) })
	}
	if m.EndTurn != nil {
		o.Bool("endTurn", *m.EndTurn)
	}
	o.IntPtr("durationMs", m.DurationMs)
	o.OptText("thinkingLevel", string(m.ThinkingLevel))
	members(&o, m.Extra)
	return o.End()
}

// AppendJSON implements Message.
func (m *ToolResult) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleToolResult))
	o.Text("toolCallId", m.ToolCallID)
	o.Text("toolName", m.ToolName)
	o.Key("content")
	o.B = AppendBlocks(o.B, m.Content)
	o.Raw("details", m.Details)
	if m.Usage != nil {
		o.Key("usage")
		o.B = m.Usage.AppendJSON(o.B)
	}
	o.Raw("nestedCalls", m.NestedCalls)
	o.Bool("isError", m.IsError)
	o.Int("timestamp", m.Timestamp)
	o.IntPtr("durationMs", m.DurationMs)
	members(&o, m.Extra)
	return o.End()
}

// AppendJSON appends d as JSON.
func (d *Diagnostic) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("type", d.Type)
	o.Int("timestamp", d.Timestamp)
	if d.Error != nil {
		o.Key("error")
		e := jsonwire.Begin(o.B)
		e.OptText("name", d.Error.Name)
		e.Text("message", d.Error.Message)
		e.OptText("stack", d.Error.Stack)
		e.Raw("code", d.Error.Code)
		o.B = e.End()
	}
	o.Raw("details", d.Details)
	members(&o, d.Extra)
	return o.End()
}

// AppendJSON appends t as JSON.
func (t *Tool) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("name", t.Name)
	o.Text("description", t.Description)
	o.Raw("parameters", t.Parameters)
	o.Raw("constrainedSampling", t.ConstrainedSampling)
	members(&o, t.Extra)
	return o.End()
}

// AppendJSON appends u as JSON.
func (u *Usage) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Int("input", u.Input)
	o.Int("output", u.Output)
	o.Int("cacheRead", u.CacheRead)
	o.Int("cacheWrite", u.CacheWrite)
	o.Int("totalTokens", u.TotalTokens)
	o.Key("cost")
	c := jsonwire.Begin(o.B)
	c.Float("input", u.Cost.Input)
	c.Float("output", u.Cost.Output)
	c.Float("cacheRead", u.Cost.CacheRead)
	c.Float("cacheWrite", u.Cost.CacheWrite)
	c.Float("total", u.Cost.Total)
	if u.Cost.TotalFromProvider != nil {
		c.Bool("totalFromProvider", *u.Cost.TotalFromProvider)
	}
	members(&c, u.Cost.Extra)
	o.B = c.End()
	o.IntPtr("cacheWrite1h", u.CacheWrite1h)
	o.IntPtr("reasoning", u.Reasoning)
	members(&o, u.Extra)
	return o.End()
}

// AppendJSON implements Block.
func (t *Text) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("type", "text")
	o.Text("text", t.Text)
	o.TextPtr("textSignature", t.Signature)
	members(&o, t.Extra)
	return o.End()
}

// AppendJSON implements Block.
func (t *Thinking) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("type", "thinking")
	o.Text("thinking", t.Thinking)
	o.TextPtr("thinkingSignature", t.Signature)
	if t.Redacted {
		o.Bool("redacted", true)
	}
	members(&o, t.Extra)
	return o.End()
}

// AppendJSON implements Block.
func (m *Image) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("type", "image")
	o.Text("data", m.Data)
	o.Text("mimeType", m.MimeType)
	members(&o, m.Extra)
	return o.End()
}

// AppendJSON implements Block.
func (c *ToolCall) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("type", "toolCall")
	o.Text("id", c.ID)
	o.Text("name", c.Name)
	o.Raw("arguments", c.Current())
	o.TextPtr("thoughtSignature", c.ThoughtSignature)
	o.OptText("namespace", c.Namespace)
	o.OptText("argumentsError", c.ArgumentsError)
	members(&o, c.Extra)
	return o.End()
}

// AppendJSON implements Block.
func (b *UnknownBlock) AppendJSON(dst []byte) []byte {
	n := len(dst)
	dst, err := jsonwire.AppendCompact(dst, b.Raw)
	if err != nil {
		return append(dst[:n], `{"type":"unknown"}`...)
	}
	return dst
}

// MarshalJSON implements json.Marshaler for hosts that use reflection.
func (m *System) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (m *User) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (m *Assistant) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (m *ToolResult) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }
