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

// Another user, such as root, may leave a lock behind that cannot be touched.
func TestLockOfAnotherUser(t *testing.T) {
	const stale = 200 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "lock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	setTime(t, dir, time.Now().Add(-time.Hour))
	seen, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	take := func() (*lock, error) { return replace(dir, seen, stale), nil }
	if os.Geteuid() != 0 { // root may touch every lock
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		take = func() (*lock, error) { return takeLock(within(t, 5*time.Second), dir, stale) }
	}
	l, err := take()
	if err != nil || l == nil || !l.held() {
		t.Fatalf("not taken: %v", err)
	}
	// Who saw the old lock leaves the new one alone.
	if other := replace(dir, seen, stale); other != nil || !l.held() {
		t.Error("a lock in use was taken over")
	}
	l.release()
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory is left")
	}
}
