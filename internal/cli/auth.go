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
	command
	needs int // words beside options
	do    func(ctx context.Context, p *program, a *authArgs) error
}

func authCommands() []authCommand {
	asJSON := commandOption{long: "--json", about: "for programs"}
	which := []commandOption{
		{long: "--provider", arg: "PROVIDER", about: "whose credential", lists: listedProviders},
		{long: "--model", arg: "MODEL", about: "that of a model's provider", lists: listedModels},
	}
	return []authCommand{
		{command{name: "login", usage: "PROVIDER [--api-key] [--keychain] [--no-browser]", options: []commandOption{
			{long: "--api-key", about: "ask for an API key in any case"},
			{long: "--keychain", about: "likewise, and keep it in the system's keychain"},
			{long: "--no-browser", about: "print the address, or sign in with a code"},
		}}, 1, authLogin},
		{command{name: "logout", usage: "PROVIDER"}, 1, authLogout},
		{command{name: "status", usage: "[--json]", options: []commandOption{asJSON}}, 0, authStatus},
		{command{name: "check", usage: "--provider PROVIDER | --model MODEL [--json] [--credentials] [--no-refresh]",
			options: append(slices.Clip(which), asJSON,
				commandOption{long: "--credentials", about: "with the key or the token"},
				commandOption{long: "--no-refresh", about: "renew no token and run no command"})}, 0, authCheck},
		{command{name: "print-api-key", usage: "--provider PROVIDER | --model MODEL", options: which}, 0, authPrintKey},
		{command{name: "print-bearer-token", usage: "--provider PROVIDER | --model MODEL [--min-expiry 30m]",
			options: append(slices.Clip(which), commandOption{long: "--min-expiry", arg: "TIME", about: "how long it has to be good for"})}, 0, authPrintToken},
	}
}

// authArgs are the words behind an auth command.
type authArgs struct {
	words           []string // beside options
	provider, model string
	minExpiry       time.Duration // 0 when not said

	apiKey, keychain, noBrowser, json, credentials, noRefresh bool
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
	c.name = "auth " + c.name
	a, err := c.parse(words[1:])
	switch {
	case err == errHelp:
		_, err := fmt.Fprintf(p.out, "Usage: pinch %s\n\n%s", c.line(), authHelp)
		return err
	case err != nil:
		fmt.Fprintf(p.errs, "%s\nUsage: pinch %s\n", print.OneLine("Error: "+err.Error()), c.line())
		if c.name == "auth check" {
			return exitError(2) // 1 is an answer of this command
		}
		return exitError(1)
	}
	return c.do(ctx, p, a)
}

func isHelp(word string) bool { return word == "-h" || word == "--help" }

// parse reads the words behind a command. No error repeats a word that could be
// a key.
func (c *authCommand) parse(words []string) (*authArgs, error) {
	for _, word := range words {
		if strings.HasPrefix(word, "--api-key=") || strings.HasPrefix(word, "--key") && word != "--keychain" {
			return nil, fmt.Errorf("A key is never given as an argument, where other programs can read it: it is asked for")
		}
	}
	g, err := c.read(words)
	if unknown, is := err.(*unknownOption); is {
		unknown.option, _, _ = strings.Cut(unknown.option, "=")
	}
	if err != nil {
		return nil, err
	}
	a := &authArgs{
		words: g.words, provider: g.options["--provider"], model: g.options["--model"],
		apiKey: g.has("--api-key") || g.has("--keychain"), keychain: g.has("--keychain"), noBrowser: g.has("--no-browser"),
		json: g.has("--json"), credentials: g.has("--credentials"), noRefresh: g.has("--no-refresh"),
	}
	if g.has("--min-expiry") {
		if a.minExpiry, err = parseLife(g.options["--min-expiry"]); err != nil {
			return nil, err
		}
	}
	switch {
	case len(a.words) > c.needs && c.needs == 0:
		return nil, fmt.Errorf("%q takes no argument; a provider is named with --provider", c.name)
	case len(a.words) > c.needs && a.apiKey:
		return nil, fmt.Errorf("--api-key takes no value: the key is asked for, as other programs can read arguments")
	case len(a.words) > c.needs:
		return nil, fmt.Errorf("%q takes one provider", c.name)
	case len(a.words) < c.needs || c.needs == 1 && strings.TrimSpace(a.words[0]) == "":
		return nil, fmt.Errorf("%q needs the name of a provider, such as openrouter", c.name)
	case slices.ContainsFunc(c.options, func(o commandOption) bool { return o.long == "--provider" }) && strings.TrimSpace(a.provider) == "" && strings.TrimSpace(a.model) == "":
		what := "Auth checks require"
		if c.name != "auth check" {
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
		list = append(list, c.command)
	}
	return list
}
