package google

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// appendTools appends the tools of a request; strict tells that one of them is
// enforced.
func appendTools(dst []byte, tools []llm.Tool, rules Rules) (out []byte, strict bool, err error) {
	dst = append(dst, `[{"functionDeclarations":[`...)
	for i := range tools {
		t := &tools[i]
		schema, enforced, err := wire.StrictTool(t, rules.StrictTools, true, nil)
		if err != nil {
			return dst, false, err
		}
		strict = strict || enforced
		if i > 0 {
			dst = append(dst, ',')
		}
		o := jsonwire.Begin(dst)
		o.Text("name", t.Name)
		o.Text("description", t.Description)
		if len(bytes.TrimSpace(schema)) > 0 {
			o.Key("parametersJsonSchema")
			o.B = appendSchema(o.B, schema)
		}
		dst = o.End()
	}
	return append(dst, `]}]`...), strict, nil
}

// appendSchema appends a tool's schema in compact form, with constants in the
// form of lists of one, as the service does not know const. What is no JSON
// becomes null: a host put it there, and a server's complaint is easier to read
// than a broken body.
func appendSchema(dst, schema []byte) []byte {
	compact, err := jsonwire.AppendCompact(nil, schema)
	if err != nil {
		return append(dst, "null"...)
	}
	return appendNode(dst, compact, isSchema)
}

// role says what a value inside a schema is.
type role uint8

const (
	isSchema role = iota // or a list of schemas, or the value of another keyword
	isNamed              // an object of schemas, whose member names are free
	isData               // literal data
)

// roleOf is the role of a keyword's value.
func roleOf(keyword []byte) role {
	switch string(keyword) {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return isNamed
	case "const", "enum", "default", "example", "examples":
		return isData
	}
	return isSchema
}

// appendNode appends a compact value of a schema.
func appendNode(dst, value []byte, as role) []byte {
	var r jsonwire.Reader
	r.Reset(value)
	switch kind := r.Kind(); {
	case as == isData || kind != '{' && kind != '[':
		return append(dst, value...)
	case kind == '[':
		dst = append(dst, '[')
		n := 0
		for r.Array(); r.More(); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = appendNode(dst, r.Raw(), isSchema)
		}
		return append(dst, ']')
	}
	listed := as == isSchema && jsonwire.Get(value, "enum") != nil
	dst = append(dst, '{')
	n := 0
	for r.Object(); r.More(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		name := bytes.Clone(r.Key())
		member := r.Raw()
		if as == isSchema && !listed && string(name) == "const" && (member[0] == '"' || member[0] == '-' || member[0] >= '0' && member[0] <= '9') {
			dst = append(dst, `"enum":[`...)
			dst = append(dst, member...)
			dst = append(dst, ']')
			continue
		}
		dst = jsonwire.AppendString(dst, name)
		dst = append(dst, ':')
		of := isSchema
		if as == isSchema {
			of = roleOf(name)
		}
		dst = appendNode(dst, member, of)
	}
	return append(dst, '}')
}
