package resource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/invoke"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Template is a prompt with places for arguments, called as /name.
type Template struct {
	Name         string
	Description  string
	ArgumentHint string
	Content      string
	FilePath     string    // absolute
	Findings     []Finding // of the audit
	Source       Source
}

// maxTemplateDescription bounds a description taken from the body, in UTF-16
// units.
const maxTemplateDescription = 60

func loadTemplate(path string, source Source) (*Template, []Diagnostic) {
	if d := lure(path); d != nil && source.Scope != User {
		return nil, []Diagnostic{*d}
	}
	b, err := readText(path)
	if err != nil {
		return nil, []Diagnostic{{Type: Warning, Path: path, Message: cause(err).Error()}}
	}
	front, body, err := ParseFrontmatter(decode(b))
	if err != nil {
		return nil, []Diagnostic{{Type: Warning, Path: path, Message: err.Error()}}
	}
	source.Path = path
	name := strings.TrimSuffix(filepath.Base(path), ".md")
	t := &Template{
		Name:     Visible(name),
		Content:  Visible(body),
		FilePath: path,
		Source:   source,
	}
	description, _ := front.text("description")
	hint, _ := front.text("argument-hint")
	if description == "" {
		description = firstLine(body)
	}
	t.Description, t.ArgumentHint = Visible(description), Visible(hint)
	f := &findings{path: path}
	f.text(b)
	f.name(name)
	f.fields(decode(b), front, []string{"description", "argument-hint"})
	if source.Scope != User {
		f.link(path, repository(filepath.Dir(path)))
	}
	t.Findings = f.sorted()
	return t, nil
}

// firstLine is the first line that is not blank, cut to a length.
func firstLine(body string) string {
	for line := range strings.SplitSeq(body, "\n") {
		if jsonwire.Trim(line) == "" {
			continue
		}
		if jsonwire.UTF16Len(line) > maxTemplateDescription {
			return jsonwire.UTF16Prefix(line, maxTemplateDescription) + "..."
		}
		return line
	}
	return ""
}

type templateLoader struct {
	loader
	templates []Template
	unique    bool
}

func (l *templateLoader) load(file string, source Source) {
	if l.unique && !l.byFile.first(file, true) {
		return
	}
	t, problems := loadTemplate(file, l.sourceOf(file, source))
	l.warnings = append(l.warnings, problems...)
	if t == nil {
		return
	}
	if l.unique {
		for i := range l.templates {
			if w := &l.templates[i]; w.Name == t.Name {
				l.collisions = append(l.collisions, Diagnostic{
					Type: Collision, Path: file, Message: fmt.Sprintf("name %q collision", "/"+t.Name),
					Collision: &CollisionInfo{ResourceType: "prompt", Name: t.Name, WinnerPath: w.FilePath, LoserPath: file},
				})
				return
			}
		}
	}
	l.templates = append(l.templates, *t)
}

func (l *templateLoader) folder(dir string, source Source) {
	for _, file := range scanTemplates(dir) {
		l.load(file, source)
	}
}

// path loads what a person named: a file or a folder. It says why it loads
// nothing.
func (l *templateLoader) path(path string, source Source) (problem string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "prompt template path does not exist"
	case err != nil:
		return cause(err).Error()
	case info.IsDir():
		l.folder(path, source)
	case !strings.HasSuffix(path, ".md"):
		return "prompt template path is not a markdown file"
	default:
		l.load(path, source)
	}
	return ""
}

// LoadTemplates loads the templates of all locations, the project's before the
// user's; the first of a name wins.
func LoadTemplates(p Places) ([]Template, []Diagnostic) {
	l := templateLoader{unique: true}
	promptKind.forRun(p, l.loading(l.load), l.note)
	l.byFile.named()
	for _, path := range p.Folders.resolveOnce(p.Paths, p.Found) {
		if problem := l.path(path, Source{Source: "local", Scope: Temporary, Origin: "top-level"}); problem != "" {
			l.warnings = append(l.warnings, Diagnostic{Type: Warning, Path: path, Message: problem})
		}
	}
	return l.templates, l.problems()
}

// DiscoverTemplates is the plain loader for hosts that have no settings and no
// trust. It passes over paths that are no templates, and keeps templates of the
// same name.
func DiscoverTemplates(f Folders, paths []string) ([]Template, []Diagnostic) {
	var l templateLoader
	l.folder(filepath.Join(f.Agent, "prompts"), Source{Source: "auto", Scope: User, Origin: "top-level", BaseDir: f.Agent})
	if dir := f.Project("prompts"); dir != "" {
		l.folder(dir, Source{Source: "auto", Scope: Project, Origin: "top-level", BaseDir: filepath.Dir(dir)})
	}
	for _, p := range paths {
		p = resolvePath(p, f.Cwd, f.Home)
		scope := Temporary
		if dir := f.Project("prompts"); isWithin(p, filepath.Join(f.Agent, "prompts")) {
			scope = User
		} else if dir != "" && isWithin(p, dir) {
			scope = Project
		}
		_ = l.path(p, Source{Source: "local", Scope: scope, Origin: "top-level"})
	}
	return l.templates, l.problems()
}

// ExpandTemplate replaces /name args by the template of that name; a text that
// names none stays as it is.
func ExpandTemplate(input string, templates []Template) string {
	rest, ok := strings.CutPrefix(input, "/")
	if !ok {
		return input
	}
	name, args := rest, ""
	if i := strings.IndexFunc(rest, jsonwire.IsSpace); i >= 0 {
		name, args = rest[:i], rest[i:]
	}
	for i := range templates {
		if templates[i].Name == name {
			return Substitute(templates[i].Content, ParseArguments(args))
		}
	}
	return input
}

// ParseArguments splits a text into arguments at white space. A quote at the
// start of an argument holds white space together up to its partner; inside it,
// a backslash before the same quote stands for the quote. A quote without a
// partner is a plain character.
func ParseArguments(text string) []string {
	args := []string{}
	rest := strings.TrimLeftFunc(text, jsonwire.IsSpace)
	for rest != "" {
		arg := ""
		if q := rest[0]; q == '"' || q == '\'' {
			if inner, after, ok := quoted(rest[1:], q); ok {
				arg, rest = inner, after
			}
		}
		end := strings.IndexFunc(rest, jsonwire.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		args = append(args, arg+rest[:end])
		rest = strings.TrimLeftFunc(rest[end:], jsonwire.IsSpace)
	}
	return args
}

// quoted reads up to the closing quote.
func quoted(s string, quote byte) (inner, after string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == quote:
			i++
			b.WriteByte(quote)
		case s[i] == quote:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// Substitute fills the places of a template in one pass; what it puts in is not
// looked at again.
func Substitute(content string, args []string) string { return invoke.Template(content, args) }
