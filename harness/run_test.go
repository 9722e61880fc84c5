package harness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

func TestChangesDuringARunHoldFromTheNextTurn(t *testing.T) {
	r := newRig(t, harness.Options{Tools: []*agent.Tool{ping()}, ThinkingLevel: llm.LevelLow},
		faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"), faux.Say("more"))
	other := toolOf("other", func(context.Context) (string, error) { return "", nil })
	r.on(agent.ToolExecutionStart, 1, func(harness.Event) error {
		return errors.Join(
			r.AppendMessage(&session.BashExecution{Command: "ls", Timestamp: 1}),
			r.AppendMessage(&session.Custom{CustomType: "note", Content: llm.Plain("note"), Timestamp: 1}),
			r.SetModel(r.model.Models()[1]),
			r.SetTools([]*agent.Tool{ping(), other}),
			r.SetName("a  name\nof two lines"),
		)
	})
	r.prompt("go")
	asked := r.model.Requests()
	if asked[0].Model.ID != "one" || asked[1].Model.ID != "two" || asked[0].Request.Reasoning != llm.LevelLow || asked[1].Request.Reasoning != llm.LevelOff {
		t.Errorf("asked %s and %s", asked[0].Model.ID, asked[1].Model.ID)
	}
	if got := r.askedOf(2); got != "user:go assistant:<ping> result:pong user:note" {
		t.Error(got)
	}
	sys := asked[1].Request.Messages[len(asked[1].Request.Messages)-1].(*llm.System)
	if len(sys.ToolsAdded) != 1 || sys.ToolsAdded[0].Name != "other" {
		t.Errorf("the second request declares %+v", sys)
	}
	want := "model_change thinking_level_change system user assistant session_info toolResult custom_message model_change thinking_level_change system assistant bashExecution"
	if got := entryTypes(r.Session()); got != want {
		t.Errorf("entries\n%s\nwant\n%s", got, want)
	}
	if r.Session().Name() != "a  name of two lines" || r.events[slices.IndexFunc(r.events, func(ev harness.Event) bool {
		return ev.Type == harness.SessionInfoChanged
	})].Name != r.Session().Name() {
		t.Error("the name was not told")
	}
	r.prompt("again")
	if got := r.askedOf(3); !strings.HasSuffix(got, "user:Ran `ls`\n(no output) user:again") {
		t.Error(got)
	}
	r.paired()
}

func TestCustomMessageWhileIdle(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"))
	if err := r.AppendMessage(&session.Custom{CustomType: "note", Content: llm.Plain("fyi"), Timestamp: 1}); err != nil {
		t.Fatal(err)
	}
	if got := r.types(); got != "message_start message_end" {
		t.Error(got)
	}
	r.prompt("go")
	r.wantSaid("custom:fyi user:go assistant:a")
}

func TestNextTurn(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
	if err := r.NextTurn(llm.UserText("note", 1)); err != nil {
		t.Fatal(err)
	}
	r.prompt("go")
	r.prompt("on")
	r.wantSaid("user:note user:go assistant:a user:on assistant:b")
}

func TestAbortKeepsThePartialAnswer(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Hang(faux.Text("half a sen")), faux.Say("b"))
	r.on(agent.MessageUpdate, 2, func(harness.Event) error { r.Abort(); r.Abort(); return nil })
	if err := r.FollowUp("later"); err != nil {
		t.Fatal(err)
	}
	m := r.prompt("go")
	if m.StopReason != llm.StopAborted {
		t.Errorf("answer %+v", m)
	}
	r.wantSaid("user:go assistant:half a sen!aborted")
	if last := r.events[len(r.events)-1]; last.Type != harness.AgentSettled || !last.Aborted {
		t.Errorf("last event %+v", last)
	}
	if q := r.Queued(); len(q.FollowUp) != 1 {
		t.Errorf("an abort emptied the queue: %+v", q)
	}
	r.paired()
	r.Abort() // idle: nothing
	if m, err := r.Continue(t.Context()); err != nil || m.StopReason != llm.StopStop {
		t.Error(m, err)
	}
	r.wantSaid("user:go assistant:half a sen!aborted user:later assistant:b")
}

func TestAbortDuringATool(t *testing.T) {
	var r *rig
	stuck := toolOf("stuck", func(ctx context.Context) (string, error) {
		r.Abort()
		<-ctx.Done()
		return "", ctx.Err()
	})
	r = newRig(t, harness.Options{Tools: []*agent.Tool{stuck}}, faux.Reply(faux.ToolCall("stuck", "")), faux.Say("never"))
	r.prompt("go")
	r.wantSaid("user:go assistant:<stuck> result:context canceled assistant:!aborted")
	r.paired()
}

func TestContextThatEndedBefore(t *testing.T) {
	r := newRig(t, harness.Options{
		Credentials: func(ctx context.Context, _ *llm.Model) (harness.Credentials, error) {
			return harness.Credentials{}, ctx.Err()
		},
	}, faux.Say("never"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := r.Prompt(ctx, "go")
	if err != nil || m.StopReason != llm.StopAborted || m.ErrorMessage != "This operation was aborted" {
		t.Errorf("%+v, %v", m, err)
	}
	r.wantSaid("user:go assistant:!aborted")
	r.paired()
	if r.count(harness.AgentSettled) != 1 {
		t.Error(r.types())
	}
}

func TestAWireFormatWithoutKey(t *testing.T) {
	model := faux.New(faux.Options{})
	h, err := harness.New(harness.Options{
		Model: model.Model(),
		Stream: func(_ context.Context, m *llm.Model, _ *llm.Request) (*llm.Stream, error) {
			return nil, &llm.KeyError{Provider: m.Provider}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	m, err := h.Prompt(t.Context(), "go")
	if _, ok := errors.AsType[*llm.KeyError](err); kindOf(err) != harness.KindAuth || !ok {
		t.Errorf("error %v", err)
	}
	if m.Err() == nil {
		t.Errorf("answer %+v", m)
	}
}

func TestCredentials(t *testing.T) {
	var fail error
	asked := 0
	token := "t"
	r := newRig(t, harness.Options{
		Tools: []*agent.Tool{ping()},
		Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
			if asked++; asked == 3 { // the first lookup serves the first request
				return harness.Credentials{}, errors.New("the key was taken back")
			}
			return harness.Credentials{
				Key: "k", Headers: map[string]*string{"X-Token": &token}, Env: map[string]string{"E": "1"}, BaseURL: "http://elsewhere",
			}, fail
		},
	}, faux.Reply(faux.ToolCall("ping", "")), faux.Reply(faux.ToolCall("ping", "")))
	fail = errors.New("no key")
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindAuth || r.types() != "" {
		t.Fatal(err, r.types())
	}
	// What was kept for the prompt waits for the next one.
	if err := r.NextTurn(llm.UserText("note", 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Steer("steer"); err != nil {
		t.Fatal(err)
	}
	asked = 0
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindAuth {
		t.Fatal(err)
	}
	fail, asked = nil, 0
	m := r.prompt("go")
	if m.StopReason != llm.StopError || m.ErrorMessage != "the key was taken back" || m.ThinkingLevel != llm.LevelOff {
		t.Errorf("answer %+v", m)
	}
	r.wantSaid("user:note user:go user:steer assistant:<ping> result:pong assistant:<ping> result:pong assistant:!error")
	req := r.model.Requests()[0]
	if req.Request.APIKey != "k" || *req.Request.Headers["X-Token"] != "t" || req.Request.Env["E"] != "1" || req.Model.BaseURL != "http://elsewhere" {
		t.Errorf("request %+v", req.Request.Options)
	}
	if r.Model().BaseURL == "http://elsewhere" {
		t.Error("the model of the harness was changed")
	}
}

func TestRetry(t *testing.T) {
	overloaded := func(n string) faux.Response { return faux.Fail("overloaded " + n) }
	for _, c := range []struct {
		name   string
		retry  harness.Retry
		script []faux.Response
		events string // of retries and runs
		said   string
		stop   llm.StopReason
	}{
		{"success", harness.Retry{}, []faux.Response{overloaded("1"), faux.Say("ok")},
			"agent_start agent_end+ auto_retry_start entry_appended agent_start auto_retry_end+ agent_end agent_settled",
			"user:go assistant:ok", llm.StopStop},
		{"exhausted", harness.Retry{MaxRetries: 1}, []faux.Response{overloaded("1"), overloaded("2")},
			"agent_start agent_end+ auto_retry_start entry_appended agent_start agent_end auto_retry_end agent_settled",
			"user:go assistant:!error", llm.StopError},
		{"another failure", harness.Retry{}, []faux.Response{overloaded("1"), faux.Fail("invalid api key")},
			"agent_start agent_end+ auto_retry_start entry_appended agent_start agent_end auto_retry_end agent_settled",
			"user:go assistant:!error", llm.StopError},
		{"disabled", harness.Retry{Disabled: true}, []faux.Response{overloaded("1")},
			"agent_start agent_end agent_settled", "user:go assistant:!error", llm.StopError},
		{"not for overflow", harness.Retry{}, []faux.Response{faux.Fail("503 prompt is too long: context_length_exceeded")},
			"agent_start agent_end entry_appended agent_settled", "user:go", llm.StopError},
		{"the counter begins anew", harness.Retry{MaxRetries: 1}, []faux.Response{
			overloaded("1"), faux.Reply(faux.ToolCall("ping", "")), overloaded("2"), faux.Say("ok")},
			"agent_start agent_end+ auto_retry_start entry_appended agent_start auto_retry_end+ agent_end+ auto_retry_start entry_appended agent_start auto_retry_end+ agent_end agent_settled",
			"user:go assistant:<ping> result:pong assistant:ok", llm.StopStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.retry.BaseDelay = time.Microsecond
			r := newRig(t, harness.Options{Retry: c.retry, Tools: []*agent.Tool{ping()}}, c.script...)
			if m := r.prompt("go"); m.StopReason != c.stop {
				t.Errorf("answer %+v", m)
			}
			var got []string
			for _, ev := range r.events {
				switch ev.Type {
				case agent.AgentStart, agent.AgentEnd, harness.AutoRetryStart, harness.AutoRetryEnd, harness.EntryAppended, harness.AgentSettled:
					name := string(ev.Type)
					if ev.WillRetry || ev.Success {
						name += "+"
					}
					got = append(got, name)
				}
			}
			if got := strings.Join(got, " "); got != c.events {
				t.Errorf("events\n%s\nwant\n%s", got, c.events)
			}
			r.wantSaid(c.said)
			r.paired()
		})
	}
}

func TestRetryDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := faux.Fail("503")
		r := newRig(t, harness.Options{Retry: harness.Retry{BaseDelay: 2 * time.Second, MaxDelay: 5 * time.Second}}, fail, fail, fail, fail)
		begun := time.Now()
		r.prompt("go")
		var told []int64
		for _, ev := range r.events {
			if ev.Type == harness.AutoRetryStart {
				told = append(told, ev.DelayMs)
			}
		}
		if !slices.Equal(told, []int64{2000, 4000, 5000}) || time.Since(begun) != 11*time.Second {
			t.Errorf("told %v, waited %v", told, time.Since(begun))
		}
	})
}

func TestWaitForARetryEnds(t *testing.T) {
	for name, end := range map[string]func(r *rig, cancel func()){
		"abort retry": func(r *rig, _ func()) { r.AbortRetry() },
		"abort":       func(r *rig, _ func()) { r.Abort() },
		"context":     func(_ *rig, cancel func()) { cancel() },
		"close":       func(r *rig, _ func()) { go r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harness.Options{Retry: harness.Retry{BaseDelay: time.Hour}}, faux.Fail("overloaded"))
			r.AbortRetry() // without a wait: nothing
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r.on(harness.EntryAppended, 1, func(harness.Event) error { end(r, cancel); return nil })
			m, err := r.Prompt(ctx, "go")
			if err != nil || m.StopReason != llm.StopError {
				t.Error(m, err)
			}
			r.paired()
			last := r.events[len(r.events)-2:]
			if last[0].Type != harness.AutoRetryEnd || last[0].Success || last[0].FinalError != "Retry cancelled" ||
				last[1].Aborted != (name != "abort retry") {
				t.Errorf("ended with %+v", last)
			}
		})
	}
}

func TestCutShortAnswerIsHidden(t *testing.T) {
	short := faux.Message(&llm.Assistant{Content: []llm.Block{faux.Text("half")}, StopReason: llm.StopLength})
	r := newRig(t, harness.Options{}, short, faux.Say("b"))
	if m := r.prompt("go"); m != nil {
		t.Errorf("answer %+v", m)
	}
	r.wantSaid("user:go")
	if got := entryTypes(r.Session()); !strings.HasSuffix(got, "user assistant context_edit") {
		t.Error(got)
	}
	if m, err := r.Continue(t.Context()); err != nil || m.StopReason != llm.StopStop {
		t.Error(m, err)
	}
	r.wantSaid("user:go assistant:b")
}

func TestCutShortAnswerIsKept(t *testing.T) {
	short := faux.Message(&llm.Assistant{Content: []llm.Block{faux.Text("half")}, StopReason: llm.StopLength})
	r := newRig(t, harness.Options{Compaction: compact.Settings{Disabled: true}}, short)
	if m := r.prompt("go"); m == nil || m.StopReason != llm.StopLength {
		t.Errorf("answer %+v", m)
	}
	r.wantSaid("user:go assistant:half")
	if got := entryTypes(r.Session()); !strings.HasSuffix(got, "user assistant") {
		t.Error(got)
	}
}

func TestWaitForIdle(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Hang())
	if err := r.WaitForIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled := false
	r.on(harness.AgentSettled, 1, func(harness.Event) error {
		if !r.IsIdle() {
			t.Error("not idle when settled")
		}
		time.Sleep(time.Millisecond)
		settled = true
		return nil
	})
	waited := make(chan struct{})
	r.on(agent.TurnStart, 1, func(harness.Event) error {
		go func() {
			defer close(waited)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.WaitForIdle(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			r.Abort()
			if err := r.WaitForIdle(t.Context()); err != nil || !settled {
				t.Error("idle before the listeners of agent_settled were done", err)
			}
		}()
		return nil
	})
	r.prompt("go")
	<-waited
}

func TestPromptFromASettledListener(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
	again := make(chan error, 1)
	r.on(harness.AgentSettled, 1, func(harness.Event) error {
		go func() {
			_, err := r.Prompt(context.Background(), "two")
			again <- err
		}()
		return nil
	})
	r.prompt("one")
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	r.wantSaid("user:one assistant:a user:two assistant:b")
	r.paired()
}
