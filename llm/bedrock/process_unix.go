//go:build !windows

package bedrock

import (
	"context"
	"os/exec"
	"syscall"
)

// shell is a command line as its profile means it. Its end takes along what it
// has started.
func shell(ctx context.Context, command string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}
