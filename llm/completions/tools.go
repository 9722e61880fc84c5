package completions

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// appendTools appends a list of tool declarations. The last one carries the
// cache marker.
func appendTools(dst []byte, c *Compat, tools []llm.Tool, marker string) ([]byte, error) {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendTool(dst, c, &tools[i]); err != nil {
			return dst, err
		}
		if marker != "" && i == len(tools)-1 {
			dst = append(dst[:len(dst)-1], `,"cache_control":`...)
			dst = append(dst, marker...)
			dst = append(dst, '}')
		}
	}
	return append(dst, ']'), nil
}

func appendTool(dst []byte, c *Compat, t *llm.Tool) ([]byte, error) {
	if c.SupportsOpenAIGrammarTools {
		if g, ok := wire.GrammarOf(t); ok {
			dst = append(dst, `{"type":"custom","custom":{"name":`...)
			dst = jsonwire.AppendString(dst, t.Name)
			dst = append(dst, `,"description":`...)
			dst = jsonwire.AppendString(dst, t.Description)
			dst = append(dst, `,"format":{"type":"grammar","grammar":{"syntax":"`...)
			dst = append(dst, g.Syntax...)
			dst = append(dst, `","definition":`...)
			dst = jsonwire.AppendString(dst, g.Definition)
			return append(dst, `}}}}`...), nil
		}
	}
	parameters, strict, err := wire.StrictTool(t, c.SupportsStrictMode, true, nil)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = jsonwire.AppendString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = jsonwire.AppendString(dst, t.Description)
	if len(bytes.TrimSpace(parameters)) > 0 {
		dst = append(dst, `,"parameters":`...)
		dst = wire.AppendRaw(dst, parameters)
	}
	if c.SupportsStrictMode {
		if strict {
			dst = append(dst, `,"strict":true`...)
		} else {
			dst = append(dst, `,"strict":false`...)
		}
	}
	return append(dst, `}}`...), nil
}
