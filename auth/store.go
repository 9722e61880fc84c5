package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
)

// Credential is one entry of the store: an *APIKey, an *OAuth or, kept but not
// used, an *UnknownCredential.
type Credential interface{ credential() }

// APIKey is a stored key.
type APIKey struct {
	Key Secret            // a value: literal, template or command
	Env map[string]string // variables that go with the key, such as an account id
}

// OAuth is a stored sign-in.
type OAuth struct {
	Access  Secret
	Refresh Secret
	Expires time.Time
	// Raw is the whole entry as stored, with what a provider added. It holds
	// the tokens: do not print it.
	Raw jsontext.Value
}

// UnknownCredential is an entry of a type that this version does not know.
type UnknownCredential struct{ Type string }

func (*APIKey) credential()            {}
func (*OAuth) credential()             {}
func (*UnknownCredential) credential() {}

// Store is the file of credentials, auth.json. It is read when first needed and
// again when it changes, so that a sign-in in another process counts. When the
// file breaks, the last good content stays in use and Problem tells. Safe for
// concurrent use.
type Store struct {
	path string
	run  Runner
	now  func() time.Time

	mu      sync.Mutex
	seen    fileState
	loaded  bool
	entries []entry
	problem error
}

// StoreOptions are the options of OpenStore. The zero value works.
type StoreOptions struct {
	Run Runner           // for commands of stored keys; each runs once. Nil for RunCommand
	Now func() time.Time // nil for time.Now
}

type entry struct {
	provider string
	raw      jsontext.Value
}

// fileState tells versions of a file apart.
type fileState struct {
	exists  bool
	size    int64
	changed time.Time
}

// OpenStore makes the store of a file, which need not exist. It reads nothing yet.
func OpenStore(path string, o StoreOptions) *Store {
	s := &Store{path: path, run: Remember(o.Run), now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Path is the file's path.
func (s *Store) Path() string { return s.path }

// Get is the credential of a provider, nil when there is none. It fails only
// when the file cannot be read and never could.
func (s *Store) Get(provider string) (Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	if !s.loaded {
		return nil, s.problem
	}
	for i := range s.entries {
		if s.entries[i].provider == provider {
			return parseCredential(s.entries[i].raw), nil
		}
	}
	return nil, nil
}

// Providers lists the providers that have an entry, in the order of the file.
func (s *Store) Providers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	ids := make([]string, len(s.entries))
	for i := range s.entries {
		ids[i] = s.entries[i].provider
	}
	return ids
}

// Problem tells why the file as it is now cannot be used, nil when it can.
func (s *Store) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	return s.problem
}

// FileError says that the file of credentials cannot be used. It never holds
// content of the file.
type FileError struct {
	Path  string
	Op    string // read, parse, lock, write
	Cause error
}

func (e *FileError) Error() string {
	if e.Op == "parse" {
		return fmt.Sprintf("Invalid credentials file %s: %v; correct or remove it", e.Path, e.Cause)
	}
	return fmt.Sprintf("Failed to %s the credentials file %s: %v", e.Op, e.Path, e.Cause)
}

func (e *FileError) Unwrap() error { return e.Cause }

// refresh reads the file when it is not the one read last.
func (s *Store) refresh() {
	state, err := stat(s.path)
	if err == nil && (s.loaded || s.problem != nil) && state == s.seen {
		return
	}
	if err != nil {
		s.problem = &FileError{Path: s.path, Op: "read", Cause: err}
		return
	}
	entries, err := readEntries(s.path)
	s.seen = state
	s.problem = err
	if err == nil {
		s.entries, s.loaded = entries, true
	}
}

func stat(path string) (fileState, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	return fileState{exists: true, size: info.Size(), changed: info.ModTime()}, nil
}

// readEntries reads the file; a missing one has no entries.
func readEntries(path string) ([]entry, error) {
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{Path: path, Op: "read", Cause: err}
	}
	entries, err := parseEntries(b)
	if err != nil {
		return nil, &FileError{Path: path, Op: "parse", Cause: err}
	}
	return entries, nil
}

func parseEntries(b []byte) ([]entry, error) {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	var r jsonwire.Reader
	r.Reset(b)
	if r.Kind() != '{' {
		return nil, errors.New("not a JSON object")
	}
	var entries []entry
	for r.Object(); r.More(); {
		name := string(r.Key())
		raw := slices.Clone(r.Raw())
		if i := indexOf(entries, name); i >= 0 {
			entries[i].raw = raw
			continue
		}
		entries = append(entries, entry{provider: name, raw: raw})
	}
	return entries, r.End()
}

func indexOf(entries []entry, provider string) int {
	return slices.IndexFunc(entries, func(e entry) bool { return e.provider == provider })
}

func parseCredential(raw jsontext.Value) Credential {
	text := func(name string) string {
		s, _ := jsonwire.StringValue(jsonwire.Get(raw, name))
		return s
	}
	switch kind := text("type"); kind {
	case "api_key":
		c := &APIKey{Key: NewSecret(text("key"))}
		if env := jsonwire.Get(raw, "env"); env != nil {
			var r jsonwire.Reader
			r.Reset(env)
			for r.Object(); r.More(); {
				name := string(r.Key())
				if c.Env == nil {
					c.Env = map[string]string{}
				}
				c.Env[name] = r.Text()
			}
		}
		return c
	case "oauth":
		var r jsonwire.Reader
		r.Reset(jsonwire.Get(raw, "expires"))
		// Permanent keys are stored with the largest exact number of the peers.
		ms := min(r.Int(), 1<<53-1)
		return &OAuth{
			Access:  NewSecret(text("access")),
			Refresh: NewSecret(text("refresh")),
			Expires: time.UnixMilli(ms),
			Raw:     slices.Clone(raw),
		}
	default:
		return &UnknownCredential{Type: kind}
	}
}
