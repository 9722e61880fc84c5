package env

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Local is this machine. The zero value works in the process's working
// directory with its environment. Its fields must not change once it is used.
type Local struct {
	Dir  string // working directory, absolute; "" for the process's
	Home string // home directory; "" for the user's
	Temp string // where temporary files go; "" for the system's place

	Shell string // path of the shell; "" for /bin/bash, bash on PATH, or sh

	// Environ is the environment of commands; nil for the process's own.
	Environ []string
	// PathDirs are put first on the PATH of commands.
	PathDirs []string
	// Hide names variables that commands do not inherit, such as those that
	// hold the keys of model providers. Command.Set may still give them.
	Hide []string

	quiet time.Duration // for tests; 0 for the usual

	mu   sync.Mutex
	temp []string // directories that Cleanup removes
}

var _ ExecutionEnv = (*Local)(nil)

// WorkDir implements FileSystem.
func (l *Local) WorkDir() string {
	if l.Dir != "" {
		return l.Dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return string(filepath.Separator)
	}
	return dir
}

// HomeDir implements FileSystem.
func (l *Local) HomeDir() string {
	if l.Home != "" {
		return l.Home
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// Abs implements FileSystem.
func (l *Local) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.WorkDir(), path)
}

// fault makes an *Error of a system error, and of the end of ctx. It is nil
// for nil.
func fault(ctx context.Context, op, path string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return &Error{Code: Aborted, Op: op, Path: path, Err: cause}
	}
	for { // the system's error without Go's own description around it
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		} else if p, ok := errors.AsType[*os.LinkError](err); ok {
			err = p.Err
		} else if p, ok := errors.AsType[*os.SyscallError](err); ok {
			err = p.Err
		} else {
			break
		}
	}
	name := errnoName(err)
	return &Error{Code: codeOfErrno(name), Op: op, Path: path, Errno: name, Err: err}
}

func codeOfErrno(name string) Code {
	switch name {
	case "ENOENT":
		return NotFound
	case "EEXIST", "ENOTEMPTY":
		return AlreadyExists
	case "EACCES", "EPERM", "EROFS":
		return PermissionDenied
	case "ENOTDIR":
		return NotDirectory
	case "EISDIR":
		return IsDirectory
	case "EINVAL", "ENAMETOOLONG", "ELOOP":
		return Invalid
	case "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EXDEV", "ENXIO", "ENODEV":
		return NotSupported // also a pipe that nobody reads, a socket
	case "ENOSPC", "EDQUOT", "EFBIG":
		return NoSpace
	}
	return Unknown
}

// start refuses to begin an operation of an ended context.
func start(ctx context.Context, op, path string) error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: Aborted, Op: op, Path: path, Err: err}
	}
	return nil
}

// Access implements FileSystem.
func (l *Local) Access(ctx context.Context, path string, mode AccessMode) error {
	path = l.Abs(path)
	if err := start(ctx, "access", path); err != nil {
		return err
	}
	return fault(ctx, "access", path, access(path, mode))
}

// Info implements FileSystem.
func (l *Local) Info(ctx context.Context, path string) (FileInfo, error) {
	path = l.Abs(path)
	if err := start(ctx, "lstat", path); err != nil {
		return FileInfo{}, err
	}
	st, err := os.Lstat(path)
	if err != nil {
		return FileInfo{}, fault(ctx, "lstat", path, err)
	}
	return fileInfo(path, st), nil
}

func fileInfo(path string, st fs.FileInfo) FileInfo {
	return FileInfo{Name: filepath.Base(path), Path: path, Kind: kindOf(st.Mode()), Size: st.Size(), ModTime: st.ModTime()}
}

// Exists implements FileSystem.
func (l *Local) Exists(ctx context.Context, path string) (bool, error) {
	_, err := l.Info(ctx, path)
	if CodeOf(err) == NotFound {
		return false, nil
	}
	return err == nil, err
}

// Canonical implements FileSystem.
func (l *Local) Canonical(ctx context.Context, path string) (string, error) {
	path = l.Abs(path)
	if err := start(ctx, "realpath", path); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		// Of links in a circle only the system says by name what they are.
		if _, statErr := os.Stat(path); statErr != nil {
			err = statErr
		}
	}
	return real, fault(ctx, "realpath", path, err)
}

var errDevice = errors.New("a device, which may have no end")

// Open implements FileSystem. Devices other than the null device are refused.
func (l *Local) Open(ctx context.Context, path string) (File, error) {
	path = l.Abs(path)
	if err := start(ctx, "open", path); err != nil {
		return nil, err
	}
	// A pipe without a writer must not hold the caller in open.
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, fault(ctx, "open", path, err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fault(ctx, "fstat", path, err)
	}
	if st.Mode()&fs.ModeDevice != 0 && path != os.DevNull {
		f.Close()
		return nil, &Error{Code: Invalid, Op: "open", Path: path, Err: errDevice}
	}
	lf := &localFile{ctx: ctx, f: f, path: path, size: -1, mod: st.ModTime()}
	if st.Mode().IsRegular() {
		lf.size = st.Size()
	}
	// Files that the system makes up, such as /proc/kmsg, call themselves regular
	// and empty, and may be waited for like a pipe.
	if !st.IsDir() && lf.size <= 0 {
		lf.stop = context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	}
	return lf, nil
}

type localFile struct {
	ctx  context.Context
	f    *os.File
	path string
	size int64
	mod  time.Time
	stop func() bool
}

func (f *localFile) Read(p []byte) (int, error) {
	if err := start(f.ctx, "read", f.path); err != nil {
		return 0, err
	}
	n, err := f.f.Read(p)
	if err != nil && err != io.EOF {
		err = fault(f.ctx, "read", f.path, err)
	}
	return n, err
}

func (f *localFile) Size() int64        { return f.size }
func (f *localFile) ModTime() time.Time { return f.mod }

func (f *localFile) Close() error {
	if f.stop != nil {
		f.stop()
	}
	return f.f.Close()
}

// ReadFile implements FileSystem.
func (l *Local) ReadFile(ctx context.Context, path string) ([]byte, error) {
	f, err := l.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := ReadAll(f)
	if e, ok := errors.AsType[*Error](err); ok && e.Path == "" {
		e.Path = l.Abs(path)
	}
	return b, err
}

// WriteFile implements FileSystem.
func (l *Local) WriteFile(ctx context.Context, path string, data []byte) error {
	return l.write(ctx, path, data, 0)
}

// AppendFile implements FileSystem.
func (l *Local) AppendFile(ctx context.Context, path string, data []byte) error {
	return l.write(ctx, path, data, os.O_APPEND)
}

func (l *Local) write(ctx context.Context, path string, data []byte, flag int) error {
	path = l.Abs(path)
	if err := start(ctx, "open", path); err != nil {
		return err
	}
	// A pipe without a reader must not hold the caller in open.
	open := func() (*os.File, error) { return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|openNonblock|flag, 0o666) }
	f, err := open()
	if err != nil {
		if n := errnoName(errors.Unwrap(err)); n == "ENOENT" || n == "ENOTDIR" {
			if err := l.MakeDir(ctx, filepath.Dir(path)); err != nil {
				return err
			}
			f, err = open()
		}
		if err != nil {
			return fault(ctx, "open", path, err)
		}
	}
	// What goes into a file is not interrupted half-way; a pipe may not take it.
	written := context.WithoutCancel(ctx)
	switch st, statErr := f.Stat(); {
	case statErr != nil:
		err = statErr
	case !st.Mode().IsRegular():
		stop := context.AfterFunc(ctx, func() { f.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
		written = ctx
		_, err = f.Write(data)
	case flag == os.O_APPEND:
		err = extend(f, data, st.Size())
	default:
		err = replace(f, data, st.Size())
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return fault(written, "write", path, err)
}

// extend adds data to a file of a size, and takes back what there was no room
// for, unless somebody else has added to it meanwhile.
func extend(f *os.File, data []byte, size int64) error {
	n, err := f.Write(data)
	if err != nil && n > 0 {
		if st, statErr := f.Stat(); statErr == nil && st.Size() == size+int64(n) {
			f.Truncate(size)
		}
	}
	return err
}

// replace puts data in the place of what is in a file of a size. It begins with
// what goes beyond the old end: where there is no room for it the rest is still
// as it was.
func replace(f *os.File, data []byte, size int64) error {
	within := min(size, int64(len(data)))
	if within < int64(len(data)) {
		if _, err := f.WriteAt(data[within:], within); err != nil {
			f.Truncate(size)
			return err
		}
	}
	if _, err := f.WriteAt(data[:within], 0); err != nil {
		return err
	}
	if within < size {
		return f.Truncate(within)
	}
	return nil
}

// Rename implements FileSystem.
func (l *Local) Rename(ctx context.Context, from, to string) error {
	from, to = l.Abs(from), l.Abs(to)
	if err := start(ctx, "rename", from); err != nil {
		return err
	}
	return fault(ctx, "rename", from, os.Rename(from, to))
}

// List implements FileSystem.
func (l *Local) List(ctx context.Context, path string) ([]FileInfo, error) {
	path = l.Abs(path)
	if err := start(ctx, "scandir", path); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault(ctx, "scandir", path, err)
	}
	out := make([]FileInfo, 0, len(entries))
	for _, e := range entries {
		if err := start(ctx, "scandir", path); err != nil {
			return nil, err
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since the directory was read
		}
		if err != nil {
			return nil, fault(ctx, "lstat", filepath.Join(path, e.Name()), err)
		}
		out = append(out, fileInfo(filepath.Join(path, e.Name()), st))
	}
	return out, nil
}

// MakeDir implements FileSystem.
func (l *Local) MakeDir(ctx context.Context, path string) error {
	path = l.Abs(path)
	if err := start(ctx, "mkdir", path); err != nil {
		return err
	}
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		return nil
	}
	if st, statErr := os.Stat(path); statErr == nil && !st.IsDir() {
		err = fs.ErrExist // something else has the name
	}
	return fault(ctx, "mkdir", path, err)
}

// Remove implements FileSystem.
func (l *Local) Remove(ctx context.Context, path string) error {
	path = l.Abs(path)
	if err := start(ctx, "unlink", path); err != nil {
		return err
	}
	return fault(ctx, "unlink", path, os.Remove(path))
}

// RemoveAll implements FileSystem.
func (l *Local) RemoveAll(ctx context.Context, path string) error {
	path = l.Abs(path)
	if err := start(ctx, "unlink", path); err != nil {
		return err
	}
	return fault(ctx, "unlink", path, os.RemoveAll(path))
}

func (l *Local) tempRoot() string {
	if l.Temp != "" {
		return l.Temp
	}
	return os.TempDir()
}

// TempDir implements FileSystem.
func (l *Local) TempDir(ctx context.Context, prefix string) (string, error) {
	root := l.tempRoot()
	if err := start(ctx, "mkdtemp", root); err != nil {
		return "", err
	}
	dir := filepath.Join(root, prefix+randomHex())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fault(ctx, "mkdtemp", dir, err)
	}
	l.mu.Lock()
	l.temp = append(l.temp, dir)
	l.mu.Unlock()
	return dir, nil
}

// TempFile implements FileSystem.
func (l *Local) TempFile(ctx context.Context, prefix, suffix string) (TempFile, error) {
	root := l.tempRoot()
	if err := start(ctx, "open", root); err != nil {
		return nil, err
	}
	path := filepath.Join(root, prefix+randomHex()+suffix)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fault(ctx, "open", path, err)
	}
	return f, nil
}

// Cleanup implements ExecutionEnv.
func (l *Local) Cleanup(ctx context.Context) error {
	l.mu.Lock()
	dirs := l.temp
	l.temp = nil
	l.mu.Unlock()
	var first error
	for _, d := range dirs {
		if err := l.RemoveAll(ctx, d); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// environ is the environment of a command.
func (l *Local) environ(c Command) []string {
	if c.NoInherit {
		return append([]string{}, c.Set...) // nil would be the process's own
	}
	base := l.Environ
	if base == nil {
		base = os.Environ()
	}
	out := make([]string, 0, len(base)+len(c.Set)+1)
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if !hasName(l.Hide, name) && !hasName(c.Unset, name) {
			out = append(out, kv)
		}
	}
	if len(l.PathDirs) > 0 {
		path := strings.Join(l.PathDirs, string(filepath.ListSeparator))
		at := slices.IndexFunc(out, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return sameName(name, "PATH")
		})
		if at < 0 {
			out = append(out, "PATH="+path)
		} else {
			name, old, _ := strings.Cut(out[at], "=")
			out[at] = name + "=" + path + string(filepath.ListSeparator) + old
		}
	}
	return append(out, c.Set...)
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return sameName(n, name) })
}
