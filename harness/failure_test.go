package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// A listener that fails ends the run and nothing else: the others see every
// event and the end, what was said is kept, and the harness goes on.
func TestListenerFails(t *testing.T) {
	fails := map[string]func() error{
		"error": func() error { return errors.New("listener failed") },
		"panic": func() error { panic("listener failed") },
	}
	for _, c := range []struct {
		at    agent.EventType
		nth   int
		said  string
		waits string // in the queue
	}{
		{agent.AgentStart, 1, "assistant:!error", "[steer]"},
		{agent.TurnStart, 1, "assistant:!error", "[steer]"},
		{agent.MessageStart, 1, "assistant:!error", "[steer]"}, // of the system message
		{agent.MessageStart, 2, "user:go assistant:!error", "[steer]"},
		{agent.MessageEnd, 2, "user:go assistant:!error", "[steer]"},
		{harness.QueueUpdate, 1, "user:go user:steer assistant:!error", "[]"},
		{agent.MessageStart, 3, "user:go user:steer assistant:!error", "[]"},
		{agent.MessageStart, 4, "user:go user:steer assistant:!error", "[]"}, // of the answer
		{agent.MessageUpdate, 2, "user:go user:steer assistant:Let me!error", "[]"},
		{agent.MessageEnd, 4, "user:go user:steer assistant:Let me<ping> assistant:!error", "[]"},
		{agent.ToolExecutionStart, 1, "user:go user:steer assistant:Let me<ping> assistant:!error", "[]"},
		{agent.ToolExecutionEnd, 1, "user:go user:steer assistant:Let me<ping> assistant:!error", "[]"},
		{agent.MessageEnd, 5, "user:go user:steer assistant:Let me<ping> result:pong assistant:!error", "[]"},
		{agent.TurnEnd, 1, "user:go user:steer assistant:Let me<ping> result:pong assistant:!error", "[]"},
		{agent.AgentEnd, 1, "user:go user:steer assistant:Let me<ping> result:pong assistant:done", "[]"},
		{harness.AgentSettled, 1, "user:go user:steer assistant:Let me<ping> result:pong assistant:done", "[]"},
	} {
		for how, fail := range fails {
			t.Run(fmt.Sprint(c.at, c.nth, how), func(t *testing.T) {
				r := newRig(t, harness.Options{Tools: []*agent.Tool{ping()}},
					faux.Reply(faux.Text("Let me"), faux.ToolCall("ping", "")), faux.Say("done"))
				if err := r.Steer("steer"); err != nil {
					t.Fatal(err)
				}
				r.on(c.at, c.nth, func(harness.Event) error { return fail() })
				after := 0
				r.Subscribe(func(context.Context, harness.Event) error { after++; return nil })
				before := len(r.events)
				m, err := r.Prompt(t.Context(), "go")
				if kindOf(err) != harness.KindUnknown || !strings.Contains(err.Error(), "listener failed") {
					t.Errorf("error %v", err)
				}
				if m == nil || c.at != agent.AgentEnd && c.at != harness.AgentSettled && !strings.Contains(m.ErrorMessage, "listener failed") {
					t.Errorf("answer %+v", m)
				}
				if after != len(r.events)-before {
					t.Errorf("the listener behind saw %d events of %d", after, len(r.events)-before)
				}
				r.paired()
				if a, s := r.count(agent.AgentEnd), r.count(harness.AgentSettled); a != 1 || s != 1 {
					t.Errorf("%d agent_end, %d agent_settled", a, s)
				}
				r.wantSaid(c.said)
				if got := fmt.Sprint(r.Queued().Steering); got != c.waits {
					t.Errorf("%s waits, want %s", got, c.waits)
				}
				r.model.Rescript(faux.Say("fine"), faux.Say("fine"))
				if m := r.prompt("again"); m.StopReason != llm.StopStop {
					t.Errorf("the next answer is %+v", m)
				}
				if all := said(r.Messages()); strings.Count(all, "user:steer") != 1 || strings.Count(all, "user:again") != 1 {
					t.Error("lost or doubled: ", all)
				}
			})
		}
	}
}

func TestStreamFunctionFails(t *testing.T) {
	for name, c := range map[string]struct {
		stream agent.StreamFunc
		err    harness.Kind
		text   string
	}{
		"error": {func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
			return nil, errors.New("no wire")
		},
			harness.KindUnknown, "no wire"},
		"nothing": {func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) { return nil, nil },
			"<nil>", "the stream function returned no stream"},
		"panic": {func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) { panic("boom") },
			harness.KindUnknown, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harness.Options{Stream: c.stream})
			m, err := r.Prompt(t.Context(), "go")
			if p, ok := errors.AsType[*agent.PanicError](err); ok != (name == "panic") || ok && !strings.Contains(string(p.Stack), "harness_test.") {
				t.Errorf("%v: %+v", err, p)
			}
			if kindOf(err) != c.err || m.StopReason != llm.StopError || !strings.Contains(m.ErrorMessage, c.text) {
				t.Errorf("%+v, %v", m, err)
			}
			r.wantSaid("user:go assistant:!error")
			r.paired()
		})
	}
}

func TestHookFails(t *testing.T) {
	for name, hook := range map[string]func(context.Context, []agent.Message) ([]agent.Message, error){
		"error": func(context.Context, []agent.Message) ([]agent.Message, error) { return nil, errors.New("bad hook") },
		"panic": func(context.Context, []agent.Message) ([]agent.Message, error) { panic("bad hook") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harness.Options{TransformContext: hook})
			m, err := r.Prompt(t.Context(), "go")
			if strings.Contains(m.ErrorMessage, "goroutine ") {
				t.Errorf("the conversation has the stack: %s", m.ErrorMessage)
			}
			if kindOf(err) != harness.KindUnknown || !strings.Contains(m.ErrorMessage, "bad hook") {
				t.Errorf("%+v, %v", m, err)
			}
			r.paired()
		})
	}
	t.Run("sections", func(t *testing.T) {
		r := newRig(t, harness.Options{Sections: func([]*agent.Tool) []llm.Section { panic("bad sections") }})
		if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindUnknown || !r.IsIdle() || r.types() != "" {
			t.Error(err, r.types())
		}
	})
}

// A test that fails inside a listener leaves the goroutine; the harness must
// not hang for that.
func TestListenerLeavesItsGoroutine(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
	r.on(agent.TurnStart, 1, func(harness.Event) error { runtime.Goexit(); return nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Prompt(context.Background(), "go")
	}()
	<-done
	if err := r.WaitForIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.prompt("again")
	if r.count(harness.AgentSettled) != 2 {
		t.Error(r.types())
	}
}

func TestCloseWhileRunning(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Hang(faux.Text("par")))
	closed := make(chan error, 1)
	r.on(agent.MessageUpdate, 2, func(harness.Event) error {
		go func() { closed <- r.Close() }()
		return nil
	})
	if m := r.prompt("go"); m.StopReason != llm.StopAborted {
		t.Errorf("%+v", m)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	r.wantSaid("user:go assistant:par!aborted")
	r.paired()
}

// A question that no run has begun for yet ends with the harness too.
func TestCloseWhileAnInputIsAsked(t *testing.T) {
	asked := make(chan struct{})
	r := newRig(t, harness.Options{Hooks: []harness.Hooks{{
		Input: func(ctx context.Context, _ harness.Input) (*harness.InputChange, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}})
	done := make(chan error, 1)
	go func() {
		_, err := r.Prompt(context.Background(), "go")
		done <- err
	}()
	<-asked
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if kindOf(err) != harness.KindHook {
			t.Errorf("got %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("the prompt goes on waiting for its hook")
	}
}

// nilText is an error of which a nil pointer has no text.
type nilText struct{ text string }

func (e *nilText) Error() string { return e.text }

// What a program gets wrong is told where it went wrong, and costs one call.
func TestBadArguments(t *testing.T) {
	var bad bool
	r := newRig(t, harness.Options{
		Expand: func(text string) string {
			if bad {
				panic("no")
			}
			return text
		},
		Hooks: []harness.Hooks{{Name: "odd", BeforeAgentStart: func(context.Context, harness.Starting) (*harness.StartingChange, error) {
			if bad {
				var e *nilText
				return nil, e
			}
			return nil, nil
		}}},
	})
	want := func(what string, kind harness.Kind, err error) {
		t.Helper()
		if kindOf(err) != kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := r.Prompt(t.Context(), "x", nil)
	want("a nil image", harness.KindInvalidArgument, err)
	_, err = r.Submit(t.Context(), harness.Input{Text: "x", Images: []*llm.Image{nil}, Behavior: harness.AsFollowUp})
	want("a nil image to queue", harness.KindInvalidArgument, err)
	want("steering with a nil image", harness.KindInvalidArgument, r.Steer("x", nil))
	want("a nil block", harness.KindInvalidArgument, r.FollowUpMessages(&llm.User{Content: llm.Blocks(nil)}))
	bad = true
	_, err = r.Prompt(t.Context(), "x")
	want("Expand panics", harness.KindUnknown, err)
	want("Expand panics at a queue", harness.KindUnknown, r.Steer("x"))
	_, err = r.PromptMessages(t.Context(), llm.UserText("x", 1))
	want("a hook with a nil error", harness.KindHook, err)
	if err != nil && !strings.Contains(err.Error(), "odd: panicked") {
		t.Error(err)
	}
	bad = false
	r.model.Script(faux.Say("fine"))
	if m := r.prompt("go"); m.Text() != "fine" {
		t.Errorf("%+v", m)
	}
	r.wantSaid("user:go assistant:fine")

	model := faux.New(faux.Options{})
	junk := &agent.Tool{Tool: llm.Tool{Name: "t", Parameters: jsontext.Value(`{"type":`)}, Execute: func(context.Context, agent.Call) (agent.Result, error) {
		return agent.Result{}, nil
	}}
	for _, o := range []harness.Options{{Execution: "side by side"}, {Tools: []*agent.Tool{junk}}, {Compaction: compact.Settings{ReserveTokens: new(int64(-1))}}} {
		o.Model, o.Stream = model.Model(), model.Stream
		_, err := harness.New(o)
		want("options", harness.KindInvalidArgument, err)
	}
}

// fullStore is a log on a disk that can be full.
type fullStore struct {
	*memory.Store
	room atomic.Int64 // appends that still succeed; negative for no limit
}

func (s *fullStore) Append(at session.Position, lines []byte) (session.Position, error) {
	switch n := s.room.Load(); {
	case n == 0:
		return 0, &session.Error{Kind: session.DiskFull, Op: "append", Advice: "free some space and try again; nothing was lost"}
	case n > 0:
		s.room.Add(-1)
	}
	return s.Store.Append(at, lines)
}

// Whichever write fails, the error says so, what was said stays, and once there
// is room everything is in the log, once and in order.
func TestDiskFull(t *testing.T) {
	const whole = "user:go assistant:<ping><ping> result:pong result:pong assistant:done"
	for room := range int64(6) {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			store := &fullStore{Store: memory.New()}
			store.room.Store(room)
			sess, err := session.Open(store, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, harness.Options{Session: sess, Tools: []*agent.Tool{ping()}},
				faux.Reply(faux.ToolCall("ping", ""), faux.ToolCall("ping", "")), faux.Say("done"), faux.Say("fine"))
			_, err = r.Prompt(t.Context(), "go")
			r.paired()
			if a, s := r.count(agent.AgentEnd), r.count(harness.AgentSettled); a != 1 || s != 1 {
				t.Errorf("%d agent_end, %d agent_settled", a, s)
			}
			said1 := said(r.Messages())
			if room >= 5 { // system and user message are one write
				if err != nil || said1 != whole {
					t.Fatal(err, said1)
				}
				return
			}
			e, ok := errors.AsType[*session.Error](err)
			if kindOf(err) != harness.KindSession || !ok || e.Advice == "" || !strings.Contains(err.Error(), e.Advice) {
				t.Errorf("error %v", err)
			}
			if !strings.HasPrefix(whole, said1) || said1 == "" {
				t.Errorf("kept %q", said1)
			}
			if strings.Contains(said1, "result") && !strings.Contains(said1, "result:pong result:pong") {
				t.Errorf("a result was lost: %q", said1)
			}
			// Still full: refused, nothing is forgotten.
			if _, err := r.Prompt(t.Context(), "more"); kindOf(err) != harness.KindSession || r.count(harness.AgentSettled) != 1 {
				t.Error("a prompt on a full disk:", err)
			}
			if err := r.SetModel(r.model.Models()[1]); kindOf(err) != harness.KindSession || r.Model().ID != "one" {
				t.Error("a model change on a full disk:", err, r.Model().ID)
			}
			store.room.Store(-1)
			r.model.Rescript(faux.Say("fine"))
			r.prompt("again")
			want := said1 + " user:again assistant:fine"
			r.wantSaid(want)
			reopened, err := session.Open(memory.NewFrom(store.Bytes()), session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := said(reopened.Context().Messages); got != want {
				t.Errorf("the log says\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDiskFullAtClose(t *testing.T) {
	store := &fullStore{Store: memory.New()}
	sess, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, harness.Options{Session: sess}, faux.Say("a"))
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindSession {
		t.Fatal(err)
	}
	store.room.Store(-1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(store.Bytes()), `"go"`) {
		t.Error("closing did not write what was kept")
	}
}

// The same on a real file.
func TestFileSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	sess, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, harness.Options{Session: sess, Tools: []*agent.Tool{ping()}}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"))
	r.prompt("go")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(memory.NewFrom(data), session.Options{})
	if err != nil || said(again.Context().Messages) != said(r.Messages()) {
		t.Error(err, said(again.Context().Messages))
	}
}

// A conversation of which a part cannot be read is not sent without it.
func TestUnreadableSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		if _, err := s.AppendMessage(llm.UserText(text, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = jsonl.Open(path, jsonl.Options{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	h, err := harness.New(harness.Options{
		Model: &llm.Model{ID: "m", Provider: "p"}, Session: s, Embedded: true,
		Stream: func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
			requests++
			return llm.NewStream(&deltas{m: &llm.Assistant{Model: "m", Provider: "p"}}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Prompt(context.Background(), "go")
	if !errors.Is(err, &session.Error{Kind: session.Conflict}) || requests > 0 {
		t.Errorf("%d requests, %v", requests, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
