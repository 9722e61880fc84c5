// Package cli is the command line of pinch: it reads the arguments, finds
// folders, settings, models and sessions, and hands over to a mode.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/cli/print"
	"github.com/pinch-agent/pinch/internal/version"
)

// program is one start of pinch: what it was given by the system.
type program struct {
	in     *os.File
	out    io.Writer
	errs   io.Writer
	getenv func(string) string
	cwd    string // absolute
	home   string // "" for none

	inTerminal, outTerminal, errTerminal bool

	typedAhead []byte // at the terminal, behind the line read last

	stores *openStores // nil where nobody asks

	ending func() // says that the program ends because its input has
}

// Main runs pinch with the words behind its name and returns the exit status.
func Main(words []string) int {
	if len(words) > 0 {
		if c := find(commands(), words[0]); c != nil {
			return start(func(ctx context.Context, p *program) error { return c.run(ctx, p, c, words[1:]) })
		}
	}
	a := Parse(words)
	for _, d := range a.Diagnostics {
		fmt.Fprintln(os.Stderr, print.OneLine(d.String()))
	}
	// Help and version answer before anything else is touched.
	switch {
	case a.Failed():
		return 1
	case a.Version:
		return say(version.Version + "\n")
	case a.Help:
		return say(help())
	}
	return start(func(ctx context.Context, p *program) error { return p.run(ctx, a) })
}

// say writes text and returns the exit status.
func say(text string) int {
	if _, err := os.Stdout.WriteString(text); err != nil {
		fmt.Fprintln(os.Stderr, "Error: "+sentence(err))
		return 1
	}
	return 0
}

// exitError ends the program with a status when everything has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// start runs body under signals and turns its error into words and a status.
func start(body func(ctx context.Context, p *program) error) int {
	p := &program{in: os.Stdin, out: os.Stdout, errs: os.Stderr, getenv: os.Getenv, stores: &openStores{}}
	ctx, signals := watchSignals(p.stores.busy)
	defer signals.stop()
	p.ending = signals.end
	// The HTTP client logs what servers send behind an answer, which may be
	// anything. What matters of it comes back as an error.
	log.SetOutput(io.Discard)
	p.inTerminal, p.outTerminal, p.errTerminal = isTerminal(os.Stdin), isTerminal(os.Stdout), isTerminal(os.Stderr)
	var err error
	if p.cwd, err = os.Getwd(); err != nil {
		err = fmt.Errorf("The current folder cannot be found (%w): change to one that exists", err)
	} else {
		p.home = homeFolder(p.cwd)
		err = body(ctx, p)
	}
	if status := signals.status(); status != 0 {
		return status
	}
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	fmt.Fprintln(os.Stderr, "Error: "+sentence(err))
	return 1
}

// homeFolder is the user's home: $HOME, else what the system's list of users
// says, as services start programs without the variable; "" for none.
func homeFolder(cwd string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		u, err := user.Current()
		if err != nil || !filepath.IsAbs(u.HomeDir) {
			return ""
		}
		return u.HomeDir
	}
	if !filepath.IsAbs(home) {
		return filepath.Join(cwd, home)
	}
	return home
}

// sentence is an error as one line.
func sentence(err error) string { return print.OneLine(err.Error()) }

// lines is an error whose text has several, without the empty ones.
func lines(err error) []string {
	var out []string
	for line := range strings.Lines(err.Error()) {
		if line = print.OneLine(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// mend is what a person can do about a file that cannot be used. One that is not
// theirs to read may hold what they would miss.
func mend(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "give yourself the right to read it"
	}
	return "correct or remove it"
}

// variable reads PINCH_name, else PI_name.
func (p *program) variable(name string) string {
	if v := p.getenv("PINCH_" + name); v != "" {
		return v
	}
	return p.getenv("PI_" + name)
}

func (p *program) warn(format string, args ...any) {
	fmt.Fprintln(p.errs, print.OneLine("Warning: "+fmt.Sprintf(format, args...)))
}
