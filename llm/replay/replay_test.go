package replay_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/bedrock"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/llm/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretKey    = "sk-very-secret-key-0123456789"
	secretHeader = "header-secret-0123456789"
	secretEnv    = "environment-secret-0123456789"
)

var answer = []string{
	"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grü\xc3",
	"\x9fe, " + secretEnv + "\"}}]}\n\n",
	"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n",
	"data: [DONE]\n\n",
}

// service answers with the handlers in turn.
func service(t *testing.T, handlers ...http.HandlerFunc) string {
	n := 0
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		handlers[n](w, r)
		n++
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

func events(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Set-Cookie", "session="+secretEnv)
		for _, c := range chunks {
			io.WriteString(w, c)
			w.(http.Flusher).Flush()
		}
	}
}

func model(url string) *llm.Model {
	return &llm.Model{
		ID: "m", Name: "M", API: completions.ID, Provider: "p", BaseURL: url + "/v1", Input: []string{"text"},
		ContextWindow: 1000, MaxTokens: 100, Cost: llm.Rates{Input: 1, Output: 2},
		Headers: map[string]string{"X-Auth-Token": secretHeader},
	}
}

func question(text string) *llm.Request {
	return &llm.Request{
		Messages: []llm.Message{&llm.User{Content: llm.Plain(text)}},
		Options:  llm.Options{APIKey: secretKey},
	}
}

// run is the events of a request, without what depends on the time.
func run(t *testing.T, ctx context.Context, stream func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error), m *llm.Model, req *llm.Request) (string, *llm.Assistant) {
	t.Helper()
	s, err := stream(ctx, m, req)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	var last *llm.Assistant
	for ev := range s.Events() {
		fmt.Fprintf(&log, "%s %d %q\n", ev.Type, ev.Index, ev.Delta)
		if ev.Message != nil {
			last = ev.Message
		}
	}
	last.Timestamp, last.DurationMs = 0, nil
	b, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	return log.String() + string(b), last
}

func recorder(t *testing.T) (*replay.Recorder, *llm.Registry, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rec.jsonl")
	rec, err := replay.Create(path, replay.Options{
		Program: "test", Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Secrets: func() []string { return []string{secretEnv} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec, llm.NewRegistry(rec.Wrap(completions.New(completions.Config{Getenv: func(string) string { return "" }}))), path
}

// played is a registry with the recording in it, and the model to ask.
func played(t *testing.T, path string) (*replay.Recording, *llm.Registry, *llm.Model) {
	t.Helper()
	rec, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	none := func(string) string { return "" }
	registry := llm.NewRegistry(completions.New(completions.Config{Getenv: none}), anthropic.New(anthropic.Config{Getenv: none}))
	registry.Register(rec.API(registry.Stream))
	return rec, registry, rec.Model("rec.jsonl")
}

func TestRoundTrip(t *testing.T) {
	url := service(t,
		events(answer...),
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(429)
			io.WriteString(w, `{"error":{"message":"slow down `+secretHeader+`"}}`)
		},
		events(answer...),
		events(answer[:2]...), // cut off by the server
	)
	rec, registry, path := recorder(t)
	m := model(strings.Replace(url, "http://", "http://user:"+secretHeader+"@", 1))
	var want []string
	for i, text := range []string{"one " + secretKey, "two", "three"} {
		req := question(text)
		req.MaxRetries = 1
		got, _ := run(t, t.Context(), registry.Stream, m, req)
		want = append(want, got)
		if i == 0 && !strings.Contains(got, "Grüße") {
			t.Errorf("the answer is %s", got)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secretKey, secretHeader, secretEnv} {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("the recording holds %s:\n%s", secret, file)
		}
	}
	if fi, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	player, registry, stand := played(t, path)
	if player.Left() != 4 {
		t.Errorf("%d requests recorded, want 4", player.Left())
	}
	for i := range want {
		req := question("anything")
		req.MaxRetries = 1
		got, _ := run(t, t.Context(), registry.Stream, stand, req)
		if exp := strings.ReplaceAll(want[i], secretEnv, "[redacted]"); got != exp {
			t.Errorf("request %d gave\n%s\nwant\n%s", i, got, exp)
		}
	}
	_, last := run(t, t.Context(), registry.Stream, stand, question("more"))
	if want := "holds 4 requests"; !strings.Contains(last.ErrorMessage, want) {
		t.Errorf("error %q lacks %q", last.ErrorMessage, want)
	}
}

func TestAbortAndNoConnection(t *testing.T) {
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		events(answer[:2]...)(w, r)
		<-r.Context().Done()
	})
	rec, registry, path := recorder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, aborted := run(t, ctx, registry.Stream, model(url), question("q"))
	if aborted.StopReason != llm.StopAborted {
		t.Fatalf("stop reason %s", aborted.StopReason)
	}
	_, refused := run(t, t.Context(), registry.Stream, model("http://127.0.0.1:1"), question("q"))
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	_, registry, stand := played(t, path)
	_, got := run(t, t.Context(), registry.Stream, stand, question("q"))
	if want := "stopped reading here"; !strings.Contains(got.ErrorMessage, want) || len(got.Content) != 1 {
		t.Errorf("error %q, content %v", got.ErrorMessage, got.Content)
	}
	_, got = run(t, t.Context(), registry.Stream, stand, question("q"))
	if !strings.Contains(refused.ErrorMessage, "connection refused") || !strings.Contains(got.ErrorMessage, "connection refused") {
		t.Errorf("errors %q and %q", refused.ErrorMessage, got.ErrorMessage)
	}
}

func TestRecordAPlayback(t *testing.T) {
	rec, registry, path := recorder(t)
	first, _ := run(t, t.Context(), registry.Stream, model(service(t, events(answer...))), question("q"))
	rec.Close()
	player, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again, registry, second := recorder(t)
	registry.Register(player.API(registry.Stream))
	got, _ := run(t, t.Context(), registry.Stream, player.Model("x"), question("q"))
	again.Close()
	if want := strings.ReplaceAll(first, secretEnv, "[redacted]"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if rec, err := replay.Open(second); err != nil || rec.Left() != 1 {
		t.Errorf("recording of a playback: %v", err)
	}
}

func TestBadRecordings(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "it is empty"},
		{"foreign", "{\"type\":\"session\"}\n", "does not begin like a recording"},
		{"no json", "hello\n", "does not begin like a recording"},
		{"newer", "{\"type\":\"recording\",\"version\":99}\n", "update the program"},
		{"nothing in it", "{\"type\":\"recording\",\"version\":1}\n", "holds no request"},
		{"torn", "{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\",\"model\"", "line 2"},
		{"of itself", "{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\",\"model\":{\"id\":\"m\",\"api\":\"replay\"}}\n", "line 2: it is the recording of a recording"},
		{"lying sizes", "{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\",\"response\":{\"text\":\"x\",\"sizes\":[5]}}\n", "line 2: sizes"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := replay.Open(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := replay.Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file opens")
	}
	if _, err := replay.Create(filepath.Join(dir, "torn"), replay.Options{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("an existing file: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\",\"model\":{\"id\":\"m\",\"api\":\"openai-completions\",\"provider\":\"p\",\"baseUrl\":\"http://h/v1\"},\"request\":{\"method\":\"POST\",\"url\":\"http://h\"},\"response\":{\"status\":200,\"header\":{\"content-type\":\"text/event-stream\"},\"text\":\"data: [DONE]\\n\\n\",\"sizes\":[3,4]}}\n"))
	f.Add([]byte("{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\",\"error\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := replay.Open(path)
		if err != nil {
			return
		}
		registry := llm.NewRegistry(completions.New(completions.Config{}), anthropic.New(anthropic.Config{}))
		registry.Register(rec.API(registry.Stream))
		for range min(rec.Left(), 3) {
			s, err := registry.Stream(t.Context(), rec.Model("f"), question("q"))
			if err == nil && s.Result() == nil {
				t.Fatal("no message")
			}
		}
	})
}

// The keys that sign a request are nowhere in its header, and the answer of
// Bedrock is no text.
func TestSigningKeysStayOut(t *testing.T) {
	const secret, token = "profile-secret-0123456789", "profile-token-0123456789"
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "keys"), []byte("[default]\naws_access_key_id=AK\naws_secret_access_key="+secret+"\naws_session_token="+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"message":"x-amz-security-token:`+token+`"}`)
	}, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "\xff"+token+" "+secret) })
	path := filepath.Join(t.TempDir(), "rec.jsonl")
	rec, err := replay.Create(path, replay.Options{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	registry := llm.NewRegistry(rec.Wrap(bedrock.New(bedrock.Config{Getenv: func(string) string { return "" }})))
	m := model(url)
	m.API, m.Headers = bedrock.ID, nil
	for range 2 {
		req := question("is it " + secret + "?")
		req.APIKey, req.Env = "", map[string]string{"HOME": home, "USERPROFILE": home, "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "keys")}
		if _, last := run(t, t.Context(), registry.Stream, m, req); last.StopReason != llm.StopError {
			t.Errorf("%+v", last)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const opening = `"base64":"`
	_, rest, ok := bytes.Cut(file, []byte(opening))
	if !ok {
		t.Fatalf("there is no answer of bytes in %s", file)
	}
	binary, err := base64.StdEncoding.DecodeString(string(rest[:bytes.IndexByte(rest, '"')]))
	if err != nil || string(binary) != "\xff[redacted] [redacted]" {
		t.Errorf("%q, %v", binary, err)
	}
	if bytes.Contains(file, []byte(secret)) || bytes.Contains(file, []byte(token)) || bytes.Count(file, []byte("is it [redacted]?")) != 2 {
		t.Errorf("the recording is\n%s", file)
	}
}

// goodMorning is a service that says one thing.
type goodMorning struct{}

func (goodMorning) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
		Body: io.NopCloser(strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"Good morning.\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")),
	}, nil
}

// A recording ends where it could not be read again, and says so.
func TestRecordingIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		events("data: {\"choices\":[{\"delta\":{\"content\":\"start\"}}]}\n\n")(w, r)
		for range 20 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", long)
		}
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	rec, registry, path := recorder(t)
	if _, m := run(t, t.Context(), registry.Stream, model(url), question("q")); m.StopReason != llm.StopStop {
		t.Fatal(m.ErrorMessage)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	_, registry, stand := played(t, path)
	_, m := run(t, t.Context(), registry.Stream, stand, question("q"))
	text := llm.TextOf(m.Content, "")
	if !strings.HasPrefix(text, "startxxx") || !strings.Contains(m.ErrorMessage, "keeps 16 MiB") {
		t.Errorf("%d bytes, error %q", len(text), m.ErrorMessage)
	}
	if strings.Trim(strings.TrimPrefix(text, "start"), "x") != "" {
		t.Error("a piece is missing in the middle")
	}
}
