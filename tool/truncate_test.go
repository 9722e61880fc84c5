package tool

import (
	"bytes"
	"strings"
	"testing"
)

func TestTruncate(t *testing.T) {
	long := strings.Repeat("x", MaxBytes)
	lines := strings.Repeat("l\n", MaxLines)
	for _, tt := range []struct {
		name       string
		text       string
		head, tail truncation // only content, by, lines, flags are compared
	}{
		{"empty", "", truncation{}, truncation{}},
		{"short", "a\nb\n", truncation{content: "a\nb\n", lines: 2}, truncation{content: "a\nb\n", lines: 2}},
		{"exactly the lines", lines, truncation{content: lines, lines: MaxLines}, truncation{content: lines, lines: MaxLines}},
		{
			"a line more", "first\n" + lines[:len(lines)-2] + "last",
			truncation{content: "first\n" + lines[:len(lines)-3], truncated: true, by: "lines", lines: MaxLines},
			truncation{content: lines[:len(lines)-2] + "last", truncated: true, by: "lines", lines: MaxLines},
		},
		{"exactly the bytes", long, truncation{content: long, lines: 1}, truncation{content: long, lines: 1}},
		{
			"only the last line feed is too much", long + "\n",
			truncation{content: long, truncated: true, by: "lines", lines: 1},
			truncation{content: long, truncated: true, by: "lines", lines: 1},
		},
		{
			"the first line takes all", long + "\nb\n",
			truncation{content: long, truncated: true, by: "bytes", lines: 1},
			truncation{content: "b", truncated: true, by: "bytes", lines: 1},
		},
		{
			"one line too long", long + "yz",
			truncation{truncated: true, by: "bytes", firstTooBig: true},
			truncation{content: long[2:] + "yz", truncated: true, by: "bytes", lines: 1, lastPartial: true},
		},
		{
			"long line between", "a\n" + long + "\nb\n",
			truncation{content: "a", truncated: true, by: "bytes", lines: 1},
			truncation{content: "b", truncated: true, by: "bytes", lines: 1},
		},
		{
			"cut at a character", "é" + long[:MaxBytes-1],
			truncation{truncated: true, by: "bytes", firstTooBig: true},
			truncation{content: long[:MaxBytes-1], truncated: true, by: "bytes", lines: 1, lastPartial: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := extentOf([]byte(tt.text))
			check := func(name string, got, want truncation) {
				if got.content != want.content || got.truncated != want.truncated || got.by != want.by || got.lines != want.lines ||
					got.firstTooBig != want.firstTooBig || got.lastPartial != want.lastPartial {
					got.content, want.content = shorten(got.content), shorten(want.content)
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
				if got.bytes != len(got.content) && len(got.content) < 100 {
					t.Errorf("%s: %d bytes for %q", name, got.bytes, got.content)
				}
			}
			check("head", truncateHead([]byte(tt.text), whole), tt.head)
			check("head of its start", truncateHead([]byte(tt.text[:min(len(tt.text), MaxBytes+1)]), whole), tt.head)
			check("tail", truncateTail([]byte(tt.text), whole), tt.tail)
		})
	}
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:20] + "…" + s[len(s)-20:]
	}
	return s
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.0KB", 51200: "50.0KB", 60001: "58.6KB", 52480: "51.3KB", 1048575: "1024.0KB",
		1 << 20: "1.0MB", 5 << 19: "2.5MB",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func extentOf(text []byte) extent {
	return extent{
		bytes:    int64(len(text)),
		newlines: bytes.Count(text, lf),
		endsLine: len(text) == 0 || text[len(text)-1] == '\n',
	}
}
