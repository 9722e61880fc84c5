package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// turn does something to an idle harness.
func (w *trial) turn(d draw) {
	l := w.life
	for range max(0, d.IntN(6)-3) {
		l.spawn()
	}
	what := pick(d, "prompt", "prompt", "prompt", "prompt", "prompt", "prompt", "prompt messages", "continue", "continue", "aside",
		"aside", "aside", "aside", "compact", "navigate", "navigate", "branch", "fork", "reopen", "crash", "template", "fill")
	if l.store.isFull() && d.one(2) {
		what = "reopen" // what waits for room must not be lost
	}
	if !w.step(what) {
		return
	}
	switch what {
	case "aside":
		_ = guardedAct(func() error { return l.act(context.Background(), d, 1, "idle") })
	case "branch":
		l.branch(d)
	case "fork":
		w.others.Wait()
		if w.life.crash() == nil {
			w.fork(d)
		}
	case "reopen":
		w.others.Wait()
		if w.life.crash() == nil {
			w.reopen()
		}
	case "crash":
		l.die(d)
	case "fill":
		l.store.fill(1 + d.IntN(6))
	default:
		l.ask(d, what)
	}
}

// guardedAct stands in for who catches panics of what acts.
func guardedAct(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return fn()
}

// branch moves the leaf of an idle session as a host may.
func (l *life) branch(d draw) {
	l.w.others.Wait()
	if entries := l.h.Session().Entries(); len(entries) > 0 && l.h.IsIdle() {
		if l.waitsFor != nil { // calls that wait are given up without a word, by the next run
			l.waitsFor = nil
			l.store.mu.Lock()
			l.store.mayStay = true
			l.store.mu.Unlock()
		}
		if err := l.h.Session().Branch(pick(d, entries...).ID); err != nil {
			l.w.failf("branch: %v", err)
		}
	}
}

// ask does what waits for the harness.
func (l *life) ask(d draw, what string) {
	l.asking.Add(1)
	defer l.asking.Add(-1)
	ctx := context.Background()
	if d.one(10) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.delay(100*time.Millisecond))
		defer cancel()
	}
	switch what {
	case "prompt":
		l.prompt(what, func(token string) (*llm.Assistant, error) {
			return l.h.Prompt(ctx, "Do "+token+".", pictures(d)...)
		})
	case "prompt messages":
		l.prompt(what, func(token string) (*llm.Assistant, error) {
			m := []agent.Message{llm.UserText("Do "+token+".", 1)}
			if d.one(2) {
				m = append(m, &session.Custom{CustomType: "c", Content: llm.Plain(pick(d, "and more", "", " ")), Timestamp: 1})
			}
			return l.h.PromptMessages(ctx, m...)
		})
	case "submit":
		l.prompt(what, func(token string) (*llm.Assistant, error) {
			return l.h.Submit(ctx, harness.Input{Text: "Do " + token + ".", Behavior: pick(d, "", harness.AsSteering, harness.AsFollowUp)})
		})
	case "template":
		if err := l.h.SetResources(harness.Resources{Templates: []harness.Template{{Name: "t", Content: "Do $1."}}}); err != nil {
			l.checkError("set resources", err)
		}
		l.prompt(what, func(token string) (*llm.Assistant, error) { return l.h.PromptFromTemplate(ctx, "t", token) })
	case "continue":
		l.say(what, func(context.Context) (*llm.Assistant, error) { return l.h.Continue(ctx) })
	case "compact":
		out, err := l.h.Compact(ctx, pick(d, "", "mind the files"))
		l.checkError(what, err)
		if err == nil && (out == nil || l.h.Session().Entry(out.Entry.ID) == nil) {
			l.w.failf("a compaction is not in the session")
		}
	case "navigate":
		entries := l.h.Session().Entries()
		if len(entries) == 0 {
			return
		}
		o := harness.TreeOptions{Summarize: d.one(2), Label: pick(d, "", "", "here")}
		out, err := l.h.NavigateTree(ctx, pick(d, entries...).ID, o)
		l.checkError(what, err)
		if err == nil && out.Summary != nil && l.h.Session().Entry(out.Summary.ID) == nil {
			l.w.failf("the summary of a branch is not in the session")
		}
	case "abort and clear":
		out, err := l.h.AbortAndClear(ctx)
		if err != nil && ctx.Err() == nil {
			l.w.failf("abort and clear: %v", err)
		}
		l.books.returned(messageTexts(slices.Concat(out.Steering, out.FollowUp)))
	case "wait":
		_ = l.h.WaitForIdle(ctx)
	}
}

// pictures come with a prompt now and then.
func pictures(d draw) []*llm.Image {
	if d.one(8) {
		return []*llm.Image{{Data: "bm90IHJlYWxseQ==", MimeType: "image/png"}}
	}
	return nil
}

// prompt makes a call that says a new token, and books what became of it.
func (l *life) prompt(what string, call func(token string) (*llm.Assistant, error)) {
	token := l.w.token("m")
	l.books.issue(token, inQueue)
	l.say(what, func(context.Context) (*llm.Assistant, error) {
		m, err := call(token)
		// A hook that is ended with its run may keep the prompt from being said.
		if err != nil || m == nil || m.StopReason != llm.StopAborted || !l.hooked.Load() {
			l.books.outcome(token, err)
		}
		return m, err
	})
}

// say makes a call that runs, and books it.
func (l *life) say(what string, call func(ctx context.Context) (*llm.Assistant, error)) {
	m, err := call(context.Background())
	l.w.note("  %s: %s, %v", what, brief(m), err)
	l.checkError(what, err)
	if k := kindOf(err); what == "continue" && k != "" && k != harness.KindBusy && k != harness.KindInvalidState {
		l.cutShort.Store(true)
	}
	l.watch.called(what, err)
}

func brief(m *llm.Assistant) string {
	if m == nil {
		return "no answer"
	}
	return fmt.Sprintf("%s %.40q", m.StopReason, m.ErrorMessage)
}

// spawn does something waiting in a goroutine of its own, some time later.
func (l *life) spawn() {
	d := l.w.at("spawn")
	what := pick(d, "prompt", "continue", "compact", "navigate", "abort and clear", "wait", "submit", "submit", "act", "act", "act", "act")
	if !l.w.step("beside: " + what) {
		return
	}
	l.w.beside(func() {
		time.Sleep(d.delay(pick(d, time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)))
		if what == "act" {
			_ = guardedAct(func() error { return l.act(context.Background(), d, 1, "beside") })
			return
		}
		l.ask(d, what)
	})
}

// act does, once in so many times, something that a listener, a hook or a tool
// may do, or fails.
func (l *life) act(ctx context.Context, d draw, odds int, where string) error {
	if !d.one(odds) {
		return nil
	}
	what := pick(d, "steer", "steer", "steer", "follow up", "follow up", "next turn", "next turn", "queue custom", "abort", "abort", "abort retry", "clear",
		"model", "model", "level", "tools", "active tools", "resources", "request", "name", "modes", "custom", "bash",
		"add hooks", "drop hooks", "spawn", "spawn", "tell", "read", "slow", "slow", "fail", "panic", "full disk", "crash")
	if what == "crash" && !d.one(3) {
		what = "abort"
	}
	if !l.w.step(where + ": " + what) {
		return nil
	}
	var err error
	switch what {
	case "steer", "follow up", "next turn", "queue custom", "custom", "bash":
		token := l.w.token("m")
		l.books.issue(token, map[string]wait{"next turn": forNextTurn, "custom": forTurn, "bash": forTurn}[what])
		switch what {
		case "steer":
			err = l.h.Steer("Steer "+token, pictures(d)...)
		case "follow up":
			err = l.h.FollowUp("Then " + token)
		case "next turn":
			err = l.h.NextTurn(llm.UserText("Next "+token, 1))
		case "queue custom":
			m := &session.Custom{CustomType: "c", Content: llm.Plain("Custom " + token), Timestamp: 1}
			if d.one(2) {
				err = l.h.SteerMessages(m)
			} else {
				err = l.h.FollowUpMessages(m)
			}
		case "custom":
			err = l.h.AppendMessage(&session.Custom{CustomType: "c", Content: llm.Plain("Note " + token), Timestamp: 1})
		case "bash":
			err = l.h.AppendMessage(&session.BashExecution{Command: "echo " + token, ExcludeFromContext: d.one(3), Timestamp: 1})
		}
		l.books.outcome(token, err)
	case "abort":
		l.h.Abort()
	case "abort retry":
		l.h.AbortRetry()
	case "clear":
		q := l.h.ClearQueues()
		l.books.returned(slices.Concat(q.Steering, q.FollowUp))
	case "model":
		err = l.h.SetModel(l.w.randomModel(d))
	case "level":
		err = l.h.SetThinkingLevel(pick(d, llm.ThinkingLevels()...))
	case "tools":
		err = l.h.SetTools(l.tools(d))
	case "active tools":
		var names []string
		none := d.one(4)
		for _, t := range l.h.AllTools() {
			if !none && d.one(2) {
				names = append(names, t.Name)
			}
		}
		if err = l.h.SetActiveTools(names...); kindOf(err) == harness.KindInvalidArgument {
			err = nil // somebody else changed them meanwhile
		}
	case "resources":
		err = l.h.SetResources(harness.Resources{Skills: []harness.Skill{{Name: "s", Content: "c"}}})
	case "request":
		err = l.h.SetRequest(llm.Options{APIKey: accountToken, MaxTokens: d.IntN(2) * 50, CacheRetention: pick(d, "", "none", "long")})
	case "name":
		err = l.h.SetName(pick(d, "", "a\nname"))
	case "modes":
		err = l.h.SetSteeringMode(pick(d, harness.OneAtATime, harness.All))
	case "add hooks":
		l.addHooks(d)
	case "drop hooks":
		l.dropHooks()
	case "spawn":
		l.spawn()
	case "tell":
		l.h.Tell(harness.Event{Event: agent.Event{Type: harness.SessionStart}})
	case "read":
		l.read()
	case "slow":
		l.pause(ctx, d)
	case "full disk":
		l.store.fill(1 + d.IntN(4))
	case "crash":
		l.die(d)
	case "fail":
		return errors.New("failed on purpose")
	case "panic":
		panic("panicked on purpose")
	}
	l.checkError(what, err)
	return nil
}

// read calls what may be called at any time.
func (l *life) read() {
	h := l.h
	_, _ = h.ContextUsage()
	_, _, _, _, _, _ = h.Messages(), h.Queued(), h.Phase(), h.Model(), h.Tools(), h.Request()
	_, _ = h.Session().Tree(), h.Session().Stats()
}

// pause takes some time, and looks at its context or not.
func (l *life) pause(ctx context.Context, d draw) {
	delay := d.delay(40 * time.Millisecond)
	if d.one(4) {
		time.Sleep(delay)
		return
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

func kindOf(err error) harness.Kind {
	if e, ok := errors.AsType[*harness.Error](err); ok {
		return e.Kind
	}
	return ""
}

// checkError knows which errors a harness returns.
func (l *life) checkError(what string, err error) {
	if err != nil && kindOf(err) == "" {
		l.w.failf("%s: an error without a kind: %v", what, err)
	}
}

// tools are what a model may call: they work, fail, panic, take long, end the
// run, show pictures.
func (l *life) tools(d draw) []*agent.Tool {
	tool := func(name string, run func(ctx context.Context, c agent.Call, d draw) (agent.Result, error)) *agent.Tool {
		return &agent.Tool{
			Tool: llm.Tool{Name: name, Description: "Does " + name + ".", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			Execute: func(ctx context.Context, c agent.Call) (agent.Result, error) {
				d := l.w.at("tool " + name + c.ID)
				l.begins(name, c.Args)
				l.executed.Add(1)
				if d.one(30) && l.w.step("tool "+name+": crash") {
					l.die(d)
				}
				time.Sleep(d.delay(time.Millisecond))
				l.w.note("  run %s %.20q", name, c.ID)
				if err := l.act(ctx, d, 12, "tool "+name); err != nil {
					return agent.Result{}, err
				}
				return run(ctx, c, d)
			},
		}
	}
	text := func(s string) agent.Result { return agent.TextResult(s + " " + l.w.token("r")) }
	failed := func(what string) { l.w.step(what) }
	all := []*agent.Tool{
		tool("works", func(_ context.Context, _ agent.Call, d draw) (agent.Result, error) { return text("done"), nil }),
		tool("says", func(_ context.Context, _ agent.Call, d draw) (agent.Result, error) {
			return agent.Result{Content: []llm.Block{
				&llm.Text{Text: pick(d, "", " ", "half \xed\xa0\xbd") + l.w.token("r")}, &llm.Image{Data: "bm90IHJlYWxseQ==", MimeType: "image/png"},
			}}, nil
		}),
		tool("nothing", func(context.Context, agent.Call, draw) (agent.Result, error) { return agent.Result{}, nil }),
		tool("slow", func(ctx context.Context, _ agent.Call, d draw) (agent.Result, error) {
			l.pause(ctx, d)
			return text("slowly"), ctx.Err()
		}),
		tool("fails", func(context.Context, agent.Call, draw) (agent.Result, error) {
			failed("a tool fails")
			return agent.Result{}, errors.New("it does not work")
		}),
		tool("panics", func(context.Context, agent.Call, draw) (agent.Result, error) {
			failed("a tool panics")
			panic("on purpose")
		}),
		tool("chats", func(_ context.Context, c agent.Call, d draw) (agent.Result, error) {
			for range d.IntN(4) {
				c.Update(agent.TextResult("still at it"))
			}
			later := d.delay(3 * time.Millisecond)
			l.w.beside(func() {
				time.Sleep(later)
				c.Update(agent.TextResult("too late"))
			})
			return text("chatted"), nil
		}),
		tool("ends", func(context.Context, agent.Call, draw) (agent.Result, error) {
			r := text("enough")
			r.Terminate = true
			return r, nil
		}),
		tool("long", func(_ context.Context, _ agent.Call, d draw) (agent.Result, error) {
			return agent.TextResult(fmt.Sprintf("%s %0*d", l.w.token("r"), d.IntN(2000), 7)), nil
		}),
		tool("alone", func(context.Context, agent.Call, draw) (agent.Result, error) { return text("alone"), nil }),
	}
	all[len(all)-1].Execution = agent.Sequential
	all[0].ReplaySafe = true
	return slices.DeleteFunc(all, func(*agent.Tool) bool { return d.one(5) })
}

func (l *life) dropHooks() {
	l.mu.Lock()
	hooks := l.hooks
	l.hooks = nil
	l.mu.Unlock()
	for _, remove := range hooks {
		remove()
	}
}

// clear reports whether no hook changes what requests show.
func (l *life) clear() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opaque == 0
}
