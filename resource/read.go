package resource

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/pinch-agent/pinch/internal/regular"
)

// maxText bounds the files that are read as a whole, in bytes. What is larger
// would fill a model's window, and is no text that a person wrote for one.
const maxText = 1 << 20

var errTooLarge = errors.New("larger than 1 MiB; make it smaller")

// readText reads a file of text.
func readText(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(b) > maxText {
		err = errTooLarge
	}
	return b, err
}

// decode is the text of a file: without a byte order mark, invalid UTF-8
// replaced.
func decode(b []byte) string {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// withLF makes all line ends LF.
func withLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// cause is an error without the path that the diagnostic names anyway.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
