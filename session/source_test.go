package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzLines walks through logs in chunks of all sizes, and finds the lines that
// are there.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\n  ccc \t\n\td"), 3, 0)
	f.Add([]byte("      \n"+strings.Repeat("x", 20)+strings.Repeat(" ", 20)+"\n\n{}"), 4, 30)
	f.Add([]byte("          long behind white space    \nshort\n"), 4, 9)
	f.Add([]byte("\uFEFF {}\n\uFEFFx\n"), 5, 0)
	f.Add([]byte("\uFEFF"), 3, 0)
	f.Fuzz(func(t *testing.T, data []byte, chunk, maxLine int) {
		chunk, maxLine = max(len(byteOrderMark), chunk%64), max(0, maxLine)
		s := &source{in: bytes.NewReader(data), size: int64(len(data)), chunk: chunk, maxLine: int64(maxLine)}
		var want []string
		for line := range bytes.Lines(data) {
			if maxLine == 0 || len(line) <= maxLine {
				if len(want) == 0 && &line[0] == &data[0] {
					line = bytes.TrimPrefix(line, []byte(byteOrderMark))
				}
				want = append(want, string(bytes.Trim(line, " \t\r\n")))
			}
		}
		for name, s := range map[string]*source{"memory": memorySource(data), "reader": s} {
			var got []string
			for l, err := range s.lines() {
				if err != nil {
					t.Fatal(err)
				}
				raw, err := l.whole(s)
				if err != nil || !bytes.HasPrefix(raw, l.head) {
					t.Fatalf("%s: %q is not the head of %q: %v", name, l.head, raw, err)
				}
				if l.size > 0 && (raw[l.size-1] != l.last || data[l.at] != raw[0]) {
					t.Fatalf("%s: %q at %d ends in %q", name, raw, l.at, l.last)
				}
				got = append(got, string(raw))
			}
			if name == "memory" && maxLine > 0 {
				continue // which bears every line
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("%s, chunks of %d: %q, want %q", name, chunk, got, want)
			}
		}
	})
}

// A log that became shorter is an error that stays.
func TestShorterLog(t *testing.T) {
	data := []byte("one\ntwo\n")
	s := &source{in: bytes.NewReader(data[:5]), size: int64(len(data)), chunk: 4, path: "p"}
	var err error
	for _, err = range s.lines() {
	}
	if !errors.Is(err, &Error{Kind: Conflict}) {
		t.Errorf("reading all: %v", err)
	}
	if _, err := s.read(0, 3); err != nil {
		t.Errorf("what is left: %v", err)
	}
	if s.failed() == nil {
		t.Error("the failure was forgotten")
	}
}
