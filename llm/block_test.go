package llm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// orders calls fn with the members of an object in every order.
func orders(members []string, fn func(object string)) {
	var walk func(done, left []string)
	walk = func(done, left []string) {
		if len(left) == 0 {
			fn("{" + strings.Join(done, ",") + "}")
			return
		}
		for i := range left {
			rest := append(append([]string(nil), left[:i]...), left[i+1:]...)
			walk(append(done[:len(done):len(done)], left[i]), rest)
		}
	}
	walk(nil, members)
}

// The type of a block decides, wherever it stands and whatever the other
// members look like.
func TestBlocksInAnyOrder(t *testing.T) {
	for _, c := range []struct {
		members []string
		want    Block // without Raw for an unknown one
	}{
		{[]string{`"type":"text"`, `"text":"a\nb"`, `"textSignature":"s"`}, &Text{Text: "a\nb", Signature: new("s")}},
		{[]string{`"type":"thinking"`, `"thinking":"t"`, `"redacted":true`}, &Thinking{Thinking: "t", Redacted: true}},
		{[]string{`"type":"image"`, `"data":"AA"`, `"mimeType":"image/png"`}, &Image{Data: "AA", MimeType: "image/png"}},
		{[]string{`"type":"toolCall"`, `"id":"1"`, `"name":"n"`, `"arguments":{"a":[1]}`}, &ToolCall{ID: "1", Name: "n", Arguments: jsontext.Value(`{"a":[1]}`)}},
		{[]string{`"type":"toolCall"`, `"id":"1"`, `"arguments":null`}, &ToolCall{ID: "1", Arguments: jsontext.Value(`{}`)}},
		{[]string{`"type":"text"`, `"id":{"x":[2]}`, `"text":"t"`}, &Text{Text: "t", Extra: []Member{{"id", jsontext.Value(`{"x":[2]}`)}}}},
		{[]string{`"type":"image"`, `"text":"t"`, `"data":"d"`}, &Image{Data: "d", Extra: []Member{{"text", jsontext.Value(`"t"`)}}}},
		{[]string{`"type":"text"`, `"later":1`}, &Text{Extra: []Member{{"later", jsontext.Value(`1`)}}}},
		{[]string{`"type":"text"`, `"type":"text"`, `"text":"t"`}, &Text{Text: "t"}},
		{[]string{`"type":"audio"`, `"text":"t"`, `"data":[1]`}, &UnknownBlock{Type: "audio"}},
		{[]string{`"type":7`, `"text":"t"`}, &UnknownBlock{}},
		{[]string{`"type":null`, `"thinking":"t"`}, &UnknownBlock{}},
		{[]string{`"text":"t"`, `"name":"n"`}, &UnknownBlock{}},
		{nil, &UnknownBlock{}},
	} {
		orders(c.members, func(object string) {
			var r jsonwire.Reader
			r.Reset(fmt.Appendf(nil, `[%s , {"type":"text","text":"next"}]`, object))
			got := ReadBlocks(&r)
			if err := r.End(); err != nil || len(got) != 2 {
				t.Fatalf("%s: %d blocks, %v", object, len(got), err)
			}
			want := c.want
			if u, ok := want.(*UnknownBlock); ok {
				want = &UnknownBlock{Type: u.Type, Raw: jsontext.Value(object)}
			}
			if !reflect.DeepEqual(got[0], want) {
				t.Errorf("%s reads as %#v, want %#v", object, got[0], want)
			}
			if next, ok := got[1].(*Text); !ok || next.Text != "next" {
				t.Errorf("behind %s stands %#v", object, got[1])
			}
		})
	}
}

// Of several types the last counts.
func TestBlockWithTwoTypes(t *testing.T) {
	var r jsonwire.Reader
	r.Reset([]byte(`[{"type":"text","text":"t","data":"d","type":"image"}]`))
	got := ReadBlocks(&r)
	want := []Block{&Image{Data: "d", Extra: []Member{{"text", jsontext.Value(`"t"`)}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
}
