// Package rpc is the mode in which another program drives a conversation: it
// writes commands to the input, one JSON object a line, and reads responses and
// events from the output. The manual is docs/rpc.md.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/resource"
	"github.com/pinch-agent/pinch/tool"
)

// Conversation is a session with what the commands need of it.
type Conversation struct {
	Harness   *harness.Harness
	Dir       string // working folder
	Shell     tool.UserShell
	Models    *catalog.Catalog
	Scope     []catalog.Choice // models to go round; none for all that are set up
	Templates []resource.Template
	Skills    []resource.Skill
	FitImages bool // scale large pictures of prompts down
	// Save writes a setting of the person, named with dots.
	Save  func(ctx context.Context, name string, value any) error
	Close func() // closes the harness and what belongs to it
}

// Host makes the conversations that commands ask for. They stand beside the one
// that is open, which goes on when there is an error.
type Host interface {
	// New begins a session in the folder of c; parent is the file of the session
	// that it continues, "" for none.
	New(ctx context.Context, c *Conversation, parent string) (*Conversation, error)
	// Open opens a session file, or begins one where there is none.
	Open(ctx context.Context, c *Conversation, path string) (*Conversation, error)
	// Fork copies the session of c up to an entry, "" for none of it.
	Fork(ctx context.Context, c *Conversation, entryID string) (*Conversation, error)
}

// Options are what Run needs.
type Options struct {
	In   io.Reader
	Out  io.Writer
	Wire record.Wire
	Host Host
	// UI, when not nil, is given what extensions ask the client with, before the
	// first command.
	UI func(*UI)
	// Ending is called when the input has ended, which is the orderly end of the
	// program.
	Ending func()
	// Patience is how long a reader that does not read holds up the end; 0 for 10
	// seconds.
	Patience time.Duration
	// Warn takes what has no place in the records.
	Warn func(format string, args ...any)
}

// Run answers commands about first, and about the conversations that take its
// place, until the input or ctx ends. Then what is active is aborted, the session
// is closed, and what the reader has not read yet is written, for a while. An
// error says that the output could not be written; the session has what was done.
func Run(ctx context.Context, first *Conversation, o Options) error {
	s := &server{o: o, out: record.NewWriter(o.Out), commands: commands(), turns: make(chan struct{}, maxShells)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	s.attach(first)
	go func() {
		select {
		case <-s.out.Done(): // nobody can be told anything any more
			s.cancel()
		case <-s.ctx.Done():
		}
	}()
	ui := &UI{write: s.write, questions: map[string]chan *command{}}
	if o.UI != nil {
		o.UI(ui)
	}
	in := readLines(s.ctx, o.In, ui.takes, func() {
		o.Ending()
		s.hurry()
	})
	for {
		l, ok := in.next(s.ctx)
		if !ok {
			break
		}
		s.handle(l)
		s.handled.Add(1)
	}
	s.cancel() // no more events
	s.c.stop()
	s.c.Close()
	end, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	err := s.out.Finish(end)
	switch {
	case ctx.Err() != nil: // whoever ended it knows
		return nil
	case errors.Is(err, context.Canceled): // of Finish
		return errors.New("the last records were not read: what was done is in the session")
	case err != nil:
		return fmt.Errorf("the records could not be written (%w): what was done until then is in the session", err)
	}
	return nil
}

func (s *server) patience() time.Duration { return cmp.Or(s.o.Patience, 10*time.Second) }

// hurry ends the program when the input has ended and nobody reads the answers to
// what is left of it.
func (s *server) hurry() {
	t := time.NewTicker(s.patience())
	defer t.Stop()
	for before := int64(-1); ; {
		n := s.handled.Load()
		if n == before {
			s.cancel()
			return
		}
		before = n
		select {
		case <-t.C:
		case <-s.ctx.Done():
			return
		}
	}
}
