package responses

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func itemAdded(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, item)
}

func itemDone(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

func deltaOf(typ string, index int, text string) string {
	return fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,"delta":%s}`, typ, index, text)
}

func closing(typ, members string) string {
	return `{"type":"response.` + typ + `","response":{"id":"r",` + members + `}}`
}

// answerTo reads the answer that a body makes for a request.
func answerTo(t testing.TB, req *llm.Request, body string) ([]string, *llm.Assistant) {
	t.Helper()
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsOpenAIGrammarTools":true}`)
	lines, message := read(New(quiet(wiretest.Answers(strings.NewReader(body)))).StreamWith(t.Context(), m, req, Options{}))
	if message == nil {
		t.Fatalf("no terminal event: %q", lines)
	}
	return lines, message
}

func hello() *llm.Request { return keyed(llm.UserText("u", 1)) }

func TestStream(t *testing.T) {
	const text = `{"type":"message","id":"msg_1","content":[]}`
	const fn = `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}`
	completed := closing("completed", `"status":"completed"`)
	for name, c := range map[string]struct {
		events  []string
		want    string // events
		content string // of the message
	}{
		"a text that its end corrects": {[]string{
			itemAdded(0, text), deltaOf("output_text", 0, `"ab"`),
			itemDone(0, `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"x"},{"type":"refusal","refusal":"y"}]}`), completed,
		}, "start|0 text_start|0 text_delta ab|0 text_end =xy|done stop", `[{"type":"text","text":"xy","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"}]`},
		"an end that repeats nothing": {[]string{
			itemAdded(0, text), deltaOf("output_text", 0, `"ab"`), itemDone(0, `{"type":"message"}`), completed,
		}, "start|0 text_start|0 text_delta ab|0 text_end|done stop", `[{"type":"text","text":"ab"}]`},
		"no end of a text": {[]string{itemAdded(0, text), deltaOf("refusal", 0, `"no"`), completed},
			"start|0 text_start|0 text_delta no|0 text_end|done stop", `[{"type":"text","text":"no"}]`},
		"items that come as a whole": {[]string{
			itemDone(0, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`),
			itemDone(1, `{"type":"message","content":[{"type":"output_text","text":"t"}]}`),
			itemDone(2, `{"type":"function_call","call_id":"c","name":"f","arguments":{"a": 1}}`),
			itemDone(3, `{"type":"custom_tool_call","id":"ctc_1","call_id":"d","name":"patch","input":"\"x"}`),
			itemDone(4, `{"type":"web_search_call","id":"ws_1"}`), completed,
		}, `start|0 thinking_start|0 thinking_end =a` + "\n\n" + `b|1 text_start|1 text_end =t|2 toolcall_start  [c f {"a":1}]|2 toolcall_end  [c f {"a":1}]|` +
			`3 toolcall_start  [d|ctc_1 patch {"diff":"\"x"}]|3 toolcall_delta {"diff":"\"x"} [d|ctc_1 patch {"diff":"\"x"}]|3 toolcall_end  [d|ctc_1 patch {"diff":"\"x"}]|done toolUse`,
			`[{"type":"thinking","thinking":"a\n\nb","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"a\"},{\"type\":\"summary_text\",\"text\":\"b\"}]}"},` +
				`{"type":"text","text":"t"},{"type":"toolCall","id":"c","name":"f","arguments":{"a":1}},{"type":"toolCall","id":"d|ctc_1","name":"patch","arguments":{"diff":"\"x"}}]`},
		"the same end twice": {[]string{
			itemDone(0, `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"t"}]}`),
			itemDone(0, `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"t"}]}`), completed,
		}, "start|0 text_start|0 text_end =t|done stop", `[{"type":"text","text":"t","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"}]`},
		"an answer in its last event": {[]string{closing("completed", `"output":[{"type":"message","content":[{"type":"output_text","text":"t"}]}]`)},
			"start|0 text_start|0 text_end =t|done stop", `[{"type":"text","text":"t"}]`},
		"arguments with their start": {[]string{
			itemAdded(0, `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":"}`), deltaOf("function_call_arguments", 0, `"1}"`),
			itemDone(0, fn), completed,
		}, `start|0 toolcall_start  [c|fc_1 f {}]|0 toolcall_delta 1} [c|fc_1 f {"a":1}]|0 toolcall_end  [c|fc_1 f {"a":1}]|done toolUse`,
			`[{"type":"toolCall","id":"c|fc_1","name":"f","arguments":{"a":1}}]`},
		"the rest of the arguments": {[]string{
			itemAdded(0, fn), deltaOf("function_call_arguments", 0, `"{\"a\":\"\ud83d"`),
			`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":\"\ud83d\ude48\"}"}`, itemDone(0, fn), completed,
		}, `start|0 toolcall_start  [c|fc_1 f {}]|0 toolcall_delta {"a":" [c|fc_1 f {"a":""}]|0 toolcall_delta 🙈"} [c|fc_1 f {"a":"🙈"}]|` +
			`0 toolcall_end  [c|fc_1 f {"a":"🙈"}]|done toolUse`, `[{"type":"toolCall","id":"c|fc_1","name":"f","arguments":{"a":"🙈"}}]`},
		"the input of a grammar": {[]string{
			itemAdded(0, `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"other","input":"a"}`),
			deltaOf("custom_tool_call_input", 0, `"\n"`), deltaOf("function_call_arguments", 0, `"x"`),
			`{"type":"response.custom_tool_call_input.done","output_index":0,"input":"a\nb"}`,
			itemDone(0, `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"other","input":"a\nb"}`), completed,
		}, `start|0 toolcall_start  [c|ctc_1 other {"input":"a"}]|0 toolcall_delta {"input":"a\n [c|ctc_1 other {"input":"a\n"}]|` +
			`0 toolcall_delta b"} [c|ctc_1 other {"input":"a\nb"}]|0 toolcall_end  [c|ctc_1 other {"input":"a\nb"}]|done toolUse`,
			`[{"type":"toolCall","id":"c|ctc_1","name":"other","arguments":{"input":"a\nb"}}]`},
		"the input of a grammar that never came": {[]string{
			itemAdded(0, `{"type":"custom_tool_call","call_id":"c","name":"patch"}`), itemDone(0, `{"type":"custom_tool_call"}`), completed,
		}, `start|0 toolcall_start  [c patch {"diff":""}]|0 toolcall_delta {"diff":""} [c patch {"diff":""}]|` +
			`0 toolcall_end  [c patch {"diff":""}]|done toolUse`, `[{"type":"toolCall","id":"c","name":"patch","arguments":{"diff":""}}]`},
		"a namespace": {[]string{
			itemAdded(0, `{"type":"function_call","id":"fc_1","name":"f"}`),
			itemDone(0, `{"type":"function_call","id":"fc_1","call_id":"c","name":"g","namespace":"n","arguments":" "}`), completed,
		}, `start|0 toolcall_start  [fc_1 f {}]|0 toolcall_end  [c|fc_1 g {}]|done toolUse`,
			`[{"type":"toolCall","id":"c|fc_1","name":"g","arguments":{},"namespace":"n"}]`},
		"events for no item, or for one of another kind": {[]string{
			deltaOf("output_text", 0, `"x"`), itemAdded(0, `{"type":"reasoning","id":"rs_1"}`), deltaOf("output_text", 0, `"x"`), deltaOf("reasoning_text", 1, `"x"`),
			deltaOf("reasoning_text", 0, `7`), deltaOf("reasoning_text", 0, `"a"`), itemAdded(1, `null`), itemAdded(2, `[]`), `7`, `{}`, `{"type":7}`, `{"type":"ping"}`,
			`{"type":"response.output_item.done"}`, `{"type":"response.reasoning_summary_part.done","output_index":9}`,
			`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"x"}`, itemDone(0, `{"type":"reasoning","id":"rs_1","summary":[]}`), completed,
		}, "start|0 thinking_start|0 thinking_delta a|0 thinking_end|done stop",
			`[{"type":"thinking","thinking":"a","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}"}]`},
		"no indexes": {[]string{
			`{"type":"response.output_item.added","item":` + text + `}`, `{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.output_item.done","item":` + text + `}`,
			`{"type":"response.output_item.added","item":` + fn + `}`, `{"type":"response.function_call_arguments.delta","delta":"{}"}`, `{"type":"response.output_item.done","item":` + fn + `}`, completed,
		}, `start|0 text_start|0 text_delta a|0 text_end|1 toolcall_start  [c|fc_1 f {}]|1 toolcall_delta {} [c|fc_1 f {}]|1 toolcall_end  [c|fc_1 f {}]|done toolUse`,
			`[{"type":"text","text":"a","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"},{"type":"toolCall","id":"c|fc_1","name":"f","arguments":{}}]`},
		"a call that the token limit cut": {[]string{
			itemAdded(0, fn), deltaOf("function_call_arguments", 0, `"{\"a\":"`), closing("incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`),
		}, `start|0 toolcall_start  [c|fc_1 f {}]|0 toolcall_delta {"a": [c|fc_1 f {}]|done length`, ``},
		"encrypted reasoning in place of null": {[]string{
			itemDone(0, `{"type":"reasoning","id":"rs_1","encrypted_content":null,"summary":[]}`),
			itemDone(1, `{"type":"reasoning","id":"rs_2","encrypted_content":"old"}`),
			closing("completed", `"output":[7,{"type":"reasoning","id":"rs_1","encrypted_content":"new"},{"type":"reasoning","id":"rs_2","encrypted_content":"new"}]`),
		}, "start|0 thinking_start|0 thinking_end|1 thinking_start|1 thinking_end|done stop",
			`[{"type":"thinking","thinking":"","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"new\",\"summary\":[]}"},` +
				`{"type":"thinking","thinking":"","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_2\",\"encrypted_content\":\"old\"}"}]`},
		"the end of the protocol before it": {[]string{"[DONE]", completed}, "start|error error", `[]`},
		"nothing behind the last event":     {[]string{completed, `{"type":"error","message":"late"}`}, "start|done stop", `[]`},
	} {
		tool := llm.Tool{
			Name: "patch", Parameters: jsontext.Value(`{"type":"object","properties":{"diff":{"type":"string"}},"required":["diff"]}`),
			ConstrainedSampling: jsontext.Value(`{"type":"grammar","variants":{"openai_lark":"x"}}`),
		}
		lines, m := answerTo(t, keyed(llm.Fold("", []llm.Tool{tool}, hello().Messages)...), sse(c.events...))
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		if got := string(llm.AppendBlocks(nil, m.Content)); c.content != "" && got != c.content {
			t.Errorf("%s: content\n got %s\nwant %s", name, got, c.content)
		}
	}
}

func TestStreamErrors(t *testing.T) {
	for name, c := range map[string]struct{ event, want string }{
		"an error":               {`{"type":"error","code":"c","message":"m"}` + "\nevent: error", "m"},
		"an error without name":  {`{"type":"error","code":"c","message":"m"}`, "Error Code c: m"},
		"an error in a member":   {`{"type":"error","error":{"type":"t","message":"m"}}`, "m"},
		"an error with a code":   {`{"type":"error","code":"c","message":null}`, "c"},
		"an error of nothing":    {`{"type":"error"}`, `{"type":"error"}`},
		"a gateway's error":      {`{"error":{"code":502,"message":"m"}}`, "m"},
		"a failure":              {closing("failed", `"status":"failed","error":{"code":"c","message":"m"}`), "c: m"},
		"a failure by reason":    {closing("failed", `"incomplete_details":{"reason":"x"}`), "incomplete: x"},
		"a failure with details": {`{"type":"response.failed","response":{"status":"failed","incomplete_details":{"reason":"r"}}}`, "incomplete: r"},
		"a failure of nothing":   {`{"type":"response.failed"}`, "Unknown error (no error details in response)"},
		"a cancelled response":   {closing("completed", `"status":"cancelled"`), "Response cancelled without error details"},
		"a failed response":      {closing("completed", `"status":"failed","error":{"code":"c","message":"m"}`), "c: m"},
		"an unknown status":      {closing("completed", `"status":"odd"`), "Unhandled stop reason: odd"},
		"a filter":               {closing("incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`), "Response incomplete: content_filter"},
		"a broken event":         {`{"type":"response.completed"`, "the stream holds an event that cannot be read"},
		"an unfinished call": {itemAdded(0, `{"type":"function_call","id":"fc_1","call_id":"c","name":"f"}`) + "\n\ndata: " + finished,
			"OpenAI Responses stream completed with an unfinished tool call: f (c|fc_1)"},
		"a stream without an end": {itemAdded(0, `{"type":"message"}`), ErrTruncated.Error()},
	} {
		lines, m := answerTo(t, hello(), sse(c.event))
		if m.StopReason != llm.StopError || !strings.HasPrefix(m.ErrorMessage, c.want) {
			t.Errorf("%s: %s %q", name, m.StopReason, m.ErrorMessage)
		}
		if last := lines[len(lines)-1]; last != "error error" {
			t.Errorf("%s: last event %q", name, last)
		}
	}
}

func TestUsage(t *testing.T) {
	usage := `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":10},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`
	for name, c := range map[string]struct {
		own, members string
		want         float64 // total cost
	}{
		"plain":              {"", usage, 50e-6 + 80e-6 + 4e-6},
		"a wished tier":      {"flex", usage, 67e-6},
		"another tier given": {"flex", `"service_tier":"priority",` + usage, 268e-6},
		"a tier at no price": {"priority", `"service_tier":"default",` + usage, 134e-6},
	} {
		_, m := read(New(quiet(wiretest.Answers(strings.NewReader(sse(closing("completed", c.members)))))).StreamWith(t.Context(), testModel(), hello(), Options{ServiceTier: c.own}))
		u := m.Usage
		if u.Input != 50 || u.Output != 20 || u.CacheRead != 40 || u.CacheWrite != 10 || *u.Reasoning != 5 || u.TotalTokens != 120 {
			t.Errorf("%s: usage %+v", name, u)
		}
		if d := u.Cost.Total - c.want; d > 1e-12 || d < -1e-12 {
			t.Errorf("%s: cost %v, want %v", name, u.Cost.Total, c.want)
		}
	}
	if got := tierFactor("gpt-5.5", "fast"); got != 2.5 {
		t.Errorf("factor %v", got)
	}
	// Tokens of an answer that failed are paid for too.
	if _, m := answerTo(t, hello(), sse(closing("failed", usage))); m.Usage.Output != 20 || m.Usage.Cost.Total == 0 {
		t.Errorf("usage of a failure %+v", m.Usage)
	}
	// More cached than sent is no reason for less than nothing.
	if _, m := answerTo(t, hello(), sse(closing("completed", `"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":5}}`))); m.Usage.Input != 0 {
		t.Errorf("input %d", m.Usage.Input)
	}
}

func TestRemovedReasoning(t *testing.T) {
	_, m := answerTo(t, hello(), sse(closing("completed", `"input_transformations":[{"type":"reasoning","action":"removed","reason":"turn_boundary"},7,`+
		`{"type":"reasoning","action":"removed","reason":"expired","x":1},{"type":"image","action":"removed"},{"type":"reasoning","id":"rs_1","action":"removed"}]`)))
	want := `{"transformations":[{"type":"reasoning","action":"removed","reason":"expired"},{"type":"reasoning","id":"rs_1","action":"removed"}]}`
	if len(m.Diagnostics) != 1 || string(m.Diagnostics[0].Details) != want || m.Diagnostics[0].Type != "openai_input_transformations" {
		t.Errorf("diagnostics %+v", m.Diagnostics)
	}
}

func TestAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, w := io.Pipe()
	go io.WriteString(w, sse(itemAdded(0, `{"type":"message"}`), deltaOf("output_text", 0, `"half"`)))
	var last llm.Event
	for ev := range New(quiet(wiretest.Answers(body))).StreamWith(ctx, testModel(), hello(), Options{}).Events() {
		if last = ev; ev.Type == llm.EventTextDelta {
			cancel()
		}
	}
	if m := last.Message; m == nil || m.StopReason != llm.StopAborted || llm.TextOf(m.Content, "") != "half" {
		t.Errorf("last event %+v", last)
	}
}

func TestCutStream(t *testing.T) {
	body := io.MultiReader(strings.NewReader(sse(itemAdded(0, `{"type":"function_call","call_id":"c","name":"f"}`),
		deltaOf("function_call_arguments", 0, `"{\"a\":1,\"b\":"`))), iotest.ErrReader(errors.New("connection reset by peer")))
	_, m := read(New(quiet(wiretest.Answers(body))).StreamWith(t.Context(), testModel(), hello(), Options{}))
	if m.StopReason != llm.StopError || !llm.IsRetryable(m) {
		t.Errorf("%s %q", m.StopReason, m.ErrorMessage)
	}
	if c := m.ToolCalls(); len(c) != 1 || string(c[0].Arguments) != `{"a":1}` {
		t.Errorf("content %s", llm.AppendBlocks(nil, m.Content))
	}
}

func TestProviderEvents(t *testing.T) {
	var seen []string
	req := hello()
	req.OnProviderEvent = func(event jsontext.Value, _ *llm.Model) error {
		seen = append(seen, string(event))
		if len(seen) == 4 {
			return errors.New("enough")
		}
		return nil
	}
	events := []string{itemAdded(0, `{"type":"message"}`), deltaOf("output_text", 0, `"a"`), deltaOf("output_text", 0, `"b"`), deltaOf("output_text", 0, `"c"`), finished}
	lines, m := answerTo(t, req, sse(events...))
	if !slices.Equal(seen, events[:4]) {
		t.Errorf("seen %q", seen)
	}
	if m.ErrorMessage != "enough" || strings.Join(lines, "|") != "start|0 text_start|0 text_delta a|0 text_delta b|error error" {
		t.Errorf("%q %q", lines, m.ErrorMessage)
	}
}

func TestEffortIsRecorded(t *testing.T) {
	m := testModel()
	m.Compat = jsontext.Value(`{"supportsMidConvoEffort":true}`)
	m.ThinkingLevelMap = map[llm.ThinkingLevel]*string{llm.LevelLow: new("light")}
	for level, want := range map[llm.ThinkingLevel]string{llm.LevelLow: "light", "": ""} {
		_, got := read(New(quiet(wiretest.Answers(strings.NewReader(sse(finished))))).StreamWith(t.Context(), m, hello(), Options{ReasoningEffort: level}))
		if got.ProviderThinkingLevel != want {
			t.Errorf("level %q: recorded %q, want %q", level, got.ProviderThinkingLevel, want)
		}
	}
}

func TestErrorPageInPlaceOfEvents(t *testing.T) {
	client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error":{"message":"sk-verysecret is no key"}}`)),
		}, nil
	})
	req := hello()
	req.APIKey = "sk-verysecret"
	_, m := read(New(quiet(client)).StreamWith(t.Context(), testModel(), req, Options{}))
	if want := `OpenAI API error (200): {"message":"[redacted] is no key"}`; m.ErrorMessage != want {
		t.Errorf("got %q, want %q", m.ErrorMessage, want)
	}
}

// unframed forgets the frame in front of each event, so that each is read whole.
type unframed struct{ *exchange }

func (u unframed) Event(a *wire.Answer, name, data []byte) error {
	u.frame.typ = eventOther
	return u.exchange.Event(a, name, data)
}

// open is the stream that a body makes, read with what is remembered of its
// events or without.
func open(body []byte, forget bool) *llm.Stream {
	req := hello()
	x := newService(quiet(wiretest.Answers(strings.NewReader(string(body)))), openAI()).exchange(testModel(), req)
	var ex wire.Exchange = x
	if forget {
		ex = unframed{x}
	}
	return llm.NewStream(wire.NewSource(context.Background(), x.host, ID, x.model, &req.Options, ex))
}

func FuzzStream(f *testing.F) {
	for _, d := range deltas() {
		f.Add([]byte(d.Times(3) + sse(finished)))
	}
	const numbered = `{"type":"response.output_text.delta","sequence_number":%s,"output_index":0,"delta":%s,"obfuscation":%s}`
	f.Add([]byte(sse(itemAdded(0, `{"type":"message"}`), fmt.Sprintf(numbered, "1", `"a"`, `"x"`), fmt.Sprintf(numbered, "02", `"\ud83d"`, `"\\"`), fmt.Sprintf(numbered, "3", `"\ude48"`, `"y"`), fmt.Sprintf(numbered, "-4", "null", `""`))))
	f.Add([]byte(sse(itemDone(0, sealed("rs_1")), itemAdded(1, `{"type":"custom_tool_call","input":"a"}`), `{"type":"response.custom_tool_call_input.done","output_index":1,"input":"b"}`, itemDone(1, `{"type":"custom_tool_call","input":"c"}`), closing("completed", `"output":[`+sealed("rs_1")+`],"usage":{"input_tokens":1}`))))
	f.Add([]byte(sse(itemAdded(0, `{"type":"function_call","arguments":"{"}`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{}"}`, deltaOf("function_call_arguments", 0, `"x"`), closing("failed", `"error":{"code":"c"}`))))
	const unnamed = "data: {\"output_index\":0,\"delta\":\"a\"}\n\n"
	f.Add([]byte(sse(itemAdded(0, `{"type":"message"}`)) + "event: response.output_text.delta\n" + unnamed + "event: response.function_call_arguments.delta\n" + unnamed + unnamed))
	f.Add([]byte("event: error\ndata: {\"error\":{}}\r\rdata:\n\nevent: x\n\n: c\n\ndata: [DONE"))
	f.Fuzz(func(t *testing.T, body []byte) {
		wiretest.Learned(t, func(forget bool) *llm.Stream { return open(body, forget) })
	})
}
