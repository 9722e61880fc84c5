package rpc

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
)

const (
	// maxLine is the longest command, in bytes. A longer one is answered with an
	// error and not kept.
	maxLine = 256 << 20
	// maxWaiting is how many bytes of commands are read ahead of their answers, so
	// that a client may write a good deal before it reads. More waits in the pipe.
	maxWaiting = 16 << 20
)

// line is one line of the input without its end.
type line struct {
	text    []byte
	tooLong bool
}

// lines reads ahead.
type lines struct {
	mu      sync.Mutex
	waiting []line
	bytes   int
	ended   bool
	come    chan struct{} // holds a value when there is something new for next
	gone    chan struct{} // holds a value when there is room
}

// readLines reads the lines of in until it ends, then calls ended. What takes
// takes does not wait with the others. Reading stops,
// at the latest with the next line, when ctx ends; only who holds the other end
// can end a read that waits.
func readLines(ctx context.Context, in io.Reader, takes func(line) bool, ended func()) *lines {
	l := &lines{come: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
	go func() {
		split(in, maxLine, func(one line) bool { return takes(one) || l.put(ctx, one) })
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		signal(l.come)
		ended()
	}()
	return l
}

// split cuts in into lines: a line feed ends one, a carriage return before it is
// no part of it, and the last one needs no end. Of one that is longer than max
// nothing is kept.
func split(in io.Reader, max int, take func(line) bool) {
	r := bufio.NewReaderSize(in, 64<<10)
	var one line
	for {
		piece, err := r.ReadSlice('\n')
		switch {
		case one.tooLong:
		case len(one.text)+len(piece) > max:
			one = line{tooLong: true}
		default:
			one.text = append(one.text, piece...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		whole := err == nil
		if whole || len(one.text) > 0 || one.tooLong {
			one.text = bytes.TrimSuffix(bytes.TrimSuffix(one.text, []byte("\n")), []byte("\r"))
			if !take(one) {
				return
			}
			one = line{}
		}
		if !whole {
			return
		}
	}
}

// put adds a line and waits while too much waits.
func (l *lines) put(ctx context.Context, one line) bool {
	l.mu.Lock()
	l.waiting = append(l.waiting, one)
	l.bytes += len(one.text)
	l.mu.Unlock()
	signal(l.come)
	// Who waits for the line goes first, on this thread: behind the next read, which
	// blocks it, the line would have to wait until another thread is awake.
	runtime.Gosched()
	for {
		l.mu.Lock()
		full := l.bytes > maxWaiting
		l.mu.Unlock()
		if !full {
			return ctx.Err() == nil
		}
		select {
		case <-l.gone:
		case <-ctx.Done():
			return false
		}
	}
}

// next is the next line; ok is false at the end of the input and when ctx ends.
func (l *lines) next(ctx context.Context) (one line, ok bool) {
	for ctx.Err() == nil {
		l.mu.Lock()
		if len(l.waiting) > 0 {
			one = l.waiting[0]
			l.waiting[0] = line{}
			if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
				l.waiting = nil
			}
			l.bytes -= len(one.text)
			l.mu.Unlock()
			signal(l.gone)
			return one, true
		}
		ended := l.ended
		l.mu.Unlock()
		if ended {
			return line{}, false
		}
		select {
		case <-l.come:
		case <-ctx.Done():
		}
	}
	return line{}, false
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
