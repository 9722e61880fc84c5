package lineregex

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a part of a parsed expression. Which of several ways a part matches
// does not matter to a search for lines, so groups leave no trace and lazy
// repetitions are like greedy ones.
type node struct {
	op       op
	set      set     // opSet
	look     look    // opLook
	subs     []*node // opConcat, opAlternate; one for opRepeat
	min, max int     // opRepeat; max -1 for no bound
}

type op uint8

const (
	opConcat op = iota // of nothing: the empty match
	opAlternate
	opSet // of nothing: no match
	opLook
	opRepeat
)

// look is a condition on the place between two symbols.
type look uint8

const (
	lineStart look = iota
	lineEnd
	wordBoundary
	notWordBoundary
	wordStart
	wordEnd
	wordStartHalf
	wordEndHalf

	asciiLook look = 1 << 3 // the word condition is about ASCII
)

// A SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Pattern string
	Problem string
	Start   int // byte offsets into Pattern
	End     int
}

// Error shows the expression with the place marked below it.
func (e *SyntaxError) Error() string {
	if strings.ContainsAny(e.Pattern, "\n\r") {
		return fmt.Sprintf("regex parse error:\n    %q\nerror: %s", e.Pattern, e.Problem)
	}
	marks := max(1, utf8.RuneCountInString(e.Pattern[e.Start:e.End]))
	return "regex parse error:\n    " + e.Pattern + "\n    " +
		strings.Repeat(" ", utf8.RuneCountInString(e.Pattern[:e.Start])) + strings.Repeat("^", marks) +
		"\nerror: " + e.Problem
}

// The problems of what other dialects have.
const (
	lookAround    = "look-around, including look-ahead and look-behind, is not supported"
	backReference = "backreferences are not supported"
)

// Unsupported reports whether another dialect would take the expression: it has
// look-around or a back reference.
func (e *SyntaxError) Unsupported() bool {
	return e.Problem == lookAround || e.Problem == backReference
}

// ErrLineFeed refuses an expression that asks for more than a line.
var ErrLineFeed = errors.New(`the literal '"\n"' is not allowed in a regex`)

// flags are what (?imsuUxR) set.
type flags struct {
	fold, ascii, verbose, crlf bool
}

type parser struct {
	src   string
	pos   int
	flags flags
	depth int
	names map[string]bool
	// properties are those met so far, and the classes of letters such as \w.
	properties map[string]set
}

const maxDepth = 250 // of nested groups and classes

// fail stops the parser with a problem at src[start:end].
func (p *parser) fail(start, end int, problem string) {
	panic(&SyntaxError{p.src, problem, start, end})
}

func parse(pattern string, fold bool) (n *node, err error) {
	p := &parser{src: pattern, flags: flags{fold: fold}, names: map[string]bool{}, properties: map[string]set{}}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SyntaxError:
			err = r
		case lineFeed:
			err = ErrLineFeed
		default:
			panic(r)
		}
	}()
	if !utf8.ValidString(pattern) {
		return nil, errors.New("regex parse error: the pattern is not valid UTF-8")
	}
	n = p.alternation()
	if p.more() {
		p.fail(p.pos, p.pos+1, "unopened group")
	}
	return n, nil
}

type lineFeed struct{}

func (p *parser) more() bool { return p.pos < len(p.src) }

// peek is the next character, -1 at the end.
func (p *parser) peek() rune {
	if !p.more() {
		return -1
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	return r
}

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r
}

func (p *parser) accept(s string) bool {
	if strings.HasPrefix(p.src[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// skipSpace passes what a verbose expression does not count.
func (p *parser) skipSpace() {
	for p.flags.verbose && p.more() {
		r := p.peek()
		if r == '#' {
			for p.more() && p.next() != '\n' {
			}
		} else if unicode.Is(unicode.Pattern_White_Space, r) {
			p.next()
		} else {
			return
		}
	}
}

func (p *parser) alternation() *node {
	alt := &node{op: opAlternate}
	for {
		alt.subs = append(alt.subs, p.concat())
		if !p.accept("|") {
			break
		}
	}
	if len(alt.subs) == 1 {
		return alt.subs[0]
	}
	return alt
}

func (p *parser) concat() *node {
	cat := &node{}
	repeated := 0 // how often the last part is repeated already
	for {
		p.skipSpace()
		start := p.pos
		switch p.peek() {
		case -1, '|', ')':
			if len(cat.subs) == 1 {
				return cat.subs[0]
			}
			return cat
		case '*', '+', '?', '{':
			if len(cat.subs) == 0 {
				p.fail(start, start+1, "repetition operator missing expression")
			}
			last := &cat.subs[len(cat.subs)-1]
			*last = p.repeat(*last)
			if repeated++; p.depth+repeated > maxDepth {
				p.fail(start, p.pos, "exceeds the depth to which groups can be nested")
			}
			continue
		case '(':
			if n := p.group(); n != nil {
				cat.subs = append(cat.subs, n)
			}
		default:
			cat.subs = append(cat.subs, p.atom())
		}
		repeated = 0
	}
}

func (p *parser) repeat(sub *node) *node {
	start := p.pos
	n := &node{op: opRepeat, subs: []*node{sub}, max: -1}
	switch p.next() {
	case '+':
		n.min = 1
	case '?':
		n.max = 1
	case '{':
		n.min = p.count(start)
		n.max = n.min
		p.skipSpace()
		if p.accept(",") {
			n.max = -1
			p.skipSpace()
			if p.peek() != '}' {
				n.max = p.count(start)
			}
		}
		p.skipSpace()
		if !p.accept("}") {
			p.fail(start, start+1, "unclosed counted repetition")
		}
		if n.max >= 0 && n.max < n.min {
			p.fail(start, p.pos, "invalid repetition count range, the start must be <= the end")
		}
	}
	p.accept("?")
	return n
}

// countSpace passes spaces beside a number, which count nowhere.
func (p *parser) countSpace() {
	for p.more() && unicode.IsSpace(p.peek()) {
		p.next()
	}
}

// count reads a number of a counted repetition that opened at open.
func (p *parser) count(open int) int {
	p.countSpace()
	defer p.countSpace()
	if !p.more() {
		p.fail(open, open+1, "unclosed counted repetition")
	}
	start := p.pos
	for p.more() && p.peek() >= '0' && p.peek() <= '9' {
		p.pos++
	}
	if start == p.pos {
		p.fail(start, start+1, "repetition quantifier expects a valid decimal")
	}
	n, err := strconv.ParseInt(p.src[start:p.pos], 10, 32)
	if err != nil {
		p.fail(start, p.pos, "decimal literal invalid")
	}
	return int(n)
}

// group reads what starts with a parenthesis; nil for flags that hold for the
// rest of the group around.
func (p *parser) group() *node {
	start := p.pos
	p.next()
	for _, s := range [...]string{"?=", "?!", "?<=", "?<!"} {
		if strings.HasPrefix(p.src[p.pos:], s) {
			p.fail(start, p.pos+len(s), lookAround)
		}
	}
	outer := p.flags
	switch {
	case p.accept("?P<"), p.accept("?<"):
		p.name()
	case p.accept("?"):
		if p.setFlags(start) {
			return nil
		}
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(start, start+1, "exceeds the depth to which groups can be nested")
	}
	n := p.alternation()
	p.depth--
	if !p.accept(")") {
		p.fail(start, start+1, "unclosed group")
	}
	p.flags = outer
	return n
}

func (p *parser) name() {
	start := p.pos
	end := strings.IndexByte(p.src[start:], '>')
	if end < 0 {
		p.fail(len(p.src), len(p.src), "unclosed capture group name")
	}
	name := p.src[start : start+end]
	if name == "" {
		p.fail(start, start, "empty capture group name")
	}
	for i, r := range name {
		letter := r == '_' || unicode.IsLetter(r)
		if !letter && (i == 0 || !unicode.IsDigit(r) && r != '.' && r != '[' && r != ']') {
			p.fail(start+i, start+i+utf8.RuneLen(r), "invalid capture group character")
		}
	}
	if p.names[name] {
		p.fail(start, start+end, "duplicate capture group name")
	}
	p.names[name] = true
	p.pos += end + 1
}

// setFlags reads flags up to their end and reports whether that was a
// parenthesis, not the colon of a group.
func (p *parser) setFlags(open int) bool {
	f := p.flags
	on := true
	first, dangling := p.pos, false
	for {
		start := p.pos
		if !p.more() {
			p.fail(start, start, "expected flag but got end of regex")
		}
		r := p.next()
		switch r {
		case ':', ')':
			if dangling {
				p.fail(start-1, start, "dangling flag negation operator")
			}
			if r == ')' && start == first {
				p.fail(open+1, open+2, "repetition operator missing expression")
			}
			p.flags = f
			return r == ')'
		case '-':
			if !on {
				p.fail(start, p.pos, "flag negation operator repeated")
			}
			on, dangling = false, true
			continue
		case 'i':
			f.fold = on
		case 'm', 's', 'U': // a line is all there is and has no line feeds; greed does not matter
		case 'u':
			f.ascii = !on
		case 'x':
			f.verbose = on
		case 'R':
			f.crlf = on
		default:
			p.fail(start, p.pos, "unrecognized flag")
		}
		dangling = false
	}
}

func (p *parser) atom() *node {
	start := p.pos
	switch r := p.next(); r {
	case '.':
		s := p.everything()
		if p.flags.crlf {
			s = s.intersect(set{{'\r', '\r'}}.not(maxSymbol))
		}
		return setNode(s)
	case '^':
		return &node{op: opLook, look: lineStart}
	case '$':
		end := &node{op: opLook, look: lineEnd}
		if p.flags.crlf {
			cr := &node{op: opRepeat, max: 1, subs: []*node{{op: opSet, set: set{{'\r', '\r'}}}}}
			return &node{subs: []*node{cr, end}}
		}
		return end
	case '[':
		p.pos = start
		return setNode(p.class())
	case '\\':
		p.pos = start
		return p.escape()
	default:
		return p.literal(r)
	}
}

// everything is what a dot matches: every symbol that is whole. Without
// Unicode it is every byte.
func (p *parser) everything() set {
	last := rune(unicode.MaxRune)
	if p.flags.ascii {
		last = maxSymbol
	}
	return set{{'\n', '\n'}}.not(last)
}

// negate is everything that is not in a set.
func (p *parser) negate(s set) set {
	if p.flags.ascii {
		return s.not(maxSymbol)
	}
	return s.not(unicode.MaxRune)
}

// setNode is a node of a class. One of the line feed alone is that literal; among
// other symbols it is left out, as it is in no line.
func setNode(s set) *node {
	lf := set{{'\n', '\n'}}
	if slices.Equal(s, lf) {
		panic(lineFeed{})
	}
	return &node{op: opSet, set: s.intersect(lf.not(maxSymbol))}
}

func (p *parser) literal(r rune) *node {
	if r == '\n' {
		panic(lineFeed{})
	}
	s := set{{r, r}}
	if p.flags.fold && r < badByte {
		s = s.fold(p.flags.ascii)
	}
	return &node{op: opSet, set: s}
}

func (p *parser) escape() *node {
	start := p.pos
	if s := p.classEscape(); s != nil {
		return setNode(s)
	}
	p.next()
	ascii := look(0)
	if p.flags.ascii {
		ascii = asciiLook
	}
	at := func(l look) *node { return &node{op: opLook, look: l} }
	switch r := p.peek(); r {
	case 'A':
		p.next()
		return at(lineStart)
	case 'z':
		p.next()
		return at(lineEnd)
	case 'b':
		p.next()
		for _, w := range [...]struct {
			name string
			look look
		}{{"{start}", wordStart}, {"{end}", wordEnd}, {"{start-half}", wordStartHalf}, {"{end-half}", wordEndHalf}} {
			if p.accept(w.name) {
				return at(w.look | ascii)
			}
		}
		return at(wordBoundary | ascii)
	case 'B':
		p.next()
		return at(notWordBoundary | ascii)
	case '<':
		p.next()
		return at(wordStart | ascii)
	case '>':
		p.next()
		return at(wordEnd | ascii)
	}
	p.pos = start
	return p.literal(p.charEscape())
}

// classEscape reads an escape that stands for a class; nil for another one,
// which stays unread.
func (p *parser) classEscape() set {
	start := p.pos
	p.next()
	ascii := p.flags.ascii
	var s set
	r := p.peek()
	switch kind := unicode.ToLower(r); kind {
	case 'd', 's', 'w':
		s = p.perl(kind, ascii)
	case 'p':
		p.next()
		return p.property(start, r == 'P')
	default:
		p.pos = start
		return nil
	}
	p.next()
	if unicode.IsUpper(r) {
		s = p.negate(s)
	}
	return s
}

// perl is what \d, \s or \w stands for.
func (p *parser) perl(kind rune, ascii bool) set {
	key := fmt.Sprintf("\\%c %t", kind, ascii)
	s, known := p.properties[key]
	if !known {
		s = map[rune]func(bool) set{'d': digits, 's': spaces, 'w': words}[kind](ascii)
		p.properties[key] = s
	}
	return s
}

func (p *parser) property(start int, negated bool) set {
	var name string
	if !p.more() {
		p.fail(start, p.pos, "incomplete escape sequence, reached end of pattern prematurely")
	}
	if r := p.next(); r == '{' {
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			p.fail(len(p.src), len(p.src), "incomplete escape sequence, reached end of pattern prematurely")
		}
		name = p.src[p.pos : p.pos+end]
		p.pos += end + 1
	} else {
		name = string(r)
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, negated = rest, !negated
	}
	if before, after, ok := strings.Cut(name, "!="); ok {
		name, negated = before+"="+after, !negated
	}
	if p.flags.ascii {
		p.fail(start, p.pos, "Unicode not allowed here")
	}
	key := name
	if p.flags.fold {
		key += " folded"
	}
	s, known := p.properties[key]
	if !known {
		if s = property(name); s == nil {
			p.fail(start, p.pos, "Unicode property not found")
		}
		if p.flags.fold {
			s = s.fold(false)
		}
		p.properties[key] = s
	}
	if negated {
		s = p.negate(s)
	}
	return s
}

// charEscape reads an escape that stands for one symbol.
func (p *parser) charEscape() rune {
	start := p.pos
	p.next()
	if !p.more() {
		p.fail(start, p.pos, "incomplete escape sequence, reached end of pattern prematurely")
	}
	switch r := p.next(); r {
	case 'a':
		return '\a'
	case 'f':
		return '\f'
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'v':
		return '\v'
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	case 'U':
		return p.hex(8)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		p.fail(start, p.pos, backReference)
	default:
		// Everything in ASCII that is neither a letter nor a digit may be
		// escaped; < and > stand for word boundaries.
		if r < utf8.RuneSelf && !unicode.IsLetter(r) && r != '<' && r != '>' {
			return r
		}
	}
	p.fail(start, p.pos, "unrecognized escape sequence")
	return 0
}

func (p *parser) hex(digits int) rune {
	start := p.pos
	end := start + digits
	next := end
	if p.accept("{") {
		start = p.pos
		n := strings.IndexByte(p.src[start:], '}')
		if n < 0 {
			p.fail(start, len(p.src), "incomplete escape sequence, reached end of pattern prematurely")
		}
		end = start + n
		next = end + 1
		if n == 0 {
			p.fail(start-1, next, "hexadecimal literal empty")
		}
	} else if end > len(p.src) {
		p.fail(start, len(p.src), "incomplete escape sequence, reached end of pattern prematurely")
	}
	v := rune(0)
	for at := start; at < end; {
		r, n := utf8.DecodeRuneInString(p.src[at:]) // of a character that is no digit all of it
		d, err := strconv.ParseUint(string(r), 16, 8)
		if err != nil {
			p.fail(at, at+n, "invalid hexadecimal digit")
		}
		at += n
		if v <= unicode.MaxRune {
			v = v<<4 | rune(d)
		}
	}
	if !utf8.ValidRune(v) {
		p.fail(start, end, "hexadecimal literal is not a Unicode scalar value")
	}
	p.pos = next
	if p.flags.ascii && v > unicode.MaxASCII && v <= 0xFF {
		return badByte + v
	}
	return v
}
