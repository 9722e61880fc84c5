package env

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// shell chooses the shell and its arguments for a command line: the one that is
// set, Git Bash in its usual places, a bash on PATH.
func (l *Local) shell(line string) (invocation, error) {
	if l.Shell != "" {
		if _, err := os.Stat(l.Shell); err != nil {
			return invocation{}, &Error{Code: ShellUnavailable, Op: "spawn", Path: l.Shell, Errno: "ENOENT", Err: err}
		}
		return bash(l.Shell, line), nil
	}
	for _, root := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
		dir := os.Getenv(root)
		if dir == "" {
			continue
		}
		if root == "LocalAppData" {
			dir = filepath.Join(dir, "Programs")
		}
		path := filepath.Join(dir, "Git", "bin", "bash.exe")
		if _, err := os.Stat(path); err == nil {
			return bash(path, line), nil
		}
	}
	for _, name := range []string{"bash.exe", "sh.exe"} {
		if path, err := exec.LookPath(name); err == nil {
			return bash(path, line), nil
		}
	}
	return invocation{}, &Error{Code: ShellUnavailable, Op: "spawn", Err: errors.New("there is no bash: install Git for Windows or set shellPath")}
}

// bash starts a bash for a line. The launcher of the Linux subsystem spoils
// quotes in its arguments, so it gets the line on its input.
func bash(path, line string) invocation {
	dir := strings.ToLower(filepath.Dir(path))
	if strings.HasSuffix(dir, `\system32`) || strings.HasSuffix(dir, `\windowsapps`) {
		return invocation{path: path, args: []string{"-s"}, stdin: line}
	}
	return invocation{path: path, args: []string{"-c", line}}
}

func searchable(string) error { return nil }

// pipe makes a pipe whose reading end knows deadlines, which anonymous pipes do
// not.
func pipe() (r, w *os.File, err error) {
	name := `\\.\pipe\pinch-` + randomHex()
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, nil, err
	}
	in, err := windows.CreateNamedPipe(p,
		windows.PIPE_ACCESS_INBOUND|windows.FILE_FLAG_OVERLAPPED|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, 64<<10, 64<<10, 0, nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateNamedPipe", err)
	}
	out, err := windows.CreateFile(p, windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		windows.CloseHandle(in)
		return nil, nil, os.NewSyscallError("CreateFile", err)
	}
	return os.NewFile(uintptr(in), name), os.NewFile(uintptr(out), name), nil
}

// group is the job object that a command and its descendants belong to.
type group struct{ job windows.Handle }

func (g *group) start(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return os.NewSyscallError("CreateJobObject", err)
	}
	cmd.SysProcAttr = &windows.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(job)
		return err
	}
	proc, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, proc)
		windows.CloseHandle(proc)
	}
	if err != nil {
		// Without the job nothing could end its children.
		cmd.Process.Kill()
		cmd.Wait()
		windows.CloseHandle(job)
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	g.job = job
	return nil
}

func (g *group) kill(bool) { windows.TerminateJobObject(g.job, 1) }

func (g *group) close() { windows.CloseHandle(g.job) }

func status(st *os.ProcessState) (code, signal int) { return st.ExitCode(), 0 }
