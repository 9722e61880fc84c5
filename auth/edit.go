package auth

import (
	"slices"

	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// edit is a change to the text of an object: the new value at a path of names,
// nil to take it away.
type edit struct {
	value []byte // JSON text
	path  []string
}

// editText makes changes, and leaves every other byte as it is.
func editText(text []byte, edits ...edit) (_ []byte, err error) {
	for _, e := range edits {
		if e.value == nil {
			text, err = jsonedit.Unset(text, e.path...)
		} else {
			text, err = jsonedit.Set(text, e.value, e.path...)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// names are the names of an object's members, each once.
func names(object []byte) (list []string) {
	var r jsonwire.Reader
	r.Reset(object)
	for r.Object(); r.More(); r.Skip() {
		if name := string(r.Key()); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
