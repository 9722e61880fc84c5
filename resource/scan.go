package resource

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/ignore"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

const skillFile = "SKILL.md"

// maxScan bounds how many files and folders one search looks at: a link or a
// setting may lead to a whole disk.
const maxScan = 10_000

func scanProblem(dir string) Diagnostic {
	return Diagnostic{Type: Warning, Path: dir, Message: fmt.Sprintf("more than %d files and folders; the rest was not searched", maxScan)}
}

// layout says which Markdown files of a folder of skills count beside SKILL.md.
type layout int

const (
	rootFiles   layout = iota // those in the folder itself
	nestedFiles               // those in its subfolders, as in .agents/skills
)

// skillScan lists the files of a folder that may be skills, in the order of
// names.
type skillScan struct {
	layout layout
	files  []string
	left   int             // entries that may still be looked at
	seen   map[string]bool // folders, without links
}

func scanSkills(root string, l layout) (files []string, complete bool) {
	s := skillScan{layout: l, left: maxScan, seen: map[string]bool{}}
	s.folder(root, "", nil)
	return s.files, s.left >= 0
}

// folder scans dir, which is rel as seen from the root of the scan.
func (s *skillScan) folder(dir, rel string, outer *ignoreRules) {
	real := canonical(dir)
	if s.seen[real] {
		return // a symbolic link that leads back
	}
	s.seen[real] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	rules := &ignoreRules{outer: outer, dir: rel, rules: ignore.Rules{Anchored: rel != "", Limit: maxIgnoreRules}}
	for _, name := range ignoreFiles() {
		if b, err := readText(filepath.Join(dir, name)); err == nil {
			rules.rules.Add(decode(b))
		}
	}
	below := func(name string) string {
		if rel == "" {
			return name
		}
		return rel + "/" + name
	}
	for _, e := range entries {
		if e.Name() == skillFile && isFile(filepath.Join(dir, skillFile)) && !rules.ignored(below(skillFile), false) {
			s.files = append(s.files, filepath.Join(dir, skillFile))
			return
		}
	}
	for _, e := range entries {
		if s.left--; s.left < 0 {
			return
		}
		name := e.Name()
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || rules.ignored(below(name), info.IsDir()) {
			continue
		}
		switch {
		case info.IsDir():
			s.folder(path, below(name), rules)
		case !info.Mode().IsRegular() || !strings.HasSuffix(name, ".md") || name == skillFile:
		case (rel == "") == (s.layout == rootFiles):
			s.files = append(s.files, path)
		}
	}
}

// scanTemplates lists the Markdown files of a folder.
func scanTemplates(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var files []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), ".md") && isFile(path) {
			files = append(files, path)
		}
	}
	return files
}

// entryPaths are the existing paths that the plain entries of a list name.
func entryPaths(e Entries, home string) (paths []string, problems []Diagnostic) {
	for _, entry := range e.List {
		if jsonwire.Trim(entry) == "" || isLocationPattern(entry) {
			continue
		}
		path := resolvePath(entry, e.Folder, home)
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
			continue
		}
		if strings.ContainsAny(entry, globCharacters) {
			found, complete := expandGlob(path, maxScan)
			paths = append(paths, found...)
			if !complete {
				problems = append(problems, scanProblem(path))
			}
		}
	}
	return paths, problems
}

// expandGlob lists what matches an absolute pattern. It does not enter a match,
// and looks at so many files and folders as are left.
func expandGlob(pattern string, left int) (paths []string, complete bool) {
	root := pattern
	for strings.ContainsAny(root, globCharacters) {
		root = filepath.Dir(root)
	}
	g := compileGlob(slash(pattern))
	// What cannot be read has no matches.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return filepath.SkipAll
		}
		if err != nil {
			return nil
		}
		if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if g.match(slash(path)) {
			paths = append(paths, path)
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	return paths, left >= 0
}
