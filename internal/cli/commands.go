package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
)

// commands lists every command.
func commands() []command {
	approve := []commandOption{
		{long: "--approve", short: "-a", about: "trust this project for this run"},
		{long: "--no-approve", short: "-na", about: "do not"},
	}
	local := append([]commandOption{{long: "--local", short: "-l", about: "of this project, not yours"}}, approve...)
	kept := commandOption{long: "--session-dir", arg: "DIR", about: "where sessions are kept", files: true}
	listed := []commandOption{
		{long: "--all", about: "of all folders"},
		{long: "--limit", arg: "N", about: "at most so many"},
		{long: "--json", about: "for programs"},
		kept,
	}
	return []command{
		{name: "demo", about: "watch it repair a small Go module, offline", text: demoText, run: runDemo},
		{name: "auth", usage: "COMMAND", about: "sign in to providers, store API keys, see what is set up", below: authTable(), text: authHelp, run: runAuth},
		{name: "install", usage: "<source> [-l] [--approve|--no-approve]", about: "install a package of skills, prompt templates and themes", options: local, files: true, text: packageText, run: runInstall},
		{name: "remove", aliases: []string{"uninstall"}, usage: "<source> [-l] [--approve|--no-approve]", about: "remove a package", options: local, files: true, run: runRemove},
		{name: "list", usage: "[--verbose] [--approve|--no-approve]", about: "list the packages that are installed", run: runList,
			options: append([]commandOption{{long: "--verbose", about: "with versions, checksums and what each offers"}}, approve...)},
		{name: "update", usage: "[self|<source>] [--extensions|--models [PROVIDER...]|--all|--self|--extension <source>] [--force]",
			about: "update packages and lists of models", words: []string{"self"}, text: updateText, run: runUpdate,
			options: append([]commandOption{
				{long: "--extensions", about: "all packages"},
				{long: "--extension", arg: "SOURCE", about: "one package"},
				{long: "--models", about: "lists of models, of the providers that are named or all; OpenRouter's by default"},
				{long: "--url", arg: "URL", about: "with --models and one provider: where its list is"},
				{long: "--all", about: "packages and lists of models"},
				{long: "--self", about: "pinch itself"},
				{long: "--force", about: "also what was changed here, or was fetched a moment ago"},
			}, approve...)},
		{name: "config", usage: "[get|set|unset|enable|disable|inherit WORD...] [-l] [--all] [--json] [--approve|--no-approve]", about: "settings and where they come from, resources on and off",
			below: configCommands(approve, local), text: configText, run: runConfig,
			options: append([]commandOption{{long: "--all", about: "also the settings that have their default"}, {long: "--json", about: "for programs"}}, local...)},
		{name: "trust", usage: "[yes|no|forget] [DIR]", about: "see or decide whether a project's own settings, skills and packages count",
			words: []string{"yes", "no", "forget"}, files: true, text: trustText, run: runTrust},
		{name: "sessions", usage: "[list|tree|rename|move|delete|export] [WORD...]", about: "list, search, show, name, move, export and delete sessions",
			options: listed, below: sessionsCommands(listed, kept), text: sessionsText, run: runSessions},
		{name: "stats", usage: "[--by day|model|project|session]", about: "tokens and cost", text: statsText, run: runStats, options: []commandOption{
			{long: "--by", arg: "DIMENSION", about: "day, model, project or session, several with commas"},
			{long: "--days", arg: "N", about: "of the last days"},
			{long: "--since", arg: "DAY", about: "from a day on"},
			{long: "--until", arg: "DAY", about: "up to a day"},
			{long: "--project", arg: "DIR", about: "of one folder and those below it", files: true},
			kept,
			{long: "--json", about: "for programs"},
		}},
		{name: "doctor", usage: "[--online] [--json]", about: "what is set up, what works, what to do", text: doctorText, run: runDoctor, options: []commandOption{
			{long: "--online", about: "ask each provider a short question"},
			{long: "--json", about: "for programs"},
		}},
		{name: "import", usage: "pi [--link] [--from DIR]", about: "take over what ~/.pi/agent holds", words: []string{"pi"}, run: runImport,
			options: []commandOption{
				{long: "--link", about: "share the files with pi; without it they are copied"},
				{long: "--copy", about: "copy them, which is the default"},
				{long: "--from", arg: "DIR", about: "another folder than ~/.pi/agent", files: true},
			}},
		{name: "completion", usage: "bash|zsh|fish|powershell", about: "print a script that completes pinch's words in a shell", words: shells(), text: completionText, run: runCompletion,
			options: []commandOption{{long: "--list", arg: "KIND", about: "print what there is now, for the scripts: models, providers or sessions"}}},
		{name: "man", about: "print the manual page; pinch man | man -l - shows it", run: runMan},
		{name: "mcp", run: missing("MCP servers are not used by this version")},
	}
}

func runImport(_ context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	if len(g.words) != 1 || g.words[0] != "pi" {
		return errors.New("Usage: pinch " + c.line())
	}
	o := importOptions{to: p.ownAgentFolder(), link: g.has("--link") && !g.has("--copy")}
	if g.has("--from") {
		o.from = p.path(g.options["--from"])
	}
	if o.from == "" {
		o.from = filepath.Join(p.home, ".pi", "agent")
		if dir := p.getenv("PI_CODING_AGENT_DIR"); dir != "" {
			o.from = p.path(dir)
		}
	}
	return importPi(o, p.out)
}

// ownAgentFolder is where pinch keeps its own things, whatever pi's variable says.
func (p *program) ownAgentFolder() string {
	if dir := p.getenv("PINCH_AGENT_DIR"); dir != "" {
		return p.path(dir)
	}
	return filepath.Join(p.home, ".pinch", "agent")
}

// path makes a path as a person writes it absolute.
func (p *program) path(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && p.home != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		path = filepath.Join(p.home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.cwd, path)
	}
	return filepath.Clean(path)
}

// paths makes each of the paths absolute; blanks around them do not count, and
// a path of nothing else stays empty.
func (p *program) paths(list []string) []string {
	var out []string
	for _, path := range list {
		if path = strings.TrimSpace(path); path != "" {
			path = p.path(path)
		}
		out = append(out, path)
	}
	return out
}
