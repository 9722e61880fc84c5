package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// shown is what a consumer sees of an answer: each event with the value of its
// block at that moment.
func shown(a *Answer) string {
	var out []string
	var ev llm.Event
	for a.next(&ev) {
		value := ""
		switch b := ev.Partial.Content[ev.Index].(type) {
		case *llm.Text:
			value = b.Text
		case *llm.Thinking:
			value = b.Thinking
		case *llm.ToolCall:
			value = string(b.Current()) + b.ArgumentsError
		}
		out = append(out, fmt.Sprintf("%s %q=%s", ev.Type, ev.Delta, value))
	}
	return strings.Join(out, "|")
}

func TestWholeTexts(t *testing.T) {
	const half = "\xed\xa0\xbd" // of a surrogate pair
	for name, c := range map[string]struct {
		make func(a *Answer)
		want string
	}{
		"a text that goes on": {func(a *Answer) {
			b := a.Text(nil)
			b.Append([]byte("ab"))
			b.Complete([]byte("abc"))
			b.Complete([]byte("abc"))
			b.End()
		}, `text_start ""=|text_delta "ab"=ab|text_delta "c"=abc|text_end ""=abc`},
		"a text that does not": {func(a *Answer) {
			b := a.Thinking(nil)
			b.Append([]byte("ab"))
			shown(a)
			b.Complete([]byte("xyz"))
			b.Append([]byte("!"))
			b.End()
		}, `thinking_delta "!"=xyz!|thinking_end ""=xyz!`},
		"a replacement behind a delta that was not seen": {func(a *Answer) {
			b := a.Text(nil)
			b.Append([]byte("abcdef"))
			b.Replace([]byte("x"))
			b.End()
		}, `text_start ""=x|text_delta "abcdef"=x|text_end ""=x`},
		"a half that comes with the whole": {func(a *Answer) {
			b := a.Text(nil)
			b.Append([]byte("a" + half))
			b.Complete([]byte("a🙈"))
			b.End()
		}, `text_start ""=|text_delta "a"=a|text_delta "🙈"=a🙈|text_end ""=a🙈`},
		"a half that stays one": {func(a *Answer) {
			b := a.Text(nil)
			b.Append([]byte("a" + half))
			b.Replace([]byte("a" + half))
			b.End()
		}, `text_start ""=|text_delta "a"=a|text_delta "\xed\xa0\xbd"=a` + half + `|text_end ""=a` + half},
		"arguments from the start": {func(a *Answer) {
			b := a.ToolCall("c", "f", nil)
			b.Replace([]byte(`{"a":1`))
			b.Append([]byte(`2}`))
			b.End()
		}, `toolcall_start ""={"a":1}|toolcall_delta "2}"={"a":12}|toolcall_end ""={"a":12}`},
		"other arguments at the end": {func(a *Answer) {
			b := a.ToolCall("c", "f", nil)
			b.Append([]byte(`{"a":[1,2`))
			shown(a)
			b.Replace([]byte(`{"b":3}`))
			b.End()
		}, `toolcall_end ""={"b":3}`},
	} {
		a := &Answer{Message: NewMessage("x", &llm.Model{})}
		c.make(a)
		if got := shown(a); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// Arguments that were replaced show when the answer breaks off then.
func TestReplacedArgumentsOfABrokenAnswer(t *testing.T) {
	a := &Answer{Message: NewMessage("x", &llm.Model{})}
	b := a.ToolCall("c", "f", nil)
	b.Append([]byte(`{"a":[1,2`))
	shown(a)
	b.Replace([]byte(`{"b":3`))
	a.seal(false)
	if got := string(b.Call().Arguments); got != `{"b":3}` {
		t.Errorf("arguments %s", got)
	}
}
