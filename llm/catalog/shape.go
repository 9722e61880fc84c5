package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/spelling"
)

// The shape of models.json, checked in one walk over the text so that each
// problem has its path and its line.

// problem is one place where a file breaks its schema.
type problem struct {
	path string // JSON pointer
	line int
	text string
}

// SchemaError says that models.json is JSON of the wrong shape.
type SchemaError struct {
	Path     string // of the file
	problems []problem
}

func (e *SchemaError) Error() string {
	var b strings.Builder
	b.WriteString("Invalid models.json schema:")
	for _, p := range e.problems {
		path := p.path
		if path == "" {
			path = "root"
		}
		fmt.Fprintf(&b, "\n  - %s: %s (line %d)", path, p.text, p.line)
	}
	if e.Path != "" {
		b.WriteString("\n\nFile: " + e.Path)
	}
	return b.String()
}

// Paths lists the places of the problems as JSON pointers.
func (e *SchemaError) Paths() []string {
	out := make([]string, len(e.problems))
	for i, p := range e.problems {
		out[i] = p.path
	}
	return out
}

type checker struct {
	r        jsonwire.Reader
	text     []byte
	problems []problem
	remarks  []Remark
	looked   int // unknown members that were looked at
}

// Remark is a member of models.json that nobody looks at and that was probably
// meant to be another one. The file counts all the same.
type Remark struct {
	Path  string // of the file
	Line  int
	Place string // JSON pointer of the member
	Meant string // name of the member that was meant
}

func (r Remark) String() string {
	return fmt.Sprintf("%s:%d: %s is unknown; did you mean %s?", r.Path, r.Line, r.Place, r.Meant)
}

// maxLooked bounds the search for slips: it costs more than reading.
const maxLooked = 1000

// maxProblems bounds the list: a file that is wrong everywhere needs no more.
const maxProblems = 50

func (c *checker) fail(path, format string, args ...any) {
	c.failAt(c.r.Offset(), path, format, args...)
}

func (c *checker) failAt(offset int, path, format string, args ...any) {
	if len(c.problems) >= maxProblems {
		return
	}
	c.problems = append(c.problems, problem{path: path, line: c.line(offset), text: fmt.Sprintf(format, args...)})
}

func (c *checker) line(offset int) int {
	return 1 + bytes.Count(c.text[:min(offset, len(c.text))], []byte("\n"))
}

// A shape reads one value and notes what is wrong with it.
type shape func(c *checker, path string)

// kindName names the kinds that jsonwire.Reader.Kind tells.
func kindName(k byte) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "nothing"
}

// of is a shape of one kind.
func of(kinds string, name string) shape {
	return func(c *checker, path string) {
		if k := c.r.Kind(); k != 0 && !strings.ContainsRune(kinds, rune(k)) {
			c.fail(path, "expected %s, found %s", name, kindName(k))
		}
		c.r.Skip()
	}
}

// nonEmpty is a string with at least one character.
func nonEmpty(c *checker, path string) {
	if c.r.Kind() != '"' {
		c.fail(path, "expected a string, found %s", kindName(c.r.Kind()))
		c.r.Skip()
		return
	}
	if at := c.r.Offset(); len(c.r.String()) == 0 {
		c.failAt(at, path, "expected a string that is not empty")
	}
}

// maxTokenCount bounds numbers of tokens: whole numbers up to it are exact.
const maxTokenCount = 1 << 53

// tokenCount is a number of tokens, at least one.
func tokenCount(c *checker, path string) {
	if c.r.Kind() != '0' {
		c.fail(path, "expected a number, found %s", kindName(c.r.Kind()))
		c.r.Skip()
		return
	}
	at := c.r.Offset()
	switch n := c.r.Float(); {
	case n <= 0:
		c.failAt(at, path, "expected a number above 0")
	case n < 1 || n > maxTokenCount:
		c.failAt(at, path, "expected a number of tokens")
	}
}

// word is one of a few strings.
func word(allowed ...string) shape {
	return func(c *checker, path string) {
		at := c.r.Offset()
		if c.r.Kind() == '"' && slices.Contains(allowed, string(c.r.String())) {
			return
		} else if c.r.Offset() == at {
			c.r.Skip()
		}
		c.failAt(at, path, "expected one of %s", strings.Join(allowed, ", "))
	}
}

// list is an array of one shape.
func list(item shape) shape {
	return func(c *checker, path string) {
		if c.r.Kind() != '[' {
			c.fail(path, "expected a list, found %s", kindName(c.r.Kind()))
			c.r.Skip()
			return
		}
		c.r.Array()
		for i := 0; c.r.More(); i++ {
			item(c, path+"/"+strconv.Itoa(i))
		}
	}
}

// dict is an object with any names and one shape.
func dict(value shape) shape {
	return func(c *checker, path string) {
		if c.r.Kind() != '{' {
			c.fail(path, "expected an object, found %s", kindName(c.r.Kind()))
			c.r.Skip()
			return
		}
		for c.r.Object(); c.r.More(); {
			name := string(c.r.Key())
			value(c, path+"/"+pointerEscape(name))
		}
	}
}

// field is a member that an object may have.
type field struct {
	name  string
	shape shape
}

// fields is an object with known members. Others are allowed and kept; a name
// that looks like a slip gets a remark.
type fields struct {
	known    []field
	required []string
	other    func(name string) shape // of names that are not known; nil looks at none
}

// of is the shape of a member, and whether its name is known.
func (f *fields) of(name string) (s shape, known bool) {
	for i := range f.known {
		if f.known[i].name == name {
			return f.known[i].shape, true
		}
	}
	if f.other != nil {
		s = f.other(name)
	}
	return s, false
}

func (f fields) check(c *checker, path string) {
	if c.r.Kind() != '{' {
		c.fail(path, "expected an object, found %s", kindName(c.r.Kind()))
		c.r.Skip()
		return
	}
	start := c.r.Offset()
	seen := map[string]bool{}
	var unknown []place
	for c.r.Object(); c.r.More(); {
		at, name := c.r.Offset(), string(c.r.Key())
		s, known := f.of(name)
		if !known && !seen[name] && c.looked < maxLooked {
			c.looked++
			unknown = append(unknown, place{name, at})
		}
		seen[name] = true
		if s != nil {
			s(c, path+"/"+pointerEscape(name))
		} else {
			c.r.Skip()
		}
	}
	if c.r.Err() != nil {
		return
	}
	for _, name := range f.required {
		if !seen[name] {
			c.failAt(start, path+"/"+name, "is required")
		}
	}
	if unknown == nil {
		return
	}
	var absent []string
	for i := range f.known {
		if name := f.known[i].name; !seen[name] {
			absent = append(absent, name)
		}
	}
	for _, u := range unknown {
		if meant := spelling.Meant(u.name, absent); meant != "" && len(c.remarks) < maxProblems {
			c.remarks = append(c.remarks, Remark{Line: c.line(u.offset), Place: path + "/" + pointerEscape(u.name), Meant: meant})
		}
	}
}

// place is a member at an offset of the text.
type place struct {
	name   string
	offset int
}

func pointerEscape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
