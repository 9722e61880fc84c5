package env

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplice(t *testing.T) {
	l := &Local{Dir: t.TempDir()}
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string, max int) string {
			return strings.Repeat(rapid.StringMatching(`[a-z\n]{0,9}`).Draw(t, name), rapid.IntRange(0, max).Draw(t, name+" times"))
		}
		before := text("before", 60_000)
		at := rapid.IntRange(0, len(before)).Draw(t, "at")
		pieces := []string{text("one", 3), text("two", 50_000), text("three", 3)}
		if err := os.WriteFile(l.Abs("f"), []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.Splice(t.Context(), "f", int64(len(before)), int64(at), pieces); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(l.Abs("f"))
		if want := before[:at] + strings.Join(pieces, ""); err != nil || string(got) != want {
			t.Fatalf("%d bytes, want %d, %v", len(got), len(want), err)
		}
	})
	if err := l.Splice(t.Context(), "f", 1<<40, 0, []string{"x"}); CodeOf(err) != Invalid {
		t.Errorf("a file of another size: %v", err)
	}
	if err := l.Splice(t.Context(), "g", 0, 0, []string{"x"}); CodeOf(err) != NotFound {
		t.Errorf("no file: %v", err)
	}
}
