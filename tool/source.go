package tool

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// source is a text file that is being edited: its bytes as they are. What is
// compared and shown is the text of single lines, decoded where it is needed, so
// that a long file is neither copied nor decoded to change a few lines of it.
type source struct {
	bom bool
	raw string // without the byte order mark; any bytes, any line ends
	crs bool   // there are carriage returns
}

const byteOrderMark = "\uFEFF"

func newSource(data string) *source {
	s := &source{}
	s.raw, s.bom = strings.CutPrefix(data, byteOrderMark)
	s.crs = strings.IndexByte(s.raw, '\r') >= 0
	return s
}

// line is the end of the line that at is in, without its line end, and the start
// of the next line. They are the same at the end of a file that ends without a
// line end.
func (s *source) line(at int) (end, next int) {
	if !s.crs {
		if i := strings.IndexByte(s.raw[at:], '\n'); i >= 0 {
			return at + i, at + i + 1
		}
		return len(s.raw), len(s.raw)
	}
	i := strings.IndexAny(s.raw[at:], "\r\n")
	if i < 0 {
		return len(s.raw), len(s.raw)
	}
	if at += i; strings.HasPrefix(s.raw[at:], "\r\n") {
		return at, at + 2
	}
	return at, at + 1
}

// start is the start of the line that at is in.
func (s *source) start(at int) int {
	if !s.crs {
		return strings.LastIndexByte(s.raw[:at], '\n') + 1
	}
	return strings.LastIndexAny(s.raw[:at], "\r\n") + 1
}

// before is the start of the line before the one that starts at an offset, -1
// for none.
func (s *source) before(start int) int {
	switch {
	case start == 0:
		return -1
	case strings.HasSuffix(s.raw[:start], "\r\n"):
		return s.start(start - 2)
	}
	return s.start(start - 1)
}

// text is a range of the file as text: valid UTF-8 with LF line ends.
func (s *source) text(from, to int) string {
	return withLF(decoded(s.raw[from:to]))
}

// decoded is s as UTF-8 text, invalid bytes replaced by U+FFFD.
func decoded(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(jsonwire.AppendUTF8(nil, s))
}

// nextDecoded is the text of what s starts with: one character, or U+FFFD for
// bytes that are none.
func nextDecoded(s string) (text, rest string) {
	if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n > 1 {
		return s[:n], s[n:]
	}
	n := min(len(s), utf8.UTFMax-1)
	for n > 1 && decoded(s[:n]) != "\uFFFD" {
		n--
	}
	return "\uFFFD", s[n:]
}

// withLF makes all line ends LF.
func withLF(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for {
		i := strings.IndexByte(s, '\r')
		if i < 0 {
			return string(append(out, s...))
		}
		out = append(append(out, s[:i]...), '\n')
		s = strings.TrimPrefix(s[i+1:], "\n")
	}
}

// lineEndAt is the line end that new text gets at an offset: that of the next
// line feed, of the one before where none follows. A lone CR counts only in a
// file without line feeds; elsewhere it is rather a character of its line.
func (s *source) lineEndAt(at int) string {
	i := strings.IndexByte(s.raw[at:], '\n') + at
	if i < at {
		i = strings.LastIndexByte(s.raw[:at], '\n')
	}
	switch {
	case i > 0 && s.raw[i-1] == '\r':
		return "\r\n"
	case i < 0 && s.crs:
		return "\r"
	}
	return "\n"
}

// readWhole reads a regular file as a string.
func readWhole(ctx context.Context, fs env.FileSystem, path string) (string, error) {
	f, err := openRegular(ctx, fs, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size := f.Size()
	if size > env.MaxRead {
		return "", fmt.Errorf("%s is larger than 1 GiB: change it with a command such as sed", path)
	}
	var b strings.Builder
	b.Grow(int(max(0, size)))
	// A file that grows meanwhile does not hold the reader; those of virtual
	// file systems say 0 whatever they hold.
	limit := size
	if size <= 0 {
		limit = env.MaxRead
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{&b}, io.LimitReader(f, limit), make([]byte, 64<<10))
	return b.String(), err
}

// openRegular opens a file that has an end. A directory can be opened: reading it
// is what fails, in the words of the system.
func openRegular(ctx context.Context, fs env.FileSystem, path string) (env.File, error) {
	f, err := fs.Open(ctx, path)
	if err == nil && f.Size() >= 0 {
		return f, nil
	}
	if code := env.CodeOf(err); err == nil || code == env.Invalid || code == env.NotSupported {
		if special := refuseSpecial(ctx, fs, path); special != nil {
			if err == nil {
				f.Close()
			}
			return nil, special
		}
	}
	return f, err
}

// refuseSpecial fails for what is neither a file nor a directory.
func refuseSpecial(ctx context.Context, fs env.FileSystem, path string) error {
	real, err := fs.Canonical(ctx, path)
	if err != nil {
		return err
	}
	info, err := fs.Info(ctx, real)
	if err != nil {
		return err
	}
	if info.Kind == env.KindOther && real != os.DevNull {
		return fmt.Errorf("%s is no regular file but a pipe, a socket or a device, which may never end. Use bash, with a bound such as head -c or timeout.", path)
	}
	return nil
}

// writePieces makes pieces the content of a file that holds data. Where the file
// system can, the beginning that stays is not written again.
func writePieces(ctx context.Context, fs env.FileSystem, path, data string, pieces []string) error {
	sp, ok := fs.(env.Splicer)
	if !ok {
		return fs.WriteFile(ctx, path, []byte(strings.Join(pieces, "")))
	}
	at := 0
	for len(pieces) > 0 && strings.HasPrefix(data[at:], pieces[0]) {
		at += len(pieces[0])
		pieces = pieces[1:]
	}
	return sp.Splice(ctx, path, int64(len(data)), int64(at), pieces)
}
