package settings

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Default is the origin of what no file says.
const Default Scope = "default"

// Setting is what a setting is set to, to be shown.
type Setting struct {
	Name   string         // with dots; of objects whose members a person names, of each member
	Value  jsontext.Value // nil for none; passwords in addresses are left out
	Origin Scope          // User, Project or Default
	Note   string         // with no Value: what holds then, "" for nothing in particular
}

// Names lists the settings.
func Names() []string {
	var names []string
	for _, k := range keys() {
		if !k.old {
			names = append(names, k.name)
		}
	}
	return names
}

// All lists the settings in force, in the order of the table; those of which no
// file says anything have the origin Default. Lists of both files that add up are
// two.
func (s *Settings) All() []Setting {
	var list []Setting
	for _, k := range keys() {
		switch {
		case k.old:
		case s.addsUp(&k):
			list = append(list, Setting{Name: k.name, Value: shown(k.kind, s.User.Raw(k.name)), Origin: User})
			fallthrough
		default:
			list = append(list, s.spread(k.name, k.kind, &k)...)
		}
	}
	return list
}

// spread is one setting, or its members where a person names them.
func (s *Settings) spread(name string, k kind, of *key) []Setting {
	path := split(name)
	value := s.at(path...)
	var list []Setting
	switch members := membersOf(k); {
	case members != nil && isObject(value):
		o, _ := parseObject(value)
		for _, m := range o {
			if k := members(m.name); k != nil {
				list = append(list, s.spread(name+"."+m.name, k, of)...)
			}
		}
	case value == nil || value[0] == 'n':
		if name == of.name {
			list = append(list, of.unset())
		}
	default:
		one := Setting{Name: name, Value: shown(k, value), Origin: User}
		if s.Project != nil && !of.user && s.Project.root.at(path) != nil {
			one.Origin = Project
		}
		list = append(list, one)
	}
	return list
}

// unset is the setting where no file says anything.
func (k *key) unset() Setting {
	return Setting{Name: k.name, Value: k.otherwise(), Origin: Default, Note: strings.ReplaceAll(k.note, "`", "")}
}

// otherwise is the value without the setting, nil for none.
func (k *key) otherwise() jsontext.Value {
	if k.standard == "" {
		return nil
	}
	return jsontext.Value(k.standard)
}

// membersOf gives the kinds of the members of an object, by name; nil for other
// kinds.
func membersOf(k kind) func(name string) kind {
	switch k := k.(type) {
	case table:
		return func(string) kind { return k.of }
	case record:
		return func(name string) kind { return k[name] }
	}
	return nil
}

// addsUp reports whether both files have a list of a setting, and both count.
func (s *Settings) addsUp(k *key) bool {
	return k.adds && listed(s.User, k.name) && listed(s.Project, k.name)
}

func listed(f *File, name string) bool { v := f.Raw(name); return v != nil && v[0] == '[' }

// Get is the value in force of a setting, of a member such as
// modelThinkingLevels.anthropic/claude-opus-4-8, or of a name that several
// settings share, such as retry; to be shown, see Setting. Lists that add up are
// one. It is nil for none. A name that is no setting is a *Problem.
func (s *Settings) Get(name string) (jsontext.Value, error) {
	var group object
	for _, k := range keys() {
		if strings.HasPrefix(k.name, name+".") && !k.old {
			if v, err := s.Get(k.name); err == nil && v != nil {
				group = group.put(strings.Split(k.name, ".")[strings.Count(name, ".")+1:], v)
			}
		}
	}
	if group != nil {
		return group.append(nil), nil
	}
	k, of := kindOf(name)
	if k == nil {
		return nil, unknown(name)
	}
	value := s.at(split(name)...)
	switch {
	case name == of.name && s.addsUp(of):
		user, project := s.User.Raw(name), s.Project.Raw(name)
		value = joinLists(user, project)
	case value == nil || value[0] == 'n':
		value = nil
		if name == of.name {
			value = of.otherwise()
		}
	}
	return shown(k, value), nil
}

// joinLists is two lists as one.
func joinLists(lists ...jsontext.Value) jsontext.Value {
	out := []byte{'['}
	var r jsonwire.Reader
	for _, list := range lists {
		r.Reset(list)
		for r.Array(); r.More(); {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, r.Raw()...)
		}
	}
	return append(out, ']')
}

// kindOf is the kind of the value of a name, and the setting that it belongs to;
// nil where it is no setting and no member of one.
func kindOf(name string) (kind, *key) {
	of := lookUp(name)
	if of == nil || of.old || strings.HasSuffix(name, ".") {
		return nil, nil
	}
	k := of.kind
	for _, part := range split(name)[len(strings.Split(of.name, ".")):] {
		members := membersOf(k)
		if members == nil || part == "" {
			return nil, nil
		}
		if k = members(part); k == nil {
			return nil, nil
		}
	}
	return k, of
}

// unknown says that a name is no setting.
func unknown(name string) error {
	p := &Problem{Kind: Unknown, Key: name}
	if old := lookUp(name); old != nil && old.old {
		p.Suggestion = strings.ReplaceAll(old.means, "`", "")
		return p
	}
	if p.Suggestion = suggest(nil, name); p.Suggestion == "" {
		p.Suggestion = endsIn(name)
	}
	return p
}

// endsIn is the settings whose last word is a name.
func endsIn(name string) string {
	var found []string
	for _, k := range keys() {
		if at := strings.LastIndexByte(k.name, '.'); !k.old && at >= 0 && strings.EqualFold(k.name[at+1:], name) {
			found = append(found, k.name)
		}
	}
	return orList(found)
}

// Known reports whether a name is that of a setting or of a member of one: nil, or
// a *Problem.
func Known(name string) error {
	if k, _ := kindOf(name); k == nil {
		return unknown(name)
	}
	return nil
}

// Has reports whether the file says something under a name, if only something
// that does not count.
func (f *File) Has(name string) bool {
	return f.root.at(split(name)) != nil || slices.ContainsFunc(f.Problems, func(p *Problem) bool { return p.Key == name })
}

// Shown is what the file says under the name of a setting, to be shown: see
// Setting.
func (f *File) Shown(name string) jsontext.Value {
	k, _ := kindOf(name)
	return shown(k, f.root.at(split(name)))
}

// ParseValue makes the value that a setting is to have of the text that a person
// writes: JSON where the setting is no text, else the text itself. What the
// setting cannot have is a *Problem, and so is a name that is none.
func ParseValue(name, text string) (jsontext.Value, error) {
	if !utf8.ValidString(name) || !utf8.ValidString(text) {
		return nil, errors.New("names and values of settings are text in UTF-8, and this is not")
	}
	k, _ := kindOf(name)
	if k == nil {
		return nil, unknown(name)
	}
	value := jsontext.Value(strings.TrimSpace(text))
	if isText(k) || jsonwire.Check(value) != nil {
		value = jsonwire.AppendString(nil, text)
	}
	err := checkValue(name, value)
	if l, is := k.(list); is && value[0] != '[' && value[0] != 'n' { // the form of former times is not one to write
		err = &Problem{Kind: Invalid, Key: name, Found: show(value), Want: l.wants()}
	}
	if p, ok := err.(*Problem); ok && p.Key == name {
		switch k.(type) {
		case list, table, record:
			p.Want += ", as JSON"
		}
	}
	return value, err
}

// isText reports whether every value of a kind is a text.
func isText(k kind) bool {
	switch k.(type) {
	case text, oneOf:
		return true
	}
	return false
}

// Group lists the settings whose names begin with a name and a dot.
func Group(name string) []string {
	return slices.DeleteFunc(Names(), func(n string) bool { return !strings.HasPrefix(n, name+".") })
}

// shown is a value without the passwords of addresses, in compact form.
func shown(k kind, value jsontext.Value) jsontext.Value {
	if value == nil {
		return nil
	}
	if t, ok := k.(text); ok && t.hidden { // an address, maybe without its scheme
		s, _ := jsonwire.StringValue(value)
		scheme, rest, found := strings.Cut(s, "://")
		if !found {
			scheme, rest = "", s
		} else {
			scheme += "://"
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			s = scheme + "***" + rest[at:]
		}
		return jsonwire.AppendString(nil, s)
	}
	out, _ := jsonwire.AppendCompact(nil, value) // it was checked when it was read
	return jsontext.Value(WithoutPasswords(string(out)))
}

// gitUser is what stands before the host of a repository in git:USER@HOST/PATH.
var gitUser = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\bgit:)[^\s/"\\]+(@[^\s/:@"\\]+/)`) })

// WithoutPasswords is a text without the users and passwords of addresses in it. A
// user alone is one too over HTTP, where it is a token; over SSH it is a name.
func WithoutPasswords(text string) string {
	if strings.Contains(text, "git:") {
		text = gitUser().ReplaceAllString(text, "$1***$2")
	}
	const mark = "://"
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, mark)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(mark)
		host := rest
		if end := strings.IndexAny(rest, "/?#\\\" "); end >= 0 {
			host = rest[:end]
		}
		web := strings.HasSuffix(before, "http") || strings.HasSuffix(before, "https")
		if user := strings.LastIndexByte(host, '@'); user >= 0 && (web || strings.IndexByte(host[:user], ':') >= 0) {
			out.WriteString("***")
			rest = rest[user:]
		}
		text = rest
	}
}
