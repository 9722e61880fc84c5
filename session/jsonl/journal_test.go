package jsonl_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func note(t *testing.T, s *session.Session, line string) {
	t.Helper()
	if err := s.AppendJournal([]byte(line+"\n"), false); err != nil {
		t.Fatal(err)
	}
}

func journalOf(t *testing.T, s *session.Session) string {
	t.Helper()
	b, err := s.LoadJournal()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s: %v", path, err)
	}
}

// TestJournal is the life of a journal: made by the first note, left behind by a
// close, taken up with its torn end, and taken away.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := jsonl.NewStore(path, jsonl.Options{}).AppendJournal([]byte("too early\n"), false); kindOf(err) != session.Closed {
		t.Errorf("a note before there is a session: %v", err)
	}
	s := open(t, path)
	say(t, s, "hello")
	before := read1(t, path)
	if got := journalOf(t, s); got != "" {
		t.Errorf("a journal of nothing: %q", got)
	}
	if err := s.RemoveJournal(); err != nil {
		t.Error(err)
	}
	gone(t, path+".run")
	note(t, s, "one")
	note(t, s, "two")
	if info, err := os.Stat(path + ".run"); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := jsonl.Open(path, jsonl.Options{}); kindOf(err) != session.Busy {
		t.Errorf("a second writer: %v", err)
	}
	reader, err := jsonl.Open(path, jsonl.Options{Options: session.Options{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	if reader.HasJournal() || journalOf(t, reader) != "" || reader.RemoveJournal() != nil {
		t.Error("a reader has the journal")
	}
	reader.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendJournal([]byte("late\n"), false); kindOf(err) != session.Closed {
		t.Errorf("a note behind the close: %v", err)
	}
	write(t, path+".run", "one\ntwo\nto") // torn
	s = open(t, path)
	if got := journalOf(t, s); got != "one\ntwo\nto" {
		t.Errorf("after the crash: %q", got)
	}
	note(t, s, "three")
	if got := read1(t, path+".run"); got != "one\ntwo\nto\nthree\n" {
		t.Errorf("gone on with: %q", got)
	}
	if err := s.RemoveJournal(); err != nil {
		t.Error(err)
	}
	gone(t, path+".run")
	note(t, s, "four")
	s.Close()
	s = open(t, path)
	if got := journalOf(t, s); got != "four\n" || s.RemoveJournal() != nil {
		t.Errorf("the next one: %q", got)
	}
	gone(t, path+".run")
	s.Close()
	if read1(t, path) != before {
		t.Error("the session file has changed")
	}
}

// TestJournalIsBounded drops notes of no more use once they are many.
func TestJournalIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	defer s.Close()
	say(t, s, "hello")
	size := func() int64 {
		info, err := os.Stat(path + ".run")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	line := strings.Repeat("x", 100_000)
	for range 100 {
		if err := s.AppendJournal([]byte("fresh\n"), true); err != nil {
			t.Fatal(err)
		}
		note(t, s, line)
		if n := size(); n > 1<<20+200_000 {
			t.Fatalf("%d bytes", n)
		}
	}
	for range 30 { // of one answer all count
		note(t, s, line)
	}
	if n := size(); n < 3_000_000 {
		t.Errorf("%d bytes are left of 3 million", n)
	}
}

// TestJournalOnAFullDisk leaves no part of a note, and takes the next one.
func TestJournalOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	room, broken, noSync := int64(-1), false, false
	store := jsonl.NewStore(path, jsonl.Options{})
	store.OpenWith(func(f *os.File) jsonl.File { return brittle{f, &room, &broken, &noSync} })
	s, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say(t, s, "hello")
	note(t, s, "first")
	full := func() {
		t.Helper()
		err := s.AppendJournal([]byte("a longer second\n"), false)
		if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != session.DiskFull || e.Path != path+".run" || !strings.Contains(e.Advice, "free some space") {
			t.Fatal(err)
		}
	}
	noSync = true // which nobody asked for
	note(t, s, "second")
	room = 5
	full()
	if got := read1(t, path+".run"); got != "first\nsecond\n" {
		t.Errorf("left %q", got)
	}
	broken = true // the rest of the write cannot be taken back now
	full()
	room, broken = -1, false
	note(t, s, "third")
	if got := read1(t, path+".run"); got != "first\nsecond\nthird\n" {
		t.Errorf("left %q", got)
	}
}

// TestJournalIsSynced makes each note durable where that is asked for, and takes
// back one that is not.
func TestJournalIsSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	room, broken, noSync := int64(-1), false, false
	store := jsonl.NewStore(path, jsonl.Options{Sync: true})
	store.OpenWith(func(f *os.File) jsonl.File { return brittle{f, &room, &broken, &noSync} })
	s, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say(t, s, "hello")
	note(t, s, "first")
	noSync = true
	if err := s.AppendJournal([]byte("second\n"), false); kindOf(err) != session.IO {
		t.Errorf("a note that is not durable: %v", err)
	}
	if got := read1(t, path+".run"); got != "first\n" {
		t.Errorf("left %q", got)
	}
	noSync = false
}

// TestJournalThatCannotBeRead is left as it is, and kept from being written to.
func TestJournalThatCannotBeRead(t *testing.T) {
	for name, put := range map[string]func(run string) error{
		"a folder":  func(run string) error { return os.Mkdir(run, 0o700) },
		"too large": func(run string) error { return os.WriteFile(run, make([]byte, 5000), 0o600) },
		"a link": func(run string) error {
			if err := os.WriteFile(run+".target", []byte("precious\n"), 0o600); err != nil {
				return err
			}
			err := os.Symlink(run+".target", run)
			if err != nil && runtime.GOOS == "windows" { // which asks for a right to make one
				return os.Mkdir(run, 0o700)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.jsonl")
			s := open(t, path)
			say(t, s, "hello")
			s.Close()
			if err := put(path + ".run"); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(path + ".run")
			s, err := jsonl.Open(path, jsonl.Options{MaxLine: 1000})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.LoadJournal()
			if e, ok := errors.AsType[*session.Error](err); !ok || e.Path != path+".run" || e.Advice == "" {
				t.Errorf("loading: %v", err)
			}
			if again := s.AppendJournal([]byte("x\n"), true); !errors.Is(again, err) {
				t.Errorf("a note: %v", again)
			}
			if err := s.RemoveJournal(); err != nil {
				t.Error(err)
			}
			after, err := os.Lstat(path + ".run")
			if err != nil || after.Size() != before.Size() || after.Mode() != before.Mode() {
				t.Errorf("it was changed: %v", err)
			}
			say(t, s, "the conversation goes on")
		})
	}
}

// TestJournalsBesideSessions are no sessions, and go where their session goes.
func TestJournalsBesideSessions(t *testing.T) {
	r := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "sessions")}
	cwd := t.TempDir()
	path := create(t, r, "cut", cwd, "hello")
	write(t, path+".run", read1(t, path)) // looks like one, too
	if all, err := r.ListAll(t.Context(), nil); err != nil || len(all) != 1 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	for _, arg := range []string{"cut", "cu"} {
		if m, err := r.Find(t.Context(), cwd, arg); err != nil || m.Path != path {
			t.Errorf("%q finds %s, %v", arg, m.Path, err)
		}
	}
	if newest, err := r.Newest(cwd); err != nil || newest != path {
		t.Errorf("the newest is %s, %v", newest, err)
	}
	write(t, path+".run", "notes\n")
	fork, err := r.ForkFrom(path, session.Options{CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	if got := journalOf(t, fork); got != "notes\n" {
		t.Errorf("the fork has %q", got)
	}
	fork.Close()
	other := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "sessions")}
	s, err := other.Import(path, cwd)
	if err != nil {
		t.Fatal(err)
	}
	if got := journalOf(t, s); got != "notes\n" {
		t.Errorf("the import has %q", got)
	}
	s.Close()
	if err := r.Delete(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	gone(t, path+".run")
	if got := read1(t, fork.File()+".run"); got != "notes\n" {
		t.Errorf("the fork is left with %q", got)
	}
	// What cannot be copied is not left out without a word.
	bad := create(t, r, "bad", cwd, "hello")
	if err := os.Mkdir(bad+".run", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ForkFrom(bad, session.Options{CWD: cwd}); err == nil || !strings.Contains(err.Error(), ".jsonl.run") {
		t.Errorf("fork: %v", err)
	}
	if all, err := r.ListAll(t.Context(), nil); err != nil || len(all) != 2 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
}
