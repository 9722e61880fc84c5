package compact

// Kind classifies an Error for callers.
type Kind string

// The kinds of errors.
const (
	AlreadyCompacted Kind = "already_compacted"    // the leaf is a compaction
	NothingToCompact Kind = "nothing_to_compact"   // all of the conversation is recent, or there is none
	Truncated        Kind = "truncated_summary"    // the summary ran into the model's output limit
	CalledTool       Kind = "tool_call_in_summary" // the model called a tool instead of writing
	EmptySummary     Kind = "empty_summary"        // the model wrote nothing
	Oversized        Kind = "oversized_summary"    // the summary takes more than half of the context window
	TooLong          Kind = "too_long"             // no piece of the conversation was short enough for the model
	Failed           Kind = "summarization_failed" // the request failed
	Aborted          Kind = "aborted"              // the context ended
	InvalidSettings  Kind = "invalid_settings"     // a number that makes no sense
)

// Error is what kept a conversation from being compacted, or a branch from
// being summed up. Neither changes a session, so that it is as it was.
type Error struct {
	Kind   Kind
	Op     string // what was attempted, such as "compact"
	Part   Part   // the summary that the model's answer was meant for; "" when none came
	Err    error  // the cause, such as the provider's words; nil when the kind says it all
	Advice string // what the user can do; "" when nothing is known
}

func (e *Error) Error() string { return e.Op + ": " + e.Reason() }

// Reason says what went wrong and what the user can do, without the operation.
func (e *Error) Reason() string {
	text := kindText(e.Kind)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Advice != "" {
		text += " (" + e.Advice + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Kind: k}) compare kinds.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Part == "" && t.Err == nil && t.Advice == ""
}

func kindText(k Kind) string {
	switch k {
	case AlreadyCompacted:
		return "the conversation was compacted already"
	case NothingToCompact:
		return "there is nothing to compact"
	case Truncated:
		return "the summary is longer than the model's output limit"
	case CalledTool:
		return "the model called a tool instead of writing a summary"
	case EmptySummary:
		return "the model wrote no summary"
	case Oversized:
		return "the summary takes more than half of the context window"
	case TooLong:
		return "the conversation is too long for the model, even in pieces"
	case Failed:
		return "the summary failed"
	case Aborted:
		return "aborted"
	case InvalidSettings:
		return "invalid settings"
	}
	return string(k)
}
