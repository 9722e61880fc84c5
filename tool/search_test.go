package tool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFinderAgreesWithStrings(t *testing.T) {
	letters := rapid.SampledFrom([]rune("ab \n"))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringOfN(letters, 1, 9, -1).Draw(t, "unit"), rapid.IntRange(1, 3000).Draw(t, "times")) +
			rapid.StringOfN(letters, 0, 9, -1).Draw(t, "rest")
		key := rapid.StringOfN(letters, 1, 5, -1).Draw(t, "key")
		if got, want := newFinder(text, key).next(text), strings.Index(text, key); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}
