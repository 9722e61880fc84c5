//go:build unix

package env

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// shell chooses the shell and its arguments for a command line.
func (l *Local) shell(line string) (invocation, error) {
	args := []string{"-c", line}
	if l.Shell != "" {
		if _, err := os.Stat(l.Shell); err != nil {
			return invocation{}, &Error{Code: ShellUnavailable, Op: "spawn", Path: l.Shell, Errno: "ENOENT", Err: err}
		}
		return invocation{path: l.Shell, args: args}, nil
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		return invocation{path: "/bin/bash", args: args}, nil
	}
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return invocation{path: path, args: args}, nil
		}
	}
	return invocation{}, &Error{Code: ShellUnavailable, Op: "spawn", Err: errors.New("there is no bash and no sh on PATH")}
}

func searchable(dir string) error { return unix.Access(dir, unix.X_OK) }

func pipe() (r, w *os.File, err error) { return os.Pipe() }

// group is the session, and so the process group, that a command leads.
type group struct{ id int }

func (g *group) start(cmd *exec.Cmd) error {
	// A session of its own has no terminal, so that nothing in it can ask the
	// user behind the program's back or receive the terminal's Ctrl-C.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.id = cmd.Process.Pid
	return nil
}

// kill ends the group. waited says that its leader has been waited for: its
// number stays the group's own as long as the group has members, so a process
// that bears it by now is a stranger's.
func (g *group) kill(waited bool) {
	if waited && unix.Kill(g.id, 0) != unix.ESRCH {
		return
	}
	if runtime.GOOS == "darwin" {
		// A group that forks while it is being killed can slip through there.
		unix.Kill(-g.id, unix.SIGSTOP)
	}
	unix.Kill(-g.id, unix.SIGKILL)
}

func (g *group) close() {}

func status(st *os.ProcessState) (code, signal int) {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 0, int(ws.Signal())
	}
	return st.ExitCode(), 0
}
