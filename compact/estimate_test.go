package compact_test

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

func answered(tokens int64, stop llm.StopReason) *session.MessageEntry {
	return &session.MessageEntry{Message: &llm.Assistant{
		Content: []llm.Block{&llm.Text{Text: "xxxx"}}, Provider: "p", Model: "m", API: "a",
		StopReason: stop, Timestamp: 1, Usage: llm.Usage{Input: tokens},
	}}
}

func appendAll(t testing.TB, s *session.Session, data ...session.Data) {
	t.Helper()
	for _, d := range data {
		if _, err := s.Append(d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEstimatePath(t *testing.T) {
	t.Run("nothing measured", func(t *testing.T) {
		s := sketch(t, "y2 u3 a4 y5")
		if e := compact.EstimatePath(s.Path()); e.Tokens != 3+4+8 || e.Last != -1 || e.Measured != 0 {
			t.Errorf("%+v", e) // 2 and 5 tokens of prompt are one of 30 characters
		}
	})
	t.Run("measured", func(t *testing.T) {
		s := sketch(t, "u3")
		appendAll(t, s, answered(100, llm.StopStop), &session.CustomEntry{CustomType: "n"}, &session.MessageEntry{Message: llm.UserText("xxxxxxxx", 1)})
		want := compact.Estimate{Tokens: 102, Measured: 100, Trailing: 2, Last: 1}
		if e := compact.EstimatePath(s.Path()); e != want {
			t.Errorf("%+v", e)
		}
		// An answer that failed counts for its text alone.
		appendAll(t, s, answered(900, llm.StopError))
		if e := compact.EstimatePath(s.Path()); e.Tokens != 103 {
			t.Errorf("%+v", e)
		}
	})
	for name, data := range map[string]session.Data{
		"an edit":      &session.ContextEditEntry{},
		"a compaction": &session.CompactionEntry{Summary: "xxxxxxxx"},
	} {
		t.Run(name+" ends the trust", func(t *testing.T) {
			s := sketch(t, "u3")
			appendAll(t, s, answered(100, llm.StopStop))
			if edit, ok := data.(*session.ContextEditEntry); ok {
				edit.TargetID = s.LeafID()
			}
			appendAll(t, s, data)
			if _, ok := compact.MeasuredPath(s.Path()); ok {
				t.Error("the count is trusted still")
			}
			if e := compact.EstimatePath(s.Path()); e.Measured != 0 || e.Tokens > 5 {
				t.Errorf("%+v", e)
			}
			appendAll(t, s, answered(50, llm.StopStop))
			if e, ok := compact.MeasuredPath(s.Path()); !ok || e.Tokens != 50 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A Meter gives what EstimatePath gives, whatever happens to the conversation.
func TestMeter(t *testing.T) {
	for _, counts := range []bool{true, false} {
		s := sketch(t, "y2")
		var m compact.Meter
		check := func(step string) {
			t.Helper()
			if got, want := m.Tokens(s.Path()), compact.EstimatePath(s.Path()).Tokens; got != want {
				t.Errorf("counts %v, %s: %d, want %d", counts, step, got, want)
			}
		}
		check("nothing")
		var ids []string
		for i := range 12 {
			e, err := s.AppendMessage(llm.UserText(strings.Repeat("word ", 10*i+1), int64(i)))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
			check("question")
			a := answered(0, llm.StopStop)
			if counts {
				a = answered(int64(100*i+7), llm.StopStop)
			}
			appendAll(t, s, a)
			check("answer")
		}
		appendAll(t, s, &session.ContextEditEntry{TargetID: ids[3]})
		check("edit")
		appendAll(t, s, answered(0, llm.StopStop))
		check("behind an edit")
		if err := s.Branch(ids[5]); err != nil {
			t.Fatal(err)
		}
		check("another branch")
	}
	if got := (*compact.Meter)(nil).Tokens(nil); got != 0 {
		t.Errorf("no meter, no path: %d", got)
	}
}

func TestSettings(t *testing.T) {
	m := &llm.Model{Provider: "p", ID: "m"}
	s := compact.Settings{
		Disabled: true, ReserveTokens: new(int64(7)),
		Overrides: map[string]compact.Override{"p/m": {Enabled: new(true), KeepRecentTokens: new(int64(0))}},
	}
	if got, want := s.For(m), (compact.Limits{Enabled: true, ReserveTokens: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := s.For(nil), (compact.Limits{ReserveTokens: 7, KeepRecentTokens: compact.DefaultKeepRecentTokens}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := (compact.Settings{}).For(m), (compact.Limits{Enabled: true, ReserveTokens: 16384, KeepRecentTokens: 20000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []compact.Settings{
		{ReserveTokens: new(int64(-1))},
		{KeepRecentTokens: new(int64(-1))},
		{Overrides: map[string]compact.Override{"p/m": {ReserveTokens: new(int64(-1))}}},
		{Overrides: map[string]compact.Override{"p/m": {KeepRecentTokens: new(int64(-1))}}},
	} {
		checkKind(t, bad.Validate(), compact.InvalidSettings)
	}
}
