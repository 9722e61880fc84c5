package google

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// cloud is a token server and a model service in one.
type cloud struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	answers  map[string]func(http.ResponseWriter, *http.Request, url.Values) // of a path
	asked    []string                                                        // paths of requests for tokens, in order
	requests []http.Header                                                   // for the model
	refuse   int                                                             // how many of them to refuse
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, answers: map[string]func(http.ResponseWriter, *http.Request, url.Values){}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(r.URL.Path, ":streamGenerateContent") {
		c.mu.Lock()
		c.requests = append(c.requests, r.Header)
		refused := c.refuse > 0
		c.refuse--
		c.mu.Unlock()
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"error":{"code":401,"status":"UNAUTHENTICATED"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(finish("STOP")))
		return
	}
	form, _ := url.ParseQuery(string(body))
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Path)
	answer := c.answers[r.URL.Path]
	c.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	answer(w, r, form)
}

func (c *cloud) on(path string, answer func(http.ResponseWriter, *http.Request, url.Values)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[path] = answer
}

// says is an answer that is always the same.
func says(status int, body string) func(http.ResponseWriter, *http.Request, url.Values) {
	return func(w http.ResponseWriter, _ *http.Request, _ url.Values) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// site is a program on a machine with one credentials file.
type site struct {
	*cloud
	api *API
	env map[string]string
	now time.Time
}

const credentialsPath = "/home/u/key.json"

// newSite makes a site whose credentials file, if any, has these members.
func newSite(t *testing.T, file map[string]any) *site {
	s := &site{cloud: newCloud(t), now: time.Now(), env: map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global"}}
	if file != nil {
		s.env[envCredentials] = credentialsPath
	}
	for k, v := range file { // paths of the server
		if text, ok := v.(string); ok && strings.HasPrefix(text, "/") {
			file[k] = s.URL + text
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s.api = NewVertex(Config{
		Client: client, Getenv: wiretest.NoEnv, Now: func() time.Time { return s.now },
		ReadFile: func(name string) ([]byte, error) {
			if name != credentialsPath || file == nil {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return json.Marshal(file, json.Deterministic(true))
		},
	})
	return s
}

// ask makes a request and returns its answer.
func (s *site) ask(ctx context.Context) *llm.Assistant {
	m := testModel("gemini-x")
	m.API, m.BaseURL = VertexID, s.URL
	req := &llm.Request{Messages: []llm.Message{llm.UserText("u", 1)}, Options: llm.Options{Env: s.env}}
	st, err := s.api.Stream(ctx, m, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Result()
}

// mustAsk makes a request that has to succeed and returns its header.
func (s *site) mustAsk() http.Header {
	s.t.Helper()
	if m := s.ask(context.Background()); m.StopReason != llm.StopStop {
		s.t.Fatalf("got %s %q", m.StopReason, m.ErrorMessage)
	}
	return s.requests[len(s.requests)-1]
}

var testKey = sync.OnceValues(func() (*rsa.PrivateKey, string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

func serviceAccount() map[string]any {
	_, text := testKey()
	return map[string]any{
		"type": typeServiceAccount, "client_email": "bot@p.example", "private_key": text, "private_key_id": "kid-1", "token_uri": "/token",
	}
}

func user() map[string]any {
	return map[string]any{
		"type": typeUser, "client_id": "id-1", "client_secret": "client-secret-1", "refresh_token": "refresh-token-1", "token_uri": "/token",
		"quota_project_id": "paying",
	}
}

// claims checks the signature of a JWT and returns its claims.
func claims(t *testing.T, assertion string) jsontext.Value {
	t.Helper()
	key, _ := testKey()
	dot := strings.LastIndexByte(assertion, '.')
	signature, err := base64.RawURLEncoding.DecodeString(assertion[dot+1:])
	if err != nil {
		t.Error(err)
	}
	sum := sha256.Sum256([]byte(assertion[:dot]))
	if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		t.Error(err)
	}
	head, payload, _ := strings.Cut(assertion[:dot], ".")
	if text, _ := base64.RawURLEncoding.DecodeString(head); member(text, "kid") != `"kid-1"` || member(text, "alg") != `"RS256"` {
		t.Errorf("header %s", text)
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		t.Error(err)
	}
	return text
}

func TestServiceAccount(t *testing.T) {
	s := newSite(t, serviceAccount())
	n := 0
	s.on("/token", func(w http.ResponseWriter, r *http.Request, form url.Values) {
		if got := form.Get("grant_type"); got != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Errorf("grant type %s", got)
		}
		c := claims(t, form.Get("assertion"))
		if member(c, "iss") != `"bot@p.example"` || member(c, "aud") != `"`+s.URL+`/token"` || member(c, "scope") != `"`+scope+`"` {
			t.Errorf("claims %s", c)
		}
		n++
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600,"token_type":"Bearer"}`, n)
	})
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "token-1"}, {50 * time.Minute, "token-1"}, {56*time.Minute + 30*time.Second, "token-2"}, {57 * time.Minute, "token-2"},
	} {
		s.now = time.Now().Add(c.after)
		h := s.mustAsk()
		if got := h.Get("Authorization"); got != "Bearer "+c.want {
			t.Errorf("after %s: got %s", c.after, got)
		}
		if h.Get("X-Goog-User-Project") != "" || h.Get("X-Goog-Api-Key") != "" {
			t.Errorf("header %v", h)
		}
	}
	if !slices.Equal(s.asked, []string{"/token", "/token"}) {
		t.Errorf("asked %q", s.asked)
	}
}

func TestUserLogin(t *testing.T) {
	s := newSite(t, user())
	s.on("/token", func(w http.ResponseWriter, _ *http.Request, form url.Values) {
		want := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"refresh-token-1"}, "client_id": {"id-1"}, "client_secret": {"client-secret-1"}}
		if form.Encode() != want.Encode() {
			t.Errorf("got %s", form.Encode())
		}
		io.WriteString(w, `{"access_token":"token","expires_in":3599}`)
	})
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer token" || h.Get("X-Goog-User-Project") != "paying" {
		t.Errorf("header %v", h)
	}
	s.env[envQuotaProject] = "other"
	s.now = s.now.Add(time.Hour)
	if h := s.mustAsk(); h.Get("X-Goog-User-Project") != "other" {
		t.Errorf("header %v", h)
	}
}

// The file of a login with a workforce identity names its client in a header.
func TestExternalUser(t *testing.T) {
	s := newSite(t, map[string]any{"type": typeExternalUser, "client_id": "id-1", "client_secret": "client-secret-1", "refresh_token": "refresh-token-1", "token_url": "/sts"})
	s.on("/sts", func(w http.ResponseWriter, r *http.Request, form url.Values) {
		id, secret, _ := r.BasicAuth()
		if id != "id-1" || secret != "client-secret-1" || form.Get("refresh_token") != "refresh-token-1" {
			t.Errorf("got %s %s %s", id, secret, form)
		}
		io.WriteString(w, `{"access_token":"token","expires_in":3599}`)
	})
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer token" {
		t.Errorf("header %v", h)
	}
}

func TestExternalAccount(t *testing.T) {
	subject := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(subject, []byte("subject-token-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := map[string]any{
		"type": typeExternal, "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "/sts",
		"credential_source": map[string]any{"file": subject},
	}
	s := newSite(t, file)
	s.on("/sts", func(w http.ResponseWriter, _ *http.Request, form url.Values) {
		if form.Get("subject_token") != "subject-token-1" {
			t.Errorf("got %s", form)
		}
		io.WriteString(w, `{"access_token":"federated","issued_token_type":"x","token_type":"Bearer","expires_in":3600}`)
	})
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer federated" {
		t.Errorf("header %v", h)
	}
	// A refusal that quotes the token that it refuses.
	long := strings.Repeat("header.payload.", 10)
	s.on("/sts", says(400, `{"error":"invalid_request","error_description":"cannot read `+long+`"}`))
	s.now = s.now.Add(2 * time.Hour)
	m := s.ask(context.Background())
	if strings.Contains(m.ErrorMessage, long) || !strings.Contains(m.ErrorMessage, "answered 400 invalid_request: cannot read [redacted]. Check the workload identity pool") {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestImpersonation(t *testing.T) {
	source := user()
	s := newSite(t, map[string]any{
		"type": typeImpersonated, "service_account_impersonation_url": "/act", "delegates": []string{"d"}, "source_credentials": source,
		"quota_project_id": "paying",
	})
	source["token_uri"] = s.URL + "/token"
	s.on("/token", says(200, `{"access_token":"mine","expires_in":3599}`))
	s.on("/act", func(w http.ResponseWriter, r *http.Request, _ url.Values) {
		body, _ := io.ReadAll(r.Body)
		if want := `{"delegates":["d"],"lifetime":"3600s","scope":["` + scope + `"]}`; string(body) != want || r.Header.Get("Authorization") != "Bearer mine" {
			t.Errorf("got %s %s", r.Header.Get("Authorization"), body)
		}
		fmt.Fprintf(w, `{"accessToken":"theirs","expireTime":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	})
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer theirs" || h.Get("X-Goog-User-Project") != "paying" {
		t.Errorf("header %v", h)
	}
	s.mustAsk()
	if !slices.Equal(s.asked, []string{"/token", "/act"}) {
		t.Errorf("asked %q", s.asked)
	}
	s.now = s.now.Add(2 * time.Hour)
	s.on("/act", says(403, `{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}`))
	if m := s.ask(context.Background()); !strings.HasSuffix(m.ErrorMessage, "answered 403 PERMISSION_DENIED: Permission denied. Grant the role Service Account Token Creator on the service account.") {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

const metadataPath = "/computeMetadata/v1/instance/service-accounts/default/token"

func TestMetadataServer(t *testing.T) {
	s := newSite(t, nil)
	s.env[envMetadataHost] = strings.TrimPrefix(s.URL, "http://")
	s.on(metadataPath, func(w http.ResponseWriter, r *http.Request, _ url.Values) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Query().Get("scopes") != scope {
			t.Errorf("got %v %v", r.Header, r.URL)
		}
		io.WriteString(w, `{"access_token":"machine","expires_in":3599,"token_type":"Bearer"}`)
	})
	for range 2 {
		if h := s.mustAsk(); h.Get("Authorization") != "Bearer machine" {
			t.Errorf("header %v", h)
		}
	}
	if len(s.asked) != 1 {
		t.Errorf("asked %q", s.asked)
	}
	s.now = s.now.Add(time.Hour)
	s.on(metadataPath, says(404, "none"))
	if m := s.ask(context.Background()); !strings.Contains(m.ErrorMessage, "answered 404. Give the machine a service account") {
		t.Errorf("got %q", m.ErrorMessage)
	}
	s.on(metadataPath, says(200, `{"access_token":"`))
	if m := s.ask(context.Background()); !strings.Contains(m.ErrorMessage, "(the metadata server): the response holds no token") {
		t.Errorf("got %q", m.ErrorMessage)
	}
	s.env[envMetadataHost] = "127.0.0.1:1"
	if m := s.ask(context.Background()); !strings.Contains(m.ErrorMessage, "(the metadata server): no token came from 127.0.0.1:1: Connection error: ") || !llm.IsRetryable(m) {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

// Without a file and without the machine's own, the error says how to get credentials.
func TestNoCredentials(t *testing.T) {
	s := newSite(t, nil)
	s.api.host.Client = wiretest.Client(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "169.254.169.254" {
			t.Errorf("asked %s", r.URL)
		}
		return nil, errors.New("no route to host")
	})
	s.env["HOME"] = "/home/u"
	want := `Google Cloud credentials: none were found. Run "gcloud auth application-default login", name a credentials file in GOOGLE_APPLICATION_CREDENTIALS, or set GOOGLE_CLOUD_API_KEY.`
	if m := s.ask(context.Background()); m.ErrorMessage != want || llm.IsRetryable(m) {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestMetadataServerIsAskedDirectly(t *testing.T) {
	proxied := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("by proxy") }}
	if got := direct(proxied).(*http.Transport); got.Proxy != nil || proxied.Proxy == nil {
		t.Error("the proxy stayed")
	}
	other := wiretest.RoundTrip(nil)
	if _, ok := direct(other).(wiretest.RoundTrip); !ok {
		t.Error("another transport was replaced")
	}
}

func TestCredentialFiles(t *testing.T) {
	const named = "Google Cloud credentials (the file " + credentialsPath + ", which GOOGLE_APPLICATION_CREDENTIALS names): "
	for name, c := range map[string]struct {
		text string
		err  error
		want string
	}{
		"missing":       {"", fs.ErrNotExist, "file does not exist. Correct the variable, or unset it to use the login of gcloud."},
		"no JSON":       {`{"private_key":"secret-1`, nil, "it is not the JSON of a credentials file. "},
		"other JSON":    {`[]`, nil, "it is not the JSON of a credentials file. "},
		"no type":       {`{"installed":{"client_id":"x"}}`, nil, "it has no type. "},
		"other type":    {`{"type":"gdch_service_account"}`, nil, `its type "gdch_service_account" is none that is known. `},
		"no key":        {`{"type":"service_account","client_email":"x"}`, nil, "it has no private_key. "},
		"no refresh":    {`{"type":"authorized_user","client_id":"x"}`, nil, "it has no refresh_token. "},
		"no source":     {`{"type":"external_account"}`, nil, "it has no credential_source. "},
		"no inner":      {`{"type":"impersonated_service_account"}`, nil, "it has no source_credentials. "},
		"inner is none": {`{"type":"impersonated_service_account","service_account_impersonation_url":"x","source_credentials":{"type":"service_account"}}`, nil, "it has no client_email. "},
		"nested":        {`{"type":"impersonated_service_account","source_credentials":{"type":"impersonated_service_account"}}`, nil, "its source_credentials act as a service account themselves. "},
		"broken key":    {`{"type":"service_account","client_email":"x","private_key":"secret-key-text"}`, nil, "private key should be a PEM"},
		"no subject":    {`{"type":"external_account","audience":"a","subject_token_type":"t","credential_source":{"file":"/none/there"}}`, nil, `failed to open credential file "/none/there"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, serviceAccount())
			s.api.tokens.readFile = func(name string) ([]byte, error) {
				if c.err != nil {
					return nil, &fs.PathError{Op: "open", Path: name, Err: c.err}
				}
				return []byte(c.text), nil
			}
			m := s.ask(context.Background())
			if m.StopReason != llm.StopError || !strings.HasPrefix(m.ErrorMessage, named) || !strings.Contains(m.ErrorMessage, c.want) {
				t.Errorf("got %q", m.ErrorMessage)
			}
			if strings.Contains(m.ErrorMessage, "secret") || len(s.asked) > 0 || len(s.requests) > 0 {
				t.Errorf("got %q, asked %q", m.ErrorMessage, s.asked)
			}
		})
	}
	// The login of gcloud that cannot be read is no reason to ask the machine.
	s := newSite(t, nil)
	s.env["CLOUDSDK_CONFIG"] = "/cfg"
	s.api.tokens.readFile = func(name string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if m := s.ask(context.Background()); !strings.Contains(m.ErrorMessage, "application_default_credentials.json): permission denied. Make it readable") {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestGcloudFile(t *testing.T) {
	const name = "application_default_credentials.json"
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "h", "APPDATA": "a"}, filepath.Join("h", ".config", "gcloud", name)},
		{"windows", map[string]string{"HOME": "h", "APPDATA": "a"}, filepath.Join("a", "gcloud", name)},
		{"darwin", map[string]string{"HOME": "h", "CLOUDSDK_CONFIG": "c"}, filepath.Join("c", name)},
		{"windows", map[string]string{"HOME": "h"}, ""},
		{"linux", nil, ""},
	} {
		if got := gcloudFile(c.goos, func(n string) string { return c.env[n] }); got != c.want {
			t.Errorf("%s %v: got %q", c.goos, c.env, got)
		}
	}
}

func TestRefusedTokens(t *testing.T) {
	for name, c := range map[string]struct {
		file   map[string]any
		status int
		body   string
		want   string
		retry  bool
	}{
		"login expired": {user(), 400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`,
			`answered 400 invalid_grant: Token has been expired or revoked. The login has expired or was revoked: run "gcloud auth application-default login" again.`, false},
		"key deleted": {serviceAccount(), 400, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`,
			"answered 400 invalid_grant: Invalid JWT Signature. The key was deleted or disabled, or the clock of this machine is wrong: make a new key file, or set the clock.", false},
		"account gone":   {serviceAccount(), 401, `{"error":"unauthorized_client"}`, "answered 401 unauthorized_client. Make a new key file for the service account.", false},
		"down":           {user(), 503, `<html>refresh-token-1</html>`, "answered 503", true},
		"too many":       {serviceAccount(), 429, `{}`, "answered 429", true},
		"secret quoted":  {user(), 400, `{"error":"invalid_grant","error_description":"no refresh-token-1 of client-secret-1"}`, "invalid_grant: no [redacted] of [redacted]. The login", false},
		"no token":       {user(), 200, `{"expires_in":1}`, "server response missing access_token", false},
		"no JSON":        {serviceAccount(), 200, `{"access_token":"half-a-tok`, "unexpected end of JSON input", false},
		"another server": {user(), 307, ``, "answered 307", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.file)
			s.on("/token", func(w http.ResponseWriter, r *http.Request, _ url.Values) {
				w.Header().Set("Location", s.URL+"/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			m := s.ask(context.Background())
			text := m.ErrorMessage
			if !strings.Contains(text, c.want) || llm.IsRetryable(m) != c.retry {
				t.Errorf("got %q, retryable %v", text, llm.IsRetryable(m))
			}
			for _, secret := range []string{"refresh-token-1", "client-secret-1", "PRIVATE", "half-a-tok"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q holds %q", text, secret)
				}
			}
			if !slices.Equal(s.asked, []string{"/token"}) || len(s.requests) > 0 {
				t.Errorf("asked %q", s.asked)
			}
		})
	}
}

// A token that the service refuses is replaced once.
func TestRevokedToken(t *testing.T) {
	s := newSite(t, user())
	n := 0
	s.on("/token", func(w http.ResponseWriter, _ *http.Request, _ url.Values) {
		n++
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600}`, n)
	})
	s.mustAsk()
	s.refuse = 1
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer token-2" || len(s.requests) != 3 {
		t.Errorf("header %v after %d requests", h, len(s.requests))
	}
	s.refuse = 5
	m := s.ask(context.Background())
	if m.StopReason != llm.StopError || n != 3 || len(s.requests) != 5 || m.ErrorMessage != `{"error":{"code":401,"status":"UNAUTHENTICATED"}}` {
		t.Errorf("%q after %d tokens and %d requests", m.ErrorMessage, n, len(s.requests))
	}
}

func TestAbortWhileTokenIsFetched(t *testing.T) {
	for name, file := range map[string]map[string]any{"service account": serviceAccount(), "login": user(), "machine": nil} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, file)
			s.env[envMetadataHost] = strings.TrimPrefix(s.URL, "http://")
			began, release := make(chan struct{}, 2), make(chan struct{})
			defer close(release)
			hang := func(_ http.ResponseWriter, r *http.Request, _ url.Values) {
				began <- struct{}{}
				select {
				case <-r.Context().Done():
				case <-release:
				}
			}
			s.on("/token", hang)
			s.on(metadataPath, hang)
			first, cancelFirst := context.WithCancel(context.Background())
			second, cancelSecond := context.WithCancel(context.Background())
			defer cancelFirst()
			defer cancelSecond()
			done := make(chan *llm.Assistant)
			go func() { done <- s.ask(first) }()
			<-began
			go func() { done <- s.ask(second) }() // waits for the first one's token
			cancelFirst()
			if m := <-done; m.StopReason != llm.StopAborted {
				t.Errorf("got %s %q", m.StopReason, m.ErrorMessage)
			}
			<-began // its turn came
			cancelSecond()
			if m := <-done; m.StopReason != llm.StopAborted {
				t.Errorf("got %s %q", m.StopReason, m.ErrorMessage)
			}
		})
	}
}

func TestOneTokenForAll(t *testing.T) {
	s := newSite(t, user())
	s.on("/token", says(200, `{"access_token":"token","expires_in":3600}`))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if m := s.ask(context.Background()); m.StopReason != llm.StopStop {
				t.Errorf("got %q", m.ErrorMessage)
			}
		})
	}
	wg.Wait()
	if len(s.asked) != 1 || len(s.requests) != 20 {
		t.Errorf("%d tokens for %d requests", len(s.asked), len(s.requests))
	}
}

// A file that changes is another credentials.
func TestChangedFile(t *testing.T) {
	file := user()
	s := newSite(t, file)
	s.on("/token", func(w http.ResponseWriter, _ *http.Request, form url.Values) {
		fmt.Fprintf(w, `{"access_token":"of %s","expires_in":3600}`, form.Get("refresh_token"))
	})
	s.mustAsk()
	file["refresh_token"] = "refresh-token-2"
	if h := s.mustAsk(); h.Get("Authorization") != "Bearer of refresh-token-2" {
		t.Errorf("header %v", h)
	}
	for i := range 2 * maxCredentials {
		s.api.tokens.slot(sha256.Sum256([]byte{byte(i)}))
	}
	if n := len(s.api.tokens.slots); n > maxCredentials {
		t.Errorf("%d credentials are kept", n)
	}
}

// The request's own client asks for its token too.
func TestTokenThroughTheRequestsClient(t *testing.T) {
	s := newSite(t, user())
	s.api.host.Client = wiretest.Client(func(r *http.Request) (*http.Response, error) {
		return nil, errors.New("the wrong client")
	})
	var seen []string
	client := wiretest.Client(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.URL.Path)
		if r.URL.Path == "/token" {
			return wiretest.Response(r, 200, "application/json", strings.NewReader(`{"access_token":"t","expires_in":9}`)), nil
		}
		return wiretest.Response(r, 200, "text/event-stream", strings.NewReader(sse(finish("STOP")))), nil
	})
	m := testModel("gemini-x")
	m.API, m.BaseURL = VertexID, s.URL
	req := &llm.Request{Messages: []llm.Message{llm.UserText("u", 1)}, Options: llm.Options{Env: s.env, Client: client}}
	st, err := s.api.Stream(context.Background(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Result(); got.StopReason != llm.StopStop || len(seen) != 2 {
		t.Errorf("got %q, seen %q", got.ErrorMessage, seen)
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("ab.", 30)
	for in, want := range map[string]string{
		"a\n b":                   "a b",
		"x " + long:               "x [redacted]",
		"secret-1!":               "[redacted]!",
		"short":                   "short",
		"http://" + long:          "http://" + long,
		strings.Repeat("a ", 400): strings.TrimSpace(strings.Repeat("a ", 250)) + " ... [truncated 299 chars]",
	} {
		if got := clean(in, []string{"secret-1", "short", ""}); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if code, text := refusal([]byte(`{"error":{"code":403}}`)); code != "" || text != "" {
		t.Error(code, text)
	}
}
