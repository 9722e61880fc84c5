package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// open is a session of these entries, below one another where they name no
// parent.
func open(t testing.TB, entries ...string) *session.Session {
	t.Helper()
	s, err := session.Open(memory.NewFrom([]byte(log(entries...))), session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const header = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work"}`

func log(entries ...string) string {
	lines := []string{header}
	parent := "null"
	for i, e := range entries {
		if !strings.Contains(e, `"parentId"`) {
			id := fmt.Sprintf("%q", fmt.Sprintf("e%d", i))
			e = fmt.Sprintf(`{"id":%s,"parentId":%s,"timestamp":"2026-01-02T03:04:06.000Z",%s`, id, parent, e[1:])
			parent = id
		}
		lines = append(lines, e)
	}
	return strings.Join(lines, "\n") + "\n"
}

func render(t testing.TB, s *session.Session, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	prompt = `{"type":"message","message":{"role":"user","content":[{"type":"text","text":"Why does  it\nfail?"}],"timestamp":1}}`
	answer = `{"type":"message","message":{"role":"assistant","provider":"p","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Let me see."},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"usage":{"input":1000,"output":20,"cacheRead":11000,"cacheWrite":0,"totalTokens":12020,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.125}},"stopReason":"toolUse","timestamp":2}}`
	result = `{"type":"message","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"a\nb"}],"isError":false,"timestamp":3}}`
	system = `{"type":"message","message":{"role":"system","content":"Be brief.","toolsAdded":[{"name":"bash","description":"Runs","parameters":{"type":"object"}}],"timestamp":1}}`
)

var dataBlock = regexp.MustCompile(`(?s)<script type="application/json" (?:id|class)="(\w+)">(.*?)</script>`)

// embedded is the data of a page: meta, rows of the index and the entries.
func embedded(t *testing.T, page string) (meta map[string]any, rows [][]any, entries []string) {
	t.Helper()
	for _, m := range dataBlock.FindAllStringSubmatch(page, -1) {
		var err error
		switch m[1] {
		case "meta":
			err = json.Unmarshal([]byte(m[2]), &meta)
		case "index":
			err = json.Unmarshal([]byte(m[2]), &rows)
		case "chunk":
			entries = append(entries, strings.Split(strings.Trim(m[2], "\n"), "\n")...)
		}
		if err != nil {
			t.Fatalf("%s: %v in %.200s", m[1], err, m[2])
		}
	}
	return meta, rows, entries
}

func TestPageHoldsTheSession(t *testing.T) {
	other := `{"type":"message","id":"x1","parentId":"e1","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"user","content":"other way"}}`
	lines := []string{system, prompt, answer, result, other,
		`{"type":"label","id":"x2","parentId":"x1","timestamp":"2026-01-02T03:04:08.000Z","targetId":"e1","label":"here"}`,
		`{"type":"custom_message","customType":"note","content":"quiet","display":false,"id":"x3","parentId":"x2","timestamp":"bad"}`,
		`{"type":"unheard_of","id":"x4","parentId":"gone","timestamp":"","n":1.50}`,
	}
	s := open(t, lines...)
	page := render(t, s, Options{})
	meta, rows, entries := embedded(t, page)
	if meta["title"] != "Why does it fail?" || meta["leafId"] != "x4" {
		t.Errorf("meta is %v", meta)
	}
	if h, _ := meta["header"].(map[string]any); h["id"] != "s1" {
		t.Errorf("the header is %v", meta["header"])
	}
	want := []string{
		`["e0",-1,"system",1767323046000,%d,"Be brief."]`,
		`["e1",0,"user",1767323046000,%d,"Why does it fail?"]`,
		`["e2",1,"assistant",1767323046000,%d,"Let me see.",["c1"]]`,
		`["e3",2,"toolResult",1767323046000,%d,"bash",["c1"]]`,
		`["x1",1,"user",1767323047000,%d,"other way"]`,
		`["x2",4,"label",1767323048000,%d,"here",["e1"]]`,
		`["x3",5,"custom_message",0,%d,"quiet",0]`,
		`["x4",-1,"unheard_of",0,%d,""]`,
	}
	if len(rows) != len(want) || len(entries) != len(want) {
		t.Fatalf("%d rows and %d entries, want %d", len(rows), len(entries), len(want))
	}
	for i, e := range s.Entries() {
		got, _ := json.Marshal(rows[i])
		if w := fmt.Sprintf(want[i], len(e.Raw())); string(got) != w {
			t.Errorf("row %d is %s, want %s", i, got, w)
		}
		if entries[i] != string(e.Raw()) {
			t.Errorf("entry %d is %s, want %s", i, entries[i], e.Raw())
		}
	}
	for _, fact := range []string{"<dd>p/m</dd>", "<dd>/work</dd>", "2 prompts, 1 answers, 1 tool calls", "12k in, 11k cached, 20 out", "<dd>$0.12</dd>", `<time datetime="2026-01-02T03:04:05Z">2026-01-02 03:04 UTC</time>`} {
		if !strings.Contains(page, fact) {
			t.Errorf("the head lacks %q", fact)
		}
	}
}

func TestSetup(t *testing.T) {
	s := open(t, system, prompt, answer)
	page := func(o Options) string {
		meta, _, _ := embedded(t, render(t, s, o))
		var names []any
		for _, tool := range meta["tools"].([]any) {
			names = append(names, tool.(map[string]any)["name"])
		}
		return fmt.Sprint(meta["systemPrompt"], names)
	}
	if got := page(Options{}); got != "Be brief.[bash]" {
		t.Errorf("of the session: %s", got)
	}
	if got := page(Options{SystemPrompt: "Now.", Tools: []llm.Tool{{Name: "grep"}}}); got != "Now.[grep]" {
		t.Errorf("of the agent: %s", got)
	}
	if got := page(Options{Tools: []llm.Tool{}}); got != "Be brief.[]" {
		t.Errorf("without tools: %s", got)
	}
}

// TestPolicy holds the page to its content security policy: nothing runs or
// applies but the two texts whose hashes it names, and nothing is fetched.
func TestPolicy(t *testing.T) {
	page := render(t, open(t, prompt), Options{})
	m := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("no policy")
	}
	if i := strings.Index(page, m[0]); strings.Contains(page[:i], "<script") || strings.Contains(page[:i], "<style") || strings.Contains(page[:i], "<link") {
		t.Error("something stands before the policy")
	}
	var running []string
	for _, s := range regexp.MustCompile(`(?s)<script([^>]*)>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(s[1], `type="application/json"`) {
			running = append(running, s[2])
		}
	}
	styles := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllStringSubmatch(page, -1)
	if len(running) != 1 || len(styles) != 1 {
		t.Fatalf("%d scripts and %d styles", len(running), len(styles))
	}
	for _, part := range []string{"default-src 'none'", "script-src " + hash(running[0]), "style-src " + hash(styles[0][1]), "img-src data:", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !slices.Contains(strings.Split(m[1], "; "), part) {
			t.Errorf("the policy %q lacks %q", m[1], part)
		}
	}
	if strings.Contains(m[1], "unsafe") || strings.Contains(m[1], "*") {
		t.Errorf("the policy is %q", m[1])
	}
	if found := regexp.MustCompile(`\b(fetch|XMLHttpRequest|WebSocket|EventSource|importScripts|sendBeacon|innerHTML|outerHTML|insertAdjacentHTML|eval|srcdoc)\b|document\.write|@import|\burl\(|\bimport\(`).FindString(page); found != "" {
		t.Errorf("the page uses %q", found)
	}
	for _, m := range regexp.MustCompile(`\s(?:src|href|action|srcset|poster|data)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "data:") {
			t.Errorf("the page points to %q", m[1])
		}
	}
}

// hostile are texts that a careless page would run.
var hostile = []string{
	`<script>attack()</script>`, `</script><script>attack()</script>`, `<!--<script>`, `-->`, `</noscript><script>attack()</script>`,
	`</title><img src=x onerror=attack()>`, `"onmouseover="attack()"`, `'onfocus='attack()`, `<style>@import url(https://evil.example)</style>`,
	`<base href=https://evil.example>`, `{{script}}`, `[x](javascript:attack())`, `![x](https://evil.example/p.png)`, "\u2028\x00\x1b]8;;javascript:attack()\a",
	"&lt;script&gt;", `\u003cscript\u003e`,
}

// everywhere is a session with a text in every place that takes one.
func everywhere(t testing.TB, text string) *session.Session {
	q := string(jsonwire.AppendString(nil, text))
	usual := `"id":%s,"parentId":%s,"timestamp":%[1]s,`
	var lines []string
	parent := "null"
	add := func(id, rest string) {
		lines = append(lines, "{"+fmt.Sprintf(usual, id, parent)+rest+"}")
		parent = id
	}
	add(q, `"type":"session_info","name":`+q)
	add(`"1"`, `"type":"model_change","provider":`+q+`,"modelId":`+q)
	add(`"2"`, `"type":"message","message":{"role":"system","content":`+q+`,"sections":{`+q+`:`+q+`},"toolsAdded":[{"name":`+q+`,"description":`+q+`,"parameters":{`+q+`:1}}]}`)
	add(`"3"`, `"type":"message","message":{"role":"user","content":[{"type":"text","text":`+q+`},{"type":"image","mimeType":`+q+`,"data":`+q+`}]}`)
	add(`"4"`, `"type":"message","message":{"role":"assistant","provider":`+q+`,"model":`+q+`,"content":[{"type":"text","text":`+q+`},{"type":"thinking","thinking":`+q+`},{"type":"toolCall","id":`+q+`,"name":`+q+`,"arguments":{`+q+`:`+q+`}}],"errorMessage":`+q+`}`)
	add(`"5"`, `"type":"message","message":{"role":"toolResult","toolCallId":`+q+`,"toolName":`+q+`,"content":[{"type":"text","text":`+q+`}],"details":{"diff":`+q+`}}`)
	add(`"6"`, `"type":"compaction","summary":`+q+`,"firstKeptEntryId":`+q)
	add(`"7"`, `"type":"label","targetId":`+q+`,"label":`+q)
	add(`"8"`, `"type":"custom_message","customType":`+q+`,"content":`+q+`,"display":true`)
	add(`"9"`, `"type":`+q+`,"x":`+q)
	head := `{"type":"session","version":3,"id":` + q + `,"timestamp":` + q + `,"cwd":` + q + `,"more":` + q + `}`
	s, err := session.Open(memory.NewFrom([]byte(head+"\n"+strings.Join(lines, "\n")+"\n")), session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestHostileText: whatever a session says, the page has the markup that a
// harmless session gives.
func TestHostileText(t *testing.T) {
	markup := regexp.MustCompile(`<[^>]*`)
	tags := func(text string) []string {
		page := render(t, everywhere(t, text), Options{})
		if _, rows, entries := embedded(t, page); len(rows) != 10 || len(entries) != 10 {
			t.Fatalf("%q: %d rows, %d entries", text, len(rows), len(entries))
		}
		return markup.FindAllString(page, -1)
	}
	harmless := tags("harmless")
	for _, text := range append(hostile, strings.Join(hostile, " ")) {
		if got := tags(text); !slices.Equal(got, harmless) {
			for i := range got {
				if i >= len(harmless) || got[i] != harmless[i] {
					t.Errorf("%q becomes markup: %.200q", text, got[i])
					break
				}
			}
		}
	}
	// What was said is there all the same.
	all := strings.Join(hostile, " ")
	_, _, entries := embedded(t, render(t, everywhere(t, all), Options{}))
	var e struct {
		Message struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(entries[3]), &e); err != nil || e.Message.Content[0].Text != all {
		t.Errorf("the text is %q, %v", e.Message.Content, err)
	}
}

func TestWithoutScripts(t *testing.T) {
	page := render(t, open(t, prompt, answer, result), Options{})
	_, rest, _ := strings.Cut(page, "<noscript>")
	text, _, ok := strings.Cut(rest, "</noscript>")
	if !ok || !strings.Contains(text, "<h2>user</h2><pre>Why does  it\nfail?</pre>") || !strings.Contains(text, "<h2>assistant</h2><pre>Let me see.</pre>") {
		t.Errorf("the transcript is %s", text)
	}
	long := strings.Replace(prompt, "Why does", strings.Repeat("é", 100<<10), 1)
	page = render(t, open(t, long, prompt), Options{})
	_, rest, _ = strings.Cut(page, "<noscript>")
	if text, _, _ = strings.Cut(rest, "</noscript>"); len(text) > 130<<10 || !strings.Contains(text, "The rest is shown") || strings.Contains(text, "\uFFFD") {
		t.Errorf("a long transcript has %d bytes", len(text))
	}
}

func TestSameSessionSamePage(t *testing.T) {
	a := render(t, open(t, system, prompt, answer, result), Options{})
	if b := render(t, open(t, system, prompt, answer, result), Options{}); a != b {
		t.Error("two pages of one session differ")
	}
}

// big is a session of about n bytes.
func big(t testing.TB, n int) *session.Session {
	text := strings.Repeat(`the quick brown <fox> jumps \"over\" the lazy dog\n`, 400)
	var lines []string
	for size := 0; size < n; size += len(text) + 200 {
		lines = append(lines, `{"type":"message","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"`+text+`"}],"isError":false}}`)
		if len(lines)%8 == 1 {
			lines[len(lines)-1] = `{"type":"message","message":{"role":"assistant","provider":"p","model":"m","content":[{"type":"text","text":"` + text + `"}]}}`
		}
	}
	return open(t, lines...)
}

// TestCostOfWriting: a page is about as large as the session, and writing it
// takes little memory beside the session, all allocations counted.
func TestCostOfWriting(t *testing.T) {
	const size = 20 << 20
	s := big(t, size)
	var before, after runtime.MemStats
	var page counter
	runtime.GC()
	runtime.ReadMemStats(&before)
	if err := Write(t.Context(), &page, s, Options{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if page < size || page > size*5/4 {
		t.Errorf("the page of a session of %d bytes has %d", size, page)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes allocated for a page of %d", allocated, page)
	if allocated > size/2 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > size/10 {
		t.Errorf("%d bytes are kept", kept)
	}
	runtime.KeepAlive(s)
}

type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func TestChunks(t *testing.T) {
	s := big(t, 3<<20)
	page := render(t, s, Options{})
	meta, _, entries := embedded(t, page)
	starts := meta["chunks"].([]any)
	if n := strings.Count(page, `class="chunk">`); n != len(starts) || n < 8 {
		t.Errorf("%d chunks, %d starts", n, len(starts))
	}
	if len(entries) != len(s.Entries()) {
		t.Errorf("%d entries, want %d", len(entries), len(s.Entries()))
	}
	for i, m := range dataBlock.FindAllStringSubmatch(page, -1)[2:] {
		first, _, _ := strings.Cut(strings.TrimPrefix(m[2], "\n"), "\n")
		if want := entries[int(starts[i].(float64))]; first != want {
			t.Errorf("chunk %d begins with %.80s, want %.80s", i, first, want)
		}
	}
}

func TestWriterFails(t *testing.T) {
	s := big(t, 1<<20)
	broken := errors.New("broken")
	if err := Write(t.Context(), writer(func([]byte) (int, error) { return 0, broken }), s, Options{}); !errors.Is(err, broken) {
		t.Errorf("a broken writer gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := Write(ctx, writer(func(b []byte) (int, error) { n += len(b); cancel(); return len(b), nil }), s, Options{})
	if !errors.Is(err, context.Canceled) || n > 1<<20 {
		t.Errorf("after the end of the context: %v, %d bytes", err, n)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// file is a session file with some entries.
func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "2026_s1.jsonl")
	if err := os.WriteFile(path, []byte(log(prompt, answer, result)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	path := file(t)
	before, _ := os.ReadFile(path)
	t.Chdir(t.TempDir())
	got, err := File(t.Context(), path, "", Options{})
	if err != nil || got != "pinch-session-2026_s1.html" {
		t.Fatalf("%q, %v", got, err)
	}
	info, err := os.Stat(got)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the page has the mode %v", info.Mode())
	}
	first, _ := os.ReadFile(got)

	// A file that is there is replaced and keeps its mode.
	if err := os.WriteFile("shared.html", []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := File(t.Context(), path, "shared.html", Options{}); err != nil || got != "shared.html" {
		t.Fatalf("%q, %v", got, err)
	}
	again, _ := os.ReadFile("shared.html")
	if info, _ := os.Stat("shared.html"); !bytes.Equal(first, again) || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("the second page has %d bytes, the first %d", len(again), len(first))
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the session file changed")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("beside the session: %v", left)
	}
}

// TestOldFile: entries of version 1 have no ids; those of their page are the same
// each time.
func TestOldFile(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old.jsonl")
	text := `{"type":"session","id":"old","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work"}` + "\n" + prompt + "\n" + answer + "\n"
	if err := os.WriteFile(old, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, name := range []string{"a.html", "b.html"} {
		path, err := File(t.Context(), old, filepath.Join(filepath.Dir(old), name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, _ := os.ReadFile(path)
		pages = append(pages, string(page))
	}
	_, rows, _ := embedded(t, pages[0])
	if len(rows) != 2 || rows[0][0] == "" || rows[1][1] != 0.0 {
		t.Errorf("the rows are %v", rows)
	}
	if pages[0] != pages[1] {
		t.Error("two pages of one file differ")
	}
	if now, _ := os.ReadFile(old); string(now) != text {
		t.Error("the file changed")
	}
}

func TestFileRefuses(t *testing.T) {
	path := file(t)
	dir := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "old.html")
	notes := filepath.Join(dir, "notes.jsonl")
	for _, name := range []string{old, notes} {
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		in, out string
		want    string
	}{
		{"itself", t.Context(), path, path, "the session itself"},
		{"a folder", t.Context(), path, filepath.Join(dir, "folder"), "a folder"},
		{"no folder", t.Context(), path, filepath.Join(dir, "none", "x.html"), "none"},
		{"no session", t.Context(), notes, old, "not"},
		{"an end", ended, path, old, "context canceled"},
	} {
		if _, err := File(c.ctx, c.in, c.out, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if b, _ := os.ReadFile(old); string(b) != "old" {
		t.Error("a page that failed took the place of a file")
	}
	if b, _ := os.ReadFile(path); string(b) != log(prompt, answer, result) {
		t.Error("the session changed")
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 4 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNothingToExport(t *testing.T) {
	if _, err := Save(t.Context(), open(t, prompt), "x.html", Options{}); err == nil || err.Error() != "Cannot export in-memory session to HTML" {
		t.Errorf("in memory: %v", err)
	}
	path := filepath.Join(t.TempDir(), "new.jsonl")
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Save(t.Context(), s, "x.html", Options{}); err != ErrEmpty {
		t.Errorf("not saved: %v", err)
	}
	if _, err := File(t.Context(), path, "x.html", Options{}); !errors.Is(err, &session.Error{Kind: session.NotFound}) {
		t.Errorf("not there: %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := big(b, 50<<20)
	b.SetBytes(50 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(b.Context(), io.Discard, s, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
