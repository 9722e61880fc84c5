package faux

import (
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// usage estimates the tokens of a call that is answered with content.
func (a *API) usage(c Call, content []llm.Block) llm.Usage {
	prompt := render(c.Request.Messages)
	u := llm.Usage{Input: tokens(prompt), Output: tokens(blocksText(content))}
	if id := c.Request.SessionID; id != "" && c.Request.CacheRetention != "none" {
		a.mu.Lock()
		shared := commonPrefix(a.cached[id], prompt)
		a.cached[id] = prompt
		a.mu.Unlock()
		u.Input, u.CacheRead, u.CacheWrite = 0, tokens(prompt[:shared]), tokens(prompt[shared:])
	}
	u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	u.Cost = c.Model.Cost.Price(&u)
	return u
}

func tokens(text string) int64 {
	return int64((jsonwire.UTF16Len(text) + tokenChars - 1) / tokenChars)
}

// commonPrefix is the length in bytes of what a and b share, in whole characters.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

// render is a prompt as text: role and text of each message.
func render(messages []llm.Message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(string(m.Role()))
		b.WriteByte(':')
		switch m := m.(type) {
		case *llm.System:
			b.WriteString(contentText(m.Content))
			for _, s := range m.Sections {
				b.WriteString("\n" + s.Text)
			}
			for i := range m.ToolsAdded {
				b.WriteByte('\n')
				b.Write(m.ToolsAdded[i].AppendJSON(nil))
			}
		case *llm.User:
			b.WriteString(contentText(m.Content))
		case *llm.Assistant:
			b.WriteString(blocksText(m.Content))
		case *llm.ToolResult:
			b.WriteString(m.ToolName + "\n" + blocksText(m.Content))
		}
	}
	return b.String()
}

func contentText(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return blocksText(c.Blocks)
}

func blocksText(blocks []llm.Block) string {
	parts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		switch b := b.(type) {
		case *llm.Text:
			parts = append(parts, b.Text)
		case *llm.Thinking:
			parts = append(parts, b.Thinking)
		case *llm.ToolCall:
			parts = append(parts, b.Name+":"+string(b.Arguments))
		case *llm.Image:
			parts = append(parts, "[image:"+b.MimeType+"]")
		}
	}
	return strings.Join(parts, "\n")
}
