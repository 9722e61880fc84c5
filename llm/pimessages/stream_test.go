package pimessages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// start is the start event of a block.
func start(kind string, index int) string {
	more := ""
	if kind == "toolcall" {
		more = `,"id":"c","toolName":"f"`
	}
	return fmt.Sprintf(`{"type":"%s_start","contentIndex":%d%s}`, kind, index, more)
}

func delta(kind string, index int, text string) string {
	return fmt.Sprintf(`{"type":"%s_delta","contentIndex":%d,"delta":"%s"}`, kind, index, text)
}

const usage = `{"input":5,"output":6,"cacheRead":1,"cacheWrite":2,"totalTokens":14,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"total":3}}`

func done(reason string) string {
	return `{"type":"done","reason":"` + reason + `","usage":` + usage + `}`
}

// answer reads the answer that a response body makes.
func answer(t testing.TB, req *llm.Request, body io.Reader) ([]string, *llm.Assistant) {
	t.Helper()
	s, err := New(Config{Client: wiretest.Answers(body), Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel(), req)
	if err != nil {
		t.Fatal(err)
	}
	return read(s)
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		events         []string
		lines, content string
	}{
		"nothing": {nil, ``, `[]`},
		"text": {[]string{`{"type":"start"}`, start("text", 0), delta("text", 0, "a"), delta("text", 0, ""), `{"type":"text_end","contentIndex":0,"content":"a","contentSignature":"s"}`},
			`0 text_start|0 text_delta a|0 text_delta|0 text_end|`, `[{"type":"text","text":"a","textSignature":"s"}]`},
		"members in another order": {[]string{`{"contentIndex":0,"type":"text_start","new":[1]}`, `{"delta":"a","contentIndex":0.0,"type":"text_delta"}`},
			`0 text_start|0 text_delta a|0 text_end|`, `[{"type":"text","text":"a"}]`},
		"the end's word is the last": {[]string{start("text", 0), delta("text", 0, "a"), `{"type":"text_end","contentIndex":0,"content":"other"}`},
			`0 text_start|0 text_delta a|0 text_end =other|`, `[{"type":"text","text":"other"}]`},
		"an end without content": {[]string{start("text", 0), delta("text", 0, "a"), `{"type":"text_end","contentIndex":0,"content":null,"contentSignature":null}`},
			`0 text_start|0 text_delta a|0 text_end|`, `[{"type":"text","text":"a"}]`},
		"redacted thinking": {[]string{start("thinking", 0), `{"type":"thinking_end","contentIndex":0,"content":"[hidden]","contentSignature":"s","redacted":true}`},
			`0 thinking_start|0 thinking_end =[hidden]|`, `[{"type":"thinking","thinking":"[hidden]","thinkingSignature":"s","redacted":true}]`},
		"blocks that interleave": {[]string{start("thinking", 0), start("text", 1), delta("thinking", 0, "t"), delta("text", 1, "u"), `{"type":"text_end","contentIndex":1}`, delta("thinking", 0, "v")},
			`0 thinking_start|1 text_start|0 thinking_delta t|1 text_delta u|1 text_end|0 thinking_delta v|0 thinking_end|`, `[{"type":"thinking","thinking":"tv"},{"type":"text","text":"u"}]`},
		"call": {[]string{start("toolcall", 0), delta("toolcall", 0, `{\"a\": `), delta("toolcall", 0, `1}`),
			`{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"d","name":"g","arguments":{ "a":1 },"thoughtSignature":"s","namespace":"n","new":2}}`},
			`0 toolcall_start  [c f {}]|0 toolcall_delta {"a":  [c f {}]|0 toolcall_delta 1} [c f {"a":1}]|0 toolcall_end  [d g {"a":1}]|`,
			`[{"type":"toolCall","id":"d","name":"g","arguments":{"a":1},"thoughtSignature":"s","namespace":"n","new":2}]`},
		"call in one": {[]string{start("toolcall", 0), `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"c","name":"f","arguments":{"a":[1, 2]}}}`},
			`0 toolcall_start  [c f {}]|0 toolcall_end  [c f {"a":[1,2]}]|`, `[{"type":"toolCall","id":"c","name":"f","arguments":{"a":[1,2]}}]`},
		"call whose end knows better": {[]string{start("toolcall", 0), delta("toolcall", 0, `{\"a\":1}`), `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"c","name":"f","arguments":{"b":2}}}`},
			`0 toolcall_start  [c f {}]|0 toolcall_delta {"a":1} [c f {"a":1}]|0 toolcall_end  [c f {"b":2}]|`, `[{"type":"toolCall","id":"c","name":"f","arguments":{"b":2}}]`},
		"call without its repetition": {[]string{start("toolcall", 0), delta("toolcall", 0, `{}`), `{"type":"toolcall_end","contentIndex":0}`},
			`0 toolcall_start  [c f {}]|0 toolcall_delta {} [c f {}]|0 toolcall_end  [c f {}]|`, `[{"type":"toolCall","id":"c","name":"f","arguments":{}}]`},
		"call whose arguments are no object": {[]string{start("toolcall", 0), delta("toolcall", 0, `[1]`),
			`{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"c","name":"f","arguments":{},"argumentsError":"e"}}`},
			`0 toolcall_start  [c f {}]|0 toolcall_delta [1] [c f {}]|0 toolcall_end  [c f {}]|`,
			`[{"type":"toolCall","id":"c","name":"f","arguments":{},"argumentsError":"Tool arguments must be a JSON object\n\nReceived arguments:\n[1]"}]`},
		"halves of a character": {[]string{start("text", 0), delta("text", 0, `\ud83d`), delta("text", 0, `\ude48`)},
			`0 text_start|0 text_delta|0 text_delta 🙈|0 text_end|`, `[{"type":"text","text":"🙈"}]`},
		"words of servers in the middle": {[]string{"", "[DONE]", start("text", 0)}, `0 text_start|0 text_end|`, `[{"type":"text","text":""}]`},
	} {
		lines, m := answer(t, hello(), strings.NewReader(sse(append(c.events, done("toolUse"))...)))
		if got, want := strings.Join(lines, "|"), "start|"+c.lines+"done toolUse"; got != want {
			t.Errorf("%s: %q\n got %s\nwant %s", name, m.ErrorMessage, got, want)
		}
		if got := string(llm.AppendBlocks(nil, m.Content)); got != c.content {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.content)
		}
		if got := string(m.Usage.AppendJSON(nil)); got != usage {
			t.Errorf("%s: usage %s", name, got)
		}
	}
}

// Whatever a backend sends that is not of the protocol ends the answer, and
// nothing of it is left.
func TestEventsThatAreNotOfTheProtocol(t *testing.T) {
	index := func(value, typ string) string {
		return "Invalid contentIndex " + value + " in pi-messages " + typ + " event"
	}
	text, call := start("text", 0), start("toolcall", 0)
	for _, c := range []struct {
		events []string
		want   string
	}{
		{[]string{start("text", 1)}, index("1", "text_start")},
		{[]string{text, start("text", 0)}, index("0", "text_start")},
		{[]string{text, start("toolcall", 2)}, index("2", "toolcall_start")},
		{[]string{`{"type":"text_start"}`}, index("undefined", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":null}`}, index("undefined", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":"0"}`}, index(`"0"`, "text_start")},
		{[]string{`{"type":"text_start","contentIndex":-1}`}, index("-1", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":0.5}`}, index("0.5", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":1e400}`}, index("1e400", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":4294967296}`}, index("4294967296", "text_start")},
		{[]string{`{"type":"text_start","contentIndex":[` + strings.Repeat("1,", 200) + `1]}`},
			index("["+strings.Repeat("1,", 49)+"1... [truncated 303 chars]", "text_start")},
		{[]string{delta("text", 0, "a")}, index("0", "text_delta")},
		{[]string{text, delta("text", 1, "a")}, index("1", "text_delta")},
		{[]string{text, delta("thinking", 0, "a")}, index("0", "thinking_delta")},
		{[]string{text, `{"type":"text_end","contentIndex":0}`, delta("text", 0, "a")}, index("0", "text_delta")},
		{[]string{text, `{"type":"text_end","contentIndex":0}`, `{"type":"text_end","contentIndex":0}`}, index("0", "text_end")},
		{[]string{text, `{"type":"thinking_end","contentIndex":0}`}, index("0", "thinking_end")},
		{[]string{text, `{"type":"toolcall_end","contentIndex":0}`}, index("0", "toolcall_end")},
		{[]string{call, `{"type":"text_end","contentIndex":0}`}, index("0", "text_end")},
		{[]string{text, `{"type":"text_delta","contentIndex":0}`}, "Invalid delta undefined in pi-messages text_delta event"},
		{[]string{text, `{"type":"text_delta","contentIndex":0,"delta":{"a":1}}`}, `Invalid delta {"a":1} in pi-messages text_delta event`},
		{[]string{text, `{"type":"text_end","contentIndex":0,"content":5}`}, "Invalid content 5 in pi-messages text_end event"},
		{[]string{text, `{"type":"text_end","contentIndex":0,"contentSignature":5}`}, "Invalid contentSignature 5 in pi-messages text_end event"},
		{[]string{start("thinking", 0), `{"type":"thinking_end","contentIndex":0,"redacted":"yes"}`}, `Invalid redacted "yes" in pi-messages thinking_end event`},
		{[]string{`{"type":"toolcall_start","contentIndex":0,"toolName":"f"}`}, "Invalid id undefined in pi-messages toolcall_start event"},
		{[]string{`{"type":"toolcall_start","contentIndex":0,"id":7,"toolName":"f"}`}, "Invalid id 7 in pi-messages toolcall_start event"},
		{[]string{`{"type":"toolcall_start","contentIndex":0,"id":"c","toolName":""}`}, `Invalid toolName "" in pi-messages toolcall_start event`},
		{[]string{call, `{"type":"toolcall_end","contentIndex":0,"toolCall":7}`}, "Invalid toolCall 7 in pi-messages toolcall_end event"},
		{[]string{call, `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"text","id":"c","name":"f","arguments":{}}}`},
			`Invalid toolCall {"type":"text","id":"c","name":"f","arguments":{}} in pi-messages toolcall_end event`},
		{[]string{call, `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"c","name":"f","arguments":"{}"}}`},
			`Invalid toolCall {"type":"toolCall","id":"c","name":"f","arguments":"{}"} in pi-messages toolcall_end event`},
		{[]string{call, `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"","name":"f","arguments":{}}}`},
			`Invalid toolCall {"type":"toolCall","id":"","name":"f","arguments":{}} in pi-messages toolcall_end event`},
		{[]string{text, `{"type":"start"}`}, `Invalid pi-messages event of type "start"`},
		{[]string{`{"type":"image_start","contentIndex":0}`}, `Invalid pi-messages event of type "image_start"`},
		{[]string{`{"type":7}`}, `Invalid pi-messages event of type "7"`},
		{[]string{`{}`}, `Invalid pi-messages event of type ""`},
		{[]string{`"start"`}, `Invalid pi-messages event of type ""`},
		{[]string{`{"type":"` + strings.Repeat("x", 150) + `"}`}, `Invalid pi-messages event of type "` + strings.Repeat("x", 100) + `... [truncated 50 chars]"`},
		{[]string{text, `{"type":`}, "Invalid pi-messages event: invalid JSON at byte 8: unexpected end"},
		{[]string{text, done("maybe")}, `Invalid reason "maybe" in pi-messages done event`},
		{[]string{text, done("error")}, `Invalid reason "error" in pi-messages done event`},
		{[]string{text, `{"type":"done","usage":` + usage + `}`}, "Invalid reason undefined in pi-messages done event"},
		{[]string{text, `{"type":"error","reason":"stop"}`}, `Invalid reason "stop" in pi-messages error event`},
		{[]string{text, `{"type":"done","reason":"stop"}`}, "Invalid usage undefined in pi-messages done event"},
		{[]string{text, `{"type":"done","reason":"stop","usage":[]}`}, "Invalid usage [] in pi-messages done event"},
		{[]string{text, `{"type":"done","reason":"stop","usage":{"input":-1}}`}, `Invalid usage {"input":-1} in pi-messages done event`},
		{[]string{text, `{"type":"done","reason":"stop","usage":{"output":"6"}}`}, `Invalid usage {"output":"6"} in pi-messages done event`},
		{[]string{text, `{"type":"done","reason":"stop","usage":{"reasoning":-6}}`}, `Invalid usage {"reasoning":-6} in pi-messages done event`},
		{[]string{text, `{"type":"done","reason":"stop","usage":{"cost":5}}`}, `Invalid usage {"cost":5} in pi-messages done event`},
		{[]string{text, `{"type":"error","reason":"error","usage":{"cost":{"total":-5}}}`}, `Invalid usage {"cost":{"total":-5}} in pi-messages error event`},
		{[]string{text, `{"type":"done","reason":"stop","usage":{},"responseId":5}`}, "Invalid responseId 5 in pi-messages done event"},
		{[]string{text, `{"type":"done","reason":"stop","usage":{},"responseModel":[]}`}, "Invalid responseModel [] in pi-messages done event"},
		{[]string{text, `{"type":"done","reason":"stop","usage":{},"providerThinkingLevel":true}`}, "Invalid providerThinkingLevel true in pi-messages done event"},
		{[]string{text, `{"type":"error","reason":"error","errorMessage":{}}`}, "Invalid errorMessage {} in pi-messages error event"},
		{[]string{text, `{"type":"done","reason":"stop","usage":{},"responseId":"r","rewrite":"x"}`}, `Invalid rewrite "x" in pi-messages done event`},
		{[]string{text, delta("text", 0, "a")}, "radius stream ended without a terminal event"},
		{nil, "radius stream ended without a terminal event"},
	} {
		_, m := answer(t, hello(), strings.NewReader(sse(c.events...)))
		if m.StopReason != llm.StopError || m.ErrorMessage != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.events, m.ErrorMessage, c.want)
		}
		if m.Content == nil || len(m.Content) != 0 || m.Usage.Context() != 0 || m.ResponseID != "" || m.Diagnostics != nil {
			t.Errorf("%s: something is left: %s", c.events, m.AppendJSON(nil))
		}
	}
}

func TestEnds(t *testing.T) {
	part := []string{start("text", 0), delta("text", 0, "a")}
	for name, c := range map[string]struct {
		last  string
		lines string
		want  func(*llm.Assistant) bool
	}{
		"stop":   {done("stop"), "0 text_end|done stop", func(m *llm.Assistant) bool { return m.StopReason == llm.StopStop }},
		"length": {done("length"), "0 text_end|done length", func(m *llm.Assistant) bool { return m.StopReason == llm.StopLength }},
		"what the backend did": {
			`{"type":"done","reason":"stop","usage":{"input":1,"cacheWrite1h":2,"reasoning":null},"responseId":"r","responseModel":"real","providerThinkingLevel":"high","rewrite":{"changed":true}}`,
			"0 text_end|done stop", func(m *llm.Assistant) bool {
				return m.ResponseID == "r" && m.ResponseModel == "real" && m.ProviderThinkingLevel == "high" && *m.Usage.CacheWrite1h == 2 &&
					len(m.Diagnostics) == 1 && m.Diagnostics[0].Type == "pi_messages_rewrite" && m.Diagnostics[0].Error == nil &&
					string(m.Diagnostics[0].Details) == `{"changed":true}` && m.Diagnostics[0].Timestamp > 0
			}},
		"the model that was asked for": {`{"type":"done","reason":"stop","usage":{},"responseModel":"m-1"}`, "0 text_end|done stop",
			func(m *llm.Assistant) bool { return m.ResponseModel == "" }},
		"error": {`{"type":"error","reason":"error","errorMessage":"upstream overloaded","usage":` + usage + `,"responseId":"r"}`, "error error",
			func(m *llm.Assistant) bool {
				return m.ErrorMessage == "upstream overloaded" && m.Usage.Input == 5 && m.ResponseID == "r" && llm.IsRetryable(m)
			}},
		"error without a word": {`{"type":"error","reason":"error"}`, "error error",
			func(m *llm.Assistant) bool { return m.ErrorMessage == "radius reported error without saying why" }},
		"aborted there": {`{"type":"error","reason":"aborted","errorMessage":"gave up"}`, "error aborted",
			func(m *llm.Assistant) bool { return m.StopReason == llm.StopAborted && m.ErrorMessage == "gave up" }},
	} {
		lines, m := answer(t, hello(), strings.NewReader(sse(append(part, c.last, "{", start("text", 7))...)))
		if got, want := strings.Join(lines, "|"), "start|0 text_start|0 text_delta a|"+c.lines; got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if !c.want(m) || llm.TextOf(m.Content, "") != "a" {
			t.Errorf("%s: %s", name, m.AppendJSON(nil))
		}
	}
}

func TestAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, sse(start("text", 0), delta("text", 0, "a"), delta("text", 0, "b")))
	s, err := New(Config{Client: wiretest.Answers(r), Getenv: wiretest.NoEnv}).Stream(ctx, testModel(), hello())
	if err != nil {
		t.Fatal(err)
	}
	var kept *llm.Assistant
	var last llm.Event
	for ev := range s.Events() {
		if ev.Type == llm.EventTextDelta && kept == nil {
			kept = ev.Partial.Snapshot()
			cancel()
		}
		last = ev
	}
	if m := last.Message; m.StopReason != llm.StopAborted || len(m.Content) != 0 {
		t.Errorf("message: %s", m.AppendJSON(nil))
	}
	if llm.TextOf(kept.Content, "") != "a" {
		t.Errorf("the snapshot of a consumer: %s", kept.AppendJSON(nil))
	}
}

func TestBrokenConnection(t *testing.T) {
	_, m := answer(t, hello(), io.MultiReader(strings.NewReader(sse(start("text", 0), delta("text", 0, "a"))), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if !llm.IsRetryable(m) || len(m.Content) != 0 {
		t.Errorf("%s", m.AppendJSON(nil))
	}
}

// A backend that only keeps the connection open is given up.
func TestSilence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(start("text", 0), delta("text", 0, "a")))
		for {
			io.WriteString(w, ": ping\n\ndata: \n\n")
			http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}))
	defer server.Close()
	m := testModel()
	m.BaseURL = server.URL
	req := hello()
	req.IdleTimeout = 60 * time.Millisecond
	msg := New(Config{Getenv: wiretest.NoEnv}).StreamWith(context.Background(), m, req, Options{}).Result()
	if !strings.Contains(msg.ErrorMessage, "timed out") || !llm.IsRetryable(msg) || len(msg.Content) != 0 {
		t.Errorf("%s", msg.AppendJSON(nil))
	}
}

func TestProviderEventsComeFirst(t *testing.T) {
	req := hello()
	var seen []string
	stop := errors.New("enough")
	req.OnProviderEvent = func(event jsontext.Value, _ *llm.Model) error {
		seen = append(seen, string(event))
		if strings.Contains(string(event), "text_delta") {
			return stop
		}
		return nil
	}
	one, two := start("text", 0), delta("text", 0, "a")
	lines, m := answer(t, req, strings.NewReader(sse(one, two)))
	if strings.Join(seen, "\n") != one+"\n"+two || m.ErrorMessage != "enough" || strings.Join(lines, "|") != "start|0 text_start|error error" {
		t.Errorf("%q: %s", seen, m.AppendJSON(nil))
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(sse(`{"type":"start"}`, start("text", 0), delta("text", 0, "a"), `{"type":"text_end","contentIndex":0,"content":"b"}`, done("stop"))))
	f.Add([]byte(sse(start("thinking", 0), delta("thinking", 0, `\ud83d`), start("toolcall", 1), delta("toolcall", 1, `{\"a\":`),
		`{"type":"toolcall_end","contentIndex":1,"toolCall":{"type":"toolCall","id":"d","name":"g","arguments":{"a":[{}]}}}`,
		`{"type":"thinking_end","contentIndex":0,"redacted":true}`, done("toolUse"))))
	f.Add([]byte(sse(start("toolcall", 0), delta("toolcall", 0, `{\"a\":1}`), `{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"d","name":"g","arguments":{"b":1,"b":2}}}`,
		`{"type":"error","reason":"aborted","usage":{"input":1e300},"rewrite":{"x": 1}}`)))
	f.Add([]byte(sse(start("text", 1), `{"type":"text_start","contentIndex":1e0}`, "[DONE]")))
	f.Add([]byte(sse(start("text", 0), `{"type":"done","reason":"stop","usage":{"input":9e18,"output":9e18,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":1e400}}}`)))
	f.Add([]byte(`{"error":{"message":"m","code":"c"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, m := answer(t, hello(), bytes.NewReader(body))
		wiretest.Whole(t, lines, m)
		if m.Usage.Context() < 0 || m.Usage.Cost.Total < 0 {
			t.Errorf("usage %s", m.AppendJSON(nil))
		}
		for _, b := range m.Content {
			if c, ok := b.(*llm.ToolCall); ok && (c.ID == "" || c.Name == "" || !jsonwire.IsObject(c.Arguments)) {
				t.Errorf("call %s", c.AppendJSON(nil))
			}
		}
	})
}

// There is no start before an error in place of an answer.
func TestErrorWithoutStart(t *testing.T) {
	for _, body := range []string{"", `data: {"type":"error","reason":"error","errorMessage":"no"}` + "\n\n"} {
		if lines, _ := answer(t, hello(), strings.NewReader(body)); len(lines) != 1 || !strings.HasPrefix(lines[0], "error") {
			t.Errorf("%q: %q", body, lines)
		}
	}
}
