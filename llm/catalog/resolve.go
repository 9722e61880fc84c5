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
	return spelling.Meant(name, func(yield func(string) bool) {
		for _, p := range c.Providers() {
			if !yield(p.ID) {
				return
			}
		}
	})
}

// modelMeant is what a pattern is likely to be a slip of: the same model of
// another provider, or one of models.
func (c *Catalog) modelMeant(models []*llm.Model, pattern string) string {
	head, tail, slash := strings.Cut(pattern, "/")
	if p := c.providerMeant(head); slash && p != "" {
		return p + "/" + tail
	}
	id, _ := splitLevel(pattern)
	return spelling.Meant(id, func(yield func(string) bool) {
		for _, m := range models {
			if !yield(m.ID) {
				return
			}
		}
	})
}

// Resolve finds the model that a person means by pattern: an exact id, a
// provider/id in any case, or part of an id or name, each with an optional
// :level behind it. A provider, when not empty, limits the search to it. Of
// models of several providers, those of providers that are set up count. An id
// that a known provider does not list is taken as it is, with a warning.
func (c *Catalog) Resolve(pattern, provider string) (Choice, error) {
	pattern = strings.TrimSpace(pattern)
	if provider != "" {
		p, ok := c.Provider(provider)
		if !ok {
			return Choice{}, &NotFoundError{Pattern: pattern, Provider: provider, Meant: c.providerMeant(provider)}
		}
		if head, tail, ok := strings.Cut(pattern, "/"); ok && strings.EqualFold(head, p.ID) {
			pattern = tail
		}
		return c.within(p, pattern, pattern)
	}
	models := c.names()
	// The whole pattern as an id comes first: ids of routers hold slashes.
	if m, err := c.only(pattern, exact(models, pattern)); m != nil || err != nil {
		return Choice{Model: c.whole(m)}, err
	}
	head, tail, slash := strings.Cut(pattern, "/")
	if p, known := c.Provider(head); slash && known && tail != "" {
		if m, level := match(c.ModelsOf(p.ID), tail); m != nil {
			return Choice{Model: m, Level: level}, nil
		}
		if choice, err := c.among(models, pattern); choice.Model != nil || err != nil {
			return choice, err
		}
		return c.within(p, tail, pattern)
	}
	choice, err := c.among(models, pattern)
	if choice.Model == nil && err == nil {
		return Choice{}, &NotFoundError{Pattern: pattern, Meant: c.modelMeant(models, pattern)}
	}
	return choice, err
}

// within resolves a pattern among the models of one provider; what it does not
// list becomes a model of that id with the settings of a model it has.
func (c *Catalog) within(p Provider, pattern, typed string) (Choice, error) {
	models := c.ModelsOf(p.ID)
	if m, level := match(models, pattern); m != nil {
		return Choice{Model: m, Level: level}, nil
	}
	id, level := splitLevel(pattern)
	m := c.unlisted(p, models, id)
	if m == nil {
		return Choice{}, &NotFoundError{Pattern: typed}
	}
	m.ID, m.Name = id, id
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

// among resolves a pattern among models of all providers; no model and no error
// when nothing matches.
func (c *Catalog) among(models []*llm.Model, pattern string) (Choice, error) {
	m, err := c.only(pattern, candidates(models, pattern))
	if m != nil || err != nil {
		return Choice{Model: c.whole(m)}, err
	}
	id, level := splitLevel(pattern)
	if level == "" {
		return Choice{}, nil
	}
	m, err = c.only(pattern, exactOr(models, id))
	return Choice{Model: c.whole(m), Level: level}, err
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

// exactOr is candidates with exact matches first.
func exactOr(models []*llm.Model, pattern string) []*llm.Model {
	if list := exact(models, pattern); list != nil {
		return list
	}
	return candidates(models, pattern)
}

// only chooses among equally good models: the best of the providers that are set
// up when they are of one provider, or when there is just one provider at all.
func (c *Catalog) only(pattern string, list []*llm.Model) (*llm.Model, error) {
	if m, ok := single(list); ok {
		return m, nil
	}
	ready := slices.DeleteFunc(slices.Clone(list), func(m *llm.Model) bool { return !c.HasCredentials(m.Provider) })
	if m, ok := single(ready); ok && m != nil {
		return m, nil
	}
	if len(ready) > 0 {
		list = ready
	}
	return nil, &NotFoundError{Pattern: pattern, Ambiguous: list}
}

// single is the best of models of one provider; ok is false when there are
// several providers.
func single(list []*llm.Model) (m *llm.Model, ok bool) {
	for _, x := range list {
		if x.Provider != list[0].Provider {
			return nil, false
		}
	}
	return best(list), true
}

// match finds the best match of a pattern with an optional level.
func match(models []*llm.Model, pattern string) (*llm.Model, llm.ThinkingLevel) {
	if m := best(exactOr(models, pattern)); m != nil {
		return m, ""
	}
	id, level := splitLevel(pattern)
	if level == "" {
		return nil, ""
	}
	return best(exactOr(models, id)), level
}

// exact lists the models that a reference names: provider/id first, then id.
func exact(models []*llm.Model, ref string) []*llm.Model {
	var byRef, byID []*llm.Model
	for _, m := range models {
		if strings.EqualFold(m.Ref(), ref) {
			byRef = append(byRef, m)
		}
		if strings.EqualFold(m.ID, ref) {
			byID = append(byID, m)
		}
	}
	if byRef != nil {
		return byRef
	}
	return byID
}

// candidates lists the models whose id or name contains the pattern.
func candidates(models []*llm.Model, pattern string) []*llm.Model {
	if pattern == "" {
		return nil
	}
	pattern = strings.ToLower(pattern)
	var list []*llm.Model
	for _, m := range models {
		if strings.Contains(strings.ToLower(m.ID), pattern) || strings.Contains(strings.ToLower(m.Name), pattern) {
			list = append(list, m)
		}
	}
	return list
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

func ofProvider(models []*llm.Model, provider string) []*llm.Model {
	var list []*llm.Model
	for _, m := range models {
		if m.Provider == provider {
			list = append(list, m)
		}
	}
	return list
}
