package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/lineregex"
)

var (
	long = flag.Bool("long", false, "run the long proofs")
	seed = flag.Uint64("seed", 1, "seed of the long proofs")
)

// peer is the first of some programs that is there.
func peer(t *testing.T, names ...string) string {
	if !*long {
		t.Skip("needs -long")
	}
	for _, name := range names {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skipf("needs %s on PATH", names[0])
	return ""
}

// The results of grep are those of ripgrep for generated patterns on the source
// tree of Go, with generated ignore files in it.
func TestGrepEqualsRipgrepOnTheGoTree(t *testing.T) {
	rg := peer(t, "rg")
	rnd := rand.New(rand.NewPCG(*seed, 1))
	root := copyGoTree(t)
	e := &env.Local{Dir: root, Home: t.TempDir()}
	words := sampleWords(t, rnd, root)
	dirs := foldersOf(t, root)
	lines := 0
	for round := range 200 {
		if round%20 == 0 {
			scatterIgnoreFiles(t, rnd, root, dirs, round%40 == 0)
		}
		dir := root
		if rnd.IntN(3) > 0 {
			dir = filepath.Join(root, dirs[rnd.IntN(len(dirs))])
		}
		g := &grep{fs: e, context: rnd.IntN(3) * rnd.IntN(3), limit: 1 << 30, list: listing{room: 1 << 30}}
		pattern := randomPattern(rnd, words)
		args := []string{"--no-config", "--json", "--line-number", "--color=never", "--hidden"}
		o := lineregex.Options{IgnoreCase: rnd.IntN(3) == 0, Literal: rnd.IntN(5) == 0 && !strings.Contains(pattern, "\n")}
		if o.IgnoreCase {
			args = append(args, "--ignore-case")
		}
		if o.Literal {
			args = append(args, "--fixed-strings")
		}
		glob := ""
		if rnd.IntN(3) == 0 {
			glob = []string{"*.go", "!*.go", "*_test.go", "**/testdata/**", "[a-m]*.{go,s}", "!**/internal/**", "cmd/**/*.go", "*.txt"}[rnd.IntN(8)]
			args = append(args, "--glob", glob)
		}
		if g.context > 0 {
			args = append(args, "--context", strconv.Itoa(g.context))
		}
		args = append(args, "--", pattern, ".")
		re, err := lineregex.Compile(pattern, o)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		g.re = re
		w := newWalk(context.Background(), e, dir, "", ".rgignore", true)
		if w.choose, err = globChoice(glob); err != nil {
			t.Fatal(err)
		}
		if err := g.tree(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		got := string(g.list.text)
		want := ripgrepLines(t, rg, dir, args, e.Home)
		lines += len(want)
		if diff := differences(outputLines(got), want); diff != "" {
			t.Errorf("seed %d round %d, in %s: rg %q\n%s", *seed, round, dir, args, diff)
		}
	}
	t.Logf("%d lines compared, seed %d", lines, *seed)
}

// Which files are searched is decided as ripgrep and fd do, on generated trees
// whose names and rules meet often.
func TestIgnoreRulesEqualRipgrepAndFd(t *testing.T) {
	rg, fd := peer(t, "rg"), peer(t, "fd", "fdfind")
	rnd := rand.New(rand.NewPCG(*seed, 2))
	files := 0
	for round := range 100 {
		// An upper-case letter in a path would make fd mind the case.
		place, err := os.MkdirTemp("", "peers")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(place)
		root, home := filepath.Join(place, "top"), filepath.Join(place, "home")
		smallTree(t, rnd, root, 0)
		if rnd.IntN(2) == 0 {
			write(t, home+"/.config/git/ignore", randomRules(rnd))
		}
		e := &env.Local{Dir: root, Home: home}
		dir := root
		if subs := foldersOf(t, root); rnd.IntN(3) == 0 {
			dir = filepath.Join(root, subs[rnd.IntN(len(subs))])
		}
		glob := ""
		args := []string{"--no-config", "--files", "--hidden"}
		if rnd.IntN(2) == 0 {
			glob = strings.TrimPrefix(randomRule(rnd), "#")
			if strings.TrimPrefix(glob, "!") == "" || strings.HasSuffix(glob, " ") {
				glob = "*"
			}
			args = append(args, "--glob", glob)
		}
		want, problem := peerLines(rg, dir, home, append(args, ".")...)
		w := newWalk(context.Background(), e, dir, "", ".rgignore", true)
		choose, err := globChoice(glob)
		if (err != nil) != (problem != "") {
			t.Errorf("seed %d round %d: glob %q: %v, rg says %s", *seed, round, glob, err, problem)
			continue
		}
		if err != nil {
			continue
		}
		w.choose = choose
		files += len(want)
		if diff := differences(walked(t, w, func(f found) bool { return f.kind == env.KindFile }), trimDots(want)); diff != "" {
			t.Errorf("seed %d round %d, in %s: rg %q\n%s\n%s", *seed, round, strings.TrimPrefix(dir, root), args, diff, describe(t, root, home))
		}

		pattern := "*"
		if rnd.IntN(2) == 0 {
			pattern = strings.TrimPrefix(strings.TrimLeft(randomRule(rnd), "!#/"), "./")
		}
		args = []string{"--glob", "--hidden", "--color=never"}
		shown := pattern
		if strings.Contains(pattern, "/") {
			args = append(args, "--full-path")
			shown = regexp.MustCompile(`[\\*?\[\]{}]`).ReplaceAllString(dir, `\$0`) + "/" + pattern
		}
		want, problem = peerLines(fd, dir, home, append(args, "--", shown, ".")...)
		w = newWalk(context.Background(), e, dir, "", ".fdignore", fdNeedsGit(fd))
		matches, err := nameMatcher(w, pattern)
		if (err != nil) != (problem != "") {
			t.Errorf("seed %d round %d: pattern %q: %v, fd says %s", *seed, round, pattern, err, problem)
			continue
		}
		if err != nil {
			continue
		}
		for i := range want {
			want[i] = strings.TrimSuffix(strings.TrimPrefix(want[i], "./"), "/")
		}
		files += len(want)
		if diff := differences(walked(t, w, func(f found) bool { return matches(f.rel) }), want); diff != "" {
			t.Errorf("seed %d round %d, in %s: fd %q\n%s\n%s", *seed, round, strings.TrimPrefix(dir, root), shown, diff, describe(t, root, home))
		}
	}
	t.Logf("%d paths compared, seed %d", files, *seed)
}

// fdNeedsGit tells whether a version of fd minds the rules of git only inside of
// repositories and cannot be told otherwise.
func fdNeedsGit(fd string) bool {
	help, _ := exec.Command(fd, "--help").CombinedOutput()
	return !bytes.Contains(help, []byte("no-require-git"))
}

func copyGoTree(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("needs the go command:", err)
	}
	root := filepath.Join(t.TempDir(), "src")
	if err := os.CopyFS(root, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "src"))); err != nil {
		t.Fatal(err)
	}
	return root
}

func foldersOf(t *testing.T, root string) []string {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() != ".git" {
			rel, _ := filepath.Rel(root, path)
			out = append(out, rel)
		} else if err == nil && d.IsDir() {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sampleWords takes pieces of lines out of the tree.
func sampleWords(t *testing.T, rnd *rand.Rand, root string) []string {
	var files, words []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	word := regexp.MustCompile(`[\pL_]{3,12}`)
	for len(words) < 600 {
		data, err := os.ReadFile(files[rnd.IntN(len(files))])
		if err != nil {
			t.Fatal(err)
		}
		if all := word.FindAllString(string(data[:min(len(data), 1<<20)]), -1); len(all) > 0 {
			words = append(words, all[rnd.IntN(len(all))])
		}
	}
	return append(words, "日本", "é", "世界", "ß", "Ω", "ſ", "K")
}

func randomPattern(rnd *rand.Rand, words []string) string {
	word := func() string { return words[rnd.IntN(len(words))] }
	piece := func() string {
		w := word()
		runes := []rune(w)
		return string(runes[:1+rnd.IntN(len(runes))])
	}
	forms := []func() string{
		word,
		func() string { return word() + "|" + word() },
		func() string { return word() + "|" + word() + "|" + piece() + "x|" + word() },
		func() string { return `\b` + piece() + `\w*` },
		func() string { return `\b` + word() + `\b` },
		func() string { return `\B` + piece() + `\B` },
		func() string { return `^\s*` + word() },
		func() string { return word() + `$` },
		func() string { return `^` + piece() + `.*` + piece() + `$` },
		func() string { return `[` + piece() + `][` + piece() + `0-9]{2,4}` + piece() },
		func() string { return word() + `\s*\(\w+\)` },
		func() string { return `(?i)` + word() },
		func() string { return `(?i:` + piece() + `)` + `[[:upper:]]\d+` },
		func() string { return `\p{Greek}|\p{Han}{2}` },
		func() string { return `[^\x00-\x7F]` + piece()[:1] },
		func() string { return piece() + `.{0,8}` + piece() },
		func() string { return `(?P<name>` + word() + `|` + word() + `)[.(]` },
		func() string { return `[\w&&[^aeiou]]{5}\d` },
		func() string { return `^$` },
		func() string { return `\d{3}-\d{2,}` },
		func() string { return `(` + word() + `\.){1,2}[A-Z]\w+` },
		func() string { return `"[^"]*` + piece() + `[^"]*"` },
		func() string { return `(?x) ` + word() + ` # ` + "a word\n" },
		func() string { return `\P{L}` + word() + `\W` },
		func() string { return `(?-u)\b` + word() + `(?u:\b)` },
		func() string { return piece() + `+?` + piece() + `*x?` },
	}
	for {
		p := forms[rnd.IntN(len(forms))]()
		if utf8.ValidString(p) {
			return p
		}
	}
}

func scatterIgnoreFiles(t *testing.T, rnd *rand.Rand, root string, dirs []string, repository bool) {
	os.RemoveAll(root + "/.git")
	if repository {
		write(t, root+"/.git/HEAD", "ref: refs/heads/main\n")
		write(t, root+"/.git/info/exclude", "*_linux.go\n")
	}
	rules := []string{"testdata", "testdata/", "*_test.go", "!*_test.go", "/cmd/compile", "*.s", "internal/", "!internal/",
		"z*.go", "**/zoneinfo*", "doc.go", "runtime/**/a*", "[a-c]*/", "vendor", "*.[hs]", "/net/http/*.go", "!/net/http/s*.go", `\#x`, "a?i.go", "src/*"}
	for range 12 {
		dir := dirs[rnd.IntN(len(dirs))]
		var text strings.Builder
		for range 1 + rnd.IntN(4) {
			text.WriteString(rules[rnd.IntN(len(rules))] + "\n")
		}
		name := []string{".gitignore", ".gitignore", ".ignore", ".rgignore"}[rnd.IntN(4)]
		if dir == "." {
			continue // all would be gone
		}
		write(t, filepath.Join(root, dir, name), text.String())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var treeNames = []string{"a", "b", "ab", "abc", "a.b", "A", "Ab", ".a", "a-b", "a b", "[a]", "{a,b}", "é", "a\\b", "#a", "!a", "x.log", "b.log"}

// smallTree makes folders and files with names that are much alike.
func smallTree(t *testing.T, rnd *rand.Rand, dir string, depth int) {
	for _, name := range treeNames {
		switch path := filepath.Join(dir, name); rnd.IntN(4) {
		case 0:
			if depth < 3 && rnd.IntN(depth+1) == 0 {
				smallTree(t, rnd, path, depth+1)
			}
		case 1, 2:
			write(t, path, "a\n")
		}
	}
	write(t, filepath.Join(dir, "kept"), "a\n")
	for _, name := range []string{".gitignore", ".ignore", ".rgignore", ".fdignore"} {
		if rnd.IntN(4) == 0 {
			write(t, filepath.Join(dir, name), randomRules(rnd))
		}
	}
	if rnd.IntN(3+depth) == 0 {
		write(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
		if rnd.IntN(2) == 0 {
			write(t, filepath.Join(dir, ".git/info/exclude"), randomRules(rnd))
		}
	}
}

func randomRules(rnd *rand.Rand) string {
	var b strings.Builder
	for range 1 + rnd.IntN(4) {
		b.WriteString(randomRule(rnd))
		b.WriteString([]string{"\n", "\n", "\n", " \n", "\r\n"}[rnd.IntN(5)])
	}
	return b.String()
}

func randomRule(rnd *rand.Rand) string {
	pieces := []string{"a", "b", "*", "?", "/", "**", "**/", "/**", "[ab]", "[!a]", "[^b]", "[a-c]", ".", "\\", "\\*", "{a,b}", "{", ",", "]", "é", "log", "A", " ", "#", "!"}
	var b strings.Builder
	if rnd.IntN(4) == 0 {
		b.WriteString("!")
	}
	if rnd.IntN(5) == 0 {
		b.WriteString("/")
	}
	for range 1 + rnd.IntN(5) {
		n := len(pieces)
		if rnd.IntN(3) > 0 {
			n = 13 // those that make no trouble
		}
		b.WriteString(pieces[rnd.IntN(n)])
	}
	if rnd.IntN(5) == 0 {
		b.WriteString("/")
	}
	// Versions differ about an escaped slash at the end.
	return strings.ReplaceAll(b.String(), `\/`, "/")
}

func walked(t *testing.T, w *walk, keep func(found) bool) []string {
	var out []string
	if err := w.run(context.Background(), func(f found) bool {
		if keep(f) {
			out = append(out, f.rel)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func peerCommand(program, dir, home string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=")
	return cmd
}

// peerLines runs a program that lists. A problem is what it says when it lists
// nothing and fails.
func peerLines(program, dir, home string, args ...string) (lines []string, problem string) {
	cmd := peerCommand(program, dir, home, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	for _, l := range outputLines(stderr.String()) {
		// What is wrong with a line of an ignore file is another matter.
		if err != nil && strings.Contains(l, "error parsing glob") && !strings.Contains(l, ": line ") && !strings.Contains(l, "git/ignore") {
			return nil, l
		}
	}
	return outputLines(string(out)), ""
}

func outputLines(s string) []string {
	return slices.Collect(func(yield func(string) bool) {
		for l := range strings.Lines(s) {
			if !yield(strings.TrimSuffix(l, "\n")) {
				return
			}
		}
	})
}

func trimDots(list []string) []string {
	for i := range list {
		list[i] = strings.TrimPrefix(list[i], "./")
	}
	return list
}

// ripgrepLines are the matches of ripgrep in the form of the tool.
func ripgrepLines(t *testing.T, rg, dir string, args []string, home string) []string {
	cmd := peerCommand(rg, dir, home, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && stderr.Len() > 0 {
		t.Fatalf("rg %q: %v: %s", args, err, &stderr)
	}
	var lines []string
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var ev struct {
			Type string
			Data struct {
				Path, Lines struct {
					Text  *string
					Bytes []byte
				}
				Line int `json:"line_number"`
			}
		}
		if err := dec.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		between := ":"
		switch ev.Type {
		case "match":
		case "context":
			between = "-"
		default:
			continue
		}
		text := ev.Data.Lines.Bytes
		if ev.Data.Lines.Text != nil {
			text = []byte(*ev.Data.Lines.Text)
		}
		if rest, ok := bytes.CutSuffix(text, lf); ok {
			text = bytes.TrimSuffix(rest, []byte{'\r'})
		}
		shown, _ := appendClipped(nil, text)
		lines = append(lines, fmt.Sprintf("%s%s%d%s %s", strings.TrimPrefix(*ev.Data.Path.Text, "./"), between, ev.Data.Line, between, shown))
	}
	return lines
}

// differences shows what only one of two sets of lines has.
func differences(got, want []string) string {
	count := map[string]int{}
	for _, l := range got {
		count[l]++
	}
	for _, l := range want {
		count[l]--
	}
	var out []string
	for l, n := range count {
		if n != 0 {
			out = append(out, fmt.Sprintf("%+d %q", n, l))
		}
	}
	slices.Sort(out)
	if len(out) > 10 {
		out = append(out[:10], fmt.Sprintf("and %d more", len(out)-10))
	}
	return strings.Join(out, "\n")
}

// describe shows the rules in a tree.
func describe(t *testing.T, dirs ...string) string {
	var b strings.Builder
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(d.Name(), "ignore") || d.Name() == "exclude" || d.Name() == ".git") {
				text, _ := os.ReadFile(path)
				fmt.Fprintf(&b, "%s: %q\n", strings.TrimPrefix(path, dir), text)
			}
			return nil
		})
	}
	return b.String()
}
