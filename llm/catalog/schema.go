package catalog

import "strings"

// checkFile checks the text of models.json, comments already blanked.
func checkFile(c *checker) {
	c.r.Reset(c.text)
	fields{required: []string{"providers"}, member: func(name string) shape {
		if name == "providers" {
			return dict(checkProvider)
		}
		return nil
	}}.check(c, "")
}

func aString(c *checker, path string) { of(`"`, "a string")(c, path) }
func aBool(c *checker, path string)   { of("tf", "true or false")(c, path) }
func aNumber(c *checker, path string) { of("0", "a number")(c, path) }
func anObject(c *checker, path string) {
	of("{", "an object")(c, path)
}

func checkProvider(c *checker, path string) {
	fields{member: func(name string) shape {
		switch name {
		case "name", "baseUrl", "apiKey", "api", "modelsUrl":
			return nonEmpty
		case "oauth":
			return word("radius")
		case "headers":
			return dict(aString)
		case "authHeader":
			return aBool
		case "compat":
			return checkCompat
		case "models":
			return list(checkModel)
		case "modelOverrides":
			return dict(checkOverride)
		}
		return nil
	}}.check(c, path)
}

func checkModel(c *checker, path string) {
	fields{required: []string{"id"}, member: func(name string) shape {
		switch name {
		case "id", "api", "baseUrl":
			return nonEmpty
		case "cost":
			return checkCost(true)
		}
		return modelField(name)
	}}.check(c, path)
}

func checkOverride(c *checker, path string) {
	fields{member: func(name string) shape {
		if name == "cost" {
			return checkCost(false)
		}
		return modelField(name)
	}}.check(c, path)
}

// modelField is the shape of what models and overrides share.
func modelField(name string) shape {
	switch name {
	case "name":
		return nonEmpty
	case "reasoning":
		return aBool
	case "thinkingLevelMap":
		return dict(of(`"n`, "a string or null"))
	case "input":
		return list(word("text", "image"))
	case "inputLimits", "samplingParams":
		return anObject
	case "samplingParamsByThinkingLevel":
		return dict(anObject)
	case "promptCache":
		return fields{member: func(name string) shape {
			if name == "short" || name == "long" {
				return aNumber
			}
			return nil
		}}.check
	case "contextWindow", "maxTokens":
		return tokenCount
	case "headers":
		return dict(aString)
	case "compat":
		return checkCompat
	}
	return nil
}

func checkCost(whole bool) shape {
	rates := []string{"input", "output", "cacheRead", "cacheWrite"}
	rate := func(name string) shape {
		switch name {
		case "input", "output", "cacheRead", "cacheWrite", "inputTokensAbove":
			return aNumber
		}
		return nil
	}
	tier := fields{required: append([]string{"inputTokensAbove"}, rates...), member: rate}
	cost := fields{member: func(name string) shape {
		if name == "tiers" {
			return list(tier.check)
		}
		return rate(name)
	}}
	if whole {
		cost.required = rates
	}
	return cost.check
}

// checkCompat checks the flags of all wire formats together: which format a
// model has may only be known once it is merged.
func checkCompat(c *checker, path string) {
	fields{member: compatField}.check(c, path)
}

func compatField(name string) shape {
	switch name {
	case "maxTokensField":
		return word("max_tokens", "max_completion_tokens")
	case "sessionAffinityFormat":
		return word("openai", "openai-nosession", "openrouter")
	case "cacheControlFormat":
		return word("anthropic")
	case "promptCacheKeyMode":
		return word("auto", "enabled", "disabled")
	case "thinkingFormat":
		return word("openai", "openrouter", "deepseek", "zai", "together", "qwen", "qwen-chat-template",
			"chat-template", "baseten", "string-thinking", "ant-ling")
	case "thinkingTokenBudgetField":
		return aString
	case "vllmPriority":
		return aNumber
	case "openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs":
		return anObject
	case "allowedFallbackModels":
		return list(anObject)
	case "forceAdaptiveThinking", "allowEmptySignature", "zaiToolStream", "imageInput", "claudeCodeToolNames":
		return aBool
	}
	for _, prefix := range []string{"supports", "requires", "send"} {
		if strings.HasPrefix(name, prefix) {
			return aBool
		}
	}
	return nil
}
