package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The rules of the services behind the wire formats, as far as they speak of
// calls and their results.

func asObjects(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, e := range list {
		o, _ := e.(map[string]any)
		out = append(out, o)
	}
	return out
}

// checkResponses knows the input items of the Responses family: ids of calls
// are unique and at most 64 long, each call has one output before a user speaks
// again, item ids have their kind in front, and a reasoning item is followed by
// what came of it. Calls of one answer may have an id in common, as peers send it.
func checkResponses(body map[string]any) error {
	items := asObjects(body["input"])
	if len(items) == 0 {
		return errNoMessages
	}
	seen, open := map[string]bool{}, map[string]int{}
	for i, it := range items {
		typ, _ := it["type"].(string)
		role, _ := it["role"].(string)
		callID, _ := it["call_id"].(string)
		id, hasID := it["id"].(string)
		if hasID && (id == "" || len(id) > 64) {
			return fmt.Errorf("item %d: id %q", i, id)
		}
		switch typ {
		case "function_call", "custom_tool_call":
			if callID == "" || len(callID) > 64 || seen[callID] && open[callID] == 0 {
				return fmt.Errorf("item %d: bad or doubled call id %q", i, callID)
			}
			if prefix := map[string]string{"function_call": "fc_", "custom_tool_call": "ctc_"}[typ]; hasID && !strings.HasPrefix(id, prefix) {
				return fmt.Errorf("item %d: a %s has the id %q", i, typ, id)
			}
			if args, _ := it["arguments"].(string); typ == "function_call" && !json.Valid([]byte(args)) {
				return fmt.Errorf("item %d: arguments %q", i, args)
			}
			seen[callID] = true
			open[callID]++
		case "function_call_output", "custom_tool_call_output":
			if open[callID] == 0 {
				return fmt.Errorf("item %d: output %q answers no open call", i, callID)
			}
			if open[callID]--; open[callID] == 0 {
				delete(open, callID)
			}
			if s, ok := it["output"].(string); !ok && len(asObjects(it["output"])) == 0 || ok && s == "" {
				return fmt.Errorf("item %d: the output is empty", i)
			}
		case "reasoning":
			if i+1 == len(items) {
				return fmt.Errorf("item %d: reasoning at the end", i)
			}
			switch next := items[i+1]; {
			case next["role"] == "assistant", next["type"] == "reasoning", next["type"] == "function_call", next["type"] == "custom_tool_call":
			default:
				return fmt.Errorf("item %d: reasoning in front of %v", i, next)
			}
		case "message", "":
			if len(open) > 0 && role != "assistant" {
				return fmt.Errorf("item %d (%s): calls without results: %v", i, role, open)
			}
			switch role {
			case "user", "assistant":
				if len(asObjects(it["content"])) == 0 {
					return fmt.Errorf("item %d has no content", i)
				}
			case "system", "developer":
			default:
				return fmt.Errorf("item %d has role %q", i, role)
			}
		case "additional_tools", "tool_search_call", "tool_search_output", "configuration_update":
		default:
			return fmt.Errorf("item %d has type %q", i, typ)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results at the end: %v", open)
	}
	return nil
}

// checkGoogle knows the contents of Gemini: the calls of a turn are answered, all
// of them, by the very next one, which names them by id, or else by function.
// Where it names them by function, pictures of a result stand in a content of
// their own right behind it, as peers send them to the models of that time.
func checkGoogle(ids bool) func(map[string]any) error {
	return func(body map[string]any) error {
		contents := asObjects(body["contents"])
		if len(contents) == 0 {
			return errNoMessages
		}
		seen := map[string]bool{}
		var open []map[string]any
		for i, c := range contents {
			role, _ := c["role"].(string)
			parts := asObjects(c["parts"])
			if role != "user" && role != "model" || len(parts) == 0 {
				return fmt.Errorf("content %d: role %q, %d parts", i, role, len(parts))
			}
			var calls, answers []map[string]any
			for _, p := range parts {
				if sig, ok := p["thoughtSignature"].(string); ok && (sig == "" || len(sig)%4 != 0) {
					return fmt.Errorf("content %d: thought signature %q", i, sig)
				}
				if call, ok := p["functionCall"].(map[string]any); ok {
					calls = append(calls, call)
					id, has := call["id"].(string)
					if has != ids || has && (id == "" || seen[id]) {
						return fmt.Errorf("content %d: call id %v (wanted: %v)", i, call["id"], ids)
					}
					seen[id] = true
					if _, ok := call["args"].(map[string]any); !ok {
						return fmt.Errorf("content %d: args %v", i, call["args"])
					}
				}
				if answer, ok := p["functionResponse"].(map[string]any); ok {
					answers = append(answers, answer)
				}
				if text, ok := p["text"].(string); ok && role == "model" && strings.TrimSpace(text) == "" && p["thoughtSignature"] == nil && p["thought"] == nil {
					return fmt.Errorf("content %d: blank text of the model", i)
				}
			}
			pictures := !ids && len(answers) == 0 && len(parts) > 0 && parts[0]["text"] == "Tool result image:"
			if len(answers) != len(open) && (ids || len(answers) == 0 && !pictures) {
				return fmt.Errorf("content %d: %d calls, %d responses", i, len(open), len(answers))
			}
			for _, a := range answers {
				k := slices.IndexFunc(open, func(call map[string]any) bool {
					return a["id"] == call["id"] && a["name"] == call["name"]
				})
				if role != "user" || k < 0 {
					return fmt.Errorf("content %d: response %v answers none of %v", i, a, open)
				}
				open = slices.Delete(open, k, k+1)
			}
			if len(calls) > 0 && (role != "model" || len(open) > 0) {
				return fmt.Errorf("content %d (%s): calls behind %v", i, role, open)
			}
			open = append(open, calls...)
		}
		if len(open) > 0 {
			return fmt.Errorf("calls without responses at the end: %v", open)
		}
		return nil
	}
}

var bedrockID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkBedrock knows the messages of Converse: results of all calls of a message
// are in the next one, and no content is blank.
func checkBedrock(body map[string]any) error {
	messages := asObjects(body["messages"])
	if len(messages) == 0 {
		return errNoMessages
	}
	seen, open := map[string]bool{}, map[string]bool{}
	for i, m := range messages {
		role, _ := m["role"].(string)
		blocks := blocksOf(m)
		if role != "user" && role != "assistant" || len(blocks) == 0 {
			return fmt.Errorf("message %d: role %q, %d blocks", i, role, len(blocks))
		}
		results := open
		open = map[string]bool{}
		for _, b := range blocks {
			if text, ok := b["text"].(string); ok && strings.TrimSpace(text) == "" {
				return fmt.Errorf("message %d: blank text", i)
			}
			if use, ok := b["toolUse"].(map[string]any); ok {
				id, _ := use["toolUseId"].(string)
				if role != "assistant" || !bedrockID.MatchString(id) || seen[id] {
					return fmt.Errorf("message %d (%s): bad or doubled call id %q", i, role, id)
				}
				if _, ok := use["input"].(map[string]any); !ok {
					return fmt.Errorf("message %d: input %v", i, use["input"])
				}
				seen[id], open[id] = true, true
			}
			if result, ok := b["toolResult"].(map[string]any); ok {
				id, _ := result["toolUseId"].(string)
				if role != "user" || !results[id] {
					return fmt.Errorf("message %d (%s): result %q answers no call of the message before", i, role, id)
				}
				if len(blocksOf(result)) == 0 {
					return fmt.Errorf("message %d: result %q says nothing", i, id)
				}
				delete(results, id)
			}
			if thinking, ok := b["reasoningContent"].(map[string]any); ok && (role != "assistant" || len(thinking) != 1) {
				return fmt.Errorf("message %d (%s): reasoning %v", i, role, thinking)
			}
		}
		if len(results) > 0 {
			return fmt.Errorf("message %d: calls without results: %v", i, results)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results at the end: %v", open)
	}
	return nil
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// checkMistral adds the form of ids to the rules of chat completions.
func checkMistral(body map[string]any) error {
	seen, open := map[string]bool{}, map[string]bool{}
	messages := asObjects(body["messages"])
	if len(messages) == 0 {
		return errNoMessages
	}
	for i, m := range messages {
		role, _ := m["role"].(string)
		if role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d (%s): calls without results: %v", i, role, open)
		}
		calls := asObjects(m["tool_calls"])
		content, _ := m["content"].(string)
		says := strings.TrimSpace(content) != "" || len(blocksOf(m)) > 0
		switch role {
		case "tool":
			id, _ := m["tool_call_id"].(string)
			if !open[id] || !says {
				return fmt.Errorf("message %d: result %q answers no open call, or says nothing", i, id)
			}
			delete(open, id)
		case "assistant":
			if !says && len(calls) == 0 {
				return fmt.Errorf("message %d: assistant says nothing", i)
			}
			for _, c := range calls {
				id, _ := c["id"].(string)
				// Ids of the model itself are what it made them.
				if id == "" || seen[id] || !mistralID.MatchString(id) {
					return fmt.Errorf("message %d: bad or doubled call id %q", i, id)
				}
				f, _ := c["function"].(map[string]any)
				if args, _ := f["arguments"].(string); !json.Valid([]byte(args)) {
					return fmt.Errorf("message %d: arguments %v", i, f["arguments"])
				}
				seen[id], open[id] = true, true
			}
		case "user", "system":
		default:
			return fmt.Errorf("message %d has role %q", i, role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results at the end: %v", open)
	}
	return nil
}
