package catalog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/llm"
)

// Access is what a request to a model needs beside the model.
type Access struct {
	Source auth.Source
	Key    auth.Secret
	// Headers go into llm.Options.Headers; nil values take a default header
	// away. They may hold secrets: do not print them.
	Headers map[string]*string
	BaseURL string            // the address to use in place of the model's
	Env     map[string]string // for llm.Options.Env
	OAuth   *auth.OAuth       // the sign-in whose token Key is, with auth.StoredOAuth
	// Warning is what a person should hear although the request can be sent, such
	// as a token that could not be renewed yet; nil for nothing.
	Warning error
}

// Auth resolves key, headers and address for one request. It is called before
// each request, because commands in models.json may print keys that live
// shortly. A provider without credentials gives an *llm.KeyError; a value that
// cannot be resolved an *auth.UnresolvedError.
func (c *Catalog) Auth(ctx context.Context, m *llm.Model) (Access, error) {
	p, _ := c.Provider(m.Provider)
	if p.ID == "" {
		p = Provider{ID: m.Provider}
	}
	c.mu.Lock()
	q := c.query(p)
	var configured []header
	bearer := false
	if f := c.overlay().provider(p.ID); f != nil {
		configured = f.headersFor(m.ID)
		bearer = f.authHeader
	}
	c.mu.Unlock()

	found, err := auth.Find(ctx, q)
	if err != nil {
		return Access{}, err
	}
	a := Access{Source: found.Source, Key: found.Key, Env: found.Env, BaseURL: m.BaseURL, OAuth: found.OAuth, Warning: found.Warning}
	if a.Key.IsEmpty() && !p.Keyless && !p.Machine && !c.ambient(&p) {
		return Access{}, &llm.KeyError{Provider: p.ID}
	}
	env := q.Env.With(found.Env)
	if slices.Contains(p.BearerEnv, found.Variable) {
		a.header("Authorization", new("Bearer "+a.Key.Reveal()))
		a.header("x-api-key", nil)
	}
	if p.ID == "cloudflare-ai-gateway" {
		// The gateway has a header of its own; the others are for the vendor behind it.
		a.header("cf-aig-authorization", new("Bearer "+a.Key.Reveal()))
		a.header("Authorization", nil)
		a.header("x-api-key", nil)
	}
	for _, h := range configured {
		what := fmt.Sprintf("header %q of provider %q", h.name, p.ID)
		value, err := auth.ResolveFor(ctx, what, h.value, env, q.Run)
		if err != nil {
			return Access{}, err
		}
		a.header(h.name, &value)
	}
	if bearer {
		if a.Key.IsEmpty() {
			return Access{}, fmt.Errorf("Provider %q sets authHeader in models.json but has no API key", p.ID)
		}
		a.header("Authorization", new("Bearer "+a.Key.Reveal()))
	}
	if err := c.signIn(p.ID, &a); err != nil {
		return Access{}, err
	}
	if a.BaseURL, err = fillPlaceholders(a.BaseURL, env); err != nil {
		return Access{}, err
	}
	return a, nil
}

// signIn applies what is known of a stored sign-in.
func (c *Catalog) signIn(provider string, a *Access) error {
	if a.OAuth == nil || c.o.SignIn == nil {
		return nil
	}
	use, err := c.o.SignIn(provider, a.OAuth)
	if err != nil {
		return err
	}
	if use.BaseURL != "" {
		a.BaseURL = use.BaseURL
	}
	if use.Bearer {
		a.header("Authorization", new("Bearer "+a.Key.Reveal()))
		for _, name := range []string{"x-api-key", "x-goog-api-key", "api-key"} {
			a.header(name, nil)
		}
	}
	return nil
}

// ambient reports whether p is set up without a key: its wire format finds
// credentials where its cloud puts them.
func (c *Catalog) ambient(p *Provider) bool {
	env := c.o.Env
	if c.o.Store != nil {
		stored, _ := c.o.Store.Get(p.ID) // what cannot be read has no variables
		if key, ok := stored.(*auth.APIKey); ok {
			env = env.With(key.Env)
		}
	}
	for _, names := range p.Ambient {
		if !slices.ContainsFunc(names, func(name string) bool { return env.Credential(name) == "" }) {
			return p.ID != "google-vertex" || hasGoogleCredentials(env)
		}
	}
	return false
}

// hasGoogleCredentials looks for Application Default Credentials: the file that
// a variable names, or the one that gcloud writes.
func hasGoogleCredentials(env auth.Env) bool {
	file := env.Credential("GOOGLE_APPLICATION_CREDENTIALS")
	if file == "" {
		folder := env.Get("APPDATA") // on Windows
		if folder == "" {
			folder = filepath.Join(env.Get("HOME"), ".config")
		}
		file = filepath.Join(folder, "gcloud", "application_default_credentials.json")
	}
	return regular.Check(file) == nil
}

// header sets a header; names differ only by more than case.
func (a *Access) header(name string, value *string) {
	if a.Headers == nil {
		a.Headers = map[string]*string{}
	}
	for old := range a.Headers {
		if strings.EqualFold(old, name) {
			delete(a.Headers, old)
		}
	}
	a.Headers[name] = value
}

// fillPlaceholders fills the {NAME} parts of an address from the environment.
// Only names of variables count, so that {location} and the like stay for the
// wire format that knows them.
func fillPlaceholders(address string, env auth.Env) (string, error) {
	var b strings.Builder
	var missing []string
	rest := address
	for {
		before, after, found := strings.Cut(rest, "{")
		name, tail, closed := strings.Cut(after, "}")
		if !found || !closed {
			b.WriteString(rest)
			break
		}
		b.WriteString(before)
		rest = tail
		if strings.ToUpper(name) != name || strings.ContainsAny(name, "/ ") || name == "" {
			b.WriteString("{" + name + "}")
			continue
		}
		if v := env.Credential(name); v != "" {
			b.WriteString(v)
		} else {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return "", &auth.UnresolvedError{What: "address " + address, Names: missing}
	}
	return b.String(), nil
}

// Guidance tells a person how to set up a model, for a program that has none.
const Guidance = "Set the API key of a provider in its environment variable (such as ANTHROPIC_API_KEY), store one, or describe a provider in models.json."

// ErrNoModels says that no model is set up.
var ErrNoModels = errors.New("No models available. " + Guidance)
