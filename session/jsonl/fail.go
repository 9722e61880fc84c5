package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/session"
)

// fail turns an error of the operating system into one that says what to do.
func fail(op, path string, err error) error {
	if _, ok := errors.AsType[*session.Error](err); ok {
		return err
	}
	e := &session.Error{Kind: session.IO, Op: op, Path: path, Err: bare(path, err)}
	switch {
	case errors.Is(err, regular.ErrNotRegular):
		e.Kind, e.Advice = session.InvalidFile, "a session is a file: name another one"
	case errors.Is(err, syscall.EFBIG):
		e.Kind, e.Advice = session.DiskFull, "raise the limit on the size of files and go on; what was written before is kept"
	case diskFull(err):
		e.Kind, e.Advice = session.DiskFull, "free some space and go on; what was written before is kept"
	case readOnly(err) || errors.Is(err, fs.ErrPermission):
		e.Kind, e.Advice = session.ReadOnly, "give yourself the right to read and write the file and its folder, or fork the session"
		if op == "create" {
			e.Advice = "give yourself the right to write to the folder, or keep sessions in another one"
		}
	case errors.Is(err, fs.ErrExist) && isMkdir(err):
		e.Advice = "a link to nothing has the name of the folder: put it right, or keep sessions in another one"
	case errors.Is(err, fs.ErrExist):
		e.Kind, e.Advice = session.Exists, "choose another session id"
	case errors.Is(err, fs.ErrNotExist):
		e.Kind = session.NotFound
		if op == "create" {
			e.Advice = "keep sessions in a folder that can be made"
		}
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG):
		e.Advice = "name another file"
	}
	return e
}

func isMkdir(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "mkdir"
}

// bare is err without the operation and the path that stand in front of it when
// they are about the session file itself: the session.Error names them.
func bare(path string, err error) error {
	same := func(name string) bool {
		name = filepath.Base(name)
		return name == filepath.Base(path) || name == filepath.Base(tempName(path))
	}
	switch e := err.(type) {
	case *fs.PathError:
		if same(e.Path) {
			return e.Err
		}
	case *os.LinkError:
		if same(e.New) {
			return e.Err
		}
	}
	return err
}
