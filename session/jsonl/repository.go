package jsonl

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pinch-agent/pinch/session"
)

// Repository finds, makes and takes away session files. It holds no state of
// its own and may be copied.
type Repository struct {
	// Root holds a folder for each working directory, <agent folder>/sessions.
	Root string
	// Folder holds the sessions of all working directories instead; "" for none.
	Folder string
	// Options for the sessions that are opened. ID, CWD and ParentSession are
	// set as needed.
	Options Options
	// Trash takes a file away so that the user can get it back. Nil, or an
	// error, removes it for good.
	Trash func(ctx context.Context, path string) error
}

// Dir is the folder with the sessions of a working directory.
func (r *Repository) Dir(cwd string) string {
	if r.Folder != "" {
		return r.Folder
	}
	return filepath.Join(r.Root, FolderName(cwd))
}

// Open opens the session file at path. A file that does not exist begins with
// the first message of a new session for o.CWD, and has no lock before that.
func Open(path string, o Options) (*session.Session, error) {
	return session.Open(NewStore(path, o), o.Options)
}

// Open opens a session file; cwd stands in for a working directory that the
// file does not have.
func (r *Repository) Open(path, cwd string) (*session.Session, error) {
	o := r.Options
	o.CWD = cwd
	return Open(path, o)
}

// Create begins a session in the folder of its working directory, o.CWD. Its
// file appears with the first message.
func (r *Repository) Create(o session.Options) (*session.Session, error) {
	store, so, err := r.fresh(o)
	if err != nil {
		return nil, err
	}
	return session.Open(store, so)
}

// fresh is the store for a new session and the options with an id.
func (r *Repository) fresh(o session.Options) (*Store, session.Options, error) {
	so := r.Options
	so.ID, so.CWD, so.ParentSession, so.ReadOnly = o.ID, o.CWD, o.ParentSession, false
	if o.Now != nil {
		so.Now = o.Now
	}
	if o.Rand != nil {
		so.Rand = o.Rand
	}
	now, random := time.Now, io.Reader(rand.Reader)
	if so.Now != nil {
		now = so.Now
	}
	if so.Rand != nil {
		random = so.Rand
	}
	if so.ID == "" {
		id, err := session.NewID(now(), random)
		if err != nil {
			return nil, so.Options, err
		}
		so.ID = id
	}
	if !session.ValidID(so.ID) {
		return nil, so.Options, &session.Error{Kind: session.BadID, Op: "create", Path: so.ID}
	}
	s := NewStore(filepath.Join(r.Dir(so.CWD), FileName(now(), so.ID)), so)
	if o.ID != "" {
		s.mark = o.ID
		s.taken = func() (string, bool) {
			m, ok := r.FindID(context.Background(), so.CWD, so.ID)
			return m.Path, ok
		}
	}
	return s, so.Options, nil
}

// Continue opens the newest session of a working directory, or begins one.
func (r *Repository) Continue(cwd string) (*session.Session, error) {
	path, err := r.Newest(cwd)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return r.Create(session.Options{CWD: cwd})
	}
	return r.Open(path, cwd)
}

// Fork makes a session file of the path to an entry, "" for an empty session.
func (r *Repository) Fork(s *session.Session, id string, o session.Options) (*session.Session, error) {
	if o.CWD == "" {
		o.CWD = s.CWD()
	}
	store, o, err := r.fresh(o)
	if err != nil {
		return nil, err
	}
	return s.Fork(store, id, o)
}

// ForkFrom copies a whole session file into the folder of another working
// directory, as a session of its own that names the file as its parent. Lines
// that are too long to be read are left out.
func (r *Repository) ForkFrom(path string, o session.Options) (*session.Session, error) {
	if o.ParentSession == "" {
		o.ParentSession = path
	}
	store, o, err := r.fresh(o)
	if err != nil {
		return nil, err
	}
	in, err := openReader(path)
	if err != nil {
		return nil, fail("fork", path, err)
	}
	defer in.close()
	log, err := in.log(store.maxLine)
	if err != nil {
		return nil, fail("fork", path, err)
	}
	data, err := log.ReadAll()
	if err != nil {
		return nil, fail("fork", path, err)
	}
	data, err = session.Rehead(data, o)
	if err != nil {
		if e, ok := errors.AsType[*session.Error](err); ok {
			err = &session.Error{Kind: e.Kind, Op: "fork", Path: path, Err: e.Err, Advice: "the file was left as it is"}
		}
		return nil, err
	}
	if _, err := store.Append(0, data); err != nil {
		store.Close()
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	if err := copyJournal("fork", path, store.Path(), store.maxLine); err != nil {
		os.Remove(store.Path())
		return nil, err
	}
	return r.Open(store.Path(), o.CWD)
}
