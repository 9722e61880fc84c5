package catalog

import (
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// checkFile checks the text of models.json, comments already blanked. The shapes
// are made once for it, and not for each of its many models.
func checkFile(c *checker) {
	c.r.Reset(c.text)
	fields{known: []field{{"providers", dict(aProvider())}}, required: []string{"providers"}}.check(c, "")
}

func aString(c *checker, path string) { of(`"`, "a string")(c, path) }
func aBool(c *checker, path string)   { of("tf", "true or false")(c, path) }
func aNumber(c *checker, path string) { of("0", "a number")(c, path) }
func anObject(c *checker, path string) {
	of("{", "an object")(c, path)
}

func aProvider() shape {
	return fields{known: []field{
		{"name", nonEmpty},
		{"baseUrl", nonEmpty},
		{"apiKey", nonEmpty},
		{"api", nonEmpty},
		{"modelsUrl", nonEmpty},
		{"oauth", word("radius")},
		{"headers", dict(aString)},
		{"authHeader", aBool},
		{"compat", aCompat()},
		{"models", list(aModel(aCost(true)))},
		{"modelOverrides", dict(fields{known: modelFields(aCost(false))}.check)},
	}}.check
}

// aModel is a model that has an id.
func aModel(cost shape) shape {
	return fields{
		known:    append(modelFields(cost), field{"id", nonEmpty}, field{"api", nonEmpty}, field{"baseUrl", nonEmpty}),
		required: []string{"id"},
	}.check
}

// modelFields are what models and overrides share.
func modelFields(cost shape) []field {
	return []field{
		{"name", nonEmpty},
		{"reasoning", aBool},
		{"thinkingLevelMap", levels(of(`"n`, "a string or null"))},
		{"input", list(word("text", "image"))},
		{"inputLimits", anObject},
		{"samplingParams", anObject},
		{"samplingParamsByThinkingLevel", levels(anObject)},
		{"promptCache", fields{known: []field{{"short", aNumber}, {"long", aNumber}}}.check},
		{"contextWindow", tokenCount},
		{"maxTokens", tokenCount},
		{"headers", dict(aString)},
		{"compat", aCompat()},
		{"cost", cost},
	}
}

// levels is an object with one shape for each thinking level, and for names that
// are none.
func levels(value shape) shape {
	f := fields{other: func(string) shape { return value }}
	for _, l := range llm.ThinkingLevels() {
		f.known = append(f.known, field{string(l), value})
	}
	return f.check
}

func aCost(whole bool) shape {
	rates := []string{"input", "output", "cacheRead", "cacheWrite"}
	var known []field
	for _, name := range rates {
		known = append(known, field{name, aNumber})
	}
	known = append(known, field{"inputTokensAbove", aNumber})
	tier := fields{known: known, required: append([]string{"inputTokensAbove"}, rates...)}
	cost := fields{known: append(slices.Clone(known), field{"tiers", list(tier.check)})}
	if whole {
		cost.required = rates
	}
	return cost.check
}

// aCompat is the flags of all wire formats together: which format a model has may
// only be known once it is merged.
func aCompat() shape {
	f := fields{
		known: []field{
			{"maxTokensField", word("max_tokens", "max_completion_tokens")},
			{"sessionAffinityFormat", word("openai", "openai-nosession", "openrouter")},
			{"cacheControlFormat", word("anthropic")},
			{"promptCacheKeyMode", word("auto", "enabled", "disabled")},
			{"thinkingFormat", word("openai", "openrouter", "deepseek", "zai", "together", "qwen", "qwen-chat-template",
				"chat-template", "baseten", "string-thinking", "ant-ling")},
			{"thinkingTokenBudgetField", aString},
			{"vllmPriority", aNumber},
			{"openRouterRouting", anObject},
			{"vercelGatewayRouting", anObject},
			{"chatTemplateKwargs", anObject},
			{"chatTemplateArgs", anObject},
			{"allowedFallbackModels", list(anObject)},
		},
		other: flagOfLater,
	}
	for _, name := range flags() {
		f.known = append(f.known, field{name, aBool})
	}
	return f.check
}

// flags are the flags of compat that wire formats know.
func flags() []string {
	return []string{
		"allowEmptySignature",
		"claudeCodeToolNames",
		"forceAdaptiveThinking",
		"imageInput",
		"requiresAssistantAfterToolResult",
		"requiresNonNullAssistantContent",
		"requiresReasoningContentOnAssistantMessages",
		"requiresThinkingAsText",
		"requiresToolResultName",
		"requiresToolsWithToolHistory",
		"sendSessionAffinityHeaders",
		"supportsAdditionalTools",
		"supportsCacheControlOnTools",
		"supportsDeveloperRole",
		"supportsEagerToolInputStreaming",
		"supportsExplicitPromptCacheMode",
		"supportsFinishReason",
		"supportsLongCacheRetention",
		"supportsMaxOutputTokens",
		"supportsMessageThreads",
		"supportsMidConvoEffort",
		"supportsMidConvoSystemMessages",
		"supportsMidConvoToolAdditions",
		"supportsMidConvoToolChanges",
		"supportsOpenAIGrammarTools",
		"supportsReasoningEffort",
		"supportsStore",
		"supportsStrictMode",
		"supportsStrictTools",
		"supportsTemperature",
		"supportsThinkingTokenBudget",
		"supportsToolSearch",
		"supportsUsageInStreaming",
		"zaiToolStream",
	}
}

// flagOfLater is the shape of flags that no wire format knows yet: their kind is
// told by how their names begin.
func flagOfLater(name string) shape {
	for _, prefix := range []string{"supports", "requires", "send"} {
		if strings.HasPrefix(name, prefix) {
			return aBool
		}
	}
	return nil
}
