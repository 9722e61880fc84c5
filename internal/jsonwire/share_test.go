package jsonwire

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"
)

func TestResetShared(t *testing.T) {
	in := []byte(`{"plain":"abc","empty":"","escaped":"a\nb","wide":"é","bad":"` + "\xff" + `","raw": {"x":[1]} ,"no":null}`)
	within := func(p *byte) bool {
		at := uintptr(unsafe.Pointer(p)) - uintptr(unsafe.Pointer(&in[0]))
		return at < uintptr(len(in))
	}
	for _, shared := range []bool{true, false} {
		var r Reader
		if r.Reset(in); shared {
			r.ResetShared(in)
		}
		for r.Object(); r.More(); {
			switch key := string(r.Key()); key {
			case "raw":
				raw := r.Keep()
				if string(raw) != `{"x":[1]}` || within(&raw[0]) != shared || cap(raw) != len(raw) {
					t.Errorf("shared %v: %s of capacity %d, in the input %v", shared, raw, cap(raw), within(&raw[0]))
				}
			case "no":
				if !r.Null() {
					t.Error("null is not read")
				}
			default:
				want := map[string]string{"plain": "abc", "empty": "", "escaped": "a\nb", "wide": "é", "bad": "\uFFFD"}[key]
				got := r.Text()
				if got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
				if fits := shared && (key == "plain" || key == "wide"); got != "" && within(unsafe.StringData(got)) != fits {
					t.Errorf("shared %v: %s in the input: %v", shared, key, !fits)
				}
			}
		}
		if err := r.End(); err != nil {
			t.Error(err)
		}
	}
}

func TestRewind(t *testing.T) {
	var r Reader
	r.Reset([]byte(`[1, {"a":[2]} ,3]`))
	r.Array()
	r.More()
	r.Skip()
	r.More()
	r.Kind()
	at := r.Offset()
	for range 3 {
		r.Rewind(at)
		if raw := r.Raw(); string(raw) != `{"a":[2]}` {
			t.Fatalf("read %s", raw)
		}
	}
	if !r.More() || r.Int() != 3 || r.More() || r.End() != nil {
		t.Errorf("the list does not go on: %v", r.Err())
	}
}

// slowString is AppendString a byte at a time.
func slowString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20:
			b.WriteString(`\u00` + string(hexDigits[r>>4]) + string(hexDigits[r&15]))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Every byte that needs care is found at every place of the words that are
// looked at together.
func TestAppendStringAtEveryPlace(t *testing.T) {
	for _, odd := range []string{"\"", "\\", "\n", "\x00", "\x1f", "\x7f", "é", "語", "\U0001F648", " ", "!", "#", "[", "]"} {
		for at := range 20 {
			for _, second := range []int{at, at + 1, at + 9} {
				s := strings.Repeat("a", at) + odd + strings.Repeat("b", second-at) + odd + "cd"
				if got, want := string(AppendString(nil, s)), slowString(s); got != want {
					t.Fatalf("%q is written %s, want %s", s, got, want)
				}
				if got := AppendString(nil, []byte(s)); !bytes.Equal(got, AppendString(nil, s)) {
					t.Fatalf("%q is written %s as bytes", s, got)
				}
				if back, ok := StringValue(AppendString(nil, s)); !ok || back != s || !utf8.ValidString(back) {
					t.Fatalf("%q comes back as %q", s, back)
				}
			}
		}
	}
}
