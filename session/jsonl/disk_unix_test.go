//go:build unix

package jsonl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

const (
	limitEnv  = "PINCH_TEST_LIMITED_SESSION"
	deniedEnv = "PINCH_TEST_DENIED_SESSION"
)

func init() {
	helpers[limitEnv] = func(dir string) { report(limited(dir)) }
	helpers[deniedEnv] = func(dir string) { report(denied(dir)) }
}

// report ends a helper.
func report(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("fine")
	os.Exit(0)
}

// TestLimitOnFileSize meets the limit of the system in the middle of appends, in
// a process of its own.
func TestLimitOnFileSize(t *testing.T) { runHelper(t, limitEnv, t.TempDir()) }

// TestFolderBecomesReadOnly takes the right to write to the folder away, in a
// process that is not the superuser.
func TestFolderBecomesReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "pinch-denied-") // which everybody may enter
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	runHelper(t, deniedEnv, dir)
}

func runHelper(t *testing.T, env, arg string) {
	t.Helper()
	out, err := helper(t, env, arg).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "fine\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// wants checks that an error has a kind and says what to do.
func wants(err error, kind session.Kind) error {
	if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != kind || e.Advice == "" {
		return fmt.Errorf("got %v, want %s", err, kind)
	}
	return nil
}

func limited(dir string) error {
	path := filepath.Join(dir, "s.jsonl")
	var free unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	limit := func(n uint64) error {
		l := free
		if n > 0 {
			l.Cur = n
		}
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
	}
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		return err
	}
	said := 0
	// The very first write, then appends at every place of a line.
	for n := uint64(100); n < 1500; n += 7 {
		if err := limit(n); err != nil {
			return err
		}
		for {
			_, err := s.AppendMessage(llm.UserText(fmt.Sprint("message ", said), 1))
			if err != nil {
				if err := wants(err, session.DiskFull); err != nil {
					return err
				}
				break
			}
			said++
		}
	}
	// A migration has no room either, and leaves the file as it is.
	old := filepath.Join(dir, "old.jsonl")
	text := `{"type":"session","id":"old"}` + "\n" + strings.Repeat(`{"type":"message","message":{"role":"user","content":"hello"}}`+"\n", 30)
	if err := limit(0); err != nil {
		return err
	}
	if err := os.WriteFile(old, []byte(text), 0o600); err != nil {
		return err
	}
	if err := limit(500); err != nil {
		return err
	}
	if _, err := jsonl.Open(old, jsonl.Options{}); wants(err, session.DiskFull) != nil {
		return fmt.Errorf("migration: %v", err)
	}
	if err := wants(jsonl.Export(s, filepath.Join(dir, "out.jsonl"), jsonl.ExportOptions{}), session.DiskFull); err != nil {
		return fmt.Errorf("export: %v", err)
	}
	r := &jsonl.Repository{Folder: filepath.Join(dir, "others")}
	if _, err := r.Import(old, dir); wants(err, session.DiskFull) != nil {
		return fmt.Errorf("import: %v", err)
	}
	if _, err := r.Move(old, dir); wants(err, session.DiskFull) != nil {
		return fmt.Errorf("move: %v", err)
	}
	if err := limit(0); err != nil {
		return err
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != text {
		return fmt.Errorf("the old file holds %q, %v", b, err)
	}
	if _, err := s.AppendMessage(llm.UserText(fmt.Sprint("message ", said), 1)); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = jsonl.Open(path, jsonl.Options{}); err != nil {
		return err
	}
	defer s.Close()
	for i, e := range s.Entries() {
		if !strings.Contains(string(e.Raw()), fmt.Sprintf(`"message %d"`, i)) {
			return fmt.Errorf("entry %d is %s", i, e.Raw())
		}
	}
	if n := len(s.Entries()); n != said+1 || said == 0 {
		return fmt.Errorf("%d entries of %d", n, said+1)
	}
	for _, pattern := range []string{"*", ".*", "others/*", "others/.*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			switch filepath.Base(name) {
			case "s.jsonl", "s.jsonl.lock", "old.jsonl", "others", ".", "..":
			default:
				return fmt.Errorf("left behind: %s", name)
			}
		}
	}
	return nil
}

func denied(dir string) error {
	if os.Getuid() == 0 {
		// The superuser may write everywhere.
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			return err
		}
	}
	folder := filepath.Join(dir, "sessions")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	say := func(s *session.Session, text string) error {
		_, err := s.AppendMessage(llm.UserText(text, 1))
		return err
	}
	open, err := jsonl.Open(filepath.Join(folder, "open.jsonl"), jsonl.Options{})
	if err != nil {
		return err
	}
	old := filepath.Join(folder, "old.jsonl")
	text := `{"type":"session","id":"old"}` + "\n" + `{"type":"message","message":{"role":"user","content":"hello"}}` + "\n"
	fresh, err := jsonl.Open(filepath.Join(folder, "fresh.jsonl"), jsonl.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(say(open, "one"), os.WriteFile(old, []byte(text), 0o600), os.Chmod(folder, 0o500)); err != nil {
		return err
	}

	// A file that is open can be written to; nothing new can be made.
	if err := say(open, "two"); err != nil {
		return err
	}
	for range 2 {
		if err := wants(say(fresh, "one"), session.ReadOnly); err != nil {
			return fmt.Errorf("first message: %v", err)
		}
	}
	if _, err := jsonl.Open(old, jsonl.Options{}); wants(err, session.ReadOnly) != nil {
		return fmt.Errorf("migration: %v", err)
	}
	r := &jsonl.Repository{Folder: folder}
	if _, err := r.Fork(open, open.LeafID(), session.Options{}); wants(err, session.ReadOnly) != nil {
		return fmt.Errorf("fork: %v", err)
	}
	if err := wants(r.Delete(context.Background(), old), session.ReadOnly); err != nil {
		return fmt.Errorf("delete: %v", err)
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != text {
		return fmt.Errorf("the old file holds %q, %v", b, err)
	}

	// A folder that cannot even be looked into.
	if err := os.Chmod(folder, 0); err != nil {
		return err
	}
	if err := say(open, "three"); err != nil {
		return err
	}
	if _, err := jsonl.Open(old, jsonl.Options{}); wants(err, session.ReadOnly) != nil {
		return fmt.Errorf("hidden: %v", err)
	}
	if err := wants(say(fresh, "one"), session.ReadOnly); err != nil {
		return fmt.Errorf("hidden first message: %v", err)
	}

	if err := os.Chmod(folder, 0o700); err != nil {
		return err
	}
	if err := errors.Join(say(fresh, "one"), say(open, "four"), fresh.Close(), open.Close()); err != nil {
		return err
	}
	for path, n := range map[string]int{open.File(): 4, fresh.File(): 1, old: 1} {
		s, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			return err
		}
		if got := len(s.Entries()); got != n {
			return fmt.Errorf("%s: %d entries", path, got)
		}
		s.Close()
	}
	return nil
}
