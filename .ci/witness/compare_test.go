package witness

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// difference is one member in which two JSON values differ.
type difference struct {
	path   string // such as messages[].content[].text
	change string // lost, lost empty (null or ""), added or changed
	detail string
}

func (d difference) String() string {
	return fmt.Sprintf("%s %s: %s", d.path, d.change, d.detail)
}

// differences lists what got has not, has more, or has other than want, by
// member. A list of another length is one difference.
func differences(path string, want, got any) []difference {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []difference
		for name, v := range w {
			if other, ok := g[name]; ok {
				out = append(out, differences(member(path, name), v, other)...)
			} else if v == nil || v == "" {
				out = append(out, difference{member(path, name), "lost empty", brief(v)})
			} else {
				out = append(out, difference{member(path, name), "lost", brief(v)})
			}
		}
		for name, v := range g {
			if _, ok := w[name]; !ok {
				out = append(out, difference{member(path, name), "added", brief(v)})
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		var out []difference
		for i := range w {
			out = append(out, differences(path+"[]", w[i], g[i])...)
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return nil
		}
	default:
		if want == got || isText(got, want) {
			return nil
		}
	}
	return []difference{{path, "changed", brief(want) + " to " + brief(got)}}
}

// isText reports whether blocks are the long form of a content that is a plain
// string. Anthropic's protocol takes both forms for the same.
func isText(blocks, content any) bool {
	list, ok := blocks.([]any)
	if !ok || len(list) != 1 {
		return false
	}
	block, ok := list[0].(map[string]any)
	return ok && len(block) == 2 && block["type"] == "text" && block["text"] == content
}

func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// sameNumber compares values: 1e21 is the number that 1000000000000000000000 is.
func sameNumber(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

func brief(v any) string {
	b, _ := json.Marshal(v)
	if len(b) > 200 {
		b = append(b[:200], "…"...)
	}
	return string(b)
}

func parse(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// exception is a member that a library does not know as pinch sends it.
type exception struct {
	path   string // as in difference; a trailing * stands for any rest
	change string
	vendor string // whose extension it is, or the vendor of the library
	reason string
}

// dissent is a vector whose answer a library reads in another way than pinch.
type dissent struct {
	vectors string // its name; a trailing * stands for any rest
	field   string // of answer, or error when the library gives up
	reason  string
}

func covers(pattern, s string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, p)
	}
	return pattern == s
}

// answer is what both sides make of one response.
type answer struct {
	text, thinking string
	calls          []call
	usage          usage
}

type call struct{ id, name, arguments string }

type usage struct{ input, output, cacheRead, cacheWrite int64 }

// differsFrom names the fields in which the answer of a library differs from pinch's.
func (a *answer) differsFrom(own *answer) map[string]string {
	out := map[string]string{}
	if a.text != own.text {
		out["text"] = fmt.Sprintf("%q, pinch has %q", a.text, own.text)
	}
	if a.thinking != own.thinking {
		out["thinking"] = fmt.Sprintf("%q, pinch has %q", a.thinking, own.thinking)
	}
	if !slices.EqualFunc(a.calls, own.calls, call.equal) {
		out["calls"] = fmt.Sprintf("%q, pinch has %q", a.calls, own.calls)
	}
	if a.usage != own.usage {
		out["usage"] = fmt.Sprintf("%+v, pinch has %+v", a.usage, own.usage)
	}
	return out
}

// madeID is an id that pinch makes up for a call that has none.
var madeID = regexp.MustCompile(`^\w+_\d{13}_\d+$`)

func (c call) equal(other call) bool {
	if c.id != other.id && !(c.id == "" && madeID.MatchString(other.id)) || c.name != other.name {
		return false
	}
	// A call whose arguments never came has none.
	x, errX := parse([]byte(cmp.Or(c.arguments, "{}")))
	y, errY := parse([]byte(other.arguments))
	if errX != nil || errY != nil {
		return c.arguments == other.arguments
	}
	return len(differences("", x, y)) == 0
}

// answerOf is pinch's final message in the terms of an answer.
func answerOf(m *llm.Assistant) *answer {
	a := &answer{
		text: llm.TextOf(m.Content, ""),
		usage: usage{
			input: m.Usage.Input, output: m.Usage.Output, cacheRead: m.Usage.CacheRead, cacheWrite: m.Usage.CacheWrite,
		},
	}
	for _, block := range m.Content {
		switch b := block.(type) {
		case *llm.Thinking:
			if !b.Redacted {
				a.thinking += b.Thinking
			}
		case *llm.ToolCall:
			a.calls = append(a.calls, call{b.ID, b.Name, string(b.Arguments)})
		}
	}
	return a
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct{ want, got, out string }{
		{`{"a":1e2,"b":[{"c":null}]}`, `{"b":[{"c":null}],"a":100}`, "[]"},
		{`{"a":{"b":1}}`, `{"a":{}}`, "[a.b lost: 1]"},
		{`{"a":[{}]}`, `{"a":[{"b":0}]}`, "[a[].b added: 0]"},
		{`{"a":[1]}`, `{"a":[1,2]}`, "[a changed: [1] to [1,2]]"},
		{`{"a":1}`, `{"a":"1"}`, `[a changed: 1 to "1"]`},
		{`{"a":"b"}`, `{"a":[{"type":"text","text":"b"}]}`, "[]"},
		{`9007199254740993`, `9007199254740992`, "[ changed: 9007199254740993 to 9007199254740992]"},
	} {
		want, err := parse([]byte(c.want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := parse([]byte(c.got))
		if err != nil {
			t.Fatal(err)
		}
		if out := fmt.Sprint(differences("", want, got)); out != c.out {
			t.Errorf("%s and %s: %s, want %s", c.want, c.got, out, c.out)
		}
	}
}
