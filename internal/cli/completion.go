package cli

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

const completionText = `  bash        source <(pinch completion bash)        in ~/.bashrc
  zsh         source <(pinch completion zsh)         in ~/.zshrc, behind compinit
  fish        pinch completion fish | source         in ~/.config/fish/config.fish
  powershell  pinch completion powershell | Out-String | Invoke-Expression
                                                     in $PROFILE

Behind --model, --provider, --session and --fork the models, providers and sessions
that you have are offered, and sessions behind the commands about one; nothing is
asked of any service for that.
`

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// The parts of the scripts that are the same whatever the words are. @TABLE@
// stands for the words.
var (
	//go:embed completion/bash.sh
	bashScript string
	//go:embed completion/zsh.sh
	zshScript string
	//go:embed completion/powershell.ps1
	powershellScript string
)

func runCompletion(_ context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	if g.has("--list") && len(g.words) == 0 {
		return p.list(listing(g.options["--list"]))
	}
	if len(g.words) != 1 || !slices.Contains(shells(), g.words[0]) {
		return p.misused("Usage: pinch %s", c.line())
	}
	_, err = io.WriteString(p.out, completion(g.words[0]))
	return err
}

// listing is a kind of words that differ from person to person: the scripts ask
// for them when they are wanted.
type listing string

const (
	listedModels    listing = "models"
	listedProviders listing = "providers"
	listedSessions  listing = "sessions"
)

// command is the command line that prints the words of a kind.
func (l listing) command() string { return "pinch completion --list " + string(l) + " 2>/dev/null" }

// list prints the words of a kind, a line each. It says nothing else, runs no
// command and reads no session.
func (p *program) list(kind listing) error {
	var words []string
	switch kind {
	case listedModels:
		c, _ := p.lookCatalog()
		for _, m := range c.Available() {
			words = append(words, m.Ref())
		}
	case listedProviders:
		c, _ := p.lookCatalog()
		for _, provider := range c.Providers() {
			words = append(words, provider.ID)
		}
	case listedSessions:
		for _, path := range slices.Backward(p.sessionsOf("").Files(p.cwd)) { // the newest first
			if _, id, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "_"); ok {
				words = append(words, id)
			}
		}
	default:
		return fmt.Errorf("--list takes models, providers or sessions, and not %q", kind)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return !isPlain(word) })
	_, err := fmt.Fprint(p.out, strings.Join(append(words, ""), "\n"))
	return err
}

// isPlain reports whether a word means nothing else to a shell. Names of models
// come from lists that others write, and bash expands the words it is offered.
func isPlain(word string) bool {
	return word != "" && word[0] != '-' && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@+,", r)
	})
}

// place is a place on the command line, and the words that may stand there.
type place struct {
	path  string // the commands before, such as "auth login"; "" for none
	words []string
	about []string // of each word
	files bool     // paths may stand there too
	lists listing  // and what there is of this kind
}

// valued is an option and what may stand behind it.
type valued struct {
	path  string
	names []string
	value bool
	words []string
	files bool
	lists listing
}

// print is the command line that prints the words behind an option.
func (f *valued) print(quote func(string) string) string {
	if f.lists != "" {
		return f.lists.command()
	}
	return "echo " + quote(strings.Join(f.words, " "))
}

// grammar is the tables of commands and options as completion needs them.
func grammar() (places []place, flags []valued) {
	top := place{files: true}
	for i := range options {
		o := &options[i]
		f := valued{names: []string{o.long}, value: o.takes == value, words: o.words, files: o.files, lists: o.lists}
		if o.short != "" {
			f.names = append(f.names, o.short)
		}
		top.add(o.long, o.about)
		flags = append(flags, f)
	}
	var below []place
	for _, c := range commands() {
		if c.about == "" {
			continue
		}
		for _, name := range append([]string{c.name}, c.aliases...) {
			top.add(name, c.about)
			ps, fs := c.grammar(name)
			below, flags = append(below, ps...), append(flags, fs...)
		}
	}
	return append([]place{top}, below...), flags
}

func (c *command) grammar(path string) (places []place, flags []valued) {
	here := place{path: path, files: c.files, lists: c.lists}
	for _, w := range c.words {
		here.add(w, "")
	}
	for _, sub := range c.below {
		here.add(sub.name, sub.about)
		ps, fs := sub.grammar(path + " " + sub.name)
		places, flags = append(places, ps...), append(flags, fs...)
	}
	for _, o := range c.options {
		here.add(o.long, o.about)
		f := valued{path: path, names: []string{o.long}, value: o.arg != "", files: o.files, lists: o.lists}
		if o.short != "" {
			f.names = append(f.names, o.short)
		}
		flags = append(flags, f)
	}
	here.add("--help", "how it is used")
	flags = append(flags, valued{path: path, names: []string{"--help", "-h"}})
	return append([]place{here}, places...), flags
}

func (p *place) add(word, about string) {
	p.words, p.about = append(p.words, word), append(p.about, about)
}

// completion is the script for a shell.
func completion(shell string) string {
	places, flags := grammar()
	var b strings.Builder
	switch shell {
	case "bash":
		for _, p := range places {
			fmt.Fprintf(&b, "    words:%s) echo %s;;\n", caseWord(p.path), posixQuote(strings.Join(p.words, " ")))
		}
		b.WriteString(shellFlags(places, flags))
		return strings.ReplaceAll(bashScript, "@TABLE@\n", b.String())
	case "zsh":
		for _, p := range places {
			fmt.Fprintf(&b, "    words:%s) print -rl --", caseWord(p.path))
			for i, word := range p.words {
				b.WriteString(" " + posixQuote(described(word, p.about[i])))
			}
			b.WriteString(";;\n")
		}
		b.WriteString(shellFlags(places, flags))
		return strings.ReplaceAll(zshScript, "@TABLE@\n", b.String())
	case "powershell":
		for _, p := range places {
			fmt.Fprintf(&b, "    'words:%s' = @(%s)\n", p.path, powershellList(p.words))
		}
		for _, f := range flags {
			for _, name := range f.names {
				if f.value {
					fmt.Fprintf(&b, "    'value:%s:%s' = @(%s)\n", f.path, name, powershellList(f.words))
				}
				if f.lists != "" {
					fmt.Fprintf(&b, "    'list:%s:%s' = '%s'\n", f.path, name, f.lists)
				}
			}
		}
		for _, p := range places {
			if p.lists != "" {
				fmt.Fprintf(&b, "    'list:%s' = '%s'\n", p.path, p.lists)
			}
		}
		return strings.ReplaceAll(powershellScript, "@TABLE@\n", b.String())
	}
	return fish(places, flags)
}

// shellFlags are the cases about options of the scripts for bash and zsh.
func shellFlags(places []place, flags []valued) string {
	var b strings.Builder
	for _, f := range flags {
		if !f.value {
			continue
		}
		for _, name := range f.names {
			fmt.Fprintf(&b, "    value:%s:%s) %s;;\n", caseWord(f.path), name, f.print(posixQuote))
			if f.files {
				fmt.Fprintf(&b, "    files:%s:%s) echo yes;;\n", caseWord(f.path), name)
			}
		}
	}
	for _, p := range places {
		if p.files {
			fmt.Fprintf(&b, "    files:%s) echo yes;;\n", caseWord(p.path))
		}
		if p.lists != "" {
			fmt.Fprintf(&b, "    list:%s) %s;;\n", caseWord(p.path), p.lists.command())
		}
	}
	return b.String()
}

// caseWord is a path of commands as a pattern of case.
func caseWord(path string) string { return strings.ReplaceAll(path, " ", `\ `) }

func posixQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// described is a word for zsh, with what it is about.
func described(word, about string) string {
	word = strings.ReplaceAll(word, ":", `\:`)
	if about == "" {
		return word
	}
	return word + ":" + about
}

func powershellList(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", "''")+"'")
	}
	return strings.Join(quoted, ", ")
}

// fish is the script for fish, which is nothing but a list.
func fish(places []place, flags []valued) string {
	quote := func(s string) string {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
	}
	var b strings.Builder
	b.WriteString("complete -c pinch -e\ncomplete -c pinch -f\n")
	for _, p := range places {
		at := shellCondition(p.path, places)
		if p.files {
			fmt.Fprintf(&b, "complete -c pinch -n %s -F\n", quote(strings.TrimSuffix(at, firstWord)))
		}
		if p.lists != "" {
			fmt.Fprintf(&b, "complete -c pinch -n %s -a %s\n", quote(strings.TrimSuffix(at, firstWord)), quote("("+p.lists.command()+")"))
		}
		for i, word := range p.words {
			if !strings.HasPrefix(word, "-") {
				fmt.Fprintf(&b, "complete -c pinch -n %s -a %s -d %s\n", quote(at), quote(word), quote(p.about[i]))
			}
		}
	}
	for _, f := range flags {
		fmt.Fprintf(&b, "complete -c pinch -n %s", quote(strings.TrimSuffix(shellCondition(f.path, places), firstWord)))
		for _, name := range f.names {
			if long, ok := strings.CutPrefix(name, "--"); ok {
				b.WriteString(" -l " + long)
			} else {
				b.WriteString(" -o " + strings.TrimPrefix(name, "-"))
			}
		}
		if f.value {
			b.WriteString(" -r")
			if f.files {
				b.WriteString(" -F")
			} else {
				b.WriteString(" -f")
			}
			if f.lists != "" {
				b.WriteString(" -a " + quote("("+f.print(quote)+")"))
			} else if len(f.words) > 0 {
				b.WriteString(" -a " + quote(strings.Join(f.words, " ")))
			}
		}
		fmt.Fprintf(&b, " -d %s\n", quote(aboutFlag(f, places)))
	}
	return b.String()
}

const firstWord = "; and test (count (commandline -opc)) -eq 1"

// shellCondition is when fish offers what stands in a place.
func shellCondition(path string, places []place) string {
	if path == "" {
		var names []string
		for _, p := range places {
			if p.path != "" && !strings.Contains(p.path, " ") {
				names = append(names, p.path)
			}
		}
		return "not __fish_seen_subcommand_from " + strings.Join(names, " ") + firstWord
	}
	var all []string
	for name := range strings.SplitSeq(path, " ") {
		all = append(all, "__fish_seen_subcommand_from "+name)
	}
	return strings.Join(all, "; and ")
}

func aboutFlag(f valued, places []place) string {
	for _, p := range places {
		if i := slices.Index(p.words, f.names[0]); p.path == f.path && i >= 0 {
			return p.about[i]
		}
	}
	return ""
}
