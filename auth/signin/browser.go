package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/pinch-agent/pinch/auth"
)

// browser runs the authorization code flow with PKCE.
func (f *flow) browser(ctx context.Context) (*auth.OAuth, error) {
	state, verifier := randomText(), oauth2.GenerateVerifier()
	f.hide = append(f.hide, state, verifier)
	stateInPath := f.d.KeyURL != ""
	path := cmp.Or(f.d.Redirect.Path, "/callback")
	if stateInPath {
		path += "/" + state
	}
	server, err := listen(ctx, f.d.Redirect, path)
	if err != nil {
		if cause := ended(ctx); cause != nil {
			return nil, cause
		}
		e := f.errorf(Local, "port %d, which the issuer wants the answer to come to, cannot be used (%v): close the program that has it and sign in again", f.d.Redirect.Port, err)
		e.Cause = err
		return nil, e
	}
	defer server.stop()
	if err := f.register(ctx, server.address, Browser); err != nil {
		return nil, err
	}
	address, err := f.authorizeURL(server.address, state, verifier)
	if err != nil {
		return nil, err
	}
	server.serve(path, stateInPath, state)
	f.o.Show(BrowserStep{URL: address, Opened: f.open(ctx, address)})

	answer, err := f.wait(ctx, server, stateInPath)
	if err != nil {
		return nil, err
	}
	if err := f.checkCallback(answer, state); err != nil {
		return nil, err
	}
	f.hide = append(f.hide, answer.code)
	if f.d.KeyURL != "" {
		return f.exchangeForKey(ctx, answer.code, verifier)
	}
	config := f.config()
	config.RedirectURL = server.address
	token, err := config.Exchange(f.tokenContext(ctx), answer.code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	return f.credential(ctx, token)
}

// authorizeURL is the page that the person has to see.
func (f *flow) authorizeURL(redirect, state, verifier string) (string, error) {
	u, err := url.Parse(f.d.AuthorizeURL)
	if err != nil || !usable(u) {
		return "", f.errorf(Local, "the address of its page cannot be used")
	}
	if f.d.KeyURL == "" {
		config := f.config()
		config.RedirectURL = redirect
		options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
		for name, value := range f.d.AuthorizeParams {
			options = append(options, oauth2.SetAuthURLParam(name, value))
		}
		return config.AuthCodeURL(state, options...), nil
	}
	q := u.Query()
	for name, value := range f.d.AuthorizeParams {
		q.Set(name, value)
	}
	q.Set("callback_url", redirect)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier))
	q.Set("code_challenge_method", "S256")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// wait waits for the answer from the server or from the person.
func (f *flow) wait(ctx context.Context, server *receiver, stateInPath bool) (callback, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.o.Wait, f.errorf(TimedOut, "no answer came within %v", f.o.Wait))
	type outcome struct {
		c   callback
		err error
	}
	var pasted chan outcome
	if f.o.Paste != nil {
		pasted = make(chan outcome, 1)
		go func() {
			defer close(pasted)
			c, err := f.pasted(ctx, stateInPath)
			if !errors.Is(err, io.EOF) {
				pasted <- outcome{c, err}
			}
		}()
	}
	defer func() {
		cancel()
		if pasted != nil {
			for range pasted {
			}
		}
	}()
	reading := pasted
	for {
		select {
		case c := <-server.got:
			return c, nil
		case o, ok := <-reading:
			if !ok {
				reading = nil // nothing more will be pasted
				continue
			}
			if ctx.Err() == nil {
				return o.c, o.err
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			cause := context.Cause(ctx)
			if e, ok := errors.AsType[*Error](cause); ok && e.Kind == TimedOut && server.foreign.Load() > 0 {
				e.Detail += ", only one that belongs to another sign-in (its state is not the one that was sent)"
			}
			return callback{}, cause
		}
	}
}

// pasted reads until something of use is pasted.
func (f *flow) pasted(ctx context.Context, stateInPath bool) (callback, error) {
	for {
		text, err := f.o.Paste(ctx)
		if err != nil {
			return callback{}, err
		}
		c, err := parsePasted(text, stateInPath)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errNothingPasted) {
			f.o.Show(Note("That is of no use: " + err.Error() + "."))
		}
	}
}

// checkCallback decides whether an answer is one to this sign-in. A code that
// was pasted alone has no state; the person vouches for it, and the verifier
// makes a foreign code worthless.
func (f *flow) checkCallback(c callback, state string) error {
	if !c.bare && !sameText(c.state, state) {
		return f.errorf(Mismatched, "the answer belongs to another sign-in (its state is not the one that was sent); nothing was stored, sign in again")
	}
	if c.issuer != "" && f.d.Issuer != "" && !sameIssuer(c.issuer, f.d.Issuer) {
		return f.errorf(Mismatched, "the answer comes from another issuer (%s); nothing was stored", f.hide.clean(c.issuer))
	}
	if c.errorCode != "" {
		return f.fromIssuer(0, c.errorCode, c.words)
	}
	return nil
}

// open opens an address where the person's program can, and tells whether it did.
func (f *flow) open(ctx context.Context, address string) bool {
	if f.o.Open == nil {
		return false
	}
	if err := f.o.Open(ctx, address); err != nil {
		f.o.Show(Note("No browser could be opened: " + err.Error() + "."))
		return false
	}
	return true
}

// randomText is a text that nobody guesses.
func randomText() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
