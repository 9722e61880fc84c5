package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

const answerOK = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// issuer is a service that mints access tokens and accepts the newest one.
type issuer struct {
	mu       sync.Mutex
	minted   int
	asserted []map[string]any
	bearers  []string
	refuse   bool // the next message whatever its token
	status   int  // of the token endpoint; 0 for 200
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/v1/oauth/token" {
		var asked map[string]any
		json.Unmarshal(body, &asked)
		s.asserted = append(s.asserted, asked)
		if !strings.Contains(r.Header.Get("Anthropic-Beta"), "oidc-federation-2026-04-01") {
			w.WriteHeader(404)
			return
		}
		if s.status != 0 {
			w.WriteHeader(s.status)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"%s is not known"}`, asked["assertion"])
			return
		}
		s.minted++
		fmt.Fprintf(w, `{"access_token":"sk-ant-oat01-%d","token_type":"Bearer","expires_in":600}`, s.minted)
		return
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.bearers = append(s.bearers, bearer)
	if s.refuse || !strings.Contains(r.Header.Get("Anthropic-Beta"), "oauth-2025-04-20") {
		s.refuse = false
		w.WriteHeader(401)
		io.WriteString(w, `{"error":{"type":"authentication_error","message":"token `+bearer+` is revoked"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, answerOK)
}

func TestWorkloadIdentity(t *testing.T) {
	s := &issuer{}
	ts := httptest.NewServer(s)
	defer ts.Close()
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	api := anthropic.New(anthropic.Config{
		Client: ts.Client(), Now: func() time.Time { return now },
		Getenv: func(name string) string {
			return map[string]string{
				"ANTHROPIC_FEDERATION_RULE_ID": "fdrl_1", "ANTHROPIC_ORGANIZATION_ID": "org",
				"ANTHROPIC_IDENTITY_TOKEN_FILE": file, "ANTHROPIC_WORKSPACE_ID": "wrkspc_1",
			}[name]
		},
	})
	m := &llm.Model{ID: "m", API: anthropic.ID, Provider: "anthropic", BaseURL: ts.URL, MaxTokens: 10}
	ask := func(ctx context.Context) *llm.Assistant {
		t.Helper()
		stream, err := api.Stream(ctx, m, &llm.Request{Messages: []llm.Message{&llm.User{Content: llm.Plain("hi")}}})
		if err != nil {
			t.Fatal(err)
		}
		return stream.Result()
	}
	good := func(step string) {
		t.Helper()
		if got := ask(t.Context()); got.StopReason != llm.StopStop {
			t.Fatalf("%s: %s %q", step, got.StopReason, got.ErrorMessage)
		}
	}
	write("jwt-one\n")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { ask(t.Context()) })
	}
	all.Wait()
	if s.minted != 1 || len(s.bearers) != 4 {
		t.Fatalf("%d tokens for %d messages", s.minted, len(s.bearers))
	}
	want := map[string]any{
		"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "jwt-one",
		"federation_rule_id": "fdrl_1", "organization_id": "org", "workspace_id": "wrkspc_1",
	}
	if fmt.Sprint(s.asserted[0]) != fmt.Sprint(want) {
		t.Errorf("asked with %v, want %v", s.asserted[0], want)
	}

	write("jwt-two")
	now = now.Add(10 * time.Minute)
	good("renewed")
	if s.minted != 2 || s.asserted[1]["assertion"] != "jwt-two" {
		t.Errorf("%d tokens, the second for %v", s.minted, s.asserted[1]["assertion"])
	}

	s.refuse = true
	good("revoked")
	if n := len(s.bearers); s.minted != 3 || s.bearers[n-2] != "sk-ant-oat01-2" || s.bearers[n-1] != "sk-ant-oat01-3" {
		t.Errorf("tokens sent: %v", s.bearers)
	}

	now = now.Add(10 * time.Minute)
	s.status = 400
	got := ask(t.Context())
	if !strings.Contains(got.ErrorMessage, "identity of this workload") || !strings.Contains(got.ErrorMessage, "invalid_grant") ||
		strings.Contains(got.ErrorMessage, "jwt-two") {
		t.Errorf("error %q", got.ErrorMessage)
	}
	write("")
	if got := ask(t.Context()); !strings.Contains(got.ErrorMessage, "is empty") {
		t.Errorf("error %q", got.ErrorMessage)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := ask(ctx); got.StopReason != llm.StopAborted {
		t.Errorf("stop reason %s", got.StopReason)
	}
	if _, err := api.Stream(t.Context(), &llm.Model{ID: "m", Provider: "other", BaseURL: ts.URL}, &llm.Request{}); err == nil {
		t.Error("the identity serves another provider")
	}
}
