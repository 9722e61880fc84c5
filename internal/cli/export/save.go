package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// Sessions of which there is no page, with the words that peers use.
var (
	ErrInMemory = errors.New("Cannot export in-memory session to HTML")
	ErrEmpty    = errors.New("Nothing to export yet - start a conversation first")
)

// DefaultName is the name of the page of a session file, without a folder.
func DefaultName(sessionFile string) string {
	return "pinch-session-" + strings.TrimSuffix(filepath.Base(sessionFile), ".jsonl") + ".html"
}

// Save writes the page of a session to a file, as a whole or not at all, and
// gives its path. "" stands for DefaultName in the working directory of the
// process. A file that is there is replaced, the session's own never. The
// session may be in use. It must have a file: ErrInMemory, ErrEmpty.
func Save(ctx context.Context, s *session.Session, path string, o Options) (string, error) {
	switch {
	case s.File() == "":
		return "", ErrInMemory
	case !s.Saved():
		return "", ErrEmpty
	}
	if path == "" {
		path = DefaultName(s.File())
	}
	if err := save(ctx, s, path, o); err != nil {
		return "", fmt.Errorf("Writing %s: %w", path, err)
	}
	return path, nil
}

// File is Save for a session file, which it only reads.
func File(ctx context.Context, sessionFile, path string, o Options) (string, error) {
	// Entries of old files get ids: the same ones each time, so that links hold.
	ids := rand.NewChaCha8([32]byte{})
	s, err := jsonl.Open(sessionFile, jsonl.Options{Options: session.Options{ReadOnly: true, Rand: ids}})
	if err != nil {
		return "", err
	}
	defer s.Close()
	return Save(ctx, s, path, o)
}

func save(ctx context.Context, s *session.Session, path string, o Options) error {
	perm := fs.FileMode(0o600) // as sessions have it: a page holds what they hold
	if real, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Stat(real)
		if err != nil {
			return err
		}
		own, err := os.Stat(s.File())
		switch {
		case err == nil && os.SameFile(own, info):
			return errors.New("this is the session itself; choose another name")
		case info.IsDir():
			return errors.New("this is a folder; name a file in it")
		case !info.Mode().IsRegular(): // a pipe, or a device such as /dev/stdout
			f, err := os.OpenFile(real, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return errors.Join(Write(ctx, f, s, o), f.Close())
		}
		path, perm = real, info.Mode().Perm()
	}
	return replace(path, perm, func(w io.Writer) error { return Write(ctx, w, s, o) })
}

// replace puts what write writes in the place of a file, or leaves it as it was.
func replace(path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err // the name is none that a person gave
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if err = f.Chmod(perm); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
