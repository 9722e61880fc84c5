package settings

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Package is an entry of the packages list: a source, or an object with filters
// for each kind of resource. A filter is nil when the entry has none of its
// kind.
type Package struct {
	Source                              string
	Delta                               bool // autoload is false
	Extensions, Skills, Prompts, Themes []string
}

// Packages are the entries of the packages list. What is no entry is left out.
func (f *File) Packages() []Package {
	var r jsonwire.Reader
	v := f.Raw("packages")
	r.Reset(v)
	if v == nil || r.Kind() != '[' {
		return nil
	}
	var out []Package
	for r.Array(); r.More(); {
		entry := jsontext.Value(r.Raw())
		var p Package
		if isObject(entry) {
			list := func(key string) []string { return stringList(jsonwire.Get(entry, key)) }
			p.Source, _ = jsonwire.StringValue(jsonwire.Get(entry, "source"))
			p.Delta = string(jsonwire.Get(entry, "autoload")) == "false"
			p.Extensions, p.Skills, p.Prompts, p.Themes = list("extensions"), list("skills"), list("prompts"), list("themes")
		} else {
			p.Source, _ = jsonwire.StringValue(entry)
		}
		if p.Source != "" {
			out = append(out, p)
		}
	}
	return out
}
