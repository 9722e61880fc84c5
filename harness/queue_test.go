package harness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// queueLog renders queue updates and what is said of queued messages.
func (r *rig) queueLog() string {
	var out []string
	for _, ev := range r.events {
		switch ev.Type {
		case harness.QueueUpdate:
			out = append(out, fmt.Sprintf("%v%v", ev.Steering, ev.FollowUp))
		case agent.MessageStart:
			if text := said([]agent.Message{ev.Message}); strings.HasPrefix(text, "user:") {
				out = append(out, strings.TrimPrefix(text, "user:"))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestQueues(t *testing.T) {
	r := newRig(t, harness.Options{Tools: []*agent.Tool{ping()}, Expand: strings.ToLower},
		faux.Reply(faux.ToolCall("ping", "")), faux.Say("b"), faux.Say("c"), faux.Say("d"))
	r.on(agent.ToolExecutionStart, 1, func(harness.Event) error {
		for _, err := range []error{r.FollowUp("F"), r.Steer("S1"), r.Steer("S2")} {
			if err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	r.prompt("GO")
	r.wantSaid("user:go assistant:<ping> result:pong user:s1 assistant:b user:s2 assistant:c user:f assistant:d")
	want := "go [][f] [s1][f] [s1 s2][f] [s2][f] s1 [][f] s2 [][] f"
	if got := r.queueLog(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.paired()
}

func TestQueueModeAll(t *testing.T) {
	r := newRig(t, harness.Options{SteeringMode: harness.All, FollowUpMode: harness.All}, faux.Say("a"), faux.Say("b"))
	_, _, _, _ = r.Steer("s1"), r.Steer("s2"), r.FollowUp("f1"), r.FollowUp("f2")
	r.prompt("go")
	r.wantSaid("user:go user:s1 user:s2 assistant:a user:f1 user:f2 assistant:b")
}

// A message that was queued while the run was ending starts a further one, one
// message a turn.
func TestQueuedAtTheEnd(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"), faux.Say("c"))
	r.on(agent.AgentEnd, 1, func(harness.Event) error {
		_ = r.Steer("s1")
		return r.Steer("s2")
	})
	r.prompt("go")
	r.wantSaid("user:go assistant:a user:s1 assistant:b user:s2 assistant:c")
	if n := r.count(agent.AgentStart); n != 2 {
		t.Errorf("%d runs", n)
	}
	r.paired()
}

// A text that is taken back is not said, and one that is being said is not
// taken back.
func TestClearQueues(t *testing.T) {
	r := newRig(t, harness.Options{SteeringMode: harness.All}, faux.Say("a"), faux.Say("b"))
	_, _ = r.Steer("s1"), r.Steer("s2")
	var got harness.Queued
	r.on(agent.MessageStart, 2, func(harness.Event) error { // of s1, taken together with s2
		_ = r.Steer("s3")
		_ = r.FollowUp("f")
		got = r.ClearQueues()
		if q := r.Queued(); fmt.Sprint(q) != "{[s2] []}" {
			t.Errorf("waiting: %v", q)
		}
		return nil
	})
	r.prompt("go")
	if fmt.Sprint(got) != "{[s3] [f]}" {
		t.Errorf("taken back: %v", got)
	}
	r.wantSaid("user:go user:s1 user:s2 assistant:a")
	if q := r.Queued(); len(q.Steering)+len(q.FollowUp) > 0 {
		t.Errorf("left: %v", q)
	}
}

// What a run took and could not say waits again, in its place.
func TestUnsaidMessagesComeBack(t *testing.T) {
	r := newRig(t, harness.Options{SteeringMode: harness.All}, faux.Say("a"))
	_, _, _ = r.Steer("s1"), r.Steer("s2"), r.Steer("s3")
	r.on(agent.MessageStart, 2, func(harness.Event) error { // of s1; s2 and s3 are taken too
		_ = r.Steer("s4")
		return errors.New("listener failed")
	})
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindUnknown {
		t.Fatal(err)
	}
	r.wantSaid("user:go user:s1 assistant:!error")
	if got := fmt.Sprint(r.Queued(), r.lastQueueUpdate()); got != "{[s2 s3 s4] []} {[s2 s3 s4] []}" {
		t.Error(got)
	}
	r.prompt("again")
	r.wantSaid("user:go user:s1 assistant:!error user:again user:s2 user:s3 user:s4 assistant:a")

	r = newRig(t, harness.Options{}, faux.Say("a"))
	if err := r.NextTurn(llm.UserText("n1", 1), llm.UserText("n2", 1)); err != nil {
		t.Fatal(err)
	}
	r.on(agent.MessageEnd, 1, func(harness.Event) error { return errors.New("listener failed") })
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindUnknown {
		t.Fatal(err)
	}
	r.prompt("again")
	r.wantSaid("user:n1 assistant:!error user:n2 user:again assistant:a")
}

// What waits when an answer fails is said in a further run: nobody is left to
// wait for the next prompt. Whoever ends a wait for a retry wants no more
// requests, and a program sees to its queues itself.
func TestQueuedWhenAnAnswerFails(t *testing.T) {
	twice := func() []faux.Response { return []faux.Response{faux.Fail("overloaded"), faux.Fail("overloaded")} }
	for _, c := range []struct {
		name   string
		o      harness.Options
		script []faux.Response
		giveUp bool
		said   string
	}{
		{"no retry", harness.Options{Retry: harness.Retry{Disabled: true}}, []faux.Response{faux.Fail("invalid key")}, false,
			"user:go assistant:!error user:s assistant:a user:f assistant:b"},
		{"exhausted", harness.Options{Retry: harness.Retry{MaxRetries: 1, BaseDelay: 1}}, twice(), false,
			"user:go user:s assistant:!error user:f assistant:a"},
		{"retry aborted", harness.Options{Retry: harness.Retry{BaseDelay: time.Hour}}, twice()[:1], true, "user:go"},
		{"embedded", harness.Options{Embedded: true, Retry: harness.Retry{Disabled: true}}, []faux.Response{faux.Fail("invalid key")}, false,
			"user:go assistant:!error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.o, append(c.script, faux.Say("a"), faux.Say("b"))...)
			r.on(agent.MessageStart, 2, func(harness.Event) error { // of the answer
				_, err := r.Steer("s"), r.FollowUp("f")
				return err
			})
			if c.giveUp {
				r.on(harness.AutoRetryStart, 1, func(harness.Event) error { r.AbortRetry(); return nil })
			}
			r.prompt("go")
			r.wantSaid(c.said)
			if q := r.Queued(); (len(q.Steering)+len(q.FollowUp) > 0) != !strings.Contains(c.said, "user:f") {
				t.Errorf("queued afterwards: %+v", q)
			}
			r.paired()
		})
	}
}
