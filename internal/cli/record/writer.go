package record

import (
	"context"
	"io"
	"sync"
	"time"
)

// highWater is how many bytes may wait for a slow reader before writers wait
// for it too.
const highWater = 64 << 10

// Writer writes records to an output whose reader may be slow. What is written
// while the output is busy goes out together in the next write, so a fast run
// costs few system calls and a slow one is seen at once. A reader that stops
// stalls those who write, not those who end.
//
// One goroutine belongs to a Writer; Close ends it.
type Writer struct {
	out  io.Writer
	wake chan struct{} // something waits, or Close was called
	done chan struct{} // the goroutine has ended

	mu      sync.Mutex
	room    chan struct{} // closed when the buffer was taken; replaced then
	buf     []byte
	spare   []byte
	err     error
	closing bool
}

// NewWriter makes a Writer to out.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{
		out:  out,
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
		room: make(chan struct{}),
	}
	go w.run()
	return w
}

// Write appends what fill appends, as one piece, and waits while too much is
// waiting. It fails when the output failed before, or when ctx ends while it
// waits; the piece is kept in that case.
func (w *Writer) Write(ctx context.Context, fill func(dst []byte) []byte) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	w.buf = fill(w.buf)
	full, room := len(w.buf) >= highWater, w.room
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if !full {
		return nil
	}
	select {
	case <-room:
		return nil
	case <-w.done:
		return w.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close writes what waits and ends the Writer. It gives up when ctx ends.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-w.done:
		return w.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastWords is how long a reader that does not read may hold up the end.
const lastWords = 100 * time.Millisecond

// Finish is Close for a run that ctx ends: once it is over, the reader has only
// a moment left, and what it does not read is given up.
func (w *Writer) Finish(ctx context.Context) error {
	end, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lastWords):
			cancel()
		case <-end.Done():
		}
	})
	defer stop()
	return w.Close(end)
}

// Done is closed when the Writer has ended: it was closed, or the output failed.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Err is why the output failed, nil while it works.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) run() {
	defer close(w.done)
	for range w.wake {
		for {
			w.mu.Lock()
			out := w.buf
			w.buf, w.spare = w.spare[:0], nil
			if len(out) > 0 {
				close(w.room)
				w.room = make(chan struct{})
			}
			closing := w.closing
			w.mu.Unlock()
			if len(out) == 0 {
				w.mu.Lock()
				w.spare = out
				w.mu.Unlock()
				if closing {
					return
				}
				break
			}
			_, err := w.out.Write(out)
			w.mu.Lock()
			if w.spare = out[:0]; cap(out) > 16*highWater {
				w.spare = nil // a record of unusual size
			}
			w.err = err
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}
}
