package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readSession reads a session file and fails unless it is whole.
func readSession(file string) ([]map[string]any, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return nil, errors.New("the last line is cut off")
	}
	var entries []map[string]any
	for line := range bytes.Lines(b) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%w: %q", err, line)
		}
		entries = append(entries, e)
	}
	if entries[0]["type"] != "session" {
		return nil, fmt.Errorf("the first line is no header: %v", entries[0])
	}
	return entries, nil
}

// started is pinch running in a folder of its own.
type started struct {
	*exec.Cmd
	dir    string
	stdout io.ReadCloser
	stderr bytes.Buffer
}

// startPinch starts pinch with a scenario of its own.
func startPinch(t *testing.T, scenario string, args ...string) *started {
	t.Helper()
	s := prepared(t, scenario, args...)
	s.run(t)
	return s
}

func prepared(t *testing.T, scenario string, args ...string) *started {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &started{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.dir, "s.json"), []byte(scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Cmd = exec.Command(exe, append([]string{"--model", "demo/s.json", "--session-dir", "sessions"}, args...)...)
	s.Dir = s.dir
	s.Env = append(os.Environ(), runMain+"=1", "HOME="+s.dir, "PINCH_AGENT_DIR="+filepath.Join(s.dir, "agent"))
	s.Stderr = &s.stderr
	if s.stdout, err = s.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *started) run(t *testing.T) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Process.Kill()
		s.Wait()
	})
}

// end waits for the end and returns how long that took and the exit status.
func (s *started) end(t *testing.T, sig syscall.Signal) (time.Duration, int) {
	t.Helper()
	began := time.Now()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("pinch does not end")
	}
	return time.Since(began), s.ProcessState.ExitCode()
}

// session reads the one session file.
func (s *started) session(t *testing.T) []map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "sessions", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("session files %q %v; stderr: %s", files, err, s.stderr.String())
	}
	entries, err := readSession(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func lastMessage(entries []map[string]any) map[string]any {
	for i := len(entries) - 1; i >= 0; i-- {
		if m, ok := entries[i]["message"].(map[string]any); ok {
			return m
		}
	}
	return nil
}

// TestSignalsEndARun checks that a signal ends a request with the partial answer
// in the session, and the program with the status of the signal.
func TestSignalsEndARun(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("Windows has no such signals")
	}
	for _, c := range []struct {
		sig    syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		t.Run(c.sig.String(), func(t *testing.T) {
			t.Parallel()
			s := startPinch(t, `{"turns":[{"text":["half of ","an answer"],"hang":true}]}`, "--mode", "json", "hi")
			waitFor(t, s.stdout, "an answer")
			go io.Copy(io.Discard, s.stdout)
			took, status := s.end(t, c.sig)
			if status != c.status {
				t.Errorf("status %d, want %d; stderr: %s", status, c.status, s.stderr.String())
			}
			t.Logf("ended in %v", took)
			m := lastMessage(s.session(t))
			if m["stopReason"] != "aborted" || !strings.Contains(fmt.Sprint(m["content"]), "half of an answer") {
				t.Errorf("the last message is %v", m)
			}
		})
	}
}

// waitFor reads until a line holds text.
func waitFor(t *testing.T, r io.Reader, text string) {
	t.Helper()
	found := make(chan error, 1)
	go func() {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			if strings.Contains(sc.Text(), text) {
				found <- nil
				return
			}
		}
		found <- fmt.Errorf("the output ended: %v", sc.Err())
	}()
	select {
	case err := <-found:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("%q did not come", text)
	}
}

// TestInterruptEndsCommands checks that nothing of a running command is left.
func TestInterruptEndsCommands(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("the command is one for Unix shells")
	}
	s := startPinch(t, `{"turns":[{"toolCalls":[{"name":"bash","args":{"command":"sleep 300 & echo $! >pid.tmp; mv pid.tmp pid; sleep 300"}}]}]}`, "-p", "hi")
	pidFile := filepath.Join(s.dir, "pid")
	var pid int
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(pidFile); err == nil {
			if _, err := fmt.Sscan(string(b), &pid); err != nil {
				t.Fatal(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the command does not start; stderr: %s", s.stderr.String())
		}
	}
	took, status := s.end(t, syscall.SIGINT)
	if status != 130 {
		t.Errorf("status %d; stderr: %s", status, s.stderr.String())
	}
	t.Logf("ended in %v", took)
	for deadline := time.Now().Add(60 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the background process of the command is alive")
		}
	}
	if entries := s.session(t); lastMessage(entries)["role"] == "user" {
		t.Errorf("the answer is not in the session: %v", entries)
	}
}

// TestStalledReader checks that a reader that does not read keeps neither the
// program nor the session from ending well.
func TestStalledReader(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("Windows has no such signals")
	}
	long := strings.Repeat(`"0123456789012345678901234567890123456789",`, 20_000)
	s := startPinch(t, `{"turns":[{"text":[`+strings.TrimSuffix(long, ",")+`]}]}`, "--mode", "json", "hi")
	// Nobody reads: the pipe fills, then the run stands still.
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if files, _ := filepath.Glob(filepath.Join(s.dir, "sessions", "*.jsonl")); len(files) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run does not start; stderr: %s", s.stderr.String())
		}
	}
	time.Sleep(300 * time.Millisecond)
	// os/exec closes the pipe when it waits; keep it open until the end.
	done := make(chan *os.ProcessState, 1)
	began := time.Now()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go func() {
		st, _ := s.Process.Wait()
		done <- st
	}()
	select {
	case st := <-done:
		if st.ExitCode() != 143 {
			t.Errorf("status %d; stderr: %s", st.ExitCode(), s.stderr.String())
		}
	case <-time.After(60 * time.Second):
		t.Fatal("pinch does not end")
	}
	t.Logf("ended in %v", time.Since(began))
	if m := lastMessage(s.session(t)); m["stopReason"] != "aborted" {
		t.Errorf("the last message is %.200v", m)
	}
}
