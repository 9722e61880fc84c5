package harness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/panics"
	"github.com/pinch-agent/pinch/session"
)

// Kind classifies an Error for callers that switch on it.
type Kind string

// The kinds of errors that a Harness returns.
const (
	KindBusy            Kind = "busy"             // a run is active
	KindInvalidState    Kind = "invalid_state"    // the operation makes no sense now
	KindInvalidArgument Kind = "invalid_argument" // the caller's argument is wrong
	KindSession         Kind = "session"          // the session could not be read or written
	KindAuth            Kind = "auth"             // no usable credentials for the model: Options.Credentials failed, or the wire format has no key
	KindHook            Kind = "hook"             // one of the Hooks failed, or with Options.Embedded a listener at the queue_update of a run that takes messages
	KindCompaction      Kind = "compaction"       // the conversation could not be compacted
	KindBranchSummary   Kind = "branch_summary"   // a branch could not be summed up
	KindUnknown         Kind = "unknown"          // a listener, a callback of Options or the stream function failed or panicked
)

// Error is every error that a Harness returns. What a model or a tool does
// wrong is no error: it is in the messages. Err says what the user can do, where
// something is known; that of a session is a *session.Error with its Advice.
type Error struct {
	Kind Kind
	Op   string // the operation: prompt, steer, set model, …
	Err  error  // the cause
}

func (e *Error) Error() string {
	if text := e.Err.Error(); strings.HasPrefix(text, e.Op+": ") {
		return text // of a package that calls the operation the same
	}
	return fmt.Sprintf("%s: %v", e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrap makes an *Error of what ended op.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	kind := KindUnknown
	if e, ok := errors.AsType[*agent.Error](err); ok && (e.Kind == agent.NoMessages || e.Kind == agent.LastIsAssistant) {
		kind = KindInvalidState
	}
	return &Error{kind, op, err}
}

// isBroken reports whether err says that the session could not be written.
func isBroken(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == KindSession
}

// isRefused reports whether the session does not take an entry, now or later.
func isRefused(err error) bool { return errors.Is(err, &session.Error{Kind: session.BadEntry}) }

// guarded makes an error of a panic: callbacks of Options are called on the way.
func guarded(op string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{KindUnknown, op, panics.Recovered("a callback of the options", v)}
		}
	}()
	return fn()
}
