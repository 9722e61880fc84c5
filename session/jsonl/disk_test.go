package jsonl_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// harm is what another program does to the file of an open session, and how it
// is put right; a nil heal leaves it.
type harm struct {
	do, heal func(t *testing.T, path string)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func moveAway(t *testing.T, path string) { t.Helper(); must(t, os.Rename(path, path+".away")) }

func moveBack(t *testing.T, path string) {
	t.Helper()
	must(t, os.RemoveAll(path))
	must(t, os.Rename(path+".away", path))
}

var harms = map[string]harm{
	"moved away": {moveAway, moveBack},
	"deleted":    {func(t *testing.T, path string) { must(t, os.Remove(path)) }, nil},
	"folder moved away": {
		func(t *testing.T, path string) { moveAway(t, filepath.Dir(path)) },
		func(t *testing.T, path string) { moveBack(t, filepath.Dir(path)) },
	},
	"folder deleted": {func(t *testing.T, path string) { must(t, os.RemoveAll(filepath.Dir(path))) }, nil},
	"folder in its place": {
		func(t *testing.T, path string) { moveAway(t, path); must(t, os.Mkdir(path, 0o700)) }, moveBack,
	},
	"link to nowhere in its place": {
		func(t *testing.T, path string) { moveAway(t, path); must(t, os.Symlink("nowhere", path)) }, moveBack,
	},
	"other file in its place": {
		func(t *testing.T, path string) { moveAway(t, path); write(t, path, "other\n") }, moveBack,
	},
	"other file of its length, then a copy": {
		func(t *testing.T, path string) {
			text := []byte(read1(t, path))
			moveAway(t, path)
			text[len(text)-2] ^= 1
			write(t, path, string(text))
		},
		func(t *testing.T, path string) {
			text := read1(t, path+".away")
			must(t, os.Remove(path))
			write(t, path, text)
		},
	},
	"cut": {
		func(t *testing.T, path string) {
			write(t, path+".away", read1(t, path))
			must(t, os.Truncate(path, 50))
		},
		func(t *testing.T, path string) { write(t, path, read1(t, path+".away")) },
	},
	"emptied": {
		func(t *testing.T, path string) { write(t, path+".away", read1(t, path)); write(t, path, "") },
		func(t *testing.T, path string) { write(t, path, read1(t, path+".away")) },
	},
	"written to": {
		func(t *testing.T, path string) { write(t, path, read1(t, path)+"{}\n") },
		func(t *testing.T, path string) {
			st, err := os.Stat(path)
			must(t, err)
			must(t, os.Truncate(path, st.Size()-3))
		},
	},
}

// TestFileHarmed lets another program do things to the file of an open session.
// An append says so and writes nowhere, the session stays as it was and can be
// kept, and goes on once the file is back.
func TestFileHarmed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows lets nobody move or remove a file that is open")
	}
	for name, h := range harms {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sessions", "s.jsonl")
			s := open(t, path)
			defer s.Close()
			first := say(t, s, "first")
			whole := read1(t, path)
			h.do(t, path)
			harmed, _ := os.ReadFile(path)
			for range 2 {
				_, err := s.AppendMessage(llm.UserText("not now", 1))
				if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != session.Conflict || e.Advice == "" || e.Path != path {
					t.Fatalf("got %v", err)
				}
			}
			if now, _ := os.ReadFile(path); string(now) != string(harmed) || s.Leaf() != first {
				t.Errorf("something was written: %q", now)
			}
			kept := filepath.Join(dir, "kept.jsonl")
			if err := jsonl.Export(s, kept, jsonl.ExportOptions{Tree: true}); err != nil || read1(t, kept) != whole {
				t.Errorf("not kept: %v", err)
			}
			if h.heal == nil {
				return
			}
			h.heal(t, path)
			say(t, s, "second")
			say(t, s, "third")
			must(t, s.Close())
			s = open(t, path)
			defer s.Close()
			if len(s.Entries()) != 3 || read1(t, path)[:len(whole)] != whole {
				t.Errorf("the file holds\n%s", read1(t, path))
			}
		})
	}
}

// TestFolderIsGoneBeforeTheFirstMessage makes the folder again.
func TestFolderIsGoneBeforeTheFirstMessage(t *testing.T) {
	r := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "agent", "sessions")}
	s, err := r.Create(session.Options{CWD: "/srv/demo"})
	must(t, err)
	defer s.Close()
	if err := os.RemoveAll(filepath.Dir(r.Root)); err != nil {
		t.Fatal(err)
	}
	say(t, s, "hello")
	if !s.Saved() {
		t.Error("not saved")
	}
}

// TestNameIsTakenBeforeTheFirstMessage puts something else where a new session
// will be.
func TestNameIsTakenBeforeTheFirstMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	defer s.Close()
	must(t, os.Mkdir(path, 0o700))
	if _, err := s.AppendMessage(llm.UserText("x", 1)); kindOf(err) != session.Exists {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(path))
	say(t, s, "hello")
}
