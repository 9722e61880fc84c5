package google

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

const (
	// earlyRefresh is how long before its end a token is replaced. The metadata
	// server has a new one five minutes before.
	earlyRefresh = 225 * time.Second
	// tokenTimeout bounds the wait for a token.
	tokenTimeout = 30 * time.Second
	// metadataTimeout bounds it where nothing says that there is a metadata server.
	metadataTimeout = 3 * time.Second
	// maxTokenBody bounds the response of a token server.
	maxTokenBody = 1 << 20
	// maxCredentials bounds the credentials whose tokens are kept.
	maxCredentials = 64
)

// tokens keeps the tokens of an API, one for each credentials.
type tokens struct {
	host     *wire.Host
	readFile func(string) ([]byte, error)

	mu    sync.Mutex
	slots map[[sha256.Size]byte]*slot
}

// slot holds the token of one credentials. Who has put something into turn may use
// it: the others wait, so that one request is made for all.
type slot struct {
	turn chan struct{}
	last *token
}

// token is an access token.
type token struct {
	value        string
	expiry       time.Time
	quotaProject string // to charge; "" for the token's own
	refused      atomic.Bool
}

func newTokens(h *wire.Host, readFile func(string) ([]byte, error)) *tokens {
	if readFile == nil {
		readFile = os.ReadFile
	}
	return &tokens{host: h, readFile: readFile, slots: map[[sha256.Size]byte]*slot{}}
}

// drop says that the service refused a token.
func (t *tokens) drop(refused *token) { refused.refused.Store(true) }

// get is the token for a request. Credentials are looked for each time, so that
// one that changed is seen.
func (t *tokens) get(ctx context.Context, o *llm.Options) (*token, error) {
	c, err := t.find(o)
	if err != nil {
		return nil, err
	}
	s := t.slot(c.key)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, wire.ErrAborted
	}
	if l := s.last; l != nil && !l.refused.Load() && t.host.Now().Before(l.expiry.Add(-earlyRefresh)) {
		return l, nil
	}
	fresh, err := t.fetch(ctx, c, o)
	if err != nil {
		return nil, err
	}
	if c.file != nil {
		fresh.quotaProject = c.file.QuotaProject
	}
	if v := t.host.Env(o, envQuotaProject); v != "" {
		fresh.quotaProject = v
	}
	s.last = fresh
	return fresh, nil
}

func (t *tokens) slot(key [sha256.Size]byte) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[key]
	if s == nil {
		if len(t.slots) >= maxCredentials {
			clear(t.slots)
		}
		s = &slot{turn: make(chan struct{}, 1)}
		t.slots[key] = s
	}
	return s
}

// fetch asks for a new token.
func (t *tokens) fetch(ctx context.Context, c *credentials, o *llm.Options) (*token, error) {
	limit := tokenTimeout
	if c.file == nil && !c.named {
		limit = metadataTimeout
	}
	inner, cancel := context.WithTimeoutCause(ctx, limit, &wire.TimeoutError{What: "no token", After: limit})
	defer cancel()
	client := o.Client
	if client == nil {
		client = t.host.Client
	}
	w := &watcher{ctx: inner, next: client.Transport}
	if w.next == nil {
		w.next = http.DefaultTransport
	}
	if c.file == nil {
		w.next = direct(w.next)
	}
	// A redirect would carry the secret of the request to whoever it names.
	hc := &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	var value string
	var life time.Duration
	var err error
	if c.file == nil {
		value, life, err = askMetadata(inner, hc, c.metadata)
	} else {
		value, life, err = c.file.token(context.WithValue(inner, oauth2.HTTPClient, hc))
	}
	if err != nil {
		return nil, w.failure(ctx, c, err)
	}
	return &token{value: value, expiry: t.host.Now().Add(life)}, nil
}

// token makes a token of a file.
func (f *credentialFile) token(ctx context.Context) (value string, life time.Duration, err error) {
	from := f
	if f.Type == typeImpersonated {
		from = f.Source
	}
	s, err := from.tokenSource(ctx)
	if err != nil {
		return "", 0, err
	}
	got, err := s.Token()
	if err != nil {
		return "", 0, err
	}
	if f.Type == typeImpersonated {
		return f.impersonate(ctx, got.AccessToken)
	}
	return got.AccessToken, time.Until(got.Expiry), nil
}

// impersonate exchanges a token for one of another service account.
func (f *credentialFile) impersonate(ctx context.Context, token string) (value string, life time.Duration, err error) {
	body, err := json.Marshal(struct {
		Delegates []string `json:"delegates,omitempty"`
		Lifetime  string   `json:"lifetime,omitempty"`
		Scope     []string `json:"scope"`
	}{Delegates: f.Delegates, Lifetime: lifetime(f.Impersonation.Lifetime), Scope: []string{scope}})
	if err != nil {
		return "", 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.ImpersonationURL, bytes.NewReader(body))
	if err != nil {
		return "", 0, errors.New("its service_account_impersonation_url is no address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	var got struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if err := ask(ctx.Value(oauth2.HTTPClient).(*http.Client), req, &got); err != nil {
		return "", 0, err
	}
	if got.AccessToken == "" {
		return "", 0, errNoToken
	}
	return got.AccessToken, time.Until(got.ExpireTime), nil
}

// askMetadata asks the metadata server for a token of the machine's account.
func askMetadata(ctx context.Context, client *http.Client, host string) (value string, life time.Duration, err error) {
	address := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token?scopes=" + url.QueryEscape(scope)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, errors.New(envMetadataHost + " is no host")
	}
	req.Header.Set("Metadata-Flavor", "Google")
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := ask(client, req, &got); err != nil {
		return "", 0, err
	}
	if got.AccessToken == "" {
		return "", 0, errNoToken
	}
	return got.AccessToken, time.Duration(got.ExpiresIn) * time.Second, nil
}

var errNoToken = errors.New("the response holds no token")

// ask sends a request and reads its JSON.
func ask(client *http.Client, req *http.Request, into any) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBody))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if json.Unmarshal(text, into) != nil {
		return errNoToken // the parser's words may quote it
	}
	return nil
}

// direct is a transport that uses no proxy, as far as it is known how to make one:
// the metadata server is a part of the machine.
func direct(rt http.RoundTripper) http.RoundTripper {
	t, ok := rt.(*http.Transport)
	if !ok {
		return rt
	}
	t = t.Clone()
	t.Proxy = nil
	t.DisableKeepAlives = true // it serves one request
	return t
}

// watcher sends the requests for a token. It ties them to a context, which not all
// of the library's are, and keeps what went wrong, which the library words with
// parts of responses in it.
type watcher struct {
	ctx  context.Context
	next http.RoundTripper

	err    error // of the last request
	host   string
	status int // of the last response when it was no success
	body   []byte
}

// RoundTrip implements http.RoundTripper.
func (w *watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	w.host, w.status, w.body = req.URL.Host, 0, nil
	resp, err := w.next.RoundTrip(req.WithContext(w.ctx))
	if w.err = err; err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		w.status = resp.StatusCode
		w.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxTokenBody)) // what came is better than nothing
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(w.body))
	}
	return resp, nil
}

// failure words what kept a token from coming. outer is the caller's context.
func (w *watcher) failure(outer context.Context, c *credentials, err error) error {
	if outer.Err() != nil {
		return wire.ErrAborted
	}
	if c.file == nil && !c.named && (w.err != nil || w.ctx.Err() != nil) {
		return &CredentialsError{Cause: errors.New("none were found"), Advice: adviceNone}
	}
	e := &CredentialsError{Source: c.source, Status: w.status}
	switch {
	case w.err != nil || w.ctx.Err() != nil:
		cause := w.err
		if cause == nil {
			cause = err
		}
		e.Cause = fmt.Errorf("no token came from %s: %w", w.host, wire.TransportError(w.ctx, outer, cause))
	case w.status != 0:
		var text string
		e.Code, text = refusal(w.body)
		e.Cause = errors.New(clean(fmt.Sprintf("%s answered %d%s", w.host, w.status, text), c.file.secrets()))
		e.Advice = advice(c, e.Status, e.Code)
	default:
		e.Cause, e.Advice = errors.New(clean(err.Error(), c.file.secrets())), adviceNewFile
		if c.file == nil {
			e.Advice = adviceNone
		}
	}
	return e
}

// refusal reads the error of a token server: its code, and text for a message.
func refusal(body []byte) (code, text string) {
	raw := jsonwire.Get(body, "error")
	var description string
	if code, _ = jsonwire.StringValue(raw); code != "" {
		description, _ = jsonwire.StringValue(jsonwire.Get(body, "error_description"))
	} else { // the form of other services of Google
		code, _ = jsonwire.StringValue(jsonwire.Get(raw, "status"))
		description, _ = jsonwire.StringValue(jsonwire.Get(raw, "message"))
	}
	if code != "" {
		text = " " + code
	}
	if description != "" {
		text += ": " + strings.TrimRight(description, ". ")
	}
	return code, text
}

const (
	maxReason = 500 // UTF-16 units of a token server's words that are quoted
	maxWord   = 80  // bytes of a word that can't be a token
)

// clean is text for an error: cut, without secrets and without words that may be
// tokens.
func clean(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 8 {
			text = strings.ReplaceAll(text, s, wire.Redacted)
		}
	}
	words := strings.Fields(jsonwire.ToValidUTF8(text))
	for i, word := range words {
		if len(word) > maxWord && !strings.Contains(word, "://") {
			words[i] = wire.Redacted
		}
	}
	return wire.Truncate(strings.Join(words, " "), maxReason)
}

// CredentialsError says why there is no token for Vertex.
type CredentialsError struct {
	Source string // where the credentials are, "" when there are none
	Status int    // of the token server's response; 0 for none
	Code   string // its word, such as invalid_grant; "" for none
	Cause  error
	Advice string // what the user can do; "" for nothing but another try
}

func (e *CredentialsError) Error() string {
	text := "Google Cloud credentials"
	if e.Source != "" {
		text += " (" + e.Source + ")"
	}
	text += ": " + e.Cause.Error()
	if e.Advice != "" {
		text += ". " + strings.ToUpper(e.Advice[:1]) + e.Advice[1:] + "."
	}
	return text
}

// Unwrap returns the cause.
func (e *CredentialsError) Unwrap() error { return e.Cause }

const (
	adviceLogin   = `run "gcloud auth application-default login" again`
	adviceNewFile = `make a new file with "gcloud auth application-default login", or name another in ` + envCredentials
	adviceNone    = `run "gcloud auth application-default login", name a credentials file in ` + envCredentials + `, or set GOOGLE_CLOUD_API_KEY`
)

// advice says what to do about a refusal.
func advice(c *credentials, status int, code string) string {
	if c.file == nil {
		if status == http.StatusNotFound {
			return "give the machine a service account, or name a credentials file in " + envCredentials
		}
		return ""
	}
	f := c.file
	if f.Type == typeImpersonated && code != "invalid_grant" && status == http.StatusForbidden {
		return "grant the role Service Account Token Creator on the service account"
	}
	if f.Source != nil {
		f = f.Source
	}
	switch {
	case status >= 500 || status == http.StatusTooManyRequests:
		return ""
	case f.Type == typeUser || f.Type == typeExternalUser:
		return "the login has expired or was revoked: " + adviceLogin
	case f.Type == typeServiceAccount && code == "invalid_grant":
		return "the key was deleted or disabled, or the clock of this machine is wrong: make a new key file, or set the clock"
	case f.Type == typeServiceAccount:
		return "make a new key file for the service account"
	default:
		return "check the workload identity pool and the token that the file's credential_source names"
	}
}

// lifetime is how long a token of another account is to live: an hour where
// nothing else is said.
func lifetime(seconds int) string {
	if seconds <= 0 {
		seconds = 3600
	}
	return fmt.Sprintf("%ds", seconds)
}
