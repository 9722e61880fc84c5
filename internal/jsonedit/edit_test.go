package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ name, text, path, value, want string }{
		{"an empty object", `{}`, "a", `1`, "{\n  \"a\": 1\n}"},
		{"nested in an empty object", `{}`, "a.b", `true`, "{\n  \"a\": {\n    \"b\": true\n  }\n}"},
		{"a value", "{\n  \"a\": 1, // one\n  \"b\": 2\n}", "a", `3`, "{\n  \"a\": 3, // one\n  \"b\": 2\n}"},
		{"the same value in other spelling", `{"a": [1, 2]}`, "a", `[1,2]`, `{"a": [1, 2]}`},
		{"behind the last", "{\n  \"a\": 1\n}", "b", `2`, "{\n  \"a\": 1,\n  \"b\": 2\n}"},
		{"behind the comment of the last", "{\n  \"a\": 1 // one\n}\n", "b", `2`, "{\n  \"a\": 1, // one\n  \"b\": 2\n}\n"},
		{"behind a comma at the end", "{\n  \"a\": 1, // one\n  // more\n}", "b", `2`, "{\n  \"a\": 1, // one\n  \"b\": 2,\n  // more\n}"},
		{"tabs and Windows", "{\r\n\t\"a\": 1 // one\r\n}\r\n", "b.c", `[1]`, "{\r\n\t\"a\": 1, // one\r\n\t\"b\": {\r\n\t\t\"c\": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}\r\n"},
		{"one line", `{"a": {"x": 1}}`, "a.y", `[1, 2]`, `{"a": {"x": 1, "y": [1,2]}}`},
		{"one line with a comma at the end", `{"a": 1,}`, "b", `2`, `{"a": 1, "b": 2,}`},
		{"one line with a comment", "{\"a\": 1 // one\n}", "b", `2`, "{\"a\": 1, \"b\": 2 // one\n}"},
		{"an empty object in one line", `{"a": { }}`, "a.b", `2`, `{"a": {"b": 2}}`},
		{"only a comment inside", "{\n  // nothing yet\n}", "a", `1`, "{\n  // nothing yet\n  \"a\": 1\n}"},
		{"only a comment inside, in the line", "{ /* nothing yet */ }", "a", `1`, "{ /* nothing yet */\n  \"a\": 1\n}"},
		{"deeper", "{\n    \"a\": {\n        \"b\": {}\n    }\n}", "a.b.c", `1`, "{\n    \"a\": {\n        \"b\": {\n            \"c\": 1\n        }\n    }\n}"},
		{"a number in the way", "{\n  \"a\": 1\n}", "a.b", `2`, "{\n  \"a\": {\n    \"b\": 2\n  }\n}"},
		{"the last of a name", `{"a": 1, "a": 2}`, "a", `3`, `{"a": 1, "a": 3}`},
		{"escaped names", `{"\u0061": 1}`, "a", `2`, `{"\u0061": 2}`},
		{"half a character is not its replacement", `{"\ud83d": 1}`, "\uFFFD", `2`, "{\"\\ud83d\": 1, \"\uFFFD\": 2}"},
		{"a comma on a line of its own", "{\n  \"a\": 1\n  , // odd\n}", "b", `2`, "{\n  \"a\": 1\n  ,\n  \"b\": 2, // odd\n}"},
		{"byte order mark", "\xEF\xBB\xBF{\n  \"a\": 1\n}", "b", `2`, "\xEF\xBB\xBF{\n  \"a\": 1,\n  \"b\": 2\n}"},
		{"of a list", "{\n  \"a\": [\n    1, // one\n    2\n  ]\n}", "a.1", `"x"`, "{\n  \"a\": [\n    1, // one\n    \"x\"\n  ]\n}"},
		{"behind the last of a list", "{\n  \"a\": [\n    1 // one\n  ]\n}", "a.1", `2`, "{\n  \"a\": [\n    1, // one\n    2\n  ]\n}"},
		{"of a list in one line", `{"a": [1, {"b": 2}]}`, "a.1.b", `3`, `{"a": [1, {"b": 3}]}`},
		{"behind the last of one line", `{"a": ["]", 2]}`, "a.2", `3`, `{"a": ["]", 2, 3]}`},
		{"of an empty list", "{\n  \"a\": []\n}", "a.0", `1`, "{\n  \"a\": [\n    1\n  ]\n}"},
		{"far behind a list", `{"a": [1]}`, "a.2", `3`, `{"a": {"2":3}}`},
		{"a name in a list", `{"a": [1]}`, "a.b", `3`, `{"a": {"b":3}}`},
		{"brackets and slashes in strings", "{\n  \"a\": \"}//{,\\\"\" /* } */\n}", "b", `"//"`, "{\n  \"a\": \"}//{,\\\"\", /* } */\n  \"b\": \"//\"\n}"},
	} {
		got, err := Set([]byte(c.text), []byte(c.value), strings.Split(c.path, ".")...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

func TestUnset(t *testing.T) {
	for _, c := range []struct{ name, text, path, want string }{
		{"absent", `{"a": 1}`, "b", `{"a": 1}`},
		{"absent deeper", `{"a": 1}`, "a.b", `{"a": 1}`},
		{"of a list", `{"a": [1, 2, 3]}`, "a.0", `{"a": [2, 3]}`},
		{"the last line of a list", "{\n  \"a\": [\n    1, // one\n    2\n  ]\n}", "a.1", "{\n  \"a\": [\n    1 // one\n  ]\n}"},
		{"the only one of a list", `{"a": [1]}`, "a.0", `{"a": []}`},
		{"behind a list", `{"a": [1]}`, "a.1", `{"a": [1]}`},
		{"the only one", "{\n  \"a\": 1,\n}", "a", `{}`},
		{"the only one beside a comment", "{\n  // about a\n  \"a\": 1\n}", "a", "{\n  // about a\n}"},
		{"a line", "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}", "b", "{\n  \"a\": 1,\n  \"c\": 3\n}"},
		{"several lines", "{\n  \"a\": [\n    1\n  ],\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"},
		{"the last line", "{\n  \"a\": 1, // one\n  \"b\": 2\n}", "b", "{\n  \"a\": 1 // one\n}"},
		{"the last line behind a comma", "{\n  \"a\": 1,\n  \"b\": 2,\n}", "b", "{\n  \"a\": 1,\n}"},
		{"beside a comment", "{\n  \"a\": 1, // one\n  \"b\": 2\n}", "a", "{\n  // one\n  \"b\": 2\n}"},
		{"first in a line", `{"a": 1, "b": 2, "c": 3}`, "a", `{"b": 2, "c": 3}`},
		{"between in a line", `{"a": 1, "b": 2, "c": 3}`, "b", `{"a": 1, "c": 3}`},
		{"last in a line", `{"a": 1, "b": 2, "c": 3}`, "c", `{"a": 1, "b": 2}`},
		{"all of a name", `{"a": 1, "b": 2, "a": 3}`, "a", `{"b": 2}`},
		{"all of a name, side by side", `{"a": 1, "a": 2, "a": 3, "b": 4, "a": 5, "a": 6}`, "a", `{"b": 4}`},
		{"all of a name, comments between", "{\n  \"a\": 1, // one\n  \"a\": 2, \"b\": 3 // three\n  , \"a\": 4,\n  \"a\": 5\n}", "a", "{\n  // one\n  \"b\": 3 // three\n  \n}"},
		{"deeper", "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": 2\n  }\n}", "a.b", "{\n  \"a\": {\n    \"c\": 2\n  }\n}"},
		{"deeper and the only one", "{\n  \"a\": {\n    \"b\": 1\n  }\n}", "a.b", "{\n  \"a\": {}\n}"},
		{"comments around the comma", "{\"a\": 1 /* x */ , /* y */ \"b\": 2}", "a", "{ /* x */  /* y */ \"b\": 2}"},
		{"Windows", "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}", "b", "{\r\n  \"a\": 1\r\n}"},
	} {
		got, err := Unset([]byte(c.text), strings.Split(c.path, ".")...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// A name may be there as often as a text has room for it.
func TestUnsetMany(t *testing.T) {
	for _, sep := range []string{"", "\n  "} {
		text := "{" + strings.Repeat(sep+`"a":0,`, 100_000) + sep + `"b":1}`
		if got, err := Unset([]byte(text), "a"); err != nil || string(got) != "{"+sep+`"b":1}` {
			t.Errorf("%.40q, %v", got, err)
		}
	}
}

func TestWhatIsNoObject(t *testing.T) {
	for text, want := range map[string]error{`[1]`: ErrNoObject, `1`: ErrNoObject, ``: nil, `{`: nil, `{,}`: nil, `{"a" 1}`: nil, `{} /*`: nil, `[,]`: nil} {
		_, err := Set([]byte(text), []byte("1"), "a")
		_, syntax := errors.AsType[*jsonwire.SyntaxError](err)
		if err == nil || want != nil && !errors.Is(err, want) || want == nil && !syntax {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := Unset([]byte(text), "a"); err == nil {
			t.Errorf("%q: unset", text)
		}
	}
	if _, err := Set([]byte(`{}`), []byte("no"), "a"); err == nil {
		t.Error("a value that is no JSON was written")
	}
	deep := strings.Repeat("[", jsonwire.MaxDepth) + strings.Repeat("]", jsonwire.MaxDepth)
	if b, err := Set([]byte("{\n}"), []byte(deep), "a"); err == nil {
		t.Errorf("what nobody can read was written: %d bytes", len(b))
	}
	if b, err := Set([]byte(`{}`), []byte(deep[1:len(deep)-1]), "a", "b"); err == nil {
		t.Errorf("what nobody can read was written: %d bytes", len(b))
	}
}

func TestBlank(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "{}",
		" \t\r\n":                 " \t\r\n{}",
		"\uFEFF":                  "\uFEFF\n{}",
		"/* {\n} */\n// \"a\": 2": "/* {\n} */\n// \"a\": 2\n{}",
	} {
		if got := Begin([]byte(text)); !Blank([]byte(text)) || string(got) != want {
			t.Errorf("%q began as %q, want %q", text, got, want)
		}
		if _, err := Set([]byte(want), []byte("1"), "a"); err != nil {
			t.Errorf("%q cannot be changed: %v", want, err)
		}
	}
	for _, text := range []string{"{}", "/", "/*", "null", "\u00A0", "// x\n1"} {
		if got := Begin([]byte(text)); Blank([]byte(text)) || string(got) != text {
			t.Errorf("%q is no blank text and became %q", text, got)
		}
	}
}

func TestPlain(t *testing.T) {
	for _, c := range [][2]string{
		{`{"a": 1}`, `{"a": 1}`},
		{"{\"a\": 1, // x\r\n}", "{\"a\": 1      \r\n}"},
		{`[1, /* , */ ]`, `[1          ]`},
		{`{"a//": "/*", "b": "\"//"}`, `{"a//": "/*", "b": "\"//"}`},
		{`[,]`, `[,]`},
		{`[1,,]`, `[1,,]`},
		{`[1] / 2`, `[1] / 2`},
		{`"open // `, `"open // `},
		{"\xEF\xBB\xBF1", "   1"},
	} {
		if got := string(Plain([]byte(c[0]))); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
}

// FuzzEdit changes random documents: what is written is what is read, comments
// and all other members stay as they were, and doing it again changes nothing.
func FuzzEdit(f *testing.F) {
	f.Add("{\n  // one\n  \"a\": {\"b\": [1, 2,], /* x */ \"c\": {}},\n  \"b\": null, // two\n}\n", "a", "b", `{"x": [true]}`)
	f.Add("{\r\n\t\"a\": 1\r\n\t, \"a\": 2 /* y */, \"b\": \"//\"}", "b", "", `"z"`)
	f.Add("\xEF\xBB\xBF{/*0*/\"a\"/*1*/:/*2*/{/*3*/}/*4*/,/*5*/}//6", "a", "a", `1`)
	f.Add("{}", "", "x", `[]`)
	f.Add("{\"a\": 1, /* x */ \"a\": 2,\n\"b\": 3 // y\n, \"a\": 4,\n \"a\": 5,}", "a", "", `6`)
	f.Add(`{"\ud83d": 1, "\ud83d\ude48": 2}`, "\uFFFD", "", `"\ud83e"`)
	f.Fuzz(func(t *testing.T, text, first, second, value string) {
		if !utf8.ValidString(strings.Join([]string{text, first, second, value}, " ")) {
			t.Skip()
		}
		if strings.Count(text+value, "[")+strings.Count(text+value, "{") > 5000 {
			t.Skip() // at the bound on nesting a value can be right and its place too deep
		}
		path := []string{first}
		if second != "" {
			path = append(path, second)
		}
		before := tree(t, []byte(text))
		set, err := Set([]byte(text), []byte(value), path...)
		if err != nil {
			if before != nil && json.Valid([]byte(value)) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if before == nil {
			t.Fatal("a text that is no object was changed")
		}
		var v any
		decode(t, flat(t, []byte(value)), &v)
		want := tree(t, []byte(text))
		put(want, v, path)
		if got := tree(t, set); !reflect.DeepEqual(got, want) {
			t.Fatalf("set %v: %q became %q", path, text, set)
		}
		keptMembers(t, []byte(text), set, path)
		if again, err := Set(set, []byte(value), path...); err != nil || !bytes.Equal(again, set) {
			t.Fatalf("set twice: %q then %q, %v", set, again, err)
		}

		gone, err := Unset([]byte(text), path...)
		if err != nil {
			t.Fatal(err)
		}
		want = tree(t, []byte(text))
		drop(want, path)
		if got := tree(t, gone); !reflect.DeepEqual(got, want) {
			t.Fatalf("unset %v: %q became %q", path, text, gone)
		}
		keptMembers(t, []byte(text), gone, path)
		if again, err := Unset(gone, path...); err != nil || !bytes.Equal(again, gone) {
			t.Fatalf("unset twice: %q then %q, %v", gone, again, err)
		}
	})
}

func decode(t *testing.T, b []byte, v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// tree is the content of an object as another parser reads it, nil for none.
func tree(t *testing.T, text []byte) map[string]any {
	plain := Plain(text)
	if !jsonwire.IsObject(plain) {
		return nil
	}
	if !json.Valid(plain) {
		t.Skip() // deeper than that parser goes
	}
	var m map[string]any
	decode(t, flat(t, plain), &m)
	return m
}

// flat is an object without members that a later one of the name hides: the
// other parser would merge two objects.
func flat(t *testing.T, plain []byte) []byte {
	b, err := jsonwire.AppendCompact(nil, plain)
	if err != nil {
		return plain
	}
	if bytes.Contains(b, []byte(`\ud`)) {
		t.Skip() // that parser takes every half of a surrogate pair for U+FFFD
	}
	return b
}

func put(m map[string]any, v any, path []string) {
	if len(path) == 1 {
		m[path[0]] = v
		return
	}
	inner, ok := m[path[0]].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[path[0]] = inner
	}
	put(inner, v, path[1:])
}

func drop(m map[string]any, path []string) {
	if len(path) == 1 {
		delete(m, path[0])
	} else if inner, ok := m[path[0]].(map[string]any); ok {
		drop(inner, path[1:])
	}
}

// keptMembers checks that all members but the one at a path have the bytes that
// they had, in their order, and that no comment outside that one is lost.
func keptMembers(t *testing.T, before, after []byte, path []string) {
	a, b := others(t, before, path), others(t, after, path)
	if !slices.Equal(a, b) {
		t.Fatalf("at %v:\n%q\n%q", path, a, b)
	}
}

// others are the members beside a path, and the comments outside them all.
func others(t *testing.T, text []byte, path []string) (list []string) {
	d, o, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	outside := slices.Clone(text)
	var walk func(o object, path []string)
	walk = func(o object, path []string) {
		at := o.find(path[0])
		for i, m := range o.members {
			inner, isObject := d.object(m.value, m.end, false)
			switch {
			case m.name != path[0]:
				list = append(list, string(text[m.from:m.end]))
			case i == at && len(path) > 1 && isObject:
				// The brackets of this one are the change's, what is in it is not.
				var r jsonwire.Reader
				r.Reset(d.plain[m.from:])
				r.Skip() // the name
				for j := m.from; j < m.from+r.Offset(); j++ {
					outside[j] = ' '
				}
				walk(inner, path[1:])
				continue
			case i != at && len(path) > 1:
				list = append(list, string(text[m.from:m.end]))
			}
			for j := m.from; j < m.end; j++ {
				if outside[j] != '\n' {
					outside[j] = ' '
				}
			}
		}
	}
	walk(o, path)
	for i := 0; i < len(outside); i++ {
		if n := comment(outside[i:]); n > 0 {
			list = append(list, string(outside[i:i+n]))
			i += n - 1
		}
	}
	return list
}
