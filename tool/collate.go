package tool

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Names are sorted by the root order of Unicode's collation, as programs of
// ICU do: punctuation, symbols, digits, letters script by script; accents and
// other marks count only between names that are the same otherwise. The tables
// of that order weigh more than a megabyte; what follows keeps to it for
// punctuation, Latin letters and the order of scripts, and takes the letters of
// other scripts by their code points, which is nearly the same.

// firstSymbols are punctuation and the symbols in common use, in order.
const firstSymbols = "_‗-‒–—―・,、;:!¡?¿.․‥…。·'‘’‚‛‹›\"“”„‟«»()[]{}§¶@*/\\&#%‰†‡•‧′″‵※`´^¯¨¸°©®←→+±÷×<=>¬|¦~⁄"

// lastSymbols come after all others, before the digits: marks of repetition and
// length, then currencies.
const lastSymbols = "ːˑ々〻〱〲〳〴〵ゝゞーヽヾ¤¢$£¥€"

// spelled spells letters that are no accented ones to Unicode but sort as such,
// or as several. U+FFFF stands for a letter of its own behind the one before.
func spelled(r rune) string {
	const stroke = "\u0338"
	if 'ァ' <= r && r <= 'ヶ' {
		r -= 'ァ' - 'ぁ' // the two kana are cases of each other
	}
	switch r {
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ß':
		return "ss"
	case 'đ':
		return "d" + stroke
	case 'ð':
		return "d" + stroke + stroke
	case 'ħ':
		return "h" + stroke
	case 'ł':
		return "l" + stroke
	case 'ø':
		return "o" + stroke
	case 'ı':
		return "i\uFFFF"
	case 'ŋ':
		return "n\uFFFF"
	case 'ŧ':
		return "t\uFFFF"
	case 'þ':
		return "z\uFFFF"
	case 'ґ':
		return "г\uFFFF"
	case 'є':
		return "е\uFFFF"
	case 'і':
		return "и\uFFFF"
	case 'ї':
		return "и\uFFFF\u0308"
	case 'й':
		return "и\uFFFF\uFFFF"
	case '\u2010', '\u2011':
		return "-"
	}
	return string(r)
}

// marks are the accents in order; others come after them.
const marks = "\u0301\u0300\u0306\u0302\u030C\u030A\u0308\u030B\u0303\u0307"

// ownPlace is the code point in whose place a letter comes whose script is not
// sorted by code points.
func ownPlace(r rune) rune {
	switch {
	case 0x10A0 <= r && r <= 0x10FF: // Georgian, before Armenian
		return 0x052F
	case 0x2C80 <= r && r <= 0x2CFF: // Coptic, before Cyrillic
		return 0x03FF
	case 0x1200 <= r && r <= 0x139F: // Ethiopic, before Devanagari
		return 0x08FF
	case 0x1100 <= r && r <= 0x11FF: // Hangul, before kana
		return 0x1900
	case 0xA000 <= r && r <= 0xA4CF: // Yi, before Han
		return 0x33FF
	}
	return r
}

// collationKey is what a name is sorted by.
func collationKey(name string) []rune {
	var primary, secondary []rune
	var plain strings.Builder
	for _, r := range norm.NFC.String(strings.ToLower(name)) {
		plain.WriteString(spelled(r))
	}
	for _, r := range norm.NFKD.String(plain.String()) {
		switch r = unicode.ToLower(r); {
		case unicode.Is(unicode.Mn, r):
			if i := strings.IndexRune(marks, r); i >= 0 {
				r = rune(i)
			}
			secondary = append(secondary, r+2)
		case !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r):
			primary = append(primary, weight(r))
			if place := ownPlace(r); place != r {
				primary = append(primary, r)
			}
			secondary = append(secondary, 1)
		}
	}
	return append(append(primary, 0), secondary...)
}

// weight is the place of a character in the order.
func weight(r rune) rune {
	const (
		space = (1 + iota) << 24
		first
		other
		last
		number
		letter
	)
	switch {
	case unicode.IsSpace(r):
		return space
	case strings.ContainsRune(firstSymbols, r):
		return first + rune(strings.IndexRune(firstSymbols, r))
	case strings.ContainsRune(lastSymbols, r):
		return last + rune(strings.IndexRune(lastSymbols, r))
	case unicode.IsDigit(r):
		return number + r
	case r == '\uFFFF':
		return letter + unicode.MaxRune
	case !unicode.IsLetter(r):
		return other + r
	}
	return letter + ownPlace(r)
}

// sortNames sorts names as people expect them.
func sortNames[E any](list []E, name func(E) string) {
	type keyed struct {
		e   E
		key []rune
	}
	all := make([]keyed, len(list))
	for i, e := range list {
		all[i] = keyed{e, collationKey(name(e))}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(slices.Compare(a.key, b.key), strings.Compare(name(a.e), name(b.e)))
	})
	for i, k := range all {
		list[i] = k.e
	}
}
