package session_test

import (
	"fmt"
	"math/rand/v2"
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

// The path that is kept from call to call is the one that a walk gives, wherever
// the leaf goes, and lists given out stay as they were.
func TestPathFollowsTheLeaf(t *testing.T) {
	s, _ := open(t, header)
	r := rand.New(rand.NewPCG(1, 2))
	type given struct {
		list []*session.Entry
		want string
	}
	var all []*session.Entry
	var out []given
	for i := range 500 {
		if len(all) > 0 && r.IntN(8) == 0 {
			if err := s.Branch(all[r.IntN(len(all))].ID); err != nil {
				t.Fatal(err)
			}
		} else {
			e, err := s.Append(&session.MessageEntry{Message: llm.UserText(fmt.Sprint(i), int64(i))})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		if r.IntN(3) == 0 {
			continue
		}
		list := s.Path()
		want := ids(s.PathTo(list[len(list)-1].ID))
		if got := ids(list); got != want {
			t.Fatalf("step %d: %s, want %s", i, got, want)
		}
		out = append(out, given{list, want})
		_ = append(list, all[0]) // as a caller may
	}
	for _, g := range out {
		if got := ids(g.list); got != g.want {
			t.Fatalf("a list that was given out became %s, was %s", got, g.want)
		}
	}
}
