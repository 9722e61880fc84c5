// Package spelling tells a slip in a name that a person wrote from a name of
// their own.
package spelling

import "strings"

// maxLen bounds the names that are compared, in bytes.
const maxLen = 64

// Meant is the one of the known names that name is likely to be a slip of: that
// which it is but for case, _ and -, an s at its end, or one letter, two in a
// long name and none in a short one. It is "" when there is none, or when two
// are equally near.
func Meant(name string, known []string) string {
	if len(name) > maxLen {
		return ""
	}
	name = fold(name)
	allowed := 0
	switch n := len(name); {
	case n == 0:
		return ""
	case n >= 8:
		allowed = 2
	case n >= 4:
		allowed = 1
	}
	meant, most := "", 2*allowed+1
	least := most + 1
	for _, k := range known {
		other := fold(k)
		d := 0
		switch { // an s is less than a letter
		case name == other:
		case strings.TrimSuffix(name, "s") == strings.TrimSuffix(other, "s"):
			d = 1
		case max(len(name)-len(other), len(other)-len(name)) > allowed:
			continue
		default:
			d = 2 * distance(name, other)
		}
		switch {
		case d < least:
			meant, least = k, d
		case d == least && d <= most && k != meant:
			meant = ""
		}
	}
	return meant
}

func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance is how many letters have to be added, left out, changed or swapped
// with their neighbour to make b of a.
func distance(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		now := make([]int, len(b)+1)
		now[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			now[j+1] = min(last[j]+change, last[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last = last, now
	}
	return last[len(b)]
}
