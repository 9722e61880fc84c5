//go:build unix

package packages

import "syscall"

var errNotDir error = syscall.ENOTDIR
