// Package print is the one-shot mode: prompts in, the text of the last answer
// out.
package print

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/opening"
	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Run says the prompts one after the other and prints the text of the last
// answer on out. A prompt that fails does not keep the next from being said. It
// returns the exit status: 1 when the last answer failed or was cut off at the
// model's limit.
func Run(ctx context.Context, h *harness.Harness, prompts []opening.Prompt, out, errs io.Writer) int {
	saved := h.Session().File() != ""
	var last *llm.Assistant
	var failed error
	for _, p := range prompts {
		last, failed = p.Say(ctx, h)
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed != nil && (last == nil || last.StopReason != llm.StopError):
		if e, ok := errors.AsType[*harness.Error](failed); ok {
			failed = e.Err // without the name of the operation, which says nothing to a person
		}
		fmt.Fprintln(errs, "Error: "+OneLine(failed.Error()))
		return 1
	case last == nil:
		return 0
	case last.StopReason == llm.StopError || last.StopReason == llm.StopAborted:
		fmt.Fprintln(errs, Explain(last, h.Model().ContextWindow, saved))
		return 1
	}
	err := write(ctx, out, text(last))
	if err != nil && ctx.Err() != nil {
		err = errors.New("nobody reads it")
	}
	if err != nil {
		where := ""
		if saved {
			where = ": it is in the session"
		}
		fmt.Fprintf(errs, "Error: the answer could not be written (%v)%s\n", err, where)
		return 1
	}
	if last.StopReason == llm.StopLength {
		advice := ""
		if saved {
			advice = "; -c goes on with this session"
		}
		fmt.Fprintf(errs, "Warning: the answer was cut off at the model's output limit%s.\n", advice)
		return 1
	}
	return 0
}

// write writes text; a reader that does not read cannot hold up the end of ctx.
func write(ctx context.Context, out io.Writer, text string) error {
	w := record.NewWriter(out)
	err := w.Write(ctx, func(dst []byte) []byte { return append(dst, text...) })
	if e := w.Finish(ctx); err == nil {
		err = e
	}
	return err
}

// text is the text blocks of an answer, each with a line end behind it.
func text(m *llm.Assistant) string {
	var b strings.Builder
	for _, c := range m.Content {
		if t, ok := c.(*llm.Text); ok {
			b.WriteString(jsonwire.ToValidUTF8(t.Text))
			b.WriteByte('\n')
		}
	}
	return b.String()
}
