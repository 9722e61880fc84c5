package bedrock

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers gives each request the next answer, without a network.
type answers struct {
	list []answer
	seen []*http.Request
	sent []string // bodies
}

type answer struct {
	status int // 200 when 0
	header map[string]string
	body   []byte
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n := len(a.seen)
	a.seen, a.sent = append(a.seen, r), append(a.sent, string(body))
	if n >= len(a.list) {
		return nil, errors.New("no answer is left")
	}
	got := a.list[n]
	header := http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}, "X-Amzn-Requestid": {"req-1"}}
	for name, v := range got.header {
		header.Set(name, v)
	}
	if got.status == 0 {
		got.status = http.StatusOK
	}
	return &http.Response{StatusCode: got.status, Header: header, Body: io.NopCloser(strings.NewReader(string(got.body))), Request: r}, nil
}

// says are answers of the given bodies.
func says(bodies ...[]byte) *answers {
	a := &answers{}
	for _, b := range bodies {
		a.list = append(a.list, answer{body: b})
	}
	return a
}

var testModel = &llm.Model{
	ID: "anthropic.claude-sonnet-4-test", Name: "Test", API: ID, Provider: "amazon-bedrock", BaseURL: "https://bedrock.test", Input: []string{"text", "image"},
	Cost: llm.Rates{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}, ContextWindow: 200_000, MaxTokens: 8000,
}

func request(client http.RoundTripper, messages ...llm.Message) *llm.Request {
	if messages == nil {
		messages = []llm.Message{llm.UserText("hello", 1)}
	}
	return &llm.Request{Messages: messages, Options: llm.Options{APIKey: "key-of-the-test", Client: &http.Client{Transport: client}}}
}

// quick is an API that does not wait.
func quick() *API {
	return New(Config{Getenv: wiretest.NoEnv, Wait: func(context.Context, time.Duration) error { return nil }})
}

func result(t testing.TB, api *API, m *llm.Model, req *llm.Request) *llm.Assistant {
	t.Helper()
	stream, err := api.Stream(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream.Result()
}

func join(frames ...[]byte) []byte { return slices.Concat(frames...) }

func exception(typ, payload string) []byte {
	return frame(payload, ":exception-type", typ, ":content-type", "application/json", ":message-type", "exception")
}

var (
	start = event("messageStart", `{"role":"assistant","p":"abc"}`)
	stop0 = event("contentBlockStop", `{"contentBlockIndex":0}`)
	ended = event("messageStop", `{"stopReason":"end_turn"}`)
	meta  = event("metadata", `{"usage":{"inputTokens":20,"outputTokens":8},"metrics":{"latencyMs":5}}`)
)

func text(index int, s string) []byte {
	return event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"text":%q},"p":"abcdefgh"}`, index, s))
}

func reasoning(index int, member, value string) []byte {
	return event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"reasoningContent":{%q:%q}}}`, index, member, value))
}

// told is what a stream says, one word an event.
func told(t *testing.T, client http.RoundTripper) (string, *llm.Assistant) {
	t.Helper()
	stream, err := quick().Stream(t.Context(), testModel, request(client))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	var m *llm.Assistant
	for ev := range stream.Events() {
		word := ev.Type.String()
		if ev.Delta != "" {
			word += ":" + ev.Delta
		}
		list = append(list, word)
		if ev.Message != nil {
			m = ev.Message
		}
	}
	return strings.Join(list, " "), m
}

func TestStream(t *testing.T) {
	half := event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"a\ud83d"}}`)
	other := event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"\ude48b"}}`)
	tool := event("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"look"}}}`)
	input := event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}`)
	for _, c := range []struct {
		name   string
		frames []byte
		want   string
		err    string
		detail string // of the diagnostic
	}{
		{"text", join(start, text(0, "a"), text(0, "b"), stop0, ended, meta), "start text_start text_delta:a text_delta:b text_end done", "", ""},
		{"nothing said", join(start, ended, meta), "start done", "", ""},
		{"no usage", join(start, text(0, "a"), stop0, ended), "start text_start text_delta:a text_end done", "", ""},
		{"usage before the stop", join(start, text(0, "a"), stop0, meta, ended), "start text_start text_delta:a text_end done", "", ""},
		{"no start", join(text(0, "a"), stop0, ended, meta), "start text_start text_delta:a text_end done", "", ""},
		{"two starts", join(start, start, ended, meta), "start done", "", ""},
		{"a half of a pair", join(start, half, other, stop0, ended, meta), "start text_start text_delta:a text_delta:🙈b text_end done", "", ""},
		{"a half alone", join(start, half, stop0, ended, meta), "start text_start text_delta:a text_delta:\xed\xa0\xbd text_end done", "", ""},
		{"interleaved", join(start, text(0, "a"), text(1, "b"), text(0, "c"), stop0, event("contentBlockStop", `{"contentBlockIndex":1}`), ended, meta),
			"start text_start text_delta:a text_start text_delta:b text_delta:c text_end text_end done", "", ""},
		{"reasoning", join(start, reasoning(0, "text", "hm"), reasoning(0, "signature", "c2ln"), stop0, text(1, "a"), ended, meta),
			"start thinking_start thinking_delta:hm thinking_end text_start text_delta:a done", "", ""},
		{"reasoning that is empty", join(start, reasoning(0, "text", ""), reasoning(0, "signature", ""), stop0, ended, meta), "start thinking_start thinking_end done", "", ""},
		{"unknown events", join(start, event("later", `[1]`), event("contentBlockStart", `{"contentBlockIndex":0,"start":{"image":{}}}`),
			event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{}}}`), stop0, text(1, "a"), ended, meta), "start text_start text_delta:a done", "", ""},
		{"a tool", join(start, tool, input, stop0, event("messageStop", `{"stopReason":"tool_use"}`), meta),
			"start toolcall_start toolcall_delta:{} toolcall_end done", "", ""},
		{"input of no tool", join(start, input, text(1, "a"), ended, meta), "start text_start text_delta:a done", "", ""},
		{"text into a tool", join(start, tool, text(0, "a"), stop0, ended, meta), "start toolcall_start toolcall_end done", "", ""},
		{"behind the last event", join(start, ended, meta, text(0, "late")), "start done", "", ""},
		{"no stop reason", join(start, text(0, "a")), "start text_start text_delta:a error", "Bedrock stream ended without a stop reason", `{"requestId":"req-1"}`},
		{"nothing", nil, "error", "Bedrock stream ended without a stop reason", `{"requestId":"req-1"}`},
		{"stopped", join(start, event("messageStop", `{"stopReason":"content_filtered"}`), meta), "start error", "Provider stopped with: content_filtered", `{"requestId":"req-1"}`},
		{"cut", join(start, text(0, "a"), text(0, "b")[:50]), "start text_start text_delta:a error", "in the middle of an event", `{"requestId":"req-1"}`},
		{"bad checksum", join(start, text(0, "a"), flipped(text(0, "b"), 60)), "start text_start text_delta:a error", "the event stream is damaged: the checksum of a frame is wrong", `{"requestId":"req-1"}`},
		{"too long", join(start, lengths(0xFFFFFFFF, 0, nil)), "start error", "longer than", `{"requestId":"req-1"}`},
		{"no JSON", join(start, event("contentBlockDelta", `{"contentBlockIndex":`)), "start error", "contentBlockDelta is no JSON", `{"requestId":"req-1"}`},
		{"redacted no base64", join(start, reasoning(0, "redactedContent", "?")), "start thinking_start error", "no base64", `{"requestId":"req-1"}`},
		{"exception before the start", exception("throttlingException", `{"message":"slow"}`), "error", "Throttling error: slow", `{"errorCode":"ThrottlingException","requestId":"req-1"}`},
		{"unmodelled error", join(start, frame("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "oops")), "start error",
			"InternalError: oops", `{"requestId":"req-1"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, m := told(t, says(c.frames))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !strings.Contains(m.ErrorMessage, c.err) || c.err == "" && m.ErrorMessage != "" {
				t.Errorf("error %q, want %q", m.ErrorMessage, c.err)
			}
			if got := details(m); got != c.detail {
				t.Errorf("diagnostic %s, want %s", got, c.detail)
			}
		})
	}
}

func details(m *llm.Assistant) string {
	var list []string
	for _, d := range m.Diagnostics {
		list = append(list, string(d.Details))
	}
	return strings.Join(list, " ")
}

func TestExceptions(t *testing.T) {
	for typ, want := range map[string]string{
		"internalServerException":     "Internal server error: m",
		"modelStreamErrorException":   "Model stream error: m",
		"validationException":         "Validation error: m",
		"throttlingException":         "Throttling error: m",
		"serviceUnavailableException": "Service unavailable: m",
		"somethingNewException":       "SomethingNewException: m",
	} {
		events, m := told(t, says(join(start, text(0, "a"), exception(typ, `{"message":"m"}`))))
		code := strings.ToUpper(typ[:1]) + typ[1:]
		if events != "start text_start text_delta:a error" || m.ErrorMessage != want || details(m) != `{"errorCode":"`+code+`","requestId":"req-1"}` {
			t.Errorf("%s: %s %q %s", typ, events, m.ErrorMessage, details(m))
		}
		// The same as a response.
		header := map[string]string{"X-Amzn-Errortype": code + ":http://internal.amazon.com/coral/", "Content-Type": "application/json"}
		client := &answers{list: []answer{{400, header, []byte(`{"message":"m"}`)}, {400, header, []byte(`{"message":"m"}`)}, {400, header, []byte(`{"message":"m"}`)}}}
		events, m = told(t, client)
		if events != "error" || m.ErrorMessage != want || details(m) != `{"status":400,"errorCode":"`+code+`","requestId":"req-1"}` {
			t.Errorf("%s: %s %q %s", typ, events, m.ErrorMessage, details(m))
		}
	}
	if _, m := told(t, says(exception("", ""))); m.ErrorMessage != "no reason is given" {
		t.Errorf("got %q", m.ErrorMessage)
	}
	if _, m := told(t, says(exception("x", "plain words"))); m.ErrorMessage != "X: plain words" {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestErrorResponses(t *testing.T) {
	jsonType := map[string]string{"Content-Type": "application/json"}
	for _, c := range []struct {
		name string
		a    answer
		want string
	}{
		{"code in the body", answer{400, jsonType, []byte(`{"__type":"com.amazon.coral#AccessDeniedException","Message":"no"}`)}, "AccessDeniedException: no"},
		{"no code", answer{403, jsonType, []byte(`denied`)}, "403 denied"},
		{"nothing", answer{404, jsonType, nil}, "404 status code (no body)"},
		{"no message", answer{400, map[string]string{"X-Amzn-Errortype": "ValidationException"}, []byte(`{}`)}, "Validation error: status 400"},
		{"retention", answer{403, jsonType, []byte(`{"__type":"ValidationException","message":"Data retention mode 'default' is not available"}`)},
			"Validation error: Data retention mode 'default' is not available See https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html for supported data retention modes."},
		{"an error that says 200", answer{200, jsonType, []byte(`{"__type":"UnknownOperationException","message":"no such thing"}`)}, "UnknownOperationException: no such thing"},
		{"a page that says 200", answer{200, map[string]string{"Content-Type": "text/html"}, []byte("<html>sign in</html>")}, "200 <html>sign in</html>"},
	} {
		if _, m := told(t, &answers{list: []answer{c.a}}); m.ErrorMessage != c.want || m.StopReason != llm.StopError || len(m.Diagnostics) != 1 {
			t.Errorf("%s: %q, %s", c.name, m.ErrorMessage, details(m))
		}
	}
}

// What is too long to be a request's number is left out of what a session keeps.
func TestRequestNumber(t *testing.T) {
	for id, want := range map[string]string{
		" r-1 ":                  `{"status":400,"errorCode":"ValidationException","requestId":"r-1"}`,
		strings.Repeat("r", 201): `{"status":400,"errorCode":"ValidationException"}`,
	} {
		header := map[string]string{"X-Amzn-Errortype": "ValidationException", "X-Amzn-Requestid": id}
		if _, m := told(t, &answers{list: []answer{{400, header, []byte(`{"message":"m"}`)}}}); details(m) != want {
			t.Errorf("%.10q: %s", id, details(m))
		}
	}
}

func TestRedactedReasoning(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	events, m := told(t, says(join(start,
		reasoning(0, "redactedContent", b64([]byte("opaque-"))), reasoning(0, "redactedContent", b64([]byte("a"))), stop0,
		reasoning(1, "redactedContent", b64([]byte("open"))), ended, meta)))
	if events != "start thinking_start thinking_delta:[Reasoning redacted] thinking_end thinking_start thinking_delta:[Reasoning redacted] done" {
		t.Error(events)
	}
	for i, want := range []string{"opaque-a", "open"} {
		th := m.Content[i].(*llm.Thinking)
		if !th.Redacted || th.Thinking != "[Reasoning redacted]" || *th.Signature != b64([]byte(want)) {
			t.Errorf("block %d: %s", i, th.AppendJSON(nil))
		}
	}
	// What came is sent back as it came.
	client := says(join(start, ended, meta))
	m.Timestamp = 2
	result(t, quick(), testModel, request(client, llm.UserText("a", 1), m, llm.UserText("b", 3)))
	for _, want := range []string{"opaque-a", "open"} {
		if !strings.Contains(client.sent[0], `{"reasoningContent":{"redactedContent":"`+b64([]byte(want))+`"}}`) {
			t.Errorf("sent %s", client.sent[0])
		}
	}
}

func TestUsage(t *testing.T) {
	usage := func(s string) llm.Usage {
		_, m := told(t, says(join(start, ended, event("metadata", `{"usage":`+s+`}`))))
		return m.Usage
	}
	u := usage(`{"inputTokens":20,"outputTokens":8,"cacheReadInputTokens":7,"cacheWriteInputTokens":5,"cacheDetails":[{"ttl":"1h","inputTokens":2},{"ttl":"5m","inputTokens":2},{"ttl":"1h","inputTokens":1}]}`)
	if u.Input != 20 || u.Output != 8 || u.CacheRead != 7 || u.CacheWrite != 5 || *u.CacheWrite1h != 3 || u.TotalTokens != 28 || u.Cost.Total <= 0 {
		t.Errorf("%+v", u)
	}
	if u := usage(`{"inputTokens":1,"outputTokens":2,"totalTokens":9,"cacheDetails":[{"ttl":"5m","inputTokens":2}]}`); u.TotalTokens != 9 || u.CacheWrite1h != nil {
		t.Errorf("%+v", u)
	}
	if u := usage(`null`); u.TotalTokens != 0 || u.Cost.TotalFromProvider != nil {
		t.Errorf("%+v", u)
	}
}

func TestCallbacks(t *testing.T) {
	throttled := answer{429, map[string]string{"X-Amzn-Errortype": "ThrottlingException"}, []byte(`{}`)}
	client := &answers{list: []answer{throttled, {body: join(start, text(0, "a"), ended, meta)}}}
	req := request(client)
	var order []string
	req.OnPayload = func(p jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		order = append(order, "payload")
		return jsontext.Value(`{"replaced":true}`), nil
	}
	req.OnResponse = func(status int, _ http.Header, m *llm.Model) error {
		order = append(order, fmt.Sprint("response ", status))
		return nil
	}
	req.OnProviderEvent = func(ev jsontext.Value, m *llm.Model) error {
		order = append(order, string(ev[:min(len(ev), 18)]))
		return nil
	}
	stream, err := quick().Stream(t.Context(), testModel, req)
	if err != nil {
		t.Fatal(err)
	}
	for ev := range stream.Events() {
		order = append(order, ev.Type.String())
	}
	want := `payload, response 429, response 200, {"messageStart":{", start, {"contentBlockDelt, text_start, text_delta, {"messageStop":{"s, {"metadata":{"usag, done`
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if client.sent[1] != `{"replaced":true}` {
		t.Errorf("sent %s", client.sent[1])
	}
	req = request(says(join(start, ended, meta)))
	req.OnProviderEvent = func(jsontext.Value, *llm.Model) error { return errors.New("enough") }
	if m := result(t, quick(), testModel, req); m.ErrorMessage != "enough" {
		t.Errorf("got %q", m.ErrorMessage)
	}
	req.OnPayload = func(jsontext.Value, *llm.Model) (jsontext.Value, error) { return nil, errors.New("not this") }
	if m := result(t, quick(), testModel, req); m.ErrorMessage != "not this" {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestRetries(t *testing.T) {
	fail := func(status int, code string) answer {
		return answer{status, map[string]string{"X-Amzn-Errortype": code}, []byte(`{"message":"m"}`)}
	}
	good := answer{body: join(start, ended, meta)}
	for _, c := range []struct {
		name   string
		list   []answer
		sent   int
		reason llm.StopReason
	}{
		{"throttled once", []answer{fail(429, "ThrottlingException"), good}, 2, llm.StopStop},
		{"unavailable twice", []answer{fail(503, "ServiceUnavailableException"), fail(500, ""), good}, 3, llm.StopStop},
		{"three times", []answer{fail(429, ""), fail(429, ""), fail(429, ""), good}, 3, llm.StopError},
		{"not ready", []answer{fail(400, "ModelNotReadyException"), good}, 2, llm.StopStop},
		{"refused", []answer{fail(400, "ValidationException"), good}, 1, llm.StopError},
		{"denied", []answer{fail(403, "AccessDeniedException"), good}, 1, llm.StopError},
		{"asked for a long wait", []answer{{429, map[string]string{"Retry-After": "3600"}, nil}, good}, 1, llm.StopError},
	} {
		client := &answers{list: c.list}
		req := request(client)
		req.MaxRetries = 9 // has no say
		if m := result(t, quick(), testModel, req); m.StopReason != c.reason || len(client.seen) != c.sent {
			t.Errorf("%s: %s after %d requests", c.name, m.StopReason, len(client.seen))
		}
	}
	// A connection that breaks is tried again too.
	client := &answers{}
	if m := result(t, quick(), testModel, request(client)); m.StopReason != llm.StopError || len(client.seen) != 3 {
		t.Errorf("%s after %d requests", m.StopReason, len(client.seen))
	}
	var waits []time.Duration
	api := New(Config{Getenv: wiretest.NoEnv, Random: func() float64 { return 0.5 }, Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	result(t, api, testModel, request(&answers{list: []answer{fail(500, ""), fail(429, ""), good}}))
	if fmt.Sprint(waits) != "[50ms 500ms]" {
		t.Errorf("waits of %v", waits)
	}
}

func TestRealServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		flush := http.NewResponseController(w).Flush
		switch r.Header.Get("X-Case") {
		case "slow":
			<-r.Context().Done()
		case "silent":
			w.Write(join(start, text(0, "a")))
			flush()
			<-r.Context().Done()
		case "cut":
			w.Write(join(start, text(0, "a")[:40]))
			flush()
			panic(http.ErrAbortHandler)
		case "stays open":
			w.Write(join(start, text(0, "a"), ended, meta))
			flush()
			<-r.Context().Done()
		default:
			w.Write(join(start, text(0, "a"), ended, meta))
		}
	}))
	client := &http.Client{Transport: &http.Transport{}}
	defer server.Close()
	defer client.CloseIdleConnections()
	api := New(Config{Client: client, Getenv: wiretest.NoEnv, Wait: func(context.Context, time.Duration) error { return nil }})
	model := *testModel
	model.BaseURL = server.URL + "/"
	for _, c := range []struct {
		name   string
		opts   llm.Options
		reason llm.StopReason
		text   string // part of the error
	}{
		{"fine", llm.Options{}, llm.StopStop, ""},
		{"stays open", llm.Options{}, llm.StopStop, ""},
		{"slow", llm.Options{Timeout: 20 * time.Millisecond}, llm.StopError, "timed out"},
		{"silent", llm.Options{IdleTimeout: 50 * time.Millisecond}, llm.StopError, "timed out"},
		{"cut", llm.Options{}, llm.StopError, "connection closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: c.opts}
			req.APIKey, req.Headers = "key-of-the-test", map[string]*string{"X-Case": &c.name}
			m := result(t, api, &model, req)
			if m.StopReason != c.reason || !strings.Contains(strings.ToLower(m.ErrorMessage), c.text) {
				t.Errorf("got %s, %q", m.StopReason, m.ErrorMessage)
			}
		})
	}
	for _, where := range []string{"slow", "silent"} {
		ctx, cancel := context.WithCancel(t.Context())
		req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: llm.Options{APIKey: "k", Headers: map[string]*string{"X-Case": &where}}}
		stream, err := api.Stream(ctx, &model, req)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Millisecond, cancel)
		if m := stream.Result(); m.StopReason != llm.StopAborted || m.ErrorMessage != "Request was aborted" || m.Diagnostics != nil {
			t.Errorf("%s: got %s, %q, %s", where, m.StopReason, m.ErrorMessage, details(m))
		}
	}
}

func TestHTTP1(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(join(start, text(0, r.Proto), ended, meta))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	model := *testModel
	model.BaseURL = server.URL
	api := New(Config{Client: client, Getenv: wiretest.NoEnv})
	defer func() { client.CloseIdleConnections(); api.http1().CloseIdleConnections() }()
	for range 2 {
		for force, want := range map[string]string{"": "HTTP/2.0", "1": "HTTP/1.1"} {
			req := &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: llm.Options{APIKey: "k", Env: map[string]string{"AWS_BEDROCK_FORCE_HTTP1": force}}}
			if got := llm.TextOf(result(t, api, &model, req).Content, ""); got != want {
				t.Errorf("AWS_BEDROCK_FORCE_HTTP1=%s: %q", force, got)
			}
		}
	}
}

// FuzzStream feeds arbitrary bytes as an answer, and as the payload of events.
func FuzzStream(f *testing.F) {
	f.Add(join(start, text(0, "a"), stop0, ended, meta), "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"\ud83d"}}`)
	f.Add([]byte(nil), "contentBlockStart", `{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"x","name":"y"}}}`)
	f.Add(event("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{}}}`), "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":\"\\ud83d"}}}`)
	f.Add(reasoning(0, "redactedContent", "YQ=="), "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"YQ==","text":"b","signature":"c"}}}`)
	f.Add(reasoning(0, "text", "a"), "metadata", `{"usage":{"inputTokens":1e99,"cacheDetails":[{"ttl":"1h"},7]}}`)
	f.Add(start, "messageStop", `{"stopReason":"x"}`)
	f.Add(start[:20], "contentBlockStop", `{"contentBlockIndex":-1}`)
	f.Add([]byte(`{"message":"no"}`), "", "")
	api := quick()
	f.Fuzz(func(t *testing.T, stream []byte, name, payload string) {
		if len(name) > 1000 {
			return
		}
		body := join(stream, event(name, payload), event(name, payload), stop0, ended)
		s, err := api.Stream(context.Background(), testModel, request(says(body)))
		if err != nil {
			t.Fatal(err)
		}
		lines, m := wiretest.Read(s)
		wiretest.Whole(t, lines, m)
	})
}
