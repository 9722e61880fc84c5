package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// TestMerging has the rules of models.json one by one, over a provider with
// models of several wire formats.
func TestMerging(t *testing.T) {
	models := []*llm.Model{
		{ID: "first", API: apiAnthropic, BaseURL: "http://first"},
		{
			ID: "wide", API: apiCompletions, BaseURL: "http://wide", Name: "Wide", Reasoning: true, Input: []string{"text", "image"},
			ContextWindow: 50, MaxTokens: 40,
			ThinkingLevelMap: map[llm.ThinkingLevel]*string{"low": new("l"), "max": new("m")},
			Cost:             llm.Rates{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Tiers: []llm.RateTier{{InputTokensAbove: 9, Input: 5}}},
			PromptCache:      &llm.PromptCache{Short: 300, Long: 3600},
			InputLimits:      jsontext.Value(`{"maxRequestBytes":1,"images":{"maxPerMessage":2,"resize":{"maxWidth":3,"maxHeight":4}}}`),
			SamplingParams:   jsontext.Value(`{"top_p":1,"extra":{"a":1}}`),
			SamplingParamsByThinkingLevel: map[llm.ThinkingLevel]jsontext.Value{
				"high": jsontext.Value(`{"temperature":1,"top_k":2}`), "low": jsontext.Value(`{"seed":1}`),
			},
			Compat: jsontext.Value(`{"supportsStore":true,"supportsStrictMode":true,"openRouterRouting":{"only":["a"],"sort":{"by":"x","n":1}},` +
				`"chatTemplateKwargs":{"a":1},"allowedFallbackModels":[{"model":"x"}]}`),
		},
		{ID: "late", API: apiResponses, BaseURL: "http://late"},
	}
	for _, c := range []struct{ name, provider, ref, member, want string }{
		// The provider's own members.
		{"address of all models", `"baseUrl":"http://p"`, "late", "baseUrl", `"http://p"`},
		{"flags of all models", `"compat":{"supportsStore":false}`, "late", "compat", `{"supportsStore":false}`},
		{"flags over those of the catalogue", `"compat":{"supportsStore":false}`, "wide", "compat.supportsStore", `false`},
		{"other flags stay", `"compat":{"supportsStore":false}`, "wide", "compat.supportsStrictMode", `true`},
		{"a key changes no model", `"apiKey":"k"`, "wide", "baseUrl", `"http://wide"`},
		{"the provider's wire format is for entries", `"apiKey":"k","api":"openai-completions"`, "late", "api", `"openai-responses"`},

		// Entries: what they do not say is a default, not that of the model they replace.
		{"replaced", `"models":[{"id":"wide"}]`, "wide", "", `{"id":"wide","name":"wide","api":"openai-completions","provider":"mix","baseUrl":"http://wide",` +
			`"reasoning":false,"input":["text"],"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"contextWindow":128000,"maxTokens":16384}`},
		{"the last of one id", `"models":[{"id":"new","name":"A"},{"id":"new","name":"B"}]`, "new", "name", `"B"`},
		{"number forms", `"models":[{"id":"new","contextWindow":2e5,"maxTokens":4096.0}]`, "new", "contextWindow", `200000`},
		{"no input at all", `"models":[{"id":"new","input":[]}]`, "new", "input", `[]`},
		{"own wire format", `"api":"mistral-conversations","models":[{"id":"new","api":"openai-responses"}]`, "new", "api", `"openai-responses"`},
		{"the provider's wire format", `"api":"mistral-conversations","models":[{"id":"wide"}]`, "wide", "api", `"mistral-conversations"`},
		{"that of the same id", `"models":[{"id":"late"}]`, "late", "api", `"openai-responses"`},
		{"that of openai-completions", `"models":[{"id":"new"}]`, "new", "api", `"openai-completions"`},
		{"own address", `"baseUrl":"http://p","models":[{"id":"new","baseUrl":"http://own"}]`, "new", "baseUrl", `"http://own"`},
		{"the provider's address", `"baseUrl":"http://p","models":[{"id":"wide"}]`, "wide", "baseUrl", `"http://p"`},
		{"address of the same id", `"models":[{"id":"first","api":"openai-responses"}]`, "first", "baseUrl", `"http://first"`},
		{"address of the wire format", `"models":[{"id":"new","api":"openai-responses"}]`, "new", "baseUrl", `"http://late"`},
		{"address of openai-completions", `"models":[{"id":"new","api":"mistral-conversations"}]`, "new", "baseUrl", `"http://wide"`},
		{"an entry's flags over the provider's", `"compat":{"supportsStore":false,"openRouterRouting":{"only":["p"],"order":["p"]}},` +
			`"models":[{"id":"new","compat":{"supportsStore":true,"openRouterRouting":{"only":["m"]}}}]`, "new", "compat",
			`{"supportsStore":true,"openRouterRouting":{"only":["m"],"order":["p"]}}`},

		// Overrides come last and merge.
		{"unknown id", `"modelOverrides":{"none":{"name":"X"}}`, "none", "", ``},
		{"of an entry", `"models":[{"id":"new","maxTokens":5}],"modelOverrides":{"new":{"maxTokens":7}}`, "new", "maxTokens", `7`},
		{"a plain member", `"modelOverrides":{"wide":{"name":"N","reasoning":false}}`, "wide", "reasoning", `false`},
		{"a list is replaced", `"modelOverrides":{"wide":{"input":["image"]}}`, "wide", "input", `["image"]`},
		{"identity and address stay", `"modelOverrides":{"wide":{"id":"x","api":"y","baseUrl":"z"}}`, "wide", "baseUrl", `"http://wide"`},
		{"levels by level", `"modelOverrides":{"wide":{"thinkingLevelMap":{"low":null,"xhigh":"x"}}}`, "wide", "thinkingLevelMap", `{"low":null,"max":"m","xhigh":"x"}`},
		{"prices by price", `"modelOverrides":{"wide":{"cost":{"output":0}}}`, "wide", "cost",
			`{"input":1,"output":0,"cacheRead":3,"cacheWrite":4,"tiers":[{"inputTokensAbove":9,"input":5,"output":0,"cacheRead":0,"cacheWrite":0}]}`},
		{"tiers at once", `"modelOverrides":{"wide":{"cost":{"tiers":[]}}}`, "wide", "cost", `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4}`},
		{"cache by length", `"modelOverrides":{"wide":{"promptCache":{"short":60}}}`, "wide", "promptCache", `{"short":60,"long":3600}`},
		{"limits at every depth", `"modelOverrides":{"wide":{"inputLimits":{"images":{"resize":{"maxWidth":9}}}}}`, "wide", "inputLimits",
			`{"maxRequestBytes":1,"images":{"maxPerMessage":2,"resize":{"maxWidth":9,"maxHeight":4}}}`},
		{"parameters by name", `"modelOverrides":{"wide":{"samplingParams":{"extra":{"b":2}}}}`, "wide", "samplingParams", `{"top_p":1,"extra":{"b":2}}`},
		{"parameters of a level by name", `"modelOverrides":{"wide":{"samplingParamsByThinkingLevel":{"high":{"top_k":3},"off":{"n":1}}}}`, "wide",
			"samplingParamsByThinkingLevel", `{"high":{"temperature":1,"top_k":3},"low":{"seed":1},"off":{"n":1}}`},
		{"flags, routing one level deeper", `"modelOverrides":{"wide":{"compat":{"openRouterRouting":{"sort":{"by":"y"}},"chatTemplateKwargs":{"b":2},"allowedFallbackModels":[]}}}`,
			"wide", "compat", `{"supportsStore":true,"supportsStrictMode":true,"openRouterRouting":{"only":["a"],"sort":{"by":"y"}},` +
				`"chatTemplateKwargs":{"a":1,"b":2},"allowedFallbackModels":[]}`},
		{"over the provider's flags", `"compat":{"supportsStore":false},"modelOverrides":{"late":{"compat":{"supportsStore":true}}}`, "late", "compat", `{"supportsStore":true}`},
		{"unknown members", `"apiKey":"k","color":1,"modelOverrides":{"late":{"taste":{"x":[]}}}`, "late", "name", `"late"`},
	} {
		cat := open(t, fmt.Sprintf(`{"$schema":"x","providers":{"mix":{%s}}}`, c.provider), nil)
		cat.Add(Provider{ID: "mix"}, models...)
		if err := cat.Problem(); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := ""
		if m := cat.Find("mix", c.ref); m != nil {
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.FieldsFuncSeq(c.member, func(r rune) bool { return r == '.' }) {
				text = jsonwire.Get(text, part)
			}
			got = string(text)
		}
		if got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.name, c.member, got, c.want)
		}
	}
}
