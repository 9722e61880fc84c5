package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// providerState is a line of "auth status". It has no secrets.
type providerState struct {
	id, name string
	source   string // auth.json, models.json or environment
	variable string // with environment
	kind     string // api_key, oauth, or another type of the file
	value    string // of a key in a file: literal, variable, command or keychain
	expires  time.Time
	permanent,
	renews bool // a token that is renewed by itself
	problem string // why it cannot be used
}

// authStatus is "pinch auth status".
func authStatus(ctx context.Context, p *program, a *authArgs) error {
	c, store := p.lookCatalog()
	p.warnModelsFile(c)
	if err := store.Problem(); err != nil {
		return err
	}
	if err := store.Exposure(); err != nil {
		p.warn("%s", sentence(err))
	}
	states := providerStates(ctx, c, store)
	if a.json {
		_, err := fmt.Fprintln(p.out, statesJSON(states))
		return err
	}
	if len(states) == 0 {
		_, err := fmt.Fprintln(p.out, "No provider is set up. Sign in with pinch auth login PROVIDER (openrouter, huggingface and others), or set an API key in its environment variable.")
		return err
	}
	_, err := fmt.Fprint(p.out, statesTable(states, time.Now()))
	return err
}

// providerStates looks at every provider, in the order of the catalogue, and at
// stored entries of providers that nobody knows.
func providerStates(ctx context.Context, c *catalog.Catalog, store *auth.Store) []providerState {
	var states []providerState
	var known []string
	for _, p := range c.Providers() {
		known = append(known, p.ID)
		stored, err := store.Get(p.ID)
		if err == nil && stored != nil {
			states = append(states, storedState(c, p.ID, p.Name, stored))
			continue
		}
		if s, ok := foundState(ctx, c, &p); ok {
			states = append(states, s)
		}
	}
	for _, id := range store.Providers() {
		if stored, err := store.Get(id); err == nil && stored != nil && !slices.Contains(known, id) {
			s := storedState(c, id, id, stored)
			s.problem = "no such provider is known"
			states = append(states, s)
		}
	}
	return states
}

// storedState describes an entry of the file of credentials.
func storedState(c *catalog.Catalog, id, name string, stored auth.Credential) providerState {
	s := providerState{id: id, name: name, source: "auth.json"}
	switch stored := stored.(type) {
	case *auth.APIKey:
		s.kind = typeKey
		switch value := stored.Key.Reveal(); {
		case stored.Keychain != "":
			s.value = "keychain"
		case auth.IsCommand(value):
			s.value = "command"
		case len(auth.Names(value)) > 0:
			s.value = "variable"
		default:
			s.value = "literal"
		}
		if !c.HasCredentials(id) {
			s.problem = "the key is empty, or names a variable that is not set"
		}
	case *auth.OAuth:
		s.kind = typeOAuth
		s.expires = stored.Expires
		s.permanent = !stored.Expires.Before(auth.Permanent())
		s.renews = !s.permanent && !stored.Refresh.IsEmpty()
		switch {
		case stored.Access.IsEmpty() && stored.Refresh.IsEmpty():
			s.problem = "has no token; sign in again"
		case !s.permanent && !s.renews && !stored.Expires.After(time.Now()):
			s.problem = "expired; sign in again"
		}
	case *auth.UnknownCredential:
		s.kind = stored.Type
		s.problem = "an entry of a type that is not known"
	}
	return s
}

// foundState describes credentials that are not stored; ok is false when there
// are none.
func foundState(ctx context.Context, c *catalog.Catalog, p *catalog.Provider) (s providerState, ok bool) {
	s = providerState{id: p.ID, name: p.Name, kind: typeKey}
	access, err := c.Auth(ctx, &llm.Model{Provider: p.ID})
	_, none := errors.AsType[*llm.KeyError](err)
	unresolved, isUnresolved := errors.AsType[*auth.UnresolvedError](err)
	switch {
	case none:
		return s, false
	case isUnresolved:
		s.source, s.value = "models.json", "command"
		if unresolved.Command == "" {
			s.value = "variable"
			s.problem = "names a variable that is not set: " + strings.Join(unresolved.Names, ", ")
		}
	case err != nil:
		s.source, s.problem = "models.json", err.Error()
	case access.Source == auth.ModelsFile:
		s.source, s.value = "models.json", "literal"
	case access.Source == auth.Environment:
		s.source = "environment"
		for _, name := range p.Env {
			if (auth.Env{}).Credential(name) != "" {
				s.variable = name
				break
			}
		}
	default:
		return s, false // a provider that needs no key
	}
	return s, true
}

// statesTable is the table for people.
func statesTable(states []providerState, now time.Time) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tSOURCE\tTYPE\tEXPIRES")
	for _, s := range states {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cell(s.id), cell(s.from()), cell(s.what()), cell(s.expiry(now)))
	}
	w.Flush()
	return b.String()
}

// from is where the credential is.
func (s *providerState) from() string {
	if s.variable != "" {
		return s.source + " (" + s.variable + ")"
	}
	return s.source
}

// what is the kind of the credential, and what holds it when that is not the file.
func (s *providerState) what() string {
	if s.value != "" && s.value != "literal" {
		return s.kind + " (" + s.value + ")"
	}
	return s.kind
}

// cell is text for a table: what is in files may hold anything.
func cell(text string) string {
	if text = sentence(errors.New(text)); text == "" {
		return "-"
	}
	return text
}

// expiry is the last column: when a token ends, or what is wrong.
func (s *providerState) expiry(now time.Time) string {
	switch {
	case s.problem != "":
		return s.problem
	case s.permanent:
		return "never"
	case s.kind != typeOAuth:
		return ""
	}
	left := s.expires.Sub(now)
	text := "in " + roughly(left)
	switch {
	case left <= 0 && s.renews:
		return "expired, is renewed when it is used"
	case left <= 0:
		return "expired"
	case s.renews:
		text += ", is renewed by itself"
	}
	return text
}

// roughly is a time in its largest unit.
func roughly(d time.Duration) string {
	const year = 365 * 24 * time.Hour
	if d > 100*year {
		return "more than 100 years"
	}
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int64(d / unit.size); n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a minute"
}

// statesJSON is the list for programs.
func statesJSON(states []providerState) string {
	return string(jsonwire.AppendArray(nil, states, func(s providerState, b []byte) []byte {
		o := jsonwire.Begin(b)
		o.Text("provider", s.id)
		o.Text("name", s.name)
		o.Text("source", s.source)
		o.OptText("variable", s.variable)
		o.Text("authType", s.kind)
		o.OptText("value", s.value)
		if s.kind == typeOAuth {
			if s.permanent {
				o.Raw("expires", []byte("null"))
			} else {
				o.Text("expires", s.expires.UTC().Format(time.RFC3339))
			}
			o.Bool("renews", s.renews)
		}
		o.Bool("usable", s.problem == "")
		o.OptText("problem", s.problem)
		return o.End()
	}))
}
