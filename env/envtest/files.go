package envtest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/env"
)

var fileRules = map[string]func(*world){
	"paths": func(w *world) {
		dir := w.WorkDir()
		for path, want := range map[string]string{
			"": dir, ".": dir, "a/../b": w.Abs("b"), "./a//b/": w.Abs("a/b"), dir: dir, w.Abs("x"): w.Abs("x"),
		} {
			if got := w.Abs(path); got != want {
				w.Errorf("Abs(%q) is %q, want %q", path, got, want)
			}
		}
		if got, want := env.Join(w, "", "a", "b/c"), w.Abs("a/b/c"); got != want {
			w.Errorf("Join gives %q, want %q", got, want)
		}
		w.write("a/b/c", "x")
		w.holds(env.Join(w, w.Abs("a"), "b", "c"), "x")
	},
	"write and read": func(w *world) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for _, text := range []string{"text\n", strings.Repeat("longer ", 400_000), "short", "", string(all)} {
			w.write("deep/er/file", text)
			w.holds("deep/er/file", text)
			if info, err := w.Info(w.ctx, "deep/er/file"); err != nil || info.Size != int64(len(text)) {
				w.Errorf("%+v, %v, want %d bytes", info, err, len(text))
			}
		}
	},
	"append": func(w *world) {
		w.must(w.AppendFile(w.ctx, "made/by", []byte("one\n")))
		w.must(w.AppendFile(w.ctx, "made/by", []byte("two\n")))
		w.must(w.AppendFile(w.ctx, "made/by", nil))
		w.holds("made/by", "one\ntwo\n")
	},
	"appends at the same time": func(w *world) {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 5 {
					if err := w.AppendFile(w.ctx, "log", fmt.Appendf(nil, "line %d %d\n", i, n)); err != nil {
						w.Error(err)
					}
				}
			})
		}
		all.Wait()
		b, err := env.ReadText(w.ctx, w, "log")
		w.must(err)
		if n := strings.Count(b, "\n"); n != 20 {
			w.Errorf("%d lines", n)
		}
		for i := range 4 {
			at := -1
			for n := range 5 {
				next := strings.Index(b, fmt.Sprintf("line %d %d\n", i, n))
				if next <= at {
					w.Errorf("line %d %d is not where it belongs", i, n)
				}
				at = next
			}
		}
	},
	"mode stays": func(w *world) {
		w.write("script", "x")
		w.run("chmod 750 script")
		w.write("script", "longer")
		w.must(w.AppendFile(w.ctx, "script", []byte("!")))
		if mode := w.run("ls -l script"); !strings.HasPrefix(mode, "-rwxr-x---") {
			w.Errorf("got %s", mode)
		}
	},
	"text": func(w *world) {
		w.write("text", "a\xffb\r\n\xe2\x82\nend")
		if s, err := env.ReadText(w.ctx, w, "text"); err != nil || s != "a\uFFFDb\r\n\uFFFD\nend" {
			w.Errorf("got %q, %v", s, err)
		}
		for max, want := range map[int]int{0: 3, 2: 2, 9: 3} {
			if lines, err := env.ReadTextLines(w.ctx, w, "text", max); err != nil || len(lines) != want {
				w.Errorf("%d lines: %q, %v", max, lines, err)
			}
		}
		l, err := env.OpenLines(w.ctx, w, "text")
		w.must(err)
		defer l.Close()
		var ended []bool
		for {
			_, terminated, err := l.Next()
			if err == io.EOF {
				break
			}
			w.must(err)
			ended = append(ended, terminated)
		}
		if fmt.Sprint(ended) != "[true true false]" {
			w.Errorf("terminated: %v", ended)
		}
	},
	"open": func(w *world) {
		w.write("file", "before")
		f, err := w.Open(w.ctx, "file")
		w.must(err)
		defer f.Close()
		if f.Size() != 6 || f.ModTime().IsZero() {
			w.Errorf("size %d, time %v", f.Size(), f.ModTime())
		}
		w.must(w.AppendFile(w.ctx, "file", []byte(" and after")))
		if b, err := env.ReadAll(f); err != nil || string(b) != "before" {
			w.Errorf("got %q, %v", b, err)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		g, err := w.Open(ctx, "file")
		w.must(err)
		defer g.Close()
		cancel()
		_, err = g.Read(make([]byte, 1))
		w.fails("reading after the end", err, env.Aborted)
	},
	"info and list": func(w *world) {
		w.write("d/file", "12345")
		w.must(w.MakeDir(w.ctx, "d/b/c"))
		w.write("d/.hidden", "")
		w.write("d/Z", "")
		if got, want := w.list("d"), ".hidden:file Z:file b:directory file:file"; got != want {
			w.Errorf("got %s, want %s", got, want)
		}
		if got := w.list("d/b/c"); got != "" {
			w.Errorf("got %s", got)
		}
		info, err := w.Info(w.ctx, "d/file")
		if err != nil || info.Name != "file" || info.Path != w.Abs("d/file") || info.Kind != env.KindFile || info.Size != 5 || info.ModTime.IsZero() {
			w.Errorf("got %+v, %v", info, err)
		}
		infos, err := w.List(w.ctx, "d")
		w.must(err)
		if last := infos[3]; last != info {
			w.Errorf("listed %+v, alone %+v", last, info)
		}
		if info, err := w.Info(w.ctx, "."); err != nil || info.Kind != env.KindDirectory || info.Path != w.WorkDir() {
			w.Errorf("got %+v, %v", info, err)
		}
	},
	"exists": func(w *world) {
		w.write("d/file", "")
		for path, want := range map[string]bool{"d": true, "d/file": true, "none": false, "none/below": false} {
			if got, err := w.Exists(w.ctx, path); err != nil || got != want {
				w.Errorf("%s: %v, %v", path, got, err)
			}
		}
		if ok, err := w.Exists(w.ctx, "d/file/below"); ok || err == nil {
			w.Errorf("below a file: %v, %v", ok, err)
		}
		w.must(w.Access(w.ctx, "d/file", env.Readable|env.Writable))
	},
	"make and remove": func(w *world) {
		w.must(w.MakeDir(w.ctx, "a/b/c"))
		w.must(w.MakeDir(w.ctx, "a/b"))
		w.write("a/file", "")
		w.must(w.Remove(w.ctx, "a/file"))
		w.must(w.Remove(w.ctx, "a/b/c"))
		w.write("a/b/x/y", "")
		w.must(w.RemoveAll(w.ctx, "a/b"))
		w.must(w.RemoveAll(w.ctx, "a/b"))
		if got := w.list("a"); got != "" {
			w.Errorf("left: %s", got)
		}
	},
	"rename": func(w *world) {
		w.write("old", "new text")
		w.write("d/name", "old text")
		w.must(w.Rename(w.ctx, "old", "d/name"))
		w.holds("d/name", "new text")
		if ok, err := w.Exists(w.ctx, "old"); ok || err != nil {
			w.Errorf("the old name: %v, %v", ok, err)
		}
	},
	"odd names": func(w *world) {
		for _, name := range []string{
			" a b ", "-rf", "--", "~", "$(touch x)", "`x`", "a'b\"c", `back\slash`, "new\nline", "*", "?", "#", "&", "ünï·日本·😀", "..x", "con\x01trol",
		} {
			path := env.Join(w, "odd", name)
			w.write(path, name)
			w.holds("odd/"+name, name)
			w.must(w.AppendFile(w.ctx, path, []byte("!")))
			infos, err := w.List(w.ctx, "odd")
			if err != nil || len(infos) != 1 || infos[0].Name != name || infos[0].Path != path {
				w.Errorf("%q is listed as %+v, %v", name, infos, err)
			}
			if info, err := w.Info(w.ctx, path); err != nil || info.Name != name {
				w.Errorf("%q: %+v, %v", name, info, err)
			}
			w.must(w.Rename(w.ctx, path, path+"2"))
			w.holds(path+"2", name+"!")
			if out := w.run("cat " + quote("./odd/"+name+"2")); out != name+"!" {
				w.Errorf("the shell reads %q from %q", out, name)
			}
			w.must(w.Remove(w.ctx, path+"2"))
		}
		if got := w.list("."); got != "odd:directory" {
			w.Errorf("there is %s", got)
		}
	},
	"names that are no UTF-8": func(w *world) {
		w.needs(`mkdir odd && printf x > "$(printf 'odd/a\377b')"`)
		const name = "a\xffb"
		w.holds("odd/"+name, "x")
		infos, err := w.List(w.ctx, "odd")
		if err != nil || len(infos) != 1 || infos[0].Name != name {
			w.Fatalf("got %+v, %v", infos, err)
		}
		w.write(infos[0].Path, "y")
		w.holds("odd/"+name, "y")
		w.must(w.Remove(w.ctx, infos[0].Path))
	},
	"temporary": func(w *world) {
		a, err := w.ExecutionEnv.TempDir(w.ctx, "tmp-")
		w.must(err)
		b, err := w.ExecutionEnv.TempDir(w.ctx, "tmp-")
		w.must(err)
		if a == b || !strings.HasPrefix(w.name(a), "tmp-") || w.Abs(a) != a {
			w.Errorf("directories %s and %s", a, b)
		}
		w.write(env.Join(w, a, "in/side"), "x")
		f, err := w.TempFile(w.ctx, "out-", ".log")
		w.must(err)
		defer w.Remove(w.ctx, f.Name())
		if _, err := f.Write([]byte("text")); err != nil {
			w.Error(err)
		}
		w.must(f.Close())
		if name := w.name(f.Name()); !strings.HasPrefix(name, "out-") || !strings.HasSuffix(name, ".log") || len(name) != len("out-.log")+16 {
			w.Errorf("file %s", f.Name())
		}
		if mode := w.run("ls -l " + quote(f.Name())); !strings.HasPrefix(mode, "-rw-------") {
			w.Errorf("mode %s", mode)
		}
		w.must(w.ExecutionEnv.Cleanup(w.ctx))
		for path, want := range map[string]bool{a: false, b: false, f.Name(): true} {
			if ok, err := w.Exists(w.ctx, path); err != nil || ok != want {
				w.Errorf("%s after Cleanup: %v, %v", path, ok, err)
			}
		}
		w.must(w.ExecutionEnv.Cleanup(w.ctx))
	},
}

func (w *world) name(path string) string {
	info, err := w.Info(w.ctx, path)
	w.must(err)
	return info.Name
}
