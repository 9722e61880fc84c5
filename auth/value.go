package auth

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Env is where names of values are looked up: Scoped first, then Process. The
// zero Env reads the environment of the process. Empty values count as unset.
type Env struct {
	Scoped  map[string]string
	Process func(name string) string // nil for os.Getenv
}

// Get is the value of a variable, "" when it is unset.
func (e Env) Get(name string) string {
	if v := e.Scoped[name]; v != "" {
		return v
	}
	if e.Process != nil {
		return e.Process(name)
	}
	return os.Getenv(name)
}

// Credential is the value of a variable that holds a credential, "" when it is
// unset or blank: an empty line in a script is no key.
func (e Env) Credential(name string) string {
	if v := e.Scoped[name]; strings.TrimSpace(v) != "" {
		return v
	}
	e.Scoped = nil
	if v := e.Get(name); strings.TrimSpace(v) != "" {
		return v
	}
	return ""
}

// With is e with more scoped variables, which win over those of e.
func (e Env) With(scoped map[string]string) Env {
	if len(scoped) == 0 {
		return e
	}
	all := make(map[string]string, len(e.Scoped)+len(scoped))
	for k, v := range e.Scoped {
		all[k] = v
	}
	for k, v := range scoped {
		if v != "" {
			all[k] = v
		}
	}
	e.Scoped = all
	return e
}

// UnresolvedError says why a value has no text.
type UnresolvedError struct {
	What    string   // what the value is for, such as: API key for provider "x"; may be empty
	Names   []string // variables that are missing, in the order of the value
	Command string   // command that failed, timed out or printed nothing
	Cause   error    // why a command failed; nil otherwise
}

func (e *UnresolvedError) Error() string {
	what := e.What
	if what == "" {
		what = "value"
	}
	switch {
	case len(e.Names) == 0:
		return "Failed to resolve " + what + " from shell command " + program(e.Command) +
			" (run it by itself: it has to print the value within " + CommandTimeout.String() + " and to end with status 0)" + because(e.Cause)
	case len(e.Names) == 1:
		return "Failed to resolve " + what + " from environment variable: " + e.Names[0]
	default:
		return "Failed to resolve " + what + " from environment variables: " + strings.Join(e.Names, ", ")
	}
}

func (e *UnresolvedError) Unwrap() error { return e.Cause }

// program is the first word of a command, quoted: the rest may hold what an
// error must not repeat, and so may a variable that is set in front.
func program(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return `""`
	}
	first := words[0]
	name, _, sets := strings.Cut(first, "=")
	switch {
	case sets:
		first = name + "=…"
	case len(words) > 1:
		first += " …"
	}
	return strconv.Quote(first)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// Resolve turns a value into its text. A value that cannot be resolved gives an
// *UnresolvedError without What; a context that ended gives its error. A nil
// run is RunCommand.
func Resolve(ctx context.Context, value string, env Env, run Runner) (string, error) {
	command, isCommand := strings.CutPrefix(value, "!")
	if !isCommand {
		return expand(value, env)
	}
	if run == nil {
		run = RunCommand
	}
	out, err := run(ctx, command)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	out = jsonwire.Trim(out)
	if err == nil && out == "" {
		err = errNoOutput
	}
	if err != nil {
		return "", &UnresolvedError{Command: command, Cause: err}
	}
	return out, nil
}

var errNoOutput = errors.New("the command printed nothing")

// ResolveFor is Resolve whose error says what the value is for.
func ResolveFor(ctx context.Context, what, value string, env Env, run Runner) (string, error) {
	text, err := Resolve(ctx, value, env, run)
	if u, ok := errors.AsType[*UnresolvedError](err); ok {
		u.What = what
	}
	return text, err
}

// IsCommand reports whether a value is a command, which looking at credentials
// without using them must not run.
func IsCommand(value string) bool { return strings.HasPrefix(value, "!") }

// Names lists the variables that a value is filled with.
func Names(value string) []string {
	if IsCommand(value) {
		return nil
	}
	var names []string
	// Without values the template has no text; only the names matter.
	_, _ = expand(value, Env{Process: func(name string) string { names = append(names, name); return "" }})
	return names
}

// expand fills the names of a template in. One missing name leaves the whole
// value without text: half a key is worse than none.
func expand(value string, env Env) (string, error) {
	if !strings.Contains(value, "$") {
		return value, nil
	}
	var b strings.Builder
	var missing []string
	for i := 0; i < len(value); {
		if value[i] != '$' {
			b.WriteByte(value[i])
			i++
			continue
		}
		rest := value[i+1:]
		if rest != "" && (rest[0] == '$' || rest[0] == '!') {
			b.WriteByte(rest[0])
			i += 2
			continue
		}
		name, size := reference(rest)
		if name == "" {
			b.WriteString(value[i : i+1+size])
			i += 1 + size
			continue
		}
		if v := env.Get(name); v != "" {
			b.WriteString(v)
		} else {
			missing = append(missing, name)
		}
		i += 1 + size
	}
	if missing != nil {
		return "", &UnresolvedError{Names: missing}
	}
	return b.String(), nil
}

// reference reads the name behind a dollar sign, with or without braces, and
// how many bytes it takes; the name is empty when there is none. Braces around
// what is no name stand for themselves with all that is in them.
func reference(s string) (name string, size int) {
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		end := strings.IndexByte(inner, '}')
		switch {
		case end < 0:
			return "", 0
		case nameLen(inner[:end]) == end:
			name = inner[:end]
		}
		return name, end + 2
	}
	n := nameLen(s)
	return s[:n], n
}

func nameLen(s string) int {
	for i := range len(s) {
		c := s[i]
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return i
	}
	return len(s)
}
