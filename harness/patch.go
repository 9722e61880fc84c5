package harness

import (
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// RequestPatch changes options of one request. Nil fields keep what there is; a
// pointer to a zero value takes an option back to its default.
type RequestPatch struct {
	Timeout        *time.Duration
	IdleTimeout    *time.Duration
	MaxRetries     *int
	MaxRetryDelay  *time.Duration
	CacheRetention *string
	Temperature    **float64
	MaxTokens      *int
	SamplingParams *jsontext.Value
	ToolChoice     *string

	// Headers and Metadata set the keys that they hold; a nil value takes a key
	// out. The Clear fields take all keys out before that.
	ClearHeaders  bool
	Headers       map[string]*string
	ClearMetadata bool
	Metadata      map[string]jsontext.Value
}

// apply is o with the patch. Nothing that o shares is changed.
func (p *RequestPatch) apply(o llm.Options) llm.Options {
	replace(&o.Timeout, p.Timeout)
	replace(&o.IdleTimeout, p.IdleTimeout)
	replace(&o.MaxRetries, p.MaxRetries)
	replace(&o.MaxRetryDelay, p.MaxRetryDelay)
	replace(&o.CacheRetention, p.CacheRetention)
	replace(&o.Temperature, p.Temperature)
	replace(&o.MaxTokens, p.MaxTokens)
	replace(&o.SamplingParams, p.SamplingParams)
	replace(&o.ToolChoice, p.ToolChoice)
	o.Headers = patchHeaders(o.Headers, p.ClearHeaders, p.Headers)
	o.Metadata = patchObject(o.Metadata, p.ClearMetadata, p.Metadata)
	return o
}

func replace[T any](have, want *T) {
	if want != nil {
		*have = *want
	}
}

func patchHeaders(have map[string]*string, clear bool, patch map[string]*string) map[string]*string {
	if !clear && len(patch) == 0 {
		return have
	}
	out := maps.Clone(have)
	if out == nil || clear {
		out = make(map[string]*string, len(patch))
	}
	for name, v := range patch {
		if v == nil {
			delete(out, name)
		} else {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// patchObject changes members of a JSON object: those that it has keep their
// places, new ones follow sorted by name. An object without members is nil, and
// so is anything that is no object.
func patchObject(have jsontext.Value, clear bool, patch map[string]jsontext.Value) jsontext.Value {
	if !clear && len(patch) == 0 {
		return have
	}
	patch = maps.Clone(patch)
	out := jsonwire.Begin(nil)
	n := 0
	set := func(name string, v []byte) {
		out.Member(name, v)
		n++
	}
	if !clear && jsonwire.IsObject(have) {
		var r jsonwire.Reader
		r.Reset(have)
		for r.Object(); r.More(); {
			name := string(r.Key())
			v := r.Raw()
			if other, ok := patch[name]; ok {
				if v = other; v == nil {
					delete(patch, name)
					continue
				}
				delete(patch, name)
			}
			set(name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		if v := patch[name]; v != nil {
			set(name, v)
		}
	}
	if n == 0 {
		return nil
	}
	return jsontext.Value(out.End())
}
