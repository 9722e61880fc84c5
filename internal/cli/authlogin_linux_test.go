package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startIssuer starts an issuer and describes it in signin.json as acme.
func startIssuer(t *testing.T, home string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.FormValue("code") == "good-secret-code" && r.FormValue("code_verifier") != "", r.FormValue("device_code") == "device-secret":
			io.WriteString(w, `{"access_token":"acme-access-secret","refresh_token":"acme-refresh-secret","expires_in":3600}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant"}`)
		}
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"device_code":"device-secret","user_code":"WXYZ-1234","verification_uri":"http://%s/enter","expires_in":600,"interval":1}`, r.Host)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	writeAgentFile(t, home, "signin.json", fmt.Sprintf(`{"providers": {"acme": {"name": "Acme", "clientId": "own",
		"authorizeUrl": "%[1]s/authorize", "tokenUrl": "%[1]s/token", "deviceUrl": "%[1]s/device"}}}`, srv.URL))
	return srv
}

var authorizeAddress = regexp.MustCompile(`http://\S+/authorize\?\S+`)

// redirect is where an issuer would send the browser of the person.
func (a *atTerminal) redirect(params string) string {
	a.t.Helper()
	a.await("paste here")
	u, err := url.Parse(authorizeAddress.FindString(a.text()))
	if err != nil {
		a.t.Fatal(err)
	}
	return u.Query().Get("redirect_uri") + "?" + params + "&state=" + u.Query().Get("state")
}

func (a *atTerminal) visit(address string) {
	a.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		a.t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

func (a *atTerminal) wantNoSecrets() {
	a.t.Helper()
	for _, secret := range []string{"acme-access", "acme-refresh", "good-secret", "sk-typed"} {
		if strings.Contains(a.text(), secret) {
			a.t.Errorf("%s… is on the screen:\n%s", secret, a.text())
		}
	}
}

const otherKey = `{
  "groq": {"type": "api_key", "key": "kept"}
}`

func TestLogin(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		act    func(a *atTerminal)
		status int
		says   string
		stored string // in auth.json, "" for nothing new
	}{
		{"browser", []string{"acme"}, func(a *atTerminal) { a.visit(a.redirect("code=good-secret-code")) },
			0, "Signed in to Acme. It is stored in", `"access": "acme-access-secret"`},
		{"pasted code", []string{"acme"}, func(a *atTerminal) { a.redirect(""); a.typed("good-secret-codX\x7fe\r") },
			0, "Signed in to Acme", "acme-access-secret"},
		{"pasted address after nonsense", []string{"acme"}, func(a *atTerminal) {
			address := a.redirect("code=good-secret-code")
			a.typed("no code\r")
			a.await("That is of no use: it has blanks in it.")
			a.typed("\x1b[200~" + address + "\x1b[201~\r")
		}, 0, "Signed in to Acme", "acme-access-secret"},
		{"denied", []string{"acme"}, func(a *atTerminal) { a.visit(a.redirect("error=access_denied")) },
			1, "Error: Sign-in to Acme failed: access was denied (access_denied)", ""},
		{"wrong code", []string{"acme"}, func(a *atTerminal) { a.redirect(""); a.typed("bad\r") },
			1, "the code was wrong, used before, or too old (invalid_grant)", ""},
		{"Ctrl-C", []string{"acme"}, func(a *atTerminal) { a.redirect(""); a.typed("half\x03") }, 130, "", ""},
		{"Ctrl-C right behind nonsense", []string{"acme"}, func(a *atTerminal) { a.redirect(""); a.typed("\r\rno code\r\x03") }, 130, "", ""},
		{"interrupt", []string{"acme"}, func(a *atTerminal) { a.redirect(""); a.Process.Signal(syscall.SIGINT) }, 130, "", ""},
		{"input closed", []string{"acme"}, func(a *atTerminal) {
			address := a.redirect("code=good-secret-code")
			a.typed("\x04")
			a.visit(address)
		}, 0, "Signed in to Acme", "acme-access-secret"},
		{"device", []string{"acme", "--no-browser"}, func(a *atTerminal) { a.await("WXYZ-1234"); a.typed("good-secret-code\r") },
			0, "Signed in to Acme", "acme-access-secret"},
		{"key", []string{"openai"}, func(a *atTerminal) { a.await("API key for OpenAI"); a.typed("!sk-typed$1\r") },
			0, "Saved API key for OpenAI", `"key": "$!sk-typed$$1"`},
		{"key of a provider with a sign-in", []string{"acme", "--api-key"}, func(a *atTerminal) { a.await("API key for Acme"); a.typed(" sk-typed \n") },
			0, "Saved API key for Acme", `"key": "sk-typed"`},
		{"no key", []string{"openai", "--api-key"}, func(a *atTerminal) { a.await("API key"); a.typed("\r") }, 1, "No key was given", ""},
		{"end of input at a key", []string{"openai", "--api-key"}, func(a *atTerminal) { a.await("API key"); a.typed("\x04") }, 1, "No key was given", ""},
		{"key with a blank", []string{"openai", "--api-key"}, func(a *atTerminal) { a.await("API key"); a.typed("sk-typed x\r") }, 1, "no blanks", ""},
		{"Ctrl-C at a key", []string{"openai"}, func(a *atTerminal) { a.await("API key"); a.typed("sk-typed\x03") }, 130, "", ""},
		{"interrupt at a key", []string{"openai"}, func(a *atTerminal) {
			a.await("API key")
			a.typedAndRead("sk-typed")
			a.Process.Signal(syscall.SIGTERM)
		}, 143, "", ""},
		{"a subscription of another program", []string{"openai-codex"}, func(*atTerminal) {}, 1, "Error: There is no sign-in for", ""},
		{"no client", []string{"github-copilot"}, func(*atTerminal) {}, 1, "clientId of \"github-copilot\" must be given in signin.json", ""},
		{"unknown", []string{"nobody"}, func(*atTerminal) {}, 1, `Error: Unknown provider "nobody"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			startIssuer(t, home)
			writeAgentFile(t, home, "auth.json", otherKey)
			a := startAtTerminal(t, home, append([]string{"auth", "login"}, c.args...)...)
			c.act(a)
			a.end(c.status)
			if c.says != "" {
				a.await(c.says)
			}
			a.wantNoSecrets()
			file := agentFile(home, "auth.json")
			if c.stored == "" && file != otherKey || !strings.Contains(file, c.stored) || !strings.Contains(file, `"kept"`) {
				t.Errorf("auth.json has\n%s\nwant %s", file, c.stored)
			}
		})
	}
}

// A file of credentials that is broken is heard of before the sign-in, not after.
func TestLoginWithABrokenFile(t *testing.T) {
	home := t.TempDir()
	startIssuer(t, home)
	writeAgentFile(t, home, "auth.json", `{"groq":`)
	a := startAtTerminal(t, home, "auth", "login", "acme")
	a.end(1)
	a.await("Error: Invalid credentials file")
	if strings.Contains(a.text(), "/authorize") {
		t.Errorf("the person is sent away first:\n%s", a.text())
	}
}

// The browser is started with the address and without keys.
func TestLoginOpensABrowser(t *testing.T) {
	home := t.TempDir()
	startIssuer(t, home)
	bin := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HOME/opened\"\nenv > \"$HOME/environment\"\nmv \"$HOME/environment\" \"$HOME/env-done\"\n"
	if err := os.WriteFile(bin+"/xdg-open", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &atTerminal{t: t, Cmd: exec.Command(exe, "auth", "login", "acme")}
	a.start(home, "PATH="+bin+":"+os.Getenv("PATH"), "DISPLAY=:9", "OPENAI_API_KEY=sk-typed-env", "GROQ_API_KEY=sk-typed-env")
	a.await("that your browser opens")
	address := a.redirect("code=good-secret-code")
	for end := time.Now().Add(60 * time.Second); agentHome(home, "env-done") == "" && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // until the script has run
	}
	a.visit(address)
	a.end(0)
	if opened := strings.TrimSpace(agentHome(home, "opened")); opened != authorizeAddress.FindString(a.text()) {
		t.Errorf("opened %q", opened)
	}
	if env := agentHome(home, "env-done"); strings.Contains(env, "sk-typed-env") || !strings.Contains(env, "DISPLAY=:9") {
		t.Errorf("environment of the browser:\n%s", env)
	}
}

func agentHome(home, name string) string {
	b, _ := os.ReadFile(home + "/" + name)
	return string(b)
}
