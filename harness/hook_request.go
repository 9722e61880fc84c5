package harness

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// beforeRequest lets hooks change the options and headers of a request, and
// makes the request call those that see what is sent and what comes.
func (h *Harness) beforeRequest(ctx context.Context, r *run, m *llm.Model, req *llm.Request) error {
	sets := h.sets()
	for _, s := range sets {
		if s.BeforeProviderRequest == nil {
			continue
		}
		shown := copyOptions(req.Options)
		shown.APIKey, shown.Client, shown.Memo, shown.Env = "", nil, nil, nil
		shown.OnPayload, shown.OnResponse, shown.OnProviderEvent = nil, nil, nil
		patch, err := askSet(ctx, h, s, HookBeforeProviderRequest, false, func(ctx context.Context) (*RequestPatch, error) {
			return s.BeforeProviderRequest(ctx, ProviderRequest{Model: m, SessionID: req.SessionID, Options: shown})
		})
		if err != nil {
			return hookFailure(r.op, err)
		}
		if patch != nil {
			req.Options = patch.apply(req.Options)
		}
	}
	for _, s := range sets {
		if s.BeforeProviderHeaders == nil {
			continue
		}
		headers := maps.Clone(req.Headers)
		if headers == nil {
			headers = map[string]*string{}
		}
		changed, err := askSet(ctx, h, s, HookBeforeProviderHeaders, false, func(ctx context.Context) (map[string]*string, error) {
			err := s.BeforeProviderHeaders(ctx, ProviderHeaders{Model: m, Headers: headers})
			return headers, err
		})
		switch {
		case err != nil:
			return hookFailure(r.op, err)
		case len(changed) > 0:
			req.Headers = changed
		case changed != nil:
			req.Headers = nil
		}
	}
	h.watchPayload(ctx, r, sets, req)
	h.watchResponse(ctx, r, sets, req)
	h.watchEvents(ctx, r, sets, req)
	return nil
}

// failedIn keeps the failure of a hook that was called while an answer arrives:
// the answer fails with its text, and the run with the failure. When the request
// has ended it is none: the wire format sees that by itself.
func (h *Harness) failedIn(ctx context.Context, r *run, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.hookFault = first(r.hookFault, hookFailure(r.op, err))
	return errors.Unwrap(err)
}

// takeFault is the failure that failedIn kept.
func (h *Harness) takeFault(r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := r.hookFault
	r.hookFault = nil
	return err
}

func (h *Harness) watchPayload(ctx context.Context, r *run, sets []*hookSet, req *llm.Request) {
	if !anyHook(sets, func(s *Hooks) bool { return s.BeforeProviderPayload != nil }) {
		return
	}
	before := req.OnPayload
	req.OnPayload = func(payload jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		var out jsontext.Value // nil as long as nobody replaced it
		if before != nil {
			var err error
			if out, err = before(payload, m); err != nil {
				return nil, err
			}
		}
		for _, s := range sets {
			if s.BeforeProviderPayload == nil {
				continue
			}
			shown := slices.Clone(payload)
			if out != nil {
				shown = slices.Clone(out)
			}
			got, err := askSet(ctx, h, s, HookBeforeProviderPayload, false, func(ctx context.Context) (jsontext.Value, error) {
				return s.BeforeProviderPayload(ctx, ProviderPayload{Model: m, Payload: shown})
			})
			if err != nil {
				return nil, h.failedIn(ctx, r, err)
			}
			if got != nil {
				out = got
			}
		}
		return out, nil
	}
}

// watchResponse also tells everybody of the response.
func (h *Harness) watchResponse(ctx context.Context, r *run, sets []*hookSet, req *llm.Request) {
	before := req.OnResponse
	req.OnResponse = func(status int, header http.Header, m *llm.Model) error {
		if before != nil {
			if err := before(status, header, m); err != nil {
				return err
			}
		}
		for _, s := range sets {
			if s.AfterProviderResponse == nil {
				continue
			}
			shown := ProviderResponse{Model: m, Status: status, Header: header.Clone()}
			_, err := askSet(ctx, h, s, HookAfterProviderResponse, false, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, s.AfterProviderResponse(ctx, shown)
			})
			if err != nil {
				return h.failedIn(ctx, r, err)
			}
		}
		if !h.watched(AfterProviderResponse) {
			return nil
		}
		h.mu.Lock()
		h.post(Event{Event: agent.Event{Type: AfterProviderResponse}, Model: m, Status: status, Header: header.Clone()})
		h.mu.Unlock()
		h.deliver()
		return nil
	}
}

func (h *Harness) watchEvents(ctx context.Context, r *run, sets []*hookSet, req *llm.Request) {
	if !anyHook(sets, func(s *Hooks) bool { return s.ProviderStreamEvent != nil }) {
		return
	}
	before := req.OnProviderEvent
	req.OnProviderEvent = func(event jsontext.Value, m *llm.Model) error {
		if before != nil {
			if err := before(event, m); err != nil {
				return err
			}
		}
		for _, s := range sets {
			if s.ProviderStreamEvent == nil {
				continue
			}
			shown := ProviderEvent{Model: m, Data: slices.Clone(event)}
			_, err := askSet(ctx, h, s, HookProviderStreamEvent, false, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, s.ProviderStreamEvent(ctx, shown)
			})
			if err != nil {
				return h.failedIn(ctx, r, err)
			}
		}
		return nil
	}
}

// input takes an input through the hooks.
func (h *Harness) input(ctx context.Context, op string, in Input) (_ Input, handled bool, err error) {
	if in.Source == "" {
		in.Source = FromPerson
	}
	for _, s := range h.sets() {
		if s.Input == nil {
			continue
		}
		shown := in
		shown.Accepted = nil
		shown.Images = slices.Clone(in.Images)
		c, err := askSet(ctx, h, s, HookInput, false, func(ctx context.Context) (*InputChange, error) {
			return s.Input(ctx, shown)
		})
		switch {
		case err != nil:
			return in, false, hookFailure(op, err)
		case c == nil:
			continue
		case c.Handled:
			return in, true, nil
		}
		in.Text = c.Text
		if c.Images != nil {
			in.Images = c.Images
		}
	}
	return in, false, nil
}

// beforeCompact asks the hooks about a compaction. The first that refuses ends
// the question; of several summaries the last counts.
func (h *Harness) beforeCompact(ctx context.Context, c Compacting) (CompactDecision, error) {
	var out CompactDecision
	for _, s := range h.sets() {
		if s.SessionBeforeCompact == nil {
			continue
		}
		d, err := askSet(ctx, h, s, HookSessionBeforeCompact, false, func(ctx context.Context) (*CompactDecision, error) {
			return s.SessionBeforeCompact(ctx, c)
		})
		switch {
		case err != nil:
			return out, hookFailure("compact", err)
		case d == nil:
			continue
		case d.Cancel:
			return CompactDecision{Cancel: true}, nil
		case d.Compaction != nil:
			entry := *d.Compaction
			entry.FromHook = new(true)
			out.Compaction = &entry
		}
	}
	return out, nil
}

// beforeTree asks the hooks about a move. The first that refuses ends the
// question; of each other field the last one that is set counts.
func (h *Harness) beforeTree(ctx context.Context, t TreeMove) (TreeDecision, error) {
	var out TreeDecision
	for _, s := range h.sets() {
		if s.SessionBeforeTree == nil {
			continue
		}
		d, err := askSet(ctx, h, s, HookSessionBeforeTree, false, func(ctx context.Context) (*TreeDecision, error) {
			return s.SessionBeforeTree(ctx, t)
		})
		switch {
		case err != nil:
			return out, hookFailure("navigate", err)
		case d == nil:
			continue
		case d.Cancel:
			return TreeDecision{Cancel: true}, nil
		}
		if d.Summary != nil {
			entry := *d.Summary
			entry.FromHook = new(true)
			out.Summary = &entry
		}
		if d.Instructions != nil {
			out.Instructions = d.Instructions
		}
		if d.ReplaceInstructions != nil {
			out.ReplaceInstructions = d.ReplaceInstructions
		}
		if d.Label != nil {
			out.Label = d.Label
		}
	}
	return out, nil
}

// BeforeSwitch asks the hooks whether the host may go to another session, which
// the host then does with a harness of its own. An error refuses too.
func (h *Harness) BeforeSwitch(ctx context.Context, sw Switching) (cancelled bool, err error) {
	return h.anyCancels(ctx, "switch session", HookSessionBeforeSwitch, func(s *hookSet) func(context.Context) (bool, error) {
		if s.SessionBeforeSwitch == nil {
			return nil
		}
		return func(ctx context.Context) (bool, error) { return s.SessionBeforeSwitch(ctx, sw) }
	})
}

// BeforeFork asks the hooks whether the host may fork the session. An error
// refuses too.
func (h *Harness) BeforeFork(ctx context.Context, f Forking) (cancelled bool, err error) {
	return h.anyCancels(ctx, "fork", HookSessionBeforeFork, func(s *hookSet) func(context.Context) (bool, error) {
		if s.SessionBeforeFork == nil {
			return nil
		}
		return func(ctx context.Context) (bool, error) { return s.SessionBeforeFork(ctx, f) }
	})
}

func (h *Harness) anyCancels(ctx context.Context, op string, name HookName, hook func(s *hookSet) func(context.Context) (bool, error)) (bool, error) {
	for _, s := range h.sets() {
		fn := hook(s)
		if fn == nil {
			continue
		}
		cancel, err := askSet(ctx, h, s, name, true, fn)
		if err != nil {
			return true, hookFailure(op, err)
		}
		if cancel {
			return true, nil
		}
	}
	return false, nil
}

// DiscoverResources asks the hooks for paths of resources; the lists are in the
// order of the hooks.
func (h *Harness) DiscoverResources(ctx context.Context, d Discovery) (Discovered, error) {
	var out Discovered
	for _, s := range h.sets() {
		if s.ResourcesDiscover == nil {
			continue
		}
		got, err := askSet(ctx, h, s, HookResourcesDiscover, false, func(ctx context.Context) (*Discovered, error) {
			return s.ResourcesDiscover(ctx, d)
		})
		if err != nil {
			return out, hookFailure("discover resources", err)
		}
		if got != nil {
			out.Skills = append(out.Skills, got.Skills...)
			out.Prompts = append(out.Prompts, got.Prompts...)
			out.Themes = append(out.Themes, got.Themes...)
		}
	}
	return out, nil
}

// BeforeUserBash asks the hooks about a person's own shell command, which the
// host runs unless one of them gives its outcome. After an error the command
// must not run.
func (h *Harness) BeforeUserBash(ctx context.Context, b UserBash) (*session.BashExecution, error) {
	for _, s := range h.sets() {
		if s.UserBash == nil {
			continue
		}
		m, err := askSet(ctx, h, s, HookUserBash, true, func(ctx context.Context) (*session.BashExecution, error) {
			return s.UserBash(ctx, b)
		})
		if err != nil {
			return nil, hookFailure("shell command", err)
		}
		if m != nil {
			return m, nil
		}
	}
	return nil, nil
}
