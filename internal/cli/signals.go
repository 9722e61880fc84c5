package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

// signals ends a run at the first interrupt and the program at the second.
type signals struct {
	received atomic.Int32 // exit status of the first signal; ended for one after the end has begun
	ending   atomic.Bool  // the end has begun without a signal
	unsaved  func() bool  // whether a sign-in would be lost now
	ch       chan os.Signal
	pipe     chan os.Signal
	cancel   context.CancelFunc
	done     chan struct{}
}

// patience is how long the orderly end of a run may take, for a file system or a
// device that does not answer.
const patience = 3 * time.Second

// renewalPatience is how long a sign-in that is being renewed is waited for,
// whatever a person does: most issuers honour a refresh token once, so that the
// outcome has to get into the file.
const renewalPatience = auth.RefreshTimeout + patience

// watchSignals returns a context that ends with the first signal.
//
// SIGPIPE is caught so that a closed output is an error of a write, after which
// running commands are ended and the session is whole, and not the program's
// sudden death. Commands that tools start do not inherit that.
//
// While unsaved says so neither signal ends the program.
func watchSignals(unsaved func() bool) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &signals{
		ch:     make(chan os.Signal, 2),
		pipe:   make(chan os.Signal, 1),
		cancel: cancel,
		done:   make(chan struct{}),

		unsaved: unsaved,
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
				first := status
				if s.ending.Load() {
					first = ended
				}
				if !s.received.CompareAndSwap(0, first) {
					s.received.CompareAndSwap(ended, status)
					if s.unsaved() {
						fmt.Fprintln(os.Stderr, "A sign-in is being renewed and would be lost; pinch ends when it is stored.")
					}
					go s.exit()
					continue
				}
				cancel()
				time.AfterFunc(patience, s.exit)
			case <-s.done:
				return
			}
		}
	}()
	return ctx, s
}

// exit ends the program when no sign-in is lost by it, with the status of the first
// signal.
func (s *signals) exit() {
	for end := time.Now().Add(renewalPatience); s.unsaved() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(s.status())
}

// ended is in the place of the status of a signal that came when the program was
// ending by itself: it changes nothing.
const ended = -1

// end says that the program is ending by itself. One signal from here on is too
// late to change how; a second one ends it at once.
func (s *signals) end() { s.ending.Store(true) }

// status is the exit status of the signal that ended the run, 0 for none.
func (s *signals) status() int { return max(0, int(s.received.Load())) }

func (s *signals) stop() {
	signal.Stop(s.ch)
	signal.Stop(s.pipe)
	close(s.done)
	s.cancel()
}
