package sharedfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Lock is a lock directory that this process holds. The form is the one of other
// programs that share the file: whoever makes the directory has the lock and
// sets its time now and then; a directory whose time is too old was left behind
// by a process that died, and may be taken over.
//
// Taking over does not remove the directory, which could be a new one of
// somebody else by then: it sets its time. So the former owner, if it comes
// back, sees a time that it did not set and knows that it lost.
type Lock struct {
	dir   string
	stale time.Duration
	stop  chan struct{}
	done  chan struct{}

	mu   sync.Mutex
	id   fs.FileInfo // with the time set last
	lost bool
}

// LeftBehind is how old a lock is that was left behind, where programs that
// share a file did not agree on anything else.
const LeftBehind = 30 * time.Second

// Grace is how long a waiter waits beyond the age at which a lock that was left
// behind can be taken over: long enough for what its successor does, such as
// asking a service.
const Grace = 20 * time.Second

// TakeLock takes the lock directory. It waits until ctx ends, or so long that
// only an owner who is alive can be in the way.
func TakeLock(ctx context.Context, dir string, stale time.Duration) (*Lock, error) {
	deadline := time.Now().Add(stale + Grace)
	var watched fs.FileInfo
	var since time.Time
	for {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			return newLock(dir, stale)
		}
		info, statErr := os.Lstat(dir)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			if !errors.Is(err, fs.ErrExist) && !passing(err) {
				return nil, err // it is not the lock that is in the way
			}
		case statErr != nil:
			return nil, statErr
		case !info.IsDir():
			return nil, fmt.Errorf("%s is in the way: it is no directory", dir)
		default:
			if watched == nil || !sameLock(watched, info) {
				watched, since = info, time.Now()
			}
			// The second is for clocks that went back, or differ from that of a
			// file server: nobody renewed it while we looked on.
			if time.Since(info.ModTime()) > stale || time.Since(since) > stale {
				if l := takeOver(dir, info, stale); l != nil {
					return l, nil
				}
			}
		}
		if ctx.Err() == nil && time.Now().After(deadline) {
			if statErr == nil && time.Since(info.ModTime()) > stale {
				return nil, fmt.Errorf("%s was left behind and cannot be taken over: remove it", dir)
			}
			return nil, fmt.Errorf("another process holds %s and does not let go", dir)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s, which another process holds: %w", dir, ctx.Err())
		case <-time.After(10*time.Millisecond + rand.N(20*time.Millisecond)):
		}
	}
}

// sameLock reports whether a lock directory is the one seen, and was not renewed
// since.
func sameLock(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

// takeOver takes a lock that was left behind, nil when somebody else did, or
// when its owner lives.
func takeOver(dir string, seen fs.FileInfo, stale time.Duration) *Lock {
	unguard, err := guard(dir)
	if errors.Is(err, fs.ErrPermission) {
		return replace(dir, seen, stale)
	}
	if err != nil {
		return nil
	}
	defer unguard()
	info, err := os.Lstat(dir)
	if err != nil || !sameLock(info, seen) {
		return nil
	}
	info, err = touch(dir)
	if errors.Is(err, fs.ErrPermission) {
		return replace(dir, seen, stale)
	}
	if err != nil {
		return nil
	}
	return hold(dir, info, stale)
}

// replace takes over a lock that another user left behind, such as root, and that
// cannot be touched: it removes the directory and makes its own, which the owner
// of the folder may. The folder is guarded meanwhile, so that of several who saw
// the old lock none removes the new one.
func replace(dir string, seen fs.FileInfo, stale time.Duration) *Lock {
	unguard, err := guard(filepath.Dir(dir))
	if err != nil {
		return nil
	}
	defer unguard()
	if info, err := os.Lstat(dir); err != nil || !sameLock(info, seen) {
		return nil
	}
	if os.Remove(dir) != nil || os.Mkdir(dir, 0o700) != nil {
		return nil
	}
	l, err := newLock(dir, stale)
	if err != nil {
		return nil
	}
	return l
}

// newLock holds a directory that was just made.
func newLock(dir string, stale time.Duration) (*Lock, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	return hold(dir, info, stale), nil
}

// touch sets the time of a lock directory to now.
func touch(dir string) (fs.FileInfo, error) {
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return nil, err
	}
	return os.Lstat(dir) // file systems keep times less precisely
}

func hold(dir string, info fs.FileInfo, stale time.Duration) *Lock {
	l := &Lock{dir: dir, id: info, stale: stale, stop: make(chan struct{}), done: make(chan struct{})}
	go l.renew()
	return l
}

// renew keeps the lock from looking left behind.
func (l *Lock) renew() {
	defer close(l.done)
	tick := time.NewTicker(min(max(l.stale/6, time.Millisecond), 5*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		l.whileOwn(func() error {
			info, err := touch(l.dir)
			if err == nil {
				l.id = info
			}
			return err
		})
	}
}

// whileOwn does something to the directory if it is still ours, and notes when
// it is not.
func (l *Lock) whileOwn(do func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return
	}
	unguard, err := guard(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.lost = true
	}
	if err != nil {
		return // the next time, perhaps
	}
	defer unguard()
	if info, err := os.Lstat(l.dir); err != nil || !sameLock(info, l.id) {
		l.lost = true
		return
	}
	_ = do() // a lock that cannot be renewed or removed grows old, and is taken over
}

// Held reports whether the lock is still ours: a process that was stopped for
// long may have lost it without notice.
func (l *Lock) Held() bool {
	own := false
	l.whileOwn(func() error { own = true; return nil })
	return own
}

// Release gives the lock back.
func (l *Lock) Release() {
	close(l.stop)
	<-l.done
	l.whileOwn(func() error { return os.Remove(l.dir) })
}
