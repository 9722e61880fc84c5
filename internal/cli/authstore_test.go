package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// inHome is a program whose agent folder has these files.
func inHome(t *testing.T, files map[string]string) (p *program, out, errs *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &program{out: out, errs: errs, cwd: dir, home: dir, getenv: func(name string) string {
		if name == "PINCH_AGENT_DIR" {
			return dir
		}
		return ""
	}}, out, errs
}

// A token that ends is renewed with the client of signin.json, stored, and
// printed; other members and entries stay.
func TestPrintRenewedToken(t *testing.T) {
	answer := `{"access_token":"new-secret","refresh_token":"r2-secret","expires_in":3600}`
	status := http.StatusOK
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.FormValue("client_id") != "own" || r.FormValue("grant_type") != "refresh_token" || !strings.HasPrefix(r.FormValue("refresh_token"), "r") {
			t.Errorf("asked with %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	defer srv.Close()
	soon := time.Now().Add(10 * time.Minute).UnixMilli()
	p, out, errs := inHome(t, map[string]string{
		"auth.json":   fmt.Sprintf(`{"xai": {"type": "oauth", "access": "old-secret", "refresh": "r1-secret", "expires": %d, "note": "kept"}, "groq": {"type": "api_key", "key": "k"}}`, soon),
		"signin.json": fmt.Sprintf(`{"providers": {"xai": {"clientId": "own", "tokenUrl": "%s/token"}}}`, srv.URL),
	})
	run := func(want string, words ...string) {
		t.Helper()
		out.Reset()
		errs.Reset()
		err := runAuth(t.Context(), p, nil, words)
		if got := out.String(); got != want {
			t.Errorf("%v: %q, %v; want %q", words, got, err, want)
		}
		if err != nil {
			fmt.Fprint(errs, err)
		}
		if strings.Contains(errs.String(), "secret") {
			t.Errorf("%v: a secret in %q", words, errs)
		}
	}
	// Ten minutes are enough for five, and for a request.
	run("old-secret\n", "print-bearer-token", "--provider", "xai", "--min-expiry", "5m")
	run("ready\n", "check", "--provider", "xai")
	if asked != 0 {
		t.Errorf("the issuer was asked %d times", asked)
	}
	// They are not for thirty. When the issuer has trouble, the token serves.
	status, answer = http.StatusServiceUnavailable, `{"message":"busy with r1-secret"}`
	run("old-secret\n", "print-bearer-token", "--provider", "xai")
	if !strings.Contains(errs.String(), "Warning: OAuth refresh failed for xai: ") {
		t.Errorf("said %q", errs)
	}
	run("", "print-bearer-token", "--provider", "xai", "--min-expiry", "20m")
	if !strings.Contains(errs.String(), "--min-expiry asks for 20m") {
		t.Errorf("said %q", errs)
	}
	status, answer = http.StatusOK, `{"access_token":"new-secret","refresh_token":"r2-secret","expires_in":3600}`
	run("new-secret\n", "print-bearer-token", "--provider", "xai")
	run("", "print-bearer-token", "--provider", "xai", "--min-expiry", "2h") // longer than the issuer gives
	file, err := os.ReadFile(filepath.Join(p.home, "auth.json"))
	if err != nil || !strings.Contains(string(file), `"refresh": "r2-secret"`) || !strings.Contains(string(file), `"note": "kept"`) || !strings.Contains(string(file), `"groq"`) {
		t.Errorf("stored %s, %v", file, err)
	}
}

func TestUseOfSignIns(t *testing.T) {
	files := map[string]string{
		"auth.json": `{"acme": {"type": "oauth", "access": "a=1;ep=proxy.eu.acme.example", "refresh": "", "expires": 99999999999999},
			"github-copilot": {"type": "oauth", "access": "tid=1", "refresh": "gh", "expires": 99999999999999, "enterpriseUrl": "corp.ghe.com"},
			"groq": {"type": "oauth", "access": "x", "refresh": "", "expires": 99999999999999},
			"mistral": {"type": "api_key", "key": "k"}}`,
		"signin.json": `{"providers": {"acme": {"use": "bearer", "baseUrlFromToken": "ep"}, "mistral": {"use": "bearer", "baseUrl": "https://elsewhere.example"}}}`,
		"models.json": `{"providers": {"acme": {"api": "openai-completions", "baseUrl": "https://of.the.catalogue", "headers": {"authorization": "Basic x", "X-Own": "kept"}, "models": [{"id": "m"}]}}}`,
	}
	access := func(provider string) (catalog.Access, error) {
		p, _, _ := inHome(t, files)
		return p.catalogFor(nil).Auth(t.Context(), &llm.Model{ID: "m", Provider: provider, BaseURL: "https://of.the.catalogue"})
	}
	for _, c := range []struct {
		provider, key, url string
		bearer             bool
	}{
		{"acme", "a=1;ep=proxy.eu.acme.example", "https://api.eu.acme.example", true},
		{"github-copilot", "tid=1", "https://copilot-api.corp.ghe.com", false},
		{"groq", "x", "https://of.the.catalogue", false},
		{"mistral", "k", "https://of.the.catalogue", false}, // a key has no sign-in behind it
	} {
		a, err := access(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		if a.BaseURL != c.url || a.Key.Reveal() != c.key {
			t.Errorf("%s: %s", c.provider, a.BaseURL)
		}
		bearer := a.Headers["Authorization"]
		if (bearer != nil) != c.bearer || c.bearer && (*bearer != "Bearer "+c.key || *a.Headers["X-Own"] != "kept" || a.Headers["authorization"] != nil) {
			t.Errorf("%s: %v", c.provider, a.Headers)
		}
		if key, taken := a.Headers["x-api-key"]; taken != c.bearer || key != nil {
			t.Errorf("%s: %v", c.provider, a.Headers)
		}
	}
	// A file that cannot be used may say where tokens go: they go nowhere.
	files["signin.json"] = `{"providers": {"acme": {"baseUrl": 7}}}`
	if _, err := access("acme"); err == nil || !strings.Contains(err.Error(), "providers.acme.baseUrl") {
		t.Errorf("got %v", err)
	}
	if _, err := access("mistral"); err != nil {
		t.Error(err)
	}
}
