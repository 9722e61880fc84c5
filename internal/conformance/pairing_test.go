package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/bedrock"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/llm/google"
	"github.com/pinch-agent/pinch/llm/mistral"
	"github.com/pinch-agent/pinch/llm/responses"
)

var (
	long = flag.Bool("long", false, "run the long proofs")
	seed = flag.Uint64("seed", 0, "seed of random tests; 0 for a fixed one")
)

var errNoMessages = errors.New("no messages")

// pairingTargets are the models that random histories are replayed on, with
// the checker of the rules that their service refuses requests by.
func pairingTargets() []struct {
	name  string
	api   llm.API
	model *llm.Model
	check func(body map[string]any) error
} {
	model := func(api, provider, compat string, input ...string) *llm.Model {
		m := &llm.Model{ID: "target-1", API: api, Provider: provider, BaseURL: "http://127.0.0.1:1", Reasoning: true,
			Input: append([]string{"text"}, input...), ContextWindow: 200000, MaxTokens: 8000}
		if compat != "" {
			m.Compat = jsontext.Value(compat)
		}
		return m
	}
	a, c := anthropic.New(anthropic.Config{}), completions.New(completions.Config{})
	r, g, b := responses.New(responses.Config{}), google.New(google.Config{}), bedrock.New(bedrock.Config{})
	named := func(m *llm.Model, id string) *llm.Model {
		m.ID = id
		return m
	}
	return []struct {
		name  string
		api   llm.API
		model *llm.Model
		check func(body map[string]any) error
	}{
		{"anthropic", a, model("anthropic-messages", "anthropic", "", "image"), checkAnthropic},
		{"anthropic without images", a, model("anthropic-messages", "anthropic", ""), checkAnthropic},
		{"anthropic with changes on the way", a, model("anthropic-messages", "anthropic", `{"supportsMidConvoSystemMessages":true,"supportsMidConvoToolChanges":true}`, "image"), checkAnthropic},
		{"openai", c, model("openai-completions", "openai", "", "image"), checkOpenAI},
		{"custom completions", c, model("openai-completions", "acme", `{"requiresAssistantAfterToolResult":true,"requiresToolResultName":true}`, "image"), checkCompletions},
		{"responses", r, model("openai-responses", "openai", "", "image"), checkResponses},
		{"responses of another provider", r, model("openai-responses", "xai", ""), checkResponses},
		{"responses with tools on the way", r, model("openai-responses", "openai", `{"supportsAdditionalTools":true,"supportsMidConvoEffort":true}`, "image"), checkResponses},
		{"responses with tool search", r, model("openai-responses", "openai", `{"supportsToolSearch":true}`, "image"), checkResponses},
		{"azure", responses.NewAzure(responses.Config{}), model("azure-openai-responses", "azure", "", "image"), checkResponses},
		{"codex", responses.NewCodex(responses.Config{}), model("openai-codex-responses", "openai-codex", "", "image"), checkResponses},
		{"gemini 2.5", g, named(model("google-generative-ai", "google", "", "image"), "gemini-2.5-pro"), checkGoogle(false)},
		{"gemini 3", g, named(model("google-generative-ai", "google", "", "image"), "gemini-3-pro"), checkGoogle(true)},
		{"vertex", google.NewVertex(google.Config{}), named(model("google-vertex", "google-vertex", "", "image"), "gemini-3-flash"), checkGoogle(true)},
		{"claude on bedrock", b, named(model("bedrock-converse-stream", "amazon-bedrock", "", "image"), "anthropic.claude-sonnet-4-5"), checkBedrock},
		{"nova on bedrock", b, named(model("bedrock-converse-stream", "amazon-bedrock", ""), "amazon.nova-pro"), checkBedrock},
		{"mistral", mistral.New(mistral.Config{}), model("mistral-conversations", "mistral", "", "image"), checkMistral},
		{"openrouter with markers", c, model("openai-completions", "openrouter", `{"cacheControlFormat":"anthropic","supportsMidConvoToolAdditions":true}`), checkCompletions},
	}
}

// accountToken is a key that every format takes; one wants an account in it.
var accountToken = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"https://api.openai.com/auth":{"chatgpt_account_id":"a"}}`)) + ".x"

// TestAnyHistoryMakesAnAcceptableRequest is law 1: whatever a session holds,
// the next request keeps the services' rules of calls and results.
func TestAnyHistoryMakesAnAcceptableRequest(t *testing.T) {
	n, s := 20_000, *seed
	if *long {
		n = 120_000
	}
	if testing.Short() {
		n = 2_000
	}
	if s == 0 {
		s = 20261130
	}
	t.Logf("%d histories, seed %d", n, s)
	stop := errors.New("enough")
	targets := pairingTargets()
	for i := range n {
		r := rand.New(rand.NewPCG(s, uint64(i)))
		history := randomHistory(r)
		target := targets[i%len(targets)]
		var memo llm.Memo
		// The same conversation is sent while it grows, as a session is, so
		// that what is remembered of earlier requests is checked too.
		for _, end := range []int{r.IntN(len(history)) + 1, len(history)} {
			var body jsontext.Value
			req := &llm.Request{Messages: history[:end], Options: llm.Options{APIKey: accountToken, Memo: &memo, Reasoning: llm.LevelLow,
				OnPayload: func(p jsontext.Value, _ *llm.Model) (jsontext.Value, error) {
					body = append(jsontext.Value(nil), p...)
					return nil, stop
				}}}
			st, err := target.api.Stream(context.Background(), target.model, req)
			if err != nil {
				t.Fatal(err)
			}
			if m := st.Result(); body == nil {
				t.Fatalf("seed %d, history %d, %s: no request: %s", s, i, target.name, m.ErrorMessage)
			}
			var parsed map[string]any
			if err := json.Unmarshal(body, &parsed); err != nil {
				t.Fatalf("seed %d, history %d, %s: body is no JSON: %v\n%s", s, i, target.name, err, body)
			}
			// The part of a history may say nothing yet.
			if err := target.check(parsed); err != nil && !(err == errNoMessages && end < len(history)) {
				var h strings.Builder
				for _, m := range history[:end] {
					fmt.Fprintf(&h, "%s\n", m.AppendJSON(nil))
				}
				t.Fatalf("seed %d, history %d, %s: %v\nhistory:\n%s\nbody:\n%s", s, i, target.name, err, h.String(), body)
			}
		}
	}
}

// randomHistory is a transcript such as crashes, edits, model switches and
// other programs can leave behind. It ends with a user message that says something.
func randomHistory(r *rand.Rand) []llm.Message {
	ids := []string{"call_1", "call_2", "toolu_3", "fc|item", "weird id!{}", strings.Repeat("long", 30), "", "call_1", "a|b|c", "ünï", "call_9|fc_9", "call_9|rs_9", "|", "abcdefghi", "abcdefgh!"}
	sources := [][3]string{{"anthropic-messages", "anthropic", "target-1"}, {"openai-completions", "openai", "target-1"}, {"openai-completions", "acme", "target-1"}, {"openai-responses", "openai", "target-1"}, {"openai-responses", "openai", "other"},
		{"openai-codex-responses", "openai-codex", "target-1"}, {"google-generative-ai", "google", "gemini-3-pro"},
		{"bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-sonnet-4-5"}, {"mistral-conversations", "mistral", "mistral-large"}}
	texts := []string{"hello", "", "  \n", "half \xed\xa0\xbd", "\xed\xb9\x88", "ünïcode 🙈", "x"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	image := func() *llm.Image {
		return &llm.Image{Data: base64.StdEncoding.EncodeToString([]byte("not really")), MimeType: "image/png"}
	}
	content := func() []llm.Block {
		blocks := []llm.Block{}
		for range r.IntN(3) {
			if r.IntN(4) == 0 {
				blocks = append(blocks, image())
			} else {
				blocks = append(blocks, &llm.Text{Text: pick(texts)})
			}
		}
		if r.IntN(20) == 0 {
			blocks = append(blocks, &llm.UnknownBlock{Type: "hologram", Raw: jsontext.Value(`{"type":"hologram"}`)})
		}
		return blocks
	}
	tool := func(name string) llm.Tool {
		return llm.Tool{Name: name, Description: "d", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	}
	var out []llm.Message
	var open []string
	ts := int64(1_750_000_000_000)
	if r.IntN(5) > 0 {
		out = append(out, &llm.System{Content: llm.Plain(pick(texts)), ToolsAdded: []llm.Tool{tool("read"), tool("bash")}, Timestamp: ts})
	}
	for range r.IntN(14) {
		ts += int64(r.IntN(3)) * 1000
		switch r.IntN(10) {
		case 0, 1:
			if r.IntN(2) == 0 {
				out = append(out, &llm.User{Content: llm.Plain(pick(texts)), Timestamp: ts})
			} else {
				out = append(out, &llm.User{Content: llm.Content{Blocks: content()}, Timestamp: ts})
			}
		case 2:
			s := &llm.System{Content: llm.Plain(pick(texts)), Timestamp: ts}
			if r.IntN(2) == 0 {
				s.Sections = []llm.Section{{Name: "rules", Text: pick(texts), Removed: r.IntN(3) == 0}}
			}
			if r.IntN(2) == 0 {
				s.ToolsAdded = []llm.Tool{tool(pick([]string{"edit", "read"}))}
			}
			if r.IntN(3) == 0 {
				s.ToolsRemoved = []string{pick([]string{"read", "bash", "edit", "nothing"})}
			}
			out = append(out, s)
		case 3, 4, 5, 6:
			src := sources[r.IntN(len(sources))]
			m := &llm.Assistant{API: src[0], Provider: src[1], Model: src[2], Timestamp: ts, StopReason: llm.StopStop, Content: []llm.Block{}}
			for range r.IntN(4) {
				switch r.IntN(5) {
				case 0:
					text := &llm.Text{Text: pick(texts)}
					if r.IntN(3) == 0 {
						text.Signature = new(pick([]string{`{"v":1,"id":"msg_1"}`, `{"v":1,"id":""}`, "msg_legacy", "", "{", "c2lnbmF0dXJl", `{"v":1,"id":"` + strings.Repeat("m", 90) + `","phase":"commentary"}`}))
					}
					m.Content = append(m.Content, text)
				case 1:
					th := &llm.Thinking{Thinking: pick(texts)}
					switch r.IntN(4) {
					case 0:
						th.Signature = new(pick([]string{"sig==", "", " ", "reasoning_content", `[{"type":"reasoning.text","text":"t"}]`, `[{"type":"nonsense"}]`,
							`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`, `{"type":"reasoning"`, "c2lnbmF0dXJl"}))
					case 1:
						th.Redacted, th.Signature = true, new("opaque")
					}
					m.Content = append(m.Content, th)
				default:
					id := pick(ids)
					m.Content = append(m.Content, &llm.ToolCall{ID: id, Name: pick([]string{"read", "bash", "gone"}), Arguments: jsontext.Value(pick([]string{`{}`, `{"a":"b"}`, `{"a":"\ud83d"}`}))})
					open = append(open, id)
					m.StopReason = llm.StopToolUse
				}
			}
			if r.IntN(6) == 0 {
				m.StopReason = []llm.StopReason{llm.StopError, llm.StopAborted, llm.StopLength}[r.IntN(3)]
				m.ErrorMessage = "broke"
			}
			out = append(out, m)
		default:
			id := pick(ids) // orphans
			if len(open) > 0 && r.IntN(4) > 0 {
				k := r.IntN(len(open))
				id = open[k]
				if r.IntN(5) > 0 { // else the next result doubles this one
					open = append(open[:k], open[k+1:]...)
				}
			}
			out = append(out, &llm.ToolResult{ToolCallID: id, ToolName: "read", Content: content(), IsError: r.IntN(3) == 0, Timestamp: ts})
		}
	}
	return append(out, llm.UserText("go on", ts+1))
}

var anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func blocksOf(m map[string]any) []map[string]any {
	list, _ := m["content"].([]any)
	var out []map[string]any
	for _, b := range list {
		if o, ok := b.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

func checkAnthropic(body map[string]any) error {
	messages, _ := body["messages"].([]any)
	if len(messages) == 0 {
		return errNoMessages
	}
	seen := map[string]bool{}
	open := map[string]bool{} // calls of the assistant message before
	for i, raw := range messages {
		m := raw.(map[string]any)
		role := m["role"]
		if s, ok := m["content"].(string); ok {
			if strings.TrimSpace(s) == "" {
				return fmt.Errorf("message %d is blank", i)
			}
			if len(open) > 0 && role != "system" {
				return fmt.Errorf("message %d: calls without results: %v", i, open)
			}
			continue
		}
		blocks := blocksOf(m)
		if len(blocks) == 0 && role != "system" {
			return fmt.Errorf("message %d has no content", i)
		}
		if len(open) > 0 && role != "user" {
			return fmt.Errorf("message %d (%s): calls without results: %v", i, role, open)
		}
		results, behind := open, false
		open = map[string]bool{}
		for _, b := range blocks {
			switch b["type"] {
			case "text":
				if strings.TrimSpace(b["text"].(string)) == "" {
					return fmt.Errorf("message %d has a blank text block", i)
				}
				behind = true
			case "tool_use":
				id := b["id"].(string)
				if role != "assistant" || !anthropicID.MatchString(id) || seen[id] {
					return fmt.Errorf("message %d (%s): bad or doubled call id %q", i, role, id)
				}
				if _, ok := b["input"].(map[string]any); !ok {
					return fmt.Errorf("message %d: input is no object", i)
				}
				seen[id], open[id] = true, true
			case "tool_result":
				id := b["tool_use_id"].(string)
				if role != "user" || !results[id] {
					return fmt.Errorf("message %d (%s): result %q answers no call of the message before", i, role, id)
				}
				if behind {
					return fmt.Errorf("message %d: result behind other content", i)
				}
				delete(results, id)
			case "thinking":
				if role != "assistant" {
					return fmt.Errorf("message %d: thinking of %s", i, role)
				}
				if sig, _ := b["signature"].(string); strings.TrimSpace(sig) == "" {
					return fmt.Errorf("message %d: thinking without signature", i)
				}
			case "redacted_thinking":
				if data, _ := b["data"].(string); data == "" {
					return fmt.Errorf("message %d: redacted thinking without data", i)
				}
			case "image":
				if role != "user" {
					return fmt.Errorf("message %d: image of %s", i, role)
				}
				behind = true
			case "tool_addition", "tool_removal":
				if role != "system" {
					return fmt.Errorf("message %d: %s of %s", i, b["type"], role)
				}
			default:
				return fmt.Errorf("message %d: block of type %v", i, b["type"])
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

// checkOpenAI adds the bound on ids that OpenAI itself has.
func checkOpenAI(body map[string]any) error {
	for i, m := range body["messages"].([]any) {
		calls, _ := m.(map[string]any)["tool_calls"].([]any)
		for _, c := range calls {
			if id := c.(map[string]any)["id"].(string); utf8.RuneCountInString(id) > 40 {
				return fmt.Errorf("message %d: call id %q is too long", i, id)
			}
		}
	}
	return checkCompletions(body)
}

func checkCompletions(body map[string]any) error {
	messages, _ := body["messages"].([]any)
	if len(messages) == 0 {
		return errNoMessages
	}
	seen, open := map[string]bool{}, map[string]bool{}
	for i, raw := range messages {
		m := raw.(map[string]any)
		role := m["role"].(string)
		if role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d (%s): calls without results: %v", i, role, open)
		}
		calls, _ := m["tool_calls"].([]any)
		switch role {
		case "tool":
			id, _ := m["tool_call_id"].(string)
			if !open[id] {
				return fmt.Errorf("message %d: result %q answers no open call", i, id)
			}
			delete(open, id)
			if _, ok := m["content"].(string); !ok && len(blocksOf(m)) == 0 {
				return fmt.Errorf("message %d: tool says nothing", i)
			}
		case "assistant":
			if calls != nil && len(calls) == 0 {
				return fmt.Errorf("message %d: empty tool_calls", i)
			}
			if len(calls) == 0 {
				if m["content"] == nil || m["content"] == "" {
					return fmt.Errorf("message %d: assistant says nothing", i)
				}
			}
			for _, c := range calls {
				call := c.(map[string]any)
				id, _ := call["id"].(string)
				if id == "" || seen[id] {
					return fmt.Errorf("message %d: empty or doubled call id %q", i, id)
				}
				args, _ := call["function"].(map[string]any)["arguments"].(string)
				var v map[string]any
				if err := json.Unmarshal([]byte(args), &v); err != nil {
					return fmt.Errorf("message %d: arguments %q: %v", i, args, err)
				}
				seen[id], open[id] = true, true
			}
		case "user", "system", "developer":
			if list, ok := m["content"].([]any); ok {
				if len(list) == 0 {
					return fmt.Errorf("message %d has no content", i)
				}
				for _, b := range blocksOf(m) {
					if t := b["type"]; t != "text" && t != "image_url" {
						return fmt.Errorf("message %d: part of type %v", i, t)
					}
				}
			} else if m["tools"] == nil {
				if _, ok := m["content"].(string); !ok {
					return fmt.Errorf("message %d has no content", i)
				}
			}
		default:
			return fmt.Errorf("message %d has role %q", i, role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results at the end: %v", open)
	}
	return nil
}
