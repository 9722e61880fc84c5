package jsonl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

const fullEnv = "PINCH_TEST_FULL_DISK"

func init() { helpers[fullEnv] = func(dir string) { report(full(dir)) } }

var errNoMount = errors.New("a file system of its own cannot be mounted")

// TestFullFileSystem fills a real file system, of 64 KB and in the memory, which
// takes the right to mount one.
func TestFullFileSystem(t *testing.T) {
	cmd := helper(t, fullEnv, t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.Contains(string(out), errNoMount.Error()) {
		t.Skip(errNoMount)
	}
	if err != nil || string(out) != "fine\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func full(dir string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		return errNoMount
	}
	path, ballast := filepath.Join(dir, "s.jsonl"), filepath.Join(dir, "ballast")
	s, err := jsonl.Open(path, jsonl.Options{Sync: true})
	if err != nil {
		return err
	}
	said := 0
	say := func() error {
		_, err := s.AppendMessage(llm.UserText(fmt.Sprintf("message %d %s", said, strings.Repeat("x", 900)), 1))
		if err == nil {
			said++
		}
		return err
	}
	if err := say(); err != nil {
		return err
	}
	for range 3 {
		if err := os.WriteFile(ballast, make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("the disk is not full: %v", err)
		}
		for err = say(); err == nil; err = say() {
		}
		if err := wants(err, session.DiskFull); err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			return err
		}
		other, err := jsonl.Open(filepath.Join(dir, "other.jsonl"), jsonl.Options{})
		if err != nil {
			return err
		}
		_, err = other.AppendMessage(llm.UserText(strings.Repeat("x", 8<<10), 1))
		if err := wants(err, session.DiskFull); err != nil {
			return fmt.Errorf("a session that begins: %v", err)
		}
		other.Close()
		if err := os.Remove(ballast); err != nil {
			return err
		}
		if err := say(); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = jsonl.Open(path, jsonl.Options{}); err != nil {
		return err
	}
	defer s.Close()
	for i, e := range s.Entries() {
		if !strings.Contains(string(e.Raw()), fmt.Sprintf(`"message %d `, i)) {
			return fmt.Errorf("entry %d is %s", i, e.Raw())
		}
	}
	if n := len(s.Entries()); n != said {
		return fmt.Errorf("%d entries of %d", n, said)
	}
	return nil
}
