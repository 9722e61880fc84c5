package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// Scope lists the models that patterns name, as --models and the enabledModels
// setting hold them: ids, parts of names, or globs over provider/id and id, each
// with an optional :level. Only models that are set up count. It keeps the order
// of the patterns; a model appears once. Patterns without a match give a
// warning, as do those with a word that is no level, which is left out.
func (c *Catalog) Scope(patterns []string) (choices []Choice, warnings []string) {
	models := c.Available()
	add := func(m *llm.Model, level llm.ThinkingLevel) {
		if !slices.ContainsFunc(choices, func(x Choice) bool { return x.Model.Ref() == m.Ref() }) {
			choices = append(choices, Choice{Model: m, Level: level})
		}
	}
	for _, pattern := range patterns {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" {
			continue
		}
		found := false
		if strings.ContainsAny(pattern, "*?[") {
			id, level := splitLevel(pattern)
			matches := globMatcher(id)
			for _, m := range models {
				if matches(m.Ref()) || matches(m.ID) {
					add(m, level)
					found = true
				}
			}
		} else if m, level := c.matchRef(models, pattern); m != nil {
			add(m, level)
			found = true
		} else if i := strings.LastIndexByte(pattern, ':'); i > 0 {
			if m, _ := c.matchRef(models, pattern[:i]); m != nil {
				add(m, "")
				found = true
				warnings = append(warnings, fmt.Sprintf("Invalid thinking level %q in pattern %q. Using the default level.", pattern[i+1:], pattern))
			}
		}
		if !found {
			warnings = append(warnings, fmt.Sprintf("No models match pattern %q", pattern))
		}
	}
	return choices, warnings
}

// matchRef is match for patterns that may also be provider/part, where part need
// not be a whole id.
func (c *Catalog) matchRef(models []*llm.Model, pattern string) (*llm.Model, llm.ThinkingLevel) {
	if m, level := match(models, pattern); m != nil {
		return m, level
	}
	head, tail, ok := strings.Cut(pattern, "/")
	p, known := c.Provider(head)
	if !ok || !known {
		return nil, ""
	}
	return match(ofProvider(models, p.ID), tail)
}

// globMatcher makes the test of a glob, in any case: ? and [...] stand for one
// character and * for any number of them, but no slash; ** for slashes too. A
// lone * matches all.
func globMatcher(pattern string) func(name string) bool {
	if pattern == "*" {
		return func(string) bool { return true }
	}
	var b strings.Builder
	b.WriteString("(?is)^")
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			if strings.HasPrefix(pattern[i:], "**") {
				b.WriteString(".*")
				i++
			} else {
				b.WriteString("[^/]*")
			}
		case '?':
			b.WriteString("[^/]")
		case '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := strings.ReplaceAll(pattern[i+1:i+end], `\`, `\\`)
			if rest, negated := strings.CutPrefix(class, "!"); negated {
				class = "^" + rest
			}
			b.WriteString("[" + class + "]")
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	re, err := regexp.Compile(b.String() + "$")
	if err != nil {
		return func(string) bool { return false }
	}
	return re.MatchString
}

// StartOptions say what a new session's model depends on.
type StartOptions struct {
	Scope    []Choice // models of --models or enabledModels; nil for all
	Provider string   // of the saved default; "" for none
	Model    string
}

// Start chooses the model of a new session: the saved default when it is in the
// scope and set up, else the first of the scope, else a provider's default, else
// the first model that is set up. ErrNoModels when there is none.
func (c *Catalog) Start(o StartOptions) (Choice, error) {
	if len(o.Scope) > 0 {
		for _, choice := range o.Scope {
			if choice.Model.Provider == o.Provider && choice.Model.ID == o.Model {
				return choice, nil
			}
		}
		return o.Scope[0], nil
	}
	if o.Provider != "" && o.Model != "" && c.HasCredentials(o.Provider) {
		if m := c.Find(o.Provider, o.Model); m != nil {
			return Choice{Model: m}, nil
		}
	}
	var first *llm.Model
	for _, p := range c.Providers() {
		if !c.HasCredentials(p.ID) {
			continue
		}
		models := c.ModelsOf(p.ID)
		if len(models) == 0 {
			continue
		}
		if i := slices.IndexFunc(models, func(m *llm.Model) bool { return m.ID == p.DefaultModel }); i >= 0 {
			return Choice{Model: models[i]}, nil
		}
		if first == nil {
			first = models[0]
		}
	}
	if first == nil {
		return Choice{}, ErrNoModels
	}
	return Choice{Model: first}, nil
}
