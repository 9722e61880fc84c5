//go:build unix

package sharedfile

import (
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a new file the owner of the one that it will replace: root
// must not lock a user out of the own file.
func keepOwner(f *os.File, path string) {
	old, err := os.Stat(path)
	if err != nil {
		return
	}
	if st, ok := old.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // without the right to, the file is the writer's
	}
}

// replaceFile renames, and makes sure that the name survives a power cut.
func replaceFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(to)); err == nil {
		_ = dir.Sync() // not every file system can; the file itself is safe
		dir.Close()
	}
	return nil
}

// passing reports whether making a directory fails only for the moment.
func passing(error) bool { return false }

// guard makes its holder the only one among the processes of pinch that may take
// over, renew or remove a lock directory. The system lets go of it when the
// holder dies. It belongs to this directory, not to the name: a directory made
// later under the name is another.
func guard(dir string) (unguard func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil && err != syscall.ENOTSUP && err != syscall.EBADF && err != syscall.ENOLCK {
		f.Close()
		return nil, err
	}
	// Where directories cannot be guarded, looking twice has to do.
	return func() { f.Close() }, nil
}
