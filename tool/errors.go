package tool

import (
	"context"
	"errors"

	"github.com/pinch-agent/pinch/env"
)

// errAborted is what a tool says when its context ended.
var errAborted = errors.New("Operation aborted")

// systemError is a problem of the file system in the words that models know
// from other programs: ENOENT: no such file or directory, open '/a/b'.
func systemError(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*env.Error](err)
	if !ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return errAborted
		}
		return err
	}
	if e.Code == env.Aborted {
		return errAborted
	}
	code := errnoOf(e)
	if code == "" {
		return err
	}
	text := code + ": " + errnoText(code)
	if e.Op != "" {
		text += ", " + e.Op
	}
	switch e.Op {
	case "", "read", "write", "close", "fstat":
		// These work on an open file and know no path.
	default:
		if e.Path != "" {
			text += " '" + e.Path + "'"
		}
	}
	return errors.New(text)
}

// errnoOf is the system's name of the problem, or the one that fits its code
// where the environment knows no such names.
func errnoOf(e *env.Error) string {
	if e.Errno != "" {
		return e.Errno
	}
	switch e.Code {
	case env.NotFound:
		return "ENOENT"
	case env.AlreadyExists:
		return "EEXIST"
	case env.PermissionDenied:
		return "EACCES"
	case env.NotDirectory:
		return "ENOTDIR"
	case env.IsDirectory:
		return "EISDIR"
	case env.Invalid:
		return "EINVAL"
	case env.NotSupported:
		return "ENOTSUP"
	}
	return ""
}

func errnoText(code string) string {
	switch code {
	case "ENOENT":
		return "no such file or directory"
	case "EEXIST":
		return "file already exists"
	case "EACCES":
		return "permission denied"
	case "EPERM":
		return "operation not permitted"
	case "EROFS":
		return "read-only file system"
	case "ENOTDIR":
		return "not a directory"
	case "EISDIR":
		return "illegal operation on a directory"
	case "EINVAL":
		return "invalid argument"
	case "ENOTSUP", "EOPNOTSUPP":
		return "operation not supported on socket"
	case "ENAMETOOLONG":
		return "name too long"
	case "ELOOP":
		return "too many symbolic links encountered"
	case "EMFILE":
		return "too many open files"
	case "ENFILE":
		return "file table overflow"
	case "ENOSPC":
		return "no space left on device"
	case "EDQUOT":
		return "disk quota exceeded"
	case "EFBIG":
		return "file too large"
	case "EBUSY":
		return "resource busy or locked"
	case "ETXTBSY":
		return "text file is busy"
	case "EXDEV":
		return "cross-device link not permitted"
	case "ENOTEMPTY":
		return "directory not empty"
	case "EIO":
		return "i/o error"
	case "ENXIO":
		return "no such device or address"
	case "ENODEV":
		return "no such device"
	case "ENOMEM":
		return "not enough memory"
	case "EAGAIN":
		return "resource temporarily unavailable"
	}
	return "unknown error"
}
