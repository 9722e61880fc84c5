package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/session"
)

// Import copies a session file into the folder with the sessions of cwd and
// opens the copy; one that lies there already is opened as it is. It runs in the
// working directory that it names, or in cwd when it names none. What is no
// session is not taken in, nor is a session whose working directory is gone.
// The copy never takes the place of a file: -1, -2 and so on go behind a name
// that is taken.
func (r *Repository) Import(path, cwd string) (*session.Session, error) {
	const op = "import"
	in, err := openRegular(op, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	dir := r.Dir(cwd)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(op, path, err)
	}
	drop := func() {}
	if !sameDir(dir, filepath.Dir(path)) {
		from := path
		path, err = place(freeName(dir, filepath.Base(path)), 0o600, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
		if err != nil {
			return nil, fail(op, from, err)
		}
		drop = func() { os.Remove(path); os.Remove(path + journalSuffix) }
		if err := copyJournal(op, from, path, NewStore(from, r.Options).maxLine); err != nil {
			drop()
			return nil, err
		}
	}
	s, err := r.Open(path, cwd)
	if err != nil {
		drop()
		return nil, err
	}
	if info, err := os.Stat(s.CWD()); err != nil || !info.IsDir() {
		s.Close()
		drop()
		return nil, &session.Error{Kind: session.MissingCWD, Op: op, Path: s.CWD(),
			Advice: "make the folder, or fork the session into another one"}
	}
	return s, nil
}

// ExportOptions say what Export writes. The zero value is the branch of the
// leaf.
type ExportOptions struct {
	Leaf    string // entry at which the branch ends; "" for the leaf
	Tree    bool   // all branches, as they are in the session
	Replace bool   // put it in the place of a file that is there
}

// Export writes a session, which need not be saved, to a JSONL file of its own,
// as a whole or not at all. A file that is there is kept unless the options say
// otherwise, and a session that is open always.
func Export(s *session.Session, path string, o ExportOptions) error {
	const op = "export"
	write := s.Export
	switch {
	case o.Tree:
		write = s.ExportTree
	case o.Leaf != "":
		write = func(w io.Writer) error { return s.ExportBranch(w, o.Leaf) }
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(op, path, err)
	}
	if o.Replace {
		if real, l, err := own(op, path); err == nil {
			defer l.release()
			temp, err := compose(real, 0o600, write)
			if err != nil {
				return exportError(path, err)
			}
			if err := os.Rename(temp, real); err != nil {
				os.Remove(temp)
				return fail(op, path, err)
			}
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := place(exactly(path), 0o600, write); err != nil {
		return exportError(path, err)
	}
	return nil
}

// exportError tells what went wrong at the file, which the session knows nothing
// of.
func exportError(path string, err error) error {
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.IO && e.Err != nil {
		err = e.Err
	}
	err = fail("export", path, err)
	if e := err.(*session.Error); e.Kind == session.Exists {
		e.Advice = "choose another name"
	}
	return err
}

// place makes a file under a name that reserve takes. Whenever the program ends,
// what stands there is nothing, an empty file, or all of it.
func place(reserve func() (string, error), perm fs.FileMode, write func(io.Writer) error) (string, error) {
	name, err := reserve()
	if err != nil {
		return "", err
	}
	temp, err := compose(name, perm, write)
	if err == nil {
		if err = os.Rename(temp, name); err == nil {
			return name, nil
		}
		os.Remove(temp)
	}
	os.Remove(name)
	return "", err
}

// exactly takes a name that must be free.
func exactly(path string) func() (string, error) {
	return func() (string, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", err
		}
		return path, f.Close()
	}
}

// freeName takes a name in a folder, with -1, -2 and so on behind it when that
// is taken.
func freeName(dir, name string) func() (string, error) {
	base := strings.TrimSuffix(name, extension)
	return func() (string, error) {
		for i := 0; ; i++ {
			if name = base; i > 0 {
				name += "-" + strconv.Itoa(i)
			}
			path, err := exactly(filepath.Join(dir, name+extension))()
			if !errors.Is(err, fs.ErrExist) {
				return path, err
			}
		}
	}
}
