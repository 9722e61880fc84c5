package completions

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func TestVendorsByProviderAndURL(t *testing.T) {
	for _, c := range []struct {
		provider, url string
		want          vendor
	}{
		{"openai", "https://proxy.test", vendorOpenAI},
		{"x", "https://api.openai.com/v1", vendorOpenAI},
		{"x", "https://openrouter.ai/api/v1", vendorOpenRouter},
		{"deepseek", "", vendorDeepSeek},
		{"x", "https://open.bigmodel.cn/api", vendorZai},
		{"zai-coding-cn", "", vendorZai},
		{"x", "https://api.together.xyz/v1", vendorTogether},
		{"moonshotai-cn", "", vendorMoonshot},
		{"x", "https://api.moonshot.cn/v1", vendorMoonshot},
		{"cloudflare-workers-ai", "https://api.cloudflare.com/client/v4", vendorCloudflareWorkers},
		{"x", "https://gateway.ai.cloudflare.com/v1/a/g/compat", vendorCloudflareGateway},
		{"x", "https://integrate.api.nvidia.com/v1", vendorNvidia},
		{"ant-ling", "", vendorAntLing},
		{"x", "https://api.cerebras.ai/v1", vendorCerebras},
		{"xai", "", vendorXAI},
		{"chutes", "https://llm.chutes.ai/v1", vendorChutes},
		{"opencode", "", vendorOpenCode},
		{"opencode-go", "https://mirror.test", 0},
		{"opencode-go", "https://opencode.ai/inference/go/openai/v1", vendorOpenCode},
		{"local", "http://localhost:8000/v1", 0},
	} {
		if got := vendorsOf(c.provider, c.url); got != c.want {
			t.Errorf("%s %s: got %b, want %b", c.provider, c.url, got, c.want)
		}
	}
}

func TestDefaultsByVendor(t *testing.T) {
	summary := func(c Compat) string {
		return fmt.Sprintf("store=%t effort=%t dev=%t long=%t %s %s", c.SupportsStore, c.SupportsReasoningEffort,
			c.SupportsDeveloperRole, c.SupportsLongCacheRetention, c.MaxTokensField, c.ThinkingFormat)
	}
	for provider, want := range map[string]string{
		"openai":                "store=true effort=true dev=true long=true max_completion_tokens openai",
		"local":                 "store=true effort=true dev=false long=true max_completion_tokens openai",
		"openrouter":            "store=true effort=true dev=false long=true max_completion_tokens openrouter",
		"deepseek":              "store=false effort=true dev=false long=true max_tokens deepseek",
		"zai":                   "store=false effort=false dev=false long=true max_tokens zai",
		"together":              "store=false effort=false dev=false long=false max_tokens together",
		"moonshotai":            "store=false effort=false dev=false long=true max_tokens openai",
		"cloudflare-workers-ai": "store=false effort=true dev=false long=false max_completion_tokens openai",
		"cloudflare-ai-gateway": "store=false effort=false dev=false long=false max_tokens openai",
		"nvidia":                "store=false effort=false dev=false long=false max_tokens openai",
		"ant-ling":              "store=false effort=false dev=false long=false max_tokens ant-ling",
		"cerebras":              "store=false effort=true dev=false long=true max_completion_tokens openai",
		"xai":                   "store=false effort=false dev=false long=true max_completion_tokens openai",
		"opencode":              "store=false effort=true dev=false long=true max_completion_tokens openai",
	} {
		if got := summary(DefaultCompat(&llm.Model{Provider: provider})); got != want {
			t.Errorf("%s:\n got %s\nwant %s", provider, got, want)
		}
	}
	or := DefaultCompat(&llm.Model{Provider: "openrouter", ID: "anthropic/x"})
	if or.CacheControlFormat != "anthropic" || !or.SendSessionAffinityHeaders || or.SessionAffinityFormat != "openrouter" {
		t.Errorf("openrouter: %+v", or)
	}
}

func TestFlagsOfTheModelWin(t *testing.T) {
	m := &llm.Model{Provider: "deepseek", Compat: jsontext.Value(
		`{"supportsStore":true,"thinkingFormat":"qwen","maxTokensField":7,"supportsFinishReason":null,"unknown":[1],` +
			`"vllmPriority":0,"openRouterRouting":{"only":["a"]},"requiresReasoningContentOnAssistantMessages":false}`)}
	c := CompatOf(m)
	if !c.SupportsStore || c.ThinkingFormat != FormatQwen || c.RequiresReasoningContentOnAssistantMessages {
		t.Errorf("flags were not taken: %+v", c)
	}
	if c.MaxTokensField != "max_tokens" || !c.SupportsFinishReason {
		t.Errorf("values of another kind were taken: %+v", c)
	}
	if c.VLLMPriority == nil || *c.VLLMPriority != 0 || string(c.OpenRouterRouting) != `{"only":["a"]}` {
		t.Errorf("values: %+v", c)
	}
	m.Compat = jsontext.Value(`{"supportsStore":true`)
	if CompatOf(m).SupportsStore {
		t.Error("flags of a broken object were taken")
	}
}

func TestFlagsAreReadOnce(t *testing.T) {
	a := New(Config{})
	m := &llm.Model{Provider: "x", ID: "m", Compat: jsontext.Value(`{"supportsStore":false}`)}
	first := a.compat(m)
	copied := *m
	copied.Compat = append(jsontext.Value(nil), m.Compat...)
	if a.compat(&copied) != first {
		t.Error("an equal model was read again")
	}
	m.Compat = jsontext.Value(`{"supportsStore":true}`)
	if !a.compat(m).SupportsStore {
		t.Error("changed flags were not read")
	}
	for i := range 3 * maxCompats {
		a.compat(&llm.Model{ID: fmt.Sprint(i)})
	}
	if len(a.compats) > maxCompats {
		t.Errorf("%d entries are kept", len(a.compats))
	}
}
