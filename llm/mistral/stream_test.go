package mistral

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
	tool := func(entry string) string { return delta(`{"tool_calls":[` + entry + `]}`) }
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"empty content opens nothing": {
			[]string{delta(`{"role":"assistant","content":""}`), delta(`{"content":null}`), delta(`{"content":[]}`),
				delta(`{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":""}]}`)},
			``},
		"an empty thought between texts": {
			[]string{delta(`{"content":"a"}`), delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":""}]}]}`), delta(`{"content":"b"}`)},
			`0 text_start|0 text_delta a|0 text_delta b|0 text_end`},
		"parts of both kinds": {
			[]string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"text","text":"c"}]}`), delta(`{"content":"d"}`)},
			`0 thinking_start|0 thinking_delta ab|0 thinking_end|1 text_start|1 text_delta c|1 text_delta d|1 text_end`},
		"a thought as a string": {
			[]string{delta(`{"content":[{"type":"thinking","thinking":"a"}]}`)},
			`0 thinking_start|0 thinking_delta a|0 thinking_end`},
		"other parts and kinds": {
			[]string{delta(`{"content":[{"type":"reference","reference_ids":[1]},7,"",{"type":"text","text":5},{"text":"y"}]}`), delta(`{"content":8}`)},
			``},
		"plain texts in a list": {
			[]string{delta(`{"content":["a",{"type":"text","text":"b"},"c"]}`)},
			`0 text_start|0 text_delta a|0 text_delta b|0 text_delta c|0 text_end`},
		"text behind a call": {
			[]string{delta(`{"content":"a"}`), tool(`{"index":0,"id":"abcdefghi","function":{"name":"f","arguments":"{}"}}`), delta(`{"content":"b"}`)},
			`0 text_start|0 text_delta a|0 text_end|1 toolcall_start  [abcdefghi f {}]|1 toolcall_delta {} [abcdefghi f {}]|` +
				`2 text_start|2 text_delta b|2 text_end|1 toolcall_end  [abcdefghi f {}]`},
		"content and call in one delta": {
			[]string{delta(`{"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"f"}}],"content":"a"}`)},
			`0 text_start|0 text_delta a|0 text_end|1 toolcall_start  [abcdefghi f {}]|1 toolcall_end  [abcdefghi f {}]`},
		"pieces by index": {
			[]string{
				tool(`{"index":0,"id":"aaaaaaaaa","function":{"name":"f","arguments":"{\"x\""}},{"index":1,"id":"bbbbbbbbb","function":{"name":"g","arguments":{"y":[1, 2]}}}`),
				tool(`{"index":0,"function":{"arguments":":1}"}}`)},
			`0 toolcall_start  [aaaaaaaaa f {}]|0 toolcall_delta {"x" [aaaaaaaaa f {}]|1 toolcall_start  [bbbbbbbbb g {}]|1 toolcall_delta {"y":[1,2]} [bbbbbbbbb g {"y":[1,2]}]|` +
				`0 toolcall_delta :1} [aaaaaaaaa f {"x":1}]|0 toolcall_end  [aaaaaaaaa f {"x":1}]|1 toolcall_end  [bbbbbbbbb g {"y":[1,2]}]`},
		"ids that are none": {
			[]string{tool(`{"index":3,"id":"null","function":{"name":"f"}}`), tool(`{"index":12,"function":{"name":"g"}}`), tool(`{"index":3,"id":"","function":{"arguments":"{}"}}`)},
			`0 toolcall_start  [toolcall3 f {}]|1 toolcall_start  [` + shortID("toolcall:12", 0) + ` g {}]|0 toolcall_delta {} [toolcall3 f {}]|` +
				`0 toolcall_end  [toolcall3 f {}]|1 toolcall_end  [` + shortID("toolcall:12", 0) + ` g {}]`},
		"entries without index": {
			[]string{tool(`{"id":"aaaaaaaaa","function":{"name":"f","arguments":"{"}}`), tool(`{"function":{"arguments":"}"}}`),
				tool(`{"id":"bbbbbbbbb","function":{"name":"g","arguments":"{}"}}`), tool(`{"id":"aaaaaaaaa","function":{"arguments":" "}}`), tool(`{}`), tool(`7`)},
			`0 toolcall_start  [aaaaaaaaa f {}]|0 toolcall_delta { [aaaaaaaaa f {}]|0 toolcall_delta } [aaaaaaaaa f {}]|` +
				`1 toolcall_start  [bbbbbbbbb g {}]|1 toolcall_delta {} [bbbbbbbbb g {}]|0 toolcall_delta   [aaaaaaaaa f {}]|` +
				`0 toolcall_end  [aaaaaaaaa f {}]|1 toolcall_end  [bbbbbbbbb g {}]`},
		"a name that comes late": {
			[]string{tool(`{"index":0,"id":"aaaaaaaaa","function":{"arguments":"{"}}`), tool(`{"index":0,"function":{"name":"f","arguments":"}"}}`)},
			`0 toolcall_start  [aaaaaaaaa  {}]|0 toolcall_delta { [aaaaaaaaa  {}]|0 toolcall_delta } [aaaaaaaaa f {}]|0 toolcall_end  [aaaaaaaaa f {}]`},
		"only the first choice": {
			[]string{`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, `{"choices":[]}`, `{"choices":[7]}`},
			`0 text_start|0 text_delta a|0 text_end`},
	} {
		lines, m := answer(t, hello(), strings.NewReader(sse(append(c.chunks, finish("stop"), "[DONE]")...)))
		want := "start|" + c.want + "|done stop"
		if c.want == "" {
			want = "start|done stop"
		}
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("%s: %q\n got %s\nwant %s", name, m.ErrorMessage, got, want)
		}
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	_, m := answer(t, hello(), strings.NewReader(sse(
		delta(`{"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"f","arguments":"[1]"}}]}`), finish("tool_calls"))))
	c := m.Content[0].(*llm.ToolCall)
	if m.StopReason != llm.StopToolUse || string(c.Arguments) != "{}" || c.ArgumentsError != "Tool arguments must be a JSON object\n\nReceived arguments:\n[1]" {
		t.Errorf("%s: %s", m.StopReason, c.AppendJSON(nil))
	}
}

func TestEnds(t *testing.T) {
	x := delta(`{"content":"x"}`)
	closed := "start|0 text_start|0 text_delta x|0 text_end|"
	open := "start|0 text_start|0 text_delta x|"
	for name, c := range map[string]struct {
		chunks    []string
		lines     string
		failure   string
		retryable bool
	}{
		"stop":               {[]string{x, finish("stop"), "[DONE]"}, closed + "done stop", "", false},
		"length":             {[]string{x, finish("length"), "[DONE]"}, closed + "done length", "", false},
		"model length":       {[]string{x, finish("model_length"), "[DONE]"}, closed + "done length", "", false},
		"tool calls":         {[]string{x, finish("tool_calls"), "[DONE]"}, closed + "done toolUse", "", false},
		"last reason":        {[]string{x, finish("length"), finish("stop"), "[DONE]"}, closed + "done stop", "", false},
		"no last word":       {[]string{x, finish("stop")}, closed + "done stop", "", false},
		"behind the end":     {[]string{x, finish("stop"), "[DONE]", delta(`{"content":"y"}`), "{"}, closed + "done stop", "", false},
		"server error":       {[]string{x, finish("error"), "[DONE]"}, closed + "error error", "Provider stopped with: error (server error)", true},
		"filter":             {[]string{x, finish("content_filter"), "[DONE]"}, closed + "error error", "Provider stopped with: content_filter", false},
		"no reason":          {[]string{x, "[DONE]"}, closed + "error error", "Mistral stream ended without a finish reason", true},
		"cut":                {[]string{x}, closed + "error error", "Mistral stream ended without a finish reason", true},
		"no choices":         {[]string{x, `{"object":"error"}`, finish("stop")}, open + "error error", "Invalid Mistral streaming event", false},
		"choices no list":    {[]string{x, `{"choices":{}}`}, open + "error error", "Invalid Mistral streaming event", false},
		"no object":          {[]string{x, `"choices"`}, open + "error error", "Invalid Mistral streaming event", false},
		"no JSON":            {[]string{x, `{"choices":[`}, open + "error error", "Invalid Mistral streaming event: invalid JSON at byte 12: unexpected end", false},
		"something behind":   {[]string{x, `{"choices":[]} x`}, open + "error error", "Invalid Mistral streaming event: invalid JSON at byte 15: text after the value", false},
		"empty data":         {[]string{x, "", finish("stop")}, closed + "done stop", "", false},
		"a choice that ends": {[]string{`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`}, closed + "done stop", "", false},
	} {
		lines, m := answer(t, hello(), strings.NewReader(sse(c.chunks...)))
		if got := strings.Join(lines, "|"); got != c.lines || llm.TextOf(m.Content, "") != "x" {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.lines)
		}
		if m.ErrorMessage != c.failure || llm.IsRetryable(m) != c.retryable {
			t.Errorf("%s: got %q (retryable %v), want %q", name, m.ErrorMessage, llm.IsRetryable(m), c.failure)
		}
	}
}

func TestFramesOfAnyLineEnds(t *testing.T) {
	body := "data: " + delta(`{"content":"a"}`) + "\r\rdata: " + delta(`{"content":"b"}`) + "\r\n\ndata: " + delta(`{"content":"c"}`) + "\n\r\n" +
		": ping\r\n\r\nevent: x\rdata: " + finish("stop") + "\r\n\r\ndata: [DONE]"
	for _, r := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body))} {
		if _, m := answer(t, hello(), r); llm.TextOf(m.Content, "") != "abc" || m.StopReason != llm.StopStop {
			t.Errorf("%s", m.AppendJSON(nil))
		}
	}
}

func TestUsageSpellings(t *testing.T) {
	for name, c := range map[string]struct{ usage, want string }{
		"none":                   {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`, "10 5 0 15"},
		"promptTokensDetails":    {`{"prompt_tokens":10,"completion_tokens":5,"promptTokensDetails":{"cachedTokens":4}}`, "6 5 4 15"},
		"prompt_tokens_details":  {`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"a":1,"cached_tokens":4}}`, "6 5 4 15"},
		"promptTokenDetails":     {`{"prompt_tokens":10,"completion_tokens":5,"promptTokenDetails":{"cachedTokens":4}}`, "6 5 4 15"},
		"prompt_token_details":   {`{"prompt_tokens":10,"completion_tokens":5,"prompt_token_details":{"cached_tokens":4}}`, "6 5 4 15"},
		"numCachedTokens":        {`{"prompt_tokens":10,"completion_tokens":5,"numCachedTokens":4}`, "6 5 4 15"},
		"num_cached_tokens":      {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":4}`, "6 5 4 15"},
		"zero that is there":     {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}`, "10 5 0 15"},
		"null is not there":      {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":4,"prompt_tokens_details":{"cached_tokens":null},"promptTokensDetails":null}`, "6 5 4 15"},
		"more than the prompt":   {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":99}`, "0 5 10 15"},
		"fewer than none":        {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":-3}`, "10 5 0 15"},
		"not a number":           {`{"prompt_tokens":10,"completion_tokens":5,"num_cached_tokens":"4"}`, "10 5 0 15"},
		"total of its own":       {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":99}`, "10 5 0 99"},
		"prompt below zero":      {`{"prompt_tokens":-10,"completion_tokens":-5}`, "0 0 0 0"},
		"other kinds of members": {`{"prompt_tokens":"10","completion_tokens":null,"total_tokens":[]}`, "0 0 0 0"},
	} {
		chunk := `{"id":"c-1","choices":[],"usage":` + c.usage + `}`
		_, m := answer(t, hello(), strings.NewReader(sse(finish("stop"), chunk, "[DONE]")))
		u := m.Usage
		if got := fmt.Sprint(u.Input, u.Output, u.CacheRead, u.TotalTokens); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if u.Cost.Total != u.Cost.Input+u.Cost.Output+u.Cost.CacheRead || u.Cost.TotalFromProvider == nil || *u.Cost.TotalFromProvider {
			t.Errorf("%s: cost %+v", name, u.Cost)
		}
	}
}

// Halves of a character that come in two deltas meet; others vanish.
func TestIncomingSurrogates(t *testing.T) {
	think := func(s string) string {
		return delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + s + `"}]}]}`)
	}
	for name, c := range map[string]struct {
		chunks         []string
		thinking, text string
	}{
		"alone":               {[]string{delta(`{"content":"a\ud83db\ude48c"}`)}, "", "abc"},
		"together":            {[]string{delta(`{"content":"a\ud83d\ude48"}`)}, "", "a🙈"},
		"in two deltas":       {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":"\ude48b"}`)}, "", "a🙈b"},
		"a stranger between":  {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":"x"}`), delta(`{"content":"\ude48"}`)}, "", "x"},
		"two first halves":    {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude48"}`)}, "", "🙈"},
		"empty between":       {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":""}`), delta(`{"content":"\ude48"}`)}, "", "🙈"},
		"at the end":          {[]string{delta(`{"content":"a\ud83d"}`)}, "", "a"},
		"not across blocks":   {[]string{think(`t\ud83d`), delta(`{"content":"\ude48u"}`)}, "t", "u"},
		"thinking":            {[]string{think(`t\ud83d`), think(`\ude48\ud83d`)}, "t🙈", ""},
		"other letters of ED": {[]string{delta(`{"content":"\ud7ff한"}`)}, "", "\ud7ff한"},
	} {
		_, m := answer(t, hello(), strings.NewReader(sse(append(c.chunks, finish("stop"))...)))
		thinking := ""
		for _, b := range m.Content {
			if b, ok := b.(*llm.Thinking); ok {
				thinking += b.Thinking
			}
		}
		if got := llm.TextOf(m.Content, "|"); got != c.text || thinking != c.thinking {
			t.Errorf("%s: got %q %q, want %q %q", name, thinking, got, c.thinking, c.text)
		}
	}
	// Arguments are not text that anybody reads: they stay as they are.
	_, m := answer(t, hello(), strings.NewReader(sse(
		delta(`{"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]}`), finish("tool_calls"))))
	if got := string(m.Content[0].(*llm.ToolCall).Arguments); got != `{"a":"\ud83d"}` {
		t.Errorf("arguments %s", got)
	}
}

func TestAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, sse(delta(`{"content":"a"}`), delta(`{"content":"b"}`)))
	s, err := New(Config{Client: wiretest.Answers(r), Getenv: wiretest.NoEnv}).Stream(ctx, testModel(), hello())
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
	if got := strings.Join(types, " "); got != "start text_start text_delta text_delta error" {
		t.Errorf("got %s", got)
	}
	if m := last.Message; m.StopReason != llm.StopAborted || llm.TextOf(m.Content, "") != "ab" || m.ResponseID != "c-1" {
		t.Errorf("message: %s", m.AppendJSON(nil))
	}
}

func TestBrokenConnection(t *testing.T) {
	lines, m := answer(t, hello(), io.MultiReader(strings.NewReader(sse(delta(`{"content":"a"}`))), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if got := strings.Join(lines, "|"); got != "start|0 text_start|0 text_delta a|error error" {
		t.Errorf("events %s", got)
	}
	if !llm.IsRetryable(m) || llm.TextOf(m.Content, "") != "a" {
		t.Errorf("%q", m.ErrorMessage)
	}
}

// A service that only keeps the connection open is given up.
func TestSilence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(delta(`{"content":"a"}`)))
		for {
			io.WriteString(w, ": ping\n\n"+sse(delta(`{"content":""}`)))
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
	s, err := New(Config{Getenv: wiretest.NoEnv}).Stream(context.Background(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if msg := s.Result(); !strings.Contains(msg.ErrorMessage, "timed out") || !llm.IsRetryable(msg) || llm.TextOf(msg.Content, "") != "a" {
		t.Errorf("%s", msg.AppendJSON(nil))
	}
}

func TestHeadersAreWaitedForAMinute(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: time.Minute, time.Hour: time.Hour} {
		req := hello()
		req.Timeout = asked
		got := New(Config{}).exchange(testModel(), req).options().Timeout
		if got != want || req.Timeout != asked {
			t.Errorf("asked for %v: %v", asked, got)
		}
	}
}

func TestProviderEventsComeFirst(t *testing.T) {
	req := hello()
	var seen []string
	stop := errors.New("enough")
	req.OnProviderEvent = func(event jsontext.Value, _ *llm.Model) error {
		seen = append(seen, string(event))
		if strings.Contains(string(event), "two") {
			return stop
		}
		return nil
	}
	one, two := delta(`{"content":"one"}`), delta(`{"content":"two"}`)
	_, m := answer(t, req, strings.NewReader(sse(one, two)))
	if strings.Join(seen, "\n") != one+"\n"+two || m.ErrorMessage != "enough" || llm.TextOf(m.Content, "") != "one" {
		t.Errorf("%q: %s", seen, m.AppendJSON(nil))
	}
}

// untaught forgets the template in front of each chunk, so that each is read whole.
type untaught struct{ *exchange }

func (u untaught) Event(a *wire.Answer, name, data []byte) error {
	u.known.Forget()
	return u.exchange.Event(a, name, data)
}

// open is the stream that a body makes, read with what is remembered of its
// chunks or without.
func open(body []byte, forget bool) *llm.Stream {
	m, req := testModel(), hello()
	x := New(Config{Client: wiretest.Answers(bytes.NewReader(body)), Getenv: wiretest.NoEnv}).exchange(m, req)
	var ex wire.Exchange = x
	if forget {
		ex = untaught{x}
	}
	return llm.NewStream(wire.NewSource(context.Background(), x.host, ID, m, &req.Options, ex))
}

func FuzzStream(f *testing.F) {
	for _, d := range deltas() {
		f.Add([]byte(d.Times(3) + sse(finish("stop"), "[DONE]")))
	}
	f.Add([]byte(sse(delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude48\u0000"}`), `{"choices":[],"usage":{"prompt_tokens":1e300,"num_cached_tokens":-1}}`, finish("error"))))
	f.Add([]byte(sse(delta(`{"content":[{"type":"thinking","thinking":[{"text":"\ud83d"},{"text":"\ude48"}]}],"tool_calls":[{"index":-1,"id":"null","function":{"arguments":{"a":[}}]}`))))
	f.Add([]byte(sse(delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}},{"function":{"arguments":"\ud83d"}},{"index":9007199254740993}]}`), finish("tool_calls"))))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"\\\"\"}}]}\r\rdata:\n\nevent: x\n\n: c\n\ndata: [DONE"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, m := wiretest.Learned(t, func(forget bool) *llm.Stream { return open(body, forget) })
		for _, b := range m.Content {
			switch b := b.(type) {
			case *llm.Text:
				if jsonwire.HasSurrogate(b.Text) || b.Text == "" {
					t.Errorf("text %q", b.Text)
				}
			case *llm.Thinking:
				if jsonwire.HasSurrogate(b.Thinking) {
					t.Errorf("thinking %q", b.Thinking)
				}
			case *llm.ToolCall:
				if b.ID == "" || !jsonwire.IsObject(b.Arguments) {
					t.Errorf("call %s", b.AppendJSON(nil))
				}
			}
		}
	})
}
