package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/pinch-agent/pinch/session"
)

// lockSuffix ends the name of the lock beside a session file. Listings look at
// *.jsonl only and pass it over.
const lockSuffix = ".lock"

// orphanWait bounds the wait for the lock of a program that was killed, and
// orphanPoll is how often it is tried meanwhile.
const (
	orphanWait = 2 * time.Second
	orphanPoll = 5 * time.Millisecond
)

// lock is the right to write a session file. The operating system takes it
// back when the process dies; the file that stays behind then means nothing.
type lock struct {
	f *flock.Flock
}

// acquire locks a session file against other writers, in this process and in
// others. Where the file system has no locks, or the folder cannot be written,
// there is nothing to hold and a lock without effect is given, and where
// something else than a file has the lock's name: a link could point at any
// file, and opening a pipe would wait.
func acquire(path string) (*lock, error) {
	name := path + lockSuffix
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return &lock{}, nil
	}
	late := time.Now().Add(orphanWait)
	for swaps := 0; swaps < 10; {
		f := flock.New(name, flock.SetPermissions(0o600))
		held, err := f.TryLock()
		if err != nil {
			f.Close()
			return &lock{}, nil
		}
		if !held {
			f.Close()
			by := holder(name)
			if orphaned(by) && time.Now().Before(late) {
				time.Sleep(orphanPoll)
				continue
			}
			if by != "" {
				by = " by " + by
			}
			return nil, &session.Error{
				Kind:   session.Busy,
				Op:     "open",
				Path:   path,
				Err:    errors.New("the session is in use" + by),
				Advice: "go on there, close it there, or fork the session",
			}
		}
		// The one before may have removed the file between our opening and
		// locking it: then the next one would lock another file.
		mine, err := f.Stat()
		now, err2 := os.Stat(name)
		if err == nil && err2 == nil && os.SameFile(mine, now) {
			sign(name)
			return &lock{f: f}, nil
		}
		f.Close()
		swaps++
	}
	return &lock{}, nil
}

// release gives the lock back and takes its file away.
func (l *lock) release() {
	if l == nil || l.f == nil {
		return
	}
	name := l.f.Path()
	if runtime.GOOS == "windows" { // which removes no file that is open
		l.f.Close()
		os.Remove(name)
	} else {
		os.Remove(name)
		l.f.Close()
	}
	l.f = nil
}

// signature is the room for the holder's name. It begins behind the byte that
// Windows locks against readers.
const signature = 160

// sign writes into the lock who holds it, for the message of those who do not
// get it. It is of no other use, so failures do not matter.
func sign(name string) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	host, _ := os.Hostname()
	text := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	f.WriteAt(fmt.Appendf(nil, "%-*.*s\n", signature, signature, text), 1)
}

// holder says by whom the lock is held, as far as is known.
func holder(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, signature)
	n, _ := f.ReadAt(buf, 1)
	if text := strings.TrimSpace(string(buf[:n])); strings.HasPrefix(text, "process ") {
		return text
	}
	return ""
}

// orphaned reports whether the holder that a lock names has died on this
// machine: what still has the lock is a child that it was starting, which gives
// it back as soon as it is another program.
func orphaned(by string) bool {
	pid, host := 0, ""
	if _, err := fmt.Sscanf(by, "process %d on %s", &pid, &host); err != nil || pid <= 0 {
		return false
	}
	here, err := os.Hostname()
	return err == nil && host == here && dead(pid)
}

// InUse reports whether somebody has a session file open for writing now, in this
// process or another. Where there are no locks nobody seems to, and a holder that
// has died does not.
func (r *Repository) InUse(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	name := path + lockSuffix
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	// Asking for a share leaves the file as it is, whoever it was left by.
	f := flock.New(name, flock.SetFlag(os.O_RDONLY))
	defer f.Close()
	free, err := f.TryRLock()
	return err == nil && !free && !orphaned(holder(name))
}
