package lineregex

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func compileFor(t testing.TB, pattern string, o Options) *Regexp {
	t.Helper()
	re, err := Compile(pattern, o)
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	return re
}

// lines are the matching lines of a text.
func lines(s *Searcher, text string) []string {
	var out []string
	s.Search([]byte(text))
	for {
		start, end, ok := s.Next()
		if !ok {
			return out
		}
		out = append(out, text[start:end])
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{"", "a\n\nb", "a,,b"},
		{"b", "abc\nxyz\nb\n", "abc,b"},
		{"^b", "ab\nba\n", "ba"},
		{"b$", "ab\nba\nb", "ab,b"},
		{`\Ab`, "ab\nba\n", "ba"},
		{`b\z`, "ab\nba\n", "ab"},
		{"^$", "a\n\nb\n", ""},
		{`a\s*b`, "a\nb\na b", "a b"}, // a space is no line end here
		{`[^x]b`, "\nb\nab", "ab"},
		{"x.y", "xéy\nx\xffy\nxy", "xéy"},
		{`(?-u:x.y)`, "x\xffy\nxzy", "x\xffy,xzy"},
		{`(?-u:\xff)`, "a\xffb\nÿ", "a\xffb"},
		{`\xff`, "a\xffb\nÿ", "ÿ"},
		{`\w+`, "é\n٣\n_\n-\n‿", "é,٣,_,‿"},
		{`(?-u)\w`, "é\na", "a"},
		{`\bé\b`, "aéb\né\na é.", "é,a é."},
		{`(?-u:\b)é`, "é\naé", "aé"},
		{`\b{start}foo`, "foo\nafoo\n(foo", "foo,(foo"},
		{`foo\b{end}`, "foo\nfooa", "foo"},
		{`\<foo\>`, "foo\nfooa\nafoo", "foo"},
		{`\b{start-half}a`, "xa\na\n.a", "a,.a"},
		{`a\b{end-half}`, "ax\na\na.", "a,a."},
		{`\Bb\B`, "abc\nb\nab", "abc"},
		{`(?i)straße`, "STRASSE\nSTRAßE\nstraẞe", "STRAßE,straẞe"},
		{`(?i)k`, "\u212a\nK\nk\nx", "\u212a,K,k"},
		{`(?i-u)k`, "\u212a\nK\nk", "K,k"},
		{`(?i:a)b`, "AB\nAb\nab", "Ab,ab"},
		{`(?x) a b # a b` + "\n c", "abc\na b", "abc"},
		{`(?x)[a b]`, " \nb", "b"},
		{`(?P<n>a)(?<m>b)`, "ab\nba", "ab"},
		{`a{2}`, "a\naa", "aa"},
		{`^a{2,3}$`, "a\naa\naaa\naaaa", "aa,aaa"},
		{`^(ab){1,}$`, "ab\nabab\naba", "ab,abab"},
		{`a{ 1 , 2 }?b`, "aab", "aab"},
		{`x*`, "a\nx", "a,x"},
		{`(a|)b`, "b\nab\na", "b,ab"},
		{`foo|bar|`, "x", "x"},
		{`[[:alpha:]]+\d`, "a1\n1", "a1"},
		{`[[:^alpha:]]`, "a\n1", "1"},
		{`[a-c&&[^b]]`, "a\nb\nc", "a,c"},
		{`[a-c--b]`, "a\nb\nc", "a,c"},
		{`[a-c~~b-d]`, "a\nb\nc\nd", "a,d"},
		{`[]a]`, "]\na\nb", "],a"},
		{`[^]a]`, "]\na\nb", "b"},
		{`[-a]`, "-\na\nb", "-,a"},
		{`[a-]`, "-\na\nb", "-,a"},
		{`(?i)[k--s]`, "\u212a\nſ\nK", "\u212a,K"},
		{`(?i)[[:^lower:]a]`, "b\n1\nA", "1,A"},
		{`[\d\-x]`, "1\n-\nx\ny", "1,-,x"},
		{`\p{Greek}`, "α\na", "α"},
		{`\p{Script=Greek}\P{L}`, "α1\nαa", "α1"},
		{`\pL\p{Lu}\p{uppercase_letter}`, "aAA\naAa", "aAA"},
		{`\p{^L}`, "a\n1", "1"},
		{`\p{gc!=L}`, "a\n1", "1"},
		{`\p{Alphabetic}\p{White_Space}\p{Any}`, "a b\nab", "a b"},
		{`\x41\u0042\U00000043\x{44}`, "ABCD", "ABCD"},
		{`\t\a\f\v\.\/\-`, "\t\a\f\v./-", "\t\a\f\v./-"},
		{"(?R)a$", "a\r\nb\r\na", "a\r,a"},
		{"a$", "a\r\na\n", "a"},
		{`a|b|c|d|e|f|g|h|i|j`, "x\nj", "j"},
		{`日本|世界`, "世界\n日\n日本", "世界,日本"},
		{`(?s).`, "\n\na", "a"},
		{`[^a]*z`, "bz\naz", "bz,az"},
	} {
		want := strings.Split(c.want, ",")
		got := lines(compileFor(t, c.pattern, Options{}).Searcher(), c.text)
		if c.want == "" && len(got) == 0 {
			continue
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%q in %q: got %q, want %q", c.pattern, c.text, got, want)
		}
	}
	if got := lines(compileFor(t, "f(x) = [", Options{Literal: true}).Searcher(), "f(x) = [1]\nfx"); len(got) != 1 {
		t.Errorf("literal: %q", got)
	}
	if got := lines(compileFor(t, "ÄB.", Options{Literal: true, IgnoreCase: true}).Searcher(), "äb.\näbc"); len(got) != 1 {
		t.Errorf("literal without case: %q", got)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"f(":         "    f(\n     ^\nerror: unclosed group",
		"a)":         "    a)\n     ^\nerror: unopened group",
		"[a":         "    [a\n    ^\nerror: unclosed character class",
		"é[":         "    é[\n     ^\nerror: unclosed character class",
		"*a":         "    *a\n    ^\nerror: repetition operator missing expression",
		"a{2,1}":     "    a{2,1}\n     ^^^^^\nerror: invalid repetition count range, the start must be <= the end",
		"a{":         "    a{\n     ^\nerror: unclosed counted repetition",
		"a{x":        "    a{x\n      ^\nerror: repetition quantifier expects a valid decimal",
		"a{,3}":      "    a{,3}\n      ^\nerror: repetition quantifier expects a valid decimal",
		"(?=a)":      "    (?=a)\n    ^^^\nerror: look-around, including look-ahead and look-behind, is not supported",
		"(?<!a)":     "    (?<!a)\n    ^^^^\nerror: look-around, including look-ahead and look-behind, is not supported",
		`\1`:         "    \\1\n    ^^\nerror: backreferences are not supported",
		`\y`:         "    \\y\n    ^^\nerror: unrecognized escape sequence",
		"[b-a]":      "    [b-a]\n     ^^^\nerror: invalid character class range, the start must be <= the end",
		`[\d-z]`:     "    [\\d-z]\n     ^^\nerror: invalid range boundary, must be a literal",
		`\p{Foo}`:    "    \\p{Foo}\n    ^^^^^^^\nerror: Unicode property not found",
		"(?z)a":      "    (?z)a\n      ^\nerror: unrecognized flag",
		"(?i":        "    (?i\n       ^\nerror: expected flag but got end of regex",
		"\\u006Ù":    "    \\u006Ù\n         ^\nerror: invalid hexadecimal digit",
		`\x{110000}`: "    \\x{110000}\n       ^^^^^^\nerror: hexadecimal literal is not a Unicode scalar value",
	} {
		_, err := Compile(pattern, Options{})
		if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Error() != "regex parse error:\n"+want {
			t.Errorf("%q: %v\nwant %s", pattern, err, want)
		}
	}
	for _, pattern := range []string{`a\nb`, "a\nb", `a\x0Ab`, `[\n]`, "a[\n]?", `a|[\n-\x0A]`} {
		if _, err := Compile(pattern, Options{}); !errors.Is(err, ErrLineFeed) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	for _, pattern := range []string{`(a{1000}){1000}`, `((((a{99}){99}){99}){99})`, strings.Repeat("(a{60}|", 60) + strings.Repeat(")", 60) + "{900}"} {
		if _, err := Compile(pattern, Options{}); !errors.Is(err, ErrTooBig) {
			t.Errorf("%.30q: %v", pattern, err)
		}
	}
	for _, pattern := range []string{strings.Repeat("(", 100_000), strings.Repeat("[", 100_000), "a" + strings.Repeat("{1}", 100_000)} {
		if _, err := Compile(pattern, Options{}); err == nil {
			t.Errorf("%.30q compiles", pattern)
		}
	}
}

// What two engines agree on: expressions that mean the same to both, made at
// random, match the same lines.
func TestMatchesAsRegexpDoes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		pattern := randomExpression(rnd, 3)
		want := regexp.MustCompile(pattern)
		re := compileFor(t, pattern, Options{})
		var text []string
		for range 8 {
			var b strings.Builder
			for range rnd.IntN(12) {
				b.WriteByte("aabbcAB_1 .-"[rnd.IntN(12)])
			}
			text = append(text, b.String())
		}
		var matching []string
		for i, l := range text {
			if want.MatchString(l) && (l != "" || i < len(text)-1) {
				matching = append(matching, l)
			}
		}
		if got := lines(re.Searcher(), strings.Join(text, "\n")); strings.Join(got, "\n") != strings.Join(matching, "\n") || len(got) != len(matching) {
			t.Fatalf("%q in %q: got %q, want %q", pattern, text, got, matching)
		}
	}
}

func randomExpression(rnd *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", "ab", "abc", "bca", ".", "[ab]", "[^a]", `\w`, `\W`, `\d`, `\s`, `\b`, `\B`, "^", "$", "1", "_", "(?i:ab)", "(?i:c)", `\.`, "[[:upper:]]", "B"}
	if depth == 0 {
		return atoms[rnd.IntN(len(atoms))]
	}
	var b strings.Builder
	for range 1 + rnd.IntN(3) {
		switch sub := randomExpression(rnd, depth-1); rnd.IntN(6) {
		case 0:
			b.WriteString("(?:" + sub + ")" + []string{"*", "+", "?", "*?", "{2}", "{1,3}", "{2,}", "{0,2}"}[rnd.IntN(8)])
		case 1:
			b.WriteString("(" + sub + "|" + randomExpression(rnd, depth-1) + ")")
		case 2:
			b.WriteString("(?i:" + sub + ")")
		default:
			b.WriteString(sub)
		}
	}
	return b.String()
}

// A line in pieces matches as it does in one, and literals that are looked for
// first change nothing.
func checkSearch(t *testing.T, re *Regexp, text []byte) {
	m := newMatcher(re.prog)
	s := re.Searcher()
	var want []string
	rest := bytes.SplitAfter(text, []byte{'\n'})
	for _, l := range rest {
		if len(l) == 0 {
			continue
		}
		l = bytes.TrimSuffix(l, []byte{'\n'})
		matches := m.line(l)
		if matches {
			want = append(want, string(l))
		}
		for _, size := range []int{1, 3, 7} {
			s.StartLine()
			for i := 0; i < len(l); i += size {
				s.AddToLine(l[i:min(i+size, len(l))])
			}
			if s.EndLine() != matches {
				t.Fatalf("%q in pieces of %d: %v", l, size, !matches)
			}
		}
	}
	if got := lines(s, string(text)); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
		t.Fatalf("got %q, want %q (literals %+v)", got, want, re.literals)
	}
}

func TestPiecesAndLiterals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		pattern := randomExpression(rnd, 3)
		text := make([]byte, rnd.IntN(60))
		for i := range text {
			text[i] = "aabbcCAB_1 \n\xc3\xa9\xff"[rnd.IntN(15)]
		}
		t.Run(pattern, func(t *testing.T) {
			checkSearch(t, compileFor(t, pattern, Options{IgnoreCase: rnd.IntN(3) == 0}), text)
		})
	}
}

// A search that meets very many states starts afresh and goes on.
func TestStatesAreBounded(t *testing.T) {
	re := compileFor(t, `(?-u)[ab]*a[ab]{16}c`, Options{})
	rnd := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = "ab"[rnd.IntN(2)]
	}
	copy(text[len(text)-18:], "aabababababababab")
	text[len(text)-1] = 'c'
	m := newMatcher(re.prog)
	if !m.line(text) {
		t.Error("no match")
	}
	if len(m.states) > maxStates || m.size > maxStateInsts+len(re.prog.insts)+8 {
		t.Errorf("%d states, %d instructions", len(m.states), m.size)
	}
}

// Every code point with another case is found.
func TestFold(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if f := unicode.SimpleFold(r); f != r {
			if s := (set{{r, r}}).fold(false); !s.has(f) || !s.has(r) {
				t.Fatalf("%U does not fold to %U", r, f)
			}
		}
	}
	var cased set
	for _, c := range unicode.CaseRanges {
		cased = append(cased, span{rune(c.Lo), rune(c.Hi)})
	}
	all := newSet(cased...).fold(false)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.SimpleFold(r) != r && !all.has(r) {
			t.Fatalf("%U is not among all letters with several cases", r)
		}
	}
	if s := (set{{'A', 'z'}}).fold(true); len(s) != 1 {
		t.Errorf("ASCII: %v", s)
	}
}

func TestLiteralsOfExpressions(t *testing.T) {
	for pattern, want := range map[string]string{
		"needle":               "needle whole",
		"(?i)needle":           "needle/i whole",
		`func \w+\(`:           "func ",
		"foo|bar":              "foo,bar whole",
		`\bfoo\b`:              "foo",
		"(foo|bar)baz":         "foobaz,barbaz whole",
		`x+needle?`:            "needl",
		"(?i)task":             "ta/i", // s and k have a third case
		"a*":                   "",
		`\d+`:                  "",
		"(abc){2,}":            "abcabc",
		"[ab]cd":               "acd,bcd whole",
		"(?i)ab(?-i)CD":        "CD",
		"foo|b*":               "",
		`^import "(net|os)/\w`: `import "net/,import "os/`,
	} {
		re := compileFor(t, pattern, Options{})
		var got []string
		for _, l := range re.literals {
			s := l.text
			if l.fold {
				s += "/i"
			}
			got = append(got, s)
		}
		s := strings.Join(got, ",")
		if re.whole {
			s += " whole"
		}
		if s != want {
			t.Errorf("%q: %q, want %q", pattern, s, want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	for _, p := range []string{"a", "(?i)Ab|c", `\bé+\W`, "[a&&[^b]]", `\p{Greek}{2,3}?`, "(?x) a #\n b", `(?-u)\xff$`, "[[:^word:]-x]", `\x{61}|\u0062`} {
		f.Add(p, "ab\néx \xff\nαβ", false)
	}
	f.Add("a|\\u006Ù", "a", false) // a character that is cut where digits end
	f.Add("[\n]", "ar\nZr\x00\xa9\xe8", false)
	f.Add(`[\n\r]b|[\n&&\s]`, "\rb\nb", false)
	f.Fuzz(func(t *testing.T, pattern, text string, literal bool) {
		re, err := Compile(pattern, Options{Literal: literal, IgnoreCase: len(text)%2 == 0})
		if err != nil {
			if !literal && utf8.ValidString(pattern) && err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if len(text) < 1000 && len(re.prog.insts) < 2000 {
			checkSearch(t, re, []byte(text))
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	line := "\tif err := doSomething(ctx, value, 42); err != nil { return fmt.Errorf(\"some text: %w\", err) }\n"
	text := []byte(strings.Repeat(line, 10_000))
	for _, pattern := range []string{"needle", "(?i)needle", `\d{3}-\d{4}`, `\w+Error\w*\(ctx`, "foo|bar|quux|zed"} {
		b.Run(fmt.Sprintf("%.20s", pattern), func(b *testing.B) {
			s := compileFor(b, pattern, Options{}).Searcher()
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s.Search(text)
				for {
					if _, _, ok := s.Next(); !ok {
						break
					}
				}
			}
		})
	}
}
