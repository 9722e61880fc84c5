package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/internal/sharedfile"
)

// Store is the settings of a program that goes on, and the one that writes them.
// It reads its files when it is opened and when Reload is called. Safe for
// concurrent use, and several processes may have stores of one file.
type Store struct {
	user, project *watched // project is nil without one
	turn          chan struct{}

	mu      sync.Mutex
	current *Settings
	found   []string // changes by others that a write came upon
}

// watched is a file of the store with the version that was read.
type watched struct {
	path    string
	project bool
	seen    sharedfile.Version
	file    *File
}

// Scope is whose settings something is about.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// ErrNoProject says that there is no project whose settings count: none, or one
// that is not trusted.
var ErrNoProject = errors.New("no trusted project whose settings could be changed")

var errReadOnly = errors.New("the file is read-only: make it writable, or change it where it comes from")

// OpenStore reads the user's file and that of a project. Neither need exist;
// project is "" where there is none, or where it is not trusted.
func OpenStore(user, project string) *Store {
	s := &Store{user: &watched{path: user}, turn: make(chan struct{}, 1)}
	if project != "" {
		s.project = &watched{path: project, project: true}
	}
	s.Reload()
	return s
}

// Settings are the settings in force.
func (s *Store) Settings() *Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Reload looks whether the files have changed, which costs no more than that
// while they have not, and reads those that have. It returns the settings that
// have another value now, with dots, such as retry.enabled.
//
// What worked stays: a file that cannot be used any more leaves its last content
// in force, a setting that cannot have its new value keeps the old one, and
// Settings.Problems tells of both.
func (s *Store) Reload() (changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.user.reload()
	if s.project != nil {
		again = s.project.reload() || again
	}
	changed, s.found = s.found, nil
	if again {
		changed = append(changed, s.merge()...)
	}
	return changed
}

// merge puts the files together again. s.mu is held.
func (s *Store) merge() (changed []string) {
	var project *File
	if s.project != nil {
		project = s.project.file
	}
	before := s.current
	s.current = Merge(s.user.file, project)
	if before == nil {
		return nil
	}
	for _, d := range compare(before.root, s.current.root, true) {
		changed = append(changed, strings.Join(d.path, "."))
	}
	return changed
}

// reload reads the file when it is not the one read last.
func (w *watched) reload() bool {
	version, err := sharedfile.VersionOf(w.path)
	if err == nil && w.file != nil && w.seen.Same(version) {
		return false
	}
	f := read(w.path, w.project)
	// Other programs write the file in place: what is half written now is whole in
	// a moment.
	for tries := 0; f.Err != nil && tries < 10 && locked(w.path); tries++ {
		time.Sleep(10 * time.Millisecond)
		f = read(w.path, w.project)
	}
	w.seen = version
	w.take(f)
	return true
}

func locked(path string) bool {
	_, err := os.Lstat(sharedfile.Resolve(path) + ".lock")
	return err == nil
}

// take puts a file in force, as far as it can be.
func (w *watched) take(f *File) {
	if w.file != nil {
		if f.Err != nil {
			f = &File{Path: f.Path, Err: f.Err, root: w.file.root}
		} else {
			f = f.keeping(w.file)
		}
	}
	w.file = f
}

// Change is the change of one setting: see Set and Unset.
type Change struct {
	name  string
	value any
}

// Set gives a setting a value: a string, a bool, an int, a float64, a []string
// or, as a jsontext.Value, anything else. Names have dots, such as retry.enabled
// or modelThinkingLevels.anthropic/claude-opus-4-8.
func Set(name string, value any) Change { return Change{name, value} }

// Unset takes a setting away.
func Unset(name string) Change { return Change{name: name} }

// Write changes settings of a scope in one step, in the file as it is now: other
// programs may have written it. Every other byte of it stays, comments and
// unknown settings too, but for old names, which become those of today. A link is
// followed, the permissions stay; a new file of the user, and every file that
// holds a secret, is its owner's alone.
//
// A value that a setting cannot have is a *Problem. A file that cannot be used is
// never written; that and everything else is a *FileError, and the file is as it
// was.
func (s *Store) Write(ctx context.Context, scope Scope, changes ...Change) error {
	w := s.user
	if scope == Project {
		if w = s.project; w == nil {
			return ErrNoProject
		}
	}
	type edit struct {
		path  []string
		value jsontext.Value
	}
	var edits []edit
	for _, c := range changes {
		e := edit{path: split(c.name)}
		if c.value != nil {
			var err error
			if e.value, err = encode(c.value); err != nil {
				return fmt.Errorf("settings: %s: %w", c.name, err)
			}
			if err := checkValue(c.name, e.value); err != nil {
				return err
			}
			if k := lookUp(c.name); k != nil && k.user && scope == Project {
				return &Problem{Kind: Misplaced, Key: c.name}
			}
		}
		edits = append(edits, e)
	}
	mine := func(name string) bool {
		return slices.ContainsFunc(edits, func(e edit) bool {
			own := strings.Join(e.path, ".")
			return name == own || strings.HasPrefix(name, own+".")
		})
	}
	return s.change(ctx, w, mine, func(text []byte) ([]byte, error) {
		text, err := modernize(text)
		for _, e := range edits {
			if err != nil {
				return nil, err
			}
			if e.value == nil {
				text, err = jsonedit.Unset(text, e.path...)
			} else {
				text, err = jsonedit.Set(text, e.value, e.path...)
			}
		}
		return text, err
	})
}

// lockLeftBehind is how old the lock of a settings file is that was left behind:
// so other programs that share the file have it.
const lockLeftBehind = 10 * time.Second

// change changes the text of a file under its lock. mine tells the settings that
// change by that.
func (s *Store) change(ctx context.Context, w *watched, mine func(name string) bool, edit func(text []byte) ([]byte, error)) error {
	fail := func(op string, err error) error { return &FileError{Path: w.path, Op: op, Cause: err} }
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fail("lock", ctx.Err())
	}
	path := sharedfile.Resolve(w.path)
	perm, folder := fs.FileMode(0o600), fs.FileMode(0o700)
	if w.project { // which is shared with others by its nature
		perm, folder = 0o644, 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return fail("write", err)
	}
	lock, err := sharedfile.TakeLock(ctx, path+".lock", lockLeftBehind)
	if err != nil {
		return fail("lock", err)
	}
	defer lock.Release()
	text, err := regular.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fail("read", err)
	default:
		info, err := os.Stat(path)
		if err != nil {
			return fail("read", err)
		}
		perm = info.Mode().Perm()
	}
	text = jsonedit.Begin(text)
	if f := newFile(w.path, text, w.project); f.Err != nil {
		return f.Err
	}
	next, err := edit(text)
	if err != nil {
		return fail("write", err)
	}
	if len(next) > regular.MaxSize { // nobody could read it again
		return fail("write", regular.ErrTooLarge)
	}
	f := newFile(w.path, next, w.project)
	if f.Err != nil {
		return fail("write", f.Err)
	}
	if string(next) != string(text) {
		if perm&0o200 == 0 {
			return fail("write", errReadOnly)
		}
		if f.secret() {
			perm &= 0o600
		}
		if !lock.Held() {
			return fail("lock", sharedfile.ErrLockLost)
		}
		if err := sharedfile.Replace(path, next, perm); err != nil {
			return fail("write", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.seen, _ = sharedfile.VersionOf(w.path)
	w.take(f)
	s.found = append(s.found, slices.DeleteFunc(s.merge(), mine)...)
	return nil
}

// secret reports whether the file has something in it that only its owner should
// see: keys of old files, the password of a proxy.
func (f *File) secret() bool {
	proxy, _ := jsonwire.StringValue(f.root.get("httpProxy"))
	return f.root.has("apiKeys") || strings.Contains(proxy, "@")
}

// modernize gives settings of old names those of today, in the text.
func modernize(text []byte) ([]byte, error) {
	plain := jsonedit.Plain(text)
	before, err := parseObject(plain)
	if err != nil {
		return nil, err
	}
	counted, _ := checkText(plain, false)
	skills, _ := parseObject(before.get("skills"))
	foreign := slices.ContainsFunc(skills, func(m member) bool {
		return oldSkills()[m.name] == nil || counted.at([]string{"skills", m.name}) == nil
	})
	for _, d := range compare(before, migrate(slices.Clone(before), counted), false) {
		switch {
		case d.path[0] == "skills" && foreign: // what is unknown in it, or does not count, has to stay
		case d.now == nil:
			text, err = jsonedit.Unset(text, d.path...)
		default:
			text, err = jsonedit.Set(text, d.now, d.path...)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// encode is a value as JSON text.
func encode(value any) (jsontext.Value, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) { // another text would be read again
			return nil, fmt.Errorf("%q is no text in UTF-8: a file or folder of this name has to be renamed", v)
		}
		return jsonwire.AppendString(nil, v), nil
	case bool:
		return strconv.AppendBool(nil, v), nil
	case int:
		return strconv.AppendInt(nil, int64(v), 10), nil
	case float64:
		return jsonwire.AppendFloat(nil, v), nil
	case []string:
		if i := slices.IndexFunc(v, func(text string) bool { return !utf8.ValidString(text) }); i >= 0 {
			return encode(v[i])
		}
		return jsonwire.AppendStrings(nil, v), nil
	case jsontext.Value:
		return v, jsonwire.Check(v)
	}
	return nil, fmt.Errorf("a value of type %T cannot be a setting", value)
}
