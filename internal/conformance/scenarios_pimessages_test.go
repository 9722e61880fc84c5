package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// The dialect of pi-messages. Its gateway gets the messages as they are and
// transforms them itself, so nothing is hidden from it.

func scenarioPiMessages() *scenarioDialect {
	failure := func(status int, code, message string) scenarioFailure {
		return scenarioFailure{status: status, body: fmt.Sprintf(`{"error":{"message":"%s","code":"%s"}}`, message, code),
			says: fmt.Sprintf("%d %s: %s (%s)", status, http.StatusText(status), message, code)}
	}
	limited := failure(429, "rate_limited", "Too many requests from this account")
	limited.header = map[string]string{"Retry-After": "2"}
	event := func(message string) scenarioEvent {
		return scenarioEvent{data: `{"type":"error","reason":"error","errorMessage":"` + message + `","usage":{"input":5,"output":6,"cacheRead":0,"cacheWrite":0,"totalTokens":11,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"total":3}}}`}
	}
	return &scenarioDialect{
		api: "pi-messages",
		model: llm.Model{ID: "scenario-router", API: "pi-messages", Provider: "radius", Reasoning: true, Input: []string{"text", "image"},
			Cost: scenarioRates(), ContextWindow: 400_000, MaxTokens: 32_000},
		base: "/v1", path: "/messages", key: "radius-scenario-key",
		ids:       []string{"router/call:1|a", "router/call:2|b"},
		signature: "routerSignature0001", marks: []string{"routerSignature0001", "routerTextSignature0001"}, verbatim: true,
		levels:    map[llm.ThinkingLevel]string{"": "", llm.LevelLow: "low", llm.LevelHigh: "high"},
		mediaType: "text/event-stream", encode: scenarioSSE("\n"), events: scenarioPiMessagesEvents,
		read: scenarioReadPiMessages, keepAlive: []byte(": ping\n\n"),
		overflow: []scenarioFailure{
			failure(400, "context_length_exceeded", "The upstream model refuses the prompt"),
			failure(413, "too_large", "The request is too large"),
		},
		failures: map[string]scenarioFailure{
			"key":        failure(401, "invalid_api_key", "This key is not known"),
			"forbidden":  failure(403, "forbidden", "This key may not use the model"),
			"model":      failure(404, "model_not_found", "There is no model scenario-router"),
			"invalid":    failure(400, "invalid_request", "context.messages has to be an array"),
			"limited":    limited,
			"quota":      failure(402, "billing", "There is no credit left"),
			"broken":     failure(500, "internal", "Something broke"),
			"overloaded": failure(503, "overloaded", "Too busy"),
		},
		inside: []scenarioInside{
			{event("529 overloaded_error: Overloaded"), "529 overloaded_error: Overloaded", true, false},
			{event("400 prompt is too long: 211000 tokens > 200000 maximum"), "400 prompt is too long", false, true},
		},
		counts: func(u scenarioUsage) llm.Usage {
			return llm.Usage{Input: u.input, Output: u.output, CacheRead: u.cached, CacheWrite: u.stored, Reasoning: &u.reasoning, TotalTokens: u.input + u.output + u.cached + u.stored}
		},
		drops: true, noRetries: true, failSeen: true,
	}
}

func scenarioPiMessagesEvents(d *scenarioDialect, a *scenarioAnswer) []scenarioEvent {
	out := []scenarioEvent{{data: `{"type":"start"}`}}
	n := 0
	say := func(typ, more string) {
		out = append(out, scenarioEvent{data: fmt.Sprintf(`{"type":%q,"contentIndex":%d%s}`, typ, n, more)})
	}
	if a.thinking != "" {
		say("thinking_start", "")
		for _, h := range scenarioHalves(a.thinking) {
			say("thinking_delta", `,"delta":`+scenarioQuote(h))
		}
		say("thinking_end", `,"content":`+scenarioQuote(a.thinking)+`,"contentSignature":`+scenarioQuote(d.signature))
		n++
	}
	if len(a.text) > 0 {
		say("text_start", "")
		for _, piece := range a.text {
			say("text_delta", `,"delta":`+scenarioQuote(piece))
		}
		say("text_end", `,"content":`+scenarioQuote(strings.Join(a.text, ""))+`,"contentSignature":"routerTextSignature0001"`)
		n++
	}
	for _, c := range a.calls {
		say("toolcall_start", `,"id":`+scenarioQuote(c.id)+`,"toolName":`+scenarioQuote(c.name))
		for _, h := range scenarioHalves(c.args) {
			say("toolcall_delta", `,"delta":`+scenarioQuote(h))
		}
		say("toolcall_end", `,"toolCall":{"type":"toolCall","id":`+scenarioQuote(c.id)+`,"name":`+scenarioQuote(c.name)+`,"arguments":`+c.args+`}`)
		n++
	}
	u := a.usage
	return append(out, scenarioEvent{data: fmt.Sprintf(`{"type":"done","reason":%q,"usage":{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,"reasoning":%d,"totalTokens":%d,"cost":{"input":0.1,"output":0.2,"cacheRead":0.3,"cacheWrite":0.4,"total":1}},"responseId":"resp-scenario"}`,
		a.stop, u.input, u.output, u.cached, u.stored, u.reasoning, u.input+u.output+u.cached+u.stored)})
}

func scenarioReadPiMessages(body map[string]any) (s scenarioSent) {
	var system []string
	content := func(kind string, v any) {
		if text, ok := v.(string); ok {
			s.items = append(s.items, scenarioItem{kind: kind, text: text})
		}
		for _, b := range asObjects(v) {
			switch b["type"] {
			case "text":
				s.items = append(s.items, scenarioItem{kind: kind, text: scenarioString(b["text"])})
			case "thinking":
				s.items = append(s.items, scenarioItem{kind: "thinking", text: scenarioString(b["thinking"]), signature: scenarioString(b["thinkingSignature"])})
			case "toolCall":
				s.items = append(s.items, scenarioItem{kind: "call", id: scenarioString(b["id"]), name: scenarioString(b["name"]), args: scenarioJSON(b["arguments"])})
			}
		}
	}
	pictures := func(v any) {
		for _, b := range asObjects(v) {
			if b["type"] == "image" {
				s.items = append(s.items, scenarioItem{kind: "image", text: scenarioString(b["data"])})
			}
		}
	}
	for _, m := range asObjects(scenarioAt(body, "context", "messages")) {
		switch m["role"] {
		case "system":
			system = append(system, scenarioJoin(m["content"]))
			if sections, ok := m["sections"].(map[string]any); ok {
				system = append(system, scenarioJSON(sections))
			}
			for _, t := range asObjects(m["toolsAdded"]) {
				s.tools = append(s.tools, scenarioTool{scenarioString(t["name"]), scenarioString(t["description"]), t["parameters"]})
			}
		case "user":
			content("user", m["content"])
			pictures(m["content"])
		case "assistant":
			content("text", m["content"])
		case "toolResult":
			s.items = append(s.items, scenarioItem{kind: "result", id: scenarioString(m["toolCallId"]), name: scenarioString(m["toolName"]), text: scenarioJoin(m["content"])})
			pictures(m["content"])
		}
	}
	s.system = strings.Join(system, "\n")
	s.level = scenarioString(scenarioAt(body, "options", "reasoning"))
	return s
}
