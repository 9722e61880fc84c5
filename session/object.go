package session

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

func appendUsage(o *jsonwire.Object, u *llm.Usage) {
	if u != nil {
		o.Key("usage")
		o.B = u.AppendJSON(o.B)
	}
}

func appendMembers(o *jsonwire.Object, list []llm.Member) {
	for _, m := range list {
		o.Member(m.Name, m.Value)
	}
}

func clone(b []byte) jsontext.Value { return jsontext.Value(slices.Clone(b)) }

// value reads any value into memory of its own, null as nil.
func value(r *jsonwire.Reader) jsontext.Value {
	if r.Null() {
		return nil
	}
	return r.Keep()
}

func member(r *jsonwire.Reader, list []llm.Member, key []byte) []llm.Member {
	name := string(key)
	return append(list, llm.Member{Name: name, Value: r.Keep()})
}
