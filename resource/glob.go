package resource

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// globCharacters mark a path as a pattern.
const globCharacters = "*?[{"

// globMatch matches a slash-separated path: * and ? within a segment, [...]
// classes, ** for any number of segments, {a,b} for either.
func globMatch(pattern, name string) bool {
	segments := strings.Split(name, "/")
	for _, p := range expandBraces(pattern) {
		if matchSegments(strings.Split(p, "/"), segments) {
			return true
		}
	}
	return false
}

// maxBraces bounds what the braces of one pattern stand for.
const maxBraces = 64

// expandBraces lists the patterns that a pattern with {a,b} stands for. Braces
// that do not pair, or hold no comma, are plain characters.
func expandBraces(pattern string) []string {
	done, rest := []string(nil), []string{pattern}
	for len(rest) > 0 && len(done)+len(rest) <= maxBraces {
		p := rest[0]
		rest = rest[1:]
		before, choices, after, ok := cutBraces(p)
		if !ok {
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
	for open := range len(p) {
		if p[open] != '{' {
			continue
		}
		depth, start := 0, open+1
		choices = nil
		for i := open; i < len(p); i++ {
			switch {
			case p[i] == '{':
				depth++
			case p[i] == ',' && depth == 1:
				choices = append(choices, p[start:i])
				start = i + 1
			case p[i] == '}':
				if depth--; depth > 0 {
					continue
				}
				if choices != nil {
					return p[:open], append(choices, p[start:i]), p[i+1:], true
				}
				i = len(p)
			}
		}
	}
	return "", nil, "", false
}

// matchSegments takes as few segments as it can for each **, and more for the
// last one only: that suffices, and costs no more than their product.
func matchSegments(pattern, name []string) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last ** and the segment it is tried to end before
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, from = p, n
			if p == len(pattern)-1 {
				return true // what is left is at least one segment
			}
			p++
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return p == len(pattern)
}

func matchSegment(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && ok
}

// ignoreRules is one list of gitignore rules: the last that matches decides.
type ignoreRules []ignoreRule

type ignoreRule struct {
	segments []string
	negated  bool
	dirOnly  bool
	anchored bool // matches from the scan root, else at any depth
}

// maxIgnoreRules bounds a list: each file is compared with each rule.
const maxIgnoreRules = 2000

// ignoreFiles are the names of the files that hold rules, in the order read.
func ignoreFiles() []string { return []string{".gitignore", ".ignore", ".fdignore"} }

// add appends the rules of one file. dir is its folder relative to the scan
// root, "" for the root itself.
func (rules ignoreRules) add(content, dir string) ignoreRules {
	for line := range strings.Lines(content) {
		if len(rules) >= maxIgnoreRules {
			break
		}
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
		rule.segments = strings.Split(line, "/")
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
		if matchSegments(r.segments, strings.Split(target, "/")) {
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

// keeps decides about one file of a location.
func (p locationPatterns) keeps(file string) bool { return p.change(true, p.names(file)) }

// change applies the entries that begin with a sign to a decision.
func (p locationPatterns) change(keep bool, names []string) bool {
	if p.match('!', globMatch, names) {
		keep = false
	}
	if p.match('+', exact, names) {
		keep = true
	}
	return keep && !p.match('-', exact, names)
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
