//go:build unix

package env

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
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

// TestStrangersAreNotKilled aborts a command whose shell is gone, whose group is
// empty, and whose number another process has got meanwhile.
func TestStrangersAreNotKilled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	var stranger group
	if err := stranger.start(cmd); err != nil {
		t.Fatal(err)
	}
	stranger.kill(true)
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("the stranger is gone: %v", err)
	}
	stranger.kill(false)
	if err := cmd.Wait(); err == nil {
		t.Error("the group's own leader is spared")
	}
}
