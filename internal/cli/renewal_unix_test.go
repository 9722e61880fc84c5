//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Most issuers honour a refresh token once: whatever a person does while a sign-in
// is being renewed, the outcome gets into the file.
func TestSignalsWhileASignInIsRenewed(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		signals []syscall.Signal
		status  int
		wait    time.Duration // before the issuer answers
	}{
		{"impatient", []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM}, 130, 100 * time.Millisecond},
		{"slow", []syscall.Signal{syscall.SIGTERM}, 143, patience + 500*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked, answer := make(chan struct{}, 1), make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-answer
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"access_token":"new-secret","refresh_token":"r2-secret","expires_in":3600}`)
			}))
			defer srv.Close()
			home := t.TempDir()
			for name, text := range map[string]string{
				"auth.json":   `{"xai": {"type": "oauth", "access": "old-secret", "refresh": "r1-secret", "expires": 1}}`,
				"signin.json": fmt.Sprintf(`{"providers": {"xai": {"clientId": "own", "tokenUrl": "%s/token"}}}`, srv.URL),
			} {
				if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(exe, "auth", "print-bearer-token", "--provider", "xai")
			cmd.Env = append(os.Environ(), runMain+"=1", "HOME="+home, "PINCH_AGENT_DIR="+home, "NO_PROXY=127.0.0.1")
			var out strings.Builder
			cmd.Stderr = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			for _, sig := range c.signals {
				cmd.Process.Signal(sig)
				time.Sleep(100 * time.Millisecond) // or two become one
			}
			time.Sleep(c.wait)
			close(answer)
			cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, out.String())
			}
			if len(c.signals) > 1 != strings.Contains(out.String(), "ends when it is stored") || strings.Contains(out.String(), "secret") {
				t.Errorf("said %q", out.String())
			}
			if file, err := os.ReadFile(filepath.Join(home, "auth.json")); err != nil || !strings.Contains(string(file), `"r2-secret"`) {
				t.Errorf("stored %s, %v", file, err)
			}
			if _, err := os.Lstat(filepath.Join(home, "auth.json.lock")); err == nil {
				t.Error("the lock of the file is left")
			}
		})
	}
}

func TestStatusTellsOfAnExposedFile(t *testing.T) {
	p, out, errs := inHome(t, map[string]string{"auth.json": `{"groq": {"type": "api_key", "key": "k-secret"}}`})
	if err := os.Chmod(filepath.Join(p.home, "auth.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := runAuth(t.Context(), p, nil, []string{"status"}); err != nil || !strings.Contains(out.String(), "groq") {
		t.Errorf("said %s, %v", out, err)
	}
	if !strings.HasPrefix(errs.String(), "Warning: The credentials file ") || !strings.Contains(errs.String(), "0644") {
		t.Errorf("said %q", errs)
	}
}
