package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/resource"
)

// foundResources are the texts of a start, with what is to be said about them.
type foundResources struct {
	files     []resource.ContextFile
	skills    []resource.Skill
	templates []resource.Template
	packages  []resource.Package
	text      resource.PromptText
	report    resourceReport
	named     []string // files and folders that a person named
}

// findResources reads context files, skills, templates and prompt texts.
func (p *program) findResources(a *Args, w *workspace) *foundResources {
	f := &foundResources{}
	var d []resource.Diagnostic
	if !a.NoContextFiles {
		f.files, d = resource.ContextFiles(w.folders)
		f.report.missing(d)
	}
	// A session may work elsewhere; what a person names is seen from here.
	skillPaths, templatePaths := p.paths(a.Skills), p.paths(a.PromptTemplates)
	f.packages, d = resource.FindPackages(resource.PackageOptions{
		Folders: w.folders, Trusted: w.trusted, Temporary: folders(p.paths(a.Extensions)),
		User: packageEntries(w.settings.User), Project: packageEntries(w.settings.Project),
	})
	f.report.problems(d)
	f.skills, d = resource.LoadSkills(resource.Places{
		Folders: w.folders, Trusted: w.trusted, None: a.NoSkills, Paths: skillPaths, Packages: f.packages,
		User: entries(w.settings.User, "skills"), Project: entries(w.settings.Project, "skills"),
	})
	f.report.problems(d)
	f.templates, d = resource.LoadTemplates(resource.Places{
		Folders: w.folders, Trusted: w.trusted, None: a.NoTemplates, Paths: templatePaths, Packages: f.packages,
		User: entries(w.settings.User, "prompts"), Project: entries(w.settings.Project, "prompts"),
	})
	f.report.problems(d)
	f.text, d = resource.LoadPromptText(w.folders, w.trusted, p.cwd, a.SystemPrompt, a.AppendSystemPrompt)
	f.report.missing(d)
	f.report.findings(f.text.Findings)
	for _, c := range f.files {
		f.report.findings(c.Findings)
	}
	for _, s := range f.skills {
		f.report.findings(s.Findings)
	}
	for _, t := range f.templates {
		f.report.findings(t.Findings)
	}
	f.named = slices.Concat(skillPaths, templatePaths, p.paths(a.AppendSystemPrompt))
	if a.SystemPrompt != nil {
		f.named = append(f.named, p.path(*a.SystemPrompt))
	}
	return f
}

// loadResources gives the harness its system prompt and its expansion of inputs.
func (p *program) loadResources(a *Args, w *workspace, o *harness.Options) ([]resource.Skill, []resource.Template, error) {
	f := p.findResources(a, w)
	f.report.print(p, a.Verbose, f.named)
	prompt := func(tools []*agent.Tool) ([]llm.Section, error) {
		return resource.Prompt(resource.PromptOptions{
			Cwd: w.folders.Cwd, AgentFolder: w.folders.Agent, Preamble: f.text.Preamble, Addendum: f.text.Addendum,
			Tools: tools, ContextFiles: f.files, Skills: f.skills,
		})
	}
	if _, err := prompt(o.Tools); err != nil {
		return nil, nil, err
	}
	o.Sections = func(tools []*agent.Tool) []llm.Section {
		sections, _ := prompt(tools) // fails only on names, which were checked above
		return sections
	}
	o.Expand = func(input string) string {
		expanded, err := f.expand(input)
		if err != nil {
			p.warn("%s", sentence(err))
		} else if expanded == input {
			p.hintTrust(a, w, input)
		}
		return expanded
	}
	return f.skills, f.templates, nil
}

// expand replaces a skill or template that an input calls.
func (f *foundResources) expand(input string) (string, error) {
	expanded, err := resource.ExpandSkill(input, f.skills)
	if err != nil {
		return input, err
	}
	return resource.ExpandTemplate(expanded, f.templates), nil
}

// hintTrust tells a person that an input calls a skill or template which the
// project brings and which does not count, as nobody trusts the project.
func (p *program) hintTrust(a *Args, w *workspace, input string) {
	if w.trusted || !p.errTerminal || !strings.HasPrefix(input, "/") {
		return
	}
	quiet, trusting := *p, *a
	quiet.errs, trusting.Approve = io.Discard, new(true)
	own, err := quiet.openWorkspace(&trusting, w.folders.Cwd)
	if err != nil {
		return
	}
	if expanded, err := quiet.findResources(&trusting, own).expand(input); err == nil && expanded != input {
		p.warn("The model gets %s as it stands: this project brings it and is not trusted. Look at it; --approve trusts the project for one run, pinch trust yes from now on", strings.Fields(input)[0])
	}
}

// entries is a list of paths and patterns of a settings file.
func entries(f *settings.File, key string) resource.Entries {
	if f == nil || f.Path == "" {
		return resource.Entries{}
	}
	return resource.Entries{Folder: f.Folder(), List: f.Strings(key)}
}

func packageEntries(f *settings.File) resource.PackageEntries {
	if f == nil || f.Path == "" {
		return resource.PackageEntries{}
	}
	e := resource.PackageEntries{Folder: f.Folder()}
	for _, p := range f.Packages() {
		e.List = append(e.List, resource.PackageEntry(p))
	}
	return e
}

// folders are those of some paths that are folders.
func folders(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir()
	})
}

// leftOut are the extensions among what -e names; skills and templates of a folder
// count all the same.
func (p *program) leftOut(named []string) []string {
	var left []string
	for i, path := range p.paths(named) {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			left = append(left, named[i])
			continue
		}
		found, _ := resource.FindPackages(resource.PackageOptions{Temporary: []string{path}})
		if countExtensions(found) > 0 {
			left = append(left, "those in "+named[i])
		}
	}
	return left
}

// countExtensions counts what packages offer to a program that runs extensions.
func countExtensions(found []resource.Package) int {
	n := 0
	for i := range found {
		for _, offer := range found[i].Offers() {
			if offer.Kind == "extensions" {
				n++
			}
		}
	}
	return n
}

// resourceReport is what loading has to say, line by line.
type resourceReport struct{ lines []reportLine }

type reportLine struct {
	path, text string
	weight     weight
}

// weight says whom a line concerns.
type weight int

const (
	forReaders weight = iota // who asks for all
	forNamers                // who named the file
	forOwners                // whose file it may be
	forAll                   // everybody: text was hidden, or is missing
)

func (r *resourceReport) problems(list []resource.Diagnostic) {
	for _, d := range list {
		l := reportLine{d.Path, d.Path + ": " + d.Message, forOwners}
		if c := d.Collision; c != nil { // often on purpose
			l.text += ": " + c.WinnerPath + " is used"
			l.weight = forNamers
		}
		r.lines = append(r.lines, l)
	}
}

// missing takes problems of files that belong into every prompt: a run without
// them is another run than was meant.
func (r *resourceReport) missing(list []resource.Diagnostic) {
	for _, d := range list {
		r.lines = append(r.lines, reportLine{d.Path, d.Path + ": " + d.Message, forAll})
	}
}

func (r *resourceReport) findings(list []resource.Finding) {
	for _, f := range list {
		l := reportLine{f.Path, f.String(), forReaders}
		switch f.Severity {
		case resource.Dangerous:
			l.weight = forAll
		case resource.Suspicious:
			l.weight = forOwners
		}
		r.lines = append(r.lines, l)
	}
}

// print warns of what matters: of text that was hidden or is missing always, of
// the rest when a person asks for it or named the file. What is left is counted
// for a person who looks on; for scripts it is noise.
func (r *resourceReport) print(p *program, verbose bool, named []string) {
	said := map[string]bool{}
	left := 0
	for _, l := range r.lines {
		wasNamed := slices.ContainsFunc(named, func(path string) bool {
			return path != "" && (l.path == path || strings.HasPrefix(l.path, path+string(filepath.Separator)))
		})
		switch {
		case said[l.text]:
		case verbose || l.weight == forAll || wasNamed && l.weight >= forNamers:
			p.warn("%s", l.text)
		case l.weight == forOwners:
			left++
		}
		said[l.text] = true
	}
	if left > 0 && p.errTerminal {
		p.warn("%s on skills, templates and context files; --verbose lists them", plural(left, "remark"))
	}
}
