package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/sharedfile"
)

const (
	// RefreshTimeout is how long a RefreshFunc may take.
	RefreshTimeout = 15 * time.Second
	// MinLife is how long a token must be good for when a request uses it.
	MinLife = 5 * time.Minute
	// refreshPause is how long a token that could not be renewed is used, while
	// it is good, before it is tried again.
	refreshPause = 30 * time.Second
)

// RefreshError says that a sign-in could not be renewed, and that its token is
// of no use any more.
type RefreshError struct {
	Provider string
	Cause    error // wraps ErrSignInEnded when only a new sign-in helps
}

// SignInEnded reports whether only a new sign-in helps.
func (e *RefreshError) SignInEnded() bool { return errors.Is(e.Cause, ErrSignInEnded) }

func (e *RefreshError) Error() string {
	advice := "try again, or sign in with: pinch auth login " + e.Provider
	if e.SignInEnded() {
		advice = "sign in again with: pinch auth login " + e.Provider
	}
	return fmt.Sprintf("OAuth refresh failed for %s: %v; %s", e.Provider, e.Cause, advice)
}

func (e *RefreshError) Unwrap() error { return e.Cause }

// expiredError is the cause when there is nothing to renew a token with.
type expiredError struct{ at time.Time }

func (e *expiredError) Error() string {
	return "the token expired at " + e.at.UTC().Format(time.RFC3339) + " and cannot be renewed"
}

func (e *expiredError) Unwrap() error { return ErrSignInEnded }

// NoSignInError says that a provider has no stored OAuth sign-in.
type NoSignInError struct{ Provider string }

func (e *NoSignInError) Error() string {
	return fmt.Sprintf("no sign-in is stored for %s; sign in with: pinch auth login %s", e.Provider, e.Provider)
}

// tokenState is what a Store remembers of a provider's token beside the file.
type tokenState struct {
	// The token, and when it ends by a clock that nobody sets, as it looked when
	// the token was first seen: a clock that is set back does not make it last.
	access  Secret
	expires time.Time
	ends    time.Duration

	// A renewed credential that is not in the file yet, and the entry that it
	// takes the place of. It counts as long as the file has that entry.
	unsaved *OAuth
	from    jsontext.Value

	// The entry that could not be renewed last, when and why.
	failed   jsontext.Value
	failedAt time.Duration
	failure  error
}

// state is the tokenState of a provider. s.mu is held.
func (s *Store) state(provider string) *tokenState {
	st := s.tokens[provider]
	if st == nil {
		st = &tokenState{}
		s.tokens[provider] = st
	}
	return st
}

// newest is the credential of an entry, or the one that is to take its place.
// s.mu is held.
func (s *Store) newest(provider string, c *OAuth) *OAuth {
	st := s.tokens[provider]
	if st == nil || st.unsaved == nil {
		return c
	}
	if !bytes.Equal(st.from, c.Raw) {
		st.unsaved, st.from = nil, nil // the file has gone on without us
		return c
	}
	return new(*st.unsaved)
}

// unsaved are the changes for credentials that are not in the file yet. s.mu is
// held.
func (s *Store) unsaved(doc document) []edit {
	var changes []edit
	for provider, st := range s.tokens {
		if st.unsaved == nil {
			continue
		}
		i := indexOf(doc.entries, provider)
		if i < 0 || !bytes.Equal(doc.entries[i].raw, st.from) {
			st.unsaved, st.from = nil, nil
			continue
		}
		edits, err := encodeCredential(provider, st.from, st.unsaved)
		if err == nil {
			changes = append(changes, edits...)
		}
	}
	return changes
}

// saved forgets what unsaved gave. s.mu is held.
func (s *Store) saved() {
	for _, st := range s.tokens {
		st.unsaved, st.from = nil, nil
	}
}

// left is how long a token is good for. It is not positive when it has expired, or
// when the entry has none.
func (s *Store) left(provider string, c *OAuth) time.Duration {
	if c.Access.IsEmpty() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, elapsed := s.now().Round(0), s.elapsed()
	st := s.state(provider)
	if st.access.Reveal() != c.Access.Reveal() || !st.expires.Equal(c.Expires) {
		st.access, st.expires = c.Access, c.Expires
		st.ends = elapsed + until(now, c.Expires)
	}
	// The first follows the clock on the wall, the second the time that went by.
	return min(until(now, c.Expires), st.ends-elapsed)
}

// until is the time between two readings of the clock on the wall, within a
// hundred years.
func until(now, end time.Time) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	return min(max(end.Round(0).Sub(now), -century), century)
}

// Token is the OAuth token of a provider, good for at least life, such as
// MinLife. One that is not is renewed first: under the lock of the file, so that
// of all processes one does it and the others use its outcome. A renewal that
// has begun goes on when ctx ends, and Token returns when its outcome is stored:
// most issuers honour a refresh token once, and an outcome thrown away would be
// a sign-in lost.
//
// A token that could not be renewed, or has a shorter life from its issuer, is
// given while it is good at all: callers who need life compare
// Credentials.OAuth.Expires. Credentials.Warning then says what went wrong.
// Errors are *RefreshError, *NoSignInError, *FileError, and ctx's.
func (s *Store) Token(ctx context.Context, provider string, life time.Duration) (Credentials, error) {
	c, err := s.Get(provider)
	if err != nil {
		return Credentials{}, err
	}
	o, ok := c.(*OAuth)
	switch {
	case !ok:
		return Credentials{}, &NoSignInError{provider}
	case s.left(provider, o) >= life:
		return signedIn(o, nil), nil
	case s.renew == nil || o.Refresh.IsEmpty():
		return s.unrenewed(provider, o, nil)
	}
	if err := s.failure(provider, o, never); err != nil {
		return s.unrenewed(provider, o, err)
	}
	asked := s.elapsed()
	h, err := s.acquire(ctx)
	if ctx.Err() != nil {
		if err == nil {
			s.release(h)
		}
		return Credentials{}, ctx.Err()
	}
	if err != nil {
		return s.unrenewed(provider, o, err)
	}
	s.busy.Add(1)
	defer s.busy.Add(-1)
	got, again, err := s.renewLocked(ctx, h, provider, life, asked)
	s.release(h)
	if again {
		// The lock was lost, so the outcome is in memory only.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.stale+sharedfile.Grace)
		defer cancel()
		if err := s.update(ctx, func(document) ([]edit, error) { return nil, nil }); err != nil {
			got.Warning = s.notStored(provider, err)
		} else {
			got.Warning = nil
		}
	}
	return got, err
}

// renewLocked renews the token of a provider if the file, which is locked, still
// has one that needs it. With again, the outcome is still to be stored.
func (s *Store) renewLocked(ctx context.Context, h *holding, provider string, life, asked time.Duration) (got Credentials, again bool, err error) {
	doc, o, err := s.signIn(h, provider)
	if o == nil {
		return got, false, err
	}
	if err != nil || s.left(provider, o) >= life {
		if err == nil {
			err = s.write(h, doc, nil) // what could not be stored before
		}
		got, err = s.unrenewed(provider, o, err)
		return got, false, err
	}
	if err := s.failure(provider, o, asked); err != nil {
		got, err = s.unrenewed(provider, o, err)
		return got, false, err
	}
	giveBack, err := sharedfile.Reserve(h.path, len(doc.text)+roomForTokens)
	if err != nil {
		// The issuer would take the refresh token, and the new one be lost.
		got, err = s.unrenewed(provider, o, &FileError{Path: s.path, Op: "write", Cause: err})
		return got, false, err
	}
	defer giveBack()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RefreshTimeout)
	defer cancel()
	renewed, err := s.renew(ctx, provider, new(*o))
	if err == nil && (renewed == nil || renewed.Access.IsEmpty()) {
		err = errors.New("the answer has no access token")
	}
	if err != nil {
		s.mu.Lock()
		st := s.state(provider)
		st.failed, st.failedAt, st.failure = o.Raw, s.elapsed(), err
		s.mu.Unlock()
		// A program that takes no lock may have been faster.
		if _, other, readErr := s.signIn(h, provider); readErr == nil && !bytes.Equal(other.Raw, o.Raw) && s.left(provider, other) > 0 {
			return signedIn(other, nil), false, nil
		}
		got, err = s.unrenewed(provider, o, err)
		return got, false, err
	}
	renewed = new(*renewed)
	renewed.Expires = time.UnixMilli(encodeExpires(renewed.Expires)) // as the file will have it
	if renewed.Refresh.IsEmpty() {
		renewed.Refresh = o.Refresh // it stays good
	}
	if renewed.Raw == nil {
		renewed.Raw = o.Raw
	}
	s.mu.Lock()
	st := s.state(provider)
	st.unsaved, st.from = renewed, o.Raw
	st.failed, st.failure = nil, nil
	s.mu.Unlock()
	got = signedIn(renewed, nil)
	// A person may have edited the file meanwhile.
	if doc, err = s.read(h.path); err == nil {
		err = s.write(h, doc, nil)
	}
	if err != nil {
		got.Warning = s.notStored(provider, err)
	}
	return got, errors.Is(err, sharedfile.ErrLockLost), nil
}

// signIn reads the sign-in of a provider from the locked file. A nil *OAuth
// comes with an error.
func (s *Store) signIn(h *holding, provider string) (document, *OAuth, error) {
	doc, err := s.read(h.path)
	if err != nil {
		c, getErr := s.Get(provider)
		if o, ok := c.(*OAuth); ok && getErr == nil {
			return doc, o, err
		}
		return doc, nil, err
	}
	i := indexOf(doc.entries, provider)
	if i < 0 {
		return doc, nil, &NoSignInError{provider}
	}
	o, ok := parseCredential(doc.entries[i].raw).(*OAuth)
	if !ok {
		return doc, nil, &NoSignInError{provider}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return doc, s.newest(provider, o), nil
}

// never is later than all that s.elapsed gives.
const never = time.Duration(math.MaxInt64)

// failure is why renewing a credential is not tried: it is over, it was tried
// just now and the token is still good, or it was tried since a time.
func (s *Store) failure(provider string, o *OAuth, since time.Duration) error {
	good := s.left(provider, o) > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(provider)
	if st.failure == nil || !bytes.Equal(st.failed, o.Raw) {
		return nil
	}
	if errors.Is(st.failure, ErrSignInEnded) || good && s.elapsed()-st.failedAt < refreshPause || st.failedAt >= since {
		return st.failure
	}
	return nil
}

// unrenewed is a token as it is, with why it was not renewed.
func (s *Store) unrenewed(provider string, o *OAuth, why error) (Credentials, error) {
	switch good := s.left(provider, o) > 0; {
	case why == nil && good:
		return signedIn(o, nil), nil
	case why == nil && o.Access.IsEmpty():
		why = fmt.Errorf("%w: its entry has no access token", ErrSignInEnded)
		return Credentials{}, &RefreshError{provider, why}
	case why == nil:
		why = &expiredError{o.Expires}
		fallthrough
	case !good:
		return Credentials{}, &RefreshError{provider, why}
	}
	return signedIn(o, &RefreshError{provider, why}), nil
}

func signedIn(o *OAuth, warning error) Credentials {
	return Credentials{Source: StoredOAuth, Key: o.Access, OAuth: o, Warning: warning}
}

// notStored says that a renewed token is in memory only.
func (s *Store) notStored(provider string, err error) error {
	return fmt.Errorf("The renewed sign-in for %s is not stored, and lost when this program ends: %w", provider, err)
}
