package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every option and command is in every script, in help and in the manual page.
func TestTablesAreComplete(t *testing.T) {
	scripts := map[string]string{"man": strings.ReplaceAll(manualPage(), `\-`, "-")}
	for _, shell := range shells() {
		scripts[shell] = completion(shell)
	}
	text := help()
	for i := range options {
		o := &options[i]
		if o.about == "" || (o.takes == value) != (o.arg != "" && o.arg[0] != '[') {
			t.Errorf("%s: %q %q", o.long, o.arg, o.about)
		}
		for name, script := range scripts {
			if name == "man" && o.group == "" {
				continue
			}
			if !strings.Contains(script, o.long) && !(name == "fish" && strings.Contains(script, "-l "+o.long[2:])) {
				t.Errorf("%s is not in %s", o.long, name)
			}
		}
		if strings.Contains(text, optionNames(o.short, o.long, o.arg)) != (o.group != "") {
			t.Errorf("%s: is it in help?", o.long)
		}
		if o.group != "" && !slices.Contains(groups(), o.group) {
			t.Errorf("%s has the group %q", o.long, o.group)
		}
	}
	for _, c := range commands() {
		if c.run == nil {
			t.Errorf("%s does nothing", c.name)
		}
		if c.about == "" {
			continue
		}
		for name, script := range scripts {
			if !strings.Contains(script, c.name) {
				t.Errorf("%s is not in %s", c.name, name)
			}
		}
		var b strings.Builder
		if err := c.help(&b); err != nil || !strings.HasPrefix(b.String(), "Usage: pinch "+c.name) {
			t.Errorf("%s: %v %s", c.name, err, b.String())
		}
		for _, o := range c.options {
			if !strings.Contains(b.String(), o.names()) || o.about == "" {
				t.Errorf("%s %s: %s", c.name, o.long, b.String())
			}
		}
	}
}

// driver is what a shell is told, so that it says how it would go on with a line.
// $1 is the script, the rest the words; the last is not finished.
var drivers = map[string]string{
	"bash": `source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_pinch
printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() { }
compset() { [[ $words[CURRENT] == @* ]] && words[CURRENT]=${words[CURRENT]#@} }
compadd() { shift; print -rl -- ${(P)1} }
_describe() { print -rl -- ${${(P)2}%%:*} }
_files() { print -rl -- *(N) }
source $1; shift
words=("$@"); CURRENT=$#
_pinch`,
	"fish": `source $argv[1]
complete -C "$argv[2..-1]" | string split -f1 \t; true`,
}

func TestShellsComplete(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.md", "with blank.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// What a person has: a model with a name that a shell would run, and a session.
	bin := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "pinch")); err != nil {
		t.Skip(err)
	}
	p := &program{home: dir, cwd: dir, getenv: os.Getenv}
	for path, text := range map[string]string{
		filepath.Join(dir, ".pinch", "agent", "models.json"): `{"providers":{"own":{"baseUrl":"http://127.0.0.1:9","api":"openai-completions","apiKey":"k",
			"models":[{"id":"plain:free"},{"id":"$(touch ran)"},{"id":"two words"}]}}}`,
		filepath.Join(p.sessionsOf("").Dir(dir), "2026-01-01T00-00-00-000Z_my-session.jsonl"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for shell, driver := range drivers {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s here", shell)
			}
			script := filepath.Join(t.TempDir(), "pinch-completion")
			if err := os.WriteFile(script, []byte(completion(shell)), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program, "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%s refuses the script: %v\n%s", shell, err, out)
			}
			for _, c := range []struct {
				line       []string
				has, lacks string // separated by commas
			}{
				{[]string{"--m"}, "--mode,--model,--models", "--"},
				{[]string{"--mode", ""}, "text,json,rpc", "notes.md,install"},
				{[]string{"--thinking", "x"}, "xhigh", ""},
				{[]string{"in"}, "install", "-i"},
				{[]string{"un"}, "uninstall", "install"},
				{[]string{"install", "--"}, "--local,--approve,--help", "--mode,--force"},
				{[]string{"install", "n"}, "notes.md", ""},
				{[]string{"update", "--"}, "--extensions,--extension,--models,--all,--self,--force", "--mode"},
				{[]string{"auth", ""}, "login,logout,status,check,print-api-key,print-bearer-token", "install"},
				{[]string{"auth", "check", "--"}, "--provider,--model,--json,--credentials,--no-refresh", "--mode,--keychain"},
				{[]string{"sessions", ""}, "list,rename,move,delete,export", "install"},
				{[]string{"sessions", "--"}, "--all,--limit,--json,--session-dir", "--yes"},
				{[]string{"sessions", "delete", "--"}, "--yes,--session-dir", "--mode"},
				{[]string{"sessions", "delete", ""}, "my-session", "install"},
				{[]string{"sessions", "tree", "my"}, "my-session", "install"},
				{[]string{"trust", ""}, "yes,no,forget", ""},
				{[]string{"completion", ""}, "bash,zsh,fish,powershell", "notes.md"},
				{[]string{"-p", "--session", "n"}, "notes.md", "--mode"},
				{[]string{"-p", "n"}, "notes.md", "install"},
				{[]string{"--provider", "o"}, "openai,own,openrouter", "notes.md"},
				{[]string{"-p", "--model", "own/"}, "own/plain:free", "notes.md,words"},
				{[]string{"auth", "check", "--model", "own/"}, "own/plain:free", ""},
				{[]string{"--session", "m"}, "my-session", ""},
				{[]string{"--fork", ""}, "my-session,notes.md", ""},
				{[]string{"-p", "--th"}, "--thinking,--theme", ""},
			} {
				args := append([]string{script, "pinch"}, c.line...)
				if shell == "fish" {
					args = []string{script, "pinch " + strings.Join(c.line, " ")}
				}
				driverFile := filepath.Join(t.TempDir(), "driver")
				if err := os.WriteFile(driverFile, []byte(driver), 0o644); err != nil {
					t.Fatal(err)
				}
				flags := map[string][]string{"zsh": {"-f"}, "fish": {"-N"}, "bash": {"--norc"}}[shell]
				cmd := exec.Command(program, append(append(flags, driverFile), args...)...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), runMain+"=1", "HOME="+dir, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", c.line, err, out)
				}
				begun := c.line[len(c.line)-1]
				got := slices.DeleteFunc(strings.Split(string(out), "\n"), func(word string) bool {
					return !strings.HasPrefix(word, begun) // zsh looks at that itself
				})
				for word := range strings.SplitSeq(c.has, ",") {
					if !slices.Contains(got, word) {
						t.Errorf("%q: no %q in %q", c.line, word, got)
					}
				}
				for word := range strings.SplitSeq(c.lacks, ",") {
					if word != "" && slices.Contains(got, word) {
						t.Errorf("%q: %q in %q", c.line, word, got)
					}
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("a name was run")
			}
		})
	}
}

// The manual page is understood without a complaint, and its words come out as they
// are in help.
func TestManualPage(t *testing.T) {
	program, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff here")
	}
	cmd := exec.Command(program, "-man", "-Tascii", "-ww", "-P-c")
	cmd.Stdin = strings.NewReader(manualPage())
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	page := regexp.MustCompile(".\b").ReplaceAllString(out.String(), "") // bold letters are printed twice
	for _, want := range []string{"pinch install <source> [-l]", "--append-system-prompt TEXT|FILE", "in ~/.bashrc"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}
