package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/pinch-agent/pinch/internal/version"
)

func runMan(_ context.Context, p *program, c *command, words []string) error {
	if _, ok, err := c.parseOptions(p, words); !ok {
		return err
	}
	_, err := io.WriteString(p.out, manualPage())
	return err
}

// manualPage is the tables of commands and options as a page for man.
func manualPage() string {
	var b strings.Builder
	head, rest, _ := strings.Cut(helpHead, "\n")
	_, about, _ := strings.Cut(head, " - ")
	fmt.Fprintf(&b, ".TH PINCH 1 \"\" \"pinch %s\" \"User Commands\"\n.SH NAME\npinch \\- %s\n", roff(version.Version), roff(about))
	usage, prose, _ := strings.Cut(strings.TrimPrefix(rest, "\nUsage\n"), "\n\n")
	b.WriteString(".SH SYNOPSIS\n" + literal(usage) + ".B pinch\n.I COMMAND\n[options]\n.SH DESCRIPTION\n" + roff(prose) + ".SH COMMANDS\n")
	for _, c := range commands() {
		if c.about == "" {
			continue
		}
		for _, name := range append([]string{c.name}, c.aliases...) {
			fmt.Fprintf(&b, ".SS \"pinch %s\"\n", roff(strings.TrimSpace(name+" "+c.usage)))
		}
		b.WriteString(roff(sentenceCase(c.about)) + ".\n")
		for _, o := range c.options {
			b.WriteString(definition(o.names(), o.about))
		}
		if c.text != "" {
			b.WriteString(".PP\n" + literal(strings.TrimSuffix(c.text, "\n")))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	for _, g := range groups() {
		fmt.Fprintf(&b, ".SS \"%s\"\n", roff(string(g)))
		for i := range options {
			if o := &options[i]; o.group == g {
				b.WriteString(definition(optionNames(o.short, o.long, o.arg), o.about))
			}
		}
	}
	_, environment, _ := strings.Cut(helpFoot, "\n")
	b.WriteString(".SH ENVIRONMENT\n" + literal(strings.TrimSuffix(environment, "\n")))
	return b.String()
}

func definition(name, about string) string {
	return fmt.Sprintf(".TP\n.B %s\n%s\n", roff(name), roff(about))
}

func literal(text string) string { return ".nf\n" + roff(text) + "\n.fi\n" }

// roff is text that stands for itself.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`).Replace(text)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
