package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

type loopReaction struct {
	Event string       `json:"event"`
	Nth   int          `json:"nth"`
	Do    []loopAction `json:"do"`
}

type loopListener struct {
	DelayMs int      `json:"delayMs"`
	Only    []string `json:"only"`
	ThrowOn string   `json:"throwOn"`
}

// loopAction is an object with one member, the action's name.
type loopAction map[string]json.RawMessage

// loopAgent drives an agent along the steps of a vector.
type loopAgent struct {
	*loopRig
	agent *agent.Agent
	runs  sync.WaitGroup

	mu  sync.Mutex
	log []any
}

func (d *loopAgent) note(entry map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, entry)
}

func runAgentVector(t *testing.T, in *loopInput) map[string]any {
	d := &loopAgent{loopRig: newLoopRig(t, in), log: []any{}}
	d.agent = agent.New(agent.Options{
		Config: agent.Config{
			Model: loopModel("alpha-1"), ThinkingLevel: in.ThinkingLevel,
			Stream: d.stream(false), Execution: in.ToolExecution,
		},
		SystemPrompt: in.SystemPrompt, Tools: d.tools(), Messages: d.messages(in.Messages),
		SteeringMode: in.SteeringMode, FollowUpMode: in.FollowUpMode,
	})
	seen := map[agent.EventType]int{}
	d.agent.Subscribe(func(_ context.Context, ev agent.Event) error {
		d.note(loopEvent(ev))
		seen[ev.Type]++
		for _, on := range in.On {
			if on.Event == string(ev.Type) && seen[ev.Type] == max(1, on.Nth) {
				for _, a := range on.Do {
					d.do(a)
				}
			}
		}
		return nil
	})
	for i, l := range in.Listeners {
		d.agent.Subscribe(func(_ context.Context, ev agent.Event) error {
			if l.ThrowOn == string(ev.Type) {
				return errors.New("listener failed")
			}
			if l.DelayMs > 0 {
				time.Sleep(time.Duration(l.DelayMs) * time.Millisecond)
				d.note(map[string]any{"listener": i + 1, "done": ev.Type})
			}
			for _, only := range l.Only {
				if only == string(ev.Type) {
					d.note(map[string]any{"listener": i + 1, "type": ev.Type})
				}
			}
			return nil
		})
	}
	for _, step := range in.Steps {
		d.do(step)
	}
	d.runs.Wait()

	s := d.agent.State()
	final := map[string]any{"streaming": s.Running, "queued": d.agent.HasQueued()}
	messages := []any{}
	for _, m := range s.Messages {
		messages = append(messages, loopMessage(m))
	}
	final["messages"] = messages
	if s.ErrorMessage != "" {
		final["error"] = s.ErrorMessage
	}
	return map[string]any{"log": d.log, "requests": d.requests, "final": final}
}

func (d *loopAgent) do(action loopAction) {
	ctx := context.Background()
	user := func(raw json.RawMessage) agent.Message {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return llm.UserText(text, 1)
		}
		return d.messages([]json.RawMessage{raw})[0]
	}
	for name, arg := range action {
		var err error
		switch name {
		case "prompt":
			var text string
			if json.Unmarshal(arg, &text) == nil {
				err = d.agent.PromptText(ctx, text)
			} else {
				var list []json.RawMessage
				if json.Unmarshal(arg, &list) != nil {
					list = []json.RawMessage{arg}
				}
				err = d.agent.Prompt(ctx, d.messages(list)...)
			}
		case "promptNoWait":
			d.runs.Go(func() {
				if err := d.agent.Prompt(ctx, user(arg)); err != nil {
					d.note(map[string]any{"action": name, "error": loopErrorCode(err)})
				}
			})
			synctest.Wait()
		case "continue":
			err = d.agent.Continue(ctx)
		case "steer":
			d.agent.Steer(user(arg))
		case "followUp":
			d.agent.FollowUp(user(arg))
		case "clearSteering":
			d.agent.ClearSteering()
		case "clearFollowUp":
			d.agent.ClearFollowUps()
		case "clearQueues":
			d.agent.ClearQueues()
		case "abort":
			d.agent.Abort()
		case "reset":
			err = d.agent.Reset()
		case "waitForIdle":
			if err = d.agent.WaitForIdle(ctx); err == nil {
				d.note(map[string]any{"idle": true, "streaming": d.agent.State().Running})
			}
		case "sleep":
			var ms int
			if err = json.Unmarshal(arg, &ms); err == nil {
				time.Sleep(time.Duration(ms) * time.Millisecond)
			}
		case "snapshot":
			d.note(map[string]any{"snapshot": d.snapshot()})
		default:
			d.t.Errorf("unknown step %q", name)
		}
		if err != nil {
			d.note(map[string]any{"action": name, "error": loopErrorCode(err)})
		}
	}
}

func (d *loopAgent) snapshot() map[string]any {
	s := d.agent.State()
	roles, next, pending := []string{}, []string{}, []string{}
	for _, m := range s.Messages {
		roles = append(roles, string(m.Role()))
	}
	for _, m := range d.agent.NextQueued() {
		next = append(next, fmt.Sprint(loopMessage(m)["text"]))
	}
	pending = append(pending, s.PendingCalls...)
	out := map[string]any{
		"roles": roles, "streaming": s.Running, "queued": d.agent.HasQueued(),
		"next": next, "prompt": s.SystemPrompt, "pending": pending,
	}
	if s.ErrorMessage != "" {
		out["error"] = s.ErrorMessage
	}
	return out
}
