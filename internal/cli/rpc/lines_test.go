package rpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func cut(in io.Reader, max int) (out []string) {
	split(in, max, func(l line) bool {
		if l.tooLong {
			out = append(out, "TOO LONG")
		} else {
			out = append(out, string(l.text))
		}
		return true
	})
	return out
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\nb\r\n\nc", []string{"a", "b", "", "c"}},
		{"a\u2028b\u2029\u0085c\n", []string{"a\u2028b\u2029\u0085c"}},
		{"a\rb\r\r\n", []string{"a\rb\r"}},
		{strings.Repeat("x", 200_000) + "\ny", []string{strings.Repeat("x", 200_000), "y"}},
		{strings.Repeat("x", 300_001) + "\ny\n", []string{"TOO LONG", "y"}},
		{strings.Repeat("x", 300_001), []string{"TOO LONG"}},
	} {
		if got := cut(strings.NewReader(c.in), 300_000); !equal(got, c.want) {
			t.Errorf("%.40q: %.80q", c.in, got)
		}
	}
	// What came before a failure counts.
	broken := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("broken")))
	if got := cut(broken, 300_000); !equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

func equal(a, b []string) bool {
	return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
}

// pieces reads its parts one by one.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func TestSplitAtEveryByte(t *testing.T) {
	text := []byte("{\"a\":\"é\u2028\U0001F980\"}\r\n\n{\"b\":1}\n\xff\xe2\x82\nlast")
	want := cut(bytes.NewReader(text), len(text))
	for i := range len(text) {
		for j := i; j <= len(text); j++ {
			if got := cut(&pieces{text[:i], text[i:j], text[j:]}, len(text)); !equal(got, want) {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, got, want)
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nc"), uint16(2))
	f.Fuzz(func(t *testing.T, text []byte, at uint16) {
		i := min(int(at), len(text))
		got := cut(&pieces{text[:i], text[i:]}, len(text))
		if want := cut(bytes.NewReader(text), len(text)); !equal(got, want) {
			t.Errorf("cut at %d: %q, want %q", i, got, want)
		}
		joined := strings.Join(got, "\n")
		plain := strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
		if !strings.HasSuffix(string(text), "\r") && joined != plain {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":1,"type":"prompt","message":"\ud83d","id":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text)
		if err == nil {
			_, _ = c.text("message")
			_, _ = c.optional("since")
			_, _ = c.flag("enabled")
			_, _ = c.input()
			_ = c.shellLine()
		}
	})
}
