package signin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is an authorization server of a test.
type issuer struct {
	t   *testing.T
	url string

	mu        sync.Mutex
	challenge string // of the browser that was sent to it
	redirect  string
	forms     []url.Values // of the token endpoint
	bodies    []string     // of JSON endpoints
	headers   []http.Header

	// What the endpoints answer; nil for what a good issuer says.
	token, key, mint, device, register, metadata http.HandlerFunc
}

const (
	goodCode = "code-secret-1"
	access   = "access-secret-1"
	refresh  = "refresh-secret-1"
)

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	is := &issuer{t: t}
	mux := http.NewServeMux()
	handle := func(pattern string, own *http.HandlerFunc, good http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			is.mu.Lock()
			is.headers = append(is.headers, r.Header.Clone())
			if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
				form, _ := url.ParseQuery(string(body))
				is.forms = append(is.forms, form)
			} else {
				is.bodies = append(is.bodies, string(body))
			}
			is.mu.Unlock()
			if *own != nil {
				(*own)(w, r)
				return
			}
			good(w, r)
		})
	}
	handle("/token", &is.token, is.goodToken)
	handle("/key", &is.key, is.goodKey)
	handle("/mint", &is.mint, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"token":"tid=1;proxy-ep=proxy.team.example.com;x=2","expires_at":%d}`, time.Now().Add(time.Hour).Unix())
	})
	handle("/device", &is.device, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"device_code":"device-secret","user_code":"AB-12","verification_uri":"%s/enter","expires_in":900,"interval":1}`, is.url)
	})
	handle("/register", &is.register, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"client_id":"registered-client"}`)
	})
	handle("/.well-known/", &is.metadata, http.NotFound)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	is.url = srv.URL
	return is
}

func say(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func (is *issuer) verified(verifier string) bool {
	sum := sha256.Sum256([]byte(verifier))
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.challenge != "" && base64.RawURLEncoding.EncodeToString(sum[:]) == is.challenge
}

func (is *issuer) goodToken(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	fail := func(code, text string) {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": text})
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		if form.Get("code") != goodCode || !is.verified(form.Get("code_verifier")) || form.Get("redirect_uri") != is.redirect {
			fail("invalid_grant", "the code "+form.Get("code")+" is bad")
			return
		}
	case "refresh_token":
		if form.Get("refresh_token") != refresh {
			fail("invalid_grant", "no such token "+form.Get("refresh_token"))
			return
		}
		io.WriteString(w, `{"access_token":"access-secret-2","refresh_token":"refresh-secret-2","expires_in":3600,"token_type":"Bearer"}`)
		return
	case deviceGrant:
	default:
		fail("unsupported_grant_type", "")
		return
	}
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":3600,"token_type":"Bearer"}`, access, refresh)
}

func (is *issuer) goodKey(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code     string `json:"code"`
		Verifier string `json:"code_verifier"`
		Method   string `json:"code_challenge_method"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Code != goodCode || body.Method != "S256" || !is.verified(body.Verifier) {
		say(http.StatusForbidden, "application/json", `{"error":{"code":403,"message":"Invalid code or code_verifier"}}`)(w, r)
		return
	}
	io.WriteString(w, `{"key":"sk-permanent-secret","user_id":"u1"}`)
}

func (is *issuer) definition() Definition {
	return Definition{
		Provider: "acme", Name: "Acme", ClientID: "own-client", Scopes: []string{"a", "b"},
		AuthorizeURL: is.url + "/authorize", TokenURL: is.url + "/token",
	}
}

// person answers a sign-in as somebody at a browser would.
type person struct {
	is *issuer
	// answer changes the parameters that the issuer sends the browser back with.
	answer func(q url.Values)
	// visit is called in place of following the redirect.
	visit func(redirect string)
	steps chan Step
	pages []string
	wg    sync.WaitGroup
}

func (is *issuer) person() *person { return &person{is: is, steps: make(chan Step, 20)} }

func (p *person) options() Options {
	return Options{Show: p.show, Client: p.is.client(), Wait: 20 * time.Second}
}

// client is one whose connections end with the test.
func (is *issuer) client() *http.Client {
	tr := &http.Transport{}
	is.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (p *person) show(s Step) {
	p.steps <- s
	b, ok := s.(BrowserStep)
	if !ok {
		return
	}
	u, err := url.Parse(b.URL)
	if err != nil {
		p.is.t.Errorf("address %q: %v", b.URL, err)
		return
	}
	q := u.Query()
	redirect := q.Get("redirect_uri") + q.Get("callback_url")
	p.is.mu.Lock()
	p.is.challenge, p.is.redirect = q.Get("code_challenge"), redirect
	p.is.mu.Unlock()
	if q.Get("code_challenge_method") != "S256" {
		p.is.t.Errorf("challenge method %q", q.Get("code_challenge_method"))
	}
	back := url.Values{"code": {goodCode}}
	if s := q.Get("state"); s != "" {
		back.Set("state", s)
	}
	if p.answer != nil {
		p.answer(back)
	}
	target := redirect + "?" + back.Encode()
	if p.visit != nil {
		p.visit(target)
		return
	}
	p.wg.Go(func() { p.get(target) })
}

func (p *person) get(target string) int {
	client := p.is.client()
	defer client.CloseIdleConnections()
	resp, err := client.Get(target)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	p.is.mu.Lock()
	defer p.is.mu.Unlock()
	p.pages = append(p.pages, string(b))
	return resp.StatusCode
}

func (p *person) signIn(ctx context.Context, d Definition, o Options) (*auth.OAuth, error) {
	c, err := SignIn(ctx, d, o)
	p.wg.Wait()
	return c, err
}

// wantError checks an error's kind and that it tells no secret.
func wantError(t *testing.T, err error, kind Kind, words string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Kind != kind || !strings.Contains(e.Error(), words) {
		t.Errorf("got %T %v; want a %s error with %q", err, err, kind, words)
		return
	}
	text := e.Error()
	for _, secret := range []string{goodCode, access, refresh, "device-secret", "client-secret", "sk-permanent"} {
		if strings.Contains(text, secret) {
			t.Errorf("the error tells a secret: %s", text)
		}
	}
	if strings.ContainsAny(text, "\n\r\x1b") || len(text) > 600 {
		t.Errorf("no sentence: %q", text)
	}
}
