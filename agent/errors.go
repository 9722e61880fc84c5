package agent

import (
	"fmt"

	"github.com/pinch-agent/pinch/internal/panics"
)

// ErrorKind says what is wrong with a call of this package.
type ErrorKind string

// The kinds of Error.
const (
	// Busy: a run is active. Queue the message with Steer or FollowUp, or wait
	// with WaitForIdle.
	Busy ErrorKind = "busy"
	// NoMessages: there is nothing to go on from. Prompt instead.
	NoMessages ErrorKind = "no_messages"
	// LastIsAssistant: the transcript ends with an answer, which a model cannot
	// go on from. Prompt instead.
	LastIsAssistant ErrorKind = "last_is_assistant"
	// InvalidConfig: the Config lacks something that a run needs.
	InvalidConfig ErrorKind = "invalid_config"
	// Panicked: a hook, a listener or the stream function panicked.
	Panicked ErrorKind = "panicked"
	// Unreported: a listener failed while it was told how the run ended.
	Unreported ErrorKind = "unreported"
)

// Error is what this package itself finds wrong. What hooks, listeners and
// stream functions return is passed on as it is.
type Error struct {
	Kind ErrorKind
	Op   string // prompt, continue, reset, run
	Err  error  // cause; nil when Kind says it all
}

func (e *Error) Error() string {
	var text string
	switch e.Kind {
	case Busy:
		text = "the agent is running; queue the message or wait until it is idle"
	case NoMessages:
		text = "there is no message to continue from; prompt instead"
	case LastIsAssistant:
		text = "the last message is an answer; prompt instead"
	case InvalidConfig:
		text = "the configuration is not complete"
	case Panicked:
		text = "a hook, a listener or the stream function panicked"
	case Unreported:
		text = "a listener failed at the end of the run"
	default:
		text = string(e.Kind)
	}
	if p, ok := e.Err.(*PanicError); ok && e.Kind == Panicked {
		return e.Op + ": " + p.Error()
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Op, text, e.Err)
	}
	return e.Op + ": " + text
}

func (e *Error) Unwrap() error { return e.Err }

// PanicError is a panic in something that a program brought: a tool, a hook, a
// listener, a stream function, a callback of the harness. It stands in the chain
// of the errors of this package and of harness, and in Event.Err where a call of
// a tool failed by it; errors.AsType finds it. Its text says what panicked, and
// is what a model gets to read. Stack, the stack of the goroutine, is for logs.
// Value is what was panicked with; an error is in the chain too.
type PanicError = panics.Error
