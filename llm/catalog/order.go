package catalog

import (
	"cmp"
	"strings"
)

// order compares names as a person reads them: marks before digits before
// letters, whose case counts only between names that are the same otherwise,
// small first. That is the order of other programs' lists of the same models.
func order(a, b string) int {
	small := 0 // -1 when a has the small letter where only case differs first
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if c := cmp.Compare(rank(x), rank(y)); c != 0 {
			return c
		}
		if small == 0 {
			small = cmp.Compare(y, x) // capitals have the lower codes
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), small)
}

// rank is the place of a character among all, whatever its case. What is no
// ASCII comes last, in the order of its codes.
func rank(c byte) int {
	const marks = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
	switch {
	case c >= 'A' && c <= 'Z':
		c += 'a' - 'A'
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 0x80:
	default:
		return strings.IndexByte(marks, c) // -1 for control characters
	}
	return len(marks) + int(c)
}
