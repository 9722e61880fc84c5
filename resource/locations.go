package resource

import (
	"maps"
	"path/filepath"
)

// located is a file of a usual folder or of a package, or one that the settings
// of a scope name.
type located struct {
	path   string
	source Source
	on     bool // what the settings say of it
}

func (f located) item(k kind) Item {
	f.source.Path = f.path
	return Item{Kind: string(k), Path: f.path, On: f.on, Source: f.source}
}

// Places say where files of a kind, skills or prompt templates, are looked for.
type Places struct {
	Folders Folders
	Trusted bool     // the project's trust
	None    bool     // only Paths and packages for this run: --no-skills, --no-prompt-templates
	Paths   []string // of --skill, --prompt-template
	User    Entries  // the list of the kind in the user's settings
	Project Entries  // the list of the kind in the project's settings
	Found   []string // further paths, found by hooks
	// Packages are those of FindPackages.
	Packages []Package
}

// Entries is a list of paths and patterns from a settings file.
type Entries struct {
	Folder string // that relative paths start from
	List   []string
}

// forRun gives the files of a kind for one run to add: those of the packages named
// for it, and then those of everywhere, which None leaves to note where a person
// names files that may be among them.
func (k kind) forRun(p Places, add, note func(files []located, problems []Diagnostic)) {
	k.ofPackages(p.Packages, Temporary, add)
	if p.None {
		if len(p.Paths)+len(p.Found) == 0 {
			return
		}
		add = note
	}
	k.everywhere(p, add)
}

// everywhere gives the files of a kind place by place, in the order in which they
// count: those of the project, of the user, of packages.
func (k kind) everywhere(p Places, add func(files []located, problems []Diagnostic)) {
	if p.Trusted {
		add(k.locate(p.Folders, Project, p.Project))
	}
	add(k.locate(p.Folders, User, p.User))
	k.ofPackages(p.Packages, Project, add)
	k.ofPackages(p.Packages, User, add)
}

// ofPackages gives the files of a kind that the packages of a scope offer.
func (k kind) ofPackages(list []Package, scope Scope, add func(files []located, problems []Diagnostic)) {
	for i := range list {
		if p := &list[i]; p.Source.Scope == scope {
			add(p.files(k))
		}
	}
}

// locate lists the files of a kind that the settings of a scope name, then those
// of the usual folders. One that is off is listed too: it decides, as the first
// that is found, about the file in later places.
func (k kind) locate(f Folders, scope Scope, e Entries) (files []located, problems []Diagnostic) {
	add := func(dir string, how layout, source Source, patterns locationPatterns) {
		found, complete := k.in(dir, how)
		for _, file := range found {
			files = append(files, located{file, source, patterns.keeps(file)})
		}
		if !complete {
			problems = append(problems, scanProblem(dir))
		}
	}
	named := locationPatterns{list: e.List, folders: []string{e.Folder}}
	source := Source{Source: "local", Scope: scope, Origin: "top-level", BaseDir: e.Folder}
	paths, problems := entryPaths(e, f.Home)
	for _, path := range paths {
		if isDir(path) {
			add(path, rootFiles, source, named)
		} else if k.names(path) && isFile(path) {
			files = append(files, located{path, source, named.keeps(path)})
		}
	}
	for _, d := range k.usualFolders(f, scope) {
		owner := filepath.Dir(d.path)
		auto := locationPatterns{list: e.List, folders: []string{owner}}
		if e.Folder != "" && e.Folder != owner {
			auto.folders = append(auto.folders, e.Folder)
		}
		add(d.path, d.layout, Source{Source: "auto", Scope: scope, Origin: "top-level", BaseDir: owner}, auto)
	}
	return files, problems
}

// in lists the files of a kind in a folder.
func (k kind) in(dir string, how layout) (files []string, complete bool) {
	switch k {
	case skillKind:
		return scanSkills(dir, how)
	case promptKind:
		return scanTemplates(dir), true
	}
	return k.scan(dir), true
}

type usualFolder struct {
	path   string
	layout layout
}

// usualFolders are those that are looked into without being named.
func (k kind) usualFolders(f Folders, scope Scope) []usualFolder {
	var list []usualFolder
	switch {
	case scope == User:
		list = append(list, usualFolder{filepath.Join(f.Agent, string(k)), rootFiles})
	case f.Project(string(k)) != "":
		list = append(list, usualFolder{f.Project(string(k)), rootFiles})
	}
	switch {
	case k != skillKind:
	case scope == Project:
		for _, dir := range projectAgents(f) {
			list = append(list, usualFolder{dir, nestedFiles})
		}
	case f.Home != "":
		list = append(list, usualFolder{filepath.Join(f.Home, ".agents", "skills"), nestedFiles})
	}
	return list
}

// decided are the files that were decided about, without links, and whether they
// are on.
type decided map[string]bool

// first reports whether nothing was decided about a file before, and decides.
func (d *decided) first(file string, on bool) bool {
	real := canonical(file)
	if _, known := (*d)[real]; known {
		return false
	}
	if *d == nil {
		*d = decided{}
	}
	(*d)[real] = on
	return true
}

// loader is what the loaders of all kinds keep beside what they loaded.
type loader struct {
	warnings   []Diagnostic
	collisions []Diagnostic
	byFile     decided
	sources    map[string]Source // of the files of all places, by path
}

// note keeps where the files of a place come from: one that a person names is
// still a file of its place.
func (l *loader) note(files []located, _ []Diagnostic) {
	if l.sources == nil {
		l.sources = map[string]Source{}
	}
	for _, f := range files {
		if _, known := l.sources[f.path]; !known {
			l.sources[f.path] = f.source
		}
	}
}

// sourceOf is where a file comes from: its place, or otherwise what was said of
// it.
func (l *loader) sourceOf(file string, otherwise Source) Source {
	if s, known := l.sources[file]; known {
		return s
	}
	return otherwise
}

// loading gives what is on of a place to load. What is off is decided about too.
func (l *loader) loading(load func(file string, source Source)) func([]located, []Diagnostic) {
	return func(files []located, problems []Diagnostic) {
		l.note(files, nil)
		l.warnings = append(l.warnings, problems...)
		for _, f := range files {
			if f.on {
				load(f.path, f.source)
			} else {
				l.byFile.first(f.path, false)
			}
		}
	}
}

// problems are the warnings, then the collisions of names.
func (l *loader) problems() []Diagnostic { return append(l.warnings, l.collisions...) }

// named forgets what is off: files that a person names count in any case.
func (d decided) named() { maps.DeleteFunc(d, func(_ string, on bool) bool { return !on }) }
