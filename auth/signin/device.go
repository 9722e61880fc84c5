package signin

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/auth"
)

// patience is how many answers in a row may be lost or unreadable while a device
// flow waits for the person.
const patience = 5

// device runs the device authorization flow (RFC 8628).
func (f *flow) device(ctx context.Context) (*auth.OAuth, error) {
	if err := f.register(ctx, "http://127.0.0.1/callback", Device); err != nil {
		return nil, err
	}
	config := f.config()
	var options []oauth2.AuthCodeOption
	for name, value := range f.d.DeviceParams {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	begin := f.oauthContext(ctx)
	switch {
	case f.secret == "":
	case f.d.ClientAuth == InBody:
		options = append(options, oauth2.SetAuthURLParam("client_secret", f.secret))
	default:
		begin = f.contextWith(ctx, nil, map[string]string{"Authorization": basicAuth(f.d.ClientID, f.secret)})
	}
	code, err := config.DeviceAuth(begin, options...)
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	f.hide = append(f.hide, code.DeviceCode)
	u, err := url.Parse(code.VerificationURI)
	if code.DeviceCode == "" || code.UserCode == "" || err != nil || !usable(u) {
		return nil, f.errorf(BadAnswer, "the issuer gave no code or no usable page to enter it at")
	}
	if code.Expiry.IsZero() || code.Expiry.After(f.o.Now().Add(f.o.Wait)) {
		code.Expiry = f.o.Now().Add(f.o.Wait)
	}
	opened := code.VerificationURI
	if u, err := url.Parse(code.VerificationURIComplete); err == nil && usable(u) {
		opened = code.VerificationURIComplete
	}
	f.o.Show(DeviceStep{
		URL: code.VerificationURI, Code: f.hide.clean(code.UserCode), Expires: code.Expiry, Opened: f.open(ctx, opened),
	})
	token, err := f.poll(ctx, config, code)
	if err != nil {
		return nil, err
	}
	return f.credential(ctx, token)
}

// poll asks for the token until the person has entered the code. An answer that
// is lost on the way does not end the sign-in: the person may be at it right now.
func (f *flow) poll(ctx context.Context, config *oauth2.Config, code *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	for lost := 0; ; {
		started := f.o.Now()
		token, err := config.DeviceAccessToken(f.tokenContext(ctx), code)
		switch {
		case err == nil:
			return token, nil
		case ended(ctx) != nil:
			return nil, ended(ctx)
		case !f.o.Now().Before(code.Expiry):
			return nil, f.errorf(TimedOut, "the code expired before it was entered; sign in again for a new one")
		}
		interval := time.Duration(max(code.Interval, 5)) * time.Second
		if f.o.Now().Sub(started) > 2*interval {
			lost = 0 // it has worked in between
		}
		if lost++; !transient(err) || lost > patience {
			return nil, f.explain(ctx, err)
		}
		code.Interval = min(max(code.Interval, 5)*2, 60)
	}
}

// transient reports whether asking again may help.
func transient(err error) bool {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := e.Response.StatusCode
		return e.ErrorCode == "" && (status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout)
	}
	if e, ok := errors.AsType[*answerError](err); ok {
		return e.status >= 500 || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout
	}
	_, network := errors.AsType[*url.Error](err)
	return network
}

// basicAuth is the header of a client, whose id and secret are escaped as RFC
// 6749 (2.3.1) wants it.
func basicAuth(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}
