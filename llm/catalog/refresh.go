package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/version"
	"github.com/pinch-agent/pinch/llm"
)

// RefreshOptions say what Refresh does. The zero value asks for every provider
// that has an address of its list.
type RefreshOptions struct {
	// Providers limits it to these; each needs a ModelsURL, or URL.
	Providers []string
	// URL is the list of the one provider in Providers, in place of its own.
	URL   string
	Force bool // also when the list was fetched less than four hours ago
	// Client sends the requests; nil for one that uses the proxies of the
	// environment. Keys are never sent.
	Client *http.Client
	Now    func() time.Time // nil for time.Now
}

// Refreshed tells what became of one provider's list.
type Refreshed struct {
	Provider string
	URL      string // without a password
	Outcome  RefreshOutcome
	Models   int   // that the list names; 0 unless Updated
	Err      error // a *RefreshError, nil unless Failed
}

// RefreshOutcome is the outcome for one provider.
type RefreshOutcome string

// The outcomes. In all but the first the models are those of before.
const (
	RefreshUpdated   RefreshOutcome = "updated"
	RefreshUnchanged RefreshOutcome = "unchanged" // the service says so
	RefreshRecent    RefreshOutcome = "recent"    // not asked: it was less than four hours ago
	RefreshFailed    RefreshOutcome = "failed"
)

// ErrOffline says that the environment forbids requests that nobody needs:
// PINCH_OFFLINE or PI_OFFLINE is set.
var ErrOffline = errors.New("Skipped model updates (offline mode)")

// RefreshError says why a list of models was not taken over.
type RefreshError struct {
	Provider string
	URL      string // without a password
	Cause    error
}

func (e *RefreshError) Error() string {
	return fmt.Sprintf("The list of models of %s at %s was not taken over: %v. The models known so far stay", e.Provider, e.URL, e.Cause)
}

func (e *RefreshError) Unwrap() error { return e.Cause }

const (
	refreshEvery = 4 * time.Hour
	refreshTry   = 4 * time.Second
	refreshTries = 2
	maxListing   = 16 << 20 // bytes
)

// Refresh fetches lists of models, and keeps them in Options.StoreFile, where
// they count from then on if they are newer than the built-in data. Nothing
// calls it but the program: starting never asks anybody.
//
// The addresses are those of Provider.ModelsURL: OpenRouter's public list, and
// what models.json names as modelsUrl. A list brings facts (names, prices,
// limits, what a model takes); it cannot change where requests go, and one that
// is empty, broken or implausible leaves everything as it was. The result has
// one element for each provider; the error is ErrOffline, misuse, or a store
// that cannot be written.
func (c *Catalog) Refresh(ctx context.Context, o RefreshOptions) ([]Refreshed, error) {
	if offline(c.o.Env) {
		return nil, ErrOffline
	}
	if c.o.StoreFile == "" {
		return nil, errors.New("refresh models: there is no file to keep them in: set Options.StoreFile")
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	if o.Client != nil {
		client = new(*o.Client)
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = staySafe
	}
	targets, err := c.targets(o)
	if err != nil {
		return nil, err
	}
	var out []Refreshed
	for _, t := range targets {
		r, err := c.refresh(ctx, client, t, o.Force, now)
		if err != nil {
			return out, err
		}
		out = append(out, r)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return out, nil
}

// target is a list to fetch.
type target struct {
	provider Provider // as it is built in or added, without the addresses of models.json
	url      *url.URL
}

func (c *Catalog) targets(o RefreshOptions) ([]target, error) {
	if o.URL != "" && len(o.Providers) != 1 {
		return nil, errors.New("refresh models: an address needs the one provider whose list it is")
	}
	var out []target
	add := func(p Provider, address string) error {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("The address of the list of models of %s must begin with https:// or http://", p.ID)
		}
		known, ok := builtinProvider(p.ID)
		if !ok {
			known = p
		}
		out = append(out, target{known, u})
		return nil
	}
	if o.Providers == nil {
		for _, p := range c.Providers() {
			if p.ModelsURL == "" {
				continue
			}
			if err := add(p, p.ModelsURL); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, id := range o.Providers {
		p, ok := c.Provider(id)
		if !ok {
			return nil, fmt.Errorf("Unknown provider %q. Use --list-models to see available providers/models.", id)
		}
		address := o.URL
		if address == "" {
			address = p.ModelsURL
		}
		if address == "" {
			return nil, fmt.Errorf("No address is known for the list of models of %s: give one, or set modelsUrl for it in models.json", p.ID)
		}
		if err := add(p, address); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// refresh fetches one list. The error is of the store; what is wrong with the
// list is in the result.
func (c *Catalog) refresh(ctx context.Context, client *http.Client, t target, force bool, now func() time.Time) (Refreshed, error) {
	id := t.provider.ID
	r := Refreshed{Provider: id, URL: t.url.Redacted()}
	fail := func(err error) (Refreshed, error) {
		r.Outcome, r.Err = RefreshFailed, &RefreshError{id, r.URL, err}
		return r, nil
	}
	c.mu.Lock()
	old := readStore(c.o.StoreFile).entry(id)
	existing := c.base(&t.provider)
	c.mu.Unlock()
	if old != nil && old.url != "" && old.url != r.URL {
		old = nil // of another list
	}
	if age := time.Duration(0); old != nil && !force {
		if age = now().Sub(old.checkedAt); age >= 0 && age < refreshEvery {
			r.Outcome = RefreshRecent
			return r, nil
		}
	}
	etag := ""
	if old != nil && old.url == r.URL {
		etag = old.etag
	}
	answer, err := fetch(ctx, client, t.url, etag)
	if err != nil {
		return fail(err)
	}
	entry := &storeEntry{checkedAt: now(), lastModified: answer.lastModified, etag: answer.etag, url: r.URL}
	if answer.unchanged {
		if old == nil {
			return fail(errors.New("the service says that nothing changed, but nothing is here"))
		}
		entry.models, entry.lastModified, entry.etag = old.models, old.lastModified, old.etag
		r.Outcome = RefreshUnchanged
	} else {
		models, err := readListing(answer.body, &t.provider, existing)
		if err != nil {
			return fail(err)
		}
		entry.models = joined(models)
		r.Outcome, r.Models = RefreshUpdated, len(models)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.save(id, entry); err != nil {
		return r, fmt.Errorf("The models of %s could not be kept: %w", id, err)
	}
	c.fetched = nil
	clear(c.built)
	return r, nil
}

// base lists a provider's models without anything fetched and without
// models.json. c.mu is held.
func (c *Catalog) base(p *Provider) []*llm.Model {
	for i := range c.added {
		if c.added[i].provider.ID == p.ID {
			return c.added[i].models
		}
	}
	return builtinModels(p)
}

type listAnswer struct {
	body         []byte
	etag         string
	lastModified string
	unchanged    bool
}

// fetch asks for a list, once more when the first try fails in a way that may
// pass.
func fetch(ctx context.Context, client *http.Client, u *url.URL, etag string) (answer listAnswer, err error) {
	for range refreshTries {
		var passing bool
		if answer, passing, err = try(ctx, client, u, etag); err == nil || !passing || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

func try(ctx context.Context, client *http.Client, u *url.URL, etag string) (answer listAnswer, passing bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTry)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer, false, errors.New("the address cannot be asked")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "pinch/"+version.Version)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer, true, unasked(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		answer.unchanged = true
		return answer, false, nil
	case resp.StatusCode != http.StatusOK:
		return answer, resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests,
			fmt.Errorf("the service answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	answer.body, err = io.ReadAll(io.LimitReader(resp.Body, maxListing+1))
	if err != nil {
		return answer, true, unasked(err)
	}
	if len(answer.body) > maxListing {
		return answer, false, errors.New("it is larger than 16 MiB")
	}
	answer.etag, answer.lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	return answer, false, nil
}

// unasked is why there is no answer, without the address, which may hold a
// password.
func unasked(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer came in four seconds")
	}
	return err
}

// staySafe keeps a redirect from leaving TLS.
func staySafe(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 5:
		return errors.New("it redirects again and again")
	case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
		return errors.New("it redirects to an address without TLS")
	}
	return nil
}

func offline(env auth.Env) bool {
	for _, name := range []string{"PINCH_OFFLINE", "PI_OFFLINE"} {
		switch strings.ToLower(env.Get(name)) {
		case "1", "true", "yes":
			return true
		}
	}
	return false
}

func joined(list []jsontext.Value) jsontext.Value {
	return jsonwire.AppendArray(nil, list, func(v jsontext.Value, b []byte) []byte { return append(b, v...) })
}
