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
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Set stores the credential of a provider. Members that this version does not
// know stay in an entry of the same type. A file that cannot be read is never
// written over.
func (s *Store) Set(ctx context.Context, provider string, c Credential) error {
	return s.update(ctx, func(entries []entry) ([]entry, error) {
		var old jsontext.Value
		i := indexOf(entries, provider)
		if i >= 0 {
			old = entries[i].raw
		}
		raw, err := encodeCredential(old, c)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return append(entries, entry{provider: provider, raw: raw}), nil
		}
		entries[i].raw = raw
		return entries, nil
	})
}

// Remove removes the credential of a provider and tells whether there was one.
func (s *Store) Remove(ctx context.Context, provider string) (removed bool, err error) {
	err = s.update(ctx, func(entries []entry) ([]entry, error) {
		i := indexOf(entries, provider)
		if removed = i >= 0; !removed {
			return nil, errUnchanged
		}
		return slices.Delete(entries, i, i+1), nil
	})
	return removed, err
}

var errUnchanged = errors.New("nothing to write")

// update changes the file under its lock, from what it holds now.
func (s *Store) update(ctx context.Context, change func([]entry) ([]entry, error)) error {
	path := s.path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return &FileError{Path: s.path, Op: "write", Cause: err}
	}
	unlock, err := lock(ctx, path+".lock", s.now)
	if err != nil {
		return &FileError{Path: s.path, Op: "lock", Cause: err}
	}
	defer unlock()
	entries, err := readEntries(path)
	if err != nil {
		return err
	}
	entries, err = change(entries)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := writeFile(path, encodeEntries(entries)); err != nil {
		return &FileError{Path: s.path, Op: "write", Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.loaded, s.problem = entries, true, nil
	s.seen, _ = stat(s.path)
	return nil
}

func encodeEntries(entries []entry) []byte {
	b := []byte{'{'}
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonwire.AppendString(b, e.provider)
		b = append(b, ':')
		b = append(b, e.raw...)
	}
	b = append(b, '}')
	out, err := jsonwire.AppendIndent(nil, b, "  ")
	if err != nil {
		return b // entries were checked when they were read
	}
	return out
}

// encodeCredential makes an entry, over an old one of the same type.
func encodeCredential(old jsontext.Value, c Credential) (jsontext.Value, error) {
	type member struct {
		name  string
		value []byte
	}
	text := func(s string) []byte { return jsonwire.AppendString(nil, s) }
	var kind string
	var members []member
	switch c := c.(type) {
	case *APIKey:
		kind = "api_key"
		members = append(members, member{"key", text(c.Key.Reveal())})
		if c.Env != nil {
			env := []byte{'{'}
			for i, name := range slices.Sorted(maps.Keys(c.Env)) {
				if i > 0 {
					env = append(env, ',')
				}
				env = jsonwire.AppendString(env, name)
				env = append(env, ':')
				env = jsonwire.AppendString(env, c.Env[name])
			}
			members = append(members, member{"env", append(env, '}')})
		}
	case *OAuth:
		kind = "oauth"
		if c.Raw != nil {
			old = c.Raw
		}
		members = append(members,
			member{"access", text(c.Access.Reveal())},
			member{"refresh", text(c.Refresh.Reveal())},
			member{"expires", fmt.Appendf(nil, "%d", c.Expires.UnixMilli())})
	default:
		return nil, fmt.Errorf("auth: a credential of type %T cannot be stored", c)
	}
	members = append([]member{{"type", text(kind)}}, members...)
	if t, _ := jsonwire.StringValue(jsonwire.Get(old, "type")); t == kind {
		var r jsonwire.Reader
		r.Reset(old)
		for r.Object(); r.More(); {
			name := string(r.Key())
			value := slices.Clone(r.Raw())
			if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
				members = append(members, member{name, value})
			}
		}
	}
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonwire.AppendString(b, m.name)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}'), nil
}

// writeFile puts content in place of a file in one step, readable by the user
// alone.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*") // created with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

const (
	lockStale = 30 * time.Second      // a lock that old was left behind
	lockRetry = 20 * time.Millisecond // between attempts
	lockWait  = 10 * time.Second      // altogether
)

// lock takes the lock directory that other programs respect as well.
func lock(ctx context.Context, dir string, now func() time.Time) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			return func() { os.Remove(dir) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(dir); err == nil && now().Sub(info.ModTime()) > lockStale {
			// Renaming makes sure that only one process takes it away.
			aside := fmt.Sprintf("%s.stale-%d", dir, os.Getpid())
			if os.Rename(dir, aside) == nil {
				os.RemoveAll(aside)
				continue
			}
			// Someone else took it, or nobody can: the wait below has an end.
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is held by another process: %w", dir, ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}
