package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The drivers of the cli, json and rpc groups run the built program as a
// process, in the layout that their READMEs describe: <root>/work is the working
// directory, <root>/home the home, <root>/home/.pi/agent the agent directory.

// buildProgram builds the program once for all drivers.
var buildProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pinch-conformance-")
	if err != nil {
		return "", err
	}
	programDir = dir
	exe := filepath.Join(dir, "pinch")
	if os.PathSeparator == '\\' {
		exe += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", exe, "github.com/pinch-agent/pinch/cmd/pinch").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return exe, nil
})

// programDir is the folder of the built program.
var programDir string

// removeProgram removes what buildProgram built; TestMain calls it.
func removeProgram() {
	if programDir != "" {
		os.RemoveAll(programDir)
	}
}

func program(t testing.TB) string {
	t.Helper()
	exe, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// world is the folder layout of one case.
type world struct {
	root, work, home, agent string
	srv                     *scriptedServer
	b                       *bindings
}

// worldSetup is what a case puts into its world.
type worldSetup struct {
	Files      map[string]json.RawMessage `json:"files"`      // working directory
	AgentFiles map[string]json.RawMessage `json:"agentFiles"` // agent directory
	HomeFiles  map[string]json.RawMessage `json:"homeFiles"`
	Env        map[string]string          `json:"env"`
	Settings   json.RawMessage            `json:"settings"` // absent: the default; null: none; a string: raw text
	Models     json.RawMessage            `json:"models"`   // absent: the scripted ones; null: none
	Trust      map[string]json.RawMessage `json:"trust"`
	Turns      []scriptedTurn             `json:"turns"`
}

const defaultSettings = `{"defaultProvider":"scripted","defaultModel":"plain","retry":{"baseDelayMs":20}}`

func newWorld(t *testing.T, s worldSetup) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		root:  root,
		work:  filepath.Join(root, "work"),
		home:  filepath.Join(root, "home"),
		agent: filepath.Join(root, "home", ".pi", "agent"),
		srv:   startScripted(t, s.Turns),
	}
	slug := "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimPrefix(w.work, "/")) + "--"
	w.b = newBindings(map[string]string{
		"{{ROOT}}": w.root, "{{CWD}}": w.work, "{{HOME}}": w.home, "{{AGENT}}": w.agent,
		"{{TMP}}": strings.TrimSuffix(os.TempDir(), "/"), "{{CWD_SLUG}}": slug,
		"{{MOCK_ADDR}}": w.srv.addr(), "{{LANE}}": scriptedLane,
	})
	for _, dir := range []string{w.work, w.agent} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if s.Models == nil {
		w.write(t, filepath.Join(w.agent, "models.json"), []byte(w.srv.modelsJSON()))
	} else if string(s.Models) != "null" {
		w.write(t, filepath.Join(w.agent, "models.json"), []byte(w.b.fill(string(s.Models))))
	}
	settings := []byte(defaultSettings)
	switch {
	case s.Settings == nil:
	case string(s.Settings) == "null":
		settings = nil
	case s.Settings[0] == '"':
		settings = []byte(w.b.fill(jsonText(t, s.Settings)))
	default:
		settings = []byte(w.b.fill(string(s.Settings)))
	}
	if settings != nil {
		w.write(t, filepath.Join(w.agent, "settings.json"), settings)
	}
	if s.Trust != nil {
		trust := map[string]json.RawMessage{}
		for dir, v := range s.Trust {
			trust[w.b.fill(dir)] = v
		}
		j, err := json.Marshal(trust)
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, filepath.Join(w.agent, "trust.json"), j)
	}
	w.writeAll(t, w.work, s.Files)
	w.writeAll(t, w.agent, s.AgentFiles)
	w.writeAll(t, w.home, s.HomeFiles)
	return w
}

func jsonText(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeAll writes files whose values are text or {base64}.
func (w *world) writeAll(t *testing.T, dir string, files map[string]json.RawMessage) {
	t.Helper()
	for name, raw := range files {
		var content []byte
		if raw[0] == '"' {
			content = []byte(w.b.fill(jsonText(t, raw)))
		} else {
			var v struct{ Base64 string }
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			var err error
			if content, err = base64.StdEncoding.DecodeString(v.Base64); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, filepath.Join(dir, filepath.FromSlash(w.b.fill(name))), content)
	}
}

func (w *world) write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// env is the environment of a run: what a process needs from this machine, the
// layout, and what the case adds; no provider variables.
func (w *world) env(extra map[string]string) []string {
	env := []string{
		"HOME=" + w.home, "USERPROFILE=" + w.home, "PI_CODING_AGENT_DIR=" + w.agent, "PI_OFFLINE=1", "NO_COLOR=1",
	}
	for _, name := range []string{"PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for k, v := range extra {
		env = append(env, k+"="+w.b.fill(v))
	}
	return env
}

// runResult is what a run left behind.
type runResult struct {
	exit           int
	stdout, stderr string
}

// run runs the program to its end. Without input it gets a closed stdin.
func (w *world) run(t *testing.T, argv []string, stdin *string, env map[string]string) runResult {
	t.Helper()
	exe := program(t) // the build takes its own time
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = w.b.fill(a)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = w.work
	cmd.Env = w.env(env)
	if stdin != nil {
		cmd.Stdin = strings.NewReader(*stdin)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return runResult{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// snapshot reads the working directory: relative path to content.
func (w *world) snapshot(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.work, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.work, path)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// workChanges lists what a run added to and changed in the working directory.
// Session files are not new.
func workChanges(before, after map[string]string) (added, changed []string) {
	for name, content := range after {
		old, ok := before[name]
		switch {
		case !ok && !strings.HasSuffix(name, ".jsonl"):
			added = append(added, name)
		case ok && old != content:
			changed = append(changed, name)
		}
	}
	slices.Sort(added)
	slices.Sort(changed)
	return added, changed
}

// sessions lists the session files below the root as vectors describe them.
func (w *world) sessions(t *testing.T) []any {
	t.Helper()
	out := []any{}
	err := filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var header any
		kinds := []any{}
		for line := range bytes.Lines(b) {
			var v struct {
				Type    *string
				Message struct{ Role string }
			}
			if err := json.Unmarshal(line, &v); err != nil {
				return fmt.Errorf("%s: %w: %q", path, err, line)
			}
			if header == nil {
				if err := json.Unmarshal(line, &header); err != nil {
					return err
				}
			}
			switch {
			case v.Type == nil:
				kinds = append(kinds, nil)
			case *v.Type == "message":
				kinds = append(kinds, "message:"+v.Message.Role)
			default:
				kinds = append(kinds, *v.Type)
			}
		}
		out = append(out, map[string]any{"file": path, "header": header, "kinds": kinds})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compareSessions compares session files as a set.
func (w *world) compareSessions(o outcome, want, got []any) {
	err := w.b.anySet("sessions", want, got, func(b *bindings, want, got any) error {
		return b.value(matchRules{}, "session", "", want, got)
	})
	if err != nil {
		o.add("sessions", "%v", err)
	}
}

func compareNames(o outcome, b *bindings, field string, want, got []string) {
	if len(want) != len(got) {
		o.add(field, "%q, want %q", got, want)
		return
	}
	for i := range want {
		if err := b.text(want[i], got[i]); err != nil {
			o.add(field, "%v", err)
		}
	}
}

// jsonFileValue is a file as a JSON value, nil when it does not exist.
func jsonFileValue(t *testing.T, path string) any {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")), &v); err != nil {
		return string(b)
	}
	return v
}
