//go:build unix

package auth

import "io/fs"

// exposed are the permissions of a file that others may read, 0 otherwise.
func exposed(info fs.FileInfo) fs.FileMode {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return mode
	}
	return 0
}
