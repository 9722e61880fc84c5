package compact_test

import (
	"errors"
	"testing"

	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

func checkKind(t testing.TB, err error, want compact.Kind) {
	t.Helper()
	if !errors.Is(err, &compact.Error{Kind: want}) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDecide(t *testing.T) {
	model := &llm.Model{Provider: "p", ID: "m", ContextWindow: 1000, MaxTokens: 100}
	settings := compact.Settings{ReserveTokens: new(int64(200))}
	type answer struct {
		stop   llm.StopReason
		text   string
		model  string
		input  int64
		output int64
	}
	for _, c := range []struct {
		name      string
		answer    answer
		after     string // what stands behind the answer: a compaction, or an edit that takes it out
		recovered bool
		before    bool
		off       bool
		want      compact.Reason
		again     bool // the answer is to be repeated
		gaveUp    bool
	}{
		{name: "room enough", answer: answer{stop: llm.StopStop, input: 800}},
		{name: "one token more", answer: answer{stop: llm.StopStop, input: 801}, want: compact.Threshold},
		{name: "of another model too", answer: answer{stop: llm.StopStop, input: 801, model: "other"}, want: compact.Threshold},
		{name: "switched off", answer: answer{stop: llm.StopStop, input: 2000}, off: true},
		{name: "calls", answer: answer{stop: llm.StopToolUse, input: 2000}, want: compact.Threshold},
		{name: "cut by the service", answer: answer{stop: llm.StopStop, input: 1001}, want: compact.Overflow},
		{name: "of another model it is only much", answer: answer{stop: llm.StopStop, input: 1001, model: "other"}, want: compact.Threshold},
		{name: "refused", answer: answer{stop: llm.StopError, text: "prompt is too long"}, want: compact.Overflow, again: true},
		{name: "refused again", answer: answer{stop: llm.StopError, text: "prompt is too long"}, recovered: true, gaveUp: true},
		{name: "refused to another model", answer: answer{stop: llm.StopError, text: "prompt is too long", model: "other"}},
		{name: "no room to end", answer: answer{stop: llm.StopLength, input: 700, output: 99}, want: compact.Overflow, again: true},
		{name: "at its own limit", answer: answer{stop: llm.StopLength, input: 600, output: 100}},
		{name: "no room to begin", answer: answer{stop: llm.StopLength, input: 990}, want: compact.Overflow, again: true},
		{name: "another failure", answer: answer{stop: llm.StopError, text: "overloaded", input: 5000}},
		{name: "aborted", answer: answer{stop: llm.StopAborted, input: 900}},
		{name: "aborted, before a prompt", answer: answer{stop: llm.StopAborted, input: 900}, before: true, want: compact.Threshold},
		{name: "compacted since", answer: answer{stop: llm.StopStop, input: 2000}, after: "compaction"},
		{name: "compacted since, before a prompt", answer: answer{stop: llm.StopStop, input: 2000}, after: "compaction", before: true},
		{name: "taken out", answer: answer{stop: llm.StopError, text: "prompt is too long"}, after: "edit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sketch(t, "u1")
			a := &llm.Assistant{
				Content: []llm.Block{}, API: "a", Provider: "p", Model: "m", StopReason: c.answer.stop,
				ErrorMessage: c.answer.text, Timestamp: 1, Usage: llm.Usage{Input: c.answer.input, Output: c.answer.output},
			}
			if c.answer.model != "" {
				a.Model = c.answer.model
			}
			e, err := s.AppendMessage(a)
			if err != nil {
				t.Fatal(err)
			}
			switch c.after {
			case "edit":
				appendAll(t, s, &session.ContextEditEntry{TargetID: e.ID})
			case "compaction":
				appendAll(t, s, &session.CompactionEntry{Summary: "x"}, &session.MessageEntry{Message: llm.UserText("x", 1)})
			}
			set := settings
			set.Disabled = c.off
			d := compact.Decide(compact.Situation{
				Path: s.Path(), Model: model, Settings: set, BeforePrompt: c.before, Recovered: c.recovered,
			})
			if d.Reason != c.want || d.GaveUp != c.gaveUp || (d.Answer != nil) != c.again {
				t.Errorf("got %+v", d)
			}
			if c.again && d.Answer != e {
				t.Errorf("takes out %v", d.Answer)
			}
		})
	}
}

func TestDecideWithEdits(t *testing.T) {
	model := &llm.Model{Provider: "p", ID: "m", ContextWindow: 1000}
	s := sketch(t, "u1")
	question := s.LeafID()
	appendAll(t, s, answered(900, llm.StopStop), &session.ContextEditEntry{TargetID: question, Replacement: new(llm.Plain("x"))})
	set := compact.Settings{ReserveTokens: new(int64(200))}
	if d := compact.Decide(compact.Situation{Path: s.Path(), Model: model, Settings: set}); d.Reason != "" || d.Tokens != 2 {
		t.Errorf("a count from before an edit is trusted: %+v", d)
	}
}

func TestBetween(t *testing.T) {
	model := &llm.Model{Provider: "p", ID: "m", ContextWindow: 1000}
	set := compact.Settings{ReserveTokens: new(int64(200))}
	s := sketch(t, "u1")
	appendAll(t, s, answered(700, llm.StopToolUse))
	if d := compact.Between(s.Path(), model, set, nil); d.Reason != "" || d.Tokens != 700 {
		t.Errorf("%+v", d)
	}
	appendAll(t, s, sketchData(400)...)
	if d := compact.Between(s.Path(), model, set, nil); d.Reason != compact.Threshold || d.Tokens != 801 {
		t.Errorf("%+v", d)
	}
	unknown := *model
	unknown.ContextWindow = 0
	if d := compact.Between(s.Path(), &unknown, set, nil); d.Reason != "" {
		t.Errorf("a window that is not known is full: %+v", d)
	}
	set.Disabled = true
	if d := compact.Between(s.Path(), model, set, nil); d.Reason != "" {
		t.Errorf("compacts although it is off: %+v", d)
	}
}

// sketchData is a result of a call of one token more than a quarter of n.
func sketchData(n int) []session.Data {
	text := make([]byte, n+4)
	for i := range text {
		text[i] = 'x'
	}
	return []session.Data{&session.MessageEntry{Message: &llm.ToolResult{
		ToolCallID: "c", ToolName: "t", Content: []llm.Block{&llm.Text{Text: string(text)}}, Timestamp: 1,
	}}}
}
