package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// What may be learnt from a list of models that somebody else wrote: facts. A
// list names no address that the provider does not have already, and no headers,
// so that it cannot send a key elsewhere; and it puts no members of its own into
// requests.

// maxListed bounds a list: the largest router has some hundred models.
const maxListed = 10_000

// readListing turns a list of models into entries in the form of models.json,
// checked, sorted as they came. It knows three forms:
//
//	{"data": [{"id", "name", "context_length", "pricing": …}]}   OpenRouter; with ids alone, OpenAI
//	{"models": [model…]} or [model…]                              models.json
//	{api: {"chat:<id>": model}}                                   pi's catalogue
//
// known is the provider as it is built in, existing its models.
func readListing(body []byte, known *Provider, existing []*llm.Model) ([]jsontext.Value, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	switch {
	case len(body) == 0:
		return nil, errors.New("it is empty")
	case body[0] == '<':
		return nil, errors.New("it is a web page")
	case jsonwire.Check(body) != nil:
		return nil, errors.New("it is no JSON")
	}
	var raw []jsontext.Value
	var err error
	switch data, models := jsonwire.Get(body, "data"), jsonwire.Get(body, "models"); {
	case body[0] == '[':
		raw, err = elements(body)
	case body[0] != '{':
		err = errNoList
	case data != nil:
		raw, err = elements(data)
		for i := range raw {
			raw[i] = fromService(raw[i])
		}
	case models != nil:
		raw, err = elements(models)
	default:
		raw, err = fromCatalogue(body)
	}
	if err != nil {
		return nil, err
	}
	return checkListed(raw, known, existing)
}

var errNoList = errors.New("it has no list of models")

// elements are the objects of a list.
func elements(raw []byte) ([]jsontext.Value, error) {
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '[' {
		return nil, errNoList
	}
	var out []jsontext.Value
	for r.Array(); r.More(); {
		v := r.Raw()
		if !jsonwire.IsObject(v) {
			return nil, fmt.Errorf("entry %d is no object", len(out))
		}
		if len(out) == maxListed {
			return nil, fmt.Errorf("it has more than %d models", maxListed)
		}
		out = append(out, slices.Clone(v))
	}
	return out, nil
}

// fromCatalogue reads {api: {"chat:<id>": model}}. Models of other types are
// left out.
func fromCatalogue(body []byte) ([]jsontext.Value, error) {
	var out []jsontext.Value
	for _, group := range members(body) {
		if !jsonwire.IsObject(group.value) {
			continue // a date, a version
		}
		for _, m := range members(group.value) {
			kind, id, ok := strings.Cut(m.name, ":")
			if !ok || kind != "chat" || !jsonwire.IsObject(m.value) {
				continue
			}
			if len(out) == maxListed {
				return nil, fmt.Errorf("it has more than %d models", maxListed)
			}
			o := jsonwire.Begin(nil)
			o.Text("id", id)
			o.Text("api", group.name)
			out = append(out, mergeFlat(o.End(), m.value))
		}
	}
	return out, nil
}

// fromService turns an entry of a service's own list into one of models.json;
// nil for a model that does not write text or takes no tools.
func fromService(raw []byte) jsontext.Value {
	id, ok := jsonwire.StringValue(jsonwire.Get(raw, "id"))
	if !ok {
		return raw // refused later, with its reason
	}
	arch := jsonwire.Get(raw, "architecture")
	params := words(jsonwire.Get(raw, "supported_parameters"))
	if out := words(jsonwire.Get(arch, "output_modalities")); out != nil && !slices.Contains(out, "text") {
		return nil
	}
	if params != nil && !slices.Contains(params, "tools") {
		return nil
	}
	o := jsonwire.Begin(nil)
	o.Text("id", id)
	if name, ok := jsonwire.StringValue(jsonwire.Get(raw, "name")); ok && name != "" {
		o.Text("name", name)
	}
	if params != nil {
		o.Bool("reasoning", slices.Contains(params, "reasoning"))
	}
	if in := words(jsonwire.Get(arch, "input_modalities")); in != nil {
		input := []byte(`["text"]`)
		if slices.Contains(in, "image") {
			input = []byte(`["text","image"]`)
		}
		o.Raw("input", input)
	}
	if cost := perMillion(jsonwire.Get(raw, "pricing")); cost != nil {
		o.Raw("cost", cost)
	}
	top := jsonwire.Get(raw, "top_provider")
	window := firstNumber(jsonwire.Get(top, "context_length"), jsonwire.Get(raw, "context_length"), jsonwire.Get(raw, "context_window"))
	limit := firstNumber(jsonwire.Get(top, "max_completion_tokens"), jsonwire.Get(raw, "max_completion_tokens"), jsonwire.Get(raw, "max_tokens"))
	if window != nil {
		o.Raw("contextWindow", window)
	}
	if limit != nil {
		o.Raw("maxTokens", limit)
	}
	return o.End()
}

// perMillion turns prices per token, which are written as strings, into prices
// per million tokens; nil when there are none. A router's own variable price,
// written as -1, is none.
func perMillion(pricing []byte) []byte {
	if !jsonwire.IsObject(pricing) {
		return nil
	}
	o := jsonwire.Begin(nil)
	found := false
	for _, f := range []struct{ from, to string }{
		{"prompt", "input"}, {"completion", "output"}, {"input_cache_read", "cacheRead"}, {"input_cache_write", "cacheWrite"},
	} {
		v := jsonwire.Get(pricing, f.from)
		if v == nil {
			continue
		}
		text, isText := jsonwire.StringValue(v)
		if !isText {
			text = string(v)
		}
		price, err := strconv.ParseFloat(text, 64)
		if err != nil {
			o.Text(f.to, text) // refused later, with its place
			found = true
			continue
		}
		if price == -1 {
			return nil
		}
		o.Float(f.to, math.Round(price*1e12)/1e6)
		found = true
	}
	if !found {
		return nil
	}
	return o.End()
}

// words is a list of strings, nil when raw is none.
func words(raw []byte) []string {
	var r jsonwire.Reader
	r.Reset(raw)
	if raw == nil || r.Kind() != '[' {
		return nil
	}
	out := []string{}
	for r.Array(); r.More(); {
		if s, ok := jsonwire.StringValue(r.Raw()); ok {
			out = append(out, s)
		}
	}
	return out
}

// firstNumber is the first value that is there and not null.
func firstNumber(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil && string(v) != "null" {
			return v
		}
	}
	return nil
}

// learnt lists the members that a list may set.
func learnt(name string) bool {
	switch name {
	case "id", "name", "api", "reasoning", "thinkingLevelMap", "input", "inputLimits", "cost", "promptCache",
		"contextWindow", "maxTokens", "compat":
		return true
	}
	return false
}

// isPlainFlag reports whether a flag chooses among behaviours of the wire format.
// Others carry objects and names that go into requests as they are.
func isPlainFlag(m *member) bool {
	switch m.name {
	case "maxTokensField", "sessionAffinityFormat", "cacheControlFormat", "promptCacheKeyMode", "thinkingFormat":
		return true
	}
	return string(m.value) == "true" || string(m.value) == "false"
}

// filtered is an object of the members that keep wants; it may change their values.
func filtered(list []member, keep func(m *member) bool) jsontext.Value {
	o := jsonwire.Begin(nil)
	for _, m := range list {
		if keep(&m) {
			o.Member(m.name, m.value)
		}
	}
	return o.End()
}

// checkListed checks entries and keeps what may be learnt of them. One that lies
// spoils the whole list: who wrote it is not to be trusted with the rest.
func checkListed(raw []jsontext.Value, known *Provider, existing []*llm.Model) ([]jsontext.Value, error) {
	addresses := []string{known.BaseURL}
	for _, m := range existing {
		addresses = append(addresses, m.BaseURL)
	}
	var out []jsontext.Value
	seen := map[string]bool{}
	model := aModel(aCost(false))
	for i, entry := range raw {
		if entry == nil {
			continue
		}
		check := &checker{text: entry}
		check.r.Reset(entry)
		model(check, "")
		if len(check.problems) > 0 {
			return nil, fmt.Errorf("entry %d: %s %s", i, strings.TrimPrefix(check.problems[0].path, "/"), check.problems[0].text)
		}
		var m llm.Model
		apply(&m, entry)
		if m.Type != "" && m.Type != "chat" || seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		if err := plausible(&m); err != nil {
			return nil, fmt.Errorf("entry %d %w", i, err)
		}
		if m.BaseURL != "" && !slices.Contains(addresses, m.BaseURL) {
			return nil, fmt.Errorf("entry %d (%s) names an address that %s does not have, and a list must not send requests elsewhere", i, m.ID, known.ID)
		}
		if m.API != "" && !slices.Contains(known.APIs, m.API) {
			return nil, fmt.Errorf("entry %d (%s) names a wire format that %s does not speak: %s", i, m.ID, known.ID, m.API)
		}
		out = append(out, filtered(members(entry), func(m *member) bool {
			if m.name == "compat" {
				m.value = filtered(members(m.value), isPlainFlag)
			}
			return learnt(m.name)
		}))
	}
	if len(out) == 0 {
		return nil, errors.New("it has no models that could be used")
	}
	return out, nil
}

// plausible refuses what no model is.
func plausible(m *llm.Model) error {
	const limit = 1 << 30 // tokens
	clean := func(s string) bool {
		return len(s) <= 300 && !strings.ContainsFunc(s, func(r rune) bool { return unshowable(r) || r == unicode.ReplacementChar })
	}
	switch {
	case !clean(m.ID) || strings.TrimSpace(m.ID) != m.ID || !clean(m.Name):
		return errors.New("has a name that cannot be shown")
	case m.ContextWindow > limit || m.ContextWindow < 0 || m.MaxTokens > limit || m.MaxTokens < 0:
		return fmt.Errorf("(%s) has limits of tokens that no model has", m.ID)
	}
	bad := func(prices ...float64) bool {
		return slices.ContainsFunc(prices, func(p float64) bool { return !(p >= 0 && p <= 1e6) })
	}
	c := m.Cost
	wrong := bad(c.Input, c.Output, c.CacheRead, c.CacheWrite)
	for _, t := range c.Tiers {
		wrong = wrong || t.InputTokensAbove < 0 || bad(t.Input, t.Output, t.CacheRead, t.CacheWrite)
	}
	if wrong {
		return fmt.Errorf("(%s) has a price that is negative or beyond all reason", m.ID)
	}
	return nil
}

// learn puts the facts of a list over the models of a provider. Models that it
// lacks stay: a list may be cut short.
func learn(known *Provider, existing []*llm.Model, entries []jsontext.Value) []*llm.Model {
	out := slices.Clone(existing)
	at := make(map[string]int, len(out))
	for i, m := range out {
		at[m.ID] = i
	}
	file := readBuiltin(known.ID)
	listed := known.listedAPI()
	for _, entry := range entries {
		id, _ := jsonwire.StringValue(jsonwire.Get(entry, "id"))
		var m *llm.Model
		i, had := at[id]
		if had {
			m = new(*out[i])
			api, base := m.API, m.BaseURL
			apply(m, entry)
			m.API, m.BaseURL = api, base
		} else {
			api, ok := jsonwire.StringValue(jsonwire.Get(entry, "api"))
			if !ok {
				api = listed
				if like := sibling(existing, id); like != nil {
					api = like.API
				}
			}
			m = file.blank(known, api)
			base := m.BaseURL
			apply(m, entry)
			m.API, m.BaseURL = api, base
			if m.Name == "" {
				m.Name = m.ID
			}
		}
		if m.MaxTokens > m.ContextWindow {
			m.MaxTokens = m.ContextWindow
		}
		if had {
			out[i] = m
		} else {
			at[id] = len(out)
			out = append(out, m)
		}
	}
	return out
}
