package harness_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// deltas streams an answer of n deltas and allocates only to begin and to end.
type deltas struct {
	m    *llm.Assistant
	text *llm.Text
	n    int
}

func (d *deltas) Next() (llm.Event, bool) {
	switch {
	case d.m.StopReason == "":
		d.m.StopReason = llm.StopPending
		return llm.Event{Type: llm.EventStart, Partial: d.m}, true
	case d.n > 0:
		d.n--
		return llm.Event{Type: llm.EventTextDelta, Delta: "word ", Partial: d.m}, true
	case d.m.StopReason == llm.StopPending:
		d.m.StopReason = llm.StopStop
		return llm.Event{Type: llm.EventDone, Message: d.m}, true
	}
	return llm.Event{}, false
}

func (*deltas) Close() {}

func deltaHarness(tb testing.TB, n *int) *harness.Harness {
	h, err := harness.New(harness.Options{
		Model: &llm.Model{ID: "m", Provider: "p"},
		Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
			text := &llm.Text{}
			return llm.NewStream(&deltas{m: &llm.Assistant{Content: []llm.Block{text}, Model: "m", Provider: "p"}, text: text, n: *n}), nil
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close() })
	h.Subscribe(func(context.Context, harness.Event) error { return nil })
	return h
}

// A delta allocates nothing on its way to the listeners.
func TestDeltaAllocatesNothing(t *testing.T) {
	n := 0
	h := deltaHarness(t, &n)
	allocs := func(deltas int) float64 {
		n = deltas
		return testing.AllocsPerRun(5, func() {
			if _, err := h.Prompt(context.Background(), "go"); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocs(10), allocs(10_000); many > few+50 {
		t.Errorf("%v allocations with 10 deltas, %v with 10,000", few, many)
	}
}

func BenchmarkDelta(b *testing.B) {
	n := b.N
	h := deltaHarness(b, &n)
	b.ReportAllocs()
	if _, err := h.Prompt(context.Background(), "go"); err != nil {
		b.Fatal(err)
	}
}

// longSession is a conversation of n answers.
func longSession(tb testing.TB, n int) *session.Session {
	s, err := memory.Open(session.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		if _, err := s.AppendMessage(llm.UserText("question", int64(i))); err != nil {
			tb.Fatal(err)
		}
		if _, err := s.AppendMessage(&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "answer"}}, StopReason: llm.StopStop}); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// BenchmarkTurn is a turn with one tool call in sessions of growing length.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{10, 1000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			left := 0
			h, err := harness.New(harness.Options{
				Model: &llm.Model{ID: "m", Provider: "p"}, Session: longSession(b, n), Tools: []*agent.Tool{ping()},
				Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
					m := &llm.Assistant{Content: []llm.Block{&llm.Text{Text: "x"}}, Model: "m", Provider: "p"}
					if left--; left > 0 {
						m.Content = append(m.Content, &llm.ToolCall{ID: fmt.Sprint("c", left), Name: "ping", Arguments: []byte("{}")})
					}
					return llm.NewStream(&deltas{m: m}), nil
				},
			})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			left = 2
			if _, err := h.Prompt(context.Background(), "warm up"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			left = b.N
			if _, err := h.Prompt(context.Background(), "go"); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// counted counts what goes into a journal.
type counted struct {
	*jsonl.Store
	bytes int64
}

func (c *counted) AppendJournal(lines []byte, fresh bool) error {
	c.bytes += int64(len(lines))
	return c.Store.AppendJournal(lines, fresh)
}

// BenchmarkDurableTurn is a turn with one tool call in a session file, with the
// journal of the run and without it.
func BenchmarkDurableTurn(b *testing.B) {
	for _, size := range []int{100, 50_000} {
		for _, journal := range []bool{false, true} {
			b.Run(fmt.Sprintf("result=%d/journal=%v", size, journal), func(b *testing.B) {
				store := &counted{Store: jsonl.NewStore(filepath.Join(b.TempDir(), "s.jsonl"), jsonl.Options{})}
				var st session.Store = store
				if !journal {
					st = struct{ session.Store }{store}
				}
				s, err := session.Open(st, session.Options{})
				if err != nil {
					b.Fatal(err)
				}
				text := strings.Repeat("a line of output\n", size/17)
				left := 0
				h, err := harness.New(harness.Options{
					Model: &llm.Model{ID: "m", Provider: "p"}, Session: s,
					Tools: []*agent.Tool{toolOf("ping", func(context.Context) (string, error) { return text, nil })},
					Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
						m := &llm.Assistant{Content: []llm.Block{&llm.Text{Text: "x"}}, Model: "m", Provider: "p"}
						if left--; left > 0 {
							m.Content = append(m.Content, &llm.ToolCall{ID: fmt.Sprint("c", left), Name: "ping", Arguments: []byte("{}")})
						}
						return llm.NewStream(&deltas{m: m}), nil
					},
				})
				if err != nil {
					b.Fatal(err)
				}
				defer h.Close()
				b.ReportAllocs()
				b.ResetTimer()
				left = b.N + 1
				if _, err := h.Prompt(context.Background(), "go"); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(store.bytes)/float64(b.N), "journal-B/op")
			})
		}
	}
}
