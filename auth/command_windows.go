package auth

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	// cmd.exe takes the command as it stands; quoting it again would change it.
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + command + `"`, HideWindow: true}
	cmd.Cancel = func() error {
		// The process tree has no group to signal.
		if err := exec.Command("taskkill.exe", "/F", "/T", "/PID", strconv.Itoa(cmd.Process.Pid)).Run(); err == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
	return cmd
}

// killRest has nothing to do: what a command left running can no longer be told
// from what others run.
func killRest(*exec.Cmd) {}
