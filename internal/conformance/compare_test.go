package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Comparison of JSON values with recorded ones, whose strings may hold the
// placeholders of the LLM vectors: <timestamp>, <any>, NAME_<ms>_<n> and so on.
// Strings keep halves of surrogate pairs, numbers keep their digits.

// jsonNumber is a number as it was written.
type jsonNumber string

// parseJSON reads a JSON text into nil, bool, jsonNumber, string, []any and
// map[string]any.
func parseJSON(text []byte) (any, error) {
	var r jsonwire.Reader
	r.Reset(text)
	v := readJSONValue(&r)
	return v, r.End()
}

func readJSONValue(r *jsonwire.Reader) any {
	switch r.Kind() {
	case '{':
		m := map[string]any{}
		for r.Object(); r.More(); {
			k := string(r.Key())
			m[k] = readJSONValue(r)
		}
		return m
	case '[':
		list := []any{}
		for r.Array(); r.More(); {
			list = append(list, readJSONValue(r))
		}
		return list
	case '"':
		return r.Text()
	case '0':
		return jsonNumber(r.Raw())
	case 't', 'f':
		return r.Bool()
	default:
		r.Skip()
		return nil
	}
}

func mustParseJSON(t *testing.T, text []byte) any {
	t.Helper()
	v, err := parseJSON(text)
	if err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return v
}

// differs is where and how got differs from want, "" when it matches. A member
// that want does not have must be absent.
func differs(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			v, ok := g[k]
			if !ok {
				return fmt.Sprintf("%s.%s: missing, want %s", path, k, showJSON(w[k]))
			}
			if d := differs(path+"."+k, w[k], v); d != "" {
				return d
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[k]; !ok {
				return fmt.Sprintf("%s.%s: unexpected %s", path, k, showJSON(g[k]))
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range min(len(w), len(g)) {
			if d := differs(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		switch {
		case len(g) > len(w):
			return fmt.Sprintf("%s[%d]: unexpected %s", path, len(w), showJSON(g[len(w)]))
		case len(g) < len(w):
			return fmt.Sprintf("%s[%d]: missing, want %s", path, len(g), showJSON(w[len(g)]))
		}
		return ""
	case string:
		switch g := got.(type) {
		case string:
			if matchesText(w, g) {
				return ""
			}
		case jsonNumber:
			if (w == "<timestamp>" || w == "<durationMs>") && isCount(string(g)) {
				return ""
			}
		}
	case jsonNumber:
		if g, ok := got.(jsonNumber); ok {
			a, _ := strconv.ParseFloat(string(w), 64)
			b, _ := strconv.ParseFloat(string(g), 64)
			if w == g || a == b {
				return ""
			}
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: got %s, want %s", path, showJSON(got), showJSON(want))
}

// differsByMember compares two objects and adds one problem for each member,
// under prefix and its name.
func differsByMember(o outcome, prefix string, want, got any) {
	w, ok := want.(map[string]any)
	g, also := got.(map[string]any)
	if !ok || !also {
		if d := differs(prefix, want, got); d != "" {
			o.add(prefix, "%s", d)
		}
		return
	}
	names := map[string]bool{}
	for k := range w {
		names[k] = true
	}
	for k := range g {
		names[k] = true
	}
	for k := range names {
		field := prefix + "." + k
		wv, inWant := w[k]
		gv, inGot := g[k]
		switch {
		case !inGot:
			o.add(field, "missing, want %s", showJSON(wv))
		case !inWant:
			o.add(field, "unexpected %s", showJSON(gv))
		default:
			if d := differs(field, wv, gv); d != "" {
				o.add(field, "%s", d)
			}
		}
	}
}

func isCount(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f >= 0 && f == float64(int64(f))
}

// textPlaceholders are the placeholders that a string may hold, with what they
// stand for.
var textPlaceholders = map[string]string{
	"<timestamp>":            `[0-9]+`,
	"<durationMs>":           `[0-9]+`,
	"<ms>":                   `[0-9]+`,
	"<n>":                    `[0-9]+`,
	"<user-agent>":           `.+`,
	"<sigv4>":                `AWS4-HMAC-SHA256 .+`,
	"<x-amz-date>":           `[0-9]{8}T[0-9]{6}Z`,
	"<x-amz-content-sha256>": `.+`,
	"<json-error>":           `.+`,
	"<abort-text>":           `.+`,
	"<any>":                  `.+`,
}

var placeholderPattern = sync.OnceValue(func() *regexp.Regexp {
	var names []string
	for name := range textPlaceholders {
		names = append(names, regexp.QuoteMeta(name))
	}
	return regexp.MustCompile(strings.Join(names, "|"))
})

// matchesText reports whether got is want with its placeholders filled in.
func matchesText(want, got string) bool {
	if want == got {
		return true
	}
	at := placeholderPattern().FindAllStringIndex(want, -1)
	if at == nil {
		return false
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	from := 0
	for _, span := range at {
		b.WriteString(regexp.QuoteMeta(want[from:span[0]]))
		b.WriteString(textPlaceholders[want[span[0]:span[1]]])
		from = span[1]
	}
	b.WriteString(regexp.QuoteMeta(want[from:]))
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	return err == nil && re.MatchString(got)
}

// showJSON is a value for a failure message, cut when long.
func showJSON(v any) string {
	s := string(appendJSONValue(nil, v))
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return s
}

func appendJSONValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case jsonNumber:
		return append(dst, v...)
	case string:
		return jsonwire.AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONValue(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonwire.AppendString(dst, k), ':')
			dst = appendJSONValue(dst, v[k])
		}
		return append(dst, '}')
	}
	return fmt.Appendf(dst, "%v", v)
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1.0}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":null}`, `{"a":1}`, false},
		{`"<timestamp>"`, `1750000000000`, true},
		{`"<timestamp>"`, `-1`, false},
		{`"<durationMs>"`, `0`, true},
		{`"x_<ms>_<n>"`, `"x_1750000000000_3"`, true},
		{`"x_<ms>_<n>"`, `"x_1750000000000_"`, false},
		{`"<json-error>\n\nReceived arguments:\n{"`, `"unexpected end\n\nReceived arguments:\n{"`, true},
		{`"<any>"`, `""`, false},
		{`"<a&b>"`, `"<a&b>"`, true},
		{`"\ud83d"`, `"\ufffd"`, false},
		{`[1,2]`, `[1]`, false},
		{`[1]`, `[1,2]`, false},
		{`0.1`, `0.10000000000000002`, false},
	} {
		d := differs("$", mustParseJSON(t, []byte(c.want)), mustParseJSON(t, []byte(c.got)))
		if (d == "") != c.same {
			t.Errorf("%s and %s: %q, want same = %v", c.want, c.got, d, c.same)
		}
	}
}
