package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session/jsonl"
)

// writeSession writes a session of n entries, about 430 bytes each, in the
// rhythm of a coding session: question, answer with a call, result, answer. A
// compaction that keeps the last kept entries ends it, none for kept < 0. With
// sorted the members stand in the order of the alphabet, as some programs write
// them.
func writeSession(tb testing.TB, path string, n, kept int, sorted bool) (size int64) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	defer func() {
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			tb.Fatal(err)
		}
		size = info.Size()
		f.Close()
	}()
	object := func(members ...string) string {
		if sorted {
			members = slices.Sorted(slices.Values(members))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	usage := `"usage":` + object(`"input":10`, `"output":20`, `"cacheRead":30`, `"cacheWrite":0`, `"totalTokens":60`,
		`"cost":`+object(`"input":0.1`, `"output":0.2`, `"cacheRead":0`, `"cacheWrite":0`, `"total":0.3`))
	from := []string{`"api":"anthropic-messages"`, `"provider":"acme"`, `"model":"m"`, usage, `"timestamp":1772352001000`}
	text := func(s string) string { return `"content":[` + object(`"type":"text"`, `"text":"`+s+`"`) + `]` }
	fmt.Fprintln(w, `{"type":"session","version":3,"id":"long","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}`)
	parent := "null"
	entry := func(i int, typ string, members ...string) {
		all := append([]string{`"type":"` + typ + `"`, fmt.Sprintf(`"id":"%08x"`, i), `"parentId":` + parent, `"timestamp":"2026-03-01T08:00:01.000Z"`}, members...)
		fmt.Fprintln(w, object(all...))
		parent = fmt.Sprintf(`"%08x"`, i)
	}
	for i := range n {
		var members []string
		switch i % 4 {
		case 0:
			members = []string{`"role":"user"`, text("question " + strings.Repeat("please look ", 20)), `"timestamp":1772352001000`}
		case 1:
			members = append([]string{`"role":"assistant"`, `"content":[` + object(`"type":"toolCall"`, fmt.Sprintf(`"id":"toolu_%d"`, i), `"name":"note"`, `"arguments":{"text":"a.go"}`) + `]`,
				`"stopReason":"toolUse"`}, from...)
		case 2:
			members = []string{`"role":"toolResult"`, fmt.Sprintf(`"toolCallId":"toolu_%d"`, i-1), `"toolName":"note"`,
				text(strings.Repeat(`line of code\n`, 20)), `"isError":false`, `"timestamp":1772352001000`}
		default:
			members = append([]string{`"role":"assistant"`, text("done"), `"stopReason":"stop"`}, from...)
		}
		entry(i, "message", `"message":`+object(members...))
	}
	if kept >= 0 {
		entry(n, "compaction", `"summary":"so far"`, fmt.Sprintf(`"firstKeptEntryId":"%08x"`, n-kept), `"tokensBefore":1000`)
	}
	return size
}

// resume opens the session at path and has one prompt answered.
func resume(tb testing.TB, path string) (sent int64) {
	sess, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	h := converse(tb, &anthropicFormat, &service{
		answer: func(int) io.Reader { return anthropicFormat.text(1) },
		asked:  func(_ int, size int64) { sent += size },
	}, sess)
	m, err := h.Prompt(context.Background(), "go on")
	finished(tb, m, err)
	if err := h.Close(); err != nil {
		tb.Fatal(err)
	}
	return sent
}

// A session that is resumed is read once and encoded once: what it allocates is
// the log, the messages and the request.
func TestResumeBudget(t *testing.T) {
	const entries = 8_000
	for _, sorted := range []bool{false, true} {
		t.Run(fmt.Sprintf("sorted=%v", sorted), func(t *testing.T) {
			dir := t.TempDir()
			small, long := filepath.Join(dir, "small.jsonl"), filepath.Join(dir, "long.jsonl")
			writeSession(t, small, 40, -1, sorted)
			size := writeSession(t, long, entries, -1, sorted)
			resume(t, small)
			base := count(func() { resume(t, small) })
			var sent int64
			got := count(func() { sent = resume(t, long) })
			if sent < size/4 {
				t.Fatalf("a request of %d bytes for a log of %d", sent, size)
			}
			if per := (float64(got.mallocs) - float64(base.mallocs)) / entries; per > 6 {
				t.Errorf("%.2f allocations per entry, the budget is 6", per)
			}
			if ratio := float64(got.bytes-base.bytes) / float64(size); ratio > 4 {
				t.Errorf("%.2f bytes allocated for each byte of the log, the budget is 4", ratio)
			}
		})
	}
}

// Of a compacted session only what the compaction kept is decoded.
func TestCompactedResumeBudget(t *testing.T) {
	const entries = 8_000
	dir := t.TempDir()
	short, long := filepath.Join(dir, "short.jsonl"), filepath.Join(dir, "long.jsonl")
	writeSession(t, short, 40, 20, false)
	size := writeSession(t, long, entries, 20, false)
	resume(t, short)
	base := count(func() { resume(t, short) })
	var sent int64
	got := count(func() { sent = resume(t, long) })
	if sent > 16<<10 {
		t.Errorf("a request of %d bytes for 20 kept entries", sent)
	}
	if per := (float64(got.mallocs) - float64(base.mallocs)) / entries; per > 0.05 {
		t.Errorf("%.3f allocations per entry that is not needed, the budget is 0.05", per)
	}
	if ratio := float64(got.bytes-base.bytes) / float64(size); ratio > 1 {
		t.Errorf("%.2f bytes allocated for each byte of the log, the budget is 1", ratio)
	}
}

// worked is a session of a size as much work makes them: turns with a tool whose
// output has so many bytes, a branch that was left now and then, and a
// compaction for every tail bytes.
func worked(tb testing.TB, path string, size, output, tail int) (entries int) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	at, since := 0, 0
	put := func(format string, args ...any) {
		n, _ := fmt.Fprintf(w, format+"\n", args...)
		at += n
	}
	put(`{"type":"session","version":3,"id":"long","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}`)
	parent := "null"
	entry := func(typ, members string) string {
		id := fmt.Sprintf("%08x", uint32(entries)*2654435761)
		entries++
		put(`{"type":%q,"id":%q,"parentId":%s,"timestamp":"2026-03-01T08:00:01.000Z",%s}`, typ, id, parent, members)
		parent = `"` + id + `"`
		return id
	}
	const line = `\tif err := run(\"all of it\"); err != nil {\n\t\treturn err // – once\n\t}\n`
	text := strings.Repeat(line, 1+output/len(line))
	const usage = `"api":"anthropic-messages","provider":"acme","model":"m","usage":{"input":10,"output":20,"cacheRead":30,"cacheWrite":0,"totalTokens":60,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}}`
	for turn := 0; at < size; turn++ {
		asked := entry("message", `"message":{"role":"user","content":"please look","timestamp":1772352001000}`)
		entry("message", fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_%d","name":"note","arguments":{"text":"a.go"}}],%s,"stopReason":"toolUse","timestamp":1772352001000}`, turn, usage))
		entry("message", fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":"toolu_%d","toolName":"note","content":[{"type":"text","text":"%s"}],"isError":false,"timestamp":1772352001000}`, turn, text))
		left := parent
		if entry("message", `"message":{"role":"assistant","content":[{"type":"text","text":"done"}],`+usage+`,"stopReason":"stop","timestamp":1772352001000}`); turn%16 == 1 {
			parent = left
		}
		if at-since > tail {
			since = at
			entry("compaction", fmt.Sprintf(`"summary":"so far","firstKeptEntryId":%q,"tokensBefore":1000`, asked))
		}
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	return entries
}

// Of a session of 128 MB (with -long; 16 MB otherwise) a resume keeps where its
// entries stand, and reads what the next request needs.
func TestLargeResumeBudget(t *testing.T) {
	size := 16 << 20
	if *long {
		size = 128 << 20
	}
	const tail = 1 << 20
	for _, output := range []int{100, 50_000} {
		t.Run(fmt.Sprintf("output=%d", output), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "large.jsonl")
			entries := worked(t, path, size, output, tail)
			var sent int64
			got := count(func() { sent = resume(t, path) })
			if sent == 0 || sent > 2*tail {
				t.Errorf("a request of %d bytes where a compaction came after every %d", sent, tail)
			}
			t.Logf("%d entries in %d bytes: %d bytes and %d allocations", entries, size, got.bytes, got.mallocs)
			// The tail is read, decoded, encoded and sent.
			if budget := uint64(10*tail + 250*entries); got.bytes > budget {
				t.Errorf("%d bytes allocated, the budget is ten tails and 250 for each entry, %d", got.bytes, budget)
			}
			if budget := uint64(20_000 + entries/20); got.mallocs > budget {
				t.Errorf("%d allocations, the budget is %d", got.mallocs, budget)
			}
		})
	}
}

// BenchmarkResume resumes a session of 100,000 entries, 43 MB, as it is and
// compacted.
func BenchmarkResume(b *testing.B) {
	for _, kept := range []int{-1, 50} {
		name := "whole"
		if kept >= 0 {
			name = "compacted"
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			from, path := filepath.Join(dir, "from.jsonl"), filepath.Join(dir, "long.jsonl")
			size := writeSession(b, from, 100_000, kept, false)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer() // a resumed session goes on, so each is a copy
				data, err := os.ReadFile(from)
				if err == nil {
					err = os.WriteFile(path, data, 0o600)
				}
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				resume(b, path)
			}
		})
	}
}
