// Package ignore decides which files a search passes over: the rules of
// .gitignore, .ignore and their kin, as ripgrep and fd read them.
//
// Rules holds the rules of one folder's file. Folder puts the files of a folder
// and of those around it together.
package ignore

import (
	"errors"
	"strings"
	"unicode"

	"github.com/pinch-agent/pinch/internal/glob"
)

// Verdict is what rules say about a path.
type Verdict int8

const (
	None     Verdict = iota // nothing
	Ignored                 // pass over it
	Included                // keep it, though other rules of less weight ignore it
)

// Rules is a list of rules, the last that matches decides. The zero value has
// none. Rules that have been read may be shared.
type Rules struct {
	// Anchored makes every pattern match only right in the folder of the rules,
	// as those do that begin with a slash. It is set before rules are added.
	Anchored bool
	// Limit is how many rules are taken, 0 for all: every path is compared with
	// each.
	Limit int

	rules []rule
}

type rule struct {
	glob    *glob.Glob
	negated bool
	dirOnly bool
}

// Empty tells whether there are no rules.
func (r *Rules) Empty() bool { return r == nil || len(r.rules) == 0 }

// Add reads the lines of a file. A line that is no pattern is left out.
func (r *Rules) Add(content string) {
	content = strings.TrimPrefix(content, "\uFEFF")
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRightFunc(line, unicode.IsSpace)
		}
		if r.Limit > 0 && len(r.rules) >= r.Limit {
			return
		}
		if line != "" {
			_ = r.add(line, glob.Options{OpenClass: true}) // what makes no sense matches nothing
		}
	}
}

// AddPattern adds one rule that does not come from a file. Its errors are
// *glob.Error.
func (r *Rules) AddPattern(line string) error {
	err := r.add(line, glob.Options{})
	if e, ok := errors.AsType[*glob.Error](err); ok {
		return &glob.Error{Pattern: line, Problem: e.Problem}
	}
	return err
}

func (r *Rules) add(line string, o glob.Options) error {
	var rule rule
	anchored := false
	if rest, ok := strings.CutPrefix(line, `\`); ok && (strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "#")) {
		line = rest
	} else {
		line, rule.negated = strings.CutPrefix(line, "!")
		line, anchored = strings.CutPrefix(line, "/")
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		rule.dirOnly = true
		line = strings.TrimSuffix(rest, `\`)
	}
	if !anchored && !r.Anchored && !strings.Contains(line, "/") && line != "**" {
		line = "**/" + line
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is inside, not the folder itself
	}
	g, err := glob.Compile(line, o)
	if err != nil {
		return err
	}
	rule.glob = g
	r.rules = append(r.rules, rule)
	return nil
}

// Match says what the rules decide about a path relative to their folder. The
// folders that the path is in are not looked at: who walks a tree does not
// enter those that are ignored.
func (r *Rules) Match(path string, isDir bool) Verdict {
	if r == nil {
		return None
	}
	for i := len(r.rules) - 1; i >= 0; i-- {
		if rule := &r.rules[i]; (isDir || !rule.dirOnly) && rule.glob.Match(path) {
			if rule.negated {
				return Included
			}
			return Ignored
		}
	}
	return None
}
