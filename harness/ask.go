package harness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/panics"
)

// hookSet is one registration; its address tells it from others.
type hookSet struct{ Hooks }

// sets are the registered hooks. The list is never changed.
func (h *Harness) sets() []*hookSet {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hooks
}

// defaultGrace is how long a hook may take to return once its context has ended.
const defaultGrace = time.Second

func (h *Harness) grace() time.Duration {
	if h.opts.HookGrace > 0 {
		return h.opts.HookGrace
	}
	return defaultGrace
}

// ask calls foreign code so that it can neither end the process nor hold it up:
// in a goroutine of its own, which is left behind when it does not return
// within grace after ctx has ended.
func ask[T any](ctx context.Context, grace time.Duration, fn func(ctx context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		// The error holds for a hook that leaves through runtime.Goexit.
		a := answer{err: errors.New("left its goroutine without an answer")}
		defer func() { done <- a }()
		a.v, a.err = panics.Guard("", func() (T, error) { return fn(ctx) })
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case a := <-done:
		return a.v, a.err
	case <-t.C:
		var none T
		return none, fmt.Errorf("did not return when its context ended: %w", context.Cause(ctx))
	}
}

// askSet calls one hook of s. A failure that s reports is no error, and then the
// answer is the zero one. guards says that failures count all the same.
func askSet[T any](ctx context.Context, h *Harness, s *hookSet, name HookName, guards bool, fn func(ctx context.Context) (T, error)) (T, error) {
	v, err := ask(ctx, h.grace(), fn)
	if err == nil {
		return v, nil
	}
	var none T
	return none, s.failed(ctx, name, guards, err)
}

// failed applies the rule of s to a failure: reported, or an error of the hook.
func (s *hookSet) failed(ctx context.Context, name HookName, guards bool, err error) error {
	e := &HookError{Hook: name, Set: s.Name, Err: err}
	if s.Report == nil {
		return e
	}
	if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) { // the end of a run is no failure
		_, _ = ask(ctx, defaultGrace, func(ctx context.Context) (struct{}, error) {
			s.Report(ctx, e)
			return struct{}{}, nil
		})
	}
	if guards {
		return e
	}
	return nil
}

// hookFailure is what a failed hook makes of an operation.
func hookFailure(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{KindHook, op, err}
}

// isHook reports whether err is the failure of a hook.
func isHook(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == KindHook
}

// notify tells the hooks of an event, as h.tell does the listeners.
func (h *Harness) notify(ctx context.Context, sets []*hookSet, ev *Event) (err error) {
	for _, s := range sets {
		if len(s.On) == 0 {
			continue
		}
		fn := s.On[ev.Type]
		if fn == nil {
			continue
		}
		told := *ev
		_, e := askSet(ctx, h, s, HookName(ev.Type), false, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, fn(ctx, told)
		})
		if e != nil && err == nil {
			err = hookFailure("event "+string(ev.Type), e)
		}
	}
	return err
}

// anyHook reports whether a registered set has a hook.
func anyHook(sets []*hookSet, has func(*Hooks) bool) bool {
	for _, s := range sets {
		if has(&s.Hooks) {
			return true
		}
	}
	return false
}

// checkList refuses lists of messages that a request could not be made of.
func checkList(messages []agent.Message) error {
	for _, m := range messages {
		if isNil(m) || reflect.ValueOf(m).Kind() != reflect.Pointer {
			return errors.New("returned a message that is nil or no pointer")
		}
	}
	return nil
}
