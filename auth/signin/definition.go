package signin

import (
	"cmp"
	"slices"
	"strings"
)

// Definition says how to sign in to a provider. Addresses are https, or http on
// this machine.
type Definition struct {
	Provider string // id that the credential is stored under
	Name     string // for people; "" for Provider

	// Issuer is the address that an authorization server names itself by. With
	// it, addresses that are missing below are looked up in the server's metadata
	// (RFC 8414, OpenID discovery), and an answer of another issuer is refused.
	Issuer       string
	AuthorizeURL string // page of the browser flow
	TokenURL     string // exchanges codes for tokens and renews them
	DeviceURL    string // begins the device flow
	RegisterURL  string // registers a client (RFC 7591) at each sign-in, for a definition without ClientID
	// KeyURL exchanges the code of the browser flow for a permanent key, in place
	// of TokenURL, in the dialect of issuers without registered clients: the
	// redirect is called callback_url, the state travels in its path, and the
	// exchange is {code, code_verifier, code_challenge_method} for {key}.
	KeyURL string

	ClientID string
	// ClientSecret is a value as package auth resolves it: a literal, a template
	// or a command. Most clients on people's machines have none.
	ClientSecret string
	ClientAuth   ClientAuth
	Scopes       []string
	Redirect     Redirect

	// Parameters beside the standard ones.
	AuthorizeParams map[string]string
	DeviceParams    map[string]string
	TokenParams     map[string]string // of every exchange and renewal
	Headers         map[string]string // of every request to the issuer

	Use     Use
	BaseURL BaseURL
	Renew   RenewRule
	Mint    *Mint // nil for none

	// Domain fills {domain} in addresses: the domain of an enterprise, "" for the
	// public service, whose domain is PublicDomain. A stored sign-in remembers it
	// as enterpriseUrl.
	Domain       string
	PublicDomain string

	// Hint tells a person what is missing, for a definition that cannot sign in
	// as it is.
	Hint string
}

// ClientAuth is how the client shows who it is.
type ClientAuth string

// The ways of ClientAuth.
const (
	InBody   ClientAuth = ""       // client_id, and client_secret if any, as parameters
	InHeader ClientAuth = "header" // HTTP basic authentication
)

// Use is how the token goes with requests.
type Use string

// The ways of Use.
const (
	AsKey    Use = ""       // in the place of an API key, whatever header the wire format has for it
	AsBearer Use = "bearer" // as Authorization: Bearer, without the wire format's own header
)

// RenewRule is how an access token that ends is renewed.
type RenewRule string

// The rules. With a Mint the second exchange is repeated, whatever the
// rule.
const (
	ByRefreshToken RenewRule = ""      // with the refresh token, if the issuer gave one
	Never          RenewRule = "never" // the person signs in again
)

// Redirect is where the browser takes the answer.
type Redirect struct {
	Host string // 127.0.0.1 (by default), localhost or ::1
	// Port is the port to listen on, 0 for any. When it is taken, a free one
	// serves, unless ExactPort says that the issuer knows only this one.
	Port      int
	ExactPort bool
	Path      string // "" for /callback
}

// BaseURL is where requests go instead of the address in the catalogue.
type BaseURL struct {
	// FromToken names a part of the access token that holds a host: tokens of the
	// form a=1;b=2. A host that begins with "proxy." is asked as "api.".
	FromToken string
	// Fixed serves when the token says nothing. With {domain} in it, it is for
	// enterprise domains only. "" keeps the catalogue's address.
	Fixed string
}

// Mint is a second exchange: the token of the sign-in is long-lived and is
// exchanged for a short-lived one, which goes with requests.
type Mint struct {
	URL     string            // asked by GET with the long-lived token
	Scheme  string            // of the Authorization header; "" for Bearer
	Headers map[string]string // beside those of the definition
	// Members of the answer. Expires is seconds since 1970, a time in RFC 3339,
	// or, below 10^9, seconds from now.
	Token   string // "" for token
	Expires string // "" for expires_at
}

// Flow is a way to sign in.
type Flow string

// The flows. Auto is the browser flow where the definition has it.
const (
	Auto    Flow = ""
	Browser Flow = "browser"
	Device  Flow = "device"
)

// DisplayName is the name for people.
func (d *Definition) DisplayName() string { return cmp.Or(d.Name, d.Provider) }

// Ready tells why the definition cannot sign anybody in, nil when it can.
func (d *Definition) Ready() error {
	var missing []string
	if d.KeyURL != "" {
		if d.AuthorizeURL == "" {
			missing = append(missing, "authorizeUrl")
		}
	} else {
		if d.ClientID == "" && d.RegisterURL == "" && d.Issuer == "" {
			missing = append(missing, "clientId")
		}
		if d.Issuer == "" && d.TokenURL == "" {
			missing = append(missing, "tokenUrl")
		}
		if d.Issuer == "" && d.AuthorizeURL == "" && d.DeviceURL == "" {
			missing = append(missing, "authorizeUrl or deviceUrl")
		}
	}
	if missing == nil {
		return nil
	}
	return &IncompleteError{Provider: d.Provider, Name: d.DisplayName(), Missing: missing, Hint: d.Hint}
}

// IncompleteError says that a definition lacks what a sign-in needs.
type IncompleteError struct {
	Provider string // id
	Name     string
	Missing  []string // members of the definition
	Hint     string   // what to do; may be empty
}

func (e *IncompleteError) Error() string {
	text := "There is no sign-in for " + e.Name + ": " + strings.Join(e.Missing, " and ") + " of \"" + e.Provider + "\" must be given in signin.json"
	if e.Hint != "" {
		text += ". " + e.Hint
	}
	return text
}

// clone is a definition whose maps and lists can be changed.
func (d Definition) clone() Definition {
	d.Scopes = slices.Clone(d.Scopes)
	if d.Mint != nil {
		d.Mint = new(*d.Mint)
	}
	return d
}

// addressIn fills {domain} in an address.
func addressIn(address, domain string) string {
	return strings.ReplaceAll(address, "{domain}", domain)
}

// in is the definition for one domain, "" for its own.
func (d Definition) in(domain string) Definition {
	domain = cmp.Or(domain, d.Domain, d.PublicDomain)
	for _, address := range []*string{&d.Issuer, &d.AuthorizeURL, &d.TokenURL, &d.DeviceURL, &d.RegisterURL, &d.KeyURL} {
		*address = addressIn(*address, domain)
	}
	if d.Mint != nil {
		d.Mint = new(*d.Mint)
		d.Mint.URL = addressIn(d.Mint.URL, domain)
	}
	return d
}
