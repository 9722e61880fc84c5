package signin

import (
	"context"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/auth"
)

// Renew renews a stored sign-in: with its refresh token, or by another second
// exchange. What the credential has beside the tokens stays. The client that the
// credential names counts before the definition's, as a refresh token is good for
// one client only.
func Renew(ctx context.Context, d Definition, c *auth.OAuth, o Options) (*auth.OAuth, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := begin(ctx, d, domainOf(c), o)
	if err != nil {
		return nil, err
	}
	f.renewal = true
	f.hide = append(f.hide, c.Access.Reveal(), c.Refresh.Reveal())
	renewed := new(*c)
	if d.Mint != nil {
		return f.mint(ctx, renewed, c.Refresh.Reveal())
	}
	if id := c.Extra(memberClient); id != "" && id != d.ClientID {
		f.d.ClientID = id
		f.setSecret(c.Extra(memberSecret))
	}
	switch {
	case d.Renew == Never || d.KeyURL != "":
		return nil, f.errorf(Ended, "its tokens are not renewed")
	case f.d.ClientID == "":
		return nil, f.errorf(Local, "signin.json names no clientId for %q", d.Provider)
	}
	if err := f.discover(ctx); err != nil {
		return nil, err
	}
	if f.d.TokenURL == "" {
		return nil, f.errorf(Local, "signin.json names no tokenUrl for %q", d.Provider)
	}
	token, err := f.config().TokenSource(f.tokenContext(ctx), &oauth2.Token{RefreshToken: c.Refresh.Reveal()}).Token()
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	renewed.Access, renewed.Refresh = auth.NewSecret(token.AccessToken), auth.NewSecret(token.RefreshToken)
	renewed.Expires = f.expiry(token)
	return renewed, nil
}

// Refresher makes the auth.RefreshFunc of a store. Definitions are asked for at
// each renewal, so that a start without one reads no file.
func Refresher(definitions func() (*Definitions, error), o Options) auth.RefreshFunc {
	return func(ctx context.Context, provider string, c *auth.OAuth) (*auth.OAuth, error) {
		defs, err := definitions()
		if err != nil {
			return nil, err
		}
		d, ok := defs.Lookup(provider)
		if !ok {
			return nil, &Error{
				Name: provider, Kind: Local, Renewal: true,
				Detail: "signin.json has no tokenUrl and clientId for \"" + provider + "\"",
			}
		}
		return Renew(ctx, d, c, o)
	}
}

// domainOf is the domain of an enterprise that a stored sign-in belongs to, which
// peers write as a domain or as an address.
func domainOf(c *auth.OAuth) string {
	text := strings.TrimSpace(c.Extra(memberDomain))
	if text == "" {
		return ""
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		return ""
	}
	return u.Host
}

// Use tells how a stored sign-in of a provider goes with a request. A provider
// without a definition uses its token as a key.
func (d *Definitions) Use(provider string, c *auth.OAuth) auth.Use {
	def, ok := d.Lookup(provider)
	if !ok {
		return auth.Use{}
	}
	return auth.Use{Bearer: def.Use == AsBearer, BaseURL: def.baseURL(c)}
}

// baseURL is the address for the requests of a sign-in, "" for the catalogue's.
func (d *Definition) baseURL(c *auth.OAuth) string {
	if host := tokenPart(c.Access.Reveal(), d.BaseURL.FromToken); host != "" {
		if rest, ok := strings.CutPrefix(host, "proxy."); ok {
			host = "api." + rest
		}
		u, err := url.Parse("https://" + host)
		if err == nil && u.Host == host && usable(u) {
			return u.String()
		}
	}
	if !strings.Contains(d.BaseURL.Fixed, "{domain}") {
		return d.BaseURL.Fixed
	}
	domain := domainOf(c)
	if domain == "" {
		domain = d.Domain
	}
	if domain == "" || domain == d.PublicDomain {
		return ""
	}
	return addressIn(d.BaseURL.Fixed, domain)
}

// tokenPart is a part of a token of the form a=1;b=2.
func tokenPart(token, name string) string {
	if name == "" {
		return ""
	}
	for part := range strings.SplitSeq(token, ";") {
		if key, value, ok := strings.Cut(part, "="); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
