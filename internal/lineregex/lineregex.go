// Package lineregex finds the lines of a text that match a regular expression.
//
// The dialect is that of Rust's regex crate, which ripgrep made the one that
// people search code with: Unicode classes and word boundaries, set operations
// in classes, named groups, inline flags; no backreferences and no look-around.
// A match never crosses the end of a line. ^ and $ are the ends of a line.
//
//	re, err := lineregex.Compile(`func \w+\(`, lineregex.Options{})
//	s := re.Searcher()
//	s.Search(text)
//	start, end, ok := s.Next()
//
// The time that a search takes grows with the length of the text alone,
// whatever the expression is.
package lineregex

import "unicode/utf8"

// Options change what an expression means. The zero value is the dialect as it
// stands.
type Options struct {
	IgnoreCase bool
	Literal    bool // the pattern is the text to look for
}

// Regexp is a compiled expression. It does not change and may be shared.
type Regexp struct {
	prog     *program
	literals []finder // each match holds one of them; nil for none known
	whole    bool     // a literal is all that a line needs to match
}

// Compile reads an expression. The errors are a *SyntaxError, ErrLineFeed and
// ErrTooBig.
func Compile(pattern string, o Options) (*Regexp, error) {
	n, err := parsePattern(pattern, o)
	if err != nil {
		return nil, err
	}
	prog, err := compile(n)
	if err != nil {
		return nil, err
	}
	re := &Regexp{prog: prog}
	literals, whole := requirements(n)
	for _, l := range literals {
		re.literals = append(re.literals, newFinder(l))
	}
	re.whole = whole
	return re, nil
}

func parsePattern(pattern string, o Options) (*node, error) {
	if !o.Literal {
		return parse(pattern, o.IgnoreCase)
	}
	p := &parser{flags: flags{fold: o.IgnoreCase}}
	n := &node{}
	for i := 0; i < len(pattern); {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		if r == '\n' {
			return nil, ErrLineFeed
		}
		if r == utf8.RuneError && size == 1 {
			r = badByte + rune(pattern[i])
		}
		n.subs = append(n.subs, p.literal(r))
		i += size
	}
	return n, nil
}

// Searcher looks for lines. It is for one goroutine at a time; what it learns
// of the expression makes its next search faster.
type Searcher struct {
	re      *Regexp
	matcher *matcher
	text    []byte
	from    int   // where the next line starts
	places  []int // next place of each literal; len(text) for none
	line    int32 // state in a line that comes in pieces
	cut     []byte
}

// Searcher makes one.
func (re *Regexp) Searcher() *Searcher {
	return &Searcher{re: re, matcher: newMatcher(re.prog), places: make([]int, len(re.literals))}
}

// Search sets the text whose lines Next finds. It starts at the start of a line,
// and its end ends one.
func (s *Searcher) Search(text []byte) {
	s.text, s.from = text, 0
	for i := range s.places {
		s.places[i] = -1
	}
}

// Next is the next line that matches, as offsets without its line feed.
func (s *Searcher) Next() (start, end int, ok bool) {
	for s.from < len(s.text) {
		if len(s.re.literals) == 0 {
			start, end, ok = s.matcher.firstLine(s.text[s.from:])
			start, end = start+s.from, end+s.from
			if !ok {
				break
			}
		} else {
			at := s.nextLiteral()
			if at < 0 {
				break
			}
			start, end = lineAt(s.text, at)
			ok = s.re.whole || s.matcher.line(s.text[start:end])
		}
		s.from = end + 1
		if ok {
			return start, end, true
		}
	}
	s.from = len(s.text)
	return 0, 0, false
}

// nextLiteral is the next place of any literal, -1 for none.
func (s *Searcher) nextLiteral() int {
	text, first := s.text, -1
	for i := range s.re.literals {
		at := s.places[i]
		if at < s.from && at != len(text) {
			if at = s.re.literals[i].index(text, s.from); at < 0 {
				at = len(text)
			}
			s.places[i] = at
		}
		if at < len(text) && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// StartLine begins a line that is too long to be held in one piece.
func (s *Searcher) StartLine() { s.line, s.cut = atLineStart, s.cut[:0] }

// AddToLine gives the next piece of the line and tells whether it matches
// already.
func (s *Searcher) AddToLine(piece []byte) bool {
	if s.line == matched {
		return true
	}
	// A sequence that the pieces cut is put together.
	for len(s.cut) > 0 && len(piece) > 0 {
		s.cut = append(s.cut, piece[0])
		piece = piece[1:]
		for len(s.cut) > 0 && utf8.FullRune(s.cut) && s.line != matched {
			_, n := utf8.DecodeRune(s.cut)
			s.line, _ = s.matcher.run(s.line, s.cut[:n])
			s.cut = append(s.cut[:0], s.cut[n:]...)
		}
		if s.line == matched {
			return true
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(piece); n++ {
		if tail := piece[len(piece)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				s.cut = append(s.cut, tail...)
				piece = piece[:len(piece)-n]
			}
			break
		}
	}
	s.line, _ = s.matcher.run(s.line, piece)
	return s.line == matched
}

// EndLine ends the line and tells whether it matches.
func (s *Searcher) EndLine() bool {
	if s.line != matched {
		s.line, _ = s.matcher.run(s.line, s.cut)
	}
	return s.line == matched || s.matcher.step(s.line, lineFeedClass) == matched
}
