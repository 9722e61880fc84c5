package wiretest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// Deltas is a body that begins with Start and then sends Event, one delta or a
// few, for ever.
type Deltas struct{ Start, Event string }

// Times is the body's beginning: Start and n times Event.
func (d Deltas) Times(n int) string { return d.Start + strings.Repeat(d.Event, n) }

type endless struct {
	Deltas
	at int // what of Event was read, in bytes
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.Start)
	e.Start = e.Start[n:]
	for n < len(p) {
		c := copy(p[n:], e.Event[e.at:])
		n += c
		e.at = (e.at + c) % len(e.Event)
	}
	return n, nil
}

// Open starts a stream whose request client answers.
type Open func(testing.TB, *http.Client) *llm.Stream

// next reads on to the next delta.
func next(t testing.TB, s *llm.Stream) {
	for {
		ev, ok := s.Next()
		if !ok || ev.Type == llm.EventError {
			t.Fatalf("the stream ended: %+v", ev.Message)
		}
		switch ev.Type {
		case llm.EventTextDelta, llm.EventThinkingDelta, llm.EventToolCallDelta:
			return
		}
	}
}

// BenchmarkDeltas measures a delta of each kind.
func BenchmarkDeltas(b *testing.B, kinds map[string]Deltas, open Open) {
	for name, d := range kinds {
		b.Run(name, func(b *testing.B) {
			s := open(b, Answers(&endless{Deltas: d}))
			defer s.Close()
			next(b, s)
			b.ReportAllocs()
			for b.Loop() {
				next(b, s)
			}
		})
	}
}

// DeltasAllocateNothing checks that only the text of an answer grows.
func DeltasAllocateNothing(t *testing.T, kinds map[string]Deltas, open Open) {
	const n = 20_000
	for name, d := range kinds {
		s := open(t, Answers(&endless{Deltas: d}))
		for range 10 {
			next(t, s)
		}
		allocs := testing.AllocsPerRun(1, func() {
			for range n {
				next(t, s)
			}
		})
		// Doubling buffers: a handful of allocations for any length.
		if allocs > 100 {
			t.Errorf("%s: %v allocations for %d deltas", name, allocs, n)
		}
		s.Close()
	}
}
