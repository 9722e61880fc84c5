package env

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocal(t *testing.T) *Local {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Local{Dir: dir, Temp: dir, Home: dir}
}

func TestErrorsHaveCodes(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	if err := l.WriteFile(ctx, "f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := l.MakeDir(ctx, "d"); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	read := func(ctx context.Context, path string) error { _, err := l.ReadFile(ctx, path); return err }
	for _, tt := range []struct {
		name  string
		err   error
		code  Code
		op    string
		errno string
	}{
		{"missing", read(ctx, "none"), NotFound, "open", "ENOENT"},
		{"directory read", read(ctx, "d"), IsDirectory, "read", "EISDIR"},
		{"directory written", l.WriteFile(ctx, "d", nil), IsDirectory, "open", "EISDIR"},
		{"below a file", read(ctx, "f/x"), NotDirectory, "open", "ENOTDIR"},
		{"parent is a file", l.WriteFile(ctx, "f/x", nil), AlreadyExists, "mkdir", "EEXIST"},
		{"grandparent is a file", l.WriteFile(ctx, "f/x/y", nil), NotDirectory, "mkdir", "ENOTDIR"},
		{"access", l.Access(ctx, "none", Readable), NotFound, "access", "ENOENT"},
		{"ended", read(ended, "f"), Aborted, "open", ""},
		{"full directory removed", func() error { l.WriteFile(ctx, "full/x", nil); return l.Remove(ctx, "full") }(), AlreadyExists, "unlink", "ENOTEMPTY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := errors.AsType[*Error](tt.err)
			if !ok {
				t.Fatalf("got %v, want an *Error", tt.err)
			}
			if e.Code != tt.code || e.Op != tt.op || e.Errno != tt.errno {
				t.Errorf("got %s %s %s, want %s %s %s", e.Code, e.Op, e.Errno, tt.code, tt.op, tt.errno)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.WriteFile(ctx, "a/b/c.txt", []byte("one\ntwo\nthree")))
	must(os.Chmod(filepath.Join(l.Dir, "a/b/c.txt"), 0o640))
	must(os.Symlink("b/c.txt", filepath.Join(l.Dir, "a/link")))

	t.Run("write follows links and keeps the mode", func(t *testing.T) {
		must(l.WriteFile(ctx, "a/link", []byte("uno\ndue\ntre")))
		st, err := os.Lstat(filepath.Join(l.Dir, "a/b/c.txt"))
		must(err)
		if st.Mode().Perm() != 0o640 || st.Size() != 11 {
			t.Errorf("got %v, %d bytes", st.Mode(), st.Size())
		}
	})
	t.Run("info describes the link", func(t *testing.T) {
		info, err := l.Info(ctx, "a/link")
		must(err)
		if info.Kind != KindSymlink || info.Name != "link" || info.Path != filepath.Join(l.Dir, "a/link") {
			t.Errorf("got %+v", info)
		}
	})
	t.Run("canonical", func(t *testing.T) {
		real, err := l.Canonical(ctx, "a/link")
		must(err)
		if real != filepath.Join(l.Dir, "a/b/c.txt") {
			t.Errorf("got %s", real)
		}
	})
	t.Run("append and lines", func(t *testing.T) {
		must(l.AppendFile(ctx, "a/b/c.txt", []byte("!\n")))
		lines, err := ReadTextLines(ctx, l, "a/b/c.txt", 0)
		must(err)
		if !slices.Equal(lines, []string{"uno", "due", "tre!"}) {
			t.Errorf("got %q", lines)
		}
		first, err := ReadTextLines(ctx, l, "a/b/c.txt", 1)
		must(err)
		if !slices.Equal(first, []string{"uno"}) {
			t.Errorf("got %q", first)
		}
	})
	t.Run("list", func(t *testing.T) {
		list, err := l.List(ctx, "a")
		must(err)
		var got []string
		for _, e := range list {
			got = append(got, e.Name+" "+string(e.Kind))
		}
		if want := []string{"b directory", "link symlink"}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("temporary", func(t *testing.T) {
		f, err := l.TempFile(ctx, "x-", ".log")
		must(err)
		f.Close()
		name := filepath.Base(f.Name())
		if len(name) != len("x-")+16+len(".log") {
			t.Errorf("got %s", name)
		}
		if st, err := os.Stat(f.Name()); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", st, err)
		}
		dir, err := l.TempDir(ctx, "tmp-")
		must(err)
		must(l.WriteFile(ctx, dir+"/inside", nil))
		must(l.Cleanup(ctx))
		if ok, err := l.Exists(ctx, dir); ok || err != nil {
			t.Errorf("the directory is there after Cleanup: %v", err)
		}
		if ok, _ := l.Exists(ctx, f.Name()); !ok {
			t.Error("the file is gone after Cleanup")
		}
	})
}

func TestOpenStreamsAndBoundsByTheSizeAtOpen(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	if err := l.WriteFile(ctx, "f", []byte("before")); err != nil {
		t.Fatal(err)
	}
	f, err := l.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := l.AppendFile(ctx, "f", []byte(" and after")); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadAll(f); err != nil || string(b) != "before" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestEnvironment(t *testing.T) {
	l := newLocal(t)
	l.Environ = []string{"PATH=/usr/bin:/bin", "KEY=secret", "KEEP=1", "DROP=2", "OLD=3"}
	l.Hide = []string{"KEY"}
	l.PathDirs = []string{"/agent/bin", "/more"}
	var out strings.Builder
	_, err := l.Exec(t.Context(), Command{
		Line:  `echo "$PATH [$KEY] [$KEEP] [$DROP] [$OLD]"`,
		Unset: []string{"DROP", "OLD"}, Set: []string{"OLD=new"}, Output: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "/agent/bin:/more:/usr/bin:/bin [] [1] [] [new]\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if _, err := l.Exec(t.Context(), Command{Line: "echo $KEY", Set: []string{"KEY=given"}, Output: &out}); err != nil || out.String() != "given\n" {
		t.Errorf("a command that is given a hidden variable: got %q, %v", out.String(), err)
	}
}

func TestExit(t *testing.T) {
	l := newLocal(t)
	for _, tt := range []struct {
		line         string
		code, signal int
	}{
		{"true", 0, 0}, {"exit 7", 7, 0}, {"kill -TERM $$", 0, 15}, {"sleep 60 & exit 3", 3, 0},
	} {
		t.Run(tt.line, func(t *testing.T) {
			ex, err := l.Exec(t.Context(), Command{Line: tt.line})
			if err != nil || ex.Code != tt.code || ex.Signal != tt.signal || !ex.Exited {
				t.Errorf("got %+v, %v", ex, err)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	l := newLocal(t)
	var both, out, errs strings.Builder
	line := "echo 1; echo 2 >&2; echo 3; cat"
	if _, err := l.Exec(t.Context(), Command{Line: line, Output: &both}); err != nil || both.String() != "1\n2\n3\n" {
		t.Errorf("got %q, %v", both.String(), err)
	}
	if _, err := l.Exec(t.Context(), Command{Line: line, Output: &out, Stderr: &errs}); err != nil || out.String() != "1\n3\n" || errs.String() != "2\n" {
		t.Errorf("got %q and %q, %v", out.String(), errs.String(), err)
	}
}

func TestNoShell(t *testing.T) {
	l := newLocal(t)
	l.Shell = "/no/such/shell"
	_, err := l.Exec(t.Context(), Command{Line: "true"})
	if CodeOf(err) != ShellUnavailable {
		t.Errorf("got %v", err)
	}
	l.Shell = ""
	_, err = l.Exec(t.Context(), Command{Line: "true", Dir: "missing"})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != NotFound || e.Op != "chdir" {
		t.Errorf("got %v", err)
	}
}

func TestWriterErrorKills(t *testing.T) {
	l := newLocal(t)
	began := time.Now()
	_, err := l.Exec(t.Context(), Command{Line: "echo x; sleep 60", Output: failingWriter{}})
	if CodeOf(err) != CallbackError || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
