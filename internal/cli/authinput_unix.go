//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookInterval is how often a wait for input looks whether its context has ended.
const lookInterval = 50 * time.Millisecond

// readWhenReady reads from a terminal. Nothing is left waiting when ctx ends.
func readWhenReady(ctx context.Context, f *os.File, b []byte) (int, error) {
	fd := int(f.Fd())
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		// select, not poll: the latter refuses terminals on macOS.
		var set unix.FdSet
		set.Set(fd)
		wait := unix.NsecToTimeval(int64(lookInterval))
		n, err := unix.Select(fd+1, &set, nil, nil, &wait)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
			continue
		case err != nil:
			return 0, err
		}
		return readNow(f, b)
	}
}
