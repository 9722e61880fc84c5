package cli

import (
	"os"
	"syscall"
)

func endSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// notifyPipe does nothing: Windows has no such signal.
func notifyPipe(chan os.Signal) {}
