// Package jsonschema checks JSON values against JSON Schema and converts what
// nearly fits. It serves the arguments of tool calls: schemas come from tools
// and from servers that a user trusts no further than their tools, values from
// models.
//
// All drafts from 4 to 2020-12 are read, whatever $schema says, since tools
// mix them. $dynamicRef and $recursiveRef work as $ref does. References reach
// within the schema only; one that leads nowhere accepts no value. A pattern
// that Go's regular expressions cannot do (look-around, back references)
// accepts every string, and so does an unknown format: it is better to let the
// tool decide than to refuse a good call.
//
// It is our own because the libraries compile their meta-schemas when a program
// starts, which costs more than all the rest of a start, and because a call of
// a plain schema is checked on the bytes as they came, without allocation.
package jsonschema

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	never bool // accepts nothing: false, or a reference to nowhere
	plain bool // fast decides it

	types    []string // in their order, for the words of problems
	several  bool     // types is a list, be it of one
	kinds    kind     // the same as a set; 0 for every kind
	enum     []*value
	enumText string
	constant *value

	properties   []property // and names that are only required
	required     []string
	patterns     []patternSchema
	additional   *Schema
	names        *Schema
	minProps     int
	maxProps     int // -1 for none
	dependents   []dependent
	unevaluated  *Schema // properties
	requiredBits uint64  // over properties, when plain

	prefix           []*Schema
	items            *Schema // of the items behind prefix
	contains         *Schema
	minContains      int
	maxContains      int // -1 for none
	minItems         int
	maxItems         int // -1 for none
	unique           bool
	unevaluatedItems *Schema

	minLength int
	maxLength int // -1 for none
	pattern   *regexp.Regexp
	format    string

	minimum, maximum, above, below, multiple *value

	ref                        *Schema
	cond, then, otherwise, not *Schema
	allOf, anyOf, oneOf        []*Schema
}

type property struct {
	name   string
	schema *Schema
	listed bool // in properties, not only required
}

type patternSchema struct {
	re     *regexp.Regexp // nil when Go cannot do it: matches nothing
	schema *Schema
}

// dependent is what the presence of a property asks for.
type dependent struct {
	name     string
	required []string
	schema   *Schema // nil for none
}

// Compile reads a schema. What is no schema, nil included, accepts everything.
func Compile(raw []byte) *Schema {
	doc, err := parse(raw)
	if err != nil {
		return newSchema()
	}
	c := &compiler{
		nodes:     map[*value]*Schema{},
		resources: map[string]*resource{},
	}
	s := c.schema(doc, c.resource(doc, ""))
	// Resolving a reference may compile more of the document, with references of its own.
	for len(c.refs) > 0 {
		r := c.refs[0]
		c.refs = c.refs[1:]
		r.from.ref = c.resolve(r)
	}
	return s
}

func newSchema() *Schema {
	return &Schema{maxProps: -1, maxContains: -1, minContains: 1, maxItems: -1, maxLength: -1, plain: true}
}

// resource is a document or a part of it with an $id of its own.
type resource struct {
	root    *value
	base    string
	anchors map[string]*value
}

type reference struct {
	from *Schema
	to   string
	in   *resource
}

type compiler struct {
	nodes     map[*value]*Schema
	resources map[string]*resource
	refs      []reference
}

func (c *compiler) resource(root *value, base string) *resource {
	r := &resource{root: root, base: base, anchors: map[string]*value{}}
	if _, ok := c.resources[base]; !ok {
		c.resources[base] = r
	}
	return r
}

// identify opens a new resource when v has an $id, and notes anchors.
func (c *compiler) identify(v *value, in *resource) *resource {
	id := v.member("$id")
	if id == nil {
		id = v.member("id") // draft 4
	}
	if id != nil && id.kind == isString {
		uri, fragment, _ := strings.Cut(id.text, "#")
		if uri != "" {
			abs := absolute(in.base, uri)
			if in.root == v {
				// The document's own id names the resource that is there already.
				in.base = abs
				c.resources[abs] = in
			} else {
				in = c.resource(v, abs)
			}
		}
		if fragment != "" {
			in.anchors[fragment] = v
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.member(key); a != nil && a.kind == isString {
			in.anchors[a.text] = v
		}
	}
	return in
}

func absolute(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

func (c *compiler) resolve(r reference) *Schema {
	nowhere := newSchema()
	nowhere.never, nowhere.plain = true, false
	uri, fragment, _ := strings.Cut(r.to, "#")
	in := r.in
	if uri != "" {
		if in = c.resources[absolute(r.in.base, uri)]; in == nil {
			return nowhere
		}
	}
	target := in.root
	if fragment != "" {
		decoded, err := url.PathUnescape(fragment)
		if err != nil {
			return nowhere
		}
		if strings.HasPrefix(decoded, "/") {
			target = in.root.at(decoded)
		} else {
			target = in.anchors[decoded]
		}
	}
	if target == nil {
		return nowhere
	}
	return c.schema(target, in)
}

// schema compiles v, once.
func (c *compiler) schema(v *value, in *resource) *Schema {
	if s := c.nodes[v]; s != nil {
		return s
	}
	s := newSchema()
	c.nodes[v] = s
	switch v.kind {
	case isFalse:
		s.never = true
		s.plain = false
		return s
	case isObject:
	default:
		return s // true, and what is no schema
	}
	in = c.identify(v, in)
	s.plain = true
	sub := func(v *value) *Schema {
		child := c.schema(v, in)
		s.plain = s.plain && child.plain
		return child
	}
	list := func(v *value) []*Schema {
		if v.kind != isArray {
			return nil
		}
		out := make([]*Schema, len(v.items))
		for i, item := range v.items {
			out[i] = sub(item)
		}
		return out
	}
	for _, m := range v.members {
		s.keyword(c, in, m.name, m.value, sub, list)
	}
	if items, rest := v.member("items"), v.member("additionalItems"); rest != nil && items != nil && items.kind == isArray {
		s.items = sub(rest)
	}
	s.finish(v)
	return s
}

// keyword takes over one keyword. Those that fast cannot decide make the schema
// less than plain.
func (s *Schema) keyword(c *compiler, in *resource, name string, v *value, sub func(*value) *Schema, list func(*value) []*Schema) {
	switch name {
	case "type":
		s.setTypes(v)
	case "properties":
		for _, m := range v.members {
			s.properties = append(s.properties, property{name: m.name, schema: sub(m.value), listed: true})
		}
	case "required":
		s.required = v.strings()
	case "additionalProperties":
		s.additional = c.schema(v, in)
		s.plain = s.plain && (s.additional.plain || v.kind == isFalse)
	case "items":
		if v.kind == isArray { // until draft 2019-09
			s.prefix = list(v)
		} else {
			s.items = sub(v)
		}
	case "enum":
		s.enum = v.items
		if v.kind == isArray {
			s.enumText = string(v.append(nil))
		}
		s.plain = s.plain && !slices.ContainsFunc(v.items, func(v *value) bool { return v.kind != isString })
	case "$defs", "definitions":
		// Compiled so that ids and anchors in them are known.
		for _, m := range v.members {
			c.schema(m.value, in)
		}
	default:
		if s.special(c, in, name, v, sub, list) {
			s.plain = false
		}
	}
}

// special takes over the keywords that fast does not know, and reports whether
// name is one.
func (s *Schema) special(c *compiler, in *resource, name string, v *value, sub func(*value) *Schema, list func(*value) []*Schema) bool {
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if v.kind != isString {
			return false
		}
		c.refs = append(c.refs, reference{from: s, to: v.text, in: in})
	case "const":
		s.constant = v
	case "patternProperties":
		for _, m := range v.members {
			s.patterns = append(s.patterns, patternSchema{re: compilePattern(m.name), schema: sub(m.value)})
		}
	case "propertyNames":
		s.names = sub(v)
	case "minProperties":
		s.minProps = v.int(0)
	case "maxProperties":
		s.maxProps = v.int(-1)
	case "dependentRequired":
		for _, m := range v.members {
			s.dependents = append(s.dependents, dependent{name: m.name, required: m.value.strings()})
		}
	case "dependentSchemas":
		for _, m := range v.members {
			s.dependents = append(s.dependents, dependent{name: m.name, schema: sub(m.value)})
		}
	case "dependencies": // until draft 7: either form
		for _, m := range v.members {
			d := dependent{name: m.name}
			if m.value.kind == isArray {
				d.required = m.value.strings()
			} else {
				d.schema = sub(m.value)
			}
			s.dependents = append(s.dependents, d)
		}
	case "unevaluatedProperties":
		s.unevaluated = sub(v)
	case "prefixItems":
		s.prefix = list(v)
	case "contains":
		s.contains = sub(v)
	case "minContains":
		s.minContains = v.int(1)
	case "maxContains":
		s.maxContains = v.int(-1)
	case "minItems":
		s.minItems = v.int(0)
	case "maxItems":
		s.maxItems = v.int(-1)
	case "uniqueItems":
		s.unique = v.kind == isTrue
	case "unevaluatedItems":
		s.unevaluatedItems = sub(v)
	case "minLength":
		s.minLength = v.int(0)
	case "maxLength":
		s.maxLength = v.int(-1)
	case "pattern":
		s.pattern = compilePattern(v.text)
	case "format":
		if v.kind != isString || !knownFormat(v.text) {
			return false
		}
		s.format = v.text
	case "minimum":
		s.minimum = v.number()
	case "maximum":
		s.maximum = v.number()
	case "exclusiveMinimum":
		s.above = v.number()
	case "exclusiveMaximum":
		s.below = v.number()
	case "multipleOf":
		s.multiple = v.number()
	case "if":
		s.cond = sub(v)
	case "then":
		s.then = sub(v)
	case "else":
		s.otherwise = sub(v)
	case "not":
		s.not = sub(v)
	case "allOf":
		s.allOf = list(v)
	case "anyOf":
		s.anyOf = list(v)
	case "oneOf":
		s.oneOf = list(v)
	default:
		return false
	}
	return true
}

// finish settles what depends on several keywords.
func (s *Schema) finish(v *value) {
	// Draft 4: exclusiveMinimum is a flag of minimum.
	if f := v.member("exclusiveMinimum"); f != nil && f.kind == isTrue {
		s.above, s.minimum = s.minimum, nil
	}
	if f := v.member("exclusiveMaximum"); f != nil && f.kind == isTrue {
		s.below, s.maximum = s.maximum, nil
	}
	if s.prefix != nil {
		s.plain = false
	}
	for _, name := range s.required {
		if s.property(name) == nil {
			s.properties = append(s.properties, property{name: name})
		}
	}
	if len(s.properties) > 64 {
		s.plain = false
	}
	if s.plain {
		for _, name := range s.required {
			for i := range s.properties {
				if s.properties[i].name == name {
					s.requiredBits |= 1 << i
				}
			}
		}
	}
}

func (s *Schema) setTypes(v *value) {
	names := []string{v.text}
	if s.several = v.kind == isArray; s.several {
		names = v.strings()
	}
	for _, name := range names {
		k, ok := kindOf(name)
		if !ok {
			s.types, s.kinds = nil, 0 // a type from elsewhere: no opinion
			return
		}
		s.types = append(s.types, name)
		s.kinds |= k
	}
}

func (s *Schema) property(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

// compilePattern translates an ECMA-262 pattern; nil when Go cannot do it.
func compilePattern(pattern string) *regexp.Regexp {
	re, err := regexp.Compile(goPattern(pattern))
	if err != nil {
		return nil
	}
	return re
}

// goPattern writes \uXXXX and \u{X…} the way Go does.
func goPattern(p string) string {
	if !strings.Contains(p, `\u`) {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 >= len(p) {
			b.WriteByte(p[i])
			continue
		}
		if p[i+1] != 'u' {
			b.WriteString(p[i : i+2])
			i++
			continue
		}
		digits := ""
		rest := p[i+2:]
		end := i + 5
		if strings.HasPrefix(rest, "{") {
			n := strings.IndexByte(rest, '}')
			if n > 0 {
				digits, end = rest[1:n], i+2+n
			}
		} else if len(rest) >= 4 {
			digits = rest[:4]
		}
		if _, err := strconv.ParseUint(digits, 16, 32); err != nil {
			b.WriteString(p[i:]) // not an escape that anyone knows
			break
		}
		b.WriteString(`\x{` + digits + `}`)
		i = end
	}
	return b.String()
}
