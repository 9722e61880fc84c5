package catalog

import (
	"embed"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// The built-in models, a file for each provider: a list of model objects as in
// models.json, where "api" and "baseUrl" may be left out.
//
//go:embed models/*.json
var data embed.FS

// builtinModels decodes the built-in models of a provider. Each call makes new
// ones; nothing is decoded before.
func builtinModels(provider string) []*llm.Model {
	raw, err := data.ReadFile("models/" + provider + ".json")
	if err != nil {
		return nil // no built-in models
	}
	p, ok := builtinProvider(provider)
	if !ok {
		return nil
	}
	api := p.listedAPI()
	var list []*llm.Model
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Array(); r.More(); {
		m := &llm.Model{Provider: provider, API: api, BaseURL: p.BaseURL, Input: []string{"text"}}
		entry := r.Raw()
		apply(m, entry)
		for _, h := range readHeaders(jsonwire.Get(entry, "headers")) {
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[h.name] = h.value
		}
		list = append(list, m)
	}
	return list
}

// listedAPI is the wire format of a model that names none: of several, the one
// that the built-in lists are made for.
func (p Provider) listedAPI() string {
	for _, a := range p.APIs {
		if a == apiCompletions || a == apiAnthropic {
			return a
		}
	}
	if len(p.APIs) > 0 {
		return p.APIs[0]
	}
	return ""
}
