package jsonl_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// writeLong writes a session of n entries, about 430 bytes each, in the rhythm
// of a coding session: question, answer with a call, result, answer.
func writeLong(tb testing.TB, path string, n int) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	defer w.Flush()
	fmt.Fprintln(w, `{"type":"session","version":3,"id":"long","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}`)
	const usage = `{"input":10,"output":20,"cacheRead":30,"cacheWrite":0,"totalTokens":60,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}}`
	parent := "null"
	for i := range n {
		var message string
		switch i % 4 {
		case 0:
			message = fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"question %d %s"}],"timestamp":1772352001000}`, i, strings.Repeat("please look ", 30))
		case 1:
			message = fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"a.go"}}],"api":"mock-api","provider":"acme","model":"alpha-1","usage":%s,"stopReason":"toolUse","timestamp":1772352001000}`, i, usage)
		case 2:
			message = fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":"%s"}],"isError":false,"timestamp":1772352001000}`, i-1, strings.Repeat(`line of code\n`, 18))
		default:
			message = fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"done %d"}],"api":"mock-api","provider":"acme","model":"alpha-1","usage":%s,"stopReason":"stop","timestamp":1772352001000}`, i, usage)
		}
		fmt.Fprintf(w, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-03-01T08:00:01.000Z","message":%s}`+"\n", i, parent, message)
		parent = fmt.Sprintf(`"%08x"`, i)
	}
}

// BenchmarkOpen opens a session of 100,000 entries, 43 MB.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "long.jsonl")
	writeLong(b, path, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		s, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkResume opens a session of 100,000 entries of which a compaction kept
// the last 50, and makes its context.
func BenchmarkResume(b *testing.B) {
	path := filepath.Join(b.TempDir(), "long.jsonl")
	writeLong(b, path, 100_000)
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Append(&session.CompactionEntry{Summary: "so far", FirstKept: fmt.Sprintf("%08x", 100_000-50), TokensBefore: 1}); err != nil {
		b.Fatal(err)
	}
	s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if n := len(s.Context().Messages); n != 51 {
			b.Fatal(n)
		}
		s.Close()
	}
}

// BenchmarkAppend appends a message to a long session and asks for the context.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s.jsonl")
			writeLong(b, path, n)
			s, err := jsonl.Open(path, jsonl.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			s.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.AppendMessage(llm.UserText("one more question", time.Now().UnixMilli())); err != nil {
					b.Fatal(err)
				}
				s.Context()
			}
		})
	}
}

// BenchmarkList lists a folder of 1,000 sessions of 40 entries, with the texts of
// all at once, without, and the newest ten.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		writeLong(b, filepath.Join(dir, fmt.Sprintf("%04d.jsonl", i)), 40)
	}
	r := &jsonl.Repository{Folder: dir}
	ctx := context.Background()
	bench := func(name string, want int, list func() int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := list(); n != want {
					b.Fatal(n)
				}
			}
		})
	}
	bench("List", 1000, func() int { l, _ := r.ListAll(ctx, nil); return len(l) })
	bench("Search", 1000, func() int { l, _ := r.Search(ctx, session.Query{}, jsonl.SearchOptions{}); return len(l) })
	bench("Recent", 10, func() int {
		n := 0
		for range r.Recent(ctx, "") {
			if n++; n == 10 {
				break
			}
		}
		return n
	})
}
