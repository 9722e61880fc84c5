package tool

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// plainSelection is what selection does, on an array of lines in memory.
func plainSelection(data []byte, args readArgs) (text string, beyond bool) {
	lines := strings.Split(string(jsonwire.AppendUTF8(nil, data)), "\n")
	start, end := 0.0, math.Inf(1)
	if args.offset != nil {
		start = math.Max(0, *args.offset-1)
	}
	if args.limit != nil {
		end = start + *args.limit
	}
	if start >= float64(len(lines)) {
		return "", true
	}
	at := func(f float64) int {
		f = math.Trunc(f)
		if f < 0 {
			f = math.Max(0, f+float64(len(lines)))
		}
		return int(math.Min(f, float64(len(lines))))
	}
	from, to := at(start), at(end)
	if from >= to {
		return "", false
	}
	return strings.Join(lines[from:to], "\n"), false
}

// However the file is cut into reads, the walk selects what slicing the array of
// its lines would.
func TestSelection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\n\xc3\xa9\xff\xe2\x82")), 0, 60).Draw(t, "data")
		number := func(name string) *float64 {
			if rapid.Bool().Draw(t, name+" given") {
				return nil
			}
			return new(float64(rapid.IntRange(-40, 240).Draw(t, name)) / 8)
		}
		args := readArgs{offset: number("offset"), limit: number("limit")}
		sel, err := newSelection(args, func() (int, error) { return bytes.Count(data, lf) + 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(0, len(data)).Draw(t, "head")
		if err := sel.scan(bytes.Clone(data[:n]), iotest.OneByteReader(bytes.NewReader(data[n:]))); err != nil {
			t.Fatal(err)
		}
		want, beyond := plainSelection(data, args)
		if got := sel.start >= float64(sel.line+1); got != beyond {
			t.Fatalf("beyond the end: %v, want %v", got, beyond)
		}
		if beyond {
			return
		}
		if string(sel.kept) != want {
			t.Fatalf("got %q, want %q", sel.kept, want)
		}
		if got, want := sel.whole, extentOf([]byte(want)); got != want {
			t.Fatalf("extent %+v, want %+v", got, want)
		}
	})
}

// A long file is walked through, not loaded.
func TestReadKeepsOnlyWhatItShows(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	sel, err := newSelection(readArgs{offset: new(40_000.0)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sel.scan(nil, io.LimitReader(repeat(line), 5_000_000)); err != nil {
		t.Fatal(err)
	}
	if cap(sel.kept) > 4*MaxBytes {
		t.Errorf("%d bytes are kept", cap(sel.kept))
	}
	r, err := sel.result(readArgs{path: "f"})
	if err != nil {
		t.Fatal(err)
	}
	want := "\n\n[Showing lines 40000-40511 of 50001 (50.0KB limit). Use offset=40512 to continue.]"
	if text := string(r.StructuredContent); !strings.Contains(text, string(jsonwire.AppendString(nil, want))[1:]) {
		t.Errorf("got …%s", text[len(text)-100:])
	}
}

// repeat reads a text again and again.
func repeat(text string) io.Reader {
	return &repeater{text: text}
}

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], r.text[r.at:])
		n += k
		r.at = (r.at + k) % len(r.text)
	}
	return n, nil
}

func BenchmarkReadLongFile(b *testing.B) {
	dir := b.TempDir()
	var file bytes.Buffer
	for i := 0; file.Len() < 5<<20; i++ {
		fmt.Fprintf(&file, "line %d of a long file that holds some text\n", i)
	}
	if err := os.WriteFile(dir+"/f", file.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	opts := ReadOptions{Env: &env.Local{Dir: dir}}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, err := opts.read(b.Context(), readArgs{path: "f", offset: new(50_000.0), limit: new(100.0)}); err != nil {
			b.Fatal(err)
		}
	}
}
