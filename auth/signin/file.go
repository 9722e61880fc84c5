package signin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
)

// Definitions are the definitions of a program. It is safe for concurrent use.
type Definitions struct {
	list []Definition
	at   map[string]int // places in list, by provider: a file may have any number
}

// NewDefinitions are given definitions, such as those of Builtin. Of two for one
// provider the later counts.
func NewDefinitions(list ...Definition) *Definitions {
	d := &Definitions{at: map[string]int{}}
	for _, def := range list {
		d.put(def)
	}
	return d
}

func (d *Definitions) put(def Definition) {
	if i, ok := d.at[def.Provider]; ok {
		d.list[i] = def
		return
	}
	d.at[def.Provider] = len(d.list)
	d.list = append(d.list, def)
}

// Lookup is the definition of a provider.
func (d *Definitions) Lookup(provider string) (Definition, bool) {
	i, ok := d.at[provider]
	if !ok {
		return Definition{}, false
	}
	return d.list[i].clone(), true
}

// Providers lists the providers that have a definition that can sign in.
func (d *Definitions) Providers() []string {
	var ids []string
	for i := range d.list {
		if d.list[i].Ready() == nil {
			ids = append(ids, d.list[i].Provider)
		}
	}
	return ids
}

// Problem is one thing that is wrong with a definition.
type Problem struct {
	At   string // place in the file, such as providers.acme.tokenUrl
	What string
}

// FileError says that a file of definitions cannot be used. It holds no values
// of the file.
type FileError struct {
	Path     string
	Cause    error     // why it cannot be read, or is no JSON; nil when it is
	Problems []Problem // what is wrong with it as definitions
}

func (e *FileError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("Invalid sign-in file %s: %v", e.Path, e.Cause)
	}
	list := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		list[i] = p.At + " " + p.What
	}
	return fmt.Sprintf("Invalid sign-in file %s: %s", e.Path, strings.Join(list, "; "))
}

func (e *FileError) Unwrap() error { return e.Cause }

// Load reads a file of definitions on top of the built-in ones: an entry of a
// provider that is built in changes the members that it has. A missing file has
// none. With a *FileError the built-in definitions come alone, so that a slip in
// one entry never changes where another one's tokens go.
func Load(path string) (*Definitions, error) {
	builtin := NewDefinitions(Builtin()...)
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return builtin, nil
	}
	if err != nil {
		return builtin, &FileError{Path: path, Cause: err}
	}
	d, err := Parse(b)
	if err != nil {
		if e, ok := errors.AsType[*FileError](err); ok {
			e.Path = path
		}
		return builtin, err
	}
	return d, nil
}

// Parse is Load of a file's content.
func Parse(b []byte) (*Definitions, error) {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	d := NewDefinitions(Builtin()...)
	if len(bytes.TrimSpace(b)) == 0 {
		return d, nil
	}
	if err := jsonwire.Check(b); err != nil {
		return nil, &FileError{Cause: err}
	}
	p := &parser{}
	p.object("", b, func(name string, raw []byte) bool {
		switch name {
		case "$schema":
		case "providers":
			seen := map[string]bool{}
			p.object("providers", raw, func(provider string, raw []byte) bool {
				at := "providers." + provider
				switch {
				case strings.TrimSpace(provider) == "":
					p.wrong("providers", "has an entry without a name")
					return true
				case seen[provider]:
					p.wrong(at, "is there twice")
				}
				seen[provider] = true
				def, ok := d.Lookup(provider)
				if !ok {
					def = Definition{Provider: provider}
				}
				p.definition(at, raw, &def)
				d.put(def)
				return true
			})
		default:
			return false
		}
		return true
	})
	if p.problems != nil {
		return nil, &FileError{Problems: p.problems}
	}
	return d, nil
}

// parser reads definitions and collects what is wrong with them.
type parser struct {
	problems []Problem
}

func (p *parser) wrong(at, format string, args ...any) {
	p.problems = append(p.problems, Problem{At: at, What: fmt.Sprintf(format, args...)})
}

// object walks the members of an object. each tells whether it knows a member.
func (p *parser) object(at string, raw []byte, each func(name string, raw []byte) bool) {
	where := at
	if where == "" {
		where = "the file"
	} else {
		at += "."
	}
	if !jsonwire.IsObject(raw) {
		p.wrong(where, "has to be an object")
		return
	}
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		name := string(r.Key())
		if !each(name, slices.Clone(r.Raw())) {
			p.wrong(at+name, "is not known")
		}
	}
}

func (p *parser) text(at string, raw []byte, to *string) bool {
	s, ok := jsonwire.StringValue(raw)
	if !ok {
		p.wrong(at, "has to be a text")
		return true
	}
	*to = strings.TrimSpace(s)
	return true
}

func (p *parser) flag(at string, raw []byte, to *bool) bool {
	switch string(raw) {
	case "true", "false":
		*to = string(raw) == "true"
	default:
		p.wrong(at, "has to be true or false")
	}
	return true
}

// oneOf reads one of a few words.
func oneOf[T ~string](p *parser, at string, raw []byte, to *T, words map[string]T) bool {
	var s string
	before := len(p.problems)
	if p.text(at, raw, &s); len(p.problems) > before {
		return true
	}
	v, ok := words[s]
	if !ok {
		p.wrong(at, "has to be one of %s", strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		return true
	}
	*to = v
	return true
}

func (p *parser) list(at string, raw []byte, to *[]string) bool {
	if s, ok := jsonwire.StringValue(raw); ok {
		*to = strings.Fields(s)
		return true
	}
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '[' {
		p.wrong(at, "has to be a list of texts")
		return true
	}
	var list []string
	for r.Array(); r.More(); {
		s, ok := jsonwire.StringValue(r.Raw())
		if !ok || s == "" || strings.ContainsAny(s, " \t\r\n") {
			p.wrong(at, "has to be a list of texts without blanks")
			return true
		}
		list = append(list, s)
	}
	*to = list
	return true
}

// texts reads an object of texts.
func (p *parser) texts(at string, raw []byte, to *map[string]string) bool {
	values := map[string]string{}
	p.object(at, raw, func(name string, raw []byte) bool {
		var s string
		p.text(at+"."+name, raw, &s)
		values[name] = s
		return true
	})
	*to = values
	return true
}

// reserved are parameters that the flows set themselves.
var reserved = []string{
	"client_id", "client_secret", "redirect_uri", "callback_url", "response_type", "state", "scope",
	"code", "code_challenge", "code_challenge_method", "code_verifier", "device_code", "grant_type", "refresh_token",
}

func (p *parser) params(at string, raw []byte, to *map[string]string) bool {
	p.texts(at, raw, to)
	for name := range *to {
		if slices.Contains(reserved, name) {
			p.wrong(at+"."+name, "is set by the sign-in itself")
		}
	}
	return true
}

func (p *parser) headers(at string, raw []byte, to *map[string]string) bool {
	p.texts(at, raw, to)
	for name, value := range *to {
		switch {
		case !isHeaderName(name) || !isHeaderValue(value):
			p.wrong(at+"."+name, "cannot be sent as a header")
		case strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Content-Type"):
			p.wrong(at+"."+name, "is set by the sign-in itself")
		}
	}
	return true
}

// address reads an address that may have {domain} in it.
func (p *parser) address(at string, raw []byte, to *string) bool {
	before := len(p.problems)
	if p.text(at, raw, to); len(p.problems) > before || *to == "" {
		return true
	}
	u, err := url.Parse(addressIn(*to, "example.com"))
	switch {
	case err != nil || u.Host == "":
		p.wrong(at, "has to be an address such as https://example.com/path")
	case u.User != nil:
		p.wrong(at, "must have no user or password in it")
	case u.Fragment != "":
		p.wrong(at, "must have no # in it")
	case !usable(u):
		p.wrong(at, "has to begin with https:// (http:// only on this machine)")
	}
	return true
}

// definition reads one entry over what def has.
func (p *parser) definition(at string, raw []byte, def *Definition) {
	before := len(p.problems)
	domainGiven := def.PublicDomain != ""
	p.object(at, raw, func(name string, raw []byte) bool {
		at := at + "." + name
		switch name {
		case "name":
			return p.text(at, raw, &def.Name)
		case "issuer":
			return p.address(at, raw, &def.Issuer)
		case "authorizeUrl":
			return p.address(at, raw, &def.AuthorizeURL)
		case "tokenUrl":
			return p.address(at, raw, &def.TokenURL)
		case "deviceUrl":
			return p.address(at, raw, &def.DeviceURL)
		case "registerUrl":
			return p.address(at, raw, &def.RegisterURL)
		case "keyUrl":
			return p.address(at, raw, &def.KeyURL)
		case "clientId":
			return p.text(at, raw, &def.ClientID)
		case "clientSecret":
			return p.text(at, raw, &def.ClientSecret)
		case "clientAuth":
			return oneOf(p, at, raw, &def.ClientAuth, map[string]ClientAuth{"body": InBody, "header": InHeader})
		case "scopes":
			return p.list(at, raw, &def.Scopes)
		case "redirect":
			return p.redirect(at, raw, &def.Redirect)
		case "authorizeParams":
			return p.params(at, raw, &def.AuthorizeParams)
		case "deviceParams":
			return p.params(at, raw, &def.DeviceParams)
		case "tokenParams":
			return p.params(at, raw, &def.TokenParams)
		case "headers":
			return p.headers(at, raw, &def.Headers)
		case "use":
			return oneOf(p, at, raw, &def.Use, map[string]Use{"key": AsKey, "bearer": AsBearer})
		case "baseUrl":
			return p.address(at, raw, &def.BaseURL.Fixed)
		case "baseUrlFromToken":
			return p.text(at, raw, &def.BaseURL.FromToken)
		case "renew":
			return oneOf(p, at, raw, &def.Renew, map[string]RenewRule{"refreshToken": ByRefreshToken, "never": Never})
		case "mint":
			return p.mint(at, raw, &def.Mint)
		case "domain":
			domainGiven = true
			return p.domain(at, raw, &def.Domain)
		}
		return false
	})
	if len(p.problems) > before {
		return
	}
	p.whole(at, def, domainGiven)
}

// whole checks what members say together.
func (p *parser) whole(at string, def *Definition, domainGiven bool) {
	if def.KeyURL != "" && (def.TokenURL != "" || def.Mint != nil || def.DeviceURL != "") {
		p.wrong(at+".keyUrl", "excludes tokenUrl, deviceUrl and mint")
	}
	if def.ClientSecret != "" && def.ClientID == "" {
		p.wrong(at+".clientSecret", "needs a clientId")
	}
	if def.ClientAuth == InHeader && def.ClientSecret == "" {
		p.wrong(at+".clientAuth", "\"header\" needs a clientSecret")
	}
	if !domainGiven {
		for name, address := range map[string]string{
			"issuer": def.Issuer, "authorizeUrl": def.AuthorizeURL, "tokenUrl": def.TokenURL, "deviceUrl": def.DeviceURL,
			"registerUrl": def.RegisterURL, "keyUrl": def.KeyURL, "baseUrl": def.BaseURL.Fixed,
		} {
			if strings.Contains(address, "{domain}") {
				p.wrong(at+"."+name, "has {domain} in it, and there is no domain")
			}
		}
	}
}

func (p *parser) redirect(at string, raw []byte, to *Redirect) bool {
	p.object(at, raw, func(name string, raw []byte) bool {
		at := at + "." + name
		switch name {
		case "host":
			p.text(at, raw, &to.Host)
			if to.Host != "" && !slices.Contains(loopback, to.Host) {
				p.wrong(at, "has to be one of %s: the answer must not leave this machine", strings.Join(loopback, ", "))
			}
		case "port":
			n, err := strconv.ParseUint(string(raw), 10, 16)
			if err != nil {
				p.wrong(at, "has to be a port, or 0 for any")
			}
			to.Port = int(n)
		case "exactPort":
			p.flag(at, raw, &to.ExactPort)
		case "path":
			p.text(at, raw, &to.Path)
			if to.Path != "" && (to.Path[0] != '/' || strings.ContainsAny(to.Path, "?#%\\ \t") || strings.Contains(to.Path, "..")) {
				p.wrong(at, "has to be a plain path such as /callback")
			}
		default:
			return false
		}
		return true
	})
	if to.ExactPort && to.Port == 0 {
		p.wrong(at+".exactPort", "needs a port")
	}
	return true
}

func (p *parser) mint(at string, raw []byte, to **Mint) bool {
	if string(raw) == "null" {
		*to = nil
		return true
	}
	m := &Mint{}
	if *to != nil {
		*m = **to
	}
	p.object(at, raw, func(name string, raw []byte) bool {
		at := at + "." + name
		switch name {
		case "url":
			return p.address(at, raw, &m.URL)
		case "scheme":
			p.text(at, raw, &m.Scheme)
			if m.Scheme != "" && !isHeaderName(m.Scheme) {
				p.wrong(at, "has to be a word such as Bearer")
			}
		case "headers":
			return p.headers(at, raw, &m.Headers)
		case "tokenMember":
			return p.text(at, raw, &m.Token)
		case "expiresMember":
			return p.text(at, raw, &m.Expires)
		default:
			return false
		}
		return true
	})
	if m.URL == "" {
		p.wrong(at+".url", "is missing")
	}
	*to = m
	return true
}

func (p *parser) domain(at string, raw []byte, to *string) bool {
	p.text(at, raw, to)
	if *to == "" {
		return true
	}
	u, err := url.Parse("https://" + *to)
	if err != nil || u.Host != *to || u.User != nil {
		p.wrong(at, "has to be a domain such as example.ghe.com")
	}
	return true
}

// isHeaderName reports whether s is a token of HTTP.
func isHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7F || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
	})
}

func isHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F })
}
