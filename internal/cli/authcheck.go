package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// checkStatus is the answer of "auth check"; its place among the others is the
// exit status.
type checkStatus string

const (
	ready    checkStatus = "ready"
	notReady checkStatus = "not_ready"
	invalid  checkStatus = "invalid"
)

func (s checkStatus) exit() error {
	if i := slices.Index([]checkStatus{ready, notReady, invalid}, s); i > 0 {
		return exitError(i)
	}
	return nil
}

// The reasons of a check that does not end with ready.
const (
	notConfigured = "credentials_not_configured"
	noProvider    = "provider_not_found"
	notAvailable  = "credential_not_available"
	invalidState  = "invalid_state"
)

// The types of credentials, as files and answers call them.
const (
	typeKey   = "api_key"
	typeOAuth = "oauth"
)

// checked is what "auth check" found.
type checked struct {
	status   checkStatus
	provider string
	authType string // "" when there is none
	reason   string
	secret   auth.Secret
	why      error // for a person
}

// authCheck is "pinch auth check".
func authCheck(ctx context.Context, p *program, a *authArgs) error {
	c, creds := p.authCatalog()
	store := creds.store
	if a.noRefresh {
		c, store = p.lookCatalog()
	}
	provider, err := checkTarget(c, a)
	if err != nil {
		fmt.Fprintln(p.errs, "Error: "+sentence(err))
		return exitError(2)
	}
	r := checkProvider(ctx, c, store, provider, a.noRefresh)
	if r.why != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if !a.credentials {
		r.secret = auth.Secret{}
	} else if r.status == ready && r.secret.IsEmpty() {
		// Whoever asks for the credential must not take a status for it.
		r.status, r.authType, r.reason = notReady, "", notAvailable
	}
	if _, err := fmt.Fprintln(p.out, r.text(a.json)); err != nil {
		return err
	}
	// A script reads status and reason; the words are for those who watch.
	if r.why != nil && p.errTerminal {
		fmt.Fprintln(p.errs, sentence(r.why))
	}
	return r.status.exit()
}

// checkTarget is the provider that a check is about.
func checkTarget(c *catalog.Catalog, a *authArgs) (string, error) {
	provider := strings.TrimSpace(a.provider)
	_, known := c.Provider(provider)
	if a.model == "" || provider != "" && !known {
		return provider, nil
	}
	choice, err := c.Resolve(a.model, provider)
	if err != nil {
		return "", err
	}
	return choice.Model.Provider, nil
}

// checkProvider looks whether a request to a provider would have credentials.
// look promises that no token was renewed and no command run for it.
func checkProvider(ctx context.Context, c *catalog.Catalog, store *auth.Store, name string, look bool) checked {
	p, ok := c.Provider(name)
	if !ok {
		return checked{status: notReady, provider: name, reason: noProvider}
	}
	r := checked{status: ready, provider: p.ID}
	stored, err := store.Get(p.ID)
	if err == nil {
		err = store.Problem()
	}
	if err != nil {
		r.status, r.reason, r.why = invalid, invalidState, err
		return r
	}
	switch stored := stored.(type) {
	case *auth.UnknownCredential:
		r.status, r.reason, r.why = invalid, invalidState, c.StoredProblem(p.ID)
		return r
	case *auth.OAuth:
		r.authType = typeOAuth
		if look {
			return r.looked(stored)
		}
	}
	access, err := c.Auth(ctx, &llm.Model{Provider: p.ID})
	_, none := errors.AsType[*llm.KeyError](err)
	// A machine of a cloud may have credentials, but nobody set any up.
	if none || err == nil && access.Key.IsEmpty() && !c.HasCredentials(p.ID) {
		r.status, r.reason = notReady, notConfigured
		return r
	}
	switch {
	case err != nil && look && errors.Is(err, errNoCommands):
		r.authType = typeKey // a command stands for it
	case err != nil:
		r.status, r.reason, r.why = notReady, notAvailable, err
		r.authType = ""
	case access.Source == auth.StoredOAuth:
		r.authType, r.secret = typeOAuth, access.Key
	case access.Source != auth.None:
		r.authType, r.secret = typeKey, access.Key
	}
	return r
}

// looked is what a look at a sign-in tells. A token that is over and that a
// request would renew is set up, but is not given away.
func (r checked) looked(o *auth.OAuth) checked {
	switch over := o.Access.IsEmpty() || !o.Expires.After(time.Now()); {
	case over && o.Refresh.IsEmpty():
		r.status, r.authType, r.reason = notReady, "", notAvailable
		r.why = fmt.Errorf("The token of provider %q expired and cannot be renewed: sign in again with pinch auth login %s", r.provider, r.provider)
	case !over:
		r.secret = o.Access
	}
	return r
}

// text is the line that is printed.
func (r *checked) text(json bool) string {
	if !json {
		if !r.secret.IsEmpty() && r.status == ready {
			return r.secret.Reveal()
		}
		return string(r.status)
	}
	o := jsonwire.Begin(nil)
	o.Text("status", string(r.status))
	o.Text("provider", r.provider)
	o.OptText("authType", r.authType)
	o.OptText("reason", r.reason)
	o.OptText("credentials", r.secret.Reveal())
	return string(o.End())
}

// defaultLife is how long a printed token has to be good for.
const defaultLife = 30 * time.Minute

// authPrintKey is "pinch auth print-api-key".
func authPrintKey(ctx context.Context, p *program, a *authArgs) error {
	c, creds := p.authCatalog()
	return p.printOne(c, a, "API key", func(provider string) (auth.Secret, error) {
		stored, err := creds.store.Get(provider)
		if err != nil {
			return auth.Secret{}, err
		}
		if _, signedIn := stored.(*auth.OAuth); signedIn {
			return auth.Secret{}, &otherKind{fmt.Errorf("Provider %q is configured with OAuth, not an API key", provider)}
		}
		access, err := c.Auth(ctx, &llm.Model{Provider: provider})
		return access.Key, err
	})
}

// authPrintToken is "pinch auth print-bearer-token".
func authPrintToken(ctx context.Context, p *program, a *authArgs) error {
	c, creds := p.authCatalog()
	life := a.minExpiry
	if life == 0 {
		life = defaultLife
	}
	return p.printOne(c, a, "OAuth bearer token", func(provider string) (auth.Secret, error) {
		got, err := creds.store.Token(ctx, provider, life)
		if _, none := errors.AsType[*auth.NoSignInError](err); none {
			return auth.Secret{}, &otherKind{fmt.Errorf("Provider %q is not configured with an OAuth bearer token", provider)}
		}
		if err != nil {
			return auth.Secret{}, err
		}
		left := time.Until(got.OAuth.Expires)
		if a.minExpiry > 0 && left < a.minExpiry {
			err := fmt.Errorf("The token of provider %q is good for %v only, and --min-expiry asks for %v", provider, left.Round(time.Second), a.minExpiry)
			if got.Warning != nil {
				err = fmt.Errorf("%w: %w", err, got.Warning)
			}
			return auth.Secret{}, err
		}
		if got.Warning != nil {
			p.warn("%v", got.Warning)
		}
		return got.Key, nil
	})
}

// otherKind says that a provider has credentials of another kind, or none.
type otherKind struct{ error }

// printOne prints the secret of the one provider that is asked for and has it.
func (p *program) printOne(c *catalog.Catalog, a *authArgs, kind string, find func(provider string) (auth.Secret, error)) error {
	candidates, err := printTargets(c, a)
	if err != nil {
		return err
	}
	var have []string
	var secret auth.Secret
	var other error
	for _, provider := range candidates {
		s, err := find(provider)
		_, none := errors.AsType[*llm.KeyError](err)
		if o, isOther := errors.AsType[*otherKind](err); isOther {
			other = o.error
		} else if err != nil && !none {
			return err
		} else if !s.IsEmpty() {
			secret, have = s, append(have, provider)
		}
	}
	switch {
	case len(have) == 1:
		_, err := fmt.Fprintln(p.out, secret.Reveal())
		return err
	case len(have) > 1:
		return fmt.Errorf("Multiple configured providers matched (%s). Specify --provider", strings.Join(have, ", "))
	case other != nil && a.provider != "":
		return other
	case a.provider != "":
		return fmt.Errorf("No usable %s is configured for provider %q", kind, candidates[0])
	}
	return fmt.Errorf("No usable %s is configured", kind)
}

// printTargets are the providers that a secret may be printed of: the one that
// is named, or all that are set up and have the model.
func printTargets(c *catalog.Catalog, a *authArgs) ([]string, error) {
	if name := strings.TrimSpace(a.provider); name != "" {
		p, ok := c.Provider(name)
		if !ok {
			return nil, unknownProvider(name)
		}
		if a.model != "" {
			if _, err := c.Resolve(a.model, p.ID); err != nil {
				return nil, err
			}
		}
		return []string{p.ID}, nil
	}
	choice, err := c.Resolve(a.model, "")
	if head, _, _ := strings.Cut(strings.TrimSpace(a.model), "/"); err == nil && strings.EqualFold(head, choice.Model.Provider) {
		return []string{choice.Model.Provider}, nil // it is named with the model
	}
	var ids []string
	for _, p := range c.Providers() {
		if !c.HasCredentials(p.ID) {
			continue
		}
		if choice, err := c.Resolve(a.model, p.ID); err == nil && choice.Warning == "" && choice.Model.Provider == p.ID {
			ids = append(ids, p.ID)
		}
	}
	if ids == nil && err != nil {
		return nil, err
	}
	return ids, nil
}
