package tool

import (
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	e := searchTree(t, map[string]string{
		"a.go": "", "B.GO": "", "src/c.go": "", "src/x/d.go": "", "lib/src/e.go": "", ".hid/f.go": "", "out/g.go": "", "bad\xff.txt": "",
		".gitignore": "out\n", "src/.fdignore": "x\n", "src/.rgignore": "c.go\n",
	})
	find := Find(FindOptions{Env: e})
	for args, want := range map[string]string{
		`{"pattern":"*.go"}`:                            ".hid/f.go\nB.GO\na.go\nlib/src/e.go\nsrc/c.go",
		`{"pattern":"*.GO"}`:                            "B.GO",
		`{"pattern":"src/*.go"}`:                        "src/c.go",
		`{"pattern":"**/src/*.go"}`:                     "lib/src/e.go\nsrc/c.go",
		`{"pattern":"./src/**"}`:                        "src/.fdignore\nsrc/.rgignore\nsrc/c.go",
		`{"pattern":"` + e.Dir + `/lib/**"}`:            "lib/src/\nlib/src/e.go",
		`{"pattern":"d.go","path":"src/x"}`:             "d.go",
		`{"pattern":"g.go","path":"` + e.Dir + `/out"}`: "g.go",
		`{"pattern":"{a,c}.go"}`:                        "a.go\nsrc/c.go",
		`{"pattern":"[!a-f].go"}`:                       "No files found matching pattern",
		`{"pattern":"**/"}`:                             "No files found matching pattern",
		`{"pattern":"bad*"}`:                            "bad\uFFFD.txt",
		`{"pattern":"*.go","limit":2}`:                  ".hid/f.go\nB.GO\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]",
		`{"pattern":"*","path":"a.go"}`:                 "error: [fd error]: Search path '" + filepath.Join(e.Dir, "a.go") + "' is not a directory.\n[fd error]: No valid search paths given.",
		`{"pattern":"}"}`:                               "error: [fd error]: error parsing glob '}': unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)",
	} {
		if got := ask(t, find, args); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", args, got, want)
		}
	}
}
