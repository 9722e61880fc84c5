package cli

import (
	"bufio"
	"encoding/json"
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

// driven is pinch in RPC mode.
type driven struct {
	*started
	stdin io.WriteCloser
	out   *bufio.Reader
}

func driveRPC(t *testing.T, scenario string, args ...string) *driven {
	t.Helper()
	d := &driven{}
	d.started = prepared(t, scenario, append([]string{"--mode", "rpc"}, args...)...)
	var err error
	if d.stdin, err = d.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	d.run(t)
	d.out = bufio.NewReader(d.stdout)
	return d
}

func (d *driven) write(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(d.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// read is the next record that holds text.
func (d *driven) read(t *testing.T, text string) map[string]any {
	t.Helper()
	stop := time.AfterFunc(60*time.Second, func() { d.Process.Kill() })
	defer stop.Stop()
	for {
		line, err := d.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%q did not come: %v; stderr: %s", text, err, d.stderr.String())
		}
		if strings.Contains(line, text) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
}

// ended waits for the end.
func (d *driven) ended(t *testing.T) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		d.Wait() // which waits for all that stands on stderr too
		close(done)
	}()
	select {
	case <-done:
		return d.ProcessState.ExitCode()
	case <-time.After(60 * time.Second):
		t.Fatal("pinch does not end")
		return 0
	}
}

const half = `{"turns":[{"text":["half of ","an answer"],"hang":true}]}`

func (d *driven) half(t *testing.T) {
	t.Helper()
	d.write(t, `{"type":"prompt","message":"hi"}`)
	d.read(t, `"delta":"an answer"`)
}

func (d *driven) wantPartial(t *testing.T) {
	t.Helper()
	m := lastMessage(d.session(t))
	if m["stopReason"] != "aborted" || !strings.Contains(fmt.Sprint(m["content"]), "half of an answer") {
		t.Errorf("the last message is %v", m)
	}
}

// Without a model a program can look around, hears of it when it asks something,
// and can choose one later.
func TestRPCWithoutAModel(t *testing.T) {
	d := &driven{started: prepared(t, half)}
	d.Args = []string{d.Path, "--mode", "rpc"}
	d.Env = []string{runMain + "=1", "HOME=" + d.dir, "PATH=" + os.Getenv("PATH")}
	var err error
	if d.stdin, err = d.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	d.run(t)
	d.out = bufio.NewReader(d.stdout)
	d.write(t, `{"type":"get_state"}`)
	if s := fmt.Sprint(d.read(t, "get_state")["data"]); !strings.Contains(s, "provider:unknown") {
		t.Errorf("the state is %s", s)
	}
	d.write(t, `{"type":"prompt","message":"hi"}`)
	if r := d.read(t, `"response"`); r["success"] != false || !strings.HasPrefix(fmt.Sprint(r["error"]), "No models available.") {
		t.Errorf("a prompt: %v", r)
	}
	d.stdin.Close()
	if status := d.ended(t); status != 0 || !strings.HasPrefix(d.stderr.String(), "Warning: No models available.") {
		t.Errorf("status %d; stderr: %s", status, d.stderr.String())
	}
}

func TestRPCEnds(t *testing.T) {
	t.Run("input", func(t *testing.T) {
		t.Parallel()
		d := driveRPC(t, half)
		d.half(t)
		d.stdin.Close()
		if status := d.ended(t); status != 0 {
			t.Errorf("status %d; stderr: %s", status, d.stderr.String())
		}
		d.wantPartial(t)
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		d := driveRPC(t, half)
		d.half(t)
		d.stdout.Close()
		d.write(t, `{"type":"get_state"}`)
		if status := d.ended(t); status != 1 || !strings.Contains(d.stderr.String(), "could not be written") {
			t.Errorf("status %d; stderr: %s", status, d.stderr.String())
		}
		d.wantPartial(t)
	})
	if os.PathSeparator == '\\' {
		return // which has no such signals
	}
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			d := driveRPC(t, half)
			d.half(t)
			d.Process.Signal(sig)
			if status := d.ended(t); status != want {
				t.Errorf("status %d; stderr: %s", status, d.stderr.String())
			}
			d.wantPartial(t)
		})
	}
	// A signal behind the end of the input changes nothing. Nobody reads the
	// answers, so that the end takes its time.
	t.Run("input and signal", func(t *testing.T) {
		t.Parallel()
		d := driveRPC(t, half)
		d.half(t)
		for range 2000 {
			d.write(t, `{"type":"get_state"}`)
		}
		d.stdin.Close()
		d.read(t, `"get_state"`) // so that the end of the input is under way
		time.Sleep(300 * time.Millisecond)
		d.Process.Signal(syscall.SIGTERM)
		if status := d.ended(t); status != 0 {
			t.Errorf("status %d; stderr: %s", status, d.stderr.String())
		}
		d.wantPartial(t)
	})
}

// Modes that a client sets are in the settings of the person, beside what was
// there.
func TestRPCSavesSettings(t *testing.T) {
	d := driveRPC(t, half)
	file := filepath.Join(d.dir, "agent", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{\n  \"theme\": \"dark\" // mine\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write(t, `{"type":"set_steering_mode","mode":"all"}`)
	d.write(t, `{"id":1,"type":"set_auto_compaction","enabled":false}`)
	if r := d.read(t, `"id":1`); r["success"] != true {
		t.Errorf("%v", r)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), "// mine") || !strings.Contains(string(b), `"steeringMode": "all"`) || !strings.Contains(string(b), `"enabled": false`) {
		t.Errorf("%v: %s", err, b)
	}
	// A new session begins with them.
	d.write(t, `{"type":"new_session"}`)
	d.write(t, `{"type":"get_state"}`)
	if s := d.read(t, `"get_state"`)["data"].(map[string]any); s["steeringMode"] != "all" || s["autoCompactionEnabled"] != false {
		t.Errorf("%v", s)
	}
}

// A session whose folder is gone, one that is open elsewhere and a file that is
// none leave the open one as it is.
func TestRPCSessionsThatCannotBeOpened(t *testing.T) {
	d := driveRPC(t, `{"turns":[{"text":"one"}]}`)
	gone := filepath.Join(d.dir, "gone.jsonl")
	header := `{"type":"session","version":3,"id":"0198c0de-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z","cwd":"` + filepath.ToSlash(d.dir) + `/gone"}` + "\n"
	if err := os.WriteFile(gone, []byte(header), 0o600); err != nil {
		t.Fatal(err)
	}
	other := driveRPC(t, `{"turns":[{"text":"one"}]}`)
	other.write(t, `{"type":"prompt","message":"hi"}`)
	other.read(t, `"agent_settled"`)
	other.write(t, `{"type":"get_state"}`)
	open := other.read(t, `"get_state"`)["data"].(map[string]any)["sessionFile"].(string)
	d.write(t, `{"type":"prompt","message":"hi"}`)
	d.read(t, `"agent_settled"`)
	for path, want := range map[string]string{gone: "working directory does not exist", open: "cannot be opened", filepath.Join(d.dir, "s.json"): "not a valid"} {
		j, err := json.Marshal(path)
		if err != nil {
			t.Fatal(err)
		}
		d.write(t, `{"type":"switch_session","sessionPath":`+string(j)+`}`)
		if r := d.read(t, `"switch_session"`); r["success"] != false || !strings.Contains(fmt.Sprint(r["error"]), want) {
			t.Errorf("%s: %v", path, r)
		}
	}
	d.write(t, `{"type":"get_last_assistant_text"}`)
	if r := d.read(t, `"get_last_assistant_text"`); fmt.Sprint(r["data"]) != "map[text:one]" {
		t.Errorf("%v", r)
	}
	d.stdin.Close()
	if status := d.ended(t); status != 0 {
		t.Errorf("status %d; stderr: %s", status, d.stderr.String())
	}
}

// The older form of updates, in both modes that write records.
func TestLegacyWire(t *testing.T) {
	const scenario = `{"turns":[{"text":["one ","two"]}]}`
	check := func(update map[string]any) {
		t.Helper()
		e, _ := update["assistantMessageEvent"].(map[string]any)
		if fmt.Sprint(update["message"]) != fmt.Sprint(e["partial"]) || !strings.Contains(fmt.Sprint(e["partial"]), "one two") {
			t.Errorf("%v", update)
		}
	}
	d := driveRPC(t, scenario, "--wire", "legacy")
	d.write(t, `{"type":"prompt","message":"hi"}`)
	check(d.read(t, `"delta":"two"`))
	j := &driven{started: startPinch(t, scenario, "--mode", "json", "--wire", "legacy", "hi")}
	j.out = bufio.NewReader(j.stdout)
	check(j.read(t, `"delta":"two"`))
}

// The program of the manual compiles and drives pinch.
func TestRPCManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/rpc.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(manual), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	d := prepared(t, `{"turns":[{"text":"Hello yourself"}]}`)
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", strings.Replace(code, `exec.Command("pinch"`, fmt.Sprintf("exec.Command(%q", d.Path), 1))
	write("go.mod", "module manual\n\ngo 1.26\n")
	build := exec.Command("go", "build", "-o", "manual.exe", ".")
	build.Dir = d.dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(filepath.Join(d.dir, "manual.exe"), "--model", "demo/s.json", "--no-session")
	run.Dir, run.Env = d.dir, d.Env
	if out, err := run.CombinedOutput(); err != nil || string(out) != "Hello yourself\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
