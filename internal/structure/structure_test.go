// Package structure holds the tests that keep the code in its shape: who may
// import whom, which modules the binary links, and how long a file may be.
package structure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pinch-agent/pinch/"

// leaves may be imported by every package: they import nothing of ours.
var leaves = []string{"internal/jsonwire", "internal/jsonschema", "internal/regular", "internal/version", "internal/invoke", "internal/jsonedit", "internal/gitsource", "internal/sharedfile", "internal/spelling", "internal/panics"}

type rule struct {
	pkg string
	may []string
}

// rules lists, for each package or folder of packages (trailing slash), what
// of ours it may import. The first match counts. It is the table of the
// architecture, to be changed with it.
var rules = []rule{
	{"internal/jsonwire", nil},
	{"internal/jsonschema", nil},
	{"internal/regular", nil},
	{"internal/version", nil},
	{"internal/invoke", nil},
	{"internal/jsonedit", nil},
	{"internal/gitsource", nil},
	{"internal/sharedfile", nil},
	{"internal/spelling", nil},
	{"internal/panics", nil},
	{"llm", nil},
	{"env", nil},
	{"env/envtest", []string{"env"}},
	{"llm/transcript", []string{"llm"}},
	{"internal/wire", []string{"llm"}},
	{"internal/wire/wiretest", []string{"llm"}},
	{"llm/all", []string{"llm", "llm/"}},
	{"llm/catalog", []string{"llm", "auth"}},
	{"llm/", []string{"llm", "llm/transcript", "internal/wire"}}, // a wire format; never another one
	{"auth", []string{"llm", "env"}},
	{"auth/signin", []string{"auth", "llm"}},
	{"agent", []string{"llm"}},
	{"session", []string{"agent", "llm"}},
	{"session/", []string{"session", "agent", "llm"}},
	{"compact", []string{"session", "agent", "llm"}},
	{"tool", []string{"agent", "env", "llm", "internal/lineregex", "internal/glob", "internal/ignore"}},
	{"resource", []string{"agent", "env", "llm", "internal/glob", "internal/ignore"}},
	{"internal/lineregex", nil},
	{"internal/glob", nil},
	{"internal/ignore", []string{"internal/glob"}},
	{"internal/settings", nil},
	{"internal/packages", []string{"resource"}},
	{"internal/packages/packagestest", nil},
	{"harness", []string{"llm", "llm/transcript", "llm/catalog", "internal/wire", "auth", "agent", "session", "session/", "env", "tool", "resource", "compact"}},
	{"internal/", []string{""}}, // everything
	{"cmd/", []string{"internal/cli", "internal/version"}},
	{"examples", nil},
	{"examples/", []string{""}},
}

func matches(pattern, pkg string) bool {
	if pattern == "" {
		return true
	}
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(pkg, pattern)
	}
	return pkg == pattern
}

type listed struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Module"}, args...)...)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if e, ok := err.(*exec.ExitError); ok {
			stderr = e.Stderr
		}
		t.Fatalf("go list: %v\n%s", err, stderr)
	}
	var pkgs []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImports(t *testing.T) {
	for _, p := range goList(t, "./...") {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if pkg == strings.TrimSuffix(module, "/") {
			continue
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return matches(r.pkg, pkg) })
		if i < 0 {
			t.Errorf("%s has no rule: add one here and to the architecture page", pkg)
			continue
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours || slices.Contains(leaves, dep) {
				continue
			}
			if strings.HasSuffix(dep, "test") {
				t.Errorf("%s imports %s, which is for tests alone", pkg, dep)
			}
			if !slices.ContainsFunc(rules[i].may, func(m string) bool { return matches(m, dep) }) {
				t.Errorf("%s imports %s, which the table does not allow", pkg, dep)
			}
		}
	}
}

// TestModules keeps the modules that the binary links on the checked-in list,
// so that a new dependency is a decision and not an accident.
func TestModules(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range goList(t, "-deps", "./cmd/pinch") {
		if p.Module != nil && p.Module.Path+"/" != module {
			seen[p.Module.Path] = true
		}
	}
	var got []string
	for m := range seen {
		got = append(got, m)
	}
	slices.Sort(got)
	want, err := os.ReadFile("modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	if list := strings.Join(got, "\n") + "\n"; list != string(want) {
		t.Errorf("the binary links\n%s\nmodules.txt lists\n%s\nname a new module in docs/dependencies.md with its reason, then update the list", list, want)
	}
}

// TestEmbeddersLinkOnlyWhatTheyName checks that harness brings no wire format.
func TestEmbeddersLinkOnlyWhatTheyName(t *testing.T) {
	for _, p := range goList(t, "-deps", "./harness") {
		switch strings.TrimPrefix(p.ImportPath, module) {
		case "llm/anthropic", "llm/completions", "llm/faux":
			t.Errorf("harness links %s", p.ImportPath)
		}
	}
}

func TestFileSize(t *testing.T) {
	const limit = 800
	err := filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines, generated := 0, false
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for ; s.Scan(); lines++ {
			if strings.HasPrefix(s.Text(), "// Code generated") {
				generated = true
			}
		}
		if lines > limit && !generated {
			t.Errorf("%s has %d lines; the limit is %d: split it by topic", path, lines, limit)
		}
		return s.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
