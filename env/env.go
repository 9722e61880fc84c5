// Package env is the world that tools act on: a file system and a shell behind
// one interface, so that the same tools run on this machine, in a sandbox or in
// a container.
//
// Local is the machine itself:
//
//	e := &env.Local{Dir: "/home/me/project"}
//	res, err := e.Exec(ctx, env.Command{Line: "go test ./...", Output: os.Stdout})
//
// Every operation takes a context and ends with it; one that changes files is not
// left half-done because of that. Problems are *Error values with a code to
// switch on. Relative paths are relative to the environment's working directory,
// and every environment takes slashes between the elements of a path. Names are
// bytes, which need not be UTF-8. Symbolic links are followed where the system
// follows them, except by Info, Exists and List, which look at the link itself.
// Environments are safe for concurrent use.
//
// Nothing that stands under a path holds a caller: a pipe that nobody writes to
// is empty or ends with the context, and devices without an end are refused.
//
// Whoever makes an environment of another kind finds the rules as tests in
// package envtest.
package env

import (
	"context"
	"errors"
	"io"
	"time"
)

// ExecutionEnv is a file system and a shell that belong together.
type ExecutionEnv interface {
	FileSystem
	Shell
	// Cleanup removes what TempDir made. It does its best and reports the first
	// problem.
	Cleanup(ctx context.Context) error
}

// FileSystem is what tools do with files.
type FileSystem interface {
	// WorkDir is the absolute path that relative paths start from.
	WorkDir() string
	// HomeDir is the user's home directory, "" when there is none.
	HomeDir() string
	// Abs is the absolute, lexically clean form of path. It reads no disk.
	Abs(path string) string

	// Access checks that path exists and can be used as mode says.
	Access(ctx context.Context, path string, mode AccessMode) error
	// Info describes path itself; a symbolic link is not followed.
	Info(ctx context.Context, path string) (FileInfo, error)
	// Exists reports whether there is something at path. Only a missing file
	// is false without an error.
	Exists(ctx context.Context, path string) (bool, error)
	// Canonical is the path of the real file behind all symbolic links.
	Canonical(ctx context.Context, path string) (string, error)

	// Open opens a file for reading, without loading it. A directory can be
	// opened; reading it fails with IsDirectory.
	Open(ctx context.Context, path string) (File, error)
	// ReadFile reads a whole file of up to MaxRead bytes.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// WriteFile replaces the content of a file, or makes the file and its
	// parent directories. It follows links and keeps the mode of a file. Where
	// there is no room for more the old content stays, as far as the system
	// lets it.
	WriteFile(ctx context.Context, path string, data []byte) error
	// AppendFile adds data to the end of a file, or makes it like WriteFile.
	AppendFile(ctx context.Context, path string, data []byte) error
	// Rename moves a file over another one, atomically.
	Rename(ctx context.Context, from, to string) error

	// List describes the entries of a directory, sorted by the bytes of their
	// names.
	List(ctx context.Context, path string) ([]FileInfo, error)
	// MakeDir makes a directory and its parents; one that exists is fine.
	MakeDir(ctx context.Context, path string) error
	// Remove removes a file or an empty directory.
	Remove(ctx context.Context, path string) error
	// RemoveAll removes path and everything in it; a missing path is fine.
	RemoveAll(ctx context.Context, path string) error

	// TempDir makes a directory with a random name that starts with prefix.
	TempDir(ctx context.Context, prefix string) (string, error)
	// TempFile makes a file that only this user can read and opens it for
	// writing. Its name is prefix, 16 random hexadecimal digits and suffix. It
	// belongs to the caller: Cleanup leaves it alone.
	TempFile(ctx context.Context, prefix, suffix string) (TempFile, error)
}

// AccessMode is what a file must allow.
type AccessMode uint8

// The modes can be combined.
const (
	Readable AccessMode = 1 << iota
	Writable
)

// File is an open file. Reading it ends when the context of Open ends.
type File interface {
	io.Reader
	io.Closer
	// Size is the size of the file when it was opened, in bytes, and -1 for
	// what has none: a pipe, a device.
	Size() int64
	// ModTime is when the file was last changed.
	ModTime() time.Time
}

// TempFile is a temporary file open for writing.
type TempFile interface {
	io.WriteCloser
	Name() string // absolute path
}

// Kind is what a FileInfo describes.
type Kind string

// The kinds. Sockets, pipes and devices are KindOther.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindSymlink   Kind = "symlink"
	KindOther     Kind = "other"
)

// FileInfo describes a file.
type FileInfo struct {
	Name    string // last element of Path
	Path    string // absolute
	Kind    Kind
	Size    int64 // bytes
	ModTime time.Time
}

// Shell runs commands.
type Shell interface {
	// Exec runs a command to its end. It returns when the shell has exited and
	// its output has ended, or has been silent for a while because a background
	// process holds it open. A command that exits with a failure is no error.
	//
	// When ctx ends or the timeout passes, the command and all of its process
	// group are killed; Exec then fails with Aborted or Timeout, and the Exit
	// tells what is known. A process that has left the group, as setsid does,
	// lives on and does not hold the caller.
	Exec(ctx context.Context, c Command) (Exit, error)
}

// Command is a command line for the shell.
type Command struct {
	Line string
	// Argv is a program and its arguments to run in place of the shell and Line.
	Argv []string
	Dir  string // "" for the environment's working directory
	// Unset names variables that are taken out of the environment, Set gives
	// variables as NAME=value. Set wins. With NoInherit nothing but Set is there.
	Unset     []string
	Set       []string
	NoInherit bool
	// Timeout bounds the run; 0 for no bound.
	Timeout time.Duration

	// Output receives what the command writes to both of its streams, in the
	// order of arrival; nil drops it. With Stderr set it receives the standard
	// output only. An error or a panic of a writer kills the command.
	Output io.Writer
	Stderr io.Writer
}

// Exit is how a command ended.
type Exit struct {
	Code     int           // exit status; 0 when a signal ended the shell
	Signal   int           // number of the signal that ended the shell; 0 for none
	Exited   bool          // the shell had ended by itself; false when it was killed by Exec
	After    time.Duration // how long the shell ran
	Duration time.Duration // how long Exec took, background output included
}

// Code tells callers what kind of problem an Error is.
type Code string

// The codes.
const (
	Aborted          Code = "aborted"
	NotFound         Code = "not_found"
	AlreadyExists    Code = "already_exists"
	PermissionDenied Code = "permission_denied"
	NotDirectory     Code = "not_directory"
	IsDirectory      Code = "is_directory"
	Invalid          Code = "invalid"
	NotSupported     Code = "not_supported"
	NoSpace          Code = "no_space" // disk, quota or the limit on file sizes
	Timeout          Code = "timeout"
	ShellUnavailable Code = "shell_unavailable"
	SpawnError       Code = "spawn_error"
	CallbackError    Code = "callback_error" // a writer of Command failed
	Unknown          Code = "unknown"
)

// Error is a problem of an ExecutionEnv.
type Error struct {
	Code Code
	// Op is the system's name of what failed: access, open, read, write,
	// mkdir, lstat, scandir, realpath, rename, unlink, rmdir, chdir, spawn.
	Op    string
	Path  string // absolute; "" when the operation has no path
	Errno string // the system's name of the problem, such as ENOENT; "" for none
	Err   error  // the cause; nil for none
}

func (e *Error) Error() string {
	s := string(e.Code)
	if e.Err != nil {
		s = e.Err.Error()
	}
	switch {
	case e.Op == "":
		return s
	case e.Path == "":
		return e.Op + ": " + s
	}
	return e.Op + " " + e.Path + ": " + s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of an error, Unknown for one that is no *Error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Unknown
}
