package jsonl

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pinch-agent/pinch/session"
)

// What other programs do to the file of an open session.
var (
	errGrown    = errors.New("another program wrote to the file")
	errCut      = errors.New("another program cut the file short")
	errGone     = errors.New("the file was deleted or moved while the session was open")
	errReplaced = errors.New("another program put something else in the place of the file")
)

// undisturbed makes sure that the name of the session still stands for the file
// that this store has open, and that it ends where this store left it. Once
// somebody has put the file back, or its like, the session goes on.
func (s *Store) undisturbed(op string, at int64) error {
	info, err := s.file.Stat()
	if err != nil {
		return fail(op, s.path, err)
	}
	switch now, err := os.Stat(s.real); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // nor is there one where its folder is a file now
		return s.conflict(op, errGone)
	case err != nil:
		// A folder that may not be looked into keeps nobody from writing.
	case !os.SameFile(info, now):
		if !s.adopt(now, at) {
			return s.conflict(op, errReplaced)
		}
		return nil
	}
	switch size := info.Size(); {
	case size > at:
		return s.conflict(op, errGrown)
	case size < at:
		return s.conflict(op, errCut)
	}
	return nil
}

func (s *Store) conflict(op string, what error) error {
	e := &session.Error{Kind: session.Conflict, Op: op, Path: s.path, Err: what}
	switch what {
	case errGone, errCut:
		e.Advice = "put it back to go on, or export or fork the session to keep it"
	default:
		e.Advice = "open the session again to go on from there, or export or fork it to keep what was said here"
	}
	return e
}

// adopt goes on in a file that was put in the place of this one and ends the
// same: programs that copy or restore files put them there so, and some file
// systems have another number for a file each time.
func (s *Store) adopt(other fs.FileInfo, size int64) bool {
	if !other.Mode().IsRegular() || other.Size() != size {
		return false
	}
	f, err := s.open(s.real, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return false
	}
	if info, err := f.Stat(); err != nil || info.Size() != size || !sameEnd(s.file, f, size) {
		f.Close()
		return false
	}
	s.file.Close()
	s.file = f
	return true
}

// sameEnd reports whether two files of a size end with the same bytes. No two
// logs end the same: the ids of entries are random.
func sameEnd(a, b io.ReaderAt, size int64) bool {
	n := min(size, 64<<10)
	x, y := make([]byte, n), make([]byte, n)
	if _, err := a.ReadAt(x, size-n); err != nil && err != io.EOF {
		return false
	}
	if _, err := b.ReadAt(y, size-n); err != nil && err != io.EOF {
		return false
	}
	return bytes.Equal(x, y)
}
