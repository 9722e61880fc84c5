package env

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pinch-agent/pinch/internal/panics"
)

// quiet is how long output is awaited after the shell has exited: a background
// process that keeps the stream open in silence does not hold the caller.
const quiet = 100 * time.Millisecond

var (
	errTimeout = errors.New("the command took too long") // cause of a Timeout
	errOver    = errors.New("the command is over")       // nothing is left to kill
)

// Exec implements Shell.
func (l *Local) Exec(ctx context.Context, c Command) (Exit, error) {
	if err := start(ctx, "spawn", ""); err != nil {
		return Exit{}, err
	}
	var sh invocation
	if len(c.Argv) > 0 {
		sh = invocation{path: c.Argv[0], args: c.Argv[1:]}
	} else {
		var err error
		if sh, err = l.shell(c.Line); err != nil {
			return Exit{}, err
		}
	}
	dir := l.WorkDir()
	if c.Dir != "" {
		dir = l.Abs(c.Dir)
	}
	if err := enter(dir); err != nil {
		return Exit{}, fault(ctx, "chdir", dir, err)
	}
	cmd := exec.Command(sh.path, sh.args...)
	cmd.Dir, cmd.Env = dir, l.environ(c)
	if sh.stdin != "" {
		cmd.Stdin = strings.NewReader(sh.stdin)
	}
	r := &run{cmd: cmd, quiet: cmp.Or(l.quiet, quiet), exited: make(chan struct{})}
	if err := r.start(c); err != nil {
		return Exit{}, spawnFault(ctx, sh.path, err)
	}
	return r.finish(ctx, c)
}

// enter reports what keeps a command from running in a directory.
func enter(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return syscall.ENOTDIR
	}
	return searchable(dir)
}

// invocation is how a shell is started for one command line.
type invocation struct {
	path  string
	args  []string
	stdin string // "" for an empty input
}

func spawnFault(ctx context.Context, path string, err error) error {
	err = fault(ctx, "spawn", path, err)
	if e, ok := errors.AsType[*Error](err); ok && e.Code != Aborted {
		e.Code = SpawnError
	}
	return err
}

// run is one command under way.
type run struct {
	cmd     *exec.Cmd
	group   group
	readers []*reader
	began   time.Time
	quiet   time.Duration // silence that ends the reading after the exit

	exited chan struct{} // closed when the shell has been waited for
	after  time.Duration // set before exited is closed

	mu       sync.Mutex
	killed   error // why the group was killed; nil while it was not
	late     bool  // the shell had exited before that
	writeErr error // first error of a writer
}

// reader copies one stream of the command.
type reader struct {
	pipe *os.File
	w    io.Writer
}

func (r *run) start(c Command) error {
	var ends []*os.File // the command's ends, closed here once it has them
	defer func() {
		for _, f := range ends {
			f.Close()
		}
	}()
	stream := func(w io.Writer) (*os.File, error) {
		pr, pw, err := pipe()
		if err != nil {
			return nil, err
		}
		ends = append(ends, pw)
		r.readers = append(r.readers, &reader{pipe: pr, w: w})
		return pw, nil
	}
	out := c.Output
	if out == nil {
		out = io.Discard
	}
	stdout, err := stream(out)
	if err == nil {
		r.cmd.Stdout, r.cmd.Stderr = stdout, stdout
		if c.Stderr != nil {
			r.cmd.Stderr, err = stream(c.Stderr)
		}
	}
	if err == nil {
		r.began = time.Now()
		err = r.group.start(r.cmd)
	}
	if err != nil {
		for _, rd := range r.readers {
			rd.pipe.Close()
		}
		return err
	}
	go func() {
		r.cmd.Wait() // its status is in ProcessState
		r.after = time.Since(r.began)
		close(r.exited)
	}()
	return nil
}

// kill ends the group once, for a reason.
func (r *run) kill(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed != nil {
		return
	}
	r.killed = why
	select {
	case <-r.exited:
		r.late = true
	default:
	}
	r.group.kill(r.late)
}

// release forgets the group: its number may soon be another's.
func (r *run) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed == nil {
		r.killed = errOver
	}
	r.group.close()
}

// finish waits for the command and its output.
func (r *run) finish(ctx context.Context, c Command) (Exit, error) {
	defer r.release()
	stopAbort := context.AfterFunc(ctx, func() { r.kill(ctx.Err()) })
	defer stopAbort()
	if c.Timeout > 0 {
		timer := time.AfterFunc(c.Timeout, func() { r.kill(errTimeout) })
		defer timer.Stop()
	}

	var copying sync.WaitGroup
	for _, rd := range r.readers {
		copying.Go(func() { r.copy(rd) })
	}
	copying.Wait()
	<-r.exited

	r.mu.Lock()
	killed, late, writeErr := r.killed, r.late, r.writeErr
	r.mu.Unlock()
	ex := Exit{After: r.after, Duration: time.Since(r.began)}
	ex.Code, ex.Signal = status(r.cmd.ProcessState)
	ex.Exited = killed == nil || late
	switch {
	case writeErr != nil:
		return ex, &Error{Code: CallbackError, Op: "exec", Err: writeErr}
	case killed == nil:
		return ex, nil
	case errors.Is(killed, errTimeout):
		return ex, &Error{Code: Timeout, Op: "exec", Err: killed}
	}
	return ex, &Error{Code: Aborted, Op: "exec", Err: killed}
}

// copy hands a stream to its writer until it ends, or is silent after the shell
// has exited. A killed group is given the same grace as a whole, so that a
// process that escaped the kill cannot hold the caller.
func (r *run) copy(rd *reader) {
	defer rd.pipe.Close()
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-r.exited:
			rd.pipe.SetReadDeadline(time.Now().Add(r.quiet))
		case <-over:
		}
	})
	defer watch.Wait()
	defer close(over)

	buf := make([]byte, 64<<10)
	var last time.Time // no reading after this time
	looked := false
	for {
		n, err := rd.pipe.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) && last.IsZero() && !looked {
			// On a busy machine the time can pass before this goroutine gets to
			// what is in the pipe already: only a second look makes silence sure.
			looked = true
			rd.pipe.SetReadDeadline(time.Now().Add(r.quiet / 4))
			continue
		}
		if n > 0 {
			looked = false
			if werr := hand(rd.w, buf[:n]); werr != nil {
				r.mu.Lock()
				if r.writeErr == nil {
					r.writeErr = werr
				}
				r.mu.Unlock()
				r.kill(werr)
				return
			}
		}
		if err != nil {
			return // its end, or silence
		}
		select {
		case <-r.exited:
			next := time.Now().Add(r.quiet)
			r.mu.Lock()
			killed := r.killed != nil
			r.mu.Unlock()
			if killed {
				if last.IsZero() {
					last = next
				}
				next = last
			}
			rd.pipe.SetReadDeadline(next)
		default:
		}
	}
}

// hand gives output to a writer. One that panics must not take the program with
// it from a goroutine that it knows nothing of.
func hand(w io.Writer, p []byte) error {
	_, err := panics.Guard("the writer", func() (int, error) { return w.Write(p) })
	return err
}
