package rpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// server answers commands. One goroutine handles them in their order; those that
// take long have tasks, which belong to the conversation they began in.
type server struct {
	o        Options
	out      *record.Writer
	commands map[string]func(*server, *command)
	ctx      context.Context // ends the program
	cancel   context.CancelFunc
	handled  atomic.Int64  // commands
	turns    chan struct{} // of shells
	c        *active
	shown    shownModel // of the goroutine that handles commands
}

// commands are the commands by their type.
func commands() map[string]func(*server, *command) {
	return map[string]func(*server, *command){
		"prompt":      (*server).prompt,
		"steer":       func(s *server, c *command) { s.queue(c, harness.AsSteering) },
		"follow_up":   func(s *server, c *command) { s.queue(c, harness.AsFollowUp) },
		"abort":       (*server).abort,
		"clear_queue": (*server).clearQueue,

		"get_state":               (*server).state,
		"get_messages":            (*server).messages,
		"get_last_assistant_text": (*server).lastAnswer,
		"get_session_stats":       (*server).stats,
		"get_entries":             (*server).entries,
		"get_tree":                (*server).tree,
		"get_fork_messages":       (*server).forkMessages,
		"get_commands":            (*server).listCommands,
		"export_html":             (*server).exportHTML,

		"set_model":                     (*server).setModel,
		"cycle_model":                   (*server).cycleModel,
		"get_available_models":          (*server).availableModels,
		"set_thinking_level":            (*server).setThinkingLevel,
		"cycle_thinking_level":          (*server).cycleThinkingLevel,
		"get_available_thinking_levels": (*server).availableThinkingLevels,

		"set_steering_mode":   (*server).setSteeringMode,
		"set_follow_up_mode":  (*server).setFollowUpMode,
		"set_auto_compaction": (*server).setAutoCompaction,
		"set_auto_retry":      (*server).setAutoRetry,

		"compact":     (*server).compact,
		"abort_retry": (*server).abortRetry,
		"bash":        (*server).bash,
		"abort_bash":  (*server).abortBash,

		"new_session":      (*server).newSession,
		"switch_session":   (*server).switchSession,
		"fork":             (*server).fork,
		"clone":            (*server).clone,
		"set_session_name": (*server).setSessionName,
	}
}

// active is the conversation that commands are about.
type active struct {
	*Conversation
	ctx         context.Context // ends with it
	cancel      context.CancelFunc
	unsubscribe func()
	tasks       sync.WaitGroup

	mu        sync.Mutex
	prompts   []*entrance     // that are not accepted yet, in their order
	over      bool            // the client was told that the run ended, and none has begun since
	shells    context.Context // of the commands of the person
	endShells context.CancelFunc
}

func (s *server) attach(c *Conversation) {
	a := &active{Conversation: c}
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	a.shells, a.endShells = context.WithCancel(a.ctx)
	a.unsubscribe = c.Harness.Subscribe(func(ctx context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.AgentStart, agent.AgentEnd:
			a.ended(ev.Type == agent.AgentEnd && !ev.WillRetry)
		}
		return s.event(ctx, ev)
	})
	s.c = a
}

// stop ends what is active, waits for it, and keeps what comes out of it.
func (a *active) stop() {
	a.cancel()
	a.Harness.Abort()
	a.tasks.Wait()
	a.unsubscribe()
}

// event writes what happens. Once the program ends nobody is told any more.
func (s *server) event(_ context.Context, ev harness.Event) error {
	if s.ctx.Err() == nil {
		s.write(func(dst []byte) []byte {
			n := len(dst)
			if dst = s.o.Wire.AppendEvent(dst, &ev); len(dst) > n {
				dst = append(dst, '\n')
			}
			return dst
		})
	}
	return nil
}

// write writes what fill appends, and waits while the reader is slow. An output
// that is closed ends the program.
func (s *server) write(fill func(dst []byte) []byte) {
	if err := s.out.Write(s.ctx, fill); err != nil {
		s.cancel()
	}
}

// handle answers a line, or lets a task do it.
func (s *server) handle(l line) {
	if l.tooLong {
		s.refuseLine(errTooLong)
		return
	}
	c, err := parse(l.text)
	if err != nil {
		s.refuseLine(err)
		return
	}
	if run := s.commands[c.name]; run != nil {
		run(s, c)
		return
	}
	what := c.name
	switch {
	case c.typ == nil:
		what = "the line has no type"
	case c.typ[0] != '"':
		what = string(c.typ)
	}
	s.fail(c, fmt.Errorf("Unknown command: %s", what))
}

// refuseLine answers a line that is no command.
func (s *server) refuseLine(err error) {
	s.write(func(dst []byte) []byte {
		o := jsonwire.Begin(dst)
		o.Text("type", "response")
		o.Text("command", "parse")
		o.Bool("success", false)
		o.Text("error", "Failed to parse command: "+err.Error())
		return append(o.End(), '\n')
	})
}

// done answers a command. data appends the data of the response, nil for none.
func (s *server) done(c *command, data func(dst []byte) []byte) {
	s.write(func(dst []byte) []byte {
		o := c.response(dst, true)
		if data != nil {
			o.Key("data")
			o.B = data(o.B)
		}
		return append(o.End(), '\n')
	})
}

// fail answers a command that failed.
func (s *server) fail(c *command, err error) {
	s.write(func(dst []byte) []byte {
		o := c.response(dst, false)
		o.Text("error", harness.Explain(err))
		return append(o.End(), '\n')
	})
}

// finish answers a command without data, behind the events that it caused.
func (s *server) finish(c *command, err error) {
	if err != nil {
		s.fail(c, err)
		return
	}
	s.settled()
	s.done(c, nil)
}

// settled waits until the events of what was done are written.
func (s *server) settled() {
	_ = s.c.Harness.Delivered(s.ctx) // fails only with the program
}

func (c *command) response(dst []byte, success bool) jsonwire.Object {
	o := jsonwire.Begin(dst)
	o.Raw("id", c.id)
	o.Text("type", "response")
	o.Raw("command", c.typ)
	o.Bool("success", success)
	return o
}

// object appends an object to dst.
func object(fill func(o *jsonwire.Object)) func(dst []byte) []byte {
	return func(dst []byte) []byte {
		o := jsonwire.Begin(dst)
		fill(&o)
		return o.End()
	}
}
