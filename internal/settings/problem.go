package settings

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/internal/spelling"
)

// ProblemKind tells problems with single settings apart.
type ProblemKind string

// The kinds of problems.
const (
	Invalid   ProblemKind = "invalid"   // a value that the setting cannot have; it does not count
	Unknown   ProblemKind = "unknown"   // no setting of this version; it is kept
	Misplaced ProblemKind = "misplaced" // counts in the user's file only
	Duplicate ProblemKind = "duplicate" // stands in its object twice; the last one counts
)

// Problem is something wrong with one setting of a file whose others count. It
// is an error by its form.
type Problem struct {
	Kind         ProblemKind
	Path         string // of the file; "" for a name or a value that somebody asked for
	Line, Column int    // from 1; columns are bytes
	Key          string // with dots and indexes, such as retry.enabled or skills[2]

	Found string // with Invalid: what stands there, in short
	Want  string // with Invalid: what may stand there

	Suggestion string // with Unknown: the setting that was meant, "" when that is not clear
	// Kept says that the value which the setting had before the file changed
	// stays in force.
	Kept bool
	// AtUse says that the value is not passed over: whoever asks for the setting
	// gets an error.
	AtUse bool
}

func (p *Problem) Error() string {
	where := ""
	if p.Path != "" {
		where = fmt.Sprintf("%s:%d:%d: ", p.Path, p.Line, p.Column)
	}
	switch p.Kind {
	case Invalid:
		what := "; it does not count"
		switch {
		case p.Path == "":
			what = ""
		case p.Kept:
			what = "; its last value stays in force"
		case p.AtUse:
			what = "; correct it"
		}
		return fmt.Sprintf("%s%s is %s and has to be %s%s", where, p.Key, p.Found, p.Want, what)
	case Misplaced:
		return fmt.Sprintf("%s%s counts in the user's own settings only", where, p.Key)
	case Duplicate:
		return fmt.Sprintf("%s%s stands here a second time; the last one counts", where, p.Key)
	}
	if p.Suggestion != "" {
		return fmt.Sprintf("%s%s is no setting; did you mean %s?", where, p.Key, p.Suggestion)
	}
	if p.Path == "" {
		if p.Key == "" {
			return `"" is no setting`
		}
		return p.Key + " is no setting"
	}
	return fmt.Sprintf("%s%s is no setting of this version; it is kept", where, p.Key)
}

// setting is the name of the setting that the problem is about, or of the object
// of settings.
func (p *Problem) setting() string {
	if k := lookUp(p.Key); k != nil {
		return k.name
	}
	return p.Key
}

// suggest names the setting that was meant by a name that is none: one beside it
// that is spelled nearly so, and that the file does not have.
func suggest(root object, name string) string {
	parent, last := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		parent, last = name[:i+1], name[i+1:]
	}
	var absent []string
	for _, k := range keys() {
		rest, ok := strings.CutPrefix(k.name, parent)
		if !ok || k.old {
			continue
		}
		rest, _, _ = strings.Cut(rest, ".")
		if root.at(strings.Split(parent+rest, ".")) == nil {
			absent = append(absent, rest)
		}
	}
	meant := spelling.Meant(last, absent)
	if meant == "" {
		return ""
	}
	return parent + meant
}

// checkValue reports whether a value is one that a setting may have: nil, or a
// *Problem. A name that is no setting may have every value.
func checkValue(name string, v []byte) error {
	_, problems := checkText(object(nil).put(split(name), v).append(nil), false)
	for _, p := range problems {
		if p.Kind == Invalid {
			p.Line, p.Column, p.AtUse = 0, 0, false
			return p
		}
	}
	return nil
}
