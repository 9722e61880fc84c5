package session_test

import (
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// The revision of a context tells whether it only grew.
func TestRevision(t *testing.T) {
	s, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say := func(text string) *session.Entry {
		e, err := s.AppendMessage(llm.UserText(text, 1))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := say("one")
	was := s.Context().Revision
	check := func(what string, changed bool) {
		t.Helper()
		now := s.Context().Revision
		if (now != was) != changed {
			t.Errorf("%s: revision %d after %d", what, now, was)
		}
		was = now
	}
	last := say("two")
	check("a message", false)
	if _, err := s.SetName("name"); err != nil {
		t.Fatal(err)
	}
	check("a name", false)
	if _, err := s.Append(&session.ContextEditEntry{TargetID: last.ID}); err != nil {
		t.Fatal(err)
	}
	check("an edit", true)
	if err := s.Branch(first.ID); err != nil {
		t.Fatal(err)
	}
	check("a branch", true)
	say("three")
	check("a message on the branch", false)
	if _, err := s.Append(&session.CompactionEntry{Summary: "so far"}); err != nil {
		t.Fatal(err)
	}
	check("a compaction", true)
}
