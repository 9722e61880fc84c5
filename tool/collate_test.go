package tool

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The order is that of Intl.Collator for the root locale, of lower-case names.
func TestNamesAreSortedForPeople(t *testing.T) {
	want := []string{
		"_u", "-a", ",a", ";a", ":a", "!a", "?a", ".dot", "'q'", "\"q\"", "(a)", "[a]", "{a}", "@a", "*", "/a", "&a", "#a", "%a",
		"`a`", "^a", "+a", "<a", "=a", "|a", "~a", "😀", "々", "ー", "$a", "€a", "1", "10", "2", "9", "a", "A b", "a-b", "a.b", "ab", "abc",
		"æb", "Az", "c10", "c9", "d", "đa", "ða", "dz", "e", "é", "è", "ê", "ë", "É.txt", "eb", "n", "ñ", "nz", "ŋ", "o", "ö", "ø", "ß", "st", "Zed", "þ",
		"α", "ω", "а", "е", "я", "ა", "א", "ا", "አ", "अ", "가", "각", "나", "あ", "ア", "い", "ꀀ", "一", "日本",
	}
	for seed := range uint64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		sortNames(got, func(s string) string { return s })
		if !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
}
