package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

// callCase is a hook that no prompt calls: an operation of the host does.
type callCase struct {
	name harness.HookName
	// set installs a hook that calls do and, when do does not fail, changes
	// something if change is set.
	set func(h *harness.Hooks, do func(ctx context.Context) error, change bool)
	// call is the operation, and what came of it in a word.
	call          func(ctx context.Context, r *rig) (string, error)
	plain, change string // outcomes
	guards        bool   // a failure counts also where it is reported
	aborted       string // the outcome when its context has ended; "" where that is a failure of the hook
}

// answers makes a hook of do: what it returns when do does not fail.
func answers[P, T any](do func(context.Context) error, change bool, v T) func(context.Context, P) (T, error) {
	return func(ctx context.Context, _ P) (T, error) {
		var none T
		if err := do(ctx); err != nil || !change {
			return none, err
		}
		return v, nil
	}
}

var callCases = []callCase{
	{name: harness.HookSessionBeforeCompact,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.SessionBeforeCompact = answers[harness.Compacting](do, change, &harness.CompactDecision{Compaction: &session.CompactionEntry{Summary: "by hand"}})
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			c, err := r.Compact(ctx, "")
			if errors.Is(err, &compact.Error{Kind: compact.Aborted}) {
				return "aborted", nil
			}
			if err != nil {
				return "", err
			}
			return fmt.Sprint(strings.Contains(c.Summary, "by hand"), c.FromHook), nil
		}, plain: "false false", change: "true true", aborted: "aborted"},
	{name: harness.HookSessionBeforeTree,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.SessionBeforeTree = answers[harness.TreeMove](do, change, &harness.TreeDecision{Summary: &session.BranchSummaryEntry{Summary: "by hand"}})
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			n, err := r.NavigateTree(ctx, firstAnswer(r), harness.TreeOptions{Summarize: true})
			if err != nil || n.Aborted {
				return fmt.Sprint("aborted ", n.Aborted), err
			}
			d := n.Summary.Data().(*session.BranchSummaryEntry)
			return fmt.Sprint(strings.Contains(d.Summary, "by hand"), *d.FromHook), nil
		}, plain: "false false", change: "true true", aborted: "aborted true"},
	{name: harness.HookSessionBeforeSwitch, guards: true,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.SessionBeforeSwitch = answers[harness.Switching](do, change, true)
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			cancelled, err := r.BeforeSwitch(ctx, harness.Switching{Reason: "new"})
			if err != nil && !cancelled {
				r.t.Error("a failure does not refuse")
			}
			return fmt.Sprint(cancelled), err
		}, plain: "false", change: "true"},
	{name: harness.HookSessionBeforeFork, guards: true,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.SessionBeforeFork = answers[harness.Forking](do, change, true)
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			cancelled, err := r.BeforeFork(ctx, harness.Forking{Position: "at"})
			if err != nil && !cancelled {
				r.t.Error("a failure does not refuse")
			}
			return fmt.Sprint(cancelled), err
		}, plain: "false", change: "true"},
	{name: harness.HookResourcesDiscover,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.ResourcesDiscover = answers[harness.Discovery](do, change, &harness.Discovered{Skills: []string{"s"}})
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			d, err := r.DiscoverResources(ctx, harness.Discovery{Reason: "startup"})
			return fmt.Sprint(d.Skills), err
		}, plain: "[]", change: "[s]"},
	{name: harness.HookUserBash, guards: true,
		set: func(h *harness.Hooks, do func(context.Context) error, change bool) {
			h.UserBash = answers[harness.UserBash](do, change, &session.BashExecution{Output: "o"})
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			m, err := r.BeforeUserBash(ctx, harness.UserBash{Command: "ls"})
			return fmt.Sprint(m != nil), err
		}, plain: "false", change: "true"},
}

func firstAnswer(r *rig) string {
	for _, e := range r.Session().Entries() {
		if e.Role() == llm.RoleAssistant {
			return e.ID
		}
	}
	return ""
}

// talked is a rig that has something to compact and a branch to leave.
func talked(t *testing.T, hooks harness.Hooks) *rig {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle(), Hooks: []harness.Hooks{hooks}},
		faux.Say(long), faux.Say(long), faux.Say("sum"), faux.Say("sum"), faux.Say("sum"))
	r.prompt("one")
	r.prompt("two")
	return r
}

func TestHooksOfOperations(t *testing.T) {
	for _, c := range callCases {
		t.Run(string(c.name), func(t *testing.T) {
			for _, change := range []bool{false, true} {
				var h harness.Hooks
				calls, want := 0, c.plain
				if change {
					want = c.change
				}
				c.set(&h, func(context.Context) error { calls++; return nil }, change)
				if got, err := c.call(t.Context(), talked(t, h)); err != nil || got != want || calls != 1 {
					t.Errorf("changes %v: %s after %d calls, %v", change, got, calls, err)
				}
			}
			for how, fail := range map[string]func(context.Context) error{
				"fails":                func(context.Context) error { return errors.New("failed on purpose") },
				"panics":               func(context.Context) error { panic("failed on purpose") },
				"leaves its goroutine": func(context.Context) error { runtime.Goexit(); return nil },
			} {
				var h harness.Hooks
				c.set(&h, fail, true)
				r := talked(t, h)
				before := len(r.Session().Entries())
				_, err := c.call(t.Context(), r)
				if e, ok := errors.AsType[*harness.HookError](err); kindOf(err) != harness.KindHook || !ok || e.Hook != c.name {
					t.Errorf("%s: error %v", how, err)
				}
				if n := len(r.Session().Entries()); n != before || r.Phase() != harness.PhaseIdle {
					t.Errorf("%s: %d entries were %d, %s", how, n, before, r.Phase())
				}
				told := 0
				h.Report = func(_ context.Context, e *harness.HookError) {
					if e.Hook == c.name {
						told++
					}
				}
				got, err := c.call(t.Context(), talked(t, h))
				if told != 1 || c.guards && kindOf(err) != harness.KindHook || !c.guards && (err != nil || got != c.plain) {
					t.Errorf("%s, reported %d times: %s, %v", how, told, got, err)
				}
			}
			t.Run("cancelled", func(t *testing.T) {
				var h harness.Hooks
				ctx, cancel := context.WithCancel(t.Context())
				c.set(&h, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }, true)
				c.ends(t, ctx, talked(t, h))
			})
			t.Run("never returns", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stuck := make(chan struct{})
					defer close(stuck)
					ctx, cancel := context.WithCancel(context.Background())
					var h harness.Hooks
					c.set(&h, func(context.Context) error { cancel(); <-stuck; return nil }, true)
					r := talked(t, h)
					begun := time.Now()
					if c.ends(t, ctx, r); time.Since(begun) > 20*time.Second {
						t.Errorf("took %v", time.Since(begun))
					}
				})
			})
		})
	}
}

// ends checks an operation whose context has ended: nothing has changed.
func (c *callCase) ends(t *testing.T, ctx context.Context, r *rig) {
	t.Helper()
	before := len(r.Session().Entries())
	got, err := c.call(ctx, r)
	if c.aborted == "" && kindOf(err) != harness.KindHook || c.aborted != "" && (err != nil || got != c.aborted) {
		t.Errorf("%s, %v", got, err)
	}
	if n := len(r.Session().Entries()); n != before || r.Phase() != harness.PhaseIdle {
		t.Errorf("%d entries were %d, %s", n, before, r.Phase())
	}
	r.model.Rescript(faux.Say("on"))
	if m := r.prompt("three"); m.StopReason != llm.StopStop {
		t.Errorf("goes on with %+v", m)
	}
}

// No hook is left out: not in the tables of the tests, nor in the manual.
func TestEveryHookIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range hookCases {
		tried[string(c.name)] = true
	}
	for _, c := range callCases {
		tried[string(c.name)] = true
	}
	source, err := os.ReadFile("hooks.go")
	if err != nil {
		t.Fatal(err)
	}
	upper := regexp.MustCompile(`(.)([A-Z])`)
	for f := range reflect.TypeFor[harness.Hooks]().Fields() {
		name := strings.ToLower(upper.ReplaceAllString(f.Name, "${1}_$2"))
		switch f.Name {
		case "Name", "Report":
			continue
		case "On":
			name = string(agent.TurnStart)
		}
		if !tried[name] {
			t.Errorf("%s has no row", f.Name)
		}
		if !regexp.MustCompile(`(?m)^//\t` + f.Name + `\b`).Match(source) {
			t.Errorf("%s is not in the table of type Hooks", f.Name)
		}
	}
}

// A hook that changes in place what it was given changes what it returns, and
// never the conversation.
func TestHooksHaveTheirOwnCopies(t *testing.T) {
	spoil := func(messages []agent.Message) {
		for _, m := range messages {
			switch m := m.(type) {
			case *llm.System:
				m.Content.Text = "spoilt"
			case *llm.User:
				m.Content.Blocks[0].(*llm.Text).Text = "spoilt"
			case *llm.Assistant:
				for _, b := range m.Content {
					switch b := b.(type) {
					case *llm.Text:
						b.Text = "spoilt"
					case *llm.ToolCall:
						b.Arguments[0] = 'x'
					}
				}
			case *llm.ToolResult:
				m.Content[0].(*llm.Text).Text = "spoilt"
			}
		}
	}
	for _, returned := range []bool{false, true} {
		answer := func(messages []agent.Message) []agent.Message {
			if !returned {
				return nil
			}
			return messages
		}
		r := hookRig(t, harness.Hooks{
			Context: func(_ context.Context, messages []agent.Message) ([]agent.Message, error) {
				spoil(messages)
				return answer(messages), nil
			},
			ContextWithSystem: func(_ context.Context, messages []agent.Message) ([]agent.Message, error) {
				spoil(messages)
				return answer(messages), nil
			},
			ToolResult: func(_ context.Context, t harness.ToolResult) (*agent.ResultPatch, error) {
				t.Result.Content[0].(*llm.Text).Text = "spoilt"
				return nil, nil
			},
			MessageEnd: func(_ context.Context, m agent.Message) (agent.Message, error) {
				if !returned {
					spoil([]agent.Message{m})
				}
				return nil, nil
			},
		})
		r.prompt("go")
		r.wantSaid("user:go assistant:<echo> result:hi assistant:done")
		asked, want := r.askedOf(2), "user:go assistant:<echo> result:hi"
		if returned {
			want = "user:spoilt assistant:<echo> result:spoilt"
		}
		if asked != want {
			t.Errorf("asked %s, want %s", asked, want)
		}
	}
	// What a hook returns unchanged is the same message to wire formats.
	r := hookRig(t, harness.Hooks{
		Context: func(_ context.Context, messages []agent.Message) ([]agent.Message, error) { return messages, nil },
		MessageEnd: func(_ context.Context, m agent.Message) (agent.Message, error) {
			if u, ok := m.(*llm.User); ok {
				u.Content.Blocks[0].(*llm.Text).Text = "GO"
			}
			return m, nil
		},
	})
	r.prompt("go")
	r.wantSaid("user:GO assistant:<echo> result:hi assistant:done")
	for i, m := range r.model.Requests()[1].Request.Messages {
		if m != r.Messages()[i].(llm.Message) {
			t.Errorf("message %d of the request is a copy", i)
		}
	}
}

// A gate reads the arguments that the tool reads.
func TestDecodeArguments(t *testing.T) {
	c := harness.ToolCall{ToolName: "pay", Input: jsontext.Value(`{"amount":900,"Amount":1}`)}
	var in struct {
		Amount int `json:"amount"`
	}
	if err := c.Decode(&in); err != nil || in.Amount != 900 {
		t.Error(in, err)
	}
	c.Input = jsontext.Value(`{"amount":1,"amount":900}`)
	if err := c.Decode(&in); err == nil {
		t.Error("of two amounts one was taken")
	}
}
