package harness

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func TestRequestPatch(t *testing.T) {
	from := llm.Options{
		Timeout: time.Second, MaxRetries: 2, CacheRetention: "long",
		Headers:  map[string]*string{"a": new("1"), "b": new("2")},
		Metadata: jsontext.Value(`{"x": 1, "y\u0022": "z"}`),
	}
	show := func(o llm.Options) string {
		headers := map[string]string{}
		for k, v := range o.Headers {
			headers[k] = *v
		}
		return fmt.Sprint(o.Timeout, o.MaxRetries, o.CacheRetention, headers, o.Headers == nil, string(o.Metadata))
	}
	for _, c := range []struct {
		name  string
		patch RequestPatch
		want  string
	}{
		{"nothing", RequestPatch{}, `1s 2longmap[a:1 b:2] false{"x": 1, "y\u0022": "z"}`},
		{"replaces", RequestPatch{Timeout: new(time.Minute), MaxRetries: new(5), CacheRetention: new("none")},
			`1m0s 5nonemap[a:1 b:2] false{"x": 1, "y\u0022": "z"}`},
		{"clears", RequestPatch{Timeout: new(time.Duration(0)), MaxRetries: new(0), CacheRetention: new(""), ClearHeaders: true, ClearMetadata: true},
			`0s 0map[] true`},
		{"sets keys", RequestPatch{Headers: map[string]*string{"b": new("9"), "c": new("3")}, Metadata: map[string]jsontext.Value{"n": []byte("2"), "x": []byte("[]")}},
			`1s 2longmap[a:1 b:9 c:3] false{"x":[],"y\"":"z","n":2}`},
		{"takes keys out", RequestPatch{Headers: map[string]*string{"a": nil}, Metadata: map[string]jsontext.Value{"y\"": nil, "gone": nil}},
			`1s 2longmap[b:2] false{"x":1}`},
		{"empty maps vanish", RequestPatch{Headers: map[string]*string{"a": nil, "b": nil}, Metadata: map[string]jsontext.Value{"x": nil, "y\"": nil}},
			`1s 2longmap[] true`},
		{"clears and sets", RequestPatch{ClearHeaders: true, Headers: map[string]*string{"c": new("3")}, ClearMetadata: true, Metadata: map[string]jsontext.Value{"n": []byte("2")}},
			`1s 2longmap[c:3] false{"n":2}`},
	} {
		before := show(from)
		if got := show(c.patch.apply(from)); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		if show(from) != before {
			t.Errorf("%s: changed what it was given", c.name)
		}
	}
}
