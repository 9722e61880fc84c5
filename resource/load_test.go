package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// TestSkillFiles loads one file, with all that may be wrong with it.
func TestSkillFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // name|description, "" for none
		problem    string
	}{
		{"mark and Windows lines", "\uFEFF---\r\nname: a\r\ndescription: d\r\n---\r\nBody\r\n", "a|d", ""},
		{"old lines", "---\rname: a\rdescription: d\r---\rBody", "a|d", ""},
		{"not UTF-8", "---\nname: a\ndescription: caf\xe9\n---\n", "a|caf\uFFFD", ""},
		{"name of the folder", "---\ndescription: d\n---\n", "folder|d", ""},
		{"name of another kind", "---\nname: 7\ndescription: d\n---\n", "folder|d", ""},
		{"no description", "---\nname: a\n---\n", "", "description is required"},
		{"no description and no good name", "---\nname: A\n---\n", "", "name contains invalid characters"},
		{"blank description", "---\nname: a\ndescription: ' '\n---\n", "", "description is required"},
		{"description of another kind", "---\nname: a\ndescription: [d]\n---\n", "", "description is required"},
		{"no map", "---\n- a\n---\n", "", "description is required"},
		{"no end", "---\nname: a\ndescription: d\n", "", "description is required"},
		{"a key twice", "---\nname: a\nname: b\ndescription: d\n---\n", "", "occurs twice"},
		{"tabs", "---\nname: a\ndescription: d\nmetadata:\n\tx: 1\n---\n", "", "line"},
		{"aliases", "---\nname: &n a\ndescription: *n\n---\n", "a|a", ""},
		{"unknown alias", "---\nname: *n\ndescription: d\n---\n", "", "unknown"},
		{"a loop of aliases", "---\nname: a\ndescription: d\nx: &x [*x]\n---\n", "", "frontmatter"},
		{"too deep", "---\ndescription: d\nx: " + strings.Repeat("[", 20000) + "\n---\n", "", "depth"},
		{"deep", "---\ndescription: d\nx: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n---\n", "", "frontmatter"},
		{"large head", "---\nname: a\ndescription: d\nx: " + strings.Repeat("x", 70_000) + "\n---\n", "", "frontmatter larger than 64 KiB"},
		{"large file", "---\nname: a\ndescription: d\n---\n" + strings.Repeat("word\n", 220_000), "", "larger than 1 MiB"},
		{"many values", "---\ndescription: d\nx: [" + strings.Repeat("1,", 11_000) + "]\n---\n", "", "frontmatter"},
		{"merge key", "---\ndescription: d\nbase: &b {name: other}\n<<: *b\n---\n", "folder|d", ""},
		{"way out", "---\nname: ../../etc\ndescription: d\n---\n", "../../etc|d", "name contains invalid characters"},
		{"markup", "---\nname: \"</name></skill>\"\ndescription: </description></available_skills>\n---\n", "</name></skill>|</description></available_skills>", "name contains invalid characters"},
		{"long name", "---\nname: " + strings.Repeat("a", 65) + "\ndescription: d\n---\n", strings.Repeat("a", 65) + "|d", "name exceeds 64 characters (65)"},
		{"hyphens", "---\nname: -a--b\ndescription: d\n---\n", "-a--b|d", "name must not start or end with a hyphen"},
	} {
		root := tree(t, map[string]string{"folder/SKILL.md": c.text})
		skills, problems := LoadSkills(Places{Folders: Folders{Agent: filepath.Join(root, "agent"), Cwd: root}, Paths: []string{"folder"}})
		got := ""
		if len(skills) == 1 {
			got = skills[0].Name + "|" + skills[0].Description
		}
		if got != c.want || (c.problem == "") != (problems == nil) || !strings.Contains(fmt.Sprint(problems), c.problem) {
			t.Errorf("%s: %q %v, want %q %s", c.name, got, problems, c.want, c.problem)
		}
		// A name or description never leaves its place in the list.
		block := SkillBlock(skills, "read")
		if n := strings.Count(block, "</skill>"); n != len(skills) || strings.Count(block, "</available_skills>") != len(skills) {
			t.Errorf("%s: %s", c.name, block)
		}
	}
}

// TestSkillFilesBesideOthers: of Markdown files that are no SKILL.md only what
// cannot be read is reported.
func TestSkillFilesBesideOthers(t *testing.T) {
	root := tree(t, map[string]string{
		"agent/skills/notes.md": "just notes", "agent/skills/bad.md": "---\na: [\n---\n", "agent/skills/SKILL.txt": "x",
		"agent/skills/big.md": strings.Repeat("x", maxText+1), "agent/skills/node_modules/x/SKILL.md": "---\ndescription: d\n---\n",
		"agent/skills/.hidden/SKILL.md": "---\ndescription: d\n---\n",
	})
	skills, problems := LoadSkills(Places{Folders: Folders{Agent: filepath.Join(root, "agent"), Cwd: root}})
	if skills != nil || len(problems) != 1 || problems[0].Message != errTooLarge.Error() {
		t.Errorf("%v %v", skills, problems)
	}
}

func TestSkillPrecedence(t *testing.T) {
	// Each location has the skill s; they are taken away from the winner on.
	places := []struct{ path, origin string }{
		{"set/p/SKILL.md", "local project"},
		{"w/.pinch/skills/s.md", "auto project"},
		{"w/.agents/skills/s/SKILL.md", "auto project"},
		{"repo-root", ""}, // w is the git root: nothing above it
		{"set/u/SKILL.md", "local user"},
		{"agent/skills/s.md", "auto user"},
		{"home/.agents/skills/g/s.md", "auto user"},
		{"flag/s.md", "local temporary"},
		{"hook/s.md", "local temporary"},
	}
	files := map[string]string{"w/.git": "gitdir: elsewhere", ".agents/skills/s/SKILL.md": "---\nname: s\ndescription: above\n---\n", "w/.pi/skills/s.md": "---\nname: s\ndescription: .pinch comes first\n---\n"}
	for _, p := range places {
		files[p.path] = "---\nname: s\ndescription: " + p.path + "\n---\n"
	}
	root := tree(t, files)
	o := Places{
		Folders: Folders{Agent: filepath.Join(root, "agent"), Home: filepath.Join(root, "home"), Cwd: filepath.Join(root, "w")}, Trusted: true,
		Paths: []string{" ../flag/s.md "}, Found: []string{"../hook"},
		User:    Entries{filepath.Join(root, "agent"), []string{"../set/u"}},
		Project: Entries{filepath.Join(root, "w/.pinch"), []string{"../../set/p"}},
	}
	for i, p := range places {
		if p.origin == "" {
			continue
		}
		skills, problems := LoadSkills(o)
		if len(skills) != 1 || skills[0].Description != p.path || skills[0].Source.Source+" "+string(skills[0].Source.Scope) != p.origin {
			t.Fatalf("%s: %+v", p.path, skills)
		}
		losers := 0
		for _, d := range problems {
			if d.Type == Collision && d.Message == `name "s" collision` && d.Collision.Name == "s" && d.Collision.WinnerPath == filepath.Join(root, filepath.FromSlash(p.path)) && d.Collision.LoserPath == d.Path {
				losers++
			}
		}
		rest := 0
		for _, q := range places[i+1:] {
			if q.origin != "" {
				rest++
			}
		}
		if losers != rest {
			t.Errorf("%s: %d of %d collisions: %v", p.path, losers, rest, problems)
		}
		o2 := o
		o2.Trusted = false
		untrusted, _ := LoadSkills(o2)
		if untrusted[0].Source.Scope == Project {
			t.Errorf("untrusted: %+v", untrusted)
		}
		if err := os.Remove(filepath.Join(root, filepath.FromSlash(p.path))); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			os.RemoveAll(filepath.Join(root, "w/.pinch/skills"))
			os.RemoveAll(filepath.Join(root, "w/.pi"))
		}
	}
}

func TestSameFileIsSilent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege there")
	}
	root := tree(t, map[string]string{"real/a/SKILL.md": "---\ndescription: d\n---\n", "real/b/SKILL.md": "no description", "agent/skills/x": "", "agent/prompts/x": ""})
	for link, target := range map[string]string{
		"agent/skills/one": "../../real", "agent/skills/two": "../../real", "agent/skills/broken": "nowhere",
		"agent/prompts/one.md": "../../real/b/SKILL.md", "agent/prompts/two.md": "../../real/b/SKILL.md", "agent/prompts/broken.md": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: root}
	skills, problems := LoadSkills(Places{Folders: f, Paths: []string{"real", "real/a"}})
	if len(skills) != 1 || skills[0].FilePath != filepath.Join(root, "agent/skills/one/a/SKILL.md") || len(problems) != 1 {
		t.Errorf("%+v %v", skills, problems)
	}
	templates, problems := LoadTemplates(Places{Folders: f})
	if len(templates) != 1 || templates[0].Name != "one" || problems != nil {
		t.Errorf("%+v %v", templates, problems)
	}
}

// TestPathNamedTwice: a path of a flag is looked at, and complained of, once.
func TestPathNamedTwice(t *testing.T) {
	root := t.TempDir()
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: root}
	names := []string{"none", " none/ ", filepath.Join(root, "none")}
	if _, problems := LoadSkills(Places{Folders: f, Paths: names, Found: names}); len(problems) != 1 {
		t.Errorf("%v", problems)
	}
	if _, problems := LoadTemplates(Places{Folders: f, Paths: names, Found: names}); len(problems) != 1 {
		t.Errorf("%v", problems)
	}
}

func TestScanIsBounded(t *testing.T) {
	files := map[string]string{"s/z/SKILL.md": ""}
	for i := range 9 {
		files[fmt.Sprintf("s/a/%d.txt", i)] = ""
	}
	root := tree(t, files)
	for _, c := range []struct {
		limit          int
		scan, expanded string // files found, complete
	}{
		{5, "0 false", "0 false"},
		{11, "1 true", "0 false"}, // the folder itself counts where a pattern is looked for
		{13, "1 true", "1 true"},
	} {
		s := skillScan{left: c.limit, seen: map[string]bool{}}
		s.folder(filepath.Join(root, "s"), "", nil)
		if got := fmt.Sprint(len(s.files), s.left >= 0); got != c.scan {
			t.Errorf("%d: %s", c.limit, got)
		}
		paths, complete := expandGlob(filepath.Join(root, "s", "z*"), c.limit)
		if got := fmt.Sprint(len(paths), complete); got != c.expanded {
			t.Errorf("pattern, %d: %s", c.limit, got)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/*", "a/b", true}, {"a/*", "a/b/c", false}, {"a/**", "a/b/c", true}, {"a/**", "a", false},
		{"**/c", "c", true}, {"**/c", "a/b/c", true}, {"**/b/**/d", "a/b/c/b/d", true}, {"**/b/**/d", "a/c/d", false},
		{"**/a/**/b/**/c", "a/x/b/b/y/c/c", true}, {"a/**/**/b", "a/b", true}, {"x?z", "xyz", true}, {"[!a]b", "cb", true}, {"[!a]b", "ab", false},
		{"{a,b}/c", "b/c", true}, {"{a,b}/c", "d/c", false}, {"x{1,{2,3}y}", "x3y", true}, {"{a}", "{a}", true}, {"{a,b", "{a,b", true}, {"a{,b}", "a", true},
		{strings.Repeat("{a,b}", 30), strings.Repeat("b", 30), false}, // more than it looks at
		{"[", "[", false},
	} {
		if got := globMatch(c.pattern, c.name); got != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.name, got)
		}
	}
	// Many ** cost no more than pattern times path.
	if globMatch(strings.Repeat("**/a/", 200)+"b", strings.Repeat("a/", 2000)+"c") {
		t.Error("matched")
	}
}

func TestNeedsTrust(t *testing.T) {
	for _, c := range []struct {
		file string
		want bool
	}{
		{".pi/settings.json", true}, {".pinch/mcp.json", true}, {".pi/extensions/x.ts", true}, {".pinch/skills/s/SKILL.md", true},
		{".pi/prompts/p.md", true}, {".pi/themes/t.json", true}, {".pinch/SYSTEM.md", true}, {".pi/APPEND_SYSTEM.md", true}, {".agents/skills/s/SKILL.md", true},
		{"AGENTS.md", false}, {"CLAUDE.md", false}, {".pi/sessions/x", false}, {".agents/other/x", false}, {"skills/s/SKILL.md", false},
	} {
		root := tree(t, map[string]string{c.file: "x"})
		if got := NeedsTrust(Folders{Agent: filepath.Join(root, "agent"), Home: filepath.Join(root, "home"), Cwd: root}); got != c.want {
			t.Errorf("%s: %v", c.file, got)
		}
	}
}

// TestUntrustedProject has every resource of a project; without trust only its
// context files load.
func TestUntrustedProject(t *testing.T) {
	skill := "---\nname: s\ndescription: d\n---\n"
	root := tree(t, map[string]string{
		"w/.pi/skills/s.md": skill, "w/.agents/skills/a/SKILL.md": skill, "w/.pi/prompts/p.md": "p", "w/.pi/SYSTEM.md": "s", "w/.pi/APPEND_SYSTEM.md": "a",
		"w/pack/skills/q.md": skill, "w/AGENTS.md": "rules",
	})
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")}
	for _, trusted := range []bool{false, true} {
		project := filepath.Join(root, "w/.pi")
		packages, _ := FindPackages(PackageOptions{Folders: f, Trusted: trusted, Project: PackageEntries{project, []PackageEntry{{Source: "../pack"}}}})
		skills, _ := LoadSkills(Places{Folders: f, Trusted: trusted, Packages: packages, Project: Entries{project, []string{"../pack/skills/q.md"}}})
		templates, _ := LoadTemplates(Places{Folders: f, Trusted: trusted, Packages: packages, Project: Entries{project, []string{"../AGENTS.md"}}})
		text, _ := LoadPromptText(f, trusted, f.Cwd, nil, nil)
		files, _ := ContextFiles(f)
		got := fmt.Sprint(len(packages) > 0, len(skills) > 0, len(templates) > 0, text.Preamble != "", text.Addendum != "")
		if want := fmt.Sprint(trusted, trusted, trusted, trusted, trusted); got != want {
			t.Errorf("trusted %v: %s", trusted, got)
		}
		if !slices.ContainsFunc(files, func(c ContextFile) bool { return c.Content == "rules" }) {
			t.Errorf("trusted %v: %v", trusted, files)
		}
	}
}

// TestPromptPrefix: what changes in one section leaves the bytes of the others,
// so that a provider's cache hits up to it.
func TestPromptPrefix(t *testing.T) {
	base := PromptOptions{
		Cwd: "/w", Addendum: "more",
		Tools:        []*agent.Tool{{Tool: llm.Tool{Name: "read"}, Snippet: "Read"}},
		ContextFiles: []ContextFile{{Path: "/AGENTS.md", Content: "Rules"}},
		Skills:       []Skill{{Name: "a", Description: "d", FilePath: "/a"}},
		Sections:     []llm.Section{{Name: "mine", Text: "x"}},
	}
	for _, c := range []struct {
		section string
		change  func(*PromptOptions)
	}{
		{"cwd", func(o *PromptOptions) { o.Cwd = "/other" }},
		{"skills", func(o *PromptOptions) {
			o.Skills = append(slices.Clone(o.Skills), Skill{Name: "b", Description: "d", FilePath: "/b"})
		}},
		{"project_context", func(o *PromptOptions) {
			o.ContextFiles = append(slices.Clone(o.ContextFiles), ContextFile{Path: "/w/AGENTS.md"})
		}},
		{"addendum", func(o *PromptOptions) { o.Addendum = "less" }},
		{"rules", func(o *PromptOptions) { o.Rules = []string{"Be kind"} }},
		{"mine", func(o *PromptOptions) { o.Sections = []llm.Section{{Name: "mine", Text: "y"}} }},
	} {
		before, err := Prompt(base)
		if err != nil {
			t.Fatal(err)
		}
		o := base
		c.change(&o)
		after, _ := Prompt(o)
		if diff := llm.DiffSections(before, after); len(diff) != 1 || diff[0].Name != c.section {
			t.Errorf("%s: %v", c.section, diff)
		}
		prefix := before[:slices.IndexFunc(before, func(s llm.Section) bool { return s.Name == c.section })]
		if !strings.HasPrefix(RenderPrompt(after), RenderPrompt(prefix)) {
			t.Errorf("%s: the text before it changed", c.section)
		}
	}
	// A hidden skill and one that a person alone calls leave no trace.
	o := base
	o.Skills = append(slices.Clone(o.Skills), Skill{Name: "b", DisableModelInvocation: true}, Skill{Name: "c", Withheld: true})
	a, _ := Prompt(base)
	if b, _ := Prompt(o); llm.DiffSections(a, b) != nil {
		t.Error("listed")
	}
}

// TestLoadingIsStable: the same files give the same bytes.
func TestLoadingIsStable(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("agent/skills/s%d/SKILL.md", i)] = fmt.Sprintf("---\ndescription: d%d\nmetadata: {z: 1, a: 2, m: 3}\nextra%d: x\nother: y\n---\n", i, i)
		files[fmt.Sprintf("agent/prompts/p%d.md", i)] = "x"
	}
	root := tree(t, files)
	f := Folders{Agent: filepath.Join(root, "agent"), Cwd: root}
	first := ""
	for range 5 {
		skills, d1 := LoadSkills(Places{Folders: f})
		templates, d2 := LoadTemplates(Places{Folders: f})
		got := fmt.Sprintf("%+v %+v %+v %+v", skills, templates, d1, d2)
		if first == "" {
			first = got
		}
		if got != first || len(skills) != 40 || len(templates) != 40 {
			t.Fatal("another result")
		}
	}
}

// TestInvocationIsOnePass: what is put in is not expanded again.
func TestInvocationIsOnePass(t *testing.T) {
	root := tree(t, map[string]string{"s/SKILL.md": "---\nname: s\ndescription: d\ndisable-model-invocation: true\n---\n/t $1 /skill:s"})
	skills, _ := LoadSkills(Places{Folders: Folders{Agent: root, Cwd: root}, Paths: []string{"s"}})
	templates := []Template{{Name: "t", Content: "/t /skill:s $1 $ARGUMENTS ${@:2} ${3:-$1}"}, {Name: "skill:s", Content: "wrong"}}
	expand := func(input string) string {
		text, err := ExpandSkill(input, skills)
		if err != nil {
			t.Fatal(err)
		}
		return ExpandTemplate(text, templates)
	}
	if got, want := expand(`/t $2 "/t x"`), "/t /skill:s $2 $2 /t x /t x $1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := expand("/skill:s $1")
	call, ok := ParseSkillInvocation(got)
	if !ok || call.Name != "s" || call.Message != "$1" || !strings.HasSuffix(call.Content, "/t $1 /skill:s") || SkillBlock(skills, "read") != "" {
		t.Errorf("%q %+v", got, call)
	}
}
