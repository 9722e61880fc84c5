package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// atTerminal is pinch with a terminal for all its streams.
type atTerminal struct {
	*exec.Cmd
	t      *testing.T
	screen *os.File // the side of the person
	tty    *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	done chan struct{}
}

// openTerminal makes a pair of terminals.
func openTerminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be had here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return screen, tty
}

// startAtTerminal starts pinch in a home of its own.
func startAtTerminal(t *testing.T, home string, args ...string) *atTerminal {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &atTerminal{t: t, Cmd: exec.Command(exe, args...)}
	a.start(home, "PATH="+os.Getenv("PATH"))
	return a
}

// start starts the command with more variables.
func (a *atTerminal) start(home string, env ...string) {
	a.t.Helper()
	a.screen, a.tty = openTerminal(a.t)
	a.done = make(chan struct{})
	a.Dir = home
	a.Env = append([]string{runMain + "=1", "HOME=" + home, "PINCH_OFFLINE=1"}, env...)
	a.Stdin, a.Stdout, a.Stderr = a.tty, a.tty, a.tty
	a.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := a.Start(); err != nil {
		a.t.Fatal(err)
	}
	go func() {
		defer close(a.done)
		b := make([]byte, 4096)
		for {
			n, err := a.screen.Read(b)
			a.mu.Lock()
			a.seen.Write(b[:n])
			a.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	a.t.Cleanup(func() {
		a.Process.Kill()
		a.tty.Close() // a read of the other side ends when nobody has this one open
		<-a.done
	})
}

// text is what stands on the screen.
func (a *atTerminal) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen.String()
}

// await waits until the screen has a text.
func (a *atTerminal) await(text string) {
	a.t.Helper()
	for end := time.Now().Add(60 * time.Second); !strings.Contains(a.text(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("no %q on the screen:\n%s", text, a.text())
		}
	}
}

func (a *atTerminal) typed(text string) {
	a.t.Helper()
	if _, err := io.WriteString(a.screen, text); err != nil {
		a.t.Fatal(err)
	}
}

// typedAndRead is typed, and waits until the program has read it: what is on its
// way when the program gives the terminal back is shown by that.
func (a *atTerminal) typedAndRead(text string) {
	a.t.Helper()
	before := a.read()
	a.typed(text)
	for end := time.Now().Add(60 * time.Second); a.read() < before+len(text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("%q was not read", text)
		}
	}
}

// read is how many bytes the program has read so far, of anything.
func (a *atTerminal) read() (n int) {
	a.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", a.Process.Pid))
	if err == nil {
		_, err = fmt.Sscanf(string(b), "rchar: %d", &n)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// end waits for the exit status, and checks that the terminal is as it was.
func (a *atTerminal) end(want int) {
	a.t.Helper()
	ended := make(chan struct{})
	go func() { a.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		a.t.Fatalf("pinch does not end:\n%s", a.text())
	}
	if got := a.ProcessState.ExitCode(); got != want {
		a.t.Errorf("status %d, want %d:\n%s", got, want, a.text())
	}
	modes, err := unix.IoctlGetTermios(int(a.tty.Fd()), unix.TCGETS)
	if err != nil {
		a.t.Fatal(err)
	}
	if modes.Lflag&unix.ECHO == 0 || modes.Lflag&unix.ICANON == 0 || modes.Lflag&unix.ISIG == 0 {
		a.t.Errorf("the terminal was left in another mode: %#x", modes.Lflag)
	}
}

// agentFile is a file of the agent folder, "" when it is not there.
func agentFile(home, name string) string {
	b, _ := os.ReadFile(filepath.Join(home, ".pinch", "agent", name))
	return string(b)
}

func writeAgentFile(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, ".pinch", "agent", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
