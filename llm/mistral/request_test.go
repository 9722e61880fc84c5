package mistral

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	keyed    = wiretest.Keyed
	own      = wiretest.Own
	toolCall = wiretest.Call
	result   = wiretest.Result
	text     = wiretest.Text
	sse      = wiretest.SSE
	read     = wiretest.Read
)

// requestOf is the request that start makes.
func requestOf(t testing.TB, start func(*API) *llm.Stream) (got wiretest.Sent) {
	t.Helper()
	client := wiretest.Keep(&got, sse(finish("stop")))
	if m := start(New(Config{Client: client, Getenv: wiretest.NoEnv})).Result(); m.ErrorMessage != "" {
		t.Fatal(m.ErrorMessage)
	}
	return got
}

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

func hello() *llm.Request { return keyed(llm.UserText("When?", 1)) }

func foreign(blocks ...llm.Block) *llm.Assistant {
	return &llm.Assistant{Content: blocks, API: "other", Provider: "p", Model: "x", StopReason: llm.StopToolUse}
}

func TestMessages(t *testing.T) {
	image := &llm.Image{Data: "QQ==", MimeType: "image/png"}
	const img = `{"type":"image_url","image_url":"data:image/png;base64,QQ=="}`
	const call = `"tool_calls":[{"id":"callabc12","type":"function","function":{"name":"look","arguments":"{\"a\":1}"},"index":0}]`
	const result1 = `{"role":"tool","name":"look","content":[`
	const result2 = `],"tool_call_id":"callabc12"}`
	calling := func(m *llm.Model) *llm.Assistant { return own(m, toolCall("callabc12", "look", `{"a":  1}`)) }
	for name, c := range map[string]struct {
		compat   string
		messages func(m *llm.Model) []llm.Message
		want     string
	}{
		"blank parts of an answer vanish": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, text(" \ufeff\u2028"), text("a "), text("b")), own(m, text("\t"), &llm.Thinking{Thinking: " "}), own(m)}
		}, `[{"role":"assistant","prefix":false,"content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}]`},
		"blank parts of a user stay": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{&llm.User{Content: llm.Blocks(text(""), text(" "), image)}, &llm.User{Content: llm.Blocks()}, &llm.User{Content: llm.Plain("")}}
		}, `[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":" "},` + img + `]},{"role":"user","content":""}]`},
		"thinking": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, &llm.Thinking{Thinking: "a\xed\xa0\xbd", Signature: new("s")}, text("t"), &llm.Thinking{Thinking: "[Reasoning redacted]", Redacted: true})}
		}, `[{"role":"assistant","prefix":false,"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"t"}]}]`},
		"results": {``, func(m *llm.Model) []llm.Message {
			failed := result("callabc12", text("\u00a0 no \n"))
			failed.IsError = true
			return []llm.Message{calling(m), failed}
		}, `[{"role":"assistant","prefix":false,` + call + `},` + result1 + `{"type":"text","text":"[tool error] no"}` + result2 + `]`},
		"result of pictures": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{calling(m), result("callabc12", image, text(" "))}
		}, `[{"role":"assistant","prefix":false,` + call + `},` + result1 + `{"type":"text","text":"(see attached image)"},` + img + result2 + `]`},
		"result of nothing": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{calling(m), result("callabc12")}
		}, `[{"role":"assistant","prefix":false,` + call + `},` + result1 + `{"type":"text","text":"(no tool output)"}` + result2 + `]`},
		"arguments that are no JSON": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{own(m, toolCall("callabc12", "look", `{"a"`)), result("callabc12", text("r"))}
		}, `[{"role":"assistant","prefix":false,` + strings.Replace(call, `{\"a\":1}`, `{}`, 1) + `},` + result1 + `{"type":"text","text":"r"}` + result2 + `]`},
		"system in front": {``, func(m *llm.Model) []llm.Message {
			return []llm.Message{&llm.System{Content: llm.Plain("S")}, llm.UserText("u", 1), &llm.System{Content: llm.Plain("T")}}
		}, `[{"role":"system","content":"S\n\nT"},{"role":"user","content":[{"type":"text","text":"u"}]}]`},
		"system in place": {`{"supportsMidConvoSystemMessages":true}`, func(m *llm.Model) []llm.Message {
			return []llm.Message{&llm.System{Content: llm.Plain("S")}, llm.UserText("u", 1), &llm.System{Content: llm.Plain("T")}, &llm.System{}}
		}, `[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"system","content":"T"}]`},
		"nothing": {``, func(m *llm.Model) []llm.Message { return []llm.Message{&llm.System{}} }, `[]`},
	} {
		m := testModel()
		m.Compat = jsontext.Value(c.compat)
		if got := string(jsonwire.Get(bodyOf(t, m, keyed(c.messages(m)...)), "messages")); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestWholeRequest(t *testing.T) {
	m := testModel()
	m.BaseURL = "http://service.test/gw//"
	m.Headers = map[string]string{"X-Model": "m"}
	tools := []llm.Tool{{Name: "look", Description: "d", Parameters: jsontext.Value(`{"type": "object"}`)}}
	req := keyed(llm.Fold("S", tools, []llm.Message{&llm.User{Content: llm.Plain("u")}})...)
	req.Temperature, req.SessionID, req.MaxRetries = new(0.5), strings.Repeat("s", 80), 3
	req.Headers = map[string]*string{"x-model": new("r"), "x-affinity": nil}
	got := requestOf(t, func(a *API) *llm.Stream {
		return a.StreamWith(context.Background(), m, req, Options{
			ToolChoice: jsontext.Value(` "any" `), ReasoningEffort: "high", PromptMode: "reasoning",
		})
	})
	want := `{"model":"m-1","stream":true,"messages":[{"role":"system","content":"S"},{"role":"user","content":"u"}],` +
		`"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"},"strict":false}}],` +
		`"temperature":0.5,"tool_choice":"any","reasoning_effort":"high","prompt_mode":"reasoning","prompt_cache_key":"` + req.SessionID + `"}`
	if string(got.Body) != want {
		t.Errorf("body:\n got %s\nwant %s", got.Body, want)
	}
	if got.URL != "http://service.test/gw/v1/chat/completions" {
		t.Errorf("sent to %s", got.URL)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer k", "Accept": "text/event-stream", "Content-Type": "application/json", "X-Model": "r", "X-Affinity": "",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

func TestToolChoiceNeedsTools(t *testing.T) {
	req := hello()
	req.ToolChoice = "none"
	if got := jsonwire.Get(bodyOf(t, testModel(), req), "tool_choice"); got != nil {
		t.Errorf("sent without tools: %s", got)
	}
}

func TestMissingKey(t *testing.T) {
	req := hello()
	req.APIKey = ""
	_, err := New(Config{}).Stream(context.Background(), testModel(), req)
	var missing *llm.KeyError
	if !errors.As(err, &missing) || missing.Provider != "mistral" {
		t.Errorf("Stream: %v", err)
	}
	m := New(Config{}).StreamWith(context.Background(), testModel(), req, Options{}).Result()
	if m.StopReason != llm.StopError || m.ErrorMessage != "No API key for provider: mistral" {
		t.Errorf("StreamWith: %s %q", m.StopReason, m.ErrorMessage)
	}
}

func TestThinking(t *testing.T) {
	levels := func(pairs ...string) map[llm.ThinkingLevel]*string {
		m := map[llm.ThinkingLevel]*string{}
		for i := 0; i < len(pairs); i += 2 {
			m[llm.ThinkingLevel(pairs[i])] = nil
			if word := pairs[i+1]; word != "" {
				m[llm.ThinkingLevel(pairs[i])] = &word
			}
		}
		return m
	}
	for name, c := range map[string]struct {
		plain        bool
		levels       map[llm.ThinkingLevel]*string
		asked        llm.ThinkingLevel
		effort, mode string
	}{
		"no reasoning model":    {plain: true, levels: levels("high", "high"), asked: llm.LevelHigh},
		"prompt mode":           {asked: llm.LevelMinimal, mode: "reasoning"},
		"prompt mode off":       {},
		"prompt mode, off":      {asked: llm.LevelOff},
		"mapped":                {levels: levels("low", "l"), asked: llm.LevelLow, effort: "l"},
		"not in the map":        {levels: levels("low", "l"), asked: llm.LevelMedium, effort: "high"},
		"empty map":             {levels: levels(), asked: llm.LevelLow, effort: "high"},
		"off mapped":            {levels: levels("off", "none"), effort: "none"},
		"off asked for, mapped": {levels: levels("off", "none"), asked: llm.LevelOff, effort: "none"},
		"off not to be had":     {levels: levels("off", "")},
		"next level":            {levels: levels("minimal", "", "low", "l"), asked: llm.LevelMinimal, effort: "l"},
		"no level at all": {levels: levels("off", "none", "minimal", "", "low", "", "medium", "", "high", "", "xhigh", "", "max", ""),
			asked: llm.LevelHigh, effort: "none"},
	} {
		m := testModel()
		m.Reasoning, m.ThinkingLevelMap = !c.plain, c.levels
		if effort, mode := thinking(m, c.asked); effort != c.effort || mode != c.mode {
			t.Errorf("%s: got %q %q, want %q %q", name, effort, mode, c.effort, c.mode)
		}
	}
}

func TestIDs(t *testing.T) {
	hash := func(s string) string { return transcript.ShortHash(s)[:9] }
	for id, want := range map[string]string{
		"callabc12":    "callabc12",
		"abc-de.fghi":  "abcdefghi",
		"call_1":       hash("call1"),
		"a|b":          hash("ab"),
		"é🙈|-":         hash("é🙈|-"),
		"":             hash(""),
		"tölcall00":    hash("tlcall00"),
		"callabc123":   hash("callabc123"),
		"call_abc_12_": "callabc12",
	} {
		if got := shortID(id, 0); got != want || !legalID(got) {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
	// Hashes are not padded, and none may come out too short.
	for i := range 200_000 {
		if id := shortID(fmt.Sprint("call_", i), i%3); !legalID(id) {
			t.Fatalf("call_%d: %q", i, id)
		}
	}
	for _, id := range []string{"", "callabc1", "callabc123", "call-bc12", "callabcé"} {
		if legalID(id) {
			t.Errorf("%q is taken for legal", id)
		}
	}
}

// Calls whose ids become alike are told apart, and results follow their call.
func TestIDsThatBecomeAlike(t *testing.T) {
	m := testModel()
	body := bodyOf(t, m, keyed(
		foreign(toolCall("abc-defghi", "look", `{}`), toolCall("abcd-efghi", "look", `{}`), toolCall("", "look", `{}`)),
		result("abcd-efghi", text("second")), result("abc-defghi", text("first")), result("", text("third")),
		own(m, toolCall("abcdefghi", "look", `{}`), toolCall("not legal", "look", `{}`)),
		result("abcdefghi", text("fourth")), result("not legal", text("fifth")),
	))
	type entry struct{ id, said string }
	var calls []string
	answered := map[string]string{}
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(body, "messages"))
	for r.Array(); r.More(); {
		msg := r.Raw()
		if id, ok := jsonwire.StringValue(jsonwire.Get(msg, "tool_call_id")); ok {
			var parts jsonwire.Reader
			parts.Reset(jsonwire.Get(msg, "content"))
			for parts.Array(); parts.More(); {
				answered[id], _ = jsonwire.StringValue(jsonwire.Get(parts.Raw(), "text"))
			}
			continue
		}
		var list jsonwire.Reader
		list.Reset(jsonwire.Get(msg, "tool_calls"))
		for list.Array(); list.More(); {
			id, _ := jsonwire.StringValue(jsonwire.Get(list.Raw(), "id"))
			calls = append(calls, id)
		}
	}
	hash := func(s string) string { return transcript.ShortHash(s)[:9] }
	want := []entry{
		{"abcdefghi", "first"}, {hash("abcdefghi:1"), "second"}, {hash(""), "third"},
		{hash("abcdefghi:2"), "fourth"}, {hash("notlegal"), "fifth"},
	}
	if len(calls) != len(want) {
		t.Fatalf("calls %q", calls)
	}
	for i, w := range want {
		if calls[i] != w.id || answered[calls[i]] != w.said {
			t.Errorf("call %d: %q answered %q, want %+v", i, calls[i], answered[calls[i]], w)
		}
	}
}

func TestStrictTools(t *testing.T) {
	tool := llm.Tool{Name: "q", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	const plain = `{"type":"object","properties":{"a":{"type":"string"}}},"strict":false`
	const enforced = `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false},"strict":true`
	for name, c := range map[string]struct {
		supported      bool
		sampling, want string
		failure        string
	}{
		"not asked for":          {true, `false`, plain, ""},
		"preferred":              {true, `{"type":"json_schema","strict":"prefer"}`, enforced, ""},
		"preferred, unsupported": {false, `{"type":"json_schema","strict":"prefer"}`, plain, ""},
		"required, unsupported":  {false, `{"type":"json_schema","strict":"require"}`, "", `Tool "q" requires JSON-schema constrained sampling, but strict tools are unsupported.`},
		"grammar":                {true, `{"type":"grammar","variants":{}}`, plain, ""},
	} {
		tool.ConstrainedSampling = jsontext.Value(c.sampling)
		got, err := appendTools(nil, []llm.Tool{tool}, c.supported)
		switch {
		case c.failure != "":
			if err == nil || err.Error() != c.failure {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case string(got) != `[{"type":"function","function":{"name":"q","description":"","parameters":`+c.want+`}}]`:
			t.Errorf("%s: %s", name, got)
		}
	}
	m := testModel()
	req := keyed(llm.Fold("", []llm.Tool{{Name: "q", ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"require"}`)}}, hello().Messages)...)
	s, err := New(Config{Client: wiretest.Answers()}).Stream(context.Background(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if lines, msg := read(s); len(lines) != 1 || !strings.HasPrefix(msg.ErrorMessage, `Tool "q" requires`) {
		t.Errorf("a tool that cannot be had: %q %q", lines, msg.ErrorMessage)
	}
}

func TestStatusErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":"m"}`: `Mistral API error (503): {"message":"m"}`,
		" gone\n":         `Mistral API error (503): gone`,
		"":                `Mistral API error (503): Service Unavailable`,
		"\xff":            "Mistral API error (503): \ufffd",
	} {
		if got := statusText(&wire.StatusError{Status: 503, Reason: "Service Unavailable", Body: []byte(body)}); got != want {
			t.Errorf("%q:\n got %s\nwant %s", body, got, want)
		}
	}
	if got := statusText(&wire.StatusError{Status: 500, Body: bytes.Repeat([]byte("a"), 5000)}); !strings.HasSuffix(got, "... [truncated 1000 chars]") {
		t.Errorf("long: %s", got[4000:])
	}
	for status, c := range map[int]struct{ retryable, overflow bool }{429: {retryable: true}, 503: {retryable: true}, 413: {overflow: true}, 401: {}} {
		client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
		})
		seen := 0
		req := hello()
		req.MaxRetries = 2
		req.OnResponse = func(got int, _ http.Header, _ *llm.Model) error {
			seen += got
			return nil
		}
		s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel(), req)
		if err != nil {
			t.Fatal(err)
		}
		m := s.Result()
		if seen != status {
			t.Errorf("%d: the caller saw %d", status, seen)
		}
		if llm.IsRetryable(m) != c.retryable || llm.IsContextOverflow(m, 0) != c.overflow {
			t.Errorf("%q: retryable %v, overflow %v", m.ErrorMessage, llm.IsRetryable(m), llm.IsContextOverflow(m, 0))
		}
	}
}

// conversation is a history with n turns of two tool calls each.
func conversation(m *llm.Model, n int) []llm.Message {
	tools := []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
	messages := []llm.Message{&llm.System{Content: llm.Plain("Be brief."), ToolsAdded: tools}}
	for i := range n {
		a, b := fmt.Sprintf("a%08d", i), fmt.Sprintf("b%08d", i)
		messages = append(messages,
			llm.UserText(fmt.Sprint("question ", i), int64(i)),
			own(m, text("I look."), toolCall(a, "look", `{"a":"x"}`), toolCall(b, "look", `{"a":"y"}`)),
			result(a, text("found")), result(b, text("nothing")),
			own(m, text("It is so.")))
	}
	return messages
}

func TestMemoryChangesNothing(t *testing.T) {
	for _, compat := range []string{``, `{"supportsMidConvoSystemMessages":true}`} {
		m := testModel()
		m.Compat = jsontext.Value(compat)
		all := conversation(m, 10)
		all = append(all, &llm.System{Content: llm.Plain("Be long."), ToolsRemoved: []string{"look"}}, llm.UserText("u", 99))
		memo := &llm.Memo{}
		for n := 1; n <= len(all); n++ {
			req := keyed(all[:n]...)
			fresh := bodyOf(t, m, req)
			req.Memo = memo
			if kept := bodyOf(t, m, req); !bytes.Equal(kept, fresh) {
				t.Fatalf("%s: with memory after %d messages:\n got %s\nwant %s", compat, n, kept, fresh)
			}
		}
	}
}

// A turn of a long conversation allocates as often as one of a short.
func TestTurnAllocatesByWhatIsNew(t *testing.T) {
	allocs := func(turns int) float64 {
		build := turn(t, turns)
		build()
		return testing.AllocsPerRun(20, build)
	}
	if short, long := allocs(5), allocs(500); long > short+5 {
		t.Errorf("%v allocations for 5 turns, %v for 500", short, long)
	}
}
