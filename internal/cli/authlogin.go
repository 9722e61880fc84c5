package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/auth/signin"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// storeTimeout is how long storing what a sign-in gave may take, even after an
// interrupt: the issuer has already given it.
const storeTimeout = 15 * time.Second

// authLogin is "pinch auth login".
func authLogin(ctx context.Context, p *program, a *authArgs) error {
	c, creds := p.authCatalog()
	defs, fileErr := creds.definitions()
	provider, ok := c.Provider(a.words[0])
	if !ok {
		d, defined := defs.Lookup(a.words[0])
		if !defined {
			if fileErr != nil {
				return fileErr
			}
			return unknownProvider(a.words[0])
		}
		provider = catalog.Provider{ID: d.Provider, Name: d.DisplayName()}
	}
	if !p.inTerminal || !p.outTerminal {
		fmt.Fprintln(p.errs, `"pinch auth login <provider> [--api-key] [--no-browser]" requires an interactive terminal`)
		return exitError(1)
	}
	if err := creds.store.Problem(); err != nil {
		return err // before anything is asked for that could not be stored
	}
	// Hidden from before the first word to the end: what is typed ahead, or pasted
	// between two readings, is a secret too.
	restore, err := hideTyping(p.in)
	if err != nil {
		return typingShown(err)
	}
	defer restore()
	if a.keychain {
		return p.loginWithKeychain(ctx, creds, &provider)
	}
	if a.apiKey {
		return p.loginWithKey(ctx, creds, &provider)
	}
	if fileErr != nil {
		return fileErr
	}
	d, ok := defs.Lookup(provider.ID)
	if !ok {
		if len(provider.Env) == 0 && !isOwn(c, &provider) {
			return fmt.Errorf("There is no sign-in for %s without a client that the provider has registered for you: describe yours in signin.json, or use a provider with API keys (docs/signin.md names some)", provider.Name)
		}
		fmt.Fprintf(p.out, "%s has no sign-in that any program may use, so an API key is asked for.\n", printable(provider.Name))
		return p.loginWithKey(ctx, creds, &provider)
	}
	return p.loginWithIssuer(ctx, c, creds, d, a.noBrowser)
}

// isOwn reports whether a provider is the person's own, of models.json.
func isOwn(c *catalog.Catalog, p *catalog.Provider) bool {
	builtin, ok := catalog.New(catalog.Options{}).Provider(p.ID)
	return !ok || builtin.ID != p.ID
}

// askKey asks for an API key, which is not shown.
func (p *program) askKey(ctx context.Context, provider *catalog.Provider) (string, error) {
	key, err := p.readHidden(ctx, "API key for "+printable(provider.Name)+" (not shown): ")
	if errors.Is(err, io.EOF) {
		err = errNoKey
	}
	return key, err
}

// loginWithKey asks for an API key and stores it.
func (p *program) loginWithKey(ctx context.Context, creds *credentials, provider *catalog.Provider) error {
	key, err := p.askKey(ctx, provider)
	if err != nil {
		return err
	}
	value, err := keyValue(key)
	if err != nil {
		return err
	}
	return p.storeLogin(ctx, creds, provider.ID, &auth.APIKey{Key: value}, "Saved API key for "+provider.Name)
}

var errNoKey = errors.New("No key was given; nothing is stored")

// checkKey is a typed key without the blanks around it.
func checkKey(key string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", errNoKey
	case strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "", errors.New("A key has no blanks in it; nothing is stored")
	}
	return key, nil
}

// keyValue is a typed key as the file holds it: $ and a leading ! have a meaning
// there.
func keyValue(key string) (auth.Secret, error) {
	key, err := checkKey(key)
	if err != nil {
		return auth.Secret{}, err
	}
	key = strings.ReplaceAll(key, "$", "$$")
	if rest, ok := strings.CutPrefix(key, "!"); ok {
		key = "$!" + rest
	}
	return auth.NewSecret(key), nil
}

// storeLogin stores a credential and says so.
func (p *program) storeLogin(ctx context.Context, creds *credentials, provider string, c auth.Credential, done string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := creds.store.Set(ctx, provider, c); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "%s. It is stored in %s.\n", printable(done), creds.store.Path())
	return err
}

// loginWithIssuer signs the person in and stores the outcome.
func (p *program) loginWithIssuer(ctx context.Context, c *catalog.Catalog, creds *credentials, d signin.Definition, noBrowser bool) error {
	client, err := p.issuerClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	o := signin.Options{Client: client, Show: p.showStep, Paste: p.readPasted}
	if noBrowser {
		o.Flow = signin.Device
	} else {
		secrets := c.SecretNames()
		o.Open = func(_ context.Context, address string) error { return signin.OpenBrowser(address, secrets) }
	}
	credential, err := signin.SignIn(ctx, d, o)
	if err != nil {
		return err
	}
	return p.storeLogin(ctx, creds, d.Provider, credential, "Signed in to "+d.DisplayName())
}

// showStep tells the person what to do.
func (p *program) showStep(s signin.Step) {
	switch s := s.(type) {
	case signin.BrowserStep:
		if s.Opened {
			fmt.Fprintf(p.out, "Sign in on the page that your browser opens. If none does, open this address:\n\n  %s\n\n", printable(s.URL))
		} else {
			fmt.Fprintf(p.out, "Open this address in a browser and sign in:\n\n  %s\n\n", printable(s.URL))
		}
		fmt.Fprintln(p.out, "When the browser runs on another machine, paste the address that it ends at, or the code that the page shows.")
	case signin.DeviceStep:
		fmt.Fprintf(p.out, "Open this page on any device and enter the code:\n\n  %s\n  %s\n\nWaiting until %s (Ctrl-C ends it).\n",
			printable(s.URL), printable(s.Code), s.Expires.Local().Format("15:04"))
	case signin.Note:
		fmt.Fprintln(p.out, printable(string(s)))
	}
}

// printable is text of an issuer for a terminal.
func printable(text string) string { return sentence(errors.New(text)) }

// readPasted reads what the person pastes while the browser is at work.
func (p *program) readPasted(ctx context.Context) (string, error) {
	return p.readHidden(ctx, "Waiting for the browser; or paste here (not shown): ")
}

// authLogout is "pinch auth logout".
func authLogout(ctx context.Context, p *program, a *authArgs) error {
	const unchanged = "Environment variables and models.json config are unchanged."
	c, creds := p.authCatalog()
	id := strings.TrimSpace(a.words[0])
	name := id
	provider, known := c.Provider(id)
	if known {
		id, name = provider.ID, provider.Name
	}
	stored, err := creds.store.Get(id)
	if err == nil {
		err = creds.store.Problem()
	}
	if err != nil {
		return err
	}
	if stored == nil && !known {
		defs, _ := creds.definitions()
		if _, defined := defs.Lookup(id); !defined {
			return unknownProvider(id)
		}
	}
	if inKeychain(id, stored) {
		if err := creds.store.RemoveFromKeychain(ctx, id); err != nil {
			return err // the entry stays, so that trying again finds the key
		}
	}
	removed, err := creds.store.Remove(ctx, id)
	if err != nil {
		return err
	}
	text := "No stored credentials for " + name + ". " + unchanged
	if removed {
		switch stored.(type) {
		case *auth.OAuth:
			text = "Logged out of " + name
		default:
			text = "Removed stored API key for " + name + ". " + unchanged
		}
	}
	_, err = fmt.Fprintln(p.out, printable(text))
	return err
}
