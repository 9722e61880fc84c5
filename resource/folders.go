package resource

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders are where resources are looked for.
type Folders struct {
	Agent string // the user's agent folder, absolute
	Home  string // the user's home; "" for none
	Cwd   string // the working folder, absolute
}

// Locate finds the folders of a working folder. getenv is os.Getenv.
func Locate(getenv func(string) string, home, cwd string) Folders {
	return Folders{Agent: AgentFolder(getenv, home), Home: home, Cwd: filepath.Clean(cwd)}
}

// AgentFolder is the user's agent folder: PINCH_AGENT_DIR, else
// PI_CODING_AGENT_DIR, else .pinch/agent in the home folder.
func AgentFolder(getenv func(string) string, home string) string {
	for _, name := range []string{"PINCH_AGENT_DIR", "PI_CODING_AGENT_DIR"} {
		if dir := getenv(name); dir != "" {
			if abs, err := filepath.Abs(expandHome(dir, home)); err == nil {
				return abs
			}
		}
	}
	return filepath.Join(home, ".pinch", "agent")
}

// projectNames are the names of a project's own folder; the first that has a
// resource wins.
func projectNames() []string { return []string{".pinch", ".pi"} }

// Project is the path of a resource of the project, such as settings.json or
// skills: that in .pinch, else that in .pi, "" when neither exists.
func (f Folders) Project(name string) string {
	for _, dir := range projectNames() {
		path := filepath.Join(f.Cwd, dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// ProjectFolder is where resources of the project are written: .pinch, or .pi
// where only that exists. Where neither does, it is the one whose name the user's
// folder has, so that who works with pi's files does so in projects too.
func (f Folders) ProjectFolder() string {
	names := projectNames()
	for _, dir := range names {
		path := filepath.Join(f.Cwd, dir)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
	}
	if own := filepath.Base(filepath.Dir(f.Agent)); slices.Contains(names, own) {
		return filepath.Join(f.Cwd, own)
	}
	return filepath.Join(f.Cwd, names[0])
}

// expandHome replaces a leading ~ by the home folder.
func expandHome(path, home string) string {
	if home == "" || !strings.HasPrefix(path, "~") {
		return path
	}
	if path == "~" {
		return home
	}
	if path[1] == '/' || path[1] == filepath.Separator {
		return filepath.Join(home, path[2:])
	}
	return path
}

// resolvePath makes a path as a person writes it absolute: trimmed, ~ expanded,
// relative to base.
func resolvePath(path, base, home string) string {
	path = expandHome(strings.TrimSpace(path), home)
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// resolveOnce resolves paths of a run against the working folder. One that is
// named twice stands once.
func (f Folders) resolveOnce(lists ...[]string) (paths []string) {
	for _, p := range slices.Concat(lists...) {
		if p = resolvePath(p, f.Cwd, f.Home); !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// isWithin reports whether path is dir or below it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// canonical is the path with symbolic links resolved where it exists.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ancestors lists a folder and those above it, nearest first.
func ancestors(dir string) []string {
	var out []string
	for {
		out = append(out, dir)
		up := filepath.Dir(dir)
		if up == dir {
			return out
		}
		dir = up
	}
}

func slash(path string) string { return filepath.ToSlash(path) }

// relative is path as seen from dir, path itself when there is no way.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return rel
	}
	return path
}
