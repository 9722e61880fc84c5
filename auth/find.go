package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Source tells where a credential came from.
type Source string

// The sources, in the order in which they count.
const (
	None        Source = ""
	Runtime     Source = "runtime"     // given for this run
	Stored      Source = "stored"      // an api_key entry of the store
	StoredOAuth Source = "oauth"       // an oauth entry of the store
	ModelsFile  Source = "models.json" // the apiKey of models.json
	Environment Source = "environment"
)

// Query names what may hold the credentials of a provider.
type Query struct {
	Provider string // id
	Runtime  Secret // key for this run; never stored
	Store    *Store // nil for none
	// Configured is the value that models.json gives, "" for none. It is
	// resolved at each call, as its command may print a short-lived key.
	Configured string
	EnvNames   []string // variables to try, first that is set
	Env        Env
	Run        Runner // for commands of Configured; nil for RunCommand
}

// Credentials are what Find found.
type Credentials struct {
	Source   Source
	Key      Secret
	Variable string            // the variable that held the key, with Environment and stored variables
	Env      map[string]string // variables that go with a stored key
	OAuth    *OAuth            // with StoredOAuth
	// Warning is what a person should hear although the credentials can be used:
	// a token that could not be renewed yet, or whose renewal is not stored.
	Warning error
}

// Find looks for the credentials of a provider. Source is None when there are
// none. A stored credential owns its provider: when it cannot be used that is an
// error, and the environment is not asked.
func Find(ctx context.Context, q Query) (Credentials, error) {
	found, err := find(ctx, q)
	if _, gone := errors.AsType[*NoSignInError](err); gone && ctx.Err() == nil {
		return find(ctx, q) // the person signed out, or stored a key, meanwhile
	}
	return found, err
}

func find(ctx context.Context, q Query) (Credentials, error) {
	if !q.Runtime.IsEmpty() {
		return Credentials{Source: Runtime, Key: q.Runtime}, nil
	}
	what := fmt.Sprintf("API key for provider %q", q.Provider)
	if q.Store != nil {
		c, err := q.Store.Get(q.Provider)
		if err != nil {
			return Credentials{}, err
		}
		switch c := c.(type) {
		case *APIKey:
			if c.Keychain != "" {
				key, err := q.Store.keychainKey(ctx, c.Keychain)
				if err != nil {
					return Credentials{}, err
				}
				return Credentials{Source: Stored, Key: key, Env: c.Env}, nil
			}
			if name := c.variable(q.EnvNames); name != "" {
				return Credentials{Source: Stored, Key: NewSecret(c.Env[name]), Variable: name, Env: c.Env}, nil
			}
			key, err := ResolveFor(ctx, what, c.Key.Reveal(), q.Env.With(c.Env), q.Store.run)
			if err != nil {
				return Credentials{}, err
			}
			return Credentials{Source: Stored, Key: NewSecret(key), Env: c.Env}, nil
		case *OAuth:
			return q.Store.Token(ctx, q.Provider, MinLife)
		case *UnknownCredential:
			return Credentials{}, fmt.Errorf("auth: the stored credential of provider %q has the unknown type %q", q.Provider, c.Type)
		}
	}
	if q.Configured != "" {
		key, err := ResolveFor(ctx, what, q.Configured, q.Env, q.Run)
		if err != nil {
			return Credentials{}, err
		}
		return Credentials{Source: ModelsFile, Key: NewSecret(key)}, nil
	}
	for _, name := range q.EnvNames {
		if v := q.Env.Credential(name); v != "" {
			return Credentials{Source: Environment, Key: NewSecret(v), Variable: name}, nil
		}
	}
	return Credentials{}, nil
}

// variable is the first of names that an entry without a key has among its
// variables, "" for none.
func (c *APIKey) variable(names []string) string {
	if c.Key.IsEmpty() {
		for _, name := range names {
			if strings.TrimSpace(c.Env[name]) != "" {
				return name
			}
		}
	}
	return ""
}

// Look tells which source Find would use, without running a command or
// refreshing a token: whether a provider is set up, not whether its key works.
func Look(q Query) Source {
	if !q.Runtime.IsEmpty() {
		return Runtime
	}
	if q.Store != nil {
		c, _ := q.Store.Get(q.Provider)
		switch c := c.(type) {
		case *APIKey:
			if c.Keychain != "" || c.variable(q.EnvNames) != "" || resolvable(c.Key.Reveal(), q.Env.With(c.Env)) {
				return Stored
			}
			return None
		case *OAuth:
			return StoredOAuth
		case *UnknownCredential:
			return None
		}
	}
	if q.Configured != "" {
		if resolvable(q.Configured, q.Env) {
			return ModelsFile
		}
		return None
	}
	for _, name := range q.EnvNames {
		if q.Env.Credential(name) != "" {
			return Environment
		}
	}
	return None
}

// resolvable reports whether a value has a text as far as one can tell without
// running it.
func resolvable(value string, env Env) bool {
	if IsCommand(value) {
		return true
	}
	text, err := expand(value, env)
	return err == nil && text != ""
}
