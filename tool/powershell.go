package tool

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
)

//go:embed powershell.md
var powerShellText string

// PowerShell is the tool that runs PowerShell code. It works on Windows and
// fails with words elsewhere.
func PowerShell(opts BashOptions) *agent.Tool {
	return opts.declare("powershell", powerShellText, func(command string) (env.Command, error) {
		if runtime.GOOS != "windows" {
			return env.Command{}, errors.New("The powershell tool is only available on Windows.")
		}
		path, old := powerShellProgram(exec.LookPath, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		}, os.Getenv("ProgramFiles"))
		return env.Command{Argv: powerShellArgv(path, old, command)}, nil
	})
}

// powerShellProgram chooses the program: PowerShell 7 on PATH or where it is
// installed, else Windows PowerShell, which old says.
func powerShellProgram(look func(string) (string, error), exists func(string) bool, programs string) (path string, old bool) {
	if path, err := look("pwsh.exe"); err == nil {
		return path, false
	}
	if programs != "" {
		if path := filepath.Join(programs, "PowerShell", "7", "pwsh.exe"); exists(path) {
			return path, false
		}
	}
	if path, err := look("powershell.exe"); err == nil {
		return path, true
	}
	return "powershell.exe", true
}

const (
	// powerShellUTF8 makes programs and PowerShell write what is read here.
	powerShellUTF8 = "$OutputEncoding = [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false"
	// powerShellExit gives the exit code of a program that failed, for which
	// Windows PowerShell says 1 whatever it was. It must follow the command, as
	// every command sets $?.
	powerShellExit = "if (-not $?) { if ($LASTEXITCODE) { exit $LASTEXITCODE }; exit 1 }"
)

// powerShellArgv are the program and the arguments that run a command.
func powerShellArgv(path string, old bool, command string) []string {
	code := powerShellUTF8 + "\n" + command
	if old {
		code += "\n" + powerShellExit
	}
	return []string{path, "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", code}
}
