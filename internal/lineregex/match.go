package lineregex

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// matcher runs a program over text by states that it makes as they are met and
// remembers: sets of instructions that may come next. Each symbol costs one
// look into a table.
type matcher struct {
	prog   *program
	stride int
	next   []int32 // by state*stride + class: the state after, or one of the marks below
	states []state
	byKey  map[string]int32
	size   int // instructions held by states

	// Scratch of step.
	stack   []uint32
	seen    []uint32 // generation in which an instruction was visited
	visit   uint32
	reached []uint32
	key     []byte
}

type state struct {
	insts  []uint32 // sorted; before the conditions that lead on from them
	before kind     // of the symbol before
}

// Marks in matcher.next instead of a state.
const (
	unknown int32 = -1
	matched int32 = -2
)

// What a matcher remembers at most. Beyond it starts afresh.
const (
	maxStates     = 10_000
	maxStateInsts = 1 << 20
)

// atLineStart is the state in which every line starts.
const atLineStart int32 = 0

func newMatcher(p *program) *matcher {
	m := &matcher{prog: p, stride: p.classes, seen: make([]uint32, len(p.insts))}
	m.forget()
	return m
}

func (m *matcher) forget() {
	m.next, m.states, m.size = m.next[:0], m.states[:0], 0
	m.byKey = map[string]int32{}
	m.intern(nil, kindEdge)
}

// intern is the offset of a state in next.
func (m *matcher) intern(insts []uint32, before kind) int32 {
	m.key = append(m.key[:0], byte(before))
	for _, i := range insts {
		m.key = binary.LittleEndian.AppendUint32(m.key, i)
	}
	if s, ok := m.byKey[string(m.key)]; ok {
		return s
	}
	s := int32(len(m.next))
	m.states = append(m.states, state{slices.Clone(insts), before})
	m.size += len(insts) + 8
	for range m.stride {
		m.next = append(m.next, unknown)
	}
	m.byKey[string(m.key)] = s
	return s
}

// step is the state after s for a symbol of class c, or matched. The state that
// was given may be forgotten.
func (m *matcher) step(s int32, c uint8) int32 {
	if n := m.next[s+int32(c)]; n != unknown {
		return n
	}
	from := m.states[int(s)/m.stride]
	if m.visit++; m.visit == 0 {
		clear(m.seen)
		m.visit = 1
	}
	after := m.prog.kind[c]
	m.reached = m.reached[:0]
	m.stack = append(m.stack[:0], m.prog.start) // a match may start anywhere
	m.stack = append(m.stack, from.insts...)
	word, bit := c/64, uint64(1)<<(c%64)
	for len(m.stack) > 0 {
		at := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if m.seen[at] == m.visit {
			continue
		}
		m.seen[at] = m.visit
		switch in := m.prog.insts[at]; in.op {
		case instMatch:
			m.next[s+int32(c)] = matched
			return matched
		case instSplit:
			m.stack = append(m.stack, in.out2, in.out)
		case instLook:
			if look(in.arg).holds(from.before, after) {
				m.stack = append(m.stack, in.out)
			}
		case instSet:
			if m.prog.member[in.arg][word]&bit != 0 {
				m.reached = append(m.reached, in.out)
			}
		}
	}
	if c == lineFeedClass {
		m.next[s+int32(c)] = atLineStart
		return atLineStart
	}
	if !m.prog.hasWords {
		after = kindOther
	}
	slices.Sort(m.reached)
	m.reached = slices.Compact(m.reached)
	if len(m.states) >= maxStates || m.size >= maxStateInsts {
		m.forget()
		return m.intern(m.reached, after)
	}
	n := m.intern(m.reached, after)
	m.next[s+int32(c)] = n
	return n
}

// run goes over text from a state. It returns the state behind, or matched and
// an offset inside the line that matches, its line feed included.
func (m *matcher) run(s int32, text []byte) (int32, int) {
	ascii := &m.prog.ascii
	next := m.next
	for i := 0; i < len(text); {
		b := text[i]
		var c uint8
		n := 1
		if b < utf8.RuneSelf {
			c = ascii[b]
		} else {
			c, n = m.wide(text[i:])
		}
		to := next[s+int32(c)]
		if to < 0 {
			if to == unknown {
				to = m.step(s, c)
				next = m.next
			}
			if to == matched {
				return matched, i
			}
		}
		s = to
		i += n
	}
	return s, len(text)
}

// wide is the class and length of a symbol beyond ASCII.
func (m *matcher) wide(text []byte) (uint8, int) {
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		r = badByte + rune(text[0])
	}
	return m.prog.classOf(r), n
}

// line tells whether a line, without its line feed, matches.
func (m *matcher) line(line []byte) bool {
	s, _ := m.run(atLineStart, line)
	return s == matched || m.step(s, lineFeedClass) == matched
}

// firstLine is the first line of text that matches, without its line feed.
func (m *matcher) firstLine(text []byte) (start, end int, ok bool) {
	s, at := m.run(atLineStart, text)
	if s != matched {
		if len(text) == 0 || text[len(text)-1] == '\n' || m.step(s, lineFeedClass) != matched {
			return 0, 0, false
		}
		at = len(text)
	}
	start, end = lineAt(text, at)
	return start, end, true
}

// lineAt is the line of text around an offset, which may be that of its line
// feed.
func lineAt(text []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(text[:at], '\n') + 1
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return start, at + n
	}
	return start, len(text)
}
