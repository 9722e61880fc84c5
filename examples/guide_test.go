package examples

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The guide's Go code is quoted from programs and examples that the tests run:
// each block is found, but for its indentation, in one of them.
func TestTheGuideQuotesCodeThatRuns(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "embedding.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]string{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		name := filepath.ToSlash(path)
		if !strings.HasSuffix(name, "/example_test.go") && (!strings.HasPrefix(name, "../examples/") || !strings.HasSuffix(name, ".go")) {
			return nil
		}
		text, err := os.ReadFile(path)
		sources[name] = lines(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks, block := 0, []string(nil)
	for i, line := range lines(string(guide)) {
		switch {
		case block == nil && line == "```go":
			block = []string{}
		case block != nil && line == "```":
			blocks++
			if !quoted(block, sources) {
				t.Errorf("the code above line %d of the guide is in no program:\n%s", i+1, strings.Join(block, "\n"))
			}
			block = nil
		case block != nil:
			block = append(block, line)
		}
	}
	if blocks < 10 || block != nil {
		t.Errorf("the guide has %d blocks of Go code, the last one closed: %t", blocks, block == nil)
	}
}

func lines(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

func quoted(block []string, sources map[string][]string) bool {
	for _, source := range sources {
		for at := 0; at+len(block) <= len(source); at++ {
			if sameBut(block, source[at:at+len(block)]) {
				return true
			}
		}
	}
	return false
}

// sameBut reports whether source is block, each line moved to the right by the
// same tabs.
func sameBut(block, source []string) bool {
	indent, known := "", false
	for i, line := range block {
		switch {
		case line == "":
			if source[i] != "" {
				return false
			}
			continue
		case !known:
			var found bool
			if indent, found = strings.CutSuffix(source[i], line); !found || strings.Trim(indent, "\t") != "" {
				return false
			}
			known = true
		case source[i] != indent+line:
			return false
		}
	}
	return known
}

func TestQuotedFindsWhatIsThere(t *testing.T) {
	sources := map[string][]string{"a.go": lines("func f() {\n\tif x {\n\n\t\ty()\n\t}\n}\n")}
	for block, want := range map[string]bool{
		"if x {\n\n\ty()\n}":   true,
		"y()":                  true,
		"func f() {":           true,
		"if x {\n\n\ty()\n\t}": false,
		"if x {\n\n\tz()\n}":   false,
		"if x {\n\ty()\n}":     false,
		"x {":                  false,
		"":                     false,
		"}\n}\nfunc g() {":     false,
	} {
		if got := quoted(strings.Split(block, "\n"), sources); got != want {
			t.Errorf("%q: %t", block, got)
		}
	}
}
