package cli

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/llm"
)

// Mode is the output interface that --mode asks for.
type Mode string

// The values of --mode. The empty Mode means that the option is absent.
const (
	ModeText Mode = "text"
	ModeJSON Mode = "json"
	ModeRPC  Mode = "rpc"
)

// Args is a parsed command line without its first-word commands.
type Args struct {
	Mode  Mode
	Print bool
	Wire  record.Wire // of the records of JSON and RPC mode

	Continue   bool
	Resume     bool
	Session    *string
	SessionID  *string
	Fork       *string
	SessionDir string
	NoSession  bool
	Name       string // trimmed
	Branch     string // the entry to go back to, or the beginning of its id
	Summarize  bool   // what Branch leaves

	Provider string
	Model    string
	Models   []string
	Thinking llm.ThinkingLevel // "" when absent or invalid
	APIKey   string
	keys     []string // every value of --api-key: the last one counts
	Record   string   // file for the provider traffic of this run

	Tools          []string // nil when absent
	ExcludeTools   []string
	NoTools        bool
	NoBuiltinTools bool
	NoMCP          bool

	Extensions      []string
	NoExtensions    bool
	Skills          []string
	NoSkills        bool
	PromptTemplates []string
	NoTemplates     bool
	Themes          []string
	NoThemes        bool
	NoContextFiles  bool
	UseTheme        string

	SystemPrompt       *string
	AppendSystemPrompt []string

	TUIMode    string
	Verbose    bool
	Approve    *bool // project trust for this run; nil when not said
	Offline    bool
	Export     string
	ListModels *string // the search text
	Help       bool
	Version    bool

	Messages []string
	Files    []string // of @file arguments, without the @
	// Unknown holds long flags that are no built-in option; extensions may
	// claim them.
	Unknown []Flag

	Diagnostics []Diagnostic
}

// Flag is a long flag that the parser does not know.
type Flag struct {
	Name  string  // without dashes
	Value *string // nil for a flag without a value
}

// Diagnostic is a remark about the command line or the configuration.
type Diagnostic struct {
	Error   bool // else a warning
	Message string
}

// String is the line that a person reads.
func (d Diagnostic) String() string {
	if d.Error {
		return "Error: " + d.Message
	}
	return "Warning: " + d.Message
}

func (a *Args) errorf(format string, args ...any) {
	a.Diagnostics = append(a.Diagnostics, Diagnostic{Error: true, Message: fmt.Sprintf(format, args...)})
}

func (a *Args) warnf(format string, args ...any) {
	a.Diagnostics = append(a.Diagnostics, Diagnostic{Message: fmt.Sprintf(format, args...)})
}

// takes says what an option does with the word behind it.
type takes uint8

const (
	nothing     takes = iota
	value             // the next word, whatever it looks like
	maybeValue        // the next word unless it looks like an option or a file
	maybeSpeech       // as maybeValue, but three dashes are allowed: front matter
)

// group is where help lists an option.
type group string

const (
	forOutput    group = "Output"
	forSessions  group = "Sessions"
	forModel     group = "Model"
	forPrompt    group = "Prompt"
	forTools     group = "Tools"
	forResources group = "Skills, templates and packages"
	forOthers    group = "Other"
)

type option struct {
	long, short string
	group       group
	arg, about  string   // for help; [arg] may be left out
	words       []string // that its value can be; nil for any
	files       bool     // its value may be a path
	lists       listing  // its value may be one of these
	takes       takes
	// set stores the option. v is nil for an option without a value.
	set func(a *Args, v *string)
}

func lookup(word string) *option {
	for i := range options {
		if o := &options[i]; word == o.long || word == o.short {
			return o
		}
	}
	return nil
}

// Parse reads a command line. It never fails: what is wrong stands in
// Diagnostics.
func Parse(words []string) *Args {
	a := &Args{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			for _, w := range words[i+1:] {
				a.positional(w)
			}
			break
		}
		// The empty word is a message; it must not match an absent short name.
		if o := lookup(word); o != nil && word != "" {
			i += a.apply(o, words[i+1:])
			continue
		}
		switch {
		case strings.HasPrefix(word, "--"):
			i += a.unknown(word[2:], words[i+1:])
		case strings.HasPrefix(word, "-"):
			a.errorf("Unknown option: %s", word)
		default:
			a.positional(word)
		}
	}
	a.checkConflicts()
	return a
}

// apply sets o and returns how many of the words behind it it took.
func (a *Args) apply(o *option, rest []string) int {
	var next *string
	if len(rest) > 0 {
		next = &rest[0]
	}
	switch o.takes {
	case nothing:
		next = nil
	case value:
		if next == nil {
			if o.long == "--mode" {
				a.errorf("--mode requires text, json, or rpc")
			} else {
				a.errorf("%s requires a value", o.long)
			}
			return 0
		}
	case maybeValue:
		if next != nil && looksLikeOption(*next) {
			next = nil
		}
	case maybeSpeech:
		if next != nil && looksLikeOption(*next) && !strings.HasPrefix(*next, "---") {
			next = nil
		}
	}
	o.set(a, next)
	if next == nil {
		return 0
	}
	return 1
}

func looksLikeOption(word string) bool {
	return strings.HasPrefix(word, "-") || strings.HasPrefix(word, "@")
}

func (a *Args) unknown(word string, rest []string) int {
	if name, v, ok := strings.Cut(word, "="); ok {
		a.Unknown = append(a.Unknown, Flag{Name: name, Value: &v})
		return 0
	}
	if len(rest) > 0 && !looksLikeOption(rest[0]) {
		a.Unknown = append(a.Unknown, Flag{Name: word, Value: &rest[0]})
		return 1
	}
	a.Unknown = append(a.Unknown, Flag{Name: word})
	return 0
}

func (a *Args) positional(word string) {
	if file, ok := strings.CutPrefix(word, "@"); ok {
		a.Files = append(a.Files, file)
	} else {
		a.Messages = append(a.Messages, word)
	}
}

// checkConflicts reports options that exclude each other, and a session id of a
// form that no file name may have.
func (a *Args) checkConflicts() {
	type rival struct {
		given bool
		name  string
	}
	conflict := func(name string, rivals ...rival) {
		var with []string
		for _, r := range rivals {
			if r.given {
				with = append(with, r.name)
			}
		}
		if len(with) > 0 {
			a.errorf("%s cannot be combined with %s", name, strings.Join(with, ", "))
		}
	}
	session := rival{a.Session != nil, "--session"}
	cont := rival{a.Continue, "--continue"}
	resume := rival{a.Resume, "--resume"}
	if a.Fork != nil {
		conflict("--fork", session, cont, resume, rival{a.NoSession, "--no-session"})
	}
	if a.SessionID != nil {
		conflict("--session-id", session, cont, resume)
		if !validSessionID(*a.SessionID) {
			a.errorf("Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character")
		}
	}
}

// Failed reports whether a diagnostic is an error.
func (a *Args) Failed() bool {
	for _, d := range a.Diagnostics {
		if d.Error {
			return true
		}
	}
	return false
}

// validSessionID reports whether id may name a session.
func validSessionID(id string) bool {
	alnum := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	if id == "" || !alnum(id[0]) || !alnum(id[len(id)-1]) {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !alnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
