package cli

import (
	"context"
	"os"
)

// readWhenReady reads from the console. The system has no read of a console that
// can be called off: one that is under way when ctx ends takes the next key, and
// ends with the program at the latest.
func readWhenReady(ctx context.Context, f *os.File, b []byte) (int, error) {
	type outcome struct {
		b   []byte
		err error
	}
	got := make(chan outcome, 1)
	go func() {
		in := make([]byte, len(b))
		n, err := readNow(f, in)
		got <- outcome{in[:n], err}
	}()
	select {
	case o := <-got:
		return copy(b, o.b), o.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
