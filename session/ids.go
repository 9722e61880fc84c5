package session

import (
	"hash/maphash"
	"math/bits"
)

// ids finds entries by their ids, of several with one id the last. It holds
// places in the list of entries only: in a long session a map, which holds the
// ids as well, would take several times as much.
type ids struct {
	seed     maphash.Seed
	slots    []slot
	distinct int // ids that are in it
	entries  int // entries that are, more than distinct when some ids are not unique
}

// slot is where an id is found by its hash, or at the next free place. Of the
// hash it keeps enough that the entries of others are hardly ever looked at.
type slot struct {
	hash  uint32
	place uint32 // in the list + 1, 0 for none
}

// room makes the table ready for n entries.
func (t *ids) room(n int) {
	if 2*n <= len(t.slots) {
		return
	}
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
	}
	old := t.slots
	t.slots = make([]slot, max(64, 1<<bits.Len(uint(2*n-1))))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.place == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].place != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// slot is where the place of an id is, or where it would be.
func (t *ids) slot(id string, order []*Entry) (s *slot, hash uint32) {
	mask := uint32(len(t.slots) - 1)
	hash = uint32(maphash.String(t.seed, id))
	for i := hash & mask; ; i = (i + 1) & mask {
		s = &t.slots[i]
		if s.place == 0 || s.hash == hash && order[s.place-1].ID == id {
			return s, hash
		}
	}
}

// add takes in an entry that has an id and is in the list.
func (t *ids) add(e *Entry, order []*Entry) {
	t.room(t.distinct + 1)
	s, hash := t.slot(e.ID, order)
	if s.place == 0 {
		t.distinct++
	}
	s.hash, s.place = hash, uint32(e.index)+1
	t.entries++
}

// find is the entry with an id, nil for none.
func (s *Session) find(id string) *Entry {
	if id == "" || s.ids.distinct == 0 {
		return nil
	}
	if at, _ := s.ids.slot(id, s.order); at.place > 0 {
		return s.order[at.place-1]
	}
	return nil
}
