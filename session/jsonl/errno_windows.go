package jsonl

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, syscall.ENOSPC)
}

func readOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// dead reports whether there is no process of this number. One of another user
// cannot be looked at.
func dead(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	p.Release()
	return false
}

// syncDir does nothing: Windows keeps names durable by itself.
func syncDir(string) {}
