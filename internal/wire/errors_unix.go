//go:build !windows

package wire

import (
	"errors"
	"syscall"
)

// errorCode is the name of a system error that peers print, such as ECONNRESET.
func errorCode(err error) string {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return ""
	}
	switch no {
	case syscall.ECONNRESET:
		return "ECONNRESET"
	case syscall.ECONNREFUSED:
		return "ECONNREFUSED"
	case syscall.ECONNABORTED:
		return "ECONNABORTED"
	case syscall.ETIMEDOUT:
		return "ETIMEDOUT"
	case syscall.EPIPE:
		return "EPIPE"
	}
	return ""
}
