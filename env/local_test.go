package env

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

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

// TestEmptyFilesCanBeAborted looks at what a file that is made up by the system
// looks like: regular and empty. Reading it may wait as long as a pipe does, and
// the only ones that do have one reader for the whole machine.
func TestEmptyFilesCanBeAborted(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	for content, abortable := range map[string]bool{"": true, "x": false} {
		if err := l.WriteFile(ctx, "file", []byte(content)); err != nil {
			t.Fatal(err)
		}
		f, err := l.Open(ctx, "file")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := ReadAll(f); err != nil || string(b) != content {
			t.Errorf("%q: got %q, %v", content, b, err)
		}
		if got := f.(*localFile).stop != nil; got != abortable {
			t.Errorf("%q: the end of the context ends a read: %v", content, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
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
