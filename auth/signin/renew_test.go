package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/auth"
)

func stored(extra ...string) *auth.OAuth {
	c := &auth.OAuth{Access: auth.NewSecret(access), Refresh: auth.NewSecret(refresh), Expires: time.Now().Add(-time.Hour)}
	c.SetExtraText("note", "kept")
	for i := 0; i+1 < len(extra); i += 2 {
		c.SetExtraText(extra[i], extra[i+1])
	}
	return c
}

func TestRenew(t *testing.T) {
	is := newIssuer(t)
	d := is.definition()
	d.TokenParams = map[string]string{"resource": "r"}
	c, err := Renew(t.Context(), d, stored(), Options{Client: is.client()})
	if err != nil {
		t.Fatal(err)
	}
	if c.Access.Reveal() != "access-secret-2" || c.Refresh.Reveal() != "refresh-secret-2" || c.Extra("note") != "kept" || time.Until(c.Expires) < 59*time.Minute {
		t.Errorf("renewed %v until %v", c, c.Expires)
	}
	if f := is.forms[0]; f.Get("client_id") != "own-client" || f.Get("resource") != "r" {
		t.Errorf("request %v", f)
	}
	// The client that the credential belongs to counts.
	if _, err := Renew(t.Context(), d, stored("clientId", "other", "clientSecret", "client-secret"), Options{Client: is.client()}); err != nil {
		t.Fatal(err)
	}
	if f := is.forms[1]; f.Get("client_id") != "other" || f.Get("client_secret") != "client-secret" {
		t.Errorf("request %v", f)
	}
	// An issuer that does not change the refresh token need not repeat it.
	is.token = say(200, "application/json", `{"access_token":"a3"}`)
	if c, err = Renew(t.Context(), d, stored(), Options{Client: is.client()}); err != nil || c.Refresh.Reveal() != refresh {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestRenewRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *Definition)
		token  http.HandlerFunc
		kind   Kind
		words  string
	}{
		{"ended", nil, say(400, "application/json", `{"error":"invalid_grant","error_description":"refresh-secret-1 was used"}`), Ended, "no longer accepts it (invalid_grant: (hidden) was used)"},
		{"unknown client", nil, say(401, "application/json", `{"error":"invalid_client"}`), Refused, "invalid_client"},
		{"trouble", nil, say(500, "text/html", "<html>"), BadAnswer, "a web page (500"},
		{"never", func(d *Definition) { d.Renew = Never }, nil, Ended, "not renewed"},
		{"no client", func(d *Definition) { d.ClientID = "" }, nil, Local, "names no clientId"},
		{"no address", func(d *Definition) { d.TokenURL = "" }, nil, Local, "names no tokenUrl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := newIssuer(t)
			is.token = c.token
			d := is.definition()
			if c.change != nil {
				c.change(&d)
			}
			_, err := Renew(t.Context(), d, stored(), Options{Client: is.client()})
			wantError(t, err, c.kind, c.words)
			if errors.Is(err, auth.ErrSignInEnded) != (c.kind == Ended) {
				t.Errorf("%v: an end of the sign-in?", err)
			}
			if strings.HasPrefix(err.Error(), "Sign-in") {
				t.Errorf("the words are for a sign-in: %v", err)
			}
		})
	}
}

func TestRenewalThatTakesTooLong(t *testing.T) {
	is := newIssuer(t)
	gone := make(chan struct{})
	is.token = func(w http.ResponseWriter, r *http.Request) { <-gone }
	defer close(gone)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Renew(ctx, is.definition(), stored(), Options{Client: is.client()})
	wantError(t, err, Unreachable, "did not answer in time")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// What the caller ends is no trouble of the issuer.
	reason := errors.New("enough")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(reason)
	if _, err := Renew(stopped, is.definition(), stored(), Options{Client: is.client()}); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

// An issuer honours a refresh token once: an answer with tokens in it counts,
// whatever stands beside them.
func TestOddMembersOfGoodAnswers(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		answer  string
		refresh string
		left    time.Duration
	}{
		{`{"access_token":"a","refresh_token":"r2","expires_in":3600.9}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":"3600.0"}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":3.6e3}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":1e300}`, "r2", 1<<31*time.Second - time.Second},
		{`{"access_token":"a","refresh_token":"r2","expires_in":1e999}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":-1e300}`, "r2", -1 << 31 * time.Second},
		{`{"access_token":"a","refresh_token":"r2","expires_in":0.5}`, "r2", time.Second},
		// Without a life that makes sense an hour is taken.
		{`{"access_token":"a","refresh_token":"r2","expires_in":"soon"}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":""}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":"NaN"}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":null}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":[1]}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":true}`, "r2", hour},
		{`{"access_token":"a","refresh_token":17,"expires_in":3600}`, "17", hour},
		{`{"access_token":"a","refresh_token":null,"expires_in":3600}`, refresh, hour},
		{`{"access_token":"a","refresh_token":{},"expires_in":3600}`, refresh, hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":3600,"token_type":7,"scope":["s"],"x\"y":{"z":[1]}}`, "r2", hour},
		{`{"access_token":"a","refresh_token":"r2","expires_in":3600,"error":{},"error_description":{"a":1},"error_uri":[]}`, "r2", hour},
		{"\xEF\xBB\xBF" + ` {"access_token":"a","refresh_token":"r2","expires_in":3600}`, "r2", hour},
	} {
		is := newIssuer(t)
		is.token = say(200, "application/json", c.answer)
		got, err := Renew(t.Context(), is.definition(), stored(), Options{Client: is.client()})
		if err != nil || got.Access.Reveal() != "a" || got.Refresh.Reveal() != c.refresh {
			t.Errorf("%s: %v, %v", c.answer, got, err)
			continue
		}
		if left := time.Until(got.Expires); left > c.left || left < c.left-10*time.Second {
			t.Errorf("%s: good for %v, want %v", c.answer, left, c.left)
		}
	}
	// An error stays one.
	for _, answer := range []string{`{"error":{"message":"no"}}`, `{"error":"invalid_grant","expires_in":"x"}`, `{"access_token":{"a":1}}`, `{"access_token":null,"error":null}`} {
		is := newIssuer(t)
		is.token = say(200, "application/json", answer)
		if got, err := Renew(t.Context(), is.definition(), stored(), Options{Client: is.client()}); err == nil {
			t.Errorf("%s: %v", answer, got)
		}
	}
}

// Issuers repeat what they were sent, in any spelling.
func TestSecretsInAnySpelling(t *testing.T) {
	const secret, token = "cs/+s e=\"1", "r/x+0=refresh"
	for _, inHeader := range []bool{false, true} {
		is := newIssuer(t)
		var sent string
		is.token = func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			form, _ := url.ParseQuery(string(body))
			sent = r.Header.Get("Authorization")
			// What has both is short enough to be shown whole.
			form.Del("client_id")
			form.Del("grant_type")
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]string{"error": "x", "error_description": form.Encode() + " " + url.PathEscape(form.Get("refresh_token")) + " " + sent})
		}
		d := is.definition()
		d.ClientSecret = strings.ReplaceAll(secret, "$", "$$")
		if inHeader {
			d.ClientAuth = InHeader
		}
		c := stored()
		c.Refresh = auth.NewSecret(token)
		_, err := Renew(t.Context(), d, c, Options{Client: is.client()})
		for _, word := range []string{secret, token, url.QueryEscape(secret), url.QueryEscape(token), strings.TrimPrefix(sent, "Basic ") + " "} {
			if err == nil || strings.Contains(err.Error()+" ", word) && word != " " {
				t.Errorf("%q is in %v", word, err)
			}
		}
	}
	// One secret may be the beginning of another.
	if got := (secrets{"abcd", "abcdefgh", "a/b=c+d"}).clean(`abcdefgh abcd a%2Fb%3Dc%2Bd a%2Fb=c+d`); got != "(hidden) (hidden) (hidden) (hidden)" {
		t.Errorf("got %s", got)
	}
}

// The store renews through the definitions of a file, and keeps what peers wrote.
func TestRefresherOfAStore(t *testing.T) {
	is := newIssuer(t)
	path := filepath.Join(t.TempDir(), "auth.json")
	defs, err := Parse(fmt.Appendf(nil, `{"providers": {"acme": {"clientId": "own-client", "tokenUrl": "%s/token"}}}`, is.url))
	if err != nil {
		t.Fatal(err)
	}
	store := auth.OpenStore(path, auth.StoreOptions{
		Refresh: Refresher(func() (*Definitions, error) { return defs, nil }, Options{Client: is.client()}),
	})
	for _, id := range []string{"acme", "nobody"} {
		if err := store.Set(t.Context(), id, stored("accountId", "7")); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Token(t.Context(), "acme", auth.MinLife)
	if err != nil || got.Key.Reveal() != "access-secret-2" {
		t.Fatal(got, err)
	}
	again, err := auth.OpenStore(path, auth.StoreOptions{}).Get("acme")
	if o := again.(*auth.OAuth); err != nil || o.Refresh.Reveal() != "refresh-secret-2" || o.Extra("accountId") != "7" {
		t.Errorf("stored %v, %v", again, err)
	}
	_, err = store.Token(t.Context(), "nobody", auth.MinLife)
	if _, ok := errors.AsType[*auth.RefreshError](err); !ok || !strings.Contains(err.Error(), `signin.json has no tokenUrl and clientId for "nobody"`) {
		t.Errorf("got %v", err)
	}
}

func TestExpiry(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	jwt := func(claims string) string {
		return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
	}
	f := &flow{o: Options{Now: func() time.Time { return now }}}
	for _, c := range []struct {
		name  string
		token oauth2.Token
		renew RenewRule
		want  time.Time
	}{
		{"as the issuer says", oauth2.Token{AccessToken: jwt(`{"exp":1}`), Expiry: now.Add(time.Minute)}, "", now.Add(time.Minute)},
		{"as the token says", oauth2.Token{AccessToken: jwt(`{"exp":1900000000}`)}, "", time.Unix(1_900_000_000, 0)},
		{"no claim, can be renewed", oauth2.Token{AccessToken: jwt(`{}`), RefreshToken: "r"}, "", now.Add(time.Hour)},
		{"opaque, cannot be renewed", oauth2.Token{AccessToken: "opaque"}, "", auth.Permanent()},
		{"opaque, is not renewed", oauth2.Token{AccessToken: "opaque", RefreshToken: "r"}, Never, auth.Permanent()},
		{"nonsense in the claim", oauth2.Token{AccessToken: jwt(`{"exp":"soon"}`)}, "", auth.Permanent()},
	} {
		f.d.Renew = c.renew
		if got := f.expiry(&c.token); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		raw  string
		want int64 // 0 for none
	}{
		{"1900000000", 1_900_000_000}, {`"1900000000"`, 1_900_000_000}, {"1500", 1_800_001_500}, {`"2027-01-15T08:00:00Z"`, 1_800_000_000},
		{"0", 0}, {"-5", 0}, {`"soon"`, 0}, {"null", 0}, {"", 0}, {"1e300", 0}, {`"NaN"`, 0},
	} {
		at, ok := parseMoment([]byte(c.raw), now)
		if ok != (c.want != 0) || ok && at.Unix() != c.want {
			t.Errorf("%s: %v %v", c.raw, at, ok)
		}
	}
}

func TestBaseURL(t *testing.T) {
	copilot, _ := NewDefinitions(Builtin()...).Lookup("github-copilot")
	for _, c := range []struct {
		name, token, enterprise, want string
	}{
		{"from the token", "tid=1;exp=2;proxy-ep=proxy.business.githubcopilot.com;sku=x", "", "https://api.business.githubcopilot.com"},
		{"a host without proxy", "proxy-ep=other.example.com", "", "https://other.example.com"},
		{"none in the token", "tid=1", "", ""},
		{"an enterprise", "tid=1", "corp.ghe.com", "https://copilot-api.corp.ghe.com"},
		{"an enterprise as an address", "tid=1", "https://corp.ghe.com/", "https://copilot-api.corp.ghe.com"},
		{"the public domain", "tid=1", "github.com", ""},
		{"no host", "proxy-ep=a/b?c", "", ""},
		{"a user", "proxy-ep=me@evil.example", "", ""},
	} {
		credential := &auth.OAuth{Access: auth.NewSecret(c.token)}
		credential.SetExtraText("enterpriseUrl", c.enterprise)
		if got := NewDefinitions(copilot).Use("github-copilot", credential).BaseURL; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	fixed := NewDefinitions(Definition{Provider: "x", Use: AsBearer, BaseURL: BaseURL{Fixed: "https://x.example/v1"}})
	if got := fixed.Use("x", &auth.OAuth{}); got != (auth.Use{Bearer: true, BaseURL: "https://x.example/v1"}) {
		t.Errorf("got %v", got)
	}
	if got := fixed.Use("y", &auth.OAuth{}); got != (auth.Use{}) {
		t.Errorf("got %v", got)
	}
}

func TestRegistration(t *testing.T) {
	is := newIssuer(t)
	d := is.definition()
	d.ClientID, d.RegisterURL = "", is.url+"/register"
	p := is.person()
	c, err := p.signIn(t.Context(), d, p.options())
	if err != nil || c.Extra("clientId") != "registered-client" {
		t.Fatal(c, err)
	}
	for _, want := range []string{`"redirect_uris":["` + is.redirect + `"]`, `"token_endpoint_auth_method":"none"`, `"client_name":"pinch"`, `"scope":"a b"`} {
		if !strings.Contains(is.bodies[0], want) {
			t.Errorf("registration %s has no %s", is.bodies[0], want)
		}
	}
	if is.forms[0].Get("client_id") != "registered-client" {
		t.Errorf("token request %v", is.forms[0])
	}
	// Renewed with the client that it was registered for.
	if _, err := Renew(t.Context(), d, c, Options{Client: is.client()}); err != nil {
		t.Error(err)
	}
	is.register = say(403, "application/json", `{"error":"access_denied","error_description":"closed"}`)
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, Denied, "registers no client")
	is.register = say(201, "application/json", `{}`)
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, BadAnswer, "gave it no id")
}

func TestDiscovery(t *testing.T) {
	is := newIssuer(t)
	metadata := func(issuer string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/openid-configuration") {
				http.NotFound(w, r)
				return
			}
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[2]s/authorize","token_endpoint":"%[2]s/token","registration_endpoint":"%[2]s/register"}`, issuer, is.url)
		}
	}
	is.metadata = metadata(is.url + "/")
	d := Definition{Provider: "acme", Issuer: is.url}
	p := is.person()
	c, err := p.signIn(t.Context(), d, p.options())
	if err != nil || c.Extra("clientId") != "registered-client" {
		t.Fatal(c, err)
	}
	if _, err := Renew(t.Context(), d, c, Options{Client: is.client()}); err != nil {
		t.Error(err)
	}
	is.metadata = metadata("https://evil.example")
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, Mismatched, "calls itself https://evil.example")
	is.metadata = say(200, "application/json", fmt.Sprintf(`{"issuer":%q,"token_endpoint":"http://elsewhere.example/token"}`, is.url))
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, BadAnswer, "token_endpoint")
	is.metadata = say(200, "application/json", fmt.Sprintf(`{"issuer":%q}`, is.url))
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, BadAnswer, "no addresses")
	is.metadata = say(200, "application/json", fmt.Sprintf(`{"issuer":%[1]q,"token_endpoint":"%[1]s/token","authorization_endpoint":"%[1]s/authorize"}`, is.url))
	if _, err = p.signIn(t.Context(), d, p.options()); err == nil || !strings.Contains(err.Error(), "clientId") {
		t.Errorf("got %v", err)
	}
	is.metadata = say(500, "text/html", "<html>")
	_, err = p.signIn(t.Context(), d, p.options())
	wantError(t, err, BadAnswer, "a web page (500")
}

func TestClientSecretOfACommand(t *testing.T) {
	is := newIssuer(t)
	d := is.definition()
	d.ClientSecret = "!vault"
	p := is.person()
	o := p.options()
	o.Run = func(context.Context, string) (string, error) { return "client-secret", nil }
	if _, err := p.signIn(t.Context(), d, o); err != nil || is.forms[0].Get("client_secret") != "client-secret" {
		t.Error(err, is.forms)
	}
	o.Run = func(context.Context, string) (string, error) { return "", errors.New("locked") }
	if _, err := p.signIn(t.Context(), d, o); err == nil || !strings.Contains(err.Error(), "client secret of Acme") {
		t.Errorf("got %v", err)
	}
}
