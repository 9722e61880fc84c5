package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestArgsShowTheTextSoFar(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, `{}`},
		{` {`, `{}`},
		{`{"a`, `{}`},
		{`{"a"`, `{}`},
		{`{"a":`, `{}`},
		{`{"a": "`, `{"a":""}`},
		{`{"a":"x\`, `{"a":"x"}`},
		{`{"a":"x\u00e`, `{"a":"x"}`},
		{`{"a":"x\u00e9`, `{"a":"x\u00e9"}`},
		{`{"a":"x\q`, `{"a":"x\\q"}`},
		{`{"a":"x\u12"`, `{"a":"x\\u12"}`},
		{"{\"a\":\"x\ny", `{"a":"x\ny"}`},
		{"{\"a\":\"\xe2\x82", `{"a":""}`},
		{"{\"a\":\"\xe2\x82\xac", `{"a":"€"}`},
		{"{\"a\":\"\xed\xa0\xbd", `{"a":"\ud83d"}`},
		{"{\"a\":\"\xed\xa0\xbd\xed\xb9\x88", `{"a":"\ud83d\ude48"}`},
		{`{"a":t`, `{"a":true}`},
		{`{"a":fal`, `{"a":false}`},
		{`{"a":n`, `{"a":null}`},
		{`{"a":N`, `{}`},
		{`{"a":NaN,"b":1`, `{"b":1}`},
		{`{"a":tru,"b":1`, `{"b":1}`},
		{`{"a":truest`, `{}`},
		{`{"a":-`, `{}`},
		{`{"a":-1`, `{"a":-1}`},
		{`{"a":1e`, `{"a":1}`},
		{`{"a":1.5E+`, `{"a":1.5}`},
		{`{"a":1.5E+3`, `{"a":1.5E+3}`},
		{`{"a":` + strings.Repeat("1", 65), `{}`},
		{`{"a":` + strings.Repeat("1", 65) + ` `, `{"a":` + strings.Repeat("1", 65) + `}`},
		{`{"a":{"b":[1,{"c":`, `{"a":{"b":[1,{}]}}`},
		{`{"a":[[`, `{"a":[[]]}`},
		{`{"a":[1,,2`, `{"a":[1,2]}`},
		{`{"a":[1 2`, `{"a":[1,2]}`},
		{`{"a" "x" "b" [] "c" 1}`, `{"a":"x","b":[],"c":1}`},
		{`{"a":,"b":2}`, `{"b":2}`},
		{`{"a":1}{"b":2}`, `{"a":1}`},
		{`{"a":[1}}`, `{"a":[1]}`},
		{`{"a":1,"b":2,"a":3`, `{"a":3,"b":2}`},
		{`{"a":1,"\u0061":3`, `{"a":3}`},
		{`[1`, `{}`},
		{`"x`, `{}`},
		{`nul`, `{}`},
	} {
		var a Args
		a.WriteString(c.text)
		if got := string(a.Value()); got != c.want {
			t.Errorf("%q shows %s, want %s", c.text, got, c.want)
		}
	}
}

func TestArgsManyNames(t *testing.T) {
	var a Args
	a.WriteString("{")
	for i := range 100 {
		a.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	a.WriteString(`"kxxx":2`)
	var m map[string]int
	if err := json.Unmarshal(a.Value(), &m); err != nil || len(m) != 100 || m["kxxx"] != 2 {
		t.Fatal(err, len(m), m["kxxx"])
	}
	if n := bytes.Count(a.Value(), []byte(`"kxxx"`)); n != 1 {
		t.Errorf("the name stands %d times", n)
	}
}

func TestArgsTooDeep(t *testing.T) {
	var a Args
	a.WriteString(`{"a":` + strings.Repeat("[", jsonwire.MaxDepth+10))
	if err := jsonwire.Check(a.Value()); err != nil {
		t.Fatal(err)
	}
	if _, problem := a.Final(); problem == "" {
		t.Error("accepted")
	}
}

func TestArgsSnapshotsStay(t *testing.T) {
	var a Args
	a.WriteString(`{"a":"x`)
	v := a.Value()
	if &v[0] != &a.Value()[0] {
		t.Error("an unchanged value is made again")
	}
	was := string(v)
	a.WriteString(`y"}`)
	if a.Value(); string(v) != was {
		t.Errorf("the snapshot changed to %s", v)
	}
	a.Reset()
	a.WriteString(`{"b":1}`)
	if got := string(a.Value()); got != `{"b":1}` {
		t.Errorf("after Reset: %s", got)
	}
}

func TestFinalArgs(t *testing.T) {
	object := "Tool arguments must be a JSON object"
	for _, c := range []struct{ text, args, problem string }{
		{"", `{}`, ""},
		{" \n\u00a0", `{}`, ""},
		{` {"b" : 1.50, "a":[ ] } `, `{"b":1.5,"a":[]}`, ""},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`, ""},
		{"{\"a\":\"x\n\t\x01\"}", `{"a":"x\n\t\u0001"}`, ""},
		{`{"p":"C:\dir\u12\"}`, `{}`, "invalid"},
		{`{"p":"C:\dir\u12\new"}`, `{"p":"C:\\dir\\u12\new"}`, ""},
		{`{"p":"a\`, `{}`, "invalid"},
		{`{"a":1`, `{}`, "invalid"},
		{`{"a":1}}`, `{}`, "invalid"},
		{`[{}]`, `{}`, object},
		{`1`, `{}`, object},
		{"{\"a\":\"\xed\xa0\xbd\xed\xb9\x88\"}", `{"a":"🙈"}`, ""},
		{"{\"a\":\"\xed\xa0\xbd\\ude48\"}", `{"a":"🙈"}`, ""},
		{"{\"a\":\"\xed\xa0\xbd\"}", `{"a":"\ud83d"}`, ""},
	} {
		args, problem := FinalArgs([]byte(c.text))
		if string(args) != c.args {
			t.Errorf("%q: arguments %s, want %s", c.text, args, c.args)
		}
		what, received, _ := strings.Cut(problem, "\n\nReceived arguments:\n")
		if !strings.HasPrefix(what, c.problem) || (what == "") != (c.problem == "") {
			t.Errorf("%q: problem %q, want %q", c.text, what, c.problem)
		}
		if problem != "" && received != c.text {
			t.Errorf("%q: received %q", c.text, received)
		}
	}
	_, problem := FinalArgs([]byte("\xed\xa0\xbd\xed\xb9\x88"))
	if !strings.HasSuffix(problem, "🙈") {
		t.Errorf("halves stay apart in %q", problem)
	}
}

// Showing the value after each piece must not read the text again: what it may
// cost is the copy of the object.
func TestArgsReadEachByteOnce(t *testing.T) {
	var a Args
	a.WriteString(`{"a":"`)
	piece := strings.Repeat("x", 16)
	for range 2 << 20 / 16 {
		a.WriteString(piece)
		a.view.read(a.raw)
		if a.view.pos != len(a.raw) {
			t.Fatal("stopped at", a.view.pos)
		}
	}
	if n := len(a.Value()); n != 2<<20+8 {
		t.Fatal(n)
	}
	allocs := testing.AllocsPerRun(1000, func() {
		a.raw = append(a.raw, piece...)
		a.view.read(a.raw)
	})
	if allocs > 0 {
		t.Errorf("reading a piece allocates %v times", allocs)
	}
}

func FuzzArgs(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[true,null,"x\n\u00e9\ud83d\ude48"],"c":{"d":-1.5e+3}}`, `{"a":"\`, "{\"a\":\"\xed\xa0\xbd\xed\xb9\x88\xe2\x82",
		`[1`, `{"a" 1 "b" 2`, `{"a":1,"a":tru`, `{{}:[}]`, `{"a":[}`, `{'a':NaN}`, "{\"a\":\"x\n\\q\\u12", `{"a":01,"b":1.,"c":--1}`,
		`{"\ud83d":1,"\ud83e":2,"\ud83d":3}`, `{"\ud83d\ude48":1,"🙈":2}`,
	} {
		f.Add([]byte(s), uint64(0x5a17))
	}
	f.Fuzz(func(t *testing.T, text []byte, cuts uint64) {
		var whole, pieces Args
		whole.Write(text)
		value := whole.Value()
		if !json.Valid(value) || value[0] != '{' {
			t.Fatalf("%q shows %q", text, value)
		}
		// Pieces of 1 to 4 bytes; half of the times with a look at the value. A look
		// costs a copy of the object, so that of a long text the pieces are longer.
		for i := 0; i < len(text); cuts = cuts>>3 | cuts<<61 {
			n := min(int(cuts&3)+1+len(text)*len(text)>>20, len(text)-i)
			pieces.Write(text[i : i+n])
			i += n
			if cuts&4 == 0 {
				if v := pieces.Value(); !json.Valid(v) {
					t.Fatalf("%q shows %q", text[:i], v)
				}
			}
		}
		if got := pieces.Value(); !bytes.Equal(got, value) {
			t.Fatalf("%q in pieces shows %q, whole %q", text, got, value)
		}
		args, problem := pieces.Final()
		if !json.Valid(args) || args[0] != '{' {
			t.Fatalf("%q ends as %q", text, args)
		}
		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		if !utf8.Valid(text) || !json.Valid(text) || d.Decode(&want) != nil || want == nil {
			return
		}
		if problem != "" {
			t.Fatalf("%q: %s", text, problem)
		}
		if bytes.Contains(args, []byte(`\ud`)) {
			return // encoding/json takes names with other halves of surrogate pairs for one
		}
		for name, j := range map[string][]byte{"final": args, "partial": value} {
			var got map[string]any
			if err := json.Unmarshal(j, &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s value of %q is %q", name, text, j)
			}
		}
	})
}

func BenchmarkArgsWrite(b *testing.B) {
	piece := []byte(`some words of an argument, `)
	b.ReportAllocs()
	var a Args
	a.WriteString(`{"a":"`)
	for b.Loop() {
		if a.Len() > 2<<20 {
			a.Reset()
			a.WriteString(`{"a":"`)
		}
		a.Write(piece)
	}
}

func BenchmarkArgsShow(b *testing.B) {
	piece := []byte(`some words of an argument, `)
	b.ReportAllocs()
	var a Args
	for b.Loop() {
		if a.Len() == 0 || a.Len() > 4<<10 {
			a.Reset()
			a.WriteString(`{"a":"`)
		}
		a.Write(piece)
		a.Value()
	}
}
