// Package jsonedit changes single members of a JSON text that people write: it
// leaves every byte alone that the change is not about, so that comments, order,
// indentation, line ends and the spelling of everything else stay.
//
//	text, err = jsonedit.Set(text, []byte(`false`), "retry", "enabled")
//	text, err = jsonedit.Unset(text, "retry", "enabled")
//
// Comments and commas before closing brackets are understood, see Plain. Of a
// name that an object has more than once the last counts, as for all readers.
package jsonedit

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// ErrNoObject says that a text is JSON, but no object.
var ErrNoObject = errors.New("not a JSON object")

// Set makes value, which is JSON text, the value at a path of names. Within a list
// the name is a number from 0; that behind the last adds one. What is missing on
// the way there is made; what is in the way, such as a number where an
// object has to be, is replaced. A value that is there already in other spelling
// is left as it is. New members come last in their object, laid out like those
// before them. Errors are ErrNoObject and *jsonwire.SyntaxError.
func Set(text, value []byte, path ...string) ([]byte, error) {
	if err := jsonwire.Check(value); err != nil {
		return nil, err
	}
	// At its place, within one object or list a name, it must not be nested more
	// deeply than readers go.
	n := len(path)
	if err := jsonwire.Check(slices.Concat(bytes.Repeat([]byte{'['}, n), value, bytes.Repeat([]byte{']'}, n))); err != nil {
		return nil, err
	}
	d, root, err := read(text)
	if err != nil {
		return nil, err
	}
	return d.set(root, value, path), nil
}

// Unset takes the member at a path away, and nothing else: comments beside it
// stay, and so does the object around it. It is no error when there is none.
func Unset(text []byte, path ...string) ([]byte, error) {
	for {
		d, root, err := read(text)
		if err != nil {
			return nil, err
		}
		shorter, counted := d.unset(root, path)
		if counted || len(shorter) == len(text) {
			return shorter, nil
		}
		text = shorter // there may be another of the name
	}
}

// document is a text that is being changed.
type document struct {
	text  []byte
	plain []byte // of the same length
	eol   string
	unit  string // of indentation
}

// object is an object within a document, or a list, whose members have their
// numbers as names.
type object struct {
	open, shut int // its brackets
	inline     bool
	list       bool
	members    []member
}

// member is where a member stands in the document.
type member struct {
	name       string
	from       int // its name begins here, or its value in a list
	value, end int
}

// splice is text in place of the bytes from..to.
type splice struct {
	from, to int
	text     string
}

func read(text []byte) (*document, object, error) {
	d := &document{text: text, plain: Plain(text), eol: "\n", unit: "  "}
	if err := jsonwire.Check(d.plain); err != nil {
		return nil, object{}, err
	}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		d.eol = "\r\n"
	}
	root, ok := d.object(0, len(text), false)
	if !ok {
		return nil, object{}, ErrNoObject
	}
	if len(root.members) > 0 {
		base := d.indent(root.open)
		if indent, own := d.ownLine(root.members[0].from); own && len(indent) > len(base) {
			d.unit = strings.TrimPrefix(indent, base)
		}
	}
	return d, root, nil
}

// object reads the object in from..to; ok is false for other values.
func (d *document) object(from, to int, inline bool) (o object, ok bool) {
	b := d.plain[from:to]
	at := bytes.IndexByte(b, '{')
	if at < 0 || len(bytes.TrimSpace(b[:at])) > 0 {
		return object{}, false
	}
	o = object{open: from + at, shut: from + bytes.LastIndexByte(b, '}'), inline: inline}
	var r jsonwire.Reader
	r.Reset(b)
	for r.Object(); r.More(); {
		m := member{from: from + r.Offset()}
		m.name = string(r.Key())
		raw := r.Raw()
		m.end = from + r.Offset()
		m.value = m.end - len(raw)
		o.members = append(o.members, m)
	}
	return o, true
}

// inside reads the object or list in from..to; ok is false for other values, and
// for a list that has no place of this name.
func (d *document) inside(from, to int, inline bool, name string) (o object, ok bool) {
	if o, ok := d.object(from, to, inline); ok {
		return o, true
	}
	b := d.plain[from:to]
	at := bytes.IndexByte(b, '[')
	if at < 0 || len(bytes.TrimSpace(b[:at])) > 0 {
		return object{}, false
	}
	o = object{open: from + at, shut: from + bytes.LastIndexByte(b, ']'), inline: inline, list: true}
	var r jsonwire.Reader
	r.Reset(b)
	for r.Array(); r.More(); {
		raw := r.Raw()
		m := member{name: strconv.Itoa(len(o.members)), end: from + r.Offset()}
		m.value = m.end - len(raw)
		m.from = m.value
		o.members = append(o.members, m)
	}
	return o, o.find(name) >= 0 || name == strconv.Itoa(len(o.members))
}

// find is the index of the member of a name that counts, -1 for none.
func (o object) find(name string) int {
	for i, m := range slices.Backward(o.members) {
		if m.name == name {
			return i
		}
	}
	return -1
}

func (d *document) set(o object, value []byte, path []string) []byte {
	i := o.find(path[0])
	if i < 0 {
		return d.add(o, path[0], within(path[1:], value))
	}
	m := o.members[i]
	indent, own := d.ownLine(m.from)
	if len(path) > 1 {
		if inner, ok := d.inside(m.value, m.end, !own, path[1]); ok {
			return d.set(inner, value, path[1:])
		}
		value = within(path[1:], value)
	} else if same(d.plain[m.value:m.end], value) {
		return d.text
	}
	return d.apply(splice{m.value, m.end, d.layout(value, indent, !own)})
}

// unset is Unset of one member, and of others of its name where they are no
// neighbours: their cuts would meet. counted is true when it was one of a list,
// where the next has its name now.
func (d *document) unset(o object, path []string) (text []byte, counted bool) {
	i := o.find(path[0])
	if i < 0 {
		return d.text, false
	}
	if len(path) == 1 {
		cuts := d.cut(o, i)
		for j := i - 2; j >= 0 && !o.list; j-- {
			if o.members[j].name == path[0] {
				cuts = append(cuts, d.cut(o, j)...)
				j--
			}
		}
		return d.apply(cuts...), o.list
	}
	if inner, ok := d.inside(o.members[i].value, o.members[i].end, false, path[1]); ok {
		return d.unset(inner, path[1:])
	}
	return d.text, false
}

// within puts a value into the objects of a path.
func within(path []string, value []byte) []byte {
	for _, name := range slices.Backward(path) {
		o := jsonwire.Begin(nil)
		o.Member(name, value)
		value = o.End()
	}
	return value
}

func same(a, b []byte) bool {
	ca, errA := jsonwire.AppendCompact(nil, a)
	cb, errB := jsonwire.AppendCompact(nil, b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

// layout is a value as it is written behind its name, at an indentation.
func (d *document) layout(value []byte, indent string, inline bool) string {
	if inline {
		b, _ := jsonwire.AppendCompact(nil, value) // checked before
		return string(b)
	}
	b, _ := jsonwire.AppendIndent(nil, value, d.unit)
	// No string of JSON text has a line end in it.
	return strings.ReplaceAll(string(b), "\n", d.eol+indent)
}

// add puts a new member behind the others.
func (d *document) add(o object, name string, value []byte) []byte {
	text := func(indent string, inline bool) string {
		if o.list {
			return d.layout(value, indent, inline)
		}
		return string(jsonwire.AppendString(nil, name)) + ": " + d.layout(value, indent, inline)
	}
	if len(o.members) == 0 {
		return d.addFirst(o, text)
	}
	last := o.members[len(o.members)-1]
	comma, tail := d.behind(last.end, o.shut)
	indent, own := d.ownLine(last.from)
	switch {
	case !own && comma < 0:
		return d.apply(splice{last.end, last.end, ", " + text("", true)})
	case !own:
		return d.apply(splice{comma + 1, comma + 1, " " + text("", true) + ","})
	case comma < 0:
		return d.apply(splice{last.end, last.end, ","}, splice{tail, tail, d.eol + indent + text(indent, false)})
	}
	return d.apply(splice{tail, tail, d.eol + indent + text(indent, false) + ","})
}

// addFirst puts a member into an empty object, behind the comments in it.
func (d *document) addFirst(o object, text func(indent string, inline bool) string) []byte {
	base := d.indent(o.open)
	indent := base + d.unit
	noted := -1 // the end of the last comment
	for at := o.open + 1; at < o.shut; at++ {
		if d.text[at] == '/' {
			noted = at + comment(d.text[at:])
			at = noted - 1
		}
	}
	switch {
	case noted < 0 && o.inline:
		return d.apply(splice{o.open + 1, o.shut, text("", true)})
	case noted < 0:
		return d.apply(splice{o.open + 1, o.shut, d.eol + indent + text(indent, false) + d.eol + base})
	case bytes.IndexByte(d.text[noted:o.shut], '\n') >= 0:
		return d.apply(splice{noted, noted, d.eol + indent + text(indent, false)})
	}
	return d.apply(splice{noted, o.shut, d.eol + indent + text(indent, false) + d.eol + base})
}

// cut is what takes a member out, with the comma that parts it from another: cuts
// between the members beside it.
func (d *document) cut(o object, i int) []splice {
	m := o.members[i]
	if len(o.members) == 1 && onlyBlank(d.text[o.open+1:m.from]) && onlyBlank(bytes.Replace(d.text[m.end:o.shut], []byte(","), nil, 1)) {
		return []splice{{o.open + 1, o.shut, ""}}
	}
	next := o.shut
	if i+1 < len(o.members) {
		next = o.members[i+1].from
	}
	end := m.end
	var cuts []splice
	comma, _ := d.behind(m.end, next)
	switch {
	case comma >= 0 && onlyBlank(d.text[m.end:comma]):
		end = comma + 1
	case comma >= 0:
		cuts = append(cuts, splice{comma, comma + 1, ""})
	case i > 0:
		comma, _ = d.behind(o.members[i-1].end, m.from)
		cuts = append(cuts, splice{comma, comma + 1, ""})
	}
	from := m.from
	line, rest := from, end // without the blanks around
	for line > o.open+1 && blank(d.text[line-1]) {
		line--
	}
	for rest < len(d.text) && blank(d.text[rest]) {
		rest++
	}
	switch {
	case d.text[line-1] == '\n' && rest < len(d.text) && d.text[rest] == '\n':
		from, end = line, rest+1
	case end > m.end: // what follows moves up
		end = rest
	case comma >= 0 && comma < from && len(bytes.Trim(d.text[comma+1:from], " \t")) == 0:
		from = comma + 1
	}
	return append(cuts, splice{from, end, ""})
}

// behind looks at what stands between a member and the next one, or the closing
// bracket: where the comma is, -1 for none, and where the member's line, comments
// included, ends.
func (d *document) behind(at, stop int) (comma, tail int) {
	comma, tail = -1, at
	line := true
	for at < stop {
		n := 1
		switch d.text[at] {
		case ',':
			comma = at
		case '/':
			n = comment(d.text[at:])
		case '\n':
			line = false
			fallthrough
		default:
			at++
			continue
		}
		at += n
		if line {
			tail = at
		}
	}
	return comma, max(tail, comma+1)
}

// apply makes changes that do not overlap.
func (d *document) apply(changes ...splice) []byte {
	slices.SortStableFunc(changes, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, d.text[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, d.text[at:]...)
}

func (d *document) lineStart(at int) int { return bytes.LastIndexByte(d.text[:at], '\n') + 1 }

// indent is the white space that the line of a place begins with.
func (d *document) indent(at int) string {
	line := bytes.TrimPrefix(d.text[d.lineStart(at):at], []byte("\xEF\xBB\xBF"))
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine reports whether nothing but white space stands before a place in its
// line, which is not the first, and gives that.
func (d *document) ownLine(at int) (indent string, own bool) {
	line := d.lineStart(at)
	return d.indent(at), line > 0 && onlyBlank(d.text[line:at])
}

// blank reports whether c is white space within a line.
func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

func onlyBlank(b []byte) bool { return len(bytes.Trim(b, " \t\r\n")) == 0 }
