//go:build unix

package regular

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipeDoesNotHang opens a pipe into which nobody writes.
func TestPipeDoesNotHang(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(pipe); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if _, err := Open(pipe); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}
