//go:build unix

package jsonl_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

var long = flag.Bool("long", false, "run the long proofs")

// killEnv makes the test binary open the session that it names and append to
// it. Behind the path stand the number of a write and the number of its bytes
// after which the process kills itself.
const killEnv = "PINCH_TEST_KILL_SESSION"

func init() {
	helpers[killEnv] = func(arg string) {
		var path string
		var write, bytes int
		if _, err := fmt.Sscanf(arg, "%d %d %s", &write, &bytes, &path); err != nil {
			panic(err)
		}
		err := converse(path, func(f *os.File) jsonl.File {
			if write < 0 {
				return f
			}
			return &fatal{f, &write, bytes}
		})
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	helpers[migrateEnv] = func(path string) {
		fmt.Println("ready")
		if _, err := jsonl.Open(path, jsonl.Options{}); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// fatal is a file whose process dies in the middle of a write, as it does when
// the system runs out of memory or somebody ends it by force.
type fatal struct {
	*os.File
	left  *int // writes before the fatal one
	bytes int  // that it still writes
}

func (f *fatal) Write(p []byte) (int, error) {
	if *f.left > 0 {
		*f.left--
		return f.File.Write(p)
	}
	if _, err := f.File.Write(p[:min(f.bytes, len(p))]); err != nil {
		return 0, err
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// converse holds the same conversation in every process, down to the ids, and
// says on the standard output what was accepted.
func converse(path string, wrap func(*os.File) jsonl.File) error {
	store := jsonl.NewStore(path, jsonl.Options{})
	store.OpenWith(wrap)
	at := time.UnixMilli(1772352000000)
	s, err := session.Open(store, session.Options{ID: "s1", CWD: "/srv/demo", Now: func() time.Time { return at }, Rand: rand.NewChaCha8([32]byte{1})})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, d := range []session.Data{
		&session.ModelChangeEntry{Provider: "acme", ModelID: "alpha-1"}, // held back until somebody speaks
		&session.MessageEntry{Message: llm.UserText("say \"häßlich\", \\ and 😀", 1)},
		&session.MessageEntry{Message: &llm.Assistant{Content: []llm.Block{
			&llm.Text{Text: "so be it\n"}, &llm.ToolCall{ID: "call_1", Name: "read", Arguments: []byte(`{"path":"ü.txt"}`)},
		}, API: "mock", Provider: "acme", Model: "alpha-1", StopReason: llm.StopToolUse, Timestamp: 2}},
		&session.MessageEntry{Message: &llm.ToolResult{ToolCallID: "call_1", ToolName: "read", Content: []llm.Block{&llm.Text{Text: "\x00\u2028"}}, Timestamp: 3}},
		&session.InfoEntry{Name: "a name"},
	} {
		if _, err := s.Append(d); err != nil {
			return err
		}
		fmt.Println("accepted")
	}
	return nil
}

// helper starts the test binary in another part.
func helper(t *testing.T, env, arg string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env+"="+arg)
	return cmd
}

// plainly reads a session as programs without any care do: line by line, what
// is no JSON left out.
func plainly(t *testing.T, path string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(read1(t, path)) {
		var e struct{ Type, ID string }
		if json.Unmarshal([]byte(line), &e) == nil {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// TestProcessKilledAtEveryByte kills a process with SIGKILL at every byte that
// it writes. Everything that was accepted, and every line that is complete, is
// there afterwards, for this reader and for a plain one, and so is what is
// appended next. By default every eleventh byte and the ends of lines are tried.
func TestProcessKilledAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.jsonl")
	if out, err := helper(t, killEnv, "-1 0 "+path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := read1(t, path)
	all := plainly(t, path)
	lines := slices.Collect(strings.Lines(whole))
	if len(all) != 6 || len(lines) != 6 {
		t.Fatalf("the conversation has the ids %q", all)
	}
	// The first write puts down the first three lines.
	writes := []string{strings.Join(lines[:3], ""), lines[3], lines[4], lines[5]}
	step := 11
	if *long {
		step = 1
	}
	kills, size := 0, 0
	for w, text := range writes {
		for n := 0; n <= len(text); n++ {
			if n%step != 0 && n < len(text)-2 {
				continue
			}
			kills++
			killedAt(t, filepath.Join(dir, fmt.Sprintf("%d-%d.jsonl", w, n)), whole, all, w, n, size)
		}
		size += len(text)
	}
	t.Logf("%d processes killed in %d writes of %d bytes", kills, len(writes), len(whole))
}

// killedAt kills a process n bytes into write w, before which the file has size
// bytes, and looks at what is left.
func killedAt(t *testing.T, path, whole string, all []string, w, n, size int) {
	t.Helper()
	cmd := helper(t, killEnv, fmt.Sprintf("%d %d %s", w, n, path))
	out, err := cmd.Output()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("write %d, byte %d: the process was not killed: %v, %s", w, n, err, out)
	}
	// The entries of the first write are accepted once it is done.
	accepted := strings.Count(string(out), "accepted")
	if want := w + 1; accepted != want {
		t.Fatalf("write %d, byte %d: %d entries were accepted, want %d", w, n, accepted, want)
	}
	have := whole[:size+n]
	complete := all[:strings.Count(have, "\n")]
	switch {
	case w == 0:
		have, complete = "", nil
	case size+n < len(whole) && whole[size+n] == '\n': // a line is complete without its line break
		complete = all[:len(complete)+1]
	}
	if got := read1(t, path); got != have {
		t.Fatalf("write %d, byte %d: the file holds %q, want %q", w, n, got, have)
	}
	if w > 0 && len(complete) < 1+accepted {
		t.Fatalf("write %d, byte %d: %d complete lines", w, n, len(complete))
	}
	s := openUnsynced(t, path)
	if w > 0 {
		ids := []string{s.ID()}
		for _, e := range s.Entries() {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, complete) {
			t.Fatalf("write %d, byte %d: entries %q, want %q", w, n, ids, complete)
		}
	} else {
		complete = []string{s.ID()}
	}
	e := say(t, s, "after")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read1(t, path); !strings.HasPrefix(got, have) || !strings.HasSuffix(got, "\n"+string(e.Raw())+"\n") {
		t.Fatalf("write %d, byte %d: the append went wrong: %q", w, n, got)
	}
	if got, want := plainly(t, path), append(slices.Clone(complete), e.ID); !slices.Equal(got, want) {
		t.Fatalf("write %d, byte %d: a plain reader finds %q, want %q", w, n, got, want)
	}
	s = openUnsynced(t, path)
	if s.LeafID() != e.ID || len(s.Entries()) != len(complete) {
		t.Fatalf("write %d, byte %d: %d entries after the append", w, n, len(s.Entries()))
	}
	s.Close()
}

// migrateEnv makes the test binary open, and so migrate, a session.
const migrateEnv = "PINCH_TEST_MIGRATE_SESSION"

// TestProcessKilledInAMigration kills processes while they rewrite an old
// session: the file is the old one or the new one, whole.
func TestProcessKilledInAMigration(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"type":"session","id":"old","cwd":"/srv/demo"}` + "\n")
	const entries = 4000
	for i := range entries {
		fmt.Fprintf(&b, `{"type":"message","message":{"role":"user","content":"%d %s"}}`+"\n", i, strings.Repeat("x", 400))
	}
	old := b.String()
	runs := 10
	if *long {
		runs = 400
	}
	seed := uint64(20261130)
	r := rand.New(rand.NewPCG(seed, 1))
	kept := 0
	for i := range runs {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		write(t, path, old)
		cmd := helper(t, migrateEnv, path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.Read(make([]byte, 1))
		time.Sleep(time.Duration(r.IntN(80_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		text := read1(t, path)
		if text == old {
			kept++
		} else if strings.Count(text, "\n") != entries+1 || !strings.HasPrefix(text, `{"type":"session","id":"old","cwd":"/srv/demo","version":3}`) {
			t.Fatalf("run %d: neither the old nor the new file: %d bytes", i, len(text))
		}
		s := open(t, path)
		if len(s.Entries()) != entries {
			t.Fatalf("run %d: %d entries", i, len(s.Entries()))
		}
		s.Close()
	}
	t.Logf("%d runs, seed %d: the old file was left %d times", runs, seed, kept)
}
