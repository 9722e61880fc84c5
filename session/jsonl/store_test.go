package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// holdEnv makes the test binary open the session that it names and wait.
const holdEnv = "PINCH_TEST_HOLD_SESSION"

// helpers are what the test binary does instead of testing when a variable of
// this name is set.
var helpers = map[string]func(value string){
	holdEnv: func(path string) {
		s, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("open", s.ID())
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without closing
	},
}

func TestMain(m *testing.M) {
	for name, run := range helpers {
		if value := os.Getenv(name); value != "" {
			run(value)
		}
	}
	goleak.VerifyTestMain(m)
}

func kindOf(err error) session.Kind {
	if e, ok := errors.AsType[*session.Error](err); ok {
		return e.Kind
	}
	return ""
}

func open(t *testing.T, path string) *session.Session {
	t.Helper()
	s, err := jsonl.Open(path, jsonl.Options{Options: session.Options{CWD: "/srv/demo"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unsynced is a file whose bytes need not outlive the machine, which spares the
// tests that write hundreds of them minutes of waiting for the disk.
type unsynced struct{ *os.File }

func (unsynced) Sync() error { return nil }

func openUnsynced(t *testing.T, path string) *session.Session {
	t.Helper()
	store := jsonl.NewStore(path, jsonl.Options{})
	store.OpenWith(func(f *os.File) jsonl.File { return unsynced{f} })
	s, err := session.Open(store, session.Options{CWD: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func say(t *testing.T, s *session.Session, text string) *session.Entry {
	t.Helper()
	e, err := s.AppendMessage(llm.UserText(text, 5))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read1(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestKilledAtEveryByte cuts a session at every byte of its last appends: what
// was complete is there, and the next append is whole.
func TestKilledAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	s := open(t, path)
	lengths := []int64{}
	for i := range 4 {
		say(t, s, fmt.Sprintf("message %d with \"quotes\", \\ and ünïcödé 😀", i))
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, st.Size())
	}
	var all []string
	for _, e := range s.Entries() {
		all = append(all, e.ID)
	}
	s.Close()
	whole := read1(t, path)
	cut := filepath.Join(dir, "cut.jsonl")
	for n := lengths[0]; n <= int64(len(whole)); n++ {
		write(t, cut, whole[:n])
		complete := 0
		for _, l := range lengths {
			if n >= l-1 { // a line is complete without its line break
				complete++
			}
		}
		s := openUnsynced(t, cut)
		if got := len(s.Entries()); got != complete || s.LeafID() != all[complete-1] {
			t.Fatalf("cut at %d: %d entries, want %d", n, got, complete)
		}
		e := say(t, s, "after")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openUnsynced(t, cut)
		if s.LeafID() != e.ID || e.ParentID != all[complete-1] || len(s.Context().Messages) != complete+1 {
			t.Fatalf("cut at %d: the append after it is lost", n)
		}
		s.Close()
		if !strings.HasPrefix(read1(t, cut), whole[:n]) {
			t.Fatalf("cut at %d: bytes were lost", n)
		}
	}
	// Killed inside the first write: either there is no session, or a header.
	head := strings.IndexByte(whole, '\n')
	for n := range head + 1 {
		write(t, cut, whole[:n])
		s, err := jsonl.Open(cut, jsonl.Options{})
		switch {
		case err != nil && (kindOf(err) != session.InvalidFile || read1(t, cut) != whole[:n]):
			t.Fatalf("cut at %d: %v", n, err)
		case err == nil:
			s.Close()
		}
	}
}

// brittle is a file whose writes stop after some bytes.
type brittle struct {
	*os.File
	room   *int64 // bytes that still fit; negative for no limit
	broken *bool  // Truncate fails
	noSync *bool
}

func (b brittle) Write(p []byte) (int, error) {
	if *b.room < 0 || int64(len(p)) <= *b.room {
		return b.File.Write(p)
	}
	n, err := b.File.Write(p[:*b.room])
	if err != nil {
		return n, err
	}
	return n, &os.PathError{Op: "write", Path: b.Name(), Err: syscall.ENOSPC}
}

func (b brittle) Truncate(size int64) error {
	if *b.broken {
		return errors.New("cannot truncate")
	}
	return b.File.Truncate(size)
}

func (b brittle) Sync() error {
	if *b.noSync {
		return errors.New("cannot sync")
	}
	return b.File.Sync()
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	room, broken, noSync := int64(-1), false, false
	newStore := func(o jsonl.Options) *jsonl.Store {
		store := jsonl.NewStore(path, o)
		store.OpenWith(func(f *os.File) jsonl.File { return brittle{f, &room, &broken, &noSync} })
		return store
	}
	s, err := session.Open(newStore(jsonl.Options{}), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	room = 40
	_, err = s.AppendMessage(llm.UserText("no room", 1))
	if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != session.DiskFull || e.Path != path || e.Advice == "" {
		t.Fatalf("first append: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	room = -1
	first := say(t, s, "first")
	before := read1(t, path)
	for room = range int64(60) {
		if _, err := s.AppendMessage(llm.UserText("no room", 1)); kindOf(err) != session.DiskFull {
			t.Fatalf("%d bytes of room: %v", room, err)
		}
		if read1(t, path) != before || s.Leaf() != first {
			t.Fatalf("%d bytes of room: a trace is left", room)
		}
	}
	// The rest of a write that cannot be taken back now is taken back later.
	room, broken = 20, true
	if _, err := s.AppendMessage(llm.UserText("no room", 1)); kindOf(err) != session.DiskFull {
		t.Fatal(err)
	}
	room = -1
	if _, err := s.AppendMessage(llm.UserText("still broken", 1)); err == nil {
		t.Fatal("appended behind the rest of a line")
	}
	broken = false
	second := say(t, s, "second")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if s.LeafID() != second.ID || len(s.Entries()) != 2 {
		t.Errorf("%d entries", len(s.Entries()))
	}
	s.Close()

	// With Sync an append that did not become durable is taken back.
	s, err = session.Open(newStore(jsonl.Options{Sync: true}), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before, noSync = read1(t, path), true
	if _, err := s.AppendMessage(llm.UserText("not durable", 1)); kindOf(err) != session.IO {
		t.Errorf("got %v", err)
	}
	if read1(t, path) != before {
		t.Error("a trace is left")
	}
	noSync = false
	say(t, s, "durable")
	s.Close()
}

func TestReadOnlyFile(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("the superuser and Windows may write to files without write permission")
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	say(t, s, "x")
	s.Close()
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := jsonl.Open(path, jsonl.Options{}); kindOf(err) != session.ReadOnly {
		t.Error(err)
	}
	s, err := jsonl.Open(path, jsonl.Options{Options: session.Options{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	s := open(t, path)
	say(t, s, "x")
	link := filepath.Join(dir, "link.jsonl")
	names := []string{path, filepath.Join(dir, ".", "s.jsonl")}
	if err := os.Symlink(path, link); err == nil {
		names = append(names, link)
	}
	for _, name := range names {
		_, err := jsonl.Open(name, jsonl.Options{})
		e, ok := errors.AsType[*session.Error](err)
		if !ok || e.Kind != session.Busy || e.Advice == "" || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Errorf("second writer of %s: %v", name, err)
		}
	}
	r, err := jsonl.Open(path, jsonl.Options{Options: session.Options{ReadOnly: true}})
	if err != nil {
		t.Fatalf("a reader: %v", err)
	}
	if len(r.Context().Messages) != 1 {
		t.Error("the reader sees nothing")
	}
	r.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(llm.UserText("late", 1)); kindOf(err) != session.Closed {
		t.Errorf("after Close: %v", err)
	}
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
	s = open(t, path)
	s.Close()
}

// TestLockDiesWithItsProcess has another process hold a session and kills it.
func TestLockDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	say(t, s, "x")
	id := s.ID()
	s.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	n, _ := out.Read(buf)
	if got := strings.TrimSpace(string(buf[:n])); got != "open "+id {
		t.Fatalf("the other process says %q", got)
	}
	_, err = jsonl.Open(path, jsonl.Options{})
	if kindOf(err) != session.Busy || !strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	s = open(t, path)
	say(t, s, "y")
	s.Close()
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}

// TestWaitsForTheChildOfAKilledProgram opens a session whose lock names a dead
// process and is still held, as it is by a child that a program was starting
// when it was killed.
func TestWaitsForTheChildOfAKilledProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	say(t, s, "x")
	s.Close()
	died := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := died.Run(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".lock", fmt.Appendf(nil, "\x00process %d on %s\n", died.Process.Pid, host), 0o600); err != nil {
		t.Fatal(err)
	}
	child := flock.New(path + ".lock")
	if held, err := child.TryLock(); err != nil || !held {
		t.Fatal(held, err)
	}
	if _, err := jsonl.Open(path, jsonl.Options{}); kindOf(err) != session.Busy {
		t.Errorf("a lock that is never given back: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { child.Close() })
	s = open(t, path)
	say(t, s, "y")
	s.Close()
}

func TestNoticesForeignWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	e := say(t, s, "x")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, `{"type":"session_info","id":"foreign","parentId":%q,"timestamp":"2026-03-01T08:00:01.000Z","name":"theirs"}`+"\n", e.ID)
	f.Close()
	if _, err := s.SetName("ours"); kindOf(err) != session.Conflict {
		t.Errorf("got %v", err)
	}
	s.Close()
	s = open(t, path)
	if s.Name() != "theirs" {
		t.Errorf("name %q", s.Name())
	}
	if runtime.GOOS != "windows" {
		os.Remove(path)
		if _, err := s.SetName("ours"); kindOf(err) != session.Conflict {
			t.Errorf("after the file was deleted: %v", err)
		}
		folder := filepath.Dir(path)
		os.RemoveAll(folder)
		write(t, folder, "a file")
		if _, err := s.SetName("ours"); kindOf(err) != session.Conflict {
			t.Errorf("after its folder became a file: %v", err)
		}
	}
	s.Close()
}

// TestLongLines passes over lines that are longer than the limit, wherever they
// stand, and keeps them in the file.
func TestLongLines(t *testing.T) {
	const head = `{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}` + "\n"
	long := `{"type":"message","id":"big","parentId":null,"message":{"role":"user","content":"` + strings.Repeat("x", 5<<20) + `"}}` + "\n"
	a := `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"a"}}` + "\n"
	b := `{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"b"}}` + "\n"
	for _, text := range []string{head + long + a + b, head + a + long + b, head + a + b + long, head + a + b + strings.TrimSuffix(long, "\n")} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		write(t, path, text)
		s, err := jsonl.Open(path, jsonl.Options{MaxLine: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Entries()) != 2 || s.LeafID() != "b" {
			t.Errorf("%d entries, leaf %q", len(s.Entries()), s.LeafID())
		}
		if err := s.Incomplete(); kindOf(err) != session.Damaged || !strings.Contains(err.Error(), path+": a line is longer than 1 MiB") {
			t.Errorf("what is missing: %v", err)
		}
		say(t, s, "c")
		if _, err := s.AppendMessage(llm.UserText(strings.Repeat("y", 2<<20), 1)); kindOf(err) != session.BadEntry {
			t.Errorf("a line that could not be read again: %v", err)
		}
		s.Close()
		if !strings.HasPrefix(read1(t, path), text) {
			t.Error("the file lost bytes")
		}
		list, err := (&jsonl.Repository{Folder: filepath.Dir(path), Options: jsonl.Options{MaxLine: 1 << 20}}).ListAll(context.Background(), nil)
		if err != nil || len(list) != 1 || list[0].MessageCount != 3 {
			t.Errorf("listing %+v, %v", list, err)
		}
	}
}

// TestIncomplete asks sessions whether all of the conversation is there.
func TestIncomplete(t *testing.T) {
	const head = `{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}` + "\n"
	entry := func(id, parent string) string {
		return `{"type":"message","id":"` + id + `","parentId":` + parent + `,"message":{"role":"user","content":"x"}}` + "\n"
	}
	for _, c := range []struct{ name, text, missing string }{
		{"nothing but a header", head, ""},
		{"whole", head + entry("a", "null") + entry("b", `"a"`), ""},
		{"a torn end", head + entry("a", "null") + `{"type":"mess`, ""},
		{"a circle", head + entry("a", `"b"`) + entry("b", `"a"`), ""},
		{"its own parent", head + entry("a", `"a"`), ""},
		{"damage beside the branch", head + entry("a", "null") + `{"type":"message","id":"x","parentId":"a"` + "\n" + entry("b", `"a"`), ""},
		{"damage in the branch", head + entry("a", "null") + `{"type":"message","id":"x","parentId":"a"` + "\n" + entry("b", `"x"`), "entry x is missing"},
		{"a lost parent far up", head + entry("a", `"gone"`) + entry("b", `"a"`) + entry("c", `"b"`), "entry gone is missing"},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		write(t, path, c.text)
		s := open(t, path)
		switch err := s.Incomplete(); {
		case c.missing == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.missing != "" && (kindOf(err) != session.Damaged || !strings.Contains(err.Error(), c.missing)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.missing)
		}
		s.Close()
	}
}

func TestMigrationWithLongLineKeepsTheOriginal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	text := `{"type":"session","id":"old"}` + "\n" + `{"type":"message","message":{"role":"user","content":"` + strings.Repeat("x", 2<<20) + `"}}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"a"}}` + "\n"
	write(t, path, text)
	s, err := jsonl.Open(path, jsonl.Options{MaxLine: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Entries()) != 1 || read1(t, path+".orig") != text {
		t.Error("the long line is gone")
	}
}

func TestEmptyFileGetsHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, path, "")
	s := open(t, path)
	defer s.Close()
	if !s.Saved() || !bytes.Equal([]byte(read1(t, path)), append(s.Header().Raw, '\n')) {
		t.Errorf("file %q", read1(t, path))
	}
	say(t, s, "x")
}

// TestOnlyFilesAreSessions tries folders, devices and links to nowhere; pipes
// have a test of their own.
func TestOnlyFilesAreSessions(t *testing.T) {
	dir := t.TempDir()
	names := []string{dir, os.DevNull}
	if link := filepath.Join(dir, "link.jsonl"); os.Symlink("nowhere", link) == nil {
		names = append(names, link)
	}
	for _, name := range names {
		s, err := jsonl.Open(name, jsonl.Options{})
		if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != session.InvalidFile || e.Path == "" {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestErrorsNameTheFileOnce makes sure that an error reads as one sentence.
func TestErrorsNameTheFileOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	for _, name := range []string{dir, filepath.Join(dir, "file", "s.jsonl"), filepath.Join(dir, "file")} {
		s, err := jsonl.Open(name, jsonl.Options{})
		if err == nil { // where a path through a file is one that does not exist
			_, err = s.AppendMessage(llm.UserText("x", 1))
			s.Close()
		}
		if err == nil || strings.Count(err.Error(), name) != 1 || !strings.HasSuffix(err.Error(), ")") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
