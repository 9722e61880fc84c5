package responses

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// appendTools appends tools as a JSON array. deferred marks them as results of
// a tool search.
func (e *encoder) appendTools(dst []byte, tools []llm.Tool, deferred bool) ([]byte, error) {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = e.appendTool(dst, &tools[i]); err != nil {
			return dst, err
		}
		if deferred {
			dst = append(dst[:len(dst)-1], `,"defer_loading":true}`...)
		}
	}
	return append(dst, ']'), nil
}

func (e *encoder) appendTool(dst []byte, t *llm.Tool) ([]byte, error) {
	if e.compat.SupportsOpenAIGrammarTools {
		if g, ok := wire.GrammarOf(t); ok {
			dst = append(dst, `{"type":"custom","name":`...)
			dst = jsonwire.AppendString(dst, t.Name)
			dst = append(dst, `,"description":`...)
			dst = jsonwire.AppendString(dst, t.Description)
			dst = append(dst, `,"format":{"type":"grammar","syntax":"`...)
			dst = append(dst, g.Syntax...)
			dst = append(dst, `","definition":`...)
			dst = jsonwire.AppendString(dst, g.Definition)
			return append(dst, `}}`...), nil
		}
	}
	parameters, strict, err := wire.StrictTool(t, e.compat.SupportsStrictMode, true, nil)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":"function","name":`...)
	dst = jsonwire.AppendString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = jsonwire.AppendString(dst, t.Description)
	if len(bytes.TrimSpace(parameters)) > 0 {
		dst = append(dst, `,"parameters":`...)
		if dst, err = jsonwire.AppendCompact(dst, parameters); err != nil {
			return dst, &SchemaError{Tool: t.Name, Cause: err}
		}
	}
	if e.compat.SupportsStrictMode {
		dst = append(dst, `,"strict":`...)
		if strict {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, e.dialect.notStrict...)
		}
	}
	return append(dst, '}'), nil
}

// SchemaError says that the parameters of a tool are no JSON, so that the tool
// cannot be declared.
type SchemaError struct {
	Tool  string
	Cause error
}

func (e *SchemaError) Error() string {
	return `the parameters of tool "` + e.Tool + `" are no JSON: ` + e.Cause.Error()
}

func (e *SchemaError) Unwrap() error { return e.Cause }
