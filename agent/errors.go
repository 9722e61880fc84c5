package agent

import "fmt"

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
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Op, text, e.Err)
	}
	return e.Op + ": " + text
}

func (e *Error) Unwrap() error { return e.Err }

// panicError makes an error of what recover returned.
func panicError(v any) error {
	if err, ok := v.(error); ok {
		return err
	}
	return fmt.Errorf("%v", v)
}
