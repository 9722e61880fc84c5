package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func parse(t *testing.T, text string) *File {
	t.Helper()
	f := Parse("settings.json", []byte(text))
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	return f
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ name, user, project, want string }{
		{"project wins", `{"a":1,"b":2}`, `{"a":3}`, `{"a":3,"b":2}`},
		{"objects merge deeply", `{"retry":{"enabled":false,"provider":{"maxRetries":1}}}`, `{"retry":{"provider":{"timeoutMs":5}}}`, `{"retry":{"enabled":false,"provider":{"maxRetries":1,"timeoutMs":5}}}`},
		{"lists replace", `{"enabledModels":["a","b"]}`, `{"enabledModels":["c"]}`, `{"enabledModels":["c"]}`},
		{"null replaces", `{"a":{"b":1}}`, `{"a":null}`, `{"a":null}`},
		{"object over scalar", `{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"user-only keys", `{"defaultProjectTrust":"ask"}`, `{"defaultProjectTrust":"always","httpProxy":"http://x"}`, `{"defaultProjectTrust":"ask"}`},
		{"tool changes without inherited", `{}`, `{"defaultTools":["+ls"]}`, `{"defaultTools":["+ls"]}`},
		{"tool changes on changes", `{"defaultTools":["-bash"]}`, `{"defaultTools":["+ls"]}`, `{"defaultTools":["-bash","+ls"]}`},
		{"tool changes on names", `{"defaultTools":["read","bash"]}`, `{"defaultTools":["+ls","-bash","+read"]}`, `{"defaultTools":["read","ls"]}`},
		{"tool names replace", `{"defaultTools":["read"]}`, `{"defaultTools":["ls"]}`, `{"defaultTools":["ls"]}`},
		{"last of duplicates", `{"a":1,"a":2}`, `{}`, `{"a":2}`},
	} {
		user := parse(t, c.user)
		before := string(user.root.append(nil))
		s := Merge(user, parse(t, c.project))
		if got := string(s.root.append(nil)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if after := string(user.root.append(nil)); after != before {
			t.Errorf("%s: the user's file changed to %s", c.name, after)
		}
	}
	if got := Merge(nil, nil).DefaultModel(); got != "" {
		t.Errorf("no files give %q", got)
	}
}

func TestMigrate(t *testing.T) {
	for _, c := range []struct{ name, old, want string }{
		{"queueMode", `{"queueMode":"all"}`, `{"steeringMode":"all"}`},
		{"queueMode beside new", `{"queueMode":"all","steeringMode":"one-at-a-time"}`, `{"steeringMode":"one-at-a-time"}`},
		{"websockets on", `{"websockets":true}`, `{"transport":"websocket"}`},
		{"websockets off", `{"websockets":false}`, `{"transport":"sse"}`},
		{"skills object", `{"skills":{"enableSkillCommands":false,"customDirectories":["~/s"]}}`, `{"skills":["~/s"],"enableSkillCommands":false}`},
		{"skills object without folders", `{"skills":{"enableSkillCommands":true}}`, `{"enableSkillCommands":true}`},
		{"skills list", `{"skills":["x"]}`, `{"skills":["x"]}`},
		{"retry delay", `{"retry":{"maxDelayMs":7,"enabled":true}}`, `{"retry":{"enabled":true,"provider":{"maxRetryDelayMs":7}}}`},
		{"retry delay beside new", `{"retry":{"maxDelayMs":7,"provider":{"maxRetryDelayMs":1}}}`, `{"retry":{"provider":{"maxRetryDelayMs":1}}}`},
		{"unknown keys stay", `{"x":{"y":[1]}}`, `{"x":{"y":[1]}}`},
	} {
		if got := string(parse(t, c.old).root.append(nil)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	for _, text := range []string{"{ broken", "[]", "\u00A0", "{\n\"a\": 1,,\n}", `{"a":1} x`, "/* open"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := Read(path)
		if f.Err == nil || !strings.HasPrefix(f.Err.Error(), "Invalid settings file "+path+": ") {
			t.Errorf("%q: %v", text, f.Err)
		}
		if s := Merge(f, nil); s.DefaultModel() != "" || s.DefaultProjectTrust() != "ask" {
			t.Errorf("%q does not count as empty", text)
		}
	}
	f := Parse("p", []byte("{\n  \"a\": 1,\n  oops\n}"))
	if want := "(line 3, column 3)"; f.Err == nil || !strings.Contains(f.Err.Error(), want) {
		t.Errorf("%v does not say %s", f.Err, want)
	}
	for _, text := range []string{"", "\uFEFF", " \n\t\r\n", "// later\n"} {
		if f := Parse("p", []byte(text)); f.Err != nil || len(f.Problems) > 0 {
			t.Errorf("%q is no settings yet: %v", text, f.Err)
		}
	}
	if f := Read(filepath.Join(t.TempDir(), "none")); f.Err != nil {
		t.Error(f.Err)
	}
	if f := Read(""); f.Err != nil || f.Strings("skills") != nil {
		t.Error(f)
	}
}

func TestKeys(t *testing.T) {
	s := Merge(parse(t, "\uFEFF"+`{
		"defaultProvider": "p", "defaultModel": "m", "defaultThinkingLevel": "high",
		"modelThinkingLevels": {"p/m": "low", "p/x": "huge"},
		"thinkingBudgets": {"low": 10, "high": "x"},
		"enabledModels": ["a", 1, "b"], "sessionDir": "./s", "defaultTools": [],
		"retry": {"enabled": false, "maxRetries": 5, "baseDelayMs": 20, "provider": {"maxRetryDelayMs": 0}},
		"httpIdleTimeoutMs": "disabled", "shellPath": "/bin/zsh", "images": {"blockImages": true},
		"steeringMode": "all", "followUpMode": "sometimes", "compaction": {"reserveTokens": -1}
	}`), nil)
	d := Merge(parse(t, `{"defaultProvider": 3, "retry": "no", "images": [], "httpIdleTimeoutMs": 1.5}`), nil)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"defaultProvider", s.DefaultProvider(), "p"},
		{"defaultProvider of a wrong kind", d.DefaultProvider(), ""},
		{"level", s.DefaultThinkingLevel(), "high"},
		{"level unset", d.DefaultThinkingLevel(), "medium"},
		{"model level", s.ModelThinkingLevel("p/m"), "low"},
		{"model level of no meaning", s.ModelThinkingLevel("p/x"), ""},
		{"budgets", fmt.Sprint(s.ThinkingBudgets()), "map[low:10]"},
		{"budgets unset", d.ThinkingBudgets() == nil, true},
		{"enabledModels", fmt.Sprint(s.EnabledModels()), "[a b]"},
		{"sessionDir", s.SessionDir(), "./s"},
		{"empty list is set", s.DefaultTools() != nil, true},
		{"absent list is not", d.DefaultTools() == nil, true},
		{"retry", s.Retry(), Retry{MaxRetries: 5, BaseDelay: 20 * time.Millisecond, MaxAgentDelay: time.Minute}},
		{"retry defaults", d.Retry(), Retry{Enabled: true, MaxRetries: 3, BaseDelay: 2 * time.Second, MaxAgentDelay: time.Minute,
			ProviderTimeout: 1500 * time.Microsecond, ProviderMaxRetryDelay: time.Minute}},
		{"idle", s.HTTPIdleTimeout(), time.Duration(0)},
		{"shell", s.ShellPath(), "/bin/zsh"},
		{"resize", s.ImagesAutoResize(), true},
		{"images blocked", s.ImagesBlocked(), true},
		{"images of a wrong kind", d.ImagesBlocked(), false},
		{"compaction of other keys", compacts(s), true},
		{"compaction off", compacts(Merge(parse(t, `{"compaction":{"enabled":false}}`), nil)), false},
		{"compaction of a wrong kind", compacts(Merge(parse(t, `{"compaction":{"enabled":"no"}}`), nil)), true},
		{"steering", s.SteeringMode(), "all"},
		{"follow-up", s.FollowUpMode(), "one-at-a-time"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(`{"retry":{"maxDelayMs":1},"skills":{"customDirectories":["a"]}}`)
	f.Add(`{"defaultTools":["+a","-b"],"a":{"b":{"c":null}}}`)
	f.Add("{\n\t\"queueMode\": \"all\", // x\n\t\"websockets\": true,\n\t\"stearingMode\": 1, \"theme\": 1, \"theme\": [],\n}")
	f.Add(`{"queueMode":"all","steeringMode":5,"websockets":true,"transport":{},"skills":{"enableSkillCommands":true},"enableSkillCommands":"x"}`)
	f.Add(`{"retry":{"maxDelayMs":1,"provider":{"maxRetryDelayMs":"x"}},"queueMode":null,"steeringMode":[]}`)
	f.Add(`{"retry":{"maxDelayMs":"x","provider":null}}`)
	f.Add("\ufeff\ufeff{}")
	f.Add("\ufeff{\"them\":1}")
	f.Fuzz(func(t *testing.T, text string) {
		file := Parse("f", []byte(text))
		s := Merge(file, file)
		if out := s.root.append(nil); !jsonwire.IsObject(out) {
			t.Fatalf("merged settings are no object: %s", out)
		}
		if r := s.Retry(); r.MaxRetries < 0 || r.BaseDelay < 0 {
			t.Fatalf("negative: %+v", r)
		}
		slices.Sort(s.DefaultTools())
		if file.Err != nil {
			return
		}
		for _, p := range file.Problems {
			if p.Line < 1 || p.Column < 1 || p.Line > 1+strings.Count(text, "\n") || p.Key == "" && !strings.Contains(text, `""`) {
				t.Fatalf("nowhere: %v", p)
			}
		}
		modern, err := modernize(jsonedit.Begin([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		after := Parse("f", modern)
		if after.Err != nil || len(compare(file.root, after.root, true)) > 0 {
			t.Fatalf("with the names of today %q says something else: %q, %v", text, modern, after.Err)
		}
		if again, err := modernize(modern); err != nil || string(again) != string(modern) {
			t.Fatalf("%q became %q, then %q, %v", text, modern, again, err)
		}
	})
}

func compacts(s *Settings) bool {
	c, _ := s.Compaction() // what is wrong with its numbers is another test's
	return c.Enabled
}

func TestCompactionNumbers(t *testing.T) {
	good := Merge(parse(t, `{"compaction":{"reserveTokens":0,"modelOverrides":{"a/b":{"keepRecentTokens":7}}}}`), nil)
	c, err := good.Compaction()
	if err != nil || c.ReserveTokens == nil || *c.ReserveTokens != 0 || c.KeepRecentTokens != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if o := c.Overrides["a/b"]; o.KeepRecentTokens == nil || *o.KeepRecentTokens != 7 || o.ReserveTokens != nil {
		t.Errorf("override %+v", o)
	}
	for _, bad := range []string{`{"compaction":{"reserveTokens":-1}}`, `{"compaction":{"keepRecentTokens":1.5}}`, `{"compaction":{"modelOverrides":{"a/b":{"reserveTokens":"x"}}}}`} {
		if _, err := Merge(parse(t, bad), nil).Compaction(); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestPackages(t *testing.T) {
	f := Parse("settings.json", []byte(`{"packages": ["../a", {"source": "npm:b", "autoload": false, "skills": ["x", 1], "prompts": []}, {"skills": []}, 7, "", {"source": 1}]}`))
	got := f.Packages()
	want := []Package{{Source: "../a"}, {Source: "npm:b", Delta: true, Skills: []string{"x"}, Prompts: []string{}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{`{}`, `{"packages": "x"}`, `{"packages": {}}`} {
		if got := Parse("settings.json", []byte(text)).Packages(); got != nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := (*File)(nil).Packages(); got != nil {
		t.Errorf("%+v", got)
	}
}
