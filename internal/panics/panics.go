// Package panics makes errors of panics in functions that a program brings:
// tools, hooks, listeners, writers.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic as an error. Its text is for everybody, its Stack for who
// looks for the fault.
type Error struct {
	What  string // that panicked; "" leaves it to the one who wraps the error
	Value any    // of the panic
	Stack []byte // of the goroutine, as runtime/debug.Stack writes it
}

func (e *Error) Error() string {
	if e.What == "" {
		return fmt.Sprintf("panicked: %v", e.Value)
	}
	return fmt.Sprintf("%s panicked: %v", e.What, e.Value)
}

// Unwrap is the value of the panic when that is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recovered makes an error of v, what recover has returned. Deferred functions
// call it themselves: the stack still shows where the panic was.
func Recovered(what string, v any) *Error {
	return &Error{What: what, Value: v, Stack: debug.Stack()}
}

// Guard calls f, and makes an error of its panic and of one in the text of its
// error, such as of a nil pointer that became an error.
func Guard[T any](what string, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(what, p)
		}
	}()
	if v, err = f(); err != nil {
		_ = err.Error()
	}
	return v, err
}

// Do is Guard for a function that gives nothing but an error.
func Do(what string, f func() error) error {
	_, err := Guard(what, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
