package jsonschema

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// kind is the kind of a value, and in sets the types that a schema names.
type kind uint16

const (
	isNull kind = 1 << iota
	isFalse
	isTrue
	isNumber
	isInteger // in sets only
	isString
	isArray
	isObject
)

func kindOf(name string) (kind, bool) {
	switch name {
	case "null":
		return isNull, true
	case "boolean":
		return isTrue | isFalse, true
	case "number":
		return isNumber, true
	case "integer":
		return isInteger, true
	case "string":
		return isString, true
	case "array":
		return isArray, true
	case "object":
		return isObject, true
	}
	return 0, false
}

// typeName is the name of a value's type in problems.
func (v *value) typeName() string {
	if v.kind == isNumber && v.whole() {
		return "integer"
	}
	return v.kind.name()
}

// name is the type's name in problems.
func (k kind) name() string {
	switch k {
	case isNull:
		return "null"
	case isTrue, isFalse:
		return "boolean"
	case isNumber:
		return "number"
	case isString:
		return "string"
	case isArray:
		return "array"
	default:
		return "object"
	}
}

// value is a JSON value as a tree. Members keep their order.
type value struct {
	kind    kind
	text    string // of a string; the digits of a number
	items   []*value
	members []member
}

type member struct {
	name  string
	value *value
}

func parse(raw []byte) (*value, error) {
	var r jsonwire.Reader
	r.Reset(raw)
	v := read(&r)
	if err := r.End(); err != nil {
		return nil, err
	}
	return v, nil
}

func read(r *jsonwire.Reader) *value {
	v := &value{}
	switch r.Kind() {
	case '{':
		v.kind = isObject
		var at map[string]int // of the names so far, once they are many
		for r.Object(); r.More(); {
			name := string(r.Key())
			m := read(r)
			i, ok := at[name]
			if at == nil {
				i = v.index(name)
				ok = i >= 0
			}
			if ok {
				v.members[i].value = m
				continue
			}
			v.members = append(v.members, member{name, m})
			if at != nil {
				at[name] = len(v.members) - 1
			} else if len(v.members) == 32 {
				at = make(map[string]int, 64)
				for i, m := range v.members {
					at[m.name] = i
				}
			}
		}
	case '[':
		v.kind = isArray
		for r.Array(); r.More(); {
			v.items = append(v.items, read(r))
		}
	case '"':
		v.kind, v.text = isString, r.Text()
	case '0':
		v.kind, v.text = isNumber, string(r.Raw())
	case 't':
		v.kind = isTrue
		r.Skip()
	case 'f':
		v.kind = isFalse
		r.Skip()
	default:
		v.kind = isNull
		r.Skip()
	}
	return v
}

func (v *value) append(dst []byte) []byte {
	switch v.kind {
	case isObject:
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, m.name)
			dst = append(dst, ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case isArray:
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	case isString:
		return jsonwire.AppendString(dst, v.text)
	case isNumber:
		return append(dst, v.text...)
	case isTrue:
		return append(dst, "true"...)
	case isFalse:
		return append(dst, "false"...)
	default:
		return append(dst, "null"...)
	}
}

func (v *value) clone() *value {
	c := *v
	c.items = slices.Clone(v.items)
	for i, item := range c.items {
		c.items[i] = item.clone()
	}
	c.members = slices.Clone(v.members)
	for i, m := range c.members {
		c.members[i].value = m.value.clone()
	}
	return &c
}

func (v *value) index(name string) int {
	for i := range v.members {
		if v.members[i].name == name {
			return i
		}
	}
	return -1
}

// member is the member called name, nil when there is none or v is no object.
func (v *value) member(name string) *value {
	if i := v.index(name); i >= 0 {
		return v.members[i].value
	}
	return nil
}

// at follows a JSON pointer.
func (v *value) at(pointer string) *value {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if v.kind == isArray {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil
			}
			v = v.items[i]
		} else if v = v.member(token); v == nil {
			return nil
		}
	}
	return v
}

// strings lists the strings of an array.
func (v *value) strings() []string {
	var out []string
	for _, item := range v.items {
		if item.kind == isString {
			out = append(out, item.text)
		}
	}
	return out
}

// int is a whole number, or other for what is none.
func (v *value) int(other int) int {
	if v.kind != isNumber {
		return other
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.Abs(f) > math.MaxInt32 {
		return other
	}
	return int(f)
}

// number is v, or nil when it is no number.
func (v *value) number() *value {
	if v.kind != isNumber {
		return nil
	}
	return v
}

// whole reports whether the number v has no fraction.
func (v *value) whole() bool { return wholeText(v.text) }

func wholeText[S ~string | ~[]byte](text S) bool {
	plain := true
	for i := range len(text) {
		if c := text[i]; c == '.' || c == 'e' || c == 'E' {
			plain = false
			break
		}
	}
	if plain {
		return true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return err == nil && f == math.Trunc(f)
}

// exact is the number v without rounding. It is nil for numbers whose exact
// form would be too long to be worth it.
func (v *value) exact() *big.Rat {
	if len(v.text) > 64 {
		return nil
	}
	if i := strings.IndexAny(v.text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(v.text[i+1:]); err != nil || e > 400 || e < -400 {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return nil
	}
	return r
}

func (v *value) float() float64 {
	f, _ := strconv.ParseFloat(v.text, 64) // out of range gives an infinity
	return f
}

// compare orders two numbers.
func compare(a, b *value) int {
	fa, fb := a.float(), b.float()
	switch {
	case fa < fb:
		return -1
	case fa > fb:
		return 1
	case a.text == b.text:
		return 0
	}
	ra, rb := a.exact(), b.exact()
	if ra == nil || rb == nil {
		return 0
	}
	return ra.Cmp(rb)
}

// multipleOf reports whether a is a multiple of b, which must be above zero.
func multipleOf(a, b *value) bool {
	ra, rb := a.exact(), b.exact()
	if ra == nil || rb == nil {
		fb := b.float()
		return fb == 0 || math.Mod(a.float(), fb) == 0
	}
	return rb.Sign() == 0 || ra.Quo(ra, rb).IsInt()
}

// equal compares as JSON Schema does: numbers by value, members in any order.
func equal(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case isString:
		return a.text == b.text
	case isNumber:
		return compare(a, b) == 0
	case isArray:
		return slices.EqualFunc(a.items, b.items, equal)
	case isObject:
		if len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			if other := b.member(m.name); other == nil || !equal(m.value, other) {
				return false
			}
		}
	}
	return true
}
