package catalog

import (
	"context"
	"fmt"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestVirtualModels(t *testing.T) {
	c := open(t, scripted, nil)
	to := c.Find("scripted", "thinker")
	route := func(_ context.Context, r llm.RouteRequest) (llm.Route, error) {
		if r.Reason != llm.RouteDirect || r.Selected != (llm.Pair{Provider: "router", Model: "auto", Level: llm.LevelHigh}) {
			t.Errorf("asked %+v", r)
		}
		return llm.Route{Model: to, Level: llm.LevelMax}, nil
	}
	v := VirtualModel{Provider: "router", ID: "auto", Levels: []llm.ThinkingLevel{llm.LevelOff, llm.LevelHigh, llm.LevelMax}, Router: llm.RouterFunc(route)}
	if err := c.AddVirtual(v); err != nil {
		t.Fatal(err)
	}
	m := c.Find("router", "auto")
	if m == nil || !m.IsVirtual() || m.Name != "auto" || m.ContextWindow != defaultContextWindow || fmt.Sprint(m.SupportedLevels()) != "[off high max]" || !c.HasCredentials("router") {
		t.Fatalf("%+v", m)
	}
	if choice, err := c.Resolve("router/auto:high", ""); err != nil || choice.Model != m || choice.Level != llm.LevelHigh {
		t.Errorf("%+v %v", choice, err)
	}
	if scope, _ := c.Scope([]string{"router/*"}); len(scope) != 1 || scope[0].Model != m {
		t.Errorf("%+v", scope)
	}
	if c.Router(m) == nil || c.Router(to) != nil {
		t.Error("routers are mixed up")
	}
	got, err := c.Physical(t.Context(), m, llm.LevelHigh)
	if err != nil || got.Model != to || got.Level != llm.LevelHigh { // max, clamped
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.Physical(t.Context(), to, llm.LevelMax); err != nil || got.Model != to || got.Level != llm.LevelHigh {
		t.Errorf("%+v %v", got, err)
	}
	// In the list of a provider that there is, in place of a model of that name.
	v.Provider, v.ID, v.Levels = "scripted", "plain", nil
	v.Router = llm.RouterFunc(func(context.Context, llm.RouteRequest) (llm.Route, error) { return llm.Route{Model: m}, nil })
	if err := c.AddVirtual(v); err != nil {
		t.Fatal(err)
	}
	plain := c.Find("scripted", "plain")
	if !plain.IsVirtual() || plain.Reasoning || len(c.ModelsOf("scripted")) != 3 {
		t.Errorf("%+v", plain)
	}
	if _, err := c.Physical(t.Context(), plain, llm.LevelOff); err == nil {
		t.Error("a virtual model routes to another one")
	}
	c.RemoveVirtual("scripted", "plain")
	c.RemoveVirtual("router", "auto")
	if c.Find("scripted", "plain").IsVirtual() || c.Find("router", "auto") != nil {
		t.Error("a virtual model stays")
	}
	for _, bad := range []VirtualModel{
		{ID: "x", Router: v.Router}, {Provider: "x", Router: v.Router}, {Provider: "x", ID: "y"},
		{Provider: "x", ID: "y", Router: v.Router, Levels: []llm.ThinkingLevel{"very"}},
	} {
		if c.AddVirtual(bad) == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	// Formats that the program lacks do not matter: the router knows.
	c = New(Options{APIs: []string{apiAnthropic}})
	if err := c.AddVirtual(VirtualModel{Provider: "router", ID: "auto", Router: v.Router}); err != nil || c.Find("router", "auto") == nil {
		t.Error(err)
	}
}

func ExampleCatalog_AddVirtual() {
	c := New(Options{})
	cheap, strong := c.Find("anthropic", "claude-haiku-4-5"), c.Find("anthropic", "claude-opus-4-8")
	err := c.AddVirtual(VirtualModel{
		Provider: "anthropic", ID: "auto", Name: "Cheap first",
		Levels: []llm.ThinkingLevel{llm.LevelOff, llm.LevelHigh},
		Router: llm.RouterFunc(func(_ context.Context, r llm.RouteRequest) (llm.Route, error) {
			if r.Reason == llm.RouteRetry || r.Selected.Level == llm.LevelHigh {
				return llm.Route{Model: strong}, nil
			}
			return llm.Route{Model: cheap}, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, level := range []llm.ThinkingLevel{llm.LevelOff, llm.LevelHigh} {
		route, err := c.Physical(context.Background(), c.Find("anthropic", "auto"), level)
		fmt.Println(route.Model.Ref(), route.Level, err)
	}
	// Output:
	// anthropic/claude-haiku-4-5 off <nil>
	// anthropic/claude-opus-4-8 high <nil>
}
