package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Comparison of what a program printed, sent and wrote with what a vector
// expects. Expected texts hold placeholders: known ones ({{CWD}}, {{AGENT}}, …)
// are replaced beforehand, the others stand for a form ({{ISO}}), and numbered
// ones ({{UUID1}}, {{E2}}) for one value throughout a case.

// bindings are the placeholder values of one case.
type bindings struct {
	known  map[string]string // {{NAME}} -> value, put into expectations and inputs
	bound  map[string]string // numbered placeholder -> value seen
	values map[string]string // value seen -> its placeholder
}

func newBindings(known map[string]string) *bindings {
	return &bindings{known: known, bound: map[string]string{}, values: map[string]string{}}
}

var placeholder = regexp.MustCompile(`\{\{[A-Z_]+[0-9]*\}\}`)

// fill puts the known values into an input.
func (b *bindings) fill(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		if v, ok := b.known[p]; ok {
			return v
		}
		return p
	})
}

// placeholderForm is the regular expression of a placeholder that stands for a form, and
// whether its values are bound.
func placeholderForm(p string) (pattern string, binds bool) {
	switch name := strings.Trim(p, "{}"); {
	case name == "ISO":
		return `\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}Z`, false
	case strings.HasPrefix(name, "UUID"):
		return `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, true
	case regexp.MustCompile(`^E\d+$`).MatchString(name):
		return `[0-9a-f]{8}`, true
	case name == "HEX16":
		return `[0-9a-f]{16}`, false
	case name == "MS", name == "DURATION", name == "SECONDS":
		return `\d+(?:\.\d+)?`, false
	case strings.HasSuffix(name, "_PREAMBLE"):
		return `(?s:.+?)`, false
	}
	return "", false
}

// ownWording lists recorded texts whose wording is the build's own: any text
// that names the same thing stands in their place.
var ownWording = []*regexp.Regexp{
	regexp.MustCompile(`^Tool call "(\w+)" was not executed: the response hit the output token limit`),
}

// text compares one string.
func (b *bindings) text(want, got string) error {
	want = b.fill(want)
	for _, re := range ownWording {
		if m := re.FindStringSubmatch(want); m != nil && strings.Contains(got, m[1]) {
			return nil
		}
	}
	if !strings.Contains(want, "{{") {
		if want != got {
			return fmt.Errorf("%q, want %q", clipText(got), clipText(want))
		}
		return nil
	}
	var pattern strings.Builder
	var names []string
	pattern.WriteString(`^`)
	at := 0
	for _, span := range placeholder.FindAllStringIndex(want, -1) {
		p := want[span[0]:span[1]]
		re, binds := placeholderForm(p)
		if re == "" {
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(want[at:span[0]]))
		at = span[1]
		if !binds {
			pattern.WriteString(re)
			continue
		}
		names = append(names, p)
		pattern.WriteString("(" + re + ")")
	}
	pattern.WriteString(regexp.QuoteMeta(want[at:]) + `$`)
	m := regexp.MustCompile(pattern.String()).FindStringSubmatch(got)
	if m == nil {
		return fmt.Errorf("%q, want %q", clipText(got), clipText(want))
	}
	for i, name := range names {
		value := m[i+1]
		if v, ok := b.bound[name]; ok && v != value {
			return fmt.Errorf("%s is %q here and %q before", name, value, v)
		}
		if n, ok := b.values[value]; ok && n != name {
			return fmt.Errorf("%q is both %s and %s", value, name, n)
		}
		b.bound[name], b.values[value] = value, name
	}
	return nil
}

func clipText(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

// matchRules says how strictly objects are compared: loose names members whose
// objects need hold only the expected keys.
type matchRules struct {
	loose     []string
	tolerance float64 // of fractional numbers, relative
}

// value compares JSON values. name is the member that holds them.
func (b *bindings) value(s matchRules, path, name string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		if long, ok := want["longText"].(map[string]any); ok && len(want) == 1 {
			return matchLongText(path, long, got)
		}
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %s, want an object", path, shortJSON(got))
		}
		for _, k := range sortedKeys(want) {
			v, ok := have[k]
			if !ok {
				return fmt.Errorf("%s: no %s in %s", path, k, shortJSON(got))
			}
			if err := b.value(s, path+"."+k, k, want[k], v); err != nil {
				return err
			}
		}
		if !slices.Contains(s.loose, name) {
			for _, k := range sortedKeys(have) {
				if _, ok := want[k]; !ok {
					return fmt.Errorf("%s: unexpected %s: %s", path, k, shortJSON(have[k]))
				}
			}
		}
		return nil
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Errorf("%s: %s, want %s", path, shortJSON(got), shortJSON(want))
		}
		for i := range want {
			if err := b.value(s, fmt.Sprintf("%s[%d]", path, i), name, want[i], have[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		if f, ok := got.(float64); ok {
			if re, _ := placeholderForm(want); placeholder.FindString(want) == want && re != "" && f >= 0 {
				return nil
			}
		}
		have, ok := got.(string)
		if !ok {
			return fmt.Errorf("%s: %s, want %q", path, shortJSON(got), want)
		}
		if name == "argumentsError" {
			// What the parser says in front of the frame is its own wording.
			want, have = behindParser(want), behindParser(have)
		}
		if err := b.text(want, have); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	case float64:
		have, ok := got.(float64)
		if !ok || have != want && math.Abs(have-want) > s.tolerance*math.Max(1e-300, math.Abs(want)) {
			return fmt.Errorf("%s: %s, want %v", path, shortJSON(got), want)
		}
		return nil
	default:
		if want != got {
			return fmt.Errorf("%s: %s, want %s", path, shortJSON(got), shortJSON(want))
		}
		return nil
	}
}

// behindParser is an argument error without the words of the JSON parser.
func behindParser(s string) string {
	if i := strings.Index(s, "\n\nReceived arguments:"); i > 0 {
		return s[i:]
	}
	return s
}

func matchLongText(path string, want map[string]any, got any) error {
	s, ok := got.(string)
	sum := sha256.Sum256([]byte(s))
	if !ok || hex.EncodeToString(sum[:]) != want["sha256"] {
		return fmt.Errorf("%s: %s, want a text of %v bytes", path, shortJSON(got), want["bytes"])
	}
	return nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func shortJSON(v any) string {
	j, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clipText(string(j))
}

// anySet compares two lists as sets: some pairing must match. A pairing that
// fails binds nothing.
func (b *bindings) anySet(path string, want, got []any, same func(b *bindings, want, got any) error) error {
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d, want %d: %s", path, len(got), len(want), shortJSON(got))
	}
	left := slices.Clone(got)
	for _, w := range want {
		var first error
		at := slices.IndexFunc(left, func(g any) bool {
			trial := &bindings{known: b.known, bound: maps.Clone(b.bound), values: maps.Clone(b.values)}
			err := same(trial, w, g)
			if err == nil {
				b.bound, b.values = trial.bound, trial.values
			} else if first == nil {
				first = err
			}
			return err == nil
		})
		if at < 0 {
			return fmt.Errorf("%s: nothing like %s: %v", path, shortJSON(w), first)
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

func TestBindings(t *testing.T) {
	b := newBindings(map[string]string{"{{CWD}}": "/w"})
	const u1, u2 = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"{{CWD}}/x", "/w/x", true},
		{"{{CWD}}/x", "/v/x", false},
		{"a {{UUID1}}", "a " + u1, true},
		{"{{UUID1}}", u2, false},
		{"{{UUID2}}", u1, false},
		{"{{UUID2}}", u2, true},
		{"{{ISO}}_{{UUID1}}.jsonl", "2026-01-02T03-04-05-678Z_" + u1 + ".jsonl", true},
		{"[{{ISO}}]", "[2026-01-02T03:04:05Z]", false},
		{"{{UNKNOWN}}", "{{UNKNOWN}}", true},
	} {
		if err := b.text(c.want, c.got); (err == nil) != c.ok {
			t.Errorf("%s against %s: %v", c.want, c.got, err)
		}
	}
	s := matchRules{loose: []string{"message"}, tolerance: 1e-9}
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{`{"a":1,"message":{"x":1}}`, `{"a":1,"message":{"x":1,"y":2}}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1}`, false},
		{`[1,2]`, `[1]`, false},
		{`{"d":"{{DURATION}}"}`, `{"d":0.5}`, true},
		{`{"d":"{{DURATION}}"}`, `{"d":-1}`, false},
		{`{"c":0.00012}`, `{"c":0.00011999999999999999}`, true},
		{`{"c":0.00012}`, `{"c":0.000121}`, false},
		{`null`, `false`, false},
	} {
		var w, g any
		if err := json.Unmarshal([]byte(c.want), &w); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.got), &g); err != nil {
			t.Fatal(err)
		}
		if err := b.value(s, "", "", w, g); (err == nil) != c.ok {
			t.Errorf("%s against %s: %v", c.want, c.got, err)
		}
	}
}
