package jsonschema

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Of is the schema of the JSON objects that decode into a struct type. Fields go
// by their json tags; one is required unless it is a pointer or its tag says
// omitempty or omitzero. The tag jsonschema describes a field.
//
// Types whose JSON form is not known (channels, functions, interfaces with
// methods, own decoders of JSON), and types that hold themselves, are an error.
func Of(t reflect.Type) (jsontext.Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is no struct, and arguments are an object", t)
	}
	var d describer
	if err := d.object(t, ""); err != nil {
		return nil, err
	}
	return d.out, nil
}

type describer struct {
	out  []byte
	path []reflect.Type // structs that are being described
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	durationType    = reflect.TypeFor[time.Duration]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalerType = reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()
)

func (d *describer) text(s string) { d.out, _ = jsontext.AppendQuote(d.out, s) }

func (d *describer) add(s string) { d.out = append(d.out, s...) }

// open begins a schema of a JSON type, which the caller closes.
func (d *describer) open(name, description string) {
	d.add(`{"type":`)
	d.text(name)
	d.describe(",", description)
}

func (d *describer) describe(before, description string) {
	if description != "" {
		d.add(before + `"description":`)
		d.text(description)
	}
}

func (d *describer) value(t reflect.Type, description string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	itself := reflect.PointerTo(t).Implements(unmarshalerType)
	bytes := (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8
	switch {
	case t == timeType:
		d.open("string", description)
		d.add(`,"format":"date-time"}`)
		return nil
	case itself && bytes || t.Kind() == reflect.Interface && t.NumMethod() == 0: // any JSON, such as a jsontext.Value
		d.add("{")
		d.describe("", description)
		d.add("}")
		return nil
	case t == durationType:
		return fmt.Errorf("%v has no agreed form in JSON: take a number of seconds, or a text", t)
	case itself:
		return fmt.Errorf("%v decodes JSON by itself, in a form that is not known", t)
	case reflect.PointerTo(t).Implements(textType):
		d.open("string", description)
		d.add("}")
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		d.open("string", description)
	case reflect.Bool:
		d.open("boolean", description)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.open("integer", description)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.open("integer", description)
		d.add(`,"minimum":0`)
	case reflect.Float32, reflect.Float64:
		d.open("number", description)
	case reflect.Slice, reflect.Array:
		if bytes {
			d.open("string", description)
			d.add(`,"contentEncoding":"base64"`)
			break
		}
		d.open("array", description)
		d.add(`,"items":`)
		if err := d.value(t.Elem(), ""); err != nil {
			return err
		}
		if t.Kind() == reflect.Array {
			d.add(fmt.Sprintf(`,"minItems":%d,"maxItems":%[1]d`, t.Len()))
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%v has keys that are no strings", t)
		}
		d.open("object", description)
		d.add(`,"additionalProperties":`)
		if err := d.value(t.Elem(), ""); err != nil {
			return err
		}
	case reflect.Struct:
		return d.object(t, description)
	default:
		return fmt.Errorf("%v has no form in JSON", t)
	}
	d.add("}")
	return nil
}

func (d *describer) object(t reflect.Type, description string) error {
	if slices.Contains(d.path, t) {
		return fmt.Errorf("%v holds itself", t)
	}
	d.path = append(d.path, t)
	defer func() { d.path = d.path[:len(d.path)-1] }()
	d.open("object", description)
	d.add(`,"properties":{`)
	var required []string
	for i, f := range fields(t) {
		if i > 0 {
			d.add(",")
		}
		d.text(f.name)
		d.add(":")
		if err := d.value(f.Type, f.Tag.Get("jsonschema")); err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if !f.optional {
			required = append(required, f.name)
		}
	}
	d.add("}")
	for i, name := range required {
		d.add([]string{`,"required":[`, ","}[min(i, 1)])
		d.text(name)
	}
	if required != nil {
		d.add("]")
	}
	d.add("}")
	return nil
}

type field struct {
	reflect.StructField
	name     string
	optional bool
}

// fields lists the fields that JSON shows, those of embedded structs at their
// place. A name that comes twice counts where it is least deep.
func fields(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" || !f.IsExported():
			continue
		case f.Anonymous && inner.Kind() == reflect.Struct && name == "":
			continue // its fields follow
		case !tagged || name == "":
			name = f.Name
		}
		if slices.ContainsFunc(out, func(o field) bool { return o.name == name }) {
			continue
		}
		optional := f.Type.Kind() == reflect.Pointer
		for option := range strings.SplitSeq(options, ",") {
			optional = optional || option == "omitempty" || option == "omitzero"
		}
		out = append(out, field{f, name, optional})
	}
	return out
}
