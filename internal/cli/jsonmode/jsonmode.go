// Package jsonmode is the one-shot mode that writes what happens as JSON
// records: the header of the session, then the events of each prompt.
package jsonmode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/opening"
	"github.com/pinch-agent/pinch/internal/cli/record"
)

// Run writes the session's header, says the prompts one after the other and
// writes what happens in the form wire. An answer that fails is in the records and no error; an
// error says that there was no run, or that out could not be written.
func Run(ctx context.Context, h *harness.Harness, prompts []opening.Prompt, wire record.Wire, out io.Writer) error {
	w := record.NewWriter(out)
	defer h.Subscribe(func(_ context.Context, ev harness.Event) error {
		err := w.Write(ctx, func(dst []byte) []byte {
			n := len(dst)
			if dst = wire.AppendEvent(dst, &ev); len(dst) > n {
				dst = append(dst, '\n')
			}
			return dst
		})
		if ctx.Err() != nil {
			// The run is being ended: a reader that does not read must not
			// keep its last message from the session.
			return nil
		}
		return err
	})()
	header := h.Session().Header()
	err := w.Write(ctx, func(dst []byte) []byte { return append(append(dst, header.Raw...), '\n') })
	for _, p := range prompts {
		if err != nil || ctx.Err() != nil {
			break
		}
		_, err = p.Say(ctx, h)
		if e, ok := errors.AsType[*harness.Error](err); ok && e.Kind == harness.KindUnknown && w.Err() == nil {
			err = nil // the failure of the loop is in the records
		}
	}
	if e := w.Finish(ctx); err == nil {
		err = e
	}
	if e := w.Err(); err != nil && e != nil {
		where := ""
		if h.Session().File() != "" {
			where = ": what was done until then is in the session"
		}
		err = fmt.Errorf("the records could not be written (%w)%s", e, where)
	}
	return err
}
