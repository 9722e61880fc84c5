package env

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"pgregory.net/rapid"
)

type memoryFile struct {
	bytes.Buffer
	closed bool
}

func (f *memoryFile) Close() error { f.closed = true; return nil }

// Whatever the output and however it is cut into writes, a Capture counts all of
// it, keeps both ends, and spills every byte.
func TestCapture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\xc3\xa9\xff\xf0\x9f\x98\x80")), 0, 300).Draw(t, "raw")
		var file *memoryFile
		c := &Capture{
			Head: 40, Tail: 16, SpillBytes: 30, SpillLines: 5,
			Spill: func() (io.WriteCloser, error) { file = &memoryFile{}; return file, nil },
		}
		for rest := raw; len(rest) > 0; {
			n := rapid.IntRange(1, min(25, len(rest))).Draw(t, "n")
			c.Write(bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		text := string(jsonwire.AppendUTF8(nil, raw))
		total, newlines, last := c.Size()
		if total != int64(len(text)) || newlines != strings.Count(text, "\n") {
			t.Fatalf("size %d, %d; want %d, %d", total, newlines, len(text), strings.Count(text, "\n"))
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if want := len(lines[len(lines)-1]); last != int64(want) {
			t.Fatalf("last line of %q: %d, want %d", text, last, want)
		}
		if got := string(c.First(40)); got != text[:min(40, len(text))] {
			t.Fatalf("first: %q of %q", got, text)
		}
		if got, want := string(c.Last(16)), text[max(0, len(text)-16):]; got != want {
			t.Fatalf("last: %q, want %q", got, want)
		}
		count := strings.Count(text, "\n")
		if text != "" && !strings.HasSuffix(text, "\n") {
			count++
		}
		if long := len(text) > 30 || count > 5; long != (file != nil) {
			t.Fatalf("file: %v for %q", file != nil, text)
		}
		if file != nil && (!bytes.Equal(file.Bytes(), raw) || !file.closed) {
			t.Fatalf("file holds %q, closed %v; want %q", file.Bytes(), file.closed, raw)
		}
	})
}

func TestCaptureBeginsBehindItsMark(t *testing.T) {
	var file memoryFile
	c := &Capture{Head: 40, SpillBytes: 3, Spill: func() (io.WriteCloser, error) { return &file, nil }}
	for _, p := range []string{"\xef", "\xbb\xbfa", "\uFEFFb"} {
		c.Write([]byte(p))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(c.First(40)); got != "a\uFEFFb" {
		t.Errorf("text %q", got)
	}
	if total, _, _ := c.Size(); total != 5 || file.String() != "\uFEFFa\uFEFFb" {
		t.Errorf("%d bytes, file %q", total, file.String())
	}
}

func TestCaptureMemoryIsBounded(t *testing.T) {
	c := &Capture{Head: 1 << 20, Tail: 1 << 19}
	line := []byte(strings.Repeat("x", 63) + "\n")
	for range 200_000 {
		c.Write(line)
	}
	if n := cap(c.head) + cap(c.tail); n > 4<<20 {
		t.Errorf("%d bytes are held for 12 MB of output", n)
	}
	if got := c.Last(64); !bytes.Equal(got, line) {
		t.Errorf("got %q", got)
	}
}

func TestCaptureGoesOnWithoutItsFile(t *testing.T) {
	c := &Capture{Head: 100, SpillBytes: 3, SpillLines: 9, Spill: func() (io.WriteCloser, error) { return nil, io.ErrShortWrite }}
	if n, err := c.Write([]byte("abcdef")); n != 6 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	c.Close()
	if c.SpillErr() != io.ErrShortWrite || string(c.First(9)) != "abcdef" {
		t.Errorf("got %v, %q", c.SpillErr(), c.First(9))
	}
}
