package resource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/regular"
)

// ContextFile is a file with instructions for agents, such as AGENTS.md.
type ContextFile struct {
	Path     string // absolute
	Content  string // without what cannot be seen
	Findings []Finding
}

// contextNames are the names that a context file may have, best first.
func contextNames() []string {
	return []string{"AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"}
}

// ContextFiles reads the context file of the agent folder, then those from the
// root of the file system down to the working folder, one a folder. They need
// no trust. In a linked git worktree inside its repository, the repository's
// file of a name gives way to the worktree's own.
func ContextFiles(f Folders) ([]ContextFile, []Diagnostic) {
	var files []ContextFile
	var problems []Diagnostic
	seen := map[string]bool{}
	read := func(path string) {
		if path == "" || seen[path] {
			return
		}
		seen[path] = true
		own := filepath.Dir(path) == f.Agent
		if d := lure(path); d != nil && !own {
			problems = append(problems, *d)
			return
		}
		b, err := readText(path)
		if err != nil {
			problems = append(problems, Diagnostic{Type: Warning, Path: path, Message: fmt.Sprintf("could not be read: %v", cause(err))})
			return
		}
		audit := &findings{path: path}
		audit.text(b)
		if !own {
			audit.link(path, repository(filepath.Dir(path)))
		}
		files = append(files, ContextFile{Path: path, Content: Visible(decode(b)), Findings: audit.sorted()})
	}
	read(contextFileIn(f.Agent))
	main, worktree := linkedWorktree(f.Cwd)
	folders := ancestors(f.Cwd)
	slices.Reverse(folders)
	for _, dir := range folders {
		path := contextFileIn(dir)
		if dir == main && path != "" && isFile(filepath.Join(worktree, filepath.Base(path))) {
			continue
		}
		read(path)
	}
	return files, problems
}

// repository is the git root at or above dir, dir itself without one.
func repository(dir string) string {
	for _, d := range ancestors(dir) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
	}
	return dir
}

func contextFileIn(dir string) string {
	for _, name := range contextNames() {
		// Names are compared with what the folder lists, because file systems
		// that fold case would show one file under two names.
		path := filepath.Join(dir, name)
		if isFile(path) && listed(dir, name) {
			return path
		}
	}
	return ""
}

// listed reports whether a folder holds an entry of exactly that name; true as
// well when the folder cannot be listed.
func listed(dir, name string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

// linkedWorktree finds the linked worktree that dir is in and the main
// repository's folder when that is one of the folders above the worktree.
func linkedWorktree(dir string) (main, worktree string) {
	for _, d := range ancestors(dir) {
		git := filepath.Join(d, ".git")
		if isDir(git) {
			return "", ""
		}
		b, err := regular.ReadFile(git)
		if err != nil {
			continue
		}
		// A worktree's .git is a file that points to <main>/.git/worktrees/<name>.
		target, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir:")
		if !ok {
			return "", ""
		}
		target = strings.TrimSpace(target)
		if !filepath.IsAbs(target) {
			target = filepath.Join(d, target)
		}
		worktrees := filepath.Dir(target)
		common := filepath.Dir(worktrees)
		if filepath.Base(worktrees) != "worktrees" || filepath.Base(common) != ".git" {
			return "", ""
		}
		if root := filepath.Dir(common); root != d && isWithin(d, root) {
			return root, d
		}
		return "", ""
	}
	return "", ""
}

// PromptText is what the user's files and flags say about the system prompt.
type PromptText struct {
	Preamble string // for PromptOptions.Preamble
	Addendum string // for PromptOptions.Addendum
	Findings []Finding
}

// LoadPromptText reads the user's own system prompt and additions. A flag's
// value is text, or a file's content when it names a file that exists, as seen
// from the folder start. Without flags SYSTEM.md and APPEND_SYSTEM.md count: the
// project's when it is trusted, else the agent folder's. What cannot be seen in
// a file is left out.
func LoadPromptText(f Folders, trusted bool, start string, system *string, appended []string) (PromptText, []Diagnostic) {
	var problems []Diagnostic
	var t PromptText
	read := func(path string) (string, error) {
		b, err := readText(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, Diagnostic{Type: Warning, Path: path, Message: fmt.Sprintf("could not be read: %v", cause(err))})
			}
			return "", err
		}
		t.Findings = append(t.Findings, Audit(path, b)...)
		return Visible(decode(b)), nil
	}
	file := func(name string) string {
		path := ""
		if trusted {
			path = f.Project(name)
		}
		if path == "" {
			path = filepath.Join(f.Agent, name)
		}
		text, _ := read(path)
		return text
	}
	value := func(v string) string {
		path := v
		if !filepath.IsAbs(path) {
			path = filepath.Join(start, path)
		}
		if v == "" || strings.ContainsAny(v, "\n\x00") {
			return v
		}
		if _, err := os.Stat(path); err != nil {
			return v
		}
		text, err := read(path)
		if err != nil {
			return v
		}
		return text
	}
	if system != nil {
		t.Preamble = value(*system)
	} else {
		t.Preamble = file("SYSTEM.md")
	}
	if len(appended) == 0 {
		t.Addendum = file("APPEND_SYSTEM.md")
		return t, problems
	}
	var parts []string
	for _, v := range appended {
		if v = value(v); v != "" {
			parts = append(parts, v)
		}
	}
	t.Addendum = strings.Join(parts, "\n\n")
	return t, problems
}
