package tool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainHunks is the same search on whole texts, written as plainly as possible:
// every diagonal is a map entry, every line is compared.
func plainHunks(old, new []string) []hunk {
	type point struct {
		old  int
		path []byte // '=', '-', '+'
	}
	follow := func(p point, d int) point {
		for p.old+1 < len(old) && p.old-d+1 < len(new) && old[p.old+1] == new[p.old-d+1] {
			p.old++
			p.path = append(slices.Clip(p.path), '=')
		}
		return p
	}
	best := map[int]point{0: follow(point{old: -1}, 0)}
	done := func(p point, d int) bool { return p.old+1 >= len(old) && p.old-d+1 >= len(new) }
	lowest, highest := -1<<30, 1<<30
	end, found := best[0], done(best[0], 0)
	for edits := 1; !found; edits++ {
		for d := max(lowest, -edits); d <= min(highest, edits) && !found; d += 2 {
			remove, hasRemove := best[d-1]
			add, hasAdd := best[d+1]
			delete(best, d-1)
			hasAdd = hasAdd && add.old-d >= 0 && add.old-d < len(new)
			hasRemove = hasRemove && remove.old+1 < len(old)
			if !hasAdd && !hasRemove {
				delete(best, d)
				continue
			}
			var p point
			if !hasRemove || hasAdd && remove.old < add.old {
				p = point{add.old, append(slices.Clip(add.path), '+')}
			} else {
				p = point{remove.old + 1, append(slices.Clip(remove.path), '-')}
			}
			p = follow(p, d)
			if done(p, d) {
				end, found = p, true
			}
			best[d] = p
			if p.old+1 >= len(old) {
				highest = min(highest, d-1)
			}
			if p.old-d+1 >= len(new) {
				lowest = max(lowest, d+1)
			}
		}
	}
	var out []hunk
	o, n := 0, 0
	fresh := true
	for _, step := range end.path {
		if step == '=' {
			o, n, fresh = o+1, n+1, true
			continue
		}
		if fresh {
			out, fresh = append(out, hunk{oldStart: o, newStart: n}), false
		}
		if h := &out[len(out)-1]; step == '-' {
			h.oldLines++
			o++
		} else {
			h.newLines++
			n++
		}
	}
	return out
}

func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

// The diff of parts is the diff of the whole texts.
func TestDiffOfPartsIsTheWholeDiff(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "{\n", "}\n", "\n"})
	block := rapid.Map(rapid.SliceOfN(line, 0, 6), func(l []string) string { return strings.Join(l, "") })
	rapid.Check(t, func(t *rapid.T) {
		var parts []textPart
		old, new := "", ""
		for i := range rapid.IntRange(1, 4).Draw(t, "changes") {
			same := block.Draw(t, fmt.Sprint("same", i))
			a, b := block.Draw(t, fmt.Sprint("old", i)), block.Draw(t, fmt.Sprint("new", i))
			parts = append(parts, sameText(same), changedPart(a, b))
			old, new = old+same+a, new+same+b
		}
		tail := block.Draw(t, "tail") + rapid.SampledFrom([]string{"", "a", "}"}).Draw(t, "open")
		parts = append(parts, sameText(tail))
		old, new = old+tail, new+tail
		got := compare(parts).hunks()
		want := plainHunks(splitLines(old), splitLines(new))
		if !slices.Equal(got, want) {
			t.Fatalf("%q to %q: got %+v, want %+v", old, new, got, want)
		}
		whole := compare([]textPart{changedPart(old, new)})
		if len(want) == 0 {
			return
		}
		if a, b := compare(parts), whole; a.display(got) != b.display(got) || a.patch("f", got) != b.patch("f", got) {
			t.Fatalf("%q to %q: shown as\n%s\nand\n%s", old, new, a.display(got), b.display(got))
		}
		if applied := applyHunks(splitLines(old), splitLines(new), got); applied != new {
			t.Fatalf("%q to %q: hunks make %q", old, new, applied)
		}
	})
}

func applyHunks(old, new []string, hunks []hunk) string {
	var b strings.Builder
	at := 0
	for _, h := range hunks {
		b.WriteString(strings.Join(old[at:h.oldStart], ""))
		b.WriteString(strings.Join(new[h.newStart:h.newStart+h.newLines], ""))
		at = h.oldStart + h.oldLines
	}
	return b.String() + strings.Join(old[at:], "")
}

func TestDiffDisplay(t *testing.T) {
	for _, tt := range []struct{ name, old, new, diff, patch string }{
		{
			"suffix that a shift fits better", "a\na\n", "b\na\n",
			"+1 b\n 1 a\n-2 a", "@@ -1,2 +1,2 @@\n+b\n a\n-a\n",
		},
		{"last line feed lost", "a\nb\n", "a\nb", " 1 a\n-2 b\n+2 b", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		{"from nothing", "", "a\n", "+1 a", "@@ -0,0 +1,1 @@\n+a\n"},
		{"to nothing", "a\n", "", "-1 a", "@@ -1,1 +0,0 @@\n-a\n"},
		{"numbers as wide as a line more would need", strings.Repeat("x\n", 8), strings.Repeat("x\n", 8) + "y\n", "    ...\n  5 x\n  6 x\n  7 x\n  8 x\n+ 9 y", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compare([]textPart{changedPart(tt.old, tt.new)})
			hunks := c.hunks()
			if got := c.display(hunks); got != tt.diff {
				t.Errorf("got\n%s\nwant\n%s", got, tt.diff)
			}
			if tt.patch != "" {
				if got := c.patch("f", hunks); got != "--- f\n+++ f\n"+tt.patch {
					t.Errorf("got\n%s", got)
				}
			}
		})
	}
}

func TestDiffOfStrangersEnds(t *testing.T) {
	var a, b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&a, "old %d\n", i)
		fmt.Fprintf(&b, "new %d\n", i)
	}
	parts := []textPart{sameText("head\n"), changedPart(a.String(), b.String()), sameText("tail\n")}
	hunks := compare(parts).hunks()
	if want := []hunk{{1, 20_000, 1, 20_000}}; !slices.Equal(hunks, want) {
		t.Errorf("got %+v", hunks)
	}
}

func sameText(text string) textPart { return samePart(&source{raw: text}, 0, len(text)) }
