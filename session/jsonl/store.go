package jsonl

import (
	"bytes"
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

// DefaultMaxLine is the longest line, in bytes, that is read by default.
const DefaultMaxLine = 256 << 20

// Options say how to open session files. The zero value works.
type Options struct {
	session.Options
	// Sync makes every append durable before it returns. Otherwise a crash of
	// the machine, but not of the program, may cost the last appends.
	Sync bool
	// MaxLine is the longest line that is read, in bytes; 0 for DefaultMaxLine.
	// A longer one stays in the file and is passed over.
	MaxLine int64
}

// Store is the session.Store of one file. A store that has the file open for
// writing holds a lock on it, which ends with the process at the latest.
type Store struct {
	path     string
	real     string // path with symbolic links resolved
	sync     bool
	readOnly bool
	maxLine  int64

	lock    *lock
	file    file
	in      *reader // of what was loaded
	created bool    // the folder does not know of the file for sure yet
	undo    int64   // length to cut the file to before the next append, -1 for none
	run     journal

	open func(name string, flag int) (file, error)

	// taken finds a session of the id that the caller chose for this one, and
	// mark names the lock under which that is decided; nil and "" for an id
	// that nobody else has.
	taken func() (path string, ok bool)
	mark  string
}

// file is what the store needs of an os.File.
type file interface {
	io.Writer
	io.ReaderAt
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error
}

// NewStore is the store of the file at path, which need not exist. Nothing
// happens before Load.
func NewStore(path string, o Options) *Store {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	s := &Store{path: path, real: path, sync: o.Sync, readOnly: o.ReadOnly, maxLine: o.MaxLine, undo: -1, open: openFile}
	if s.maxLine <= 0 {
		s.maxLine = DefaultMaxLine
	}
	return s
}

func openFile(name string, flag int) (file, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Path implements session.Store.
func (s *Store) Path() string { return s.path }

// Load implements session.Store. It takes the lock, unless the store is
// read-only or there is no file yet.
func (s *Store) Load() (session.Log, error) {
	err := regular.Check(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(s.path); err == nil {
			return session.Log{}, &session.Error{Kind: session.InvalidFile, Op: "open", Path: s.path, Err: errors.New("a link to a file that is not there")}
		}
		return session.Log{}, nil
	}
	if err != nil {
		return session.Log{}, fail("open", s.path, err)
	}
	if s.real, err = filepath.EvalSymlinks(s.path); err != nil {
		return session.Log{}, fail("open", s.path, err)
	}
	if !s.readOnly {
		if s.lock, err = acquire(s.real); err != nil {
			return session.Log{}, err
		}
		if s.file, err = s.open(s.real, os.O_RDWR|os.O_APPEND); err != nil {
			return session.Log{}, fail("open", s.path, err)
		}
	}
	if s.in, err = openReader(s.real); err != nil {
		return session.Log{}, fail("open", s.path, err)
	}
	log, err := s.in.log(s.maxLine)
	if err != nil {
		return session.Log{}, fail("open", s.path, err)
	}
	return log, nil
}

// openRegular opens a file for reading that must be a regular one.
func openRegular(op, path string) (*os.File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fail(op, path, err)
	}
	return f, nil
}

// Append implements session.Store.
func (s *Store) Append(at session.Position, lines []byte) (session.Position, error) {
	if s.readOnly {
		return 0, &session.Error{Kind: session.ReadOnly, Op: "append", Path: s.path}
	}
	if int64(len(lines)) > s.maxLine && longest(lines) > s.maxLine {
		return 0, &session.Error{Kind: session.BadEntry, Op: "append", Path: s.path,
			Err: fmt.Errorf("the line would be longer than %d bytes and could not be read again", s.maxLine)}
	}
	if s.file == nil {
		if at != 0 {
			return 0, &session.Error{Kind: session.Closed, Op: "append", Path: s.path}
		}
		return s.create(lines)
	}
	if at == 0 {
		return 0, &session.Error{Kind: session.Exists, Op: "append", Path: s.path}
	}
	if err := s.check("append", at); err != nil {
		return 0, err
	}
	if err := s.put(int64(at), lines); err != nil {
		return 0, fail("append", s.path, err)
	}
	return at + session.Position(len(lines)), nil
}

func longest(lines []byte) (n int64) {
	for line := range bytes.Lines(lines) {
		n = max(n, int64(len(line)))
	}
	return n
}

// create makes the file, which must not exist, with its first lines. They are
// written under another name: whenever the program ends, what stands under the
// name of the session is nothing, an empty file, which becomes a session when
// it is opened, or all of the lines.
func (s *Store) create(lines []byte) (session.Position, error) {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fail("create", s.path, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return 0, fail("create", s.path, err)
	}
	s.real = filepath.Join(real, filepath.Base(s.path))
	l, err := acquire(s.real)
	if err != nil {
		return 0, err
	}
	err = s.unique(filepath.Join(real, s.mark), func() error { return s.begin(lines) })
	if err != nil {
		l.release()
		return 0, fail("create", s.path, err)
	}
	s.lock = l
	return session.Position(len(lines)), nil
}

// unique calls create unless a session of the same id was made since this one
// was opened. Names of files hold the time, so two that begin at once would not
// meet in one.
func (s *Store) unique(mark string, create func() error) error {
	if s.taken == nil {
		return create()
	}
	l, err := acquire(mark)
	if err != nil {
		return err
	}
	defer l.release()
	if path, ok := s.taken(); ok {
		return &session.Error{
			Kind:   session.Exists,
			Op:     "create",
			Path:   path,
			Err:    errors.New("another program has begun a session of this id"),
			Advice: "go on with that one, or choose another session id",
		}
	}
	return create()
}

func (s *Store) begin(lines []byte) (err error) {
	name, err := s.open(s.real, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	name.Close()
	temp := tempName(s.real)
	defer func() {
		if err != nil {
			if s.file != nil {
				s.file.Close()
			}
			s.file, s.undo = nil, -1
			os.Remove(temp)
			os.Remove(s.real)
		}
	}()
	if s.file, err = s.open(temp, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC); err != nil {
		s.file = nil
		return err
	}
	if err = s.put(0, lines); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // which renames no file that is open
		s.file.Close()
		s.file = nil
	}
	if err = os.Rename(temp, s.real); err != nil {
		return err
	}
	if s.file == nil {
		if s.file, err = s.open(s.real, os.O_RDWR|os.O_APPEND); err != nil {
			s.file = nil
			return err
		}
	}
	if s.created = true; s.sync {
		syncDir(filepath.Dir(s.real))
		s.created = false
	}
	return nil
}

// tempName is where the first lines of a file are written.
func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}

// check makes sure that the file is as this store left it, and mends what a
// failed append could not.
func (s *Store) check(op string, at session.Position) error {
	if s.undo >= 0 {
		if err := s.cut(s.undo); err != nil {
			return fail(op, s.path, err)
		}
		s.undo = -1
	}
	return s.undisturbed(op, int64(at))
}

// put writes lines at the end of the file, at its length, or nothing.
func (s *Store) put(at int64, lines []byte) error {
	n, err := s.file.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	if err == nil && s.sync {
		err = s.flush()
	}
	if err == nil {
		return nil
	}
	if cut := s.cut(at); cut != nil {
		s.undo = at
	}
	return err
}

// cut shortens the file to a length.
func (s *Store) cut(size int64) error { return cutFile(s.file, s.real, size) }

// Replace implements session.Store: a temporary file in the same folder, a
// sync, a rename. A file with lines that were too long to load is kept beside
// with the ending ".orig".
func (s *Store) Replace(at session.Position, data []byte) (session.Position, error) {
	if s.readOnly {
		return 0, &session.Error{Kind: session.ReadOnly, Op: "rewrite", Path: s.path}
	}
	if s.file == nil {
		return 0, &session.Error{Kind: session.Closed, Op: "rewrite", Path: s.path}
	}
	if err := s.check("rewrite", at); err != nil {
		return 0, err
	}
	info, err := s.file.Stat()
	if err != nil {
		return 0, fail("rewrite", s.path, err)
	}
	temp, err := writeTemp(s.real, data, info.Mode().Perm())
	if err != nil {
		return 0, fail("rewrite", s.path, err)
	}
	skipped, err := hasLonger(s.real, s.maxLine)
	if err == nil && skipped {
		err = keepOriginal(s.real)
	}
	if err != nil {
		os.Remove(temp)
		return 0, fail("rewrite", s.path, err)
	}
	// Windows renames only over files that nobody has open.
	s.file.Close()
	s.in.close()
	err = os.Rename(temp, s.real)
	if err != nil {
		os.Remove(temp)
	} else {
		syncDir(filepath.Dir(s.real))
	}
	var again error
	if s.file, again = s.open(s.real, os.O_RDWR|os.O_APPEND); again != nil {
		s.file = nil
		return 0, fail("open", s.path, again)
	}
	if err != nil {
		return 0, fail("rewrite", s.path, err)
	}
	return session.Position(len(data)), nil
}

// writeTemp writes data to a new file beside path, durably, and gives its name.
func writeTemp(path string, data []byte, perm fs.FileMode) (name string, err error) {
	return compose(path, perm, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// compose makes a file beside path, durably, and gives its name.
func compose(path string, perm fs.FileMode, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return "", err
	}
	if err = f.Chmod(perm); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// keepOriginal gives a file a second name that the rename leaves alone.
func keepOriginal(path string) error {
	err := os.Link(path, path+".orig")
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path+".orig", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// Sync implements session.Store.
func (s *Store) Sync() error {
	if s.file == nil {
		return nil
	}
	if err := s.flush(); err != nil {
		return fail("sync", s.path, err)
	}
	return nil
}

func (s *Store) flush() error {
	if err := s.file.Sync(); err != nil {
		return err
	}
	if s.created {
		syncDir(filepath.Dir(s.real))
		s.created = false
	}
	return nil
}

// Close implements session.Store. A journal stays: its run did not end.
func (s *Store) Close() error {
	var err error
	s.closeJournal()
	s.in.close()
	if s.file != nil {
		if s.undo >= 0 {
			s.cut(s.undo)
		}
		err = s.file.Close()
		s.file = nil
	}
	s.lock.release()
	s.lock = nil
	if err != nil {
		return fail("close", s.path, err)
	}
	return nil
}
