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
	slots    []uint32 // by hash, then the next free: place in the list + 1, 0 for none
	distinct int      // ids that are in it
	entries  int      // entries that are, more than distinct when some ids are not unique
}

// room makes the table ready for n entries.
func (t *ids) room(n int, order []*Entry) {
	if 2*n <= len(t.slots) {
		return
	}
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
	}
	old := t.slots
	t.slots = make([]uint32, max(64, 1<<bits.Len(uint(2*n-1))))
	for _, place := range old {
		if place > 0 {
			*t.slot(order[place-1].ID, order) = place
		}
	}
}

// slot is where the place of an id is, or where it would be.
func (t *ids) slot(id string, order []*Entry) *uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.String(t.seed, id) & mask; ; i = (i + 1) & mask {
		if p := t.slots[i]; p == 0 || order[p-1].ID == id {
			return &t.slots[i]
		}
	}
}

// add takes in an entry that has an id and is in the list.
func (t *ids) add(e *Entry, order []*Entry) {
	t.room(t.distinct+1, order)
	at := t.slot(e.ID, order)
	if *at == 0 {
		t.distinct++
	}
	*at = uint32(e.index) + 1
	t.entries++
}

// find is the entry with an id, nil for none.
func (s *Session) find(id string) *Entry {
	if id == "" || s.ids.distinct == 0 {
		return nil
	}
	if p := *s.ids.slot(id, s.order); p > 0 {
		return s.order[p-1]
	}
	return nil
}
