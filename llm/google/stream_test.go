package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// sse is a response body with one event for each chunk.
func sse(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\r\n\r\n", c)
	}
	return b.String()
}

// parts is a chunk with parts of an answer.
func parts(p ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(p, ",") + `],"role":"model"},"index":0}],"responseId":"r-1"}`
}

func finish(reason string) string {
	return `{"candidates":[{"content":{"parts":[]},"finishReason":"` + reason + `"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":14}}`
}

// answer reads the answer that a response body makes.
func answer(t testing.TB, body string) ([]string, *llm.Assistant) {
	t.Helper()
	api := New(Config{Client: wiretest.Answers(strings.NewReader(body)), Getenv: wiretest.NoEnv, Now: func() time.Time { return time.UnixMilli(1234) }})
	s, err := api.Stream(context.Background(), testModel("gemini-2.5-pro"), keyed(llm.UserText("u", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return read(s)
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   []string
		text   string // of the message's blocks
	}{
		"kinds change": {[]string{parts(`{"text":"a","thought":true}`, `{"text":"b","thought":true,"thoughtSignature":"c2ln"}`), parts(`{"text":"c"}`), parts(`{"text":"d","thought":true}`), finish("STOP")},
			[]string{"start", "0 thinking_start", "0 thinking_delta a", "0 thinking_delta b", "0 thinking_end", "1 text_start", "1 text_delta c", "1 text_end", "2 thinking_start", "2 thinking_delta d", "2 thinking_end", "done stop"},
			`[{"type":"thinking","thinking":"ab","thinkingSignature":"c2ln"},{"type":"text","text":"c"},{"type":"thinking","thinking":"d"}]`},
		"last signature wins": {[]string{parts(`{"text":"a","thoughtSignature":"b25l"}`), parts(`{"text":"b","thoughtSignature":""}`), parts(`{"text":"","thoughtSignature":"dHdv"}`), finish("STOP")},
			[]string{"start", "0 text_start", "0 text_delta a", "0 text_delta b", "0 text_delta", "0 text_end", "done stop"},
			`[{"type":"text","text":"ab","textSignature":"dHdv"}]`},
		"calls": {[]string{parts(`{"text":"a"}`, `{"functionCall":{"id":"x","name":"f","args":{"b": 1.50, "a":[ ]}},"thoughtSignature":"c2ln"}`), parts(`{"functionCall":{"id":"x","name":"g"}}`, `{"text":"z"}`), finish("STOP")},
			[]string{"start", "0 text_start", "0 text_delta a", "0 text_end", `1 toolcall_start  [x f {"b":1.5,"a":[]}]`, `1 toolcall_delta {"b":1.5,"a":[]} [x f {"b":1.5,"a":[]}]`, `1 toolcall_end  [x f {"b":1.5,"a":[]}]`,
				`2 toolcall_start  [g_1234_1 g {}]`, `2 toolcall_delta {} [g_1234_1 g {}]`, `2 toolcall_end  [g_1234_1 g {}]`, "3 text_start", "3 text_delta z", "3 text_end", "done toolUse"},
			`[{"type":"text","text":"a"},{"type":"toolCall","id":"x","name":"f","arguments":{"b":1.5,"a":[]},"thoughtSignature":"c2ln"},{"type":"toolCall","id":"g_1234_1","name":"g","arguments":{}},{"type":"text","text":"z"}]`},
		"arguments that are no object": {[]string{parts(`{"functionCall":{"name":"f","args":[1]}}`), finish("STOP")},
			[]string{"start", "0 toolcall_start  [f_1234_1 f {}]", "0 toolcall_delta [1] [f_1234_1 f {}]", "0 toolcall_end  [f_1234_1 f {}]", "done toolUse"},
			`[{"type":"toolCall","id":"f_1234_1","name":"f","arguments":{},"argumentsError":"Tool arguments must be a JSON object\n\nReceived arguments:\n[1]"}]`},
		"what is of no use": {[]string{`[]`, `{}`, parts(`{"text":null}`, `{"inlineData":{}}`, `7`), `{"candidates":[null,{"content":{"parts":[{"text":"no"}]}}]}`, parts(`{"text":"a","thought":"yes"}`), "[DONE]", `{"error":{}}`},
			[]string{"start", "0 text_start", "0 text_delta a", "0 text_end", "error error"}, `[{"type":"text","text":"a"}]`},
		"halves meet": {[]string{parts(`{"text":"\ud83d"}`), parts(`{"text":"\ude48!"}`), finish("STOP")},
			[]string{"start", "0 text_start", "0 text_delta", "0 text_delta 🙈!", "0 text_end", "done stop"}, `[{"type":"text","text":"🙈!"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			lines, m := answer(t, sse(c.chunks...))
			if !slices.Equal(lines, c.want) {
				t.Errorf("got  %q\nwant %q", lines, c.want)
			}
			if got := string(llm.AppendBlocks(nil, m.Content)); got != c.text {
				t.Errorf("got  %s\nwant %s", got, c.text)
			}
		})
	}
}

func TestFinishReasons(t *testing.T) {
	call := parts(`{"functionCall":{"name":"f"}}`)
	for _, c := range []struct {
		chunks []string
		stop   llm.StopReason
		text   string
	}{
		{[]string{finish("STOP")}, llm.StopStop, ""},
		{[]string{call, finish("STOP")}, llm.StopToolUse, ""},
		{[]string{finish("MAX_TOKENS")}, llm.StopLength, ""},
		{[]string{call, finish("MAX_TOKENS")}, llm.StopLength, ""},
		{[]string{finish("CONTINUATION")}, llm.StopLength, ""},
		{[]string{finish("SAFETY")}, llm.StopError, "Provider stopped with: SAFETY"},
		{[]string{finish("MALFORMED_FUNCTION_CALL")}, llm.StopError, "Provider stopped with: MALFORMED_FUNCTION_CALL"},
		{[]string{finish("NEW_ONE")}, llm.StopError, "Unhandled stop reason: NEW_ONE"},
		{[]string{parts(`{"text":"a"}`)}, llm.StopError, "Google stream ended without a finish reason"},
	} {
		_, m := answer(t, sse(c.chunks...))
		if m.StopReason != c.stop || m.ErrorMessage != c.text {
			t.Errorf("%q: got %s %q", c.chunks, m.StopReason, m.ErrorMessage)
		}
	}
	if _, m := answer(t, sse(finish("SAFETY"))); llm.IsRetryable(m) {
		t.Error("what was stopped on purpose would be tried again")
	}
	if _, m := answer(t, sse(parts(`{"text":"a"}`))); !llm.IsRetryable(m) {
		t.Error("a stream that broke off would not be tried again")
	}
}

func TestUsage(t *testing.T) {
	_, m := answer(t, sse(`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`, parts(`{"text":"a"}`), finish("STOP"), `{"usageMetadata":null}`))
	u := &m.Usage
	if u.Input != 5 || u.Output != 5 || u.CacheRead != 4 || u.CacheWrite != 0 || u.TotalTokens != 14 || u.Reasoning == nil || *u.Reasoning != 2 {
		t.Errorf("got %s", u.AppendJSON(nil))
	}
	if u.Cost.TotalFromProvider == nil || *u.Cost.TotalFromProvider || u.Cost.Total != u.Cost.Input+u.Cost.Output+u.Cost.CacheRead || u.Cost.Total == 0 {
		t.Errorf("got %s", u.AppendJSON(nil))
	}
	if m.ResponseID != "r-1" || m.RawStopReason != "STOP" || m.ResponseModel != "" {
		t.Errorf("got %s", m.AppendJSON(nil))
	}
	// A service that counts more cached tokens than there are makes no negative input.
	_, m = answer(t, sse(`{"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":3}}`, finish("SAFETY")[:0]+parts(`{"text":"a"}`)))
	if m.Usage.Input != 0 || m.Usage.CacheRead != 3 || m.Usage.Reasoning == nil {
		t.Errorf("got %s", m.Usage.AppendJSON(nil))
	}
}

// Chunks in the frame of the one before say what they say without it.
func TestFrames(t *testing.T) {
	chunk := func(text, usage string) string {
		return `{"candidates":[{"content":{"parts":[{"text":` + text + `}]}}],"usageMetadata":` + usage + `,"responseId":"r"}`
	}
	before := func(text, usage string) string {
		return `{"usageMetadata":` + usage + `,"candidates":[{"content":{"parts":[{"thought":true,"text":` + text + `}]}}]}`
	}
	counts := func(n int) string {
		return fmt.Sprintf(`{"promptTokenCount":%d,"promptTokensDetails":[{"tokenCount":%d,"modality":"TEXT"}],"candidatesTokenCount":%d,"trafficType":"ON_DEMAND","totalTokenCount":%d}`, n, n, 10*n, 11*n)
	}
	for name, chunks := range map[string][]string{
		"text":             {chunk(`"a"`, counts(1)), chunk(`"b\n"`, counts(20)), chunk(`""`, counts(0)), chunk(`"c"`, counts(300))},
		"usage first":      {before(`"a"`, counts(1)), before(`"b"`, counts(2)), before(`"c"`, counts(9))},
		"other counts":     {chunk(`"a"`, counts(1)), chunk(`"b"`, `{"promptTokenCount":7}`), chunk(`"c"`, counts(2))},
		"odd numbers":      {chunk(`"a"`, counts(1)), chunk(`"b"`, `{"promptTokenCount":-7}`), chunk(`"c"`, `{"promptTokenCount":1.5e2}`), chunk(`"d"`, `{"promptTokenCount":2.5e2}`)},
		"a number that is": {chunk(`"a"`, counts(1)), chunk(`"b"`, strings.Replace(counts(1), "1", "01", 1))},
		"a count twice":    {chunk(`"a"`, `{"totalTokenCount":1,"totalTokenCount":2}`), chunk(`"b"`, `{"totalTokenCount":3,"totalTokenCount":4}`)},
		"long number":      {chunk(`"a"`, counts(1)), chunk(`"b"`, strings.Replace(counts(1), `:1,`, `:1234567890123456789,`, 1))},
		"cut":              {chunk(`"a"`, counts(1)), chunk(`"b"`, counts(2))[:40], chunk(`"b"`, counts(2))},
		"more behind":      {chunk(`"a"`, counts(1)), chunk(`"b"`, counts(2)) + "}"},
		"text is none":     {chunk(`"a"`, counts(1)), chunk(`null`, counts(2)), chunk(`5`, counts(2)), chunk(`"b"`, counts(2))},
		"space":            {chunk(`"a"`, counts(1)), chunk(` "b"`, counts(2)), chunk(`"c`, counts(2))},
		"finish":           {chunk(`"a"`, counts(1)), chunk(`"b"`, counts(2)), finish("STOP"), chunk(`"c"`, counts(2))},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(sse(chunks...))
			wiretest.Learned(t, func(forget bool) *llm.Stream { return open(body, forget) })

		})
	}
}

func TestErrorsInStreams(t *testing.T) {
	for name, c := range map[string]struct {
		chunk, want string
		retry       bool
	}{
		"overloaded": {`{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}`, `got status: UNAVAILABLE. {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`, true},
		"no status":  {`{"error":{"code":400,"message":"bad"}}`, `got status: 400. {"error":{"code":400,"message":"bad"}}`, false},
		"a string":   {`{"error": "upstream timed out"}`, `{"error":"upstream timed out"}`, true},
		"no JSON":    {`{"error":x}`, `the stream holds a chunk that cannot be read: invalid JSON at byte 9: unexpected character`, false},
	} {
		t.Run(name, func(t *testing.T) {
			lines, m := answer(t, sse(parts(`{"text":"a"}`), c.chunk))
			if want := []string{"start", "0 text_start", "0 text_delta a", "error error"}; !slices.Equal(lines, want) {
				t.Errorf("got %q", lines)
			}
			if m.ErrorMessage != c.want || llm.IsRetryable(m) != c.retry {
				t.Errorf("got %q, retryable %v", m.ErrorMessage, llm.IsRetryable(m))
			}
		})
	}
}

func TestStatusErrors(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		status      int
		body        string
		want        string
		retry, over bool
	}{
		"object":     {429, ` {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}} `, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}`, true, false},
		"overflow":   {400, `{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}`, `{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}`, false, true},
		"gateway's":  {503, `{"message": "busy"}`, `{"error":{"message":"{\"message\": \"busy\"}","code":503,"status":"Service Unavailable"}}`, true, false},
		"page":       {502, "<p>\nbad</p>", `{"error":{"message":"<p>\nbad</p>","code":502,"status":"Bad Gateway"}}`, true, false},
		"nothing":    {403, "", `{"error":{"message":"","code":403,"status":"Forbidden"}}`, false, false},
		"list":       {503, `[{"error": {"message": "The model is overloaded."}}]`, `[{"error":{"message":"The model is overloaded."}}]`, true, false},
		"word":       {400, `"no"`, `{"error":{"message":"\"no\"","code":400,"status":"Bad Request"}}`, false, false},
		"no UTF-8":   {400, "\xff", `{"error":{"message":"` + "\uFFFD" + `","code":400,"status":"Bad Request"}}`, false, false},
		"odd status": {599, "x", `{"error":{"message":"x","code":599,"status":""}}`, false, false},
		"long":       {400, long, `{"error":{"message":"` + long[:4000] + `... [truncated 1000 chars]","code":400,"status":"Bad Request"}}`, false, false},
		"key":        {400, `{"error":{"message":"key secret-key-1 is not valid"}}`, `{"error":{"message":"key [redacted] is not valid"}}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
				return wiretest.Response(r, c.status, "application/json", strings.NewReader(c.body)), nil
			})
			req := keyed(llm.UserText("u", 1))
			req.APIKey = "secret-key-1"
			s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), req)
			if err != nil {
				t.Fatal(err)
			}
			lines, m := read(s)
			if !slices.Equal(lines, []string{"error error"}) {
				t.Errorf("got %q", lines)
			}
			if strings.ReplaceAll(m.ErrorMessage, "\\n", "\n") != strings.ReplaceAll(c.want, "\\n", "\n") {
				t.Errorf("got  %s\nwant %s", m.ErrorMessage, c.want)
			}
			if llm.IsRetryable(m) != c.retry || llm.IsContextOverflow(m, 0) != c.over {
				t.Errorf("retryable %v, overflow %v", llm.IsRetryable(m), llm.IsContextOverflow(m, 0))
			}
		})
	}
}

// An error that comes with the status of a success is an error in its words.
func TestErrorInPlaceOfAStream(t *testing.T) {
	client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
		return wiretest.Response(r, 200, "application/json", strings.NewReader("{\n\"error\": {\"code\": 500, \"message\": \"no\"}\n}")), nil
	})
	s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), keyed(llm.UserText("u", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Result(); m.ErrorMessage != `{"error":{"code":500,"message":"no"}}` {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, sse(parts(`{"text":"a"}`)))
	s, err := New(Config{Client: wiretest.Answers(r), Getenv: wiretest.NoEnv}).Stream(ctx, testModel("gemini-2.5-pro"), keyed(llm.UserText("u", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var last llm.Event
	for ev := range s.Events() {
		if ev.Type == llm.EventTextDelta {
			cancel()
		}
		last = ev
	}
	if last.Type != llm.EventError || last.Message.StopReason != llm.StopAborted || llm.TextOf(last.Message.Content, "") != "a" {
		t.Errorf("got %+v", last)
	}
}

func TestCutStream(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(sse(parts(`{"text":"a"}`))), iotest.ErrReader(errors.New("read tcp: connection reset by peer")))
	s, err := New(Config{Client: wiretest.Answers(broken), Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), keyed(llm.UserText("u", 1)))
	if err != nil {
		t.Fatal(err)
	}
	lines, m := read(s)
	if want := []string{"start", "0 text_start", "0 text_delta a", "error error"}; !slices.Equal(lines, want) || !llm.IsRetryable(m) {
		t.Errorf("got %q, %q", lines, m.ErrorMessage)
	}
}

func TestProviderEventsComeFirst(t *testing.T) {
	var seen []string
	req := keyed(llm.UserText("u", 1))
	stop := errors.New("enough")
	req.OnProviderEvent = func(e jsontext.Value, _ *llm.Model) error {
		if seen = append(seen, string(e)); len(seen) == 3 {
			return stop
		}
		return nil
	}
	body := sse(parts(`{"text":"a"}`), parts(`{"text":"b"}`), parts(`{"text":"c"}`))
	s, err := New(Config{Client: wiretest.Answers(strings.NewReader(body)), Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), req)
	if err != nil {
		t.Fatal(err)
	}
	m := s.Result()
	if want := []string{parts(`{"text":"a"}`), parts(`{"text":"b"}`), parts(`{"text":"c"}`)}; !slices.Equal(seen, want) {
		t.Errorf("got %q", seen)
	}
	if m.ErrorMessage != "enough" || llm.TextOf(m.Content, "") != "ab" {
		t.Errorf("got %q %s", m.ErrorMessage, llm.AppendBlocks(nil, m.Content))
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
	m := testModel("gemini-2.5-pro")
	now := func() time.Time { return time.UnixMilli(1234) }
	api := New(Config{Client: wiretest.Answers(strings.NewReader(string(body))), Getenv: wiretest.NoEnv, Now: now})
	req := keyed(llm.UserText("u", 1))
	x := api.exchange(context.Background(), m, req)
	var ex wire.Exchange = x
	if forget {
		ex = unframed{x}
	}
	return llm.NewStream(wire.NewSource(x.ctx, api.host, ID, m, &req.Options, ex))
}

var block = regexp.MustCompile(`^(\d+) (?:text|thinking|toolcall)_(start|delta|end)`)

func FuzzStream(f *testing.F) {
	for _, d := range deltas() {
		f.Add([]byte(d.Times(2) + sse(finish("STOP"), "[DONE]")))
	}
	f.Add([]byte(sse(parts(`{"text":"a"}`), parts(`{"text":"b\u0000"}`), parts(`{"text":"c","thoughtSignature":"c2ln"}`), `{"error":{"status":"X"}}`)))
	f.Add([]byte(sse(parts(`{"functionCall":{"name":"f","args":{"a":"\ud83d"},"id":"1"}}`, `{"functionCall":{"args":3,"id":"1"}}`), finish("MAX_TOKENS"))))
	f.Add([]byte(sse(parts(`{"text":"\ud83d"}`), parts(`{"text":"\ude48"}`), finish("ODD"))))
	f.Add([]byte(sse(`{"usageMetadata":{"promptTokenCount":1e3,"x":{"y":[1,-2,03]}},"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`)))
	for _, counts := range []string{`"promptTokenCount":1,"promptTokenCount":"x"`, `"totalTokenCount":1,"totalTokenCount":2.5`, `"thoughtsTokenCount":-1,"thoughtsTokenCount":3`} {
		chunk := `{"usageMetadata":{` + counts + `},"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`
		f.Add([]byte(sse(chunk, chunk, `{"candidates":[{"finishReason":"STOP"}]}`)))
	}
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\\"\"}]}}]}\r\rdata:\n\nevent: x\n\n: c\n\ndata: [DONE"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, _ := wiretest.Learned(t, func(forget bool) *llm.Stream { return open(body, forget) })
		open := -1
		for _, line := range lines {
			// Blocks follow each other: none begins before the last has ended.
			if m := block.FindStringSubmatch(line); m != nil {
				var index int
				fmt.Sscan(m[1], &index)
				switch m[2] {
				case "start":
					if open >= 0 {
						t.Errorf("block %d begins inside %d:\n%q", index, open, lines)
					}
					open = index
				case "delta":
					if open != index {
						t.Errorf("a delta of block %d inside %d:\n%q", index, open, lines)
					}
				case "end":
					open = -1
				}
			}
		}
	})
}
