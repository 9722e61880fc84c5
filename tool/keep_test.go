package tool

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkEdit holds an edit against what must be true of any: it fails with words,
// or every byte outside of the edited lines stays. What it does to valid text is
// what the plain model does.
func checkEdit(t interface {
	Helper()
	Fatalf(string, ...any)
}, file string, edits []replacement) {
	t.Helper()
	after, details, err := edited(file, edits...)
	var d struct {
		Diff, Patch string
	}
	if err == nil {
		if err := json.Unmarshal(details, &d); err != nil {
			t.Fatalf("details %q: %v", details, err)
		}
	}
	model, patch, modelErr := plainEdit(decoded(file), edits)
	if (err == nil) != (modelErr == nil) {
		t.Fatalf("%q with %q: got %v, the model %v", file, edits, err, modelErr)
	}
	if err != nil {
		return
	}
	if d.Diff+d.Patch != decoded(patch) {
		t.Fatalf("%q with %q:\n%s\nthe model:\n%s", file, edits, d.Diff+d.Patch, patch)
	}
	if utf8.ValidString(file) && after != model {
		t.Fatalf("%q with %q became %q, the model's %q", file, edits, after, model)
	}
	src := newSource(file)
	_, found, err := matches(src, "f", edits)
	if err != nil {
		t.Fatalf("%v", err)
	}
	rest, pos := after, 0
	if strings.HasPrefix(file, byteOrderMark) {
		var ok bool
		if rest, ok = strings.CutPrefix(after, byteOrderMark); !ok {
			t.Fatalf("%q with %q became %q: the mark is gone", file, edits, after)
		}
	}
	for i, m := range found {
		kept := src.raw[min(pos, m.start.line):m.start.line]
		at := strings.Index(rest, kept)
		if at < 0 || i == 0 && at > 0 {
			t.Fatalf("%q with %q became %q: %q is not kept", file, edits, after, kept)
		}
		rest = rest[at+len(kept):]
		if pos = m.end.line; m.end.col > 0 || m.end.line == m.start.line {
			_, pos = src.line(m.end.line)
		}
	}
	if kept := src.raw[pos:]; !strings.HasSuffix(rest, kept) {
		t.Fatalf("%q with %q became %q: %q is not kept", file, edits, after, kept)
	}
}

// oddities are what files and edits are made of here.
var oddities = []string{
	"a", "b", "a", "b", "ab", "é", " ", "  ", "\t", "“", "\"", "’", "'", "—", "-", "ﬁ", "fi", "\u00A0", "\uFEFF", "😀", "\uFFFD",
	"\n", "\n", "\r\n", "\r\n", "\r", "\n\n", " \n", "\t\r\n", "”  \n",
	"\xe9", "\xff", "\xe2\x82", "\x82", "\xf0\x9f\x98",
}

func oddText(t *rapid.T, name string, max int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(oddities), 0, max).Draw(t, name), "")
}

// oddEdits are edits of pieces of a file as a model sees it, some of them folded.
func oddEdits(t *rapid.T, file string) []replacement {
	seen := []rune(withLF(decoded(file)))
	var edits []replacement
	for i := range rapid.IntRange(1, 3).Draw(t, "edits") {
		from := rapid.IntRange(0, len(seen)).Draw(t, fmt.Sprint("from", i))
		to := rapid.IntRange(from, min(len(seen), from+12)).Draw(t, fmt.Sprint("to", i))
		old := string(seen[from:to])
		next := old
		switch rapid.IntRange(0, 3).Draw(t, fmt.Sprint("kind", i)) {
		case 0:
			old = fold(old)
		case 1:
			old = withLF(decoded(oddText(t, fmt.Sprint("old", i), 4)))
		}
		if rapid.Bool().Draw(t, fmt.Sprint("fresh", i)) {
			next = ""
		}
		edits = append(edits, replacement{old, next + withLF(decoded(oddText(t, fmt.Sprint("new", i), 4)))})
	}
	return edits
}

func TestEditKeepsEveryByteElsewhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := oddText(t, "file", 40)
		checkEdit(t, file, oddEdits(t, file))
	})
}

// The same around the seam of two ranges that are searched one after the other.
func TestEditAcrossRanges(t *testing.T) {
	filler := strings.Repeat("plain line of a file\r\n", chunkSize/22)
	rapid.Check(t, func(t *rapid.T) {
		odd := oddText(t, "file", 60)
		head := filler[:len(filler)-rapid.IntRange(0, 100).Draw(t, "shift")]
		file := head + odd + "\r\n" + filler
		checkEdit(t, file, oddEdits(t, odd))
	})
}

func TestKeepBytes(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		edits      []replacement
		want       string
	}{
		{"other lines", "caf\xe9\r\nx\r\n\xff", []replacement{{"x", "y"}}, "caf\xe9\r\ny\r\n\xff"},
		{"the same line", "caf\xe9 x\n", []replacement{{"x", "y"}}, "caf\xe9 y\n"},
		{"in the old text", "un caf\xe9, \xe0 x\n", []replacement{{"caf\uFFFD, \uFFFD x", "th\uFFFD, \uFFFD y"}}, "un th\xe9, \xe0 y\n"},
		{"one of two is gone", "\xe9 \xe0\n", []replacement{{"\uFFFD \uFFFD", "e \uFFFD"}}, "e \uFFFD\n"},
		{"a folded line", "\xe9 “x”\n\xe0 “y”\n", []replacement{{`"x"`, "z"}}, "\xe9 z\n\xe0 “y”\n"},
		{"one sequence that was cut", "\xe2\x82 x\n", []replacement{{"\uFFFD x", "\uFFFD y"}}, "\xe2\x82 y\n"},
		{"a real mark beside", "\uFFFD\xff x\n", []replacement{{"\uFFFD\uFFFD x", "\uFFFD\uFFFD y"}}, "\uFFFD\xff y\n"},
	} {
		if got, _, err := edited(tt.file, tt.edits...); err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// A long file of which one line changes is neither copied nor decoded.
func TestEditAllocatesWhatItChanges(t *testing.T) {
	for name, line := range map[string]string{
		"plain": "line %d of a long file that holds some text\n",
		"crlf":  "line %d of a long file that holds some text\r\n",
		"latin": "line %d of a long file that holds caf\xe9\n",
	} {
		var b strings.Builder
		for i := 0; b.Len() < 5<<20; i++ {
			fmt.Fprintf(&b, line, i)
		}
		file := b.String()
		edits := []replacement{{"line 50000 of", "changed\nline of"}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		pieces, _, err := applyEdits(file, "f", edits)
		runtime.ReadMemStats(&after)
		if err != nil || len(pieces) != 3 {
			t.Fatalf("%s: %d pieces, %v", name, len(pieces), err)
		}
		limit := uint64(256 << 10)
		if name == "latin" {
			limit = 16 << 20 // each range is folded, one at a time
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > limit {
			t.Errorf("%s: %d bytes for one line of %d", name, got, len(file))
		}
	}
}
