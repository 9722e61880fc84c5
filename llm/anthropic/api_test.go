package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func result(t *testing.T, api *anthropic.API, m *llm.Model, req *llm.Request) *llm.Assistant {
	t.Helper()
	stream, err := api.Stream(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream.Result()
}

func TestKeyError(t *testing.T) {
	api := anthropic.New(anthropic.Config{})
	req := request(&served{body: deltas(1)})
	req.APIKey = ""
	_, err := api.Stream(t.Context(), testModel, req)
	var key *llm.KeyError
	if !errors.As(err, &key) || key.Provider != "anthropic" {
		t.Errorf("got %v", err)
	}
	m := api.StreamWith(t.Context(), testModel, req, anthropic.Options{}).Result()
	if m.StopReason != llm.StopError || m.ErrorMessage != key.Error() {
		t.Errorf("got %s, %q", m.StopReason, m.ErrorMessage)
	}
	req.Headers = map[string]*string{"X-API-Key": new("k")}
	if _, err := api.Stream(t.Context(), testModel, req); err != nil {
		t.Error(err)
	}
	req.Headers["X-API-Key"] = nil
	if _, err := api.Stream(t.Context(), testModel, req); err == nil {
		t.Error("a suppressed header field counts as a key")
	}
}

// A request must never look like another vendor's client.
func TestSaysWhoItIs(t *testing.T) {
	var got http.Header
	client := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return (&served{body: deltas(1)}).RoundTrip(r)
	})
	for _, key := range []string{"sk-ant-api03-x", "sk-ant-oat01-x"} {
		req := request(client)
		req.APIKey = key
		m := result(t, anthropic.New(anthropic.Config{Version: "9.9"}), testModel, req)
		if m.StopReason != llm.StopStop {
			t.Fatal(m.ErrorMessage)
		}
		if !strings.HasPrefix(got.Get("User-Agent"), "pinch/9.9 (") || got.Get("X-App") != "" || strings.Contains(got.Get("Anthropic-Beta"), "claude-code") {
			t.Errorf("%s: %v", key, got)
		}
		bearer := got.Get("Authorization") == "Bearer "+key
		if bearer != strings.Contains(key, "oat") || (got.Get("X-Api-Key") == key) == bearer {
			t.Errorf("%s: wrong credentials in %v", key, got)
		}
	}
}

func TestCallbacks(t *testing.T) {
	client := &served{body: deltas(2)}
	req := request(client)
	var order []string
	req.OnPayload = func(p jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		order = append(order, "payload")
		return jsontext.Value(`{"stream":false,"replaced":true}`), nil
	}
	req.OnResponse = func(status int, _ http.Header, m *llm.Model) error {
		order = append(order, fmt.Sprint("response ", status))
		return nil
	}
	req.OnProviderEvent = func(ev jsontext.Value, m *llm.Model) error {
		typ, _ := jsonwire.StringValue(jsonwire.Get(ev, "type"))
		order = append(order, typ)
		return nil
	}
	stream, err := anthropic.New(anthropic.Config{}).Stream(t.Context(), testModel, req)
	if err != nil {
		t.Fatal(err)
	}
	for ev := range stream.Events() {
		order = append(order, ev.Type.String())
	}
	want := "payload, response 200, start, message_start, content_block_start, text_start, content_block_delta, text_delta, " +
		"content_block_delta, text_delta, content_block_stop, text_end, message_delta, message_stop, done"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if client.seen[0] != `{"replaced":true,"stream":true}` {
		t.Errorf("sent %s", client.seen[0])
	}
	req.OnProviderEvent = func(jsontext.Value, *llm.Model) error { return errors.New("enough") }
	if m := result(t, anthropic.New(anthropic.Config{}), testModel, req); m.ErrorMessage != "enough" {
		t.Errorf("got %q", m.ErrorMessage)
	}
	req.OnPayload = func(jsontext.Value, *llm.Model) (jsontext.Value, error) { return nil, errors.New("not this") }
	if m := result(t, anthropic.New(anthropic.Config{}), testModel, req); m.ErrorMessage != "not this" {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

// turns is a conversation of n turns, each a question, a call and its result.
func turns(n int) []llm.Message {
	messages := []llm.Message{&llm.System{Content: llm.Plain("be brief"), ToolsAdded: []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{"type":"object"}`)}}}}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			llm.UserText(fmt.Sprintf("question %d", i), int64(4*i+1)),
			&llm.Assistant{API: anthropic.ID, Provider: "anthropic", Model: "claude-test", StopReason: llm.StopToolUse, Timestamp: int64(4*i + 2),
				Content: []llm.Block{&llm.Text{Text: "looking"}, &llm.ToolCall{ID: id, Name: "look", Arguments: jsontext.Value(`{"n": 1.0}`)}}},
			&llm.ToolResult{ToolCallID: id, ToolName: "look", Content: []llm.Block{&llm.Text{Text: strings.Repeat("data ", 50)}}, Timestamp: int64(4*i + 3)},
		)
	}
	return messages
}

// With a Memo a body has the same bytes as without.
func TestMemoChangesNothing(t *testing.T) {
	client := &served{body: deltas(1)}
	api := anthropic.New(anthropic.Config{})
	memo := &llm.Memo{}
	messages := turns(12)
	for n := 2; n <= len(messages); n++ {
		for _, retention := range []string{"short", "none", "long"} {
			client.seen = nil
			for _, m := range []*llm.Memo{nil, memo} {
				req := request(client, messages[:n]...)
				req.Memo, req.CacheRetention = m, retention
				if got := result(t, api, testModel, req); got.StopReason != llm.StopStop {
					t.Fatal(got.ErrorMessage)
				}
			}
			if client.seen[0] != client.seen[1] {
				t.Fatalf("%d messages, %s\nwithout %s\nwith    %s", n, retention, client.seen[0], client.seen[1])
			}
		}
	}
}

// A turn late in a session costs what a turn early in it costs, the copy of
// stored bytes aside.
func TestTurnEncodesOnlyWhatIsNew(t *testing.T) {
	allocs := func(n int) float64 {
		messages := turns(n + 200)
		client := wiretest.Always(opening + closing)
		api := anthropic.New(anthropic.Config{})
		memo := &llm.Memo{}
		at := 1 + 3*n
		return testing.AllocsPerRun(50, func() {
			req := request(client, messages[:at]...)
			req.Memo = memo
			stream, err := api.Stream(t.Context(), testModel, req)
			if err != nil {
				t.Fatal(err)
			}
			stream.Result()
			at += 3
		})
	}
	short, long := allocs(5), allocs(2000)
	if long > short+10 {
		t.Errorf("a turn makes %v allocations in a short session, %v in a long one", short, long)
	}
}

func TestStrictTools(t *testing.T) {
	strict := func(strictness string) []llm.Message {
		return []llm.Message{
			&llm.System{ToolsAdded: []llm.Tool{{Name: "t", Parameters: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}`),
				ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"` + strictness + `"}`)}}},
			llm.UserText("go", 1),
		}
	}
	model := *testModel
	model.Compat = jsontext.Value(`{"supportsStrictTools":true}`)
	client := &served{body: deltas(1)}
	if m := result(t, anthropic.New(anthropic.Config{}), &model, request(client, strict("require")...)); m.StopReason != llm.StopError ||
		!strings.HasPrefix(m.ErrorMessage, `Tool "t" requires JSON-schema constrained sampling, but `) || len(client.seen) != 0 {
		t.Errorf("got %q after %d requests", m.ErrorMessage, len(client.seen))
	}
	if result(t, anthropic.New(anthropic.Config{}), &model, request(client, strict("prefer")...)); strings.Contains(client.seen[0], "strict") {
		t.Errorf("sent %s", client.seen[0])
	}
}

// OpenRouter says what an answer cost.
func TestBilledCost(t *testing.T) {
	for name, c := range map[string]struct {
		provider, usage string
		total           float64
		billed          bool
	}{
		"its own price":       {"openrouter", `"cost":0.5,"is_byok":false`, 0.5, true},
		"and the provider's":  {"openrouter", `"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":0.25}`, 0.75, true},
		"an incomplete bill":  {"openrouter", `"cost":0.5`, 3e-6, false},
		"no bill of others":   {"anthropic", `"cost":0.5,"is_byok":false`, 3e-6, false},
		"a bill without more": {"openrouter", `"cost":0,"is_byok":false`, 0, true},
	} {
		model := *testModel
		model.Provider = c.provider
		client := &served{body: "event: message_start\ndata: {\"message\":{\"id\":\"m\",\"model\":\"claude-test\",\"usage\":{\"input_tokens\":1}}}\n\n" +
			"event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":0," + c.usage + "}}\n\nevent: message_stop\ndata: {}\n\n"}
		cost := result(t, anthropic.New(anthropic.Config{}), &model, request(client)).Usage.Cost
		if cost.Total != c.total || *cost.TotalFromProvider != c.billed || cost.Input != 3e-6 {
			t.Errorf("%s: %+v, from the provider: %v", name, cost, *cost.TotalFromProvider)
		}
	}
}

// The last list of what was done to the conversation is recorded, with answers.
func TestTransformations(t *testing.T) {
	for stop, want := range map[string]int{"end_turn": 1, "refusal": 0} {
		client := &served{body: "event: message_start\ndata: {\"message\":{\"id\":\"m\",\"input_transformations\":[{\"type\":\"a\"}],\"usage\":{}}}\n\n" +
			"event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"" + stop + "\"},\"input_transformations\":[{\"type\":\"b\"}]}\n\nevent: message_stop\ndata: {}\n\n"}
		list := result(t, anthropic.New(anthropic.Config{}), testModel, request(client)).Diagnostics
		if len(list) != want || want > 0 && string(list[0].Details) != `{"transformations":[{"type":"b"}]}` {
			t.Errorf("%s: diagnostics %+v", stop, list)
		}
	}
}

// The service wants the members of a schema that every tool has.
func TestStrictToolWithoutProperties(t *testing.T) {
	model := *testModel
	model.Compat = jsontext.Value(`{"supportsStrictTools":true}`)
	client := &served{body: deltas(1)}
	result(t, anthropic.New(anthropic.Config{}), &model, request(client,
		&llm.System{ToolsAdded: []llm.Tool{{Name: "t", Parameters: jsontext.Value(`{"type":"object"}`),
			ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"prefer"}`)}}}, llm.UserText("go", 1)))
	if want := `"strict":true,"input_schema":{"type":"object","required":[],"additionalProperties":false,"properties":{}}`; !strings.Contains(client.seen[0], want) {
		t.Errorf("no %s in %s", want, client.seen[0])
	}
}

// Efforts are in the conversation unless the model is told not to think.
func TestEffortInConversation(t *testing.T) {
	const betas = "mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01"
	bound := func(effort string) string {
		return `"role":"system","content":[],"output_config":{"effort":"` + effort + `"}}],"max_tokens":N,"stream":true,` +
			`"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"low"}}`
	}
	for name, c := range map[string]struct {
		compat      string
		off         bool // is a level of the model
		level       llm.ThinkingLevel
		body, betas string
	}{
		"adaptive":      {`,"forceAdaptiveThinking":true`, true, llm.LevelLow, bound("low"), betas},
		"budget":        {``, true, llm.LevelLow, bound("high"), "interleaved-thinking-2025-05-14," + betas},
		"off":           {``, true, "", `"max_tokens":N,"stream":true,"thinking":{"type":"disabled"}}`, betas},
		"cannot be off": {``, false, "", bound("high"), betas},
	} {
		model := *testModel
		model.Reasoning, model.Compat = true, jsontext.Value(`{"supportsMidConvoEffort":true`+c.compat+`}`)
		if !c.off {
			model.ThinkingLevelMap = map[llm.ThinkingLevel]*string{llm.LevelOff: nil}
		}
		client := &served{body: deltas(1)}
		req := request(client)
		req.Reasoning, req.MaxTokens, req.CacheRetention = c.level, 5000, "none"
		result(t, anthropic.New(anthropic.Config{}), &model, req)
		got := regexp.MustCompile(`"max_tokens":\d+`).ReplaceAllString(client.seen[0], `"max_tokens":N`)
		if !strings.HasSuffix(got, c.body) {
			t.Errorf("%s:\n got %s\nwant …%s", name, got, c.body)
		}
		if got := client.header.Get("Anthropic-Beta"); got != c.betas {
			t.Errorf("%s: betas %s, want %s", name, got, c.betas)
		}
	}
}

// A refusal of strict tools is remembered for the session.
func TestStrictFallbackIsRemembered(t *testing.T) {
	model := *testModel
	model.Compat = jsontext.Value(`{"supportsStrictTools":true}`)
	messages := []llm.Message{
		&llm.System{ToolsAdded: []llm.Tool{{Name: "t", Parameters: jsontext.Value(`{"type":"object"}`),
			ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"prefer"}`)}}},
		llm.UserText("go", 1),
	}
	var sent []bool
	client := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		strict := strings.Contains(string(b), `"strict":true`)
		sent = append(sent, strict)
		s := &served{body: deltas(1)}
		if strict {
			s = &served{status: 400, body: `{"error":{"type":"invalid_request_error","message":"Too many strict tools (30)"}}`}
		}
		return s.RoundTrip(r)
	})
	api := anthropic.New(anthropic.Config{})
	for i, session := range []string{"s", "s", "other", "s"} {
		if i == 3 {
			api.EndSession("s")
		}
		req := request(client, messages...)
		req.SessionID, req.Memo = session, &llm.Memo{}
		m := result(t, api, &model, req)
		if m.StopReason != llm.StopStop {
			t.Fatal(m.ErrorMessage)
		}
		if (len(m.Diagnostics) == 1) != (i != 1) {
			t.Errorf("request %d has %d diagnostics", i, len(m.Diagnostics))
		}
	}
	if got, want := fmt.Sprint(sent), "[true false false true false true false]"; got != want {
		t.Errorf("strict: %s, want %s", got, want)
	}
}

// A service that refuses calls in the history of a request without tools gets
// stand-ins for them, once.
func TestStandIns(t *testing.T) {
	call := func(id, name string) *llm.ToolCall {
		return &llm.ToolCall{ID: id, Name: name, Arguments: jsontext.Value(`{}`)}
	}
	history := []llm.Message{
		llm.UserText("go", 1),
		&llm.Assistant{API: anthropic.ID, Provider: "other", Model: "m", StopReason: llm.StopToolUse, Timestamp: 2,
			Content: []llm.Block{call("a", "look up"), call("b", "read"), call("c", "Read")}},
		llm.UserText("and now?", 3),
	}
	var bodies []string
	refuse := func(body string) bool { return jsonwire.Get([]byte(body), "tools") == nil }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bodies = append(bodies, string(b)); refuse(string(b)) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Requests which include `tool_use` or `tool_result` blocks must define tools.\"}}")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, deltas(1))
	}))
	defer server.Close()
	m := *testModel
	m.BaseURL, m.Compat = server.URL, jsontext.Value(`{"claudeCodeToolNames":true}`)
	api, memo := anthropic.New(anthropic.Config{}), &llm.Memo{}
	ask := func(choice string) *llm.Assistant {
		bodies = nil
		req := &llm.Request{Messages: history, Options: llm.Options{APIKey: "k", Client: server.Client(), Memo: memo, ToolChoice: choice}}
		return result(t, api, &m, req)
	}
	for _, c := range []struct{ choice, want string }{{"", `{"type":"none"}`}, {"", `{"type":"none"}`}, {"auto", `{"type":"auto"}`}} {
		got := ask(c.choice)
		if got.StopReason != llm.StopStop || len(bodies) != 2 {
			t.Fatalf("%s after %d requests", got.ErrorMessage, len(bodies))
		}
		var names []string
		var r jsonwire.Reader
		r.Reset(jsonwire.Get([]byte(bodies[1]), "tools"))
		for r.Array(); r.More(); {
			tool := r.Raw()
			name, _ := jsonwire.StringValue(jsonwire.Get(tool, "name"))
			names = append(names, name+" "+string(jsonwire.Get(tool, "input_schema")))
		}
		const empty = ` {"type":"object","properties":{},"required":[]}`
		if fmt.Sprint(names) != fmt.Sprint([]string{"look_up" + empty, "Read" + empty}) || string(jsonwire.Get([]byte(bodies[1]), "tool_choice")) != c.want {
			t.Errorf("%v\n%s", names, bodies[1])
		}
		if a, b := jsonwire.Get([]byte(bodies[0]), "messages"), jsonwire.Get([]byte(bodies[1]), "messages"); string(a) != string(b) {
			t.Errorf("the history changes:\n%s\n%s", a, b)
		}
	}
	refuse = func(string) bool { return true }
	if got := ask(""); got.StopReason != llm.StopError || len(bodies) != 2 || !strings.Contains(got.ErrorMessage, "must define tools") {
		t.Errorf("refused again: %s, %d requests", got.ErrorMessage, len(bodies))
	}
}

func TestThreads(t *testing.T) {
	model := *testModel
	model.Compat = jsontext.Value(`{"supportsMessageThreads":true}`)
	refuse := ""    // code of the next refusal
	always := false // every request is refused so
	served1 := deltas(1)
	named := 0 // requests that name the feature
	var sent []string
	client := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		r.Body = http.NoBody
		typ, _ := jsonwire.StringValue(jsonwire.Get(jsonwire.Get(b, "thread"), "type"))
		n := 0
		var rd jsonwire.Reader
		rd.Reset(jsonwire.Get(b, "messages"))
		for rd.Array(); rd.More(); n++ {
			rd.Skip()
		}
		sent = append(sent, strings.TrimSpace(fmt.Sprintf("%s %d", typ, n)))
		if strings.Contains(r.Header.Get("Anthropic-Beta"), "message-threads-") {
			named++
		}
		if code := refuse; code != "" {
			if !always {
				refuse = ""
			}
			return (&served{status: 404, body: `{"error":{"type":"x","details":{"error_code":"` + code + `"}}}`}).RoundTrip(r)
		}
		return (&served{body: served1}).RoundTrip(r)
	})
	api := anthropic.New(anthropic.Config{})
	history := []llm.Message{&llm.System{Content: llm.Plain("be brief")}}
	fails := func(text, code string) {
		t.Helper()
		sent, refuse = nil, code
		req := request(client, append(history, llm.UserText(text, 1))...)
		req.SessionID = "s"
		if m := result(t, api, &model, req); m.StopReason != llm.StopError {
			t.Fatal(m.StopReason)
		}
	}
	turn := func(text string, o llm.Options) {
		t.Helper()
		sent = nil
		history = append(history, llm.UserText(text, int64(len(history))))
		req := request(client, history...)
		req.SessionID, req.DisableContinuation, req.CacheRetention = "s", o.DisableContinuation, o.CacheRetention
		m := result(t, api, &model, req)
		if m.StopReason != llm.StopStop {
			t.Fatal(m.ErrorMessage)
		}
		history = append(history, m)
	}
	expect := func(what, want string) {
		t.Helper()
		if got := strings.Join(sent, ", "); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	turn("one", llm.Options{})
	expect("first request", "create 1")
	turn("two", llm.Options{})
	expect("second request", "continue 1")
	long := llm.Options{CacheRetention: "long"}
	turn("three", long)
	expect("another cache marker in the prompt", "create 5")
	turn("four", llm.Options{DisableContinuation: true})
	expect("switched off", "7")
	if named != 4 {
		t.Errorf("%d of 4 requests name the feature", named)
	}
	turn("five", long)
	expect("messages that went past the thread", "continue 3")
	refuse = "thread_not_found"
	turn("six", long)
	expect("forgotten by the server", "continue 1, create 11")
	if d := history[len(history)-1].(*llm.Assistant).Diagnostics; len(d) != 1 || string(d[0].Details) != `{"reason":"thread_not_found"}` {
		t.Errorf("diagnostics %v", d)
	}
	history[1] = llm.UserText("edited", 1)
	turn("seven", llm.Options{})
	expect("edited history", "create 13")
	history[0] = &llm.System{Content: llm.Plain("be long")}
	turn("eight", llm.Options{})
	expect("another prompt", "create 15")
	refuse = "thread_unsupported_request"
	turn("nine", llm.Options{})
	expect("refused for good", "continue 1, 17")
	turn("ten", llm.Options{})
	expect("afterwards", "19")
	api.EndSession("s")
	turn("eleven", llm.Options{})
	expect("after the session", "create 21")
	fails("twelve", "something_else")
	expect("a failure", "continue 1")
	turn("thirteen", llm.Options{})
	expect("an answer is continued once", "create 23")
	always = true
	fails("refused with and without", "thread_unsupported_request")
	expect("a refusal that is not about the thread", "continue 1, 25")
	always, refuse = false, ""
	turn("again", llm.Options{})
	expect("afterwards", "create 25")
	served1 = strings.Replace(served1, testModel.ID, "another", 1)
	turn("fourteen", llm.Options{})
	expect("the same model", "continue 1")
	turn("fifteen", llm.Options{})
	expect("behind the answer of another model", "create 29")
}

func TestRealServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.Header.Get("X-Case") {
		case "slow":
			<-r.Context().Done()
		case "silent":
			io.WriteString(w, opening)
			http.NewResponseController(w).Flush()
			for r.Context().Err() == nil {
				io.WriteString(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
				http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		case "cut":
			io.WriteString(w, opening)
			panic(http.ErrAbortHandler)
		default:
			io.WriteString(w, deltas(3))
		}
	}))
	client := &http.Client{Transport: &http.Transport{}}
	defer server.Close()
	defer client.CloseIdleConnections()
	api := anthropic.New(anthropic.Config{Client: client})
	model := *testModel
	model.BaseURL = server.URL + "/"
	for _, c := range []struct {
		name   string
		opts   llm.Options
		reason llm.StopReason
		text   string // part of the error
	}{
		{"fine", llm.Options{}, llm.StopStop, ""},
		{"slow", llm.Options{Timeout: 30 * time.Millisecond}, llm.StopError, "timed out"},
		{"silent", llm.Options{IdleTimeout: 50 * time.Millisecond}, llm.StopError, "timed out"},
		{"cut", llm.Options{}, llm.StopError, "connection closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: c.opts}
			req.APIKey, req.Headers = "key", map[string]*string{"X-Case": &c.name}
			m := result(t, api, &model, req)
			if m.StopReason != c.reason || !strings.Contains(strings.ToLower(m.ErrorMessage), c.text) {
				t.Errorf("got %s, %q", m.StopReason, m.ErrorMessage)
			}
			if m.DurationMs == nil {
				t.Error("no duration")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: llm.Options{APIKey: "key", Headers: map[string]*string{"X-Case": new("slow")}}}
	stream, err := api.Stream(ctx, &model, req)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if m := stream.Result(); m.StopReason != llm.StopAborted || m.ErrorMessage != "Request was aborted" {
		t.Errorf("got %s, %q", m.StopReason, m.ErrorMessage)
	}
}

// Without an effort a model that chooses its budget itself is told none.
func TestEffortOfTheService(t *testing.T) {
	model := *testModel
	model.Reasoning, model.Compat = true, jsontext.Value(`{"forceAdaptiveThinking":true}`)
	for effort, want := range map[string]string{"": "", "low": `{"effort":"low"}`} {
		var body []byte
		client := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			body, _ = io.ReadAll(r.Body)
			return (&served{body: deltas(1)}).RoundTrip(r)
		})
		own := anthropic.Options{ThinkingEnabled: new(true), Effort: effort}
		anthropic.New(anthropic.Config{}).StreamWith(t.Context(), &model, request(client, llm.UserText("go", 1)), own).Result()
		if got := string(jsonwire.Get(body, "output_config")); got != want || !strings.Contains(string(jsonwire.Get(body, "thinking")), "adaptive") {
			t.Errorf("effort %q: %s", effort, body)
		}
	}
}
