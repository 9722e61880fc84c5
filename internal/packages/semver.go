package packages

import (
	"cmp"
	"strconv"
	"strings"
)

// semver is a version by the rules of semantic versioning.
type semver struct {
	n   [3]uint64
	pre []string
}

// parseVersion reads a whole version, such as 1.2.3-beta.1; a leading v or = does
// not count.
func parseVersion(s string) (semver, bool) {
	v, parts, ok := parsePartial(strings.TrimLeft(s, "v="))
	return v, ok && parts == 3
}

// parsePartial reads a version of which the last numbers may be missing or stand
// as x, X or *; parts is how many there are.
func parsePartial(s string) (v semver, parts int, ok bool) {
	s, _, _ = strings.Cut(s, "+") // the build does not count
	numbers, pre, hasPre := strings.Cut(s, "-")
	if hasPre {
		for _, id := range strings.Split(pre, ".") {
			if id == "" || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
				return v, 0, false
			}
			v.pre = append(v.pre, id)
		}
	}
	if numbers == "" {
		return v, 0, !hasPre
	}
	open := false
	for i, number := range strings.Split(numbers, ".") {
		switch {
		case i > 2:
			return v, 0, false
		case number == "x" || number == "X" || number == "*":
			open = true
		case open:
			return v, 0, false
		default:
			n, err := strconv.ParseUint(number, 10, 53)
			if err != nil || len(number) > 1 && number[0] == '0' {
				return v, 0, false
			}
			v.n[i] = n
			parts++
		}
	}
	return v, parts, !hasPre || parts == 3
}

func (v semver) compare(w semver) int {
	for i := range v.n {
		if c := cmp.Compare(v.n[i], w.n[i]); c != 0 {
			return c
		}
	}
	if len(v.pre) == 0 || len(w.pre) == 0 {
		return cmp.Compare(len(w.pre), len(v.pre)) // the release is behind what leads to it
	}
	for i := range min(len(v.pre), len(w.pre)) {
		if c := comparePre(v.pre[i], w.pre[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(v.pre), len(w.pre))
}

func comparePre(a, b string) int {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(x, y)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// comparator is one bound of a range.
type comparator struct {
	op string // < <= > >= =
	v  semver
}

func (c comparator) admits(v semver) bool {
	switch d := v.compare(c.v); c.op {
	case "<":
		return d < 0
	case "<=":
		return d <= 0
	case ">":
		return d > 0
	case ">=":
		return d >= 0
	default:
		return d == 0
	}
}

// versionRange is a range as npm writes it: alternatives of bounds that hold
// together.
type versionRange [][]comparator

// parseRange reads a range, such as ^1.2, ~1.2.3, 1.x, >=1 <3 or 1.0 - 2.1 || 3.
func parseRange(s string) (versionRange, bool) {
	var r versionRange
	for alternative := range strings.SplitSeq(s, "||") {
		words := strings.Fields(alternative)
		set := []comparator{}
		if len(words) == 3 && words[1] == "-" {
			words = []string{">=" + words[0], "<=" + words[2]}
		}
		for i := 0; i < len(words); i++ {
			word := words[i]
			if strings.Trim(word, "<>=^~") == "" && i+1 < len(words) { // > 1.2
				i++
				word += words[i]
			}
			bounds, ok := parseBounds(word)
			if !ok {
				return nil, false
			}
			set = append(set, bounds...)
		}
		r = append(r, set)
	}
	return r, true
}

func parseBounds(word string) ([]comparator, bool) {
	rest := strings.TrimLeft(word, "<>=^~")
	op := word[:len(word)-len(rest)]
	v, parts, ok := parsePartial(strings.TrimPrefix(rest, "v"))
	if !ok {
		return nil, false
	}
	// next is the first version behind all that have the first n numbers.
	next := func(n int) semver {
		w := semver{pre: []string{"0"}} // before its own pre-releases
		copy(w.n[:n], v.n[:n])
		w.n[n-1]++
		return w
	}
	from := comparator{">=", v}
	switch op {
	case "", "=", "v":
		switch parts {
		case 0:
			return []comparator{{">=", semver{}}}, true
		case 3:
			return []comparator{{"=", v}}, true
		}
		return []comparator{from, {"<", next(parts)}}, true
	case "~", "~>":
		if parts == 0 {
			return []comparator{from}, true
		}
		return []comparator{from, {"<", next(min(parts, 2))}}, true
	case "^":
		if parts == 0 {
			return []comparator{from}, true
		}
		n := 1 // the first number that is not 0 stays, as far as there are any
		for n < parts && v.n[n-1] == 0 {
			n++
		}
		return []comparator{from, {"<", next(n)}}, true
	case ">", "<=":
		if parts == 0 {
			if op == ">" {
				return []comparator{{"<", semver{pre: []string{"0"}}}}, true // nothing is
			}
			return []comparator{{">=", semver{}}}, true
		}
		if parts < 3 {
			return []comparator{{map[string]string{">": ">=", "<=": "<"}[op], next(parts)}}, true
		}
		return []comparator{{op, v}}, true
	case "<", ">=":
		if op == "<" && parts < 3 {
			v.pre = []string{"0"}
		}
		return []comparator{{op, v}}, true
	}
	return nil, false
}

// admits reports whether a version is in the range. A pre-release is only where a
// bound names one of the same numbers.
func (r versionRange) admits(v semver) bool {
	for _, set := range r {
		inside, named := true, len(v.pre) == 0
		for _, c := range set {
			inside = inside && c.admits(v)
			named = named || len(c.v.pre) > 0 && c.v.n == v.n && c.op != "<"
		}
		if inside && named {
			return true
		}
	}
	return false
}
