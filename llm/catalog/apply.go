package catalog

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// apply sets the members that raw, a checked JSON object, holds on m. Objects
// merge member by member with what m has, all else replaces it. Headers stay
// out: models.json keeps values in them that are resolved for each request.
func apply(m *llm.Model, raw []byte) {
	var r jsonwire.Reader
	r.Reset(raw)
	applyFrom(m, &r, nil)
}

// applyFrom is apply for the object that a reader stands before. onAPI, when not
// nil, is called for a wire format before it is set.
func applyFrom(m *llm.Model, r *jsonwire.Reader, onAPI func(api string)) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "id":
			m.ID = r.Text()
		case "name":
			m.Name = r.Text()
		case "api":
			api := r.Text()
			if onAPI != nil {
				onAPI(api)
			}
			m.API = api
		case "baseUrl":
			m.BaseURL = r.Text()
		case "type":
			m.Type = r.Text()
		case "reasoning":
			m.Reasoning = r.Bool()
		case "thinkingLevelMap":
			m.ThinkingLevelMap = applyLevels(m.ThinkingLevelMap, r)
		case "input":
			m.Input = []string{}
			for r.Array(); r.More(); {
				m.Input = append(m.Input, r.Text())
			}
		case "inputLimits":
			m.InputLimits = mergeDeep(m.InputLimits, r.Raw())
		case "cost":
			m.Cost = applyRates(m.Cost, r)
		case "promptCache":
			m.PromptCache = applyPromptCache(m.PromptCache, r)
		case "contextWindow":
			m.ContextWindow = int(r.Int())
		case "maxTokens":
			m.MaxTokens = int(r.Int())
		case "samplingParams":
			m.SamplingParams = mergeFlat(m.SamplingParams, r.Raw())
		case "samplingParamsByThinkingLevel":
			all := maps.Clone(m.SamplingParamsByThinkingLevel)
			for r.Object(); r.More(); {
				level := llm.ThinkingLevel(r.Key())
				if all == nil {
					all = map[llm.ThinkingLevel]jsontext.Value{}
				}
				all[level] = mergeFlat(all[level], r.Raw())
			}
			m.SamplingParamsByThinkingLevel = all
		case "compat":
			m.Compat = mergeCompat(m.Compat, r.Raw())
		default:
			r.Skip()
		}
	}
}

func applyLevels(old map[llm.ThinkingLevel]*string, r *jsonwire.Reader) map[llm.ThinkingLevel]*string {
	levels := maps.Clone(old)
	if levels == nil {
		levels = map[llm.ThinkingLevel]*string{}
	}
	for r.Object(); r.More(); {
		level := llm.ThinkingLevel(r.Key())
		if r.Null() {
			levels[level] = nil
		} else {
			levels[level] = new(r.Text())
		}
	}
	return levels
}

func applyRates(c llm.Rates, r *jsonwire.Reader) llm.Rates {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "input":
			c.Input = r.Float()
		case "output":
			c.Output = r.Float()
		case "cacheRead":
			c.CacheRead = r.Float()
		case "cacheWrite":
			c.CacheWrite = r.Float()
		case "tiers":
			c.Tiers = nil
			for r.Array(); r.More(); {
				c.Tiers = append(c.Tiers, readTier(r))
			}
		default:
			r.Skip()
		}
	}
	return c
}

func readTier(r *jsonwire.Reader) (t llm.RateTier) {
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "inputTokensAbove":
			t.InputTokensAbove = r.Int()
		case "input":
			t.Input = r.Float()
		case "output":
			t.Output = r.Float()
		case "cacheRead":
			t.CacheRead = r.Float()
		case "cacheWrite":
			t.CacheWrite = r.Float()
		default:
			r.Skip()
		}
	}
	return t
}

func applyPromptCache(old *llm.PromptCache, r *jsonwire.Reader) *llm.PromptCache {
	var c llm.PromptCache
	if old != nil {
		c = *old
	}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "short":
			c.Short = r.Float()
		case "long":
			c.Long = r.Float()
		default:
			r.Skip()
		}
	}
	return &c
}

// member is one member of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

func members(raw []byte) []member {
	var r jsonwire.Reader
	r.Reset(raw)
	return readMembers(&r)
}

// readMembers reads the object that a reader stands before: its members in the
// order of their first appearance, with their last values.
func readMembers(r *jsonwire.Reader) []member {
	var list []member
	var at positions
	for r.Object(); r.More(); {
		name := string(r.Key())
		value := slices.Clone(r.Raw())
		if i, had := at.of(name, len(list)); had {
			list[i].value = value
		} else {
			list = append(list, member{name, value})
		}
	}
	return list
}

func indexMember(list []member, name string) int {
	return slices.IndexFunc(list, func(m member) bool { return m.name == name })
}

// positions are the places of names in a list. Files of any size are read, so
// that no list is searched for each of its elements.
type positions map[string]int

// of is the place of a name, which is next from now on when it had none.
func (p *positions) of(name string, next int) (at int, had bool) {
	if at, had = (*p)[name]; had {
		return at, true
	}
	if *p == nil {
		*p = positions{}
	}
	(*p)[name] = next
	return next, false
}

// mergeWith puts upper over lower; join merges the values of one name.
func mergeWith(lower, upper []byte, join func(name string, lower, upper []byte) []byte) jsontext.Value {
	if lower == nil {
		return slices.Clone(upper)
	}
	list := members(lower)
	var at positions
	for i := range list {
		at.of(list[i].name, i)
	}
	for _, m := range members(upper) {
		if i, had := at.of(m.name, len(list)); had {
			list[i].value = join(m.name, list[i].value, m.value)
		} else {
			list = append(list, m)
		}
	}
	out := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonwire.AppendString(out, m.name)
		out = append(out, ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

func replace(_ string, _, upper []byte) []byte { return upper }

func mergeFlat(lower, upper []byte) jsontext.Value { return mergeWith(lower, upper, replace) }

func mergeDeep(lower, upper []byte) jsontext.Value {
	return mergeWith(lower, upper, func(_ string, lower, upper []byte) []byte {
		if jsonwire.IsObject(lower) && jsonwire.IsObject(upper) {
			return mergeDeep(lower, upper)
		}
		return upper
	})
}

// mergeCompat merges flags: one more level for the objects that hold settings of
// routers and templates, everything else replaced.
func mergeCompat(lower, upper []byte) jsontext.Value {
	return mergeWith(lower, upper, func(name string, lower, upper []byte) []byte {
		switch name {
		case "openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs":
			if jsonwire.IsObject(lower) && jsonwire.IsObject(upper) {
				return mergeFlat(lower, upper)
			}
		}
		return upper
	})
}
