package bedrock

import (
	"context"
	"os/exec"
	"syscall"
)

// shell is a command line as its profile means it.
func shell(ctx context.Context, command string) *exec.Cmd {
	c := exec.CommandContext(ctx, "cmd.exe")
	c.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /C "` + command + `"`, HideWindow: true}
	return c
}
