package jsonschema

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Coerce checks the JSON value raw. One that fits is returned as it is. One
// that does not is converted where that is sure to be meant, and returned in
// compact form with its order kept; what still does not fit is a problem.
//
// The conversions: null in an optional property that refuses it is left out.
// Numeric text, blank text (0), true and false (1 and 0), as words too, and null
// (0) become a number, for an integer without its fraction. "true", "false", 1, 0
// and null (false) become a boolean. A number, a boolean and null become text. A
// single value becomes a list of one, but no tuple. Of several types or branches
// the first that works is taken, for types without loss, and none when the value
// fits one already. Of a list of values the one is taken that the value converts
// to.
func (s *Schema) Coerce(raw []byte) ([]byte, []Problem) {
	if s.plain {
		var r jsonwire.Reader
		r.Reset(raw)
		if s.fast(&r) && r.End() == nil {
			return raw, nil
		}
	}
	v, err := parse(raw)
	if err != nil {
		return nil, []Problem{{Path: "root", Reason: "expected JSON: " + err.Error()}}
	}
	b := newBudget(len(raw))
	if fits(s, v, b) {
		return raw, nil
	}
	co := coercion{budget: b}
	v = co.value(s, v)
	c := check{budget: b}
	if c.schema(s, v) {
		return v.append(nil), nil
	}
	if len(c.problems) == 0 {
		c.fail("does not fit")
	}
	return nil, c.problems
}

// coercion converts values, which it owns, along a schema.
type coercion struct {
	budget *budget
	active []*Schema // references followed for the value at hand, to stop at circles
}

func (c *coercion) value(s *Schema, v *value) *value {
	if !c.budget.spend() {
		return v
	}
	if s.ref != nil {
		v = c.follow(s.ref, v)
	}
	for _, sub := range s.allOf {
		v = c.value(sub, v)
	}
	if s.anyOf != nil {
		v = c.branch(s.anyOf, v)
	}
	if s.oneOf != nil {
		v = c.branch(s.oneOf, v)
	}
	active := c.active
	v = c.literal(s, v)
	if s.kinds == 0 || s.accepts(v) {
		c.active = nil // what is inside is another value
	} else {
		v = s.convert(v) // a list of one holds the value at hand
	}
	switch v.kind {
	case isObject:
		c.object(s, v)
	case isArray:
		for i, item := range v.items {
			if i < len(s.prefix) {
				v.items[i] = c.value(s.prefix[i], item)
			} else if s.items != nil {
				v.items[i] = c.value(s.items, item)
			}
		}
	}
	c.active = active
	return v
}

// literal is the one of the values that s names which v stands for: "1" for 1,
// 1 for true.
func (c *coercion) literal(s *Schema, v *value) *value {
	list := s.enum
	if s.constant != nil {
		list = []*value{s.constant}
	}
	if contains(list, v) {
		return v
	}
	for _, named := range list {
		t := named.kind.name()
		if t == "object" || t == "array" || t == "null" {
			continue
		}
		if w := convertTo(t, v); equal(w, named) && (s.constant != nil || fits(s, w, c.budget)) {
			return w
		}
	}
	return v
}

func (c *coercion) follow(s *Schema, v *value) *value {
	if slices.Contains(c.active, s) {
		return v
	}
	c.active = append(c.active, s)
	v = c.value(s, v)
	c.active = c.active[:len(c.active)-1]
	return v
}

func (c *coercion) branch(branches []*Schema, v *value) *value {
	for _, b := range branches {
		if fits(b, v, c.budget) {
			return v
		}
	}
	for _, b := range branches {
		if converted := c.value(b, v.clone()); fits(b, converted, c.budget) {
			return converted
		}
	}
	return v
}

func (c *coercion) object(s *Schema, v *value) {
	kept := v.members[:0]
	for _, m := range v.members {
		own := s.property(m.name)
		known := own != nil && own.listed
		if known {
			if m.value.kind == isNull && !s.requires(m.name) && !fits(own.schema, m.value, c.budget) {
				continue
			}
			m.value = c.value(own.schema, m.value)
		}
		for _, p := range s.patterns {
			if p.re != nil && p.re.MatchString(m.name) {
				known = true
				m.value = c.value(p.schema, m.value)
			}
		}
		if !known && s.additional != nil {
			m.value = c.value(s.additional, m.value)
		}
		kept = append(kept, m)
	}
	v.members = kept
}

func (s *Schema) requires(name string) bool {
	return slices.Contains(s.required, name)
}

// convert converts v to the type of s, or to the first of several that it can
// become without loss. A tuple is not made of a single value.
func (s *Schema) convert(v *value) *value {
	if !s.several {
		if s.prefix != nil && s.types[0] == "array" {
			return v
		}
		return convertTo(s.types[0], v)
	}
	for _, t := range s.types {
		if w := exact(t, v); w != nil {
			return w
		}
	}
	return v
}

// exact is v as a value of type t, one of several: words, fractions and lists of
// one may be meant for another of them. It is nil when v is not sure to be meant.
func exact(t string, v *value) *value {
	switch {
	case t == "array":
		return nil
	case t == "null" && v.kind == isString && v.text != "":
		return nil
	case t == "string" && v.kind == isNull:
		return &value{kind: isString}
	case t == "boolean" && v.kind == isString && v.text != "true" && v.text != "false":
		return nil
	}
	w := convert(t, v)
	if w != nil && t == "integer" && (v.kind == isNumber || v.kind == isString && !wholeNumber(v.text)) {
		return nil
	}
	return w
}

// wholeNumber reports whether text stands for a number without a fraction.
func wholeNumber(text string) bool {
	number, ok := parseNumber(text)
	return ok && wholeText(number)
}

// convertTo converts v to the type t. Where only a number will do, blank text is
// 0 and the words true and false are 1 and 0.
func convertTo(t string, v *value) *value {
	if (t == "number" || t == "integer") && v.kind == isString {
		switch {
		case jsonwire.Blank(v.text), strings.EqualFold(v.text, "false"):
			return &value{kind: isNumber, text: "0"}
		case strings.EqualFold(v.text, "true"):
			return &value{kind: isNumber, text: "1"}
		}
	}
	if w := convert(t, v); w != nil {
		return w
	}
	return v
}

// convert is v as a value of type t, nil when it is not sure to be meant.
func convert(t string, v *value) *value {
	switch t {
	case "number", "integer":
		text, ok := v.text, v.kind == isNumber
		switch v.kind {
		case isString:
			text, ok = parseNumber(v.text)
		case isTrue:
			text, ok = "1", true
		case isFalse, isNull:
			text, ok = "0", true
		}
		if !ok {
			return nil
		}
		if t == "integer" && !wholeText(text) {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil
			}
			text = string(jsonwire.AppendFloat(nil, math.Trunc(f)))
		}
		return &value{kind: isNumber, text: text}
	case "boolean":
		switch {
		case v.kind == isNull, v.kind == isNumber && v.float() == 0,
			v.kind == isString && (strings.EqualFold(v.text, "false") || v.text == "0"):
			return &value{kind: isFalse}
		case v.kind == isNumber && v.float() == 1,
			v.kind == isString && (strings.EqualFold(v.text, "true") || v.text == "1"):
			return &value{kind: isTrue}
		}
	case "string":
		switch v.kind {
		case isNumber, isTrue, isFalse, isNull:
			text, err := jsonwire.AppendCompact(nil, v.append(nil))
			if err != nil {
				return nil
			}
			return &value{kind: isString, text: string(text)}
		}
	case "array":
		return &value{kind: isArray, items: []*value{v}}
	case "null":
		if v.kind == isFalse || v.kind == isNumber && v.float() == 0 ||
			v.kind == isString && (v.text == "" || strings.EqualFold(v.text, "null")) {
			return &value{kind: isNull}
		}
	}
	return nil
}

// parseNumber reads text as JavaScript's Number does, except that text without
// a digit is no number, and gives it in JSON form.
func parseNumber(text string) (string, bool) {
	text = jsonwire.Trim(text)
	if len(text) > 2 && text[0] == '0' {
		switch text[1] {
		case 'x', 'X', 'o', 'O', 'b', 'B':
			n, err := strconv.ParseUint(text, 0, 64)
			if err != nil || strings.Contains(text, "_") {
				return "", false
			}
			return strconv.FormatUint(n, 10), true
		}
	}
	digits := false
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.', c == 'e', c == 'E', c == '+', c == '-':
		default:
			return "", false
		}
	}
	if !digits {
		return "", false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return "", false
	}
	if jsonwire.Check([]byte(text)) == nil && wholeText(text) && !strings.ContainsAny(text, ".eE") && text != "-0" {
		return text, true // every digit counts
	}
	return string(jsonwire.AppendFloat(nil, f)), true
}
