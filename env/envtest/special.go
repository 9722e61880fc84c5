package envtest

import (
	"context"
	"strings"

	"github.com/pinch-agent/pinch/env"
)

var linkRules = map[string]func(*world){
	"to a file": func(w *world) {
		w.write("d/file", "text")
		w.needs("ln -s d/file link")
		w.write("link", "new")
		w.must(w.AppendFile(w.ctx, "link", []byte("er")))
		w.holds("d/file", "newer")
		if info, err := w.Info(w.ctx, "link"); err != nil || info.Kind != env.KindSymlink || info.Path != w.Abs("link") {
			w.Errorf("got %+v, %v", info, err)
		}
		if got := w.list("."); got != "d:directory link:symlink" {
			w.Errorf("got %s", got)
		}
		real, err := w.Canonical(w.ctx, "d/file")
		w.must(err)
		if got, err := w.Canonical(w.ctx, "link"); err != nil || got != real {
			w.Errorf("got %s, %v, want %s", got, err, real)
		}
		w.must(w.Remove(w.ctx, "link"))
		w.holds("d/file", "newer")
	},
	"to a directory": func(w *world) {
		w.write("d/file", "text")
		w.needs("ln -s d link")
		w.holds("link/file", "text")
		if got := w.list("link"); got != "file:file" {
			w.Errorf("got %s", got)
		}
		w.must(w.MakeDir(w.ctx, "link"))
		w.write("link/new/file", "text")
		w.must(w.RemoveAll(w.ctx, "link"))
		w.holds("d/new/file", "text")
		w.needs("mkdir e && ln -s ../d e/link")
		w.must(w.RemoveAll(w.ctx, "e"))
		w.holds("d/file", "text")
	},
	"to nowhere": func(w *world) {
		w.needs("ln -s target link")
		if ok, err := w.Exists(w.ctx, "link"); err != nil || !ok {
			w.Errorf("got %v, %v", ok, err)
		}
		_, err := w.ReadFile(w.ctx, "link")
		w.fails("ReadFile", err, env.NotFound)
		_, err = w.Canonical(w.ctx, "link")
		w.fails("Canonical", err, env.NotFound)
		w.write("link", "text")
		w.holds("target", "text")
	},
	"in a circle": func(w *world) {
		w.needs("ln -s b a && ln -s a b")
		_, err := w.ReadFile(w.ctx, "a")
		w.fails("ReadFile", err, env.Invalid)
		_, err = w.Canonical(w.ctx, "a")
		w.fails("Canonical", err, env.Invalid)
		w.fails("WriteFile", w.WriteFile(w.ctx, "a", nil), env.Invalid)
		w.must(w.Remove(w.ctx, "a"))
	},
}

var specialRules = map[string]func(*world){
	"pipe": func(w *world) {
		w.needs("mkfifo pipe")
		if info, err := w.Info(w.ctx, "pipe"); err != nil || info.Kind != env.KindOther {
			w.Errorf("got %+v, %v", info, err)
		}
		if b, err := w.ReadFile(w.ctx, "pipe"); err != nil || len(b) != 0 {
			w.Errorf("nobody writes: got %q, %v", b, err)
		}
		if err := w.WriteFile(w.ctx, "pipe", []byte("x")); err == nil || env.CodeOf(err) == env.Aborted {
			w.Errorf("nobody reads: got %v", err)
		}
		w.must(w.Remove(w.ctx, "pipe"))
	},
	"pipe whose other end is silent": func(w *world) {
		w.needs("mkfifo pipe")
		c := w.begin("exec 3<>pipe; echo ready; sleep 600", 0)
		c.says("ready")
		ctx, cancel := context.WithCancel(w.ctx)
		read := make(chan error, 1)
		go func() { _, err := w.ReadFile(ctx, "pipe"); read <- err }()
		cancel()
		w.fails("ReadFile", <-read, env.Aborted)
		ctx, cancel = context.WithCancel(w.ctx)
		written := make(chan error, 1)
		go func() { written <- w.WriteFile(ctx, "pipe", make([]byte, 4<<20)) }()
		cancel()
		w.fails("WriteFile", <-written, env.Aborted)
		c.abort()
	},
	"device": func(w *world) {
		w.needs("test -c /dev/null && test -c /dev/zero && ln -s /dev/zero endless")
		for _, path := range []string{"/dev/zero", "endless"} {
			_, err := w.ReadFile(w.ctx, path)
			w.fails(path, err, env.Invalid)
		}
		w.holds("/dev/null", "")
		w.write("/dev/null", "x")
	},
	"no space": func(w *world) {
		w.needs("test -c /dev/full")
		w.fails("WriteFile", w.WriteFile(w.ctx, "/dev/full", []byte("x")), env.NoSpace)
		w.fails("AppendFile", w.AppendFile(w.ctx, "/dev/full", []byte("x")), env.NoSpace)
	},
	"huge": func(w *world) {
		w.needs("truncate -s 4T huge")
		_, err := w.ReadFile(w.ctx, "huge")
		w.fails("ReadFile", err, env.Invalid)
		if lines, err := env.ReadTextLines(w.ctx, w, "/dev/null", 1); err != nil || len(lines) != 0 {
			w.Errorf("got %q, %v", lines, err)
		}
	},
}

var permissionRules = map[string]func(*world){
	"read-only directory": func(w *world) {
		w.deny()
		w.write("d/file", "text")
		w.run("chmod 500 d")
		defer w.run("chmod 700 d")
		w.fails("WriteFile", w.WriteFile(w.ctx, "d/new", nil), env.PermissionDenied)
		w.fails("MakeDir", w.MakeDir(w.ctx, "d/e"), env.PermissionDenied)
		w.fails("Remove", w.Remove(w.ctx, "d/file"), env.PermissionDenied)
		w.fails("RemoveAll", w.RemoveAll(w.ctx, "d"), env.PermissionDenied)
		w.fails("Rename", w.Rename(w.ctx, "d/file", "file"), env.PermissionDenied)
		w.fails("Access", w.Access(w.ctx, "d", env.Writable), env.PermissionDenied)
		w.write("d/file", "changed")
		w.holds("d/file", "changed")
	},
	"file without rights": func(w *world) {
		w.deny()
		w.write("file", "text")
		w.run("chmod 0 file")
		_, err := w.ReadFile(w.ctx, "file")
		w.fails("ReadFile", err, env.PermissionDenied)
		w.fails("WriteFile", w.WriteFile(w.ctx, "file", nil), env.PermissionDenied)
		w.fails("Access", w.Access(w.ctx, "file", env.Readable), env.PermissionDenied)
		if ok, err := w.Exists(w.ctx, "file"); err != nil || !ok {
			w.Errorf("got %v, %v", ok, err)
		}
	},
	"hidden directory": func(w *world) {
		w.deny()
		w.write("d/file", "text")
		w.run("chmod 0 d")
		defer w.run("chmod 700 d")
		_, err := w.Exists(w.ctx, "d/file")
		w.fails("Exists", err, env.PermissionDenied)
		_, err = w.List(w.ctx, "d")
		w.fails("List", err, env.PermissionDenied)
		_, err = w.Exec(w.ctx, env.Command{Line: "true", Dir: "d"})
		w.fails("Exec", err, env.PermissionDenied)
	},
}

// deny skips a rule about permissions where there are none.
func (w *world) deny() {
	w.Helper()
	if strings.TrimSpace(w.run("id -u")) == "0" {
		w.Skip("the superuser may do everything")
	}
}
