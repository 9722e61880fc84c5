package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// open makes a catalog of a models.json text with an environment of its own.
func open(t *testing.T, file string, env map[string]string) *Catalog {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "models.json")
	if file != "" {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return New(Options{
		ModelsFile: path,
		Store:      auth.OpenStore(filepath.Join(dir, "auth.json"), auth.StoreOptions{}),
		Env:        auth.Env{Process: func(name string) string { return env[name] }},
	})
}

const scripted = `{"providers":{
	"scripted": {"baseUrl":"http://s/v1","apiKey":"k","api":"openai-completions","models":[
		{"id":"plain","name":"Scripted Plain","input":["text","image"],"contextWindow":200000,"maxTokens":8000,"cost":{"input":1,"output":2,"cacheRead":0.5,"cacheWrite":0}},
		{"id":"thinker","name":"Scripted Thinker","reasoning":true,"contextWindow":100000,"maxTokens":4000},
		{"id":"tiny","contextWindow":20000,"maxTokens":1000}]},
	"scripted2": {"baseUrl":"http://s","apiKey":"k2","api":"anthropic-messages","models":[
		{"id":"claudish","reasoning":true,"input":["text","image"],"contextWindow":1500000,"maxTokens":8192},
		{"id":"claudish-20250101"},{"id":"vendor/thinker"}]}
}}`

func TestBuiltin(t *testing.T) {
	c := New(Options{})
	formats := []string{apiAnthropic, apiCompletions, apiResponses, apiAzure, apiCodex, apiGoogle, apiVertex, apiBedrock, apiMistral, apiPi}
	seen := map[string]bool{}
	for _, p := range c.Providers() {
		if seen[p.ID] || p.Name == "" || len(p.APIs) == 0 && p.ID != "typesafe" {
			t.Errorf("provider %+v", p)
		}
		seen[p.ID] = true
		models := c.ModelsOf(p.ID)
		if p.DefaultModel != "" && !slices.ContainsFunc(models, func(m *llm.Model) bool { return m.ID == p.DefaultModel }) {
			t.Errorf("%s has no model %s to start with", p.ID, p.DefaultModel)
		}
		if p.DefaultModel == "" && len(models) > 0 {
			t.Errorf("%s lists models, but none to start with", p.ID)
		}
		ids := map[string]bool{}
		for _, m := range models {
			if ids[m.ID] || m.ID == "" || m.Name == "" || m.Provider != p.ID || m.BaseURL == "" && needsAddress(m.API) || !slices.Contains(p.APIs, m.API) ||
				!slices.Contains(formats, m.API) || m.ContextWindow <= 0 || m.MaxTokens <= 0 || m.MaxTokens > m.ContextWindow || len(m.SupportedLevels()) == 0 {
				t.Errorf("model %+v", m)
			}
			ids[m.ID] = true
		}
	}
	entries, err := data.ReadDir("models")
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), ".json")
		if id == "manifest" {
			continue
		}
		if !seen[id] {
			t.Errorf("%s belongs to no provider", e.Name())
		}
		// The embedded models obey the schema of the user's file, but for prices of
		// nothing, which they leave out.
		overrides := []byte("{}")
		f := readBuiltin(id)
		for _, d := range f.defaults {
			overrides = mergeFlat(overrides, fmt.Appendf(nil, "{%q:%s}", "default:"+d.name, d.value))
		}
		models, err := elements(f.models)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		for _, m := range models {
			overrides = mergeFlat(overrides, fmt.Appendf(nil, "{%s:%s}", jsonwire.Get(m, "id"), m))
		}
		if _, remarks, err := readOverlay(e.Name(), fmt.Appendf(nil, `{"providers":{%q:{"modelOverrides":%s}}}`, id, overrides)); err != nil || remarks != nil {
			t.Errorf("%s: %v %v", e.Name(), err, remarks)
		}
	}
	opus := c.Find("anthropic", "claude-opus-4-5")
	if opus == nil || opus.API != apiAnthropic || !opus.Reasoning || !opus.AcceptsImages() || opus.Cost.Output != 25 {
		t.Errorf("%+v", opus)
	}
	if m := c.Find("openai", "gpt-5.1"); m == nil || m.API != apiResponses || m.BaseURL != "https://api.openai.com/v1" {
		t.Errorf("%+v", m)
	}
}

func TestAPIsFilter(t *testing.T) {
	c := New(Options{APIs: []string{apiAnthropic}})
	for _, m := range c.Models() {
		if m.API != apiAnthropic {
			t.Fatalf("%s speaks %s", m.Ref(), m.API)
		}
	}
	if c.Find("groq", "openai/gpt-oss-120b") != nil || c.Find("anthropic", "claude-opus-4-5") == nil {
		t.Error("wrong models are left out")
	}
}

func TestResolve(t *testing.T) {
	c := open(t, scripted, nil)
	for _, cse := range []struct{ pattern, provider, ref, level, warning, err string }{
		{"scripted/plain", "", "scripted/plain", "", "", ""},
		{"plain", "", "scripted/plain", "", "", ""},
		{"SCRIPTED/Plain", "", "scripted/plain", "", "", ""},
		{"Thinker", "scripted", "scripted/thinker", "", "", ""},
		{"thinker", "", "scripted/thinker", "", "", ""}, // an exact id before a part of one
		{"scripted/thinker:high", "", "scripted/thinker", "high", "", ""},
		{"thinker:off", "", "scripted/thinker", "off", "", ""},
		{"vendor/thinker", "", "scripted2/vendor/thinker", "", "", ""},
		{"scripted2/vendor/thinker:low", "", "scripted2/vendor/thinker", "low", "", ""},
		{"scripted Pla", "", "scripted/plain", "", "", ""}, // part of the name
		{"claudi", "", "scripted2/claudish", "", "", ""},   // not the dated one
		{"claudish-2025", "", "scripted2/claudish-20250101", "", "", ""},
		{"scripted2/claudish", "scripted2", "scripted2/claudish", "", "", ""},
		{"scripted/zzz", "", "scripted/zzz", "", `Model "zzz" not found for provider "scripted". Using custom model id.`, ""},
		{"zzz:high", "scripted", "scripted/zzz", "high", `Model "zzz" not found for provider "scripted". Using custom model id.`, ""},
		{"scripted/zzz:odd", "", "scripted/zzz:odd", "", `Model "zzz:odd" not found for provider "scripted". Using custom model id.`, ""},
		{"scripted/zzz:high", "scripted", "scripted/zzz", "high", `Model "zzz" not found for provider "scripted". Using custom model id.`, ""},
		{"scripted / plain", "", "scripted/plain", "", "", ""},
		{"thinker:high:low", "", "scripted/thinker", "low", "", ""},
		{"plain:odd", "", "", "", "", `Model "plain:odd" not found. Use --list-models to see available models.`},
		{"zzz-none", "", "", "", "", `Model "zzz-none" not found. Use --list-models to see available models.`},
		{"", "", "", "", "", `Model "" not found. Use --list-models to see available models.`},
		{"plain", "nobody", "", "", "", `Unknown provider "nobody". Use --list-models to see available providers/models.`},
		// Several routers list it, none is set up.
		{"openai/gpt-oss-20b", "", "", "", "", `Model "openai/gpt-oss-20b" is ambiguous: openrouter, groq, together, nvidia and vercel-ai-gateway have models that fit. Use --provider to choose one, or name the model whole, such as openrouter/openai/gpt-oss-20b.`},
		{"gorq/llama", "", "", "", "", `Model "gorq/llama" not found. Did you mean "groq/llama"? Use --list-models to see available models.`},
		{"vendor/thinkre:high", "", "", "", "", `Model "vendor/thinkre:high" not found. Did you mean "vendor/thinker"? Use --list-models to see available models.`},
		{"plain", "Scripteed", "", "", "", `Unknown provider "Scripteed". Did you mean "scripted"? Use --list-models to see available providers/models.`},
		{"openai/gpt-oss-20b", "groq", "groq/openai/gpt-oss-20b", "", "", ""},
		{"groq/openai/gpt-oss-20b", "", "groq/openai/gpt-oss-20b", "", "", ""},
		{"huggingface/some/model", "", "huggingface/some/model", "", `Model "some/model" not found for provider "huggingface". Using custom model id.`, ""},
	} {
		got, err := c.Resolve(cse.pattern, cse.provider)
		ref := ""
		if got.Model != nil {
			ref = got.Model.Ref()
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if ref != cse.ref || string(got.Level) != cse.level || got.Warning != cse.warning || text != cse.err {
			t.Errorf("Resolve(%q, %q) = %s %s %q %s", cse.pattern, cse.provider, ref, got.Level, got.Warning, text)
		}
	}
	// With credentials for one of the providers there is no ambiguity.
	c = open(t, scripted, map[string]string{"GROQ_API_KEY": "g"})
	if got, err := c.Resolve("openai/gpt-oss-20b", ""); err != nil || got.Model.Provider != "groq" {
		t.Errorf("%v %v", got, err)
	}
	// A key that comes along goes to nobody who was not named.
	if got, err := c.ResolveWith("openai/gpt-oss-20b", ResolveOptions{Key: true}); err == nil {
		t.Errorf("%v", got.Model)
	}
	// A level that is asked for apart leaves the id as it was written, and an
	// unknown model thinks when it is asked to.
	if got, err := c.ResolveWith("scripted/new:high", ResolveOptions{Level: "low"}); err != nil || got.Model.ID != "new:high" || got.Level != "" || !got.Model.Reasoning {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.Resolve("scripted/new:off", ""); err != nil || got.Model.ID != "new" || got.Model.Reasoning {
		t.Errorf("%+v %v", got, err)
	}
	// The settings of an unknown id are those of the provider.
	got, _ := c.Resolve("scripted/new", "")
	if got.Model.BaseURL != "http://s/v1" || got.Model.API != apiCompletions || got.Model.Name != "new" {
		t.Errorf("%+v", got.Model)
	}
}

func TestScopeAndStart(t *testing.T) {
	c := open(t, scripted, nil)
	refs := func(list []Choice) string {
		var out []string
		for _, x := range list {
			out = append(out, strings.TrimSuffix(x.Model.Ref()+":"+string(x.Level), ":"))
		}
		return strings.Join(out, " ")
	}
	for _, cse := range []struct{ patterns, want, warnings string }{
		{"scripted/thinker:medium,nomatch", "scripted/thinker:medium", `[No models match pattern "nomatch"]`},
		{"scripted/*", "scripted/plain scripted/thinker scripted/tiny", "[]"},
		{"**/t*", "scripted/thinker scripted/tiny scripted2/vendor/thinker", "[]"},
		{"SCRIPTED2/**:low", "scripted2/claudish:low scripted2/claudish-20250101:low scripted2/vendor/thinker:low", "[]"},
		{"[tp]?[!n]*", "scripted/plain scripted/thinker", "[]"},
		{"tïny", "", `[No models match pattern "tïny"]`},
		{"*ï*", "", `[No models match pattern "*ï*"]`},
		{"[oops", "", `[No models match pattern "[oops"]`},
		{"t*:low", "scripted/thinker:low scripted/tiny:low", "[]"},
		{"tiny,scripted/*", "scripted/tiny scripted/plain scripted/thinker", "[]"},
		{" claudi , ", "scripted2/claudish", "[]"},
		{"scripted2/clau", "scripted2/claudish", "[]"},
		{"claude-opus-4-5", "", `[No models match pattern "claude-opus-4-5"]`}, // not set up
		{"scripted/thinker:huge", "scripted/thinker", `[Invalid thinking level "huge" in pattern "scripted/thinker:huge". Using the default level.]`},
		{"scripted/nothing:huge,t*:huge,:high", "",
			`[No models match pattern "scripted/nothing:huge" No models match pattern "t*:huge" No models match pattern ":high"]`},
	} {
		choices, warnings := c.Scope(strings.Split(cse.patterns, ","))
		if refs(choices) != cse.want || fmt.Sprint(warnings) != cse.warnings {
			t.Errorf("Scope(%s) = %s, %v", cse.patterns, refs(choices), warnings)
		}
	}
	scope, _ := c.Scope([]string{"thinker:low", "plain"})
	for _, cse := range []struct {
		name string
		o    StartOptions
		want string
	}{
		{"saved", StartOptions{Provider: "scripted", Model: "thinker"}, "scripted/thinker"},
		{"saved is gone", StartOptions{Provider: "scripted", Model: "gone"}, "scripted/plain"},
		{"saved is not set up", StartOptions{Provider: "anthropic", Model: "claude-opus-4-5"}, "scripted/plain"},
		{"saved in scope", StartOptions{Scope: scope, Provider: "scripted", Model: "plain"}, "scripted/plain"},
		{"saved outside scope", StartOptions{Scope: scope, Provider: "scripted", Model: "tiny"}, "scripted/thinker:low"},
		{"nothing", StartOptions{}, "scripted/plain"},
	} {
		got, err := c.Start(cse.o)
		if err != nil || refs([]Choice{got}) != cse.want {
			t.Errorf("%s: %v %v", cse.name, got, err)
		}
	}
	if _, err := open(t, "", nil).Start(StartOptions{}); !errors.Is(err, ErrNoModels) {
		t.Errorf("without any key: %v", err)
	}
	got, err := open(t, scripted, map[string]string{"GROQ_API_KEY": "g"}).Start(StartOptions{})
	if err != nil || got.Model.Ref() != "groq/openai/gpt-oss-120b" {
		t.Errorf("built-in default: %v %v", got, err)
	}
}

func TestTableAndSearch(t *testing.T) {
	c := open(t, scripted, nil)
	const want = "" +
		"provider   model              context  max-out  thinking  images\n" +
		"scripted   plain              200K     8K       no        yes   \n" +
		"scripted   thinker            100K     4K       yes       no    \n" +
		"scripted   tiny               20K      1K       no        no    \n" +
		"scripted2  claudish           1.5M     8.2K     yes       yes   \n" +
		"scripted2  claudish-20250101  128K     16.4K    no        no    \n" +
		"scripted2  vendor/thinker     128K     16.4K    no        no    \n"
	if got := Table(c.Available()); got != want {
		t.Errorf("got\n%s", got)
	}
	for query, n := range map[string]int{"": 6, "think": 2, "qqqq": 0, "SCRIPTED2 think": 1, "scripted2/claudish": 2, "tny": 1} {
		if got := Search(c.Available(), query); len(got) != n {
			t.Errorf("%q finds %d, want %d", query, len(got), n)
		}
	}
}

func TestModelsFile(t *testing.T) {
	c := open(t, "\uFEFF"+`{
	// a comment, and a URL in a string
	"providers": {
		"anthropic": {
			"baseUrl": "https://proxy/", /* for all models */
			"compat": {"supportsStrictTools": false, "openRouterRouting": {"only": ["a"], "order": ["x"]}},
			"models": [
				{"id": "claude-opus-4-5", "name": "Mine", "cost": {"input":1,"output":1,"cacheRead":1,"cacheWrite":1}},
				{"id": "new-one", "compat": {"supportsStrictTools": true}},
			],
			"modelOverrides": {
				"claude-sonnet-4-5": {"name": "Renamed", "cost": {"output": 99}, "thinkingLevelMap": {"max": "MAX"}, "promptCache": {"long": 1},
					"compat": {"openRouterRouting": {"only": ["b"]}}, "inputLimits": {"images": {"maxPerRequest": 3}}},
				"not-there": {"name": "x"}
			}
		},
		"local": {"name": "Local", "baseUrl": "http://l", "api": "openai-completions", "apiKey": "none",
			"models": [{"id": "a"}, {"id": "b", "api": "anthropic-messages", "baseUrl": "http://b"}]}
	}
}`, nil)
	if err := c.Problem(); err != nil {
		t.Fatal(err)
	}
	opus := c.Find("anthropic", "claude-opus-4-5")
	if opus.Name != "Mine" || opus.BaseURL != "https://proxy/" || opus.API != apiAnthropic || opus.ContextWindow != defaultContextWindow || opus.Reasoning {
		t.Errorf("a replaced model keeps old members: %+v", opus)
	}
	if m := c.Find("anthropic", "new-one"); m == nil || m.API != apiAnthropic ||
		string(m.Compat) != `{"supportsStrictTools":true,"openRouterRouting":{"only": ["a"], "order": ["x"]}}` {
		t.Errorf("%+v %s", m, m.Compat)
	}
	sonnet := c.Find("anthropic", "claude-sonnet-4-5")
	if sonnet.Name != "Renamed" || sonnet.Cost.Output != 99 || sonnet.Cost.Input != 3 || *sonnet.ThinkingLevelMap["max"] != "MAX" ||
		sonnet.PromptCache.Long != 1 || sonnet.PromptCache.Short != 300 || sonnet.BaseURL != "https://proxy/" ||
		string(sonnet.InputLimits) != `{"images": {"maxPerRequest": 3}}` {
		t.Errorf("%+v", sonnet)
	}
	if want := `{"supportsStrictTools":false,"openRouterRouting":{"only":["b"],"order":["x"]}}`; string(sonnet.Compat) != want {
		t.Errorf("compat %s, want %s", sonnet.Compat, want)
	}
	if builtin := New(Options{}).Find("anthropic", "claude-sonnet-4-5"); builtin.Cost.Output == 99 {
		t.Error("an override reached the built-in data")
	}
	p, ok := c.Provider("LOCAL")
	if !ok || p.Name != "Local" || !c.HasCredentials("local") {
		t.Errorf("%+v", p)
	}
	if m := c.Find("local", "b"); m.API != apiAnthropic || m.BaseURL != "http://b" || m.Name != "b" || m.MaxTokens != defaultMaxTokens {
		t.Errorf("%+v", m)
	}
}

func TestBadModelsFile(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"syntax", "{ broken", "Failed to load models.json: unexpected character (line 1, column 3)"},
		{"no providers", `{}`, "Invalid models.json schema:\n  - /providers: is required (line 1)"},
		{"not an object", `[]`, "Invalid models.json schema:\n  - root: expected an object, found a list (line 1)"},
		{"kinds", "{\"providers\": {\n\"a/b\": {\"baseUrl\": 3,\n\"authHeader\": \"yes\",\n\"models\": [{\"id\":\"x\"},{\n\"name\": \"\", \"input\": [\"sound\"], \"maxTokens\": 0}]}}}",
			"Invalid models.json schema:\n" +
				"  - /providers/a~1b/baseUrl: expected a string, found a number (line 2)\n" +
				"  - /providers/a~1b/authHeader: expected true or false, found a string (line 3)\n" +
				"  - /providers/a~1b/models/1/name: expected a string that is not empty (line 5)\n" +
				"  - /providers/a~1b/models/1/input/0: expected one of text, image (line 5)\n" +
				"  - /providers/a~1b/models/1/maxTokens: expected a number above 0 (line 5)\n" +
				"  - /providers/a~1b/models/1/id: is required (line 4)"},
		{"cost in part", `{"providers":{"x":{"baseUrl":"u","api":"a","models":[{"id":"m","cost":{"input":1,"output":1,"cacheRead":"0"}}]}}}`,
			"Invalid models.json schema:\n" +
				"  - /providers/x/models/0/cost/cacheRead: expected a number, found a string (line 1)\n" +
				"  - /providers/x/models/0/cost/cacheWrite: is required (line 1)"},
		{"compat", `{"providers":{"x":{"baseUrl":"u","compat":{"supportsStore":"no","thinkingFormat":"psychic","unknownFlag":1}}}}`,
			"Invalid models.json schema:\n" +
				"  - /providers/x/compat/supportsStore: expected true or false, found a string (line 1)\n" +
				"  - /providers/x/compat/thinkingFormat: expected one of openai, "},
		{"tokens", `{"providers":{"x":{"baseUrl":"u","api":"a","models":[{"id":"m","contextWindow":1e30,"maxTokens":0.2}]}}}`,
			"Invalid models.json schema:\n" +
				"  - /providers/x/models/0/contextWindow: expected a number of tokens (line 1)\n" +
				"  - /providers/x/models/0/maxTokens: expected a number of tokens (line 1)"},
		{"no effect", `{"providers":{"x":{"name":"X"}}}`, "Invalid models.json:\n  - /providers/x: has no effect"},
		{"unreachable", `{"providers":{"x":{"models":[{"id":"m"}]}}}`,
			"Invalid models.json:\n  - /providers/x/models/0/api: is required, here or for the provider\n  - /providers/x/models/0/baseUrl: is required, here or for the provider"},
		{"nameless", `{"providers":{"":{"apiKey":"k"}}}`, "Invalid models.json:\n  - /providers/: has no name"},
		{"oauth", `{"providers":{"x":{"oauth":"radius","apiKey":"k"}}}`, "Invalid models.json:\n  - /providers/x/baseUrl: is required beside oauth"},
	} {
		cat := open(t, c.text, nil)
		err := cat.Problem()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
		if cat.Find("anthropic", "claude-opus-4-5") == nil {
			t.Errorf("%s: the built-in models are gone", c.name)
		}
	}
}

func TestBlankModelsFile(t *testing.T) {
	for _, text := range []string{" \n", "\uFEFF", "// later\n"} {
		if c := open(t, text, nil); c.Find("openai", "gpt-5.4") == nil || c.Problem() != nil {
			t.Errorf("%q: %v", text, c.Problem())
		}
	}
}

func TestReloadKeepsLastGood(t *testing.T) {
	c := open(t, scripted, nil)
	if c.Find("scripted", "plain") == nil {
		t.Fatal("no model")
	}
	os.WriteFile(c.o.ModelsFile, []byte("{ broken"), 0o600)
	c.Reload()
	if c.Problem() == nil || c.Find("scripted", "plain") == nil {
		t.Errorf("problem %v, model %v", c.Problem(), c.Find("scripted", "plain"))
	}
	os.WriteFile(c.o.ModelsFile, []byte(`{"providers":{}}`), 0o600)
	c.Reload()
	if c.Problem() != nil || c.Find("scripted", "plain") != nil {
		t.Errorf("problem %v, model %v", c.Problem(), c.Find("scripted", "plain"))
	}
}

func TestAdd(t *testing.T) {
	c := open(t, `{"providers":{"demo":{"modelOverrides":{"one":{"name":"Renamed"}}}}}`, nil)
	c.Add(Provider{ID: "demo", Name: "Demo", APIs: []string{"demo-api"}, BaseURL: "demo:", Keyless: true}, &llm.Model{ID: "one"}, &llm.Model{ID: "two"})
	c.Add(Provider{ID: "demo", Name: "Demo", APIs: []string{"demo-api"}, BaseURL: "demo:", Keyless: true}, &llm.Model{ID: "one"})
	models := c.ModelsOf("demo")
	if len(models) != 1 || models[0].Name != "Renamed" || models[0].API != "demo-api" || models[0].Ref() != "demo/one" {
		t.Errorf("%+v", models)
	}
	if m := models[0]; m.ContextWindow != 128000 || m.MaxTokens != 16384 || !slices.Equal(m.Input, []string{"text"}) {
		t.Errorf("a model without limits has %d, %d, %v", m.ContextWindow, m.MaxTokens, m.Input)
	}
	if !c.HasCredentials("demo") || len(c.Available()) != 1 {
		t.Error("a provider that needs no key is not available")
	}
	if a, err := c.Auth(t.Context(), models[0]); err != nil || !a.Key.IsEmpty() || a.BaseURL != "demo:" {
		t.Errorf("%+v %v", a, err)
	}
}

func TestAuth(t *testing.T) {
	const file = `{"providers":{
		"plain": {"baseUrl":"http://p","apiKey":"$KEY","api":"x","headers":{"X-One":"$ONE","X-Two":"lit"},"models":[
			{"id":"m","headers":{"x-two":"model"}},{"id":"n"}],"modelOverrides":{"n":{"headers":{"X-Three":"!three"}}}},
		"bearer": {"baseUrl":"http://p","apiKey":"!token","api":"x","authHeader":true,"models":[{"id":"m"}]},
		"missing": {"baseUrl":"http://p","apiKey":"${NONE}","api":"x","models":[{"id":"m"}]},
		"keyless": {"baseUrl":"http://p","api":"x","models":[{"id":"m"}]},
		"cloudflare-workers-ai": {"models":[{"id":"m"}]}
	}}`
	env := map[string]string{"KEY": "k1", "ONE": "one", "ANTHROPIC_API_KEY": "ak", "CLOUDFLARE_API_KEY": "ck", "CLOUDFLARE_ACCOUNT_ID": "acc"}
	c := open(t, file, env)
	calls := 0
	c.o.Run = func(_ context.Context, command string) (string, error) {
		calls++
		return command + fmt.Sprint(calls), nil
	}
	access := func(provider, id string) (Access, string) {
		t.Helper()
		m := c.Find(provider, id)
		if m == nil {
			t.Fatalf("no model %s/%s", provider, id)
		}
		a, err := c.Auth(t.Context(), m)
		if err != nil {
			return a, err.Error()
		}
		headers := map[string]string{}
		for k, v := range a.Headers {
			if headers[k] = "(none)"; v != nil {
				headers[k] = *v
			}
		}
		var list []string
		for _, k := range slices.Sorted(maps.Keys(headers)) {
			list = append(list, k+"="+headers[k])
		}
		return a, a.Key.Reveal() + " " + a.BaseURL + " " + strings.Join(list, " ")
	}
	for _, cse := range []struct{ provider, id, want string }{
		{"plain", "m", "k1 http://p X-One=one x-two=model"},
		{"plain", "n", "k1 http://p X-One=one X-Three=three1 X-Two=lit"},
		{"bearer", "m", "token2 http://p Authorization=Bearer token2"},
		{"bearer", "m", "token3 http://p Authorization=Bearer token3"}, // resolved for each request
		{"missing", "m", `Failed to resolve API key for provider "missing" from environment variable: NONE`},
		{"keyless", "m", "No API key for provider: keyless"},
		{"anthropic", "claude-opus-4-5", "ak https://api.anthropic.com "},
		{"cloudflare-workers-ai", "m", "ck https://api.cloudflare.com/client/v4/accounts/acc/ai/v1 "},
	} {
		if _, got := access(cse.provider, cse.id); got != cse.want {
			t.Errorf("%s: %s, want %s", cse.provider, got, cse.want)
		}
	}
	env["ANTHROPIC_AUTH_TOKEN"] = "tok"
	if _, got := access("anthropic", "claude-opus-4-5"); got != "tok https://api.anthropic.com Authorization=Bearer tok x-api-key=(none)" {
		t.Error(got)
	}
	c.SetKey("anthropic", auth.NewSecret("run"))
	if a, got := access("anthropic", "claude-opus-4-5"); got != "run https://api.anthropic.com " || a.Source != auth.Runtime {
		t.Error(got)
	}
	delete(env, "ONE")
	if _, got := access("plain", "m"); got != `Failed to resolve header "X-One" of provider "plain" from environment variable: ONE` {
		t.Error(got)
	}
	delete(env, "CLOUDFLARE_ACCOUNT_ID")
	if _, got := access("cloudflare-workers-ai", "m"); !strings.HasSuffix(got, "from environment variable: CLOUDFLARE_ACCOUNT_ID") {
		t.Error(got)
	}
	// A stored key brings its own variables.
	if err := c.o.Store.Set(t.Context(), "cloudflare-workers-ai", &auth.APIKey{Key: auth.NewSecret("sk"), Env: map[string]string{"CLOUDFLARE_ACCOUNT_ID": "own"}}); err != nil {
		t.Fatal(err)
	}
	if a, got := access("cloudflare-workers-ai", "m"); got != "sk https://api.cloudflare.com/client/v4/accounts/own/ai/v1 " || a.Env["CLOUDFLARE_ACCOUNT_ID"] != "own" {
		t.Error(got)
	}
}

// A catalog answers from several goroutines at once.
func TestConcurrentUse(t *testing.T) {
	c := open(t, scripted, map[string]string{"GROQ_API_KEY": "g"})
	done := make(chan int)
	for range 4 {
		go func() {
			c.SetKey("openai", auth.NewSecret("k"))
			n := len(c.Available())
			c.Reload()
			done <- n
		}()
	}
	for range 4 {
		if n := <-done; n == 0 {
			t.Error("no models")
		}
	}
}

func FuzzModelsJSON(f *testing.F) {
	f.Add(scripted)
	f.Add("\uFEFF{\"providers\": {\"a\": /* c */ {\"baseUrl\": \"u\", \"models\": [{\"id\": \"m\", \"api\": \"x\",},],}, // end\n}}")
	f.Add(`{"providers":{"x":{"modelOverrides":{"m":{"cost":{"tiers":[{"inputTokensAbove":1,"input":1,"output":1,"cacheRead":1,"cacheWrite":1}]}}}}}}`)
	f.Add(`{"providers":{"anthropic":{"compat":{"chatTemplateArgs":{}},"modelOverrides":{"claude-opus-4-5":{"compat":{"chatTemplateArgs":{"a":1}},"samplingParamsByThinkingLevel":{"low":{"top_p":1}}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, _, err := readOverlay("models.json", []byte(text))
		if err != nil {
			if file != nil || err.Error() == "" {
				t.Fatal("an error with a result or without words")
			}
			return
		}
		c := New(Options{})
		c.file = file
		if c.usable(file) != nil {
			return
		}
		for _, m := range c.Models() {
			if m.ID == "" || m.Name == "" || m.Provider == "" || m.API == "" {
				t.Fatalf("incomplete model %+v", m)
			}
		}
		c.Resolve("x:high", "")
	})
}

func BenchmarkFind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Options{}).Find("anthropic", "claude-opus-4-5")
	}
}

func Example() {
	c := New(Options{Env: auth.Env{Process: func(name string) string {
		if name == "ANTHROPIC_API_KEY" {
			return "example-key"
		}
		return ""
	}}})
	choice, err := c.Resolve("opus-4-5:high", "anthropic")
	if err != nil {
		fmt.Println(err)
		return
	}
	access, err := c.Auth(context.Background(), choice.Model)
	fmt.Println(choice.Model.Ref(), choice.Level, access.Source, access.Key, err)
	// Output: anthropic/claude-opus-4-5 high environment (hidden) <nil>
}

func TestSecretNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "models.json")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, `{"providers":{"mine":{"baseUrl":"http://x","api":"openai-completions","apiKey":"$MY_KEY","headers":{"a":"x${TEAM_TOKEN}"},
		"models":[{"id":"m","headers":{"b":"$MODEL_TOKEN"}}]}}}`)
	write(filepath.Join(dir, "auth.json"), `{"other":{"type":"api_key","key":"$STORED_NAME"}}`)
	c := New(Options{ModelsFile: file, Store: auth.OpenStore(filepath.Join(dir, "auth.json"), auth.StoreOptions{})})
	names := c.SecretNames()
	for _, want := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "COPILOT_GITHUB_TOKEN", "MY_KEY", "TEAM_TOKEN", "MODEL_TOKEN", "STORED_NAME",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"GEMINI_API_KEY", "GOOGLE_CLOUD_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

func TestLongListsOfProvidersAreCut(t *testing.T) {
	e := &NotFoundError{Pattern: "x"}
	for i := range 24 {
		e.Ambiguous = append(e.Ambiguous, &llm.Model{Provider: fmt.Sprintf("p%02d", i/2), ID: fmt.Sprintf("m-%d", i)})
	}
	want := `Model "x" is ambiguous: p00, p01, p02, p03, p04, p05, p06, p07, p08, p09 and 2 more providers have models that fit. Use --provider to choose one, or name the model whole, such as p00/m-1.`
	if got := e.Error(); got != want {
		t.Error(got)
	}
}

// A run of many requests gets the renewed token from the request on that needs
// it, and hears what a person should know.
func TestRequestsGetRenewedTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	at := time.UnixMilli(1_800_000_000_000)
	entry := fmt.Sprintf(`{"anthropic":{"type":"oauth","access":"sk-ant-oat-0","refresh":"r0","expires":%d,"accountId":"id"}}`, at.Add(time.Hour).UnixMilli())
	if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	now, n := at, 0
	var fail error
	store := auth.OpenStore(path, auth.StoreOptions{
		Now: func() time.Time { return now },
		Refresh: func(_ context.Context, provider string, c *auth.OAuth) (*auth.OAuth, error) {
			if fail != nil {
				return nil, fail
			}
			n++
			next := *c
			next.Access, next.Expires = auth.NewSecret(fmt.Sprintf("sk-ant-oat-%d", n)), now.Add(time.Hour)
			return &next, nil
		},
	})
	c := New(Options{Store: store, Env: auth.Env{Process: func(name string) string {
		if name == "ANTHROPIC_API_KEY" {
			return "not-this"
		}
		return ""
	}}})
	m := &llm.Model{Provider: "anthropic", ID: "m"}
	ask := func(want string, warned bool) {
		t.Helper()
		a, err := c.Auth(t.Context(), m)
		if err != nil || a.Key.Reveal() != want || a.Source != auth.StoredOAuth || a.OAuth.Extra("accountId") != "id" || (a.Warning != nil) != warned {
			t.Errorf("%q %v %v, %v", a.Key.Reveal(), a.Source, a.Warning, err)
		}
	}
	ask("sk-ant-oat-0", false)
	now = now.Add(56 * time.Minute)
	ask("sk-ant-oat-1", false)
	ask("sk-ant-oat-1", false)
	now, fail = now.Add(58*time.Minute), errors.New("the network is down")
	ask("sk-ant-oat-1", true)
	now = now.Add(time.Hour)
	if _, err := c.Auth(t.Context(), m); err == nil || !strings.Contains(err.Error(), "OAuth refresh failed for anthropic: the network is down") {
		t.Errorf("got %v", err)
	}
}

// A file of any size takes time in proportion to it: none of its lists is
// searched for each of their elements.
func TestModelsFileOfAnySize(t *testing.T) {
	const providers, models, flags = 10_000, 10_000, 100_000
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	c := open(t, `{"providers":{`+
		list(providers, `"p%d":{"baseUrl":"http://a","api":"openai-completions","apiKey":"k","models":[{"id":"m"}]}`)+
		`,"p7":{"baseUrl":"http://b","api":"openai-completions","apiKey":"k","models":[{"id":"last"}]}`+
		`,"openrouter":{"apiKey":"k","compat":{`+list(flags, `"x%d":1`)+`}`+
		`,"modelOverrides":{`+list(models, `"m%d":{"maxTokens":7}`)+`,"m0":{"maxTokens":9}}}`+
		`,"own":{"baseUrl":"http://b","api":"openai-completions","apiKey":"k","models":[`+list(models, `{"id":"m%d"}`)+`,{"id":"m0","contextWindow":5}]}`+
		`}}`, nil)
	begin := time.Now()
	if err := c.Problem(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Available()); n < providers+models {
		t.Errorf("%d models", n)
	}
	if m := c.Find("p7", "last"); m == nil || m.BaseURL != "http://b" {
		t.Errorf("of two entries of one provider the last one counts: %+v", m)
	}
	if m := c.Find("own", "m0"); m == nil || m.ContextWindow != 5 {
		t.Errorf("of two entries of one model the last one counts: %+v", m)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
}
