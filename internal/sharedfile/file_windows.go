package sharedfile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// keepOwner does nothing: owners are the folder's, in the user's profile.
func keepOwner(*os.File, string) {}

const sharingViolation syscall.Errno = 32

const fileShareDelete = 4

// passing reports whether making a directory fails only for the moment: the one
// of this name is being removed.
func passing(err error) bool { return busy(err) }

// busy reports whether somebody else has a file open for the moment.
func busy(err error) bool {
	return errors.Is(err, sharingViolation) || errors.Is(err, syscall.ERROR_ACCESS_DENIED)
}

// patience is how long a file that others have open is tried again.
const patience = time.Second

// replaceFile renames. A reader who has the old file open is waited for.
func replaceFile(from, to string) error {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || !busy(err) || time.Now().After(end) {
			return err
		}
	}
}

// guard makes its holder the only one who may take over, renew or remove a lock
// directory: it has the directory open, and others may no more than remove it.
// The system lets go of it when the holder dies.
func guard(dir string) (unguard func(), err error) {
	name, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		h, err := syscall.CreateFile(name, syscall.GENERIC_READ, fileShareDelete, nil, syscall.OPEN_EXISTING, syscall.FILE_FLAG_BACKUP_SEMANTICS, 0)
		if err == nil {
			return func() { syscall.CloseHandle(h) }, nil
		}
		if !busy(err) || time.Now().After(end) {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
	}
}
