package ignore

import (
	"path"
	"strings"
)

// Sources says which files hold rules, and what gives their text.
type Sources struct {
	// Own is the name of the file that is the program's own, such as .rgignore.
	// It weighs most, then .ignore, .gitignore, .git/info/exclude and Global.
	Own string
	// RequireGit lets the rules of git count only inside of repositories.
	RequireGit bool
	// Global are the user's rules for git, relative to the folder where the
	// search starts.
	Global *Rules
	// Read gives the text of a file, "" when there is none. Exists tells whether
	// there is something at a path.
	Read   func(path string) string
	Exists func(path string) bool
}

// Folder knows the rules that hold in a folder. It does not change and may be
// shared.
type Folder struct {
	sources *Sources
	parent  *Folder // nil at the root
	path    string  // absolute, with slashes
	start   string  // the folder where the search starts
	hasGit  bool    // a repository's top
	inGit   bool    // the rules of git count
	rules   [sourceCount]*Rules
	any     bool // this folder or one around it has rules
}

// The files of one folder, by weight.
const (
	own = iota
	plain
	git
	exclude
	sourceCount
)

// Start makes the folder where a search starts, which is subject to the rules
// of the folders around it. dir is absolute, with slashes.
func (s *Sources) Start(dir string) *Folder {
	var f *Folder
	for _, d := range upward(dir) {
		f = s.folder(f, d, func(name string) bool { return s.Exists(join(d, name)) })
	}
	for g := f; g != nil; g = g.parent {
		g.start = dir
	}
	return f
}

// upward lists dir and the folders around it, the root first.
func upward(dir string) []string {
	var out []string
	for {
		out = append([]string{dir}, out...)
		up := path.Dir(dir)
		if up == dir || up == "." {
			return out
		}
		dir = up
	}
}

// Enter makes a folder inside of f. has tells whether it has an entry of a
// name, which spares looks for files that are not there.
func (f *Folder) Enter(name string, has func(name string) bool) *Folder {
	sub := f.sources.folder(f, join(f.path, name), has)
	sub.start = f.start
	return sub
}

func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

func (s *Sources) folder(parent *Folder, dir string, has func(name string) bool) *Folder {
	f := &Folder{sources: s, parent: parent, path: dir, inGit: !s.RequireGit}
	if parent != nil {
		f.inGit, f.any = f.inGit || parent.inGit, parent.any
	}
	for i, name := range [...]string{own: s.Own, plain: ".ignore", git: ".gitignore"} {
		if name != "" && has(name) {
			f.load(i, join(dir, name))
		}
	}
	if has(".git") {
		f.hasGit, f.inGit = true, true
		f.load(exclude, join(gitFolder(join(dir, ".git"), s.Read), "info/exclude"))
	}
	return f
}

func (f *Folder) load(source int, file string) {
	text := f.sources.Read(file)
	if text == "" {
		return
	}
	r := &Rules{}
	if r.Add(text); !r.Empty() {
		f.rules[source], f.any = r, true
	}
}

// Match says what the rules decide about an entry of the folder.
func (f *Folder) Match(name string, isDir bool) Verdict {
	if !f.any && f.sources.Global.Empty() {
		return None
	}
	full := join(f.path, name)
	var found [sourceCount]Verdict
	aboveGit := false
	for g := f; g != nil && g.any; g = g.parent {
		for i, r := range g.rules {
			if r == nil || found[i] != None || i >= git && (aboveGit || !f.inGit) {
				continue
			}
			found[i] = r.Match(below(g.path, full), isDir)
		}
		if found[own] != None {
			return found[own]
		}
		aboveGit = aboveGit || g.hasGit
	}
	for _, v := range found {
		if v != None {
			return v
		}
	}
	if f.inGit && !f.sources.Global.Empty() {
		return f.sources.Global.Match(below(f.start, full), isDir)
	}
	return None
}

// below is a path relative to a folder that it is in.
func below(dir, full string) string { return strings.TrimPrefix(full[len(dir):], "/") }

// gitFolder is the folder that the files of a repository are in whose top has
// dot, a path that ends in .git.
func gitFolder(dot string, read func(path string) string) string {
	// In a linked work tree .git is a file that says where the rest is.
	link, ok := strings.CutPrefix(read(dot), "gitdir: ")
	if !ok {
		return dot
	}
	at := func(base, p string) string {
		if path.IsAbs(p) || len(p) > 1 && p[1] == ':' {
			return p
		}
		return path.Join(base, p)
	}
	dir := at(path.Dir(dot), strings.TrimSpace(link))
	if common := strings.TrimSpace(read(join(dir, "commondir"))); common != "" {
		return at(dir, common)
	}
	return dir
}

// GlobalRules are the rules that the user's git configuration names, in
// core.excludesFile, or those at the place that git looks at by itself. home
// and config are the user's home and configuration folders, with slashes.
func GlobalRules(home, config string, read func(path string) string) *Rules {
	file := ""
	for _, conf := range []string{join(home, ".gitconfig"), join(config, "git/config")} {
		if file = excludesFile(read(conf)); file != "" {
			break
		}
	}
	if file == "" {
		file = join(config, "git/ignore")
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = join(home, rest)
	}
	r := &Rules{}
	r.Add(read(file))
	return r
}

// excludesFile is the value of core.excludesFile in a configuration file.
func excludesFile(config string) string {
	for line := range strings.Lines(config) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
