package settings

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonedit"
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

// EditPackages is EditList of the packages.
func (s *Store) EditPackages(ctx context.Context, scope Scope, edit func(list []jsontext.Value) ([]Change, error)) error {
	return s.EditList(ctx, scope, "packages", edit)
}

// EditList changes entries of a list of a scope in one step, as Write does. edit
// gets the entries as they stand in the file, each as JSON text, and returns
// changes of them in the order in which they are made, such as
// Unset("packages.1"), or Set("packages.2", source) where there are two. An error
// of it is returned, and nothing is written.
func (s *Store) EditList(ctx context.Context, scope Scope, key string, edit func(list []jsontext.Value) ([]Change, error)) error {
	w := s.user
	if scope == Project {
		if w = s.project; w == nil {
			return ErrNoProject
		}
	}
	mine := func(name string) bool { return name == key }
	var refused error
	err := s.change(ctx, w, mine, func(was []byte) ([]byte, error) {
		text, err := modernize(was) // skills was an object once
		if err != nil {
			return nil, err
		}
		root, err := parseObject(jsonedit.Plain(text))
		if err != nil {
			return nil, err
		}
		var list []jsontext.Value
		var r jsonwire.Reader
		value := root.get(key)
		if value != nil && value.Kind() == 'n' {
			value = nil
		}
		if r.Reset(value); value != nil && r.Kind() != '[' {
			return nil, fmt.Errorf("%s is no list: correct or remove it", key)
		}
		if value != nil {
			for r.Array(); r.More(); {
				list = append(list, bytes.Clone(r.Raw()))
			}
		}
		changes, err := edit(list)
		if err != nil || len(changes) == 0 {
			refused = err
			return was, nil
		}
		if value == nil {
			text, err = jsonedit.Set(text, []byte("[]"), key)
		}
		for _, c := range changes {
			if err != nil {
				return nil, err
			}
			var v jsontext.Value
			if c.value == nil {
				text, err = jsonedit.Unset(text, split(c.name)...)
			} else if v, err = encode(c.value); err == nil {
				text, err = jsonedit.Set(text, v, split(c.name)...)
			}
		}
		return text, err
	})
	return cmp.Or(err, refused)
}
