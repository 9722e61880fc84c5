package envtest

import (
	"context"
	"strings"

	"github.com/pinch-agent/pinch/env"
)

// operations are all that take a context; those that change something do so
// below "changed".
var operations = map[string]func(w *world, ctx context.Context) error{
	"Access":    func(w *world, ctx context.Context) error { return w.Access(ctx, "file", env.Readable) },
	"Info":      func(w *world, ctx context.Context) error { _, err := w.Info(ctx, "file"); return err },
	"Exists":    func(w *world, ctx context.Context) error { _, err := w.Exists(ctx, "file"); return err },
	"Canonical": func(w *world, ctx context.Context) error { _, err := w.Canonical(ctx, "file"); return err },
	"Open": func(w *world, ctx context.Context) error {
		f, err := w.Open(ctx, "file")
		if err == nil {
			f.Close()
		}
		return err
	},
	"ReadFile":   func(w *world, ctx context.Context) error { _, err := w.ReadFile(ctx, "file"); return err },
	"WriteFile":  func(w *world, ctx context.Context) error { return w.WriteFile(ctx, "changed/w", []byte("x")) },
	"AppendFile": func(w *world, ctx context.Context) error { return w.AppendFile(ctx, "file", []byte("x")) },
	"Rename":     func(w *world, ctx context.Context) error { return w.Rename(ctx, "file", "changed") },
	"List":       func(w *world, ctx context.Context) error { _, err := w.List(ctx, "."); return err },
	"MakeDir":    func(w *world, ctx context.Context) error { return w.MakeDir(ctx, "changed/d") },
	"Remove":     func(w *world, ctx context.Context) error { return w.Remove(ctx, "file") },
	"RemoveAll":  func(w *world, ctx context.Context) error { return w.RemoveAll(ctx, "file") },
	"TempDir":    func(w *world, ctx context.Context) error { _, err := w.ExecutionEnv.TempDir(ctx, "x"); return err },
	"TempFile":   func(w *world, ctx context.Context) error { _, err := w.TempFile(ctx, "x", ""); return err },
	"Exec": func(w *world, ctx context.Context) error {
		_, err := w.Exec(ctx, env.Command{Line: "touch changed"})
		return err
	},
}

var errorRules = map[string]func(*world){
	"ended context": func(w *world) {
		w.write("file", "text")
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		for name, do := range operations {
			w.fails(name, do(w, ended), env.Aborted)
		}
		w.holds("file", "text")
		if got := w.list("."); got != "file:file" {
			w.Errorf("there is %s", got)
		}
	},
	"missing": func(w *world) {
		for name, do := range operations {
			switch name {
			case "Exists", "WriteFile", "AppendFile", "List", "MakeDir", "RemoveAll", "TempDir", "TempFile", "Exec":
			default:
				w.fails(name, do(w, w.ctx), env.NotFound)
			}
		}
		_, err := w.List(w.ctx, "none")
		w.fails("List", err, env.NotFound)
	},
	"directory": func(w *world) {
		w.write("full/x", "")
		_, err := w.ReadFile(w.ctx, "full")
		w.fails("ReadFile", err, env.IsDirectory)
		w.fails("WriteFile", w.WriteFile(w.ctx, "full", []byte("x")), env.IsDirectory)
		w.fails("AppendFile", w.AppendFile(w.ctx, "full", []byte("x")), env.IsDirectory)
		w.fails("Remove", w.Remove(w.ctx, "full"), env.AlreadyExists)
		w.holds("full/x", "")
	},
	"below a file": func(w *world) {
		w.write("file", "text")
		_, err := w.ReadFile(w.ctx, "file/x")
		w.fails("ReadFile", err, env.NotDirectory)
		_, err = w.List(w.ctx, "file")
		w.fails("List", err, env.NotDirectory)
		w.fails("MakeDir in the place of a file", w.MakeDir(w.ctx, "file"), env.AlreadyExists)
		w.fails("MakeDir", w.MakeDir(w.ctx, "file/x"), env.NotDirectory)
		w.fails("WriteFile", w.WriteFile(w.ctx, "file/x", nil), env.AlreadyExists)
		w.fails("WriteFile further down", w.WriteFile(w.ctx, "file/x/y", nil), env.NotDirectory)
		w.holds("file", "text")
	},
	"names that cannot be": func(w *world) {
		for name, path := range map[string]string{"zero byte": "a\x00b", "long": strings.Repeat("x", 5000)} {
			if _, err := w.ReadFile(w.ctx, path); env.CodeOf(err) != env.Invalid {
				w.Errorf("%s read: %v", name, err)
			}
			if err := w.WriteFile(w.ctx, path, nil); env.CodeOf(err) != env.Invalid {
				w.Errorf("%s written: %v", name, err)
			}
		}
		if got := w.list("."); got != "" {
			w.Errorf("there is %s", got)
		}
	},
}
