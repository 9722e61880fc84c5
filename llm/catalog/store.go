package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/llm"
)

// modelStore is models-store.json, the lists that were fetched:
//
//	{<provider>: {"models": [model…], "checkedAt": ms, "lastModified"?, "etag"?, "url"?}}
//
// It holds facts only and can be deleted at any time.
type modelStore struct {
	entries []member // provider and entry, as they are
	parsed  map[string]*storeEntry
}

type storeEntry struct {
	models       jsontext.Value
	checkedAt    time.Time // of the last answer, also one that said "unchanged"
	lastModified string    // the service's header, "" for none
	etag         string
	url          string
}

// time is the time of the facts in an entry.
func (e *storeEntry) time() time.Time {
	if t, err := http.ParseTime(e.lastModified); err == nil {
		return t
	}
	return e.checkedAt
}

// readStore reads the file. One that cannot be used counts as empty: the next
// refresh writes it anew.
func readStore(path string) *modelStore {
	s := &modelStore{parsed: map[string]*storeEntry{}}
	if path == "" {
		return s
	}
	text, err := regular.ReadFile(path)
	if err != nil {
		return s
	}
	var r jsonwire.Reader
	r.Reset(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))
	if r.Kind() != '{' {
		return s
	}
	if entries := readMembers(&r); r.End() == nil {
		s.entries = entries
	}
	return s
}

// entry is what is stored of a provider, nil for nothing that could be used.
func (s *modelStore) entry(provider string) *storeEntry {
	if e, ok := s.parsed[provider]; ok {
		return e
	}
	var e *storeEntry
	if i := indexMember(s.entries, provider); i >= 0 {
		e = readEntry(s.entries[i].value)
	}
	s.parsed[provider] = e
	return e
}

func readEntry(raw []byte) *storeEntry {
	if !jsonwire.IsObject(raw) {
		return nil
	}
	e := &storeEntry{}
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch name := string(r.Key()); {
		case name == "models":
			e.models = slices.Clone(r.Raw())
		case name == "checkedAt" && r.Kind() == '0':
			if ms := r.Float(); ms > 0 && ms < 1e15 {
				e.checkedAt = time.UnixMilli(int64(ms))
			}
		case name == "checkedAt" && r.Kind() == '"':
			e.checkedAt, _ = time.Parse(time.RFC3339, r.Text())
		case name == "lastModified" && r.Kind() == '"':
			e.lastModified = r.Text()
		case name == "etag" && r.Kind() == '"':
			e.etag = r.Text()
		case name == "url" && r.Kind() == '"':
			e.url = r.Text()
		default:
			r.Skip()
		}
	}
	if e.models == nil || r.Err() != nil {
		return nil
	}
	return e
}

func (e *storeEntry) append(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Raw("models", e.models)
	o.Int("checkedAt", e.checkedAt.UnixMilli())
	o.OptText("lastModified", e.lastModified)
	o.OptText("etag", e.etag)
	o.OptText("url", e.url)
	return o.End()
}

// store is models-store.json, read at the first call. c.mu is held.
func (c *Catalog) store() *modelStore {
	if c.fetched == nil {
		c.fetched = readStore(c.o.StoreFile)
	}
	return c.fetched
}

// refreshed puts what was fetched of a provider over its built-in models, where
// it is newer. c.mu is held.
func (c *Catalog) refreshed(known *Provider, builtin []*llm.Model) []*llm.Model {
	if c.o.StoreFile == "" {
		return builtin
	}
	e := c.store().entry(known.ID)
	if e == nil || len(builtin) > 0 && !e.time().After(generated()) {
		return builtin
	}
	// The file is checked as a fresh list is: others may have written it.
	entries, err := readListing(e.models, known, builtin)
	if err != nil {
		return builtin
	}
	return learn(known, builtin, entries)
}

// save writes the entry of one provider into models-store.json, with those of
// the others as they stand there now. Readers see the old file or the new one.
func (c *Catalog) save(provider string, e *storeEntry) error {
	path := c.o.StoreFile
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A device or a pipe would be gone when another file takes its name.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("%s is not a regular file", path)
	}
	s := readStore(path)
	raw := e.append(nil)
	if i := indexMember(s.entries, provider); i >= 0 {
		s.entries[i].value = raw
	} else {
		s.entries = append(s.entries, member{provider, raw})
	}
	text := []byte{'{'}
	for i, m := range s.entries {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '\n')
		text = jsonwire.AppendString(text, m.name)
		text = append(text, ": "...)
		text = append(text, m.value...)
	}
	text = append(text, "\n}\n"...)
	return replaceFile(path, text)
}

// replaceFile gives a file a new content, whole or not at all.
func replaceFile(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644) // facts, no secrets
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
