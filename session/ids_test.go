package session

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, room := range []int{0, 10, 1000} {
		var s Session
		if room > 0 {
			s.ids.room(room)
		}
		want := map[string]*Entry{}
		for i := range 3000 {
			id := strconv.Itoa(r.IntN(2000)) // some come again
			e := &Entry{ID: id, index: int32(i)}
			s.order = append(s.order, e)
			s.ids.add(e, s.order)
			want[id] = e
			if probe := strconv.Itoa(r.IntN(4000)); s.find(probe) != want[probe] {
				t.Fatalf("room %d: after %d entries, %s is not the last of its id", room, i+1, probe)
			}
		}
		if s.ids.distinct != len(want) || s.ids.entries != len(s.order) {
			t.Errorf("room %d: %d ids, %d entries; want %d and %d", room, s.ids.distinct, s.ids.entries, len(want), len(s.order))
		}
		if s.find("") != nil {
			t.Errorf("room %d: the empty id is found", room)
		}
	}
}
