package auth

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// chain is a keychain in memory.
type chain struct {
	items map[string]string
	reads int
	err   error
}

func (c *chain) Get(_ context.Context, service, account string) (string, error) {
	c.reads++
	secret, ok := c.items[service+"/"+account]
	if !ok && c.err == nil {
		return "", ErrNoItem
	}
	return secret, c.err
}

func (c *chain) Set(_ context.Context, service, account, secret string) error {
	if c.err == nil {
		c.items[service+"/"+account] = secret
	}
	return c.err
}

func (c *chain) Delete(_ context.Context, service, account string) error {
	if _, ok := c.items[service+"/"+account]; !ok {
		return ErrNoItem
	}
	delete(c.items, service+"/"+account)
	return nil
}

func TestKeyInKeychain(t *testing.T) {
	c := &chain{items: map[string]string{}}
	s := OpenStore(newStore(t, "").Path(), StoreOptions{Keychain: c})
	find := func() (Credentials, error) {
		return Find(t.Context(), Query{Provider: "p", Store: s, EnvNames: []string{"KEY"}, Env: Env{Scoped: map[string]string{"KEY": "from environment"}}})
	}
	if err := s.SetInKeychain(t.Context(), "p", NewSecret("$ecret")); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"p\": {\n    \"type\": \"api_key\",\n    \"keychain\": \"pinch/p\"\n  }\n}"
	if b, _ := os.ReadFile(s.Path()); string(b) != want {
		t.Errorf("stored %s", b)
	}
	for range 2 {
		if found, err := find(); err != nil || found.Source != Stored || found.Key.Reveal() != "$ecret" {
			t.Errorf("%v %q %v", found.Source, found.Key.Reveal(), err)
		}
	}
	if c.reads != 1 {
		t.Errorf("asked %d times", c.reads)
	}
	if Look(Query{Provider: "p", Store: s}) != Stored || c.reads != 1 {
		t.Error("Look asks, or sees nothing")
	}
	if err := s.SetInKeychain(t.Context(), "p", NewSecret("next")); err != nil {
		t.Fatal(err)
	}
	if found, err := find(); err != nil || found.Key.Reveal() != "next" {
		t.Errorf("%q %v", found.Key.Reveal(), err)
	}
	for range 2 {
		if err := s.RemoveFromKeychain(t.Context(), "p"); err != nil {
			t.Error(err)
		}
	}
	_, err := find()
	if !errors.Is(err, ErrNoItem) || !strings.Contains(err.Error(), "has no item pinch/p") {
		t.Errorf("got %v", err)
	}
	c.err = errors.New("the collection is locked")
	if _, err = find(); err == nil || !strings.Contains(err.Error(), "Failed to read the item pinch/p of the system keychain: the collection is locked") {
		t.Errorf("got %v", err)
	}
	if err := s.SetInKeychain(t.Context(), "q", NewSecret("k")); err == nil || len(s.Providers()) != 1 {
		t.Errorf("%v %v", err, s.Providers())
	}
	// A key in the file takes the keychain's place.
	if err := s.Set(t.Context(), "p", &APIKey{Key: NewSecret("plain")}); err != nil {
		t.Fatal(err)
	}
	if found, err := find(); err != nil || found.Key.Reveal() != "plain" {
		t.Errorf("%q %v", found.Key.Reveal(), err)
	}
}

func TestNoKeychain(t *testing.T) {
	for content, want := range map[string]string{
		`{"p":{"type":"api_key","keychain":"pinch/p"}}`:  "this program has no access to a keychain",
		`{"p":{"type":"api_key","keychain":"nonsense"}}`: "the name is not of the form service/account",
	} {
		s := newStore(t, content)
		_, err := Find(t.Context(), Query{Provider: "p", Store: s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
