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
	at := map[string]int{}
	for r.Object(); r.More(); {
		name := string(r.Key())
		value := slices.Clone(r.Raw())
		if i, again := at[name]; again {
			o[i].value = value
			continue
		}
		at[name] = len(o)
		o = append(o, member{name, value})
	}
	return o, r.End()
}

// index tells where the members are, for objects of which many are wanted.
func (o object) index() map[string]int {
	at := make(map[string]int, len(o))
	for i, m := range o {
		at[m.name] = i
	}
	return at
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
	at := out.index()
	for _, m := range upper {
		i, there := at[m.name]
		switch {
		case !there:
			out = append(out, m)
		case bytes.Equal(out[i].value, m.value): // deep objects cost nothing here
		case isObject(out[i].value) && isObject(m.value):
			// Both were read before, so neither fails.
			a, _ := parseObject(out[i].value)
			b, _ := parseObject(m.value)
			out[i].value = merge(a, b).append(nil)
		default:
			out[i].value = m.value
		}
	}
	return out
}

// at is the value at a path of names, nil when there is none.
func (o object) at(path []string) jsontext.Value {
	v := o.get(path[0])
	for _, name := range path[1:] {
		v = jsonwire.Get(v, name)
	}
	return v
}

// put is o with a value at a path, nil to take it away. Objects on the way are
// made.
func (o object) put(path []string, v jsontext.Value) object {
	o = slices.Clone(o)
	if len(path) > 1 {
		inner, _ := parseObject(o.get(path[0])) // what is no object gives way
		if v == nil && inner == nil {
			return o
		}
		v = inner.put(path[1:], v).append(nil)
	}
	if v == nil {
		return o.without(path[0])
	}
	return o.set(path[0], v)
}

// difference is a path with another value; nil for none.
type difference struct {
	path []string
	now  jsontext.Value
}

// compare lists what is different in now: members of objects, and with leaves
// also those of an object where there was none, or is none any more; an empty one
// says nothing then.
func compare(before, now object, leaves bool, path ...string) (list []difference) {
	was, is := before.index(), now.index()
	value := func(o object, at map[string]int, name string) jsontext.Value {
		if i, ok := at[name]; ok {
			return o[i].value
		}
		return nil
	}
	for i, m := range slices.Concat(now, before) {
		if _, both := is[m.name]; both && i >= len(now) {
			continue
		}
		a, b := value(before, was, m.name), value(now, is, m.name)
		if a != nil && b != nil && bytes.Equal(a, b) {
			continue // also of a deep object, which would be read at every level
		}
		at := append(slices.Clone(path), m.name)
		oa, errA := parseObject(a)
		ob, errB := parseObject(b)
		switch {
		case errA == nil && errB == nil, leaves && a == nil && errB == nil, leaves && b == nil && errA == nil:
			list = append(list, compare(oa, ob, leaves, at...)...)
		case !same(a, b):
			list = append(list, difference{at, b})
		}
	}
	return list
}

func same(a, b jsontext.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	ca, _ := jsonwire.AppendCompact(nil, a)
	cb, _ := jsonwire.AppendCompact(nil, b)
	return bytes.Equal(ca, cb)
}
