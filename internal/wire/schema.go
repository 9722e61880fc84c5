package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// StrictSchema converts the JSON Schema of a tool's parameters to the form in
// which services can enforce it: every object lists all its properties as
// required and closed, and optional properties accept null instead. An error
// says why a schema has no such form. For services that cannot enforce some
// keywords refuse, when not nil, reports whether one with this value is among
// them.
func StrictSchema(schema []byte, refuse func(keyword string, value []byte) bool) (jsontext.Value, error) {
	if typ, _ := jsonwire.StringValue(jsonwire.Get(schema, "type")); typ != "object" {
		return nil, errors.New("the root schema is not of type object")
	}
	s := strict{refuse: refuse}
	return s.node(nil, schema)
}

// StrictTool is the schema to declare a tool with, and whether the service is
// to enforce it: when the tool asks for that (constrainedSampling of type
// json_schema), the model supports it and the schema has a strict form. An
// error says that a tool requires what cannot be had. prefer is false once
// tools that merely prefer it are to be sent without.
func StrictTool(t *llm.Tool, supported, prefer bool, refuse func(keyword string, value []byte) bool) (schema jsontext.Value, enforced bool, err error) {
	if kind, _ := jsonwire.StringValue(jsonwire.Get(t.ConstrainedSampling, "type")); kind != "json_schema" {
		return t.Parameters, false, nil
	}
	strictness, _ := jsonwire.StringValue(jsonwire.Get(t.ConstrainedSampling, "strict"))
	required := strictness == "require"
	if !required && (strictness != "prefer" || !prefer) {
		return t.Parameters, false, nil
	}
	if !supported {
		if required {
			return nil, false, fmt.Errorf(`Tool "%s" requires JSON-schema constrained sampling, but strict tools are unsupported.`, t.Name)
		}
		return t.Parameters, false, nil
	}
	converted, err := StrictSchema(t.Parameters, refuse)
	switch {
	case err == nil:
		return converted, true, nil
	case required:
		return nil, false, fmt.Errorf(`Tool "%s" requires JSON-schema constrained sampling, but %w.`, t.Name, err)
	default:
		return t.Parameters, false, nil
	}
}

type strict struct {
	refuse func(keyword string, value []byte) bool
}

// Keywords that no service can enforce.
func unenforceable(keyword string) bool {
	switch keyword {
	case "$ref", "$defs", "definitions", "allOf", "oneOf", "patternProperties", "dependentSchemas", "dependencies",
		"unevaluatedProperties", "propertyNames", "contains", "prefixItems", "not", "if", "then", "else":
		return true
	}
	return false
}

type property struct {
	name  string
	value []byte
}

func members(object []byte) []property {
	var out []property
	var r jsonwire.Reader
	r.Reset(object)
	for r.Object(); r.More(); {
		name := string(r.Key())
		value := r.Raw()
		if i := slices.IndexFunc(out, func(p property) bool { return p.name == name }); i >= 0 {
			out[i].value = value
			continue
		}
		out = append(out, property{name, value})
	}
	return out
}

func kind(value []byte) byte {
	var r jsonwire.Reader
	r.Reset(value)
	return r.Kind()
}

// strictSchema is one schema whose keywords can be enforced.
type strictSchema struct {
	keywords []property
	object   bool
	required []string
}

func (s *strictSchema) get(name string) []byte {
	for _, k := range s.keywords {
		if k.name == name {
			return k.value
		}
	}
	return nil
}

// read takes a schema apart; an error says what of it, by itself, no service
// can enforce.
func (s *strict) read(schema []byte) (*strictSchema, error) {
	if kind(schema) != '{' {
		return nil, errors.New("a schema is no object")
	}
	out := &strictSchema{keywords: members(schema)}
	for _, k := range out.keywords {
		if unenforceable(k.name) || s.refuse != nil && s.refuse(k.name, k.value) {
			return nil, fmt.Errorf("its keyword %s cannot be enforced", k.name)
		}
	}
	typ := out.get("type")
	if typ == nil && out.get("anyOf") == nil && out.get("enum") == nil {
		return nil, errors.New("a schema has no type")
	}
	if v := out.get("additionalProperties"); v != nil && string(v) != "false" {
		return nil, errors.New("an object is open to additional properties")
	}
	if name, ok := jsonwire.StringValue(typ); ok {
		out.object = name == "object"
	}
	if out.get("properties") != nil && !out.object {
		return nil, errors.New("properties stand on a schema that is no plain object")
	}
	if !out.object && typeNames(typ, "object") {
		return nil, errors.New("a union of object and other types cannot be enforced")
	}
	if v := out.get("required"); v != nil {
		if kind(v) != '[' {
			return nil, errors.New("required is no list")
		}
		var r jsonwire.Reader
		r.Reset(v)
		for r.Array(); r.More(); {
			out.required = append(out.required, r.Text())
		}
	}
	return out, nil
}

// node appends the strict form of one schema.
func (s *strict) node(dst, schema []byte) ([]byte, error) {
	in, err := s.read(schema)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	comma := func() {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	for _, k := range in.keywords {
		comma()
		dst = jsonwire.AppendString(dst, k.name)
		dst = append(dst, ':')
		if dst, err = s.keyword(dst, in, k); err != nil {
			return nil, err
		}
	}
	if in.object {
		names := propertyNames(in.get("properties"))
		for _, name := range in.required {
			if !slices.Contains(names, name) {
				return nil, fmt.Errorf("the required property %q is not declared", name)
			}
		}
		if in.get("required") == nil {
			comma()
			dst = append(dst, `"required":`...)
			dst = jsonwire.AppendStrings(dst, names)
		}
		if in.get("additionalProperties") == nil {
			comma()
			dst = append(dst, `"additionalProperties":false`...)
		}
	}
	return append(dst, '}'), nil
}

// keyword appends the strict value of a keyword of in.
func (s *strict) keyword(dst []byte, in *strictSchema, k property) ([]byte, error) {
	switch k.name {
	case "properties":
		return s.properties(dst, k.value, in.required)
	case "required":
		if !in.object {
			return nil, errors.New("required stands on a schema that is no object")
		}
		return jsonwire.AppendStrings(dst, propertyNames(in.get("properties"))), nil
	case "additionalProperties":
		return append(dst, "false"...), nil
	case "anyOf":
		return s.union(dst, k.value)
	case "items":
		if kind(k.value) == '[' {
			return nil, errors.New("tuple items cannot be enforced")
		}
		return s.node(dst, k.value)
	}
	return jsonwire.AppendCompact(dst, k.value)
}

func (s *strict) properties(dst, properties []byte, required []string) ([]byte, error) {
	if kind(properties) != '{' {
		return nil, errors.New("properties are no object")
	}
	dst = append(dst, '{')
	for i, p := range members(properties) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(dst, p.name)
		dst = append(dst, ':')
		nullable := !slices.Contains(required, p.name) && !allowsNull(p.value)
		if nullable {
			dst = append(dst, `{"anyOf":[`...)
		}
		var err error
		if dst, err = s.node(dst, p.value); err != nil {
			return nil, err
		}
		if nullable {
			dst = append(dst, `,{"type":"null"}]}`...)
		}
	}
	return append(dst, '}'), nil
}

func (s *strict) union(dst, union []byte) ([]byte, error) {
	if kind(union) != '[' {
		return nil, errors.New("anyOf is no list")
	}
	dst = append(dst, '[')
	var r jsonwire.Reader
	r.Reset(union)
	for i := 0; ; i++ {
		if i == 0 {
			r.Array()
		}
		if !r.More() {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		member := r.Raw()
		typ := jsonwire.Get(member, "type")
		if typeNames(typ, "object") || typeNames(typ, "array") || jsonwire.Get(member, "properties") != nil || jsonwire.Get(member, "items") != nil {
			return nil, errors.New("a union of objects or arrays cannot be enforced")
		}
		var err error
		if dst, err = s.node(dst, member); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// typeNames reports whether a type keyword is, or lists, the type called name.
func typeNames(typ []byte, name string) bool {
	if s, ok := jsonwire.StringValue(typ); ok {
		return s == name
	}
	var r jsonwire.Reader
	r.Reset(typ)
	if r.Kind() != '[' {
		return false
	}
	for r.Array(); r.More(); {
		if string(r.String()) == name {
			return true
		}
	}
	return false
}

func allowsNull(schema []byte) bool {
	if typeNames(jsonwire.Get(schema, "type"), "null") {
		return true
	}
	if v := jsonwire.Get(schema, "const"); string(v) == "null" {
		return true
	}
	var r jsonwire.Reader
	if v := jsonwire.Get(schema, "enum"); kind(v) == '[' {
		r.Reset(v)
		for r.Array(); r.More(); {
			if string(r.Raw()) == "null" {
				return true
			}
		}
	}
	if v := jsonwire.Get(schema, "anyOf"); kind(v) == '[' {
		r.Reset(v)
		for r.Array(); r.More(); {
			if allowsNull(r.Raw()) {
				return true
			}
		}
	}
	return false
}

func propertyNames(properties []byte) []string {
	names := []string{}
	for _, p := range members(properties) {
		names = append(names, p.name)
	}
	return names
}
