package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/panics"
)

// Router stands behind a virtual model: it says which model answers each
// request. A conversation selects the virtual model and records that; every
// answer records the model that gave it.
//
// A Router may be asked by several conversations at once. What it needs to
// remember of one of them is in State, which the conversation keeps, so that a
// resumed or branched conversation goes on with the state of its own branch.
type Router interface {
	// Route chooses the model of one request. An error fails the request with
	// its text.
	Route(ctx context.Context, r RouteRequest) (Route, error)
}

// RouterFunc is a function that is a Router.
type RouterFunc func(ctx context.Context, r RouteRequest) (Route, error)

// Route calls f.
func (f RouterFunc) Route(ctx context.Context, r RouteRequest) (Route, error) { return f(ctx, r) }

// RouteReason says why a request is made.
type RouteReason string

// The reasons.
const (
	RouteUser         RouteReason = "user"         // a person said something
	RouteContinuation RouteReason = "continuation" // tool results are answered
	RouteRetry        RouteReason = "retry"        // the last request failed, see RouteRequest.Failed
	RouteDirect       RouteReason = "direct"       // beside a conversation: a summary, a program's own request
)

// Pair is a model, by its names, and how hard it thinks.
type Pair struct {
	Provider string
	Model    string // id
	Level    ThinkingLevel
}

// RouteRequest is what a Router decides upon.
type RouteRequest struct {
	Selected Pair // the virtual model and the level that were chosen
	Reason   RouteReason
	// Previous is who gave the last answer of the conversation, nil when there
	// is none. An answer that failed and is repeated does not count.
	Previous *Pair
	// Failed is who failed the request that is repeated, and Failure the answer
	// that says so; nil unless Reason is RouteRetry.
	Failed  *Pair
	Failure *Assistant
	// State is the State of the last Route on this branch of the conversation,
	// nil for none. It must not be changed.
	State jsontext.Value
}

// Route is a decision.
type Route struct {
	Model *Model        // a physical model, never nil or virtual
	Level ThinkingLevel // clamped to what Model supports; "" for the selected level
	// State is kept with the conversation and given to the next call, in place
	// of the former one; nil keeps that. It is a JSON value and may hold no
	// secrets.
	State jsontext.Value
}

// APIVirtual stands in Model.API of virtual models. No wire format has this
// name, so that a request which nobody routed fails and goes nowhere.
const APIVirtual = "virtual"

// IsVirtual reports whether a Router chooses the model that answers in place of
// m.
func (m *Model) IsVirtual() bool { return m.API == APIVirtual }

// Resolve asks the router of a virtual model who answers a request. The result
// is complete: a physical model and a level that it supports.
func (r RouteRequest) Resolve(ctx context.Context, router Router) (Route, error) {
	name := r.Selected.Provider + "/" + r.Selected.Model
	if router == nil {
		return Route{}, fmt.Errorf("The virtual model %s has no router: choose another model", name)
	}
	route, err := r.ask(ctx, router)
	switch {
	case err != nil:
		return Route{}, fmt.Errorf("The virtual model %s found no model for the request: %w", name, err)
	case route.Model == nil:
		err = errors.New("it named none")
	case route.Model.IsVirtual():
		err = fmt.Errorf("it named %s, which is virtual too", route.Model.Ref())
	case route.State != nil && !route.State.IsValid():
		err = errors.New("its state is no JSON")
	}
	if err != nil {
		return Route{}, fmt.Errorf("The virtual model %s routed wrongly: %w", name, err)
	}
	if route.Level == "" {
		route.Level = r.Selected.Level
	}
	route.Level = route.Model.ClampLevel(route.Level)
	return route, nil
}

// ask calls a router. One that panics fails its request and nothing else.
func (r RouteRequest) ask(ctx context.Context, router Router) (Route, error) {
	return panics.Guard("its router", func() (Route, error) { return router.Route(ctx, r) })
}
