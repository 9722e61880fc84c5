package tool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain\ntext\n":         "plain\ntext\n",
		"a  \nb\t\n":            "a\nb\n",
		"end  ":                 "end",
		"   ":                   "",
		"\n \n":                 "\n\n",
		"x\u0085\n":             "x\u0085\n",
		"x\u180e":               "x\u180e",
		"x\u200b":               "x\u200b",
		"x\u1680\u2028\ufeff\n": "x\n",
		"a\u1680b":              "a\u1680b",
		"‘a’ “b” ‚c‛":           "'a' \"b\" 'c'",
		"a–b—c−d‑e":             "a-b-c-d-e",
		"a\u00a0b\u3000c":       "a b c",
		"ﬁle ﬂow ½":             "file flow 1⁄2",
		"e\u0301":               "é",
		"Å\n":                   "Å\n",
		"é  \nx  \n":            "é\nx\n",
	} {
		if got := fold(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Folding keeps the number of lines: edits find their lines by it.
func TestFoldKeepsLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOfN(rapid.SampledFrom([]rune("ab \t\n\u00a0\u2028é\u0301ﬁ“–\u1100\u1161")), 0, 60, -1).Draw(t, "text")
		out := fold(in)
		if strings.Count(in, "\n") != strings.Count(out, "\n") {
			t.Fatalf("%q has other lines than %q", out, in)
		}
		if isFolded(in) && out != in {
			t.Fatalf("%q counts as folded and became %q", in, out)
		}
	})
}
