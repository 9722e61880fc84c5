package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestWithoutPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"http://me:pw@h:1/x":               "http://***@h:1/x",
		`["https://a:b@h/p","x"]`:          `["https://***@h/p","x"]`,
		"https://me:p@ss@h/a@b":            "https://***@h/a@b",
		"ssh://git@h/a https://token@h/a":  "ssh://git@h/a https://***@h/a",
		"https://h/a:b@c":                  "https://h/a:b@c",
		"a://b:c@d e://f:g@h":              "a://***@d e://***@h",
		"npm:@me/rules@1 git:h/p@v1 x://":  "npm:@me/rules@1 git:h/p@v1 x://",
		`"git:token@h/p" git:me:pw@h/p@v1`: `"git:***@h/p" git:***@h/p@v1`,
		"git:git@h:me/p@v1 git:h/a@b/c":    "git:git@h:me/p@v1 git:h/a@b/c",
	} {
		if got := WithoutPasswords(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	for text, want := range map[string]string{
		`"me:pw@h:1"`: `"***@h:1"`, `"http://me@h"`: `"http://***@h"`, `"http://h:1"`: `"http://h:1"`,
	} {
		s := Merge(Parse("s", []byte(`{"httpProxy": `+text+`}`)), nil)
		if got, err := s.Get("httpProxy"); string(got) != want || err != nil {
			t.Errorf("%s: %s %v", text, got, err)
		}
	}
}

func TestParseValue(t *testing.T) {
	for _, c := range []struct{ name, text, want, wrong string }{
		{"theme", "dark", `"dark"`, ""},
		{"theme", "d\xffrk", "", "UTF-8"},
		{"modelThinkingLevels.a/\xff", "high", "", "UTF-8"},
		{"", "dark", "", `"" is no setting`},
		{"theme", "12", `"12"`, ""},
		{"theme", ` "a" `, `" \"a\" "`, ""},
		{"retry.enabled", " false ", "false", ""},
		{"retry.enabled", "null", "null", ""},
		{"retry.enabled", "no", "", `retry.enabled is "no" and has to be true or false`},
		{"outputPad", "0.5", "", "has to be a whole number from 0 to 1"},
		{"httpIdleTimeoutMs", "disabled", `"disabled"`, ""},
		{"httpIdleTimeoutMs", "-1", "", "has to be a number from 0 on, or \"disabled\""},
		{"quietStartup", "true", "true", ""},
		{"skills", `["a"]`, `["a"]`, ""},
		{"skills", "a", "", "has to be a list of texts, as JSON"},
		{"packages", "https://me:pw@h", "", `packages is "https://***@h" and`},
		{"skills.0", "a", "", "skills.0 is no setting"},
		{"modelThinkingLevels", `{"a/b": "high"}`, `{"a/b": "high"}`, ""},
		{"modelThinkingLevels.a/b.c", "high", `"high"`, ""},
		{"modelThinkingLevels.", "high", "", "is no setting"},
		{"compaction.modelOverrides.a/b.c.enabled", "true", "true", ""},
		{"compaction.modelOverrides.a/b.enabled", "1", "", "has to be true or false"},
		{"extensionChangelogVersions", `{"a":1}`, `{"a":1}`, ""},
		{"packages", `[{"source": 1}]`, "", "packages[0]"},
		{"websockets", "true", "", "did you mean transport: websocket or sse?"},
		{"Theme", "x", "", "did you mean theme?"},
		{"", "x", "", "is no setting"},
	} {
		got, err := ParseValue(c.name, c.text)
		switch {
		case c.wrong == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s %q: %s %v", c.name, c.text, got, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s %q: %s %v, want %s", c.name, c.text, got, err, c.wrong)
		}
	}
}

func TestShow(t *testing.T) {
	user := Parse("u", []byte(`{"retry": {"enabled": false, "maxRetries": 4}, "modelThinkingLevels": {"a/b": "high", "c/d": "low"},
		"skills": ["u"], "theme": "x", "queueMode": "all", "defaultTools": ["read"], "mine": 1}`))
	project := newFile("p", []byte(`{"retry": {"maxRetries": 5}, "modelThinkingLevels": {"a/b": "max"}, "skills": ["p"], "theme": null,
		"httpProxy": "http://evil", "defaultTools": ["+ls"]}`), true)
	s := Merge(user, project)
	var got []string
	for _, one := range s.All() {
		if one.Origin != Default {
			got = append(got, one.Name+"="+string(one.Value)+" "+string(one.Origin))
		} else if one.Name == "retry.maxRetries" || one.Name == "theme" && string(one.Value) != `"system"` {
			t.Errorf("%+v", one)
		}
	}
	want := `modelThinkingLevels.a/b="max" project
modelThinkingLevels.c/d="low" user
defaultTools=["read","ls"] project
steeringMode="all" user
retry.enabled=false user
retry.maxRetries=5 project
skills=["u"] user
skills=["p"] project`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	for name, want := range map[string]string{
		"retry.maxRetries": "5", "theme": `"system"`, "skills": `["u","p"]`, "modelThinkingLevels.a/b": `"max"`, "modelThinkingLevels.x/y": "",
		"modelThinkingLevels": `{"a/b":"max","c/d":"low"}`, "httpProxy": "", "retry.provider": `{"maxRetries":0,"maxRetryDelayMs":60000}`,
	} {
		if v, err := s.Get(name); string(v) != want || err != nil {
			t.Errorf("%s: %s %v, want %s", name, v, err, want)
		}
	}
	if _, err := s.Get("mine"); err == nil {
		t.Error("a value of another program is shown")
	}
	if !user.Has("mine") || user.Has("retry.baseDelayMs") || !project.Has("retry.maxRetries") {
		t.Error("Has")
	}
}

func TestEditList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	for _, c := range []struct{ before, after, wrong string }{
		{`{"a": 1}`, `{"a": 1, "skills": ["new"]}`, ""},
		{`{"skills": null}`, `{"skills": ["new"]}`, ""},
		{`{"skills": ["x"] /* mine */}`, `{"skills": ["x", "new"] /* mine */}`, ""},
		{`{"skills": {"customDirectories": ["d"]}}`, `{"skills": ["d", "new"]}`, ""},
		{`{"skills": "x"}`, `{"skills": "x"}`, "skills is no list: correct or remove it"},
	} {
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		edit := func(entries int) error {
			return OpenStore(path, "").EditList(t.Context(), User, "skills", func(list []jsontext.Value) ([]Change, error) {
				if entries == 0 {
					return nil, nil
				}
				return []Change{Set("skills."+string(rune('0'+len(list))), "new")}, nil
			})
		}
		if err := edit(0); (err != nil) != (c.wrong != "") {
			t.Errorf("%s: %v", c.before, err)
		}
		if b, _ := os.ReadFile(path); string(b) != c.before {
			t.Errorf("%s: no change wrote %s", c.before, b)
		}
		err := edit(1)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", c.before, err)
		}
		squeeze := strings.NewReplacer("\n", "", " ", "")
		if b, _ := os.ReadFile(path); squeeze.Replace(string(b)) != squeeze.Replace(c.after) {
			t.Errorf("%s: %s", c.before, b)
		}
	}
}
