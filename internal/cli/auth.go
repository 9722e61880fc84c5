package cli

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/cli/print"
)

//go:embed auth_help.txt
var authHelp string

// authCommand is one of the commands behind "pinch auth".
type authCommand struct {
	name    string
	usage   string   // behind the name
	options []string // that it takes
	words   int      // words beside options that it needs
	run     func(ctx context.Context, p *program, a *authArgs) error
}

func authCommands() []authCommand {
	return []authCommand{
		{"login", "PROVIDER [--api-key] [--keychain] [--no-browser]", []string{"--api-key", "--keychain", "--no-browser"}, 1, authLogin},
		{"logout", "PROVIDER", nil, 1, authLogout},
		{"status", "[--json]", []string{"--json"}, 0, authStatus},
		{"check", "--provider PROVIDER | --model MODEL [--json] [--credentials] [--no-refresh]",
			[]string{"--provider", "--model", "--json", "--credentials", "--no-refresh"}, 0, authCheck},
		{"print-api-key", "--provider PROVIDER | --model MODEL", []string{"--provider", "--model"}, 0, authPrintKey},
		{"print-bearer-token", "--provider PROVIDER | --model MODEL [--min-expiry 30m]",
			[]string{"--provider", "--model", "--min-expiry"}, 0, authPrintToken},
	}
}

// authArgs are the words behind an auth command.
type authArgs struct {
	words           []string // beside options
	provider, model string
	minExpiry       time.Duration // 0 when not said

	apiKey, keychain, noBrowser, json, credentials, noRefresh, help bool
}

// runAuth is "pinch auth".
func runAuth(ctx context.Context, p *program, _ *command, words []string) error {
	if len(words) == 0 || isHelp(words[0]) || words[0] == "help" {
		_, err := io.WriteString(p.out, authHelp)
		return err
	}
	commands := authCommands()
	i := slices.IndexFunc(commands, func(c authCommand) bool { return c.name == words[0] })
	if i < 0 {
		var names []string
		for _, c := range commands {
			names = append(names, `"pinch auth `+c.name+`"`)
		}
		last := len(names) - 1
		return fmt.Errorf("Unknown auth command %q. Use %s, or %s", words[0], strings.Join(names[:last], ", "), names[last])
	}
	c := &commands[i]
	a, err := c.parse(words[1:])
	if err != nil {
		fmt.Fprintf(p.errs, "%s\nUsage: pinch auth %s %s\n", print.OneLine("Error: "+err.Error()), c.name, c.usage)
		if c.name == "check" {
			return exitError(2) // 1 is an answer of this command
		}
		return exitError(1)
	}
	if a.help {
		_, err := fmt.Fprintf(p.out, "Usage: pinch auth %s %s\n\n%s", c.name, c.usage, authHelp)
		return err
	}
	return c.run(ctx, p, a)
}

func isHelp(word string) bool { return word == "-h" || word == "--help" }

// parse reads the words behind a command. No error repeats a word that could be
// a key.
func (c *authCommand) parse(words []string) (*authArgs, error) {
	a := &authArgs{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case isHelp(word):
			a.help = true
			continue
		case !strings.HasPrefix(word, "-"):
			a.words = append(a.words, word)
			continue
		case strings.HasPrefix(word, "--api-key=") || strings.HasPrefix(word, "--key") && word != "--keychain":
			return nil, fmt.Errorf("A key is never given as an argument, where other programs can read it: it is asked for")
		case !slices.Contains(c.options, word):
			name, _, _ := strings.Cut(word, "=")
			return nil, fmt.Errorf("Unknown option %s for \"auth %s\"", name, c.name)
		}
		var err error
		switch word {
		case "--api-key":
			a.apiKey = true
		case "--keychain":
			a.apiKey, a.keychain = true, true
		case "--no-browser":
			a.noBrowser = true
		case "--json":
			a.json = true
		case "--credentials":
			a.credentials = true
		case "--no-refresh":
			a.noRefresh = true
		default:
			if i++; i == len(words) {
				return nil, fmt.Errorf("%s requires a value", word)
			}
			switch word {
			case "--provider":
				a.provider = words[i]
			case "--model":
				a.model = words[i]
			case "--min-expiry":
				a.minExpiry, err = parseLife(words[i])
			}
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case a.help:
		return a, nil
	case len(a.words) > c.words && c.words == 0:
		return nil, fmt.Errorf("\"auth %s\" takes no argument; a provider is named with --provider", c.name)
	case len(a.words) > c.words && a.apiKey:
		return nil, fmt.Errorf("--api-key takes no value: the key is asked for, as other programs can read arguments")
	case len(a.words) > c.words:
		return nil, fmt.Errorf("\"auth %s\" takes one provider", c.name)
	case len(a.words) < c.words || c.words == 1 && strings.TrimSpace(a.words[0]) == "":
		return nil, fmt.Errorf("\"auth %s\" needs the name of a provider, such as openrouter", c.name)
	case slices.Contains(c.options, "--provider") && strings.TrimSpace(a.provider) == "" && strings.TrimSpace(a.model) == "":
		what := "Auth checks require"
		if c.name != "check" {
			what = "Printing a credential requires"
		}
		return nil, fmt.Errorf("%s --provider <provider> or --model <model>", what)
	}
	return a, nil
}

// parseLife reads how long a token has to be good for: 90s, 30m, 1h30m, 2d.
func parseLife(text string) (time.Duration, error) {
	life, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		life, err = time.ParseDuration(days + "h")
		if life > 1<<63/24-1 {
			err = fmt.Errorf("too long")
		}
		life *= 24
	}
	if err != nil || life <= 0 {
		return 0, fmt.Errorf("--min-expiry is a time such as 90s, 30m or 2h")
	}
	return life, nil
}

// authTable is the auth commands for completion.
func authTable() []command {
	var list []command
	for _, c := range authCommands() {
		one := command{name: c.name, usage: c.usage}
		for _, o := range c.options {
			option := commandOption{long: o}
			if o == "--provider" || o == "--model" || o == "--min-expiry" {
				option.arg = "VALUE"
				option.lists = map[string]listing{"--provider": listedProviders, "--model": listedModels}[o]
			}
			one.options = append(one.options, option)
		}
		list = append(list, one)
	}
	return list
}
