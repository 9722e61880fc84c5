package session_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

func TestIDs(t *testing.T) {
	at := time.UnixMilli(0x0123456789AB)
	id, err := session.NewID(at, bytes.NewReader(bytes.Repeat([]byte{0xFF}, 16)))
	if err != nil || id != "01234567-89ab-7fff-bfff-ffffffffffff" {
		t.Errorf("%s, %v", id, err)
	}
	if _, err := session.NewID(at, bytes.NewReader(nil)); err == nil {
		t.Error("an id without randomness")
	}
	// A source that repeats itself collides; after a hundred draws the id is a
	// whole UUID, and none is given twice.
	o := options()
	o.ID, o.Rand = "fixed", zeros{}
	s, err := session.Open(memory.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := say(t, s, "1"), say(t, s, "2")
	if a.ID != "00000000" || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4`).MatchString(b.ID) {
		t.Errorf("ids %s, %s", a.ID, b.ID)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAppendRules(t *testing.T) {
	s, _ := open(t, header)
	for _, d := range []session.Data{
		&session.MessageEntry{},
		&session.MessageEntry{Message: &session.BranchSummary{Summary: "x"}},
		&session.MessageEntry{Message: &session.CompactionSummary{Summary: "x"}},
		&session.UnknownEntry{Type: "session"},
		&session.UnknownEntry{},
	} {
		if _, err := s.Append(d); kindOf(err) != session.BadEntry {
			t.Errorf("%#v: %v", d, err)
		}
	}
	if _, err := s.SetLabel("gone", "x"); kindOf(err) != session.NotFound {
		t.Error(err)
	}
	e, err := s.Append(&session.UnknownEntry{Type: "mark", Raw: []byte(`{"type":"x","at":[1, 2]}`)})
	if err != nil || e.Type != "mark" || !bytes.Contains(e.Raw(), []byte(`"type":"mark","at":[1,2],"id":"`)) {
		t.Errorf("%s, %v", e.Raw(), err)
	}
	c, err := s.AppendMessage(&session.Custom{CustomType: "n", Content: llm.Plain("x"), Display: true, Timestamp: 1})
	if err != nil || c.Type != session.TypeCustomMessage {
		t.Errorf("%v, %v", c, err)
	}
	// The second attempt at an answer edits the first one away.
	a, err := s.AppendMessage(&llm.Assistant{Content: []llm.Block{}, StopReason: llm.StopError, Timestamp: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(&session.ContextEditEntry{TargetID: a.ID}); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Context().Messages); got != 1 {
		t.Errorf("%d messages", got)
	}
}

func TestStats(t *testing.T) {
	s, _ := open(t, header)
	say(t, s, "q")
	u := llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, TotalTokens: 10, Cost: llm.Cost{Total: 0.5, TotalFromProvider: new(true)}}
	reasoning := u
	reasoning.Reasoning = new(int64(7))
	call := &llm.ToolCall{ID: "c", Name: "read", Arguments: []byte("{}")}
	for _, d := range []session.Data{
		&session.MessageEntry{Message: &llm.Assistant{Content: []llm.Block{call, call}, Usage: u, StopReason: llm.StopToolUse}},
		&session.MessageEntry{Message: &llm.ToolResult{ToolCallID: "c", Content: []llm.Block{}, Usage: &u}},
		&session.MessageEntry{Message: &llm.ToolResult{ToolCallID: "c", Content: []llm.Block{}}},
		&session.UsageEntry{Purpose: "warm", Usage: reasoning},
		&session.CompactionEntry{Summary: "S", Usage: &u},
	} {
		if _, err := s.Append(d); err != nil {
			t.Fatal(err)
		}
	}
	half := s.Stats()
	if half.Messages != 4 || half.UserMessages != 1 || half.AssistantMessages != 1 || half.ToolCalls != 2 || half.ToolResults != 2 {
		t.Errorf("%+v", half)
	}
	s.ResetLeaf() // abandoned branches count too
	if _, err := s.BranchWithSummary("", session.BranchSummaryEntry{Summary: "B", Usage: &u}); err != nil {
		t.Fatal(err)
	}
	got := s.Stats().Usage
	if got.Input != 5 || got.TotalTokens != 50 || *got.Reasoning != 7 || got.CacheWrite1h != nil || got.Cost.Total != 2.5 || !*got.Cost.TotalFromProvider {
		t.Errorf("%+v", got)
	}
	if sum := session.AddUsage(u, llm.Usage{}); *sum.Cost.TotalFromProvider {
		t.Error("a sum with an unbilled part counts as billed")
	}
}

func TestTokens(t *testing.T) {
	tests := []struct {
		m    interface{ AppendJSON([]byte) []byte }
		want int64
	}{
		{llm.UserText("12345", 0), 2},
		{llm.UserText("😀😀", 0), 1},
		{&llm.User{Content: llm.Blocks(&llm.Image{Data: "A"})}, 1200},
		{&llm.Assistant{Content: []llm.Block{&llm.Thinking{Thinking: "1234"}, &llm.ToolCall{Name: "read", Arguments: []byte(`{ "a": 1 }`)}}}, 4},
		{&session.BashExecution{Command: "ls", Output: "ab", ExcludeFromContext: true}, 1},
		{&session.CompactionSummary{Summary: "12345678"}, 2},
		{&llm.System{Content: llm.Plain("12"), Sections: []llm.Section{{Name: "x", Text: "34"}}, ToolsAdded: []llm.Tool{{Name: "n", Description: "d", Parameters: []byte("{}")}}}, 13},
		{&session.Unknown{Raw: []byte(`{"role":"x"}`)}, 0},
	}
	for _, tt := range tests {
		m, err := session.ParseMessage(tt.m.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := session.Tokens(m); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.m.AppendJSON(nil), got, tt.want)
		}
	}
}

func TestImageBlocker(t *testing.T) {
	image, text := &llm.Image{Data: "A", MimeType: "image/png"}, &llm.Text{Text: "x"}
	in := []agent.Message{
		&llm.User{Content: llm.Blocks(text, image, image, text, image)},
		llm.UserText("no image", 1),
		&llm.ToolResult{Content: []llm.Block{image}},
		&session.Custom{Content: llm.Blocks(image)},
		&llm.Assistant{Content: []llm.Block{text}},
	}
	var b session.ImageBlocker
	got := b.ToLLM(in)
	if again := b.ToLLM(in); !slices.Equal(got, again) {
		t.Error("the same messages gave other pointers")
	}
	if got[1] != in[1] || got[4] != in[4] {
		t.Error("messages without images changed")
	}
	if n := len(got[0].(*llm.User).Content.Blocks); n != 4 {
		t.Errorf("%d blocks", n)
	}
	for _, m := range got {
		if bytes.Contains(m.AppendJSON(nil), []byte("image/png")) {
			t.Errorf("%s", m.AppendJSON(nil))
		}
	}
	if len(in[0].(*llm.User).Content.Blocks) != 5 {
		t.Error("the transcript changed")
	}
}
