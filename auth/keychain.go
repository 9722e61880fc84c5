package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Keychain is the system's store of secrets: the keychain of macOS, the
// credential manager of Windows, a secret service on Linux. This package knows
// none; a program hands one in with StoreOptions. An implementation must not
// put secrets into arguments of processes.
type Keychain interface {
	// Get gives the secret of an item, ErrNoItem when there is no such item.
	Get(ctx context.Context, service, account string) (string, error)
	// Set makes an item, or replaces its secret.
	Set(ctx context.Context, service, account, secret string) error
	// Delete removes an item; one that does not exist is an ErrNoItem.
	Delete(ctx context.Context, service, account string) error
}

// ErrNoItem says that a keychain has no such item.
var ErrNoItem = errors.New("there is no such item")

// KeychainService is the service of the items that the Store makes; their
// account is the provider.
const KeychainService = "pinch"

// KeychainItem splits the name of an item, service/account, at its first slash.
func KeychainItem(name string) (service, account string, ok bool) {
	service, account, ok = strings.Cut(name, "/")
	return service, account, ok && service != "" && account != ""
}

// KeychainError says that an item of the keychain cannot be used.
type KeychainError struct {
	Item  string // service/account
	Op    string // read, write, remove
	Cause error
}

func (e *KeychainError) Error() string {
	if errors.Is(e.Cause, ErrNoItem) {
		return fmt.Sprintf("The system keychain has no item %s: store the key again, or put it into auth.json", e.Item)
	}
	return fmt.Sprintf("Failed to %s the item %s of the system keychain: %v; unlock the keychain, or put the key into auth.json", e.Op, e.Item, e.Cause)
}

func (e *KeychainError) Unwrap() error { return e.Cause }

var (
	errNoKeychain = errors.New("this program has no access to a keychain")
	errItemName   = errors.New("the name is not of the form service/account")
	errItemEmpty  = errors.New("the item is empty")
)

// inKeychain does something with an item of the keychain.
func (s *Store) inKeychain(op, item string, do func(service, account string) error) error {
	service, account, ok := KeychainItem(item)
	err := errNoKeychain
	switch {
	case !ok:
		err = errItemName
	case s.keychain != nil:
		err = do(service, account)
	}
	if err != nil {
		return &KeychainError{Item: item, Op: op, Cause: err}
	}
	return nil
}

// keychainKey reads a key from the keychain, once for each item and process: a
// keychain may ask a person each time.
func (s *Store) keychainKey(ctx context.Context, item string) (Secret, error) {
	s.mu.Lock()
	key, known := s.keys[item]
	s.mu.Unlock()
	if known {
		return key, nil
	}
	err := s.inKeychain("read", item, func(service, account string) error {
		text, err := s.keychain.Get(ctx, service, account)
		if err == nil && text == "" {
			err = errItemEmpty
		}
		key = NewSecret(text)
		return err
	})
	if ctx.Err() != nil {
		return Secret{}, ctx.Err()
	}
	if err != nil {
		return Secret{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[item] = key
	return key, nil
}

// SetInKeychain stores the key of a provider in the keychain, and in the file
// where it is.
func (s *Store) SetInKeychain(ctx context.Context, provider string, key Secret) error {
	item := KeychainService + "/" + provider
	err := s.inKeychain("write", item, func(service, account string) error {
		return s.keychain.Set(ctx, service, account, key.Reveal())
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.keys, item)
	s.mu.Unlock()
	return s.Set(ctx, provider, &APIKey{Keychain: item})
}

// RemoveFromKeychain removes the item of a provider that SetInKeychain made; it
// is no error that there is none. Remove leaves the keychain alone.
func (s *Store) RemoveFromKeychain(ctx context.Context, provider string) error {
	item := KeychainService + "/" + provider
	err := s.inKeychain("remove", item, func(service, account string) error {
		return s.keychain.Delete(ctx, service, account)
	})
	s.mu.Lock()
	delete(s.keys, item)
	s.mu.Unlock()
	if errors.Is(err, ErrNoItem) {
		return nil
	}
	return err
}
