package completions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The words of these tests.
var (
	keyed    = wiretest.Keyed
	own      = wiretest.Own
	toolCall = wiretest.Call
	result   = wiretest.Result
	text     = wiretest.Text
	sse      = wiretest.SSE
	read     = wiretest.Read
)

// bodyOf is the body that Stream sends.
func bodyOf(t testing.TB, m *llm.Model, req *llm.Request) []byte {
	t.Helper()
	return requestOf(t, func(a *API) *llm.Stream {
		s, err := a.Stream(context.Background(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}).Body
}

func requestOf(t testing.TB, start func(*API) *llm.Stream) (got wiretest.Sent) {
	t.Helper()
	client := wiretest.Keep(&got, sse(finish("stop")))
	a := New(Config{Client: client, Getenv: wiretest.NoEnv})
	if m := start(a).Result(); m.ErrorMessage != "" {
		t.Fatal(m.ErrorMessage)
	}
	return got
}

func messagesOf(t testing.TB, m *llm.Model, messages ...llm.Message) string {
	t.Helper()
	return string(jsonwire.Get(bodyOf(t, m, keyed(messages...)), "messages"))
}

func TestMessages(t *testing.T) {
	think := func(s, signature string) *llm.Thinking { return &llm.Thinking{Thinking: s, Signature: &signature} }
	image := &llm.Image{Data: "QQ==", MimeType: "image/png"}
	user := llm.UserText("u", 1)
	const u = `{"role":"user","content":[{"type":"text","text":"u"}]}`
	const img = `{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}`
	call := func(m *llm.Model, blocks ...llm.Block) *llm.Assistant {
		return own(m, append(blocks, toolCall("c", "look", `{"a":  1}`))...)
	}
	const calls = `"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{\"a\":1}"}}]`
	const detail = `{"type":"reasoning.encrypted","data":"d","id":"i"}`
	for name, c := range map[string]struct {
		compat   string
		messages func(m *llm.Model) []llm.Message
		want     string
	}{
		"blank texts of an answer vanish, texts join": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, text(" \ufeff\u2028"), text("a "), text("b")), user, own(m, text("\t")), own(m, think("x", "reasoning"))}
		}, `[{"role":"assistant","content":"a b"},` + u + `]`},
		"empty parts and messages of a user vanish": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{&llm.User{Content: llm.Blocks(text(""), text(" "), image)}, &llm.User{Content: llm.Blocks(text(""))}, &llm.User{Content: llm.Plain("")}}
		}, `[{"role":"user","content":[{"type":"text","text":" "},` + img + `]},{"role":"user","content":""}]`},
		"reasoning in its field": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, think(" ", "x"), think("a\xed\xa0\xbd", "reasoning_text"), think("b", "other"), text("t"))}
		}, `[{"role":"assistant","content":"t","reasoning_text":"a\nb"}]`},
		"reasoning without a known field": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, think("a", "other"), think("b", "reasoning"), text("t"))}
		}, `[{"role":"assistant","content":"t"}]`},
		"reasoning as text": {`{"requiresThinkingAsText":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, think("a", "reasoning"), text("t"), think("b", ""), text("v")), own(m, think("c", ""))}
		}, `[{"role":"assistant","content":[{"type":"text","text":"a\n\nb"},{"type":"text","text":"t"},{"type":"text","text":"v"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"c"}]}]`},
		"no empty reasoning of a model that does not think": {`{"requiresReasoningContentOnAssistantMessages":true}`, func(m *llm.Model) []llm.Message {
			m.Reasoning = false
			return []llm.Message{own(m, text("t"))}
		}, `[{"role":"assistant","content":"t"}]`},
		"details with reasoning as text": {`{"requiresThinkingAsText":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, think("a", `[{"type":"reasoning.text","text":"x"}]`), think("b", `[{"type":"reasoning.text","text":"y"}]`), text("t"))}
		}, `[{"role":"assistant","content":[{"type":"text","text":"a\n\nb"},{"type":"text","text":"t"}],"reasoning_details":[{"type":"reasoning.text","text":"x"}]}]`},
		"details of old calls win over the field": {``, func(m *llm.Model) []llm.Message {
			a := own(m, think("a", "reasoning"), toolCall("c", "look", `{}`))
			a.Content[1].(*llm.ToolCall).ThoughtSignature = new(detail)
			return []llm.Message{a, result("c", text("r"))}
		}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}],"reasoning_details":[` + detail + `]},` +
			`{"role":"tool","content":"r","tool_call_id":"c"}]`},
		"details win over the field": {`{"requiresReasoningContentOnAssistantMessages":true}`, func(m *llm.Model) []llm.Message {
			m.Reasoning = true
			return []llm.Message{own(m, think("a", ` [{"type":"reasoning.text", "text":"x"}]`), text("t")), own(m, think("a", "reasoning_content"), text("t"))}
		}, `[{"role":"assistant","content":"t","reasoning_details":[{"type":"reasoning.text","text":"x"}],"reasoning_content":""},` +
			`{"role":"assistant","content":"t","reasoning_content":"a"}]`},
		"details of old calls": {``, func(m *llm.Model) []llm.Message {
			a := call(m)
			a.Content[0].(*llm.ToolCall).ThoughtSignature = new(detail)
			b := own(m, toolCall("d", "look", `{}`))
			b.Content[0].(*llm.ToolCall).ThoughtSignature = new(`{"type":"reasoning.encrypted","data":"d","id":""}`)
			return []llm.Message{a, result("c", text("r")), b, result("d", text("r"))}
		}, `[{"role":"assistant","content":null,` + calls + `,"reasoning_details":[` + detail + `]},{"role":"tool","content":"r","tool_call_id":"c"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","content":"r","tool_call_id":"d"}]`},
		"bridge before a user": {`{"requiresAssistantAfterToolResult":true,"requiresToolResultName":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{call(m), result("c", text("r")), user}
		}, `[{"role":"assistant","content":"",` + calls + `},{"role":"tool","content":"r","tool_call_id":"c","name":"look"},` +
			`{"role":"assistant","content":"I have processed the tool results."},` + u + `]`},
		"bridge across an answer that says nothing": {`{"requiresAssistantAfterToolResult":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{call(m), result("c", text("r")), own(m, text("")), user}
		}, `[{"role":"assistant","content":"",` + calls + `},{"role":"tool","content":"r","tool_call_id":"c"},` +
			`{"role":"assistant","content":"I have processed the tool results."},` + u + `]`},
		"no bridge before an answer or a user who says nothing": {`{"requiresAssistantAfterToolResult":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{call(m), result("c", text("r")), &llm.User{Content: llm.Blocks()}, own(m, text("t"))}
		}, `[{"role":"assistant","content":"",` + calls + `},{"role":"tool","content":"r","tool_call_id":"c"},{"role":"assistant","content":"t"}]`},
		"images follow a run of results": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, toolCall("c", "look", `{}`), toolCall("d", "look", `{}`)), result("c", image), result("d", text("r"), image), own(m, text("t"))}
		}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
			`{"role":"tool","content":"(see attached image)","tool_call_id":"c"},{"role":"tool","content":"r","tool_call_id":"d"},` +
			`{"role":"user","content":[{"type":"text","text":"Attached image(s) from tool result:"},` + img + `,` + img + `]},{"role":"assistant","content":"t"}]`},
	} {
		m := testModel()
		m.Compat = jsontext.Value(c.compat)
		if got := messagesOf(t, m, c.messages(m)...); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// The moving cache marker goes to the last text, wherever that is.
func TestCacheMarkerMoves(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	image := &llm.Image{Data: "QQ==", MimeType: "image/png"}
	m := testModel()
	m.Compat = jsontext.Value(`{"cacheControlFormat":"anthropic","supportsDeveloperRole":false,"requiresThinkingAsText":true,"requiresAssistantAfterToolResult":true}`)
	call := own(m, toolCall("c", "look", `{}`))
	for name, c := range map[string]struct {
		messages []llm.Message
		want     string // the text that is marked
	}{
		"user blocks":       {[]llm.Message{&llm.User{Content: llm.Blocks(text("a"), text("b"), image)}}, "b"},
		"user string":       {[]llm.Message{&llm.User{Content: llm.Plain("a")}}, "a"},
		"no text":           {[]llm.Message{llm.UserText("a", 1), &llm.User{Content: llm.Blocks(image)}, &llm.User{Content: llm.Plain("")}}, "a"},
		"answer":            {[]llm.Message{llm.UserText("a", 1), own(m, text("b"))}, "b"},
		"thinking as text":  {[]llm.Message{llm.UserText("a", 1), own(m, &llm.Thinking{Thinking: "b"})}, "b"},
		"parts of answer":   {[]llm.Message{llm.UserText("a", 1), own(m, &llm.Thinking{Thinking: "b"}, text("c"))}, "c"},
		"tool result":       {[]llm.Message{llm.UserText("a", 1), call, result("c", text("b"))}, "b"},
		"bridge":            {[]llm.Message{llm.UserText("a", 1), call, result("c", text("b")), &llm.User{Content: llm.Blocks(image)}}, "I have processed the tool results."},
		"images of results": {[]llm.Message{llm.UserText("a", 1), call, result("c", text("b"), image)}, "Attached image(s) from tool result:"},
	} {
		got := messagesOf(t, m, append([]llm.Message{&llm.System{Content: llm.Plain("S")}}, c.messages...)...)
		plain := *m
		plain.Compat = jsontext.Value(`{"supportsDeveloperRole":false,"requiresThinkingAsText":true,"requiresAssistantAfterToolResult":true}`)
		unmarked := messagesOf(t, &plain, append([]llm.Message{&llm.System{Content: llm.Plain("S")}}, c.messages...)...)
		if n := strings.Count(got, mark); n != 2 {
			t.Errorf("%s: %d markers in %s", name, n, got)
		}
		if !strings.Contains(got, `"content":[{"type":"text","text":"S"`+mark+`}]`) || !strings.Contains(got, `{"type":"text","text":"`+c.want+`"`+mark+`}`) {
			t.Errorf("%s: got %s", name, got)
		}
		// Beside the marker and the form that it needs nothing may differ.
		for _, s := range []string{"S", c.want} {
			part := `[{"type":"text","text":"` + s + `"` + mark + `}]`
			if strings.Contains(got, part) && !strings.Contains(unmarked, `[{"type":"text","text":"`+s+`"}]`) {
				got = strings.Replace(got, part, `"`+s+`"`, 1)
			}
		}
		if got = strings.ReplaceAll(got, mark, ""); got != unmarked {
			t.Errorf("%s:\n got %s\nwant %s", name, got, unmarked)
		}
	}
}

// Without a prompt the first system message of the conversation is marked in its place.
func TestCacheMarkerOfLaterInstructions(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"cacheControlFormat":"anthropic","supportsDeveloperRole":false,"supportsMidConvoSystemMessages":true,"supportsMidConvoToolAdditions":true}`)
	later := &llm.System{Content: llm.Plain("S")}
	history := []llm.Message{llm.UserText("a", 1), later, &llm.System{Content: llm.Plain("T")}, llm.UserText("b", 2)}
	const marked = `"content":[{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}]}`
	want := `[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system",` + fmt.Sprintf(marked, "S") + `,{"role":"system","content":"T"},{"role":"user",` + fmt.Sprintf(marked, "b") + `]`
	if got := messagesOf(t, m, history...); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	later.ToolsAdded = []llm.Tool{{Name: "t", Parameters: jsontext.Value(`{}`)}}
	if got := messagesOf(t, m, history...); strings.Count(got, "cache_control") != 1 {
		t.Errorf("after tools, which come first and have no text: %s", got)
	}
}

// conversation is a history with n turns of two tool calls each.
func conversation(m *llm.Model, n int) []llm.Message {
	tools := []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
	messages := []llm.Message{&llm.System{Content: llm.Plain("Be brief."), ToolsAdded: tools}}
	for i := range n {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		messages = append(messages,
			llm.UserText(fmt.Sprint("question ", i), int64(i)),
			own(m, text("I look."), toolCall(a, "look", `{"a":"x"}`), toolCall(b, "look", `{"a":"y"}`)),
			result(a, text("found")), result(b, text("nothing")),
			own(m, text("It is so.")))
	}
	return messages
}

func TestConversationIsEncodedOnce(t *testing.T) {
	for _, compat := range []string{``, `{"cacheControlFormat":"anthropic"}`} {
		m := testModel()
		m.Compat = jsontext.Value(compat)
		all := conversation(m, 30)
		memo := &llm.Memo{}
		for n := 1; n <= len(all); n++ {
			req := keyed(all[:n]...)
			fresh := bodyOf(t, m, req)
			req.Memo = memo
			if kept := bodyOf(t, m, req); !bytes.Equal(kept, fresh) {
				t.Fatalf("%s: with memory after %d messages:\n got %s\nwant %s", compat, n, kept, fresh)
			}
		}
		// What was encoded in the first turn is still the same memory.
		x := New(Config{}).exchange(m, keyed(all...))
		e := &encoder{model: m, compat: x.compat}
		slots := func() []*byte {
			tr := transcript.HistoryOf[encoded](memo, e.historyKey()).Build(all, e.rules())
			defer tr.Done()
			var p []*byte
			for i := range tr.Items {
				p = append(p, unsafe.SliceData(tr.Items[i].Wire.json))
			}
			return p
		}
		before := slots()
		bodyOf(t, m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
		for i, p := range slots() {
			if p == nil || p != before[i] {
				t.Errorf("%s: item %d was encoded again", compat, i)
			}
		}
	}
}

// A turn of a long conversation allocates as often as one of a short.
func TestTurnAllocatesByWhatIsNew(t *testing.T) {
	for _, compat := range []string{``, `{"cacheControlFormat":"anthropic"}`} {
		allocs := func(turns int) float64 {
			m := testModel()
			m.Compat = jsontext.Value(compat)
			all := conversation(m, turns)
			a := New(Config{Getenv: wiretest.NoEnv})
			memo := &llm.Memo{}
			build := func() {
				x := a.exchange(m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
				x.retention = "short"
				if _, err := x.body(); err != nil {
					t.Fatal(err)
				}
			}
			build()
			return testing.AllocsPerRun(20, build)
		}
		short, long := allocs(5), allocs(500)
		if long > short+5 {
			t.Errorf("%s: %v allocations for 5 turns, %v for 500", compat, short, long)
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			m := testModel()
			all := conversation(m, turns)
			a := New(Config{Getenv: wiretest.NoEnv})
			memo := &llm.Memo{}
			b.ReportAllocs()
			for b.Loop() {
				x := a.exchange(m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
				if _, err := x.body(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestGrammarToolsComeAndGo(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsOpenAIGrammarTools":true}`)
	plain := llm.Tool{Name: "look", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)}
	custom := plain
	custom.ConstrainedSampling = jsontext.Value(`{"type":"grammar","variants":{"openai_regex":"x"}}`)
	memo := &llm.Memo{}
	history := []llm.Message{own(m, toolCall("c", "look", `{"a":"x"}`)), result("c", text("r"))}
	for i, tool := range []llm.Tool{plain, custom, plain} {
		req := keyed(llm.Fold("", []llm.Tool{tool}, history)...)
		req.Memo = memo
		want := `{"id":"c","type":"function","function":{"name":"look","arguments":"{\"a\":\"x\"}"}}`
		if i == 1 {
			want = `{"id":"c","type":"custom","custom":{"name":"look","input":"x"}}`
		}
		if body := string(bodyOf(t, m, req)); !strings.Contains(body, want) {
			t.Errorf("request %d: %s", i+1, body)
		}
	}
}

func TestToolsInTheMiddle(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsMidConvoSystemMessages":true,"supportsMidConvoToolAdditions":true,"supportsDeveloperRole":true,"supportsStrictMode":true}`)
	tool := func(name string) llm.Tool { return llm.Tool{Name: name, Parameters: jsontext.Value(`{}`)} }
	body := bodyOf(t, m, keyed(
		&llm.System{Content: llm.Plain("S"), ToolsAdded: []llm.Tool{tool("a")}}, llm.UserText("u", 1),
		&llm.System{ToolsAdded: []llm.Tool{tool("b")}}, &llm.System{Content: llm.Plain("T")}, llm.UserText("v", 2)))
	want := `[{"role":"developer","content":"S"},{"role":"user","content":[{"type":"text","text":"u"}]},` +
		`{"role":"system","tools":[{"type":"function","function":{"name":"b","description":"","parameters":{},"strict":false}}]},` +
		`{"role":"developer","content":"T"},{"role":"user","content":[{"type":"text","text":"v"}]}]`
	if got := string(jsonwire.Get(body, "messages")); got != want {
		t.Errorf("messages:\n got %s\nwant %s", got, want)
	}
	if got := string(jsonwire.Get(body, "tools")); strings.Contains(got, `"b"`) {
		t.Errorf("tools: %s", got)
	}
}

func TestPlainRequest(t *testing.T) {
	m := testModel()
	req := keyed(llm.Fold("", []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{}`)}}, hello().Messages)...)
	req.Reasoning = llm.LevelHigh
	got := requestOf(t, func(a *API) *llm.Stream {
		return a.StreamWith(context.Background(), m, req, Options{
			ReasoningEffort: llm.LevelMax, ToolChoice: jsontext.Value(`{"type": "function","function":{"name":"look"}}`),
		})
	})
	want := `{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"When?"}]}],"stream":true,"stream_options":{"include_usage":true},` +
		`"store":false,"tools":[{"type":"function","function":{"name":"look","description":"","parameters":{}}}],` +
		`"tool_choice":{"type":"function","function":{"name":"look"}},"reasoning_effort":"max"}`
	if string(got.Body) != want {
		t.Errorf("body:\n got %s\nwant %s", got.Body, want)
	}
	if got.URL != "http://service.test/v1/chat/completions" || got.Header.Get("Authorization") != "Bearer k" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	msg := New(Config{}).StreamWith(context.Background(), m, hello(), Options{}).Result()
	if msg.StopReason != llm.StopError || msg.ErrorMessage != "No API key for provider: openai" {
		t.Errorf("without a key: %s %q", msg.StopReason, msg.ErrorMessage)
	}
	_, err := New(Config{}).Stream(context.Background(), m, hello())
	var noKey *llm.KeyError
	if !errors.As(err, &noKey) {
		t.Errorf("without a key: %v", err)
	}
}

func TestBaseURLVariables(t *testing.T) {
	m := testModel()
	m.Provider, m.BaseURL = "cloudflare-workers-ai", "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1/"
	req := keyed(hello().Messages...)
	req.Env = map[string]string{"CLOUDFLARE_ACCOUNT_ID": "acc"}
	got := requestOf(t, func(a *API) *llm.Stream { return a.StreamWith(context.Background(), m, req, Options{}) })
	if want := "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1/chat/completions"; got.URL != want {
		t.Errorf("got %s, want %s", got.URL, want)
	}
}

func TestAzureDeployment(t *testing.T) {
	m := testModel()
	m.Provider, m.BaseURL = "azure", ""
	req := keyed(hello().Messages...)
	req.Env = map[string]string{"AZURE_OPENAI_RESOURCE_NAME": "res", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": m.ID + "=dep"}
	got := requestOf(t, func(a *API) *llm.Stream { return a.StreamWith(context.Background(), m, req, Options{}) })
	if want := "https://res.openai.azure.com/openai/v1/chat/completions"; got.URL != want {
		t.Errorf("sent to %s, want %s", got.URL, want)
	}
	if name := string(jsonwire.Get(got.Body, "model")); name != `"dep"` {
		t.Errorf("asked for the model %s", name)
	}
	req.Env = nil
	answer := New(Config{Getenv: wiretest.NoEnv}).StreamWith(context.Background(), m, req, Options{}).Result()
	if !strings.HasPrefix(answer.ErrorMessage, "Azure OpenAI base URL is required") {
		t.Errorf("without an address: %q", answer.ErrorMessage)
	}
}

func TestIDsOfOtherModels(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, c := range []struct{ provider, id, want string }{
		{"openai", "call_1", "call_1"},
		{"openai", long, long[:40]},
		{"other", long, long},
		{"other", "call.1|fc/2", "call_1_fc_2"},
		{"other", "é🙈|b", "____b"},
		{"other", "a|", "a"},
		{"other", "c|" + long, "c_" + transcript.ShortHash("c|" + long)[:8]},
		{"other", long + "|b", long[:31] + "_" + transcript.ShortHash(long + "|b")[:8]},
	} {
		if got := normalizeID(c.provider, c.id); got != c.want || strings.Contains(c.id, "|") && len(got) > maxID {
			t.Errorf("%s %q: got %q, want %q", c.provider, c.id, got, c.want)
		}
	}
}

func TestStrictTools(t *testing.T) {
	m := testModel()
	tool := llm.Tool{Name: "q\"", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"$ref":"#"}}}`)}
	for strict, want := range map[string]string{
		`{"type":"json_schema","strict":"require"}`: `Tool "q"" requires JSON-schema constrained sampling, but `,
		`{"type":"json_schema","strict":"prefer"}`:  "",
		`false`: "",
	} {
		tool.ConstrainedSampling = jsontext.Value(strict)
		for _, compat := range []string{`{"supportsStrictMode":true}`, `{}`} {
			m.Compat = jsontext.Value(compat)
			api := New(Config{Client: wiretest.Answers(strings.NewReader(sse(finish("stop")))), Getenv: wiretest.NoEnv})
			s, err := api.Stream(context.Background(), m, keyed(llm.Fold("", []llm.Tool{tool}, hello().Messages)...))
			if err != nil {
				t.Fatal(err)
			}
			got := s.Result()
			if (want == "") != (got.ErrorMessage == "") || !strings.HasPrefix(got.ErrorMessage, want) {
				t.Errorf("%s %s: %q", strict, compat, got.ErrorMessage)
			}
		}
	}
}
