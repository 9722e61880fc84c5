package signin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// discover fills addresses that are missing from the issuer's metadata.
func (f *flow) discover(ctx context.Context) error {
	if f.d.Issuer == "" || f.d.KeyURL != "" || f.complete() {
		return nil
	}
	u, err := url.Parse(f.d.Issuer)
	if err != nil || !usable(u) {
		return f.errorf(Local, "the issuer's address cannot be used")
	}
	path := strings.TrimRight(u.Path, "/")
	var last error
	for _, at := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"} {
		v := *u
		v.Path, v.RawPath = at, ""
		a, err := f.ask(ctx, http.MethodGet, v.String(), nil, nil)
		if err == nil && !a.ok() {
			err = f.refusal(a)
		}
		if err != nil {
			last = f.explain(ctx, err)
			if ended(ctx) != nil {
				return last
			}
			continue
		}
		return f.adopt(a)
	}
	return last
}

// complete reports whether nothing is missing that the issuer's metadata could
// tell.
func (f *flow) complete() bool {
	return f.d.TokenURL != "" && (f.renewal || f.canBegin() && (f.d.ClientID != "" || f.d.RegisterURL != ""))
}

func (f *flow) canBegin() bool { return f.d.AuthorizeURL != "" || f.d.DeviceURL != "" }

// adopt takes the addresses of the metadata that the definition lacks.
func (f *flow) adopt(a *answer) error {
	if issuer := a.text("issuer"); !sameIssuer(issuer, f.d.Issuer) {
		return f.errorf(Mismatched, "the issuer calls itself %s", f.hide.clean(issuer))
	}
	for _, e := range []struct {
		address *string
		member  string
	}{
		{&f.d.AuthorizeURL, "authorization_endpoint"},
		{&f.d.TokenURL, "token_endpoint"},
		{&f.d.DeviceURL, "device_authorization_endpoint"},
		{&f.d.RegisterURL, "registration_endpoint"},
	} {
		given := a.text(e.member)
		if *e.address != "" || given == "" {
			continue
		}
		if u, err := url.Parse(given); err != nil || !usable(u) {
			return f.errorf(BadAnswer, "the issuer's %s is no address that can be used", e.member)
		}
		*e.address = given
	}
	switch {
	case f.d.TokenURL == "" || !f.renewal && !f.canBegin():
		return f.errorf(BadAnswer, "the issuer's metadata has no addresses to sign in at")
	case f.d.ClientID == "" && f.d.RegisterURL == "":
		return &IncompleteError{Provider: f.d.Provider, Name: f.d.DisplayName(), Missing: []string{"clientId"}, Hint: f.d.Hint}
	}
	return nil
}

func sameIssuer(a, b string) bool {
	return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

// register gets a client of its own for this sign-in, unless the definition has
// one.
func (f *flow) register(ctx context.Context, redirect string, kind Flow) error {
	if f.d.ClientID != "" || f.d.KeyURL != "" {
		return nil
	}
	if f.d.RegisterURL == "" {
		return &IncompleteError{Provider: f.d.Provider, Name: f.d.DisplayName(), Missing: []string{"clientId"}, Hint: f.d.Hint}
	}
	grants := []string{"authorization_code", "refresh_token"}
	if kind == Device {
		grants = append(grants, deviceGrant)
	}
	o := jsonwire.Begin(nil)
	o.Text("client_name", "pinch")
	o.Raw("redirect_uris", jsonwire.AppendStrings(nil, []string{redirect}))
	o.Raw("grant_types", jsonwire.AppendStrings(nil, grants))
	o.Raw("response_types", []byte(`["code"]`))
	o.Text("token_endpoint_auth_method", "none")
	o.Text("application_type", "native")
	o.OptText("scope", strings.Join(f.d.Scopes, " "))
	a, err := f.ask(ctx, http.MethodPost, f.d.RegisterURL, nil, o.End())
	if err != nil {
		return f.explain(ctx, err)
	}
	if !a.ok() {
		e := f.refusal(a)
		e.Detail = "the issuer registers no client: " + e.Detail
		return e
	}
	if f.d.ClientID = a.text("client_id"); f.d.ClientID == "" {
		return f.errorf(BadAnswer, "the issuer registered a client and gave it no id")
	}
	if secret := a.text("client_secret"); secret != "" {
		f.setSecret(secret)
		f.registered = secret
		if a.text("token_endpoint_auth_method") == "client_secret_basic" {
			f.d.ClientAuth = InHeader
		}
	}
	return nil
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// usable reports whether an address may be asked, or shown to a person: https,
// or http on this machine, and no password in it.
func usable(u *url.URL) bool {
	if u.Host == "" || u.User != nil || u.Hostname() == "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && slices.Contains(loopback, cmp.Or(u.Hostname(), "-"))
}

// loopback are the hosts that a redirect may go to, and that may be asked
// without encryption.
var loopback = []string{"127.0.0.1", "localhost", "::1"}
