package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/internal/sharedfile"
)

// Store is the file of credentials, auth.json, and the one that writes it. It is
// read when first needed and again when it changes, so that a sign-in in another
// process counts. When the file breaks, the last good content stays in use and
// Problem tells. Safe for concurrent use, by several processes too.
type Store struct {
	path     string
	run      Runner
	now      func() time.Time
	elapsed  func() time.Duration // by a clock that nobody sets
	renew    RefreshFunc
	keychain Keychain
	stale    time.Duration

	turn chan struct{} // held by the goroutine that has, or waits for, the file's lock
	busy atomic.Int32  // renewals and writes that are under way

	mu      sync.Mutex
	seen    sharedfile.Version
	loaded  bool
	entries []entry
	problem error
	tokens  map[string]*tokenState // by provider
	keys    map[string]Secret      // of the keychain, by item
}

// StoreOptions are the options of OpenStore. The zero value works.
type StoreOptions struct {
	Run Runner           // for commands of stored keys; each runs once. Nil for RunCommand
	Now func() time.Time // nil for time.Now
	// Refresh renews OAuth tokens. With nil none is renewed, and one that has
	// expired cannot be used.
	Refresh RefreshFunc
	// Keychain is the system's keychain, for keys that are kept there. With nil
	// such a key cannot be used.
	Keychain Keychain
	// LockStale is how old the lock of the file must be to count as left behind
	// by a process that died: 0 for 30 s, which all programs that share the file
	// have to agree on. Tests set it.
	LockStale time.Duration
}

// RefreshFunc renews the OAuth sign-in of a provider: it gives the credential
// that takes the place of c, with what c has beside the tokens. It must not
// change c. ctx ends after RefreshTimeout, never with the request that asked. An
// error that wraps ErrSignInEnded says that trying again is of no use.
type RefreshFunc func(ctx context.Context, provider string, c *OAuth) (*OAuth, error)

// ErrSignInEnded is what a RefreshFunc wraps when the issuer refused the refresh
// token for good (invalid_grant): it was revoked, used twice, or is too old. All
// other errors count as trouble that may pass.
var ErrSignInEnded = errors.New("the sign-in is no longer valid")

// OpenStore makes the store of a file, which need not exist. It reads nothing yet.
func OpenStore(path string, o StoreOptions) *Store {
	s := &Store{
		path: path, run: Remember(o.Run), now: o.Now, renew: o.Refresh, keychain: o.Keychain, stale: o.LockStale,
		turn: make(chan struct{}, 1), tokens: map[string]*tokenState{}, keys: map[string]Secret{},
	}
	start := time.Now()
	s.elapsed = func() time.Duration { return time.Since(start) }
	if s.now == nil {
		s.now = time.Now
	}
	if s.stale <= 0 {
		s.stale = sharedfile.LeftBehind
	}
	return s
}

// Path is the file's path.
func (s *Store) Path() string { return s.path }

// Busy reports whether a token is being renewed or something is being stored. A
// program that ends meanwhile may lose what an issuer gives only once, and leaves
// the lock of the file behind. It is over soon: see RefreshTimeout, and the
// context of a write.
func (s *Store) Busy() bool { return s.busy.Load() > 0 }

// Get is the credential of a provider, nil when there is none. It fails only
// when the file cannot be read and never could. A token is given as it is, even
// when it has expired: see Token.
func (s *Store) Get(provider string) (Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	if !s.loaded {
		return nil, s.problem
	}
	i := indexOf(s.entries, provider)
	if i < 0 {
		return nil, nil
	}
	c := parseCredential(s.entries[i].raw)
	if o, ok := c.(*OAuth); ok {
		return s.newest(provider, o), nil
	}
	return c, nil
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

// Exposure is an *ExposedError when other users of the machine may read the
// file, nil otherwise. The next write makes it private.
func (s *Store) Exposure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	if s.seen.Info == nil || exposed(s.seen.Info) == 0 {
		return nil
	}
	return &ExposedError{Path: s.path, Mode: exposed(s.seen.Info)}
}

// ExposedError says that users beside its owner may read the file of
// credentials.
type ExposedError struct {
	Path string
	Mode fs.FileMode // permission bits
}

func (e *ExposedError) Error() string {
	return fmt.Sprintf("The credentials file %s can be read by other users (mode %04o): make it private with chmod 600", e.Path, e.Mode)
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
	text := fmt.Sprintf("Failed to %s the credentials file %s: %v", e.Op, e.Path, e.Cause)
	if e.Op == "read" && errors.Is(e.Cause, fs.ErrPermission) {
		text += "; give yourself the right to read it"
	}
	return text
}

func (e *FileError) Unwrap() error { return e.Cause }

// Position is where in a file its text stops making sense.
type Position struct {
	Line, Column int // from 1; columns are bytes
	Cause        error
}

func (e *Position) Error() string {
	text := e.Cause.Error()
	if syntax, ok := errors.AsType[*jsonwire.SyntaxError](e.Cause); ok {
		text = syntax.Msg
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, text)
}

func (e *Position) Unwrap() error { return e.Cause }

// entry is one member of the file: a provider and its credential as it stands.
type entry struct {
	provider string
	raw      jsontext.Value
}

// document is the content of the file.
type document struct {
	text    []byte // an object
	entries []entry
	blank   bool // the file is there, but has nothing in it
}

// refresh reads the file when it is not the one read last. s.mu is held.
func (s *Store) refresh() {
	state, err := sharedfile.VersionOf(s.path)
	if err == nil && (s.loaded || s.problem != nil) && s.seen.Same(state) {
		return
	}
	if err != nil {
		s.problem = &FileError{Path: s.path, Op: "read", Cause: err}
		return
	}
	doc, err := s.read(s.path)
	// Other programs write the file in place: what is empty or half written now
	// is whole in a moment.
	for tries := 0; (err != nil || doc.blank) && tries < 25 && s.locked(); tries++ {
		time.Sleep(10 * time.Millisecond)
		doc, err = s.read(s.path)
	}
	if doc.blank && s.loaded && s.locked() {
		return
	}
	s.seen = state
	s.problem = err
	if err == nil {
		s.entries, s.loaded = doc.entries, true
	}
}

// locked reports whether somebody is writing the file.
func (s *Store) locked() bool {
	_, err := os.Lstat(sharedfile.Resolve(s.path) + ".lock")
	return err == nil
}

// read reads the file; a missing one has no entries.
func (s *Store) read(path string) (document, error) {
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{text: []byte("{}")}, nil
	}
	if err != nil {
		return document{}, &FileError{Path: s.path, Op: "read", Cause: err}
	}
	doc, err := parseDocument(b)
	if err != nil {
		return document{}, &FileError{Path: s.path, Op: "parse", Cause: err}
	}
	return doc, nil
}

// parseDocument reads the content of the file. Blank content counts as an empty
// object, and a byte order mark, which other readers stumble over, as nothing.
func parseDocument(b []byte) (document, error) {
	text := bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if len(bytes.TrimSpace(text)) == 0 {
		return document{text: []byte("{}"), blank: true}, nil
	}
	var r jsonwire.Reader
	r.Reset(text)
	if k := r.Kind(); k != '{' && k != 0 {
		return document{}, errors.New("not a JSON object")
	}
	doc := document{text: text}
	at := map[string]int{}
	for r.Object(); r.More(); {
		name := string(r.Key())
		raw := slices.Clone(r.Raw())
		if i, ok := at[name]; ok {
			doc.entries[i].raw = raw
			continue
		}
		at[name] = len(doc.entries)
		doc.entries = append(doc.entries, entry{provider: name, raw: raw})
	}
	if err := r.End(); err != nil {
		return document{}, locate(text, err)
	}
	return doc, nil
}

// locate says where in a text a syntax error is.
func locate(text []byte, err error) error {
	syntax, ok := errors.AsType[*jsonwire.SyntaxError](err)
	if !ok {
		return err
	}
	before := text[:min(syntax.Offset, len(text))]
	return &Position{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Cause:  err,
	}
}

func indexOf(entries []entry, provider string) int {
	return slices.IndexFunc(entries, func(e entry) bool { return e.provider == provider })
}
