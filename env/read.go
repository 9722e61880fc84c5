package env

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// MaxRead is the size, in bytes, up to which files are read as a whole. Larger
// ones are for Open.
const MaxRead = 1 << 30

var errLarge = errors.New("larger than 1 GiB: read it in pieces")

// ReadAll reads the rest of a file, of up to MaxRead bytes. A regular file is
// read up to the size that it had when it was opened, so that one that grows
// meanwhile does not hold the reader.
func ReadAll(f File) ([]byte, error) {
	size := f.Size()
	if size > MaxRead {
		return nil, &Error{Code: Invalid, Op: "read", Err: errLarge}
	}
	if size <= 0 {
		// Files of virtual file systems say 0 whatever they hold.
		b, err := io.ReadAll(io.LimitReader(f, MaxRead+1))
		if err == nil && len(b) > MaxRead {
			return nil, &Error{Code: Invalid, Op: "read", Err: errLarge}
		}
		return b, err
	}
	b := make([]byte, size)
	n, err := io.ReadFull(f, b)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// ReadText reads a whole file as text. Bytes that are no UTF-8 become U+FFFD.
func ReadText(ctx context.Context, fs FileSystem, path string) (string, error) {
	b, err := fs.ReadFile(ctx, path)
	if err != nil {
		return "", err
	}
	return string(jsonwire.AppendUTF8(nil, b)), nil
}

// Join is the absolute path of elements below a directory, "" for the working
// directory. Each may be several names with slashes between them.
func Join(fs FileSystem, dir string, elem ...string) string {
	if dir == "" {
		dir = fs.WorkDir()
	}
	return fs.Abs(strings.Join(append([]string{dir}, elem...), "/"))
}

// Lines reads the lines of a file one by one.
type Lines struct {
	f File
	r *bufio.Reader
}

// OpenLines opens a file to be read by lines.
func OpenLines(ctx context.Context, fs FileSystem, path string) (*Lines, error) {
	f, err := fs.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Lines{f: f, r: bufio.NewReaderSize(f, 64<<10)}, nil
}

// Next returns the next line without its line feed, and whether it had one. At
// the end of the file the error is io.EOF.
func (l *Lines) Next() (line string, terminated bool, err error) {
	s, err := l.r.ReadString('\n')
	switch {
	case err == nil:
		return s[:len(s)-1], true, nil
	case err == io.EOF && s != "":
		return s, false, nil
	}
	return "", false, err
}

// Close closes the file.
func (l *Lines) Close() error { return l.f.Close() }

// ReadTextLines reads the first lines of a file, at most max of them; 0 for all.
func ReadTextLines(ctx context.Context, fs FileSystem, path string, max int) ([]string, error) {
	l, err := OpenLines(ctx, fs, path)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var out []string
	for max <= 0 || len(out) < max {
		line, _, err := l.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

// randomHex is 16 random hexadecimal digits.
func randomHex() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
