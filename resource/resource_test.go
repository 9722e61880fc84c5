package resource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// tree makes files below a folder of its own and returns the folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "$ROOT", root)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAgentFolder(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, filepath.Join(home, ".pinch", "agent")},
		{map[string]string{"PI_CODING_AGENT_DIR": "~/pi"}, filepath.Join(home, "pi")},
		{map[string]string{"PI_CODING_AGENT_DIR": "~/pi", "PINCH_AGENT_DIR": filepath.Join(home, "own")}, filepath.Join(home, "own")},
	} {
		if got := AgentFolder(func(n string) string { return c.env[n] }, home); got != c.want {
			t.Errorf("%v: %s, want %s", c.env, got, c.want)
		}
	}
}

func TestProjectFolder(t *testing.T) {
	root := tree(t, map[string]string{
		"a/.pi/settings.json": "{}", "a/.pi/SYSTEM.md": "pi", "a/.pinch/settings.json": "{}",
		"b/.pi/SYSTEM.md": "pi",
		"c/x":             "",
	})
	in := func(name string) Folders { return Folders{Cwd: filepath.Join(root, name)} }
	for _, c := range []struct{ got, want string }{
		{in("a").Project("settings.json"), filepath.Join(root, "a/.pinch/settings.json")},
		{in("a").Project("SYSTEM.md"), filepath.Join(root, "a/.pi/SYSTEM.md")}, // resource by resource
		{in("a").Project("skills"), ""},
		{in("a").ProjectFolder(), filepath.Join(root, "a/.pinch")},
		{in("b").ProjectFolder(), filepath.Join(root, "b/.pi")},
		{in("c").ProjectFolder(), filepath.Join(root, "c/.pinch")},
		{Folders{Agent: "/home/me/.pi/agent", Cwd: filepath.Join(root, "c")}.ProjectFolder(), filepath.Join(root, "c/.pi")},
		{Folders{Agent: "/srv/agent", Cwd: filepath.Join(root, "c")}.ProjectFolder(), filepath.Join(root, "c/.pinch")},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestSelectTools(t *testing.T) {
	builtin := []string{"read", "bash", "edit", "write", "grep", "find", "ls"}
	others := []string{"mcp__a__x", "deploy"}
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	for _, c := range []struct {
		name string
		s    ToolSelection
		want string
		err  string
	}{
		{"nothing said", ToolSelection{}, "read,bash,edit,write,mcp__a__x,deploy", ""},
		{"allowlist keeps MCP", ToolSelection{Allow: list("ls,read,bogus")}, "ls,read,mcp__a__x", ""},
		{"allowlist names MCP", ToolSelection{Allow: list("read,mcp__b*")}, "read", ""},
		{"patterns", ToolSelection{Allow: list("*e*")}, "read,edit,write,grep,deploy,mcp__a__x", ""},
		{"question mark is plain", ToolSelection{Allow: list("l?")}, "mcp__a__x", ""},
		{"changes", ToolSelection{Allow: list("+grep,-write,+read,+bogus")}, "read,bash,edit,mcp__a__x,deploy,grep", ""},
		{"setting", ToolSelection{Default: list("+ls,-bash")}, "read,edit,write,ls,mcp__a__x,deploy", ""},
		{"setting of names", ToolSelection{Default: list("ls,grep")}, "ls,grep,mcp__a__x,deploy", ""},
		{"changes to setting", ToolSelection{Default: list("ls,grep"), Allow: list("-ls")}, "grep,mcp__a__x,deploy", ""},
		{"setting of names and changes", ToolSelection{Default: list("ls,read,+grep,-read")}, "ls,grep,mcp__a__x,deploy", ""},
		{"no patterns in the setting", ToolSelection{Default: list("r*,ls")}, "ls,mcp__a__x,deploy", ""},
		{"setting of nothing", ToolSelection{Default: []string{}}, "mcp__a__x,deploy", ""},
		{"what the session had", ToolSelection{Session: list("grep,gone,+bash,read"), Default: list("ls")}, "grep,read,mcp__a__x,deploy", ""},
		{"the session had none", ToolSelection{Session: []string{}}, "mcp__a__x,deploy", ""},
		{"changes to the session's", ToolSelection{Session: list("grep,read"), Allow: list("+ls,-read")}, "grep,mcp__a__x,deploy,ls", ""},
		{"a list instead of the session's", ToolSelection{Session: list("grep,read"), Allow: list("ls")}, "ls,mcp__a__x", ""},
		{"no built-in, whatever the session had", ToolSelection{Session: list("grep,read"), NoBuiltin: true}, "mcp__a__x,deploy", ""},
		{"exclusions last", ToolSelection{Allow: list("read,bash,ls"), Exclude: list("ba*,mcp__*")}, "read,ls", ""},
		{"none", ToolSelection{NoTools: true, Default: list("ls")}, "", ""},
		{"none but named", ToolSelection{NoTools: true, Allow: list("read")}, "read,mcp__a__x", ""},
		{"none but added", ToolSelection{NoTools: true, Allow: list("+read,-bash")}, "read", ""},
		{"no built-in but a pattern", ToolSelection{NoBuiltin: true, Allow: list("r*")}, "read,mcp__a__x", ""},
		{"no pattern means a hidden one", ToolSelection{Hidden: list("ls"), Allow: list("l*,g*")}, "grep,mcp__a__x", ""},
		{"a hidden one is named", ToolSelection{Hidden: list("ls"), Allow: list("ls")}, "ls,mcp__a__x", ""},
		{"no built-in", ToolSelection{NoBuiltin: true}, "mcp__a__x,deploy", ""},
		{"no built-in but named", ToolSelection{NoBuiltin: true, Allow: list("+ls")}, "mcp__a__x,deploy,ls", ""},
		{"mixed", ToolSelection{Allow: list("read,+grep")}, "", "--tools: tool names cannot be mixed with +name or -name entries"},
		{"pattern", ToolSelection{Allow: list("+gr*")}, "", "--tools: +name and -name entries take exact tool names, not patterns: +gr*"},
	} {
		c.s.Builtin, c.s.Others = builtin, others
		got, err := SelectTools(c.s)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if strings.Join(got, ",") != c.want || text != c.err {
			t.Errorf("%s: %v %s", c.name, got, text)
		}
	}
}

func TestPromptIsStable(t *testing.T) {
	o := PromptOptions{
		Cwd:          "/w",
		Tools:        []*agent.Tool{{Tool: llm.Tool{Name: "bash"}, Snippet: "Run\n a  command", Guidelines: []string{"Be careful"}}},
		ContextFiles: []ContextFile{{Path: "/w/AGENTS.md", Content: "Rules"}},
		Skills:       []Skill{{Name: "s", Description: "d", FilePath: "/s/SKILL.md"}},
	}
	first, err := Prompt(o)
	if err != nil {
		t.Fatal(err)
	}
	text := RenderPrompt(first)
	for range 20 {
		again, _ := Prompt(o)
		if RenderPrompt(again) != text || llm.DiffSections(first, again) != nil {
			t.Fatal("the same options give another prompt")
		}
	}
	for _, want := range []string{"- bash: Run a command\n", "- Be careful\n", "with bash before", "</rules>\n\n<docs>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "{{") || strings.Contains(text, "  before") {
		t.Errorf("a place is not filled:\n%s", text)
	}
	// A hidden tool is not mentioned; the skills stay without a reader.
	o.Hidden = []string{"bash"}
	hidden, _ := Prompt(o)
	text = RenderPrompt(hidden)
	if strings.Contains(text, "bash") || !strings.Contains(text, "<available_skills>") || !strings.Contains(text, "(none)") {
		t.Errorf("got\n%s", text)
	}
}

func TestPromptSections(t *testing.T) {
	for _, name := range []string{"", "preamble", "Upper", "1st", "a b", "ümlaut"} {
		_, err := Prompt(PromptOptions{Sections: []llm.Section{{Name: name, Text: "x"}}})
		if _, ok := errors.AsType[*SectionNameError](err); !ok {
			t.Errorf("section %q: %v", name, err)
		}
	}
	if _, err := Prompt(PromptOptions{Sections: []llm.Section{{Name: "my_own-2", Text: "x"}}}); err != nil {
		t.Error(err)
	}
	// A folder is shown as models write it, whoever's system this is.
	if m, err := SystemMessage(PromptOptions{Cwd: `C:\Users\ana`}); err != nil || m.Sections[len(m.Sections)-1].Text != "<cwd>\nC:/Users/ana\n</cwd>" {
		t.Errorf("%+v %v", m, err)
	}
	m, err := SystemMessage(PromptOptions{Cwd: "/w", Forced: "only this"})
	if err != nil || m.Sections != nil || m.Content.Text != "only this" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestLoadPromptText(t *testing.T) {
	root := tree(t, map[string]string{
		"agent/SYSTEM.md": "user system", "agent/APPEND_SYSTEM.md": "user more",
		"w/.pi/SYSTEM.md": "\uFEFFproject system\n",
		"w/extra.md":      "from file\n",
	})
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")}
	for _, c := range []struct {
		name     string
		trusted  bool
		system   *string
		appended []string
		want     PromptText
	}{
		{"user", false, nil, nil, PromptText{Preamble: "user system", Addendum: "user more"}},
		{"project", true, nil, nil, PromptText{Preamble: "project system\n", Addendum: "user more"}},
		{"flags", true, new("text"), []string{"extra.md", "", "literal"}, PromptText{Preamble: "text", Addendum: "from file\n\n\nliteral"}},
		{"file by flag", false, new("extra.md"), nil, PromptText{Preamble: "from file\n", Addendum: "user more"}},
		{"folder is text", false, new(".pi"), nil, PromptText{Preamble: ".pi", Addendum: "user more"}},
	} {
		got, problems := LoadPromptText(f, c.trusted, f.Cwd, c.system, c.appended)
		told := c.name == "folder is text" // a file was meant, perhaps
		if !reflect.DeepEqual(got, c.want) || (problems != nil) != told {
			t.Errorf("%s: %+v %v", c.name, got, problems)
		}
	}
}

func TestPromptTextFromElsewhere(t *testing.T) {
	root := tree(t, map[string]string{"w/x.md": "of the project", "here/x.md": "from here"})
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")}
	got, _ := LoadPromptText(f, false, filepath.Join(root, "here"), new("x.md"), []string{"x.md"})
	if want := (PromptText{Preamble: "from here", Addendum: "from here"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestContextFilesInWorktree(t *testing.T) {
	root := tree(t, map[string]string{
		"repo/.git/HEAD":           "ref: refs/heads/main\n",
		"repo/AGENTS.md":           "main",
		"repo/trees/one/.git":      "gitdir: $ROOT/repo/.git/worktrees/one\n",
		"repo/trees/one/AGENTS.md": "worktree",
		"repo/trees/two/.git":      "gitdir: ../../.git/worktrees/two\n",
		"repo/trees/two/CLAUDE.md": "other name",
		"repo/trees/three/x":       "",
	})
	for dir, want := range map[string]string{"one": "worktree", "two": "main,other name", "three": "main"} {
		files, problems := ContextFiles(Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "repo/trees", dir)})
		var got []string
		for _, f := range files {
			if strings.HasPrefix(f.Path, root) {
				got = append(got, f.Content)
			}
		}
		if strings.Join(got, ",") != want || problems != nil {
			t.Errorf("%s: %v %v, want %s", dir, got, problems, want)
		}
	}
}

func TestTrust(t *testing.T) {
	root := tree(t, map[string]string{
		"agent/trust.json":               "\uFEFF{\"$ROOT\": true, \"$ROOT/w/no\": false, \"$ROOT/w/gone\": null}",
		"w/p/.pi/settings.json":          "{}",
		"w/no/sub/.pinch/skills":         "",
		"w/plain/AGENTS.md":              "x",
		"w/.agents/skills/s/SKILL.md":    "x",
		"home/.agents/skills/s/SKILL.md": "x",
		"home/q/x":                       "",
	})
	store, err := ReadTrust(filepath.Join(root, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"w/p": "true true", "w/no/sub": "false true", "w/gone": "true true", "..": "false false"} {
		trusted, known := store.Decision(filepath.Join(root, dir))
		if got := fmt.Sprint(trusted, known); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
	for dir, want := range map[string]bool{"w/p": true, "w/no/sub": true, "w/plain": true, "home/q": false} {
		f := Folders{Agent: filepath.Join(root, "agent"), Home: filepath.Join(root, "home"), Cwd: filepath.Join(root, dir)}
		if got := NeedsTrust(f); got != want {
			t.Errorf("NeedsTrust(%s) = %v", dir, got)
		}
	}
	yes, no := new(true), new(false)
	trusting := &TrustStore{decisions: map[string]bool{root: true}}
	refusing := &TrustStore{decisions: map[string]bool{root: false}}
	for _, c := range []struct {
		name string
		q    TrustQuery
		want bool
	}{
		{"nothing to protect", TrustQuery{}, true},
		{"nothing to protect, and refused", TrustQuery{Store: refusing, Dir: root}, false},
		{"nobody to ask", TrustQuery{Needed: true, Default: "ask"}, false},
		{"unset", TrustQuery{Needed: true}, false},
		{"always", TrustQuery{Needed: true, Default: "always"}, true},
		{"never", TrustQuery{Needed: true, Default: "never", Ask: func() bool { return true }}, false},
		{"asked", TrustQuery{Needed: true, Default: "ask", Ask: func() bool { return true }}, true},
		{"saved beats default", TrustQuery{Needed: true, Default: "always", Store: refusing, Dir: root}, false},
		{"extension beats saved", TrustQuery{Needed: true, Store: refusing, Dir: root, Asked: yes}, true},
		{"flag beats all", TrustQuery{Needed: true, Store: trusting, Dir: root, Asked: yes, Flag: no, Default: "always"}, false},
		{"flag", TrustQuery{Needed: true, Flag: yes}, true},
	} {
		if got := c.q.Trusted(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for _, bad := range []string{"[]", "{", `{"a": 1}`, ""} {
		dir := tree(t, map[string]string{"trust.json": bad})
		if _, err := ReadTrust(dir); err == nil || !strings.Contains(err.Error(), "trust.json") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSaveTrust(t *testing.T) {
	root := tree(t, map[string]string{"a/x": "", "b/x": "", "c \"q\"/x": ""})
	agent := filepath.Join(root, "agent")
	dir := func(name string) string { return filepath.Join(root, name) }
	save := func(decisions map[string]*bool) string {
		t.Helper()
		if err := SaveTrust(t.Context(), agent, decisions); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(agent, "trust.json"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), strings.ReplaceAll(root, `\`, `\\`), "")
	}
	sep := strings.ReplaceAll(string(filepath.Separator), `\`, `\\`)
	want := strings.ReplaceAll("{\n  \"/a\": true,\n  \"/b\": false,\n  \"/c \\\"q\\\"\": true\n}\n", "/", sep)
	if got := save(map[string]*bool{dir("b"): new(false), dir("c \"q\""): new(true), dir("a/."): new(true)}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := save(map[string]*bool{dir("a"): nil, dir("b"): nil, dir("c \"q\""): nil}); got != "{}\n" {
		t.Errorf("got %s", got)
	}
	save(map[string]*bool{dir("a"): new(true)})
	store, err := ReadTrust(agent)
	if trusted, known := store.Decision(dir("a/x")); err != nil || !trusted || !known {
		t.Errorf("%v %v %v", trusted, known, err)
	}
	// Another program's folder that ends in a slash, which does not outweigh the same without.
	for text, want := range map[string]bool{
		`{"/p/": true}`: true, `{"/p": false, "/p/": true}`: false, `{"/p/": true, "/p": false}`: false, `{"/p/": false, "/p": true}`: true,
	} {
		text = strings.ReplaceAll(text, "/p", strings.ReplaceAll(dir("p"), `\`, `\\`))
		if err := os.WriteFile(filepath.Join(agent, "trust.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := ReadTrust(agent)
		if trusted, known := store.Decision(dir("p")); err != nil || !known || trusted != want {
			t.Errorf("%s: %v %v %v", text, trusted, known, err)
		}
	}
	save(map[string]*bool{dir("p"): nil, dir("a"): new(true)})
	// JSON cannot hold the name of such a folder, and would name another one.
	if err := SaveTrust(t.Context(), agent, map[string]*bool{dir("b\xff"): new(true)}); err == nil || !strings.Contains(err.Error(), `b\xff" is no text in UTF-8`) {
		t.Errorf("%v", err)
	}
	// Held by another; left over; malformed.
	lock := filepath.Join(agent, "trust.json.lock")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	held, _ := errors.AsType[*TrustError](SaveTrust(soon, agent, map[string]*bool{dir("b"): new(true)}))
	if held == nil || !errors.Is(held, context.DeadlineExceeded) {
		t.Errorf("%v", held)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	if got := save(map[string]*bool{dir("a"): nil}); got != "{}\n" {
		t.Errorf("got %s", got)
	}
	if err := os.WriteFile(filepath.Join(agent, "trust.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := SaveTrust(t.Context(), agent, map[string]*bool{dir("b"): new(true)}); err == nil {
		t.Error("wrote over a malformed file")
	}
	if left, _ := filepath.Glob(filepath.Join(agent, "trust.json?*")); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestIgnoreRules(t *testing.T) {
	var top ignoreRules
	top.rules.Add("# comment\n*.log\nbuild/\n!keep.log\n\\#odd\n/root\na/**/z\n")
	sub := ignoreRules{outer: &top, dir: "sub[1]"}
	sub.rules.Add("/tmp\n!local.log\n")
	for _, c := range []struct {
		path string
		dir  bool
		want bool
	}{
		{"x.log", false, true}, {"d/x.log", false, true}, {"d/keep.log", false, false},
		{"build", true, true}, {"build", false, false}, {"d/build", true, true},
		{"#odd", false, true}, {"root", false, true},
		{"a/z", false, true}, {"a/b/c/z", false, true}, {"a/b/y", false, false},
		{"sub[1]/tmp", true, true}, {"sub[1]/d/tmp", true, false}, {"tmp", true, false}, {"sub1/tmp", true, false},
		{"sub[1]/local.log", false, false},
	} {
		rules := &top
		if strings.HasPrefix(c.path, "sub[1]/") {
			rules = &sub
		}
		if got := rules.ignored(c.path, c.dir); got != c.want {
			t.Errorf("ignored(%s, %v) = %v", c.path, c.dir, got)
		}
	}
}

func TestSkillEntries(t *testing.T) {
	skill := func(name string) string { return "---\nname: " + name + "\ndescription: d\n---\n" }
	root := tree(t, map[string]string{
		"agent/skills/a/SKILL.md": skill("a"), "agent/skills/b/SKILL.md": skill("b"), "agent/skills/c.md": skill("c"),
		"packs/p1/SKILL.md": skill("p1"), "packs/p2/SKILL.md": skill("p2"), "packs/q/SKILL.md": skill("q"), "packs/n.txt": "x",
	})
	agentDir := filepath.Join(root, "agent")
	for _, c := range []struct {
		list string
		want string
	}{
		{"", "a b c"},
		{"!*", ""},
		{"!skills/*,+skills/b", "b"},
		{"-skills/a", "b c"},
		{"+skills/a/SKILL.md,-skills/a/SKILL.md", "b c"},
		{"!**/a", "b c"},
		{"../packs/p*", "p1 p2 a b c"},
		{"../packs/q,../packs/none,../packs/n.txt,!q", "a b c"},
		{"../packs", "p1 p2 q a b c"},
		{" ../packs/q/SKILL.md ", "q a b c"},
	} {
		var e Entries
		e.Folder = agentDir
		if c.list != "" {
			e.List = strings.Split(c.list, ",")
		}
		skills, problems := LoadSkills(Places{Folders: Folders{Agent: agentDir, Cwd: filepath.Join(root, "w")}, User: e})
		var names []string
		for _, s := range skills {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != c.want || problems != nil {
			t.Errorf("%q: %s %v, want %s", c.list, got, problems, c.want)
		}
	}
}

// Templates named by their path keep the scope of the folder that they are in.
func TestTemplateScopes(t *testing.T) {
	root := tree(t, map[string]string{"agent/prompts/sub/x.md": "x", "w/.pi/prompts/sub/y.md": "y", "w/z.md": "z"})
	list, problems := DiscoverTemplates(Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")},
		[]string{"../agent/prompts/sub", ".pi/prompts/sub/y.md", "z.md"})
	if len(list) != 3 || list[0].Source.Scope != User || list[1].Source.Scope != Project || list[2].Source.Scope != Temporary {
		t.Errorf("%+v, %v", list, problems)
	}
}

// What only YAML 1.1 takes for numbers is text, a last block keeps its lines, and
// the character behind the opening dashes is dropped.
func TestFrontmatterAsRecorded(t *testing.T) {
	for text, want := range map[string]string{
		"---\na: 1_000\nb: 0b11\nc: 0x1b\n---\n": "map[a:1_000 b:0b11 c:27]",
		"---\na: |+\n  x\n\n\n---\n":             "map[a:x\n\n]",
		"---\na: |\n  x\n---\n":                  "map[a:x\n]",
		"---éa: 1\n---\n":                        "map[a:1]",
	} {
		front, _, err := ParseFrontmatter(text)
		if got := fmt.Sprint(map[string]any(front)); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestTemplateCollision(t *testing.T) {
	root := tree(t, map[string]string{"agent/prompts/x.md": "user", "w/.pi/prompts/x.md": "project", "w/own.md": "own"})
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")}
	list, problems := LoadTemplates(Places{Folders: f, Trusted: true, Paths: []string{"own.md", "none.md"}})
	if len(list) != 2 || list[0].Content != "project" || list[1].Name != "own" {
		t.Errorf("%+v", list)
	}
	if len(problems) != 2 || problems[0].Type != Warning || problems[1].Message != `name "/x" collision` || problems[1].Collision.LoserPath != filepath.Join(root, "agent/prompts/x.md") {
		t.Errorf("%+v", problems)
	}
	if list, _ = LoadTemplates(Places{Folders: f}); len(list) != 1 || list[0].Content != "user" {
		t.Errorf("untrusted: %+v", list)
	}
	if list, _ = LoadTemplates(Places{Folders: f, Trusted: true, None: true}); list != nil {
		t.Errorf("none: %+v", list)
	}
}

func TestSkillFolderLoop(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege there")
	}
	root := tree(t, map[string]string{"agent/skills/a/b/SKILL.md": "---\ndescription: d\n---\n"})
	if err := os.Symlink("..", filepath.Join(root, "agent/skills/a/up")); err != nil {
		t.Fatal(err)
	}
	skills, problems := DiscoverSkills(Folders{Agent: filepath.Join(root, "agent"), Cwd: root}, nil)
	if len(skills) != 1 || skills[0].Name != "b" || problems != nil {
		t.Errorf("%+v %v", skills, problems)
	}
}

func TestYAMLCoreSchema(t *testing.T) {
	front, _, err := ParseFrontmatter("---\nday: 2026-01-02\nyes: yes\non: on\nhex: 0x10\nf: 1e3\nn: ~\nt: true\nq: \"true\"\nlist: &l [1, x]\nagain: *l\n---\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "map[again:[1 x] day:2026-01-02 f:1000 hex:16 list:[1 x] n:<nil> on:on q:true t:true yes:yes]"
	if got := fmt.Sprint(front); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if front["t"] != true || front["q"] != "true" {
		t.Errorf("%v", front)
	}
	// Aliases that blow up are refused.
	var b strings.Builder
	b.WriteString("---\na0: &a0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	if _, _, err := ParseFrontmatter(b.String() + "---\n"); err == nil {
		t.Error("aliases without end are accepted")
	}
}

func FuzzFrontmatter(f *testing.F) {
	f.Add("---\na: 1\n---\nbody")
	f.Add("\uFEFF---\r\nd: >\r\n  x\r\n---")
	f.Add("---\n- &a [*a]\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		front, body, err := ParseFrontmatter(text)
		if err == nil && front == nil {
			t.Fatal("no fields and no error")
		}
		// What comes out is as long as the places are many and the arguments long.
		Substitute(body, ParseArguments(text[:min(len(text), 1000)]))
	})
}

func ExampleExpandTemplate() {
	templates := []Template{{Name: "review", Content: "Review $1 for ${2:-everything}."}}
	fmt.Println(ExpandTemplate(`/review "main branch"`, templates))
	// Output: Review main branch for everything.
}

// A file that a flag names is one of its usual folder all the same, whether the
// folders are looked into or the file was turned off.
func TestNamedFilesOfUsualFolders(t *testing.T) {
	root := tree(t, map[string]string{
		"agent/skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\n", "agent/prompts/p.md": "p",
		"more/SKILL.md": "---\nname: more\ndescription: d\n---\n",
	})
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: root}
	off := func(name string) Entries { return Entries{Folder: f.Agent, List: []string{"-" + name}} }
	for _, none := range []bool{false, true} {
		skills, problems := LoadSkills(Places{Folders: f, None: none, User: off("skills/s"), Paths: []string{"agent/skills", "more"}})
		if len(skills) != 2 || skills[0].Source.Scope != User || skills[0].Source.Source != "auto" || skills[1].Source.Scope != Temporary {
			t.Errorf("none %t: %+v, %v", none, skills, problems)
		}
		list, problems := LoadTemplates(Places{Folders: f, None: none, User: off("prompts/p.md"), Paths: []string{"agent/prompts/p.md"}})
		if len(list) != 1 || list[0].Source.Scope != User || list[0].Source.Source != "auto" {
			t.Errorf("none %t: %+v, %v", none, list, problems)
		}
	}
}
