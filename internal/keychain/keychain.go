// Package keychain reaches the system's store of secrets: the keychain of macOS,
// the credential manager of Windows, the secret service of a Linux desktop. It is
// apart from package auth so that programs which embed the engine do not link
// what those need.
//
// Secrets never stand in arguments of processes: on macOS the system's program
// reads them from its standard input, elsewhere no program is started.
package keychain

import (
	"context"
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"

	"github.com/pinch-agent/pinch/auth"
)

// System is the keychain of the user who runs the program. Its calls may wait
// for the person to unlock it, and end with their context. It is an
// auth.Keychain.
type System struct{}

var _ auth.Keychain = System{}

// maxSecret is how many bytes of a secret the tightest of the systems takes.
const maxSecret = 2500

// errTooLong says that a secret is too long for a keychain.
var errTooLong = fmt.Errorf("a secret of more than %d bytes does not fit", maxSecret)

// Get gives the secret of an item, auth.ErrNoItem when there is none.
func (System) Get(ctx context.Context, service, account string) (secret string, err error) {
	return call(ctx, func() (string, error) { return keyring.Get(service, account) })
}

// Set makes an item, or replaces its secret.
func (System) Set(ctx context.Context, service, account, secret string) error {
	if len(secret) > maxSecret {
		return errTooLong
	}
	_, err := call(ctx, func() (string, error) { return "", keyring.Set(service, account, secret) })
	return err
}

// Delete removes an item, auth.ErrNoItem when there is none.
func (System) Delete(ctx context.Context, service, account string) error {
	_, err := call(ctx, func() (string, error) { return "", keyring.Delete(service, account) })
	return err
}

// call asks the keychain. The library knows no context: a question to the person
// that is still open when ctx ends is left alone, and waits for the person.
func call(ctx context.Context, ask func() (string, error)) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := reachable(); err != nil {
		return "", err
	}
	type answer struct {
		secret string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		secret, err := ask()
		answered <- answer{secret, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-answered:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			a.err = auth.ErrNoItem
		case errors.Is(a.err, keyring.ErrUnsupportedPlatform):
			a.err = errors.New("this system has none")
		}
		return a.secret, a.err
	}
}
