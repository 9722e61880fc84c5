package resource

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/glob"
	"github.com/pinch-agent/pinch/internal/ignore"
)

// globCharacters mark a path as a pattern.
const globCharacters = "*?[{"

// pathGlob is a pattern of settings and manifests: * and ? within a segment,
// [...] classes, ** for any number of segments, {a,b} for either. One without
// anything in it matches nothing.
type pathGlob []*glob.Glob

func compileGlob(pattern string) pathGlob {
	var out pathGlob
	for _, p := range expandBraces(pattern) {
		// Braces that are left are plain characters.
		if g, err := glob.Compile(strings.NewReplacer("{", `\{`, "}", `\}`).Replace(p), glob.Options{}); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// match matches a slash-separated path.
func (g pathGlob) match(name string) bool {
	return slices.ContainsFunc(g, func(g *glob.Glob) bool { return g.Match(name) })
}

func globMatch(pattern, name string) bool { return compileGlob(pattern).match(name) }

// Bounds of what the braces of one pattern stand for: how many patterns are still
// expanded, and the bytes that one of them becomes.
const (
	maxBraces     = 64
	maxBraceBytes = 64 << 10
)

// expandBraces lists the patterns that a pattern with {a,b} stands for. Braces
// that do not pair, or hold no comma, are plain characters.
func expandBraces(pattern string) []string {
	done, rest := []string(nil), []string{pattern}
	for len(rest) > 0 && len(done)+len(rest) <= maxBraces {
		p := rest[0]
		rest = rest[1:]
		before, choices, after, ok := cutBraces(p)
		if !ok || len(choices)*len(p) > maxBraceBytes {
			done = append(done, p)
			continue
		}
		for i, c := range choices {
			choices[i] = before + c + after
		}
		rest = append(choices, rest...)
	}
	return append(done, rest...)
}

// cutBraces finds the first braces with a choice.
func cutBraces(p string) (before string, choices []string, after string, ok bool) {
	type braces struct {
		open, shut int
		commas     []int
	}
	var around []braces // those that are open, the outermost first
	var first braces
	for i := range len(p) {
		last := len(around) - 1
		switch {
		case p[i] == '{':
			around = append(around, braces{open: i})
		case last < 0:
		case p[i] == ',':
			around[last].commas = append(around[last].commas, i)
		case p[i] == '}':
			if b := around[last]; len(b.commas) > 0 && (!ok || b.open < first.open) {
				first, ok = b, true
				first.shut = i
			}
			around = around[:last]
		}
	}
	if !ok {
		return "", nil, "", false
	}
	start := first.open + 1
	for _, comma := range append(first.commas, first.shut) {
		choices = append(choices, p[start:comma])
		start = comma + 1
	}
	return p[:first.open], choices, p[first.shut+1:], true
}

// ignoreRules are those of a folder and of the folders around it, up to the one
// where a scan began.
type ignoreRules struct {
	outer *ignoreRules // nil for none
	dir   string       // from where the scan began; "" for that folder
	rules ignore.Rules
}

// maxIgnoreRules bounds a list: each file is compared with each rule.
const maxIgnoreRules = 2000

// ignoreFiles are the names of the files that hold rules, in the order read.
func ignoreFiles() []string { return []string{".gitignore", ".ignore", ".fdignore"} }

// ignored decides about a path relative to where the scan began.
func (r *ignoreRules) ignored(name string, isDir bool) bool {
	for ; r != nil; r = r.outer {
		if v := r.rules.Match(relativeTo(r.dir, name), isDir); v != ignore.None {
			return v == ignore.Ignored
		}
	}
	return false
}

func relativeTo(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// locationPatterns are the entries of a resource list in settings that filter:
// !glob excludes, +path includes exactly, -path excludes exactly and last.
type locationPatterns struct {
	folders []string // that relative patterns start from
	list    []string
}

func isLocationPattern(entry string) bool {
	return entry != "" && strings.ContainsRune("!+-", rune(entry[0]))
}

// keeps decides about one file of a location.
func (p locationPatterns) keeps(file string) bool { return p.change(true, file) }

// change applies the entries that begin with a sign to a decision.
func (p locationPatterns) change(keep bool, file string) bool {
	paths := p.paths(file)
	if p.match('!', globMatch, p.names(file)) {
		keep = false
	}
	if p.match('+', exact, paths) {
		keep = true
	}
	return keep && !p.match('-', exact, paths)
}

// match reports whether an entry of a kind matches one of the names: 0 is the
// kind of entries without a sign.
func (p locationPatterns) match(kind byte, match func(pattern, name string) bool, names []string) bool {
	for _, e := range p.list {
		pattern := e
		switch {
		case e == "" || isLocationPattern(e) != (kind != 0) || kind != 0 && e[0] != kind:
			continue
		case kind != 0:
			pattern = e[1:]
		}
		pattern = strings.TrimPrefix(slash(pattern), "./")
		if slices.ContainsFunc(names, func(n string) bool { return match(pattern, n) }) {
			return true
		}
	}
	return false
}

func exact(pattern, name string) bool { return strings.TrimSuffix(pattern, "/") == name }

// names are what patterns are compared with: the paths, and the base name of the
// file and of the folder of a SKILL.md.
func (p locationPatterns) names(file string) []string {
	names := append(p.paths(file), path.Base(slash(file)))
	if filepath.Base(file) == skillFile {
		names = append(names, path.Base(slash(filepath.Dir(file))))
	}
	return names
}

// paths are what a path behind + or - is compared with: the path from each base
// folder and the whole path, of the file and of the folder of a SKILL.md.
func (p locationPatterns) paths(file string) []string {
	files := []string{file}
	if filepath.Base(file) == skillFile {
		files = append(files, filepath.Dir(file))
	}
	var paths []string
	for _, file := range files {
		for _, dir := range p.folders {
			paths = append(paths, slash(relative(dir, file)))
		}
		paths = append(paths, slash(file))
	}
	return paths
}
