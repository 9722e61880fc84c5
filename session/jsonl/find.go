package jsonl

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/session"
)

// Match is the session that an argument names.
type Match struct {
	Path string
	ID   string // "" when the argument was a path
	CWD  string // of the session; "" when the argument was a path
	// Foreign says that the session is of another working directory. Hosts ask
	// whether to fork it into this one.
	Foreign bool
}

// Find resolves a session argument for a working directory: a path, relative to
// it, when it holds a separator or ends in .jsonl; else a session id, an exact
// one before a prefix, and the sessions of this directory before all others. A
// path need not exist. Of several sessions with a prefix the newest is taken.
func (r *Repository) Find(ctx context.Context, cwd, arg string) (Match, error) {
	if arg == "" {
		return Match{}, &session.Error{Kind: session.NotFound, Op: "find"}
	}
	if isPath(arg) {
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(cwd, arg)
		}
		return Match{Path: arg}, nil
	}
	here := files(r.Dir(cwd))
	if m, ok := r.among(ctx, here, arg, func(named string) bool { return r.holds(cwd, named) }); ok {
		return m, nil
	}
	if m, ok := r.among(ctx, r.allFiles(), arg, func(string) bool { return true }); ok {
		m.Foreign = true
		return m, nil
	}
	if err := ctx.Err(); err != nil {
		return Match{}, &session.Error{Kind: session.IO, Op: "find", Path: arg, Err: err}
	}
	return Match{}, &session.Error{Kind: session.NotFound, Op: "find", Path: arg,
		Advice: "list the sessions to see their ids"}
}

// FindID is the session of a working directory with exactly this id.
func (r *Repository) FindID(ctx context.Context, cwd, id string) (Match, bool) {
	var m Match
	found := false
	for _, path := range likely(files(r.Dir(cwd)), id) {
		if ctx.Err() != nil {
			break
		}
		h, _, ok := readHeader(path)
		if ok && h.ID == id && r.holds(cwd, h.CWD) {
			m, found = Match{Path: path, ID: h.ID, CWD: h.CWD}, true
			break
		}
	}
	return m, found
}

// likely puts the files whose names end with the id in front.
func likely(paths []string, id string) []string {
	out := slices.Clone(paths)
	slices.SortStableFunc(out, func(a, b string) int {
		x, y := strings.HasSuffix(a, "_"+id+extension), strings.HasSuffix(b, "_"+id+extension)
		switch {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	})
	return out
}

// among finds the session with an id or, without one, the newest with the
// prefix, of the working directories that pass.
func (r *Repository) among(ctx context.Context, paths []string, id string, pass func(cwd string) bool) (Match, bool) {
	var best Match
	var newest time.Time
	var prefixed []string
	for _, path := range likely(paths, id) {
		if ctx.Err() != nil {
			return Match{}, false
		}
		h, modified, ok := readHeader(path)
		if !ok || !strings.HasPrefix(h.ID, id) || !pass(h.CWD) {
			continue
		}
		m := Match{Path: path, ID: h.ID, CWD: h.CWD}
		if h.ID == id {
			return m, true
		}
		prefixed = append(prefixed, path)
		if best.Path == "" || modified.After(newest) {
			best, newest = m, modified
		}
	}
	if len(prefixed) < 2 {
		return best, len(prefixed) == 1
	}
	// Only now it is worth to read the files for the time of their last message.
	list, err := r.read(ctx, prefixed, nil)
	if err != nil || len(list) == 0 {
		return best, err == nil
	}
	return Match{Path: list[0].Path, ID: list[0].ID, CWD: list[0].CWD}, true
}
