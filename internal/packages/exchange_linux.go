package packages

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange makes two folders change places in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // of the file system, of the kernel
		return errors.ErrUnsupported
	}
	return err
}
