package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

func newAgent(model *faux.API, tools ...*agent.Tool) *agent.Agent {
	return agent.New(agent.Options{
		Config: agent.Config{Model: model.Model(), Stream: model.Stream},
		Tools:  tools,
	})
}

func TestListenerFailures(t *testing.T) {
	boom := errors.New("boom")
	for _, at := range []agent.EventType{
		agent.AgentStart, agent.TurnStart, agent.MessageStart, agent.MessageUpdate, agent.MessageEnd,
		agent.ToolExecutionStart, agent.ToolExecutionUpdate, agent.ToolExecutionEnd, agent.TurnEnd, agent.AgentEnd,
	} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " panics ", panics), func(t *testing.T) {
				model := faux.New(faux.Options{})
				model.Script(faux.Reply(faux.ToolCall("t", "")), faux.Say("done"))
				a := newAgent(model, tool("t", func(_ context.Context, c agent.Call) (agent.Result, error) {
					c.Update(agent.TextResult("half"))
					return agent.TextResult("x"), nil
				}))
				var before, after int
				ends := func(n *int) agent.Listener {
					return func(_ context.Context, ev agent.Event) error {
						if ev.Type == agent.AgentEnd {
							*n++
						}
						return nil
					}
				}
				a.Subscribe(ends(&before))
				failed := false
				a.Subscribe(func(_ context.Context, ev agent.Event) error {
					if ev.Type != at || failed {
						return nil
					}
					failed = true
					if panics {
						panic(boom)
					}
					return boom
				})
				a.Subscribe(ends(&after))
				err := a.PromptText(t.Context(), "go")
				var e *agent.Error
				if at == agent.AgentEnd {
					if !errors.As(err, &e) || e.Kind != agent.Unreported {
						t.Errorf("prompt: %v", err)
					}
				} else if err != nil {
					t.Errorf("prompt: %v", err)
				}
				if before != 1 || after != 1 {
					t.Errorf("agent_end seen %d and %d times", before, after)
				}
				s := a.State()
				if !strings.Contains(s.ErrorMessage, "boom") || s.Running || len(s.PendingCalls) > 0 {
					t.Errorf("state %+v", s)
				}
				if m, ok := s.Messages[len(s.Messages)-1].(*llm.Assistant); at != agent.AgentEnd && (!ok || m.StopReason != llm.StopError) {
					t.Errorf("last message %+v", s.Messages[len(s.Messages)-1])
				}
				model.Rescript(faux.Say("again"))
				if err := a.PromptText(t.Context(), "next"); err != nil || a.State().ErrorMessage != "" {
					t.Errorf("the next run: %v, %q", err, a.State().ErrorMessage)
				}
			})
		}
	}
}

func TestListenerThatAlwaysFails(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("hi"))
	a := newAgent(model)
	a.Subscribe(func(context.Context, agent.Event) error { return errors.New("never again") })
	seen := 0
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if ev.Type == agent.AgentEnd {
			seen++
		}
		return nil
	})
	var e *agent.Error
	if err := a.PromptText(t.Context(), "go"); !errors.As(err, &e) || e.Kind != agent.Unreported {
		t.Error(err)
	}
	if seen != 1 {
		t.Errorf("agent_end seen %d times", seen)
	}
}

func TestContextEndsTheRun(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Hang(faux.Text("hello")))
	a := newAgent(model)
	ctx, cancel := context.WithCancel(t.Context())
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if ev.Type == agent.MessageUpdate {
			cancel()
		}
		return nil
	})
	if err := a.PromptText(ctx, "go"); err != nil {
		t.Fatal(err)
	}
	s := a.State()
	m := s.Messages[len(s.Messages)-1].(*llm.Assistant)
	if m.StopReason != llm.StopAborted || s.ErrorMessage != "Request was aborted" {
		t.Errorf("%s %q", m.StopReason, s.ErrorMessage)
	}
}

func TestUnsubscribe(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("a"), faux.Say("b"))
	a := newAgent(model)
	n := 0
	var stop func()
	stop = a.Subscribe(func(context.Context, agent.Event) error {
		n++
		stop()
		stop()
		return nil
	})
	for range 2 {
		if err := a.PromptText(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("called %d times", n)
	}
}

func TestStreamingMessage(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("hello"))
	a := newAgent(model)
	var seen string
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if m := a.StreamingMessage(); m != nil {
			seen = llm.TextOf(m.Content, "")
		}
		return nil
	})
	if err := a.PromptText(t.Context(), "go"); err != nil || seen != "hello" || a.StreamingMessage() != nil {
		t.Errorf("%v, saw %q", err, seen)
	}
}

func TestToolsAreDeclaredWhenTheyChange(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("1"), faux.Say("2"), faux.Say("3"))
	one, two := tool("one", says("")), tool("two", says(""))
	changed := tool("two", says(""))
	changed.Description = "another"
	a := newAgent(model, one, two)
	for _, tools := range [][]*agent.Tool{{two, one}, {changed}, {changed, changed}} {
		a.SetTools(tools)
		if err := a.PromptText(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, m := range a.State().Messages {
		s, ok := m.(*llm.System)
		if !ok {
			continue
		}
		line := ""
		for _, t := range s.ToolsAdded {
			line += "+" + t.Name
		}
		for _, name := range s.ToolsRemoved {
			line += "-" + name
		}
		got = append(got, line)
	}
	if want := "+one+two +two-one-two"; strings.Join(got, " ") != want {
		t.Errorf("declared %v, want %s", got, want)
	}
}

func TestPromptFolding(t *testing.T) {
	a := agent.New(agent.Options{Messages: []agent.Message{
		&llm.System{Content: llm.Plain("base"), Sections: []llm.Section{{Name: "a", Text: "one"}, {Name: "b", Text: "two"}}, ToolsAdded: []llm.Tool{{Name: "x"}, {Name: "y"}}, Timestamp: 7},
		llm.UserText("hi", 8),
		&llm.System{Content: llm.Plain("more"), Sections: []llm.Section{{Name: "a", Text: "uno"}, {Name: "b", Removed: true}, {Name: "c", Text: "three"}}, ToolsRemoved: []string{"x"}, Timestamp: 9},
	}})
	if got := a.State().SystemPrompt; got != "base\n\nmore\n\nuno\n\nthree" {
		t.Errorf("prompt %q", got)
	}
	if err := a.Reset(); err != nil {
		t.Fatal(err)
	}
	messages := a.State().Messages
	s := messages[0].(*llm.System)
	if len(messages) != 1 || s.Timestamp != 7 || len(s.ToolsAdded) != 1 || s.ToolsAdded[0].Name != "y" || len(s.Sections) != 2 {
		t.Errorf("folded to %+v", s)
	}
}

// TestStorm aborts, queues, reads and subscribes from all sides while runs go on.
func TestStorm(t *testing.T) {
	model := faux.New(faux.Options{})
	respond := func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
		if c.N%3 == 0 {
			return faux.Reply(faux.ToolCall("wait", ""), faux.ToolCall("wait", ""), faux.ToolCall("panic", ""))(ctx, c)
		}
		return faux.Say(strings.Repeat("words ", 30))(ctx, c)
	}
	for range 20_000 {
		model.Script(respond)
	}
	a := newAgent(model,
		tool("wait", func(ctx context.Context, c agent.Call) (agent.Result, error) {
			c.Update(agent.TextResult("waiting"))
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			return agent.Result{}, ctx.Err()
		}),
		tool("panic", func(context.Context, agent.Call) (agent.Result, error) { panic("storm") }),
	)
	var g *grammar
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if ev.Type == agent.AgentStart {
			g = &grammar{}
		}
		g.see(ev)
		if ev.Type == agent.AgentEnd && len(g.problems) > 0 {
			t.Error(g.problems)
		}
		return nil
	})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	storm := func(f func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	busy := func(err error) {
		var e *agent.Error
		if err != nil && (!errors.As(err, &e) || e.Kind != agent.Busy && e.Kind != agent.LastIsAssistant && e.Kind != agent.NoMessages) {
			t.Error(err)
		}
	}
	for range 2 {
		storm(func() { busy(a.PromptText(t.Context(), "go")) })
	}
	storm(func() { busy(a.Continue(t.Context())) })
	storm(func() { time.Sleep(300 * time.Microsecond); a.Abort() })
	storm(func() {
		time.Sleep(200 * time.Microsecond)
		if n := len(a.State().Messages); n > 500 {
			busy(a.Reset())
		}
		a.Steer(llm.UserText("steer", 1))
		a.FollowUp(llm.UserText("follow", 1))
		a.NextQueued()
	})
	storm(func() {
		time.Sleep(time.Millisecond)
		a.ClearQueues()
		a.Subscribe(func(context.Context, agent.Event) error { return nil })()
	})
	time.Sleep(400 * time.Millisecond)
	close(stop)
	a.Abort()
	wg.Wait()
	if err := a.WaitForIdle(t.Context()); err != nil || a.State().Running {
		t.Error("not idle", err)
	}
}

func ExampleAgent() {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("Hello, Ada."), faux.Say("You are Ada."))
	a := agent.New(agent.Options{
		Config:       agent.Config{Model: model.Model(), Stream: model.Stream},
		SystemPrompt: "Be brief.",
	})
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if m, ok := ev.Message.(*llm.Assistant); ok && ev.Type == agent.MessageEnd {
			fmt.Println(llm.TextOf(m.Content, ""))
		}
		return nil
	})
	ctx := context.Background()
	a.FollowUp(llm.UserText("Who am I?", 0)) // answered in the same run
	if err := a.PromptText(ctx, "I am Ada."); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(a.State().Messages), "messages")
	// Output:
	// Hello, Ada.
	// You are Ada.
	// 5 messages
}
