package jsonl_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// resumed is a session of a few messages, opened anew, and its file.
func resumed(t *testing.T, o session.Options) (*session.Session, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	for _, text := range []string{"one", "two", "three"} {
		if _, err := s.AppendMessage(llm.UserText(text, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := jsonl.Open(path, jsonl.Options{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

// Another program that shortens the file of an open session costs what it took
// away: nothing is written behind it, and nobody takes the rest for the whole.
func TestFileThatBecameShorter(t *testing.T) {
	s, path := resumed(t, session.Options{})
	size := len(read1(t, path))
	if err := os.Truncate(path, int64(size)/2); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("before anything was read: %v", err)
	}
	if n := len(s.Context().Messages); n != 2 {
		t.Errorf("%d messages, the first, which is there, and the last, which was read before", n)
	}
	if kind := kindOf(s.Err()); kind != session.Conflict {
		t.Errorf("the error is %v", s.Err())
	}
	if _, err := s.AppendMessage(llm.UserText("four", 1)); kindOf(err) != session.Conflict {
		t.Errorf("append: %v", err)
	}
	if err := s.Export(io.Discard); kindOf(err) != session.Conflict {
		t.Errorf("export: %v", err)
	}
	repo := &jsonl.Repository{Root: t.TempDir()}
	if _, err := repo.Fork(s, s.LeafID(), session.Options{CWD: "/srv/demo"}); kindOf(err) != session.Conflict {
		t.Errorf("fork: %v", err)
	}
	s.Entries()
	s.Tree()
	s.Stats()
	for _, e := range s.Path() {
		e.Data()
	}
	if got := len(read1(t, path)); got != size/2 {
		t.Errorf("the file has %d bytes now, not %d", got, size/2)
	}
}

// A session is read on after it was closed, as long as its file is there.
func TestReadAfterClose(t *testing.T) {
	s, path := resumed(t, session.Options{ReadOnly: true})
	first := s.Entries()[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Context().Messages); n != 3 || s.Err() != nil {
		t.Errorf("%d messages, %v", n, s.Err())
	}
	if !bytes.Contains(first.Raw(), []byte(`"one"`)) {
		t.Errorf("read %s", first.Raw())
	}
	data := read1(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"2", []byte(strings.ReplaceAll(data, "one", "new")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if raw := first.Raw(); raw != nil || kindOf(s.Err()) != session.Conflict {
		t.Errorf("of another file: %s, %v", raw, s.Err())
	}
}

// A file that is deleted while its session is open can be exported still.
func TestExportOfDeletedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that are open are not deleted there")
	}
	s, path := resumed(t, session.Options{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Export(&out); err != nil || !strings.Contains(out.String(), `"three"`) {
		t.Errorf("%s, %v", out.String(), err)
	}
}
