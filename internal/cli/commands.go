package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// commandFunc runs a command with the words behind its name.
type commandFunc func(ctx context.Context, p *program, words []string) error

// commandOf is the command that a first word names, nil for none. Behind
// options and elsewhere these words are messages.
func commandOf(word string) commandFunc {
	switch word {
	case "demo":
		return runDemo
	case "import":
		return runImport
	case "auth":
		return runAuth
	case "update":
		return runUpdate
	case "stats":
		return runStats
	case "sessions":
		return runSessions
	case "doctor":
		return runDoctor
	case "install", "remove", "uninstall", "list", "config":
		return missing("Name skills, prompt templates and themes in settings.json, or put them into the agent folder")
	case "mcp":
		return missing("MCP servers are not used by this version")
	}
	return nil
}

// missing refuses a command of the peer that this version has no use for, so
// that its words are not taken for a message to a model.
func missing(instead string) commandFunc {
	return func(context.Context, *program, []string) error {
		return fmt.Errorf("This version of pinch has no such command. %s. To say the word to a model, write it behind -p", instead)
	}
}

// asksHelp reports whether the words behind a command ask how it is used.
func asksHelp(words []string) bool { return slices.ContainsFunc(words, isHelp) }

func runImport(_ context.Context, p *program, words []string) error {
	const usage = "Usage: pinch import pi [--link] [--from DIR]"
	if asksHelp(words) {
		_, err := fmt.Fprintln(p.out, usage)
		return err
	}
	if len(words) == 0 || words[0] != "pi" {
		return errors.New(usage)
	}
	o := importOptions{to: p.ownAgentFolder()}
	for i := 1; i < len(words); i++ {
		switch {
		case words[i] == "--link":
			o.link = true
		case words[i] == "--copy":
			o.link = false
		case words[i] == "--from" && i+1 < len(words):
			i++
			o.from = p.path(words[i])
		default:
			return errors.New(usage)
		}
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
