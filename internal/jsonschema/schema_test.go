package jsonschema

import (
	"fmt"
	"strings"
	"testing"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestCoerce(t *testing.T) {
	for _, c := range []struct{ name, schema, in, out string }{
		{"what fits keeps its bytes", `{"properties":{"a":{"type":"number"}}}`, `{ "a" : 1.50 }`, `{ "a" : 1.50 }`},
		{"order and big numbers stay", `{"properties":{"n":{"type":"number"}}}`, `{"z":12345678901234567890,"n":"1e3","a":[1.0]}`, `{"z":12345678901234567890,"n":1000,"a":[1.0]}`},
		{"big whole text keeps its digits", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"12345678901234567890"}`, `{"n":12345678901234567890}`},
		{"white space around", `{"properties":{"n":{"type":"number"}}}`, `{"n":" 7\n"}`, `{"n":7}`},
		{"hexadecimal", `{"properties":{"n":{"type":"number"}}}`, `{"n":"0x1F"}`, `{"n":31}`},
		{"fraction without a leading digit", `{"properties":{"n":{"type":"number"}}}`, `{"n":".5"}`, `{"n":0.5}`},
		{"fraction of text cut", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"-4.9"}`, `{"n":-4}`},
		{"text of a named number", `{"items":{"enum":[1,"b",true]}}`, `["1","b","true"]`, `[1,"b",1]`},
		{"true for a named number", `{"items":{"const":1}}`, `[true]`, `[1]`},
		{"words for a number", `{"items":{"type":"integer"}}`, `["True","false"]`, `[1,0]`},
		{"the word null of several types", `{"items":{"type":["null","string"]}}`, `["null",5]`, `["null","5"]`},
		{"of several types the first, without loss", `{"items":{"type":["integer","boolean","string"]}}`, `[4.5,null,"x"]`, `["4.5",0,"x"]`},
		{"blank, false and 0 of several types", `{"items":{"type":["boolean","null"]}}`, `["false","",0]`, `[false,null,false]`},
		{"exact words of several types", `{"items":{"type":["boolean","integer"]}}`, `["1","true"," 7 ","1e2"]`, `[1,true,7,100]`},
		{"null as one of several types", `{"items":{"type":["string"]}}`, `[null,1e2]`, `["","100"]`},
		{"a list of one type", `{"items":{"type":["null"]}}`, `["",false]`, `[null,null]`},
		{"no list for one of several types", `{"items":{"type":["array","string"]}}`, `[10]`, `["10"]`},
		{"blank text", `{"items":{"type":"number"}}`, `[""," \n"]`, `[0,0]`},
		{"booleans are 1 and 0", `{"items":{"type":"number"}}`, `[true,false,null]`, `[1,0,0]`},
		{"words and nothing are 1 and 0", `{"items":{"type":"number"}}`, `["True","false",""," "]`, `[1,0,0,0]`},
		{"constants", `{"items":{"const":1}}`, `["0x1",true,1.0]`, `[1,1,1.0]`},
		{"members of an enumeration", `{"items":{"enum":["2",true,null]}}`, `[2,"true",null]`, `["2",true,null]`},
		{"boolean forms", `{"items":{"type":"boolean"}}`, `["True","false",1,0]`, `[true,false,true,false]`},
		{"null in an optional property", `{"properties":{"a":{"type":"string"}}}`, `{"a":null,"b":null}`, `{"b":null}`},
		{"null that is welcome", `{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`},
		{"null in a required property", `{"properties":{"a":{"type":"number"}},"required":["a"]}`, `{"a":null}`, `{"a":0}`},
		{"several types, none fits", `{"items":{"type":["integer","null"]}}`, `["7",""]`, `[7,null]`},
		{"several types, one fits", `{"items":{"type":["number","string"]}}`, `["7",7]`, `["7",7]`},
		{"list of one, its item converted", `{"properties":{"l":{"type":"array","items":{"type":"number"}}}}`, `{"l":"3"}`, `{"l":[3]}`},
		{"tuple", `{"prefixItems":[{"type":"number"},{"type":"string"}],"items":{"type":"boolean"}}`, `["1",2,"true"]`, `[1,"2",true]`},
		{"pattern properties", `{"patternProperties":{"^n_":{"type":"number"}}}`, `{"n_a":"1","x":"1"}`, `{"n_a":1,"x":"1"}`},
		{"additional properties", `{"properties":{"a":{}},"additionalProperties":{"type":"number"}}`, `{"a":"1","b":"2"}`, `{"a":"1","b":2}`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"b":{"type":"string"}}}]}`, `{"a":"1","b":2}`, `{"a":1,"b":"2"}`},
		{"reference", `{"$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"1"}`, `{"a":1}`},
		{"reference to itself, deeper", `{"properties":{"n":{"type":"number"},"next":{"$ref":"#"}}}`, `{"next":{"next":{"n":"1"}}}`, `{"next":{"next":{"n":1}}}`},
		{"first branch that works", `{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"number"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"boolean"}},"required":["k"]}]}`, `{"k":"b","n":"true"}`, `{"k":"b","n":true}`},
		{"duplicates: the last counts", `{"properties":{"a":{"type":"number"}}}`, `{"a":"x","a":"1"}`, `{"a":1}`},
		{"reference to nowhere, not used", `{"properties":{"a":{"$ref":"#/nowhere"}}}`, `{"b":1}`, `{"b":1}`},
		{"no schema at all", ``, `{"a":1}`, `{"a":1}`},
		{"type from elsewhere", `{"type":"any"}`, `{"a":1}`, `{"a":1}`},
	} {
		got, problems := Compile([]byte(c.schema)).Coerce([]byte(c.in))
		if len(problems) > 0 || string(got) != c.out {
			t.Errorf("%s: %s %v, want %s", c.name, got, problems, c.out)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ schema, in, want string }{
		{`{"properties":{"n":{"type":"object"}}}`, `{"n":5}`, "n: expected object, got integer"},
		{`{"properties":{"n":{"type":"object"}}}`, `{"n":5.0}`, "n: expected object, got integer"},
		{`{"properties":{"n":{"type":"object"}}}`, `{"n":5.5}`, "n: expected object, got number"},
		{`{"properties":{"n":{"type":"number"}}}`, `{"n":"x"}`, "n: expected number, got string"},
		{`{"type":"object"}`, `[]`, "root: expected object, got array"},
		{`{"properties":{"a":{"type":"number"},"b":{"type":"number"},"c":{}},"required":["c"],"additionalProperties":false}`, `{"b":"x","z":1,"a":"y"}`,
			"c: missing; a: expected number, got string; b: expected number, got string; z: unknown field"},
		{`{"items":{"type":["number","boolean"]}}`, `["x"]`, "0: expected number or boolean, got string"},
		{`{"items":{"type":["boolean","null"]}}`, `["TRUE","null"]`, "0: expected boolean or null, got string; 1: expected boolean or null, got string"},
		{`{"items":{"type":["integer"]}}`, `["4.9"]`, "0: expected integer, got string"},
		{`{"properties":{"a":{"type":"array","prefixItems":[{}]}}}`, `{"a":"x"}`, "a: expected array, got string"},
		{`{"items":{"type":"integer"}}`, `["1x"]`, "0: expected integer, got string"},
		{`{"items":{"minimum":3}}`, `[2]`, "0: expected >= 3"},
		{`{"items":{"exclusiveMaximum":3,"multipleOf":2}}`, `[3]`, "0: expected < 3; 0: expected a multiple of 2"},
		{`{"items":{"minimum":3,"exclusiveMinimum":true}}`, `[3]`, "0: expected > 3"},
		{`{"items":{"minLength":2}}`, `["é"]`, "0: expected at least 2 characters"},
		{`{"items":{"maxLength":1}}`, `["ab"]`, "0: expected at most 1 characters"},
		{`{"minItems":2,"uniqueItems":true}`, `[1]`, "root: expected at least 2 items"},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1.0}]`, "root: expected unique items"},
		{`{"items":{"pattern":"^\\d+$"}}`, `["a"]`, `0: expected to match ^\d+$`},
		{`{"items":{"pattern":"^\\u00e9$"}}`, `["é","e"]`, `1: expected to match ^\x{00e9}$`},
		{`{"items":{"const":{"a":1}}}`, `[{"a":2}]`, `0: expected {"a":1}`},
		{`{"items":{"anyOf":[{"const":"a"},{"const":"b"}]}}`, `["c"]`, `0: expected one of ["a","b"]`},
		{`{"items":{"anyOf":[{"type":"number"},{"type":"boolean"}]}}`, `["x"]`, "0: expected number or boolean, got string"},
		{`{"items":{"oneOf":[{"type":"object","required":["a"]},{"type":"string"}]}}`, `[{}]`, "0.a: missing"},
		{`{"items":{"oneOf":[{"minimum":1},{"maximum":9}]}}`, `[5]`, "0: matches more than one alternative"},
		{`{"items":{"anyOf":[{"type":"number"},{"properties":{"a":{"type":"number"},"b":{"type":"number"}}},{"properties":{"a":{"type":"string"}}}]}}`, `[{"a":[1],"b":1}]`, "0.a: expected number, got array"},
		{`{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"k":2}`, "b: missing"},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "b: required when a is present"},
		{`{"dependencies":{"a":{"required":["c"]}}}`, `{"a":1}`, "c: missing"},
		{`{"properties":{"a":{}},"unevaluatedProperties":false,"allOf":[{"properties":{"b":{}}}]}`, `{"a":1,"b":1,"c":1}`, "c: unknown field"},
		{`{"prefixItems":[{}],"unevaluatedItems":false}`, `[1,2]`, "1: no value is allowed here"},
		{`{"items":[{"type":"number"}],"additionalItems":false}`, `[1,2]`, "1: no value is allowed here"},
		{`{"not":{"required":["a"]}}`, `{"a":1}`, "root: must not match the schema in not"},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, "ab: invalid property name"},
		{`{"properties":{"a":{"$ref":"#/nowhere"}}}`, `{"a":1}`, "a: no value is allowed here"},
		{`{"$ref":"#"}`, `1`, "root: cannot be checked: the schema refers to itself"},
		{`{"items":{"format":"email"}}`, `["a@b.c","a"]`, "1: expected format email"},
		{`{"contains":{"type":"number"}}`, `["a"]`, "root: expected at least 1 matching item"},
	} {
		_, problems := Compile([]byte(c.schema)).Coerce([]byte(c.in))
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.Path+": "+p.Reason)
		}
		if got := strings.Join(lines, "; "); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.schema, c.in, got, c.want)
		}
	}
}

func TestHostileSchemas(t *testing.T) {
	// Twenty-five definitions, each of which tries the next one twice.
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 25 {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	b.WriteString(`"d25":{"type":"number"}}}`)
	if Compile([]byte(b.String())).valid([]byte(`"x"`)) {
		t.Error("text is no number")
	}
	if Compile([]byte(`{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`)).valid([]byte(`1`)) {
		t.Error("a circle accepts nothing")
	}
	if !Compile([]byte(`{"pattern":"(?=a)b"}`)).valid([]byte(`"x"`)) {
		t.Error("a pattern that Go cannot do must not refuse")
	}
	if Compile([]byte(`{"multipleOf":1e-999999999,"minimum":1e999999999}`)).valid([]byte(`1e-999999999`)) {
		t.Error("tiny is below huge")
	}
}

func TestPlainSchemasDoNotAllocate(t *testing.T) {
	s := Compile([]byte(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"mode":{"enum":["a","b"]},
		"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"}},"required":["old"],"additionalProperties":false}}},"required":["path"]}`))
	in := []byte(`{"path":"a/b.go","limit":20,"mode":"b","edits":[{"old":"x"},{"old":"y"}]}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, problems := s.Coerce(in); problems != nil {
			t.Fatal(problems)
		}
	}); n > 1 { // the reader's stack of brackets
		t.Errorf("%v allocations for a call that fits", n)
	}
}

// TestAgainstLibrary compares verdicts with a complete implementation on random
// schemas and values.
func TestAgainstLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := drawSchema(t, 2)
		value := drawValue(t, 3)
		doc, err := santhosh.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c := santhosh.NewCompiler()
		if err := c.AddResource("mem:///s.json", doc); err != nil {
			t.Fatal(err)
		}
		theirs, err := c.Compile("mem:///s.json")
		if err != nil {
			t.Skip() // what is no schema there
		}
		v, err := santhosh.UnmarshalJSON(strings.NewReader(value))
		if err != nil {
			t.Fatal(err)
		}
		want := theirs.Validate(v) == nil
		ours := Compile([]byte(schema))
		if got := ours.valid([]byte(value)); got != want {
			t.Fatalf("schema %s\nvalue %s\nours %v, want %v", schema, value, got, want)
		}
		coerced, problems := ours.Coerce([]byte(value))
		switch {
		case want && (len(problems) > 0 || string(coerced) != value):
			t.Fatalf("schema %s\nvalue %s changed to %s, %v", schema, value, coerced, problems)
		case len(problems) == 0 && !ours.valid(coerced):
			t.Fatalf("schema %s\nvalue %s: %s does not fit", schema, value, coerced)
		}
	})
}

func drawValue(t *rapid.T, depth int) string {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return "null"
	case 1:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
	case 2, 3:
		return rapid.SampledFrom([]string{"0", "1", "-1", "2.5", "3.0", "4", "1e2"}).Draw(t, "number")
	case 4:
		return rapid.SampledFrom([]string{`""`, `"a"`, `"ab"`, `"1"`, `"true"`}).Draw(t, "string")
	case 5:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = drawValue(t, depth-1)
		}
		return "[" + strings.Join(items, ",") + "]"
	default:
		var members []string
		for _, name := range []string{"a", "b", "c"} {
			if rapid.Bool().Draw(t, name) {
				members = append(members, fmt.Sprintf("%q:%s", name, drawValue(t, depth-1)))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
}

func drawSchema(t *rapid.T, depth int) string {
	if rapid.IntRange(0, 9).Draw(t, "boolean schema") == 0 {
		return rapid.SampledFrom([]string{"true", "false", "{}"}).Draw(t, "boolean")
	}
	var members []string
	add := func(name string, value func() string) {
		if rapid.IntRange(0, 5).Draw(t, name) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, value()))
		}
	}
	sub := func() string {
		if depth == 0 {
			return "true"
		}
		return drawSchema(t, depth-1)
	}
	subs := func() string {
		out := make([]string, rapid.IntRange(1, 3).Draw(t, "branches"))
		for i := range out {
			out[i] = sub()
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	of := func(options ...string) func() string {
		return func() string { return rapid.SampledFrom(options).Draw(t, "option") }
	}
	props := func() string { return fmt.Sprintf(`{"a":%s,"b":%s}`, sub(), sub()) }
	add("type", of(`"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`, `["string","null"]`, `["integer","object"]`))
	add("properties", props)
	add("required", of(`["a"]`, `["a","c"]`, `[]`))
	add("additionalProperties", sub)
	add("patternProperties", func() string { return fmt.Sprintf(`{"^[bc]$":%s}`, sub()) })
	add("propertyNames", sub)
	add("minProperties", of("1", "2"))
	add("maxProperties", of("0", "1"))
	add("dependentRequired", of(`{"a":["b"]}`))
	add("dependentSchemas", func() string { return fmt.Sprintf(`{"a":%s}`, sub()) })
	add("unevaluatedProperties", sub)
	add("items", sub)
	add("prefixItems", subs)
	add("contains", sub)
	add("minContains", of("0", "2"))
	add("maxContains", of("0", "1"))
	add("minItems", of("1", "2"))
	add("maxItems", of("0", "1"))
	add("uniqueItems", of("true", "false"))
	add("unevaluatedItems", sub)
	add("enum", of(`["a",1]`, `[null,{"a":1.0}]`, `["a","ab"]`))
	add("const", of(`"a"`, `1`, `[1]`))
	add("minimum", of("1", "2.5"))
	add("exclusiveMaximum", of("1", "3"))
	add("multipleOf", of("2", "0.5"))
	add("minLength", of("1", "2"))
	add("pattern", of(`"^a"`, `"b$"`))
	add("if", sub)
	add("then", sub)
	add("else", sub)
	add("not", sub)
	add("allOf", subs)
	add("anyOf", subs)
	add("oneOf", subs)
	add("$ref", of(`"#/properties/a"`, `"#/$defs/x"`))
	members = append(members, `"$defs":{"x":{"type":"number"}}`)
	return "{" + strings.Join(members, ",") + "}"
}

func BenchmarkCoerce(b *testing.B) {
	schema := []byte(`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"number"},"limit":{"type":"integer"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["oldText","newText"],"additionalProperties":false}}},"required":["path"],"additionalProperties":false}`)
	in := []byte(`{"path":"a/b.go","offset":10,"limit":20,"edits":[{"oldText":"a","newText":"b"},{"oldText":"c","newText":"d"}]}`)
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Compile(schema)
		}
	})
	s := Compile(schema)
	b.Run("fits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Coerce(in)
		}
	})
	b.Run("converted", func(b *testing.B) {
		b.ReportAllocs()
		other := []byte(`{"path":"a/b.go","offset":"10","limit":20,"edits":{"oldText":"a","newText":1}}`)
		for b.Loop() {
			s.Coerce(other)
		}
	})
}

// valid reports whether the JSON value raw fits s as it is.
func (s *Schema) valid(raw []byte) bool {
	if s.plain {
		var r jsonwire.Reader
		r.Reset(raw)
		if s.fast(&r) && r.End() == nil {
			return true
		}
	}
	v, err := parse(raw)
	return err == nil && fits(s, v, newBudget(len(raw)))
}
