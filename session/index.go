package session

import (
	"bytes"
	"math"
	"slices"
	"unsafe"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// A log is opened by the beginnings of its lines: where nearly every line says
// what places its entry. What such a line says behind that, and that it is JSON
// at all, is looked at when the line is read. Every entry that shows in a context
// is read for it, and whatever speaks of all entries has all lines read before;
// only the path in front of a kept tail, with the settings that may stand there,
// is known by beginnings alone until then. So a line that is no entry after all (a crash tore it, and its last
// byte happens to be a bracket) never shows: once one was met the index is made
// anew from whole lines.

// index finds the entries of the log by the beginnings of their lines.
func (s *Session) index() error {
	s.labels = map[string]label{}
	if err := s.scan(false, nil); err != nil {
		return err
	}
	if s.leaf != nil && !s.leaf.check() {
		s.reindex()
	}
	return s.log.failed()
}

// check reports whether the entry's line is as its beginning says.
func (e *Entry) check() bool {
	if e.byHead {
		e.load()
	}
	return !e.log.doubt.Load()
}

// readWhole reads all lines of the log that only their beginnings are known of.
// The lock is held for writing, here and below.
func (s *Session) readWhole() {
	if s.exact || s.log.failed() != nil {
		return
	}
	unread := func(e *Entry) bool { return e.byHead && e.decoded.Load() == nil }
	for e, raw := range rawLines(s.order[:s.loaded], defaultChunk, unread) {
		if raw == nil {
			return
		}
		e.isEntry(raw)
	}
	s.exact = true
	s.settleDoubt()
}

// settleDoubt makes the index anew when a line was not what it began like.
func (s *Session) settleDoubt() {
	if s.log.doubt.Load() {
		s.reindex()
	}
}

// reindex makes the index anew from whole lines. Where the log cannot be read it
// stays as it is.
func (s *Session) reindex() {
	known := make(map[int64]*Entry, s.loaded)
	for _, e := range s.order[:s.loaded] {
		known[e.at] = e
	}
	n := &Session{log: s.log, labels: map[string]label{}}
	if n.scan(true, known) != nil {
		return
	}
	for _, e := range s.order[s.loaded:] {
		n.add(e)
	}
	if s.leaf == nil || n.find(s.leaf.ID) == s.leaf {
		n.leaf = s.leaf
	}
	s.order, s.ids, s.leaf, s.loaded, s.exact = n.order, n.ids, n.leaf, n.loaded, true
	s.labels, s.labelNo, s.name, s.talks = n.labels, n.labelNo, n.name, n.talks
	s.view.valid, s.trail.list, s.tally = false, nil, tally{}
	s.log.doubt.Store(false)
}

// rlock locks for reading what is sure as far as it was read.
func (s *Session) rlock() {
	s.mu.RLock()
	if s.log.doubt.Load() {
		s.mu.RUnlock()
		s.mu.Lock()
		s.settleDoubt()
		s.mu.Unlock()
		s.mu.RLock()
	}
}

// rlockWhole locks for reading what is sure of all entries.
func (s *Session) rlockWhole() {
	s.mu.RLock()
	if !s.exact || s.log.doubt.Load() {
		s.mu.RUnlock()
		s.mu.Lock()
		s.readWhole()
		s.settleDoubt()
		s.mu.Unlock()
		s.mu.RLock()
	}
}

// findSure is find for an entry that somebody goes on from.
func (s *Session) findSure(id string) *Entry {
	e := s.find(id)
	if e != nil && !e.check() {
		s.reindex()
		e = s.find(id)
	}
	return e
}

// scan adds the entries of the log. With whole all lines are read, and entries
// that were known before, by their offsets, keep their pointers.
func (s *Session) scan(whole bool, known map[int64]*Entry) error {
	var (
		sc    scanner
		slab  []Entry
		names interned
		first = true
		next  int64 // behind the line before
	)
	for l, err := range s.log.lines() {
		if err != nil {
			return err
		}
		s.passed(next, l.at)
		next = l.at + int64(l.size)
		if l.size < 2 || len(l.head) > 0 && l.head[0] != '{' || l.last != '}' {
			continue
		}
		var h head
		var raw []byte
		usual := !whole && !first && h.read(l.head)
		typ := Type("")
		if usual {
			typ = names.typ(l.head[h.typ.from:h.typ.to])
			switch typ {
			case TypeMessage:
				usual = h.readMessage(l.head)
			case "session", TypeLabel, TypeInfo:
				usual = false // read below, as all of them are needed
			}
		}
		if !usual {
			if raw, err = l.whole(s.log); err != nil {
				return err
			}
			if !sc.read(raw) {
				continue
			}
			typ = names.typ([]byte(sc.typ))
		}
		if first {
			first = false
			continue
		}
		if typ == "session" {
			continue // later headers are no entries and say nothing
		}
		if e := known[l.at]; e != nil && sc.is(e) {
			s.place(e)
			continue
		}
		if len(slab) == cap(slab) {
			n := s.expect(l.at)
			slab = make([]Entry, 0, n)
			s.order = slices.Grow(s.order, n+n/16+64)
		}
		slab = slab[:len(slab)+1]
		e := &slab[len(slab)-1]
		e.log, e.at, e.size, e.Type, e.byHead = s.log, l.at, uint32(l.size), typ, usual
		if usual {
			e.ParentID, e.ID = names.parent(l.head[h.parent.from:h.parent.to]), names.id(l.head[h.id.from:h.id.to])
			e.role, e.message = names.role(l.head[h.role.from:h.role.to]), short(h.message)
		} else {
			e.ParentID, e.ID = names.parent([]byte(sc.parent)), names.id([]byte(sc.id))
			e.role, e.message = names.role([]byte(sc.role)), short(sc.message)
			if typ == TypeLabel || typ == TypeInfo {
				e.loadFrom(bytes.Clone(raw), &jsonwire.Reader{})
			}
		}
		s.place(e)
	}
	s.passed(next, s.log.size)
	// All at once, as looking up each in its turn would wait for the memory.
	s.ids.room(len(s.order) + len(s.order)/16)
	for _, e := range s.order {
		if e.ID != "" {
			s.ids.add(e, s.order)
		}
	}
	s.loaded, s.exact = len(s.order), whole
	return nil
}

// passed notes a gap between lines that can only be a line which is too long.
func (s *Session) passed(from, to int64) {
	if s.log.maxLine > 0 && to-from > s.log.maxLine {
		s.tooLong = true
	}
}

// expect guesses how many entries are still to come at an offset of the log from
// how many came before. Room that grows in few steps is what keeps the collector
// from marking a growing index over and over.
func (s *Session) expect(at int64) int {
	const first, factor = 128, 8
	n := int64(len(s.order))
	return int(max(first, min(n*(s.log.size-at)/max(at, 1)+n/64, n*factor)))
}

// short is the offset of a message, 0 when it is too far behind to be noted.
func short(offset int) uint16 {
	if offset > math.MaxUint16 {
		return 0
	}
	return uint16(offset)
}

// interned makes the strings of entries, which outlive the lines. Few differ
// but ids.
type interned struct {
	arena []byte
	last  string // id
	types map[string]Type
	roles map[string]llm.Role
}

func (n *interned) keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > cap(n.arena)-len(n.arena) {
		n.arena = make([]byte, 0, max(32<<10, len(b)))
	}
	from := len(n.arena)
	n.arena = append(n.arena, b...)
	return unsafe.String(&n.arena[from], len(b))
}

func (n *interned) id(b []byte) string {
	n.last = n.keep(b)
	return n.last
}

// parent is an id that nearly always is the one before.
func (n *interned) parent(b []byte) string {
	if string(b) == n.last {
		return n.last
	}
	return n.keep(b)
}

func (n *interned) typ(b []byte) Type {
	switch string(b) {
	case string(TypeMessage):
		return TypeMessage
	case string(TypeCompaction):
		return TypeCompaction
	}
	t, ok := n.types[string(b)]
	if !ok {
		if n.types == nil {
			n.types = map[string]Type{}
		}
		t = Type(b)
		n.types[string(t)] = t
	}
	return t
}

func (n *interned) role(b []byte) llm.Role {
	switch string(b) {
	case "":
		return ""
	case string(llm.RoleUser):
		return llm.RoleUser
	case string(llm.RoleAssistant):
		return llm.RoleAssistant
	case string(llm.RoleToolResult):
		return llm.RoleToolResult
	}
	r, ok := n.roles[string(b)]
	if !ok {
		if n.roles == nil {
			n.roles = map[string]llm.Role{}
		}
		r = llm.Role(b)
		n.roles[string(r)] = r
	}
	return r
}
