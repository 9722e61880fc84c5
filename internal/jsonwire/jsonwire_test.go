package jsonwire

import (
	"encoding/json"
	"testing"
)

func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `true`, ` false `, `0`, `-0`, `-1.5e+3`, `01`, `1.`, `.5`, `-`, `1e`, `"a"`, `"a`, `"\u12"`, `"\x"`,
		`[1,2,]`, `[1 2]`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `[1}`, `{"a":[}`, `[[[]]]`, `{"a":{"b":[]}}`, ``, ` `, `nul`, `1 2`, "\"a\tb\"",
	} {
		if got, want := Check([]byte(s)) == nil, json.Valid([]byte(s)); got != want {
			t.Errorf("Check(%q) ok = %v, encoding/json says %v (%v)", s, got, want, Check([]byte(s)))
		}
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct{ in, text, out string }{
		{`"plain"`, "plain", `"plain"`},
		{`"a\"b\\c\/d\n\t\r\b\f"`, "a\"b\\c/d\n\t\r\b\f", `"a\"b\\c/d\n\t\r\b\f"`},
		{`"\u0001\u2028<&>"`, "\x01\u2028<&>", "\"\\u0001\u2028<&>\""},
		{`"\ud83d\ude48"`, "🙈", `"🙈"`},
		{`"x\ud83d"`, "x\xed\xa0\xbd", `"x\ud83d"`},
		{`"\ude48y"`, "\xed\xb9\x88y", `"\ude48y"`},
		{"\"\xff\xe2\x82z\"", "\uFFFD\uFFFDz", "\"\uFFFD\uFFFDz\""},
	} {
		got, ok := StringValue([]byte(c.in))
		if !ok || got != c.text {
			t.Errorf("StringValue(%s) = %q, %v, want %q", c.in, got, ok, c.text)
		}
		if out := string(AppendString(nil, got)); out != c.out {
			t.Errorf("AppendString(%q) = %s, want %s", got, out, c.out)
		}
		if out, err := AppendCompact(nil, []byte(c.in)); err != nil || string(out) != c.out {
			t.Errorf("AppendCompact(%s) = %s, %v, want %s", c.in, out, err, c.out)
		}
	}
}

func TestCompact(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{ "b" : 1.50, "a":[ ], "c":{ } }`, `{"b":1.5,"a":[],"c":{}}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{`[1e21,1e-7,123456789012345678901,-0,0.000001,1E2]`, `[1e+21,1e-7,123456789012345678901,0,0.000001,100]`},
	} {
		got, err := AppendCompact(nil, []byte(c.in))
		if err != nil || string(got) != c.out {
			t.Errorf("AppendCompact(%s) = %s, %v, want %s", c.in, got, err, c.out)
		}
	}
	got, err := AppendIndent(nil, []byte(`{"a":[1,{"b":[]}],"a":[2],"c":{}}`), "  ")
	want := "{\n  \"a\": [\n    2\n  ],\n  \"c\": {}\n}"
	if err != nil || string(got) != want {
		t.Errorf("AppendIndent = %s, %v, want %s", got, err, want)
	}
}

func TestReaderWalksAndSkipsOtherKinds(t *testing.T) {
	var r Reader
	r.Reset([]byte(`{"o":null,"n":{"a":[1,{"x":2}]},"s":5,"i":"x","f":1.9,"t":true,"list":"no"}`))
	var n, f int64
	var ok bool
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "o":
			for r.Object(); r.More(); {
				t.Fatal("member in null")
			}
		case "n":
			for r.Object(); r.More(); {
				r.Key()
				for r.Array(); r.More(); n++ {
					r.Skip()
				}
			}
		case "s":
			if s := r.Text(); s != "" {
				t.Fatal(s)
			}
		case "i":
			if i := r.Int(); i != 0 {
				t.Fatal(i)
			}
		case "f":
			f = r.Int()
		case "t":
			ok = r.Bool()
		case "list":
			for r.Array(); r.More(); {
				t.Fatal("element in a string")
			}
		}
	}
	if err := r.End(); err != nil || n != 2 || f != 1 || !ok {
		t.Fatal(err, n, f, ok)
	}
}

func TestUTF16Prefix(t *testing.T) {
	const s = "aé€😀\xED\xA0\xBDz" // the half of a pair before the z
	for units, want := range []string{"", "a", "aé", "aé€", "aé€", "aé€😀", "aé€😀\xED\xA0\xBD", s, s} {
		if got := UTF16Prefix(s, units); got != want {
			t.Errorf("%d units: %q, want %q", units, got, want)
		}
	}
}
