package resource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pinch-agent/pinch/internal/invoke"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Skill is a file with instructions for one kind of work, which a model loads
// when a task calls for it.
type Skill struct {
	Name        string
	Description string
	FilePath    string // absolute
	BaseDir     string // folder of the file
	// DisableModelInvocation hides the skill from the model; a person can
	// still call it.
	DisableModelInvocation bool
	// Withheld is a skill whose file hides text: it is not listed to the model,
	// which would read the file as it is. A person can still call it, and gets
	// the text that shows.
	Withheld bool
	Findings []Finding // of the audit
	Source   Source
}

// Limits of skill fields, in UTF-16 units.
const (
	maxSkillName        = 64
	maxSkillDescription = 1024
)

// loadSkill reads one skill file; nil when it is none.
func loadSkill(path string, source Source) (*Skill, []Diagnostic) {
	warn := func(format string, args ...any) Diagnostic {
		return Diagnostic{Type: Warning, Path: path, Message: fmt.Sprintf(format, args...)}
	}
	b, err := readText(path)
	if err != nil {
		return nil, []Diagnostic{warn("%v", cause(err))}
	}
	// Markdown files beside skills are often just notes, so they fail silently.
	strict := filepath.Base(path) == skillFile
	front, _, err := ParseFrontmatter(decode(b))
	if err != nil {
		if strict {
			return nil, []Diagnostic{warn("%v", err)}
		}
		return nil, nil
	}
	dir := filepath.Dir(path)
	name, _ := front.text("name")
	if name == "" {
		name = filepath.Base(dir)
	}
	description, _ := front.text("description")
	missing := jsonwire.Trim(description) == ""
	var problems []Diagnostic
	if missing {
		problems = append(problems, warn("description is required"))
	} else if n := jsonwire.UTF16Len(description); n > maxSkillDescription {
		problems = append(problems, warn("description exceeds %d characters (%d)", maxSkillDescription, n))
	}
	for _, message := range skillNameProblems(name) {
		problems = append(problems, warn("%s", message))
	}
	switch {
	case missing && strict:
		return nil, problems
	case missing:
		return nil, nil
	}
	source.Path = path
	s := &Skill{
		Name:                   Visible(name),
		Description:            Visible(description),
		FilePath:               path,
		BaseDir:                dir,
		DisableModelInvocation: front["disable-model-invocation"] == true,
		Source:                 source,
	}
	s.Findings = auditSkill(path, b, front, name)
	s.Withheld = worst(s.Findings) == Dangerous
	return s, problems
}

// knownSkillFields are the fields of a skill that mean something to it or to
// its readers.
func knownSkillFields() []string {
	return []string{"name", "description", "disable-model-invocation", "license", "compatibility", "metadata", "allowed-tools"}
}

// auditSkill is the audit of a skill's file, its name and its folder.
func auditSkill(path string, content []byte, front Frontmatter, name string) []Finding {
	f := &findings{path: path}
	f.text(content)
	f.references(withLF(decode(content)))
	f.name(name)
	f.fields(decode(content), front, knownSkillFields())
	if filepath.Base(path) == skillFile {
		f.links(filepath.Dir(path))
	} else {
		f.link(path, filepath.Dir(path))
	}
	return f.sorted()
}

func skillNameProblems(name string) []string {
	var out []string
	if n := jsonwire.UTF16Len(name); n > maxSkillName {
		out = append(out, fmt.Sprintf("name exceeds %d characters (%d)", maxSkillName, n))
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
	}) {
		out = append(out, "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)")
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		out = append(out, "name must not start or end with a hyphen")
	}
	if strings.Contains(name, "--") {
		out = append(out, "name must not contain consecutive hyphens")
	}
	return out
}

// skillLoader collects skills; the first of a name wins.
type skillLoader struct {
	loader
	skills []Skill
	byName map[string]int
}

func (l *skillLoader) load(file string, source Source) {
	if !l.byFile.first(file, true) {
		return
	}
	skill, problems := loadSkill(file, l.sourceOf(file, source))
	l.warnings = append(l.warnings, problems...)
	if skill == nil {
		return
	}
	if i, taken := l.byName[skill.Name]; taken {
		l.collisions = append(l.collisions, Diagnostic{
			Type: Collision, Path: file, Message: fmt.Sprintf("name %q collision", skill.Name),
			Collision: &CollisionInfo{ResourceType: "skill", Name: skill.Name, WinnerPath: l.skills[i].FilePath, LoserPath: file},
		})
		return
	}
	if l.byName == nil {
		l.byName = map[string]int{}
	}
	l.byName[skill.Name] = len(l.skills)
	l.skills = append(l.skills, *skill)
}

func (l *skillLoader) folder(dir string, source Source) {
	files, complete := scanSkills(dir, rootFiles)
	for _, file := range files {
		l.load(file, source)
	}
	if !complete {
		l.warnings = append(l.warnings, scanProblem(dir))
	}
}

// path loads what a person named: a file or a folder.
func (l *skillLoader) path(path string, source Source) {
	info, err := os.Stat(path)
	warn := func(message string) {
		l.warnings = append(l.warnings, Diagnostic{Type: Warning, Path: path, Message: message})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		warn("skill path does not exist")
	case err != nil:
		warn(cause(err).Error())
	case info.IsDir():
		l.folder(path, source)
	case !strings.HasSuffix(path, ".md"):
		warn("skill path is not a markdown file")
	default:
		l.load(path, source)
	}
}

// LoadSkills loads the skills of all locations, the project's before the
// user's; the first of a name wins.
func LoadSkills(p Places) ([]Skill, []Diagnostic) {
	var l skillLoader
	skillKind.forRun(p, l.loading(l.load), l.note)
	l.byFile.named()
	for _, path := range p.Folders.resolveOnce(p.Paths, p.Found) {
		l.path(path, Source{Source: "local", Scope: Temporary, Origin: "top-level"})
	}
	return l.skills, l.problems()
}

// DiscoverSkills is the plain loader for hosts that have no settings and no
// trust: the agent folder, the project's folder, then paths. Here the user's
// copy of a name wins.
func DiscoverSkills(f Folders, paths []string) ([]Skill, []Diagnostic) {
	var l skillLoader
	l.folder(filepath.Join(f.Agent, "skills"), Source{Source: "auto", Scope: User, Origin: "top-level", BaseDir: f.Agent})
	if dir := f.Project("skills"); dir != "" {
		l.folder(dir, Source{Source: "auto", Scope: Project, Origin: "top-level", BaseDir: filepath.Dir(dir)})
	}
	for _, p := range paths {
		l.path(resolvePath(p, f.Cwd, f.Home), Source{Source: "local", Scope: Temporary, Origin: "top-level"})
	}
	return l.skills, l.problems()
}

// projectAgents are the .agents folders of skills from the working folder up to
// the git root, without the user's own.
func projectAgents(f Folders) []string {
	var list []string
	for _, dir := range ancestors(f.Cwd) {
		skills := filepath.Join(dir, ".agents", "skills")
		if isDir(skills) && !f.ownAgents(skills) {
			list = append(list, skills)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
	}
	return list
}

// SkillBlock lists skills for a model: what they are, and the name, description
// and file of each that it may use. reader is the tool to load files with: read,
// bash, or "" to name none. It is empty when there is no such skill.
func SkillBlock(skills []Skill, reader string) string {
	var b strings.Builder
	for _, s := range skills {
		if s.DisableModelInvocation || s.Withheld {
			continue
		}
		fmt.Fprintf(&b, "  <skill>\n    <name>%s</name>\n    <description>%s</description>\n    <location>%s</location>\n  </skill>\n",
			escapeXML(Visible(s.Name)), escapeXML(Visible(s.Description)), escapeXML(s.FilePath))
	}
	if b.Len() == 0 {
		return ""
	}
	with := map[string]string{"read": " with the read tool", "bash": " with bash"}[reader]
	intro := strings.ReplaceAll(text("skills"), " {{reader}}", with)
	return intro + "\n\n<available_skills>\n" + b.String() + "</available_skills>"
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(s)
}

// skillCommand introduces the invocation of a skill.
const skillCommand = "/skill:"

// ExpandSkill replaces /skill:NAME args at the start of a text by the skill. An
// unknown skill leaves the text as it is; so does one whose file cannot be read,
// which is an error as well.
func ExpandSkill(input string, skills []Skill) (string, error) {
	rest, ok := strings.CutPrefix(input, skillCommand)
	if !ok {
		return input, nil
	}
	// Only a space ends the name: a line end is part of it.
	name, args, _ := strings.Cut(rest, " ")
	for _, s := range skills {
		if s.Name != name {
			continue
		}
		body, err := s.Instructions()
		if err != nil {
			return input, err
		}
		return invoke.Skill(s.Name, s.FilePath, s.BaseDir, body, args), nil
	}
	return input, nil
}

// Instructions reads the skill's file: its text without frontmatter and without
// what cannot be seen.
func (s *Skill) Instructions() (string, error) {
	b, err := readText(s.FilePath)
	if err != nil {
		return "", fmt.Errorf("skill %q: %w", s.Name, err)
	}
	_, body := cutFrontmatter(decode(b))
	return Visible(body), nil
}

// SkillInvocation is an expanded skill, recognised for display.
type SkillInvocation struct {
	Name     string
	Location string
	Content  string
	Message  string // what the person wrote behind it; "" for nothing
}

// ParseSkillInvocation recognises a text that ExpandSkill made.
func ParseSkillInvocation(text string) (SkillInvocation, bool) {
	m := regexp.MustCompile(`(?s)^<skill name="([^"]+)" location="([^"]+)">\n(.*?)\n</skill>(?:\n\n(.+))?$`).FindStringSubmatch(text)
	if m == nil {
		return SkillInvocation{}, false
	}
	return SkillInvocation{Name: m[1], Location: m[2], Content: m[3], Message: jsonwire.Trim(m[4])}, true
}
