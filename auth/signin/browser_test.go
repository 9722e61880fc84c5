package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

func TestBrowserFlow(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	opened := ""
	o := p.options()
	o.Open = func(_ context.Context, address string) error { opened = address; return nil }
	d := is.definition()
	d.AuthorizeParams = map[string]string{"audience": "api"}
	d.TokenParams = map[string]string{"resource": "r1"}
	d.Headers = map[string]string{"X-Own": "yes"}
	c, err := p.signIn(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Access.Reveal() != access || c.Refresh.Reveal() != refresh || c.Extra("clientId") != "own-client" {
		t.Errorf("credential %v, client %q", c, c.Extra("clientId"))
	}
	if left := time.Until(c.Expires); left < 59*time.Minute || left > time.Hour {
		t.Errorf("expires in %v", left)
	}
	step := (<-p.steps).(BrowserStep)
	u, _ := url.Parse(step.URL)
	q := u.Query()
	if !step.Opened || opened != step.URL || q.Get("client_id") != "own-client" || q.Get("scope") != "a b" ||
		q.Get("audience") != "api" || q.Get("response_type") != "code" || len(q.Get("state")) < 40 {
		t.Errorf("address %s, opened %s", step.URL, opened)
	}
	if !strings.HasPrefix(is.redirect, "http://127.0.0.1:") || !strings.HasSuffix(is.redirect, "/callback") {
		t.Errorf("redirect %s", is.redirect)
	}
	if form := is.forms[0]; form.Get("resource") != "r1" || form.Get("client_id") != "own-client" {
		t.Errorf("token request %v", form)
	}
	if is.headers[0].Get("X-Own") != "yes" || is.headers[0].Get("Accept") != "application/json" {
		t.Errorf("headers %v", is.headers[0])
	}
	if len(p.pages) != 1 || !strings.Contains(p.pages[0], "has received the answer") || strings.Contains(p.pages[0], goodCode) {
		t.Errorf("pages %q", p.pages)
	}
	// The server is gone.
	if conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(is.redirect, "http://"), "/callback")); err == nil {
		conn.Close()
		t.Error("the server for the answer still listens")
	}
}

func TestBrowserRefusals(t *testing.T) {
	const html = `<html><body>Gateway Timeout for code-secret-1</body></html>`
	for _, c := range []struct {
		name   string
		answer func(q url.Values)
		token  http.HandlerFunc
		issuer string
		kind   Kind
		words  string
	}{
		{"denied", func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("error_description", "The person said\nno\x1b[31m.")
		}, nil, "", Denied, "access was denied (access_denied: The person said no [31m)"},
		{"other issuer", func(q url.Values) { q.Set("iss", "https://evil.example") }, nil, "https://good.example", Mismatched, "https://evil.example"},
		{"wrong code", func(q url.Values) { q.Set("code", "nonsense") }, nil, "", Refused, "the code was wrong, used before, or too old (invalid_grant: the code (hidden) is bad)"},
		{"unknown client", nil, say(401, "application/json", `{"error":"invalid_client"}`), "", Refused, "the client is not known there"},
		{"web page", nil, say(200, "text/html", html), "", BadAnswer, "the issuer sent a web page (200 OK)"},
		{"server error", nil, say(500, "text/html", html), "", BadAnswer, "the issuer sent a web page (500 Internal Server Error)"},
		{"server error in JSON", nil, say(503, "application/json", `{"message":"busy with code-secret-1"}`), "", BadAnswer, "(503 Service Unavailable: busy with (hidden))"},
		{"empty", nil, say(200, "application/json", ""), "", BadAnswer, "an empty answer"},
		{"broken JSON", nil, say(200, "application/json", `{"access_token":"access-secret-1"`), "", BadAnswer, "no JSON object"},
		{"no token", nil, say(200, "application/json", `{"token_type":"Bearer"}`), "", BadAnswer, "access_token"},
		{"redirect", nil, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		}, "", BadAnswer, "a redirect (307"},
		{"huge", nil, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"access_token":"%s"}`, strings.Repeat("x", 3<<20))
		}, "", BadAnswer, "more than 1048576 bytes"},
		{"error with status 200", nil, say(200, "application/json", `{"error":"access_denied"}`), "", Denied, "access was denied"},
		{"an essay", nil, say(400, "application/json", `{"error":"x","error_description":"`+strings.Repeat("long ", 500)+`"}`), "", Refused, "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := newIssuer(t)
			is.token = c.token
			p := is.person()
			p.answer = c.answer
			d := is.definition()
			d.Issuer = c.issuer
			got, err := p.signIn(t.Context(), d, p.options())
			if got != nil {
				t.Errorf("a credential came of it: %v", got)
			}
			wantError(t, err, c.kind, c.words)
		})
	}
}

func TestUnreachable(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	d := is.definition()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.TokenURL = "http://" + l.Addr().String() + "/token"
	l.Close()
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, Unreachable, l.Addr().String()+" cannot be reached")
}

func TestOnlyOneAnswer(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	var statuses []int
	p.visit = func(target string) {
		base, query, _ := strings.Cut(target, "?")
		p.wg.Go(func() {
			statuses = append(statuses,
				p.get(strings.TrimSuffix(base, "/callback")+"/favicon.ico"),
				p.get(base), // no answer in it
				p.get(base+"?"+query),
				p.get(base+"?"+query))
		})
	}
	if _, err := p.signIn(t.Context(), is.definition(), p.options()); err != nil {
		t.Fatal(err)
	}
	// The last one comes while the server ends, or after.
	if len(statuses) != 4 || statuses[0] != 404 || statuses[1] != 400 || statuses[2] != 200 || statuses[3] == 200 {
		t.Errorf("statuses %v", statuses)
	}
}

// Whoever finds the port can send answers: they neither end the sign-in nor take
// the place of the right one.
func TestForeignAnswers(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	foreign := []string{"?code=x", "?code=x&state=other", "?code=x&state=", "?error=access_denied", "?error=access_denied&state=other"}
	p.visit = func(target string) {
		base, _, _ := strings.Cut(target, "?")
		p.wg.Go(func() {
			for _, query := range foreign {
				if status := p.get(base + query); status != http.StatusBadRequest {
					t.Errorf("%s: %d", query, status)
				}
			}
			if resp, err := http.Head(target); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("HEAD: %v, %v", resp, err)
			}
			p.get(target)
		})
	}
	if _, err := p.signIn(t.Context(), is.definition(), p.options()); err != nil {
		t.Error(err)
	}
	// A person who waits for nothing else learns of them.
	p = is.person()
	o := p.options()
	p.visit = func(target string) {
		base, _, _ := strings.Cut(target, "?")
		p.wg.Go(func() { p.get(base + foreign[0]) })
	}
	o.Wait = time.Second
	_, err := p.signIn(t.Context(), is.definition(), o)
	wantError(t, err, TimedOut, "no answer came within 1s, only one that belongs to another sign-in")
}

func TestPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	t.Run("another serves", func(t *testing.T) {
		is := newIssuer(t)
		p := is.person()
		d := is.definition()
		d.Redirect = Redirect{Host: "localhost", Port: port, Path: "/auth/back"}
		if _, err := p.signIn(t.Context(), d, p.options()); err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(is.redirect)
		if u.Hostname() != "localhost" || u.Path != "/auth/back" || u.Port() == fmt.Sprint(port) {
			t.Errorf("redirect %s", is.redirect)
		}
	})
	t.Run("exact", func(t *testing.T) {
		is := newIssuer(t)
		p := is.person()
		d := is.definition()
		d.Redirect = Redirect{Port: port, ExactPort: true}
		_, err := p.signIn(t.Context(), d, p.options())
		wantError(t, err, Local, fmt.Sprintf("port %d", port))
	})
	t.Run("preferred", func(t *testing.T) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		free.Close()
		is := newIssuer(t)
		p := is.person()
		d := is.definition()
		d.Redirect = Redirect{Port: port}
		if _, err := p.signIn(t.Context(), d, p.options()); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("http://127.0.0.1:%d/callback", port); is.redirect != want {
			t.Errorf("redirect %s, want %s", is.redirect, want)
		}
	})
}

func TestPasting(t *testing.T) {
	for _, c := range []struct {
		name  string
		paste func(redirect, state string) []string
		kind  Kind // "" for success
		notes int
	}{
		{"address", func(r, s string) []string { return []string{r + "?code=" + goodCode + "&state=" + s} }, "", 0},
		{"bare code", func(r, s string) []string { return []string{" " + goodCode + "\n"} }, "", 0},
		{"code and state", func(r, s string) []string { return []string{goodCode + "#" + s} }, "", 0},
		{"query", func(r, s string) []string { return []string{"?state=" + s + "&code=" + goodCode} }, "", 0},
		{"after nonsense", func(r, s string) []string { return []string{"", "two words", r, goodCode} }, "", 2},
		{"other state", func(r, s string) []string { return []string{r + "?code=" + goodCode + "&state=x"} }, Mismatched, 0},
		{"other state behind a code", func(r, s string) []string { return []string{goodCode + "#x"} }, Mismatched, 0},
		{"denied", func(r, s string) []string { return []string{r + "?error=access_denied&state=" + s} }, Denied, 0},
		{"wrong code", func(r, s string) []string { return []string{"nonsense"} }, Refused, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := newIssuer(t)
			p := is.person()
			var lines []string
			ready := make(chan struct{})
			p.visit = func(target string) {
				u, _ := url.Parse(target)
				lines = c.paste(is.redirect, u.Query().Get("state"))
				close(ready)
			}
			o := p.options()
			o.Paste = func(ctx context.Context) (string, error) {
				<-ready
				if len(lines) == 0 {
					<-ctx.Done()
					return "", ctx.Err()
				}
				line := lines[0]
				lines = lines[1:]
				return line, nil
			}
			got, err := p.signIn(t.Context(), is.definition(), o)
			if c.kind != "" {
				wantError(t, err, c.kind, "")
			} else if err != nil || got.Access.Reveal() != access {
				t.Errorf("got %v, %v", got, err)
			}
			notes := 0
			close(p.steps)
			for s := range p.steps {
				if _, ok := s.(Note); ok {
					notes++
				}
			}
			if notes != c.notes {
				t.Errorf("%d notes, want %d", notes, c.notes)
			}
		})
	}
}

// A closed input leaves the browser; another error of it ends the sign-in.
func TestPasteEnds(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	closed := make(chan struct{})
	p.visit = func(target string) { p.wg.Go(func() { <-closed; p.get(target) }) }
	o := p.options()
	o.Paste = func(context.Context) (string, error) { defer close(closed); return "", io.EOF }
	if _, err := p.signIn(t.Context(), is.definition(), o); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	p.visit = func(string) {}
	o.Paste = func(context.Context) (string, error) { return "", broken }
	if _, err := p.signIn(t.Context(), is.definition(), o); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestCancel(t *testing.T) {
	reason := errors.New("the person went away")
	t.Run("while waiting", func(t *testing.T) {
		is := newIssuer(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		p := is.person()
		p.visit = func(string) { cancel(reason) }
		o := p.options()
		o.Paste = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		if _, err := p.signIn(ctx, is.definition(), o); !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("while exchanging", func(t *testing.T) {
		is := newIssuer(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		is.token = func(w http.ResponseWriter, r *http.Request) { cancel(reason); <-r.Context().Done() }
		p := is.person()
		if _, err := p.signIn(ctx, is.definition(), p.options()); !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("while asking for a device code", func(t *testing.T) {
		is := newIssuer(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		is.device = func(w http.ResponseWriter, r *http.Request) { cancel(reason); <-r.Context().Done() }
		p := is.person()
		d := is.definition()
		d.DeviceURL = is.url + "/device"
		o := p.options()
		o.Flow = Device
		if _, err := p.signIn(ctx, d, o); !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nobody comes", func(t *testing.T) {
		is := newIssuer(t)
		p := is.person()
		p.visit = func(string) {}
		o := p.options()
		o.Wait = 30 * time.Millisecond
		o.Paste = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		_, err := p.signIn(t.Context(), is.definition(), o)
		wantError(t, err, TimedOut, "no answer came within 30ms")
	})
}

func TestNoBrowser(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	o := p.options()
	o.Open = func(context.Context, string) error { return errors.New("this machine has no display") }
	if _, err := p.signIn(t.Context(), is.definition(), o); err != nil {
		t.Fatal(err)
	}
	if note, ok := (<-p.steps).(Note); !ok || !strings.Contains(string(note), "no display") {
		t.Errorf("note %v", note)
	}
	if step := (<-p.steps).(BrowserStep); step.Opened {
		t.Error("a browser is said to be open")
	}
}

func TestKeyExchange(t *testing.T) {
	is := newIssuer(t)
	d := Definition{Provider: "router", AuthorizeURL: is.url + "/auth?x=1", KeyURL: is.url + "/key", Redirect: Redirect{Host: "localhost"}}
	t.Run("key", func(t *testing.T) {
		p := is.person()
		c, err := p.signIn(t.Context(), d, p.options())
		if err != nil {
			t.Fatal(err)
		}
		if c.Access.Reveal() != "sk-permanent-secret" || !c.Refresh.IsEmpty() || !c.Expires.Equal(auth.Permanent()) {
			t.Errorf("got %v until %v", c, c.Expires)
		}
		u, _ := url.Parse((<-p.steps).(BrowserStep).URL)
		q := u.Query()
		if q.Get("client_id")+q.Get("response_type")+q.Get("state") != "" || q.Get("x") != "1" {
			t.Errorf("address %v", u)
		}
		back, _ := url.Parse(q.Get("callback_url"))
		if parts := strings.Split(back.Path, "/"); back.Hostname() != "localhost" || len(parts) != 3 || len(parts[2]) < 40 {
			t.Errorf("redirect %v", back)
		}
	})
	t.Run("refused", func(t *testing.T) {
		p := is.person()
		p.answer = func(q url.Values) { q.Set("code", "nonsense") }
		_, err := p.signIn(t.Context(), d, p.options())
		wantError(t, err, Refused, "(403 Forbidden: Invalid code or code_verifier)")
	})
	t.Run("another state in the path", func(t *testing.T) {
		p := is.person()
		p.visit = func(target string) {
			i := strings.LastIndex(target, "/")
			_, query, _ := strings.Cut(target, "?")
			p.wg.Go(func() {
				if status := p.get(target[:i+1] + "other?" + query); status != http.StatusBadRequest {
					t.Errorf("a foreign answer: %d", status)
				}
				p.get(target)
			})
		}
		if _, err := p.signIn(t.Context(), d, p.options()); err != nil {
			t.Error(err)
		}
	})
	t.Run("pasted", func(t *testing.T) {
		p := is.person()
		ready := make(chan string, 1)
		p.visit = func(target string) { ready <- target }
		o := p.options()
		o.Paste = func(context.Context) (string, error) { return <-ready, nil }
		if _, err := p.signIn(t.Context(), d, o); err != nil {
			t.Error(err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		is.key = say(200, "application/json", `{"user_id":"u"}`)
		p := is.person()
		_, err := p.signIn(t.Context(), d, p.options())
		wantError(t, err, BadAnswer, "has no key in it")
	})
}
