package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/spelling"
	"github.com/pinch-agent/pinch/llm"
)

// Choice is a model that was chosen and what was asked for with it.
type Choice struct {
	Model *llm.Model
	// Level is the thinking level that the pattern named, not clamped to the
	// model; "" when it named none.
	Level llm.ThinkingLevel
	// Warning is something that the person should see; "" for nothing.
	Warning string
}

// NotFoundError says that a pattern names no model, or too many.
type NotFoundError struct {
	Pattern   string
	Provider  string       // an unknown provider, when that is the reason
	Ambiguous []*llm.Model // equally good models of several providers, when that is
	Meant     string       // what the pattern or the provider may be a slip of; "" when that is not clear
}

func (e *NotFoundError) Error() string {
	meant := ""
	if e.Meant != "" {
		meant = fmt.Sprintf(" Did you mean %q?", e.Meant)
	}
	switch {
	case e.Provider != "":
		return fmt.Sprintf("Unknown provider %q.%s Use --list-models to see available providers/models.", e.Provider, meant)
	case e.Ambiguous != nil:
		const shown = 10
		var providers []string
		for _, m := range e.Ambiguous {
			if !slices.Contains(providers, m.Provider) {
				providers = append(providers, m.Provider)
			}
		}
		one := best(ofProvider(e.Ambiguous, providers[0])).Ref()
		if more := len(providers) - shown; more > 0 {
			providers = append(providers[:shown], fmt.Sprintf("%d more providers", more))
		}
		last := len(providers) - 1
		if last > 0 {
			providers = append(providers[:last-1], providers[last-1]+" and "+providers[last])
		}
		return fmt.Sprintf("Model %q is ambiguous: %s have models that fit. Use --provider to choose one, or name the model whole, such as %s.",
			e.Pattern, strings.Join(providers, ", "), one)
	default:
		return fmt.Sprintf("Model %q not found.%s Use --list-models to see available models.", e.Pattern, meant)
	}
}

// providerMeant is the provider that a name is likely to be a slip of.
func (c *Catalog) providerMeant(name string) string {
	var known []string
	for _, p := range c.Providers() {
		known = append(known, p.ID)
	}
	return spelling.Meant(name, known)
}

// modelMeant is what a pattern is likely to be a slip of: the same model of
// another provider, or one of models.
func (c *Catalog) modelMeant(models []*llm.Model, pattern string) string {
	head, tail, slash := strings.Cut(pattern, "/")
	if p := c.providerMeant(head); slash && p != "" {
		return p + "/" + tail
	}
	id, _ := splitLevel(pattern)
	var known []string
	for _, m := range models {
		known = append(known, m.ID)
	}
	return spelling.Meant(id, known)
}

// ResolveOptions narrow down what a pattern means.
type ResolveOptions struct {
	Provider string // the only one to look at; "" for all
	// Level is the thinking level that was asked for apart from the pattern. An id
	// that the provider does not list then keeps what looks like a level.
	Level llm.ThinkingLevel
	// Key says that a key comes along for whichever provider is meant: what is set
	// up already then does not choose the provider that gets it.
	Key bool
}

// Resolve finds the model that a person means by pattern: an exact id, a
// provider/id in any case, or part of an id or name, each with an optional
// :level behind it. A provider, when not empty, limits the search to it. Of
// models of several providers, those of providers that are set up count. An id
// that a known provider does not list is taken as it is, with a warning.
func (c *Catalog) Resolve(pattern, provider string) (Choice, error) {
	return c.ResolveWith(pattern, ResolveOptions{Provider: provider})
}

// ResolveWith is Resolve with more said about what is meant.
func (c *Catalog) ResolveWith(pattern string, o ResolveOptions) (Choice, error) {
	pattern = strings.TrimSpace(pattern)
	missing := &NotFoundError{Pattern: pattern}
	if pattern == "" {
		return Choice{}, missing
	}
	s := search{usable: c.HasCredentials}
	if o.Key {
		s.usable = func(string) bool { return false }
	}
	var home Provider // of an id that is not listed
	known := false
	if o.Provider != "" {
		if home, known = c.Provider(o.Provider); !known {
			missing.Provider, missing.Meant = o.Provider, c.providerMeant(o.Provider)
			return Choice{}, missing
		}
		s.models = c.ModelsOf(home.ID)
	} else {
		s.models = c.names()
	}
	switch m := s.find(pattern); {
	case m.rivals != nil:
		missing.Ambiguous = m.rivals
		return Choice{}, missing
	case m.model != nil:
		return Choice{Model: c.whole(m.model), Level: m.level}, nil
	}
	name := pattern
	if provider, rest := splitProvider(pattern, s.models); provider != "" {
		home, _ = c.Provider(provider)
		name, known = rest, true
	} else if head, rest, ok := strings.Cut(pattern, "/"); ok && rest != "" && !known {
		home, known = c.Provider(head)
		name = rest
	}
	if !known {
		missing.Meant = c.modelMeant(s.models, pattern)
		return Choice{}, missing
	}
	return c.custom(home, name, o.Level, missing)
}

// custom is a model whose id the provider does not list.
func (c *Catalog) custom(p Provider, name string, asked llm.ThinkingLevel, missing error) (Choice, error) {
	id, level := name, llm.ThinkingLevel("")
	if asked == "" {
		id, level = splitLevel(name)
	}
	m := c.unlisted(p, c.ModelsOf(p.ID), id)
	if m == nil {
		return Choice{}, missing
	}
	m.ID, m.Name = id, id
	if thinks := cmp.Or(asked, level); thinks != "" && thinks != llm.LevelOff {
		m.Reasoning = true // who asks for thinking knows the model better
	}
	return Choice{
		Model:   m,
		Level:   level,
		Warning: fmt.Sprintf("Model %q not found for provider %q. Using custom model id.", id, p.ID),
	}, nil
}

// unlisted is a model of p whose id is not known: with the settings of the
// provider's default model or its first, else with those of the provider alone.
// Nil when the program does not speak the provider's wire format.
func (c *Catalog) unlisted(p Provider, models []*llm.Model, id string) *llm.Model {
	models = slices.DeleteFunc(slices.Clone(models), (*llm.Model).IsVirtual)
	if len(models) > 0 {
		at := slices.IndexFunc(models, func(m *llm.Model) bool { return m.ID == p.DefaultModel })
		m := new(*models[max(at, 0)])
		// A gateway speaks to each vendor in a wire format of its own.
		if like := sibling(models, id); like != nil && like.API != m.API {
			m = new(*like)
		}
		return m
	}
	c.mu.Lock()
	configured := c.overlay().provider(p.ID)
	c.mu.Unlock()
	file := readBuiltin(p.ID)
	for _, api := range p.APIs {
		if api == llm.APIVirtual || c.o.APIs != nil && !slices.Contains(c.o.APIs, api) {
			continue
		}
		m := file.blank(&p, api)
		if configured != nil {
			m.BaseURL = cmp.Or(configured.baseURL, m.BaseURL)
			if configured.compat != nil {
				m.Compat = mergeCompat(m.Compat, configured.compat)
			}
		}
		if m.BaseURL != "" || !needsAddress(api) {
			return m
		}
	}
	return nil
}

// sibling is the model whose id begins most like id, nil when none begins with
// the same word.
func sibling(models []*llm.Model, id string) *llm.Model {
	word := strings.IndexAny(id, "-./:")
	if word < 0 {
		return nil
	}
	var best *llm.Model
	longest := word
	for _, m := range models {
		n := 0
		for n < len(id) && n < len(m.ID) && id[n] == m.ID[n] {
			n++
		}
		if n > longest {
			best, longest = m, n
		}
	}
	return best
}

// names lists all models that the program can talk to by their names alone,
// where it can: those of built-in providers that nothing changes. whole gives
// the models behind them.
func (c *Catalog) names() []*llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*llm.Model
	for _, p := range c.providers() {
		if _, decoded := c.built[p.ID]; decoded || !c.isPlain(p.ID) {
			all = append(all, c.models(p)...)
			continue
		}
		list := builtinNames(p.ID)
		for i := range list {
			if m := &list[i]; c.o.APIs == nil || slices.Contains(c.o.APIs, m.API) {
				all = append(all, m)
			}
		}
	}
	return all
}

// isPlain reports whether a provider has its built-in models and no others. c.mu
// is held.
func (c *Catalog) isPlain(provider string) bool {
	_, builtin := builtinProvider(provider)
	return builtin && c.overlay().provider(provider) == nil && c.store().entry(provider) == nil &&
		!slices.ContainsFunc(c.added, func(a addition) bool { return a.provider.ID == provider }) &&
		!slices.ContainsFunc(c.virtual, func(v VirtualModel) bool { return v.Provider == provider })
}

// whole is the model that names listed, nil for nil.
func (c *Catalog) whole(m *llm.Model) *llm.Model {
	if m == nil {
		return nil
	}
	return c.Find(m.Provider, m.ID)
}

// best prefers names that move with a model family over dated snapshots, and
// the highest among those. A pattern means the newest that it fits.
func best(list []*llm.Model) *llm.Model {
	var top *llm.Model
	for _, m := range list {
		switch {
		case top == nil, dated(top.ID) && !dated(m.ID):
			top = m
		case dated(m.ID) == dated(top.ID) && order(m.ID, top.ID) > 0:
			top = m
		}
	}
	return top
}

// dated reports whether an id ends in a date such as -20250514.
func dated(id string) bool {
	i := strings.LastIndexByte(id, '-')
	if i < 0 || len(id)-i != 9 {
		return false
	}
	return strings.Trim(id[i+1:], "0123456789") == ""
}

// splitLevel cuts a thinking level off the end of a pattern.
func splitLevel(pattern string) (id string, level llm.ThinkingLevel) {
	i := strings.LastIndexByte(pattern, ':')
	if i < 0 {
		return pattern, ""
	}
	if l := llm.ThinkingLevel(pattern[i+1:]); slices.Contains(llm.ThinkingLevels(), l) {
		return pattern[:i], l
	}
	return pattern, ""
}
