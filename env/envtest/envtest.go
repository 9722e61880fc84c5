// Package envtest holds an env.ExecutionEnv to the rules of package env, so that
// tools find the same world on this machine, in a sandbox and in a container.
//
//	func TestContainer(t *testing.T) {
//		envtest.Run(t, func(t *testing.T) env.ExecutionEnv { return startContainer(t) })
//	}
//
// The rules are looked at through the environment alone; what only its shell can
// make, such as links and pipes, is made by commands in it. The shell must be a
// POSIX one with the usual small programs. A rule that cannot be tried, such as
// permissions for a superuser, is skipped with the reason.
package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/env"
)

// Run tries all rules as subtests. open is called for each of them and makes an
// environment whose working directory is empty, can be written to and is nobody
// else's; it registers with t what is to be done afterwards. Environments are
// not cleaned up by Run, except to see that it works.
func Run(t *testing.T, open func(t *testing.T) env.ExecutionEnv) {
	for _, group := range []struct {
		name  string
		rules map[string]func(*world)
	}{
		{"files", fileRules}, {"errors", errorRules}, {"links", linkRules}, {"special", specialRules},
		{"permissions", permissionRules}, {"exec", execRules}, {"kill", killRules},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, rule := range group.rules {
				t.Run(name, func(t *testing.T) { rule(&world{t, open(t), t.Context()}) })
			}
		})
	}
}

// world is an environment under test.
type world struct {
	*testing.T
	env.ExecutionEnv
	ctx context.Context
}

// must ends the rule on an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// write makes a file.
func (w *world) write(path, text string) {
	w.Helper()
	w.must(w.WriteFile(w.ctx, path, []byte(text)))
}

// holds checks what is in a file.
func (w *world) holds(path, want string) {
	w.Helper()
	if b, err := w.ReadFile(w.ctx, path); err != nil || string(b) != want {
		w.Errorf("%q holds %.200q, %v, want %.200q", path, b, err, want)
	}
}

// fails checks that an error has a code and tells where it came from.
func (w *world) fails(what string, err error, code env.Code) {
	w.Helper()
	e, ok := errors.AsType[*env.Error](err)
	switch {
	case !ok:
		w.Errorf("%s: got %v, want an *env.Error", what, err)
	case e.Code != code:
		w.Errorf("%s: got %s (%v), want %s", what, e.Code, err, code)
	case e.Op == "":
		w.Errorf("%s: %v does not tell the operation", what, err)
	case e.Path != "" && w.Abs(e.Path) != e.Path:
		w.Errorf("%s: the path %q is not absolute", what, e.Path)
	}
}

// run runs a command that must succeed and gives its output.
func (w *world) run(line string) string {
	w.Helper()
	out, exit, err := w.try(line)
	if err != nil || exit.Code != 0 || exit.Signal != 0 {
		w.Fatalf("%s: %+v, %v\n%s", line, exit, err, out)
	}
	return out
}

func (w *world) try(line string) (string, env.Exit, error) {
	var out bytes.Buffer
	exit, err := w.Exec(w.ctx, env.Command{Line: line, Output: &out})
	return out.String(), exit, err
}

// needs skips the rule where a command that prepares it does not work.
func (w *world) needs(line string) {
	w.Helper()
	if out, exit, err := w.try(line); err != nil || exit.Code != 0 {
		w.Skipf("this environment cannot do %q: %v %s", line, err, out)
	}
}

// list gives the names and kinds in a directory.
func (w *world) list(path string) string {
	w.Helper()
	infos, err := w.List(w.ctx, path)
	w.must(err)
	var out []string
	for _, i := range infos {
		out = append(out, fmt.Sprintf("%s:%s", i.Name, i.Kind))
	}
	return strings.Join(out, " ")
}

// quote makes one word of a text for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
