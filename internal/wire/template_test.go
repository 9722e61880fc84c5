package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	// cut is the JSON string behind a marker in data.
	cut := func(data []byte, marker string) []byte {
		if marker == "" {
			return nil
		}
		from := bytes.Index(data, []byte(marker)) + len(marker)
		to := from + 1 + bytes.IndexByte(data[from+1:], '"') + 1
		return data[from:to]
	}
	for name, c := range map[string]struct {
		known, pad  string
		match, want string // want of - for no match
	}{
		"other text":          {`{"t":"a","n":1}`, "", `{"t":"b\"\ud83d\ude48","n":1}`, `b"🙈`},
		"empty text":          {`{"t":"a","n":1}`, "", `{"t":"","n":1}`, ``},
		"other number":        {`{"t":"a","n":1}`, "", `{"t":"b","n":2}`, `-`},
		"other beginning":     {`{"t":"a","n":1}`, "", `{"u":"b","n":1}`, `-`},
		"a number in place":   {`{"t":"a","n":1}`, "", `{"t":5,"n":1}`, `-`},
		"a space in front":    {`{"t":"a","n":1}`, "", `{"t": "b","n":1}`, `-`},
		"more behind":         {`{"t":"a","n":1}`, "", `{"t":"b","n":1}x`, `-`},
		"less behind":         {`{"t":"a","n":1}`, "", `{"t":"b","n":1`, `-`},
		"nothing behind":      {`{"t":"a","n":1}`, "", `{"t":"b"`, `-`},
		"nothing":             {`{"t":"a","n":1}`, "", ``, `-`},
		"open string":         {`{"t":"a","n":1}`, "", `{"t":"b,"n":1}`, `-`},
		"more than a string":  {`{"t":"a","n":1}`, "", `{"t":"b","u":"c","n":1}`, `-`},
		"pad behind":          {`{"t":"a","p":"xyz"}`, `"p":`, `{"t":"b","p":"x"}`, `b`},
		"pad behind, empty":   {`{"t":"a","p":"xyz"}`, `"p":`, `{"t":"b","p":""}`, `b`},
		"pad behind, absent":  {`{"t":"a","p":"xyz"}`, `"p":`, `{"t":"b"}`, `-`},
		"pad behind, number":  {`{"t":"a","p":"xyz"}`, `"p":`, `{"t":"b","p":7}`, `-`},
		"pad behind, broken":  {`{"t":"a","p":"xyz"}`, `"p":`, `{"t":"b","p":"\x"}`, `-`},
		"pad in front":        {`{"p":"xyz","t":"a"}`, `"p":`, `{"p":"x","t":"b"}`, `b`},
		"pad in front, other": {`{"p":"xyz","t":"a"}`, `"p":`, `{"p":"x","u":"b"}`, `-`},
		"pad in front, cut":   {`{"p":"xyz","t":"a"}`, `"p":`, `{"p":"x`, `-`},
	} {
		var f Template
		if _, ok := f.Match([]byte(c.known)); ok {
			t.Errorf("%s: a template that nobody kept matches", name)
		}
		// Templates are kept from a buffer that is used again.
		buf := append(make([]byte, 0, 200), c.known...)
		f.Keep(buf, cut(buf, `"t":`), cut(buf, c.pad))
		copy(buf, strings.Repeat("#", len(buf)))
		got, ok := f.Match([]byte(c.match))
		if ok != (c.want != "-") || ok && string(got) != c.want {
			t.Errorf("%s: got %q %v, want %q", name, got, ok, c.want)
		}
		if got, ok := f.Match([]byte(c.known)); !ok || string(got) != "a" || c.pad != "" && string(f.Pad()) != "xyz" {
			t.Errorf("%s: does not match itself: %q %q %v", name, got, f.Pad(), ok)
		}
		f.Forget()
		if _, ok := f.Match([]byte(c.known)); ok {
			t.Errorf("%s: a template that was forgotten matches", name)
		}
	}
}
