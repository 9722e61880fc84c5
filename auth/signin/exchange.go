package signin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Members that a stored sign-in has beside its tokens.
const (
	memberClient = "clientId"      // the client that it belongs to
	memberSecret = "clientSecret"  // of a client that was registered for it
	memberDomain = "enterpriseUrl" // the domain of an enterprise
)

// config is what x/oauth2 wants to know.
func (f *flow) config() *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if f.d.ClientAuth == InHeader {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID:     f.d.ClientID,
		ClientSecret: f.secret,
		Scopes:       f.d.Scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: f.d.AuthorizeURL, TokenURL: f.d.TokenURL, DeviceAuthURL: f.d.DeviceURL, AuthStyle: style,
		},
	}
}

// oauthContext hands the client to x/oauth2.
func (f *flow) oauthContext(ctx context.Context) context.Context {
	return f.contextWith(ctx, nil, nil)
}

// tokenContext is oauthContext for the requests that TokenParams are for.
func (f *flow) tokenContext(ctx context.Context) context.Context {
	return f.contextWith(ctx, f.d.TokenParams, nil)
}

// contextWith is oauthContext with more parameters and headers.
func (f *flow) contextWith(ctx context.Context, form, headers map[string]string) context.Context {
	t := *f.client.Transport.(*transport)
	t.form, t.lenient = form, true
	if headers != nil {
		t.headers = maps.Clone(t.headers)
		if t.headers == nil {
			t.headers = map[string]string{}
		}
		maps.Copy(t.headers, headers)
	}
	client := new(*f.client)
	client.Transport = &t
	return context.WithValue(ctx, oauth2.HTTPClient, client)
}

// credential is a token as it is stored.
func (f *flow) credential(ctx context.Context, token *oauth2.Token) (*auth.OAuth, error) {
	f.hide = append(f.hide, token.AccessToken, token.RefreshToken)
	c := &auth.OAuth{Access: auth.NewSecret(token.AccessToken), Refresh: auth.NewSecret(token.RefreshToken)}
	c.SetExtraText(memberClient, f.d.ClientID)
	c.SetExtraText(memberSecret, f.registered)
	if f.d.Domain != "" {
		c.SetExtraText(memberDomain, f.d.Domain)
	}
	if f.d.Mint != nil {
		return f.mint(ctx, c, token.AccessToken)
	}
	c.Expires = f.expiry(token)
	return c, nil
}

// expiry is when a token ends: as the issuer says, or as the token itself does.
// One that says nothing and can be renewed is taken for an hour, else for good.
func (f *flow) expiry(token *oauth2.Token) time.Time {
	if !token.Expiry.IsZero() {
		return token.Expiry
	}
	if at, ok := jwtExpiry(token.AccessToken); ok {
		return at
	}
	if token.RefreshToken != "" && f.d.Renew == ByRefreshToken {
		return f.o.Now().Add(time.Hour)
	}
	return auth.Permanent()
}

// jwtExpiry is the exp claim of a token that is a JWT. It is not verified: it
// only tells when to renew.
func jwtExpiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(string(jsonwire.Get(claims, "exp")), 64)
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// exchangeForKey exchanges a code for a permanent key.
func (f *flow) exchangeForKey(ctx context.Context, code, verifier string) (*auth.OAuth, error) {
	o := jsonwire.Begin(nil)
	o.Text("code", code)
	o.Text("code_verifier", verifier)
	o.Text("code_challenge_method", "S256")
	a, err := f.ask(ctx, http.MethodPost, f.d.KeyURL, nil, o.End())
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	if !a.ok() {
		return nil, f.refusal(a)
	}
	key := a.text("key")
	if key == "" {
		return nil, f.errorf(BadAnswer, "the issuer's answer has no key in it")
	}
	return &auth.OAuth{Access: auth.NewSecret(key), Expires: auth.Permanent()}, nil
}

// mint makes the second exchange: a short-lived token for the long-lived one,
// which is kept in the place of a refresh token.
func (f *flow) mint(ctx context.Context, c *auth.OAuth, longLived string) (*auth.OAuth, error) {
	m := f.d.Mint
	scheme := m.Scheme
	if scheme == "" {
		scheme = "Bearer"
	}
	headers := map[string]string{"Authorization": scheme + " " + longLived}
	for name, value := range m.Headers {
		headers[name] = value
	}
	f.hide = append(f.hide, longLived)
	a, err := f.ask(ctx, http.MethodGet, m.URL, headers, nil)
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	if !a.ok() {
		e := f.refusal(a)
		if a.status == http.StatusUnauthorized {
			e.Kind = Ended
		}
		e.Detail = "no token is given for the account: " + e.Detail
		return nil, e
	}
	tokenName, expiresName := m.Token, m.Expires
	if tokenName == "" {
		tokenName = "token"
	}
	if expiresName == "" {
		expiresName = "expires_at"
	}
	token := a.text(tokenName)
	if token == "" {
		return nil, f.errorf(BadAnswer, "the answer to the second exchange has no %q in it", tokenName)
	}
	at, ok := parseMoment(jsonwire.Get(a.body, expiresName), f.o.Now())
	if !ok {
		return nil, f.errorf(BadAnswer, "the answer to the second exchange has no time in %q", expiresName)
	}
	c.Access, c.Refresh, c.Expires = auth.NewSecret(token), auth.NewSecret(longLived), at
	return c, nil
}

// parseMoment reads a time as services write it: seconds since 1970 or from now,
// as a number or a text, or RFC 3339.
func parseMoment(raw []byte, now time.Time) (time.Time, bool) {
	text, quoted := jsonwire.StringValue(raw)
	if !quoted {
		text = string(raw)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	seconds, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(seconds > 0) || seconds > 1<<40:
		return time.Time{}, false
	case seconds < 1e9:
		return now.Add(time.Duration(seconds * float64(time.Second))), true
	}
	return time.Unix(int64(seconds), 0), true
}

// refusal words an answer with an error status.
func (f *flow) refusal(a *answer) *Error {
	code, description := a.problem()
	e := f.fromIssuer(a.status, code, description)
	if code == "" {
		e.Detail = fmt.Sprintf("the issuer refused it (%d %s", a.status, http.StatusText(a.status))
		if description = f.hide.clean(description); description != "" {
			e.Detail += ": " + description
		}
		e.Detail += ")"
		if a.status >= 500 {
			e.Kind = BadAnswer
		}
	}
	return e
}

// explain turns an error of a request into words.
func (f *flow) explain(ctx context.Context, err error) error {
	if cause := ended(ctx); cause != nil {
		if f.renewal && errors.Is(cause, context.DeadlineExceeded) {
			e := f.errorf(Unreachable, "the issuer did not answer in time")
			e.Cause = cause
			return e
		}
		return cause
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*answerError](err); ok {
		x := f.errorf(BadAnswer, "%v", e)
		x.Status = e.status
		return x
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if e.ErrorCode != "" {
			return f.fromIssuer(e.Response.StatusCode, e.ErrorCode, e.ErrorDescription)
		}
		return f.refusal(&answer{status: e.Response.StatusCode, body: bytes.TrimSpace(e.Body)})
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		host := "the issuer"
		if u, perr := url.Parse(e.URL); perr == nil && u.Host != "" {
			host = u.Host
		}
		x := f.errorf(Unreachable, "%s cannot be reached: %s", host, f.hide.clean(e.Err.Error()))
		if isTimeout(e.Err) {
			x.Detail = host + " did not answer in time"
		}
		x.Cause = e.Err
		return x
	}
	return f.errorf(BadAnswer, "the issuer's answer cannot be used: %s", f.hide.clean(strings.TrimPrefix(err.Error(), "oauth2: ")))
}
