package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/sharedfile"
)

// Set stores the credential of a provider. An entry of the same type keeps its
// order, and the members that this version does not know; for an *OAuth with
// Raw, Raw says which those are. A file that cannot be read is never written
// over.
func (s *Store) Set(ctx context.Context, provider string, c Credential) error {
	return s.Modify(ctx, provider, func(context.Context, Credential) (Credential, error) { return c, nil })
}

// Create stores credentials, by provider, all in one step, where there is no file
// yet. It tells whether there was none.
func (s *Store) Create(ctx context.Context, credentials map[string]Credential) (created bool, err error) {
	err = s.update(ctx, func(document) ([]member, error) {
		if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var entries []member
		for _, provider := range slices.Sorted(maps.Keys(credentials)) {
			raw, err := encodeCredential(nil, credentials[provider])
			if err != nil {
				return nil, err
			}
			entries = append(entries, member{provider, raw})
		}
		created = len(entries) > 0
		return entries, nil
	})
	return created && err == nil, err
}

// Remove removes the credential of a provider and tells whether there was one.
func (s *Store) Remove(ctx context.Context, provider string) (removed bool, err error) {
	err = s.update(ctx, func(doc document) ([]member, error) {
		if removed = indexOf(doc.entries, provider) >= 0; !removed {
			return nil, nil
		}
		return []member{{provider, nil}}, nil
	})
	return removed && err == nil, err
}

// Modify changes the credential of a provider in one step: change gets what the
// file has now, nil for nothing, and gives what is to stand there; nil leaves it
// as it is, and so does an error, which Modify returns. Nobody else writes the
// file meanwhile, so change must not call the Store and should be quick.
func (s *Store) Modify(ctx context.Context, provider string, change func(context.Context, Credential) (Credential, error)) error {
	return s.update(ctx, func(doc document) ([]member, error) {
		var raw jsontext.Value
		var old Credential
		if i := indexOf(doc.entries, provider); i >= 0 {
			raw = doc.entries[i].raw
			old = parseCredential(raw)
			if o, ok := old.(*OAuth); ok {
				s.mu.Lock()
				old = s.newest(provider, o)
				s.mu.Unlock()
			}
		}
		c, err := change(ctx, old)
		if err != nil || c == nil {
			return nil, err
		}
		raw, err = encodeCredential(raw, c)
		return []member{{provider, raw}}, err
	})
}

// update changes the file under its lock, from what it holds now.
func (s *Store) update(ctx context.Context, change func(document) ([]member, error)) error {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	h, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(h)
	doc, err := s.read(h.path)
	if err != nil {
		return err
	}
	changes, err := change(doc)
	if err != nil {
		return err
	}
	return s.write(h, doc, changes)
}

// write writes the document with changes, and with the tokens that could not be
// written before. The file's lock is held.
func (s *Store) write(h *holding, doc document, changes []member) error {
	s.mu.Lock()
	changes = append(s.unsaved(doc), changes...)
	s.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	text := editObject(doc.text, 1, changes...)
	next, err := parseDocument(text)
	if err != nil {
		return &FileError{Path: s.path, Op: "write", Cause: err}
	}
	if !h.lock.Held() {
		return &FileError{Path: s.path, Op: "lock", Cause: sharedfile.ErrLockLost}
	}
	if err := sharedfile.Replace(h.path, text, 0o600); err != nil {
		return &FileError{Path: s.path, Op: "write", Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved()
	s.entries, s.loaded, s.problem = next.entries, true, nil
	s.seen, _ = sharedfile.VersionOf(s.path)
	return nil
}

// holding is the right to write the file.
type holding struct {
	path string // of the file itself, behind links
	lock *sharedfile.Lock
}

// acquire takes the lock of the file. It waits for other goroutines and other
// processes until ctx ends, or until even a lock that was left behind would be
// free.
func (s *Store) acquire(ctx context.Context) (*holding, error) {
	fail := func(op string, err error) (*holding, error) {
		return nil, &FileError{Path: s.path, Op: op, Cause: err}
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fail("lock", ctx.Err())
	}
	path := sharedfile.Resolve(s.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		<-s.turn
		return fail("write", err)
	}
	l, err := sharedfile.TakeLock(ctx, path+".lock", s.stale)
	if err != nil {
		<-s.turn
		return fail("lock", err)
	}
	return &holding{path: path, lock: l}, nil
}

func (s *Store) release(h *holding) {
	h.lock.Release()
	<-s.turn
}

// encodeCredential makes an entry from an old one, which it changes only where
// it says something else, or from nothing when the old one is of another type.
func encodeCredential(old jsontext.Value, c Credential) (jsontext.Value, error) {
	text := func(s Secret) []byte {
		if s.IsEmpty() {
			return nil
		}
		return jsonwire.AppendString(nil, s.Reveal())
	}
	var kind string
	var changes []member
	switch c := c.(type) {
	case *APIKey:
		kind = "api_key"
		changes = []member{{"key", text(c.Key)}, {"keychain", text(NewSecret(c.Keychain))}}
		if c.Env != nil {
			changes = append(changes, member{"env", encodeEnv(c.Env)})
		}
	case *OAuth:
		kind = "oauth"
		changes = []member{
			{"access", jsonwire.AppendString(nil, c.Access.Reveal())},
			{"refresh", jsonwire.AppendString(nil, c.Refresh.Reveal())},
			{"expires", strconv.AppendInt(nil, encodeExpires(c.Expires), 10)},
		}
		if c.Raw != nil {
			changes = append(changes, extras(old, c.Raw)...)
		}
	default:
		return nil, fmt.Errorf("auth: a credential of type %T cannot be stored", c)
	}
	if t, _ := jsonwire.StringValue(jsonwire.Get(old, "type")); t != kind {
		old = editObject(nil, entryDepth, member{"type", jsonwire.AppendString(nil, kind)})
	}
	changes = slices.DeleteFunc(changes, func(m member) bool {
		return m.value != nil && bytes.Equal(m.value, jsonwire.Get(old, m.name))
	})
	return editObject(old, entryDepth, changes...), nil
}

// entryDepth is how deep the members of an entry stand.
const entryDepth = 2

func encodeEnv(env map[string]string) []byte {
	if len(env) == 0 {
		return nil
	}
	var changes []member
	for _, name := range slices.Sorted(maps.Keys(env)) {
		changes = append(changes, member{name, jsonwire.AppendString(nil, env[name])})
	}
	return editObject(nil, entryDepth+1, changes...)
}

// extras are the changes that give an entry the members of raw beside those of
// every sign-in, and no others.
func extras(old, raw []byte) []member {
	own := func(name string) bool {
		return name == "type" || name == "access" || name == "refresh" || name == "expires"
	}
	var changes []member
	spans, _ := members(raw)
	for _, s := range spans {
		if !own(s.name) {
			changes = append(changes, member{s.name, raw[s.value:s.end]})
		}
	}
	before, _ := members(old)
	for _, b := range before {
		if !own(b.name) && !slices.ContainsFunc(spans, func(s span) bool { return s.name == b.name }) {
			changes = append(changes, member{b.name, nil})
		}
	}
	for i, c := range changes {
		if c.value != nil && !bytes.Equal(c.value, jsonwire.Get(old, c.name)) {
			changes[i].value = indented(c.value)
		}
	}
	return changes
}

// indented lays a value out as a member of an entry.
func indented(value []byte) []byte {
	out, err := jsonwire.AppendIndent(nil, value, "  ")
	if err != nil {
		return value
	}
	// No string of JSON text has a line break in it.
	return bytes.ReplaceAll(out, []byte("\n"), []byte("\n"+strings.Repeat("  ", entryDepth)))
}

// roomForTokens is how much longer a file may become, in bytes, when a token is
// renewed.
const roomForTokens = 16 << 10
