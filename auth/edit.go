package auth

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// member is a change to a JSON object: the new value of a name, nil to take the
// member away.
type member struct {
	name  string
	value []byte // JSON text
}

// span is where a member of an object stands in its text.
type span struct {
	name       string
	from       int // its name begins here
	value, end int // its value
}

// members finds the members of an object at the beginning of b.
func members(b []byte) (spans []span, err error) {
	var r jsonwire.Reader
	r.Reset(b)
	for r.Object(); r.More(); {
		s := span{from: r.Offset()}
		s.name = string(r.Key())
		raw := r.Raw()
		s.end = r.Offset()
		s.value = s.end - len(raw)
		spans = append(spans, s)
	}
	return spans, r.End()
}

// editObject changes members of an object and leaves every other byte as it is:
// order, spelling of strings and numbers, white space. Of a name that occurs
// more than once the last one counts, as it does for all who read the file, and
// all go when it is taken away. New members come last, each on a line of its own
// with the members of a file of two-space JSON at that depth of nesting. Text
// that is no object is replaced.
func editObject(b []byte, depth int, changes ...member) []byte {
	if !jsonwire.IsObject(b) {
		b = []byte("{}")
	}
	for _, c := range changes {
		b = editMember(b, depth, c)
	}
	return b
}

func editMember(b []byte, depth int, c member) []byte {
	spans, err := members(b)
	if err != nil {
		return b // callers give checked text
	}
	last := -1
	for i, s := range spans {
		if s.name == c.name {
			last = i
		}
	}
	switch {
	case last < 0 && c.value == nil:
		return b
	case last < 0:
		return addMember(b, spans, depth, c)
	case c.value == nil:
		return editMember(cutMember(b, spans, last), depth, c)
	}
	return slices.Concat(b[:spans[last].value], c.value, b[spans[last].end:])
}

// addMember puts a member behind the others.
func addMember(b []byte, spans []span, depth int, c member) []byte {
	indent := strings.Repeat("  ", depth)
	text := jsonwire.AppendString([]byte("\n"+indent), c.name)
	text = append(append(text, ": "...), c.value...)
	if len(spans) > 0 {
		end := spans[len(spans)-1].end
		return slices.Concat(b[:end], []byte(","), text, b[end:])
	}
	open := bytes.IndexByte(b, '{') + 1
	shut := bytes.LastIndexByte(b, '}')
	return slices.Concat(b[:open], text, []byte("\n"+indent[2:]), b[shut:])
}

// cutMember takes one member out, with the comma that parts it from another.
func cutMember(b []byte, spans []span, i int) []byte {
	switch {
	case i > 0: // from the end of the one before
		return slices.Concat(b[:spans[i-1].end], b[spans[i].end:])
	case len(spans) > 1: // up to the beginning of the next
		return slices.Concat(b[:spans[0].from], b[spans[1].from:])
	}
	open := bytes.IndexByte(b, '{') + 1
	shut := bytes.LastIndexByte(b, '}')
	return slices.Concat(b[:open], b[shut:])
}
