package envtest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/env"
)

var execRules = map[string]func(*world){
	"exit": func(w *world) {
		for line, want := range map[string][2]int{
			"true": {0, 0}, "exit 7": {7, 0}, "kill -TERM $$": {0, 15}, "sleep 600 & exit 3": {3, 0}, "no-such-program-here 2>&1": {127, 0},
		} {
			exit, err := w.Exec(w.ctx, env.Command{Line: line})
			if err != nil || exit.Code != want[0] || exit.Signal != want[1] || !exit.Exited {
				w.Errorf("%s: got %+v, %v", line, exit, err)
			}
			if exit.Duration <= 0 || exit.After <= 0 || exit.After > exit.Duration {
				w.Errorf("%s took %v, %v", line, exit.After, exit.Duration)
			}
		}
	},
	"streams": func(w *world) {
		const line = "echo 1; echo 2 >&2; echo 3; cat"
		var both, out, errs strings.Builder
		if _, err := w.Exec(w.ctx, env.Command{Line: line, Output: &both}); err != nil || both.String() != "1\n2\n3\n" {
			w.Errorf("got %q, %v", both.String(), err)
		}
		if _, err := w.Exec(w.ctx, env.Command{Line: line, Output: &out, Stderr: &errs}); err != nil || out.String() != "1\n3\n" || errs.String() != "2\n" {
			w.Errorf("got %q and %q, %v", out.String(), errs.String(), err)
		}
	},
	"output is what was written": func(w *world) {
		if out := w.run(`printf 'a\000b\377\r\n'`); out != "a\x00b\xff\r\n" {
			w.Errorf("got %q", out)
		}
		if n := len(w.run("head -c 3000000 /dev/zero")); n != 3_000_000 {
			w.Errorf("%d bytes", n)
		}
	},
	"line": func(w *world) {
		const text = "\"a\" $HOME `x` \\ 'b' \t ü 😀 * # ; &\n"
		if out := w.run("cat <<'END'\n" + text + "END\n"); out != text {
			w.Errorf("got %q", out)
		}
	},
	"program": func(w *world) {
		var out bytes.Buffer
		exit, err := w.Exec(w.ctx, env.Command{Line: "exit 1", Argv: []string{"printf", "%s|", "a  b", "$HOME", "'"}, Output: &out})
		if err != nil || exit.Code != 0 || out.String() != "a  b|$HOME|'|" {
			w.Errorf("got %q, %+v, %v", out.String(), exit, err)
		}
		_, err = w.Exec(w.ctx, env.Command{Argv: []string{"/no/such/program"}})
		w.fails("missing", err, env.SpawnError)
	},
	"directory": func(w *world) {
		w.must(w.MakeDir(w.ctx, "d/e"))
		w.write("file", "")
		for dir, want := range map[string]string{"": ".", "d/e": "d/e", w.Abs("d"): "d"} {
			var out bytes.Buffer
			_, err := w.Exec(w.ctx, env.Command{Line: "pwd -P", Dir: dir, Output: &out})
			want, canonErr := w.Canonical(w.ctx, want)
			if err != nil || canonErr != nil || strings.TrimSpace(out.String()) != want {
				w.Errorf("%s: got %q, %v, want %s", dir, out.String(), err, want)
			}
		}
		_, err := w.Exec(w.ctx, env.Command{Line: "true", Dir: "missing"})
		w.fails("missing", err, env.NotFound)
		_, err = w.Exec(w.ctx, env.Command{Line: "true", Dir: "file"})
		w.fails("file", err, env.NotDirectory)
	},
	"variables": func(w *world) {
		show := func(c env.Command) string {
			var out bytes.Buffer
			c.Line, c.Output = `echo "[$ONE] [$TWO] ${PATH:+path}"`, &out
			_, err := w.Exec(w.ctx, c)
			w.must(err)
			return strings.TrimSpace(out.String())
		}
		for want, c := range map[string]env.Command{
			"[] [] path":            {},
			"[1] [a = $b 'c'] path": {Set: []string{"ONE=1", "TWO=a = $b 'c'"}},
			"[2] [] path":           {Set: []string{"ONE=1", "ONE=2"}},
			"[3] [] path":           {Unset: []string{"ONE"}, Set: []string{"ONE=3"}},
		} {
			if got := show(c); got != want {
				w.Errorf("got %s, want %s", got, want)
			}
		}
		var out bytes.Buffer
		_, err := w.Exec(w.ctx, env.Command{Line: `echo "[$HOME] [$ONE]"`, NoInherit: true, Set: []string{"ONE=1"}, Output: &out})
		if err != nil || out.String() != "[] [1]\n" {
			w.Errorf("without the environment's own: %q, %v", out.String(), err)
		}
		out.Reset()
		_, err = w.Exec(w.ctx, env.Command{Line: `echo "[$HOME]"`, NoInherit: true, Output: &out})
		if err != nil || out.String() != "[]\n" {
			w.Errorf("without any: %q, %v", out.String(), err)
		}
		out.Reset()
		_, err = w.Exec(w.ctx, env.Command{Line: `echo "[$HOME]"`, Unset: []string{"HOME"}, Output: &out})
		if err != nil || out.String() != "[]\n" {
			w.Errorf("without one: %q, %v", out.String(), err)
		}
	},
	"at the same time": func(w *world) {
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				var out bytes.Buffer
				exit, err := w.Exec(w.ctx, env.Command{Line: fmt.Sprintf("echo %d; exit %d", i, i), Output: &out})
				if err != nil || exit.Code != i || out.String() != fmt.Sprintln(i) {
					w.Errorf("%d: got %q, %+v, %v", i, out.String(), exit, err)
				}
			})
		}
		all.Wait()
	},
	"writer fails": func(w *world) {
		for name, out := range map[string]io.Writer{
			"with an error": writer(func() (int, error) { return 0, io.ErrClosedPipe }),
			"with a panic":  writer(func() (int, error) { panic("broken") }),
		} {
			_, err := w.Exec(w.ctx, env.Command{Line: "echo x; sleep 600", Output: out})
			w.fails(name, err, env.CallbackError)
		}
	},
}

type writer func() (int, error)

func (w writer) Write([]byte) (int, error) { return w() }
