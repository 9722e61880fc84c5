package glob

import (
	"fmt"
	"unicode/utf8"
)

type parser struct {
	src  string
	pos  int
	prev string // the character before the one at hand; "" at the start

	openClass bool
	// alternatives[0][0] is the pattern; each level above is a group that is
	// open, its last member the one being read.
	alternatives [][][]token
}

// next reads a character.
func (p *parser) next() (string, bool) {
	if p.pos == len(p.src) {
		return "", false
	}
	_, n := utf8.DecodeRuneInString(p.src[p.pos:])
	if p.pos > 0 {
		_, before := utf8.DecodeLastRuneInString(p.src[:p.pos])
		p.prev = p.src[p.pos-before : p.pos]
	}
	p.pos += n
	return p.src[p.pos-n : p.pos], true
}

func (p *parser) peek() string {
	if p.pos == len(p.src) {
		return ""
	}
	_, n := utf8.DecodeRuneInString(p.src[p.pos:])
	return p.src[p.pos : p.pos+n]
}

// tokens are those of the pattern or alternative being read.
func (p *parser) tokens() *[]token {
	group := p.alternatives[len(p.alternatives)-1]
	return &group[len(group)-1]
}

func (p *parser) push(t token) {
	list := p.tokens()
	if n := len(*list); t.op == star && n > 0 && (*list)[n-1].op == star {
		return // more stars say nothing more, and each would cost time in every match
	}
	*list = append(*list, t)
}

func (p *parser) fail(problem string) error { return &Error{p.src, problem} }

// maxDepth bounds groups within groups.
const maxDepth = 50

func (p *parser) parse() error {
	for {
		c, ok := p.next()
		if !ok {
			break
		}
		switch c {
		case "?":
			p.push(token{op: anyByte})
		case "*":
			p.stars()
		case "[":
			if err := p.class(); err != nil {
				return err
			}
		case "{":
			if len(p.alternatives) > maxDepth {
				return p.fail("too many alternate groups within each other")
			}
			p.alternatives = append(p.alternatives, [][]token{nil})
		case "}":
			if len(p.alternatives) < 2 {
				return p.fail("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
			}
			alts := p.alternatives[len(p.alternatives)-1]
			p.alternatives = p.alternatives[:len(p.alternatives)-1]
			p.push(token{op: alternates, alts: alts})
		case ",":
			if n := len(p.alternatives); n > 1 {
				p.alternatives[n-1] = append(p.alternatives[n-1], nil)
			} else {
				p.push(token{char: c})
			}
		case `\`:
			escaped, ok := p.next()
			if !ok {
				return p.fail(`dangling '\'`)
			}
			p.push(token{char: escaped})
		default:
			p.push(token{char: c})
		}
	}
	if len(p.alternatives) > 1 {
		return p.fail("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
	}
	return nil
}

// stars reads what follows a star.
func (p *parser) stars() {
	prev := p.prev
	if p.pos == 1 {
		prev = ""
	}
	if p.peek() != "*" {
		p.push(token{op: star})
		return
	}
	p.next()
	after := p.peek()
	list := p.tokens()
	nested := len(p.alternatives) > 1
	if len(*list) == 0 && (after == "" || after == "/") {
		p.push(token{op: recursivePrefix})
		p.next()
		return
	}
	if len(*list) == 0 || prev != "/" && !(nested && (prev == "," || prev == "{")) {
		p.push(token{op: star})
		return
	}
	last := after == "" || nested && (after == "," || after == "}")
	if !last && after != "/" {
		p.push(token{op: star})
		return
	}
	if !last {
		p.next()
	}
	before := &(*list)[len(*list)-1]
	switch {
	case before.op == recursivePrefix || before.op == recursiveSuffix:
	case last:
		*before = token{op: recursiveSuffix}
	default:
		*before = token{op: recursiveMiddle}
	}
}

// class reads a class whose opening bracket has been read.
func (p *parser) class() error {
	type span struct{ lo, hi string }
	var spans []span
	start := p.pos
	negated := p.peek() == "!" || p.peek() == "^"
	if negated {
		p.next()
	}
	first, inRange := true, false
	for {
		c, ok := p.next()
		if !ok && p.openClass {
			p.pos = start
			p.push(token{char: "["})
			return nil
		}
		if !ok {
			return p.fail("unclosed character class; missing ']'")
		}
		if c == "]" && !first {
			break
		}
		switch {
		case c == "-" && !first && !inRange:
			inRange = true
			continue
		case inRange:
			s := &spans[len(spans)-1]
			if s.hi = c; s.hi < s.lo {
				return p.fail(fmt.Sprintf("invalid range; '%s' > '%s'", s.lo, s.hi))
			}
			inRange = false
		default:
			spans = append(spans, span{c, c})
		}
		first = false
	}
	if inRange { // the dash came last
		spans = append(spans, span{"-", "-"})
	}
	set := new([256]bool)
	for _, s := range spans {
		// Classes are of bytes: a character beyond ASCII counts as its bytes.
		lo, hi := s.lo, s.hi
		for i := range len(lo) {
			set[lo[i]] = true
		}
		if lo != hi {
			for b := int(lo[len(lo)-1]); b <= int(hi[0]); b++ {
				set[b] = true
			}
			for i := range len(hi) {
				set[hi[i]] = true
			}
		}
	}
	p.push(token{op: class, set: set, not: negated})
	return nil
}
