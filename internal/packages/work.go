package packages

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// work is the right to change the packages below a root. What lies in the folder
// for unfinished things belongs to its holder, so that leftovers of processes that
// were killed are known as such.
type work struct {
	root string
	lock *flock.Flock
}

// Names within a root. No package can have them: they begin with a dot.
const (
	lockName = ".pinch.lock"
	tempName = ".pinch-tmp"
	aside    = "aside-" // followed by the place of a package, moved away for its successor
)

// enter waits for its turn and clears up what others left unfinished.
func enter(ctx context.Context, root string) (*work, error) {
	if err := os.MkdirAll(filepath.Join(root, tempName), 0o755); err != nil {
		return nil, err
	}
	w := &work{root: root, lock: flock.New(filepath.Join(root, lockName), flock.SetPermissions(0o600))}
	if _, err := w.lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		w.lock.Close()
		return nil, err
	}
	if err := w.clear(); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

func (w *work) leave() {
	_ = w.clear() // what is left is cleared the next time
	_ = w.lock.Close()
}

// clear removes what is unfinished. A package that was moved away and has no
// successor goes back.
func (w *work) clear() error {
	temp := filepath.Join(w.root, tempName)
	entries, err := os.ReadDir(temp)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(temp, e.Name())
		if place, ok := w.movedFrom(e.Name()); ok {
			if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
				if err := os.Rename(path, place); err != nil {
					return err
				}
				continue
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// movedFrom is where a folder belongs that was moved aside.
func (w *work) movedFrom(name string) (place string, ok bool) {
	encoded, ok := strings.CutPrefix(name, aside)
	if !ok {
		return "", false
	}
	rel, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !filepath.IsLocal(string(rel)) {
		return "", false
	}
	return filepath.Join(w.root, string(rel)), true
}

// staging is a folder in which a package comes together.
type staging struct {
	dir   string // for whatever is needed on the way
	files string // the package
}

func (w *work) stage() (*staging, error) {
	dir, err := os.MkdirTemp(filepath.Join(w.root, tempName), "new-")
	if err != nil {
		return nil, err
	}
	s := &staging{dir: dir, files: filepath.Join(dir, "files")}
	return s, os.Mkdir(s.files, 0o755)
}

// replace puts a folder in the place of another in one step, where the system
// can. Where it cannot, the old one is aside for a moment; clear puts it back if
// the process dies in it.
func (w *work) replace(files, place string) error {
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(files, place)
	}
	if err := exchange(files, place); err == nil || !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return w.moveAside(files, place)
}

func (w *work) moveAside(files, place string) error {
	rel, err := filepath.Rel(w.root, place)
	if err != nil {
		return err
	}
	old := filepath.Join(w.root, tempName, aside+base64.RawURLEncoding.EncodeToString([]byte(rel)))
	if err := os.Rename(place, old); err != nil {
		return err
	}
	if err := os.Rename(files, place); err != nil {
		return errors.Join(err, os.Rename(old, place))
	}
	return nil
}
