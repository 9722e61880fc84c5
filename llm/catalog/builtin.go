package catalog

import (
	"bytes"
	"cmp"
	"embed"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// The built-in models, a file for each provider that has any or needs flags,
// written by the module in generate/:
//
//	{"api": wire format of models that name none,
//	 "defaults": {wire format: members of all its models},
//	 "models": [models as in models.json]}
//
//go:embed models/*.json
var data embed.FS

// builtinFile is the file of a provider, its models not decoded yet. The zero
// value stands for none.
type builtinFile struct {
	api      string
	defaults []member
	models   jsontext.Value
}

func readBuiltin(provider string) (f builtinFile) {
	raw, err := data.ReadFile("models/" + provider + ".json")
	if err != nil {
		return f // no built-in models
	}
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "api":
			f.api = r.Text()
		case "defaults":
			f.defaults = members(r.Raw())
		case "models":
			f.models = r.Raw()
		default:
			r.Skip()
		}
	}
	return f
}

// of is what all models of a wire format have; nil for nothing.
func (f *builtinFile) of(api string) jsontext.Value {
	if i := indexMember(f.defaults, api); i >= 0 {
		return f.defaults[i].value
	}
	return nil
}

// blank is a model of p that only has what all models of the wire format have.
func (f *builtinFile) blank(p *Provider, api string) *llm.Model {
	m := &llm.Model{
		Provider: p.ID, API: api, BaseURL: p.BaseURL, Input: []string{"text"},
		ContextWindow: defaultContextWindow, MaxTokens: defaultMaxTokens,
	}
	if d := f.of(api); d != nil {
		apply(m, d)
		for _, h := range readHeaders(jsonwire.Get(d, "headers")) { // plain text here
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[h.name] = h.value
		}
	}
	return m
}

// builtinModels decodes the built-in models of a provider. Each call makes new
// ones; nothing is decoded before.
func builtinModels(p *Provider) []*llm.Model {
	f := readBuiltin(p.ID)
	if f.models == nil {
		return nil
	}
	// What the models of a wire format have in common is decoded once.
	blanks := map[string]*llm.Model{}
	blank := func(api string) *llm.Model {
		m, ok := blanks[api]
		if !ok {
			m = f.blank(p, api)
			blanks[api] = m
		}
		return m
	}
	list := make([]*llm.Model, 0, bytes.Count(f.models, []byte("\n")))
	var r jsonwire.Reader
	r.Reset(f.models)
	for r.Array(); r.More(); {
		m := new(*blank(f.api))
		// The wire format stands before all that may add to its common members.
		applyFrom(m, &r, func(api string) {
			id, name := m.ID, m.Name
			*m = *blank(api)
			m.ID, m.Name = id, name
		})
		list = append(list, m)
	}
	return list
}

// builtinNames lists the built-in models of a provider by provider, id, name and
// wire format alone: what a search by name needs, for a fraction of the cost.
// The files have one model a line, whose members have their places.
func builtinNames(provider string) []llm.Model {
	raw, err := data.ReadFile("models/" + provider + ".json")
	if err != nil {
		return nil
	}
	text := string(raw)
	common, _ := stringBehind(text, `{"api":"`)
	list := make([]llm.Model, 0, strings.Count(text, "\n"))
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, `{"id":`) {
			continue
		}
		m := llm.Model{Provider: provider, API: common}
		if strings.IndexByte(line, '\\') >= 0 {
			apply(&m, []byte(strings.TrimSuffix(line, ",")))
		} else {
			var api string
			m.ID, line = stringBehind(line, `{"id":"`)
			m.Name, line = stringBehind(line, `,"name":"`)
			api, _ = stringBehind(line, `,"api":"`)
			m.API = cmp.Or(api, common)
		}
		list = append(list, m)
	}
	return list
}

// stringBehind reads a string without escapes that begins behind a prefix of
// text, and what follows it; "" and text when there is no such prefix.
func stringBehind(text, prefix string) (value, rest string) {
	behind, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", text
	}
	value, rest, _ = strings.Cut(behind, `"`)
	return value, rest
}

// generated is the time of the facts in the built-in lists.
func generated() time.Time {
	raw, err := data.ReadFile("models/manifest.json")
	if err != nil {
		return time.Time{}
	}
	text, _ := jsonwire.StringValue(jsonwire.Get(raw, "generatedAt"))
	t, _ := time.Parse(time.RFC3339, text)
	return t
}

// listedAPI is the wire format of a model that names none: that of the built-in
// list, else the provider's first.
func (p *Provider) listedAPI() string {
	if api := readBuiltin(p.ID).api; api != "" {
		return api
	}
	if len(p.APIs) > 0 {
		return p.APIs[0]
	}
	return ""
}

// needsAddress reports whether models of a wire format must name an address.
// Those of the others are made from the environment.
func needsAddress(api string) bool {
	return !slices.Contains([]string{apiAzure, apiBedrock, apiVertex, llm.APIVirtual}, api)
}
