package session_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// TestStores is what every Store must do.
func TestStores(t *testing.T) {
	// Each maker gives a function that opens one log again and again.
	stores := map[string]func(t *testing.T) func() session.Store{
		"memory": func(t *testing.T) func() session.Store {
			s := memory.New()
			return func() session.Store { return s }
		},
		"jsonl": func(t *testing.T) func() session.Store {
			path := filepath.Join(t.TempDir(), "deep", "s.jsonl")
			return func() session.Store { return jsonl.NewStore(path, jsonl.Options{}) }
		},
		"jsonl, synced": func(t *testing.T) func() session.Store {
			path := filepath.Join(t.TempDir(), "s.jsonl")
			return func() session.Store { return jsonl.NewStore(path, jsonl.Options{Sync: true}) }
		},
	}
	load := func(t *testing.T, s session.Store, want string, exists bool) session.Position {
		t.Helper()
		log, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		data, err := log.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != want || log.Exists != exists || log.Torn != (want != "" && want[len(want)-1] != '\n') {
			t.Fatalf("loaded %q, exists %v, torn %v, want %q", data, log.Exists, log.Torn, want)
		}
		return log.Next
	}
	for name, make := range stores {
		t.Run(name, func(t *testing.T) {
			open := make(t)
			s := open()
			if next := load(t, s, "", false); next != 0 {
				t.Fatalf("a new log begins at %d", next)
			}
			next, err := s.Append(0, []byte("one\ntwo\n"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append(0, []byte("again\n")); kindOf(err) != session.Exists {
				t.Errorf("creating it again: %v", err)
			}
			if _, err := s.Append(next+1, []byte("elsewhere\n")); kindOf(err) != session.Conflict {
				t.Errorf("append at another place: %v", err)
			}
			if _, err := s.Replace(next-1, []byte("elsewhere\n")); kindOf(err) != session.Conflict {
				t.Errorf("replace at another place: %v", err)
			}
			if next, err = s.Append(next, []byte("torn")); err != nil {
				t.Fatal(err)
			}
			if err := s.Sync(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}

			s = open()
			if again := load(t, s, "one\ntwo\ntorn", true); again != next {
				t.Errorf("next is %d after loading, was %d", again, next)
			}
			if next, err = s.Append(next, []byte("\n")); err != nil {
				t.Fatal(err)
			}
			if next, err = s.Replace(next, []byte("new\n")); err != nil {
				t.Fatal(err)
			}
			if _, err = s.Append(next, bytes.Repeat([]byte("long\n"), 50_000)); err != nil {
				t.Fatal(err)
			}
			s.Close()

			s = open()
			load(t, s, "new\n"+string(bytes.Repeat([]byte("long\n"), 50_000)), true)
			s.Close()
		})
	}
}

// TestExclusive creates one log twice.
func TestExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	a, b := jsonl.NewStore(path, jsonl.Options{}), jsonl.NewStore(path, jsonl.Options{})
	for _, s := range []*jsonl.Store{a, b} {
		if _, err := s.Load(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Append(0, []byte("a\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(0, []byte("b\n")); kindOf(err) != session.Busy {
		t.Errorf("while the first has it: %v", err)
	}
	a.Close()
	if _, err := b.Append(0, []byte("b\n")); kindOf(err) != session.Exists {
		t.Errorf("after the first: %v", err)
	}
	b.Close()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
