package conformance

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// The dialects of chat completions: openai-completions, as OpenRouter serves it,
// and mistral-conversations.

func scenarioCompletions() *scenarioDialect {
	const signature = "reasoningDetailSignature0001"
	failure := func(status int, message string) scenarioFailure {
		return scenarioFailure{status: status, body: fmt.Sprintf(`{"error":{"message":"%s","code":%d},"user_id":"user_1"}`, message, status), says: fmt.Sprintf(`%d: {"message":"%s"`, status, message)}
	}
	limited := failure(429, "Rate limit exceeded: limit_rpm/scenario")
	limited.header = map[string]string{"Retry-After": "2"}
	return &scenarioDialect{
		api: "openai-completions",
		model: llm.Model{ID: "moonshotai/scenario-k2", API: "openai-completions", Provider: "openrouter", Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		base: "/api/v1", path: "/chat/completions", key: "sk-or-v1-scenario-key",
		// As Kimi makes them, with characters that other services refuse.
		ids:       []string{"functions.read_file:0", "functions.list_files:1"},
		signature: signature, marks: []string{signature, "reasoning_details"},
		levels:    map[llm.ThinkingLevel]string{"": "none", llm.LevelLow: "low", llm.LevelHigh: "high"},
		mediaType: "text/event-stream", encode: scenarioSSE("\n"), events: scenarioCompletionsEvents,
		hidden: scenarioIsDone, read: scenarioReadChat, check: checkCompletions, keepAlive: []byte(": OPENROUTER PROCESSING\n\n"),
		overflow: []scenarioFailure{
			failure(400, "This endpoint's maximum context length is 262144 tokens. However, you requested about 300000 tokens (299000 of text input, 1000 in the output)."),
			{status: 400, body: `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, says: "context_length_exceeded"},
			{status: 413, says: "413 status code (no body)"},
		},
		failures: map[string]scenarioFailure{
			"key":        failure(401, "No auth credentials found"),
			"forbidden":  failure(403, "Your chosen model requires moderation and your input was flagged"),
			"model":      failure(404, "No endpoints found for moonshotai/scenario-k2."),
			"invalid":    failure(400, "messages must not be empty"),
			"limited":    limited,
			"quota":      {status: 429, body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, says: "insufficient_quota"},
			"broken":     failure(500, "Internal Server Error"),
			"overloaded": failure(503, "No instances available, the model is overloaded"),
		},
		inside: []scenarioInside{
			{scenarioEvent{"", `{"id":"gen-1","error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream hung up"}},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`}, "upstream hung up", true, false},
			{scenarioEvent{"", `{"error":{"code":400,"message":"This endpoint's maximum context length is 262144 tokens."}}`}, "maximum context length is", false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, CacheWrite: u.stored, Reasoning: &u.reasoning, TotalTokens: u.input + u.output + u.cached + u.stored}
		},
	}
}

func scenarioIsDone(ev scenarioEvent) bool { return ev.data == "[DONE]" }

// scenarioChunks makes the events of chat completions from what their choices hold.
type scenarioChunks struct {
	head string // members in front of the choices
	out  []scenarioEvent
}

func (c *scenarioChunks) delta(delta string) { c.choice(delta, "null", "") }

// choice adds a chunk; more are members behind the choices.
func (c *scenarioChunks) choice(delta, finish, more string) {
	c.out = append(c.out, scenarioEvent{data: `{` + c.head + `,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` + more + `}`})
}

func scenarioCompletionsEvents(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
	c := scenarioChunks{head: fmt.Sprintf(`"id":"gen-scenario","object":"chat.completion.chunk","created":1750000000,"model":%q`, d.model.ID)}
	c.delta(`{"role":"assistant","content":""}`)
	if a.thinking != "" {
		h := scenarioHalves(a.thinking)
		c.delta(`{"reasoning":` + scenarioQuote(h[0]) + `,"reasoning_details":[{"type":"reasoning.text","text":` + scenarioQuote(h[0]) + `,"format":"anthropic-claude-v1","index":0}]}`)
		c.delta(`{"reasoning":` + scenarioQuote(h[1]) + `,"reasoning_details":[{"type":"reasoning.text","text":` + scenarioQuote(h[1]) + `,"format":"anthropic-claude-v1","index":0}]}`)
		c.delta(`{"reasoning_details":[{"type":"reasoning.text","signature":` + scenarioQuote(d.signature) + `,"text":"","format":"anthropic-claude-v1","index":0}]}`)
	}
	for _, piece := range a.text {
		c.delta(`{"content":` + scenarioQuote(piece) + `}`)
	}
	for i, call := range a.calls {
		c.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, call.id, call.name))
	}
	for half := range 2 { // the calls come side by side
		for i, call := range a.calls {
			c.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, scenarioQuote(scenarioHalves(call.args)[half])))
		}
	}
	finish := map[llm.StopReason]string{llm.StopStop: `"stop"`, llm.StopLength: `"length"`, llm.StopToolUse: `"tool_calls"`}[a.stop]
	c.choice(`{"content":""}`, finish, "")
	u := a.usage
	prompt := u.input + u.cached + u.stored
	return append(c.out, scenarioEvent{data: fmt.Sprintf(`{%s,"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		c.head, prompt, u.output, prompt+u.output, u.cached, u.stored, u.reasoning)}, scenarioEvent{data: "[DONE]"})
}

// scenarioReadChat reads the messages of chat completions and of Mistral.
func scenarioReadChat(body map[string]any) (s scenarioSent) {
	var system []string
	parts := func(kind string, content any) {
		if text, ok := content.(string); ok {
			s.items = append(s.items, scenarioItem{kind: kind, text: text})
		}
		for _, p := range asObjects(content) {
			switch p["type"] {
			case "text":
				s.items = append(s.items, scenarioItem{kind: kind, text: scenarioString(p["text"])})
			case "thinking":
				s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioJoin(p["thinking"])})
			}
		}
	}
	pictures := func(content any) {
		for _, p := range asObjects(content) {
			if p["type"] == "image_url" {
				url := p["image_url"]
				if o, ok := url.(map[string]any); ok {
					url = o["url"]
				}
				s.items = append(s.items, scenarioItem{kind: "image", text: scenarioData(url)})
			}
		}
	}
	for _, m := range asObjects(body["messages"]) {
		switch m["role"] {
		case "system", "developer":
			system = append(system, scenarioJoin(m["content"]))
		case "user":
			parts("user", m["content"])
			pictures(m["content"])
		case "assistant":
			for _, detail := range asObjects(m["reasoning_details"]) {
				s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioString(detail["text"]), signature: scenarioString(detail["signature"])})
			}
			parts("text", m["content"])
			for _, c := range asObjects(m["tool_calls"]) {
				s.items = append(s.items, scenarioItem{kind: "call", id: scenarioString(c["id"]), name: scenarioString(scenarioAt(c, "function", "name")), args: scenarioCanonical(scenarioString(scenarioAt(c, "function", "arguments")))})
			}
		case "tool":
			s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(m["tool_call_id"]), text: scenarioJoin(m["content"])})
			pictures(m["content"])
		}
	}
	s.system = strings.Join(system, "\n")
	for _, t := range asObjects(body["tools"]) {
		s.tools = append(s.tools, scenarioTool{scenarioString(scenarioAt(t, "function", "name")), scenarioString(scenarioAt(t, "function", "description")), scenarioAt(t, "function", "parameters")})
	}
	if s.level = scenarioString(scenarioAt(body, "reasoning", "effort")); s.level == "" {
		s.level = scenarioString(body["reasoning_effort"])
	}
	return s
}

func scenarioMistral() *scenarioDialect {
	failure := func(status int, typ, message string) scenarioFailure {
		body := fmt.Sprintf(`{"object":"error","message":"%s","type":"%s","param":null,"code":"1300"}`, message, typ)
		return scenarioFailure{status: status, body: body, says: fmt.Sprintf("Mistral API error (%d): %s", status, body)}
	}
	limited := failure(429, "rate_limited", "Requests rate limit exceeded")
	limited.header = map[string]string{"Retry-After": "2"}
	return &scenarioDialect{
		api: "mistral-conversations",
		model: llm.Model{ID: "scenario-medium", API: "mistral-conversations", Provider: "mistral", Reasoning: true, Input: []string{"text", "image"},
			ThinkingLevelMap: map[llm.ThinkingLevel]*string{llm.LevelOff: new("none"), llm.LevelHigh: new("high")},
			Cost:             scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		path: "/v1/chat/completions", key: "mistral-scenario-key",
		ids:       []string{"aB3dE6gH9", "zY8xW7vU6"},
		levels:    map[llm.ThinkingLevel]string{"": "none", llm.LevelLow: "high", llm.LevelHigh: "high"},
		mediaType: "text/event-stream", encode: scenarioSSE("\n"), events: scenarioMistralEvents,
		hidden: scenarioIsDone, read: scenarioReadChat, check: checkMistral, keepAlive: []byte(": ping\n\n"),
		overflow: []scenarioFailure{
			{status: 400, body: `{"object":"error","message":"Prompt contains 910000 tokens and 0 draft tokens, too large for model with 128000 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, says: "too large for model with 128000 maximum context length"},
			{status: 413, says: "Mistral API error (413): Request Entity Too Large"},
		},
		failures: map[string]scenarioFailure{
			"key":        {status: 401, body: `{"detail":"Unauthorized"}`, says: `Mistral API error (401): {"detail":"Unauthorized"}`},
			"forbidden":  failure(403, "forbidden", "Your plan does not include this model"),
			"model":      failure(404, "invalid_model", "Invalid model: scenario-medium"),
			"invalid":    failure(400, "invalid_request_message_order", "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"),
			"limited":    limited,
			"quota":      failure(402, "payment_required", "Check the billing of your workspace"),
			"broken":     failure(500, "internal_server_error", "Service unavailable."),
			"overloaded": failure(503, "service_tier_capacity_exceeded", "Service tier capacity exceeded for this model."),
		},
		inside: []scenarioInside{
			{scenarioEvent{"", `{"id":"cmpl","object":"chat.completion.chunk","model":"scenario-medium","created":1750000000,"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`}, "Provider stopped with: error (server error)", true, false},
			// What else the service says in place of an answer has no documented form.
			{scenarioEvent{"", `{"object":"error","message":"Prompt contains 910000 tokens"}`}, "Invalid Mistral streaming event", false, false},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, TotalTokens: u.input + u.output + u.cached}
		},
		noRetries: true, failSeen: true,
	}
}

func scenarioMistralEvents(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
	c := scenarioChunks{head: fmt.Sprintf(`"id":"cmpl-scenario","object":"chat.completion.chunk","created":1750000000,"model":%q`, d.model.ID)}
	c.delta(`{"role":"assistant","content":""}`)
	if a.thinking != "" {
		for _, h := range scenarioHalves(a.thinking) {
			c.delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":` + scenarioQuote(h) + `}]}]}`)
		}
	}
	for _, piece := range a.text {
		c.delta(`{"content":` + scenarioQuote(piece) + `}`)
	}
	for i, call := range a.calls {
		h := scenarioHalves(call.args)
		c.delta(fmt.Sprintf(`{"tool_calls":[{"id":%q,"function":{"name":%q,"arguments":%s},"index":%d}]}`, call.id, call.name, scenarioQuote(h[0]), i))
		c.delta(fmt.Sprintf(`{"tool_calls":[{"id":"null","function":{"name":"","arguments":%s},"index":%d}]}`, scenarioQuote(h[1]), i))
	}
	finish := map[llm.StopReason]string{llm.StopStop: `"stop"`, llm.StopLength: `"length"`, llm.StopToolUse: `"tool_calls"`}[a.stop]
	u := a.usage
	prompt := u.input + u.cached
	c.choice(`{"content":""}`, finish, fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, prompt, u.output, prompt+u.output, u.cached))
	return append(c.out, scenarioEvent{data: "[DONE]"})
}
