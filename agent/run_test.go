package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

func tool(name string, execute func(ctx context.Context, c agent.Call) (agent.Result, error)) *agent.Tool {
	return &agent.Tool{
		Tool:    llm.Tool{Name: name, Description: name, Parameters: jsontext.Value(`{"type":"object"}`)},
		Execute: execute,
	}
}

func says(text string) func(context.Context, agent.Call) (agent.Result, error) {
	return func(context.Context, agent.Call) (agent.Result, error) { return agent.TextResult(text), nil }
}

func prompt(text string) []agent.Message { return []agent.Message{llm.UserText(text, 1)} }

// results lists the results of calls, in the order of the transcript.
func results(messages []agent.Message) []string {
	var out []string
	for _, m := range messages {
		if r, ok := m.(*llm.ToolResult); ok {
			out = append(out, llm.TextOf(r.Content, "|"))
		}
	}
	return out
}

// grammar checks that events come as the package promises.
type grammar struct {
	agents, turns int
	message       agent.Message
	streaming     bool
	calls         map[string]bool
	ended         bool
	problems      []string
}

func (g *grammar) see(ev agent.Event) {
	bad := func(format string, args ...any) {
		g.problems = append(g.problems, fmt.Sprintf("%s: ", ev.Type)+fmt.Sprintf(format, args...))
	}
	if g.ended {
		bad("after agent_end")
	}
	switch ev.Type {
	case agent.AgentStart:
		g.calls = map[string]bool{}
		if g.agents++; g.agents > 1 {
			bad("twice")
		}
	case agent.TurnStart:
		if g.turns++; g.turns != 1 {
			bad("inside a turn")
		}
	case agent.TurnEnd:
		if g.turns--; g.turns != 0 || g.message != nil || len(g.calls) > 0 {
			bad("turns %d, open message %v, open calls %v", g.turns, g.message, g.calls)
		}
	case agent.MessageStart:
		if g.message != nil || g.turns != 1 {
			bad("inside another message, or outside a turn")
		}
		g.message = ev.Message
		m, ok := ev.Message.(*llm.Assistant)
		g.streaming = ok && m.StopReason == llm.StopPending
	case agent.MessageUpdate:
		if !g.streaming || ev.Update == nil {
			bad("no message is streaming")
		}
	case agent.MessageEnd:
		if g.message == nil || !g.streaming && g.message != ev.Message {
			bad("of another message")
		}
		if m, ok := ev.Message.(*llm.Assistant); ok && m.StopReason == llm.StopPending {
			bad("answer is not final")
		}
		g.message, g.streaming = nil, false
	case agent.ToolExecutionStart:
		if g.calls[ev.ToolCallID] {
			bad("twice")
		}
		g.calls[ev.ToolCallID] = true
	case agent.ToolExecutionUpdate:
		if !g.calls[ev.ToolCallID] || ev.Result == nil {
			bad("outside its call")
		}
	case agent.ToolExecutionEnd:
		if !g.calls[ev.ToolCallID] || ev.Result == nil || ev.Result.Content == nil {
			bad("outside its call, or without a result")
		}
		delete(g.calls, ev.ToolCallID)
	case agent.AgentEnd:
		g.ended = true
		if g.turns != 0 {
			bad("inside a turn")
		}
	}
}

// TestEventsArePaired runs random scripts with random tools, queues and aborts.
func TestEventsArePaired(t *testing.T) {
	tools := []*agent.Tool{
		tool("ok", says("ok")),
		tool("fails", func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{}, errors.New("no") }),
		tool("panics", func(context.Context, agent.Call) (agent.Result, error) { panic("ouch") }),
		tool("exits", func(context.Context, agent.Call) (agent.Result, error) { runtime.Goexit(); return agent.Result{}, nil }),
		tool("ends", func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{Terminate: true}, nil }),
		tool("chats", func(_ context.Context, c agent.Call) (agent.Result, error) {
			for range 3 {
				c.Update(agent.TextResult("working"))
			}
			go c.Update(agent.TextResult("late"))
			return agent.TextResult("done"), nil
		}),
		tool("waits", func(ctx context.Context, _ agent.Call) (agent.Result, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			return agent.Result{}, ctx.Err()
		}),
	}
	solo := tool("solo", says("solo"))
	solo.Execution = agent.Sequential
	tools = append(tools, solo)
	names := []string{"unknown"}
	for _, t := range tools {
		names = append(names, t.Name)
	}
	rapid.Check(t, func(rt *rapid.T) {
		model := faux.New(faux.Options{Seed: rapid.Uint64().Draw(rt, "seed")})
		for range rapid.IntRange(1, 5).Draw(rt, "turns") {
			blocks := []llm.Block{faux.Text("text that takes a few pieces to say")}
			for range rapid.IntRange(0, 4).Draw(rt, "calls") {
				blocks = append(blocks, faux.ToolCall(rapid.SampledFrom(names).Draw(rt, "tool"), ""))
			}
			switch rapid.IntRange(0, 9).Draw(rt, "ending") {
			case 0:
				model.Script(faux.Fail("broken", blocks...))
			case 1:
				model.Script(faux.Message(&llm.Assistant{Content: blocks, StopReason: llm.StopLength}))
			default:
				model.Script(faux.Reply(blocks...))
			}
		}
		ctx, abort := context.WithCancel(context.Background())
		defer abort()
		abortAt := rapid.IntRange(0, 60).Draw(rt, "abort at") // beyond the end: never
		queue := func(name string) func() []agent.Message {
			left := rapid.IntRange(0, 3).Draw(rt, name)
			return func() []agent.Message {
				if left == 0 || !rapid.Bool().Draw(rt, name+" now") {
					return nil
				}
				left--
				return prompt(name)
			}
		}
		cfg := agent.Config{
			Model: model.Model(), Stream: model.Stream,
			Steering: queue("steering"), FollowUp: queue("follow-up"),
		}
		if rapid.Bool().Draw(rt, "sequential") {
			cfg.Execution = agent.Sequential
		}
		g := &grammar{}
		n := 0
		added, err := agent.Run(ctx, cfg, agent.Context{Tools: tools}, prompt("go"), func(_ context.Context, ev agent.Event) error {
			if n++; n == abortAt {
				abort()
			}
			g.see(ev)
			return nil
		})
		if err != nil || !g.ended || len(g.problems) > 0 {
			rt.Fatalf("error %v, ended %v, %s", err, g.ended, strings.Join(g.problems, "; "))
		}
		checkResults(rt, added)
	})
}

// checkResults checks that every call of an answer that counts has one result,
// right after it and in its order.
func checkResults(t *rapid.T, messages []agent.Message) {
	for i, m := range messages {
		a, ok := m.(*llm.Assistant)
		if !ok || a.StopReason == llm.StopError || a.StopReason == llm.StopAborted {
			continue
		}
		for j, c := range a.ToolCalls() {
			at := i + 1 + j
			r, ok := messages[min(at, len(messages)-1)].(*llm.ToolResult)
			if !ok || r.ToolCallID != c.ID {
				t.Fatalf("call %s has no result in its place", c.ID)
			}
		}
	}
	if last, ok := messages[len(messages)-1].(*llm.Assistant); !ok {
		if _, ok := messages[len(messages)-1].(*llm.ToolResult); !ok {
			t.Fatalf("the run ends with %T", messages[len(messages)-1])
		}
	} else if last.StopReason == llm.StopPending {
		t.Fatal("the last answer is not final")
	}
}

// textError is an error of which a nil pointer has no text.
type textError struct{ text string }

func (e *textError) Error() string { return e.text }

func TestResultsOfBadTools(t *testing.T) {
	fn := func(f func(c agent.Call) (agent.Result, error)) *agent.Tool {
		return tool("t", func(_ context.Context, c agent.Call) (agent.Result, error) { return f(c) })
	}
	with := func(change func(*agent.Tool)) *agent.Tool {
		t := tool("t", says("ran"))
		change(t)
		return t
	}
	for _, c := range []struct {
		name string
		tool *agent.Tool
		hook func(*agent.Config)
		want string
	}{
		{"error", fn(func(agent.Call) (agent.Result, error) { return agent.Result{}, errors.New("disk full") }), nil, "disk full"},
		{"panic", fn(func(agent.Call) (agent.Result, error) { panic("index out of range") }), nil, "tool t panicked: index out of range"},
		{"panic with an error", fn(func(agent.Call) (agent.Result, error) { panic(errors.New("e")) }), nil, "tool t panicked: e"},
		{"Goexit", fn(func(agent.Call) (agent.Result, error) { runtime.Goexit(); return agent.Result{}, nil }), nil, "tool t ended without a result"},
		{"a nil error", fn(func(agent.Call) (agent.Result, error) { var e *textError; return agent.Result{}, e }), nil,
			"tool t panicked: runtime error: invalid memory address or nil pointer dereference"},
		{"a nil block", fn(func(agent.Call) (agent.Result, error) { return agent.Result{Content: []llm.Block{nil}}, nil }), nil,
			"The result of tool t holds a block that is nil"},
		{"a nil text", fn(func(agent.Call) (agent.Result, error) {
			return agent.Result{Content: []llm.Block{&llm.Text{Text: "a"}, (*llm.Text)(nil)}}, nil
		}), nil, "The result of tool t holds a block that is nil"},
		{"hook before has a nil error", tool("t", says("ran")), func(c *agent.Config) {
			c.BeforeToolCall = func(context.Context, agent.CallInfo) (*agent.Block, error) { var e *textError; return nil, e }
		}, "hook before tool calls panicked: runtime error: invalid memory address or nil pointer dereference"},
		{"hook after gives a nil block", tool("t", says("ran")), func(c *agent.Config) {
			c.AfterToolCall = func(context.Context, agent.CallInfo, agent.Result) (*agent.ResultPatch, error) {
				return &agent.ResultPatch{Content: &[]llm.Block{nil}}, nil
			}
		}, "The result of tool t holds a block that is nil"},
		{"no body", with(func(t *agent.Tool) { t.Execute = nil }), nil, "tool t cannot be executed"},
		{"preparation fails", with(func(t *agent.Tool) {
			t.Prepare = func(jsontext.Value) (jsontext.Value, error) { return nil, errors.New("odd") }
		}), nil, "odd"},
		{"preparation panics", with(func(t *agent.Tool) { t.Prepare = func(jsontext.Value) (jsontext.Value, error) { panic("p") } }), nil,
			"argument preparation of tool t panicked: p"},
		{"preparation gives junk", with(func(t *agent.Tool) {
			t.Prepare = func(jsontext.Value) (jsontext.Value, error) { return jsontext.Value("{"), nil }
		}), nil, "Validation failed for tool \"t\":\n  - root: expected JSON: invalid JSON at byte 1: unexpected end\n\nReceived arguments:\n{"},
		{"reservation panics", with(func(t *agent.Tool) { t.Reserve = func(agent.Call) func() { panic("r") } }), nil, "reservation of tool t panicked: r"},
		{"hook before panics", tool("t", says("ran")), func(c *agent.Config) {
			c.BeforeToolCall = func(context.Context, agent.CallInfo) (*agent.Block, error) { panic("b") }
		}, "hook before tool calls panicked: b"},
		{"hook after panics", tool("t", says("ran")), func(c *agent.Config) {
			c.AfterToolCall = func(context.Context, agent.CallInfo, agent.Result) (*agent.ResultPatch, error) { panic("a") }
		}, "hook after tool calls panicked: a"},
		{"hook before aborts nothing", tool("t", says("ran")), func(c *agent.Config) {
			c.BeforeToolCall = func(context.Context, agent.CallInfo) (*agent.Block, error) { return nil, nil }
		}, "ran"},
	} {
		for _, mode := range []agent.Execution{agent.Parallel, agent.Sequential} {
			model := faux.New(faux.Options{})
			model.Script(faux.Reply(faux.ToolCall("t", "")), faux.Say("fine"))
			cfg := agent.Config{Model: model.Model(), Stream: model.Stream, Execution: mode}
			if c.hook != nil {
				c.hook(&cfg)
			}
			g := &grammar{}
			var told error
			added, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{c.tool}}, prompt("go"),
				func(_ context.Context, ev agent.Event) error {
					if g.see(ev); ev.Type == agent.ToolExecutionEnd {
						told = ev.Err
					}
					return nil
				})
			// The model reads what went wrong, the listener may see where.
			p, panicked := errors.AsType[*agent.PanicError](told)
			if told != nil && told.Error() != c.want || panicked != strings.Contains(c.want, "panicked") {
				t.Errorf("%s, %s: the listener gets %v", c.name, mode, told)
			}
			if panicked && !strings.Contains(string(p.Stack), "TestResultsOfBadTools") && !strings.Contains(string(p.Stack), "textError") {
				t.Errorf("%s, %s: %s", c.name, mode, p.Stack)
			}
			if got := results(added); err != nil || len(got) != 1 || got[0] != c.want {
				t.Errorf("%s, %s: %q, %v", c.name, mode, got, err)
			}
			if !g.ended || g.problems != nil {
				t.Errorf("%s, %s: %v", c.name, mode, g.problems)
			}
		}
	}
}

func TestHookFailuresEndTheRun(t *testing.T) {
	for name, set := range map[string]func(*agent.Config, func() error){
		"finish turn": func(c *agent.Config, f func() error) {
			c.FinishTurn = func(context.Context, agent.Turn) (agent.Decision, error) { return agent.Default, f() }
		},
		"prepare next turn": func(c *agent.Config, f func() error) {
			c.PrepareNextTurn = func(context.Context, agent.Turn) (agent.NextTurn, error) { return agent.NextTurn{}, f() }
		},
		"prepare request": func(c *agent.Config, f func() error) {
			c.PrepareRequest = func(context.Context, agent.Context, *llm.Model, llm.ThinkingLevel) (agent.NextTurn, error) {
				return agent.NextTurn{}, f()
			}
		},
		"transform": func(c *agent.Config, f func() error) {
			c.TransformContext = func(_ context.Context, m []agent.Message) ([]agent.Message, error) { return m, f() }
		},
		"credentials": func(c *agent.Config, f func() error) {
			c.Credentials = func(context.Context, *llm.Model) (string, map[string]*string, error) { return "", nil, f() }
		},
	} {
		boom := errors.New("boom")
		run := func(f func() error) error {
			model := faux.New(faux.Options{})
			model.Script(faux.Reply(faux.ToolCall("t", "")), faux.Say("fine"))
			cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
			set(&cfg, f)
			_, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{tool("t", says("x"))}}, prompt("go"), nil)
			return err
		}
		if err := run(func() error { return boom }); err != boom {
			t.Errorf("%s: %v", name, err)
		}
		var e *agent.Error
		if err := run(func() error { panic("p") }); !errors.As(err, &e) || e.Kind != agent.Panicked || !strings.Contains(err.Error(), "p") {
			t.Errorf("%s panics: %v", name, err)
		} else if p, ok := errors.AsType[*agent.PanicError](err); !ok || !strings.Contains(string(p.Stack), "TestHookFailuresEndTheRun") {
			t.Errorf("%s: where it was is lost: %+v", name, p)
		}
	}
}

// TestFinish runs the calls that an earlier run left, before anything is said,
// and asks the model with all of their results.
func TestFinish(t *testing.T) {
	answer := &llm.Assistant{StopReason: llm.StopToolUse, Content: []llm.Block{
		faux.ToolCall("a", "{}"), faux.ToolCall("b", "{}"), faux.ToolCall("gone", "{}"),
	}}
	for i, c := range answer.ToolCalls() {
		c.ID = fmt.Sprint("call-", i)
	}
	before := []agent.Message{llm.UserText("go", 1), answer, &llm.ToolResult{ToolCallID: "call-0", Content: []llm.Block{faux.Text("A")}}}
	for _, prompts := range [][]agent.Message{nil, prompt("and?")} {
		model := faux.New(faux.Options{})
		model.Script(faux.Say("done"))
		var g grammar
		added, err := agent.Finish(t.Context(), agent.Config{Model: model.Model(), Stream: model.Stream},
			agent.Context{Messages: before, Tools: []*agent.Tool{tool("a", says("A again")), tool("b", says("B"))}},
			agent.Unfinished{Answer: answer, Calls: answer.ToolCalls()[1:]}, prompts,
			func(_ context.Context, ev agent.Event) error { g.see(ev); return nil })
		if err != nil || len(g.problems) > 0 {
			t.Fatal(err, g.problems)
		}
		if got, want := results(added), []string{"B", "Tool gone not found"}; !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		var roles []llm.Role
		for _, m := range model.Requests()[0].Request.Messages {
			if m.Role() != llm.RoleSystem {
				roles = append(roles, m.Role())
			}
		}
		want := []llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleToolResult, llm.RoleToolResult, llm.RoleToolResult}
		if prompts != nil {
			want = append(want, llm.RoleUser)
		}
		if !slices.Equal(roles, want) {
			t.Errorf("the model saw %v, want %v", roles, want)
		}
	}
}

func TestMisuse(t *testing.T) {
	model := faux.New(faux.Options{})
	ok := agent.Config{Model: model.Model(), Stream: model.Stream}
	for _, c := range []struct {
		cfg  agent.Config
		ctx  agent.Context
		want agent.ErrorKind
	}{
		{agent.Config{Stream: model.Stream}, agent.Context{}, agent.InvalidConfig},
		{agent.Config{Model: model.Model()}, agent.Context{}, agent.InvalidConfig},
		{ok, agent.Context{}, agent.NoMessages},
		{ok, agent.Context{Messages: []agent.Message{&llm.Assistant{}}}, agent.LastIsAssistant},
	} {
		_, err := agent.Resume(t.Context(), c.cfg, c.ctx, func(context.Context, agent.Event) error {
			t.Error("an event was sent")
			return nil
		})
		var e *agent.Error
		if !errors.As(err, &e) || e.Kind != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestSinkFailureStopsTools checks that nothing of a lost run is left.
func TestSinkFailureStopsTools(t *testing.T) {
	lost := errors.New("disk full")
	var stopped atomic.Int32
	wait := tool("wait", func(ctx context.Context, c agent.Call) (agent.Result, error) {
		c.Update(agent.TextResult("here"))
		<-ctx.Done()
		stopped.Add(1)
		return agent.Result{}, ctx.Err()
	})
	for _, fail := range []func() error{func() error { return lost }, func() error { panic(lost) }} {
		stopped.Store(0)
		model := faux.New(faux.Options{})
		model.Script(faux.Reply(faux.ToolCall("wait", ""), faux.ToolCall("wait", ""), faux.ToolCall("wait", "")))
		cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
		_, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{wait}}, prompt("go"), func(_ context.Context, ev agent.Event) error {
			if ev.Type == agent.ToolExecutionUpdate {
				return fail()
			}
			return nil
		})
		if !errors.Is(err, lost) || stopped.Load() != 3 {
			t.Errorf("%v with %d tools stopped", err, stopped.Load())
		}
	}
}

func TestHugeBatch(t *testing.T) {
	const n = 2000
	model := faux.New(faux.Options{})
	var blocks []llm.Block
	for i := range n {
		blocks = append(blocks, faux.ToolCall("echo", fmt.Sprintf(`{"i":%d}`, i)))
	}
	model.Script(faux.Reply(blocks...), faux.Say("done"))
	echo := tool("echo", func(_ context.Context, c agent.Call) (agent.Result, error) {
		c.Update(agent.TextResult("half way"))
		return agent.TextResult(string(c.Args)), nil
	})
	g := &grammar{}
	cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
	added, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{echo}}, prompt("go"),
		func(_ context.Context, ev agent.Event) error { g.see(ev); return nil })
	if err != nil || g.problems != nil || !g.ended {
		t.Fatal(err, g.problems)
	}
	got := results(added)
	if len(got) != n {
		t.Fatalf("%d results", len(got))
	}
	for i, text := range got {
		if text != fmt.Sprintf(`{"i":%d}`, i) {
			t.Fatalf("result %d is %s", i, text)
		}
	}
}

func TestReserveKeepsSourceOrder(t *testing.T) {
	const n = 50
	model := faux.New(faux.Options{})
	var blocks []llm.Block
	for range n {
		blocks = append(blocks, faux.ToolCall("edit", ""))
	}
	model.Script(faux.Reply(blocks...), faux.Say("done"))
	turn := map[string]chan struct{}{} // what a call waits for
	last := make(chan struct{})
	close(last)
	var done atomic.Int32
	var order []string
	edit := tool("edit", func(_ context.Context, c agent.Call) (agent.Result, error) {
		<-turn[c.ID]
		order = append(order, c.ID) // one at a time: the queue is the lock
		return agent.TextResult("ok"), nil
	})
	edit.Reserve = func(c agent.Call) func() {
		turn[c.ID] = last
		mine := make(chan struct{})
		last = mine
		return func() { done.Add(1); close(mine) }
	}
	cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
	added, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{edit}}, prompt("go"), nil)
	if err != nil || done.Load() != n {
		t.Fatalf("%v, %d of %d places given back", err, done.Load(), n)
	}
	var want []string
	for _, c := range added[2].(*llm.Assistant).ToolCalls() {
		want = append(want, c.ID)
	}
	if !slices.Equal(order, want) {
		t.Errorf("ran in order %v", order)
	}
}

// TestMessagesKeepTheirAddress checks what wire formats count on: a message of
// an earlier request is the same object in a later one.
func TestMessagesKeepTheirAddress(t *testing.T) {
	model := faux.New(faux.Options{})
	for range 20 {
		model.Script(faux.Reply(faux.ToolCall("t", "")))
	}
	model.Script(faux.Say("done"))
	cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
	var ends []agent.Message
	_, err := agent.Run(t.Context(), cfg, agent.Context{Tools: []*agent.Tool{tool("t", says("x"))}}, prompt("go"), func(_ context.Context, ev agent.Event) error {
		if ev.Type == agent.MessageEnd {
			ends = append(ends, ev.Message)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := model.Requests()
	if requests[0].Request.Memo == nil || requests[0].Request.Memo != requests[20].Request.Memo {
		t.Error("requests of a run share no memo")
	}
	for i, c := range requests {
		for j, m := range c.Request.Messages {
			if agent.Message(m) != ends[j] {
				t.Fatalf("message %d of request %d is a copy", j, i)
			}
		}
	}
}

// endless is a stream of n text deltas that allocates nothing.
type endless struct {
	n, at int
	out   *llm.Assistant
	text  *llm.Text
}

func (s *endless) Close() {}

func (s *endless) Next() (llm.Event, bool) {
	s.at++
	switch {
	case s.at == 1:
		return llm.Event{Type: llm.EventStart, Partial: s.out}, true
	case s.at <= s.n+1:
		return llm.Event{Type: llm.EventTextDelta, Partial: s.out, Delta: "x"}, true
	default:
		s.out.StopReason = llm.StopStop
		return llm.Event{Type: llm.EventDone, Message: s.out}, true
	}
}

func TestUpdatesDoNotAllocate(t *testing.T) {
	model := faux.New(faux.Options{}).Model()
	a := agent.New(agent.Options{Config: agent.Config{Model: model}})
	a.Subscribe(func(context.Context, agent.Event) error { return nil })
	cost := func(deltas int) float64 {
		a.Configure(func(c *agent.Config) {
			c.Stream = func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
				text := &llm.Text{}
				return llm.NewStream(&endless{n: deltas, text: text, out: &llm.Assistant{Content: []llm.Block{text}, StopReason: llm.StopPending}}), nil
			}
		})
		return testing.AllocsPerRun(5, func() {
			a.SetMessages(nil)
			if err := a.PromptText(context.Background(), "go"); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := cost(10), cost(10_010)
	if many-few > 5 {
		t.Errorf("10,000 deltas cost %v allocations", many-few)
	}
}

// TestTurnCostsTheSameInALongSession counts the allocations of twenty turns
// after a short and a long history.
func TestTurnCostsTheSameInALongSession(t *testing.T) {
	model := faux.New(faux.Options{}).Model()
	stream := func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
		return llm.NewStream(&endless{n: 1, out: &llm.Assistant{Content: []llm.Block{}, StopReason: llm.StopPending}}), nil
	}
	cost := func(history int) float64 {
		var messages []agent.Message
		for range history {
			messages = append(messages, llm.UserText("x", 1))
		}
		return testing.AllocsPerRun(3, func() {
			left := 20
			cfg := agent.Config{Model: model, Stream: stream, FollowUp: func() []agent.Message {
				if left--; left < 0 {
					return nil
				}
				return prompt("next")
			}}
			if _, err := agent.Resume(context.Background(), cfg, agent.Context{Messages: messages, Tools: []*agent.Tool{tool("t", nil)}}, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := cost(10), cost(50_000)
	if long > short+20 {
		t.Errorf("%v allocations after 10 messages, %v after 50,000", short, long)
	}
}

func BenchmarkDelta(b *testing.B) {
	model := faux.New(faux.Options{}).Model()
	a := agent.New(agent.Options{Config: agent.Config{Model: model, Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
		return llm.NewStream(&endless{n: b.N, out: &llm.Assistant{Content: []llm.Block{}, StopReason: llm.StopPending}}), nil
	}}})
	a.Subscribe(func(context.Context, agent.Event) error { return nil })
	b.ReportAllocs()
	if err := a.PromptText(context.Background(), "go"); err != nil {
		b.Fatal(err)
	}
}

// A run writes into the room of its caller's list only where it may.
func TestRoomForMessages(t *testing.T) {
	for _, room := range []bool{false, true} {
		list := append(make([]agent.Message, 0, 8), llm.UserText("before", 1))
		cfg := agent.Config{Model: &llm.Model{ID: "m", Provider: "p"}, Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
			return nil, errors.New("no service")
		}}
		prompt := llm.UserText("prompt", 2)
		if _, err := agent.Run(context.Background(), cfg, agent.Context{Messages: list, Room: room}, []agent.Message{prompt}, func(context.Context, agent.Event) error { return nil }); err == nil {
			t.Fatal("a run without a service came to an end")
		}
		if behind := list[:2][1]; (behind == agent.Message(prompt)) != room {
			t.Errorf("room %v: behind the list stands %v", room, behind)
		}
	}
}
