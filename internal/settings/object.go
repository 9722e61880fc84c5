package settings

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value jsontext.Value
}

var errNoObject = errors.New("not a JSON object")

func parseObject(b []byte) (object, error) {
	var r jsonwire.Reader
	r.Reset(b)
	if k := r.Kind(); k != '{' {
		if err := jsonwire.Check(b); err != nil {
			return nil, err
		}
		return nil, errNoObject
	}
	var o object
	for r.Object(); r.More(); {
		name := string(r.Key())
		o = o.set(name, slices.Clone(r.Raw()))
	}
	return o, r.End()
}

func (o object) get(name string) jsontext.Value {
	for i := range o {
		if o[i].name == name {
			return o[i].value
		}
	}
	return nil
}

func (o object) has(name string) bool { return o.get(name) != nil }

// set replaces a member in its place or appends it.
func (o object) set(name string, value jsontext.Value) object {
	for i := range o {
		if o[i].name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

func (o object) without(name string) object {
	return slices.DeleteFunc(o, func(m member) bool { return m.name == name })
}

func (o object) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(dst, m.name)
		dst = append(dst, ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

func isObject(v jsontext.Value) bool {
	v = bytes.TrimLeft(v, " \t\r\n")
	return len(v) > 0 && v[0] == '{'
}

// merge puts upper over lower: objects member by member, all else replaced.
func merge(lower, upper object) object {
	out := slices.Clone(lower)
	for _, m := range upper {
		under := out.get(m.name)
		if isObject(under) && isObject(m.value) {
			// Both were read before, so neither fails.
			a, _ := parseObject(under)
			b, _ := parseObject(m.value)
			out = out.set(m.name, merge(a, b).append(nil))
			continue
		}
		out = out.set(m.name, m.value)
	}
	return out
}
