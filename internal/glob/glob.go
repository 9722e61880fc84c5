// Package glob matches slash-separated paths against patterns, by the rules
// that ripgrep, fd and their ignore files share:
//
//	?        one byte that is no slash
//	*        any number of them
//	**       any number of whole segments, as **/x, x/** and x/**/y
//	[a-z]    one byte of a class; [!a-z] and [^a-z] one of the others
//	{a,b}    one of several patterns
//	\x       x as it is
//
// Two stars beside anything but a slash are like one. A match takes a time that
// grows with the length of the path, whatever the pattern is.
package glob

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Glob is a compiled pattern. It does not change and may be shared.
type Glob struct {
	re       *regexp.Regexp // nil for the kinds that need none
	kind     kind
	text     string
	hasUpper bool
}

// kind tells how a glob is matched.
type kind uint8

const (
	anyForm      kind = iota
	exact             // the path is text
	wholeSegment      // the path is text, or ends in it after a slash
	suffix            // the path ends in text
)

// Options change how a pattern matches. The zero value works.
type Options struct {
	FoldCase bool // ASCII letters match both of their cases
	// OpenClass takes a bracket that opens a class which nothing closes as it
	// is, where it would be an error.
	OpenClass bool
}

// Error is a problem of a pattern.
type Error struct {
	Pattern string
	Problem string
}

func (e *Error) Error() string { return "error parsing glob '" + e.Pattern + "': " + e.Problem }

// Compile reads a pattern. Its errors are *Error.
func Compile(pattern string, o Options) (*Glob, error) {
	p := &parser{src: pattern, openClass: o.OpenClass, alternatives: [][][]token{{nil}}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	tokens := p.alternatives[0][0]
	g := &Glob{hasUpper: hasUpper(tokens)}
	if !o.FoldCase || !hasLetter(tokens) {
		if g.simple(tokens); g.kind != anyForm {
			return g, nil
		}
	}
	re, err := regexp.Compile(expression(tokens, o.FoldCase))
	if err != nil {
		return nil, &Error{pattern, "too long or too deep"}
	}
	g.re = re
	return g, nil
}

// expression is the regular expression of a pattern, for paths that bytewise made.
func expression(tokens []token, fold bool) string {
	var b strings.Builder
	b.WriteString(`^(?s:`)
	if len(tokens) == 1 && tokens[0].op == recursivePrefix {
		b.WriteString(`.*`)
	} else {
		writeTokens(&b, tokens, fold)
	}
	b.WriteString(`)$`)
	return b.String()
}

// Match tells whether the whole path matches.
func (g *Glob) Match(path string) bool {
	switch g.kind {
	case exact:
		return path == g.text
	case suffix:
		return strings.HasSuffix(path, g.text)
	case wholeSegment:
		rest, ok := strings.CutSuffix(path, g.text)
		return ok && (rest == "" || rest[len(rest)-1] == '/')
	}
	return g.re.MatchString(bytewise(path))
}

// HasUpper tells whether the pattern names an upper-case letter, which makes
// programs of smart case mind the case.
func (g *Glob) HasUpper() bool { return g.hasUpper }

// bytewise gives each byte a character of its own: patterns match bytes, as
// names need not be UTF-8.
func bytewise(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// simple finds the kinds of patterns that are most of those in use.
func (g *Glob) simple(tokens []token) {
	kind := exact
	if len(tokens) > 0 && tokens[0].op == recursivePrefix {
		kind = wholeSegment
		if tokens = tokens[1:]; len(tokens) > 0 && tokens[0].op == star {
			kind = suffix
			tokens = tokens[1:]
		}
	}
	var text strings.Builder
	for _, t := range tokens {
		if t.op != literal || kind == suffix && t.char == "/" {
			return
		}
		text.WriteString(t.char)
	}
	if text.Len() == 0 {
		return
	}
	g.kind, g.text = kind, text.String()
}

type token struct {
	op   tokenOp
	char string     // literal: one character, or a byte that is part of none
	set  *[256]bool // class
	not  bool       // class: the bytes that are not in set
	alts [][]token  // alternates
}

type tokenOp uint8

const (
	literal tokenOp = iota
	anyByte
	star
	recursivePrefix // **/ at the start
	recursiveSuffix // /** at the end
	recursiveMiddle // /**/
	class
	alternates
)

func hasLetter(tokens []token) bool {
	for _, t := range tokens {
		if t.op != literal || 'a' <= t.char[0]|0x20 && t.char[0]|0x20 <= 'z' {
			return true
		}
	}
	return false
}

// hasUpper looks at bytes, those beyond ASCII as the Latin-1 letters that they
// would be, and at both ends of each range of a class.
func hasUpper(tokens []token) bool {
	upper := func(b byte) bool { return 'A' <= b && b <= 'Z' || 0xC0 <= b && b <= 0xDE && b != 0xD7 }
	for _, t := range tokens {
		for i := range len(t.char) {
			if upper(t.char[i]) {
				return true
			}
		}
		for _, alt := range t.alts {
			if hasUpper(alt) {
				return true
			}
		}
		for b := 'A'; b <= 0xDE && t.set != nil; b++ {
			in := func(b rune) bool { return t.set[b] != t.not }
			if upper(byte(b)) && in(b) && !(in(b-1) && in(b+1)) {
				return true
			}
		}
	}
	return false
}

func writeTokens(b *strings.Builder, tokens []token, fold bool) {
	for _, t := range tokens {
		switch t.op {
		case literal:
			for i := range len(t.char) {
				c := t.char[i]
				if l := c | 0x20; fold && 'a' <= l && l <= 'z' {
					fmt.Fprintf(b, "[%c%c]", l, l^0x20)
				} else {
					fmt.Fprintf(b, `\x{%x}`, c)
				}
			}
		case anyByte:
			b.WriteString(`[^/]`)
		case star:
			b.WriteString(`[^/]*`)
		case recursivePrefix:
			b.WriteString(`(?:/?|.*/)`)
		case recursiveSuffix:
			b.WriteString(`/.*`)
		case recursiveMiddle:
			b.WriteString(`(?:/|/.*/)`)
		case class:
			writeClass(b, t, fold)
		case alternates:
			var alts []string
			for _, alt := range t.alts {
				var a strings.Builder
				if writeTokens(&a, alt, fold); a.Len() > 0 {
					alts = append(alts, a.String())
				}
			}
			if len(alts) > 0 {
				b.WriteString(`(?:` + strings.Join(alts, "|") + `)`)
			}
		}
	}
}

func writeClass(b *strings.Builder, t token, fold bool) {
	set := *t.set
	for c := 'a'; fold && c <= 'z'; c++ {
		both := set[c] || set[c^0x20]
		set[c], set[c^0x20] = both, both
	}
	b.WriteByte('[')
	n := b.Len()
	for lo := 0; lo < 256; lo++ {
		if set[lo] == t.not {
			continue
		}
		hi := lo
		for hi < 255 && set[hi+1] != t.not {
			hi++
		}
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, lo, hi)
		lo = hi
	}
	if b.Len() == n {
		b.WriteString(`^\x{0}-\x{10ffff}`) // nothing
	}
	b.WriteByte(']')
}
