package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// virtual is a virtual model whose router is a function, and what it was asked.
type virtual struct {
	*llm.Model
	asked []llm.RouteRequest
	to    func(r llm.RouteRequest) (llm.Route, error)
}

func newVirtual(to func(r llm.RouteRequest) (llm.Route, error)) *virtual {
	return &virtual{
		Model: &llm.Model{
			Provider: "router", ID: "auto", API: llm.APIVirtual, Reasoning: true, ContextWindow: 1000, MaxTokens: 100,
		},
		to: to,
	}
}

func (v *virtual) Route(_ context.Context, r llm.RouteRequest) (llm.Route, error) {
	v.asked = append(v.asked, r)
	return v.to(r)
}

// router finds v.
func (v *virtual) router(m *llm.Model) llm.Router {
	if m.Provider == v.Provider && m.ID == v.ID {
		return v
	}
	return nil
}

// log tells what the router was asked.
func (v *virtual) log() string {
	var out []string
	pair := func(p *llm.Pair) string {
		if p == nil {
			return "-"
		}
		return p.Model + ":" + string(p.Level)
	}
	for _, r := range v.asked {
		out = append(out, fmt.Sprintf("%s %s prev=%s failed=%s state=%s", r.Reason, pair(&r.Selected), pair(r.Previous), pair(r.Failed), r.State))
	}
	return strings.Join(out, "\n")
}

func TestVirtualModelRoutesEachRequest(t *testing.T) {
	var models []*llm.Model
	n := 0
	v := newVirtual(func(r llm.RouteRequest) (llm.Route, error) {
		n++
		route := llm.Route{Model: models[0], State: jsontext.Value(fmt.Sprintf(`{"n":%d}`, n))}
		switch r.Reason {
		case llm.RouteContinuation:
			route.Model, route.Level = models[1], llm.LevelHigh // which it does not support
		case llm.RouteRetry:
			if r.Failure == nil || !strings.Contains(r.Failure.ErrorMessage, "overloaded") {
				t.Errorf("the failure is %+v", r.Failure)
			}
			route.Model, route.State = models[1], nil
		}
		return route, nil
	})
	var keyed []string
	store, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, harness.Options{
		Model: v.Model, ThinkingLevel: llm.LevelLow, Router: v.router, Session: store, Tools: []*agent.Tool{ping()},
		Credentials: func(_ context.Context, m *llm.Model) (harness.Credentials, error) {
			keyed = append(keyed, m.ID)
			return harness.Credentials{}, nil
		},
	}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"), faux.Fail("overloaded"), faux.Say("again"))
	models = r.model.Models()
	r.prompt("go")
	r.prompt("more")
	const want = "user auto:low prev=- failed=- state=null\n" +
		`continuation auto:low prev=one:low failed=- state={"n":1}` + "\n" +
		`user auto:low prev=two:off failed=- state={"n":2}` + "\n" +
		`retry auto:low prev=two:off failed=one:low state={"n":3}`
	if got := v.log(); got != want {
		t.Errorf("the router was asked\n%s\nwant\n%s", got, want)
	}
	var answered []string
	for _, e := range store.Path() {
		if m, ok := e.Message().(*llm.Assistant); ok {
			answered = append(answered, m.Provider+"/"+m.Model+":"+string(m.ThinkingLevel))
		}
	}
	if got := strings.Join(answered, " "); got != "faux/one:low faux/two:off faux/one:low faux/two:off" {
		t.Errorf("answers of %s", got)
	}
	if got := strings.Join(keyed, " "); got != "one two one two" {
		t.Errorf("keys were looked up for %s", got)
	}
	c := store.Context()
	if c.Chosen == nil || c.Chosen.Provider != "router" || c.Chosen.ID != "auto" || c.Model.ID != "two" {
		t.Errorf("the session records %+v and %+v", c.Chosen, c.Model)
	}
	// Each state stands before the answer that it is about.
	if got := entryTypes(store); !strings.Contains(got, "custom assistant toolResult custom assistant user custom assistant") {
		t.Errorf("entries %s", got)
	}
	if r.Model() != v.Model {
		t.Errorf("the model in force is %s", r.Model().Ref())
	}
}

// A resumed conversation has the virtual model still, and its state.
func TestVirtualModelResumes(t *testing.T) {
	var models []*llm.Model
	v := newVirtual(func(llm.RouteRequest) (llm.Route, error) {
		return llm.Route{Model: models[0], State: jsontext.Value(`"kept"`)}, nil
	})
	store, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Options{Model: v.Model, Router: v.router, Session: store}
	first := newRig(t, o, faux.Say("a"))
	models = first.model.Models()
	first.prompt("one")
	before := entryTypes(store)
	// Another harness over the same branch: what it has to say is there already.
	second := newRig(t, o, faux.Say("b"))
	models = second.model.Models()
	if got := entryTypes(store); got != before {
		t.Errorf("resuming records %s after %s", got, before)
	}
	second.prompt("two")
	if got := v.asked[1]; string(got.State) != `"kept"` || got.Previous == nil || got.Previous.Model != "one" {
		t.Errorf("the resumed router was asked %+v", got)
	}
	if n := strings.Count(entryTypes(store), "custom"); n != 1 {
		t.Errorf("an unchanged state is written %d times", n)
	}
	// A physical model that is chosen over it is recorded, though it answered last.
	o.Model = models[0]
	newRig(t, o)
	if c := store.Context(); c.Chosen.Provider != "faux" {
		t.Errorf("the session still has %+v", c.Chosen)
	}
}

func TestVirtualModelGoesWithTheBranch(t *testing.T) {
	var models []*llm.Model
	n := 0
	v := newVirtual(func(llm.RouteRequest) (llm.Route, error) {
		n++
		return llm.Route{Model: models[0], State: jsontext.Value(fmt.Sprint(n))}, nil
	})
	r := newRig(t, harness.Options{Model: v.Model, Router: v.router}, faux.Say("a"), faux.Say("b"), faux.Say("c"))
	models = r.model.Models()
	r.prompt("one")
	leaf := r.Session().Leaf()
	r.prompt("two")
	if err := r.Session().Branch(leaf.ID); err != nil {
		t.Fatal(err)
	}
	r.prompt("other")
	if got := string(v.asked[2].State); got != "1" {
		t.Errorf("the other branch has the state %s", got)
	}
}

func TestVirtualModelThatRoutesWrongly(t *testing.T) {
	for _, c := range []struct {
		name string
		to   func(v *virtual) (llm.Route, error)
		want string
	}{
		{"to a virtual one", func(v *virtual) (llm.Route, error) { return llm.Route{Model: v.Model}, nil }, "router/auto, which is virtual too"},
		{"to none", func(*virtual) (llm.Route, error) { return llm.Route{}, nil }, "it named none"},
		{"not at all", func(*virtual) (llm.Route, error) { return llm.Route{}, errors.New("no budget left") }, "no budget left"},
		{"in a panic", func(*virtual) (llm.Route, error) { panic("no map") }, "its router panicked: no map"},
		{"with a bad state", func(v *virtual) (llm.Route, error) {
			return llm.Route{Model: &llm.Model{ID: "m"}, State: jsontext.Value("{")}, nil
		}, "its state is no JSON"},
	} {
		var v *virtual
		v = newVirtual(func(llm.RouteRequest) (llm.Route, error) { return c.to(v) })
		r := newRig(t, harness.Options{Model: v.Model, Router: v.router, Retry: harness.Retry{Disabled: true}})
		answer, err := r.Prompt(t.Context(), "hi")
		if err != nil || answer.StopReason != llm.StopError || !strings.Contains(answer.ErrorMessage, c.want) {
			t.Errorf("%s: %v, %+v", c.name, err, answer)
		}
		if len(r.model.Requests()) != 0 || slices.Contains(strings.Fields(entryTypes(r.Session())), "custom") {
			t.Errorf("%s: a request was sent or a state was kept", c.name)
		}
	}
	// Without a router nothing is sent either.
	v := newVirtual(nil)
	r := newRig(t, harness.Options{Model: v.Model})
	if answer, err := r.Prompt(t.Context(), "hi"); err != nil || !strings.Contains(answer.ErrorMessage, "has no router") {
		t.Errorf("%v %+v", err, answer)
	}
}
