package lineregex

import (
	"slices"
	"strings"
	"unicode"
)

// Symbols are what a line consists of: code points, and bytes that belong to no
// valid UTF-8 sequence, which are numbered from badByte on.
const (
	badByte   = unicode.MaxRune + 1
	maxSymbol = badByte + 0xFF
)

// set is a sorted list of symbol ranges that neither touch nor overlap.
type set []span

type span struct{ lo, hi rune }

func newSet(spans ...span) set {
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var out set
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, s.hi)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func (s set) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(sp span, r rune) int {
		switch {
		case r < sp.lo:
			return 1
		case r > sp.hi:
			return -1
		}
		return 0
	})
	return found
}

func (s set) union(t set) set { return newSet(slices.Concat(s, t)...) }

// not is everything up to last that is not in the set.
func (s set) not(last rune) set {
	var out set
	next := rune(0)
	for _, sp := range s {
		if sp.lo > next {
			out = append(out, span{next, min(sp.lo-1, last)})
		}
		next = sp.hi + 1
	}
	if next <= last {
		out = append(out, span{next, last})
	}
	return out
}

func (s set) intersect(t set) set {
	var out set
	for i, j := 0, 0; i < len(s) && j < len(t); {
		lo, hi := max(s[i].lo, t[j].lo), min(s[i].hi, t[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if s[i].hi < t[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// fold adds the other cases of the members; ascii limits that to ASCII letters.
func (s set) fold(ascii bool) set {
	out := slices.Clone(s)
	if ascii {
		for r := 'a'; r <= 'z'; r++ {
			if s.has(r) || s.has(r^0x20) {
				out = append(out, span{r, r}, span{r ^ 0x20, r ^ 0x20})
			}
		}
		return newSet(out...)
	}
	size := 0
	for _, sp := range s {
		size += int(sp.hi-sp.lo) + 1
	}
	if size < 1000 {
		for _, sp := range s {
			for r := sp.lo; r <= sp.hi; r++ {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					out = append(out, span{f, f})
				}
			}
		}
		return newSet(out...)
	}
	// One of the cases of every letter that has several is in these ranges.
	for _, c := range unicode.CaseRanges {
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			in := s.has(r)
			for f := unicode.SimpleFold(r); f != r && !in; f = unicode.SimpleFold(f) {
				in = s.has(f)
			}
			if !in {
				continue
			}
			out = append(out, span{r, r})
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				out = append(out, span{f, f})
			}
		}
	}
	return newSet(out...)
}

func fromTable(tables ...*unicode.RangeTable) set {
	var spans []span
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			spans = append(spans, span{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			spans = append(spans, span{r, r})
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return newSet(spans...)
}

// The classes \d, \s and \w.
func digits(ascii bool) set {
	if ascii {
		return set{{'0', '9'}}
	}
	return fromTable(unicode.Nd)
}

func spaces(ascii bool) set {
	if ascii {
		return set{{'\t', '\r'}, {' ', ' '}}
	}
	return fromTable(unicode.White_Space)
}

func words(ascii bool) set {
	if ascii {
		return set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	}
	return fromTable(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)
}

// posix is a class like [:alpha:], nil for an unknown name.
func posix(name string) set {
	switch name {
	case "alnum":
		return set{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}
	case "alpha":
		return set{{'A', 'Z'}, {'a', 'z'}}
	case "ascii":
		return set{{0, 0x7F}}
	case "blank":
		return set{{'\t', '\t'}, {' ', ' '}}
	case "cntrl":
		return set{{0, 0x1F}, {0x7F, 0x7F}}
	case "digit":
		return digits(true)
	case "graph":
		return set{{'!', '~'}}
	case "lower":
		return set{{'a', 'z'}}
	case "print":
		return set{{' ', '~'}}
	case "punct":
		return set{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}
	case "space":
		return spaces(true)
	case "upper":
		return set{{'A', 'Z'}}
	case "word":
		return words(true)
	case "xdigit":
		return set{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
	}
	return nil
}

// property is the set of a Unicode property: a general category, a script or a
// binary property, loosely named. It is nil for one that is not known.
func property(name string) set {
	kind, value, found := strings.Cut(name, "=")
	if !found {
		kind, value, found = strings.Cut(name, ":")
	}
	if !found {
		kind, value = "", name
	}
	kind, value = loose(kind), loose(value)
	switch kind {
	case "", "gc", "generalcategory", "sc", "script", "scx", "scriptextensions":
	default:
		return nil
	}
	script := strings.HasPrefix(kind, "sc")
	if !script {
		switch value {
		case "any":
			return set{{0, unicode.MaxRune}}
		case "ascii":
			return set{{0, unicode.MaxASCII}}
		case "assigned":
			return fromTable(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
		}
		if t := looseTable(unicode.Categories, value); t != nil {
			return fromTable(t)
		}
		for alias, name := range unicode.CategoryAliases {
			if loose(alias) == value {
				return fromTable(unicode.Categories[name])
			}
		}
	}
	if t := looseTable(unicode.Scripts, value); t != nil {
		return fromTable(t)
	}
	if kind != "" {
		return nil
	}
	switch value {
	case "alphabetic", "alpha":
		return fromTable(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	case "lowercase", "lower":
		return fromTable(unicode.Ll, unicode.Other_Lowercase)
	case "uppercase", "upper":
		return fromTable(unicode.Lu, unicode.Other_Uppercase)
	case "math":
		return fromTable(unicode.Sm, unicode.Other_Math)
	case "space", "wspace":
		return spaces(false)
	}
	if t := looseTable(unicode.Properties, value); t != nil {
		return fromTable(t)
	}
	return nil
}

func looseTable(tables map[string]*unicode.RangeTable, name string) *unicode.RangeTable {
	for n, t := range tables {
		if loose(n) == name {
			return t
		}
	}
	return nil
}

func loose(name string) string {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	if rest, ok := strings.CutPrefix(name, "is"); ok && rest != "" && rest != "olatin" {
		return rest
	}
	return name
}
