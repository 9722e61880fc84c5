package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// CommandTimeout is how long a command of a value may run.
const CommandTimeout = 10 * time.Second

// maxCommandOutput bounds what a command may print; keys are short.
const maxCommandOutput = 1 << 20

// Runner runs a shell command and gives what it prints. An error means that it
// did not end with status 0 in time.
type Runner func(ctx context.Context, command string) (stdout string, err error)

// RunCommand runs a command in the system's shell with the environment of the
// process and without input. After CommandTimeout, or when ctx ends, it is
// killed with everything it started; what it leaves running when it ends by
// itself is killed too, where processes have groups.
func RunCommand(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	cmd := shell(ctx, command)
	out := &capped{max: maxCommandOutput}
	cmd.Stdout = out
	// A child that left the group may hold the pipe open; it is not waited for.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	killRest(cmd)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("no answer within %v: %w", CommandTimeout, context.DeadlineExceeded)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", err
	case out.over:
		return "", fmt.Errorf("more than %d bytes of output", maxCommandOutput)
	}
	return out.buf.String(), nil
}

// capped keeps the beginning of what is written. It has no ReadFrom, which
// would let io.Copy go past the bound.
type capped struct {
	buf  bytes.Buffer
	max  int
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - c.buf.Len(); len(p) > room {
		c.over = true
		c.buf.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return c.buf.Write(p)
}

// Remember makes a Runner that runs each command once and repeats the outcome,
// failures as well, so that a vault asks for its password once a process. A run
// that ended with its context is not kept. Calls for one command wait for each
// other.
func Remember(run Runner) Runner {
	if run == nil {
		run = RunCommand
	}
	type outcome struct {
		turn chan struct{} // held while the command runs
		done bool
		out  string
		err  error
	}
	var mu sync.Mutex
	known := map[string]*outcome{}
	return func(ctx context.Context, command string) (string, error) {
		mu.Lock()
		o := known[command]
		if o == nil {
			o = &outcome{turn: make(chan struct{}, 1)}
			known[command] = o
		}
		mu.Unlock()
		select {
		case o.turn <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		defer func() { <-o.turn }()
		if o.done {
			return o.out, o.err
		}
		out, err := run(ctx, command)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		o.out, o.err, o.done = out, err, true
		return out, err
	}
}
