//go:build unix

package env

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// firstLine lets a test wait for what a command says first.
type firstLine struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	once  sync.Once
	line  chan string
	found bool // the line is complete; what follows is of no interest
}

func newFirstLine() *firstLine { return &firstLine{line: make(chan string, 1)} }

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found {
		return len(p), nil
	}
	f.buf.Write(p)
	s, _, ok := strings.Cut(f.buf.String(), "\n")
	if f.found = ok; ok {
		f.once.Do(func() { f.line <- s })
	}
	return len(p), nil
}

// end gives an empty line when there was none, so that nobody waits for it.
func (f *firstLine) end() { f.once.Do(func() { f.line <- "" }) }

// gone waits until there is no process of that number; a zombie counts as gone.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && bytes.Contains(b, []byte(") Z ")) {
			return
		}
	}
	t.Errorf("process %d is alive", pid)
}

func TestAbortKillsTheWholeGroup(t *testing.T) {
	for name, line := range map[string]string{
		"foreground":           "sleep 60 & echo $!; wait",
		"grandchild":           "(sh -c 'sleep 60 & echo $!; wait' ); true",
		"ignores polite words": "trap '' TERM INT HUP; sleep 60 & echo $!; wait; wait",
		"shell has exited":     "(while :; do echo $BASHPID; done) & exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := newFirstLine()
			type ended struct {
				exit Exit
				err  error
				at   time.Time
			}
			end := make(chan ended, 1)
			go func() {
				defer out.end()
				l := newLocal(t)
				l.quiet = time.Minute // a busy machine is no quiet one
				ex, err := l.Exec(ctx, Command{Line: line, Output: out})
				end <- ended{ex, err, time.Now()}
			}()
			pid, err := strconv.Atoi(<-out.line)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(150 * time.Millisecond)
			began := time.Now()
			cancel()
			e := <-end
			if CodeOf(e.err) != Aborted {
				t.Errorf("got %v", e.err)
			}
			t.Logf("from abort to return: %v", e.at.Sub(began))
			gone(t, pid)
		})
	}
}

func TestTimeout(t *testing.T) {
	l := newLocal(t)
	var out bytes.Buffer
	began := time.Now()
	ex, err := l.Exec(t.Context(), Command{Line: "echo start; sleep 60", Timeout: time.Second, Output: &out})
	if CodeOf(err) != Timeout || ex.Exited || out.String() != "start\n" {
		t.Errorf("got %+v, %v, %q", ex, err, out.String())
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	l.quiet = time.Minute
	ex, err = l.Exec(t.Context(), Command{Line: "yes & exit 7", Timeout: time.Second})
	if CodeOf(err) != Timeout || !ex.Exited || ex.Code != 7 {
		t.Errorf("a shell that exits before: got %+v, %v", ex, err)
	}
}

func TestQuietBackgroundDoesNotHold(t *testing.T) {
	l := newLocal(t)
	var out bytes.Buffer
	began := time.Now()
	_, err := l.Exec(t.Context(), Command{Line: "sleep 60 & echo $!", Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	// A background process is the user's: it lives on.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the background process is gone: %v", err)
	}
}

// A process that left the group cannot be killed with it, but must not hold the
// caller.
func TestEscapedProcessDoesNotHold(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("needs the setsid program")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newFirstLine()
	end := make(chan error, 1)
	go func() {
		defer out.end()
		_, err := newLocal(t).Exec(ctx, Command{Line: "setsid --wait sh -c 'echo $$; while :; do echo tick; sleep 0.02; done'", Output: out})
		end <- err
	}()
	pid, err := strconv.Atoi(<-out.line)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-pid, syscall.SIGKILL)
	cancel()
	select {
	case err := <-end:
		if CodeOf(err) != Aborted {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Exec is held by a process outside of the group")
	}
}

func TestPipeWithoutWriterDoesNotHold(t *testing.T) {
	l := newLocal(t)
	if err := syscall.Mkfifo(l.Abs("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := l.ReadFile(t.Context(), "fifo"); err != nil || len(b) != 0 {
		t.Errorf("got %q, %v", b, err)
	}
	w, err := os.OpenFile(l.Abs("fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.ReadFile(ctx, "fifo"); CodeOf(err) != Aborted {
		t.Errorf("a silent writer: got %v", err)
	}
}

func TestPipeWithoutReaderDoesNotHold(t *testing.T) {
	l := newLocal(t)
	if err := syscall.Mkfifo(l.Abs("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.WriteFile(t.Context(), "fifo", []byte("x")); err == nil || CodeOf(err) == Aborted {
		t.Errorf("nobody reads: got %v", err)
	}
	r, err := os.OpenFile(l.Abs("fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := l.AppendFile(t.Context(), "fifo", []byte("x")); err != nil {
		t.Errorf("somebody reads: got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.WriteFile(ctx, "fifo", make([]byte, 1<<20)); CodeOf(err) != Aborted {
		t.Errorf("a slow reader: got %v", err)
	}
}

func TestDevicesAreNotRead(t *testing.T) {
	l := newLocal(t)
	if err := os.Symlink("/dev/zero", l.Abs("endless")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"endless", "/dev/zero"} {
		if _, err := l.ReadFile(t.Context(), name); CodeOf(err) != Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if b, err := l.ReadFile(t.Context(), os.DevNull); err != nil || len(b) != 0 {
		t.Errorf("got %q, %v", b, err)
	}
}
