//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

func endSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
}

func notifyPipe(ch chan os.Signal) { signal.Notify(ch, syscall.SIGPIPE) }
