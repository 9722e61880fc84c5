package jsonwire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// read decodes any value as encoding/json does.
func read(r *Reader) any {
	switch r.Kind() {
	case '{':
		m := map[string]any{}
		for r.Object(); r.More(); {
			k := string(r.Key())
			m[k] = read(r)
		}
		return m
	case '[':
		l := []any{}
		for r.Array(); r.More(); {
			l = append(l, read(r))
		}
		return l
	case '"':
		return r.Text()
	case '0':
		return r.Float()
	case 't', 'f':
		return r.Bool()
	default:
		r.Skip()
		return nil
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e-3,true,false,null,"x\n\u00e9\ud83d\ude48"],"":{}}`, `[[[1]]]`, `{"a":1,"a":2}`, ` "x" `, `{}x`, "1\x00",
		`{"a":}`, `[1,]`, `"\ud83d"`, "\"\xff\"", `01`, `-`, `1e999`, `123456789012345678901234567890`, `{"a" 1}`, `[1}`, `{8:0}`, `{null:0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 5000 {
			return // the bounds on nesting differ
		}
		valid := json.Valid(text)
		if err := Check(text); (err == nil) != valid {
			t.Fatalf("Check(%q) = %v, encoding/json says %v", text, err, valid)
		}
		var r Reader
		r.Reset(text)
		got := read(&r)
		if err := r.End(); (err == nil) != valid {
			t.Fatalf("reading %q: %v, encoding/json says %v", text, err, valid)
		}
		compact, err := AppendCompact(nil, text)
		if (err == nil) != valid {
			t.Fatalf("AppendCompact(%q): %v, encoding/json says %v", text, err, valid)
		}
		if !valid {
			return
		}
		again, err := AppendCompact(nil, compact)
		if err != nil || !bytes.Equal(again, compact) {
			t.Fatalf("%q is compact, but becomes %q, %v", compact, again, err)
		}
		indented, err := AppendIndent(nil, text, "  ")
		if err != nil || !json.Valid(indented) {
			t.Fatalf("AppendIndent(%q) = %q, %v", text, indented, err)
		}
		if back, err := AppendCompact(nil, indented); err != nil || !bytes.Equal(back, compact) {
			t.Fatalf("%q indented reads back as %q, want %q", text, back, compact)
		}
		// encoding/json replaces halves of surrogate pairs and counts invalid
		// bytes one by one.
		var want any
		if !utf8.Valid(text) || bytes.Contains(bytes.ToLower(text), []byte(`\ud`)) || json.Unmarshal(text, &want) != nil {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q reads as %#v, want %#v", text, got, want)
		}
		if s, ok := want.(string); ok {
			if read, _ := StringValue(text); !bytes.Equal(compact, AppendString(nil, read)) {
				t.Fatalf("%q, which reads as %q, is written as %q", text, s, compact)
			}
		}
		var fromCompact any
		if err := json.Unmarshal(compact, &fromCompact); err != nil || !reflect.DeepEqual(fromCompact, want) {
			t.Fatalf("%q compact is %q: %v", text, compact, err)
		}
	})
}

func FuzzStrings(f *testing.F) {
	f.Add("plain \"q\" \\ \n\x00 é 🙈 \u2028")
	f.Add("\xed\xa0\xbd\xed\xb9\x88 \xed\xb9\x88\xed\xa0\xbd \xff\xe2\x82")
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString(nil, s)
		if !json.Valid(b) || !utf8.Valid(b) {
			t.Fatalf("%q is written as %q", s, b)
		}
		back, ok := StringValue(b)
		if !ok {
			t.Fatalf("%q does not read back", b)
		}
		if again := AppendString(nil, back); !bytes.Equal(again, b) && !HasSurrogate(s) {
			t.Fatalf("%q, read and written, is %q", b, again)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q reads back as %q", s, back)
		}
		if clean := DropSurrogates(back); !utf8.ValidString(clean) || len(clean) > len(back) {
			t.Fatalf("DropSurrogates(%q) = %q", back, clean)
		}
		if v := ToValidUTF8(s); !utf8.ValidString(v) {
			t.Fatalf("ToValidUTF8(%q) = %q", s, v)
		}
		if !utf8.Valid(AppendUTF8(nil, s)) {
			t.Fatalf("AppendUTF8(%q) is not UTF-8", s)
		}
	})
}

func TestBlank(t *testing.T) {
	for _, s := range []string{"", " \t\n\v\f\r", "\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"} {
		if !Blank(s) {
			t.Errorf("%q is not blank", s)
		}
	}
	for _, s := range []string{"x", " . ", "\u200b", "\u0085", "\x00", "\xed\xa0\xbd"} {
		if Blank(s) {
			t.Errorf("%q is blank", s)
		}
	}
	if n := UTF16Len("aé€🙈" + strings.Repeat("\xed\xa0\xbd", 2)); n != 7 {
		t.Errorf("UTF16Len = %d", n)
	}
}
