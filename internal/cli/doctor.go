package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/version"
)

const doctorText = `It changes nothing, prints no keys and stays offline; --online sends each provider
that is set up one short question, which costs a few tokens. The status is 1 when
something fails, 0 also with warnings.
`

// condition is the outcome of a check.
type condition string

const (
	fine    condition = "ok"
	warning condition = "warn"
	failing condition = "fail"
)

// check is one line of a report.
type check struct {
	topic     string
	condition condition
	text      string
	advice    string // what to do; "" for nothing
}

// doctor looks at an installation.
type doctor struct {
	p      *program
	topic  string // that checks are about now
	checks []check
}

func (d *doctor) add(c condition, advice, format string, args ...any) {
	d.checks = append(d.checks, check{d.topic, c, printable(fmt.Sprintf(format, args...)), printable(advice)})
}

func (d *doctor) ok(format string, args ...any)           { d.add(fine, "", format, args...) }
func (d *doctor) warn(advice, format string, args ...any) { d.add(warning, advice, format, args...) }
func (d *doctor) fail(advice, format string, args ...any) { d.add(failing, advice, format, args...) }

// runDoctor is "pinch doctor".
func runDoctor(ctx context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parseOptions(p, words)
	if !ok {
		return err
	}
	d := &doctor{p: p}
	if err := d.examine(ctx, g.has("--online")); err != nil {
		return err
	}
	if g.has("--json") {
		_, err = fmt.Fprintf(p.out, "%s\n", d.json())
	} else {
		_, err = io.WriteString(p.out, d.table())
	}
	if err == nil && d.worst() == failing {
		err = exitError(1)
	}
	return err
}

func (d *doctor) count(c condition) (n int) {
	for i := range d.checks {
		if d.checks[i].condition == c {
			n++
		}
	}
	return n
}

func (d *doctor) worst() condition {
	for _, c := range []condition{failing, warning} {
		if d.count(c) > 0 {
			return c
		}
	}
	return fine
}

// table is the report for people: what to do stands below what is wrong.
func (d *doctor) table() string {
	width := 0
	for _, c := range d.checks {
		width = max(width, utf8.RuneCountInString(c.topic))
	}
	var b strings.Builder
	for _, c := range d.checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.condition, width, c.topic, c.text)
		if c.advice != "" {
			fmt.Fprintf(&b, "%*s-> %s\n", width+8, "", c.advice)
		}
	}
	b.WriteString("\n" + d.summary() + "\n")
	return b.String()
}

// plural is a number of things, with the word for one of them.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func (d *doctor) summary() string {
	switch f, w := d.count(failing), d.count(warning); {
	case f > 0 && w > 0:
		return plural(f, "failure") + " and " + plural(w, "warning") + "."
	case f > 0:
		return plural(f, "failure") + "."
	case w > 0:
		return plural(w, "warning") + "; nothing fails."
	}
	return "All is well."
}

// json is the report for programs, one object.
func (d *doctor) json() []byte {
	o := jsonwire.Begin(nil)
	o.Text("version", version.Version)
	o.Text("status", string(d.worst()))
	o.Key("checks")
	o.B = jsonwire.AppendArray(o.B, d.checks, func(c check, b []byte) []byte {
		e := jsonwire.Begin(b)
		e.Text("topic", c.topic)
		e.Text("status", string(c.condition))
		e.Text("text", c.text)
		e.OptText("advice", c.advice)
		return e.End()
	})
	return o.End()
}
