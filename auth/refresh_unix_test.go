//go:build unix

package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where the outcome cannot be written the issuer is not asked: it would take the
// refresh token, and the new one would be lost.
func TestNoRoomForTheRenewed(t *testing.T) {
	r := newRenewing(t, signInFile(clockAt+time.Minute.Milliseconds()))
	// The lock can have a name that is six bytes longer, a temporary file cannot.
	path := filepath.Join(filepath.Dir(r.Path()), strings.Repeat("a", 249))
	if err := os.Rename(r.Path(), path); err != nil {
		t.Skipf("the file system has no such names: %v", err)
	}
	r.path = path
	before, _ := os.ReadFile(path)
	got, err := r.Token(t.Context(), "acme", MinLife)
	if err != nil || got.Key.Reveal() != "a0" || got.Warning == nil || !errors.Is(got.Warning, syscall.ENAMETOOLONG) {
		t.Errorf("got %v, %v", got, err)
	}
	r.pass(time.Hour)
	_, err = r.Token(t.Context(), "acme", MinLife)
	if e, ok := errors.AsType[*RefreshError](err); !ok || !errors.Is(err, syscall.ENAMETOOLONG) || e.SignInEnded() {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); r.calls.Load() != 0 || string(after) != string(before) {
		t.Errorf("the issuer was asked %d times; the file is %s", r.calls.Load(), after)
	}
	if _, err := os.Lstat(path + ".lock"); err == nil {
		t.Error("the lock is left")
	}
}

// What was reserved is gone when the renewal is over, also one that fails.
func TestReservedRoomIsGivenBack(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	r.issue = func(context.Context, *OAuth) (*OAuth, error) {
		if beside, _ := filepath.Glob(r.Path() + ".tmp-*"); len(beside) != 1 {
			t.Errorf("reserved: %v", beside)
		}
		return nil, errors.New("busy")
	}
	if _, err := r.Token(t.Context(), "acme", MinLife); err == nil {
		t.Error("no error")
	}
	r.issue = nil
	r.pass(time.Minute)
	r.token(t, "a2")
	if beside, err := os.ReadDir(filepath.Dir(r.Path())); err != nil || len(beside) != 1 {
		t.Errorf("left: %v, %v", beside, err)
	}
}
