//go:build unix

package sharedfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

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
	take := func() (*Lock, error) { return replace(dir, seen, stale), nil }
	if os.Geteuid() != 0 { // root may touch every lock
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		take = func() (*Lock, error) { return TakeLock(within(t, 60*time.Second), dir, stale) }
	}
	l, err := take()
	if err != nil || l == nil || !l.Held() {
		t.Fatalf("not taken: %v", err)
	}
	// Who saw the old lock leaves the new one alone.
	if other := replace(dir, seen, stale); other != nil || !l.Held() {
		t.Error("a lock in use was taken over")
	}
	l.Release()
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory is left")
	}
}
