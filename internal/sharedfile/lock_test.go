package sharedfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// within is ctx with a limit.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestLockIsWaitedForAndGivenBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth.json.lock")
	l, err := TakeLock(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TakeLock(within(t, 60*time.Millisecond), dir, time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a held lock: %v", err)
	}
	if !l.Held() {
		t.Error("lost")
	}
	l.Release()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestLockIsRenewed(t *testing.T) {
	const stale = time.Second
	dir := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(t.Context(), dir, stale)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := TakeLock(within(t, 2*stale+stale/2), dir, stale); err == nil {
		t.Error("a lock in use was taken over")
		other.Release()
	}
	if !l.Held() {
		t.Error("lost")
	}
	l.Release()
}

func TestStaleLockIsTakenOver(t *testing.T) {
	for name, age := range map[string]time.Duration{
		"old":                        time.Hour,
		"in the future, not renewed": -time.Hour,
	} {
		dir := filepath.Join(t.TempDir(), "lock")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		setTime(t, dir, time.Now().Add(-age))
		l, err := TakeLock(within(t, 60*time.Second), dir, 100*time.Millisecond)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if info, err := os.Lstat(dir); err != nil || time.Since(info.ModTime()).Abs() > time.Minute {
			t.Errorf("%s: not renewed: %v", name, err)
		}
		l.Release()
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s: the directory is left", name)
		}
	}
}

// Whoever lost a lock must neither go on nor take the new owner's away.
func TestLostLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	setTime(t, dir, time.Now().Add(time.Second)) // by somebody who took it over
	if l.Held() {
		t.Error("a loss was not noticed")
	}
	l.Release()
	if _, err := os.Lstat(dir); err != nil {
		t.Errorf("the lock of another was removed: %v", err)
	}
	os.Remove(dir)
	l, err = TakeLock(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(dir)
	if l.Held() {
		t.Error("a removed lock counts")
	}
	l.Release()
}

func TestLockThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	if _, err := TakeLock(t.Context(), filepath.Join(dir, "none", "lock"), time.Minute); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(dir, "lock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), file, time.Minute); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Errorf("got %v", err)
	}
}

// Of many who see a stale lock, one takes it over; never are two inside.
func TestOneTakesOver(t *testing.T) {
	const rounds, takers = 15, 8
	stale := 2 * time.Second
	dir := filepath.Join(t.TempDir(), "lock")
	for range rounds {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		setTime(t, dir, time.Now().Add(-time.Hour))
		var inside, entered atomic.Int32
		var wg sync.WaitGroup
		for range takers {
			wg.Go(func() {
				l, err := TakeLock(t.Context(), dir, stale)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d inside", n)
				}
				entered.Add(1)
				time.Sleep(time.Millisecond)
				if !l.Held() {
					t.Error("lost while inside")
				}
				inside.Add(-1)
				l.Release()
			})
		}
		wg.Wait()
		if entered.Load() != takers {
			t.Fatalf("%d of %d got in", entered.Load(), takers)
		}
	}
}
