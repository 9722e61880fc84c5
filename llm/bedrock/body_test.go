package bedrock

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// sent is the body that a request is sent with.
func sent(t *testing.T, api *API, m *llm.Model, req *llm.Request, o *Options) string {
	t.Helper()
	client := says(join(start, ended, meta))
	with := request(client)
	req.APIKey, req.Client = with.APIKey, with.Client
	var got *llm.Assistant
	if o != nil {
		got = api.StreamWith(t.Context(), m, req, *o).Result()
	} else {
		got = result(t, api, m, req)
	}
	if got.StopReason != llm.StopStop {
		t.Fatal(got.ErrorMessage)
	}
	if err := jsonwire.Check([]byte(client.sent[0])); err != nil {
		t.Fatalf("%v in %s", err, client.sent[0])
	}
	return client.sent[0]
}

func answerOf(m *llm.Model, content ...llm.Block) *llm.Assistant {
	return &llm.Assistant{API: ID, Provider: m.Provider, Model: m.ID, StopReason: llm.StopToolUse, Timestamp: 2, Content: content}
}

func TestMessages(t *testing.T) {
	png := &llm.Image{Data: "AAAA", MimeType: "image/png"}
	nova := *testModel
	nova.ID = "amazon.nova-pro-v1:0"
	call := func(args string) *llm.ToolCall {
		return &llm.ToolCall{ID: "c1", Name: "look", Arguments: jsontext.Value(args)}
	}
	res := func(isError bool, content ...llm.Block) *llm.ToolResult {
		return &llm.ToolResult{ToolCallID: "c1", ToolName: "look", IsError: isError, Content: content, Timestamp: 3}
	}
	for _, c := range []struct {
		name  string
		model *llm.Model
		list  []llm.Message
		want  string // the messages without their first, a user's "hi"
	}{
		{"text", testModel, nil, ``},
		{"blank", testModel, []llm.Message{&llm.User{Content: llm.Plain(" \n"), Timestamp: 2}}, `{"role":"user","content":[{"text":"<empty>"}]}`},
		{"no blocks", testModel, []llm.Message{&llm.User{Content: llm.Blocks(), Timestamp: 2}}, `{"role":"user","content":[{"text":"<empty>"}]}`},
		{"picture", testModel, []llm.Message{&llm.User{Content: llm.Blocks(&llm.Text{Text: " "}, png, &llm.Image{Data: "BB", MimeType: "image/jpg"}), Timestamp: 2}},
			`{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"image":{"format":"jpeg","source":{"bytes":"BB"}}}]}`},
		{"empty answer", testModel, []llm.Message{answerOf(testModel, &llm.Text{Text: " "})}, ``},
		{"arguments", testModel, []llm.Message{answerOf(testModel, call(`{"": 1, "a": {"": 2, "b": [{"": 3}, [1.50, "\"\":"]]}, "c": "\"\":"}`)), res(false, &llm.Text{Text: "r"})},
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":{"a":{"b":[{},[1.5,"\"\":"]]},"c":"\"\":"}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"r"}],"status":"success"}}]}`},
		{"arguments that are none", testModel, []llm.Message{answerOf(testModel, call(`[1]`)), res(false)},
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"<empty>"}],"status":"success"}}]}`},
		{"an invented name", testModel, []llm.Message{answerOf(testModel, &llm.ToolCall{ID: "c1", Name: "do it/now", Arguments: jsontext.Value(`{}`)}), res(false)},
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"do_it_now","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"<empty>"}],"status":"success"}}]}`},
		{"failed with pictures", testModel, []llm.Message{answerOf(testModel, call(`{}`)), res(true, png, png, &llm.Text{Text: "t"}, png)},
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"(image attached after the tool results)"},{"text":"t"},{"text":"(image attached after the tool results)"}],"status":"error"}},` +
				`{"text":"Images from the error result of tool call c1 (look):"},` + strings.Repeat(`,{"image":{"format":"png","source":{"bytes":"AAAA"}}}`, 3)[1:] + `]}`},
		{"failed with pictures, another model", &nova, []llm.Message{answerOf(&nova, call(`{}`)), res(true, png)},
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}}],"status":"error"}}]}`},
		{"reasoning", testModel, []llm.Message{answerOf(testModel,
			&llm.Thinking{Thinking: "s", Signature: new("sig")}, &llm.Thinking{Thinking: "", Signature: new("sig")}, &llm.Thinking{Thinking: "u", Signature: new(" ")},
			&llm.Thinking{Thinking: "x", Redacted: true, Signature: new("YQ==")}, &llm.Thinking{Thinking: "x", Redacted: true, Signature: new("no base64")})},
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"s","signature":"sig"}}},{"reasoningContent":{"reasoningText":{"text":"","signature":"sig"}}},{"text":"u"},{"reasoningContent":{"redactedContent":"YQ=="}}]}`},
		{"reasoning of another model", &nova, []llm.Message{answerOf(&nova, &llm.Thinking{Thinking: "s", Signature: new("sig")}, &llm.Thinking{Thinking: " ", Signature: new("sig")}, &llm.Thinking{Thinking: "u"})},
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"s"}}},{"reasoningContent":{"reasoningText":{"text":"u"}}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Messages: append([]llm.Message{llm.UserText("hi", 1)}, c.list...), Options: llm.Options{CacheRetention: "none"}}
			got := string(jsonwire.Get([]byte(sent(t, quick(), c.model, req, nil)), "messages"))
			want := `[{"role":"user","content":[{"text":"hi"}]}`
			if c.want != "" {
				want += "," + c.want
			}
			if want += "]"; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
	req := request(says(nil), &llm.User{Content: llm.Blocks(&llm.Image{Data: "A", MimeType: "image/tiff"}), Timestamp: 1})
	m := result(t, quick(), testModel, req)
	if m.ErrorMessage != "Unknown image type: image/tiff" || m.Diagnostics != nil {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestFields(t *testing.T) {
	tool := llm.Tool{Name: "look", Parameters: jsontext.Value(`{"type": "object"}`)}
	model := func(id string, reasoning bool) *llm.Model {
		m := *testModel
		m.ID, m.Reasoning, m.MaxTokens = id, reasoning, 20_000
		return &m
	}
	claude, nova := model("anthropic.claude-sonnet-4-test", true), model("amazon.nova", true)
	high := llm.Options{Reasoning: llm.LevelHigh}
	for _, c := range []struct {
		name  string
		model *llm.Model
		opts  llm.Options
		own   *Options
		want  string // behind the messages
	}{
		{"nothing", nova, llm.Options{}, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]}`},
		{"nothing own", nova, llm.Options{}, &Options{}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL]}`},
		{"temperature", nova, llm.Options{Temperature: new(0.5)}, &Options{}, `"inferenceConfig":{"temperature":0.5},"toolConfig":{"tools":[TOOL]}`},
		{"Claude needs a limit", claude, llm.Options{}, &Options{}, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]}`},
		{"no calls", nova, llm.Options{ToolChoice: "none"}, nil, `"inferenceConfig":{"maxTokens":20000}`},
		{"own choice wins", nova, llm.Options{ToolChoice: "none"}, &Options{ToolChoice: jsontext.Value(`"any"`)}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL],"toolChoice":{"any":{}}}`},
		{"one tool", nova, llm.Options{}, &Options{ToolChoice: jsontext.Value(`{"type":"tool","name":"look"}`)}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL],"toolChoice":{"tool":{"name":"look"}}}`},
		{"choice of no kind", nova, llm.Options{}, &Options{ToolChoice: jsontext.Value(`{"type":"some"}`)}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL]}`},
		{"metadata", nova, llm.Options{}, &Options{RequestMetadata: jsontext.Value(`{"team": "b"}`)}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL]},"requestMetadata":{"team":"b"}`},
		{"metadata of no kind", nova, llm.Options{}, &Options{RequestMetadata: jsontext.Value(`7`)}, `"inferenceConfig":{},"toolConfig":{"tools":[TOOL]}`},
		{"thinking takes no temperature", claude, llm.Options{Reasoning: llm.LevelLow, Temperature: new(0.5)}, nil,
			`"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2048,"display":"summarized"},"anthropic_beta":["interleaved-thinking-2025-05-14"]}`},
		{"own thinking", claude, llm.Options{Reasoning: llm.LevelHigh, MaxTokens: 9000}, &Options{InterleavedThinking: new(false), ThinkingDisplay: "omitted"},
			`"inferenceConfig":{"maxTokens":9000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":7976,"display":"omitted"}}`},
		{"off", claude, llm.Options{Reasoning: llm.LevelOff}, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]}`},
		{"cannot think", model("anthropic.claude-sonnet-4-test", false), high, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]}`},
		{"adaptive in GovCloud", model("us-gov.anthropic.claude-opus-4-7", true), high, nil,
			`"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{"gpt-oss", model("openai.gpt-oss-120b", true), llm.Options{Reasoning: llm.LevelMax}, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"reasoning_effort":"high"}`},
		{"gpt", model("openai.gpt-5.6", true), llm.Options{Reasoning: llm.LevelMax}, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"reasoning":{"effort":"max"}}`},
		{"gpt does not know minimal", model("openai.gpt-5.6", true), llm.Options{Reasoning: llm.LevelMinimal}, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"reasoning":{"effort":"low"}}`},
		{"xhigh of Claude", model("us-gov.anthropic.claude-opus-4-7", true), llm.Options{Reasoning: llm.LevelXHigh}, nil,
			`"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}}`},
		{"older Claude has no xhigh", model("us-gov.anthropic.claude-opus-4-6", true), llm.Options{Reasoning: llm.LevelXHigh}, nil,
			`"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]},"additionalModelRequestFields":{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{"others say nothing", nova, high, nil, `"inferenceConfig":{"maxTokens":20000},"toolConfig":{"tools":[TOOL]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.CacheRetention = "none"
			req := &llm.Request{Messages: llm.Fold("", []llm.Tool{tool}, []llm.Message{llm.UserText("hi", 1)}), Options: c.opts}
			_, got, _ := strings.Cut(sent(t, quick(), c.model, req, c.own), `"text":"hi"}]}],`)
			want := strings.ReplaceAll(c.want, "TOOL", `{"toolSpec":{"name":"look","inputSchema":{"json":{"type":"object"}}}}`) + "}"
			if got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// A service that refuses calls in the history of a request without tools gets
// stand-ins for them, once.
func TestStandIns(t *testing.T) {
	call := func(id, name string) *llm.ToolCall {
		return &llm.ToolCall{ID: id, Name: name, Arguments: jsontext.Value(`{}`)}
	}
	history := []llm.Message{llm.UserText("go", 1), answerOf(testModel, call("a", "look up"), call("b", "read"), call("c", "read")), llm.UserText("and now?", 4)}
	const refusal = `{"message":"The toolConfig field must be defined when using toolUse and toolResult content blocks."}`
	const declared = `"toolConfig":{"tools":[{"toolSpec":{"name":"look_up","inputSchema":{"json":{"type":"object","properties":{}}}}},` +
		`{"toolSpec":{"name":"read","inputSchema":{"json":{"type":"object","properties":{}}}}}]}`
	var bodies []string
	refuse := func(body string) bool { return !strings.Contains(body, `"toolConfig"`) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bodies = append(bodies, string(b)); refuse(string(b)) {
			w.Header().Set("X-Amzn-Errortype", "ValidationException")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, refusal)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		w.Write(join(start, ended, meta))
	}))
	defer server.Close()
	m := *testModel
	m.BaseURL = server.URL
	api, memo := quick(), &llm.Memo{}
	ask := func(o *Options, messages ...llm.Message) *llm.Assistant {
		bodies = nil
		req := &llm.Request{Messages: messages, Options: llm.Options{APIKey: "k", Client: server.Client(), Memo: memo}}
		if o != nil {
			return api.StreamWith(t.Context(), &m, req, *o).Result()
		}
		return result(t, api, &m, req)
	}
	for range 2 { // what is kept of the history does not have the stand-ins
		if got := ask(nil, history...); got.StopReason != llm.StopStop || len(bodies) != 2 || strings.Contains(bodies[0], "toolConfig") || !strings.Contains(bodies[1], declared) {
			t.Errorf("%s\n%q", got.ErrorMessage, bodies)
		}
	}
	tools := llm.Fold("", []llm.Tool{{Name: "other", Description: "d", Parameters: jsontext.Value(`{"type":"object"}`)}}, history)
	if got := ask(nil, tools...); got.StopReason != llm.StopStop || len(bodies) != 1 || strings.Contains(bodies[0], "look_up\",\"inputSchema") {
		t.Errorf("with tools: %s\n%q", got.ErrorMessage, bodies)
	}
	if got := ask(&Options{ToolChoice: jsontext.Value(`"none"`)}, tools...); got.StopReason != llm.StopStop || len(bodies) != 2 || !strings.Contains(bodies[1], declared) {
		t.Errorf("tools that may not be called: %s\n%q", got.ErrorMessage, bodies)
	}
	refuse = func(string) bool { return true }
	if got := ask(nil, history...); got.StopReason != llm.StopError || len(bodies) != 2 || !strings.Contains(got.ErrorMessage, "toolConfig field must be defined") {
		t.Errorf("refused again: %s, %d requests", got.ErrorMessage, len(bodies))
	}
}

func TestStrictTools(t *testing.T) {
	tools := func(strictness, schema string) []llm.Message {
		return llm.Fold("", []llm.Tool{{Name: "t", Description: "d", Parameters: jsontext.Value(schema),
			ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"` + strictness + `"}`)}}, []llm.Message{llm.UserText("go", 1)})
	}
	model := *testModel
	model.Compat = jsontext.Value(`{"supportsStrictMode":true}`)
	client := says(nil)
	if m := result(t, quick(), &model, request(client, tools("require", `{"type":"object","not":{}}`)...)); len(client.seen) != 0 ||
		!strings.HasPrefix(m.ErrorMessage, `Tool "t" requires JSON-schema constrained sampling, but `) {
		t.Errorf("got %q after %d requests", m.ErrorMessage, len(client.seen))
	}
	if m := result(t, quick(), testModel, request(client, tools("require", `{"type":"object"}`)...)); m.ErrorMessage != `Tool "t" requires JSON-schema constrained sampling, but strict tools are unsupported.` {
		t.Errorf("got %q", m.ErrorMessage)
	}

	// Tools that may not be called are not sent, so nothing is asked of them.
	client = says(nil)
	req := request(client, tools("require", `{"type":"object"}`)...)
	req.ToolChoice = "none"
	if result(t, quick(), testModel, req); len(client.seen) != 1 {
		t.Errorf("no tool may be called: %d requests", len(client.seen))
	}

	// A refusal is remembered for the session.
	api := quick()
	refused := answer{400, map[string]string{"X-Amzn-Errortype": "ValidationException"}, []byte(`{"message":"Too many strict tools (21)."}`)}
	good := answer{body: join(start, ended, meta)}
	strict := func(list []answer, session, strictness string) (string, *llm.Assistant) {
		client := &answers{list: list}
		req := request(client, tools(strictness, `{"type":"object"}`)...)
		req.SessionID = session
		m := result(t, api, &model, req)
		var got []string
		for _, body := range client.sent {
			got = append(got, fmt.Sprint(strings.Contains(body, `"strict":true`)))
		}
		return strings.Join(got, " "), m
	}
	got, m := strict([]answer{refused, good}, "s", "prefer")
	if got != "true false" || m.StopReason != llm.StopStop || len(m.Diagnostics) != 1 || m.Diagnostics[0].Type != "bedrock_strict_tools_fallback" ||
		m.Diagnostics[0].Error.Message != "Too many strict tools (21)." || details(m) != `{"reason":"strict_tool_limits_exceeded"}` {
		t.Errorf("%s: %s", got, m.AppendJSON(nil))
	}
	if got, m := strict([]answer{good}, "s", "prefer"); got != "false" || m.Diagnostics != nil {
		t.Errorf("the same session: %s", got)
	}
	if got, _ := strict([]answer{good}, "other", "prefer"); got != "true" {
		t.Errorf("another session: %s", got)
	}
	if got, m := strict([]answer{refused, good}, "s", "require"); got != "true" || m.StopReason != llm.StopError {
		t.Errorf("a tool that requires it: %s", got)
	}
	denied := answer{400, map[string]string{"X-Amzn-Errortype": "AccessDeniedException"}, refused.body}
	if got, m := strict([]answer{denied, good}, "fourth", "prefer"); got != "true" || m.StopReason != llm.StopError {
		t.Errorf("another refusal: %s", got)
	}
	if got, m := strict([]answer{refused, refused}, "third", "prefer"); got != "true false" || m.StopReason != llm.StopError || len(m.Diagnostics) != 2 {
		t.Errorf("refused again: %s, %s", got, details(m))
	}
	api.EndSession("s")
	if got, _ := strict([]answer{good}, "s", "prefer"); got != "true" {
		t.Errorf("after the session: %s", got)
	}
}

func TestCachePoints(t *testing.T) {
	nova := *testModel
	nova.ID = "amazon.nova"
	for _, c := range []struct {
		model     *llm.Model
		retention string
		env       map[string]string
		want      int
		long      bool
	}{
		{testModel, "", nil, 2, false},
		{testModel, "long", nil, 2, true},
		{testModel, "", map[string]string{"PINCH_CACHE_RETENTION": "long"}, 2, true},
		{testModel, "none", map[string]string{"AWS_BEDROCK_FORCE_CACHE": "1"}, 0, false},
		{&nova, "", nil, 0, false},
		{&nova, "", map[string]string{"AWS_BEDROCK_FORCE_CACHE": "1"}, 2, false},
	} {
		req := &llm.Request{Messages: llm.Fold("be brief", nil, []llm.Message{llm.UserText("hi", 1)}), Options: llm.Options{CacheRetention: c.retention, Env: c.env}}
		body := sent(t, quick(), c.model, req, nil)
		if n := strings.Count(body, `{"cachePoint":{"type":"default"`); n != c.want || strings.Contains(body, `"ttl":"1h"`) != c.long {
			t.Errorf("%+v: %s", c, body)
		}
	}
	// Behind an answer there is no user message to end.
	req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1), answerOf(testModel, &llm.Text{Text: "a"})}}
	if body := sent(t, quick(), testModel, req, nil); strings.Contains(body, "cachePoint") {
		t.Errorf("%s", body)
	}
}

// turns is a conversation of n turns, each a question, a call and its result.
func turns(n int) []llm.Message {
	messages := []llm.Message{&llm.System{Content: llm.Plain("be brief"), ToolsAdded: []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{"type":"object"}`)}}}}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		a := answerOf(testModel, &llm.Text{Text: "looking"}, &llm.ToolCall{ID: id, Name: "look", Arguments: jsontext.Value(`{"n": 1.0}`)})
		a.Timestamp = int64(4*i + 2)
		messages = append(messages, llm.UserText(fmt.Sprintf("question %d", i), int64(4*i+1)), a,
			&llm.ToolResult{ToolCallID: id, ToolName: "look", IsError: i%3 == 0, Content: []llm.Block{&llm.Text{Text: strings.Repeat("data ", 50)}, &llm.Image{Data: "AAAA", MimeType: "image/png"}}, Timestamp: int64(4*i + 3)})
	}
	return messages
}

// With a Memo a body has the same bytes as without.
func TestMemoChangesNothing(t *testing.T) {
	api, memo, messages := quick(), &llm.Memo{}, turns(12)
	for n := 2; n <= len(messages); n++ {
		for _, retention := range []string{"short", "none", "long"} {
			body := func(m *llm.Memo) string {
				return sent(t, api, testModel, &llm.Request{Messages: messages[:n], Options: llm.Options{Memo: m, CacheRetention: retention}}, nil)
			}
			if with, without := body(memo), body(nil); with != without {
				t.Fatalf("%d messages, %s\nwithout %s\nwith    %s", n, retention, without, with)
			}
		}
	}
}

// A turn late in a session costs what a turn early in it costs, the copy of
// stored bytes aside.
func TestTurnEncodesOnlyWhatIsNew(t *testing.T) {
	allocs := func(n int) float64 {
		messages := turns(n + 200)
		api, memo, at := quick(), &llm.Memo{}, 1+3*n
		answer := wiretest.Always(string(join(start, ended, meta)))
		return testing.AllocsPerRun(50, func() {
			req := request(answer, messages[:at]...)
			req.Memo = memo
			result(t, api, testModel, req)
			at += 3
		})
	}
	if short, long := allocs(5), allocs(2000); long > short+10 {
		t.Errorf("a turn makes %v allocations in a short session, %v in a long one", short, long)
	}
}

func TestImageTypeError(t *testing.T) {
	_, err := appendImage(nil, &llm.Image{MimeType: "image/bmp"})
	var typ *ImageTypeError
	if !errors.As(err, &typ) || typ.MimeType != "image/bmp" {
		t.Errorf("got %v", err)
	}
}
