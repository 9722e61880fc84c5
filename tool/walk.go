package tool

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/ignore"
)

// walk goes through a folder and those in it, links not followed. It passes over
// what ignore rules exclude and what cannot be read.
type walk struct {
	fs      env.FileSystem
	root    string          // absolute, with slashes
	sources *ignore.Sources // of the rules
	// choose decides before the rules do; nil for nothing to decide.
	choose func(rel string, isDir bool) ignore.Verdict
}

// found is a file or folder that a walk met.
type found struct {
	rel  string // from the root, with slashes
	kind env.Kind
}

// folder is one to be listed, at most once.
type folder struct {
	rel    string
	name   string
	parent *ignore.Folder // nil for the root
	once   sync.Once

	// What listing it gives.
	rules   *ignore.Folder
	entries []env.Entry
}

// newWalk prepares a walk below an absolute path. own is the name of the ignore
// file that is the tool's own.
func newWalk(ctx context.Context, fs env.FileSystem, root, configDir, own string, requireGit bool) *walk {
	w := &walk{fs: fs, root: filepath.ToSlash(root)}
	read := func(path string) string {
		if info, err := fs.Info(ctx, path); err != nil || info.Kind == env.KindDirectory || info.Kind == env.KindOther {
			return ""
		}
		text, err := fs.ReadFile(ctx, path)
		if err != nil {
			return ""
		}
		return string(text)
	}
	home := filepath.ToSlash(fs.HomeDir())
	config := filepath.ToSlash(configDir)
	if config == "" {
		config = home + "/.config"
	}
	w.sources = &ignore.Sources{
		Own: own, RequireGit: requireGit, Read: read,
		Exists: func(path string) bool { ok, _ := fs.Exists(ctx, path); return ok },
		Global: ignore.GlobalRules(home, config, read),
	}
	return w
}

// path is the absolute path of something that was found.
func (w *walk) path(rel string) string {
	if rel == "" {
		return w.root
	}
	return strings.TrimSuffix(w.root, "/") + "/" + rel
}

// ahead bounds how many folders wait to be listed before the walk is there.
const ahead = 256

// run calls visit for everything below the root, a folder before what is in it,
// sorted by name, until visit returns false. Folders that come next are listed
// meanwhile. Its error is that of the context.
func (w *walk) run(ctx context.Context, visit func(found) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	next := make(chan *folder, ahead)
	var listers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		listers.Go(func() {
			for f := range next {
				f.once.Do(func() { w.list(ctx, f) })
			}
		})
	}
	defer listers.Wait()
	defer close(next)
	defer cancel()

	var enter func(f *folder) bool
	enter = func(f *folder) bool {
		f.once.Do(func() { w.list(ctx, f) })
		if ctx.Err() != nil {
			return false
		}
		folders := map[string]*folder{}
		for _, e := range f.entries {
			if e.Kind != env.KindDirectory {
				continue
			}
			sub := &folder{rel: below(f.rel, e.Name), name: e.Name, parent: f.rules}
			folders[e.Name] = sub
			select {
			case next <- sub:
			default:
			}
		}
		for _, e := range f.entries {
			if !visit(found{below(f.rel, e.Name), e.Kind}) {
				return false
			}
			if sub := folders[e.Name]; sub != nil {
				delete(folders, e.Name)
				if !enter(sub) {
					return false
				}
			}
		}
		return true
	}
	enter(&folder{})
	return ctx.Err()
}

func below(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}

// list lists a folder. One that cannot be read is empty.
func (w *walk) list(ctx context.Context, f *folder) {
	entries, err := env.Entries(ctx, w.fs, w.path(f.rel))
	if err != nil {
		return
	}
	if f.parent == nil {
		f.rules = w.sources.Start(w.root)
	} else {
		f.rules = f.parent.Enter(f.name, func(name string) bool {
			_, found := slices.BinarySearchFunc(entries, name, func(e env.Entry, name string) int { return strings.Compare(e.Name, name) })
			return found
		})
	}
	f.entries = slices.DeleteFunc(entries, func(e env.Entry) bool {
		isDir := e.Kind == env.KindDirectory
		verdict := ignore.None
		if w.choose != nil {
			verdict = w.choose(below(f.rel, e.Name), isDir)
		}
		if verdict == ignore.None {
			verdict = f.rules.Match(e.Name, isDir)
		}
		return verdict == ignore.Ignored
	})
}
