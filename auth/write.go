package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

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
	err = s.update(ctx, func(document) ([]edit, error) {
		if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var entries []edit
		for _, provider := range slices.Sorted(maps.Keys(credentials)) {
			edits, err := encodeCredential(provider, nil, credentials[provider])
			if err != nil {
				return nil, err
			}
			entries = append(entries, edits...)
		}
		created = len(entries) > 0
		return entries, nil
	})
	return created && err == nil, err
}

// Remove removes the credential of a provider and tells whether there was one.
func (s *Store) Remove(ctx context.Context, provider string) (removed bool, err error) {
	err = s.update(ctx, func(doc document) ([]edit, error) {
		if removed = indexOf(doc.entries, provider) >= 0; !removed {
			return nil, nil
		}
		return []edit{{path: []string{provider}}}, nil
	})
	return removed && err == nil, err
}

// Modify changes the credential of a provider in one step: change gets what the
// file has now, nil for nothing, and gives what is to stand there; nil leaves it
// as it is, and so does an error, which Modify returns. Nobody else writes the
// file meanwhile, so change must not call the Store and should be quick.
func (s *Store) Modify(ctx context.Context, provider string, change func(context.Context, Credential) (Credential, error)) error {
	return s.update(ctx, func(doc document) ([]edit, error) {
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
		return encodeCredential(provider, raw, c)
	})
}

// update changes the file under its lock, from what it holds now.
func (s *Store) update(ctx context.Context, change func(document) ([]edit, error)) error {
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
func (s *Store) write(h *holding, doc document, changes []edit) error {
	s.mu.Lock()
	changes = append(s.unsaved(doc), changes...)
	s.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	text, err := editText(doc.text, changes...)
	if err != nil {
		return &FileError{Path: s.path, Op: "write", Cause: err}
	}
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

// encodeCredential are the changes that make the entry of a provider a credential.
// They change an old one only where it says something else; one of another type
// makes room.
func encodeCredential(provider string, old jsontext.Value, c Credential) ([]edit, error) {
	text := func(s Secret) []byte {
		if s.IsEmpty() {
			return nil
		}
		return jsonwire.AppendString(nil, s.Reveal())
	}
	var kind string
	var edits []edit
	set := func(name string, value []byte) { edits = append(edits, edit{value, []string{name}}) }
	switch c := c.(type) {
	case *APIKey:
		kind = "api_key"
		set("key", text(c.Key))
		set("keychain", text(NewSecret(c.Keychain)))
		if c.Env != nil {
			set("env", encodeEnv(c.Env))
		}
	case *OAuth:
		kind = "oauth"
		set("access", jsonwire.AppendString(nil, c.Access.Reveal()))
		set("refresh", jsonwire.AppendString(nil, c.Refresh.Reveal()))
		set("expires", strconv.AppendInt(nil, encodeExpires(c.Expires), 10))
		if c.Raw != nil {
			edits = append(edits, extras(old, c.Raw)...)
		}
	default:
		return nil, fmt.Errorf("auth: a credential of type %T cannot be stored", c)
	}
	if t, _ := jsonwire.StringValue(jsonwire.Get(old, "type")); t != kind {
		o := jsonwire.Begin(nil)
		o.Text("type", kind)
		entry, err := editText(o.End(), edits...)
		return []edit{{entry, []string{provider}}}, err
	}
	for i := range edits {
		edits[i].path = append([]string{provider}, edits[i].path...)
	}
	return edits, nil
}

func encodeEnv(env map[string]string) []byte {
	if len(env) == 0 {
		return nil
	}
	o := jsonwire.Begin(nil)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		o.Member(name, jsonwire.AppendString(nil, env[name]))
	}
	return o.End()
}

// extras are the changes that give an entry the members of raw beside those of
// every sign-in, and no others.
func extras(old, raw []byte) (edits []edit) {
	own := func(name string) bool {
		return name == "type" || name == "access" || name == "refresh" || name == "expires"
	}
	kept := names(raw)
	for _, name := range kept {
		if !own(name) {
			edits = append(edits, edit{jsonwire.Get(raw, name), []string{name}})
		}
	}
	for _, name := range names(old) {
		if !own(name) && !slices.Contains(kept, name) {
			edits = append(edits, edit{path: []string{name}})
		}
	}
	return edits
}

// roomForTokens is how much longer a file may become, in bytes, when a token is
// renewed.
const roomForTokens = 16 << 10
