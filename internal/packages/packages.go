// Package packages installs packages of skills, prompt templates, themes and
// extensions: it fetches them from a registry of npm packages or with git,
// unpacks them where nothing of them can reach further, puts them in place in
// one step, and records what came from where.
//
//	in := &packages.Installer{Client: client, Getenv: os.Getenv, Home: home}
//	place, ok := folders.PlacePackage("npm:@me/skills@^1.2", folder, resource.User)
//	…
//	outcome, err := in.Install(ctx, "npm:@me/skills@^1.2", place, false)
//
// Nothing of a package is ever run: no install scripts, no hooks of git, no
// filters of attributes. Dependencies on other npm packages are not installed.
//
// The record stands in the package's own folder, File, so that it changes with it
// in one step. A folder without one belongs to somebody else and is left alone.
package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/resource"
)

// Installer fetches packages. Safe for concurrent use, and so are several
// processes: they take turns.
type Installer struct {
	Client  *http.Client        // for registries; nil for http.DefaultClient
	Getenv  func(string) string // os.Getenv
	Environ []string            // from which git gets what it needs, os.Environ()
	Home    string              // the user's home, for .npmrc; "" for none
	Project string              // a trusted project, whose .npmrc may name registries; "" for none
	Offline bool
	Limits  Limits // the zero value is DefaultLimits

	protocols []string // that git may use beside https and ssh, in tests
}

// Kind says what is wrong, for callers that act on it.
type Kind string

// The kinds of errors.
const (
	Invalid   Kind = "invalid"   // the source cannot be one
	NotFound  Kind = "not-found" // there is no such package, version or ref
	Refused   Kind = "refused"   // the package has something in it that no package may have
	Integrity Kind = "integrity" // what came is not what was promised
	Changed   Kind = "changed"   // the installed folder was changed by somebody
	Foreign   Kind = "foreign"   // the folder was put there by another program
	Offline   Kind = "offline"   // the network may not be used
	Transport Kind = "transport" // the service did not answer, or not well
	System    Kind = "system"    // this machine
)

// Error is what went wrong with a package.
type Error struct {
	Kind   Kind
	Op     string // install or remove
	Source string
	Err    error
	Advice string // what can be done; "" for nothing in particular
}

func (e *Error) Error() string {
	text := fmt.Sprintf("Failed to %s %s: %v", e.Op, e.Source, e.Err)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// fault is an error on its way to an Error.
type fault struct {
	kind   Kind
	err    error
	advice string
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(kind Kind, format string, args ...any) *fault {
	return &fault{kind: kind, err: fmt.Errorf(format, args...)}
}

func (f *fault) advise(advice string) *fault {
	f.advice = advice
	return f
}

func failure(op, source string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Kind: System, Op: op, Source: source, Err: err}
	if f, ok := errors.AsType[*fault](err); ok {
		e.Kind, e.Advice = f.kind, f.advice
	}
	return e
}

// Outcome is what Install did.
type Outcome struct {
	Record   Record
	Previous *Record // of what was in place before; nil for nothing
	Current  bool    // what is in place is what the source gives; nothing was done
}

// Install puts what source gives now in place, if that is not there already. A
// folder that another program put there, or that was changed since, is an error
// and stays as it is, unless force is set. After an error what was there before
// is there still. The package of a path is not copied: there is nothing to do.
func (in *Installer) Install(ctx context.Context, source string, place resource.PackagePlace, force bool) (Outcome, error) {
	outcome, err := in.install(ctx, source, place, force)
	return outcome, failure("install", source, err)
}

func (in *Installer) install(ctx context.Context, source string, place resource.PackagePlace, force bool) (o Outcome, err error) {
	if place.Kind == resource.LocalPackage {
		if _, err := os.Stat(place.Dir); err != nil {
			return o, faultf(NotFound, "path does not exist: %s", place.Dir)
		}
		return Outcome{Current: true}, nil
	}
	fetch, err := in.fetcher(source, place)
	if err != nil {
		return o, err
	}
	if in.Offline {
		return o, faultf(Offline, "the network is not used").advise("unset PINCH_OFFLINE and PI_OFFLINE")
	}
	w, err := enter(ctx, place.Root)
	if err != nil {
		return o, err
	}
	defer w.leave()
	state, err := Inspect(place.Dir)
	if err != nil {
		return o, err
	}
	if state.Record != nil {
		o.Previous = state.Record
	}
	switch {
	case force:
	case state.Status == Strange:
		return o, faultf(Foreign, "%s was not put there by pinch", place.Dir).advise("move it away; or, if it is in the settings, let pinch update --force replace it")
	case state.Status == Altered:
		return o, faultf(Changed, "%s was changed after it was installed: %s", place.Dir, state.Differences).advise("keep your changes elsewhere and let pinch update --force replace them")
	}
	known := state.Record
	if state.Status != Intact || force {
		known = nil
	}
	staged, err := w.stage()
	if err != nil {
		return o, err
	}
	record, err := fetch(ctx, staged, known)
	if err != nil {
		return o, err
	}
	if record == nil {
		o.Record, o.Current = *known, true
		return o, nil
	}
	record.Source = source
	if r := state.Record; r != nil && !force && r.Version != "" && r.Version == record.Version && r.Archive == record.Archive && r.Integrity != record.Integrity {
		return o, faultf(Integrity, "the archive of version %s is another one than the one that was installed", r.Version).advise("ask its owner; --force takes the new one")
	}
	if err := record.write(staged.files); err != nil {
		return o, err
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	if err := w.replace(staged.files, place.Dir); err != nil {
		return o, err
	}
	o.Record = *record
	return o, nil
}

// fetchFunc fills a staging folder. It returns nil when known, what is in place
// and as it should be, is what it would fetch.
type fetchFunc func(ctx context.Context, s *staging, known *Record) (*Record, error)

func (in *Installer) fetcher(source string, place resource.PackagePlace) (fetchFunc, error) {
	if place.Kind == resource.NPMPackage {
		spec, err := parseNPM(source)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, s *staging, known *Record) (*Record, error) {
			return in.fetchNPM(ctx, spec, s, known)
		}, nil
	}
	repository, err := parseGit(source, append([]string{"https", "ssh"}, in.protocols...))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s *staging, known *Record) (*Record, error) {
		return in.fetchGit(ctx, repository, s, known)
	}, nil
}

// Pinned reports whether a source names what it gives once and for all, as far as
// names can: an exact version, a ref.
func Pinned(source string, place resource.PackagePlace) bool {
	switch place.Kind {
	case resource.NPMPackage:
		spec, err := parseNPM(source)
		_, exact := parseVersion(spec.version)
		return err == nil && exact
	case resource.GitPackage:
		repository, err := parseGit(source, []string{"https", "ssh"})
		return err == nil && repository.ref != ""
	}
	return false
}

// Remove takes an installed package away. kept is true when the folder stays
// because another program put it there.
func (in *Installer) Remove(ctx context.Context, source string, place resource.PackagePlace) (kept bool, err error) {
	kept, err = in.remove(ctx, place)
	return kept, failure("remove", source, err)
}

func (in *Installer) remove(ctx context.Context, place resource.PackagePlace) (kept bool, err error) {
	if place.Kind == resource.LocalPackage {
		return false, nil
	}
	if _, err := os.Lstat(place.Dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	w, err := enter(ctx, place.Root)
	if err != nil {
		return false, err
	}
	defer w.leave()
	record, err := readRecord(place.Dir)
	if record == nil {
		return true, err
	}
	staged, err := w.stage()
	if err != nil {
		return false, err
	}
	if err := os.Rename(place.Dir, filepath.Join(staged.dir, "removed")); err != nil {
		return false, err
	}
	for dir := filepath.Dir(place.Dir); dir != place.Root; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // others are in it
			break
		}
	}
	return false, nil
}

func (in *Installer) limits() Limits {
	l, d := in.Limits, DefaultLimits()
	return Limits{
		Archive: cmp.Or(l.Archive, d.Archive), Content: cmp.Or(l.Content, d.Content),
		Files: cmp.Or(l.Files, d.Files), Ratio: cmp.Or(l.Ratio, d.Ratio),
	}
}
