package conformance

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// The dialects of the Responses family: openai-responses,
// azure-openai-responses and openai-codex-responses.

const (
	scenarioWordsOverflow   = "Your input exceeds the context window of this model. Please adjust your input and try again."
	scenarioWordsBroken     = "The server had an error while processing your request. Sorry about that! You can retry your request, or contact us through our help center."
	scenarioWordsOverloaded = "Our servers are currently overloaded. Please try again later."
)

// scenarioResponsesFamily is what the family has in common. prefix is in front of the
// text of an error response; tag tells the ids of the services apart.
func scenarioResponsesFamily(api, provider, prefix, tag string) *scenarioDialect {
	encrypted := "gAAAAAB" + tag + "EncryptedReasoning0001"
	failure := func(status int, code, message string) scenarioFailure {
		object := fmt.Sprintf(`{"message":"%s","type":"invalid_request_error","param":null,"code":"%s"}`, message, code)
		return scenarioFailure{status: status, body: `{"error":` + object + `}`, says: fmt.Sprintf("%s (%d): %s", prefix, status, object)}
	}
	limited := failure(429, "rate_limit_exceeded", "Rate limit reached for scenario-5 on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 1.2s.")
	limited.header = map[string]string{"Retry-After": "2"}
	return &scenarioDialect{
		api: api,
		model: llm.Model{ID: "scenario-5", API: api, Provider: provider, Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		key: "sk-proj-scenario-" + tag,
		ids: []string{"call_" + tag + "Zx81hYpQrs|fc_" + tag + "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071",
			"call_" + tag + "Yw72gXoPqr|fc_" + tag + "1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f607182"},
		signature: encrypted, marks: []string{encrypted, "rs_" + tag, "msg_" + tag},
		levels:    map[llm.ThinkingLevel]string{"": "none", llm.LevelLow: "low", llm.LevelHigh: "high"},
		mediaType: "text/event-stream", encode: scenarioSSE("\n"),
		events: func(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent { return scenarioResponsesEvents(d, a, tag) },
		read:   scenarioReadResponses, check: checkResponses, keepAlive: []byte(": ping\n\n"),
		overflow: []scenarioFailure{failure(400, "context_length_exceeded", scenarioWordsOverflow)},
		failures: map[string]scenarioFailure{
			"key":        failure(401, "invalid_api_key", "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."),
			"forbidden":  failure(403, "unsupported_country_region_territory", "Country, region, or territory not supported"),
			"model":      failure(404, "model_not_found", "The model scenario-5 does not exist or you do not have access to it."),
			"invalid":    failure(400, "invalid_value", "Invalid value: 'none'. Supported values are: 'low' and 'high'."),
			"limited":    limited,
			"quota":      failure(429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."),
			"broken":     failure(500, "server_error", scenarioWordsBroken),
			"overloaded": failure(503, "server_is_overloaded", scenarioWordsOverloaded),
		},
		inside: []scenarioInside{
			{scenarioEvent{"error", `{"type":"error","code":"server_is_overloaded","message":"` + scenarioWordsOverloaded + `","param":null}`}, scenarioWordsOverloaded, true, false},
			{scenarioResponsesFailed("server_error", scenarioWordsBroken), scenarioWordsBroken, true, false},
			{scenarioResponsesFailed("context_length_exceeded", scenarioWordsOverflow), scenarioWordsOverflow, false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, CacheWrite: u.stored, Reasoning: &u.reasoning, TotalTokens: u.input + u.output + u.cached + u.stored}
		},
	}
}

func scenarioResponses() *scenarioDialect {
	d := scenarioResponsesFamily("openai-responses", "openai", "OpenAI API error", "oai")
	d.base, d.path = "/v1", "/responses"
	return d
}

func scenarioAzure() *scenarioDialect {
	d := scenarioResponsesFamily("azure-openai-responses", "azure", "Azure OpenAI API error", "azr")
	d.base, d.path = "/openai/v1", "/responses?api-version=v1"
	return d
}

// scenarioCodex has the words of ChatGPT's plans. They tell when a plan can be
// used again, and for that time nobody is to try.
func scenarioCodex() *scenarioDialect {
	d := scenarioResponsesFamily("openai-codex-responses", "openai-codex", "", "cdx")
	d.base, d.path, d.key = "/backend-api", "/codex/responses", accountToken
	d.accept = "text/event-stream"
	d.failSeen = true
	for class, f := range d.failures {
		_, message, _ := strings.Cut(f.body, `"message":"`)
		f.says, _, _ = strings.Cut(message, `"`)
		d.failures[class] = f
	}
	d.overflow[0].says = scenarioWordsOverflow
	d.failures["model"] = scenarioFailure{status: 404, body: `{"detail":"The 'scenario-5' model is not supported when using Codex with a ChatGPT account."}`, says: "404 {"}
	limited := d.failures["limited"]
	limited.says, limited.final = "You have hit your ChatGPT usage limit.", true
	d.failures["limited"] = limited
	d.failures["quota"] = scenarioFailure{status: 429, body: `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":7200}}`,
		says: "You have hit your ChatGPT usage limit (plus plan). Try again in ~120 min."}
	d.inside[0].says = "Codex error: " + scenarioWordsOverloaded
	return d
}

func scenarioResponsesFailed(code, message string) scenarioEvent {
	return scenarioEvent{"response.failed", `{"type":"response.failed","response":{"id":"resp_scenario","status":"failed","error":{"code":"` + code + `","message":"` + message + `"}}}`}
}

func scenarioResponsesEvents(d *scenarioDialect, a *scenarioAnswer, tag string) []scenarioEvent {
	var out []scenarioEvent
	say := func(name, format string, args ...any) {
		out = append(out, scenarioEvent{name, fmt.Sprintf(`{"type":%q,`+format+`}`, append([]any{name}, args...)...)})
	}
	say("response.created", `"response":{"id":"resp_scenario","status":"in_progress","output":[]}`)
	n := 0
	if a.thinking != "" {
		id := "rs_" + tag + "01"
		say("response.output_item.added", `"output_index":%d,"item":{"id":%q,"type":"reasoning","summary":[]}`, n, id)
		for _, h := range scenarioHalves(a.thinking) {
			say("response.reasoning_summary_text.delta", `"output_index":%d,"item_id":%q,"summary_index":0,"delta":%s`, n, id, scenarioQuote(h))
		}
		say("response.output_item.done", `"output_index":%d,"item":{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":%s}],"encrypted_content":%q}`, n, id, scenarioQuote(a.thinking), d.signature)
		n++
	}
	if len(a.text) > 0 {
		id := "msg_" + tag + "01"
		say("response.output_item.added", `"output_index":%d,"item":{"id":%q,"type":"message","status":"in_progress","role":"assistant","content":[]}`, n, id)
		say("response.content_part.added", `"output_index":%d,"content_index":0,"item_id":%q,"part":{"type":"output_text","text":"","annotations":[]}`, n, id)
		for _, piece := range a.text {
			say("response.output_text.delta", `"output_index":%d,"content_index":0,"item_id":%q,"delta":%s`, n, id, scenarioQuote(piece))
		}
		say("response.output_item.done", `"output_index":%d,"item":{"id":%q,"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, n, id, scenarioQuote(strings.Join(a.text, "")))
		n++
	}
	for i, c := range a.calls {
		call, item, _ := strings.Cut(c.id, "|")
		say("response.output_item.added", `"output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","call_id":%q,"name":%q,"arguments":""}`, n+i, item, call, c.name)
	}
	for half := range 2 { // the calls come side by side
		for i, c := range a.calls {
			_, item, _ := strings.Cut(c.id, "|")
			say("response.function_call_arguments.delta", `"output_index":%d,"item_id":%q,"delta":%s`, n+i, item, scenarioQuote(scenarioHalves(c.args)[half]))
		}
	}
	for i, c := range a.calls {
		call, item, _ := strings.Cut(c.id, "|")
		say("response.function_call_arguments.done", `"output_index":%d,"item_id":%q,"arguments":%s`, n+i, item, scenarioQuote(c.args))
		say("response.output_item.done", `"output_index":%d,"item":{"id":%q,"type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%s}`, n+i, item, call, c.name, scenarioQuote(c.args))
	}
	u := a.usage
	input := u.input + u.cached + u.stored
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		input, u.cached, u.stored, u.output, u.reasoning, input+u.output)
	if a.stop == llm.StopLength {
		say("response.incomplete", `"response":{"id":"resp_scenario","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],%s}`, usage)
	} else {
		say("response.completed", `"response":{"id":"resp_scenario","status":"completed","output":[],%s}`, usage)
	}
	return out
}

func scenarioReadResponses(body map[string]any) (s scenarioSent) {
	var system []string
	pictures := func(content any) {
		for _, p := range asObjects(content) {
			if p["type"] == "input_image" {
				s.items = append(s.items, scenarioItem{kind: "image", text: scenarioData(p["image_url"])})
			}
		}
	}
	for _, it := range asObjects(body["input"]) {
		switch typ := scenarioString(it["type"]); typ {
		case "", "message":
			switch it["role"] {
			case "system", "developer":
				system = append(system, scenarioJoin(it["content"]))
			case "user":
				for _, p := range asObjects(it["content"]) {
					if p["type"] == "input_text" {
						s.items = append(s.items, scenarioItem{kind: "user", text: scenarioString(p["text"])})
					}
				}
				pictures(it["content"])
			case "assistant":
				s.items = append(s.items, scenarioItem{kind: "text", text: scenarioJoin(it["content"]), id: scenarioString(it["id"])})
			}
		case "reasoning":
			s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioJoin(it["summary"]), signature: scenarioString(it["encrypted_content"])})
		case "function_call":
			id := scenarioString(it["call_id"])
			if item := scenarioString(it["id"]); item != "" {
				id += "|" + item
			}
			s.items = append(s.items, scenarioItem{kind: "call", id: id, name: scenarioString(it["name"]), args: scenarioCanonical(scenarioString(it["arguments"]))})
		case "function_call_output":
			s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(it["call_id"]), text: scenarioJoin(it["output"])})
			pictures(it["output"])
		}
	}
	s.system = strings.Join(system, "\n")
	for _, t := range asObjects(body["tools"]) {
		s.tools = append(s.tools, scenarioTool{scenarioString(t["name"]), scenarioString(t["description"]), t["parameters"]})
	}
	s.level = scenarioString(scenarioAt(body, "reasoning", "effort"))
	return s
}
