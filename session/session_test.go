package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are for reproducible sessions: a clock that ticks a millisecond at
// each look, and ids of a seed.
func options() session.Options {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	return session.Options{
		CWD:  "/srv/demo",
		Rand: rand.NewChaCha8([32]byte{7}),
		Now: func() time.Time {
			at = at.Add(time.Millisecond)
			return at
		},
	}
}

const header = `{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo","later":[1, 2]}` + "\n"

// entry is a line of a user message; parent "" is null.
func entry(id, parent, text string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1}}`+"\n", id, p, text)
}

func open(t *testing.T, log string) (*session.Session, *memory.Store) {
	t.Helper()
	store := memory.NewFrom([]byte(log))
	s, err := session.Open(store, options())
	if err != nil {
		t.Fatal(err)
	}
	return s, store
}

func ids(entries []*session.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

func kindOf(err error) session.Kind {
	if e, ok := errors.AsType[*session.Error](err); ok {
		return e.Kind
	}
	return ""
}

func say(t *testing.T, s *session.Session, text string) *session.Entry {
	t.Helper()
	e, err := s.AppendMessage(llm.UserText(text, 5))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDamage(t *testing.T) {
	tests := []struct {
		name, log   string
		entries     string // ids in order
		path        string // of the leaf
		wantAppends string // behind the log after opening
	}{
		{"whole", header + entry("a", "", "1") + entry("b", "a", "2"), "a b", "a b", ""},
		{"torn entry", header + entry("a", "", "1") + entry("b", "a", "2")[:30], "a", "a", "\n"},
		{"missing line break", header + strings.TrimSuffix(entry("a", "", "1"), "\n"), "a", "a", "\n"},
		{"bad line", header + entry("a", "", "1") + "{oops}\n" + entry("b", "a", "2"), "a b", "a b", ""},
		{"NULs of a lost block", header + entry("a", "", "1") + strings.Repeat("\x00", 64) + "\n" + entry("b", "a", "2"), "a b", "a b", ""},
		{"two entries on one line", header + entry("a", "", "1") + strings.TrimSuffix(entry("x", "a", "2"), "\n") + entry("y", "a", "2") + entry("b", "a", "2"), "a b", "a b", ""},
		{"scalars", header + "1\n[]\n\"x\"\ntrue\n" + entry("a", "", "1"), "a", "a", ""},
		{"CRLF", strings.ReplaceAll(header+entry("a", "", "1")+entry("b", "a", "2"), "\n", "\r\n"), "a b", "a b", ""},
		{"self-parent", header + entry("a", "a", "1") + entry("b", "a", "2"), "a b", "a b", ""},
		{"circle", header + entry("a", "c", "1") + entry("b", "a", "2") + entry("c", "b", "3") + entry("d", "c", "4"), "a b c d", "a b c d", ""},
		{"circle in front of a tail", header + entry("x", "y", "1") + entry("y", "x", "2") + entry("d", "y", "4"), "x y d", "x y d", ""},
		{"missing parent", header + entry("a", "gone", "1") + entry("b", "a", "2"), "a b", "a b", ""},
		{"duplicate ids", header + entry("a", "", "1") + entry("b", "a", "2") + entry("a", "", "3") + entry("c", "a", "4"), "a b a c", "a c", ""},
		{"later header", header + entry("a", "", "1") + header + entry("b", "a", "2"), "a b", "a b", ""},
		{"no id", header + entry("a", "", "1") + "{\"type\":\"label\"}\n{}\n", "a  ", "a", ""},
		{"unknown type", header + entry("a", "", "1") + `{"type":"mark","id":"m","parentId":"a"}` + "\n", "a m", "a m", ""},
		{"blank lines in front", "\n\nnull\n" + header + entry("a", "", "1"), "a", "a", ""},
		{"byte order mark", "\uFEFF" + header + entry("a", "", "1"), "a", "a", ""},
		{"escaped id", header + `{"type":"message","id":"a\"\u00fc","parentId":null}` + "\n" + `{"type":"message","id":"b","parentId":"a\"ü"}` + "\n", `a"ü b`, `a"ü b`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, store := open(t, tt.log)
			defer s.Close()
			if got := ids(s.Entries()); got != tt.entries {
				t.Errorf("entries %q, want %q", got, tt.entries)
			}
			if got := ids(s.Path()); got != tt.path {
				t.Errorf("path %q, want %q", got, tt.path)
			}
			if got := string(store.Bytes()); got != tt.log+tt.wantAppends {
				t.Errorf("log %q", got)
			}
			walk(t, s.Tree(), map[*session.Node]bool{})
			// The next append is whole and hangs below the leaf.
			leaf := s.LeafID()
			e := say(t, s, "more")
			again, _ := open(t, string(store.Bytes()))
			if got := again.Entry(e.ID); got == nil || got.ParentID != leaf || again.Leaf() != got {
				t.Errorf("after an append: %v", got)
			}
		})
	}
}

// walk fails on a tree that goes round.
func walk(t *testing.T, nodes []*session.Node, above map[*session.Node]bool) {
	t.Helper()
	for _, n := range nodes {
		if above[n] {
			t.Fatalf("%s is its own ancestor", n.Entry.ID)
		}
		above[n] = true
		walk(t, n.Children, above)
		delete(above, n)
	}
}

func TestTreeShowsCircles(t *testing.T) {
	s, _ := open(t, header+entry("r", "", "0")+entry("a", "b", "1")+entry("b", "a", "2")+entry("c", "b", "3"))
	roots := s.Tree()
	if len(roots) != 2 || roots[1].Entry.ID != "a" || roots[1].Children[0].Entry.ID != "b" || roots[1].Children[0].Children[0].Entry.ID != "c" {
		t.Errorf("roots %v", roots)
	}
}

// A log whose lines stand in it more than once, such as one that was put behind
// itself, is a tree of its entries, each once.
func TestTreeOfDoubledLog(t *testing.T) {
	const entries = 60 // two ways to each from the one above would be 2^60
	var lines, parent string
	for i := range entries {
		id := fmt.Sprintf("%08x", i)
		lines += entry(id, parent, "1")
		parent = id
	}
	s, _ := open(t, header+lines+lines)
	roots := s.Tree()
	for i := range entries {
		if len(roots) != 1 || roots[0].Entry.ID != fmt.Sprintf("%08x", i) {
			t.Fatalf("level %d has %d entries", i, len(roots))
		}
		roots = roots[0].Children
	}
}

func TestRefusesWhatIsNoSession(t *testing.T) {
	for _, log := range []string{
		"hello\n", "\n\n", "[]\n", "1\n" + header, `{"type":"session"}` + "\n", "\uFEFF\uFEFF" + header + entry("a", "", "1"), "\n\uFEFF" + header,
		`{"type":"session","id":5}`, entry("a", "", "1") + header,
	} {
		store := memory.NewFrom([]byte(log))
		_, err := session.Open(store, options())
		if kindOf(err) != session.InvalidFile {
			t.Errorf("%q: %v", log, err)
		}
		if string(store.Bytes()) != log {
			t.Errorf("%q was changed", log)
		}
	}
}

// TestKeepsWhatItDoesNotKnow forks and exports a log full of unknown things.
func TestKeepsWhatItDoesNotKnow(t *testing.T) {
	const odd = `{"type":"message","id":"a","parentId":"x1","future":{"b": 1.50},"timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":[{"type":"hologram","n":1e2}],"mood":"\ud83d","timestamp":1}}`
	const strange = `{"id":"m","mark":[ 1 ],"type":"mark","parentId":"a"}`
	s, _ := open(t, header+`{"type":"label","id":"x1","parentId":null}`+"\n"+odd+"\n"+strange+"\n")
	store := memory.New()
	f, err := s.Fork(store, "m", options())
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(odd, `"parentId":"x1"`, `"parentId":null`, 1) + "\n" + strange + "\n"
	if _, rest, _ := strings.Cut(string(store.Bytes()), "\n"); rest != want {
		t.Errorf("fork\n%s\nwant\n%s", rest, want)
	}
	var out bytes.Buffer
	if err := f.Export(&out); err != nil {
		t.Fatal(err)
	}
	if _, rest, _ := strings.Cut(out.String(), "\n"); rest != want {
		t.Errorf("export\n%s\nwant\n%s", rest, want)
	}
	if m := session.ToLLM(f.Context().Messages); len(m) != 1 || !strings.Contains(string(m[0].AppendJSON(nil)), `"mood":"\ud83d"`) {
		t.Errorf("messages %v", m)
	}
}

// The labels that a fork sets anew say nothing to a model.
func TestForkWithLabels(t *testing.T) {
	s, err := memory.Open(options())
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.AppendMessage(llm.UserText("here", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetLabel(e.ID, "a place"); err != nil {
		t.Fatal(err)
	}
	f, err := s.Fork(memory.New(), e.ID, options())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Context().Messages); n != 1 || f.Label(e.ID) != "a place" {
		t.Errorf("%d messages, label %q", n, f.Label(e.ID))
	}
	if projected := session.Project(f.Path()); len(projected) != 2 || len(projected[1].Messages) != 0 {
		t.Errorf("projected %+v", projected)
	}
}

func TestMigrationKeepsLinesAndMembers(t *testing.T) {
	const v1 = `{"type":"session","id":"old","cwd":"/srv/old","extra":[ 1 ]}
{"type":"message","timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"hookMessage","customType":"n","content":"x","timestamp":1},"later":true}
not json
{"type":"compaction","timestamp":"2026-03-01T08:00:02.000Z","summary":"S","firstKeptEntryIndex":1,"tokensBefore":5}
{"type":"message","timestamp":"2026-03-01T08:00`
	s, store := open(t, v1)
	log := string(store.Bytes())
	e := s.Entries()
	if len(e) != 2 {
		t.Fatalf("%d entries of\n%s", len(e), log)
	}
	want := fmt.Sprintf(`{"type":"session","id":"old","cwd":"/srv/old","extra":[ 1 ],"version":3}
{"type":"message","timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"custom","customType":"n","content":"x","timestamp":1},"later":true,"id":%q,"parentId":null}
not json
{"type":"compaction","timestamp":"2026-03-01T08:00:02.000Z","summary":"S","tokensBefore":5,"id":%q,"parentId":%[1]q,"firstKeptEntryId":%[1]q}
{"type":"message","timestamp":"2026-03-01T08:00
`, e[0].ID, e[1].ID)
	if log != want {
		t.Errorf("got\n%s\nwant\n%s", log, want)
	}
	if again, store := open(t, log); ids(again.Entries()) != ids(e) || string(store.Bytes()) != log {
		t.Error("the migrated log is not stable")
	}
}

func TestReadOnlyTouchesNothing(t *testing.T) {
	o := options()
	o.ReadOnly = true
	if _, err := session.Open(memory.New(), o); kindOf(err) != session.NotFound {
		t.Errorf("a log that is not there: %v", err)
	}
	for _, log := range []string{
		header + entry("a", "", "1") + "{torn",
		`{"type":"session","id":"old"}` + "\n" + `{"type":"message","message":{"role":"user","content":"x"}}`,
	} {
		store := memory.NewFrom([]byte(log))
		s, err := session.Open(store, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Context().Messages) != 1 {
			t.Error("no message")
		}
		if _, err := s.SetName("x"); kindOf(err) != session.ReadOnly {
			t.Error(err)
		}
		if string(store.Bytes()) != log {
			t.Error("the log changed")
		}
	}
}

// flaky fails the next append when told to.
type flaky struct {
	*memory.Store
	fail bool
}

func (f *flaky) Append(at session.Position, lines []byte) (session.Position, error) {
	if f.fail {
		return 0, &session.Error{Kind: session.DiskFull, Op: "append"}
	}
	return f.Store.Append(at, lines)
}

func TestFailedWriteChangesNothing(t *testing.T) {
	store := &flaky{Store: memory.New()}
	s, err := session.Open(store, options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(&session.ModelChangeEntry{Provider: "acme", ModelID: "alpha-1"}); err != nil {
		t.Fatal(err)
	}
	// attempts tries appends that fail and looks for traces of them.
	attempts := func() {
		t.Helper()
		store.fail = true
		leaf, entries, saved := s.Leaf(), ids(s.Entries()), s.Saved()
		messages := texts(s.Context().Messages)
		if _, err := s.AppendMessage(llm.UserText("lost", 1)); kindOf(err) != session.DiskFull {
			t.Errorf("append: %v", err)
		}
		if s.Saved() {
			if _, err := s.BranchWithSummary("", session.BranchSummaryEntry{Summary: "lost"}); kindOf(err) != session.DiskFull {
				t.Errorf("branch: %v", err)
			}
			if _, err := s.SetName("lost"); kindOf(err) != session.DiskFull || s.Name() != "" {
				t.Errorf("name: %v", err)
			}
		}
		if s.Leaf() != leaf || ids(s.Entries()) != entries || s.Saved() != saved || texts(s.Context().Messages) != messages {
			t.Errorf("the session changed: leaf %q, entries %q", s.LeafID(), ids(s.Entries()))
		}
		store.fail = false
	}
	attempts()
	say(t, s, "kept")
	attempts()
	say(t, s, "more")
	again, _ := open(t, string(store.Bytes()))
	if ids(again.Path()) != ids(s.Path()) || len(again.Path()) != 3 {
		t.Errorf("log has %s", ids(again.Path()))
	}
}

// TestContextGrows compares the kept view with one made from the path after
// every operation of random sessions, also after a reload.
func TestContextGrows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		store := memory.New()
		s, err := session.Open(store, options())
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			all := s.Entries()
			pick := func() string {
				if len(all) == 0 {
					return ""
				}
				return all[r.IntN(len(all))].ID
			}
			switch r.IntN(12) {
			case 0:
				s.Append(&session.ModelChangeEntry{Provider: "p", ModelID: fmt.Sprint(r.IntN(9))})
			case 1:
				s.Append(&session.ThinkingLevelEntry{Level: "high"})
			case 2:
				s.AppendMessage(&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "a"}}, Provider: "q", Model: "m", StopReason: llm.StopStop, Timestamp: 3})
			case 3:
				s.AppendMessage(&llm.System{Content: llm.Plain("sys"), Timestamp: 4})
			case 4:
				s.Append(&session.CompactionEntry{Summary: "S", FirstKept: pick(), TokensBefore: 7})
			case 5:
				s.Append(&session.ContextEditEntry{TargetID: pick()})
			case 6:
				s.Append(&session.ContextEditEntry{TargetID: pick(), Replacement: new(llm.Plain("other"))})
			case 7:
				s.Branch(pick())
			case 8:
				s.BranchWithSummary(pick(), session.BranchSummaryEntry{Summary: "left"})
			case 9:
				s.AppendMessage(&session.Custom{CustomType: "n", Content: llm.Plain("note"), Display: true})
			case 10:
				s.SetLabel(pick(), "label")
			default:
				say(t, s, "hello")
			}
			live, fresh := s.Context(), session.ContextOf(s.Path())
			if len(live.Messages) != len(fresh.Messages) {
				t.Fatalf("%d messages live, %d fresh", len(live.Messages), len(fresh.Messages))
			}
			for i, m := range live.Messages {
				if m != fresh.Messages[i] {
					t.Fatalf("message %d has another pointer", i)
				}
			}
			if live.ThinkingLevel != fresh.ThinkingLevel || fmt.Sprint(live.Model) != fmt.Sprint(fresh.Model) && *live.Model != *fresh.Model {
				t.Fatalf("settings %v, fresh %v", live.Model, fresh.Model)
			}
		}
		if !s.Saved() {
			continue
		}
		last := s.Entries()[len(s.Entries())-1]
		s.Branch(last.ID)
		again, _ := open(t, string(store.Bytes()))
		a, b := texts(s.Context().Messages), texts(again.Context().Messages)
		if a != b {
			t.Fatalf("after a reload\n%s\nwant\n%s", b, a)
		}
	}
}

func texts(list []agent.Message) string {
	var b []byte
	for _, m := range list {
		b = append(m.AppendJSON(b), '\n')
	}
	return string(b)
}

func TestTurnCostsWhatIsNew(t *testing.T) {
	cost := func(n int) float64 {
		var log strings.Builder
		log.WriteString(header)
		parent := ""
		for i := range n {
			log.WriteString(entry(fmt.Sprintf("e%d", i), parent, "text"))
			parent = fmt.Sprintf("e%d", i)
		}
		s, _ := open(t, log.String())
		s.Context()
		m := llm.UserText("next", 1)
		return testing.AllocsPerRun(200, func() {
			if _, err := s.AppendMessage(m); err != nil {
				t.Fatal(err)
			}
			s.Context()
			s.Stats()
		})
	}
	if short, long := cost(10), cost(10_000); long > short+1 {
		t.Errorf("a turn allocates %v times after 10 entries, %v times after 10,000", short, long)
	}
}

func TestReadersBesideAnAppender(t *testing.T) {
	store := jsonl.NewStore(filepath.Join(t.TempDir(), "s.jsonl"), jsonl.Options{})
	s, err := session.Open(store, session.Options{CWD: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := say(t, s, "0")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c := s.Context()
				session.ToLLM(append(c.Messages, llm.UserText("mine", 1)))
				s.Tree()
				s.Path()
				s.Children(first.ID)
				s.Stats()
				for _, e := range s.Entries() {
					e.Data()
				}
				_ = s.Name() + s.Label(first.ID) + s.LeafID()
			}
		})
	}
	for i := range 150 {
		switch i % 10 {
		case 7:
			if _, err := s.SetLabel(first.ID, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		case 8:
			if err := s.Branch(first.ID); err != nil {
				t.Error(err)
			}
		case 9:
			if _, err := s.Append(&session.CompactionEntry{Summary: "S", FirstKept: first.ID}); err != nil {
				t.Error(err)
			}
		default:
			say(t, s, fmt.Sprint(i))
		}
	}
	close(done)
	wg.Wait()
}
