package conformance

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// addHooks registers some hooks that change things, act and fail.
func (l *life) addHooks(d draw) {
	w := l.w
	custom := func() *session.Custom {
		token := w.token("m")
		l.books.issue(token, forNextTurn) // at most once: nobody says whether it was taken
		return &session.Custom{CustomType: "hook", Content: llm.Plain("Hook " + token), Timestamp: 1}
	}
	// hook is what every hook does first.
	hook := func(ctx context.Context, name string) (draw, error) {
		d := w.at("hook " + name)
		return d, l.act(ctx, d, 6, "hook "+name)
	}
	set := harness.Hooks{Name: "random"}
	if d.one(2) {
		set.Report = func(context.Context, *harness.HookError) {}
	}
	opaque := false
	for range 1 + d.IntN(4) {
		switch d.IntN(14) {
		case 0:
			set.Input = func(ctx context.Context, in harness.Input) (*harness.InputChange, error) {
				d, err := hook(ctx, "input")
				switch {
				case err != nil || !d.one(3):
					return nil, err
				case d.one(3):
					l.books.handled(in.Text)
					return &harness.InputChange{Handled: true}, nil
				}
				return &harness.InputChange{Text: in.Text + " Please."}, nil
			}
		case 1:
			opaque = true
			set.BeforeAgentStart = func(ctx context.Context, s harness.Starting) (*harness.StartingChange, error) {
				d, err := hook(ctx, "start")
				if err != nil || d.one(2) {
					return nil, err
				}
				c := &harness.StartingChange{Messages: []agent.Message{custom()}}
				if d.one(2) {
					c.SystemPrompt = new("Be someone else.")
				}
				return c, nil
			}
		case 2:
			opaque = true
			set.Context = func(ctx context.Context, messages []agent.Message) ([]agent.Message, error) {
				d, err := hook(ctx, "context")
				if err != nil || len(messages) < 3 || d.one(2) {
					return nil, err
				}
				at := d.IntN(len(messages) - 1)
				return slices.Delete(messages, at, at+1), nil
			}
		case 3:
			set.BeforeProviderRequest = func(ctx context.Context, _ harness.ProviderRequest) (*harness.RequestPatch, error) {
				_, err := hook(ctx, "request")
				return &harness.RequestPatch{MaxTokens: new(40)}, err
			}
		case 4:
			set.BeforeProviderPayload = func(ctx context.Context, p harness.ProviderPayload) (jsontext.Value, error) {
				_, err := hook(ctx, "payload")
				return nil, err
			}
		case 5:
			set.AfterProviderResponse = func(ctx context.Context, _ harness.ProviderResponse) error {
				_, err := hook(ctx, "response")
				return err
			}
		case 6:
			set.ToolCall = func(ctx context.Context, c *harness.ToolCall) (*agent.Block, error) {
				d, err := hook(ctx, "call")
				if err == nil && d.one(4) {
					return &agent.Block{Reason: pick(d, "", "not today"), Terminate: d.one(2)}, nil
				}
				return nil, err
			}
		case 7:
			set.ToolResult = func(ctx context.Context, r harness.ToolResult) (*agent.ResultPatch, error) {
				d, err := hook(ctx, "result")
				return &agent.ResultPatch{IsError: new(d.one(2)), Terminate: new(d.one(3))}, err
			}
		case 8:
			set.MessageEnd = func(ctx context.Context, m agent.Message) (agent.Message, error) {
				d, err := hook(ctx, "message")
				if err != nil || d.one(2) {
					return nil, err
				}
				return embellished(m), nil
			}
		case 9:
			set.TurnEnd = func(ctx context.Context, t harness.TurnEnding) (*harness.Drafts, error) {
				d, err := hook(ctx, "turn")
				if err != nil || d.one(2) {
					return nil, err
				}
				return l.drafts(d, custom, t.MessageEntryID), nil
			}
		case 10:
			set.AgentBeforeSettle = func(ctx context.Context, s harness.Settling) (*harness.Drafts, error) {
				d, err := hook(ctx, "settle")
				if err != nil || d.one(2) {
					return nil, err
				}
				return l.drafts(d, custom, ""), nil
			}
		case 11:
			set.SessionBeforeCompact = func(ctx context.Context, c harness.Compacting) (*harness.CompactDecision, error) {
				d, err := hook(ctx, "compact")
				switch {
				case err != nil || d.one(2):
					return nil, err
				case d.one(3):
					return &harness.CompactDecision{Cancel: true}, nil
				}
				return &harness.CompactDecision{Compaction: &session.CompactionEntry{
					Summary: "What a hook says.", FirstKept: pick(d, c.FirstKept, c.FirstKept, "", "nowhere"), TokensBefore: c.TokensBefore,
				}}, nil
			}
		case 12:
			set.SessionBeforeTree = func(ctx context.Context, _ harness.TreeMove) (*harness.TreeDecision, error) {
				d, err := hook(ctx, "tree")
				switch {
				case err != nil || d.one(2):
					return nil, err
				case d.one(3):
					return &harness.TreeDecision{Cancel: true}, nil
				}
				return &harness.TreeDecision{Summary: &session.BranchSummaryEntry{Summary: "What a hook says."}}, nil
			}
		case 13:
			on := pick(d, agent.AgentStart, agent.TurnEnd, agent.MessageEnd, agent.AgentEnd, harness.AgentSettled, harness.QueueUpdate, harness.SavePoint)
			set.On = map[agent.EventType]harness.Listener{on: func(ctx context.Context, ev harness.Event) error {
				_, err := hook(ctx, string(on))
				return err
			}}
		}
	}
	l.hooked.Store(true)
	remove := l.h.AddHooks(set)
	l.mu.Lock()
	defer l.mu.Unlock()
	if opaque {
		l.opaque++ // for good: a run may still have what a hook changed
	}
	l.hooks = append(l.hooks, remove)
}

// embellished is a message that says more.
func embellished(m agent.Message) agent.Message {
	more := &llm.Text{Text: " (seen)"}
	switch m := m.(type) {
	case *llm.User:
		c := *m
		if c.Content.Blocks == nil {
			c.Content.Text += more.Text
		} else {
			c.Content.Blocks = append(slices.Clip(c.Content.Blocks), more)
		}
		return &c
	case *llm.Assistant:
		c := *m
		c.Content = append([]llm.Block{more}, c.Content...)
		return &c
	case *llm.ToolResult:
		c := *m
		c.Content = append(slices.Clip(c.Content), more)
		return &c
	}
	return nil
}

// drafts are entries that a hook wants.
func (l *life) drafts(d draw, custom func() *session.Custom, answer string) *harness.Drafts {
	out := &harness.Drafts{}
	if out.Continue = d.one(3); out.Continue && answer != "" && d.one(2) {
		out.Entries = append(out.Entries, &session.CustomMessageEntry{CustomType: "hook", Content: custom().Content})
	}
	for range d.IntN(3) {
		switch d.IntN(4) {
		case 0:
			out.Entries = append(out.Entries, &session.CustomEntry{CustomType: "state", Value: []byte(`{"a":1}`)})
		case 1:
			c := custom()
			out.Entries = append(out.Entries, &session.CustomMessageEntry{CustomType: c.CustomType, Content: c.Content})
		case 2:
			if answer == "" || !d.one(3) {
				break
			}
			edit := &session.ContextEditEntry{TargetID: answer}
			if d.one(2) {
				edit.Replacement = &llm.Content{Blocks: []llm.Block{&llm.Text{Text: "shortened"}}}
			}
			out.Entries = append(out.Entries, edit)
		case 3:
			if d.one(4) {
				out.Entries = append(out.Entries, &session.CompactionEntry{Summary: "What a hook drafts."})
			}
		}
	}
	return out
}
