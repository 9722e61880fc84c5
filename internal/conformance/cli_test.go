package conformance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/version"
)

var cliDeviations = []deviation{
	{"cli", "help-exit", "stdout"}, // the build introduces itself in its own words
}

type cliCase struct {
	worldSetup
	Argv        []string `json:"argv"`
	Stdin       *string  `json:"stdin"`
	StdoutLines int      `json:"stdoutLines"`
	StderrLines int      `json:"stderrLines"`

	ShowTools, ShowSystem, ShowAuth, ShowSettings, ShowMcp, ShowAuthFile bool

	Expect struct {
		Exit          int              `json:"exit"`
		Stdout        json.RawMessage  `json:"stdout"`
		Stderr        json.RawMessage  `json:"stderr"`
		ModelRequests []map[string]any `json:"modelRequests"`
		Sessions      []any            `json:"sessions"`
		NewFiles      []string         `json:"newFiles"`
		ChangedFiles  []string         `json:"changedFiles"`
		SettingsAfter map[string]any   `json:"settingsAfter"`
		McpAfter      any              `json:"mcpAfter"`
		AuthAfter     any              `json:"authAfter"`
	} `json:"expect"`
}

func TestCLI(t *testing.T) {
	g := newGroup("cli")
	for _, file := range vectorFiles(t, "cli") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c cliCase
			readVector(t, file, &c)
			g.report(t, name, c.play(t), cliDeviations)
		})
	}
}

func (c *cliCase) play(t *testing.T) outcome {
	w := newWorld(t, c.worldSetup)
	before := w.snapshot(t)
	got := w.run(t, c.Argv, c.Stdin, c.Env)
	o := outcome{}
	e := c.Expect
	if got.exit != e.Exit {
		o.add("exit", "%d, want %d; stderr: %s", got.exit, e.Exit, got.stderr)
	}
	c.output(w, o, "stdout", e.Stdout, c.StdoutLines, got.stdout)
	c.errors(w, o, got.stderr)
	c.requests(w, o)
	w.compareSessions(o, e.Sessions, w.sessions(t))
	added, changed := workChanges(before, w.snapshot(t))
	for i := range e.NewFiles {
		e.NewFiles[i] = ownPage(e.NewFiles[i])
	}
	compareNames(o, w.b, "newFiles", e.NewFiles, added)
	compareNames(o, w.b, "changedFiles", e.ChangedFiles, changed)
	state := func(field string, shown bool, want any, path string) {
		if shown {
			if err := w.b.value(matchRules{}, field, "", want, jsonFileValue(t, path)); err != nil {
				o.add(field, "%v", err)
			}
		}
	}
	state("settingsAfter.user", c.ShowSettings, e.SettingsAfter["user"], filepath.Join(w.agent, "settings.json"))
	state("settingsAfter.project", c.ShowSettings, e.SettingsAfter["project"], filepath.Join(w.work, ".pi", "settings.json"))
	state("mcpAfter", c.ShowMcp, e.McpAfter, filepath.Join(w.agent, "mcp.json"))
	state("authAfter", c.ShowAuthFile, e.AuthAfter, filepath.Join(w.agent, "auth.json"))
	return o
}

// recordedVersion is the version line of the recorded program; ours stands in
// its place.
var recordedVersion = regexp.MustCompile(`^\d+\.\d+\.\d+\n$`)

// ownPage puts our own name into the default name of an exported page, which
// begins with that of the program.
func ownPage(s string) string { return strings.ReplaceAll(s, "pi-session-", "pinch-session-") }

func (c *cliCase) output(w *world, o outcome, field string, raw json.RawMessage, lines int, got string) {
	if raw == nil {
		return
	}
	var want string
	if json.Unmarshal(raw, &want) != nil {
		var v struct{ FirstLines string }
		if err := json.Unmarshal(raw, &v); err != nil {
			o.add(field, "%v", err)
			return
		}
		want = v.FirstLines
	}
	if recordedVersion.MatchString(want) {
		want = version.Version + "\n"
	}
	want = ownPage(want)
	if lines > 0 {
		want, got = firstLines(want, lines), firstLines(got, lines)
	}
	if err := w.b.text(want, got); err != nil {
		o.add(field, "%v", err)
	}
}

func firstLines(s string, n int) string {
	all := strings.SplitN(s, "\n", n+1)
	return strings.Join(all[:min(n, len(all))], "\n")
}

// errors compares of stderr whether there is anything: its wording is free.
func (c *cliCase) errors(w *world, o outcome, got string) {
	var want string
	switch {
	case c.Expect.Stderr == nil:
	case json.Unmarshal(c.Expect.Stderr, &want) != nil:
		want = "a clean error" // where the recorded program crashed
	}
	if (want == "") != (got == "") {
		o.add("stderr", "%q, want %q", clipText(got), clipText(want))
	}
	for _, leak := range []string{"panic:", "goroutine "} {
		if strings.Contains(got, leak) {
			o.add("stderr", "crashed: %s", clipText(got))
		}
	}
}

func (c *cliCase) requests(w *world, o outcome) {
	got := w.srv.requests()
	if len(got) != len(c.Expect.ModelRequests) {
		o.add("modelRequests", "%d, want %d", len(got), len(c.Expect.ModelRequests))
		return
	}
	for i, want := range c.Expect.ModelRequests {
		field := func(name string) string { return fmt.Sprintf("modelRequests[%d].%s", i, name) }
		have := map[string]any{"path": got[i].Path, "model": got[i].Model}
		messages := []any{}
		for _, m := range got[i].withoutSystem() {
			messages = append(messages, decodedJSON(m))
		}
		have["messages"] = messages
		for _, name := range []string{"reasoning_effort", "thinking"} {
			if raw, ok := got[i].Body[name]; ok {
				have[name] = decodedJSON(raw)
				if _, ok := want[name]; !ok {
					o.add(field(name), "unexpected: %s", raw)
				}
			}
		}
		tools := []any{}
		for _, t := range got[i].Tools {
			tools = append(tools, t)
		}
		have["tools"] = tools
		have["authorization"] = got[i].Header.Get("Authorization")
		have["system"] = got[i].system()
		for name, v := range want {
			// Messages hold no more than the vector shows of them.
			if err := w.b.value(matchRules{loose: []string{"messages"}}, name, name, v, have[name]); err != nil {
				o.add(field(name), "%v", err)
			}
		}
	}
}

// system is the texts of the system messages.
func (r scriptedRequest) system() []any {
	out := []any{}
	add := func(raw json.RawMessage) {
		switch v := decodedJSON(raw).(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, b := range v {
				if m, ok := b.(map[string]any); ok {
					out = append(out, m["text"])
				}
			}
		}
	}
	for _, m := range r.Messages {
		var v struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(m, &v) == nil && (v.Role == "system" || v.Role == "developer") {
			add(v.Content)
		}
	}
	if raw, ok := r.Body["system"]; ok {
		add(raw)
	}
	return out
}

func decodedJSON(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil
	}
	return v
}
