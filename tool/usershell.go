package tool

import (
	"context"
	"io"
	"sync"

	"github.com/pinch-agent/pinch/env"
)

// UserShell runs commands that a person gives beside the model. Unlike those of
// the bash tool they have no time limit, learn nothing of the session, and what
// they write becomes plain text: without colours and other sequences for
// terminals, carriage returns and control characters.
type UserShell struct {
	Env    env.ExecutionEnv // where commands run; needed
	Prefix string           // put on a line before every command
}

// UserOutcome is how a command of a person went.
type UserOutcome struct {
	Output         string // its end when Truncated, at most MaxLines and MaxBytes
	ExitCode       *int64 // as shells give it: a signal counts from 128; nil when cancelled
	Cancelled      bool
	Truncated      bool
	FullOutputPath string // file with all of the output when Truncated; "" when it could not be kept
}

// Run runs a command to its end, or until ctx ends, which cancels it and is no
// error. show is given the output as it arrives, from one goroutine at a time,
// and holds up the command; nil for nobody. The error says why the command could
// not be run.
func (s UserShell) Run(ctx context.Context, command string, show func(text []byte)) (UserOutcome, error) {
	if s.Prefix != "" {
		command = s.Prefix + "\n" + command
	}
	out := &cleanOutput{show: show}
	out.kept.shell = "bash"
	out.kept.Capture = env.Capture{
		Head: MaxBytes, Tail: 2 * MaxBytes,
		SpillBytes: MaxBytes, SpillLines: MaxLines,
		Spill: func() (io.WriteCloser, error) { return out.kept.open(ctx, s.Env) },
	}
	exit, err := s.Env.Exec(ctx, env.Command{Line: command, Unset: sessionVars[:], Output: out})
	out.take(out.clean.rest(nil))
	out.kept.Close()
	cancelled := env.CodeOf(err) == env.Aborted
	if err != nil && !cancelled {
		return UserOutcome{}, bashError(err, exit, 0, &out.kept)
	}
	t := out.kept.shown()
	r := UserOutcome{Output: t.content, Cancelled: cancelled, Truncated: t.truncated}
	if t.truncated && out.kept.SpillErr() == nil {
		r.FullOutputPath = out.kept.spillPath()
	}
	if !cancelled {
		r.ExitCode = new(int64(exitCode(exit)))
	}
	return r, nil
}

// cleanOutput cleans output before it is shown and kept.
type cleanOutput struct {
	show  func(text []byte)
	mu    sync.Mutex
	clean cleaner
	buf   []byte
	kept  shellOutput
}

// Write implements io.Writer.
func (o *cleanOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = o.clean.append(o.buf[:0], p)
	o.take(o.buf)
	return len(p), nil
}

func (o *cleanOutput) take(text []byte) {
	if len(text) == 0 {
		return
	}
	o.kept.Write(text)
	if o.show != nil {
		o.show(text)
	}
}
