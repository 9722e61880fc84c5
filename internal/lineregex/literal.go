package lineregex

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// literal is a text that a matching line must hold. A folded one is in lower
// case and stands for ASCII letters of both.
type literal struct {
	text string
	fold bool
}

// needs is what is known of the texts that a part of an expression matches.
type needs struct {
	exact    []literal // all of them; nil when they are not known or too many
	required []literal // each of them holds one of these; nil for unknown
}

const (
	maxLiterals   = 8 // that are looked for at once
	maxLiteralLen = 64
)

// requirements finds literals of which every matching line holds one. whole
// tells that a line which holds one matches.
func requirements(n *node) (_ []literal, whole bool) {
	w := analyse(n)
	if best := better(w.exact, w.required); best != nil {
		return shortest(best), w.exact != nil && !hasLook(n) && slices.Equal(best, w.exact)
	}
	return nil, false
}

// shortest leaves out literals that hold another one.
func shortest(list []literal) []literal {
	var out []literal
	for i, l := range list {
		if !slices.ContainsFunc(list, func(o literal) bool {
			return o != l && o.fold == l.fold && strings.Contains(l.text, o.text)
		}) && !slices.Contains(list[:i], l) {
			out = append(out, l)
		}
	}
	return out
}

func hasLook(n *node) bool { return n.op == opLook || slices.ContainsFunc(n.subs, hasLook) }

func analyse(n *node) needs {
	switch n.op {
	case opLook:
		return needs{exact: []literal{{}}}
	case opSet:
		return analyseSet(n.set)
	case opAlternate:
		return analyseAlternatives(n.subs)
	case opRepeat:
		sub := analyse(n.subs[0])
		switch {
		case n.min == 0 && n.max == 1 && sub.exact != nil:
			return needs{exact: trim(append(slices.Clone(sub.exact), literal{}))}
		case n.min == 0:
			return needs{}
		case n.min == 1 && n.max == 1:
			return sub
		}
		run := sub.exact
		times := 1
		for ; times < n.min; times++ {
			longer := join(run, sub.exact)
			if longer == nil || longer[0] == run[0] {
				break
			}
			run = longer
		}
		if times == n.min && times == n.max && run != nil {
			return needs{exact: run, required: sub.required}
		}
		return needs{required: better(run, sub.required)}
	}
	return analyseConcat(n.subs)
}

func analyseSet(s set) needs {
	if b, fold, ok := s.singleASCII(); ok {
		return needs{exact: []literal{{string(rune(b)), fold}}}
	}
	var out []literal
	for _, sp := range s {
		for r := sp.lo; r <= sp.hi; r++ {
			if len(out) == maxLiterals || r > utf8.MaxRune {
				return needs{}
			}
			out = append(out, literal{text: string(r)})
		}
	}
	return needs{exact: trim(out)}
}

func analyseAlternatives(subs []*node) needs {
	all := needs{exact: []literal{}, required: []literal{}}
	for _, sub := range subs {
		w := analyse(sub)
		if w.exact == nil {
			all.exact = nil
		}
		if all.exact != nil {
			all.exact = append(all.exact, w.exact...)
		}
		best := better(w.exact, w.required)
		if best == nil {
			all.required = nil
		}
		if all.required != nil {
			all.required = append(all.required, best...)
		}
	}
	return needs{exact: trim(all.exact), required: trim(all.required)}
}

func analyseConcat(subs []*node) needs {
	run := []literal{{}} // what the parts since the last unknown one match
	var best []literal
	exact := true
	for _, sub := range subs {
		w := analyse(sub)
		if joined := join(run, w.exact); joined != nil {
			run = joined
			continue
		}
		exact = false
		best = better(best, run)
		best = better(best, w.required)
		run = []literal{{}}
		if w.exact != nil {
			run = w.exact
		}
	}
	best = better(best, run)
	if exact {
		return needs{exact: run, required: best}
	}
	return needs{required: best}
}

// join puts every text of b behind every one of a, nil when that makes too
// many or too long ones.
func join(a, b []literal) []literal {
	if a == nil || b == nil {
		return nil
	}
	var out []literal
	for _, x := range a {
		for _, y := range b {
			l := literal{x.text + y.text, x.fold || y.fold}
			// A literal is folded as a whole or not at all.
			mixed := x.fold != y.fold && (hasLetter(x.text) && !x.fold || hasLetter(y.text) && !y.fold)
			if mixed || len(l.text) > maxLiteralLen {
				return nil
			}
			out = append(out, l)
		}
	}
	return trim(out)
}

func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' })
}

// trim refuses lists that are too long to look for.
func trim(list []literal) []literal {
	if len(list) > maxLiterals {
		return nil
	}
	return list
}

// better is the list that is met less often by chance; nil when neither helps.
func better(a, b []literal) []literal {
	if worth(b) > worth(a) {
		return b
	}
	if worth(a) == 0 {
		return nil
	}
	return a
}

// worth judges a list by its weakest text: long ones are rare. An empty one is
// everywhere.
func worth(list []literal) int {
	if len(list) == 0 {
		return 0
	}
	least := maxLiteralLen * 8
	for _, l := range list {
		w := 0
		for i := range len(l.text) {
			w += 2 + rarity(l.text[i])/64
		}
		least = min(least, w)
	}
	return least * 4 / (3 + len(list))
}

// commonBytes are those of program text, the most common first.
const commonBytes = " etaoinrs\tlcdup.(),fm\"=0_g:hb1vyx{}/w-k;2*STACEIR3PDNFOLM4&j[]>5q6z8'<7+9Bz|UGWHXV!\\%$#@?`~^KYQJZ"

// rarity is 0 for the byte that is most common, 255 for those hardly seen.
func rarity(b byte) int {
	if i := strings.IndexByte(commonBytes, b); i >= 0 {
		return i * 2
	}
	return 255
}

// finder looks for a literal by its rarest byte.
type finder struct {
	literal
	rare         int  // index of the byte
	lower, upper byte // its two cases; the same when it has one
}

func newFinder(l literal) finder {
	f := finder{literal: l}
	for i := range len(l.text) {
		weight := rarity(l.text[i])
		if l.fold && hasLetter(l.text[i:i+1]) {
			weight /= 2
		}
		best := rarity(l.text[f.rare])
		if l.fold && hasLetter(l.text[f.rare:f.rare+1]) {
			best /= 2
		}
		if weight > best {
			f.rare = i
		}
	}
	f.lower = l.text[f.rare]
	f.upper = f.lower
	if l.fold && hasLetter(string(rune(f.lower))) {
		f.upper = f.lower ^ 0x20
	}
	return f
}

// index is the first place of the literal in text from an offset on, -1 for
// none.
func (f *finder) index(text []byte, from int) int {
	at := from + f.rare
	if f.lower == f.upper {
		for at < len(text) {
			i := bytes.IndexByte(text[at:], f.lower)
			if i < 0 {
				return -1
			}
			at += i
			if f.at(text, at-f.rare) {
				return at - f.rare
			}
			at++
		}
		return -1
	}
	// The next places of both cases, each looked for once.
	lower, upper := at-1, at-1
	for at < len(text) {
		lower, upper = nextByte(text, f.lower, lower, at), nextByte(text, f.upper, upper, at)
		at = min(lower, upper)
		if at == len(text) {
			return -1
		}
		if f.at(text, at-f.rare) {
			return at - f.rare
		}
		at++
	}
	return -1
}

// nextByte is the place of b in text from at on; last is where it was found
// before. The end of text stands for none.
func nextByte(text []byte, b byte, last, at int) int {
	if last >= at {
		return last
	}
	if i := bytes.IndexByte(text[at:], b); i >= 0 {
		return at + i
	}
	return len(text)
}

// at tells whether the literal stands at an offset of text.
func (f *finder) at(text []byte, start int) bool {
	if len(text)-start < len(f.text) {
		return false
	}
	text = text[start : start+len(f.text)]
	if !f.fold {
		return string(text) == f.text
	}
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		if b != f.text[i] {
			return false
		}
	}
	return true
}
