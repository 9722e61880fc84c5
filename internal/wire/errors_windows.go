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
	switch no { // Winsock numbers
	case 10054:
		return "ECONNRESET"
	case 10061:
		return "ECONNREFUSED"
	case 10053:
		return "ECONNABORTED"
	case 10060:
		return "ETIMEDOUT"
	}
	return ""
}
