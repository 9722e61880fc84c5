package conformance

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// The dialects of Gemini: google-generative-ai with a model that names its calls
// by ids, google-vertex with one that does not.

// scenarioGemini is what both have in common.
func scenarioGemini(api, provider, model, tag string, ids bool) *scenarioDialect {
	signature, callSignature := scenarioBase64(tag+" of thought "), scenarioBase64(tag+" of a call ")
	failure := func(status int, word, message string) scenarioFailure {
		body := fmt.Sprintf(`{"error":{"code":%d,"message":"%s","status":"%s"}}`, status, message, word)
		return scenarioFailure{status: status, body: body, says: body}
	}
	limited := failure(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
	limited.header = map[string]string{"Retry-After": "2"}
	return &scenarioDialect{
		api: api,
		model: llm.Model{ID: model, API: api, Provider: provider, Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 1_000_000, MaxTokens: 60_000},
		key:       "AIzaSyScenario-key-of-" + tag,
		signature: signature, marks: []string{signature, callSignature},
		mediaType: "text/event-stream", encode: scenarioSSE("\r\n"),
		events: func(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
			return scenarioGoogleEvents(d, a, callSignature)
		},
		read: scenarioReadGoogle, check: checkGoogle(ids), keepAlive: []byte(": ping\r\n\r\n"),
		overflow: []scenarioFailure{failure(400, "INVALID_ARGUMENT", "The input token count (1191265) exceeds the maximum number of tokens allowed (1048575).")},
		failures: map[string]scenarioFailure{
			"key":        failure(401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
			"forbidden":  failure(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."),
			"model":      failure(404, "NOT_FOUND", "models/gemini-scenario is not found for API version v1beta."),
			"invalid":    failure(400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts is equal to the number of function call parts."),
			"limited":    limited,
			"quota":      failure(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
			"broken":     failure(500, "INTERNAL", "An internal error has occurred. Please retry or report in the help center."),
			"overloaded": failure(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
		},
		inside: []scenarioInside{
			{scenarioEvent{"", `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`}, "got status: UNAVAILABLE. ", true, false},
			{scenarioEvent{"", `{"error":{"code":400,"message":"The input token count (1191265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`}, "got status: INVALID_ARGUMENT. ", false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, Reasoning: &u.reasoning, TotalTokens: u.input + u.output + u.cached}
		},
	}
}

func scenarioGoogle() *scenarioDialect {
	d := scenarioGemini("google-generative-ai", "google", "gemini-3-pro-scenario", "gemini", true)
	d.base, d.path = "/v1beta", "/models/gemini-3-pro-scenario:streamGenerateContent?alt=sse"
	d.ids = []string{"fc-7231.a", "fc-7231.b"}
	d.levels = map[llm.ThinkingLevel]string{"": "0", llm.LevelLow: "LOW", llm.LevelHigh: "HIGH"}
	return d
}

func scenarioVertex() *scenarioDialect {
	d := scenarioGemini("google-vertex", "google-vertex", "gemini-2.5-pro-scenario", "vertex", false)
	d.path = "/v1/publishers/google/models/gemini-2.5-pro-scenario:streamGenerateContent?alt=sse"
	d.levels = map[llm.ThinkingLevel]string{"": "0", llm.LevelLow: "2048", llm.LevelHigh: "32768"}
	return d
}

func scenarioGoogleEvents(d *scenarioDialect, a *scenarioAnswer, callSignature string) []scenarioEvent {
	var out []scenarioEvent
	say := func(part, more string) {
		out = append(out, scenarioEvent{data: `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"index":0` + more + `,"responseId":"resp-scenario","modelVersion":` + scenarioQuote(d.model.ID) + `}`})
	}
	if a.thinking != "" {
		h := scenarioHalves(a.thinking)
		say(`{"text":`+scenarioQuote(h[0])+`,"thought":true}`, `}]`)
		say(`{"text":`+scenarioQuote(h[1])+`,"thought":true,"thoughtSignature":`+scenarioQuote(d.signature)+`}`, `}]`)
	}
	for _, piece := range a.text {
		say(`{"text":`+scenarioQuote(piece)+`}`, `}]`)
	}
	var calls []string
	for i, c := range a.calls {
		call := `{"functionCall":{"name":` + scenarioQuote(c.name) + `,"args":` + c.args
		if c.id != "" {
			call += `,"id":` + scenarioQuote(c.id)
		}
		if call += `}`; i == 0 { // parallel calls have one signature
			call += `,"thoughtSignature":` + scenarioQuote(callSignature)
		}
		calls = append(calls, call+`}`)
	}
	if len(calls) > 0 {
		say(strings.Join(calls, ","), `}]`)
	}
	finish := map[llm.StopReason]string{llm.StopStop: "STOP", llm.StopLength: "MAX_TOKENS", llm.StopToolUse: "STOP"}[a.stop]
	u := a.usage
	say(`{"text":""}`, fmt.Sprintf(`,"finishReason":%q}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d}`,
		finish, u.input+u.cached, u.cached, u.output-u.reasoning, u.reasoning, u.input+u.cached+u.output))
	if a.stop == llm.StopToolUse || len(a.text) == 0 {
		// The last chunk of a call has no part.
		last := &out[len(out)-1]
		last.data = strings.Replace(last.data, `"parts":[{"text":""}]`, `"parts":[]`, 1)
	}
	return out
}

func scenarioReadGoogle(body map[string]any) (s scenarioSent) {
	var system []string
	for _, p := range asObjects(scenarioAt(body, "systemInstruction", "parts")) {
		system = append(system, scenarioString(p["text"]))
	}
	s.system = strings.Join(system, "\n")
	picture := func(p map[string]any) {
		if data := scenarioString(scenarioAt(p, "inlineData", "data")); data != "" {
			s.items = append(s.items, scenarioItem{kind: "image", text: data})
		}
	}
	for _, c := range asObjects(body["contents"]) {
		textKind := map[string]string{"user": "user", "model": "text"}[scenarioString(c["role"])]
		for _, p := range asObjects(c["parts"]) {
			if text, ok := p["text"].(string); ok {
				it := scenarioItem{kind: textKind, text: text, signature: scenarioString(p["thoughtSignature"])}
				if p["thought"] == true {
					it.kind = "thinking"
				}
				s.items = append(s.items, it)
			}
			picture(p)
			if call, ok := p["functionCall"].(map[string]any); ok {
				s.items = append(s.items, scenarioItem{kind: "call", id: scenarioString(call["id"]), name: scenarioString(call["name"]), args: scenarioJSON(call["args"]), signature: scenarioString(p["thoughtSignature"])})
			}
			if result, ok := p["functionResponse"].(map[string]any); ok {
				text, failed := scenarioAt(result, "response", "output").(string)
				if !failed {
					text = scenarioString(scenarioAt(result, "response", "error"))
				}
				s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(result["id"]), name: scenarioString(result["name"]), text: text})
				for _, part := range asObjects(result["parts"]) {
					picture(part)
				}
			}
		}
	}
	for _, t := range asObjects(body["tools"]) {
		for _, f := range asObjects(t["functionDeclarations"]) {
			s.tools = append(s.tools, scenarioTool{scenarioString(f["name"]), scenarioString(f["description"]), f["parametersJsonSchema"]})
		}
	}
	config, _ := scenarioAt(body, "generationConfig", "thinkingConfig").(map[string]any)
	switch {
	case config["thinkingLevel"] != nil:
		s.level = scenarioString(config["thinkingLevel"])
	case config["thinkingBudget"] != nil:
		s.level = scenarioJSON(config["thinkingBudget"])
	}
	return s
}
