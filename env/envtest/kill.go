package envtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/env"
)

// command is one that was begun and goes on.
type command struct {
	w      *world
	cancel context.CancelFunc
	lines  chan string // its output, complete lines
	done   chan struct{}
	exit   env.Exit
	err    error
}

func (w *world) begin(line string, timeout time.Duration) *command {
	ctx, cancel := context.WithCancel(w.ctx)
	c := &command{w: w, cancel: cancel, lines: make(chan string, 16), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer close(c.lines)
		c.exit, c.err = w.Exec(ctx, env.Command{Line: line, Timeout: timeout, Output: &lineWriter{lines: c.lines}})
	}()
	w.T.Cleanup(func() { cancel(); <-c.done })
	return c
}

// line waits for the next line of output.
func (c *command) line() string {
	c.w.Helper()
	s, ok := <-c.lines
	if !ok {
		c.w.Fatalf("the command said nothing: %+v, %v", c.exit, c.err)
	}
	return s
}

func (c *command) says(want string) {
	c.w.Helper()
	if got := c.line(); got != want {
		c.w.Fatalf("the command says %q", got)
	}
}

func (c *command) pid() int {
	c.w.Helper()
	n, err := strconv.Atoi(c.line())
	c.w.must(err)
	return n
}

// abort ends the command, which must be told of as aborted.
func (c *command) abort() {
	c.w.Helper()
	c.cancel()
	<-c.done
	c.w.fails("Exec", c.err, env.Aborted)
}

// lineWriter hands on the first lines of what is written to it.
type lineWriter struct {
	mu    sync.Mutex
	rest  []byte
	lines chan string
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte{'\n'})
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		select {
		case l.lines <- string(line):
		default: // nobody waits for so many
		}
	}
}

// gone waits until there is no process of that number. One that is dead and only
// not waited for counts as gone.
func (w *world) gone(pid int) {
	w.Helper()
	n := strconv.Itoa(pid)
	line := "kill -0 " + n + " 2>/dev/null || exit 0; case $(ps -o stat= -p " + n + " 2>/dev/null || cut -d' ' -f3 /proc/" + n + "/stat) in Z*) exit 0;; esac; exit 1"
	for range 500 {
		if _, exit, err := w.try(line); err == nil && exit.Code == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.Errorf("process %d is alive", pid)
}

var killRules = map[string]func(*world){
	"abort ends the group": func(w *world) {
		for name, line := range map[string]string{
			"foreground":           "sleep 600 & echo $!; wait",
			"grandchild":           "(sh -c 'sleep 600 & echo $!; wait'); true",
			"ignores polite words": "trap '' TERM INT HUP; sleep 600 & echo $!; wait; wait",
		} {
			c := w.begin(line, 0)
			pid := c.pid()
			c.abort()
			if c.exit.Exited {
				w.Errorf("%s: %+v", name, c.exit)
			}
			w.gone(pid)
		}
	},
	"timeout ends the group": func(w *world) {
		c := w.begin("echo start; sleep 600 & echo $!; wait", time.Second)
		c.says("start")
		pid := c.pid()
		<-c.done
		w.fails("Exec", c.err, env.Timeout)
		if c.exit.Exited || c.exit.Duration < time.Second {
			w.Errorf("got %+v", c.exit)
		}
		w.gone(pid)
	},
	"background lives on and does not hold": func(w *world) {
		pid := strings.TrimSpace(w.run("sleep 600 & echo $!"))
		w.run("kill -0 " + pid)
		w.run("kill -9 " + pid)
	},
	"abort at any time": func(w *world) {
		for range 15 {
			ctx, cancel := context.WithCancel(w.ctx)
			var pids bytes.Buffer
			timer := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, cancel)
			_, err := w.Exec(ctx, env.Command{Line: "sleep 600 & echo $!; sleep 600 & echo $!; wait", Output: &pids})
			timer.Stop()
			cancel()
			w.fails("Exec", err, env.Aborted)
			for _, line := range strings.SplitAfter(pids.String(), "\n") {
				if pid, ok := strings.CutSuffix(line, "\n"); ok {
					n, err := strconv.Atoi(pid)
					w.must(err)
					w.gone(n)
				}
			}
		}
	},
}
