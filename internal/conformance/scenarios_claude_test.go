package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// The dialects of Claude: anthropic-messages and bedrock-converse-stream.

func scenarioAnthropic() *scenarioDialect {
	const signature = "ErUBCkYIBhABGAIiQAnthropicSignature0001=="
	failure := func(status int, typ, message string) scenarioFailure {
		return scenarioFailure{status: status, body: `{"type":"error","error":{"type":"` + typ + `","message":"` + message + `"},"request_id":"req_011"}`, says: message}
	}
	limited := failure(429, "rate_limit_error", "This request would exceed the rate limit for your organization of 30,000 input tokens per minute.")
	limited.header = map[string]string{"Retry-After": "2"}
	return &scenarioDialect{
		api: "anthropic-messages",
		model: llm.Model{ID: "claude-scenario-4-5", API: "anthropic-messages", Provider: "anthropic", Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		path: "/v1/messages?beta=true", key: "sk-ant-api03-scenario-key",
		ids:       []string{"toolu_01A09q90qw90lq917835lq91", "toolu_01B09q90qw90lq917835lq92"},
		signature: signature, marks: []string{signature},
		levels:    map[llm.ThinkingLevel]string{"": "disabled", llm.LevelLow: "2048", llm.LevelHigh: "16384"},
		mediaType: "text/event-stream", encode: scenarioSSE("\n"), events: scenarioAnthropicEvents,
		read: scenarioReadAnthropic, check: checkAnthropic, keepAlive: []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n: still here\n\n"),
		overflow: []scenarioFailure{
			failure(400, "invalid_request_error", "prompt is too long: 211000 tokens > 200000 maximum"),
			failure(413, "request_too_large", "Request exceeds the maximum size"),
		},
		failures: map[string]scenarioFailure{
			"key":        failure(401, "authentication_error", "invalid x-api-key"),
			"forbidden":  failure(403, "permission_error", "Your API key does not have permission to use the specified resource."),
			"model":      failure(404, "not_found_error", "model: claude-scenario-4-5"),
			"invalid":    failure(400, "invalid_request_error", "messages.0.content.0: Input should be a valid dictionary"),
			"limited":    limited,
			"quota":      failure(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
			"broken":     failure(500, "api_error", "Internal server error"),
			"overloaded": failure(529, "overloaded_error", "Overloaded"),
		},
		inside: []scenarioInside{
			{scenarioEvent{"error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "Overloaded", true, false},
			{scenarioEvent{"error", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`}, "prompt is too long", false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, CacheWrite: u.stored, CacheWrite1h: new(int64),
				Reasoning: &u.reasoning, TotalTokens: u.input + u.output + u.cached + u.stored}
		},
	}
}

// scenarioRates are prices with a tier for long prompts.
func scenarioRates() llm.Rates {
	return llm.Rates{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75,
		Tiers: []llm.RateTier{{InputTokensAbove: 200_000, Input: 6, Output: 22.5, CacheRead: 0.6, CacheWrite: 7.5}}}
}

// scenarioSSE encodes server-sent events whose lines end with eol.
func scenarioSSE(eol string) func(scenarioEvent) []byte {
	return func(ev scenarioEvent) []byte {
		var b []byte
		if ev.name != "" {
			b = append(b, "event: "+ev.name+eol...)
		}
		return append(b, "data: "+ev.data+eol+eol...)
	}
}

// scenarioHalves cuts a text in two between characters.
func scenarioHalves(s string) [2]string {
	r := []rune(s)
	return [2]string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

func scenarioAnthropicEvents(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
	var out []scenarioEvent
	say := func(name, format string, args ...any) {
		out = append(out, scenarioEvent{name, fmt.Sprintf(`{"type":%q,`+format+`}`, append([]any{name}, args...)...)})
	}
	n := 0
	block := func(start string, deltas ...string) {
		say("content_block_start", `"index":%d,"content_block":%s`, n, start)
		for _, delta := range deltas {
			say("content_block_delta", `"index":%d,"delta":%s`, n, delta)
		}
		say("content_block_stop", `"index":%d`, n)
		n++
	}
	say("message_start", `"message":{"id":"msg_scenario","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}}`,
		d.model.ID, a.usage.input, a.usage.cached, a.usage.stored)
	if a.thinking != "" {
		h := scenarioHalves(a.thinking)
		block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":`+scenarioQuote(h[0])+`}`,
			`{"type":"thinking_delta","thinking":`+scenarioQuote(h[1])+`}`, `{"type":"signature_delta","signature":`+scenarioQuote(d.signature)+`}`)
	}
	if len(a.text) > 0 {
		var deltas []string
		for _, piece := range a.text {
			deltas = append(deltas, `{"type":"text_delta","text":`+scenarioQuote(piece)+`}`)
		}
		block(`{"type":"text","text":""}`, deltas...)
	}
	for _, c := range a.calls {
		h := scenarioHalves(c.args)
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.id, c.name), `{"type":"input_json_delta","partial_json":""}`,
			`{"type":"input_json_delta","partial_json":`+scenarioQuote(h[0])+`}`, `{"type":"input_json_delta","partial_json":`+scenarioQuote(h[1])+`}`)
	}
	stop := map[llm.StopReason]string{llm.StopStop: "end_turn", llm.StopLength: "max_tokens", llm.StopToolUse: "tool_use"}[a.stop]
	say("message_delta", `"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`,
		stop, a.usage.output, a.usage.reasoning)
	out = append(out, scenarioEvent{"message_stop", `{"type":"message_stop"}`})
	return out
}

func scenarioReadAnthropic(body map[string]any) (s scenarioSent) {
	var system []string
	for _, b := range asObjects(body["system"]) {
		system = append(system, scenarioString(b["text"]))
	}
	s.system = strings.Join(system, "\n")
	for _, m := range asObjects(body["messages"]) {
		textKind := map[string]string{"user": "user", "assistant": "text"}[scenarioString(m["role"])]
		if text, ok := m["content"].(string); ok {
			s.items = append(s.items, scenarioItem{kind: textKind, text: text})
		}
		for _, b := range asObjects(m["content"]) {
			switch b["type"] {
			case "text":
				s.items = append(s.items, scenarioItem{kind: textKind, text: scenarioString(b["text"])})
			case "thinking":
				s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioString(b["thinking"]), signature: scenarioString(b["signature"])})
			case "image":
				s.items = append(s.items, scenarioItem{kind: "image", text: scenarioString(scenarioAt(b, "source", "data"))})
			case "tool_use":
				s.items = append(s.items, scenarioItem{kind: "call", id: scenarioString(b["id"]), name: scenarioString(b["name"]), args: scenarioJSON(b["input"])})
			case "tool_result":
				s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(b["tool_use_id"]), text: scenarioJoin(b["content"])})
				for _, part := range asObjects(b["content"]) {
					if part["type"] == "image" {
						s.items = append(s.items, scenarioItem{kind: "image", text: scenarioString(scenarioAt(part, "source", "data"))})
					}
				}
			}
		}
	}
	for _, t := range asObjects(body["tools"]) {
		s.tools = append(s.tools, scenarioTool{scenarioString(t["name"]), scenarioString(t["description"]), t["input_schema"]})
	}
	if s.level = scenarioString(scenarioAt(body, "thinking", "type")); s.level == "enabled" {
		s.level = scenarioJSON(scenarioAt(body, "thinking", "budget_tokens"))
	}
	return s
}

func scenarioBedrock() *scenarioDialect {
	const signature = "EpADCkgBedrockSignature0001=="
	failure := func(status int, typ, message, says string) scenarioFailure {
		return scenarioFailure{status: status, header: map[string]string{"X-Amzn-Errortype": typ + ":http://internal.amazon.com/coral/com.amazon.bedrock/", "X-Amzn-Requestid": "req-1"},
			body: `{"message":"` + message + `"}`, says: says + ": " + message}
	}
	limited := failure(429, "ThrottlingException", "Too many requests, please wait before trying again.", "Throttling error")
	limited.header["Retry-After"] = "2"
	exception := func(typ, message string) scenarioEvent {
		return scenarioEvent{"!" + typ, `{"message":"` + message + `"}`}
	}
	return &scenarioDialect{
		api: "bedrock-converse-stream",
		model: llm.Model{ID: "us.anthropic.claude-sonnet-4-5-v1:0", API: "bedrock-converse-stream", Provider: "amazon-bedrock", Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		path: "/model/us.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream", key: "bedrock-api-key-scenario",
		ids:       []string{"tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "tooluse_yRJMlvQmRJ6eAyJE5GIl8R"},
		signature: signature, marks: []string{signature},
		levels:    map[llm.ThinkingLevel]string{"": "", llm.LevelLow: "2048", llm.LevelHigh: "16384"},
		mediaType: "application/vnd.amazon.eventstream", encode: scenarioFrame, events: scenarioBedrockEvents, read: scenarioReadBedrock, check: checkBedrock,
		shown: func(ev scenarioEvent) string { return `{"` + ev.name + `":` + ev.data + `}` },
		overflow: []scenarioFailure{
			failure(400, "ValidationException", "Input is too long for requested model.", "Validation error"),
			failure(400, "ValidationException", "The model returned the following errors: prompt is too long: 211000 tokens > 200000 maximum", "Validation error"),
		},
		failures: map[string]scenarioFailure{
			"key":        failure(403, "AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.", "AccessDeniedException"),
			"forbidden":  failure(403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", "AccessDeniedException"),
			"model":      failure(404, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier.", "ResourceNotFoundException"),
			"invalid":    failure(400, "ValidationException", "messages: at least one message is required", "Validation error"),
			"limited":    limited,
			"quota":      failure(400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.", "ServiceQuotaExceededException"),
			"broken":     failure(500, "InternalServerException", "The system encountered an unexpected error during processing.", "Internal server error"),
			"overloaded": failure(503, "ServiceUnavailableException", "Bedrock is unable to process your request.", "Service unavailable"),
		},
		inside: []scenarioInside{
			{exception("throttlingException", "Too many requests"), "Throttling error: Too many requests", true, false},
			{exception("internalServerException", "it broke"), "Internal server error: it broke", true, false},
			{exception("serviceUnavailableException", "come back later"), "Service unavailable: come back later", true, false},
			{exception("validationException", "Input is too long for requested model."), "Validation error: Input is too long", false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, CacheWrite: u.stored, TotalTokens: u.input + u.output + u.cached + u.stored}
		},
		retries: 2, noRetries: true, failSeen: true, noStatic: true,
	}
}

func scenarioBedrockEvents(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
	out := []scenarioEvent{{"messageStart", `{"role":"assistant"}`}}
	n := 0
	block := func(deltas ...string) {
		for _, delta := range deltas {
			out = append(out, scenarioEvent{"contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s}`, n, delta)})
		}
		out = append(out, scenarioEvent{"contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, n)})
		n++
	}
	if a.thinking != "" {
		h := scenarioHalves(a.thinking)
		block(`{"reasoningContent":{"text":`+scenarioQuote(h[0])+`}}`, `{"reasoningContent":{"text":`+scenarioQuote(h[1])+`}}`, `{"reasoningContent":{"signature":`+scenarioQuote(d.signature)+`}}`)
	}
	if len(a.text) > 0 {
		var deltas []string
		for _, piece := range a.text {
			deltas = append(deltas, `{"text":`+scenarioQuote(piece)+`}`)
		}
		block(deltas...)
	}
	for _, c := range a.calls {
		h := scenarioHalves(c.args)
		out = append(out, scenarioEvent{"contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, n, c.id, c.name)})
		block(`{"toolUse":{"input":`+scenarioQuote(h[0])+`}}`, `{"toolUse":{"input":`+scenarioQuote(h[1])+`}}`)
	}
	stop := map[llm.StopReason]string{llm.StopStop: "end_turn", llm.StopLength: "max_tokens", llm.StopToolUse: "tool_use"}[a.stop]
	u := a.usage
	return append(out, scenarioEvent{"messageStop", `{"stopReason":"` + stop + `"}`},
		scenarioEvent{"metadata", fmt.Sprintf(`{"usage":{"inputTokens":%d,"outputTokens":%d,"cacheReadInputTokens":%d,"cacheWriteInputTokens":%d,"totalTokens":%d},"metrics":{"latencyMs":5}}`,
			u.input, u.output, u.cached, u.stored, u.input+u.output+u.cached+u.stored)})
}

// scenarioFrame encodes an event of an AWS event stream. A name that begins with an
// exclamation mark is that of an exception.
func scenarioFrame(ev scenarioEvent) []byte {
	headers := []string{":message-type", "event", ":event-type", ev.name, ":content-type", "application/json"}
	if typ, ok := strings.CutPrefix(ev.name, "!"); ok {
		headers = []string{":message-type", "exception", ":exception-type", typ, ":content-type", "application/json"}
	}
	var h []byte
	for pair := range slices.Chunk(headers, 2) {
		h = append(append(h, byte(len(pair[0]))), pair[0]...)
		h = binary.BigEndian.AppendUint16(append(h, 7), uint16(len(pair[1])))
		h = append(h, pair[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(ev.data)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), ev.data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func scenarioReadBedrock(body map[string]any) (s scenarioSent) {
	var system []string
	for _, b := range asObjects(body["system"]) {
		if text := scenarioString(b["text"]); text != "" {
			system = append(system, text)
		}
	}
	s.system = strings.Join(system, "\n")
	picture := func(b map[string]any) {
		if data := scenarioString(scenarioAt(b, "image", "source", "bytes")); data != "" {
			s.items = append(s.items, scenarioItem{kind: "image", text: data})
		}
	}
	for _, m := range asObjects(body["messages"]) {
		textKind := map[string]string{"user": "user", "assistant": "text"}[scenarioString(m["role"])]
		for _, b := range asObjects(m["content"]) {
			if text, ok := b["text"].(string); ok {
				s.items = append(s.items, scenarioItem{kind: textKind, text: text})
			}
			if t, ok := scenarioAt(b, "reasoningContent", "reasoningText").(map[string]any); ok {
				s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioString(t["text"]), signature: scenarioString(t["signature"])})
			}
			picture(b)
			if use, ok := b["toolUse"].(map[string]any); ok {
				s.items = append(s.items, scenarioItem{kind: "call", id: scenarioString(use["toolUseId"]), name: scenarioString(use["name"]), args: scenarioJSON(use["input"])})
			}
			if result, ok := b["toolResult"].(map[string]any); ok {
				s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(result["toolUseId"]), text: scenarioJoin(result["content"])})
				for _, part := range asObjects(result["content"]) {
					picture(part)
				}
			}
		}
	}
	for _, t := range asObjects(scenarioAt(body, "toolConfig", "tools")) {
		s.tools = append(s.tools, scenarioTool{scenarioString(scenarioAt(t, "toolSpec", "name")), scenarioString(scenarioAt(t, "toolSpec", "description")), scenarioAt(t, "toolSpec", "inputSchema", "json")})
	}
	if budget := scenarioAt(body, "additionalModelRequestFields", "thinking", "budget_tokens"); budget != nil {
		s.level = scenarioJSON(budget)
	}
	return s
}

// scenarioBase64 is text as base64, for signatures that must be that.
func scenarioBase64(text string) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(text), 3))
}
