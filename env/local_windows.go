package env

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

const openNonblock = 0

func access(path string, mode AccessMode) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode&Writable != 0 && !st.IsDir() && st.Mode().Perm()&0o200 == 0 {
		return windows.ERROR_ACCESS_DENIED
	}
	return nil
}

// errnoName is the POSIX name of a system error, "" when it has none.
func errnoName(err error) string {
	if n, ok := errors.AsType[windows.Errno](err); ok {
		switch n {
		case windows.ERROR_DIRECTORY, syscall.ENOTDIR:
			return "ENOTDIR"
		case windows.ERROR_DIR_NOT_EMPTY:
			return "ENOTEMPTY"
		case windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION:
			return "EBUSY"
		case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
			return "ENOSPC"
		case windows.ERROR_INVALID_NAME, windows.ERROR_INVALID_PARAMETER:
			return "EINVAL"
		case windows.ERROR_FILENAME_EXCED_RANGE:
			return "ENAMETOOLONG"
		case windows.ERROR_NOT_SAME_DEVICE:
			return "EXDEV"
		case windows.ERROR_INVALID_FUNCTION, syscall.EISDIR:
			return "EISDIR" // reading a directory
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "EEXIST"
	case errors.Is(err, fs.ErrNotExist):
		return "ENOENT"
	case errors.Is(err, fs.ErrPermission):
		return "EACCES"
	}
	return ""
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }
