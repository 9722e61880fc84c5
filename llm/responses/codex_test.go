package responses

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// codexAnswer is the stream of a short answer.
const codexAnswer = `data: {"type":"response.created","response":{"id":"r"}}` + "\n\n" +
	`data: {"type":"response.done","response":{"id":"r","status":"resting","end_turn":false,"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}` + "\n\n"

// codexService answers requests one after the other and keeps them. It waits
// for nothing.
type codexService struct {
	answers []codexReply
	sent    []*http.Request
	bodies  [][]byte // unpacked
	waits   []time.Duration
	wait    func(ctx context.Context) error
}

type codexReply struct {
	status int
	body   string
	header map[string]string
	err    error // in place of an answer
}

func (s *codexService) config(t testing.TB) Config {
	return Config{
		Client: wiretest.Client(func(r *http.Request) (*http.Response, error) {
			packed, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if len(s.sent) >= len(s.answers) {
				t.Errorf("request %d is one too many", len(s.sent)+1)
				return nil, errors.New("no answer")
			}
			a := s.answers[len(s.sent)]
			s.sent, s.bodies = append(s.sent, r), append(s.bodies, unpack(t, packed))
			if a.err != nil {
				return nil, a.err
			}
			resp := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}
			for name, v := range a.header {
				resp.Header.Set(name, v)
			}
			return resp, nil
		}),
		Getenv: wiretest.NoEnv,
		Now:    func() time.Time { return codexNow },
		Wait: func(ctx context.Context, d time.Duration) error {
			s.waits = append(s.waits, d)
			if s.wait != nil {
				return s.wait(ctx)
			}
			return ctx.Err()
		},
	}
}

func codexModel() *llm.Model {
	return &llm.Model{ID: "m", API: CodexID, Provider: "openai-codex", Reasoning: true, ContextWindow: 100000, MaxTokens: 9000}
}

func codexRequest() *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: llm.Options{APIKey: codexToken(codexClaims)}}
}

// askCodex sends one request with plain options and returns its answer.
func askCodex(t testing.TB, s *codexService, m *llm.Model, req *llm.Request) *llm.Assistant {
	t.Helper()
	stream, err := NewCodex(s.config(t)).Stream(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream.Result()
}

func TestCodexRequest(t *testing.T) {
	s := &codexService{answers: []codexReply{{status: 200, body: codexAnswer}}}
	m, req := codexModel(), codexRequest()
	m.Headers = map[string]string{"X-Model": "m"}
	req.SessionID = strings.Repeat("é", 65)
	req.Headers = map[string]*string{"openai-beta": nil, "authorization": new("Bearer other"), "originator": new("me"), "X-Own": new("o"), "content-encoding": new("br")}
	req.SamplingParams = jsontext.Value(`{"top_k":1}`)
	answer := askCodex(t, s, m, req)
	if answer.ErrorMessage != "" || answer.StopReason != llm.StopStop || answer.EndTurn == nil || *answer.EndTurn {
		t.Errorf("answer %+v", answer)
	}
	key := strings.Repeat("é", 64)
	sent := s.sent[0]
	if got := sent.URL.String(); got != "https://chatgpt.com/backend-api/codex/responses" {
		t.Errorf("sent to %s", got)
	}
	for name, want := range map[string]string{
		"Accept": "text/event-stream", "Authorization": "Bearer " + req.APIKey, "Chatgpt-Account-Id": "acct-1", "Originator": "me",
		"Openai-Beta": "responses=experimental", "Content-Type": "application/json", "Content-Encoding": "zstd", "Session-Id": key, "X-Client-Request-Id": key,
		"X-Model": "m", "X-Own": "o",
	} {
		if got := sent.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if agent := sent.Header.Get("User-Agent"); !strings.HasPrefix(agent, "pinch/") {
		t.Errorf("User-Agent %q", agent)
	}
	want := `{"model":"m","store":false,"stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],` +
		`"text":{"verbosity":"low"},"include":["reasoning.encrypted_content"],"prompt_cache_key":"` + key + `","tool_choice":"auto",` +
		`"parallel_tool_calls":true,"max_output_tokens":9000,"reasoning":{"effort":"none","summary":"auto"}}`
	if got := string(s.bodies[0]); got != want {
		t.Errorf("body\n got %s\nwant %s", got, want)
	}
}

func TestCodexMembers(t *testing.T) {
	for name, c := range map[string]struct {
		options CodexOptions
		change  func(*llm.Model, *llm.Request)
		want    map[string]string // "" for absent
	}{
		"own options": {
			options: CodexOptions{Options: Options{ReasoningEffort: "high", ReasoningSummary: "concise", ServiceTier: "priority",
				ToolChoice: jsontext.Value(`{"type":"function", "name":"f"}`)}, TextVerbosity: "hi\"gh"},
			change: func(_ *llm.Model, r *llm.Request) { r.MaxTokens, r.Temperature = 3, new(0.5) },
			want: map[string]string{"text": `{"verbosity":"hi\"gh"}`, "tool_choice": `{"type":"function","name":"f"}`, "service_tier": `"priority"`,
				"reasoning": `{"effort":"high","summary":"concise"}`, "max_output_tokens": "16", "temperature": "0.5"},
		},
		"no effort": {want: map[string]string{"reasoning": `{"effort":"none"}`, "max_output_tokens": "", "tool_choice": `"auto"`}},
		"a summary alone asks for nothing": {
			options: CodexOptions{Options: Options{ReasoningEffort: llm.LevelOff, ReasoningSummary: "auto"}},
			want:    map[string]string{"reasoning": `{"effort":"none"}`},
		},
		"plain tool choice": {change: func(_ *llm.Model, r *llm.Request) { r.ToolChoice = "none" }, want: map[string]string{"tool_choice": `"none"`}},
		"no reasoning model": {
			change: func(m *llm.Model, _ *llm.Request) { m.Reasoning = false }, want: map[string]string{"reasoning": ""},
		},
		"an effort for no reasoning model": {
			options: CodexOptions{Options: Options{ReasoningEffort: "high"}},
			change:  func(m *llm.Model, _ *llm.Request) { m.Reasoning = false }, want: map[string]string{"reasoning": `{"effort":"high","summary":"auto"}`},
		},
		"efforts in the input": {
			options: CodexOptions{Options: Options{ReasoningEffort: llm.LevelHigh}},
			change:  func(m *llm.Model, _ *llm.Request) { m.Compat = jsontext.Value(`{"supportsMidConvoEffort":true}`) },
			want: map[string]string{"reasoning": `{"effort":"medium","summary":"auto"}`,
				"input": `[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"configuration_update","reasoning":{"effort":"high"}}]`},
		},
		"no key for the cache": {
			change: func(m *llm.Model, r *llm.Request) {
				m.Compat, r.SessionID = jsontext.Value(`{"promptCacheKeyMode":"disabled"}`), "s"
			},
			want: map[string]string{"prompt_cache_key": ""},
		},
	} {
		s := &codexService{answers: []codexReply{{status: 200, body: codexAnswer}}}
		m, req := codexModel(), codexRequest()
		if c.change != nil {
			c.change(m, req)
		}
		answer := NewCodex(s.config(t)).StreamWith(t.Context(), m, req, c.options).Result()
		if answer.ErrorMessage != "" {
			t.Errorf("%s: %s", name, answer.ErrorMessage)
			continue
		}
		for member, want := range c.want {
			if got := string(jsonwire.Get(s.bodies[0], member)); got != want {
				t.Errorf("%s: %s is %s, want %s", name, member, got, want)
			}
		}
	}
}

func TestCodexURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                                "https://chatgpt.com/backend-api/codex/responses",
		"https://h.test/x":                "https://h.test/x/codex/responses",
		"https://h.test/x//":              "https://h.test/x/codex/responses",
		"https://h.test/codex":            "https://h.test/codex/responses",
		"https://h.test/codex/responses/": "https://h.test/codex/responses",
		"https://h.test/mycodex":          "https://h.test/mycodex/codex/responses",
	} {
		if got := codexURL(base); got != want {
			t.Errorf("%q: got %s, want %s", base, got, want)
		}
	}
}

func TestCodexAttempts(t *testing.T) {
	busy, ok := codexReply{status: 503, body: "busy"}, codexReply{status: 200, body: codexAnswer}
	limit := codexReply{status: 429, body: `{"error":{"code":"usage_limit_reached","plan_type":"Pro","resets_in_seconds":3600}}`}
	for name, c := range map[string]struct {
		answers []codexReply
		options llm.Options
		waits   []time.Duration
		err     string
	}{
		"success after trouble": {[]codexReply{busy, {status: 500}, {err: errors.New("refused")}, ok}, llm.Options{MaxRetries: 3},
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, ""},
		"the delay that is asked for": {[]codexReply{{status: 429, header: map[string]string{"retry-after": "7"}}, ok}, llm.Options{MaxRetries: 1},
			[]time.Duration{7 * time.Second}, ""},
		"none allowed":           {[]codexReply{busy}, llm.Options{}, nil, "503 busy"},
		"none left":              {[]codexReply{busy, limit}, llm.Options{MaxRetries: 1}, []time.Duration{time.Second}, "You have hit your ChatGPT usage limit (pro plan). Try again in ~60 min."},
		"a plan that is used up": {[]codexReply{limit}, llm.Options{MaxRetries: 5}, nil, "You have hit your ChatGPT usage limit (pro plan). Try again in ~60 min."},
		"our mistake":            {[]codexReply{{status: 400, body: `{"error":{"message":"no such model"}}`}}, llm.Options{MaxRetries: 5}, nil, "no such model"},
		"a delay that is too long": {[]codexReply{{status: 503, body: "busy", header: map[string]string{"retry-after": "61"}}}, llm.Options{MaxRetries: 5}, nil,
			"Server requested 61s retry delay (max: 60s). 503 busy"},
	} {
		s := &codexService{answers: c.answers}
		req := codexRequest()
		req.MaxRetries = c.options.MaxRetries
		var statuses, want []int
		req.OnResponse = func(status int, _ http.Header, _ *llm.Model) error {
			statuses = append(statuses, status)
			return nil
		}
		answer := askCodex(t, s, codexModel(), req)
		if answer.ErrorMessage != c.err || len(s.sent) != len(c.answers) || !slices.Equal(s.waits, c.waits) {
			t.Errorf("%s: %q after %d requests and %v", name, answer.ErrorMessage, len(s.sent), s.waits)
		}
		for i, a := range c.answers {
			if a.err == nil {
				want = append(want, a.status)
			}
			if !slices.Equal(s.bodies[i], s.bodies[0]) {
				t.Errorf("%s: request %d says something else", name, i+1)
			}
		}
		if !slices.Equal(statuses, want) {
			t.Errorf("%s: OnResponse saw %v, want %v", name, statuses, want)
		}
	}
}

func TestCodexAbortWhileWaiting(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	s := &codexService{answers: []codexReply{{status: 503}}}
	s.wait = func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	req := codexRequest()
	req.MaxRetries = 3
	stream, err := NewCodex(s.config(t)).Stream(ctx, codexModel(), req)
	if err != nil {
		t.Fatal(err)
	}
	if answer := stream.Result(); answer.StopReason != llm.StopAborted || len(s.sent) != 1 {
		t.Errorf("%s after %d requests: %s", answer.StopReason, len(s.sent), answer.ErrorMessage)
	}
}

func TestCodexKeys(t *testing.T) {
	a := NewCodex((&codexService{}).config(t))
	req := codexRequest()
	req.APIKey = ""
	_, err := a.Stream(t.Context(), codexModel(), req)
	var noKey *llm.KeyError
	if !errors.As(err, &noKey) {
		t.Errorf("without a key: %v", err)
	}
	if got := a.StreamWith(t.Context(), codexModel(), req, CodexOptions{}).Result().ErrorMessage; got != noKey.Error() {
		t.Errorf("without a key: %s", got)
	}
	req.APIKey = "sk-of-something-else"
	if got := a.StreamWith(t.Context(), codexModel(), req, CodexOptions{}).Result().ErrorMessage; got != "Failed to extract accountId from token" {
		t.Errorf("with a key of another kind: %s", got)
	}
}

func TestCodexAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		event, err, raw string
		stop            llm.StopReason
	}{
		"failed":              {`{"type":"response.failed","response":{"status":"failed","error":{"code":"c","message":"it broke"}}}`, "it broke", "", llm.StopError},
		"failed without text": {`{"type":"response.failed","response":{"status":"failed","error":{"code":"c"}}}`, "Codex response failed: c", "", llm.StopError},
		"error":               {`{"type":"error","error":{"message":"busy"}}`, "Codex error: busy", "", llm.StopError},
		"cancelled":           {`{"type":"response.completed","response":{"status":"cancelled"}}`, "Response cancelled without error details", "cancelled", llm.StopError},
		"cut to length":       {`{"type":"response.done","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`, "", "incomplete.max_output_tokens", llm.StopLength},
		"no status":           {`{"type":"response.completed","response":{}}`, "", "", llm.StopStop},
		"an unknown status":   {`{"type":"response.completed","response":{"status":"resting"}}`, "", "", llm.StopStop},
	} {
		s := &codexService{answers: []codexReply{{status: 200, body: "data: " + c.event}}}
		answer := askCodex(t, s, codexModel(), codexRequest())
		if answer.ErrorMessage != c.err || answer.RawStopReason != c.raw || answer.StopReason != c.stop {
			t.Errorf("%s: %s, %q, raw %q", name, answer.StopReason, answer.ErrorMessage, answer.RawStopReason)
		}
	}
}

func BenchmarkCodexTurn(b *testing.B) {
	m, req := codexModel(), codexRequest()
	for range 500 {
		req.Messages = append(req.Messages,
			&llm.Assistant{Content: []llm.Block{&llm.Text{Text: strings.Repeat("answer ", 40)}}, API: CodexID, Provider: m.Provider, Model: m.ID, StopReason: llm.StopStop},
			llm.UserText(strings.Repeat("question ", 40), 1))
	}
	req.Memo = &llm.Memo{}
	a := NewCodex(Config{Getenv: wiretest.NoEnv})
	x := a.service.exchange(m, req)
	x.simple()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Request(); err != nil {
			b.Fatal(err)
		}
	}
}
