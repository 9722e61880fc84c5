package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/pinch-agent/pinch/session/jsonl"
)

// turns resumes a session of n entries and runs so many turns, each with one
// call of a tool. It returns what each turn allocated, the request's own body
// aside.
func turns(tb testing.TB, f *format, n, turns int) (mallocs, bytes []int64) {
	path := filepath.Join(tb.TempDir(), "session.jsonl")
	writeSession(tb, path, n, -1, false)
	sess, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var last runtime.MemStats
	var body int64
	h := converse(tb, f, &service{
		answer: func(i int) io.Reader {
			if i == turns {
				return f.text(1)
			}
			return f.call(fmt.Sprintf("toolu_new_%d", i), 1)
		},
		asked: func(i int, size int64) {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			if i > 0 {
				// The body that was made since the last look is this one.
				mallocs = append(mallocs, int64(now.Mallocs-last.Mallocs))
				bytes = append(bytes, int64(now.TotalAlloc-last.TotalAlloc)-size)
			}
			body = max(body, size)
			runtime.ReadMemStats(&last)
		},
	}, sess)
	m, err := h.Prompt(context.Background(), "go on")
	finished(tb, m, err)
	if body < int64(n)*100 {
		tb.Fatalf("a body of %d bytes for %d entries", body, n)
	}
	if err := h.Close(); err != nil {
		tb.Fatal(err)
	}
	return mallocs, bytes
}

func median(list []int64) int64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// A turn allocates and encodes the same in a short and in a long session. Only
// the body is longer, whose stored parts are copied, unless the server keeps the
// conversation.
func TestTurnBudget(t *testing.T) {
	threads := anthropicFormat
	threads.compat = `{"supportsMessageThreads":true}`
	for _, f := range append(formats[:len(formats):len(formats)], namedFormat{"threads", &threads}) {
		t.Run(f.name, func(t *testing.T) {
			const n = 24
			turns(t, f.format, 12, n)
			shortMallocs, shortBytes := turns(t, f.format, 12, n)
			longMallocs, longBytes := turns(t, f.format, 10_000, n)
			if a, b := median(shortMallocs), median(longMallocs); b > a+a/50+1 {
				t.Errorf("a turn makes %d allocations after 12 entries, %d after 10,000", a, b)
			} else if a > 250 {
				t.Errorf("a turn makes %d allocations, the budget is 250", a)
			}
			// The memory of a body ends with a page, and may have a little room.
			const pages = 2 * 8192
			if a, b := median(shortBytes), median(longBytes); b > a+pages {
				t.Errorf("a turn allocates %d bytes beside its request after 12 entries, %d after 10,000", a, b)
			}
		})
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{12, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "session.jsonl")
			writeSession(b, path, n, -1, false)
			sess, err := jsonl.Open(path, jsonl.Options{})
			if err != nil {
				b.Fatal(err)
			}
			calls := 0
			h := converse(b, &anthropicFormat, &service{answer: func(int) io.Reader {
				if calls++; calls%2 == 0 {
					return anthropicFormat.text(1)
				}
				return anthropicFormat.call(fmt.Sprintf("toolu_new_%d", calls), 1)
			}}, sess)
			b.ReportAllocs()
			for b.Loop() { // two turns each
				m, err := h.Prompt(context.Background(), "go on")
				finished(b, m, err)
			}
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
