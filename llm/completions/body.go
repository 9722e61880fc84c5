package completions

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// body appends the top-level members of a request. Sampling parameters are
// assigned last over the finished body, so one that names a member of the body
// stands in that member's place and the others follow at the end.
type body struct {
	b      []byte
	n      int
	params []param
}

type param struct {
	name  string
	value []byte
	used  bool
}

// begin opens the object in dst.
func (w *body) begin(dst []byte) { w.b = append(dst, '{') }

// key appends a member's name and reports whether its value is to follow; it
// is not when a sampling parameter has taken the place.
func (w *body) key(name string) bool {
	w.name(name)
	for i := range w.params {
		if p := &w.params[i]; p.name == name {
			p.used = true
			w.b = append(w.b, p.value...)
			return false
		}
	}
	return true
}

func (w *body) name(name string) {
	if w.n > 0 {
		w.b = append(w.b, ',')
	}
	w.n++
	w.b = jsonwire.AppendString(w.b, name)
	w.b = append(w.b, ':')
}

func (w *body) text(name, v string) {
	if w.key(name) {
		w.b = jsonwire.AppendString(w.b, v)
	}
}

func (w *body) bool(name string, v bool) {
	if w.key(name) {
		w.b = strconv.AppendBool(w.b, v)
	}
}

func (w *body) int(name string, v int64) {
	if w.key(name) {
		w.b = strconv.AppendInt(w.b, v, 10)
	}
}

func (w *body) float(name string, v float64) {
	if w.key(name) {
		w.b = jsonwire.AppendFloat(w.b, v)
	}
}

// json appends a value that is JSON already.
func (w *body) json(name, v string) {
	if w.key(name) {
		w.b = append(w.b, v...)
	}
}

func (w *body) raw(name string, v jsontext.Value) {
	if w.key(name) {
		w.b = appendRaw(w.b, v)
	}
}

// end appends the sampling parameters that are left and closes the object.
func (w *body) end() []byte {
	for _, p := range w.params {
		if !p.used {
			w.name(p.name)
			w.b = append(w.b, p.value...)
		}
	}
	w.b = append(w.b, '}')
	return w.b
}

// appendRaw appends v in its compact form, null when it is no JSON: a host put
// it there, and a server's complaint is easier to read than a broken body.
func appendRaw(dst []byte, v jsontext.Value) []byte {
	out, err := jsonwire.AppendCompact(dst, v)
	if err != nil {
		return append(out, "null"...)
	}
	return out
}

// samplingParams merges the model's parameters, those of the level and those of
// the request. A later value takes the place of an earlier one.
func samplingParams(m *llm.Model, level llm.ThinkingLevel, request jsontext.Value) []param {
	if level == "" {
		level = llm.LevelOff
	}
	var params []param
	for _, src := range []jsontext.Value{m.SamplingParams, m.SamplingParamsByThinkingLevel[level], request} {
		if len(bytes.TrimSpace(src)) == 0 {
			continue
		}
		var r jsonwire.Reader
		r.Reset(src)
		for r.Object(); r.More(); {
			name := string(r.Key())
			value := appendRaw(nil, r.Raw())
			i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
			if i < 0 {
				params = append(params, param{name: name, value: value})
			} else {
				params[i].value = value
			}
		}
	}
	return params
}
