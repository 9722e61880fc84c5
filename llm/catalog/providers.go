package catalog

import (
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// Wire formats, by the names that models refer to.
const (
	apiAnthropic   = "anthropic-messages"
	apiCompletions = "openai-completions"
	apiResponses   = "openai-responses"
	apiAzure       = "azure-openai-responses"
	apiCodex       = "openai-codex-responses"
	apiGoogle      = "google-generative-ai"
	apiVertex      = "google-vertex"
	apiBedrock     = "bedrock-converse-stream"
	apiMistral     = "mistral-conversations"
	apiPi          = "pi-messages"
)

// builtinRows describes the providers known without any file, in the order in
// which a start without a choice tries them: vendors of own models first. Lists
// are words with blanks between.
type builtinRow struct{ id, name, env, apis, baseURL, model string }

var builtinRows = [...]builtinRow{
	{"anthropic", "Anthropic", "ANTHROPIC_AUTH_TOKEN ANTHROPIC_OAUTH_TOKEN ANTHROPIC_API_KEY", apiAnthropic, "https://api.anthropic.com", "claude-opus-5-5"},
	{"openai", "OpenAI", "OPENAI_API_KEY", apiResponses, "https://api.openai.com/v1", "gpt-5.5"},
	{"openai-codex", "OpenAI Codex", "", apiCodex, "https://chatgpt.com/backend-api", "gpt-5.5"},
	{"google", "Google Gemini", "GEMINI_API_KEY", apiGoogle, "https://generativelanguage.googleapis.com/v1beta", "gemini-4-argon"},
	{"google-vertex", "Google Vertex AI", "GOOGLE_CLOUD_API_KEY", apiVertex, "https://{location}-aiplatform.googleapis.com", "gemini-4-argon"},
	{"amazon-bedrock", "Amazon Bedrock", "AWS_BEARER_TOKEN_BEDROCK", apiBedrock, "https://bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-opus-5-5"},
	{"azure", "Azure OpenAI", "AZURE_OPENAI_API_KEY", apiAzure + " " + apiCompletions, "", "gpt-5.5"},
	{"github-copilot", "GitHub Copilot", "COPILOT_GITHUB_TOKEN", apiAnthropic + " " + apiCompletions + " " + apiResponses, "https://api.individual.githubcopilot.com", "gpt-6.1-sol"},
	{"openrouter", "OpenRouter", "OPENROUTER_API_KEY", apiCompletions + " " + apiAnthropic, "https://openrouter.ai/api/v1", "moonshotai/kimi-k2.7-code"},
	{"xai", "xAI", "XAI_API_KEY", apiResponses, "https://api.x.ai/v1", "grok-4.7"},
	{"groq", "Groq", "GROQ_API_KEY", apiCompletions, "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"},
	{"cerebras", "Cerebras", "CEREBRAS_API_KEY", apiCompletions, "https://api.cerebras.ai/v1", "gpt-oss-120b"},
	{"deepseek", "DeepSeek", "DEEPSEEK_API_KEY", apiCompletions, "https://api.deepseek.com", "deepseek-v4-pro"},
	{"moonshotai", "Moonshot AI", "MOONSHOT_API_KEY", apiCompletions, "https://api.moonshot.ai/v1", "kimi-k2.7-code"},
	{"moonshotai-cn", "Moonshot AI (China)", "MOONSHOT_API_KEY", apiCompletions, "https://api.moonshot.cn/v1", "kimi-k2.7-code"},
	{"kimi-coding", "Kimi Coding", "KIMI_API_KEY", apiCompletions, "https://api.kimi.com/coding/v1", "kimi-for-coding"},
	{"zai", "Z.ai", "ZAI_API_KEY", apiCompletions, "https://api.z.ai/api/coding/paas/v4", "glm-5.3"},
	{"zai-coding-cn", "Z.ai Coding (China)", "ZAI_CODING_CN_API_KEY", apiCompletions, "https://open.bigmodel.cn/api/coding/paas/v4", "glm-5.3"},
	{"together", "Together AI", "TOGETHER_API_KEY", apiCompletions, "https://api.together.ai/v1", "moonshotai/Kimi-K2.6"},
	{"mistral", "Mistral", "MISTRAL_API_KEY", apiMistral, "https://api.mistral.ai", "mistral-medium-2604"},
	{"fireworks", "Fireworks", "FIREWORKS_API_KEY", apiAnthropic + " " + apiCompletions, "https://api.fireworks.ai/inference", "accounts/fireworks/models/kimi-k3"},
	{"huggingface", "Hugging Face", "HF_TOKEN", apiCompletions, "https://router.huggingface.co/v1", "moonshotai/Kimi-K2.7-Code"},
	{"baseten", "Baseten", "BASETEN_API_KEY", apiCompletions, "https://inference.baseten.co/v1", "zai-org/GLM-5.3"},
	{"nvidia", "NVIDIA", "NVIDIA_API_KEY", apiCompletions, "https://integrate.api.nvidia.com/v1", "nvidia/nemotron-3-ultra-550b-a55b"},
	{"minimax", "MiniMax", "MINIMAX_API_KEY", apiAnthropic, "https://api.minimax.io/anthropic", "MiniMax-M3"},
	{"minimax-cn", "MiniMax (China)", "MINIMAX_CN_API_KEY", apiAnthropic, "https://api.minimaxi.com/anthropic", "MiniMax-M3"},
	{"meta", "Meta", "META_API_KEY", apiResponses, "https://api.meta.ai/v1", "muse-spark-1.3"},
	{"ant-ling", "Ant Ling", "ANT_LING_API_KEY", apiCompletions, "https://api.ant-ling.com/v1", ""},
	{"vercel-ai-gateway", "Vercel AI Gateway", "AI_GATEWAY_API_KEY", apiAnthropic, "https://ai-gateway.vercel.sh", "zai/glm-5.3"},
	{"cloudflare-ai-gateway", "Cloudflare AI Gateway", "CLOUDFLARE_API_KEY", apiAnthropic + " " + apiCompletions + " " + apiResponses, "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/", "claude-opus-4-8"},
	{"cloudflare-workers-ai", "Cloudflare Workers AI", "CLOUDFLARE_API_KEY", apiCompletions, "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1", "@cf/zai-org/glm-5.2"},
	{"opencode", "OpenCode Zen", "OPENCODE_API_KEY", apiAnthropic + " " + apiGoogle + " " + apiCompletions + " " + apiResponses, "https://opencode.ai/inference/openai/v1", "kimi-k2.7-code"},
	{"opencode-go", "OpenCode Go", "OPENCODE_API_KEY", apiAnthropic + " " + apiGoogle + " " + apiCompletions + " " + apiResponses, "https://opencode.ai/inference/go/openai/v1", "kimi-k2.7-code"},
	{"qwen-token-plan", "Qwen Token Plan", "QWEN_TOKEN_PLAN_TEAM_API_KEY QWEN_TOKEN_PLAN_API_KEY", apiCompletions, "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1", "qwen3.8-max"},
	{"qwen-token-plan-cn", "Qwen Token Plan (China)", "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY QWEN_TOKEN_PLAN_CN_API_KEY", apiCompletions, "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1", "qwen3.8-max"},
	{"qwen-token-plan-individual", "Qwen Token Plan (individual)", "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY QWEN_TOKEN_PLAN_API_KEY", apiCompletions, "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1", "qwen3.8-max"},
	{"qwen-token-plan-individual-cn", "Qwen Token Plan (individual, China)", "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY QWEN_TOKEN_PLAN_CN_API_KEY", apiCompletions, "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1", "qwen3.8-max"},
	{"xiaomi", "Xiaomi MiMo", "XIAOMI_API_KEY", apiCompletions, "https://api.xiaomimimo.com/v1", "mimo-v2.6-pro"},
	{"xiaomi-token-plan-cn", "Xiaomi Token Plan (China)", "XIAOMI_TOKEN_PLAN_CN_API_KEY", apiCompletions, "https://token-plan-cn.xiaomimimo.com/v1", "mimo-v2.6-pro"},
	{"xiaomi-token-plan-ams", "Xiaomi Token Plan (Amsterdam)", "XIAOMI_TOKEN_PLAN_AMS_API_KEY", apiCompletions, "https://token-plan-ams.xiaomimimo.com/v1", "mimo-v2.6-pro"},
	{"xiaomi-token-plan-sgp", "Xiaomi Token Plan (Singapore)", "XIAOMI_TOKEN_PLAN_SGP_API_KEY", apiCompletions, "https://token-plan-sgp.xiaomimimo.com/v1", "mimo-v2.6-pro"},
	{"radius", "Radius", "RADIUS_API_KEY", apiPi, "https://radius.pi.dev/v1", ""},
	{"typesafe", "Typesafe", "TYPESAFE_API_KEY", "", "https://api.typesafe.ai/v1/", ""},
}

func (row *builtinRow) provider() Provider {
	p := Provider{
		ID: row.id, Name: row.name, Env: strings.Fields(row.env), APIs: strings.Fields(row.apis),
		BaseURL: row.baseURL, DefaultModel: row.model,
	}
	switch p.ID {
	case "anthropic":
		p.BearerEnv = []string{"ANTHROPIC_AUTH_TOKEN"}
		for _, token := range []string{"ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_IDENTITY_TOKEN"} {
			p.Ambient = append(p.Ambient, []string{"ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", token})
			p.SecretEnv = append(p.SecretEnv, token)
		}
	case "openrouter":
		p.ModelsURL = "https://openrouter.ai/api/v1/models"
	case "amazon-bedrock":
		p.Machine = true
		p.Ambient = [][]string{
			{"AWS_PROFILE"},
			{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
			{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"},
			{"AWS_CONTAINER_CREDENTIALS_FULL_URI"},
			{"AWS_WEB_IDENTITY_TOKEN_FILE"},
		}
		p.SecretEnv = []string{
			"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
			"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		}
	case "google-vertex":
		p.Machine = true
		p.SecretEnv = []string{"GOOGLE_APPLICATION_CREDENTIALS"}
		for _, project := range []string{"GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"} {
			p.Ambient = append(p.Ambient, []string{project, "GOOGLE_CLOUD_LOCATION"})
		}
	}
	return p
}

func builtinProviders() []Provider {
	list := make([]Provider, len(builtinRows))
	for i := range builtinRows {
		list[i] = builtinRows[i].provider()
	}
	return list
}

func builtinProvider(id string) (Provider, bool) {
	for i := range builtinRows {
		if builtinRows[i].id == id {
			return builtinRows[i].provider(), true
		}
	}
	return Provider{}, false
}

// providers is the list behind Providers. c.mu is held.
func (c *Catalog) providers() []Provider {
	if c.list != nil {
		return c.list
	}
	list := builtinProviders()
	var at positions
	for i := range list {
		at.of(list[i].ID, i)
	}
	put := func(p Provider) {
		if i, had := at.of(p.ID, len(list)); had {
			list[i] = p
		} else {
			list = append(list, p)
		}
	}
	has := func(id string) bool {
		_, ok := at[id]
		return ok
	}
	for i := range c.added {
		if has(c.added[i].provider.ID) {
			put(c.added[i].provider)
		}
	}
	for _, f := range c.overlay().providers {
		i, had := at.of(f.id, len(list))
		if !had {
			list = append(list, Provider{ID: f.id, Name: f.id})
			if j := slices.IndexFunc(c.added, func(a addition) bool { return a.provider.ID == f.id }); j >= 0 {
				list[i] = c.added[j].provider
			} else if f.api != "" {
				list[i].APIs = []string{f.api}
			}
		}
		if f.name != "" {
			list[i].Name = f.name
		}
		if f.baseURL != "" {
			list[i].BaseURL = f.baseURL
		}
		if f.modelsURL != "" {
			list[i].ModelsURL = f.modelsURL
		}
	}
	for i := range c.added {
		if !has(c.added[i].provider.ID) {
			put(c.added[i].provider)
		}
	}
	for _, v := range c.virtual {
		if !has(v.Provider) {
			put(Provider{ID: v.Provider, Name: v.Provider, APIs: []string{llm.APIVirtual}, Keyless: true})
		}
	}
	c.list = list
	return list
}

// models is the list of one provider's models, as the program can use them.
// c.mu is held.
func (c *Catalog) models(p Provider) []*llm.Model {
	if list, ok := c.built[p.ID]; ok {
		return list
	}
	var list []*llm.Model
	if i := slices.IndexFunc(c.added, func(a addition) bool { return a.provider.ID == p.ID }); i >= 0 {
		list = c.added[i].models
	} else if known, ok := builtinProvider(p.ID); ok {
		// The provider as it is without models.json, whose address comes later.
		list = c.refreshed(&known, builtinModels(&known))
	} else if len(p.APIs) > 0 && p.BaseURL != "" {
		list = c.refreshed(&p, nil) // of models.json
	}
	if f := c.overlay().provider(p.ID); f != nil {
		list = f.merged(list)
	}
	if c.o.APIs != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(m *llm.Model) bool { return !slices.Contains(c.o.APIs, m.API) })
	}
	list = c.withVirtual(p.ID, list)
	c.built[p.ID] = list
	return list
}
