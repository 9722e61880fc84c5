package settings

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/regular"
)

// newStore is a store of a user's file with a content, and of a project's.
func newStore(t *testing.T, user, project string) (s *Store, userPath, projectPath string) {
	t.Helper()
	dir := t.TempDir()
	userPath, projectPath = filepath.Join(dir, "agent", "settings.json"), filepath.Join(dir, "project", "settings.json")
	put(t, userPath, user)
	put(t, projectPath, project)
	return OpenStore(userPath, projectPath), userPath, projectPath
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if content == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWrite(t *testing.T) {
	s, path, _ := newStore(t, "", "")
	if err := s.Write(t.Context(), User, Set("defaultProvider", "p"), Set("defaultModel", "m")); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, path), "{\n  \"defaultProvider\": \"p\",\n  \"defaultModel\": \"m\"\n}"; got != want {
		t.Errorf("a new file is %q, want %q", got, want)
	}
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has the mode %v", info.Mode())
	}
	if got := s.Settings().DefaultModel(); got != "m" {
		t.Errorf("what was written counts as %q", got)
	}
	if changed := s.Reload(); changed != nil {
		t.Errorf("what the store wrote itself is reported as changed: %v", changed)
	}

	const hand = "// mine\n{\n\t\"theme\": \"dark\", // as it should be\n\t\"queueMode\": \"all\",\n\t\"unheard\": {\"of\": [1.50]},\n}\n"
	put(t, path, hand)
	if err := s.Write(t.Context(), User, Set("compaction.enabled", false), Set("modelThinkingLevels.a/b.1", "low"), Set("retry.maxRetries", 5),
		Set("enabledModels", []string{"x"}), Set("terminal.imageWidthCells", 1.5), Set("packages", jsontext.Value(`[{"source": "x"}]`)), Unset("theme")); err != nil {
		t.Fatal(err)
	}
	want := "// mine\n{\n\t// as it should be\n\t\"unheard\": {\"of\": [1.50]},\n\t\"steeringMode\": \"all\",\n\t\"compaction\": {\n\t\t\"enabled\": false\n\t},\n" +
		"\t\"modelThinkingLevels\": {\n\t\t\"a/b.1\": \"low\"\n\t},\n\t\"retry\": {\n\t\t\"maxRetries\": 5\n\t},\n\t\"enabledModels\": [\n\t\t\"x\"\n\t],\n" +
		"\t\"terminal\": {\n\t\t\"imageWidthCells\": 1.5\n\t},\n\t\"packages\": [\n\t\t{\n\t\t\t\"source\": \"x\"\n\t\t}\n\t],\n}\n"
	if got := content(t, path); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	before, _ := os.Stat(path)
	if err := s.Write(t.Context(), User, Set("compaction.enabled", false)); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("a file was written again that says the same")
	}
}

func TestWriteProject(t *testing.T) {
	s, user, project := newStore(t, `{"theme": "dark"}`, "")
	if err := s.Write(t.Context(), Project, Set("theme", "light")); err != nil {
		t.Fatal(err)
	}
	if content(t, user) != `{"theme": "dark"}` || content(t, project) != "{\n  \"theme\": \"light\"\n}" || s.Settings().Text("theme") != "light" {
		t.Errorf("%s, %s, %s", content(t, user), content(t, project), s.Settings().Text("theme"))
	}
	err := s.Write(t.Context(), Project, Set("httpProxy", "http://x"))
	if p, ok := errors.AsType[*Problem](err); !ok || p.Kind != Misplaced {
		t.Errorf("%v", err)
	}
	if err := OpenStore(user, "").Write(t.Context(), Project, Set("theme", "x")); !errors.Is(err, ErrNoProject) {
		t.Errorf("%v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	s, path, _ := newStore(t, `{"theme": "dark"}`, "")
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"retry.maxRetries", "many", `retry.maxRetries is "many" and has to be a number`},
		{"retry", true, `retry is true and has to be an object`},
		{"compaction.modelOverrides.a/b.1.reserveTokens", -1, `compaction.modelOverrides.a/b.1.reserveTokens is -1 and has to be a whole number from 0 on`},
		{"theme", struct{}{}, "settings: theme: a value of type struct {} cannot be a setting"},
		{"theme", strings.Repeat("x", regular.MaxSize), "Failed to write the settings file " + path + ": larger than 64 MiB"},
		{"theme", "a\xff", `settings: theme: "a\xff" is no text in UTF-8: a file or folder of this name has to be renamed`},
		{"skills", []string{"a", "b\xfe"}, `settings: skills: "b\xfe" is no text in UTF-8: a file or folder of this name has to be renamed`},
		{"theme", jsontext.Value("no"), "settings: theme: invalid JSON at byte 0: unexpected character"},
	} {
		err := s.Write(t.Context(), User, Set("tuiMode", "regular"), Set(c.name, c.value))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %.200v, want %s", c.name, err, c.want)
		}
	}
	if got := content(t, path); got != `{"theme": "dark"}` {
		t.Errorf("became %s", got)
	}
	for _, broken := range []string{"{\"theme\": \n", "[]", "/"} {
		put(t, path, broken)
		err := s.Write(t.Context(), User, Set("theme", "light"))
		if e, ok := errors.AsType[*FileError](err); !ok || e.Op != "parse" || e.Path != path {
			t.Errorf("%v", err)
		}
		if got := content(t, path); got != broken {
			t.Errorf("%q became %q", broken, got)
		}
	}
	if s.Settings().Text("theme") != "dark" {
		t.Error("what worked is gone")
	}
}

func TestWriteBlank(t *testing.T) {
	for blank, want := range map[string]string{" \r\n": " \r\n{\r\n", "// mine": "// mine\n{\n"} {
		s, path, _ := newStore(t, blank, "")
		if err := s.Write(t.Context(), User, Unset("theme")); err != nil || content(t, path) != blank {
			t.Errorf("%q became %q: %v", blank, content(t, path), err)
		}
		want += "  \"theme\": \"x\"" + want[strings.Index(want, "{")+1:] + "}"
		if err := s.Write(t.Context(), User, Set("theme", "x")); err != nil || content(t, path) != want {
			t.Errorf("%q became %q: %v", blank, content(t, path), err)
		}
	}
}

func TestReload(t *testing.T) {
	s, user, project := newStore(t, `{"theme": "dark", "retry": {"maxRetries": 1}, "compaction": {"reserveTokens": 5}}`, "")
	if changed := s.Reload(); changed != nil {
		t.Errorf("nothing changed: %v", changed)
	}
	before := s.Settings()
	step := func(what, path, text string, want ...string) {
		t.Helper()
		put(t, path, text)
		changed := s.Reload()
		slices.Sort(changed)
		if !slices.Equal(changed, want) {
			t.Errorf("%s: changed %v, want %v", what, changed, want)
		}
	}
	step("a value", user, `{"theme": "light", "retry": {"maxRetries": 1}, "compaction": {"reserveTokens": 5}}`, "theme")
	step("a project", project, `{"retry": {"enabled": false}, "theme": "dark"}`, "retry.enabled", "theme")
	step("broken", user, `{"theme": `)
	if problems := s.Settings().Problems(); len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "Invalid settings file "+user) {
		t.Errorf("%v", problems)
	}
	if got := s.Settings().Retry(); got.MaxRetries != 1 || got.Enabled {
		t.Errorf("what worked is gone: %+v", got)
	}
	step("one bad value", user, `{"retry": {"maxRetries": "x"}, "compaction": {"reserveTokens": -1}, "tuiMode": "regular", "quietStartup": 1}`, "tuiMode")
	if got := s.Settings().Retry().MaxRetries; got != 1 {
		t.Errorf("the last value is gone: %d", got)
	}
	if c, err := s.Settings().Compaction(); err != nil || *c.ReserveTokens != 5 {
		t.Errorf("%+v, %v", c, err)
	}
	var texts []string
	for _, p := range s.Settings().Problems() {
		texts = append(texts, strings.TrimPrefix(p.Error(), user))
	}
	if want := []string{
		`:1:26: retry.maxRetries is "x" and has to be a number; its last value stays in force`,
		`:1:64: compaction.reserveTokens is -1 and has to be a whole number from 0 on; its last value stays in force`,
		`:1:107: quietStartup is 1 and has to be true or false, or "header"; it does not count`,
	}; !slices.Equal(texts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	step("bad for longer", user, `{"retry": {"maxRetries": true}, "compaction": {"reserveTokens": 6}}`, "compaction.reserveTokens", "tuiMode")
	if got := s.Settings().Retry().MaxRetries; got != 1 {
		t.Errorf("the last value is gone: %d", got)
	}
	step("right again", user, `{"retry": {"maxRetries": 2}}`, "compaction.reserveTokens", "retry.maxRetries")
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	step("removed", user, "", "retry.enabled", "theme")
	if before.Text("theme") != "dark" || before.Retry().MaxRetries != 1 {
		t.Error("settings that were handed out have changed")
	}
}

// What was wrong from the start never worked, and is an error where it is used.
func TestStrictFromTheStart(t *testing.T) {
	s, user, _ := newStore(t, `{"compaction": {"reserveTokens": -1}}`, "")
	for range 2 {
		if _, err := s.Settings().Compaction(); err == nil {
			t.Error("accepted")
		}
		put(t, user, `{"compaction": {"reserveTokens": -22}}`)
		s.Reload()
	}
	if err := s.Write(t.Context(), User, Set("compaction.reserveTokens", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settings().Compaction(); err != nil || s.Settings().Problems() != nil {
		t.Errorf("%v, %v", err, s.Settings().Problems())
	}
}

func TestLockedFile(t *testing.T) {
	s, path, _ := newStore(t, `{}`, "")
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.Write(ctx, User, Set("theme", "x"))
	if e, ok := errors.AsType[*FileError](err); !ok || e.Op != "lock" || !errors.Is(err, context.DeadlineExceeded) || content(t, path) != `{}` {
		t.Errorf("%v", err)
	}
	// One that was left behind is in nobody's way.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), User, Set("theme", "x")); err != nil {
		t.Error(err)
	}
}

func TestWritersOfOneStore(t *testing.T) {
	s, path, _ := newStore(t, "", "")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.Write(t.Context(), User, Set("mine.n"+strconv.Itoa(i), i)); err != nil {
				t.Error(err)
			}
			s.Reload()
			s.Settings().Retry()
		})
	}
	all.Wait()
	for i := range 20 {
		if v := Read(path).root.at([]string{"mine", "n" + strconv.Itoa(i)}); string(v) != strconv.Itoa(i) {
			t.Errorf("%d is %s", i, v)
		}
	}
}

// What others wrote meanwhile is part of what a write finds, and is told by the
// next Reload.
func TestWriteFindsChanges(t *testing.T) {
	s, path, _ := newStore(t, `{"theme": "dark", "retry": {"enabled": true}}`, "")
	put(t, path, `{"theme": "light", "retry": {"enabled": true}}`)
	if err := s.Write(t.Context(), User, Set("retry.enabled", false)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != `{"theme": "light", "retry": {"enabled": false}}` || s.Settings().Text("theme") != "light" {
		t.Errorf("%s; %s", got, s.Settings().Text("theme"))
	}
	if changed := s.Reload(); !slices.Equal(changed, []string{"theme"}) {
		t.Errorf("changed %v", changed)
	}
	if changed := s.Reload(); changed != nil {
		t.Errorf("changed again %v", changed)
	}
}

func TestModernize(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"queueMode": "all", "theme": "x"}`, `{"theme": "x", "steeringMode": "all"}`},
		{"{\n  // a\n  \"retry\": {\n    \"maxDelayMs\": 7, // b\n    \"enabled\": true\n  }\n}",
			"{\n  // a\n  \"retry\": {\n    // b\n    \"enabled\": true,\n    \"provider\": {\n      \"maxRetryDelayMs\": 7\n    }\n  }\n}"},
		{`{"skills": {"customDirectories": ["a"]}}`, `{"skills": ["a"]}`},
		{`{"skills": {"enableSkillCommands": false}}`, `{"enableSkillCommands": false}`},
		{`{"skills": {"enableSkillCommands": false, "mine": 1}}`, `{"skills": {"enableSkillCommands": false, "mine": 1}, "enableSkillCommands": false}`},
		{`{"websockets": "x"}`, `{"websockets": "x"}`},
		// What does not count replaces nothing and stays where it is.
		{`{"queueMode": 5}`, `{"queueMode": 5}`},
		{`{"queueMode": 5, "steeringMode": "all"}`, `{"queueMode": 5, "steeringMode": "all"}`},
		{`{"queueMode": "all", "steeringMode": 5}`, `{"steeringMode": "all"}`},
		{`{"queueMode": "all", "steeringMode": "one-at-a-time"}`, `{"steeringMode": "one-at-a-time"}`},
		{`{"websockets": true, "transport": 5}`, `{"transport": "websocket"}`},
		{`{"skills": {"enableSkillCommands": true}, "enableSkillCommands": 5}`, `{"enableSkillCommands": true}`},
		{`{"skills": {"enableSkillCommands": 5}}`, `{"skills": {"enableSkillCommands": 5}}`},
		{`{"retry": {"maxDelayMs": 1, "provider": {"maxRetryDelayMs": "x"}}}`, `{"retry": {"provider": {"maxRetryDelayMs": 1}}}`},
		{`{"retry": {"maxDelayMs": "x", "provider": null}}`, `{"retry": {"maxDelayMs": "x", "provider": null}}`},
	} {
		got, err := modernize([]byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s became %s, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func TestFolderThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "x")
	s := OpenStore(filepath.Join(dir, "file", "settings.json"), "")
	err := s.Write(t.Context(), User, Set("theme", "x"))
	if e, ok := errors.AsType[*FileError](err); !ok || e.Op != "write" || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestEditPackages(t *testing.T) {
	s, user, _ := newStore(t, "{\n  // mine\n  \"packages\": [\"a\", {\"source\": \"b\", \"skills\": []}] // and so on\n}", "")
	err := s.EditPackages(t.Context(), User, func(list []jsontext.Value) ([]Change, error) {
		if len(list) != 2 || string(list[1]) != `{"source": "b", "skills": []}` {
			t.Errorf("got %s", list)
		}
		return []Change{Set("packages.1.source", "b2"), Set("packages.2", "c"), Unset("packages.0")}, nil
	})
	want := "{\n  // mine\n  \"packages\": [{\"source\": \"b2\", \"skills\": []}, \"c\"] // and so on\n}"
	if err != nil || content(t, user) != want || len(s.Settings().User.Packages()) != 2 {
		t.Errorf("%v\n%s", err, content(t, user))
	}
	refused := errors.New("no")
	if err := s.EditPackages(t.Context(), User, func([]jsontext.Value) ([]Change, error) { return nil, refused }); !errors.Is(err, refused) || content(t, user) != want {
		t.Errorf("%v\n%s", err, content(t, user))
	}
	add := func(list []jsontext.Value) ([]Change, error) { return []Change{Set("packages.0", "x")}, nil }
	s, _, project := newStore(t, "{}", "{\n  \"theme\": \"x\"\n}")
	if err := s.EditPackages(t.Context(), Project, add); err != nil || content(t, project) != "{\n  \"theme\": \"x\",\n  \"packages\": [\n    \"x\"\n  ]\n}" {
		t.Errorf("%v\n%s", err, content(t, project))
	}
	if err := OpenStore(user, "").EditPackages(t.Context(), Project, add); !errors.Is(err, ErrNoProject) {
		t.Errorf("%v", err)
	}
	s, user, _ = newStore(t, `{"packages": {"x": 1}}`, "")
	if err := s.EditPackages(t.Context(), User, add); err == nil || content(t, user) != `{"packages": {"x": 1}}` {
		t.Errorf("%v\n%s", err, content(t, user))
	}
}
