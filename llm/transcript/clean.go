package transcript

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

const (
	userImageOmitted = "(image omitted: model does not support images)"
	toolImageOmitted = "(tool image omitted: model does not support images)"

	// namelessTool stands for a call without a name, which every service refuses.
	namelessTool = "unknown_tool"

	maxIDLen = 64
)

func sameModel(m *llm.Assistant, target *llm.Model) bool {
	return m.Model == target.ID && m.API == target.API && m.Provider == target.Provider
}

// own returns content itself when it is a copy of given already, else a copy.
func own(content, given []llm.Block) []llm.Block {
	if aliases(content, given) {
		return append(make([]llm.Block, 0, len(given)), given...)
	}
	return content
}

func aliases(a, b []llm.Block) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// rewrite is a copy-on-write walk over the blocks of one message.
type rewrite struct {
	given []llm.Block
	out   []llm.Block // nil while nothing has changed
}

// change begins the copy, which holds the first n given blocks.
func (r *rewrite) change(n int) {
	if r.out == nil {
		r.out = append(make([]llm.Block, 0, len(r.given)), r.given[:n]...)
	}
}

func (r *rewrite) keep(b llm.Block) {
	if r.out != nil {
		r.out = append(r.out, b)
	}
}

func (r *rewrite) result() []llm.Block {
	if r.out == nil {
		return r.given
	}
	return r.out
}

// cleanText is t without halves of surrogate pairs and, for another model,
// without its signature.
func cleanText(t *llm.Text, same bool) *llm.Text {
	surrogates := jsonwire.HasSurrogate(t.Text)
	if !surrogates && (same || t.Signature == nil) {
		return t
	}
	n := *t
	if surrogates {
		n.Text = jsonwire.DropSurrogates(t.Text)
	}
	if !same {
		n.Signature = nil
	}
	return &n
}

// cleanThinking is t without halves of surrogate pairs, which services refuse as
// bad JSON, signed or not.
func cleanThinking(t *llm.Thinking) *llm.Thinking {
	if !jsonwire.HasSurrogate(t.Thinking) {
		return t
	}
	n := *t
	n.Thinking = jsonwire.DropSurrogates(t.Thinking)
	return &n
}

// cleanAnswer is the content of an assistant message without what its target
// cannot take. Tool calls stay as they are.
func cleanAnswer(m *llm.Assistant, same bool) []llm.Block {
	r := rewrite{given: m.Content}
	for i, b := range m.Content {
		switch b := b.(type) {
		case *llm.Text:
			t := cleanText(b, same)
			if t != b {
				r.change(i)
			}
			r.keep(t)
			continue
		case *llm.Thinking:
			if !same {
				break
			}
			t := cleanThinking(b)
			if t.Redacted || t.Signature != nil && *t.Signature != "" || !jsonwire.Blank(t.Thinking) {
				if t != b {
					r.change(i)
				}
				r.keep(t)
				continue
			}
		case *llm.ToolCall:
			r.keep(b)
			continue
		}
		r.change(i)
	}
	return r.result()
}

// cleanParts is the content of a user message or tool result with texts and
// pictures only; omitted stands for pictures that the target does not take, ""
// when it does.
func cleanParts(content []llm.Block, omitted string) []llm.Block {
	r := rewrite{given: content}
	after := false // directly behind an omitted
	for i, b := range content {
		switch b := b.(type) {
		case *llm.Text:
			t := cleanText(b, true)
			if t != b {
				r.change(i)
			}
			r.keep(t)
			after = omitted != "" && b.Text == omitted
			continue
		case *llm.Image:
			if omitted == "" {
				r.keep(b)
				continue
			}
			r.change(i)
			if !after {
				r.keep(&llm.Text{Text: omitted})
			}
			after = true
			continue
		}
		r.change(i)
	}
	return r.result()
}

func cleanUser(m *llm.User, images bool) *llm.User {
	c := m.Content
	if c.Blocks == nil {
		c.Text = jsonwire.DropSurrogates(c.Text)
		if len(c.Text) == len(m.Content.Text) {
			return m
		}
	} else {
		omitted := userImageOmitted
		if images {
			omitted = ""
		}
		c.Blocks = cleanParts(c.Blocks, omitted)
		if aliases(c.Blocks, m.Content.Blocks) {
			return m
		}
	}
	n := *m
	n.Content = c
	return &n
}

func cleanResult(m *llm.ToolResult, images bool) *llm.ToolResult {
	omitted := toolImageOmitted
	if images {
		omitted = ""
	}
	content := cleanParts(m.Content, omitted)
	if aliases(content, m.Content) {
		return m
	}
	n := *m
	n.Content = content
	return &n
}

// variantID is the rule for Rules.VariantID where there is none.
func variantID(id string, n int) string {
	if id == "" {
		id = "call"
	}
	call, item, hasItem := strings.Cut(id, "|")
	suffix := "_" + strconv.Itoa(n)
	if keep := maxIDLen - len(suffix); len(call) > keep {
		for keep > 0 && !utf8.RuneStart(call[keep]) {
			keep--
		}
		call = call[:keep]
	}
	if hasItem {
		return call + suffix + "|" + item
	}
	return call + suffix
}
