package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Body appends the members of a request's object. Sampling parameters are
// assigned last over the finished body, so one that names a member of the body
// stands in that member's place and the others follow at the end.
type Body struct {
	B      []byte // what was written so far
	n      int
	params SamplingParams
}

// BeginBody opens a body behind dst.
func BeginBody(dst []byte, params SamplingParams) *Body {
	return &Body{B: append(dst, '{'), params: params}
}

// Key appends a member's name and reports whether its value is to be appended
// to B; it is not when a sampling parameter has taken the place.
func (w *Body) Key(name string) bool {
	w.name(name)
	for i := range w.params {
		if p := &w.params[i]; p.name == name {
			p.used = true
			w.B = append(w.B, p.value...)
			return false
		}
	}
	return true
}

func (w *Body) name(name string) {
	if w.n > 0 {
		w.B = append(w.B, ',')
	}
	w.n++
	w.B = jsonwire.AppendString(w.B, name)
	w.B = append(w.B, ':')
}

// Text appends a string.
func (w *Body) Text(name, v string) {
	if w.Key(name) {
		w.B = jsonwire.AppendString(w.B, v)
	}
}

// Bool appends true or false.
func (w *Body) Bool(name string, v bool) {
	if w.Key(name) {
		w.B = strconv.AppendBool(w.B, v)
	}
}

// Int appends a whole number.
func (w *Body) Int(name string, v int64) {
	if w.Key(name) {
		w.B = strconv.AppendInt(w.B, v, 10)
	}
}

// Float appends a number.
func (w *Body) Float(name string, v float64) {
	if w.Key(name) {
		w.B = jsonwire.AppendFloat(w.B, v)
	}
}

// JSON appends a value that is compact JSON already.
func (w *Body) JSON(name, v string) {
	if w.Key(name) {
		w.B = append(w.B, v...)
	}
}

// Raw appends a value as AppendRaw does.
func (w *Body) Raw(name string, v jsontext.Value) {
	if w.Key(name) {
		w.B = AppendRaw(w.B, v)
	}
}

// End appends the sampling parameters that are left, closes the object and
// returns all that was written.
func (w *Body) End() []byte {
	for _, p := range w.params {
		if !p.used {
			w.name(p.name)
			w.B = append(w.B, p.value...)
		}
	}
	w.B = append(w.B, '}')
	return w.B
}

// AppendRaw appends a value in its compact form, null when it is no JSON: a host
// put it there, and a server's complaint is easier to read than a broken body.
func AppendRaw(dst []byte, v jsontext.Value) []byte {
	out, err := jsonwire.AppendCompact(dst, v)
	if err != nil {
		return append(out, "null"...)
	}
	return out
}

// SamplingParams are the members that a model or a request adds to its body.
type SamplingParams []samplingParam

type samplingParam struct {
	name  string
	value []byte
	used  bool
}

// MergeSamplingParams merges the model's parameters, those of the supported
// level nearest to level, "" for LevelOff, and those of the request. A later
// value takes the place of an earlier one.
func MergeSamplingParams(m *llm.Model, level llm.ThinkingLevel, request jsontext.Value) SamplingParams {
	level = m.ClampLevel(cmp.Or(level, llm.LevelOff))
	var params SamplingParams
	for _, src := range []jsontext.Value{m.SamplingParams, m.SamplingParamsByThinkingLevel[level], request} {
		if len(bytes.TrimSpace(src)) == 0 {
			continue
		}
		var r jsonwire.Reader
		r.Reset(src)
		for r.Object(); r.More(); {
			name := string(r.Key())
			value := AppendRaw(nil, r.Raw())
			i := slices.IndexFunc(params, func(p samplingParam) bool { return p.name == name })
			if i < 0 {
				params = append(params, samplingParam{name: name, value: value})
			} else {
				params[i].value = value
			}
		}
	}
	return params
}
