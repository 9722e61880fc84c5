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
// warning, as do those with a word that is no level, which is left out, and those
// that several providers have a model for, which all count.
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
		s := search{models: models, usable: func(string) bool { return true }, lenient: true}
		if strings.ContainsAny(pattern, "*?[") {
			id, level := splitLevel(pattern)
			// Ids such as model[1m] are no globs.
			list := named(s.reference(id))
			if list == nil {
				matches := globMatcher(id)
				for _, m := range models {
					if matches(m.Ref()) || matches(m.ID) {
						list = append(list, m)
					}
				}
			} else if len(list) > 1 {
				warnings = append(warnings, severalProviders(pattern))
			}
			if list == nil {
				warnings = append(warnings, fmt.Sprintf("No models match pattern %q", pattern))
			}
			for _, m := range list {
				add(m, level)
			}
			continue
		}
		m := s.find(pattern)
		switch {
		case m.nothing():
			warnings = append(warnings, fmt.Sprintf("No models match pattern %q", pattern))
		case m.warning != "":
			warnings = append(warnings, m.warning)
		}
		if m.rivals != nil {
			warnings = append(warnings, severalProviders(pattern))
		}
		for _, model := range named(m) {
			add(model, m.level)
		}
	}
	return choices, warnings
}

// named lists what a pattern named: one model, or all that are equally good.
func named(m match) []*llm.Model {
	if m.model != nil {
		return []*llm.Model{m.model}
	}
	return m.rivals
}

func severalProviders(pattern string) string {
	return fmt.Sprintf("Pattern %q names models of several providers. Use provider/id to choose one.", pattern)
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
