package session_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// inPieces is a store whose log is read in pieces.
type inPieces struct{ *memory.Store }

func (s inPieces) Load() (session.Log, error) {
	log, err := s.Store.Load()
	log.Reader, log.Size, log.Data = bytes.NewReader(log.Data), int64(len(log.Data)), nil
	return log, err
}

// looks is what a session shows of itself.
func looks(s *session.Session) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.LeafID(), s.Name())
	for _, e := range s.Entries() {
		fmt.Fprintln(&b, e.ID, e.ParentID, e.Type, e.Role(), string(e.Raw()), s.Label(e.ID), s.Entry(e.ID) == e)
	}
	for _, e := range s.Path() {
		fmt.Fprint(&b, e.ID, " ")
	}
	c := s.Context()
	fmt.Fprintln(&b, messages(c), c.Model, c.ThinkingLevel, s.Stats())
	return b.String()
}

func messages(c session.Context) string {
	var b []byte
	for _, m := range c.Messages {
		b = append(m.AppendJSON(b), '\n')
	}
	return string(b)
}

// intact is a log without the lines that are none.
func intact(log []byte) []byte {
	var out []byte
	for _, raw := range session.Lines(log) {
		out = append(append(out, raw...), '\n')
	}
	return out
}

// checkDamaged opens a log whose entries count by their beginnings, and expects
// of it what a log without the damaged lines shows.
func checkDamaged(t *testing.T, log []byte, first func(*session.Session)) {
	t.Helper()
	read, err := session.Open(memory.NewFrom(intact(log)), options())
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]session.Store{"in pieces": inPieces{memory.NewFrom(log)}, "in memory": memory.NewFrom(log)} {
		s, err := session.Open(store, options())
		if err != nil {
			t.Fatal(err)
		}
		first(s)
		if got, want := s.LeafID(), read.LeafID(); got != want {
			t.Fatalf("%s: the leaf is %q, want %q\n%s", name, got, want, log)
		}
		if got, want := messages(s.Context()), messages(read.Context()); got != want {
			t.Fatalf("%s: the context is\n%swant\n%s\n%s", name, got, want, log)
		}
		if got, want := looks(s), looks(read); got != want {
			t.Fatalf("%s:\n%swant\n%s\n%s", name, got, want, log)
		}
		if e := say(t, s, "after"); s.Leaf() != e || len(s.Entries()) != len(read.Entries())+1 {
			t.Fatalf("%s: an append got lost", name)
		}
	}
}

// TestDamageBehindTheBeginning cuts, changes and doubles members of lines in
// every way that leaves their beginnings as they were.
func TestDamageBehindTheBeginning(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		log := []byte(header)
		parent := ""
		n := 2 + r.IntN(7)
		for i := range n {
			id := fmt.Sprint("e", r.IntN(n))
			line := entry(id, parent, fmt.Sprint("text } ", i))
			switch r.IntN(8) {
			case 0:
				line = compaction(id, parent, fmt.Sprint("e", r.IntN(n)))
			case 1:
				line = strings.Replace(line, "}\n", `,"id":"other"}`+"\n", 1)
			case 2:
				line = strings.Replace(line, `"user"`, `"assistant","provider":"p","model":"m`+fmt.Sprint(i)+`"`, 1)
			case 3:
				line = strings.Replace(line, "}\n", `,"message":{"role":"user","content":"second"}}`+"\n", 1)
			}
			switch head := strings.Index(line, "00Z"); r.IntN(6) {
			case 0:
				line = line[:head+r.IntN(len(line)-head)] + "}\n"
			case 1:
				at := head + 5 + r.IntN(len(line)-head-6)
				line = line[:at] + string(`"}{\:,x`[r.IntN(7)]) + line[at+1:]
			}
			log = append(log, line...)
			if r.IntN(5) > 0 {
				parent = id
			}
		}
		checkDamaged(t, log, [...]func(*session.Session){
			func(*session.Session) {},
			func(s *session.Session) { s.Path() },
			func(s *session.Session) { s.Entry("e1") },
			func(s *session.Session) { s.Stats() },
			func(s *session.Session) {
				for _, e := range slices.Backward(s.PathTo("e0")) {
					e.Data()
				}
			},
		}[r.IntN(5)])
	}
}

// compaction is a line of a compaction that keeps from an entry on.
func compaction(id, parent, kept string) string {
	line := strings.Replace(entry(id, parent, ""), `"type":"message"`, `"type":"compaction"`, 1)
	at := strings.Index(line, `,"message"`)
	return line[:at] + fmt.Sprintf(`,"summary":"so far %s","firstKeptEntryId":%q,"tokensBefore":1}`, id, kept) + "\n"
}
