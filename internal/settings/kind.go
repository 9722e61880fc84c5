package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// kind is what values a setting may have.
type kind interface {
	// wants is the kind in words, as in: is no …
	wants() string
	// check reads a value, null aside, and gives what of it counts; nil for
	// nothing. What does not count it reports.
	check(v value) jsontext.Value
}

// value is a value in a file that is being checked.
type value struct {
	*check
	name     string // of the setting or the part of it
	from, to int    // in the text
}

// check is a look through the text of a file.
type check struct {
	text    []byte // plain JSON, of the length of the file
	project bool   // the file is a project's
	report  func(p Problem, at int)
}

func (v value) raw() jsontext.Value { return jsontext.Value(v.text[v.from:v.to]) }

func (v value) first() byte { return v.text[v.from] }

// no reports that a value is not of a kind, and gives nothing.
func (v value) no(k kind) jsontext.Value {
	v.report(Problem{Kind: Invalid, Key: v.name, Found: show(v.raw()), Want: k.wants()}, v.from)
	return nil
}

// show is a value as an error quotes it.
func show(raw jsontext.Value) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	const most = 40
	if s := strings.ToValidUTF8(WithoutPasswords(string(raw)), "\uFFFD"); len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	} else {
		return s
	}
}

type boolean struct{}

func (boolean) wants() string { return "true or false" }

func (k boolean) check(v value) jsontext.Value {
	if c := v.first(); c != 't' && c != 'f' {
		return v.no(k)
	}
	return v.raw()
}

// text is any text. A hidden one is never shown, as it may be a secret.
type text struct{ hidden bool }

func (text) wants() string { return "text" }

func (k text) check(v value) jsontext.Value {
	if v.first() != '"' {
		if k.hidden {
			v.report(Problem{Kind: Invalid, Key: v.name, Found: "something else", Want: k.wants()}, v.from)
			return nil
		}
		return v.no(k)
	}
	return v.raw()
}

// oneOf is one of these words.
type oneOf []string

func (k oneOf) wants() string {
	var quoted []string
	for _, w := range k {
		quoted = append(quoted, strconv.Quote(w))
	}
	return orList(quoted)
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func (k oneOf) check(v value) jsontext.Value {
	if s, ok := jsonwire.StringValue(v.raw()); !ok || !slices.Contains(k, s) {
		return v.no(k)
	}
	return v.raw()
}

// number is a number in a range.
type number struct {
	from, to float64 // to is 0 for no bound
	any      bool    // below 0 too
	whole    bool
}

func (k number) wants() string {
	what := "a number"
	if k.whole {
		what = "a whole number"
	}
	switch {
	case k.any:
		return what
	case k.to > 0:
		return fmt.Sprintf("%s from %v to %v", what, k.from, k.to)
	}
	return fmt.Sprintf("%s from %v on", what, k.from)
}

// tokensBound is the largest number that every reader of the file tells from its
// neighbours.
const tokensBound = 1<<53 - 1

func (k number) check(v value) jsontext.Value {
	var r jsonwire.Reader
	r.Reset(v.raw())
	if r.Kind() != '0' {
		return v.no(k)
	}
	n := r.Float()
	if !k.any && n < k.from || k.to > 0 && n > k.to || k.whole && (n != float64(int64(n)) || n > tokensBound) {
		return v.no(k)
	}
	return v.raw()
}

// list is a list. Elements of another kind do not count, the others do.
type list struct{ of kind }

func (k list) wants() string { return "a list of " + plural(k.of) }

func plural(k kind) string {
	if _, ok := k.(text); ok {
		return "texts"
	}
	return "values that are each " + k.wants()
}

func (k list) check(v value) jsontext.Value {
	if v.first() != '[' {
		return v.no(k)
	}
	out := []byte{'['}
	var r jsonwire.Reader
	r.Reset(v.raw())
	i := 0
	for r.Array(); r.More(); i++ {
		from := v.from + r.Offset()
		raw := r.Raw()
		kept := k.of.check(value{v.check, fmt.Sprintf("%s[%d]", v.name, i), from, from + len(raw)})
		if kept == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, kept...)
	}
	return append(out, ']')
}

// table is an object with names that a person chooses.
type table struct {
	name string // what the names are
	of   kind
}

func (k table) wants() string { return "an object from " + k.name + " to " + k.of.wants() }

func (k table) check(v value) jsontext.Value {
	if v.first() != '{' {
		return v.no(k)
	}
	return v.members(func(string) kind { return k.of })
}

// record is an object with fixed names. Others are kept.
type record map[string]kind

func (k record) wants() string { return "an object" }

func (k record) check(v value) jsontext.Value {
	if v.first() != '{' {
		return v.no(k)
	}
	return v.members(func(name string) kind { return k[name] })
}

// members checks the members of an object; of gives their kinds, nil for a name
// that is not known.
func (v value) members(of func(name string) kind) jsontext.Value {
	var kept object
	at := map[string]int{} // in kept
	var r jsonwire.Reader
	r.Reset(v.raw())
	for r.Object(); r.More(); {
		place := v.from + r.Offset()
		name := string(r.Key())
		raw := r.Raw()
		to := v.from + r.Offset()
		m := value{v.check, name, to - len(raw), to}
		if v.name != "" {
			m.name = v.name + "." + name
		}
		if known := lookUp(m.name); v.project && known != nil && known.user && known.name == m.name {
			v.report(Problem{Kind: Misplaced, Key: m.name}, place)
		}
		i, again := at[name]
		if again {
			v.report(Problem{Kind: Duplicate, Key: m.name}, place)
		} else {
			i = len(kept)
			at[name] = i
			kept = append(kept, member{name: name})
		}
		switch k := of(name); {
		case k == nil:
			v.report(Problem{Kind: Unknown, Key: m.name}, place)
			kept[i].value = m.raw()
		case m.first() == 'n': // null counts as unset
			kept[i].value = m.raw()
		default:
			kept[i].value = k.check(m) // nil too: the last counts, even where it is of no use
		}
	}
	return slices.DeleteFunc(kept, func(m member) bool { return m.value == nil }).append(nil)
}

// either is a value of any of these kinds.
type either []kind

func (k either) wants() string {
	var words []string
	for _, one := range k {
		words = append(words, one.wants())
	}
	return strings.Join(words, ", or ")
}

func (k either) check(v value) jsontext.Value {
	for _, one := range k {
		var problems []Problem
		var places []int
		quiet := value{&check{text: v.text, project: v.project, report: func(p Problem, at int) {
			problems = append(problems, p)
			places = append(places, at)
		}}, v.name, v.from, v.to}
		if kept := one.check(quiet); kept != nil {
			for i, p := range problems {
				v.report(p, places[i])
			}
			return kept
		}
	}
	return v.no(k)
}

// anything is any value.
type anything struct{}

func (anything) wants() string { return "any value" }

func (anything) check(v value) jsontext.Value { return v.raw() }
