//go:build unix

package tool

import (
	"os"
	"testing"

	"github.com/pinch-agent/pinch/env"
)

func TestResolvePath(t *testing.T) {
	fs := &env.Local{Dir: "/proj", Home: "/home/me"}
	for in, want := range map[string]string{
		"a.txt":                    "/proj/a.txt",
		"./a/../b.txt":             "/proj/b.txt",
		"/x/y":                     "/x/y",
		"@a.txt":                   "/proj/a.txt",
		"@@a.txt":                  "/proj/@a.txt",
		"@~/a.txt":                 "/home/me/a.txt",
		"~":                        "/home/me",
		"~/a.txt":                  "/home/me/a.txt",
		"~other/a.txt":             "/proj/~other/a.txt",
		"a/~/b":                    "/proj/a/~/b",
		"my\u00a0file\u3000x.txt":  "/proj/my file x.txt",
		"a\u2003b\u200bc":          "/proj/a b\u200bc",
		"file:///x/a%20b.txt":      "/x/a b.txt",
		"file://localhost/x":       "/x",
		"file://elsewhere/x":       "/proj/file:/elsewhere/x",
		"@file:///x/%C3%A9":        "/x/é",
		"":                         "/proj",
		"..":                       "/",
		"name with\u202fspace.txt": "/proj/name with space.txt",
		"\u2028kept":               "/proj/\u2028kept",
	} {
		if got := resolvePath(fs, in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFindReadable(t *testing.T) {
	dir := t.TempDir()
	fs := &env.Local{Dir: dir}
	for _, name := range []string{
		"Shot 9.41.00\u202fPM.png", "two 1\u202fam.x\u202fPM.png", "re\u0301sume\u0301.txt", "it\u2019s.txt", "cafe\u0301 d\u2019or", "plain's",
	} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"Shot 9.41.00 PM.png": "Shot 9.41.00\u202fPM.png",
		"two 1 am.x PM.png":   "two 1\u202fam.x\u202fPM.png",
		"résumé.txt":          "re\u0301sume\u0301.txt",
		"it's.txt":            "it\u2019s.txt",
		"café d'or":           "cafe\u0301 d\u2019or",
		"plain's":             "plain's",
		"none's":              "none's",
	} {
		if got := findReadable(t.Context(), fs, dir+"/"+in); got != dir+"/"+want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
