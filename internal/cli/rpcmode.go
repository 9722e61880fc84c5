package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/internal/cli/rpc"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
	"github.com/pinch-agent/pinch/tool"
)

// serve is RPC mode.
func (p *program) serve(ctx context.Context, a *Args) error {
	if len(a.Files) > 0 {
		return errors.New("@file arguments are not supported in RPC mode")
	}
	if err := checkBranch(a, true); err != nil {
		return err
	}
	b, err := p.prepare(a)
	if err != nil {
		return err
	}
	defer b.close()
	r, err := b.start(ctx)
	if err != nil {
		return err
	}
	if _, err := r.goBack(ctx, a); err != nil {
		r.close()
		return err
	}
	return rpc.Run(ctx, r.conversation(), rpc.Options{
		In: p.in, Out: p.out, Wire: a.Wire, Host: b, Ending: p.ending, Warn: p.warn,
	})
}

func (r *running) conversation() *rpc.Conversation {
	if line := recovered(r.harness.Recovered(), false); line != "" {
		r.warn("%s", line)
	}
	return &rpc.Conversation{
		Harness: r.harness, Dir: r.cwd, Models: r.catalog, Scope: r.scope, Templates: r.templates, Skills: r.skills,
		FitImages: r.settings.Settings().ImagesAutoResize(),
		Shell:     tool.UserShell{Env: r.env, Prefix: r.settings.Settings().ShellCommandPrefix()},
		Save: func(ctx context.Context, name string, value any) error {
			return r.settings.Write(ctx, settings.User, settings.Set(name, value))
		},
		Close: r.close,
	}
}

// New implements rpc.Host.
func (b *base) New(_ context.Context, c *rpc.Conversation, parent string) (*rpc.Conversation, error) {
	o := session.Options{CWD: c.Dir, ParentSession: parent}
	if b.args.NoSession {
		return b.converse(session.Open(memory.New(), o))
	}
	return b.converse(b.beside(c.Harness.Session()).Create(o))
}

// beside is where a session that follows another is kept: in the folder of that
// one's file, which may be opened from anywhere.
func (b *base) beside(s *session.Session) *jsonl.Repository {
	if s.File() == "" {
		return b.sessions
	}
	r := *b.sessions
	r.Folder = filepath.Dir(s.File())
	return &r
}

// Open implements rpc.Host.
func (b *base) Open(_ context.Context, c *rpc.Conversation, path string) (*rpc.Conversation, error) {
	return b.converse(b.sessions.Open(b.p.path(path), c.Dir))
}

// Fork implements rpc.Host.
func (b *base) Fork(_ context.Context, c *rpc.Conversation, entryID string) (*rpc.Conversation, error) {
	from := c.Harness.Session()
	if from.File() == "" {
		return b.converse(from.Fork(memory.New(), entryID, session.Options{}))
	}
	return b.converse(b.beside(from).Fork(from, entryID, session.Options{}))
}

// converse makes a conversation of a session that was opened.
func (b *base) converse(sess *session.Session, err error) (*rpc.Conversation, error) {
	if err != nil {
		return nil, sessionError(err)
	}
	if info, err := os.Stat(sess.CWD()); err != nil || !info.IsDir() {
		sess.Close()
		return nil, fmt.Errorf("Stored session working directory does not exist: %s", sess.CWD())
	}
	r, err := b.run(sess, sess.CWD(), "")
	if err != nil {
		return nil, err
	}
	return r.conversation(), nil
}
