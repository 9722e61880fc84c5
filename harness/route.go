package harness

import (
	"bytes"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// RouterStateType is the type of the custom entries that keep the state of
// virtual models: {"provider", "model", "state"}. The last one of a branch
// counts for its model.
const RouterStateType = "router-state"

// routerState is the state of one virtual model on the branch. It belongs to
// the goroutine of the run.
type routerState struct {
	known    bool
	revision uint64 // of the session's context
	provider string
	model    string
	state    jsontext.Value // nil for none
}

// router is the router behind a model, nil for a physical one.
func (h *Harness) router(m *llm.Model) llm.Router {
	if h.opts.Router == nil {
		return nil
	}
	return h.opts.Router(m)
}

// isVirtual reports whether a recorded model is one that routes.
func (h *Harness) isVirtual(ref *session.ModelRef) bool {
	return ref != nil && h.router(&llm.Model{Provider: ref.Provider, ID: ref.ID}) != nil
}

// chosen is the model that the branch has chosen: the last answering one, but a
// virtual model holds until another is chosen.
func (h *Harness) chosen(c *session.Context) *session.ModelRef {
	if h.isVirtual(c.Chosen) {
		return c.Chosen
	}
	return c.Model
}

// route finds out who answers the next request: m itself, or whom its router
// names. A router that fails fails the request.
func (h *Harness) route(ctx context.Context, r *run, messages []agent.Message, m *llm.Model, level llm.ThinkingLevel) (agent.NextTurn, error) {
	r.answering, r.unrouted = m, nil
	router := h.router(m)
	if router == nil && !m.IsVirtual() {
		return agent.NextTurn{}, nil
	}
	req := llm.RouteRequest{
		Selected: llm.Pair{Provider: m.Provider, Model: m.ID, Level: level},
		Reason:   reasonFor(messages),
		Previous: lastPair(messages),
		State:    h.routerState(m),
	}
	if last := r.last; r.attempt > 0 && last != nil && last.StopReason == llm.StopError {
		req.Reason, req.Failure, req.Failed = llm.RouteRetry, last, pairOf(last)
	}
	route, err := req.Resolve(ctx, router)
	if err != nil {
		r.unrouted = err
		return agent.NextTurn{}, nil
	}
	if route.State != nil && !bytes.Equal(route.State, req.State) {
		if err := h.keepRouterState(r, m, route.State); err != nil {
			return agent.NextTurn{}, err
		}
	}
	r.answering = route.Model
	return agent.NextTurn{Model: route.Model, ThinkingLevel: route.Level}, nil
}

// reasonFor is why the model is asked to go on from a conversation.
func reasonFor(messages []agent.Message) llm.RouteReason {
	if last := lastMessage(messages); last != nil && (last.Role() == llm.RoleToolResult || last.Role() == llm.RoleAssistant) {
		return llm.RouteContinuation
	}
	return llm.RouteUser
}

// lastPair is who gave the last answer, nil when there is none.
func lastPair(messages []agent.Message) *llm.Pair {
	for _, m := range slices.Backward(messages) {
		if a, ok := m.(*llm.Assistant); ok {
			return pairOf(a)
		}
	}
	return nil
}

func pairOf(m *llm.Assistant) *llm.Pair {
	return &llm.Pair{Provider: m.Provider, Model: m.Model, Level: m.ThinkingLevel}
}

// routerState is the state that m has on the branch. The branch is read once,
// and again when it is another one.
func (h *Harness) routerState(m *llm.Model) jsontext.Value {
	revision := h.sess.Context().Revision
	s := &h.routing
	if s.known && s.revision == revision && s.provider == m.Provider && s.model == m.ID {
		return s.state
	}
	*s = routerState{known: true, revision: revision, provider: m.Provider, model: m.ID}
	for _, e := range slices.Backward(h.sess.Path()) {
		if e.Type != session.TypeCustom {
			continue
		}
		d, ok := e.Data().(*session.CustomEntry)
		if !ok || d.CustomType != RouterStateType {
			continue
		}
		provider, _ := jsonwire.StringValue(jsonwire.Get(d.Value, "provider"))
		model, _ := jsonwire.StringValue(jsonwire.Get(d.Value, "model"))
		if provider == m.Provider && model == m.ID {
			s.state = slices.Clone(jsonwire.Get(d.Value, "state"))
			break
		}
	}
	return s.state
}

// keepRouterState records a state on the branch, before the request that it
// speaks of is sent.
func (h *Harness) keepRouterState(r *run, m *llm.Model, state jsontext.Value) error {
	o := jsonwire.Begin(nil)
	o.Text("provider", m.Provider)
	o.Text("model", m.ID)
	o.Raw("state", state)
	h.saving.Lock()
	err := h.flush()
	var e *session.Entry
	if err == nil {
		e, err = h.sess.Append(&session.CustomEntry{CustomType: RouterStateType, Value: o.End()})
	}
	h.saving.Unlock()
	if err != nil {
		return &Error{KindSession, r.op, err}
	}
	h.routing.state = slices.Clone(state)
	return h.emit(r.ctx, &Event{Event: agent.Event{Type: EntryAppended}, Entry: e})
}

// answers is the model that answers, or answered last: the one in force unless
// that is virtual.
func (r *run) answers(h *Harness) *llm.Model {
	if r.answering != nil {
		return r.answering
	}
	return h.Model()
}
