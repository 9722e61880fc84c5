package jsonl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// create makes a session with one message, a second younger than those of all
// sessions there are, and closes it.
func create(t *testing.T, r *jsonl.Repository, id, cwd, text string) string {
	t.Helper()
	others, err := r.ListAll(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 8, 0, len(others), 0, time.UTC)
	s, err := r.Create(session.Options{ID: id, CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(llm.UserText(text, at.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// File systems keep times too coarsely to tell such files apart.
	if err := os.Chtimes(s.File(), at, at); err != nil {
		t.Fatal(err)
	}
	return s.File()
}

func TestCreateAndContinue(t *testing.T) {
	r := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "sessions")}
	s, err := r.Continue("/srv/demo")
	if err != nil {
		t.Fatal(err)
	}
	if s.Saved() || s.CWD() != "/srv/demo" || filepath.Base(filepath.Dir(s.File())) != "--srv-demo--" {
		t.Errorf("new session at %s", s.File())
	}
	say(t, s, "x")
	id := s.ID()
	s.Close()
	older := create(t, r, "older", "/srv/demo", "y")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(older, old, old); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.Dir("/srv/demo"), "newer.jsonl"), "no header\n")
	create(t, r, "other", "/srv/other", "z")
	if s, err = r.Continue("/srv/demo"); err != nil || s.ID() != id {
		t.Fatalf("continued %v, %v", s, err)
	}
	s.Close()
	if _, err := r.Create(session.Options{ID: "-bad", CWD: "/"}); kindOf(err) != session.BadID {
		t.Error(err)
	}
}

// Two programs that begin a session of one id at the same time know nothing of
// each other until the first message; names of files hold the time and differ.
func TestOneSessionAnID(t *testing.T) {
	r := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "sessions")}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	begin := func(cwd string, now time.Time) *session.Session {
		s, err := r.Create(session.Options{ID: "same", CWD: cwd, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first, second, elsewhere := begin("/srv/demo", at), begin("/srv/demo", at.Add(time.Second)), begin("/srv/other", at)
	say(t, first, "one")
	if _, err := second.AppendMessage(llm.UserText("two", 2)); kindOf(err) != session.Exists {
		t.Errorf("got %v", err)
	}
	say(t, elsewhere, "three")
	files, err := filepath.Glob(filepath.Join(r.Root, "*", "*"))
	if err != nil || len(files) != 4 { // two sessions and their locks
		t.Errorf("%q, %v", files, err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	r := &jsonl.Repository{Root: root}
	create(t, r, "abc1", "/srv/here", "1")
	create(t, r, "abc", "/srv/here", "2")
	create(t, r, "abc2", "/srv/here", "3")
	create(t, r, "abd", "/srv/there", "4")
	create(t, r, "abc1x", "/srv/there", "5")
	tests := []struct {
		arg, id string
		foreign bool
	}{
		{"abc", "abc", false},   // exact before prefix
		{"abc1", "abc1", false}, // here before elsewhere
		{"ab", "abc2", false},   // the newest with the prefix
		{"abd", "abd", true},
		{"abc1x", "abc1x", true},
		{"ab*", "", false},
		{"zzz", "", false},
	}
	for _, tt := range tests {
		m, err := r.Find(t.Context(), "/srv/here", tt.arg)
		if tt.id == "" {
			if kindOf(err) != session.NotFound {
				t.Errorf("%s: %v, %v", tt.arg, m, err)
			}
			continue
		}
		if err != nil || m.ID != tt.id || m.Foreign != tt.foreign {
			t.Errorf("%s: got %+v, %v", tt.arg, m, err)
		}
	}
	for arg, want := range map[string]string{
		"x.jsonl": filepath.Join("/srv/here", "x.jsonl"), "sub/dir": filepath.Join("/srv/here", "sub", "dir"),
	} {
		if m, err := r.Find(t.Context(), "/srv/here", arg); err != nil || m.Path != want || m.ID != "" {
			t.Errorf("%s: %+v, %v", arg, m, err)
		}
	}
	// In a shared folder other working directories are foreign.
	shared := &jsonl.Repository{Folder: t.TempDir()}
	create(t, shared, "aaa", "/srv/here", "1")
	create(t, shared, "aab", "/srv/there", "2")
	if m, err := shared.Find(t.Context(), "/srv/here", "aa"); err != nil || m.ID != "aaa" || m.Foreign {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := shared.Find(t.Context(), "/srv/here", "aab"); err != nil || !m.Foreign {
		t.Errorf("%+v, %v", m, err)
	}
	// The same folder in other words.
	create(t, shared, "aac", "/srv/here/", "3")
	if m, ok := shared.FindID(t.Context(), "/srv/here", "aac"); !ok || m.ID != "aac" {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, err := shared.Find(t.Context(), "/srv/here", "aac"); err != nil || m.Foreign {
		t.Errorf("%+v, %v", m, err)
	}
	if list, err := shared.List(t.Context(), "/srv/./here", nil); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, ok := shared.FindID(t.Context(), "/srv/here", "aab"); ok {
		t.Error("found the session of another directory")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Find(ctx, "/srv/here", "abc"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := r.ListAll(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestListReportsProgress(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	for _, id := range []string{"a", "b", "c"} {
		create(t, r, id, "/srv/"+id, id)
	}
	var seen []int
	list, err := r.ListAll(t.Context(), func(read, total int) { seen = append(seen, read, total) })
	if err != nil || len(list) != 3 || len(seen) != 6 || seen[4] != 3 || seen[5] != 3 {
		t.Errorf("%d sessions, progress %v, %v", len(list), seen, err)
	}
	if list, err := r.List(t.Context(), "/srv/b", nil); err != nil || len(list) != 1 || list[0].ID != "b" || list[0].Path == "" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.List(t.Context(), "/srv/none", nil); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestHeaderBound leaves a file out of lists and lookups whose header is beyond
// 1 MiB, and still opens it.
func TestHeaderBound(t *testing.T) {
	r := &jsonl.Repository{Folder: t.TempDir()}
	path := filepath.Join(r.Folder, "big.jsonl")
	write(t, path, `{"type":"session","version":3,"id":"big","cwd":"/x","pad":"`+strings.Repeat("p", 2<<20)+`"}`+"\n")
	listed := func() int {
		list, err := r.List(t.Context(), "/x", nil)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	if _, ok := r.FindID(t.Context(), "/x", "big"); ok || listed() != 0 {
		t.Error("found")
	}
	s := open(t, path)
	if s.ID() != "big" {
		t.Error(s.ID())
	}
	s.Close()
	const header = `{"type":"session","version":3,"id":"big","cwd":"/x"}`
	for name, before := range map[string]string{
		"blank lines":                   strings.Repeat("\n", 100_000),
		"values that stand for nothing": "null\nfalse\n0\n\"\"\n",
		"text":                          "not JSON\n",
	} {
		write(t, path, before+header)
		if _, ok := r.FindID(t.Context(), "/x", "big"); !ok || listed() != 1 {
			t.Error("not found behind", name)
		}
	}
	write(t, path, "1\n"+header)
	if _, ok := r.FindID(t.Context(), "/x", "big"); ok || listed() != 0 {
		t.Error("found behind another value")
	}
	write(t, path, strings.Repeat("\n", 1<<20)+header)
	if _, ok := r.FindID(t.Context(), "/x", "big"); ok || listed() != 0 {
		t.Error("found behind a MiB of blank lines")
	}
}

func TestForkFrom(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	path := filepath.Join(t.TempDir(), "old.jsonl")
	write(t, path, `{"type":"session","id":"old","cwd":"/srv/old"}
{"type":"message","timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":"q"},"x":1}
not json
{"type":"compaction","timestamp":"2026-03-01T08:00:02.000Z","summary":"S","firstKeptEntryIndex":1,"tokensBefore":5}
`)
	s, err := r.ForkFrom(path, session.Options{CWD: "/srv/new"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.ID() == "old" || s.Header().ParentSession != path || s.CWD() != "/srv/new" || len(s.Context().Messages) != 2 {
		t.Errorf("header %s, %d messages", s.Header().Raw, len(s.Context().Messages))
	}
	if text := read1(t, s.File()); !strings.Contains(text, "\nnot json\n") || !strings.Contains(text, `"x":1`) {
		t.Errorf("file\n%s", text)
	}
	if !strings.HasPrefix(read1(t, path), `{"type":"session","id":"old","cwd"`) {
		t.Error("the source was changed")
	}
	if _, err := r.ForkFrom(filepath.Join(r.Root, "gone.jsonl"), session.Options{CWD: "/"}); kindOf(err) != session.NotFound {
		t.Error(err)
	}
}

func TestFork(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	s, err := r.Create(session.Options{CWD: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := say(t, s, "first")
	second := say(t, s, "second")
	target, err := s.Target(second.ID)
	if err != nil || target.Text != "second" || target.Leaf != first.ID || !target.Editable {
		t.Fatalf("%+v, %v", target, err)
	}
	f, err := r.Fork(s, target.Leaf, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Header().ParentSession != s.File() || len(f.Entries()) != 1 || !f.Saved() || f.CWD() != "/srv/demo" {
		t.Errorf("fork %s", f.Header().Raw)
	}
	f.Close()
	target, _ = s.Target(first.ID)
	if f, err = r.Fork(s, target.Leaf, session.Options{}); err != nil || f.Saved() || f.Leaf() != nil || f.Header().ParentSession != s.File() {
		t.Fatalf("fork before the first message: %v", err)
	}
	say(t, f, "differently")
	f.Close()
	if _, err := r.Fork(s, "gone", session.Options{}); kindOf(err) != session.NotFound {
		t.Error(err)
	}
}

func TestImportAndDelete(t *testing.T) {
	cwd := t.TempDir()
	r := &jsonl.Repository{Root: t.TempDir()}
	away := &jsonl.Repository{Folder: t.TempDir()}
	path := create(t, away, "mine", cwd, "hello")
	for i, suffix := range []string{"", "-1", "-2"} {
		s, err := r.Import(path, cwd)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSuffix(filepath.Base(path), ".jsonl") + suffix + ".jsonl"
		if filepath.Base(s.File()) != want || s.ID() != "mine" {
			t.Errorf("import %d: %s", i, s.File())
		}
		s.Close()
	}
	gone := create(t, away, "gone", filepath.Join(cwd, "gone"), "hello")
	if _, err := r.Import(gone, cwd); kindOf(err) != session.MissingCWD {
		t.Error(err)
	}
	bad := filepath.Join(cwd, "bad.jsonl")
	write(t, bad, "hello\n")
	if _, err := r.Import(bad, cwd); kindOf(err) != session.InvalidFile {
		t.Error(err)
	}
	list, _ := r.List(t.Context(), cwd, nil)
	if len(list) != 3 {
		t.Fatalf("%d sessions", len(list))
	}

	if err := r.Delete(t.Context(), list[0].Path); err != nil {
		t.Error(err)
	}
	if err := r.Delete(t.Context(), list[0].Path); kindOf(err) != session.NotFound {
		t.Error(err)
	}
	r.Trash = func(ctx context.Context, path string) error { return os.Rename(path, path+".trash") }
	if err := r.Delete(t.Context(), list[1].Path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(list[1].Path + ".trash"); err != nil {
		t.Error(err)
	}
	r.Trash = func(ctx context.Context, path string) error { return errors.New("no trash here") }
	if err := r.Delete(t.Context(), list[2].Path); err != nil {
		t.Error(err)
	}
	if list, _ := r.List(t.Context(), cwd, nil); len(list) != 0 {
		t.Errorf("%d sessions left", len(list))
	}
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 10, 5e6, time.FixedZone("", 3600))
	if got := jsonl.FileName(at, "aaa"); got != "2026-03-01T07-00-10-005Z_aaa.jsonl" {
		t.Error(got)
	}
}

func TestNamesOfDeepFolders(t *testing.T) {
	root, err := filepath.Abs("/")
	if err != nil {
		t.Fatal(err)
	}
	fits := strings.Repeat("x", 255-len(jsonl.FolderName(root)))
	if got := jsonl.FolderName(root + fits); len(got) != 255 || !strings.HasSuffix(got, fits+"--") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	deep := "/" + strings.Repeat("ä/", 200)
	seen := map[string]bool{}
	for _, cwd := range []string{deep + "one", deep + "two", "/b" + deep + "one", "/bc" + deep + "one", "/bcd" + deep + "one"} {
		name := jsonl.FolderName(cwd)
		if len(name) > 255 || !utf8.ValidString(name) || seen[name] {
			t.Errorf("%d bytes: %s", len(name), name)
		}
		seen[name] = true
	}
	cwd := filepath.Join(t.TempDir(), strings.Repeat(strings.Repeat("d", 60)+string(filepath.Separator), 8))
	r := &jsonl.Repository{Root: filepath.Join(t.TempDir(), "sessions")}
	s, err := r.Create(session.Options{CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	say(t, s, "hello")
	s.Close()
	if s, err = r.Continue(cwd); err != nil || len(s.Entries()) == 0 {
		t.Fatal("the session is not found again", err)
	}
	s.Close()
}

// TestFolderThatIsNoText works in a folder whose name no header can spell.
func TestFolderThatIsNoText(t *testing.T) {
	cwd := filepath.Join(t.TempDir(), "latin-\xe4\xf6")
	r := &jsonl.Repository{Folder: t.TempDir()}
	s, err := r.Create(session.Options{CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	say(t, s, "hello")
	s.Close()
	if m, err := r.Find(t.Context(), cwd, s.ID()); err != nil || m.Foreign {
		t.Errorf("by its id: %+v %v", m, err)
	}
	if list, err := r.List(t.Context(), cwd, nil); err != nil || len(list) != 1 {
		t.Errorf("listed: %v %v", list, err)
	}
	if s, err = r.Open(s.File(), cwd); err != nil || s.CWD() != cwd {
		t.Fatalf("goes on in %q: %v", s.CWD(), err)
	}
	s.Close()
	if s, err = r.Open(s.File(), t.TempDir()); err != nil || !strings.HasSuffix(s.CWD(), "latin-\ufffd\ufffd") {
		t.Fatalf("from elsewhere in %q: %v", s.CWD(), err)
	}
	s.Close()
}

// TestForkLeavesOutLinesThatAreTooLong forks a session with a line that nobody
// can read.
func TestForkLeavesOutLinesThatAreTooLong(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	write(t, path, `{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}`+"\n"+
		`{"type":"message","id":"big","parentId":null,"message":{"role":"user","content":"`+strings.Repeat("x", 2<<20)+`"}}`+"\n"+
		`{"type":"message","id":"a","parentId":"big","message":{"role":"user","content":"a"}}`+"\n")
	r := &jsonl.Repository{Folder: filepath.Join(dir, "forks"), Options: jsonl.Options{MaxLine: 1 << 20}}
	s, err := r.ForkFrom(path, session.Options{CWD: "/srv/other"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Entries()) != 1 || s.LeafID() != "a" || s.Header().ParentSession != path {
		t.Errorf("%d entries, leaf %q, header %s", len(s.Entries()), s.LeafID(), s.Header().Raw)
	}
}
