package pimessages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// The words of these tests.
var (
	sse  = wiretest.SSE
	read = wiretest.Read
)

func hello() *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText("When?", 1)}, Options: llm.Options{APIKey: "k"}}
}

// requestOf is the request that a stream makes.
func requestOf(t testing.TB, m *llm.Model, req *llm.Request, o Options) (got wiretest.Sent) {
	t.Helper()
	client := wiretest.Keep(&got, sse(done("stop")))
	if m := New(Config{Client: client, Getenv: wiretest.NoEnv}).StreamWith(context.Background(), m, req, o).Result(); m.ErrorMessage != "" {
		t.Fatal(m.ErrorMessage)
	}
	return got
}

func TestWholeRequest(t *testing.T) {
	m := testModel()
	m.BaseURL = "http://backend.test/v1//"
	m.Headers = map[string]string{"X-Model": "m"}
	req := hello()
	// Everything as it is stored: what no model sees, failed answers, halves of
	// characters, blocks and members of later versions.
	req.Messages = []llm.Message{
		&llm.System{Content: llm.Plain("S"), Sections: []llm.Section{{Name: "a", Removed: true}}, ToolsRemoved: []string{"t"}},
		&llm.User{Content: llm.Plain("u\xed\xa0\xbd"), Timestamp: 1, Extra: []llm.Member{{Name: "x", Value: jsontext.Value(`{"b": 1}`)}}},
		&llm.Assistant{Content: []llm.Block{&llm.UnknownBlock{Type: "new", Raw: jsontext.Value(`{"type":"new"}`)}}, API: "a", Provider: "p", Model: "m",
			StopReason: llm.StopError, ErrorMessage: "e", Timestamp: 2},
		&llm.ToolResult{ToolCallID: "nobody's", ToolName: "t", Content: []llm.Block{}, Details: jsontext.Value(`[1]`), Timestamp: 3},
	}
	req.Temperature, req.MaxTokens, req.Reasoning = new(0.0), 7, llm.LevelXHigh
	req.CacheRetention, req.SessionID, req.ToolChoice = "none", "s", "none"
	req.Headers = map[string]*string{"x-model": new("r"), "User-Agent": new("me")}
	got := requestOf(t, m, req, Options{Debug: true})
	want := `{"model":"m-1","context":{"messages":[` +
		`{"role":"system","content":"S","sections":{"a":null},"toolsRemoved":[{"name":"t"}],"timestamp":0},` +
		`{"role":"user","content":"u\ud83d","timestamp":1,"x":{"b":1}},` +
		`{"role":"assistant","content":[{"type":"new"}],"api":"a","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
		`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"error","timestamp":2,"errorMessage":"e"},` +
		`{"role":"toolResult","toolCallId":"nobody's","toolName":"t","content":[],"details":[1],"isError":false,"timestamp":3}` +
		`]},"options":{"temperature":0,"maxTokens":7,"reasoning":"xhigh","cacheRetention":"none","sessionId":"s","toolChoice":"none"}}`
	if string(got.Body) != want {
		t.Errorf("body:\n got %s\nwant %s", got.Body, want)
	}
	if got.URL != "http://backend.test/v1/messages?debug=1" {
		t.Errorf("sent to %s", got.URL)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer k", "Accept": "text/event-stream", "Content-Type": "application/json", "X-Model": "r", "User-Agent": "me",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

func TestOptionsThatAreNotGiven(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*llm.Request)
		want string
	}{
		"none":              {func(*llm.Request) {}, `{}`},
		"thinking off":      {func(r *llm.Request) { r.Reasoning = llm.LevelOff }, `{}`},
		"long by the host":  {func(r *llm.Request) { r.Env = map[string]string{"PI_CACHE_RETENTION": "long"} }, `{"cacheRetention":"long"}`},
		"other by the host": {func(r *llm.Request) { r.Env = map[string]string{"PI_CACHE_RETENTION": "none"} }, `{}`},
		"short over long": {func(r *llm.Request) {
			r.Env, r.CacheRetention = map[string]string{"PI_CACHE_RETENTION": "long"}, "short"
		}, `{"cacheRetention":"short"}`},
	} {
		req := hello()
		c.set(req)
		got := requestOf(t, testModel(), req, Options{})
		if want := `"options":` + c.want + `}`; !strings.HasSuffix(string(got.Body), want) {
			t.Errorf("%s: got %s, want %s", name, got.Body, want)
		}
	}
}

func TestMissingKey(t *testing.T) {
	req := hello()
	req.APIKey = ""
	s, err := New(Config{Client: wiretest.Answers()}).Stream(context.Background(), testModel(), req)
	if err != nil {
		t.Fatal(err)
	}
	if lines, m := read(s); strings.Join(lines, "|") != "error error" || m.ErrorMessage != `No API key provided for provider "radius"` {
		t.Errorf("%q %q", lines, m.ErrorMessage)
	}
}

func TestErrorResponses(t *testing.T) {
	const key = "radius-secret-key"
	for name, c := range map[string]struct {
		status     int
		line, body string
		message    string
		details    string // behind statusText
		retryable  bool
	}{
		"message and code": {402, "402 Payment Required", `{"error":{"message": "no credit","code":"billing"}}`,
			"402 Payment Required: no credit (billing)", `"error":{"message":"no credit","code":"billing"}`, false},
		"message": {429, "429 Too Many Requests", `{"error":{"message":"slow down"}}`,
			"429 Too Many Requests: slow down", `"error":{"message":"slow down"}`, true},
		"own words of the server": {503, "503 Out For Lunch", `{"error":{"message":"m","code":5}}`,
			"503 Out For Lunch: m", `"error":{"message":"m","code":5}`, true},
		"no error object": {500, "500 Internal Server Error", `{"oops":1}`,
			`500 Internal Server Error: {"oops":1}`, `"body":"{\"oops\":1}"`, true},
		"an error that is no object": {400, "400 Bad Request", `{"error":["a"]}`,
			`400 Bad Request: {"error":["a"]}`, `"body":"{\"error\":[\"a\"]}"`, false},
		"no JSON": {502, "502 Bad Gateway", ` upstream died `,
			"502 Bad Gateway: upstream died", `"body":"upstream died"`, true},
		"nothing": {504, "504", ``, "504 Gateway Timeout", `"body":""`, true},
		"a key that is quoted": {401, "401 Unauthorized", `{"error":{"message":"bad key ` + key + `"}}`,
			"401 Unauthorized: bad key [redacted]", `"error":{"message":"bad key [redacted]"}`, false},
	} {
		client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Status: c.line, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
		})
		m := testModel()
		m.BaseURL = "http://user:password@backend.test"
		req := hello()
		req.APIKey, req.MaxRetries = key, 2
		seen := 0
		req.OnResponse = func(status int, _ http.Header, _ *llm.Model) error {
			seen += status
			return nil
		}
		lines, msg := read(New(Config{Client: client, Getenv: wiretest.NoEnv}).StreamWith(context.Background(), m, req, Options{}))
		if strings.Join(lines, "|") != "error error" || msg.ErrorMessage != c.message || seen != c.status {
			t.Errorf("%s: %q seen %d: %q", name, lines, seen, msg.ErrorMessage)
		}
		if llm.IsRetryable(msg) != c.retryable {
			t.Errorf("%s: retryable %v", name, !c.retryable)
		}
		if len(msg.Diagnostics) != 1 {
			t.Errorf("%s: diagnostics %+v", name, msg.Diagnostics)
			continue
		}
		d := &msg.Diagnostics[0]
		text := strings.TrimPrefix(strings.TrimPrefix(c.line, fmt.Sprint(c.status)), " ")
		if text == "" {
			text = "Gateway Timeout"
		}
		want := fmt.Sprintf(`{"version":1,"provider":"radius","model":"m-1","url":"http://backend.test/messages","status":%d,"statusText":%q,`, c.status, text)
		if c.details != "" {
			want += c.details + ","
		}
		want += fmt.Sprintf(`"timestampMs":%d}`, d.Timestamp)
		if d.Type != "pi_messages_response_failure" || d.Error.Message != c.message || string(d.Details) != want {
			t.Errorf("%s:\n got %s\nwant %s", name, d.AppendJSON(nil), want)
		}
		if strings.Contains(string(msg.AppendJSON(nil)), key) {
			t.Errorf("%s: the key is in the message", name)
		}
	}
}

// conversation is a prompt, tools and a history of n turns with a tool call each.
func conversation(n int) (string, []llm.Tool, []llm.Message) {
	tools := []llm.Tool{{Name: "look", Description: "d", Parameters: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
	var messages []llm.Message
	for i := range n {
		id := fmt.Sprint("c", i)
		messages = append(messages,
			llm.UserText(fmt.Sprint("question ", i), int64(i)),
			&llm.Assistant{Content: []llm.Block{&llm.ToolCall{ID: id, Name: "look", Arguments: jsontext.Value(`{"a":1}`)}}, API: ID, StopReason: llm.StopToolUse},
			&llm.ToolResult{ToolCallID: id, ToolName: "look", Content: []llm.Block{&llm.Text{Text: "found"}}},
			&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "It is so."}}, API: ID, StopReason: llm.StopStop})
	}
	return "Be brief.", tools, messages
}

func TestMemoryChangesNothing(t *testing.T) {
	prompt, tools, all := conversation(5)
	memo := &llm.Memo{}
	check := func(name string, messages []llm.Message) {
		t.Helper()
		req := hello()
		req.Messages = messages
		fresh := requestOf(t, testModel(), req, Options{}).Body
		req.Memo = memo
		if kept := requestOf(t, testModel(), req, Options{}).Body; !bytes.Equal(kept, fresh) {
			t.Errorf("%s: with memory\n got %s\nwant %s", name, kept, fresh)
		}
	}
	for n := range len(all) + 1 {
		check(fmt.Sprint(n), llm.Fold(prompt, tools, all[:n]))
	}
	check("another branch", llm.Fold(prompt, tools, append(all[:8:8], llm.UserText("else", 9))))
	check("another prompt", llm.Fold("Be long.", tools, all))
	tools[0].Parameters = jsontext.Value(`{}`)
	check("another tool", llm.Fold("Be long.", append(tools[:0:0], llm.Tool{Name: "look", Description: "d"}), all))
	check("a section", append([]llm.Message{&llm.System{Content: llm.Plain("Be long."), Sections: []llm.Section{{Name: "a"}}}}, all...))
	check("another kind", append([]llm.Message{llm.UserText("Be long.", 0)}, all...))
	check("none", nil)
}

func TestRequestsOverlap(t *testing.T) {
	prompt, tools, all := conversation(20)
	memo := &llm.Memo{}
	a := New(Config{Getenv: wiretest.NoEnv})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 20 {
				req := hello()
				req.Messages = llm.Fold(prompt, tools, all[:(i+1)*n])
				fresh := (&exchange{host: a.host, model: testModel(), req: req}).body()
				req.Memo = memo
				if kept := (&exchange{host: a.host, model: testModel(), req: req}).body(); !bytes.Equal(kept, fresh) {
					t.Errorf("%d messages: %s", len(req.Messages), kept)
				}
			}
		})
	}
	wg.Wait()
}

// A turn of a long conversation allocates as often as one of a short.
func TestTurnAllocatesByWhatIsNew(t *testing.T) {
	allocs := func(turns int) float64 {
		build := turn(turns)
		build()
		return testing.AllocsPerRun(20, build)
	}
	if short, long := allocs(5), allocs(500); long > short+5 {
		t.Errorf("%v allocations for 5 turns, %v for 500", short, long)
	}
}
