package google

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
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
	read     = wiretest.Read
)

// requestOf is the request that a stream sends.
func requestOf(t testing.TB, make func(Config) *API, start func(*API) (*llm.Stream, error)) (got wiretest.Sent) {
	t.Helper()
	client := wiretest.Keep(&got, sse(finish("STOP")))
	s, err := start(make(Config{Client: client, Getenv: wiretest.NoEnv}))
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Result(); m.ErrorMessage != "" {
		t.Fatal(m.ErrorMessage)
	}
	return got
}

// bodyOf is the body that Stream sends.
func bodyOf(t testing.TB, m *llm.Model, req *llm.Request) []byte {
	t.Helper()
	return requestOf(t, New, func(a *API) (*llm.Stream, error) { return a.Stream(context.Background(), m, req) }).Body
}

func member(body []byte, path ...string) string {
	for _, name := range path {
		body = jsonwire.Get(body, name)
	}
	return string(body)
}

func foreign(blocks ...llm.Block) *llm.Assistant {
	return &llm.Assistant{Content: blocks, API: "openai-responses", Provider: "openai", Model: "g", StopReason: llm.StopStop}
}

func TestMessages(t *testing.T) {
	const u, ok = `{"parts":[{"text":"u"}],"role":"user"}`, "c2ln"
	user := llm.UserText("u", 1)
	image := &llm.Image{Data: "QQ==", MimeType: "image/png"}
	const imagePart = `{"inlineData":{"mimeType":"image/png","data":"QQ=="}}`
	older, newer := testModel("gemini-2.5-pro"), testModel("gemini-3-pro")
	signedText := func(s, signature string) *llm.Text { return &llm.Text{Text: s, Signature: &signature} }
	think := func(s, signature string) *llm.Thinking { return &llm.Thinking{Thinking: s, Signature: &signature} }
	call := func(id string) *llm.ToolCall {
		c := toolCall(id, "look", `{"b": 1.50}`)
		c.ThoughtSignature = new(ok)
		return c
	}
	failed := result("1", text("no"))
	failed.IsError = true

	for name, c := range map[string]struct {
		model *llm.Model
		in    []llm.Message
		want  string
	}{
		"blocks of a user":      {older, []llm.Message{&llm.User{Content: llm.Blocks(text(""), image, text(" "))}}, `{"parts":[{"text":""},` + imagePart + `,{"text":" "}],"role":"user"}`},
		"no blocks":             {older, []llm.Message{user, &llm.User{Content: llm.Blocks()}}, u},
		"blank answer":          {older, []llm.Message{user, own(older, text(" \n")), user}, u + "," + u},
		"signed blank":          {older, []llm.Message{user, own(older, signedText("", ok), text("a")), user}, u + `,{"parts":[{"text":"","thoughtSignature":"c2ln"},{"text":"a"}],"role":"model"},` + u},
		"bad signature":         {older, []llm.Message{user, own(older, signedText("a", "c2l"), signedText("", "!!!!"), signedText("b", "c2==ln==")), user}, u + `,{"parts":[{"text":"a"},{"text":"b"}],"role":"model"},` + u},
		"thinking":              {older, []llm.Message{user, own(older, think("t", ok), &llm.Thinking{Thinking: "p"}, think(" ", "x"), text("a")), user}, u + `,{"parts":[{"text":"t","thought":true,"thoughtSignature":"c2ln"},{"text":"p","thought":true},{"text":"a"}],"role":"model"},` + u},
		"half in a thought":     {older, []llm.Message{user, own(older, think("t\xed\xa0\xbd", ok)), user}, u + `,{"parts":[{"text":"t","thought":true,"thoughtSignature":"c2ln"}],"role":"model"},` + u},
		"other model":           {older, []llm.Message{user, foreign(think("t", ok), signedText("a", ok)), user}, u + `,{"parts":[{"text":"a"}],"role":"model"},` + u},
		"call":                  {older, []llm.Message{user, own(older, call("1")), result("1", text("r"))}, u + `,{"parts":[{"functionCall":{"args":{"b":1.5},"name":"look"},"thoughtSignature":"c2ln"}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":"r"}}}],"role":"user"}`},
		"call with id":          {newer, []llm.Message{user, own(newer, call("own.id")), result("own.id", text("r"))}, u + `,{"parts":[{"functionCall":{"args":{"b":1.5},"id":"own.id","name":"look"},"thoughtSignature":"c2ln"}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":"r"},"id":"own.id"}}],"role":"user"}`},
		"foreign id":            {newer, []llm.Message{user, foreign(call("a|b🙈")), result("a|b🙈", text("r"))}, u + `,{"parts":[{"functionCall":{"args":{"b":1.5},"id":"a_b__","name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":"r"},"id":"a_b__"}}],"role":"user"}`},
		"long foreign id":       {newer, []llm.Message{user, foreign(toolCall(strings.Repeat("x", 70), "look", `{}`)), result(strings.Repeat("x", 70))}, u + `,{"parts":[{"functionCall":{"args":{},"id":"` + strings.Repeat("x", 64) + `","name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":""},"id":"` + strings.Repeat("x", 64) + `"}}],"role":"user"}`},
		"invented name":         {older, []llm.Message{user, own(older, toolCall("1", "9 läs", `{}`)), &llm.ToolResult{ToolCallID: "1", ToolName: "9 läs"}}, u + `,{"parts":[{"functionCall":{"args":{},"name":"_9_l_s"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"_9_l_s","response":{"output":""}}}],"role":"user"}`},
		"result of other name":  {older, []llm.Message{user, own(older, toolCall("1", "see", `{}`), toolCall("2", "look", `{}`)), result("2"), result("1")}, u + `,{"parts":[{"functionCall":{"args":{},"name":"see"}},{"functionCall":{"args":{},"name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":""}}},{"functionResponse":{"name":"see","response":{"output":""}}}],"role":"user"}`},
		"error":                 {older, []llm.Message{user, own(older, toolCall("1", "look", `{}`)), failed}, u + `,{"parts":[{"functionCall":{"args":{},"name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"error":"no"}}}],"role":"user"}`},
		"images of newer model": {newer, []llm.Message{user, own(newer, toolCall("1", "look", `{}`)), result("1", image)}, u + `,{"parts":[{"functionCall":{"args":{},"id":"1","name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":"(see attached image)"},"parts":[` + imagePart + `],"id":"1"}}],"role":"user"}`},
		"images of older model": {older, []llm.Message{user, own(older, toolCall("1", "look", `{}`), toolCall("2", "look", `{}`), toolCall("3", "look", `{}`)), result("1", text("a"), text("b")), result("2", image, text("c")), result("3")},
			u + `,{"parts":[{"functionCall":{"args":{},"name":"look"}},{"functionCall":{"args":{},"name":"look"}},{"functionCall":{"args":{},"name":"look"}}],"role":"model"}` +
				`,{"parts":[{"functionResponse":{"name":"look","response":{"output":"a\nb"}}},{"functionResponse":{"name":"look","response":{"output":"c"}}}],"role":"user"}` +
				`,{"parts":[{"text":"Tool result image:"},` + imagePart + `],"role":"user"}` +
				`,{"parts":[{"functionResponse":{"name":"look","response":{"output":""}}}],"role":"user"}`},
		"broken arguments": {older, []llm.Message{user, own(older, toolCall("1", "look", `{"a":`)), result("1")}, u + `,{"parts":[{"functionCall":{"args":{},"name":"look"}}],"role":"model"},{"parts":[{"functionResponse":{"name":"look","response":{"output":""}}}],"role":"user"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := member(bodyOf(t, c.model, keyed(c.in...)), "contents"); got != "["+c.want+"]" {
				t.Errorf("got  %s\nwant [%s]", got, c.want)
			}
		})
	}
}

// The two services' libraries order members differently.
func TestVertexOrder(t *testing.T) {
	m := testModel("gemini-3-pro")
	m.API, m.BaseURL = VertexID, "http://service.test"
	answer := own(m, toolCall("1", "look", `{}`))
	answer.API = VertexID
	req := keyed(llm.UserText("u", 1), answer, result("1", &llm.Image{Data: "QQ==", MimeType: "image/png"}))
	got := requestOf(t, NewVertex, func(a *API) (*llm.Stream, error) { return a.Stream(context.Background(), m, req) })
	want := `[{"parts":[{"text":"u"}],"role":"user"},{"parts":[{"functionCall":{"name":"look","args":{},"id":"1"}}],"role":"model"},` +
		`{"parts":[{"functionResponse":{"id":"1","name":"look","response":{"output":"(see attached image)"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}}],"role":"user"}]`
	if contents := member(got.Body, "contents"); contents != want {
		t.Errorf("got  %s\nwant %s", contents, want)
	}
}

// An endpoint that refuses a request with blank texts, or with images between
// results, gets it without.
func TestCautiousRequest(t *testing.T) {
	image := &llm.Image{Data: "QQ==", MimeType: "image/png"}
	const shown = `{"parts":[{"text":"Tool result image:"},{"inlineData":{"mimeType":"image/png","data":"QQ=="}}],"role":"user"}`
	for _, c := range []struct {
		in       []llm.Message
		refusal  string
		requests int
		last     string
		stop     llm.StopReason
	}{
		{[]llm.Message{llm.UserText(" ", 1), &llm.User{Content: llm.Blocks(text(""), text("u"))}}, `{"error":{"message":"empty text parameter"}}`, 2, `[{"parts":[{"text":"u"}],"role":"user"}]`, llm.StopStop},
		{[]llm.Message{llm.UserText("u", 1)}, `{"error":{"message":"bad"}}`, 1, `[{"parts":[{"text":"u"}],"role":"user"}]`, llm.StopError},
		{[]llm.Message{llm.UserText(" ", 1)}, `{"error":{"message":"The input token count (9) exceeds the maximum"}}`, 1, `[{"parts":[{"text":" "}],"role":"user"}]`, llm.StopError},
		{[]llm.Message{llm.UserText("u", 1), own(testModel("gemini-2.5-pro"), toolCall("1", "a", `{}`), toolCall("2", "b", `{}`)), result("1", image), result("2", image), llm.UserText("v", 1)}, `{"error":{}}`, 2,
			`[{"parts":[{"text":"u"}],"role":"user"},{"parts":[{"functionCall":{"args":{},"name":"a"}},{"functionCall":{"args":{},"name":"b"}}],"role":"model"},` +
				`{"parts":[{"functionResponse":{"name":"a","response":{"output":"(see attached image)"}}},{"functionResponse":{"name":"b","response":{"output":"(see attached image)"}}}],"role":"user"},` +
				shown + "," + shown + `,{"parts":[{"text":"v"}],"role":"user"}]`, llm.StopStop},
		{[]llm.Message{llm.UserText("u", 1), own(testModel("gemini-2.5-pro"), toolCall("1", "a", `{}`)), result("1", image)}, `{"error":{}}`, 1,
			`[{"parts":[{"text":"u"}],"role":"user"},{"parts":[{"functionCall":{"args":{},"name":"a"}}],"role":"model"},` +
				`{"parts":[{"functionResponse":{"name":"a","response":{"output":"(see attached image)"}}}],"role":"user"},` + shown + `]`, llm.StopError},
	} {
		var bodies [][]byte
		client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if bodies = append(bodies, body); len(bodies) == 1 {
				return wiretest.Response(r, 400, "application/json", strings.NewReader(c.refusal)), err
			}
			return wiretest.Response(r, 200, "text/event-stream", strings.NewReader(sse(finish("STOP")))), err
		})
		s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), keyed(c.in...))
		if err != nil {
			t.Fatal(err)
		}
		m := s.Result()
		if len(bodies) != c.requests || member(bodies[len(bodies)-1], "contents") != c.last || m.StopReason != c.stop {
			t.Errorf("%s %q after %d requests, the last of %s", m.StopReason, m.ErrorMessage, len(bodies), bodies[len(bodies)-1])
		}
	}
}

func TestLegalNames(t *testing.T) {
	for in, want := range map[string]string{
		"read": "read", "_x": "_x", "a.b:c-d": "a.b:c-d", "1st": "_1st", "-x": "_-x", "": "unknown", "a b": "a_b",
		strings.Repeat("a", 200): strings.Repeat("a", 128), "\U0001F648": "__", "9" + strings.Repeat("a", 127): "_9" + strings.Repeat("a", 126),
	} {
		if got := legalName(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHeadAndConfig(t *testing.T) {
	m := testModel("gemini-2.0-flash")
	m.Reasoning = false
	tool := llm.Tool{Name: "look", Description: "Look.", Parameters: jsontext.Value(`{ "type": "object" }`)}
	messages := llm.Fold("Be brief.", []llm.Tool{tool}, []llm.Message{llm.UserText("u", 1)})
	req := &llm.Request{Messages: messages, Options: llm.Options{APIKey: "k", Temperature: new(0.5), MaxTokens: 9}}
	want := `{"contents":[{"parts":[{"text":"u"}],"role":"user"}],"systemInstruction":{"parts":[{"text":"Be brief."}],"role":"user"},` +
		`"tools":[{"functionDeclarations":[{"name":"look","description":"Look.","parametersJsonSchema":{"type":"object"}}]}],` +
		`"generationConfig":{"temperature":0.5,"maxOutputTokens":9}}`
	got := requestOf(t, New, func(a *API) (*llm.Stream, error) { return a.Stream(context.Background(), m, req) })
	if string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
	if want := "http://service.test/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse"; got.URL != want {
		t.Errorf("got %s, want %s", got.URL, want)
	}
	if h := got.Header; h.Get("X-Goog-Api-Key") != "k" || h.Get("Accept") != "*/*" || h.Get("Authorization") != "" {
		t.Errorf("header %v", h)
	}
	// Without the limits of Stream, what is not said is not sent.
	got = requestOf(t, New, func(a *API) (*llm.Stream, error) {
		return a.StreamWith(context.Background(), m, keyed(llm.UserText("u", 1)), Options{}), nil
	})
	if want := `{"contents":[{"parts":[{"text":"u"}],"role":"user"}],"generationConfig":{}}`; string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
}

func TestModelPaths(t *testing.T) {
	for id, want := range map[string]string{
		"gemini-2.5-pro": "models/gemini-2.5-pro", "models/x": "models/x", "tunedModels/my-1": "tunedModels/my-1", "a b?c": "models/a%20b%3Fc",
	} {
		if got := modelPath(id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	m := testModel("gemini-2.5-pro")
	m.BaseURL = ""
	got := requestOf(t, New, func(a *API) (*llm.Stream, error) {
		return a.Stream(context.Background(), m, keyed(llm.UserText("u", 1)))
	})
	if want := defaultBaseURL + "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"; got.URL != want {
		t.Errorf("got %s, want %s", got.URL, want)
	}
}

func TestKey(t *testing.T) {
	a := New(Config{Client: wiretest.Answers(), Getenv: wiretest.NoEnv})
	m := testModel("gemini-2.5-pro")
	var none *llm.KeyError
	if _, err := a.Stream(context.Background(), m, &llm.Request{}); !errors.As(err, &none) || none.Provider != "google" {
		t.Errorf("got %v", err)
	}
	got := a.StreamWith(context.Background(), m, &llm.Request{}, Options{}).Result()
	if got.StopReason != llm.StopError || got.ErrorMessage != (&llm.KeyError{Provider: "google"}).Error() {
		t.Errorf("got %s %q", got.StopReason, got.ErrorMessage)
	}
}

func TestCallingMode(t *testing.T) {
	plain := llm.Tool{Name: "look", Parameters: jsontext.Value(`{"type":"object","properties":{}}`)}
	strict := plain
	strict.ConstrainedSampling = jsontext.Value(`{"type":"json_schema","strict":"prefer"}`)
	for _, c := range []struct {
		id     string
		tool   llm.Tool
		choice string
		own    string
		want   string
	}{
		{"gemini-2.5-pro", plain, "", "", ""},
		{"gemini-2.5-pro", plain, "auto", "", "AUTO"},
		{"gemini-2.5-pro", plain, "none", "", "NONE"},
		{"gemini-2.5-pro", plain, "auto", "any", "ANY"},
		{"gemini-2.5-pro", strict, "", "", ""}, // too old for it
		{"gemini-3-pro", strict, "", "", "VALIDATED"},
		{"gemini-3-pro", strict, "auto", "", "VALIDATED"},
		{"gemini-3-pro", strict, "none", "", "NONE"},
		{"gemini-3-pro", strict, "", "any", "ANY"},
		{"gemini-3-pro", plain, "", "", ""},
	} {
		req := keyed(llm.Fold("", []llm.Tool{c.tool}, []llm.Message{llm.UserText("u", 1)})...)
		req.ToolChoice = c.choice
		got := requestOf(t, New, func(a *API) (*llm.Stream, error) {
			return a.StreamWith(context.Background(), testModel(c.id), req, Options{ToolChoice: c.own}), nil
		})
		want := ""
		if c.want != "" {
			want = `"` + c.want + `"`
		}
		if mode := member(got.Body, "toolConfig", "functionCallingConfig", "mode"); mode != want {
			t.Errorf("%+v: got %s", c, mode)
		}
	}
	req := keyed(llm.UserText("u", 1))
	req.ToolChoice = "none" // without tools there is nothing to choose
	if got := member(bodyOf(t, testModel("gemini-3-pro"), req), "toolConfig"); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestRequiredTools(t *testing.T) {
	tool := llm.Tool{Name: "look", Parameters: jsontext.Value(`{"type":"object"}`), ConstrainedSampling: jsontext.Value(`{"type":"json_schema","strict":"require"}`)}
	req := keyed(llm.Fold("", []llm.Tool{tool}, []llm.Message{llm.UserText("u", 1)})...)
	req.Memo = &llm.Memo{}
	a := New(Config{Client: wiretest.Answers(), Getenv: wiretest.NoEnv})
	for range 2 { // also when the answer is remembered
		s, err := a.Stream(context.Background(), testModel("gemini-2.5-pro"), req)
		if err != nil {
			t.Fatal(err)
		}
		want := `Tool "look" requires JSON-schema constrained sampling, but strict tools are unsupported.`
		if m := s.Result(); m.StopReason != llm.StopError || m.ErrorMessage != want {
			t.Errorf("got %s %q", m.StopReason, m.ErrorMessage)
		}
	}
}

func TestSchemas(t *testing.T) {
	for in, want := range map[string]string{
		`{"const":"a"}`:                                   `{"enum":["a"]}`,
		`{"const":-1.50}`:                                 `{"enum":[-1.5]}`,
		`{"const":true}`:                                  `{"const":true}`,
		`{"const":null}`:                                  `{"const":null}`,
		`{"const":{"a":1}}`:                               `{"const":{"a":1}}`,
		`{"const":"a","enum":["a","b"]}`:                  `{"const":"a","enum":["a","b"]}`,
		`{"properties":{"const":{"const":"a"}}}`:          `{"properties":{"const":{"enum":["a"]}}}`,
		`{"properties":{"enum":{"const":"a"}}}`:           `{"properties":{"enum":{"enum":["a"]}}}`,
		`{"properties":{"properties":{"const":1}}}`:       `{"properties":{"properties":{"enum":[1]}}}`,
		`{"$defs":{"default":{"const":"a"}}}`:             `{"$defs":{"default":{"enum":["a"]}}}`,
		`{"default":{"const":"a"}}`:                       `{"default":{"const":"a"}}`,
		`{"examples":[{"const":"a"}]}`:                    `{"examples":[{"const":"a"}]}`,
		`{"anyOf":[{"const":"a"},{"items":{"const":2}}]}`: `{"anyOf":[{"enum":["a"]},{"items":{"enum":[2]}}]}`,
		`{"not":{"const":"a"},"x":[ ]}`:                   `{"not":{"enum":["a"]},"x":[]}`,
		`true`:                                            `true`,
		`{"a":`:                                           `null`,
		`{"\"":{"const":"\u00e4"}}`:                       `{"\"":{"enum":["ä"]}}`,
	} {
		if got := string(appendSchema(nil, []byte(in))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
}

// conversation is a history of turns with calls.
func conversation(m *llm.Model, turns int) []llm.Message {
	all := llm.Fold("Be brief.", []llm.Tool{{Name: "look", Parameters: jsontext.Value(`{"type":"object"}`)}}, nil)
	for i := range turns {
		id := fmt.Sprint("c", i)
		all = append(all, llm.UserText(fmt.Sprint("question ", i), 1), own(m, text("wait"), toolCall(id, "look", `{"a":1}`)),
			result(id, text("seen"), &llm.Image{Data: "QQ==", MimeType: "image/png"}), own(m, text("done")))
	}
	return append(all, llm.UserText("and now?", 1))
}

func TestConversationIsEncodedOnce(t *testing.T) {
	m := testModel("gemini-2.5-pro")
	all := conversation(m, 20)
	memo := &llm.Memo{}
	for n := 1; n <= len(all); n++ {
		req := keyed(all[:n]...)
		fresh := bodyOf(t, m, req)
		req.Memo = memo
		if kept := bodyOf(t, m, req); !bytes.Equal(kept, fresh) {
			t.Fatalf("with memory after %d messages:\n got %s\nwant %s", n, kept, fresh)
		}
	}
	// What was encoded in the first turn is still the same memory.
	e := &encoder{model: m, rules: RulesOf(m.ID)}
	slots := func() []*byte {
		tr := transcript.HistoryOf[encoded](memo, e.historyKey()).Build(all, e.transcriptRules())
		defer tr.Done()
		p := []*byte{unsafe.SliceData(tr.Head.head.tools)}
		for i := range tr.Items {
			p = append(p, unsafe.SliceData(tr.Items[i].Wire.json))
		}
		return p
	}
	before := slots()
	bodyOf(t, m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
	for i, p := range slots() {
		if p == nil || p != before[i] {
			t.Errorf("item %d was encoded again", i)
		}
	}
}

// A turn of a long conversation allocates as often as one of a short.
func TestTurnAllocatesByWhatIsNew(t *testing.T) {
	allocs := func(turns int) float64 {
		m := testModel("gemini-2.5-pro")
		all := conversation(m, turns)
		a := New(Config{Getenv: wiretest.NoEnv})
		memo := &llm.Memo{}
		build := func() {
			x := a.exchange(context.Background(), m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
			if _, err := x.body(); err != nil {
				t.Fatal(err)
			}
		}
		build()
		return testing.AllocsPerRun(20, build)
	}
	short, long := allocs(5), allocs(500)
	if long > short+5 {
		t.Errorf("%v allocations for 5 turns, %v for 500", short, long)
	}
}

func BenchmarkGoogleTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			m := testModel("gemini-2.5-pro")
			all := conversation(m, turns)
			a := New(Config{Getenv: wiretest.NoEnv})
			memo := &llm.Memo{}
			b.ReportAllocs()
			for b.Loop() {
				x := a.exchange(context.Background(), m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}})
				if _, err := x.body(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
