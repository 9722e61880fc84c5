package completions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// delta is a chunk with one choice.
func delta(d string) string {
	return `{"id":"c-1","model":"m-1","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"c-1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// answer reads the answer that a response body makes for m.
func answer(t testing.TB, m *llm.Model, req *llm.Request, body string) ([]string, *llm.Assistant) {
	t.Helper()
	if req.APIKey == "" {
		req.APIKey = "k"
	}
	api := New(Config{Client: wiretest.Answers(strings.NewReader(body)), Getenv: wiretest.NoEnv})
	s, err := api.Stream(context.Background(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	return read(s)
}

func hello() *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText("When?", 1)}}
}

func TestErrorsInStreams(t *testing.T) {
	for name, c := range map[string]struct{ chunk, want string }{
		"message":         {`{"error":{"message":"gone"}}`, "gone"},
		"raw":             {`{"error":{"message":"gone","metadata":{"raw":"upstream {\"a\":1}"}}}`, "gone\nupstream {\"a\":1}"},
		"raw contained":   {`{"error":{"message":"gone: down","metadata":{"raw":"down"}}}`, "gone: down"},
		"raw object":      {`{"error":{"message":"gone","metadata":{"raw":{"b": 2}}}}`, "gone\n{\"b\":2}"},
		"string":          {`{"error":"gone"}`, `"gone"`},
		"without message": {`{"error":{ "code": 7 }}`, `{"code":7}`},
		"beside a choice": {`{"error":{"message":"late"},"choices":[{"delta":{"content":"x"}}]}`, "late"},
		"malformed":       {`{"choices":[`, "the stream holds a chunk that cannot be read: invalid JSON at byte 12: unexpected end"},
	} {
		lines, m := answer(t, testModel(), hello(), sse(delta(`{"content":"x"}`), c.chunk, finish("stop"), "[DONE]"))
		if got := strings.Join(lines, "|"); got != "start|0 text_start|0 text_delta x|error error" {
			t.Errorf("%s: events %s", name, got)
		}
		if m.ErrorMessage != c.want || llm.TextOf(m.Content, "") != "x" {
			t.Errorf("%s: got %q, want %q", name, m.ErrorMessage, c.want)
		}
	}
	// What only looks like an error member.
	for _, chunk := range []string{`{"error":null}`, `{"error":""}`, `{"error":false}`, `"text"`, `[1]`, `7`, `{}`} {
		if _, m := answer(t, testModel(), hello(), sse(chunk, delta(`{"content":"x"}`), finish("stop"))); m.StopReason != llm.StopStop {
			t.Errorf("%s: %q", chunk, m.ErrorMessage)
		}
	}
}

func TestStatusErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"m","metadata":{"raw":"{\"x\":1}"}}}`: `502: {"message":"m","metadata":{"raw":"{\"x\":1}"}}` + "\n" + `{"x":1}`,
		`{"error":{"message":"m"}}`:                                `502: {"message":"m"}`,
		`{"error":"plain"}`:                                        `502 "plain"`,
		`bad gateway`:                                              `502 bad gateway`,
		``:                                                         `502 status code (no body)`,
	} {
		if got := statusText(&wire.StatusError{Status: 502, Body: []byte(body)}); got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}`)
	for name, c := range map[string]struct {
		chunks []string
		compat string
		stop   llm.StopReason
		text   string
	}{
		"stop":               {[]string{finish("stop")}, "", llm.StopStop, ""},
		"end":                {[]string{finish("end")}, "", llm.StopStop, ""},
		"length":             {[]string{finish("length")}, "", llm.StopLength, ""},
		"tool_calls":         {[]string{call, finish("tool_calls")}, "", llm.StopToolUse, ""},
		"function_call":      {[]string{call, finish("function_call")}, "", llm.StopToolUse, ""},
		"stop with calls":    {[]string{call, finish("stop")}, "", llm.StopStop, ""},
		"filter":             {[]string{finish("content_filter")}, "", llm.StopError, "Provider finish_reason: content_filter"},
		"last one counts":    {[]string{finish("weird"), finish("stop")}, "", llm.StopStop, ""},
		"none":               {[]string{call}, "", llm.StopError, "Stream ended without finish_reason"},
		"none allowed":       {[]string{delta(`{"content":"x"}`)}, `{"supportsFinishReason":false}`, llm.StopStop, ""},
		"none allowed, call": {[]string{call}, `{"supportsFinishReason":false}`, llm.StopToolUse, ""},
	} {
		m := testModel()
		m.Compat = jsontext.Value(c.compat)
		if _, got := answer(t, m, hello(), sse(c.chunks...)); got.StopReason != c.stop || got.ErrorMessage != c.text {
			t.Errorf("%s: %s %q", name, got.StopReason, got.ErrorMessage)
		}
	}
}

func TestToolEntriesFindTheirCall(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		want    string
	}{
		"by index": {
			[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"index":0,"function":{"arguments":":1}"}}`},
			`a f {"x":1}; b g {}`,
		},
		"by id": {
			[]string{`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"id":"a","function":{"arguments":":1}"}}`},
			`a f {"x":1}; b g {}`,
		},
		"same id under another index is another call": {
			[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}`},
			`a f {}; a g {}`,
		},
		"neither, open call": {
			[]string{`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`, `{"function":{"arguments":""}}`},
			`a f {"x":1}`,
		},
		"neither, complete call": {
			[]string{`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"function":{"arguments":"{\"y\":2}"}}`},
			`a f {};   {"y":2}`,
		},
		"neither, but a name": {
			[]string{`{"function":{"name":"f","arguments":"{"}}`, `{"function":{"name":"g","arguments":"{}"}}`},
			` f error;  g {}`,
		},
		"object instead of text": {
			[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1, 2]}}}`},
			`a f {"x":[1,2]}`,
		},
		"no entry at all": {[]string{`null`, `7`, `"x"`}, ``},
	} {
		var chunks []string
		for _, e := range c.entries {
			chunks = append(chunks, delta(`{"tool_calls":[`+e+`]}`))
		}
		_, m := answer(t, testModel(), hello(), sse(append(chunks, finish("tool_calls"))...))
		var got []string
		for _, call := range m.ToolCalls() {
			args := string(call.Arguments)
			if call.ArgumentsError != "" {
				args = "error"
			}
			got = append(got, call.ID+" "+call.Name+" "+args)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, "; "), c.want)
		}
	}
}

func TestGrammarCalls(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsOpenAIGrammarTools":true}`)
	tool := llm.Tool{
		Name: "sql", Parameters: jsontext.Value(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`),
		ConstrainedSampling: jsontext.Value(`{"type":"grammar","variants":{"openai_regex":"[a-z]+"}}`),
	}
	req := func() *llm.Request { return &llm.Request{Messages: llm.Fold("", []llm.Tool{tool}, hello().Messages)} }
	custom := func(index int, name, input string) string {
		return delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"custom","custom":{"name":%q,"input":%q}}]}`, index, index, name, input))
	}
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"pieces": {
			[]string{custom(0, "sql", ""), custom(0, "", `a"`), custom(0, "", "\n")},
			`0 toolcall_start  [c0 sql {"query":""}]|0 toolcall_delta  [c0 sql {"query":""}]|0 toolcall_delta {"query":"a\" [c0 sql {"query":"a\""}]|` +
				`0 toolcall_delta \n [c0 sql {"query":"a\"\n"}]|0 toolcall_delta "} [c0 sql {"query":"a\"\n"}]|0 toolcall_end  [c0 sql {"query":"a\"\n"}]`,
		},
		"nothing": {
			[]string{custom(0, "sql", "")},
			`0 toolcall_start  [c0 sql {"query":""}]|0 toolcall_delta  [c0 sql {"query":""}]|` +
				`0 toolcall_delta {"query":""} [c0 sql {"query":""}]|0 toolcall_end  [c0 sql {"query":""}]`,
		},
		"unknown tool": {
			[]string{custom(0, "other", "x")},
			`0 toolcall_start  [c0 other {"input":""}]|0 toolcall_delta {"input":"x [c0 other {"input":"x"}]|` +
				`0 toolcall_delta "} [c0 other {"input":"x"}]|0 toolcall_end  [c0 other {"input":"x"}]`,
		},
	} {
		lines, _ := answer(t, m, req(), sse(append(c.chunks, finish("tool_calls"))...))
		if got := strings.Join(lines[1:len(lines)-1], "|"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestAbortClosesBlocks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, sse(delta(`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}`), delta(`{"content":"b"}`)))
	api := New(Config{Client: wiretest.Answers(r), Getenv: wiretest.NoEnv})
	req := hello()
	req.APIKey = "k"
	s, err := api.Stream(ctx, testModel(), req)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	var last llm.Event
	for ev := range s.Events() {
		types = append(types, ev.Type.String())
		if ev.Type == llm.EventTextDelta {
			cancel()
		}
		last = ev
	}
	want := "start thinking_start thinking_delta text_start text_delta thinking_end text_end error"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	thinking := last.Message.Content[0].(*llm.Thinking)
	if last.Message.StopReason != llm.StopAborted || *thinking.Signature != `[{"type":"reasoning.text","text":"a"}]` {
		t.Errorf("message: %s", last.Message.AppendJSON(nil))
	}
}

func TestProviderEventsComeFirst(t *testing.T) {
	req := hello()
	var seen []string
	stop := errors.New("enough")
	req.OnProviderEvent = func(event jsontext.Value, _ *llm.Model) error {
		seen = append(seen, string(event))
		if strings.Contains(string(event), "three") {
			return stop
		}
		return nil
	}
	one, two, three := delta(`{"content":"one"}`), delta(`{"content":"two"}`), delta(`{"content":"three"}`)
	lines, m := answer(t, testModel(), req, sse(one, two, three))
	if strings.Join(seen, "\n") != strings.Join([]string{one, two, three}, "\n") {
		t.Errorf("events: %q", seen)
	}
	if m.ErrorMessage != "enough" || llm.TextOf(m.Content, "") != "onetwo" {
		t.Errorf("%s: %q", lines, m.ErrorMessage)
	}
}

func TestHalfCharactersMeet(t *testing.T) {
	lines, m := answer(t, testModel(), hello(), sse(
		delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude48!"}`), delta(`{"content":"\ud83d"}`), finish("stop")))
	want := "start|0 text_start|0 text_delta 🙈!|0 text_delta \xed\xa0\xbd|0 text_end|done stop"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := llm.TextOf(m.Content, ""); got != "🙈!\xed\xa0\xbd" {
		t.Errorf("text %q", got)
	}
}

// unframed forgets the frame in front of each chunk, so that each is read whole.
type unframed struct{ *exchange }

func (u unframed) Event(a *wire.Answer, name, data []byte) error {
	u.frame = frame{}
	return u.exchange.Event(a, name, data)
}

// open is the stream that a body makes, read with what is remembered of its
// chunks or without.
func open(body []byte, forget bool) *llm.Stream {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsOpenAIGrammarTools":true}`)
	host := wire.Host{Client: wiretest.Answers(bytes.NewReader(body)), Getenv: wiretest.NoEnv}.Default()
	req := hello()
	req.APIKey = "k"
	x := (&API{host: host}).exchange(m, req)
	var ex wire.Exchange = x
	if forget {
		ex = unframed{x}
	}
	return llm.NewStream(wire.NewSource(context.Background(), host, ID, m, &req.Options, ex))
}

func FuzzStream(f *testing.F) {
	for _, d := range deltas() {
		f.Add([]byte(d.Times(3) + sse(finish("stop"), "[DONE]")))
	}
	f.Add([]byte(sse(delta(`{"content":"a"}`), delta(`{"content":"b\u0000"}`), delta(`{"content":"c","reasoning":"d"}`), `{"error":"x"}`)))
	f.Add([]byte(sse(delta(`{"tool_calls":[{"index":0,"id":"a","custom":{"name":"f","input":"x"}}]}`), delta(`{"tool_calls":[{"index":0,"id":"a","custom":{"name":"f","input":"\ud83d"}}]}`))))
	f.Add([]byte(sse(delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"x"}],"reasoning":"y"}`), delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"z"}],"reasoning":""}`))))
	f.Add([]byte(sse(delta(`{"reasoning_content":"x","reasoning":"y"}`), delta(`{"reasoning_content":"","reasoning":"y"}`))))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"\\\"\"}}]}\r\rdata:\n\nevent: x\n\n: c\n\ndata: [DONE"))
	f.Fuzz(func(t *testing.T, body []byte) {
		wiretest.Learned(t, func(forget bool) *llm.Stream { return open(body, forget) })
	})
}
