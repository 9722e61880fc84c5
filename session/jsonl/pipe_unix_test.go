//go:build unix

package jsonl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// TestPipesDoNotHang puts pipes, into which nobody writes, where sessions and
// locks are looked for. Whoever opens one waits for ever.
func TestPipesDoNotHang(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "endless.jsonl")); err != nil {
		t.Fatal(err)
	}
	r := &jsonl.Repository{Folder: dir}
	for _, name := range []string{"pipe.jsonl", "endless.jsonl"} {
		path := filepath.Join(dir, name)
		if _, err := jsonl.Open(path, jsonl.Options{}); kindOf(err) != session.InvalidFile {
			t.Errorf("open %s: %v", name, err)
		}
		if _, err := r.ForkFrom(path, session.Options{CWD: dir}); kindOf(err) != session.InvalidFile {
			t.Errorf("fork %s: %v", name, err)
		}
		if _, err := r.Import(path, dir); kindOf(err) != session.InvalidFile {
			t.Errorf("import %s: %v", name, err)
		}
	}
	ctx := context.Background()
	if list, err := r.ListAll(ctx, nil); err != nil || len(list) != 0 {
		t.Errorf("listed: %v, %v", list, err)
	}
	if _, err := r.Find(ctx, dir, "pipe"); kindOf(err) != session.NotFound {
		t.Errorf("find: %v", err)
	}
	s, err := r.Continue(dir)
	if err != nil || s.Saved() {
		t.Fatalf("continue: %v", err)
	}
	s.Close()

	// A lock that is none cannot be held, and nothing is written to what it is.
	path := filepath.Join(dir, "s.jsonl")
	if err := syscall.Mkfifo(path+".lock", 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	say(t, s, "x")
	s.Close()
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	write(t, other, "precious")
	if err := os.Symlink(other, path+".lock"); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	say(t, s, "y")
	s.Close()
	if got := read1(t, other); got != "precious" {
		t.Errorf("the file behind the lock holds %q", got)
	}
}

// TestFolderIsALinkToNothing begins a session in a folder that cannot be made.
func TestFolderIsALinkToNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sessions")
	if err := os.Symlink("unmounted", root); err != nil {
		t.Fatal(err)
	}
	s, err := (&jsonl.Repository{Root: root}).Create(session.Options{CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.AppendMessage(llm.UserText("hello", 1)); kindOf(err) != session.IO || !strings.Contains(err.Error(), "file exists") {
		t.Errorf("%v", err)
	}
	if e, ok := errors.AsType[*session.Error](err); !ok || !strings.Contains(e.Advice, "link to nothing") {
		t.Errorf("%+v", e)
	}
}

// TestJournalThatCannotBeMade names the folder: there is no file to put right.
func TestJournalThatCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	s := open(t, filepath.Join(dir, "s.jsonl"))
	defer s.Close()
	say(t, s, "hello")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	err := s.AppendJournal([]byte("x\n"), true)
	if e, ok := errors.AsType[*session.Error](err); !ok || !strings.Contains(e.Advice, "folder of a session") {
		t.Errorf("%v", err)
	}
}
