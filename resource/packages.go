package resource

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/gitsource"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// PackageEntry is an entry of the packages list of a settings file.
type PackageEntry struct {
	// Source is npm:NAME[@VERSION], git:HOST/PATH[@REF], the address of a git
	// repository, or a path.
	Source string
	// Delta is an entry with autoload off: it loads only what its filters name. In
	// a project it changes what the user's entry of the same package loads.
	Delta bool
	// Filters for each kind of resource: patterns to load, and !glob, +path,
	// -path. nil loads everything that the package declares, an empty list
	// nothing.
	Extensions, Skills, Prompts, Themes []string
}

// PackageEntries are the packages of a settings file.
type PackageEntries struct {
	Folder string // that relative paths start from
	List   []PackageEntry
}

// PackageOptions say which packages there are.
type PackageOptions struct {
	Folders   Folders
	Trusted   bool     // the project's trust
	Temporary []string // sources for this run, of --extension
	User      PackageEntries
	Project   PackageEntries
}

// Package is a package that is on this machine.
type Package struct {
	Dir     string // absolute
	Source  Source
	filters []PackageEntry // those of the entries, in the order in which they count
}

// FindPackages finds the packages that the settings name, in the order in which
// their resources count: those for this run, the project's, the user's. It
// installs nothing: a package that is not there is a Diagnostic. A project's
// entry replaces the user's of the same package, which is known by its name, its
// repository or its path.
func FindPackages(o PackageOptions) ([]Package, []Diagnostic) {
	var found []Package
	var problems []Diagnostic
	taken := map[string]bool{}
	add := func(e PackageEntry, folder string, scope Scope, changes ...PackageEntry) {
		dir, identity := locatePackage(e.Source, folder, scope, o.Folders)
		if taken[identity] {
			return
		}
		taken[identity] = true
		info, err := os.Stat(dir)
		switch {
		case dir == "":
			problems = append(problems, Diagnostic{Type: Warning, Path: e.Source, Message: "not the source of a package"})
		case err != nil && packageKind(e.Source) == LocalPackage:
			problems = append(problems, Diagnostic{Type: Warning, Path: dir, Message: "package path does not exist"})
		case err != nil:
			problems = append(problems, Diagnostic{Type: Warning, Path: dir, Message: fmt.Sprintf("package %s is not installed", e.Source)})
		case info.IsDir(): // a file is a single extension
			found = append(found, Package{
				Dir:     dir,
				Source:  Source{Path: dir, Source: e.Source, Scope: scope, Origin: "package", BaseDir: dir},
				filters: append([]PackageEntry{e}, changes...),
			})
		}
	}
	for _, source := range o.Temporary {
		add(PackageEntry{Source: source}, o.Folders.Cwd, Temporary)
	}
	users := map[string]bool{}
	for _, e := range o.User.List {
		_, identity := locatePackage(e.Source, o.User.Folder, User, o.Folders)
		users[identity] = true
	}
	deltas := map[string][]PackageEntry{}
	if o.Trusted {
		for _, e := range o.Project.List {
			_, identity := locatePackage(e.Source, o.Project.Folder, Project, o.Folders)
			if e.Delta && users[identity] {
				deltas[identity] = append(deltas[identity], e)
				continue
			}
			add(e, o.Project.Folder, Project)
		}
	}
	for _, e := range o.User.List {
		_, identity := locatePackage(e.Source, o.User.Folder, User, o.Folders)
		add(e, o.User.Folder, User, deltas[identity]...)
	}
	return found, problems
}

// PackageKind is where a package comes from.
type PackageKind int

// The kinds of packages.
const (
	LocalPackage PackageKind = iota // a path
	NPMPackage                      // a registry of npm packages
	GitPackage                      // a repository
)

func packageKind(source string) PackageKind {
	switch {
	case strings.HasPrefix(source, "npm:"):
		return NPMPackage
	case strings.HasPrefix(source, "git:"), strings.HasPrefix(source, "https://"), strings.HasPrefix(source, "http://"), strings.HasPrefix(source, "ssh://"):
		return GitPackage
	}
	return LocalPackage
}

// locatePackage is the folder of a source, "" when it is none, and what makes
// two sources the same package.
func locatePackage(source, folder string, scope Scope, f Folders) (dir, identity string) {
	installed := func(parts ...string) string {
		rel := filepath.Join(parts...)
		if scope == Project {
			return cmp.Or(f.Project(rel), filepath.Join(f.ProjectFolder(), rel))
		}
		return filepath.Join(f.Agent, rel)
	}
	switch source = jsonwire.Trim(source); packageKind(source) {
	case NPMPackage:
		name, ok := npmName(strings.TrimPrefix(source, "npm:"))
		if !ok {
			return "", source
		}
		return installed("npm", "node_modules", filepath.FromSlash(name)), "npm:" + name
	case GitPackage:
		git, ok := gitsource.Parse(source)
		repo := git.Repository()
		if !ok || !safeSegments(repo) {
			return "", source
		}
		return installed("git", filepath.FromSlash(repo)), "git:" + repo
	}
	dir = resolvePath(source, folder, f.Home)
	return dir, canonical(dir)
}

// npmName is the name in NAME[@VERSION].
func npmName(spec string) (name string, ok bool) {
	scope := ""
	if strings.HasPrefix(spec, "@") {
		if scope, spec, ok = strings.Cut(spec, "/"); !ok {
			return "", false
		}
		scope += "/"
	}
	name, _, _ = strings.Cut(spec, "@")
	name = scope + name
	return name, safeSegments(strings.TrimPrefix(name, "@"))
}

// safeSegments reports whether a path of names stays below the folder that it
// is put into.
func safeSegments(p string) bool {
	return p != "" && path.Clean(p) == p && filepath.IsLocal(filepath.FromSlash(p)) && !strings.ContainsAny(p, "\\\x00")
}

// kind is a kind of resource, as manifests and conventional folders name it.
type kind string

const (
	skillKind     kind = "skills"
	promptKind    kind = "prompts"
	extensionKind kind = "extensions"
	themeKind     kind = "themes"
)

// filter is what an entry says about a kind.
func (e *PackageEntry) filter(k kind) []string {
	switch k {
	case skillKind:
		return e.Skills
	case promptKind:
		return e.Prompts
	case extensionKind:
		return e.Extensions
	}
	return e.Themes
}

// filtered reports whether the entry says more than where the package is.
func (e PackageEntry) filtered() bool {
	return e.Delta || e.Extensions != nil || e.Skills != nil || e.Prompts != nil || e.Themes != nil
}

// files lists the files of a kind that the package offers; those that its entries
// let through are on.
func (p *Package) files(k kind) (files []located, problems []Diagnostic) {
	declared, found, err := readManifest(p.Dir, k)
	if err != nil {
		problems = append(problems, Diagnostic{Type: Warning, Path: filepath.Join(p.Dir, manifestFile), Message: err.Error()})
	}
	if !found || declared == nil && slices.ContainsFunc(p.filters, PackageEntry.filtered) {
		declared = []string{string(k)}
	}
	var paths []string
	for _, entry := range declared {
		if jsonwire.Trim(entry) == "" || isLocationPattern(entry) {
			continue
		}
		path := filepath.Join(p.Dir, filepath.FromSlash(jsonwire.Trim(entry)))
		if !isWithin(path, p.Dir) {
			problems = append(problems, Diagnostic{Type: Warning, Path: filepath.Join(p.Dir, manifestFile), Message: fmt.Sprintf("%q leads out of the package; left out", entry)})
			continue
		}
		if _, err := os.Stat(path); err != nil && strings.ContainsAny(entry, globCharacters) {
			matches, complete := expandGlob(path, maxScan)
			paths = append(paths, matches...)
			if !complete {
				problems = append(problems, scanProblem(path))
			}
			continue
		}
		paths = append(paths, path)
	}
	manifest := locationPatterns{list: declared, folders: []string{p.Dir}}
	seen := map[string]bool{}
	for _, path := range paths {
		candidates, complete := []string{path}, true
		if isDir(path) {
			candidates, complete = k.in(path, rootFiles)
		} else if !k.names(path) || !isFile(path) {
			continue
		}
		if !complete {
			problems = append(problems, scanProblem(path))
		}
		for _, file := range candidates {
			if !seen[file] && manifest.keeps(file) {
				seen[file] = true
				files = append(files, located{file, p.Source, p.lets(file, k)})
			}
		}
	}
	return files, problems
}

// lets applies the filters of the entries to a file that the manifest offers.
func (p *Package) lets(file string, k kind) bool {
	keep := true
	for i := range p.filters {
		e := &p.filters[i]
		list := e.filter(k)
		patterns := locationPatterns{list: list, folders: []string{p.Dir}}
		names := patterns.names(file)
		plain := func(pattern, name string) bool { return exact(pattern, name) || globMatch(pattern, name) }
		switch {
		case e.Delta:
			keep = patterns.change(keep && i > 0 || patterns.match(0, plain, names), file)
		case list == nil:
		case len(list) == 0:
			keep = false
		default:
			if slices.ContainsFunc(list, func(s string) bool { return !isLocationPattern(s) }) {
				keep = keep && patterns.match(0, plain, names)
			}
			keep = patterns.change(keep, file)
		}
	}
	return keep
}

const manifestFile = "package.json"

// readManifest reads the list of a kind from the manifest of a package, nil
// where it has none; found is false when the manifest lists no kind at all.
func readManifest(dir string, k kind) (list []string, found bool, err error) {
	b, err := readText(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, cause(err)
	}
	b = []byte(decode(b))
	if err := jsonwire.Check(b); err != nil {
		return nil, false, err
	}
	var r jsonwire.Reader
	r.Reset(b)
	if r.Kind() != '{' {
		return nil, false, nil
	}
	for r.Object(); r.More(); {
		if string(r.Key()) != "pi" || r.Kind() != '{' {
			r.Skip()
			continue
		}
		for r.Object(); r.More(); {
			key := kind(r.Key())
			lists := r.Kind() == '[' && slices.Contains(kinds(), key)
			found = found || lists
			if key != k || !lists {
				r.Skip()
				continue
			}
			list = []string{}
			for r.Array(); r.More(); {
				if r.Kind() == '"' {
					list = append(list, r.Text())
				} else {
					r.Skip()
				}
			}
		}
	}
	return list, found, nil
}
