package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/settings"
)

// command is what a first word asks for. The table of them is where help,
// completion and the manual page come from.
type command struct {
	name    string
	aliases []string
	usage   string // the words behind the name
	about   string // one line; "" keeps it out of every list
	options []commandOption
	words   []string  // that the first argument may be, for completion
	files   bool      // arguments are paths
	lists   listing   // that arguments are of, for completion
	below   []command // commands of its own
	text    string    // more for --help
	run     commandFunc
}

// commandFunc runs a command with the words behind its name.
type commandFunc func(ctx context.Context, p *program, c *command, words []string) error

// commandOption is an option of a command. One with an arg takes the next word.
type commandOption struct {
	long, short string
	arg, about  string
	files       bool
	lists       listing
}

// given is what a command was given.
type given struct {
	words   []string // beside options
	options map[string]string
}

// has reports whether an option was given, by its long name.
func (g *given) has(long string) bool { _, ok := g.options[long]; return ok }

// parse reads the words behind a command. A false ok says that everything has
// been said: help was asked for, or what is wrong stands on stderr and err is the
// exit status.
func (c *command) parse(p *program, words []string) (g *given, ok bool, err error) {
	g, err = c.read(words)
	switch unknown, is := err.(*unknownOption); {
	case err == errHelp:
		return nil, false, c.help(p.out)
	case is:
		return nil, false, p.misused("%v.\nUse \"pinch --help\" or \"pinch %s\".", unknown, c.line())
	case err != nil:
		return nil, false, p.misused("%v.\nUsage: pinch %s", err, c.line())
	}
	return g, true, nil
}

// errHelp says that help was asked for.
var errHelp = errors.New("help")

// unknownOption is an option that a command does not have.
type unknownOption struct{ option, command string }

func (e *unknownOption) Error() string {
	return fmt.Sprintf("Unknown option %s for %q", printable(e.option), e.command)
}

// read sorts the words behind a command.
func (c *command) read(words []string) (*given, error) {
	g := &given{options: map[string]string{}}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch j := slices.IndexFunc(c.options, func(o commandOption) bool { return word == o.long || word != "" && word == o.short }); {
		case isHelp(word):
			return nil, errHelp
		case word == "--":
			g.words = append(g.words, words[i+1:]...)
			i = len(words)
		case j < 0 && strings.HasPrefix(word, "-") && word != "-" && !negative(word):
			return nil, &unknownOption{word, c.name}
		case j < 0:
			g.words = append(g.words, word)
		case c.options[j].arg == "":
			g.options[c.options[j].long] = ""
		case i+1 == len(words) || words[i+1] == "":
			return nil, fmt.Errorf("%s requires a value", word)
		case g.has(c.options[j].long):
			return nil, fmt.Errorf("%s can be given once", c.options[j].long)
		default:
			i++
			g.options[c.options[j].long] = words[i]
		}
	}
	return g, nil
}

// parseOptions is parse for a command that takes options alone.
func (c *command) parseOptions(p *program, words []string) (g *given, ok bool, err error) {
	if g, ok, err = c.parse(p, words); ok && len(g.words) > 0 {
		return nil, false, p.misused("Unexpected argument %s.\nUsage: pinch %s", printable(g.words[0]), c.line())
	}
	return g, ok, err
}

// negative reports whether a word is a number below 0, which no option is.
func negative(word string) bool { return word[1] >= '0' && word[1] <= '9' }

// misused says how a command is used, and is the exit status.
func (p *program) misused(format string, args ...any) error {
	fmt.Fprintf(p.errs, format+"\n", args...)
	return exitError(1)
}

// line is the command as it is used.
func (c *command) line() string { return strings.TrimSpace(c.name + " " + c.usage) }

// help writes how the command is used.
func (c *command) help(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: pinch %s\n\n%s\n", c.line(), sentenceCase(c.about))
	if len(c.options) > 0 {
		b.WriteString("\nOptions\n")
		for _, o := range c.options {
			b.WriteString(column(o.names(), o.about))
		}
	}
	if c.text != "" {
		b.WriteString("\n" + c.text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// names is an option as a person reads it: -l, --local; --extension SOURCE.
func (o *commandOption) names() string { return optionNames(o.short, o.long, o.arg) }

func optionNames(short, long, arg string) string {
	names := long
	if short != "" {
		names = short + ", " + long
	}
	return strings.TrimSpace(names + " " + arg)
}

// column is a line of a list: what it is about begins in one column.
func column(name, about string) string {
	if len(name) < 28 {
		return fmt.Sprintf("  %-28s  %s\n", name, about)
	}
	return fmt.Sprintf("  %s  %s\n", name, about)
}

// find is the command that a first word names, nil for none. Behind options and
// elsewhere these words are messages.
func find(list []command, word string) *command {
	i := slices.IndexFunc(list, func(c command) bool { return c.name == word || slices.Contains(c.aliases, word) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// sub is the command below c that the first word names, by its whole name; nil
// for none.
func (c *command) sub(words []string) *command {
	if len(words) == 0 {
		return nil
	}
	found := find(c.below, words[0])
	if found == nil {
		return nil
	}
	sub := *found
	sub.name = c.name + " " + sub.name
	return &sub
}

// missing refuses a command of the peer that this version has no use for, so
// that its words are not taken for a message to a model.
func missing(instead string) commandFunc {
	return func(context.Context, *program, *command, []string) error {
		return fmt.Errorf("This version of pinch has no such command. %s. To say the word to a model, write it behind -p", instead)
	}
}

// printLine writes a line to stdout; names in it may come from anywhere.
func (p *program) printLine(format string, args ...any) error {
	_, err := fmt.Fprintln(p.out, visible(fmt.Sprintf(format, args...)))
	return err
}

// visible is text that does nothing to a terminal but being shown, with every
// blank of it, as it may be a path; passwords in addresses are left out.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, settings.WithoutPasswords(s))
}
