package catalog

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// documented is the table of built-in providers that the catalogue is to have:
// id, variables that hold the key, wire formats, addresses. An address that ends
// in … begins those of the provider's models.
var documented = []struct{ id, env, apis, addresses string }{
	{"amazon-bedrock", "AWS_BEARER_TOKEN_BEDROCK", "B", "https://bedrock-runtime.…"},
	{"ant-ling", "ANT_LING_API_KEY", "C", "https://api.ant-ling.com/v1"},
	{"anthropic", "ANTHROPIC_AUTH_TOKEN ANTHROPIC_OAUTH_TOKEN ANTHROPIC_API_KEY", "A", "https://api.anthropic.com"},
	{"azure", "AZURE_OPENAI_API_KEY", "Z C", ""},
	{"baseten", "BASETEN_API_KEY", "C", "https://inference.baseten.co/v1"},
	{"cerebras", "CEREBRAS_API_KEY", "C", "https://api.cerebras.ai/v1"},
	{"cloudflare-ai-gateway", "CLOUDFLARE_API_KEY", "A C R",
		"A=https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/anthropic " +
			"C=https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat " +
			"R=https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/openai"},
	{"cloudflare-workers-ai", "CLOUDFLARE_API_KEY", "C", "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1"},
	{"deepseek", "DEEPSEEK_API_KEY", "C", "https://api.deepseek.com"},
	{"fireworks", "FIREWORKS_API_KEY", "A C", "A=https://api.fireworks.ai/inference C=https://api.fireworks.ai/inference/v1"},
	{"github-copilot", "COPILOT_GITHUB_TOKEN", "A C R", "https://api.individual.githubcopilot.com"},
	{"google", "GEMINI_API_KEY", "G", "https://generativelanguage.googleapis.com/v1beta"},
	{"google-vertex", "GOOGLE_CLOUD_API_KEY", "V", "https://{location}-aiplatform.googleapis.com"},
	{"groq", "GROQ_API_KEY", "C", "https://api.groq.com/openai/v1"},
	{"huggingface", "HF_TOKEN", "C", "https://router.huggingface.co/v1"},
	{"kimi-coding", "KIMI_API_KEY", "C", "https://api.kimi.com/coding/v1"},
	{"meta", "META_API_KEY", "R", "https://api.meta.ai/v1"},
	{"minimax", "MINIMAX_API_KEY", "A", "https://api.minimax.io/anthropic"},
	{"minimax-cn", "MINIMAX_CN_API_KEY", "A", "https://api.minimaxi.com/anthropic"},
	{"mistral", "MISTRAL_API_KEY", "M", "https://api.mistral.ai"},
	{"moonshotai", "MOONSHOT_API_KEY", "C", "https://api.moonshot.ai/v1"},
	{"moonshotai-cn", "MOONSHOT_API_KEY", "C", "https://api.moonshot.cn/v1"},
	{"nvidia", "NVIDIA_API_KEY", "C", "https://integrate.api.nvidia.com/v1"},
	{"openai", "OPENAI_API_KEY", "R", "https://api.openai.com/v1"},
	{"openai-codex", "", "X", "https://chatgpt.com/backend-api"},
	{"opencode", "OPENCODE_API_KEY", "A G C R",
		"A=https://opencode.ai/inference/anthropic G=https://opencode.ai/inference/google/v1beta " +
			"C=https://opencode.ai/inference/openai/v1 R=https://opencode.ai/inference/openai/v1"},
	{"opencode-go", "OPENCODE_API_KEY", "A G C R",
		"A=https://opencode.ai/inference/go/anthropic G=https://opencode.ai/inference/go/google/v1beta " +
			"C=https://opencode.ai/inference/go/openai/v1 R=https://opencode.ai/inference/go/openai/v1"},
	{"openrouter", "OPENROUTER_API_KEY", "A C", "A=https://openrouter.ai/api C=https://openrouter.ai/api/v1"},
	{"qwen-token-plan", "QWEN_TOKEN_PLAN_TEAM_API_KEY QWEN_TOKEN_PLAN_API_KEY", "C", "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1"},
	{"qwen-token-plan-cn", "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY QWEN_TOKEN_PLAN_CN_API_KEY", "C", "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1"},
	{"qwen-token-plan-individual", "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY QWEN_TOKEN_PLAN_API_KEY", "C", "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1"},
	{"qwen-token-plan-individual-cn", "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY QWEN_TOKEN_PLAN_CN_API_KEY", "C", "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1"},
	{"radius", "RADIUS_API_KEY", "P", "https://radius.pi.dev/v1"},
	{"together", "TOGETHER_API_KEY", "C", "https://api.together.ai/v1"},
	{"vercel-ai-gateway", "AI_GATEWAY_API_KEY", "A", "https://ai-gateway.vercel.sh"},
	{"xai", "XAI_API_KEY", "R", "https://api.x.ai/v1"},
	{"xiaomi", "XIAOMI_API_KEY", "C", "https://api.xiaomimimo.com/v1"},
	{"xiaomi-token-plan-cn", "XIAOMI_TOKEN_PLAN_CN_API_KEY", "C", "https://token-plan-cn.xiaomimimo.com/v1"},
	{"xiaomi-token-plan-ams", "XIAOMI_TOKEN_PLAN_AMS_API_KEY", "C", "https://token-plan-ams.xiaomimimo.com/v1"},
	{"xiaomi-token-plan-sgp", "XIAOMI_TOKEN_PLAN_SGP_API_KEY", "C", "https://token-plan-sgp.xiaomimimo.com/v1"},
	{"zai", "ZAI_API_KEY", "C", "https://api.z.ai/api/coding/paas/v4"},
	{"zai-coding-cn", "ZAI_CODING_CN_API_KEY", "C", "https://open.bigmodel.cn/api/coding/paas/v4"},
	{"typesafe", "TYPESAFE_API_KEY", "", "https://api.typesafe.ai/v1/"},
}

var shortAPIs = map[string]string{
	"A": apiAnthropic, "C": apiCompletions, "R": apiResponses, "Z": apiAzure, "X": apiCodex,
	"G": apiGoogle, "V": apiVertex, "B": apiBedrock, "M": apiMistral, "P": apiPi,
}

func TestDocumentedProviders(t *testing.T) {
	c := New(Options{})
	if got := len(c.Providers()); got != len(documented) {
		t.Errorf("%d providers, %d are documented", got, len(documented))
	}
	for _, d := range documented {
		p, ok := c.Provider(d.id)
		if !ok {
			t.Errorf("no provider %s", d.id)
			continue
		}
		if got := strings.Join(p.Env, " "); got != d.env {
			t.Errorf("%s has the variables %q, want %q", d.id, got, d.env)
		}
		var apis []string
		for short := range strings.FieldsSeq(d.apis) {
			apis = append(apis, shortAPIs[short])
		}
		got := slices.Sorted(slices.Values(p.APIs))
		if slices.Sort(apis); !slices.Equal(got, apis) {
			t.Errorf("%s speaks %v, want %v", d.id, got, apis)
		}
		for _, api := range apis {
			f := readBuiltin(p.ID)
			address := f.blank(&p, api).BaseURL
			want := d.addresses
			for field := range strings.FieldsSeq(d.addresses) {
				if short, a, ok := strings.Cut(field, "="); ok && shortAPIs[short] == api {
					want = a
				}
			}
			if begin, ok := strings.CutSuffix(want, "…"); address != want && !(ok && strings.HasPrefix(address, begin)) {
				t.Errorf("%s has for %s the address %s, want %s", d.id, api, address, want)
			}
		}
		// A model that nobody has heard of works with each provider that chats.
		if d.apis != "" {
			choice, err := c.Resolve(d.id+"/some-new-model:high", "")
			if err != nil || choice.Model.ID != "some-new-model" || choice.Model.Provider != d.id || choice.Warning == "" || choice.Level != llm.LevelHigh {
				t.Errorf("%s: %+v, %v", d.id, choice.Model, err)
			}
		}
	}
}

// The flags that vendors need beyond what a wire format finds out by itself.
func TestVendorFlags(t *testing.T) {
	c := New(Options{})
	flag := func(m *llm.Model, name string) string { return string(jsonwire.Get(m.Compat, name)) }
	each := func(provider, api, flagName, want string) {
		t.Helper()
		n := 0
		for _, m := range c.ModelsOf(provider) {
			if m.API != api {
				continue
			}
			n++
			if got := flag(m, flagName); got != want {
				t.Errorf("%s has %s %s, want %s", m.Ref(), flagName, got, want)
			}
		}
		if n == 0 {
			t.Errorf("%s has no models of %s", provider, api)
		}
	}
	each("anthropic", apiAnthropic, "supportsStrictTools", "true")
	each("openai", apiResponses, "supportsStrictMode", "true")
	each("vercel-ai-gateway", apiAnthropic, "allowEmptySignature", "true")
	each("opencode", apiResponses, "sessionAffinityFormat", `"openai-nosession"`)
	each("kimi-coding", apiCompletions, "requiresReasoningContentOnAssistantMessages", "true")
	each("xiaomi", apiCompletions, "requiresReasoningContentOnAssistantMessages", "true")
	for _, cse := range []struct{ ref, flag, want string }{
		{"anthropic/claude-opus-4-8", "forceAdaptiveThinking", "true"},
		{"anthropic/claude-opus-4-8", "supportsTemperature", "false"},
		{"anthropic/claude-opus-5", "forceAdaptiveThinking", "true"},
		{"anthropic/claude-sonnet-4-6", "forceAdaptiveThinking", "true"},
		{"anthropic/claude-sonnet-4-6", "supportsTemperature", ""},
		{"anthropic/claude-sonnet-4-5", "forceAdaptiveThinking", ""},
		{"cloudflare-ai-gateway/claude-opus-4-8", "forceAdaptiveThinking", "true"},
		{"github-copilot/claude-opus-4.8", "forceAdaptiveThinking", "true"},
		{"vercel-ai-gateway/anthropic/claude-opus-4.8", "forceAdaptiveThinking", "true"},
		{"moonshotai/kimi-k2.6", "requiresReasoningContentOnAssistantMessages", "true"},
		{"moonshotai/kimi-k3", "requiresReasoningContentOnAssistantMessages", "true"},
		{"zai/glm-5.2", "zaiToolStream", "true"},
		{"zai/glm-4.5", "zaiToolStream", ""},
		{"openai/gpt-5.5", "supportsOpenAIGrammarTools", "true"},
		{"openai/gpt-4o", "supportsOpenAIGrammarTools", ""},
		{"openai/gpt-6-sol", "supportsOpenAIGrammarTools", "true"},
		{"openai/gpt-6-sol", "supportsExplicitPromptCacheMode", "true"},
		{"openai/gpt-5.6-sol", "supportsExplicitPromptCacheMode", "true"},
		{"openai/gpt-5.5", "supportsExplicitPromptCacheMode", ""},
		{"azure/gpt-6-sol", "supportsOpenAIGrammarTools", "true"},
		{"anthropic/claude-opus-5-5", "supportsMidConvoToolChanges", "true"},
		{"anthropic/claude-opus-4-7", "supportsMidConvoToolChanges", ""},
		// Models that bind their thinking to what stands before it.
		{"anthropic/claude-opus-5-5", "supportsMidConvoEffort", "true"},
		{"anthropic/claude-fable-5-1", "supportsMidConvoEffort", "true"},
		{"opencode/claude-sonnet-5-5", "supportsMidConvoEffort", "true"},
		{"anthropic/claude-opus-5", "supportsMidConvoEffort", ""},
		{"cloudflare-ai-gateway/claude-opus-5-5", "supportsMidConvoToolChanges", ""},
		{"github-copilot/claude-haiku-4.5", "supportsEagerToolInputStreaming", "false"},
		{"zai/glm-5.3", "supportsReasoningEffort", "true"},
		{"moonshotai/kimi-k3", "supportsReasoningEffort", "true"},
		{"moonshotai/kimi-k2.6", "thinkingFormat", `"deepseek"`},
		{"xiaomi/mimo-v2.6-pro", "thinkingFormat", `"deepseek"`},
		// Unknown models of a provider have what all its models have.
		{"qwen-token-plan/glm-5.2", "supportsReasoningEffort", "true"},
		{"qwen-token-plan/qwen3.8-max", "supportsReasoningEffort", "false"},
		{"qwen-token-plan/qwen-next", "thinkingFormat", `"qwen"`},
		{"qwen-token-plan-individual-cn/qwen-next", "thinkingFormat", `"qwen"`},
	} {
		choice, err := c.Resolve(cse.ref, "")
		if err != nil {
			t.Errorf("%s: %v", cse.ref, err)
		} else if got := flag(choice.Model, cse.flag); got != cse.want {
			t.Errorf("%s has %s %s, want %s", cse.ref, cse.flag, got, cse.want)
		}
	}
	if m := c.ModelsOf("nvidia")[0]; m.Headers["NVCF-POLL-SECONDS"] != "3600" {
		t.Errorf("%s has the headers %v", m.Ref(), m.Headers)
	}
	// A gateway speaks to each vendor as that vendor is spoken to.
	for ref, api := range map[string]string{
		"opencode/claude-next-9": apiAnthropic, "opencode/gemini-9": apiGoogle, "opencode/gpt-9-x": apiResponses, "opencode/glm-9": apiCompletions,
		"cloudflare-ai-gateway/gpt-9-x": apiResponses, "cloudflare-ai-gateway/claude-next-9": apiAnthropic,
	} {
		choice, err := c.Resolve(ref, "")
		if err != nil || choice.Model.API != api {
			t.Errorf("%s speaks %s, want %s (%v)", ref, choice.Model.API, api, err)
		}
	}
}

// What a family of models needs goes with it to every service, however that
// spells its ids. New versions are covered before they are listed.
func TestFamilies(t *testing.T) {
	newClaude := regexp.MustCompile(`claude-(opus-4[.-][6-9]|sonnet-4[.-]6|(opus|sonnet|haiku|fable|mythos)-[5-9])`)
	steady := regexp.MustCompile(`claude-(opus-4|sonnet-4)[.-]6`) // takes a temperature
	alwaysThinks := regexp.MustCompile(`claude-((opus|sonnet)-5[.-][5-9]|fable|mythos)|gpt-6(-astra|[.-][1-9])|glm-5[.p]3|kimi-k3|gemini-[4-9]`)
	newGPT := regexp.MustCompile(`^gpt-[6-9]`)
	c := New(Options{})
	found := map[string]int{}
	for _, p := range c.Providers() {
		for _, m := range c.ModelsOf(p.ID) {
			id := strings.ToLower(m.ID)
			flag := func(name string) string { return string(jsonwire.Get(m.Compat, name)) }
			if newClaude.MatchString(id) {
				found["claude"]++
				levels := m.SupportedLevels()
				if !m.Reasoning || !slices.Contains(levels, llm.LevelMax) || slices.Contains(levels, llm.LevelXHigh) == steady.MatchString(id) {
					t.Errorf("%s thinks at %v", m.Ref(), levels)
				}
				if m.API == apiAnthropic && flag("forceAdaptiveThinking") != "true" {
					t.Errorf("%s does not think adaptively", m.Ref())
				}
				if m.API == apiAnthropic && (flag("supportsTemperature") == "false") == steady.MatchString(id) {
					t.Errorf("%s: supportsTemperature is %q", m.Ref(), flag("supportsTemperature"))
				}
			}
			// Through the one endpoint of Vercel's, thinking is the gateway's business.
			if alwaysThinks.MatchString(id) && (m.Provider != "vercel-ai-gateway" || strings.HasPrefix(id, "anthropic/")) {
				found["always"]++
				if !m.Reasoning || slices.Contains(m.SupportedLevels(), llm.LevelOff) {
					t.Errorf("%s does without thinking", m.Ref())
				}
			}
			if newGPT.MatchString(id) {
				found["gpt"]++
				if !strings.HasSuffix(m.API, "-responses") {
					t.Errorf("%s speaks %s", m.Ref(), m.API)
				}
			}
		}
	}
	for _, kind := range []string{"claude", "always", "gpt"} {
		if found[kind] < 20 {
			t.Errorf("only %d models of the kind %s", found[kind], kind)
		}
	}
}

// Facts of a few models whose prices and levels are certain: what the generator
// makes of its sources.
func TestFacts(t *testing.T) {
	c := New(Options{})
	for _, cse := range []struct {
		ref    string
		rates  llm.Rates
		window int
		limit  int
		levels string
	}{
		{"anthropic/claude-opus-4-8", llm.Rates{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25}, 1_000_000, 128_000, "off minimal low medium high xhigh max"},
		{"anthropic/claude-opus-5", llm.Rates{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25}, 1_000_000, 128_000, "off minimal low medium high xhigh max"},
		{"openai/gpt-5", llm.Rates{Input: 1.25, Output: 10, CacheRead: 0.125}, 400_000, 128_000, "minimal low medium high"},
		{"openai/gpt-5.4", llm.Rates{Input: 2.5, Output: 15, CacheRead: 0.25}, 1_050_000, 128_000, "off low medium high xhigh"},
		{"openai/gpt-4o", llm.Rates{Input: 2.5, Output: 10, CacheRead: 1.25}, 128_000, 16_384, "off"},
		{"google/gemini-2.5-pro", llm.Rates{Input: 1.25, Output: 10, CacheRead: 0.125}, 1_048_576, 65_536, "minimal low medium high"},
		{"amazon-bedrock/us.anthropic.claude-opus-4-8", llm.Rates{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25}, 1_000_000, 128_000, "off minimal low medium high xhigh max"},
		{"mistral/mistral-medium-2604", llm.Rates{Input: 1.5, Output: 7.5}, 262_144, 262_144, "off high"},
		{"deepseek/deepseek-v4-pro", llm.Rates{Input: 0.435, Output: 0.87, CacheRead: 0.003625}, 1_000_000, 384_000, "off high max"},
		{"anthropic/claude-opus-5-5", llm.Rates{Input: 4, Output: 20, CacheRead: 0.2, CacheWrite: 5}, 1_000_000, 128_000, "minimal low medium high xhigh max"},
		{"anthropic/claude-sonnet-5", llm.Rates{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}, 1_000_000, 128_000, "off minimal low medium high xhigh max"},
		{"amazon-bedrock/global.anthropic.claude-opus-5-5", llm.Rates{Input: 4, Output: 20, CacheRead: 0.2, CacheWrite: 5}, 1_000_000, 128_000, "minimal low medium high xhigh max"},
		{"openai/gpt-5-mini", llm.Rates{Input: 0.25, Output: 2, CacheRead: 0.025}, 400_000, 128_000, "minimal low medium high"},
		{"openai/gpt-6-luna", llm.Rates{Input: 0.1, Output: 0.5, CacheRead: 0.01, CacheWrite: 0.125}, 1_050_000, 128_000, "off low medium high xhigh max"},
		{"openai/gpt-6.1-sol", llm.Rates{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5}, 1_050_000, 128_000, "low medium high xhigh max"},
		{"openrouter/openai/gpt-6.1-sol", llm.Rates{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5}, 1_050_000, 64_000, "low medium high xhigh max"},
		{"google-vertex/gemini-4-argon", llm.Rates{Input: 2, Output: 10, CacheRead: 0.1}, 1_048_576, 65_536, "low medium high"},
		{"xai/grok-4.7", llm.Rates{Input: 2, Output: 6, CacheRead: 0.5}, 500_000, 500_000, "low medium high"},
		{"zai/glm-5.3", llm.Rates{Input: 1.4, Output: 4.4, CacheRead: 0.26}, 1_000_000, 131_072, "low high max"},
		{"meta/muse-spark-1.3", llm.Rates{Input: 1.25, Output: 4.25, CacheRead: 0.15}, 1_048_576, 131_072, "minimal low medium high xhigh"},
		{"cloudflare-workers-ai/@cf/openai/gpt-oss-120b", llm.Rates{Input: 0.35, Output: 0.75}, 128_000, 16_384, "low medium high"},
	} {
		provider, id, _ := strings.Cut(cse.ref, "/")
		m := c.Find(provider, id)
		if m == nil {
			t.Errorf("no model %s", cse.ref)
			continue
		}
		rates := m.Cost
		rates.Tiers = nil
		var levels []string
		for _, l := range m.SupportedLevels() {
			levels = append(levels, string(l))
		}
		if fmt.Sprint(rates) != fmt.Sprint(cse.rates) || m.ContextWindow != cse.window || m.MaxTokens != cse.limit || strings.Join(levels, " ") != cse.levels {
			t.Errorf("%s: %+v, %d, %d, %v", cse.ref, rates, m.ContextWindow, m.MaxTokens, levels)
		}
	}
	if m := c.Find("openai", "gpt-5.5"); len(m.Cost.Tiers) != 1 || m.Cost.Tiers[0] != (llm.RateTier{InputTokensAbove: 272_000, Input: 10, Output: 45, CacheRead: 1}) {
		t.Errorf("%+v", m.Cost)
	}
	// A tier that no source states comes from the family.
	if m := c.Find("azure", "gpt-6-sol"); len(m.Cost.Tiers) != 1 || m.Cost.Tiers[0] != (llm.RateTier{InputTokensAbove: 272_000, Input: 4, Output: 15, CacheRead: 0.4, CacheWrite: 5}) {
		t.Errorf("%+v", m.Cost)
	}
}

func TestAmbientCredentials(t *testing.T) {
	adc := t.TempDir() + "/adc.json"
	if err := os.WriteFile(adc, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cse := range []struct {
		provider string
		env      map[string]string
		want     bool
	}{
		{"amazon-bedrock", nil, false},
		{"amazon-bedrock", map[string]string{"AWS_PROFILE": "work"}, true},
		{"amazon-bedrock", map[string]string{"AWS_ACCESS_KEY_ID": "a"}, false},
		{"amazon-bedrock", map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, true},
		{"amazon-bedrock", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "t"}, true},
		{"google-vertex", map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}, false},
		{"google-vertex", map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_APPLICATION_CREDENTIALS": adc}, false},
		{"google-vertex", map[string]string{"GCLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "GOOGLE_APPLICATION_CREDENTIALS": adc}, true},
		{"google-vertex", map[string]string{"GOOGLE_CLOUD_API_KEY": "k"}, true},
		{"anthropic", map[string]string{"AWS_PROFILE": "work"}, false},
		{"anthropic", map[string]string{"ANTHROPIC_FEDERATION_RULE_ID": "r", "ANTHROPIC_ORGANIZATION_ID": "o"}, false},
		{"anthropic", map[string]string{"ANTHROPIC_FEDERATION_RULE_ID": "r", "ANTHROPIC_ORGANIZATION_ID": "o", "ANTHROPIC_IDENTITY_TOKEN_FILE": "f"}, true},
		{"anthropic", map[string]string{"ANTHROPIC_FEDERATION_RULE_ID": "r", "ANTHROPIC_ORGANIZATION_ID": "o", "ANTHROPIC_IDENTITY_TOKEN": "t"}, true},
	} {
		c := New(Options{Env: auth.Env{Process: func(name string) string { return cse.env[name] }}})
		if got := c.HasCredentials(cse.provider); got != cse.want {
			t.Errorf("%s with %v is set up: %v", cse.provider, cse.env, got)
		}
		_, err := c.Auth(t.Context(), c.ModelsOf(cse.provider)[0])
		// A machine of the cloud may have credentials that no variable names.
		if p, _ := c.Provider(cse.provider); (err == nil) != (cse.want || p.Machine) {
			t.Errorf("%s with %v: %v", cse.provider, cse.env, err)
		}
	}
}

// Variables that are stored for a provider count as if they were set.
func TestStoredVariables(t *testing.T) {
	c := open(t, "", nil)
	for provider, env := range map[string]map[string]string{
		"amazon-bedrock": {"AWS_PROFILE": "work"},
		"anthropic":      {"ANTHROPIC_AUTH_TOKEN": "tok"},
	} {
		if err := c.o.Store.Set(t.Context(), provider, &auth.APIKey{Env: env}); err != nil {
			t.Fatal(err)
		}
		a, err := c.Auth(t.Context(), c.ModelsOf(provider)[0])
		if err != nil || !c.HasCredentials(provider) || len(a.Env) != 1 {
			t.Errorf("%s: %v, %v", provider, a.Env, err)
		}
		if h := a.Headers["Authorization"]; provider == "anthropic" && (h == nil || *h != "Bearer tok") {
			t.Errorf("%s: the token is not sent as one", provider)
		}
	}
}

// A flag of a wire format may be set for all models of a provider.
func TestProviderFlagInModelsFile(t *testing.T) {
	c := open(t, `{"providers":{
		"anthropic": {"compat": {"claudeCodeToolNames": true}, "modelOverrides": {"claude-haiku-4-5": {"compat": {"claudeCodeToolNames": false}}}},
		"mine": {"baseUrl": "http://m", "api": "anthropic-messages", "apiKey": "k", "compat": {"claudeCodeToolNames": true}, "models": [{"id": "one"}]}
	}}`, nil)
	if err := c.Problem(); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"anthropic/claude-opus-4-8": "true", "anthropic/claude-haiku-4-5": "false", "mine/one": "true", "anthropic/unheard-of": "true",
	} {
		choice, err := c.Resolve(ref, "")
		if err != nil || string(jsonwire.Get(choice.Model.Compat, "claudeCodeToolNames")) != want {
			t.Errorf("%s: %s, %v", ref, choice.Model.Compat, err)
		}
	}
	if bad := open(t, `{"providers":{"mine":{"baseUrl":"http://m","compat":{"claudeCodeToolNames":"yes"}}}}`, nil); bad.Problem() == nil {
		t.Error("a word is taken for a flag")
	}
}

// The user's page lists every provider with its variables.
func TestDocumentationListsProviders(t *testing.T) {
	page, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "<!-- providers -->\n")
	table, _, closed := strings.Cut(table, "<!-- /providers -->")
	if !found || !closed {
		t.Fatal("docs/models.md has no table of providers")
	}
	if want := providerTable(); table != want {
		t.Errorf("the table of providers in docs/models.md is not what the code has; it should be\n%s", want)
	}
}

// providerTable is the table of docs/models.md.
func providerTable() string {
	var b strings.Builder
	b.WriteString("| provider | variables | wire formats | default model |\n|---|---|---|---|\n")
	c := New(Options{})
	for _, p := range c.Providers() {
		var vars, apis []string
		for _, v := range p.Env {
			vars = append(vars, "`"+v+"`")
		}
		addresses := p.BaseURL
		for _, name := range regexp.MustCompile(`\{[A-Z_]+\}`).FindAllString(addresses, -1) {
			vars = append(vars, "`"+strings.Trim(name, "{}")+"`")
		}
		switch {
		case p.Machine:
			vars = append(vars, "or the cloud's own credentials")
		case p.Ambient != nil:
			vars = append(vars, "or a workload identity")
		}
		if vars == nil {
			vars = []string{"a login only"}
		}
		for _, a := range p.APIs {
			apis = append(apis, "`"+a+"`")
		}
		if apis == nil {
			apis = []string{"no chat models"}
		}
		model := "none listed"
		if p.DefaultModel != "" {
			model = "`" + p.DefaultModel + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.ID, strings.Join(vars, ", "), strings.Join(apis, ", "), model)
	}
	return b.String()
}

// A search by name sees what the whole lists hold.
func TestNames(t *testing.T) {
	c := New(Options{})
	for _, p := range c.Providers() {
		names := builtinNames(p.ID)
		models := builtinModels(&p)
		if len(names) != len(models) {
			t.Errorf("%s: %d names of %d models", p.ID, len(names), len(models))
			continue
		}
		for i, m := range models {
			if n := names[i]; n.Ref() != m.Ref() || n.Name != m.Name || n.API != m.API {
				t.Errorf("%+v stands for %+v", n, m)
			}
		}
	}
}

// Lists of one provider cost nothing for the others.
func TestOneProviderIsDecoded(t *testing.T) {
	c := New(Options{})
	c.Find("anthropic", "claude-opus-4-8")
	if len(c.built) != 1 {
		t.Errorf("%d providers were decoded for one model", len(c.built))
	}
	if choice, err := c.Resolve("anthropic/claude-opus-4-8:high", ""); err != nil || choice.Model.Cost.Output != 25 || len(c.built) != 1 {
		t.Errorf("%+v, %v, %d providers decoded", choice.Model, err, len(c.built))
	}
}

func TestEmbeddedSize(t *testing.T) {
	entries, err := data.ReadDir("models")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if budget := int64(1_200_000); total > budget {
		t.Errorf("the built-in lists have %d bytes, the budget is %d", total, budget)
	}
}

func BenchmarkResolve(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Options{}).Resolve("anthropic/claude-opus-4-8:high", ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTableOfAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Table(New(Options{}).Models())
	}
}
