package harness_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// Whatever a model, tools, listeners, the disk and a second goroutine do to a
// harness: events are paired, each accepted prompt settles once, every queued
// text is either said once, waiting, or taken back, and the log, opened again,
// is the conversation.
func TestAnyScript(t *testing.T) {
	rapid.Check(t, func(p *rapid.T) {
		store := &fullStore{Store: memory.New()}
		store.room.Store(int64(rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 2, 3, 5, 8}).Draw(p, "room")))
		sess, err := session.Open(store, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var r *rig
		var mu sync.Mutex
		queued := map[string]bool{}
		var back []string
		n := 0
		steer := func(say func(string, ...*llm.Image) error) {
			mu.Lock()
			n++
			text := fmt.Sprintf("q%d.", n)
			queued[text] = true
			mu.Unlock()
			if err := say(text); err != nil {
				t.Error(err)
			}
		}
		act := func(what string) error {
			switch what {
			case "steer":
				steer(r.Steer)
			case "follow up":
				steer(r.FollowUp)
			case "abort":
				r.Abort()
			case "abort retry":
				r.AbortRetry()
			case "clear":
				q := r.ClearQueues()
				mu.Lock()
				back = append(append(back, q.Steering...), q.FollowUp...)
				mu.Unlock()
			case "model":
				_ = r.SetModel(r.model.Models()[1])
			case "level":
				_ = r.SetThinkingLevel(llm.LevelHigh)
			case "tools":
				_ = r.SetTools([]*agent.Tool{ping()})
			case "custom":
				_ = r.AppendMessage(&session.Custom{CustomType: "note", Content: llm.Plain("note"), Timestamp: 1})
			case "bash":
				_ = r.AppendMessage(&session.BashExecution{Command: "ls", Timestamp: 1})
			case "fail":
				return errors.New("listener failed")
			case "panic":
				panic("listener panicked")
			}
			return nil
		}
		actions := []string{"steer", "steer", "follow up", "abort", "abort retry", "clear", "model", "level", "tools", "custom", "bash"}
		tools := []*agent.Tool{
			ping(),
			toolOf("fails", func(context.Context) (string, error) { return "", errors.New("no") }),
			toolOf("panics", func(context.Context) (string, error) { panic("no") }),
			toolOf("acts", func(context.Context) (string, error) { return "ok", act("steer") }),
			toolOf("aborts", func(ctx context.Context) (string, error) { r.Abort(); <-ctx.Done(); return "ok", nil }),
		}
		var script []faux.Response
		for i := range rapid.IntRange(1, 8).Draw(p, "answers") {
			switch kind := rapid.SampledFrom([]string{"say", "calls", "calls", "overloaded", "refused", "hangs"}).Draw(p, "answer"); kind {
			case "say":
				script = append(script, faux.Say(fmt.Sprintf("answer %d", i)))
			case "calls":
				var blocks []llm.Block
				for range rapid.IntRange(1, 3).Draw(p, "calls") {
					blocks = append(blocks, faux.ToolCall(rapid.SampledFrom(tools).Draw(p, "tool").Name, ""))
				}
				script = append(script, faux.Reply(blocks...))
			case "overloaded":
				script = append(script, faux.Fail("overloaded", faux.Text("par")))
			case "refused":
				script = append(script, faux.Fail("invalid api key"))
			case "hangs":
				script = append(script, func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
					go r.Abort()
					return faux.Hang(faux.Text("half"))(ctx, c)
				})
			}
		}
		for i, respond := range script {
			script[i] = func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
				// What is sent is what the session shows, converted anew.
				if want := session.ToLLM(sess.Context().Messages); !slices.Equal(c.Request.Messages, want) {
					t.Errorf("request %d does not show the session's context", c.N)
				}
				return respond(ctx, c)
			}
		}
		reactions := map[int]string{}
		for range rapid.IntRange(0, 6).Draw(p, "reactions") {
			reactions[rapid.IntRange(0, 60).Draw(p, "at")] = rapid.SampledFrom(append(actions, "fail", "panic")).Draw(p, "reaction")
		}
		modes := []harness.QueueMode{harness.OneAtATime, harness.All}
		r = newRig(t, harness.Options{
			Session: sess, Tools: tools, SystemPrompt: "be brief",
			SteeringMode: rapid.SampledFrom(modes).Draw(p, "steering"), FollowUpMode: rapid.SampledFrom(modes).Draw(p, "follow-up"),
		}, script...)
		var over atomic.Bool
		seen := 0 // events come one at a time, so this needs no lock
		r.Subscribe(func(_ context.Context, ev harness.Event) error {
			if seen++; over.Load() {
				return nil
			}
			return act(reactions[seen])
		})
		outside := rapid.SliceOfN(rapid.SampledFrom(actions), 0, 4).Draw(p, "outside")

		accepted := 0
		for i := range rapid.IntRange(1, 3).Draw(p, "prompts") {
			var other sync.WaitGroup
			other.Go(func() {
				for _, a := range outside {
					_ = act(a)
				}
			})
			before := r.count(harness.AgentSettled)
			_, err := r.Prompt(context.Background(), fmt.Sprintf("prompt %d", i))
			other.Wait()
			if err == nil || kindOf(err) == harness.KindUnknown || r.count(harness.AgentSettled) > before {
				accepted++
			}
		}
		store.room.Store(-1)
		over.Store(true)
		texts := said(r.Messages())
		waiting := r.Queued()
		told := r.lastQueueUpdate()
		if taken := r.ClearQueues(); !reflect.DeepEqual(taken, waiting) {
			t.Fatalf("%v waits and %v can be taken back", waiting, taken)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}

		r.paired()
		if n := r.count(harness.AgentSettled); n != accepted {
			t.Fatalf("%d prompts, settled %d times", accepted, n)
		}
		if a, b := r.count(agent.AgentStart), r.count(agent.AgentEnd); a != b {
			t.Fatalf("%d runs, %d ends", a, b)
		}
		reopened, err := session.Open(memory.NewFrom(store.Bytes()), session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := said(reopened.Context().Messages); len(store.Bytes()) > 0 && got != said(r.Messages()) {
			t.Fatalf("the log says\n%s\nand memory\n%s", got, said(r.Messages()))
		}
		where := map[string]int{}
		for _, m := range r.Messages() {
			where[said([]agent.Message{m})]++
		}
		count := map[string]int{}
		for _, text := range append(append(back, waiting.Steering...), waiting.FollowUp...) {
			count[text]++
		}
		for text := range queued {
			if total := count[text] + where["user:"+text]; total != 1 {
				t.Fatalf("%q was said %d times, waits or was taken back %d times:\n%s", text, where["user:"+text], count[text], texts)
			}
		}
		if len(queued) > 0 && !reflect.DeepEqual(told, waiting) {
			t.Fatalf("the last queue_update says %v, what waits is %v", told, waiting)
		}
	})
}

func (r *rig) lastQueueUpdate() harness.Queued {
	var q harness.Queued
	for _, ev := range r.events {
		if ev.Type == harness.QueueUpdate {
			q = harness.Queued{Steering: ev.Steering, FollowUp: ev.FollowUp}
		}
	}
	return q
}
