package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/session"
)

// beside lists the names of what may lie beside a session file and goes where
// it goes: the journal of a run that did not end, and the original of a file
// whose migration left lines out.
func beside(path string) []string { return []string{path + journalSuffix, path + ".orig"} }

// own locks a session file against writers before it is taken away or changed
// as a whole, and gives its real name. What is no file is refused.
func own(op, path string) (real string, l *lock, err error) {
	if err := regular.Check(path); err != nil {
		return "", nil, fail(op, path, err)
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", nil, fail(op, path, err)
	}
	l, err = acquire(real)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Op = op
		return "", nil, e
	}
	return real, l, nil
}

// SetName names a session that nobody has open; an empty name takes the name
// away.
func (r *Repository) SetName(path, name string) error {
	// Opening what is not there would begin a session.
	if err := regular.Check(path); err != nil {
		return fail("name", path, err)
	}
	s, err := r.Open(path, "")
	if err != nil {
		return err
	}
	_, err = s.SetName(name)
	if e := s.Close(); err == nil {
		err = e
	}
	return err
}

// Delete takes a session file away that nobody has open, and what lies beside
// it. Of a link only the link goes.
func (r *Repository) Delete(ctx context.Context, path string) error {
	const op = "delete"
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		_, l, err := own(op, path)
		if err != nil {
			return err
		}
		defer l.release()
	}
	if err := r.discard(ctx, path); err != nil {
		return fail(op, path, err)
	}
	for _, name := range beside(path) {
		if err := r.discard(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(op, name, err)
		}
	}
	return nil
}

// discard puts a file into the trash, or removes it where there is none.
func (r *Repository) discard(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	if r.Trash != nil && r.Trash(ctx, path) == nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return os.Remove(path)
}

// Move makes a session that nobody has open one of another working directory,
// such as a project that was moved, and gives the new path of its file: in the
// folder of that directory, with -1, -2 and so on behind the name when that is
// taken. Sessions that were forked from it go on naming the old path.
//
// Whenever the program ends, the session is at the old place, at the new one, or
// at both.
func (r *Repository) Move(path, cwd string) (string, error) {
	const op = "move"
	real, l, err := own(op, path)
	if err != nil {
		return "", err
	}
	defer l.release()
	to, err := r.move(real, cwd)
	if err != nil {
		return "", fail(op, path, err)
	}
	return to, nil
}

func (r *Repository) move(from, cwd string) (to string, err error) {
	in, err := regular.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return "", err
	}
	dir := r.Dir(cwd)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	rehead := func(w io.Writer) error { return copyTo(w, in, from, cwd) }
	if sameDir(dir, filepath.Dir(from)) {
		temp, err := compose(from, info.Mode().Perm(), rehead)
		if err != nil {
			return "", err
		}
		in.Close() // Windows renames only over files that nobody has open
		if err := os.Rename(temp, from); err != nil {
			os.Remove(temp)
			return "", err
		}
		syncDir(dir)
		return from, nil
	}
	if to, err = place(freeName(dir, filepath.Base(from)), info.Mode().Perm(), rehead); err != nil {
		return "", err
	}
	old, fresh := beside(from), beside(to)
	for i := range old {
		if err := carry(old[i], fresh[i]); err != nil {
			os.Remove(to)
			return "", err
		}
	}
	syncDir(dir)
	in.Close()
	for _, name := range append(old, from) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return to, nil
}

// copyTo copies a log with a header that names another working directory.
func copyTo(w io.Writer, in io.Reader, path, cwd string) error {
	b := bufio.NewReaderSize(in, maxHeader)
	session.SkipMark(b)
	for {
		line, err := b.ReadSlice('\n')
		trimmed := bytes.TrimSpace(line)
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if err == nil && !session.Counts(trimmed) {
			if _, err := w.Write(line); err != nil {
				return err
			}
			continue
		}
		h, ok := session.ParseHeader(trimmed)
		if !ok || errors.Is(err, bufio.ErrBufferFull) {
			return &session.Error{Kind: session.InvalidFile, Op: "move", Path: path, Advice: "the file was left as it is"}
		}
		if _, err := w.Write(append(h.WithCWD(cwd).Raw, '\n')); err != nil {
			return err
		}
		_, err = io.Copy(w, b)
		return err
	}
}

// carry copies a file, if it is there, under a name that is free.
func carry(from, to string) error {
	in, err := regular.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = place(exactly(to), 0o600, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
	return err
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
