package session

import "strings"

// Kind classifies an Error for callers.
type Kind string

// The kinds of errors.
const (
	NotFound       Kind = "not_found"            // no such entry, or no such session
	NotOnBranch    Kind = "not_on_branch"        // the target of an edit is not on the active path
	NotEditable    Kind = "not_editable"         // the target of an edit has no content to edit
	BadReplacement Kind = "bad_replacement"      // a replacement is neither null nor {content}
	BadEntry       Kind = "bad_entry"            // an entry that must not be stored
	BadID          Kind = "bad_id"               // a session id of a form that file names do not bear
	InvalidFile    Kind = "invalid_session_file" // the log is no session; it was not touched
	Exists         Kind = "exists"               // a log of this name is there already
	Busy           Kind = "busy"                 // somebody else has the log open for writing
	Conflict       Kind = "conflict"             // somebody else wrote to the log, or removed it
	ReadOnly       Kind = "read_only"            // the log cannot be written
	DiskFull       Kind = "disk_full"            // no room for the entry
	MissingCWD     Kind = "missing_cwd"          // the session's working directory is gone
	Damaged        Kind = "damaged"              // a part of the log cannot be read
	IO             Kind = "io"                   // any other failure of the store
	Closed         Kind = "closed"               // the session was closed before
)

// Error is what failed, why, and what can be done about it. After a failed
// append the session is as it was before.
type Error struct {
	Kind   Kind
	Op     string // what was attempted, such as "append"
	Path   string // file or entry id; "" when there is none
	Err    error  // the cause; nil when the kind says it all
	Advice string // what the user can do; "" when nothing is known
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("session: ")
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteString(" ")
		b.WriteString(e.Path)
	}
	b.WriteString(": ")
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(e.Kind.text())
	}
	if e.Advice != "" {
		b.WriteString(" (")
		b.WriteString(e.Advice)
		b.WriteString(")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Kind: k}) compare kinds.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Err == nil
}

func (k Kind) text() string {
	switch k {
	case NotFound:
		return "not found"
	case NotOnBranch:
		return "not on the active branch"
	case NotEditable:
		return "has no content that can be edited"
	case BadReplacement:
		return "the replacement is neither null nor an object with content"
	case BadEntry:
		return "such an entry cannot be stored"
	case BadID:
		return "session ids are letters, digits, dots, dashes and underscores between letters or digits"
	case InvalidFile:
		return "not a session file"
	case Exists:
		return "exists already"
	case Busy:
		return "in use"
	case Conflict:
		return "was changed by somebody else"
	case ReadOnly:
		return "read-only"
	case DiskFull:
		return "no space left"
	case MissingCWD:
		return "the working directory of the session is missing"
	case Damaged:
		return "damaged"
	case Closed:
		return "closed"
	case IO:
		return "input/output error"
	}
	return string(k)
}
