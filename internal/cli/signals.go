package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// signals ends a run at the first interrupt and the program at the second.
type signals struct {
	received atomic.Int32 // exit status of the first signal
	ch       chan os.Signal
	pipe     chan os.Signal
	cancel   context.CancelFunc
	done     chan struct{}
}

// patience is how long the orderly end of a run may take, for a file system or a
// device that does not answer.
const patience = 3 * time.Second

// watchSignals returns a context that ends with the first signal.
//
// SIGPIPE is caught so that a closed output is an error of a write, after which
// running commands are ended and the session is whole, and not the program's
// sudden death. Commands that tools start do not inherit that.
func watchSignals() (context.Context, *signals) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &signals{
		ch:     make(chan os.Signal, 2),
		pipe:   make(chan os.Signal, 1),
		cancel: cancel,
		done:   make(chan struct{}),
	}
	signal.Notify(s.ch, endSignals()...)
	notifyPipe(s.pipe)
	go func() {
		for {
			select {
			case sig := <-s.ch:
				status := int32(1)
				if n, ok := sig.(syscall.Signal); ok {
					status = 128 + int32(n)
				}
				if !s.received.CompareAndSwap(0, status) {
					os.Exit(int(status))
				}
				cancel()
				time.AfterFunc(patience, func() { os.Exit(int(status)) })
			case <-s.done:
				return
			}
		}
	}()
	return ctx, s
}

// status is the exit status of the signal that ended the run, 0 for none.
func (s *signals) status() int { return int(s.received.Load()) }

func (s *signals) stop() {
	signal.Stop(s.ch)
	signal.Stop(s.pipe)
	close(s.done)
	s.cancel()
}
