//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// freeSpace is how many bytes a user may still write to the file system of path.
func freeSpace(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
