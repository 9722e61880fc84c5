package completions

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Compat says how a server departs from the original protocol. Its JSON names,
// in Model.Compat, are those of the fields with a lower-case first letter.
type Compat struct {
	// Request fields.
	SupportsStore            bool   // send "store": false
	SupportsUsageInStreaming bool   // ask for usage with stream_options
	MaxTokensField           string // max_completion_tokens or max_tokens
	VLLMPriority             *int64 // "priority" of the vLLM scheduler, nil for none
	OpenRouterRouting        jsontext.Value
	VercelGatewayRouting     jsontext.Value

	// Thinking.
	SupportsReasoningEffort     bool
	ThinkingFormat              ThinkingFormat
	ChatTemplateKwargs          jsontext.Value // for FormatChatTemplate
	ChatTemplateArgs            jsontext.Value // for FormatBaseten
	ThinkingTokenBudgetField    string
	SupportsThinkingTokenBudget bool // short for the field thinking_token_budget

	// Caching and affinity.
	CacheControlFormat         string // anthropic, or "" for none
	PromptCacheKeyMode         string // auto, enabled, disabled
	SupportsLongCacheRetention bool
	SendSessionAffinityHeaders bool
	SessionAffinityFormat      string // openai, openai-nosession, openrouter

	// Tools.
	SupportsStrictMode            bool
	SupportsOpenAIGrammarTools    bool
	ZaiToolStream                 bool
	RequiresToolsWithToolHistory  bool
	RequiresToolResultName        bool
	SupportsMidConvoToolAdditions bool

	// Messages.
	SupportsDeveloperRole                       bool
	SupportsMidConvoSystemMessages              bool
	RequiresAssistantAfterToolResult            bool
	RequiresNonNullAssistantContent             bool
	RequiresThinkingAsText                      bool
	RequiresReasoningContentOnAssistantMessages bool

	// SupportsFinishReason false accepts streams that end without a reason.
	SupportsFinishReason bool
}

// ThinkingFormat names the request fields that switch thinking on and off.
type ThinkingFormat string

// The thinking formats.
const (
	FormatOpenAI           ThinkingFormat = "openai"
	FormatOpenRouter       ThinkingFormat = "openrouter"
	FormatDeepSeek         ThinkingFormat = "deepseek"
	FormatZai              ThinkingFormat = "zai"
	FormatTogether         ThinkingFormat = "together"
	FormatQwen             ThinkingFormat = "qwen"
	FormatQwenChatTemplate ThinkingFormat = "qwen-chat-template"
	FormatChatTemplate     ThinkingFormat = "chat-template"
	FormatBaseten          ThinkingFormat = "baseten"
	FormatString           ThinkingFormat = "string-thinking"
	FormatAntLing          ThinkingFormat = "ant-ling"
)

// vendor is a set of services that one model may be served by.
type vendor uint16

const (
	vendorOpenAI vendor = 1 << iota
	vendorOpenRouter
	vendorDeepSeek
	vendorZai
	vendorTogether
	vendorMoonshot
	vendorCloudflareWorkers
	vendorCloudflareGateway
	vendorNvidia
	vendorAntLing
	vendorCerebras
	vendorXAI
	vendorChutes
	vendorOpenCode
)

// signs tells a vendor by its provider ids or by a part of the base URL.
type signs struct {
	vendor    vendor
	providers []string
	urls      []string
}

func vendorSigns() []signs {
	return []signs{
		{vendorOpenAI, []string{"openai"}, []string{"api.openai.com"}},
		{vendorOpenRouter, []string{"openrouter"}, []string{"openrouter.ai"}},
		{vendorDeepSeek, []string{"deepseek"}, []string{"deepseek.com"}},
		{vendorZai, []string{"zai", "zai-coding-cn"}, []string{"api.z.ai", "open.bigmodel.cn"}},
		{vendorTogether, []string{"together"}, []string{"api.together.ai", "api.together.xyz"}},
		{vendorMoonshot, []string{"moonshotai", "moonshotai-cn"}, []string{"api.moonshot."}},
		{vendorCloudflareWorkers, []string{"cloudflare-workers-ai"}, []string{"api.cloudflare.com"}},
		{vendorCloudflareGateway, []string{"cloudflare-ai-gateway"}, []string{"gateway.ai.cloudflare.com"}},
		{vendorNvidia, []string{"nvidia"}, []string{"integrate.api.nvidia.com"}},
		{vendorAntLing, []string{"ant-ling"}, []string{"api.ant-ling.com"}},
		{vendorCerebras, []string{"cerebras"}, []string{"cerebras.ai"}},
		{vendorXAI, []string{"xai"}, []string{"api.x.ai"}},
		{vendorChutes, nil, []string{"chutes.ai"}},
		// The second plan of the service, opencode-go, goes by its URL only.
		{vendorOpenCode, []string{"opencode"}, []string{"opencode.ai"}},
	}
}

func vendorsOf(provider, baseURL string) vendor {
	var v vendor
	for _, s := range vendorSigns() {
		if slices.Contains(s.providers, provider) ||
			slices.ContainsFunc(s.urls, func(part string) bool { return strings.Contains(baseURL, part) }) {
			v |= s.vendor
		}
	}
	return v
}

func (v vendor) any(of vendor) bool { return v&of != 0 }

// DefaultCompat is what is known of a model's server from its provider and base
// URL alone.
func DefaultCompat(m *llm.Model) Compat {
	v := vendorsOf(m.Provider, m.BaseURL)
	const cloudflare = vendorCloudflareWorkers | vendorCloudflareGateway
	c := Compat{
		SupportsStore: !v.any(vendorNvidia | vendorCerebras | vendorXAI | vendorTogether | vendorChutes | vendorDeepSeek |
			vendorZai | vendorMoonshot | vendorOpenCode | cloudflare | vendorAntLing),
		SupportsUsageInStreaming: true,
		MaxTokensField:           "max_completion_tokens",

		SupportsReasoningEffort: !v.any(vendorXAI | vendorZai | vendorMoonshot | vendorTogether | vendorCloudflareGateway |
			vendorNvidia | vendorAntLing),
		ThinkingFormat: FormatOpenAI,

		PromptCacheKeyMode:         "auto",
		SupportsLongCacheRetention: !v.any(vendorTogether | cloudflare | vendorNvidia | vendorAntLing),
		SessionAffinityFormat:      "openai",

		SupportsDeveloperRole:                       v.any(vendorOpenAI),
		RequiresReasoningContentOnAssistantMessages: v.any(vendorDeepSeek),
		SupportsFinishReason:                        true,
	}
	if v.any(vendorChutes | vendorDeepSeek | vendorMoonshot | vendorCloudflareGateway | vendorTogether | vendorNvidia |
		vendorAntLing | vendorZai) {
		c.MaxTokensField = "max_tokens"
	}
	switch {
	case v.any(vendorDeepSeek):
		c.ThinkingFormat = FormatDeepSeek
	case v.any(vendorZai):
		c.ThinkingFormat = FormatZai
	case v.any(vendorTogether):
		c.ThinkingFormat = FormatTogether
	case v.any(vendorAntLing):
		c.ThinkingFormat = FormatAntLing
	case v.any(vendorOpenRouter):
		c.ThinkingFormat = FormatOpenRouter
	}
	if v.any(vendorOpenRouter) {
		c.SendSessionAffinityHeaders = true
		c.SessionAffinityFormat = "openrouter"
	}
	if m.Provider == "openrouter" && strings.HasPrefix(m.ID, "anthropic/") {
		c.CacheControlFormat = "anthropic"
	}
	return c
}

// CompatOf is DefaultCompat with the model's own flags on top. A flag whose
// value has another kind than the flag counts as absent.
func CompatOf(m *llm.Model) Compat {
	c := DefaultCompat(m)
	if len(m.Compat) == 0 {
		return c
	}
	read := c
	var r jsonwire.Reader
	r.Reset(m.Compat)
	for r.Object(); r.More(); {
		read.set(&r)
	}
	if r.End() != nil {
		return c
	}
	return read
}

// set reads one member of the compat object.
func (c *Compat) set(r *jsonwire.Reader) {
	switch string(r.Key()) {
	case "supportsStore":
		flag(r, &c.SupportsStore)
	case "supportsUsageInStreaming":
		flag(r, &c.SupportsUsageInStreaming)
	case "maxTokensField":
		word(r, &c.MaxTokensField)
	case "vllmPriority":
		if r.Kind() == '0' {
			c.VLLMPriority = new(r.Int())
		} else {
			r.Skip()
		}
	case "openRouterRouting":
		object(r, &c.OpenRouterRouting)
	case "vercelGatewayRouting":
		object(r, &c.VercelGatewayRouting)
	case "supportsReasoningEffort":
		flag(r, &c.SupportsReasoningEffort)
	case "thinkingFormat":
		word(r, &c.ThinkingFormat)
	case "chatTemplateKwargs":
		object(r, &c.ChatTemplateKwargs)
	case "chatTemplateArgs":
		object(r, &c.ChatTemplateArgs)
	case "thinkingTokenBudgetField":
		word(r, &c.ThinkingTokenBudgetField)
	case "supportsThinkingTokenBudget":
		flag(r, &c.SupportsThinkingTokenBudget)
	case "cacheControlFormat":
		word(r, &c.CacheControlFormat)
	case "promptCacheKeyMode":
		word(r, &c.PromptCacheKeyMode)
	case "supportsLongCacheRetention":
		flag(r, &c.SupportsLongCacheRetention)
	case "sendSessionAffinityHeaders":
		flag(r, &c.SendSessionAffinityHeaders)
	case "sessionAffinityFormat":
		word(r, &c.SessionAffinityFormat)
	case "supportsStrictMode":
		flag(r, &c.SupportsStrictMode)
	case "supportsOpenAIGrammarTools":
		flag(r, &c.SupportsOpenAIGrammarTools)
	case "zaiToolStream":
		flag(r, &c.ZaiToolStream)
	case "requiresToolsWithToolHistory":
		flag(r, &c.RequiresToolsWithToolHistory)
	case "requiresToolResultName":
		flag(r, &c.RequiresToolResultName)
	case "supportsMidConvoToolAdditions":
		flag(r, &c.SupportsMidConvoToolAdditions)
	case "supportsDeveloperRole":
		flag(r, &c.SupportsDeveloperRole)
	case "supportsMidConvoSystemMessages":
		flag(r, &c.SupportsMidConvoSystemMessages)
	case "requiresAssistantAfterToolResult":
		flag(r, &c.RequiresAssistantAfterToolResult)
	case "requiresNonNullAssistantContent":
		flag(r, &c.RequiresNonNullAssistantContent)
	case "requiresThinkingAsText":
		flag(r, &c.RequiresThinkingAsText)
	case "requiresReasoningContentOnAssistantMessages":
		flag(r, &c.RequiresReasoningContentOnAssistantMessages)
	case "supportsFinishReason":
		flag(r, &c.SupportsFinishReason)
	default:
		r.Skip()
	}
}

func flag(r *jsonwire.Reader, into *bool) {
	if k := r.Kind(); k != 't' && k != 'f' {
		r.Skip()
		return
	}
	*into = r.Bool()
}

func word[S ~string](r *jsonwire.Reader, into *S) {
	if r.Kind() != '"' {
		r.Skip()
		return
	}
	*into = S(r.Text())
}

func object(r *jsonwire.Reader, into *jsontext.Value) {
	if r.Kind() != '{' {
		r.Skip()
		return
	}
	*into = slices.Clone(jsontext.Value(r.Raw()))
}
