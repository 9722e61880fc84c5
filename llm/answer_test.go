package llm_test

import (
	"errors"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestAnErrorOfAnAnswer(t *testing.T) {
	text := []llm.Block{&llm.Thinking{Thinking: "hm"}, &llm.Text{Text: "par"}, &llm.Text{Text: "tial"}}
	for _, c := range []struct {
		name       string
		answer     *llm.Assistant
		text, fail string
	}{
		{"none", nil, "", "there is no answer"},
		{"good", &llm.Assistant{Content: text, StopReason: llm.StopStop}, "partial", ""},
		{"calls", &llm.Assistant{StopReason: llm.StopToolUse}, "", ""},
		{"cut", &llm.Assistant{Content: text, StopReason: llm.StopLength}, "partial", ""},
		{"failed", &llm.Assistant{Content: text, StopReason: llm.StopError, ErrorMessage: "529 overloaded"}, "partial", "529 overloaded"},
		{"failed silently", &llm.Assistant{StopReason: llm.StopError}, "", "the answer failed"},
		{"aborted", &llm.Assistant{Content: text, StopReason: llm.StopAborted}, "partial", "the answer was aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.answer.Text(); got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
			err := c.answer.Err()
			if c.fail == "" {
				if err != nil {
					t.Errorf("error %v", err)
				}
				return
			}
			e, ok := errors.AsType[*llm.AnswerError](err)
			if !ok || e.Error() != c.fail {
				t.Fatalf("error %v, want %q", err, c.fail)
			}
			if c.answer != nil && e.Reason != c.answer.StopReason {
				t.Errorf("reason %q, want %q", e.Reason, c.answer.StopReason)
			}
		})
	}
}

func TestTextOfMessages(t *testing.T) {
	blocks := []llm.Block{&llm.Text{Text: "a"}, &llm.Image{}, &llm.Text{Text: "b"}}
	for want, m := range map[string]interface{ Text() string }{
		"plain": &llm.User{Content: llm.Plain("plain")},
		"ab":    &llm.User{Content: llm.Blocks(blocks...)},
		"b":     &llm.ToolResult{Content: blocks[1:]},
	} {
		if got := m.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
