package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/llm"
)

// VirtualModel is a model that a Router stands behind: for each request it
// chooses a physical model of the catalogue or another.
type VirtualModel struct {
	// Provider may be one that there is, whose credentials then decide whether
	// the model is listed as available, or a new name, which needs none.
	Provider string
	ID       string
	Name     string              // "" for ID
	Levels   []llm.ThinkingLevel // that can be chosen; nil for LevelOff alone

	ContextWindow int      // tokens; 0 for 128000
	MaxTokens     int      // of an answer; 0 for 16384
	Input         []string // text, image; nil for text alone

	Router llm.Router
}

// AddVirtual adds a virtual model, or replaces the program's former one of the
// same provider and id. It takes the place of a physical model of that name.
//
// Virtual models are listed, found and chosen like others, whatever
// Options.APIs says. A conversation asks Router for the one behind the model it
// has; see harness.Options.Router.
func (c *Catalog) AddVirtual(v VirtualModel) error {
	switch {
	case v.Provider == "" || v.ID == "":
		return fmt.Errorf("a virtual model needs a provider and an id, not %q and %q", v.Provider, v.ID)
	case v.Router == nil:
		return fmt.Errorf("the virtual model %s/%s has no router", v.Provider, v.ID)
	}
	for _, l := range v.Levels {
		if !slices.Contains(llm.ThinkingLevels(), l) {
			return fmt.Errorf("the virtual model %s/%s has an unknown thinking level %q", v.Provider, v.ID, l)
		}
	}
	v.Levels, v.Input = slices.Clone(v.Levels), slices.Clone(v.Input)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = nil
	delete(c.built, v.Provider)
	if i := c.virtualAt(v.Provider, v.ID); i >= 0 {
		c.virtual[i] = v
	} else {
		c.virtual = append(c.virtual, v)
	}
	return nil
}

// RemoveVirtual takes a virtual model away. Without one it does nothing.
func (c *Catalog) RemoveVirtual(provider, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.virtualAt(provider, id); i >= 0 {
		c.virtual = slices.Delete(c.virtual, i, i+1)
		c.list = nil
		delete(c.built, provider)
	}
}

// virtualAt is the place of a virtual model, -1 for none. c.mu is held.
func (c *Catalog) virtualAt(provider, id string) int {
	return slices.IndexFunc(c.virtual, func(v VirtualModel) bool { return v.Provider == provider && v.ID == id })
}

// Router is the router behind a model, nil when the model is physical. It goes
// by provider and id.
func (c *Catalog) Router(m *llm.Model) llm.Router {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.virtualAt(m.Provider, m.ID); i >= 0 {
		return c.virtual[i].Router
	}
	return nil
}

// Physical is who answers a request that a program makes beside a conversation,
// such as for a summary: m itself at the level, clamped, or what its router
// chooses.
func (c *Catalog) Physical(ctx context.Context, m *llm.Model, level llm.ThinkingLevel) (llm.Route, error) {
	router := c.Router(m)
	if router == nil {
		return llm.Route{Model: m, Level: m.ClampLevel(level)}, nil
	}
	return llm.RouteRequest{
		Selected: llm.Pair{Provider: m.Provider, Model: m.ID, Level: level},
		Reason:   llm.RouteDirect,
	}.Resolve(ctx, router)
}

// withVirtual puts the virtual models of a provider into its list. c.mu is held.
func (c *Catalog) withVirtual(provider string, list []*llm.Model) []*llm.Model {
	for i := range c.virtual {
		v := &c.virtual[i]
		if v.Provider != provider {
			continue
		}
		list = slices.DeleteFunc(slices.Clone(list), func(m *llm.Model) bool { return m.ID == v.ID })
		list = append(list, v.model())
	}
	return list
}

// model is how lists show a virtual model.
func (v *VirtualModel) model() *llm.Model {
	m := &llm.Model{
		Provider: v.Provider, ID: v.ID, Name: v.Name, API: llm.APIVirtual,
		Input: v.Input, ContextWindow: v.ContextWindow, MaxTokens: v.MaxTokens,
	}
	if m.Name == "" {
		m.Name = m.ID
	}
	if m.Input == nil {
		m.Input = []string{"text"}
	}
	if m.ContextWindow <= 0 {
		m.ContextWindow = defaultContextWindow
	}
	if m.MaxTokens <= 0 {
		m.MaxTokens = min(defaultMaxTokens, m.ContextWindow)
	}
	for _, l := range llm.ThinkingLevels() {
		if slices.Contains(v.Levels, l) {
			m.Reasoning = m.Reasoning || l != llm.LevelOff
		}
	}
	if m.Reasoning {
		m.ThinkingLevelMap = map[llm.ThinkingLevel]*string{}
		for _, l := range llm.ThinkingLevels() {
			if slices.Contains(v.Levels, l) {
				m.ThinkingLevelMap[l] = new(string(l))
			} else {
				m.ThinkingLevelMap[l] = nil
			}
		}
	}
	return m
}
