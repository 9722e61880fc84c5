package rpc

import (
	"context"
	"time"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/session"
)

// maxShells is how many commands run at once; further ones wait for their turn.
const maxShells = 32

// bash runs a command of the person. It becomes part of the conversation when it
// ends, also when it is cancelled.
func (s *server) bash(c *command) {
	a := s.c
	a.mu.Lock()
	ctx := a.shells
	a.mu.Unlock()
	a.tasks.Go(func() {
		m, err := s.runShell(ctx, a, c)
		if err == nil {
			err = a.Harness.AppendMessage(m)
		}
		switch {
		case s.ctx.Err() != nil: // cut off by the end of the program
		case err != nil:
			s.fail(c, err)
		default:
			s.done(c, func(dst []byte) []byte { return appendOutcome(dst, m) })
		}
	})
}

// shellLine is what a command runs. One that is missing is the word that pi hands
// to the shell in its place, so that a client gets the same answer.
func (c *command) shellLine() string {
	v := c.get("command")
	if v == nil {
		return "undefined"
	}
	if line, ok := jsonwire.StringValue(v); ok {
		return line
	}
	return string(v)
}

func (s *server) runShell(ctx context.Context, a *active, c *command) (*session.BashExecution, error) {
	m := &session.BashExecution{
		Command:            jsonwire.ToValidUTF8(c.shellLine()),
		ExcludeFromContext: string(c.get("excludeFromContext")) == "true",
	}
	given, err := a.Harness.BeforeUserBash(ctx, harness.UserBash{
		Command: m.Command, ExcludeFromContext: m.ExcludeFromContext, Cwd: a.Dir,
	})
	if given != nil || err != nil {
		return given, err
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
	}
	r, err := a.Shell.Run(ctx, m.Command, func(text []byte) {
		s.write(func(dst []byte) []byte {
			o := jsonwire.Begin(dst)
			o.Text("type", "bash_execution_update")
			o.Raw("id", c.id)
			o.Text("delta", string(text))
			return append(o.End(), '\n')
		})
	})
	if err != nil {
		return nil, err
	}
	m.Output, m.ExitCode, m.Cancelled, m.Truncated = r.Output, r.ExitCode, r.Cancelled, r.Truncated
	m.FullOutputPath, m.Timestamp = r.FullOutputPath, time.Now().UnixMilli()
	return m, nil
}

func appendOutcome(dst []byte, m *session.BashExecution) []byte {
	o := jsonwire.Begin(dst)
	o.Text("output", m.Output)
	o.IntPtr("exitCode", m.ExitCode)
	o.Bool("cancelled", m.Cancelled)
	o.Bool("truncated", m.Truncated)
	o.OptText("fullOutputPath", m.FullOutputPath)
	return o.End()
}

// abortBash answers first: the commands answer when they have ended.
func (s *server) abortBash(c *command) {
	s.done(c, nil)
	s.c.abortShells()
}

// abortShells cancels the commands that run or wait.
func (a *active) abortShells() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endShells()
	a.shells, a.endShells = context.WithCancel(a.ctx)
}
