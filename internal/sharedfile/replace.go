// Package sharedfile changes small files that several programs share, such as
// credentials and settings: a writer takes the lock directory beside the file,
// reads, and puts the new content in place of the old in one step.
//
//	path := sharedfile.Resolve(name) // behind links
//	l, err := sharedfile.TakeLock(ctx, path+".lock", sharedfile.LeftBehind)
//	…
//	defer l.Release()
//	content := … // read after the lock was taken
//	if !l.Held() {
//		return sharedfile.ErrLockLost
//	}
//	err = sharedfile.Replace(path, content, 0o600)
//
// A reader needs no lock: it sees the old content or the new one.
package sharedfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrLockLost says that a process was stopped for so long that another took its
// lock over.
var ErrLockLost = errors.New("another process took the lock over")

// Resolve follows the links of a path, also when the last one leads to a file
// that does not exist yet: writing must not replace a link.
func Resolve(path string) string {
	for range 40 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// Reserve makes sure that a file of a size can be put in the place of path: that
// there is room, and that it may be written. What it takes for that is free for
// Replace, and gone after giveBack.
func Reserve(path string, size int) (giveBack func(), err error) {
	f, err := os.CreateTemp(temporary(path))
	if err != nil {
		return nil, err
	}
	giveBack = func() { os.Remove(f.Name()) }
	_, err = f.Write(make([]byte, size))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

// temporary is the folder and the pattern of temporary files for a file.
func temporary(path string) (dir, pattern string) {
	return filepath.Dir(path), filepath.Base(path) + ".tmp-*"
}

// Replace puts content in place of a file in one step, with these permissions.
// The file's lock is held, so that temporary files beside it are those of
// processes that died, or reserved. After an error the file is the old one.
func Replace(path string, content []byte, perm fs.FileMode) error {
	dir, pattern := temporary(path)
	prefix := strings.TrimSuffix(pattern, "*")
	beside, _ := os.ReadDir(dir)
	for _, e := range beside {
		if strings.HasPrefix(e.Name(), prefix) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	f, err := os.CreateTemp(dir, pattern) // created with mode 0600
	if err != nil {
		return err
	}
	keepOwner(f, path)
	if perm != 0o600 {
		err = f.Chmod(perm)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = replaceFile(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
