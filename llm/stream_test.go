package llm_test

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestStreamOfASequence(t *testing.T) {
	freed := 0
	words := func(yield func(llm.Event) bool) {
		defer func() { freed++ }()
		text := &llm.Text{}
		m := &llm.Assistant{Content: []llm.Block{text}}
		for _, w := range []string{"a ", "b ", "c"} {
			text.Text += w
			yield(llm.Event{Type: llm.EventTextDelta, Delta: w, Partial: m})
		}
		m.StopReason = llm.StopStop
		yield(llm.Event{Type: llm.EventDone, Message: m})
	}

	s := llm.StreamOf(words)
	var got strings.Builder
	for ev := range s.Events() {
		got.WriteString(ev.Delta)
	}
	if m := s.Result(); got.String() != "a b c" || m.Text() != "a b c" || freed != 1 {
		t.Errorf("deltas %q, message %+v, freed %d times", got.String(), m, freed)
	}

	s = llm.StreamOf(words)
	if ev, ok := s.Next(); !ok || ev.Delta != "a " {
		t.Fatalf("first event %+v, %v", ev, ok)
	}
	s.Close()
	s.Close()
	if ev, ok := s.Next(); ok || freed != 2 {
		t.Errorf("after Close: %+v, freed %d times", ev, freed)
	}

	unread := llm.StreamOf(func(func(llm.Event) bool) { t.Error("a sequence that nobody read has begun") })
	unread.Close()
}
