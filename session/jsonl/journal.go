package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/session"
)

// journalSuffix ends the name of the journal beside a session file. Listings
// look at *.jsonl only and pass it over.
const journalSuffix = ".run"

// journalKept is the size, in bytes, below which a journal of no more use is
// added to: a run with many short turns need not cut it at each of them.
const journalKept = 1 << 20

// journal is the state of the journal of a Store.
type journal struct {
	file file
	size int64 // of the whole lines
	torn bool  // the last line lacks its line break
	cut  bool  // a failed append left something behind size
	left bool  // a journal was there when it was loaded
	err  error // why it could not be loaded
}

func (s *Store) journalName() string { return s.real + journalSuffix }

// LoadJournal implements session.Journal. A journal that cannot be read, or is
// larger than Options.MaxLine, stays where it is, and is not written to either:
// it may tell what a run did that was cut off.
func (s *Store) LoadJournal() ([]byte, error) {
	if s.file == nil || s.readOnly {
		return nil, nil
	}
	data, err := readJournal(s.journalName(), s.maxLine)
	if err != nil {
		s.run.err = journalError("load journal", s.path, err)
		return nil, s.run.err
	}
	s.run.left = data != nil
	return data, nil
}

// readJournal reads a journal, which need not be there.
func readJournal(name string, limit int64) ([]byte, error) {
	// A link could point at any file.
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: regular.ErrNotRegular}
	}
	f, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(limit)
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

func tooLarge(limit int64) error { return fmt.Errorf("larger than %d bytes", limit) }

// journalError is a failure at the journal of the session at path.
func journalError(op, path string, err error) error {
	path += journalSuffix
	e := fail(op, path, err).(*session.Error)
	if _, missing := os.Lstat(path); e.Kind != session.DiskFull && errors.Is(missing, fs.ErrNotExist) {
		e.Advice = "the folder of a session has to be one that you can write to: what a run does is noted there"
	} else if e.Kind != session.DiskFull {
		e.Advice = "make it readable and writable, or move it away: it tells what a run did that was cut off"
	}
	return e
}

// AppendJournal implements session.Journal.
func (s *Store) AppendJournal(lines []byte, fresh bool) error {
	const op = "append to journal"
	if s.file == nil || s.readOnly {
		return &session.Error{Kind: session.Closed, Op: op, Path: s.path}
	}
	if s.run.err != nil {
		return s.run.err
	}
	if err := s.note(lines, fresh); err != nil {
		return journalError(op, s.path, err)
	}
	return nil
}

func (s *Store) note(lines []byte, fresh bool) error {
	j := &s.run
	if j.file == nil {
		if err := s.openJournal(); err != nil {
			return err
		}
	}
	if j.cut || fresh && j.size > journalKept {
		to := j.size
		if fresh && to > journalKept {
			to = 0
		}
		if err := cutFile(j.file, s.journalName(), to); err != nil {
			return err
		}
		j.cut, j.size, j.torn = false, to, j.torn && to > 0
	}
	if j.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	if j.size+int64(len(lines)) > s.maxLine {
		return tooLarge(s.maxLine)
	}
	n, err := j.file.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	if err == nil && s.sync {
		err = j.file.Sync()
	}
	if err != nil {
		j.cut = cutFile(j.file, s.journalName(), j.size) != nil
		return err
	}
	j.size, j.torn = j.size+int64(len(lines)), false
	return nil
}

// openJournal opens the journal, or makes it.
func (s *Store) openJournal() error {
	name := s.journalName()
	info, err := os.Lstat(name)
	made := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: name, Err: regular.ErrNotRegular}
	}
	f, err := s.open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	s.run = journal{file: f, left: s.run.left}
	if !made {
		if info, err = f.Stat(); err != nil {
			return err
		}
		s.run.size, s.run.torn = info.Size(), info.Size() > 0 // an empty line does no harm
	}
	if made && s.sync {
		syncDir(filepath.Dir(name))
	}
	return nil
}

// RemoveJournal implements session.Journal.
func (s *Store) RemoveJournal() error {
	if s.run.file == nil && !s.run.left || s.run.err != nil {
		return nil
	}
	s.closeJournal()
	s.run.left = false
	if err := os.Remove(s.journalName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return journalError("remove journal", s.path, err)
	}
	return nil
}

// closeJournal lets go of the journal, which stays.
func (s *Store) closeJournal() {
	if s.run.file != nil {
		s.run.file.Close()
		s.run.file, s.run.left = nil, true
	}
}

// copyJournal gives the session at to the journal of that at from: the copy of a
// session whose run was cut off knows what was done.
func copyJournal(op, from, to string, limit int64) error {
	if real, err := filepath.EvalSymlinks(from); err == nil {
		from = real
	}
	data, err := readJournal(from+journalSuffix, limit)
	if err == nil && data != nil {
		err = os.WriteFile(to+journalSuffix, data, 0o600)
	}
	if err != nil {
		return journalError(op, from, err)
	}
	return nil
}

// cutFile shortens a file to a length. Windows does not let a handle do so that
// may only append.
func cutFile(f file, name string, size int64) error {
	err := f.Truncate(size)
	if err != nil && runtime.GOOS == "windows" {
		err = os.Truncate(name, size)
	}
	return err
}
