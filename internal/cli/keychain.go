package cli

import (
	"context"
	"fmt"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// loginWithKeychain asks for an API key and stores it in the system's keychain.
func (p *program) loginWithKeychain(ctx context.Context, creds *credentials, provider *catalog.Provider) error {
	key, err := p.askKey(ctx, provider)
	if err != nil {
		return err
	}
	key, err = checkKey(key)
	if err != nil {
		return err
	}
	// The keychain may ask the person, who can give up: nothing is lost by it.
	if err := creds.store.SetInKeychain(ctx, provider.ID, auth.NewSecret(key)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "Saved API key for %s. It is in the system's keychain; %s says so.\n", printable(provider.Name), creds.store.Path())
	return err
}

// inKeychain reports whether a stored key is in the item that pinch made for a
// provider.
func inKeychain(provider string, stored auth.Credential) bool {
	key, ok := stored.(*auth.APIKey)
	return ok && key.Keychain == auth.KeychainService+"/"+provider
}

// unopened is a keychain for looking at credentials: it stays closed, as opening
// it may ask the person.
type unopened struct{}

func (unopened) Get(context.Context, string, string) (string, error) { return "", errNoCommands }

func (unopened) Set(context.Context, string, string, string) error { return errNoCommands }

func (unopened) Delete(context.Context, string, string) error { return errNoCommands }
