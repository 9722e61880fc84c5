package cli

import (
	"context"
	"io"
	"log"
	"testing"
)

// What the HTTP client logs of servers is not for the terminal.
func TestNothingIsLogged(t *testing.T) {
	old := log.Writer()
	t.Cleanup(func() { log.SetOutput(old) })
	log.SetOutput(t.Output())
	start(func(context.Context, *program) error {
		if log.Writer() != io.Discard {
			t.Error("the standard log writes")
		}
		return nil
	})
}
