package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/resource"
)

// resourceCase is one row of a table or one whole file.
type resourceCase struct {
	Kind      string                     `json:"kind"`
	Name      string                     `json:"name"`
	Input     resourceInput              `json:"input"`
	Expect    json.RawMessage            `json:"expect"`
	Files     map[string]json.RawMessage `json:"files"`
	Templates []struct{ Name, Content string }
	Cases     []resourceRow `json:"cases"`
}

type resourceInput struct {
	Files           map[string]json.RawMessage `json:"files"`
	Cwd             string                     `json:"cwd"`
	AgentDir        string                     `json:"agentDir"`
	Home            string                     `json:"home"`
	Trusted         bool                       `json:"trusted"`
	NoSkills        bool                       `json:"noSkills"`
	SkillPaths      []string                   `json:"skillPaths"`
	PromptPaths     []string                   `json:"promptPaths"`
	CliPaths        []string                   `json:"cliPaths"`
	Settings        json.RawMessage            `json:"settings"`
	ProjectSettings json.RawMessage            `json:"projectSettings"`
}

type resourceRow struct {
	Name        string             `json:"name"`
	Text        string             `json:"text"`
	Out         string             `json:"out"`
	Args        []string           `json:"args"`
	Content     string             `json:"content"`
	Frontmatter any                `json:"frontmatter"`
	Body        string             `json:"body"`
	Error       any                `json:"error"`
	Parsed      *map[string]string `json:"parsed"`
	Previous    orderedTexts       `json:"previous"`
	Current     orderedTexts       `json:"current"`
	Patch       map[string]*string `json:"patch"`
	Options     promptOptions      `json:"options"`
	Order       []string           `json:"order"`
	Sections    map[string]string  `json:"sections"`
}

type promptOptions struct {
	Cwd                string              `json:"cwd"`
	ToolSnippets       map[string]string   `json:"toolSnippets"`
	ToolGuidelines     map[string][]string `json:"toolGuidelines"`
	SelectedTools      []string            `json:"selectedTools"`
	PromptGuidelines   []string            `json:"promptGuidelines"`
	CustomPrompt       string              `json:"customPrompt"`
	AppendSystemPrompt string              `json:"appendSystemPrompt"`
	ForceSystemPrompt  string              `json:"forceSystemPrompt"`
	ContextFiles       []resource.ContextFile
	Skills             []resource.Skill
	Sections           orderedTexts `json:"sections"`
}

// orderedTexts is an object of texts in its order.
type orderedTexts []llm.Section

func (o *orderedTexts) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var text string
		if err := dec.Decode(&text); err != nil {
			return err
		}
		*o = append(*o, llm.Section{Name: key.(string), Text: text})
	}
	return nil
}

// placeholders stand for the program's own wording.
var placeholders = regexp.MustCompile(`«[A-Z_]+( [^»]*)?»`)

// sameResource compares a text with one that may hold placeholders.
func sameResource(got, want string) bool {
	if got == want {
		return true
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	rest := want
	for {
		at := placeholders.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		if at[2] >= 0 { // «REFERENCES dir»: the wording names the folder
			b.WriteString(`[^\n]*` + regexp.QuoteMeta(strings.TrimSpace(rest[at[2]:at[3]])) + `[^\n]*`)
		} else {
			b.WriteString(`\S.*?`)
		}
		rest = rest[at[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest) + `$`)
	return regexp.MustCompile(b.String()).MatchString(got)
}

// makeTree creates the files of a case below root.
func makeTree(t *testing.T, root string, files map[string]json.RawMessage) {
	t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var text string
		if json.Unmarshal(files[name], &text) == nil {
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "$ROOT", root)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var special struct {
			Symlink string
			Dir     bool
		}
		if err := json.Unmarshal(files[name], &special); err != nil {
			t.Fatal(err)
		}
		var err error
		if special.Dir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.Symlink(strings.ReplaceAll(special.Symlink, "$ROOT", root), path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readResourceCase(t *testing.T, file, root string) resourceCase {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c resourceCase
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(b), "$ROOT", root)), &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

func (in resourceInput) folders() resource.Folders {
	return resource.Folders{Agent: in.AgentDir, Home: in.Home, Cwd: in.Cwd}
}

func TestSkills(t *testing.T)    { runResources(t, "skills") }
func TestTemplates(t *testing.T) { runResources(t, "templates") }

func runResources(t *testing.T, name string) {
	g := newGroup(name)
	for _, file := range vectorFiles(t, name) {
		caseName := strings.TrimSuffix(filepath.Base(file), ".json")
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c := readResourceCase(t, file, root)
		makeTree(t, root, c.Input.Files)
		makeTree(t, root, c.Files)
		if c.Cases == nil {
			o := outcome{}
			c.check(o)
			g.report(t, caseName, o, nil)
			continue
		}
		for i, row := range c.Cases {
			o := outcome{}
			c.checkRow(o, row, root)
			g.report(t, fmt.Sprintf("%s#%d", caseName, i+1), o, nil)
		}
	}
}

// differ books a difference as JSON, own wording aside.
func differ(o outcome, field string, got, want any) {
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if !sameResource(string(g), string(w)) {
		o.add(field, "got %s, want %s", g, w)
	}
}

type expectedSkill struct {
	Name                   string  `json:"name"`
	Description            *string `json:"description,omitempty"`
	FilePath               string  `json:"filePath"`
	BaseDir                *string `json:"baseDir,omitempty"`
	DisableModelInvocation *bool   `json:"disableModelInvocation,omitempty"`
	Source                 string  `json:"source,omitempty"`
	Scope                  string  `json:"scope"`
}

type expectedDiagnostic struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	Message string `json:"message,omitempty"`
	Name    string `json:"name,omitempty"`
	Winner  string `json:"winner,omitempty"`
	Loser   string `json:"loser,omitempty"`
}

func (c resourceCase) check(o outcome) {
	in := c.Input
	switch c.Kind {
	case "contextFiles":
		var want []struct{ Path, Content string }
		json.Unmarshal(c.Expect, &want)
		files, _ := resource.ContextFiles(in.folders())
		got := make([]struct{ Path, Content string }, len(files))
		for i, f := range files {
			got[i].Path, got[i].Content = f.Path, f.Content
		}
		differ(o, "files", got, want)
	case "discover":
		c.checkDiscover(o)
	case "loader":
		c.checkLoader(o)
	case "load":
		c.checkTemplates(o)
	default:
		o.add("kind", "unknown kind %q", c.Kind)
	}
}

func diagnostics(list []resource.Diagnostic, want []expectedDiagnostic) []expectedDiagnostic {
	out := make([]expectedDiagnostic, 0, len(list))
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].Path != list[j].Path {
			return list[i].Path < list[j].Path
		}
		return list[i].Message < list[j].Message
	})
	for i, d := range list {
		e := expectedDiagnostic{Type: d.Type, Path: d.Path}
		if i < len(want) && want[i].Message != "" {
			e.Message = d.Message
		}
		if d.Collision != nil {
			e.Winner = d.Collision.WinnerPath
			if i < len(want) && want[i].Name != "" {
				e.Name, e.Loser = d.Collision.Name, d.Collision.LoserPath
			}
		}
		out = append(out, e)
	}
	return out
}

func (c resourceCase) checkDiscover(o outcome) {
	var want struct {
		Skills      []expectedSkill
		Diagnostics []expectedDiagnostic
		PromptBlock string
	}
	json.Unmarshal(c.Expect, &want)
	skills, problems := resource.DiscoverSkills(c.Input.folders(), c.Input.SkillPaths)
	block := resource.SkillBlock(skills, "read")
	if !sameResource(block, want.PromptBlock) {
		o.add("promptBlock", "got %q, want %q", block, want.PromptBlock)
	}
	got := []expectedSkill{}
	for _, s := range skills {
		got = append(got, expectedSkill{
			Name: s.Name, Description: &s.Description, FilePath: s.FilePath, BaseDir: &s.BaseDir,
			DisableModelInvocation: &s.DisableModelInvocation, Scope: string(s.Source.Scope),
		})
	}
	sort.SliceStable(got, func(i, j int) bool { return got[i].FilePath < got[j].FilePath })
	differ(o, "skills", got, want.Skills)
	differ(o, "diagnostics", diagnostics(problems, want.Diagnostics), want.Diagnostics)
}

func (c resourceCase) checkLoader(o outcome) {
	var want struct {
		Skills      []expectedSkill
		Diagnostics []expectedDiagnostic
	}
	json.Unmarshal(c.Expect, &want)
	in := c.Input
	entries := func(folder string, raw json.RawMessage) resource.Entries {
		file := settings.Parse(filepath.Join(folder, "settings.json"), raw)
		return resource.Entries{Folder: folder, List: file.Strings("skills")}
	}
	packages := func(folder string, raw json.RawMessage) resource.PackageEntries {
		e := resource.PackageEntries{Folder: folder}
		for _, p := range settings.Parse(filepath.Join(folder, "settings.json"), raw).Packages() {
			e.List = append(e.List, resource.PackageEntry(p))
		}
		return e
	}
	found, _ := resource.FindPackages(resource.PackageOptions{
		Folders: in.folders(), Trusted: in.Trusted,
		User: packages(in.AgentDir, in.Settings), Project: packages(filepath.Join(in.Cwd, ".pi"), in.ProjectSettings),
	})
	skills, problems := resource.LoadSkills(resource.Places{
		Folders: in.folders(), Trusted: in.Trusted, None: in.NoSkills, Paths: in.CliPaths, Packages: found,
		User:    entries(in.AgentDir, in.Settings),
		Project: entries(filepath.Join(in.Cwd, ".pi"), in.ProjectSettings),
	})
	got := []expectedSkill{}
	for _, s := range skills {
		got = append(got, expectedSkill{Name: s.Name, FilePath: s.FilePath, Source: s.Source.Source, Scope: string(s.Source.Scope)})
	}
	differ(o, "skills", got, want.Skills)
	differ(o, "diagnostics", diagnostics(problems, want.Diagnostics), want.Diagnostics)
}

func (c resourceCase) checkTemplates(o outcome) {
	type template struct {
		Name         string `json:"name"`
		Description  string `json:"description"`
		ArgumentHint string `json:"argumentHint,omitempty"`
		Content      string `json:"content"`
		FilePath     string `json:"filePath"`
		Scope        string `json:"scope"`
	}
	var want struct {
		Templates   []template
		Diagnostics []expectedDiagnostic
	}
	json.Unmarshal(c.Expect, &want)
	list, problems := resource.DiscoverTemplates(c.Input.folders(), c.Input.PromptPaths)
	got := []template{}
	for _, x := range list {
		got = append(got, template{x.Name, x.Description, x.ArgumentHint, x.Content, x.FilePath, string(x.Source.Scope)})
	}
	sort.SliceStable(got, func(i, j int) bool { return got[i].FilePath < got[j].FilePath })
	differ(o, "templates", got, want.Templates)
	differ(o, "diagnostics", diagnostics(problems, want.Diagnostics), want.Diagnostics)
}

func (c resourceCase) checkRow(o outcome, row resourceRow, root string) {
	switch c.Kind {
	case "expandSkill":
		skills, _ := resource.DiscoverSkills(resource.Folders{Agent: root, Cwd: root}, []string{filepath.Join(root, "s")})
		skills = append(skills, resource.Skill{Name: "gone", FilePath: filepath.Join(root, "s/gone/SKILL.md"), BaseDir: filepath.Join(root, "s/gone")})
		if got, _ := resource.ExpandSkill(row.Text, skills); !sameResource(got, row.Out) {
			o.add("out", "got %q, want %q", got, row.Out)
		}
	case "parseSkillBlock":
		got, ok := resource.ParseSkillInvocation(row.Text)
		if ok != (row.Parsed != nil) {
			o.add("parsed", "recognised: %v", ok)
		} else if ok {
			m := map[string]string{"name": got.Name, "location": got.Location, "content": got.Content}
			if got.Message != "" {
				m["userMessage"] = got.Message
			}
			differ(o, "parsed", m, *row.Parsed)
		}
	case "sectionDiff":
		var got map[string]*string
		for _, s := range llm.DiffSections(row.Previous, row.Current) {
			if got == nil {
				got = map[string]*string{}
			}
			got[s.Name] = &s.Text
			if s.Removed {
				got[s.Name] = nil
			}
		}
		differ(o, "patch", got, row.Patch)
	case "systemPrompt":
		row.checkPrompt(o)
	case "parseArguments":
		differ(o, "args", resource.ParseArguments(row.Text), row.Args)
	case "substitute":
		differ(o, "out", resource.Substitute(row.Content, row.Args), row.Out)
	case "expand":
		var list []resource.Template
		for _, t := range c.Templates {
			list = append(list, resource.Template{Name: t.Name, Content: t.Content})
		}
		differ(o, "out", resource.ExpandTemplate(row.Text, list), row.Out)
	case "frontmatter":
		front, body, err := resource.ParseFrontmatter(row.Text)
		if (err != nil) != (row.Error != nil) {
			o.add("error", "%v", err)
		} else if err == nil {
			differ(o, "frontmatter", front, row.Frontmatter)
			differ(o, "body", body, row.Body)
		}
	default:
		o.add("kind", "unknown kind %q", c.Kind)
	}
}

func (row resourceRow) checkPrompt(o outcome) {
	in := row.Options
	names := in.SelectedTools
	if names == nil {
		names = resource.DefaultTools()
	}
	var tools []*agent.Tool
	for _, name := range names {
		tools = append(tools, &agent.Tool{Tool: llm.Tool{Name: name}, Snippet: in.ToolSnippets[name], Guidelines: in.ToolGuidelines[name]})
	}
	message, err := resource.SystemMessage(resource.PromptOptions{
		Cwd: in.Cwd, Preamble: in.CustomPrompt, Addendum: in.AppendSystemPrompt, Tools: tools,
		Rules: in.PromptGuidelines, ContextFiles: in.ContextFiles, Skills: in.Skills, Sections: in.Sections,
		Forced: in.ForceSystemPrompt,
	})
	if row.Error != nil {
		if _, ok := errors.AsType[*resource.SectionNameError](err); !ok {
			o.add("error", "%v", err)
		}
		return
	}
	if err != nil {
		o.add("error", "%v", err)
		return
	}
	if got := message.Content.Text; got != row.Content {
		o.add("content", "got %q, want %q", got, row.Content)
	}
	var order []string
	for _, s := range message.Sections {
		order = append(order, s.Name)
		if want, ok := row.Sections[s.Name]; ok && !sameResource(s.Text, want) {
			o.add("sections."+s.Name, "got %q, want %q", s.Text, want)
		}
	}
	if !reflect.DeepEqual(order, row.Order) {
		o.add("order", "got %v, want %v", order, row.Order)
	}
}
