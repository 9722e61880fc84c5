package bench

import (
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/pinch-agent/pinch/internal/cli/jsonmode"
	"github.com/pinch-agent/pinch/internal/cli/opening"
	"github.com/pinch-agent/pinch/internal/cli/record"
)

// counted is what a piece of work allocated.
type counted struct{ mallocs, bytes uint64 }

func count(work func()) counted {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return counted{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

// written is a writer that counts.
type written int64

func (w *written) Write(p []byte) (int, error) {
	*w += written(len(p))
	return len(p), nil
}

// tell runs one prompt in the JSON mode and returns how much it wrote.
func tell(tb testing.TB, f *format, answers ...io.Reader) int64 {
	h := converse(tb, f, &service{answer: func(n int) io.Reader { return answers[n] }}, nil)
	defer h.Close()
	var out written
	if err := jsonmode.Run(context.Background(), h, []opening.Prompt{{Text: "go on"}}, record.Current, &out); err != nil {
		tb.Fatal(err)
	}
	messages := h.Messages()
	if last := messages[len(messages)-1]; last.Role() != "assistant" {
		tb.Fatalf("the last message is one of role %s", last.Role())
	}
	return int64(out)
}

type namedFormat struct {
	name string
	*format
}

var formats = []namedFormat{{"anthropic", &anthropicFormat}, {"completions", &completionsFormat}}

// From the bytes of a service to the line that a JSON client reads, a delta
// allocates nothing of its own.
func TestDeltaBudget(t *testing.T) {
	const few, many = 1_000, 21_000
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			tell(t, f.format, f.text(few)) // first use builds what is built once
			short := count(func() { tell(t, f.format, f.text(few)) })
			long := count(func() {
				if n := tell(t, f.format, f.text(many)); n < many*int64(len(" a word or two")) {
					t.Errorf("%d bytes were written", n)
				}
			})
			if per := (float64(long.mallocs) - float64(short.mallocs)) / (many - few); per > 0.1 {
				t.Errorf("%.3f allocations per delta, the budget is 0.1", per)
			}
		})
	}
}

// The arguments of a call cost what their text is long: twice the text, twice
// the memory.
func TestToolArgumentsBudget(t *testing.T) {
	const deltas = 25_000 // 1 MB
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			run := func(n int) counted {
				return count(func() { tell(t, f.format, f.call("toolu_1", n), f.text(1)) })
			}
			run(10)
			none, one, two := run(10), run(deltas), run(2*deltas)
			if per := (float64(two.mallocs) - float64(none.mallocs)) / (2 * deltas); per > 0.1 {
				t.Errorf("%.3f allocations per delta, the budget is 0.1", per)
			}
			if one, two := one.bytes-none.bytes, two.bytes-none.bytes; two > 3*one { // buffers grow in steps
				t.Errorf("1 MB of arguments allocates %d bytes, 2 MB %d", one, two)
			}
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	const deltas = 20_000
	for _, f := range formats {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tell(b, f.format, f.text(deltas))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/delta")
		})
	}
}

func BenchmarkToolArguments(b *testing.B) {
	const deltas = 50_000 // 2 MB
	for _, f := range formats {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tell(b, f.format, f.call("toolu_1", deltas), f.text(1))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/delta")
		})
	}
}
