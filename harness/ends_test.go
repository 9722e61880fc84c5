package harness_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// A run that is cut short ends the calls that listeners saw begin, and the turn
// that it was in.
func TestFailureEndsCallsAndTurns(t *testing.T) {
	r := newRig(t, harness.Options{Tools: []*agent.Tool{ping()}},
		faux.Reply(faux.ToolCall("ping", "")), faux.Reply(faux.ToolCall("ping", ""), faux.ToolCall("ping", "")))
	r.on(agent.ToolExecutionStart, 3, func(harness.Event) error { return errors.New("listener failed") })
	if _, err := r.Prompt(t.Context(), "go"); err == nil {
		t.Fatal("no error")
	}
	var turns []int
	starts, failed := 0, 0
	for _, ev := range r.events {
		switch {
		case ev.Type == agent.TurnStart || ev.Type == agent.TurnEnd:
			turns = append(turns, ev.TurnIndex)
		case ev.Type == agent.ToolExecutionStart:
			starts++
		case ev.Type == agent.ToolExecutionEnd && ev.IsError:
			failed++
			if got := llm.TextOf(ev.Result.Content, ""); got != "listener failed" {
				t.Errorf("the result says %q", got)
			}
		}
	}
	if fmt.Sprint(turns) != "[0 0 1 1]" || starts != 3 || failed != 2 || r.count(agent.ToolExecutionEnd) != 3 {
		t.Errorf("turns %v; %d calls began, %d ended, %d of them failed", turns, starts, r.count(agent.ToolExecutionEnd), failed)
	}
	r.paired()
}

// What a model does not see is nothing that it could answer.
func TestContinueBehindWhatNobodySees(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
	r.prompt("go")
	if err := r.AppendMessage(&session.BashExecution{Command: "ls", ExcludeFromContext: true, Timestamp: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Continue(t.Context()); kindOf(err) != harness.KindInvalidState {
		t.Errorf("error %v", err)
	}
	if err := r.AppendMessage(&session.BashExecution{Command: "ls", Timestamp: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Continue(t.Context()); err != nil {
		t.Error(err)
	}
}

// A hook that asks for one more request gets it where the model finds something to
// answer.
func TestOneMoreRequestHasSomethingToAnswer(t *testing.T) {
	note := &session.CustomMessageEntry{CustomType: "c", Content: llm.Plain("more")}
	for _, c := range []struct {
		name    string
		entries func(answer string) []session.Data
		queue   bool
		want    int // requests
	}{
		{"nothing", func(string) []session.Data { return nil }, false, 1},
		{"what nobody sees", func(string) []session.Data { return []session.Data{&session.CustomEntry{CustomType: "c"}} }, false, 1},
		{"another answer", func(id string) []session.Data {
			return []session.Data{&session.ContextEditEntry{TargetID: id, Replacement: &llm.Content{Blocks: []llm.Block{&llm.Text{Text: "else"}}}}}
		}, false, 1},
		{"no answer", func(id string) []session.Data { return []session.Data{&session.ContextEditEntry{TargetID: id}} }, false, 2},
		{"a note", func(string) []session.Data { return []session.Data{note} }, false, 2},
		{"a summary", func(string) []session.Data { return []session.Data{&session.CompactionEntry{Summary: "s"}} }, false, 2},
		{"a summary and the answer", func(id string) []session.Data {
			return []session.Data{&session.CompactionEntry{Summary: "s", FirstKept: id}}
		}, false, 1},
		{"a follow-up", func(string) []session.Data { return nil }, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r *rig
			r = newRig(t, harness.Options{Hooks: []harness.Hooks{{
				TurnEnd: func(_ context.Context, ev harness.TurnEnding) (*harness.Drafts, error) {
					if ev.TurnIndex > 0 {
						return nil, nil
					}
					if c.queue {
						return &harness.Drafts{Continue: true}, r.FollowUp("and then?")
					}
					return &harness.Drafts{Continue: true, Entries: c.entries(ev.MessageEntryID)}, nil
				},
			}}}, faux.Say("a"), faux.Say("b"))
			r.prompt("go")
			if n := r.count(agent.TurnEnd); n != c.want {
				t.Errorf("%d turns, want %d", n, c.want)
			}
			r.paired()
		})
	}
}

// What goes back to its queue is told of.
func TestEmbeddedQueueIsToldOfWhatReturns(t *testing.T) {
	r := embedded(t, harness.Options{Tools: []*agent.Tool{ping()}}, faux.Reply(faux.ToolCall("ping", "")))
	r.on(agent.ToolExecutionStart, 1, func(harness.Event) error { return r.Steer("wait") })
	r.on(harness.QueueUpdate, 2, func(harness.Event) error { return errors.New("listener failed") })
	if _, err := r.Prompt(t.Context(), "go"); err == nil {
		t.Fatal("no error")
	}
	if q, told := r.Queued(), r.lastQueueUpdate(); len(q.Steering) != 1 || fmt.Sprint(q) != fmt.Sprint(told) {
		t.Errorf("%v waits, the last queue_update says %v", q, told)
	}
}

// A fork may end in a move to a place that it does not have.
func TestEmbeddedOpensAMoveToNowhere(t *testing.T) {
	r := embedded(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
	r.prompt("go")
	answer := r.Session().LeafID()
	if _, err := r.NavigateTree(context.Background(), r.Session().Path()[0].ID, harness.TreeOptions{}); err != nil {
		t.Fatal(err)
	}
	r.prompt("other")
	if _, err := r.NavigateTree(context.Background(), answer, harness.TreeOptions{}); err != nil {
		t.Fatal(err)
	}
	entries := r.Session().Entries()
	move := entries[len(entries)-1]
	if move.Type != session.TypeLeaf {
		t.Fatalf("the last entry is %s", move.Raw())
	}
	fork, err := r.Session().Fork(memory.New(), move.ID, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := embedded(t, harness.Options{Session: fork}, faux.Say("c"))
	f.prompt("on")
	f.wantSaid("user:other assistant:b user:on assistant:c")
}

// A prompt that a hook kept from being said is an error, also when the run is
// aborted on top of that.
func TestUnsaidPromptIsAnError(t *testing.T) {
	r := newRig(t, harness.Options{Hooks: []harness.Hooks{{
		MessageEnd: func(_ context.Context, m agent.Message) (agent.Message, error) {
			if m.Role() == llm.RoleUser {
				return nil, errors.New("hook failed")
			}
			return nil, nil
		},
	}}})
	if err := r.NextTurn(llm.UserText("first", 1)); err != nil {
		t.Fatal(err)
	}
	r.on(agent.AgentEnd, 1, func(harness.Event) error { r.Abort(); return nil })
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindHook {
		t.Errorf("error %v", err)
	}
	r.wantSaid("user:first assistant:!error")
}
