package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// search looks a pattern up among models.
type search struct {
	models []*llm.Model
	// usable reports whether a provider is set up. It decides only between
	// models of several providers: one that is alone is found without it.
	usable func(provider string) bool
	// lenient passes over a word behind a colon that is no level, with a warning.
	// A pattern for one model keeps the word instead, and finds nothing.
	lenient bool
}

// match is what a pattern names; the zero value is nothing.
type match struct {
	model   *llm.Model
	level   llm.ThinkingLevel
	rivals  []*llm.Model // equally good models of several providers, instead of one
	warning string
}

func (m match) nothing() bool { return m.model == nil && m.rivals == nil }

// find looks for a whole reference, then for a part of an id or name, then for
// the same without a level behind it.
func (s search) find(text string) match {
	if m := s.reference(text); !m.nothing() {
		return m
	}
	if m := s.part(text); !m.nothing() {
		return m
	}
	colon := strings.LastIndexByte(text, ':')
	id, level := splitLevel(text)
	if colon < 0 || level == "" && !s.lenient {
		return match{}
	}
	if level != "" {
		m := s.find(id)
		if m.level = level; m.warning != "" || m.nothing() {
			m.level = ""
		}
		return m
	}
	m := s.find(text[:colon])
	if !m.nothing() {
		m.level = ""
		m.warning = fmt.Sprintf("Invalid thinking level %q in pattern %q. Using the default level.", text[colon+1:], text)
	}
	return m
}

// reference looks for an id, with or without its provider in front. What stands
// before a slash may be a provider, and the whole may be the id that a router
// has for the same model. The provider that is named comes first when it is set
// up, as that is what such a pattern means as a rule.
func (s search) reference(text string) match {
	others := idIs(s.models, text)
	var named *llm.Model
	if provider, rest := splitProvider(text, s.models); provider != "" {
		own := ofProvider(s.models, provider)
		if list := idIs(own, rest); list != nil {
			named = list[0]
		} else if list := idIs(own, text); list != nil {
			named = list[0]
		} else {
			named = best(having(own, rest))
		}
	}
	candidates := others
	if named != nil {
		others = slices.DeleteFunc(others, func(m *llm.Model) bool { return m == named })
		candidates = append([]*llm.Model{named}, others...)
	}
	if len(candidates) == 0 {
		return match{}
	}
	if sameProvider(candidates) || named != nil && s.usable(named.Provider) {
		return match{model: candidates[0]}
	}
	ready := s.ready(others)
	switch {
	case len(ready) == 1:
		return match{model: ready[0]}
	case len(ready) == 0 && named != nil:
		return match{model: named}
	}
	return match{rivals: candidates}
}

// part looks for models whose id or name contains the text.
func (s search) part(text string) match {
	list := having(s.models, text)
	if !sameProvider(list) {
		if ready := s.ready(list); ready != nil {
			list = ready
		}
	}
	top := best(list)
	if top == nil {
		return match{}
	}
	// One id at several providers: their order in the list decides nothing.
	tied := idIs(list, top.ID)
	if sameProvider(tied) {
		return match{model: top}
	}
	return match{rivals: tied}
}

func (s search) ready(list []*llm.Model) (ready []*llm.Model) {
	for _, m := range list {
		if s.usable(m.Provider) {
			ready = append(ready, m)
		}
	}
	return ready
}

// splitProvider cuts the provider off a provider/id, both "" where text does not
// begin with a provider of the models. Names of providers may hold slashes: the
// longest counts.
func splitProvider(text string, models []*llm.Model) (provider, id string) {
	seen := ""
	for _, m := range models {
		name := strings.TrimSpace(m.Provider)
		if m.Provider == seen || name == "" || len(m.Provider) <= len(provider) {
			continue
		}
		seen = m.Provider
		if len(text) < len(name) {
			continue
		}
		slash := strings.IndexByte(text[len(name):], '/')
		if slash < 0 {
			continue
		}
		slash += len(name)
		if rest := strings.TrimSpace(text[slash+1:]); rest != "" && strings.EqualFold(strings.TrimSpace(text[:slash]), name) {
			provider, id = m.Provider, rest
		}
	}
	return provider, id
}

func idIs(models []*llm.Model, id string) (list []*llm.Model) {
	for _, m := range models {
		if strings.EqualFold(m.ID, id) {
			list = append(list, m)
		}
	}
	return list
}

// having lists the models whose id or name contains the text.
func having(models []*llm.Model, text string) (list []*llm.Model) {
	if text == "" {
		return nil
	}
	text = strings.ToLower(text)
	for _, m := range models {
		if strings.Contains(strings.ToLower(m.ID), text) || strings.Contains(strings.ToLower(m.Name), text) {
			list = append(list, m)
		}
	}
	return list
}

func ofProvider(models []*llm.Model, provider string) (list []*llm.Model) {
	for _, m := range models {
		if m.Provider == provider {
			list = append(list, m)
		}
	}
	return list
}

func sameProvider(models []*llm.Model) bool {
	return !slices.ContainsFunc(models, func(m *llm.Model) bool { return m.Provider != models[0].Provider })
}
