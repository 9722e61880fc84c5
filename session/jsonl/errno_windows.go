package jsonl

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, syscall.ENOSPC)
}

func readOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// syncDir does nothing: Windows keeps names durable by itself.
func syncDir(string) {}
