package panics

import (
	"errors"
	"strings"
	"testing"
)

type odd struct{}

func (*odd) Error() string { panic("no text") }

func explode() error { panic("boom") }

func TestGuard(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		f     func() error
		text  string
		where string // in the stack; "" for no panic
	}{
		"nothing":       {func() error { return nil }, "", ""},
		"an error":      {func() error { return cause }, "cause", ""},
		"a panic":       {explode, "the tool panicked: boom", "panics.explode("},
		"with an error": {func() error { panic(cause) }, "the tool panicked: cause", "panics.TestGuard"},
		"in its text":   {func() error { return (*odd)(nil) }, "the tool panicked: no text", "panics.(*odd).Error("},
	} {
		err := Do("the tool", c.f)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.text {
			t.Errorf("%s: %v", name, err)
		}
		e, panicked := errors.AsType[*Error](err)
		if panicked != (c.where != "") || panicked && !strings.Contains(string(e.Stack), c.where) {
			t.Errorf("%s: %+v", name, e)
		}
		if strings.Contains(text, "goroutine") {
			t.Errorf("%s: the text has the stack: %s", name, text)
		}
	}
	if err := Do("", func() error { panic(cause) }); !errors.Is(err, cause) || err.Error() != "panicked: cause" {
		t.Error(err)
	}
}
