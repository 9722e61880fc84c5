package lineregex

import (
	"errors"
	"math/bits"
	"slices"
	"unicode"
)

// program is an automaton for an expression: it moves over the symbols of a
// line. Symbols that no part of the expression tells apart are one class.
type program struct {
	insts []inst
	start uint32

	classes int
	ascii   [128]uint8 // class of each ASCII symbol
	bounds  []rune     // where runs of symbols of one class begin, ascending
	class   []uint8    // class of each run
	// What a class is to word boundaries.
	kind     []kind
	hasWords bool
	// sets by class: member[i] has bit c when class c is in set i.
	member [][4]uint64
}

type inst struct {
	op   instOp
	arg  uint32 // instSet: index into member; instLook: the condition
	out  uint32
	out2 uint32 // instSplit
}

type instOp uint8

const (
	instMatch instOp = iota
	instSplit
	instSet
	instLook
	instFail
)

// kind is what a symbol is to the conditions at its side.
type kind uint8

const (
	kindOther kind = iota
	kindWord       // a letter or digit beyond ASCII
	kindASCII      // one of ASCII
	kindEdge       // the start or the end of the line
)

// lineFeedClass is the class of the line feed, which stands for the end of the
// line as well.
const lineFeedClass = 0

const (
	maxInsts   = 1 << 16
	maxClasses = 256
)

// ErrTooBig refuses an expression whose automaton would be too large.
var ErrTooBig = errors.New("regex parse error: compiled regex exceeds size limit: use smaller repetition counts, or a simpler expression")

type compiler struct {
	prog program
	sets []set
	set  map[*node]int // index in sets of what repetitions meet again; -1 for nothing
}

func compile(n *node) (_ *program, err error) {
	c := &compiler{set: map[*node]int{}}
	defer func() {
		if r := recover(); r == ErrTooBig {
			err = ErrTooBig
		} else if r != nil {
			panic(r)
		}
	}()
	match := c.emit(inst{op: instMatch})
	c.prog.start = c.node(n, match)
	if err := c.classify(); err != nil {
		return nil, err
	}
	return &c.prog, nil
}

func (c *compiler) emit(i inst) uint32 {
	if len(c.prog.insts) >= maxInsts {
		panic(ErrTooBig)
	}
	c.prog.insts = append(c.prog.insts, i)
	return uint32(len(c.prog.insts) - 1)
}

// node makes the instructions of n, which go on at next, and returns the first.
func (c *compiler) node(n *node, next uint32) uint32 {
	switch n.op {
	case opConcat:
		for _, sub := range slices.Backward(n.subs) {
			next = c.node(sub, next)
		}
		return next
	case opAlternate:
		first := c.node(n.subs[len(n.subs)-1], next)
		for _, sub := range slices.Backward(n.subs[:len(n.subs)-1]) {
			first = c.emit(inst{op: instSplit, out: c.node(sub, next), out2: first})
		}
		return first
	case opSet:
		at, known := c.set[n]
		if !known {
			at = c.addSet(n.set)
			c.set[n] = at
		}
		if at < 0 {
			return c.emit(inst{op: instFail})
		}
		return c.emit(inst{op: instSet, arg: uint32(at), out: next})
	case opLook:
		c.prog.hasWords = c.prog.hasWords || n.look >= wordBoundary
		return c.emit(inst{op: instLook, arg: uint32(n.look), out: next})
	case opRepeat:
		return c.repeat(n, next)
	}
	panic("lineregex: unknown node")
}

// addSet is the index of a set, -1 for the empty one.
func (c *compiler) addSet(s set) int {
	if len(s) == 0 {
		return -1
	}
	at := slices.IndexFunc(c.sets, func(o set) bool { return slices.Equal(o, s) })
	if at < 0 {
		at = len(c.sets)
		c.sets = append(c.sets, s)
	}
	return at
}

func (c *compiler) repeat(n *node, next uint32) uint32 {
	sub := n.subs[0]
	if n.max < 0 {
		loop := c.emit(inst{op: instSplit, out2: next})
		first := c.node(sub, loop)
		c.prog.insts[loop].out = first
		next = loop
		if n.min > 0 {
			next = first
		}
	} else {
		end := next
		for range n.max - n.min {
			next = c.emit(inst{op: instSplit, out: c.node(sub, next), out2: end})
		}
	}
	times := n.min
	if n.max < 0 {
		times = max(0, n.min-1)
	}
	for range times {
		before := len(c.prog.insts)
		next = c.node(sub, next)
		if len(c.prog.insts) == before {
			break // the empty match, as often as one likes
		}
	}
	return next
}

// classify cuts the symbols into classes.
func (c *compiler) classify() error {
	p := &c.prog
	sets := slices.Clone(c.sets)
	if p.hasWords {
		sets = append(sets, words(true), words(false))
	}
	cuts := []rune{0, '\n', '\n' + 1}
	for _, s := range sets {
		for _, sp := range s {
			cuts = append(cuts, sp.lo, sp.hi+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	known := map[string]uint8{}
	p.member = make([][4]uint64, len(c.sets))
	next := make([]int, len(sets)) // the first span of each set that may still count
	signature := make([]byte, (len(sets)+7)/8+1)
	for _, r := range cuts {
		if r > maxSymbol {
			break
		}
		clear(signature)
		for i, s := range sets {
			for next[i] < len(s) && s[next[i]].hi < r {
				next[i]++
			}
			if next[i] < len(s) && s[next[i]].lo <= r {
				signature[i/8] |= 1 << (i % 8)
			}
		}
		if r == '\n' {
			signature[len(signature)-1] = 1
		}
		id, ok := known[string(signature)]
		if !ok && r == '\n' {
			id = lineFeedClass
		} else if !ok {
			if p.classes+1 >= maxClasses {
				return ErrTooBig
			}
			p.classes++
			id = uint8(p.classes)
		}
		if !ok {
			known[string(signature)] = id
			for i := range c.sets {
				if signature[i/8]>>(i%8)&1 != 0 {
					p.member[i][id/64] |= 1 << (id % 64)
				}
			}
		}
		p.bounds = append(p.bounds, r)
		p.class = append(p.class, id)
	}
	p.classes++
	p.kind = make([]kind, p.classes)
	p.kind[lineFeedClass] = kindEdge
	for i, r := range p.bounds {
		if r == '\n' || !p.hasWords {
			continue
		}
		if sets[len(c.sets)].has(r) {
			p.kind[p.class[i]] = kindASCII
		} else if sets[len(c.sets)+1].has(r) {
			p.kind[p.class[i]] = kindWord
		}
	}
	for r := range rune(128) {
		p.ascii[r] = p.classOf(r)
	}
	return nil
}

// classOf is the class of a symbol.
func (p *program) classOf(r rune) uint8 {
	i, found := slices.BinarySearch(p.bounds, r)
	if !found {
		i--
	}
	return p.class[i]
}

// holds tells whether a condition is met between symbols of two kinds.
func (l look) holds(before, after kind) bool {
	switch l {
	case lineStart:
		return before == kindEdge
	case lineEnd:
		return after == kindEdge
	}
	word := func(k kind) bool { return k == kindASCII || k == kindWord && l&asciiLook == 0 }
	b, a := word(before), word(after)
	switch l &^ asciiLook {
	case wordBoundary:
		return b != a
	case notWordBoundary:
		return b == a
	case wordStart:
		return !b && a
	case wordEnd:
		return b && !a
	case wordStartHalf:
		return !b
	case wordEndHalf:
		return !a
	}
	panic("lineregex: unknown condition")
}

// singleASCII is the one ASCII symbol of a set, or the letter whose two cases
// it holds. fold tells which.
func (s set) singleASCII() (b byte, fold, ok bool) {
	switch {
	case len(s) == 1 && s[0].lo == s[0].hi && s[0].lo <= unicode.MaxASCII:
		return byte(s[0].lo), false, true
	case len(s) == 2 && s[0].lo == s[0].hi && s[1].lo == s[1].hi && s[1].lo <= unicode.MaxASCII &&
		s[1].lo == s[0].lo|0x20 && bits.OnesCount32(uint32(s[0].lo^s[1].lo)) == 1 && unicode.IsLetter(s[1].lo):
		return byte(s[1].lo), true, true
	}
	return 0, false, false
}
