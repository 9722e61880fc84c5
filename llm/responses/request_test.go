package responses

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The words of these tests.
var (
	own  = wiretest.Own
	call = wiretest.Call
	say  = wiretest.Text
	sse  = wiretest.SSE
	read = wiretest.Read
)

// finished is the event that closes an answer well.
const finished = `{"type":"response.completed","response":{"id":"r","status":"completed"}}`

// requestOf is the request that start sends.
func requestOf(t testing.TB, start func(*API) *llm.Stream) (got wiretest.Sent) {
	t.Helper()
	client := wiretest.Keep(&got, sse(finished))
	if m := start(New(quiet(client))).Result(); m.ErrorMessage != "" {
		t.Fatal(m.ErrorMessage)
	}
	return got
}

// plainly is the request that Stream sends.
func plainly(t testing.TB, m *llm.Model, req *llm.Request) wiretest.Sent {
	t.Helper()
	return requestOf(t, func(a *API) *llm.Stream {
		s, err := a.Stream(t.Context(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// keyed is a request with a key of the platform.
func keyed(messages ...llm.Message) *llm.Request {
	return &llm.Request{Messages: messages, Options: llm.Options{APIKey: "sk-k"}}
}

func member(body []byte, name string) string { return string(jsonwire.Get(body, name)) }

func result(id, name string, blocks ...llm.Block) *llm.ToolResult {
	return &llm.ToolResult{ToolCallID: id, ToolName: name, Content: blocks}
}

func signed(s, signature string) *llm.Text { return &llm.Text{Text: s, Signature: &signature} }

func thought(signature string) *llm.Thinking {
	return &llm.Thinking{Thinking: "x", Signature: &signature}
}

func sealed(id string) string {
	return `{"type":"reasoning","id":"` + id + `","summary":[],"encrypted_content":"e"}`
}

func message(text, id string) string {
	return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text +
		`","annotations":[]}],"status":"completed","id":"` + id + `"}`
}

func resultItem(id, text string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"` + text + `"}`
}

func TestInput(t *testing.T) {
	m := testModel()
	grammarTool := llm.Tool{
		Name: "patch", Parameters: jsontext.Value(`{"type":"object","properties":{"diff":{"type":"string"}},"required":["diff"]}`),
		ConstrainedSampling: jsontext.Value(`{"type":"grammar","variants":{"openai_regex":"x","openai_lark":"start: x"}}`),
	}
	const made = `No result provided`
	for name, c := range map[string]struct {
		compat   string
		messages []llm.Message
		want     string
	}{
		"signatures that hold no item of use": {``, []llm.Message{own(m,
			thought("no JSON"), thought(`{"type":"reasoning","id":`), thought(`[]`), thought(`{"type":"message"}`), thought(""),
			thought(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]}`),
			thought(`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":null,"content":[]}`), say("t"))},
			`[` + message("t", "msg_pi_0") + `]`},
		"what reasoning that is left out led to": {``, []llm.Message{own(m,
			say("before"), thought(`{"type":"reasoning","id":"rs_1","summary":[]}`), signed("a", `{"v":1,"id":"msg_1","phase":"commentary"}`), call("c|fc_1", "f", "{}"),
			thought(sealed("rs_2")), thought(""), call("d|fc_2", "f", "{}")), result("c|fc_1", "f", say("r")), result("d|fc_2", "f", say("r"))},
			`[` + message("before", "msg_pi_0") + `,` + strings.TrimSuffix(message("a", "msg_pi_0_1"), "}") + `,"phase":"commentary"},` +
				`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` + sealed("rs_2") + `,` +
				`{"type":"function_call","id":"fc_2","call_id":"d","name":"f","arguments":"{}"},` + resultItem("c", "r") + `,` + resultItem("d", "r") + `]`},
		"signatures are sent as they are": {``, []llm.Message{own(m,
			thought(` {"type": "reasoning","z":1.50, "id":"rs_1","encrypted_content":"e"}`),
			thought(`{"type":"reasoning","id":"rs_2","content":[{"type":"reasoning_text","text":"\ud83d"}]}`), say("t"))},
			`[{"type":"reasoning","z":1.5,"id":"rs_1","encrypted_content":"e"},` +
				`{"type":"reasoning","id":"rs_2","content":[{"type":"reasoning_text","text":"\ud83d"}]},` + message("t", "msg_pi_0") + `]`},
		"reasoning that led to nothing": {``, []llm.Message{own(m, say("t"), thought(sealed("rs_1")), thought(sealed("rs_2"))), own(m, thought(sealed("rs_3")))},
			`[` + message("t", "msg_pi_0") + `]`},
		"an item twice": {``, []llm.Message{
			own(m, thought(sealed("rs_1")), signed("a", "msg_1"), call("c|fc_1", "f", "{}")), result("c|fc_1", "f", say("r")),
			own(m, thought(sealed("rs_1")), signed("b", "msg_1"), signed("c", "msg_1"), call("d|fc_1", "f", "{}"), call("c|fc_1", "f", "{}")),
		}, `[` + sealed("rs_1") + `,` + message("a", "msg_1") + `,` +
			`{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"},` + resultItem("c", "r") + `,` +
			message("b", "msg_pi_2") + `,` + message("c", "msg_pi_2_1") + `,` +
			`{"type":"function_call","call_id":"d","name":"f","arguments":"{}"},` +
			`{"type":"function_call","call_id":"c_2","name":"f","arguments":"{}"},` + resultItem("d", made) + `,` + resultItem("c_2", made) + `]`},
		"ids like those that are made": {``, []llm.Message{own(m, signed("a", "msg_pi_1"), say("b")), own(m, say("c")), own(m, signed("d", "msg_pi_0_1"))},
			`[` + message("a", "msg_pi_1") + `,` + message("b", "msg_pi_0_1") + `,` + message("c", "msg_pi_1_") + `,` + message("d", "msg_pi_2") + `]`},
		"text signatures": {``, []llm.Message{own(m,
			signed("a", `{"v":1,"id":"msg_1","phase":"whispered"}`), signed("b", `{"v":1}`), signed("c", `{"id":`), signed("d", ""))},
			`[` + message("a", "msg_1") + `,` + message("b", "msg_pi_0_1") + `,` + message("c", `{\"id\":`) + `,` + message("d", "msg_pi_0_3") + `]`},
		"ids that the service refuses": {``, []llm.Message{own(m,
			call(strings.Repeat("x", 70)+"|fc_1", "f", "{}"), call("y|fc_"+strings.Repeat("1", 70), "f", "{}"), call("z|"+strings.Repeat("1", 70), "f", "{}"), call("", "f", "{}"))},
			`[{"type":"function_call","call_id":"` + strings.Repeat("x", 64) + `","name":"f","arguments":"{}"},` +
				`{"type":"function_call","call_id":"y","name":"f","arguments":"{}"},{"type":"function_call","call_id":"z","name":"f","arguments":"{}"},` +
				`{"type":"function_call","call_id":"call_2","name":"f","arguments":"{}"},` +
				resultItem(strings.Repeat("x", 64), made) + `,` + resultItem("y", made) + `,` + resultItem("z", made) + `,` + resultItem("call_2", made) + `]`},
		"names and arguments that no model should give": {``, []llm.Message{own(m, call("c", "a.b c", `{"a":`), call("d", "", `{"x": 1}`))},
			`[{"type":"function_call","call_id":"c","name":"a_b_c","arguments":"{}"},` +
				`{"type":"function_call","call_id":"d","name":"unknown_tool","arguments":"{\"x\":1}"},` + resultItem("c", made) + `,` + resultItem("d", made) + `]`},
		"grammar tools": {`{"supportsOpenAIGrammarTools":true}`, llm.Fold("", []llm.Tool{grammarTool}, []llm.Message{
			own(m, call("c|ctc_1", "patch", `{"diff":"+a\n"}`), call("d|fc_1", "patch", `{}`)), result("c|ctc_1", "patch", say("ok")),
		}), `[{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"patch","input":"+a\n"},` +
			`{"type":"custom_tool_call","call_id":"d","name":"patch","input":""},` +
			`{"type":"custom_tool_call_output","call_id":"c","output":"ok"},{"type":"custom_tool_call_output","call_id":"d","output":"` + made + `"}]`},
		"a user who says nothing": {``, []llm.Message{&llm.User{Content: llm.Blocks()}, &llm.User{Content: llm.Plain("")}, &llm.User{Content: llm.Blocks(&llm.UnknownBlock{Type: "x"})}},
			`[{"role":"user","content":[{"type":"input_text","text":""}]}]`},
		"nothing at all": {``, nil, `[]`},
	} {
		m := testModel()
		m.Compat = jsontext.Value(c.compat)
		if got := member(plainly(t, m, keyed(c.messages...)).Body, "input"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// A conversation that goes on sends what a fresh one would.
func TestMemoChangesNothing(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsMidConvoSystemMessages":true,"supportsAdditionalTools":true,"supportsOpenAIGrammarTools":true,"supportsMidConvoEffort":true}`)
	tool := func(name, grammar string) llm.Tool {
		return llm.Tool{
			Name: name, Parameters: jsontext.Value(`{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`),
			ConstrainedSampling: jsontext.Value(grammar),
		}
	}
	const lark = `{"type":"grammar","variants":{"openai_lark":"x"}}`
	replayed := own(m, thought(sealed("rs_1")), signed("b", "msg_1"))
	replayed.ProviderThinkingLevel = "low"
	history := []llm.Message{
		&llm.System{Content: llm.Plain("p"), ToolsAdded: []llm.Tool{tool("a", `false`)}},
		llm.UserText("u", 1),
		own(m, thought(sealed("rs_1")), signed("a", "msg_1"), call("c|fc_1", "b", `{"p":"x"}`)),
		result("c|fc_1", "b", say("r")),
		replayed,
		&llm.System{Sections: []llm.Section{{Name: "s", Text: "t"}}, ToolsAdded: []llm.Tool{tool("b", lark)}, ToolsRemoved: []string{"a"}},
		own(m, signed("c", "msg_1"), call("d|ctc_1", "b", `{"p":"x"}`)),
		&llm.System{ToolsAdded: []llm.Tool{tool("c", `false`)}, ToolsRemoved: []string{"x", "c"}},
		llm.UserText("v", 2),
		&llm.System{ToolsAdded: []llm.Tool{tool("a", `false`)}},
	}
	var memo llm.Memo
	for _, n := range []int{3, 4, 5, 4, 7, 10, 8, 2, 10} {
		fresh, kept := keyed(history[:n]...), keyed(history[:n]...)
		fresh.Reasoning, kept.Reasoning, kept.Memo = llm.LevelHigh, llm.LevelHigh, &memo
		want, got := plainly(t, m, fresh).Body, plainly(t, m, kept).Body
		if string(got) != string(want) {
			t.Errorf("%d messages:\n got %s\nwant %s", n, got, want)
		}
	}
	const notice = `{"role":"developer","content":"This is an incremental tools update.`
	whole := keyed(history...)
	whole.Reasoning = llm.LevelHigh
	input := member(plainly(t, m, whole).Body, "input")
	if n := strings.Count(input, notice); n != 3 {
		t.Errorf("%d notices of later tools, want 3: %s", n, input)
	}
	for _, part := range []string{
		`Still unavailable: x.`, `no longer available. Do not call them:\n- a"`,
		`{"type":"configuration_update","reasoning":{"effort":"low"}},` + message("b", "msg_pi_3"),
	} {
		if !strings.Contains(input, part) {
			t.Errorf("no %s in %s", part, input)
		}
	}
}

// A turn of a long conversation encodes what is new.
func TestTurnEncodesWhatIsNew(t *testing.T) {
	m := testModel()
	var history []llm.Message
	for i := range 2000 {
		id := fmt.Sprintf("c%d|fc_%d", i, i)
		history = append(history, llm.UserText("u", int64(i)),
			own(m, thought(sealed(fmt.Sprint("rs_", i))), signed("t", fmt.Sprint("msg_", i)), call(id, "f", `{"a":1}`)), result(id, "f", say("r")))
	}
	cost := func(history []llm.Message) float64 {
		x := newService(quiet(nil), openAI()).exchange(m, keyed(history...))
		x.req.Memo = &llm.Memo{}
		body := func() {
			if _, err := x.body(); err != nil {
				t.Fatal(err)
			}
		}
		body()
		return testing.AllocsPerRun(5, body)
	}
	short, long := cost(history[:30]), cost(history)
	if long > short+5 {
		t.Errorf("%v allocations with a long history, %v with a short one", long, short)
	}
}

func TestMembers(t *testing.T) {
	flag := func(s string) func(*llm.Model, *llm.Request, *Options) {
		return func(m *llm.Model, _ *llm.Request, _ *Options) { m.Compat = jsontext.Value(s) }
	}
	type set = func(m *llm.Model, r *llm.Request, o *Options)
	for name, c := range map[string]struct {
		set  set
		want string // members of the body behind input
	}{
		"nothing asked for": {func(*llm.Model, *llm.Request, *Options) {}, `"stream":true,"store":false,"reasoning":{"effort":"none"}`},
		"all": {func(m *llm.Model, r *llm.Request, o *Options) {
			r.SessionID, r.MaxTokens, r.Temperature, r.CacheRetention = strings.Repeat("é", 70), 3, new(0.5), "long"
			*o = Options{ReasoningEffort: llm.LevelHigh, ReasoningSummary: "concise", ServiceTier: "flex", ToolChoice: jsontext.Value(`{"type": "function","name":"f"}`)}
			r.SamplingParams = jsontext.Value(`{"top_p":0.50,"store":true}`)
		}, `"stream":true,"prompt_cache_key":"` + strings.Repeat("é", 64) + `","prompt_cache_retention":"24h","store":true,"max_output_tokens":16,` +
			`"temperature":0.5,"service_tier":"flex","tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"high","summary":"concise"},` +
			`"include":["reasoning.encrypted_content"],"top_p":0.5`},
		"a summary without an effort, which is not mapped": {func(m *llm.Model, _ *llm.Request, o *Options) {
			o.ReasoningSummary, m.ThinkingLevelMap = "auto", map[llm.ThinkingLevel]*string{llm.LevelMedium: new("x")}
		}, `"stream":true,"store":false,"reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"]`},
		"a summary without an effort": {func(_ *llm.Model, _ *llm.Request, o *Options) { o.ReasoningSummary = "detailed" },
			`"stream":true,"store":false,"reasoning":{"effort":"medium","summary":"detailed"},"include":["reasoning.encrypted_content"]`},
		"parameters of the level of a summary": {func(m *llm.Model, _ *llm.Request, o *Options) {
			o.ReasoningSummary = "auto"
			m.SamplingParamsByThinkingLevel = map[llm.ThinkingLevel]jsontext.Value{llm.LevelOff: jsontext.Value(`{"top_p":0.1}`), llm.LevelMedium: jsontext.Value(`{"top_p":0.5}`)}
		}, `"stream":true,"store":false,"reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"],"top_p":0.5`},
		"a level off": {func(m *llm.Model, _ *llm.Request, o *Options) {
			o.ReasoningEffort = llm.LevelOff
			m.ThinkingLevelMap = map[llm.ThinkingLevel]*string{llm.LevelOff: new("minimal")}
		}, `"stream":true,"store":false,"reasoning":{"effort":"minimal"}`},
		"Copilot without a level": {func(m *llm.Model, _ *llm.Request, _ *Options) { m.Provider = "github-copilot" }, `"stream":true,"store":false`},
		"a model that cannot stop thinking": {func(m *llm.Model, _ *llm.Request, _ *Options) {
			m.ThinkingLevelMap = map[llm.ThinkingLevel]*string{llm.LevelOff: nil}
		}, `"stream":true,"store":false`},
		"efforts in the input": {func(m *llm.Model, r *llm.Request, o *Options) {
			flag(`{"supportsMidConvoEffort":true}`)(m, r, o)
			o.ReasoningEffort = llm.LevelLow
		}, `"stream":true,"store":false,"reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"]`},
		"no effort in the input":  {flag(`{"supportsMidConvoEffort":true}`), `"stream":true,"store":false,"reasoning":{"effort":"none"}`},
		"flags of the wrong kind": {flag(`{"supportsMaxOutputTokens":"no","promptCacheKeyMode":1,"x":{}}`), `"stream":true,"store":false,"reasoning":{"effort":"none"}`},
		"signed in with ChatGPT": {func(m *llm.Model, r *llm.Request, _ *Options) {
			m.BaseURL, r.APIKey = "https://api.openai.com/v1", "eyJ"
			r.SessionID, r.MaxTokens, r.Temperature, r.CacheRetention = "s", 300, new(0.5), "long"
		}, `"stream":true,"prompt_cache_key":"s","store":false,"reasoning":{"effort":"none"}`},
		"a key of the platform": {func(m *llm.Model, r *llm.Request, _ *Options) {
			m.BaseURL, r.MaxTokens = "https://api.openai.com/v1", 300
		}, `"stream":true,"store":false,"max_output_tokens":300,"reasoning":{"effort":"none"}`},
		"no thinking": {func(m *llm.Model, _ *llm.Request, o *Options) { m.Reasoning, o.ReasoningEffort = false, llm.LevelHigh }, `"stream":true,"store":false`},
	} {
		m, req, o := testModel(), keyed(llm.UserText("u", 1)), Options{}
		c.set(m, req, &o)
		got := string(requestOf(t, func(a *API) *llm.Stream { return a.StreamWith(t.Context(), m, req, o) }).Body)
		_, got, _ = strings.Cut(got, `"stream"`)
		if got = `"stream"` + strings.TrimSuffix(got, "}"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestTools(t *testing.T) {
	schema := jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	tool := func(sampling string) llm.Tool {
		return llm.Tool{Name: "f", Description: "d", Parameters: schema, ConstrainedSampling: jsontext.Value(sampling)}
	}
	const plain = `{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string"}}}`
	for name, c := range map[string]struct {
		compat string
		tool   llm.Tool
		want   string // or the error
	}{
		"plain":             {``, tool(``), `[` + plain + `}]`},
		"not strict":        {`{"supportsStrictMode":true}`, tool(`false`), `[` + plain + `,"strict":false}]`},
		"strict unasked":    {``, tool(`{"type":"json_schema","strict":"prefer"}`), `[` + plain + `}]`},
		"strict impossible": {``, tool(`{"type":"json_schema","strict":"require"}`), `Tool "f" requires JSON-schema constrained sampling, but strict tools are unsupported.`},
		"grammar as function": {``, llm.Tool{Name: "f", Description: "d", Parameters: jsontext.Value(`{"type":"object"}`), ConstrainedSampling: jsontext.Value(`{"type":"grammar"}`)},
			`[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`},
		"no schema":     {``, llm.Tool{Name: "f"}, `[{"type":"function","name":"f","description":""}]`},
		"broken schema": {``, llm.Tool{Name: "f", Parameters: jsontext.Value(`{"type":`)}, `the parameters of tool "f" are no JSON`},
	} {
		m := testModel()
		m.Compat = jsontext.Value(c.compat)
		req := keyed(llm.Fold("", []llm.Tool{c.tool}, []llm.Message{llm.UserText("u", 1)})...)
		if c.want[0] == '[' {
			if got := member(plainly(t, m, req).Body, "tools"); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
			}
			continue
		}
		got := New(quiet(wiretest.Answers())).StreamWith(t.Context(), m, req, Options{}).Result()
		if !strings.HasPrefix(got.ErrorMessage, c.want) {
			t.Errorf("%s: error %q", name, got.ErrorMessage)
		}
	}
}

func TestHeaders(t *testing.T) {
	m := testModel()
	req := keyed(llm.UserText("u", 1))
	req.SessionID = "ses"
	req.Headers = map[string]*string{"authorization": new("Bearer own"), "x-client-request-id": nil}
	got := plainly(t, m, req)
	if got.URL != "http://service.test/v1/responses" {
		t.Errorf("sent to %s", got.URL)
	}
	for name, want := range map[string]string{"Authorization": "Bearer own", "Session-Id": "ses", "X-Client-Request-Id": "", "Content-Type": "application/json"} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
}

func TestMissingKey(t *testing.T) {
	m, req := testModel(), &llm.Request{}
	a := New(quiet(wiretest.Answers()))
	_, err := a.Stream(t.Context(), m, req)
	var key *llm.KeyError
	if !errors.As(err, &key) || key.Provider != "openai" {
		t.Errorf("error %v", err)
	}
	if got := a.StreamWith(t.Context(), m, req, Options{}).Result(); got.ErrorMessage != "No API key for provider: openai" {
		t.Errorf("message %q", got.ErrorMessage)
	}
	req.Headers = map[string]*string{"CF-AIG-Authorization": new("x")}
	if got := plainly(t, m, req).Header.Get("Authorization"); got != "" {
		t.Errorf("authorization %q without a key", got)
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		provider string
		status   int
		body     string
		want     string
	}{
		{"openai", 400, `{"error":{"message":"no","code":null}}`, `OpenAI API error (400): {"message":"no","code":null}`},
		{"xai", 500, ``, `xai API error (500): 500 status code (no body)`},
		{"openai", 429, `{"error":{"code":"subscription_sharing_workplace_individual_usage_limit_exceeded"}}`,
			`OpenAI API error (429): 429 {"code":"subscription_sharing_workplace_individual_usage_limit_exceeded"}` + "\nCheck your ChatGPT usage: https://chatgpt.com/settings/usage"},
		{"openai", 503, `{"error":{"code":"subscription_sharing_usage_unavailable"}}`, `OpenAI API error (503): 503 {"code":"subscription_sharing_usage_unavailable"}`},
	} {
		if got := errorText(c.provider)(&wire.StatusError{Status: c.status, Body: []byte(c.body)}); got != c.want {
			t.Errorf("%s %d:\n got %s\nwant %s", c.provider, c.status, got, c.want)
		}
	}
}

func TestIDsOfOtherModels(t *testing.T) {
	m := testModel()
	foreign := &llm.Assistant{API: "anthropic-messages", Provider: "anthropic", Model: "c"}
	sibling := &llm.Assistant{API: ID, Provider: "openai", Model: "older"}
	for _, c := range []struct {
		from     *llm.Assistant
		provider string
		id, want string
	}{
		{foreign, "openai", "toolu_1", "toolu_1"},
		{foreign, "openai", "a.b__", "a_b"},
		{foreign, "openai", "a🙈z|x.", "a__z|fc_" + transcript.ShortHash("x.")},
		{foreign, "xai", "a|b.c", "a_b_c"},
		{sibling, "openai", "a|b.c_", "a|fc_b_c"},
		{sibling, "openai", "a|fc_1", "a|fc_1"},
	} {
		m.Provider = c.provider
		if got := normalizeID(openAI(), m, c.id, c.from); got != c.want {
			t.Errorf("%s for %s: got %q, want %q", c.id, c.provider, got, c.want)
		}
	}
}

// Requests that overlap do not disturb each other.
func TestOverlappingRequests(t *testing.T) {
	m := testModel()
	req := keyed(llm.UserText("u", 1), own(m, say("a")), llm.UserText("v", 2))
	req.Memo = &llm.Memo{}
	want := string(plainly(t, m, req).Body)
	a := newService(quiet(nil), openAI())
	done := make(chan string)
	for range 4 {
		go func() {
			x := a.exchange(m, req)
			x.simple()
			body, err := x.body()
			if err != nil {
				body = []byte(err.Error())
			}
			done <- string(body)
		}()
	}
	for range 4 {
		if got := <-done; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A stream that nobody reads sends nothing.
func TestUnreadStream(t *testing.T) {
	s := New(quiet(wiretest.Answers())).StreamWith(context.Background(), testModel(), keyed(), Options{})
	s.Close()
	if ev, ok := s.Next(); ok && ev.Type != llm.EventError {
		t.Errorf("event %v after Close", ev.Type)
	}
}

// Whatever a session holds, the request is JSON and no two items have one id.
func FuzzInput(f *testing.F) {
	f.Add(sealed("rs_1"), `{"v":1,"id":"msg_1"}`, "c|fc_1", "f", `{"a":1}`)
	f.Add(`{"type":"reasoning","content":[7],"id":{}}`, `{"id":"\ud83d"}`, "|ctc_1|x", "", `{"diff":"\ud83d"}`)
	f.Add(`{"type":"reasoning"`, "rs_1", strings.Repeat("é", 80)+"|", "a b", `[`)
	f.Fuzz(func(t *testing.T, thinking, text, id, name, args string) {
		m := testModel()
		same := own(m, thought(thinking), signed("t", text), call(id, name, args))
		sibling := own(m, thought(thinking), signed("t", text), call(id, name, args))
		sibling.Model = "older"
		foreign := own(m, signed("t", text), call(id, name, args))
		foreign.Provider = "other"
		messages := []llm.Message{same, result(id, name), sibling, llm.UserText(text, 1), foreign, result(id, name), same, same}
		x := newService(quiet(nil), openAI()).exchange(m, keyed(messages...))
		body, err := x.body()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		waiting := map[string]int{} // calls without a result
		var r jsonwire.Reader
		r.Reset(jsonwire.Get(body, "input"))
		for r.Array(); r.More(); {
			it := readItem(r.Raw())
			if it.id != "" && seen[it.id] {
				t.Errorf("two items have the id %q: %s", it.id, body)
			}
			seen[it.id] = true
			switch it.typ {
			case "function_call":
				waiting[it.callID]++
			case "function_call_output":
				waiting[it.callID]--
			}
		}
		if err := r.End(); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for id, n := range waiting {
			if n != 0 || id == "" {
				t.Errorf("the call %q lacks its result: %s", id, body)
			}
		}
	})
}
