package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

func embedded(t *testing.T, o harness.Options, script ...faux.Response) *rig {
	o.Embedded, o.Prompt, o.Retry.Disabled, o.Compaction.Disabled = true, harness.FixedPrompt, true, true
	return newRig(t, o, script...)
}

// A fixed prompt is evaluated once for each turn, travels with its tools beside
// the transcript, and the session knows nothing of it.
func TestFixedPrompt(t *testing.T) {
	evaluated := 0
	var r *rig
	pong := toolOf("pong", func(context.Context) (string, error) { return "", nil })
	sess, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What another harness recorded is not sent.
	old := &llm.System{Sections: []llm.Section{{Name: "preamble", Text: "old"}}, ToolsAdded: []llm.Tool{{Name: "old"}}}
	for _, m := range []agent.Message{old, llm.UserText("before", 1)} {
		if _, err := sess.AppendMessage(m); err != nil {
			t.Fatal(err)
		}
	}
	r = embedded(t, harness.Options{
		Session: sess, Tools: []*agent.Tool{ping(), pong}, ActiveTools: []string{"ping"},
		Resources: harness.Resources{Skills: []harness.Skill{{Name: "pdf"}}},
		PromptText: func(_ context.Context, s harness.TurnState) (string, error) {
			evaluated++
			var tools []string
			for _, t := range s.Tools {
				tools = append(tools, t.Name)
			}
			return fmt.Sprintf("%d %s %s %v %d %t", evaluated, s.Model.ID, s.ThinkingLevel, tools, len(s.Resources.Skills), s.Session == sess), nil
		},
		Hooks: []harness.Hooks{{BeforeAgentStart: func(_ context.Context, s harness.Starting) (*harness.StartingChange, error) {
			if s.Prompt == "forced" {
				return &harness.StartingChange{SystemPrompt: new(s.SystemPrompt + " forced")}, nil
			}
			return nil, nil
		}}},
	}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"), faux.Reply(faux.ToolCall("pong", "")), faux.Say("done"))
	r.on(agent.ToolExecutionStart, 1, func(harness.Event) error {
		return errors.Join(
			r.SetModel(r.model.Models()[1]), r.SetActiveTools("pong"), r.SetResources(harness.Resources{}),
			r.SetRequest(llm.Options{MaxTokens: 7}),
		)
	})
	r.prompt("go")
	r.prompt("forced")
	head := func(n int) string {
		q := r.model.Requests()[n].Request
		var out []string
		for _, m := range q.Messages {
			if s, ok := m.(*llm.System); ok {
				out = append(out, s.Content.Text+"/"+s.ToolsAdded[0].Name)
			}
		}
		return fmt.Sprintf("%s %d", strings.Join(out, "+"), q.MaxTokens)
	}
	for i, want := range []string{
		"1 one off [ping] 1 true/ping 0", "2 two off [pong] 0 true/pong 7",
		"3 two off [pong] 0 true forced/pong 7", "4 two off [pong] 0 true/pong 7",
	} {
		if got := head(i); got != want {
			t.Errorf("request %d has %s, want %s", i, got, want)
		}
	}
	if got := entryTypes(sess); got != "system user user assistant toolResult model_change assistant user assistant toolResult assistant" {
		t.Error(got)
	}
	r.paired()
}

func TestFixedPromptFails(t *testing.T) {
	evaluated := 0
	r := embedded(t, harness.Options{
		Tools: []*agent.Tool{ping()},
		PromptText: func(context.Context, harness.TurnState) (string, error) {
			switch evaluated++; evaluated {
			case 1:
				return "", errors.New("no prompt")
			case 3:
				panic("no prompt")
			}
			return "prompt", nil
		},
	}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"))
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindUnknown || r.types() != "" {
		t.Error(err, r.types())
	}
	m, err := r.Prompt(t.Context(), "go")
	if kindOf(err) != harness.KindUnknown || !strings.Contains(m.ErrorMessage, "no prompt") {
		t.Error(m, err)
	}
	r.wantSaid("user:go assistant:<ping> result:pong assistant:!error")
	r.paired()
}

func TestEmbeddedQueues(t *testing.T) {
	r := embedded(t, harness.Options{}, faux.Say("a"), faux.Say("b"), faux.Say("c"))
	for _, err := range []error{r.Steer("s"), r.FollowUp("f"), r.SteerMessages(llm.UserText("s", 1))} {
		if kindOf(err) != harness.KindInvalidState {
			t.Error(err)
		}
	}
	// A listener that fails when a run takes messages puts them back.
	r.on(agent.TurnStart, 1, func(harness.Event) error { return errors.Join(r.FollowUp("f1"), r.FollowUp("f2")) })
	r.on(harness.QueueUpdate, 3, func(ev harness.Event) error { // f1 was taken
		if fmt.Sprint(ev.FollowUp) != "[f2]" {
			t.Error(ev.FollowUp)
		}
		return errors.New("listener failed")
	})
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindUnknown {
		t.Error(err)
	}
	r.wantSaid("user:go assistant:a assistant:!error")
	if q := r.Queued(); fmt.Sprint(q.FollowUp) != "[f1 f2]" {
		t.Error(q)
	}
	// So it does with those for the next turn, and the prompt is refused.
	if err := r.NextTurn(llm.UserText("n", 1)); err != nil {
		t.Fatal(err)
	}
	r.on(harness.QueueUpdate, 1, func(ev harness.Event) error { return errors.New("listener failed") })
	if _, err := r.Prompt(t.Context(), "no"); kindOf(err) != harness.KindHook {
		t.Error(err)
	}
	cleared, err := r.AbortAndClear(t.Context())
	if err != nil || said(cleared.FollowUp) != "user:f1 user:f2" || cleared.Steering != nil {
		t.Error(cleared, err)
	}
	r.prompt("again")
	r.wantSaid("user:go assistant:a assistant:!error user:n user:again assistant:b")
	r.paired()
}

func TestAbortAndClear(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Hang(faux.Text("half")))
	var order []string
	r.SubscribeAll(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case harness.AgentSettled, harness.AbortDone:
			order = append(order, fmt.Sprint(ev.Type, ev.Steering, ev.FollowUp))
		}
		return nil
	})
	done := make(chan error, 1)
	r.on(agent.MessageUpdate, 2, func(harness.Event) error {
		_ = errors.Join(r.SteerMessages(&session.Custom{Content: llm.Plain("note")}), r.FollowUp("f"))
		go func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			if c, err := r.AbortAndClear(ended); err == nil || said(c.Steering) != "custom:note" {
				err = errors.New("waited for nothing")
				done <- err
				return
			}
			_, err := r.AbortAndClear(context.Background())
			done <- err
		}()
		return nil
	})
	r.prompt("go")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(order); got != "[agent_settled[] [] abort[] []]" {
		t.Error(got)
	}
	if q := r.Queued(); len(q.Steering)+len(q.FollowUp) > 0 {
		t.Error(q)
	}
}

func TestSkillsAndTemplates(t *testing.T) {
	r := embedded(t, harness.Options{Resources: harness.Resources{
		Skills: []harness.Skill{
			{Name: "pdf", FilePath: "/s/pdf/SKILL.md", BaseDir: "/s/pdf", Read: func() (string, error) { return "Do it.\n", nil }},
			{Name: "gone", Read: func() (string, error) { return "", errors.New("no file") }},
		},
		Templates: []harness.Template{{Name: "rev", Content: "Review $1 and ${2:-all}"}},
	}}, faux.Say("a"), faux.Say("b"))
	ctx := t.Context()
	for _, call := range []func() (*llm.Assistant, error){
		func() (*llm.Assistant, error) { return r.Skill(ctx, "none", "") },
		func() (*llm.Assistant, error) { return r.Skill(ctx, "gone", "") },
		func() (*llm.Assistant, error) { return r.PromptFromTemplate(ctx, "none") },
	} {
		if _, err := call(); kindOf(err) != harness.KindInvalidArgument {
			t.Error(err)
		}
	}
	if _, err := r.Skill(ctx, "pdf", " file "); err != nil {
		t.Error(err)
	}
	if _, err := r.PromptFromTemplate(ctx, "rev", "main"); err != nil {
		t.Error(err)
	}
	r.wantSaid("user:<skill name=\"pdf\" location=\"/s/pdf/SKILL.md\">\nReferences are relative to /s/pdf.\n\nDo it.\n</skill>\n\nfile " +
		"assistant:a user:Review main and all assistant:b")
}

func TestSettings(t *testing.T) {
	r := embedded(t, harness.Options{Tools: []*agent.Tool{ping()}})
	for what, err := range map[string]error{
		"active tools": r.SetActiveTools("ping", "nope"),
		"tools":        r.SetTools([]*agent.Tool{ping()}, "nope"),
		"mode":         r.SetSteeringMode("some"),
	} {
		if kindOf(err) != harness.KindInvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(r.SetActiveTools(), r.SetFollowUpMode(harness.All)); err != nil {
		t.Error(err)
	}
	steering, followUp := r.QueueModes()
	if len(r.Tools()) != 0 || len(r.AllTools()) != 1 || steering != harness.OneAtATime || followUp != harness.All {
		t.Error(r.Tools(), steering, followUp)
	}
	if _, err := harness.New(harness.Options{Model: r.Model(), Stream: r.model.Stream, Prompt: "other"}); kindOf(err) != harness.KindInvalidArgument {
		t.Error(err)
	}
	if _, err := harness.New(harness.Options{Model: r.Model(), Stream: r.model.Stream, ActiveTools: []string{"nope"}}); kindOf(err) != harness.KindInvalidArgument {
		t.Error(err)
	}
	// Options go in and out as copies.
	o := llm.Options{Headers: map[string]*string{"a": nil}}
	if err := r.SetRequest(o); err != nil {
		t.Error(err)
	}
	o.Headers["b"] = nil
	r.Request().Headers["c"] = nil
	if n := len(r.Request().Headers); n != 1 {
		t.Errorf("%d headers", n)
	}
}

// Inputs by their source; what is submitted during a run waits as it says.
func TestSubmit(t *testing.T) {
	var seen []string
	r := newRig(t, harness.Options{Expand: strings.ToLower, Hooks: []harness.Hooks{{
		Input: func(_ context.Context, in harness.Input) (*harness.InputChange, error) {
			seen = append(seen, fmt.Sprintf("%s/%s/%s", in.Text, in.Source, in.Behavior))
			return &harness.InputChange{Handled: in.Text == "MINE", Text: in.Text + "!"}, nil
		},
	}}}, faux.Say("a"), faux.Say("b"))
	ctx := t.Context()
	if m, err := r.Prompt(ctx, "MINE"); m != nil || err != nil || r.types() != "" {
		t.Error(m, err)
	}
	r.on(agent.TurnStart, 1, func(harness.Event) error {
		_, err := r.Submit(ctx, harness.Input{Text: "B", Source: harness.FromRPC, Behavior: harness.AsFollowUp})
		if _, busy := r.Submit(ctx, harness.Input{Text: "C"}); kindOf(busy) != harness.KindBusy {
			t.Error(busy)
		}
		return errors.Join(err, r.Steer("MINE"))
	})
	if _, err := r.Submit(ctx, harness.Input{Text: "A", Source: harness.FromExtension, Behavior: harness.AsSteering}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(seen, " "); got != "MINE/interactive/ A/extension/steer B/rpc/followUp MINE/interactive/steer" {
		t.Error(got)
	}
	r.wantSaid("user:a! assistant:a user:b! assistant:b")
	if _, err := r.Submit(ctx, harness.Input{Behavior: "other"}); kindOf(err) != harness.KindInvalidArgument {
		t.Error(err)
	}
}

// What hosts ask hooks about by themselves.
func TestHostHooks(t *testing.T) {
	fails := errors.New("failed")
	ask := func(r *rig) string {
		ctx := t.Context()
		sw, err1 := r.BeforeSwitch(ctx, harness.Switching{Reason: "new"})
		fork, err2 := r.BeforeFork(ctx, harness.Forking{EntryID: "e", Position: "at"})
		found, err3 := r.DiscoverResources(ctx, harness.Discovery{Reason: "startup"})
		bash, err4 := r.BeforeUserBash(ctx, harness.UserBash{Command: "ls"})
		return fmt.Sprint(sw, err1 != nil, fork, err2 != nil, found.Skills, err3 != nil, bash != nil, err4 != nil)
	}
	hooks := func(yes bool, err error) harness.Hooks {
		return harness.Hooks{
			SessionBeforeSwitch: func(context.Context, harness.Switching) (bool, error) { return yes, err },
			SessionBeforeFork:   func(context.Context, harness.Forking) (bool, error) { return yes, err },
			ResourcesDiscover: func(context.Context, harness.Discovery) (*harness.Discovered, error) {
				return &harness.Discovered{Skills: []string{"s"}}, err
			},
			UserBash: func(context.Context, harness.UserBash) (*session.BashExecution, error) {
				if !yes {
					return nil, err
				}
				return &session.BashExecution{}, err
			},
		}
	}
	reported := 0
	tolerant := hooks(false, fails)
	tolerant.Report = func(context.Context, *harness.HookError) { reported++ }
	for _, c := range []struct {
		hooks []harness.Hooks
		want  string
	}{
		{nil, "false false false false [] false false false"},
		{[]harness.Hooks{hooks(false, nil), hooks(false, nil)}, "false false false false [s s] false false false"},
		{[]harness.Hooks{hooks(false, nil), hooks(true, nil)}, "true false true false [s s] false true false"},
		{[]harness.Hooks{hooks(false, fails)}, "true true true true [] true false true"},
		{[]harness.Hooks{tolerant}, "true true true true [] false false true"},
	} {
		if got := ask(newRig(t, harness.Options{Hooks: c.hooks})); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	if reported != 4 {
		t.Errorf("%d reported", reported)
	}
}

// Hooks are called in the order of their registration, each with what those
// before it changed, and no more once they are removed.
func TestOrderOfHooks(t *testing.T) {
	say := func(s string) harness.Hooks {
		return harness.Hooks{Input: func(_ context.Context, in harness.Input) (*harness.InputChange, error) {
			return &harness.InputChange{Text: in.Text + s}, nil
		}}
	}
	r := newRig(t, harness.Options{Hooks: []harness.Hooks{say("1"), say("2")}}, faux.Say("a"), faux.Say("b"))
	remove := r.AddHooks(say("3"))
	r.prompt("go")
	remove()
	r.prompt("on")
	r.wantSaid("user:go123 assistant:a user:on12 assistant:b")
}

// A blocked call runs nothing; of two blocks the first counts.
func TestHookBlocksACall(t *testing.T) {
	block := func(reason string) harness.Hooks {
		return harness.Hooks{ToolCall: func(context.Context, *harness.ToolCall) (*agent.Block, error) {
			return &agent.Block{Reason: reason, Terminate: true}, nil
		}}
	}
	r := hookRig(t, block("no"), block("never"))
	r.prompt("go")
	r.wantSaid("user:go assistant:<echo> result:no")
}

// Notifications reach SubscribeAll and hooks, and nobody else.
func TestNotifications(t *testing.T) {
	var all, hooked []string
	r := newRig(t, harness.Options{Hooks: []harness.Hooks{{On: map[agent.EventType]harness.Listener{
		harness.SessionStart: func(_ context.Context, ev harness.Event) error { hooked = append(hooked, ev.Reason); return nil },
	}}}}, faux.Say("a"))
	r.SubscribeAll(func(_ context.Context, ev harness.Event) error { all = append(all, string(ev.Type)); return nil })
	r.Tell(harness.Event{Event: agent.Event{Type: harness.SessionStart}, Reason: "startup"})
	r.prompt("go")
	if err := errors.Join(r.SetModel(r.model.Models()[1]), r.SetResources(harness.Resources{})); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"session_start", "after_provider_response", "save_point", "model_select", "resources_update"} {
		if !strings.Contains(fmt.Sprint(all), want) {
			t.Errorf("%s was not told", want)
		}
		if strings.Contains(r.types(), want) {
			t.Errorf("%s was told to everybody", want)
		}
	}
	if fmt.Sprint(hooked) != "[startup]" {
		t.Error(hooked)
	}
}

// What a listener adds when it hears that a turn is saved belongs to the next
// request, and stands before its answer.
func TestSaidBetweenTurns(t *testing.T) {
	r := embedded(t, harness.Options{Tools: []*agent.Tool{ping()}}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"))
	saved := 0
	r.SubscribeAll(func(_ context.Context, ev harness.Event) error {
		if ev.Type != harness.SavePoint {
			return nil
		}
		if saved++; saved > 1 {
			return nil
		}
		return errors.Join(r.AppendMessage(llm.UserText("by the way", 1)), r.SetThinkingLevel(llm.LevelLow))
	})
	r.prompt("go")
	sent := r.model.Requests()[1].Request.Messages
	if m, ok := sent[len(sent)-1].(*llm.User); !ok || llm.TextOf(m.Content.Blocks, m.Content.Text) != "by the way" {
		t.Errorf("the second request ends with %v", sent[len(sent)-1])
	}
	if got := entryTypes(r.Session()); got != "user assistant toolResult user thinking_level_change assistant" {
		t.Error(got)
	}
}
