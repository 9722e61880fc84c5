package rpc

import (
	"errors"
	"os"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Some commands put another session in the place of the open one. Nothing else is
// handled until it is there, so that the commands behind them are about it.

// replace opens another conversation and ends the one that is open, with what is
// active in it, unless a hook refuses. data appends the data of the response.
func (s *server) replace(c *command, ask func() (refused bool, err error), open func() (*Conversation, error), data func(o *jsonwire.Object)) {
	refused, err := ask()
	if err == nil && !refused {
		var next *Conversation
		if next, err = open(); err == nil {
			s.c.stop()
			s.c.Close()
			s.attach(next)
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.done(c, object(func(o *jsonwire.Object) {
		data(o)
		o.Bool("cancelled", refused)
	}))
}

func nothing(*jsonwire.Object) {}

func (s *server) newSession(c *command) {
	parent, err := c.optional("parentSession")
	if err != nil {
		s.fail(c, err)
		return
	}
	s.replace(c,
		func() (bool, error) { return s.c.Harness.BeforeSwitch(s.ctx, harness.Switching{Reason: "new"}) },
		func() (*Conversation, error) { return s.o.Host.New(s.ctx, s.c.Conversation, parent) }, nothing)
}

func (s *server) switchSession(c *command) {
	path, err := c.text("sessionPath")
	if err != nil {
		s.fail(c, err)
		return
	}
	if sameFile(s.c.Harness.Session().File(), path) { // which has one writer
		s.c.stop()
		s.attach(s.c.Conversation)
		s.done(c, object(func(o *jsonwire.Object) { o.Bool("cancelled", false) }))
		return
	}
	s.replace(c,
		func() (bool, error) {
			return s.c.Harness.BeforeSwitch(s.ctx, harness.Switching{Reason: "resume", Target: path})
		},
		func() (*Conversation, error) { return s.o.Host.Open(s.ctx, s.c.Conversation, path) }, nothing)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// fork goes on before a message of the user, whose text comes back.
func (s *server) fork(c *command) {
	id, _ := c.text("entryId") // none is as wrong as one that is not there
	sess := s.c.Harness.Session()
	target, err := sess.Target(id)
	if e := sess.Entry(id); err != nil || e.Role() != llm.RoleUser {
		s.fail(c, errors.New("Invalid entry ID for forking"))
		return
	}
	s.replace(c, s.beforeFork(id, "before"),
		func() (*Conversation, error) { return s.o.Host.Fork(s.ctx, s.c.Conversation, target.Leaf) },
		func(o *jsonwire.Object) { o.Text("text", target.Text) })
}

// clone goes on in a copy of the session.
func (s *server) clone(c *command) {
	sess := s.c.Harness.Session()
	if !sess.Saved() {
		s.fail(c, errors.New("This session has not been saved yet. Send a message before cloning or forking it."))
		return
	}
	leaf := sess.LeafID()
	s.replace(c, s.beforeFork(leaf, "at"),
		func() (*Conversation, error) { return s.o.Host.Fork(s.ctx, s.c.Conversation, leaf) }, nothing)
}

func (s *server) beforeFork(id, position string) func() (bool, error) {
	return func() (bool, error) {
		return s.c.Harness.BeforeFork(s.ctx, harness.Forking{EntryID: id, Position: position})
	}
}

func (s *server) setSessionName(c *command) {
	name, err := c.text("name")
	if err == nil && jsonwire.Blank(name) {
		err = errors.New("Session name cannot be empty")
	}
	if err == nil {
		err = s.c.Harness.SetName(name)
	}
	s.finish(c, err)
}
