package harness_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// What became of an input is told before the first event of its run, and only
// once; hooks do not see who is told.
func TestAccepted(t *testing.T) {
	r := newRig(t, harness.Options{Hooks: []harness.Hooks{{Input: func(_ context.Context, in harness.Input) (*harness.InputChange, error) {
		if in.Accepted != nil {
			t.Error("a hook sees who is told")
		}
		return &harness.InputChange{Handled: in.Text == "handle this", Text: in.Text}, nil
	}}}}, faux.Hang(faux.Text("partial")))
	var told []harness.Disposition
	input := func(text string, b harness.QueueBehavior) harness.Input {
		return harness.Input{Text: text, Source: harness.FromRPC, Behavior: b, Accepted: func(d harness.Disposition) {
			told = append(told, d)
			if d == harness.InputStarted && r.count(agent.AgentStart) > 0 {
				t.Error("the run has begun before that was told")
			}
		}}
	}
	submit := func(text string, b harness.QueueBehavior) {
		t.Helper()
		if _, err := r.Submit(t.Context(), input(text, b)); err != nil {
			t.Error(err)
		}
	}
	submit("handle this", "")
	defer r.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.MessageUpdate && ev.Update.Type == llm.EventTextDelta {
			if _, err := r.Submit(t.Context(), input("refused", "")); err == nil {
				t.Error("a prompt beside a run is accepted")
			}
			submit("more", harness.AsFollowUp)
			if err := r.Queue(input("more", harness.AsSteering)); err != nil {
				t.Error(err)
			}
			if err := r.Queue(input("handle this", harness.AsSteering)); err != nil {
				t.Error(err)
			}
			if err := r.Queue(input("more", "")); err == nil {
				t.Error("an input without a queue is queued")
			}
			r.Abort()
		}
		return nil
	})()
	submit("go", "")
	want := []harness.Disposition{harness.InputHandled, harness.InputStarted, harness.InputQueued, harness.InputQueued, harness.InputHandled}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestDelivered(t *testing.T) {
	seen, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, harness.Options{})
	levels := 0
	defer r.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case harness.QueueUpdate:
			close(seen)
			<-release
		case harness.SessionInfoChanged:
			levels++
		}
		return nil
	})()
	go r.ClearQueues() // whose event is being delivered for a while
	<-seen
	if err := r.SetName("named"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Delivered(ctx); err == nil {
		t.Error("a wait that was ended succeeds")
	}
	close(release)
	if err := r.Delivered(t.Context()); err != nil || levels != 1 {
		t.Errorf("%v, %d events", err, levels)
	}
}

func TestAutoSwitches(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Fail("overloaded"), faux.Fail("overloaded"), faux.Say("at last"))
	r.SetAutoRetry(false)
	if m, err := r.Prompt(t.Context(), "go"); err != nil || m.StopReason != llm.StopError || r.count(harness.AutoRetryStart) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	r.SetAutoRetry(true)
	if m, err := r.Prompt(t.Context(), "go"); err != nil || m.StopReason != llm.StopStop || r.count(harness.AutoRetryStart) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if !r.AutoCompaction() {
		t.Error("off at the start")
	}
	if r.SetAutoCompaction(false); r.AutoCompaction() {
		t.Error("still on")
	}
}
