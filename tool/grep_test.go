package tool

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/lineregex"
	"github.com/pinch-agent/pinch/llm"
)

// ask runs a tool and gives its text, or its error's.
func ask(t *testing.T, tool *agent.Tool, args string) string {
	t.Helper()
	r, err := tool.Execute(context.Background(), agent.Call{Args: jsontext.Value(args)})
	if err != nil {
		return "error: " + err.Error()
	}
	return llm.TextOf(r.Content, "")
}

func searchTree(t *testing.T, files map[string]string) *env.Local {
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return &env.Local{Dir: dir, Home: t.TempDir()}
}

// slowly is what a search of a text must give, line by line.
func slowly(re *lineregex.Regexp, name, text string, around, limit int) (string, bool) {
	var lines []string
	for l := range strings.Lines(text) {
		lines = append(lines, l)
	}
	shown := make([]byte, len(lines))
	matches, more, due := 0, false, 0
	for i, l := range lines {
		s := re.Searcher()
		s.Search([]byte(strings.TrimSuffix(l, "\n")))
		_, _, ok := s.Next()
		if l == "\n" {
			s.StartLine()
			ok = s.EndLine()
		}
		switch {
		case ok && matches < limit:
			matches++
			for k := max(0, i-around); k < i; k++ {
				if shown[k] == 0 {
					shown[k] = '-'
				}
			}
			shown[i], due = ':', around
		case due > 0:
			shown[i], due = '-', due-1
			fallthrough
		default:
			more = more || ok
		}
	}
	var out []string
	for i, l := range lines {
		if shown[i] != 0 {
			if rest, ok := strings.CutSuffix(l, "\n"); ok {
				l = strings.TrimSuffix(rest, "\r")
			}
			text, _ := appendClipped(nil, []byte(l))
			out = append(out, fmt.Sprintf("%s%c%d%c %s", name, shown[i], i+1, shown[i], text))
		}
	}
	return strings.Join(out, "\n"), more
}

// A file that is read in small pieces, some lines longer than those, gives what
// a plain reading gives.
func TestFileSearchInPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	dir := t.TempDir()
	e := &env.Local{Dir: dir}
	for round := range 1000 {
		var text strings.Builder
		for range rnd.IntN(20) {
			for range rnd.IntN(12) {
				text.WriteString([]string{"a", "b", "hit", "é", " ", "\r", "\xff"}[rnd.IntN(7)])
			}
			if rnd.IntN(8) == 0 {
				text.WriteString(strings.Repeat("long", rnd.IntN(60)))
			}
			text.WriteString([]string{"\n", "\r\n"}[rnd.IntN(5)/4])
		}
		text.WriteString([]string{"", "hit", "b"}[rnd.IntN(3)])
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		pattern := []string{"hit", "a.*hit", "^$", "é$", "^b", "long(hit|a)", `\bhit\b`, "longlong.*b$"}[rnd.IntN(8)]
		re, err := lineregex.Compile(pattern, lineregex.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := &grep{fs: e, re: re, context: rnd.IntN(4)}
		s := newFileSearch(g, re.Searcher())
		s.size, s.longest = 1+rnd.IntN(40), 30+rnd.IntN(40)
		limit := 1 + rnd.IntN(6)
		got, err := s.search(context.Background(), file, "f", limit, rnd.IntN(2) == 0)
		if err != nil {
			t.Fatal(err)
		}
		want, more := slowly(re, "f", text.String(), g.context, limit)
		// Of a line that is too long for a piece and was passed by, nothing is
		// left to be shown before a match.
		if string(got.list.text) != want && !(g.context > 0 && strings.Contains(text.String(), "long")) || got.more != more {
			t.Fatalf("round %d: %q by %d in %q, %d around, limit %d:\ngot  %q %v\nwant %q %v", round, pattern, s.size, text.String(), g.context, limit, got.list.text, got.more, want, more)
		}
	}
}

func TestGrepOfOddFiles(t *testing.T) {
	utf16le := func(s string, order binary.AppendByteOrder) string {
		var b []byte
		for _, u := range utf16.Encode([]rune("\uFEFF" + s)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	block := strings.Repeat(strings.Repeat("x", 63)+"\n", 1024) // 64 KiB
	e := searchTree(t, map[string]string{
		"bom":         "\xEF\xBB\xBFhit bom\n",
		"utf16le":     utf16le("a\nhit 😀\n", binary.LittleEndian),
		"utf16be":     utf16le("hit é", binary.BigEndian),
		"nul":         "hit\n\x00",
		"late-nul":    "hit early\n" + block + block + "hit late\n\x00",
		"empty":       "",
		"one":         "hit",
		"cr":          "hit\rx\r\n",
		"last-cr":     "x\nhit\r",
		"bad\xffname": "hit\n",
	})
	grep := Grep(GrepOptions{Env: e})
	want := "bad\uFFFDname:1: hit\nbom:1: hit bom\ncr:1: hit\rx\nlast-cr:2: hit\r\nlate-nul:1: hit early\none:1: hit\nutf16be:1: hit é\nutf16le:2: hit 😀"
	if got := ask(t, grep, `{"pattern":"^hit"}`); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// A file that is named is searched whatever is in it.
	if got := ask(t, grep, `{"pattern":"hit","path":"nul"}`); got != "nul:1: hit" {
		t.Errorf("binary file: %q", got)
	}
}

// The same search gives the same result in the same order, whatever worker was
// first, also where the limit cuts it.
func TestGrepIsDeterministic(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("d%d/e%d/f%03d", i%7, i%3, i)] = strings.Repeat("a hit here\nnone\n", i%5)
	}
	grep := Grep(GrepOptions{Env: searchTree(t, files)})
	for _, args := range []string{`{"pattern":"hit","limit":57}`, `{"pattern":"hit","limit":100000}`, `{"pattern":"hit","limit":31,"context":1}`} {
		first := ask(t, grep, args)
		for range 10 {
			if got := ask(t, grep, args); got != first {
				t.Fatalf("%s: two results", args)
			}
		}
		if strings.Contains(args, "57") && (strings.Count(first, ": a hit") != 57 || !strings.HasSuffix(first, "[57 matches limit reached. Use limit=114 for more, or refine pattern]")) {
			t.Errorf("%s: %s", args, first)
		}
	}
}

// cancelling ends the context after some files and folders were opened.
type cancelling struct {
	*env.Local
	left   atomic.Int64
	cancel func()
}

func (c *cancelling) count() {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
}

func (c *cancelling) Open(ctx context.Context, path string) (env.File, error) {
	c.count()
	return c.Local.Open(ctx, path)
}

func (c *cancelling) Entries(ctx context.Context, path string) ([]env.Entry, error) {
	c.count()
	return c.Local.Entries(ctx, path)
}

// A cancelled search ends, and leaves nothing behind.
func TestCancelledSearch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = strings.Repeat("nothing\n", 100)
	}
	local := searchTree(t, files)
	for _, after := range []int{0, 1, 5, 50, 200} {
		ctx, cancel := context.WithCancel(context.Background())
		e := &cancelling{Local: local, cancel: cancel}
		e.left.Store(int64(after))
		for _, run := range []*agent.Tool{Grep(GrepOptions{Env: e}), Find(FindOptions{Env: e})} {
			e.left.Store(int64(after))
			_, err := run.Execute(ctx, agent.Call{Args: jsontext.Value(`{"pattern":"nowhere"}`)})
			if ctx.Err() != nil && (err == nil || err.Error() != errAborted.Error()) {
				t.Errorf("%s cancelled after %d: %v", run.Name, after, err)
			}
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, run := range []*agent.Tool{Grep(GrepOptions{Env: local}), Find(FindOptions{Env: local}), Ls(LsOptions{Env: local})} {
		if _, err := run.Execute(ctx, agent.Call{Args: jsontext.Value(`{"pattern":"x"}`)}); err == nil || err.Error() != errAborted.Error() {
			t.Errorf("%s: %v", run.Name, err)
		}
	}
}

// The memory that a search takes does not grow with files and lines.
func TestLongLinesAreNotKept(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("abcdefgh"), 128<<10) // 1 MiB
	size := 32
	if *long {
		size = 2048
	}
	for range size {
		if _, err := f.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	f.WriteString("needle\nnext needle\n")
	f.Close()
	e := &env.Local{Dir: dir}
	re, _ := lineregex.Compile("needle", lineregex.Options{})
	s := newFileSearch(&grep{fs: e, re: re, context: 1}, re.Searcher())
	r, err := s.search(context.Background(), filepath.Join(dir, "big"), "big", 10, false)
	if err != nil || r.matches != 2 || !r.clipped || cap(s.buf) > 2*longLine {
		t.Fatalf("%v, %d matches, %d bytes held", err, r.matches, cap(s.buf))
	}
	if text := string(r.list.text); !strings.HasPrefix(text, "big:1: abcdefgh") || !strings.HasSuffix(text, "... [truncated]\nbig:2: next needle") {
		t.Errorf("%.80q", text)
	}
}

func TestGrepErrors(t *testing.T) {
	grep := Grep(GrepOptions{Env: searchTree(t, map[string]string{"a": "x\n"})})
	for args, want := range map[string]string{
		`{"pattern":"a(?=b)"}`:           "look-around, including look-ahead and look-behind, is not supported\n\nConsider enabling PCRE2",
		`{"pattern":"(a)\\1"}`:           "backreferences are not supported\n\nConsider enabling PCRE2",
		`{"pattern":"(a{1000}){1000}"}`:  "exceeds size limit",
		`{"pattern":"a\\nb"}`:            `the literal '"\n"' is not allowed in a regex` + "\n\nConsider enabling multiline mode",
		`{"pattern":"x","glob":"["}`:     "error parsing glob '[': ",
		`{"pattern":"x","path":"none"}`:  "Path not found: ",
		`{"pattern":"x","path":"~/nix"}`: "Path not found: ",
	} {
		if got := ask(t, grep, args); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", args, got)
		}
	}
}
