package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/llm"
)

// Provider is a vendor of models.
type Provider struct {
	ID   string
	Name string
	// Env lists the variables that may hold the key; the first that is set counts.
	Env []string
	// BearerEnv lists variables among Env whose value is sent as an
	// Authorization header in place of the wire format's own key header.
	BearerEnv    []string
	APIs         []string // wire formats of its models
	BaseURL      string   // address of a model without one of its own
	DefaultModel string   // id of the model to start with; "" for the first
	Keyless      bool     // needs no credentials
	// Ambient lists sets of variables. When all of a set are there, the wire
	// format finds credentials by itself, and no key is needed.
	Ambient [][]string
	// Machine says that a machine of the cloud may have credentials of its own,
	// which only a request finds out: one is sent although nothing is set up.
	Machine bool
	// SecretEnv lists variables beside Env that hold credentials, or lead to them.
	SecretEnv []string
	// ModelsURL is the address of a list of its models that anyone may read,
	// for Refresh; "" for none.
	ModelsURL string
}

// Options are the options of New. The zero value has the built-in models and the
// environment's keys.
type Options struct {
	ModelsFile string      // path of models.json; "" for none
	StoreFile  string      // path of models-store.json, the lists that Refresh fetched; "" for none
	Store      *auth.Store // nil for none
	// SignIn tells how a stored sign-in goes with a request; with an error its
	// token goes nowhere. Nil sends tokens as keys, to the model's address. The
	// method Use of signin.Definitions knows those of signin.json.
	SignIn func(provider string, c *auth.OAuth) (auth.Use, error)
	Env    auth.Env
	Run    auth.Runner // for commands in models.json; nil for auth.RunCommand
	// APIs lists the wire formats that the program has; models of others are
	// left out of Models. Nil stands for all.
	APIs []string
}

// Catalog is the set of providers and models of a program. It is safe for
// concurrent use.
type Catalog struct {
	o Options

	mu      sync.Mutex
	runtime map[string]auth.Secret // keys for this run
	added   []addition             // providers and models of the program, in order
	file    *overlay               // models.json, nil until read
	problem error                  // why models.json is not in use
	remarks []Remark               // on models.json
	fetched *modelStore            // models-store.json, nil until read
	virtual []VirtualModel         // of the program, in order
	list    []Provider             // what providers returns, nil until made
	built   map[string][]*llm.Model
}

type addition struct {
	provider Provider
	models   []*llm.Model
}

// New makes a Catalog. It reads nothing yet.
func New(o Options) *Catalog {
	return &Catalog{o: o, runtime: map[string]auth.Secret{}, built: map[string][]*llm.Model{}}
}

// Add adds a provider with its models, or replaces the program's former one of
// the same id. Models without wire format or address get the provider's; what
// they leave out besides is as in models.json: text alone, a window of 128000
// tokens, answers of 16384.
func (c *Catalog) Add(p Provider, models ...*llm.Model) {
	a := addition{provider: p}
	for _, m := range models {
		m = new(*m)
		m.Provider = p.ID
		if m.API == "" && len(p.APIs) > 0 {
			m.API = p.APIs[0]
		}
		if m.BaseURL == "" {
			m.BaseURL = p.BaseURL
		}
		if m.Name == "" {
			m.Name = m.ID
		}
		if m.Input == nil {
			m.Input = []string{"text"}
		}
		m.ContextWindow = cmp.Or(m.ContextWindow, defaultContextWindow)
		m.MaxTokens = cmp.Or(m.MaxTokens, defaultMaxTokens)
		a.models = append(a.models, m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.built, p.ID)
	c.list = nil
	if i := slices.IndexFunc(c.added, func(a addition) bool { return a.provider.ID == p.ID }); i >= 0 {
		c.added[i] = a
		return
	}
	c.added = append(c.added, a)
}

// SetKey sets the key of a provider for this run; it wins over all others and
// is never stored.
func (c *Catalog) SetKey(provider string, key auth.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runtime[provider] = key
}

// Problem tells why models.json is not in use, nil when it is or there is none.
// The built-in models work all the same.
func (c *Catalog) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.overlay()
	return c.problem
}

// Remarks are on members of models.json whose names look like slips. Other
// members that it does not know it leaves alone without a word.
func (c *Catalog) Remarks() []Remark {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.overlay()
	return slices.Clone(c.remarks)
}

// Reload forgets what was read of models.json and models-store.json, so that the
// next call reads them again. A models.json that has become bad leaves the last
// good one in use.
func (c *Catalog) Reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.file
	c.file, c.fetched, c.list = nil, nil, nil
	clear(c.built)
	if c.overlay(); c.problem != nil && last != nil {
		c.file = last
	}
}

// Providers lists all providers: built-in ones, then those that models.json
// adds, then the program's.
func (c *Catalog) Providers() []Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.providers())
}

// SecretNames lists the variables that credentials come from: keys and tokens of
// all providers, what their clouds know a program by, and those that models.json
// and the stored keys name. Processes that a program starts have no need of them.
func (c *Catalog) SecretNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	add := func(headers []header) {
		for _, h := range headers {
			names = append(names, auth.Names(h.value)...)
		}
	}
	for _, p := range c.providers() {
		names = append(names, p.Env...)
		names = append(names, p.SecretEnv...)
	}
	for _, p := range c.overlay().providers {
		names = append(names, auth.Names(p.apiKey)...)
		add(p.headers)
		for _, m := range slices.Concat(p.models, p.overrides) {
			add(m.headers)
		}
	}
	if c.o.Store != nil {
		for _, id := range c.o.Store.Providers() {
			// A key that cannot be read names nothing.
			stored, _ := c.o.Store.Get(id)
			if key, ok := stored.(*auth.APIKey); ok {
				names = append(names, auth.Names(key.Key.Reveal())...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Provider is the provider of an id, in any case.
func (c *Catalog) Provider(id string) (Provider, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.providers() {
		if strings.EqualFold(p.ID, id) {
			return p, true
		}
	}
	return Provider{}, false
}

// Models lists all models that the program can talk to, provider by provider.
func (c *Catalog) Models() []*llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*llm.Model
	for _, p := range c.providers() {
		all = append(all, c.models(p)...)
	}
	return all
}

// ModelsOf lists the models of one provider.
func (c *Catalog) ModelsOf(provider string) []*llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.providers() {
		if p.ID == provider {
			return slices.Clone(c.models(p))
		}
	}
	return nil
}

// Find is the model of an exact provider and id, nil when there is none. It is
// cheap: only that provider's models are decoded.
func (c *Catalog) Find(provider, id string) *llm.Model {
	for _, m := range c.ModelsOf(provider) {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// Available lists the models whose provider is set up, provider by provider.
func (c *Catalog) Available() []*llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*llm.Model
	for _, p := range c.providers() {
		if c.ready(&p) {
			all = append(all, c.models(p)...)
		}
	}
	return all
}

// HasCredentials reports whether a provider is set up, without running commands.
func (c *Catalog) HasCredentials(provider string) bool {
	p, ok := c.Provider(provider)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready(&p)
}

// ready reports whether a request to p has credentials. c.mu is held.
func (c *Catalog) ready(p *Provider) bool {
	return p.Keyless || c.source(*p) != auth.None || c.ambient(p)
}

// StoredProblem tells why a stored credential of a provider is none: the file of
// credentials, or the provider's entry, cannot be used. It is nil when nothing is
// stored, or when what is stored is of use.
func (c *Catalog) StoredProblem(provider string) error {
	if c.o.Store == nil {
		return nil
	}
	if err := c.o.Store.Problem(); err != nil {
		return err
	}
	if !slices.Contains(c.o.Store.Providers(), provider) || c.HasCredentials(provider) {
		return nil
	}
	return fmt.Errorf(`the entry of %s in %s is no key: write {"type": "api_key", "key": "…"}`, provider, c.o.Store.Path())
}

func (c *Catalog) source(p Provider) auth.Source { return auth.Look(c.query(p)) }

// query is where the credentials of p may be. c.mu is held.
func (c *Catalog) query(p Provider) auth.Query {
	q := auth.Query{
		Provider: p.ID,
		Runtime:  c.runtime[p.ID],
		Store:    c.o.Store,
		EnvNames: p.Env,
		Env:      c.o.Env,
		Run:      c.o.Run,
	}
	if f := c.overlay().provider(p.ID); f != nil {
		q.Configured = f.apiKey
	}
	return q
}
