package env

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Splicer is a file system that can leave the beginning of a file alone. It is
// for programs that change a little of a long file; others write it as a whole.
type Splicer interface {
	// Splice replaces what stands in a file from offset at, in bytes, to its end
	// by pieces. Size is the size that the caller knows the file by; one that
	// has another by now was changed by somebody else and is left alone, which
	// is an error with the code Invalid.
	Splice(ctx context.Context, path string, size, at int64, pieces []string) error
}

var _ Splicer = (*Local)(nil)

// Splice implements Splicer.
func (l *Local) Splice(ctx context.Context, path string, size, at int64, pieces []string) error {
	path = l.Abs(path)
	if err := start(ctx, "open", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|openNonblock, 0)
	if err != nil {
		return fault(ctx, "open", path, err)
	}
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Size() != size || at > size) {
		f.Close()
		return &Error{Code: Invalid, Op: "write", Path: path, Err: errors.New("the file was changed by another program meanwhile: read it again")}
	}
	if err == nil {
		err = splice(f, pieces, at, size)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return fault(context.WithoutCancel(ctx), "write", path, err)
}

// splice puts pieces in the place of what is in a file of a size from at on. It
// begins with what goes beyond the old end, as replace does.
func splice(f *os.File, pieces []string, at, size int64) error {
	end := at
	for _, p := range pieces {
		end += int64(len(p))
	}
	if end > size {
		if err := writeRange(f, pieces, at, size, end); err != nil {
			f.Truncate(size)
			return err
		}
	}
	if err := writeRange(f, pieces, at, at, min(size, end)); err != nil {
		return err
	}
	if end < size {
		return f.Truncate(end)
	}
	return nil
}

// writeRange writes what of pieces, which begin at an offset, lies in [from, to).
func writeRange(f *os.File, pieces []string, at, from, to int64) error {
	buf := make([]byte, 0, min(to-from, 256<<10))
	flush := func() error {
		n, err := f.WriteAt(buf, from)
		from += int64(n)
		buf = buf[:0]
		return err
	}
	for _, p := range pieces {
		next := at + int64(len(p))
		p = p[max(0, min(from+int64(len(buf))-at, int64(len(p)))):]
		if rest := to - from - int64(len(buf)); int64(len(p)) > rest {
			p = p[:rest]
		}
		for len(p) > 0 {
			n := min(len(p), cap(buf)-len(buf))
			buf, p = append(buf, p[:n]...), p[n:]
			if len(buf) == cap(buf) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		at = next
	}
	if len(buf) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if from != to {
		return fmt.Errorf("%d bytes are missing", to-from)
	}
	return nil
}
