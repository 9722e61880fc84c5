package glob

import (
	"regexp"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no string // paths, by spaces
	}{
		{"a", "a", "b a/a A"},
		{"*.go", "a.go .go", "a/b.go a.gop"},
		{"?", "a", "ab / é"}, // é has two bytes
		{"??", "ab é", "a"},
		{"**", "a a/b", ""},
		{"**/a", "a b/a c/b/a", "ab b/ab a/b"},
		{"**/*.go", "a.go b/a.go", "a.gop"},
		{"**/a/b", "a/b x/a/b", "xa/b"},
		{"a/**", "a/b a/b/c", "a b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"},
		{"a**b", "ab axb", "a/b"},
		{"**a", "a xa", "x/a"},
		{"a/**b", "a/b a/xb", "a/x/b"},
		{"[ab]c", "ac bc", "cc ab"},
		{"[!ab]c", "xc /c", "ac"},
		{"[^a-c]", "d", "a b c"},
		{"[]a]", "] a", "b"},
		{"[!]a]", "b", "] a"},
		{"[a-]", "a -", "b"},
		{"[-a]", "a -", "b"},
		{"[a-c-e]", "a b c d e", "-"},
		{`[\]`, `\`, "a"},
		{"{a,b}", "a b", "c {a,b}"},
		{"{a,{b,c}d}", "a bd cd", "b"},
		{"{,a}b", "ab", "b"}, // an empty alternative is none
		{"{a/**,**/b}", "a/x b x/b", "a"},
		{"a,b", "a,b", "a"},
		{`\*\?\[\{`, `*?[{`, "ab"},
		{"é*", "é éa", "e"},
		{"a\xff?", "a\xffb", "ab"},
	} {
		g, err := Compile(c.pattern, Options{})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, p := range strings.Fields(c.yes) {
			if !g.Match(p) {
				t.Errorf("%q does not match %q", c.pattern, p)
			}
		}
		for _, p := range strings.Fields(c.no) {
			if g.Match(p) {
				t.Errorf("%q matches %q", c.pattern, p)
			}
		}
	}
}

func TestFoldCase(t *testing.T) {
	for pattern, yes := range map[string]string{"a*B": "AxB aXb ab", "[a-c]": "A b", "**/k": "K x/k", "{a,B}": "A b", "[!b]": "A"} {
		g, _ := Compile(pattern, Options{FoldCase: true})
		for _, p := range strings.Fields(yes) {
			if !g.Match(p) {
				t.Errorf("%q does not match %q", pattern, p)
			}
		}
	}
	if g, _ := Compile("[!b]", Options{FoldCase: true}); g.Match("B") {
		t.Error("[!b] matches B")
	}
	for pattern, want := range map[string]bool{"a": false, "aB": true, "[a-Z]": false, "[A-z]": true, "[!b]": false, "[!@]": true, "{a,B}": true, "é": true, "**/*": false} {
		if g, err := Compile(pattern, Options{}); err == nil && g.HasUpper() != want {
			t.Errorf("%q: upper case %v", pattern, !want)
		}
	}
}

func TestRowsOfStarsAreOne(t *testing.T) {
	for _, c := range [][2]string{{strings.Repeat("*", 5000) + "b", "*b"}, {"{a" + strings.Repeat("*", 5001) + ",c}", "{a*,c}"}} {
		long, err := Compile(c[0], Options{})
		short, _ := Compile(c[1], Options{})
		if err != nil || long.re.String() != short.re.String() {
			t.Errorf("%.10q is not %q: %v", c[0], c[1], err)
		}
	}
}

func TestErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"[":     "unclosed character class; missing ']'",
		"a[]":   "unclosed character class; missing ']'",
		"[b-a]": "invalid range; 'b' > 'a'",
		"{a":    "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
		"a}":    "unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)",
		`a\`:    `dangling '\'`,
	} {
		if _, err := Compile(pattern, Options{}); err == nil || err.Error() != "error parsing glob '"+pattern+"': "+want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	if g, err := Compile("a[b", Options{OpenClass: true}); err != nil || !g.Match("a[b") || g.Match("ab") {
		t.Errorf("an open class: %v", err)
	}
	for _, pattern := range []string{strings.Repeat("{", 1000), strings.Repeat("{a,", 40) + strings.Repeat("}", 40)} {
		g, err := Compile(pattern, Options{})
		if err == nil && !g.Match("a") {
			t.Errorf("%.20q does not match", pattern)
		}
	}
}

// The quick kinds match as their expressions do, letters match both of their cases
// where case does not count, and every pattern and path ends.
func FuzzMatch(f *testing.F) {
	for _, s := range []string{"a", "**/a", "**/*.b", "{a,b/**}", "[!a-c]*?", `\*`, "a**/b", "***/**/{a}", "[]", "é[é-ü]", "**/\xff", "**/*K"} {
		f.Add(s, "b/a.b")
	}
	f.Add("[!O]", "o")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern) > 1000 || len(path) > 1000 {
			return // a match costs the product of the two
		}
		g, err := Compile(pattern, Options{})
		if err != nil {
			return
		}
		got := g.Match(path)
		if g.kind != anyForm {
			p := &parser{src: pattern, alternatives: [][][]token{{nil}}}
			if err := p.parse(); err != nil {
				t.Fatal(err)
			}
			if re := regexp.MustCompile(expression(p.alternatives[0][0], false)); got != re.MatchString(bytewise(path)) {
				t.Errorf("%q and %q: %v by the quick way", pattern, path, got)
			}
		}
		folded, err := Compile(pattern, Options{FoldCase: true})
		if err != nil {
			t.Fatal(err)
		}
		// What a negated class leaves out is more without case.
		if negated := strings.Contains(pattern, "[!") || strings.Contains(pattern, "[^"); got && !negated && !folded.Match(path) {
			t.Errorf("%q matches %q only with its case", pattern, path)
		}
		if match := folded.Match(path); match != folded.Match(swapCase(path)) {
			t.Errorf("%q without case: %q %v, %q %v", pattern, path, match, swapCase(path), !match)
		}
	})
}

// swapCase gives each ASCII letter its other case.
func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if l := c | 0x20; 'a' <= l && l <= 'z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}
