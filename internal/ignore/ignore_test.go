package ignore

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules           string
		ignored, others string // paths, by spaces; those of folders end with a slash
		included        string
	}{
		{"a", "a a/ b/a", "ab", ""},
		{"/a", "a a/", "b/a", ""},
		{"a/", "a/ b/a/", "a b/a", ""},
		{"a/b", "a/b", "x/a/b", ""},
		{"**/a/b", "a/b x/a/b", "", ""},
		{"a/**", "a/b a/b/c", "a/ a", ""},
		{"*.log\n!keep.log", "a.log b/a.log", "", "keep.log b/keep.log"},
		{"!keep.log\n*.log", "keep.log", "", ""},
		{"# no\n\\#yes", "#yes", "# no", ""},
		{"\\!a", "!a", "a", ""},
		{"a  \nb\\ ", "a", "b", ""},
		{"a\r\n\r\nb\r\n", "a b", "", ""},
		{"\uFEFFa", "a", "", ""},
		{"[a-c]x", "ax bx", "dx", ""},
		{"[a", "[a", "a", ""},
		{"{", "", "{", ""},
		{"{a,b}.c", "a.c b.c", "{a,b}.c", ""},
		{"*", "a b/", "", ""},
		{"/*\n!/a", "b", "", "a"},
		{"\\*", "*", "a", ""},
		{"a?c", "abc", "ac a/c", ""},
		{"/a/*/c", "a/b/c", "a/c a/b/b/c", ""},
		{"a/**/c", "a/c a/b/c a/b/b/c", "", ""},
	} {
		var r Rules
		r.Add(c.rules)
		for want, paths := range map[Verdict]string{Ignored: c.ignored, None: c.others, Included: c.included} {
			for path := range strings.FieldsSeq(strings.ReplaceAll(paths, "# no", "")) {
				name, isDir := strings.CutSuffix(path, "/")
				if got := r.Match(name, isDir); got != want {
					t.Errorf("%q on %s: %d, want %d", c.rules, path, got, want)
				}
			}
		}
	}
}

// tree is a file system of texts.
type tree map[string]string

func (t tree) read(path string) string { return t[path] }

func (t tree) exists(path string) bool {
	for p := range t {
		if p == path || strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}

func TestFolders(t *testing.T) {
	files := tree{
		"/home/.gitignore":                      "above-git\n",
		"/home/.ignore":                         "above-plain\n",
		"/home/repo/.git/HEAD":                  "",
		"/home/repo/.git/info/exclude":          "excluded\n/sub/kept\n",
		"/home/repo/.gitignore":                 "*.log\n/sub/anchored\nboth\n",
		"/home/repo/.ignore":                    "!both\n",
		"/home/repo/.rgignore":                  "own\n",
		"/home/repo/sub/.gitignore":             "!kept.log\n!kept\n",
		"/home/repo/sub/.ignore":                "!own\n",
		"/home/repo/work/.git":                  "gitdir: ../.git/worktrees/w\n",
		"/home/repo/.git/worktrees/w/x":         "",
		"/home/repo/.git/worktrees/w/commondir": "../..\n",
		"/home/plain/.gitignore":                "x\n",
	}
	for _, c := range []struct {
		start, folder, name string
		requireGit          bool
		want                Verdict
	}{
		{"/home/repo", "", "a.log", true, Ignored},
		{"/home/repo", "", "above-git", true, None},      // rules of git end at the repository's top
		{"/home/repo", "", "above-plain", true, Ignored}, // others do not
		{"/home/repo", "", "excluded", true, Ignored},
		{"/home/repo", "", "both", true, Included}, // .ignore weighs more
		{"/home/repo", "sub", "a.log", true, Ignored},
		{"/home/repo", "sub", "kept.log", true, Included},
		{"/home/repo", "sub", "anchored", true, Ignored},
		{"/home/repo", "sub", "kept", true, Included}, // .gitignore weighs more than exclude
		{"/home/repo", "sub", "own", true, Ignored},   // .rgignore weighs more than .ignore
		{"/home/repo/sub", "", "anchored", true, Ignored},
		{"/home/repo", "work", "excluded", true, Ignored}, // a linked work tree
		{"/home/repo", "work", "a.log", true, None},       // is a repository of its own
		{"/home/plain", "", "x", true, None},
		{"/home/plain", "", "x", false, Ignored},
		{"/home/repo", "", "everywhere", true, Ignored},
		{"/home/repo/sub", "", "at-start", true, Ignored},
		{"/home/repo", "sub", "at-start", true, None},
		{"/home/plain", "", "everywhere", true, None},
		{"/", "", "a", true, None},
	} {
		s := &Sources{Own: ".rgignore", RequireGit: c.requireGit, Read: files.read, Exists: files.exists, Global: &Rules{}}
		s.Global.Add("everywhere\n/at-start\n")
		f := s.Start(c.start)
		if c.folder != "" {
			f = f.Enter(c.folder, func(name string) bool { return files.exists(c.start + "/" + c.folder + "/" + name) })
		}
		if got := f.Match(c.name, false); got != c.want {
			t.Errorf("%s in %s/%s: %d, want %d", c.name, c.start, c.folder, got, c.want)
		}
	}
}

func TestGlobalRules(t *testing.T) {
	for name, files := range map[string]tree{
		"by itself":  {"/h/.config/git/ignore": "x"},
		"configured": {"/h/.gitconfig": "[core]\n\texcludesFile = ~/mine\n", "/h/mine": "x", "/h/.config/git/ignore": "y"},
		"quoted":     {"/h/.config/git/config": "[core]\nexcludesfile=\"/etc/mine\"\n", "/etc/mine": "x"},
	} {
		r := GlobalRules("/h", "/h/.config", files.read)
		if r.Match("x", false) != Ignored || r.Match("y", false) != None {
			t.Errorf("%s: not in force", name)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("a\n!b/\n/c/**", "b/a")
	f.Fuzz(func(t *testing.T, rules, path string) {
		var r Rules
		r.Add(rules)
		if r.Match(path, true) == None && r.Match(path, false) != None && !strings.Contains(rules, "/") {
			t.Errorf("a rule for all is none for folders: %q on %q", rules, path)
		}
	})
}
