package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/auth/signin"
	"github.com/pinch-agent/pinch/internal/keychain"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/resource"
)

// credentials are the stored credentials of a program with what renews them.
type credentials struct {
	store *auth.Store
	// definitions are those of signin.json on top of the built-in ones. They are
	// read when the first sign-in needs them.
	definitions func() (*signin.Definitions, error)
}

// openCredentials makes the store of the agent folder, with what older files hold
// of credentials moved into it.
func (p *program) openCredentials() *credentials {
	folder := resource.AgentFolder(p.getenv, p.home)
	c := &credentials{definitions: sync.OnceValues(func() (*signin.Definitions, error) {
		return signin.Load(filepath.Join(folder, "signin.json"))
	})}
	c.store = auth.OpenStore(filepath.Join(folder, "auth.json"), auth.StoreOptions{
		Keychain: keychain.System{},
		Refresh: func(ctx context.Context, provider string, o *auth.OAuth) (*auth.OAuth, error) {
			client, err := p.issuerClient()
			if err != nil {
				return nil, err
			}
			defer client.CloseIdleConnections()
			return signin.Refresher(c.definitions, signin.Options{Client: client})(ctx, provider, o)
		},
	})
	p.stores.add(c.store)
	p.moveOldKeys(folder, c.store)
	return c
}

// openStores are the stores of credentials that a program writes. Safe for
// concurrent use.
type openStores struct {
	mu   sync.Mutex
	list []*auth.Store
}

func (o *openStores) add(s *auth.Store) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, s)
}

// busy reports whether something of a store would be lost if the program ended.
func (o *openStores) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.list, (*auth.Store).Busy)
}

// use tells how a stored sign-in goes with a request. What signin.json says may be
// where the token has to go, so that without it the token goes nowhere.
func (c *credentials) use(provider string, o *auth.OAuth) (auth.Use, error) {
	defs, err := c.definitions()
	if err != nil {
		return auth.Use{}, err
	}
	return defs.Use(provider, o), nil
}

// issuerClient is the client for requests to issuers: through the person's proxy.
func (p *program) issuerClient() (*http.Client, error) {
	folder := resource.AgentFolder(p.getenv, p.home)
	o, err := requestOptions(settings.Merge(settings.Read(filepath.Join(folder, "settings.json")), nil))
	if err != nil {
		return nil, err
	}
	if o.Client != nil {
		return o.Client, nil
	}
	return wire.NewClient(http.ProxyFromEnvironment), nil
}

var errNoCommands = errors.New("no command is run for this")

// lookCatalog is the catalogue for looking at credentials: it renews no token and
// runs no command.
func (p *program) lookCatalog() (*catalog.Catalog, *auth.Store) {
	folder := resource.AgentFolder(p.getenv, p.home)
	refuse := func(context.Context, string) (string, error) { return "", errNoCommands }
	store := auth.OpenStore(filepath.Join(folder, "auth.json"), auth.StoreOptions{Run: refuse, Keychain: unopened{}})
	return catalog.New(catalog.Options{
		ModelsFile: filepath.Join(folder, "models.json"),
		Store:      store,
		Run:        refuse,
	}), store
}

// authCatalog is the catalogue of all providers, whatever wire formats there are.
func (p *program) authCatalog() (*catalog.Catalog, *credentials) {
	creds := p.openCredentials()
	return catalog.New(catalog.Options{
		ModelsFile: filepath.Join(resource.AgentFolder(p.getenv, p.home), "models.json"),
		Store:      creds.store,
	}), creds
}

// unknownProvider is the error for a name that no provider has.
func unknownProvider(name string) error {
	return fmt.Errorf("Unknown provider %q. docs/models.md lists those that are built in; others are described in models.json", name)
}
