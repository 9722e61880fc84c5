// Package regular reads files that a program expects by name: settings, lists,
// texts, sessions. What else may stand under such a name, or be linked to it by
// a repository that somebody else made, is refused: a pipe without a writer
// would hold the program for ever, and a device such as /dev/zero has no end.
package regular

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// MaxSize is the size, in bytes, up to which ReadFile reads a file.
const MaxSize = 64 << 20

// Why files are refused, for errors.Is.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("larger than 64 MiB")
)

// Check reports what keeps path from being opened as a regular file: an
// *fs.PathError. Links are followed.
func Check(path string) error {
	_, err := stat(path)
	return err
}

func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return info, nil
}

// Open opens a regular file for reading. Below something that is no folder, such
// as a home of /dev/null, there is no file: the error is fs.ErrNotExist on every
// system.
func Open(path string) (*os.File, error) {
	if _, err := toRead(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ReadFile reads a regular file that is not larger than MaxSize, as Open does.
func ReadFile(path string) ([]byte, error) {
	info, err := toRead(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxSize {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	return os.ReadFile(path)
}

func toRead(path string) (fs.FileInfo, error) {
	info, err := stat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return info, err
}
