package resource

import (
	"path"
	"path/filepath"
	"strings"
)

// globMatch matches a slash-separated path: * and ? within a segment, [...]
// classes, ** for any number of segments.
func globMatch(pattern, name string) bool {
	return matchSegments(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchSegments(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for len(pattern) > 1 && pattern[1] == "**" {
				pattern = pattern[1:]
			}
			if len(pattern) == 1 {
				return len(name) > 0
			}
			for i := range name {
				if matchSegments(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 || !matchSegment(pattern[0], name[0]) {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}

func matchSegment(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && ok
}

// ignoreRules is one list of gitignore rules: the last that matches decides.
type ignoreRules []ignoreRule

type ignoreRule struct {
	pattern  string
	negated  bool
	dirOnly  bool
	anchored bool // matches from the scan root, else at any depth
}

// ignoreFiles are the names of the files that hold rules, in the order read.
func ignoreFiles() []string { return []string{".gitignore", ".ignore", ".fdignore"} }

// add appends the rules of one file. dir is its folder relative to the scan
// root, "" for the root itself.
func (rules ignoreRules) add(content, dir string) ignoreRules {
	for line := range strings.Lines(content) {
		line = trim(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var rule ignoreRule
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			rule.negated, line = true, rest
		}
		line = strings.TrimPrefix(line, `\`) // \# and \! are plain characters
		line = strings.TrimPrefix(line, "/")
		if dir != "" {
			line = escapeGlob(dir) + "/" + line
		}
		if rest, ok := strings.CutSuffix(line, "/"); ok {
			rule.dirOnly, line = true, rest
		}
		if line == "" {
			continue
		}
		rule.pattern = line
		rule.anchored = strings.Contains(line, "/")
		rules = append(rules, rule)
	}
	return rules
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// ignored decides about a path relative to the scan root.
func (rules ignoreRules) ignored(name string, isDir bool) bool {
	result := false
	for _, r := range rules {
		if r.dirOnly && !isDir {
			continue
		}
		target := name
		if !r.anchored {
			target = path.Base(name)
		}
		if globMatch(r.pattern, target) {
			result = !r.negated
		}
	}
	return result
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

// keeps decides about one file.
func (p locationPatterns) keeps(file string) bool {
	names := p.names(file)
	matches := func(kind byte, match func(pattern, name string) bool) bool {
		for _, e := range p.list {
			if e == "" || e[0] != kind {
				continue
			}
			pattern := strings.TrimPrefix(slash(e[1:]), "./")
			for _, n := range names {
				if match(pattern, n) {
					return true
				}
			}
		}
		return false
	}
	exact := func(pattern, name string) bool { return strings.TrimSuffix(pattern, "/") == name }
	keep := !matches('!', globMatch)
	if matches('+', exact) {
		keep = true
	}
	return keep && !matches('-', exact)
}

// names are what patterns are compared with: the path, the path from each base
// folder, the base name, and the same of the folder when the file is a SKILL.md.
func (p locationPatterns) names(file string) []string {
	var names []string
	add := func(file string) {
		for _, dir := range p.folders {
			names = append(names, slash(relative(dir, file)))
		}
		names = append(names, path.Base(slash(file)), slash(file))
	}
	add(file)
	if filepath.Base(file) == skillFile {
		add(filepath.Dir(file))
	}
	return names
}
