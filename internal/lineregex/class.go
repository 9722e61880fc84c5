package lineregex

import (
	"strings"
	"unicode"
)

// class reads a class in brackets.
func (p *parser) class() set {
	start := p.pos
	if p.depth++; p.depth > maxDepth {
		p.fail(start, start+1, "exceeds the depth to which groups can be nested")
	}
	s := p.classItems(start)
	p.depth--
	return s
}

func (p *parser) classItems(open int) set {
	p.next()
	p.skipSpace()
	negated := p.accept("^")
	var spans []span // of the operand so far, in no order
	most := 1024     // spans that are held before they are put in order
	add := func(s set) {
		if spans = append(spans, s...); len(spans) > most {
			spans = newSet(spans...)
			most = max(most, 2*len(spans))
		}
	}
	var left set   // what stands before the last operator
	operator := "" // the last operator; "" for none yet
	finish := func() {
		s := newSet(spans...)
		if p.flags.fold {
			s = s.fold(p.flags.ascii)
		}
		switch operator {
		case "":
			left = s
		case "&&":
			left = left.intersect(s)
		case "--":
			left = left.intersect(s.not(maxSymbol))
		case "~~":
			left = left.union(s).intersect(left.intersect(s).not(maxSymbol))
		}
		spans = nil
	}
	p.skipSpace()
	// Right after the opening, dashes and then one closing bracket are literal.
	for p.accept("-") {
		add(set{{'-', '-'}})
		p.skipSpace()
	}
	if len(spans) == 0 && p.accept("]") {
		add(set{{']', ']'}})
	}
	for {
		p.skipSpace()
		switch {
		case !p.more():
			p.fail(open, open+1, "unclosed character class")
		case p.accept("]"):
			finish()
			if negated {
				left = p.negate(left)
			}
			return left
		case strings.HasPrefix(p.src[p.pos:], "&&"), strings.HasPrefix(p.src[p.pos:], "--"), strings.HasPrefix(p.src[p.pos:], "~~"):
			finish()
			operator = p.src[p.pos : p.pos+2]
			p.pos += 2
		case p.peek() == '[':
			if named := p.posixClass(); named != nil {
				add(named)
			} else {
				add(p.class())
			}
		default:
			add(p.classRange(open))
		}
	}
}

// posixClass reads [:name:] and [:^name:]; nil for anything else, which stays
// unread.
func (p *parser) posixClass() set {
	rest, ok := strings.CutPrefix(p.src[p.pos:], "[:")
	if !ok {
		return nil
	}
	name, _, ok := strings.Cut(rest, ":]")
	if !ok {
		return nil
	}
	plain, negated := strings.CutPrefix(name, "^")
	s := posix(plain)
	if s == nil {
		return nil
	}
	p.pos += len("[:") + len(name) + len(":]")
	if p.flags.fold {
		s = s.fold(p.flags.ascii)
	}
	if negated {
		s = p.negate(s)
	}
	return s
}

// classRange reads one member of a class, or a range of them.
func (p *parser) classRange(open int) set {
	start := p.pos
	lo, class := p.classMember(open)
	hi, member := lo, p.pos
	p.skipSpace()
	rest := p.src[p.pos:]
	isRange := strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") && !strings.HasPrefix(rest, "--")
	switch {
	case class != nil && isRange:
		p.fail(start, member, "invalid range boundary, must be a literal")
	case class != nil:
		return class
	}
	if isRange {
		p.next()
		p.skipSpace()
		end := p.pos
		if hi, class = p.classMember(open); class != nil {
			p.fail(end, p.pos, "invalid range boundary, must be a literal")
		}
		if hi < lo {
			p.fail(start, p.pos, "invalid character class range, the start must be <= the end")
		}
	}
	return set{{lo, hi}}
}

// classMember reads one symbol of a class, or an escape that stands for a
// class.
func (p *parser) classMember(open int) (rune, set) {
	if !p.more() {
		p.fail(open, open+1, "unclosed character class")
	}
	if p.peek() != '\\' {
		return p.next(), nil
	}
	if s := p.classEscape(); s != nil {
		return 0, s
	}
	start := p.pos
	if len(p.src) > start+1 && unicode.IsLetter(rune(p.src[start+1])) && strings.ContainsRune("AzbB", rune(p.src[start+1])) {
		p.fail(start, start+2, "invalid escape sequence found in character class")
	}
	return p.charEscape(), nil
}
