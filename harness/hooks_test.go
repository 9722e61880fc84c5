package harness_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

// wired calls the callbacks of a request as a wire format does. A refused body
// is a failed answer.
func wired(r **rig) agent.StreamFunc {
	return func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
		fail := func(err error) (*llm.Stream, error) {
			if ctx.Err() != nil {
				return (*r).model.Stream(ctx, m, req) // which sees that
			}
			return llm.Failed(m, err, 1), nil
		}
		body := jsontext.Value(`{"a":1}`)
		if req.OnPayload != nil {
			other, err := req.OnPayload(body, m)
			if err != nil {
				return fail(err)
			}
			if other != nil {
				body = other
			}
		}
		copied := *req
		if copied.Headers == nil {
			copied.Headers = map[string]*string{}
		} else {
			copied.Headers = cloned(copied.Headers)
		}
		copied.Headers["sent"] = new(string(body))
		if req.OnProviderEvent != nil {
			if err := req.OnProviderEvent(jsontext.Value(`{"event":1}`), m); err != nil {
				return fail(err)
			}
		}
		return (*r).model.Stream(ctx, m, &copied) // calls OnResponse
	}
}

func cloned(in map[string]*string) map[string]*string {
	out := map[string]*string{}
	for k, v := range in {
		out[k] = v
	}
	return out
}

// hookCase is one hook: how to install a function that is called in its place,
// what it may change and how that shows.
type hookCase struct {
	name harness.HookName
	// set installs a hook that calls do and, when do does not fail, changes
	// something if change is set.
	set func(h *harness.Hooks, do func(ctx context.Context) error, change bool)
	// changed reports what of the change shows; "" for nothing.
	changed func(r *rig) string
	want    string
	refuses bool   // a failure refuses the prompt
	result  string // what a failure makes of the tool's result; "" where it ends the run
}

func sys(text string) *llm.System { return &llm.System{Content: llm.Plain(text)} }

var hookCases = []hookCase{
	{name: harness.HookInput, refuses: true,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.Input = func(ctx context.Context, in harness.Input) (*harness.InputChange, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				return &harness.InputChange{Text: in.Text + " now"}, nil
			}
		},
		changed: func(r *rig) string { return r.askedOf(1) }, want: "user:go now"},
	{name: harness.HookBeforeAgentStart, refuses: true,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.BeforeAgentStart = func(ctx context.Context, s harness.Starting) (*harness.StartingChange, error) {
				if s.Prompt != "go" || s.SystemPrompt != "be brief" || s.Message.Role() != llm.RoleUser {
					return nil, fmt.Errorf("payload %+v", s)
				}
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				return &harness.StartingChange{Messages: []agent.Message{llm.UserText("and more", 1)}, SystemPrompt: new("be loud")}, nil
			}
		},
		changed: func(r *rig) string {
			m := r.model.Requests()[0].Request.Messages[0].(*llm.System)
			return fmt.Sprint(m.Content.Text, len(m.ToolsAdded), " ", r.askedOf(1), " ", strings.Count(fmt.Sprint(entryTypes(r.Session())), "system"))
		}, want: "be loud1 user:go user:and more 1"},
	{name: harness.HookContext,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.Context = func(ctx context.Context, messages []agent.Message) ([]agent.Message, error) {
				if messages[0].Role() == llm.RoleSystem {
					return nil, errors.New("shows system messages")
				}
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				return append(messages, llm.UserText("hint", 1)), nil
			}
		},
		changed: func(r *rig) string {
			return fmt.Sprint(r.model.Requests()[0].Request.Messages[0].Role(), " ", r.askedOf(1), "; ", said(r.Messages()[:2]))
		}, want: "system user:go user:hint; user:go"},
	{name: harness.HookContextWithSystem,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.ContextWithSystem = func(ctx context.Context, messages []agent.Message) ([]agent.Message, error) {
				if messages[0].Role() != llm.RoleSystem {
					return nil, errors.New("hides system messages")
				}
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				messages[0] = sys("other")
				return messages, nil
			}
		},
		changed: func(r *rig) string { return r.model.Requests()[0].Request.Messages[0].(*llm.System).Content.Text }, want: "other"},
	{name: harness.HookBeforeProviderRequest,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.BeforeProviderRequest = func(ctx context.Context, q harness.ProviderRequest) (*harness.RequestPatch, error) {
				if q.Options.APIKey != "" || q.SessionID == "" {
					return nil, fmt.Errorf("payload %+v", q)
				}
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				return &harness.RequestPatch{MaxRetries: new(7), Headers: map[string]*string{"x-auth": nil, "x-new": new("n")}}, nil
			}
		},
		changed: func(r *rig) string {
			q := r.model.Requests()[0].Request
			return fmt.Sprint(q.MaxRetries, *q.Headers["x-new"], q.Headers["x-auth"] == nil, q.APIKey)
		}, want: "7ntruek"},
	{name: harness.HookBeforeProviderHeaders,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.BeforeProviderHeaders = func(ctx context.Context, q harness.ProviderHeaders) error {
				if err := do(ctx); err != nil || !change {
					return err
				}
				q.Headers["x-auth"], q.Headers["user-agent"] = new("other"), nil
				return nil
			}
		},
		changed: func(r *rig) string {
			headers := r.model.Requests()[0].Request.Headers
			v, ok := headers["user-agent"]
			return fmt.Sprint(*headers["x-auth"], v == nil && ok)
		}, want: "othertrue"},
	{name: harness.HookBeforeProviderPayload,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.BeforeProviderPayload = func(ctx context.Context, p harness.ProviderPayload) (jsontext.Value, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				return jsontext.Value(strings.Replace(string(p.Payload), "1", "2", 1)), nil
			}
		},
		changed: func(r *rig) string { return *r.model.Requests()[0].Request.Headers["sent"] }, want: `{"a":2}`},
	{name: harness.HookAfterProviderResponse,
		set: func(h *harness.Hooks, do func(context.Context) error, _ bool) {
			h.AfterProviderResponse = func(ctx context.Context, p harness.ProviderResponse) error {
				if p.Status != http.StatusOK {
					return fmt.Errorf("status %d", p.Status)
				}
				return do(ctx)
			}
		}},
	{name: harness.HookProviderStreamEvent,
		set: func(h *harness.Hooks, do func(context.Context) error, _ bool) {
			h.ProviderStreamEvent = func(ctx context.Context, ev harness.ProviderEvent) error {
				if string(ev.Data) != `{"event":1}` {
					return fmt.Errorf("event %s", ev.Data)
				}
				return do(ctx)
			}
		}},
	{name: harness.HookToolCall, result: "result:failed on purpose",
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.ToolCall = func(ctx context.Context, c *harness.ToolCall) (*agent.Block, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				c.Input = jsontext.Value(`{"text":"other"}`)
				return nil, nil
			}
		},
		changed: func(r *rig) string { return said(r.Messages()) }, want: "user:go assistant:<echo> result:other assistant:done"},
	{name: harness.HookToolResult, result: "result:failed on purpose",
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.ToolResult = func(ctx context.Context, t harness.ToolResult) (*agent.ResultPatch, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				text := llm.TextOf(t.Result.Content, "") + "!"
				return &agent.ResultPatch{Content: &[]llm.Block{&llm.Text{Text: text}}}, nil
			}
		},
		changed: func(r *rig) string { return said(r.Messages()) }, want: "user:go assistant:<echo> result:hi! assistant:done"},
	{name: harness.HookMessageEnd,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.MessageEnd = func(ctx context.Context, m agent.Message) (agent.Message, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				switch m := m.(type) {
				case *llm.User:
					return llm.UserText("GO", m.Timestamp), nil
				case *llm.Assistant:
					other := *m
					other.Content = append([]llm.Block{&llm.Text{Text: "Well "}}, m.Content...)
					return &other, nil
				case *llm.ToolResult:
					other := *m
					other.ToolCallID, other.Content = "lost", []llm.Block{&llm.Text{Text: "HI"}}
					return &other, nil
				}
				return nil, nil
			}
		},
		changed: func(r *rig) string { return said(r.Messages()) + "; " + r.askedOf(2) },
		want:    "user:GO assistant:Well <echo> result:HI assistant:Well done; user:GO assistant:Well <echo> result:HI"},
	{name: harness.HookTurnEnd,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.TurnEnd = func(ctx context.Context, t harness.TurnEnding) (*harness.Drafts, error) {
				if err := do(ctx); err != nil || !change || t.TurnIndex != 1 {
					return nil, err
				}
				return &harness.Drafts{Continue: true, Entries: []session.Data{
					&session.CustomMessageEntry{CustomType: "note", Content: llm.Plain("noted")},
					&session.ContextEditEntry{TargetID: t.MessageEntryID},
				}}, nil
			}
		},
		changed: func(r *rig) string { return said(r.Messages()) + "; " + r.askedOf(3) },
		want:    "user:go assistant:<echo> result:hi custom:noted assistant:again; user:go assistant:<echo> result:hi user:noted"},
	{name: harness.HookAgentBeforeSettle,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			settled := 0
			h.AgentBeforeSettle = func(ctx context.Context, s harness.Settling) (*harness.Drafts, error) {
				if err := do(ctx); err != nil || !change {
					return nil, err
				}
				if settled++; settled > 1 {
					return nil, nil
				}
				return &harness.Drafts{Continue: true, Entries: []session.Data{
					&session.CustomMessageEntry{CustomType: "note", Content: llm.Plain("one more")},
				}}, nil
			}
		},
		changed: func(r *rig) string { return fmt.Sprint(r.askedOf(3), "; ", r.count(agent.AgentStart)) },
		want:    "user:go assistant:<echo> result:hi assistant:done user:one more; 2"},
	{name: harness.HookName(agent.TurnStart),
		set: func(h *harness.Hooks, do func(context.Context) error, _ bool) {
			h.On = map[agent.EventType]harness.Listener{agent.TurnStart: func(ctx context.Context, _ harness.Event) error { return do(ctx) }}
		}},
}

// echo is a tool that says its argument.
func echo() *agent.Tool {
	t := &agent.Tool{Execute: func(_ context.Context, c agent.Call) (agent.Result, error) {
		return agent.TextResult(strings.TrimSuffix(strings.TrimPrefix(string(c.Args), `{"text":"`), `"}`)), nil
	}}
	t.Name, t.Parameters = "echo", jsontext.Value(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	return t
}

func hookRig(t *testing.T, hooks ...harness.Hooks) *rig {
	var r *rig
	r = newRig(t, harness.Options{
		Tools: []*agent.Tool{echo()}, SystemPrompt: "be brief", Hooks: hooks, Stream: wired(&r),
		Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
			return harness.Credentials{Key: "k", Headers: map[string]*string{"x-auth": new("1")}}, nil
		},
	}, faux.Reply(faux.ToolCall("echo", `{"text":"hi"}`)), faux.Say("done"), faux.Say("again"))
	return r
}

func fine(context.Context) error { return nil }

// Every hook: it changes nothing, changes what it may, fails, panics, leaves its
// goroutine, or does not return before the run is aborted.
func TestHooks(t *testing.T) {
	const plain = "user:go assistant:<echo> result:hi assistant:done"
	for _, c := range hookCases {
		t.Run(string(c.name), func(t *testing.T) {
			t.Run("nothing", func(t *testing.T) {
				var h harness.Hooks
				calls := 0
				c.set(&h, func(context.Context) error { calls++; return nil }, false)
				r := hookRig(t, h)
				r.prompt("go")
				if r.wantSaid(plain); calls == 0 {
					t.Error("was not called")
				}
				r.paired()
			})
			if c.changed != nil {
				t.Run("changes", func(t *testing.T) {
					var h harness.Hooks
					c.set(&h, fine, true)
					r := hookRig(t, h)
					r.prompt("go")
					if got := c.changed(r); got != c.want {
						t.Errorf("%s\nwant\n%s", got, c.want)
					}
					r.paired()
				})
			}
			for how, fail := range map[string]func(context.Context) error{
				"fails":                func(context.Context) error { return errors.New("failed on purpose") },
				"panics":               func(context.Context) error { panic("failed on purpose") },
				"leaves its goroutine": func(context.Context) error { runtime.Goexit(); return nil },
			} {
				t.Run(how, func(t *testing.T) { c.fails(t, fail, how == "fails") })
				t.Run(how+" reported", func(t *testing.T) {
					var told []string
					h := harness.Hooks{Name: "ext", Report: func(_ context.Context, e *harness.HookError) {
						told = append(told, fmt.Sprint(e.Set, " ", e.Hook))
					}}
					c.set(&h, fail, false)
					r := hookRig(t, h)
					r.prompt("go")
					if c.name != harness.HookToolCall { // fails closed
						r.wantSaid(plain)
					}
					if !slices.Contains(told, "ext "+string(c.name)) {
						t.Errorf("reported %v", told)
					}
					r.paired()
				})
			}
			t.Run("hangs until aborted", func(t *testing.T) {
				var r *rig
				var h harness.Hooks
				outer, cancel := context.WithCancel(t.Context())
				c.set(&h, func(ctx context.Context) error {
					if r.Abort(); r.IsIdle() { // an input comes before the run
						cancel()
					}
					<-ctx.Done()
					return ctx.Err()
				}, false)
				r = hookRig(t, h)
				c.ends(t, r, outer)
			})
			t.Run("never returns", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stuck := make(chan struct{})
					ctx, cancel := context.WithCancel(context.Background())
					var h harness.Hooks
					c.set(&h, func(context.Context) error { cancel(); <-stuck; return nil }, false)
					r := hookRig(t, h)
					begun := time.Now()
					c.ends(t, r, ctx)
					if d := time.Since(begun); d > 20*time.Second {
						t.Errorf("took %v", d)
					}
					close(stuck)
				})
			})
		})
	}
}

// fails checks what a failure of the hook makes of a prompt.
func (c *hookCase) fails(t *testing.T, fail func(context.Context) error, exact bool) {
	var h harness.Hooks
	c.set(&h, fail, false)
	r := hookRig(t, h)
	m, err := r.Prompt(t.Context(), "go")
	r.paired()
	switch {
	case c.refuses:
		if kindOf(err) != harness.KindHook || m != nil || said(r.Messages()) != "" {
			t.Errorf("%+v, %v, %s", m, err, said(r.Messages()))
		}
	case c.result != "":
		if err != nil || exact && !strings.Contains(said(r.Messages()), c.result) || strings.Contains(said(r.Messages()), "result:hi") {
			t.Errorf("%v, %s", err, said(r.Messages()))
		}
	default:
		if kindOf(err) != harness.KindHook || m == nil && c.name != harness.HookAgentBeforeSettle {
			t.Fatalf("%+v, %v", m, err)
		}
		if e, ok := errors.AsType[*harness.HookError](err); !ok || e.Hook != c.name {
			t.Errorf("error %v", err)
		}
		if exact && c.name != harness.HookAgentBeforeSettle && (m.StopReason != llm.StopError || m.ErrorMessage != "failed on purpose") {
			t.Errorf("answer %+v", m)
		}
	}
}

// ends checks that the prompt ends as an aborted one, and the harness works on.
func (c *hookCase) ends(t *testing.T, r *rig, ctx context.Context) {
	m, err := r.Prompt(ctx, "go")
	r.paired()
	switch {
	case c.name == harness.HookInput:
		if kindOf(err) != harness.KindHook || m != nil {
			t.Errorf("%+v, %v", m, err)
		}
	case err != nil:
		t.Errorf("error %v", err)
	case c.name != harness.HookAgentBeforeSettle && (m == nil || m.StopReason != llm.StopAborted):
		t.Errorf("answer %+v", m)
	}
	if !r.IsIdle() {
		t.Error("not idle")
	}
}
