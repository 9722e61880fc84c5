//go:build unix

package env

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

const openNonblock = unix.O_NONBLOCK

func access(path string, mode AccessMode) error {
	var m uint32 = unix.F_OK
	if mode&Readable != 0 {
		m |= unix.R_OK
	}
	if mode&Writable != 0 {
		m |= unix.W_OK
	}
	return unix.Access(path, m)
}

// errnoName is the system's name of an error, "" when it has none.
func errnoName(err error) string {
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(n)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "EEXIST"
	case errors.Is(err, fs.ErrNotExist):
		return "ENOENT"
	}
	return ""
}

func sameName(a, b string) bool { return a == b }
