package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func names(list []session.Info) string {
	var out []string
	for _, i := range list {
		out = append(out, i.ID)
	}
	return strings.Join(out, " ")
}

// left lists the names of the files in a folder and below.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSearch(t *testing.T) {
	for name, r := range map[string]*jsonl.Repository{"folders": {Root: t.TempDir()}, "one folder": {Folder: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			create(t, r, "one", "/srv/a", "the login test is flaky")
			named := create(t, r, "two", "/srv/a", "something else")
			create(t, r, "three", "/srv/b", "login again")
			if err := r.SetName(named, "Login\nrework"); err != nil {
				t.Fatal(err)
			}
			tests := []struct {
				query string
				o     jsonl.SearchOptions
				want  string
			}{
				{"", jsonl.SearchOptions{}, "three two one"},
				{"login", jsonl.SearchOptions{}, "two three one"},
				{"login", jsonl.SearchOptions{Recent: true}, "three two one"},
				{"login", jsonl.SearchOptions{CWD: "/srv/a"}, "two one"},
				{`"login again"`, jsonl.SearchOptions{}, "three"},
				{"re:fl[aä]ky$", jsonl.SearchOptions{}, "one"},
				{"nothing", jsonl.SearchOptions{}, ""},
			}
			for _, tt := range tests {
				q, err := session.ParseQuery(tt.query)
				if err != nil {
					t.Fatal(err)
				}
				last := 0
				tt.o.Progress = func(read, total int) { last = total - read }
				got, err := r.Search(t.Context(), q, tt.o)
				if err != nil || names(got) != tt.want || last != 0 {
					t.Errorf("%q %+v: %s, %v, want %s", tt.query, tt.o, names(got), err, tt.want)
				}
				if slices.ContainsFunc(got, func(i session.Info) bool { return i.Text != "" || i.FirstMessage == "" || i.Path == "" }) {
					t.Errorf("%q: %+v", tt.query, got)
				}
			}
			var seen []string
			for i := range r.Recent(t.Context(), "/srv/a") {
				seen = append(seen, i.ID+" "+i.Name)
			}
			// Naming wrote to a file.
			if !slices.Equal(seen, []string{"two Login rework", "one "}) {
				t.Errorf("recent: %q", seen)
			}
		})
	}
}

// TestListsWithoutTextsAreSmall keeps little of sessions with much in them.
func TestListsWithoutTextsAreSmall(t *testing.T) {
	r := &jsonl.Repository{Folder: t.TempDir()}
	path := create(t, r, "mine", "/srv/a", "x"+strings.Repeat("ü", 1<<20))
	query, err := session.ParseQuery("re:ü$")
	must(t, err)
	for name, q := range map[string]session.Query{"all": {}, "found": query} {
		list, err := r.Search(t.Context(), q, jsonl.SearchOptions{})
		if err != nil || len(list) != 1 || list[0].FirstMessage != "x"+strings.Repeat("ü", 2047) || list[0].Text != "" {
			t.Errorf("%s: %d sessions, %v", name, len(list), err)
		}
	}
	for i := range r.Recent(t.Context(), "") {
		if i.Path != path || len(i.FirstMessage) != 4095 || i.Text != "" || i.MessageCount != 1 {
			t.Errorf("%s: %d, %d", i.Path, len(i.FirstMessage), len(i.Text))
		}
	}
	if list, err := r.ListAll(t.Context(), nil); err != nil || len(list[0].Text) != 1+2<<20 || list[0].FirstMessage != list[0].Text {
		t.Errorf("%v", err)
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	r := &jsonl.Repository{Folder: t.TempDir()}
	for i := range 20 {
		writeLong(t, filepath.Join(r.Folder, fmt.Sprintf("%d.jsonl", i)), 4)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	_, err := r.Search(ctx, session.Query{}, jsonl.SearchOptions{Progress: func(int, int) { read++; cancel() }})
	if !errors.Is(err, context.Canceled) || read == 20 {
		t.Errorf("%v after %d files", err, read)
	}
	for range r.Recent(ctx, "") {
		t.Error("read on")
	}
	n := 0
	for range r.Recent(t.Context(), "") {
		if n++; n == 3 {
			break
		}
	}
}

func TestSetNameRefuses(t *testing.T) {
	r := &jsonl.Repository{Folder: t.TempDir()}
	if err := r.SetName(filepath.Join(r.Folder, "gone.jsonl"), "x"); kindOf(err) != session.NotFound {
		t.Error(err)
	}
	path := create(t, r, "mine", "/srv/a", "hello")
	s := open(t, path)
	defer s.Close()
	if err := r.SetName(path, "x"); kindOf(err) != session.Busy {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) {
	r := &jsonl.Repository{Folder: t.TempDir()}
	path := create(t, r, "mine", "/srv/a", "hello")
	write(t, path+".run", "{}\n")
	write(t, path+".orig", "{}\n")
	s := open(t, path)
	if err := r.Delete(t.Context(), path); kindOf(err) != session.Busy || len(left(t, r.Folder)) != 4 {
		t.Errorf("an open session: %v, %q", err, left(t, r.Folder))
	}
	s.Close()
	if link := filepath.Join(r.Folder, "link.jsonl"); os.Symlink(path, link) == nil {
		if err := r.Delete(t.Context(), link); err != nil || len(left(t, r.Folder)) != 3 {
			t.Errorf("a link: %v, %q", err, left(t, r.Folder))
		}
	}
	var trashed []string
	r.Trash = func(_ context.Context, path string) error {
		trashed = append(trashed, filepath.Ext(path))
		return os.Remove(path)
	}
	if err := r.Delete(t.Context(), path); err != nil || len(left(t, r.Folder)) != 0 {
		t.Errorf("%v, left %q", err, left(t, r.Folder))
	}
	if !slices.Equal(trashed, []string{".jsonl", ".run", ".orig"}) {
		t.Errorf("trashed %q", trashed)
	}
	if err := r.Delete(t.Context(), r.Folder); kindOf(err) != session.InvalidFile {
		t.Errorf("a folder: %v", err)
	}
}

func TestMove(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	path := filepath.Join(r.Dir("/srv/old"), "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	body := `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}` + "\nnot json\n{\"torn\":"
	write(t, path, "\n"+`{"x":[1.50],"type":"session","version":3,"id":"s1","cwd":"/srv/old"}`+"\r\n"+body)
	write(t, path+".run", "notes\n")
	taken := filepath.Join(r.Dir("/srv/new"), "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(taken), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, taken, "other\n")

	s := open(t, path)
	if _, err := r.Move(path, "/srv/new"); kindOf(err) != session.Busy {
		t.Errorf("an open session: %v", err)
	}
	s.Close()
	write(t, path, "\n"+`{"x":[1.50],"type":"session","version":3,"id":"s1","cwd":"/srv/old"}`+"\r\n"+body)
	to, err := r.Move(path, "/srv/new")
	if err != nil {
		t.Fatal(err)
	}
	if to != filepath.Join(filepath.Dir(taken), "s-1.jsonl") || read1(t, taken) != "other\n" || read1(t, to+".run") != "notes\n" {
		t.Errorf("moved to %s", to)
	}
	want := "\n" + `{"x":[1.50],"type":"session","version":3,"id":"s1","cwd":"/srv/new"}` + "\n" + body
	if got := read1(t, to); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if files := left(t, filepath.Dir(path)); len(files) != 0 {
		t.Errorf("left behind: %q", files)
	}

	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	write(t, bad, "hello\n")
	if _, err := r.Move(bad, "/srv/new"); kindOf(err) != session.InvalidFile || read1(t, bad) != "hello\n" {
		t.Error(err)
	}
	if files := left(t, r.Root); len(files) != 3 {
		t.Errorf("there are %q", files)
	}

	// In a folder for all working directories the file stays where it is.
	shared := &jsonl.Repository{Folder: t.TempDir()}
	path = create(t, shared, "mine", "/srv/old", "hello")
	if to, err := shared.Move(path, "/srv/new"); err != nil || to != path {
		t.Fatal(to, err)
	}
	if list, err := shared.List(t.Context(), "/srv/new", nil); err != nil || names(list) != "mine" || len(left(t, shared.Folder)) != 1 {
		t.Errorf("%+v, %v, %q", list, err, left(t, shared.Folder))
	}
}

func TestExport(t *testing.T) {
	dir := t.TempDir()
	r := &jsonl.Repository{Folder: filepath.Join(dir, "sessions")}
	s, err := r.Create(session.Options{ID: "mine", CWD: dir, ParentSession: "/old.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := say(t, s, "first")
	second := say(t, s, "second")
	if err := s.Branch(first.ID); err != nil {
		t.Fatal(err)
	}
	third := say(t, s, "third")

	for name, tt := range map[string]struct {
		o      jsonl.ExportOptions
		want   []*session.Entry
		parent string
	}{
		"leaf":   {jsonl.ExportOptions{}, []*session.Entry{first, third}, ""},
		"branch": {jsonl.ExportOptions{Leaf: second.ID}, []*session.Entry{first, second}, ""},
		"tree":   {jsonl.ExportOptions{Tree: true}, []*session.Entry{first, second, third}, "/old.jsonl"},
	} {
		path := filepath.Join(dir, "out", name+".jsonl")
		if err := jsonl.Export(s, path, tt.o); err != nil {
			t.Fatal(name, err)
		}
		got := open(t, path)
		var ids []string
		for _, e := range got.Entries() {
			ids = append(ids, e.ID)
		}
		var want []string
		for _, e := range tt.want {
			want = append(want, e.ID)
		}
		if !slices.Equal(ids, want) || got.ID() != "mine" || got.CWD() != dir || got.Header().ParentSession != tt.parent {
			t.Errorf("%s: %q, want %q, header %s", name, ids, want, got.Header().Raw)
		}
		got.Close()
	}

	out := filepath.Join(dir, "out", "leaf.jsonl")
	whole := read1(t, out)
	say(t, s, "fourth")
	if err := jsonl.Export(s, out, jsonl.ExportOptions{}); kindOf(err) != session.Exists || read1(t, out) != whole {
		t.Errorf("over a file: %v", err)
	}
	if err := jsonl.Export(s, out, jsonl.ExportOptions{Leaf: "gone", Replace: true}); kindOf(err) != session.NotFound || read1(t, out) != whole {
		t.Errorf("from nowhere: %v", err)
	}
	if err := jsonl.Export(s, out, jsonl.ExportOptions{Replace: true}); err != nil || read1(t, out) == whole {
		t.Errorf("in its place: %v", err)
	}
	own := read1(t, s.File())
	if err := jsonl.Export(s, s.File(), jsonl.ExportOptions{Replace: true}); kindOf(err) != session.Busy || read1(t, s.File()) != own {
		t.Errorf("over itself: %v", err)
	}
	if err := jsonl.Export(s, dir, jsonl.ExportOptions{Replace: true}); kindOf(err) != session.InvalidFile {
		t.Errorf("over a folder: %v", err)
	}
	if err := jsonl.Export(s, filepath.Join(out, "x.jsonl"), jsonl.ExportOptions{}); err == nil {
		t.Error("below a file")
	}
	if files := left(t, filepath.Join(dir, "out")); len(files) != 3 {
		t.Errorf("there are %q", files)
	}
}

// TestExportedIsImported goes round: a tree that is exported, imported and
// exported again is the same bytes.
func TestExportedIsImported(t *testing.T) {
	cwd := t.TempDir()
	away, home := &jsonl.Repository{Root: t.TempDir()}, &jsonl.Repository{Root: t.TempDir()}
	s := open(t, create(t, away, "mine", cwd, "hello"))
	if _, err := s.Append(&session.UnknownEntry{Type: "later", Raw: []byte(`{"n":1.50,"z":{"b":1,"a":2}}`)}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(cwd, "out.jsonl")
	if err := jsonl.Export(s, out, jsonl.ExportOptions{Tree: true}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	in, err := home.Import(out, "/srv/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	if in.CWD() != cwd || filepath.Dir(in.File()) != home.Dir("/srv/elsewhere") {
		t.Errorf("imported to %s, runs in %s", in.File(), in.CWD())
	}
	var again bytes.Buffer
	if err := in.ExportTree(&again); err != nil || again.String() != read1(t, out) {
		t.Errorf("%v\n%s\nwant\n%s", err, again.String(), read1(t, out))
	}
	path := in.File()
	in.Close()

	// What lies in the folder already is not copied.
	if in, err = home.Import(path, "/srv/elsewhere"); err != nil || in.File() != path {
		t.Fatal(err)
	}
	in.Close()
	if err := os.RemoveAll(cwd); err != nil {
		t.Fatal(err)
	}
	if _, err := home.Import(path, "/srv/elsewhere"); kindOf(err) != session.MissingCWD {
		t.Error(err)
	}
	if files := left(t, home.Root); len(files) != 1 {
		t.Errorf("there are %q", files)
	}
}

func TestImportOfAnOldVersion(t *testing.T) {
	cwd := t.TempDir()
	r := &jsonl.Repository{Root: t.TempDir()}
	old := filepath.Join(cwd, "old.jsonl")
	text := `{"type":"session","id":"old","cwd":` + fmt.Sprintf("%q", cwd) + `}` + "\n" +
		`{"type":"message","message":{"role":"hookMessage","customType":"x","content":"a"}}` + "\n"
	write(t, old, text)
	s, err := r.Import(old, cwd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(llm.UserText("b", 1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if read1(t, old) != text {
		t.Error("the source was changed")
	}
	if got := read1(t, s.File()); !strings.Contains(got, `"version":3`) || !strings.Contains(got, `"role":"custom"`) {
		t.Errorf("copy\n%s", got)
	}
}

// An editor on Windows may have put a byte order mark before a session.
func TestByteOrderMark(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	const cwd = "/srv/a"
	path := create(t, r, "one", cwd, "hello")
	plain := read1(t, path)
	write(t, path, "\uFEFF"+plain)

	list, err := r.List(t.Context(), cwd, nil)
	if err != nil || len(list) != 1 || list[0].ID != "one" || list[0].FirstMessage != "hello" {
		t.Errorf("listed as %+v, %v", list, err)
	}
	if newest, err := r.Newest(cwd); newest != path || err != nil {
		t.Errorf("the newest is %q, %v", newest, err)
	}
	s, err := r.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() != "one" || len(s.Entries()) != 1 {
		t.Errorf("opened as %q with %d entries", s.ID(), len(s.Entries()))
	}
	s.Close()
	if got := read1(t, path); got != "\uFEFF"+plain {
		t.Errorf("opening changed the file to\n%q", got)
	}

	fork, err := r.ForkFrom(path, session.Options{CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	fork.Close()
	if got := read1(t, fork.File()); !strings.HasPrefix(got, `{"type":"session"`) || strings.Count(got, `"type":"session"`) != 1 {
		t.Errorf("forked as\n%q", got)
	}
	to, err := r.Move(path, "/srv/b")
	if err != nil {
		t.Fatal(err)
	}
	if got := read1(t, to); got != strings.Replace(plain, cwd, "/srv/b", 1) {
		t.Errorf("moved as\n%q", got)
	}

	old := filepath.Join(t.TempDir(), "old.jsonl")
	write(t, old, "\uFEFF"+`{"type":"session","id":"old","cwd":"/srv/a"}`+"\n"+`{"type":"message","message":{"role":"user","content":"hi"}}`+"\n")
	open(t, old).Close()
	if got := read1(t, old); !strings.HasPrefix(got, `{"type":"session","id":"old","cwd":"/srv/a","version":3}`) {
		t.Errorf("migrated to\n%q", got)
	}
}

func TestInUse(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	path := create(t, r, "one", "/srv/a", "hello")
	if r.InUse(path) || r.InUse(path+".gone") {
		t.Error("nobody has the session open")
	}
	s, err := r.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if !r.InUse(path) {
		t.Error("the session is open")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The lock of a program that was killed, and something else of its name.
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r.InUse(path) {
		t.Error("a lock that was left holds nobody")
	}
	if got := left(t, r.Root); !slices.Contains(got, filepath.Base(path)+".lock") {
		t.Errorf("the lock was taken away: %q", got)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	if r.InUse(path) {
		t.Error("a folder is no lock")
	}
	if got := r.Files("/srv/a"); !slices.Equal(got, []string{path}) || !slices.Equal(got, r.Files("")) || len(r.Files("/srv/b")) > 0 {
		t.Errorf("files %q", got)
	}
}
