package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// repository is where the sessions of this run are. setting is the sessionDir
// setting; a folder named in any of the ways holds the sessions of all working
// folders.
func (p *program) repository(a *Args, agentFolder, setting string) *jsonl.Repository {
	r := &jsonl.Repository{Root: filepath.Join(agentFolder, "sessions")}
	for _, dir := range []string{a.SessionDir, p.variable("CODING_AGENT_SESSION_DIR"), setting} {
		if dir != "" {
			r.Folder = p.path(dir)
			break
		}
	}
	return r
}

// openSession opens the session that the arguments ask for, or begins one, and
// returns the folder to work in. Its file appears with the first message.
func (p *program) openSession(ctx context.Context, a *Args, r *jsonl.Repository) (s *session.Session, cwd string, err error) {
	s, err = p.chooseSession(ctx, a, r)
	if err != nil {
		return nil, "", sessionError(err)
	}
	// A session runs in its own folder; only --continue, which looks for the
	// sessions of this one, stays here.
	if a.Continue {
		return s, p.cwd, nil
	}
	if info, err := os.Stat(s.CWD()); err != nil || !info.IsDir() {
		s.Close()
		fmt.Fprintf(p.errs, "Stored session working directory does not exist: %s\nSession file: %s\nCurrent working directory: %s\n",
			printable(s.CWD()), printable(s.File()), printable(p.cwd))
		return nil, "", exitError(1)
	}
	return s, s.CWD(), nil
}

func (p *program) chooseSession(ctx context.Context, a *Args, r *jsonl.Repository) (*session.Session, error) {
	fresh := session.Options{CWD: p.cwd}
	switch {
	case a.Fork != nil:
		return p.forkSession(ctx, a, r, *a.Fork)
	case a.NoSession:
		store := memory.New()
		o := fresh
		if a.SessionID != nil {
			o.ID = *a.SessionID
		}
		return session.Open(store, o)
	case a.Session != nil:
		m, err := p.findSession(ctx, r, *a.Session)
		if err != nil {
			return nil, err
		}
		if m.Foreign {
			if !p.confirm(ctx, "Session found in different project: "+printable(m.CWD)+". Fork it into the current directory? [y/N] ") {
				return nil, fmt.Errorf("Session '%s' belongs to %s: run pinch there, or copy it with --fork %s", *a.Session, m.CWD, m.ID)
			}
			return r.ForkFrom(m.Path, fresh)
		}
		return r.Open(m.Path, p.cwd)
	case a.SessionID != nil:
		if m, ok := r.FindID(ctx, p.cwd, *a.SessionID); ok {
			return r.Open(m.Path, p.cwd)
		}
		p.warn("No project session found with id '%s'; creating a new session with that id.", *a.SessionID)
		fresh.ID = *a.SessionID
		return r.Create(fresh)
	case a.Continue:
		return r.Continue(p.cwd)
	case a.Resume:
		return nil, errors.New("--resume chooses from a list on a terminal: use -c for the newest session, or --session with an id")
	}
	return r.Create(fresh)
}

// findSession is the session that --session or --fork names. Where the beginning
// of an id fits several of a folder, one of them is taken, which is said.
func (p *program) findSession(ctx context.Context, r *jsonl.Repository, arg string) (jsonl.Match, error) {
	m, err := r.Find(ctx, p.cwd, arg)
	if errors.Is(err, &session.Error{Kind: session.NotFound}) {
		return m, fmt.Errorf("No session found matching '%s'", arg)
	}
	if err != nil {
		return m, err
	}
	folder := p.cwd
	if m.Foreign {
		folder = ""
	}
	if sharesBeginning(r.Files(folder), m, arg) {
		p.warn("Several sessions begin with '%s'; this is %s. Write more of the id for another.", arg, m.ID)
	}
	return m, nil
}

func (p *program) forkSession(ctx context.Context, a *Args, r *jsonl.Repository, arg string) (*session.Session, error) {
	m, err := p.findSession(ctx, r, arg)
	if err != nil {
		return nil, err
	}
	o := session.Options{CWD: p.cwd}
	if a.SessionID != nil {
		o.ID = *a.SessionID
		if _, taken := r.FindID(ctx, p.cwd, o.ID); taken {
			return nil, fmt.Errorf("Session already exists with id '%s'", o.ID)
		}
	}
	return r.ForkFrom(m.Path, o)
}

// confirm asks a yes or no question; without a terminal the answer is no, as it
// is when ctx ends.
func (p *program) confirm(ctx context.Context, question string) bool {
	if !p.inTerminal || !p.errTerminal {
		return false
	}
	fmt.Fprint(p.errs, question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(p.in).ReadString('\n')
		if err != nil {
			line = ""
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		return a == "y" || a == "yes"
	case <-ctx.Done():
		return false
	}
}

// sessionError says what a person can do about a session that cannot be opened.
func sessionError(err error) error {
	e, ok := errors.AsType[*session.Error](err)
	if !ok {
		return err
	}
	switch e.Kind {
	case session.InvalidFile:
		return fmt.Errorf("Session file is not a valid pinch session: %s (it was left as it is; name another file)", e.Path)
	case session.NotFound:
		return fmt.Errorf("Session file not found: %s", e.Path)
	case session.Busy:
		return fmt.Errorf("Session file %s cannot be opened: %w (go on there, close it there, or copy it with --fork)", e.Path, e.Err)
	case session.ReadOnly:
		return fmt.Errorf("Session file %s cannot be written: %w (give yourself the right to read and write it, or copy it with --fork)", e.Path, e.Err)
	}
	return err
}
