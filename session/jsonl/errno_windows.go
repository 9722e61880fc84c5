package jsonl

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/windows"
)

func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, syscall.ENOSPC)
}

func readOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// unlinked is false: Windows removes no file that is open.
func unlinked(fs.FileInfo) bool { return false }

// syncDir does nothing: Windows keeps names durable by itself.
func syncDir(string) {}
