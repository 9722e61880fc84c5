package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// A request that does not fit although there is nothing to sum up: the person is
// told, and the next prompt goes on without the failed answer.
func TestOverflowWithNothingToCompact(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Fail(overflow), faux.Say("fine"))
	if m := r.prompt("one"); m == nil || m.ErrorMessage != overflow {
		t.Errorf("answer %+v", m)
	}
	got := ends(r)
	if len(got) != 1 || !strings.Contains(got[0].ErrorMessage, "nothing to compact") || got[0].Reason != "overflow" || got[0].WillRetry {
		t.Errorf("ends %+v", got)
	}
	if n := len(r.model.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	r.prompt("two")
	r.wantSaid("user:one user:two assistant:fine")
	r.paired()
}

// A window that is smaller than the model says: half of what would be kept goes.
func TestOverflowOfWhatIsAllRecent(t *testing.T) {
	long := strings.Repeat("word ", 500)
	r := newRig(t, harness.Options{Model: &llm.Model{Provider: "faux", ID: "x", API: "faux"}}, faux.Say(long), faux.Say(long))
	if err := r.SetModel(r.model.Models()[1]); err != nil { // no window is known
		t.Fatal(err)
	}
	r.prompt("one")
	r.prompt("two")
	r.model.Rescript(faux.Fail(overflow), faux.Say("sum"), faux.Say("prefix"), faux.Say("fine"))
	if m := r.prompt("three"); m == nil || m.StopReason != llm.StopStop {
		t.Errorf("answer %+v, ends %+v", m, ends(r))
	}
	if got := ends(r); len(got) != 1 || got[0].Compacted == nil || got[0].Compacted.TokensAfter >= got[0].Compacted.TokensBefore {
		t.Errorf("ends %+v", got)
	}
}

// Compactions that do no good are not made for ever.
func TestFutileCompactions(t *testing.T) {
	long := strings.Repeat("word ", 100) // 125 tokens
	for name, summary := range map[string]faux.Response{
		"no room": faux.Say(strings.Repeat("sum ", 400)), // 400 of 1000 tokens
		"fails":   faux.Fail("invalid api key"),
		"nothing": faux.Say(" "),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harness.Options{Compaction: compact.Settings{KeepRecentTokens: new(int64(100)), ReserveTokens: new(int64(800))}})
			summaries := 0
			for range 60 {
				r.model.Script(func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
					if c.Request.CacheRetention == "none" {
						summaries++
						return summary(ctx, c)
					}
					return faux.Say(long)(ctx, c)
				})
			}
			for range 12 {
				r.prompt("go")
			}
			made, told := 0, 0
			for _, ev := range ends(r) {
				if strings.Contains(ev.ErrorMessage, "not compacted by itself any more") {
					told++
				} else {
					made++
				}
			}
			if made != 3 || told != 1 || summaries > 6 {
				t.Errorf("%d compactions, %d summaries, told %d times", made, summaries, told)
			}
			// One that is asked for and helps arms it again.
			summary = faux.Say("short")
			if _, err := r.Compact(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			before := len(ends(r))
			r.prompt("more")
			r.prompt("more")
			if got := ends(r); len(got) == before || got[before].Compacted == nil {
				t.Errorf("ends %+v", got[before:])
			}
		})
	}
}

// Results that no compaction can take away are shown cut, and stay whole in the
// session.
func TestResultsLongerThanTheWindow(t *testing.T) {
	whole := strings.Repeat("line\n", 2000) // 2500 tokens, of a window of 1000
	big := toolOf("big", func(context.Context) (string, error) { return whole, nil })
	r := newRig(t, harness.Options{Tools: []*agent.Tool{big, ping()}, Compaction: keepLittle()},
		faux.Reply(faux.ToolCall("big", ""), faux.ToolCall("ping", "")), faux.Say("sum"), faux.Say("done"))
	if m := r.prompt("go"); m.StopReason != llm.StopStop {
		t.Fatalf("answer %+v", m)
	}
	requests := r.model.Requests()
	last := requests[len(requests)-1].Request
	var tokens int64
	for _, m := range last.Messages {
		tokens += session.Tokens(m)
		if res, ok := m.(*llm.ToolResult); ok && res.ToolName == "big" {
			if text := llm.TextOf(res.Content, ""); !strings.HasPrefix(text, "line\n") || !strings.HasSuffix(text, "line\n") || !strings.Contains(text, "characters of this result are left out") {
				t.Errorf("shows %q", text)
			}
		}
	}
	if tokens > 1000 {
		t.Errorf("asked with %d tokens", tokens)
	}
	kept := false
	for _, e := range r.Session().Entries() {
		if res, ok := e.Message().(*llm.ToolResult); ok {
			kept = kept || llm.TextOf(res.Content, "") == whole
		}
	}
	if !kept {
		t.Error("the result is not whole in the session")
	}
	r.paired()
}

// The window is smaller than the model says, and a result fills it.
func TestRefusedResultIsShortened(t *testing.T) {
	big := toolOf("big", func(context.Context) (string, error) { return strings.Repeat("line\n", 4000), nil })
	r := newRig(t, harness.Options{Tools: []*agent.Tool{big}})
	if err := r.SetModel(r.model.Models()[1]); err != nil { // no window is known
		t.Fatal(err)
	}
	for range 5 {
		r.model.Script(func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
			var tokens int64
			for _, m := range c.Request.Messages {
				tokens += session.Tokens(m)
			}
			switch {
			case tokens > 3000:
				return faux.Fail(overflow)(ctx, c)
			case c.Request.CacheRetention == "none":
				return faux.Say("sum")(ctx, c)
			case c.Request.Messages[len(c.Request.Messages)-1].Role() == llm.RoleToolResult:
				return faux.Say("done")(ctx, c)
			}
			return faux.Reply(faux.ToolCall("big", ""))(ctx, c)
		})
	}
	if m := r.prompt("go"); m.StopReason != llm.StopStop {
		t.Errorf("answer %+v, %s", m, r.types())
	}
	r.paired()
}

func TestAbortCompactionAlone(t *testing.T) {
	long := strings.Repeat("word ", 50)
	t.Run("of a run", func(t *testing.T) {
		// Between two turns: the run goes on without it.
		big := toolOf("big", func(context.Context) (string, error) { return strings.Repeat("x", 3700), nil })
		r := newRig(t, harness.Options{Tools: []*agent.Tool{big}, Compaction: keepLittle()},
			faux.Say(long), faux.Reply(faux.ToolCall("big", "")), faux.Hang(), faux.Say("done"))
		r.prompt("one")
		r.on(harness.CompactionStart, 1, func(harness.Event) error {
			r.AbortBranchSummary() // nobody moves
			r.AbortRetry()
			r.AbortCompaction()
			return nil
		})
		r.model.Rescript(faux.Reply(faux.ToolCall("big", "")), faux.Say("done"))
		if m := r.prompt("two"); m.StopReason != llm.StopStop {
			t.Errorf("answer %+v", m)
		}
		if got := ends(r); len(got) == 0 || !got[0].Aborted || got[0].ErrorMessage != "" {
			t.Errorf("ends %+v", got)
		}
		if last := r.events[len(r.events)-1]; last.Type != harness.AgentSettled || last.Aborted {
			t.Errorf("last %+v", last)
		}
		r.paired()
	})
	t.Run("on demand", func(t *testing.T) {
		r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Say(long))
		r.prompt("one")
		r.prompt("two")
		r.AbortCompaction() // none is made
		r.model.Rescript(func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
			go r.AbortCompaction()
			return faux.Hang(faux.Text("half"))(ctx, c)
		})
		if _, err := r.Compact(t.Context(), ""); kindOf(err) != harness.KindCompaction || !errors.Is(err, &compact.Error{Kind: compact.Aborted}) {
			t.Error(err)
		}
	})
	t.Run("of a branch", func(t *testing.T) {
		r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"))
		r.prompt("one")
		target := r.Session().LeafID()
		r.prompt("two")
		leaf := r.Session().LeafID()
		r.model.Rescript(func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
			go func() {
				r.AbortCompaction()
				r.AbortBranchSummary()
			}()
			return faux.Hang(faux.Text("half"))(ctx, c)
		})
		n, err := r.NavigateTree(t.Context(), target, harness.TreeOptions{Summarize: true})
		if err != nil || !n.Aborted || !n.Cancelled || n.Leaf != leaf || r.Session().LeafID() != leaf {
			t.Errorf("%+v, %v", n, err)
		}
	})
	t.Run("while a hook of its request thinks", func(t *testing.T) {
		var r *rig
		r = newRig(t, harness.Options{Compaction: keepLittle(), Stream: wired(&r), Hooks: []harness.Hooks{{
			BeforeProviderPayload: func(ctx context.Context, p harness.ProviderPayload) (_ jsontext.Value, err error) {
				if r.Phase() == harness.PhaseCompaction {
					r.AbortCompaction()
					<-ctx.Done()
					err = ctx.Err()
				}
				return nil, err
			},
		}}}, faux.Say(long), faux.Fail(overflow), faux.Say("sum"))
		r.prompt("one")
		if m, err := r.Prompt(t.Context(), "two"); err != nil || m.ErrorMessage != overflow {
			t.Error(m, err)
		}
		if got := ends(r); len(got) != 1 || !got[0].Aborted {
			t.Errorf("ends %+v", got)
		}
	})
}

// Two compactions after each other, a move, another compaction: the summary
// before is brought up to date each time, and the log, opened again, ends where
// the conversation does.
func TestCompactionsInARow(t *testing.T) {
	long := strings.Repeat("word ", 50)
	for _, embedded := range []bool{false, true} {
		t.Run(fmt.Sprint("embedded ", embedded), func(t *testing.T) {
			store := memory.New()
			sess, err := session.Open(store, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, harness.Options{Session: sess, Embedded: embedded, Compaction: compact.Settings{
				Disabled: true, KeepRecentTokens: new(int64(2)), ReserveTokens: new(int64(10)),
			}})
			n := 0
			answer := func(ctx context.Context, c faux.Call) (*llm.Assistant, error) {
				if n++; c.Request.CacheRetention == "none" {
					return faux.Say(fmt.Sprintf("SUM%d.", n))(ctx, c)
				}
				return faux.Say(long)(ctx, c)
			}
			for range 30 {
				r.model.Script(answer)
			}
			compactNow := func() *harness.Compacted {
				t.Helper()
				c, err := r.Compact(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			r.prompt("one")
			place := r.Session().LeafID()
			r.prompt("two")
			first := compactNow()
			if _, err := r.Compact(t.Context(), ""); !errors.Is(err, &compact.Error{Kind: compact.AlreadyCompacted}) {
				t.Error(err)
			}
			r.prompt("three")
			second := compactNow()
			head, _, _ := strings.Cut(first.Summary, "\n")
			if asked := r.model.Requests(); !slices.ContainsFunc(asked, func(c faux.Call) bool {
				return c.Request.CacheRetention == "none" && strings.Contains(llm.TextOf(c.Request.Messages[1].(*llm.User).Content.Blocks, ""), "<previous-summary>\n"+head)
			}) {
				t.Error("the second summary knows nothing of the first")
			}
			if second.Entry.ID == first.Entry.ID || second.Summary == first.Summary {
				t.Errorf("%+v", second)
			}
			if moved, err := r.NavigateTree(t.Context(), place, harness.TreeOptions{}); err != nil || moved.Leaf != place {
				t.Fatal(moved, err)
			}
			r.wantSaid("user:one assistant:" + long)
			if embedded { // its moves are in the log
				moved, err := session.Open(memory.NewFrom(store.Bytes()), session.Options{})
				if err != nil {
					t.Fatal(err)
				}
				h := newRig(t, harness.Options{Session: moved, Embedded: true})
				if got := h.Session().LeafID(); got != place {
					t.Errorf("opened again at %s, want %s", got, place)
				}
				h.wantSaid("user:one assistant:" + long)
			}
			// Right after the move there are the question and its answer.
			if c := compactNow(); c.FirstKept == "" {
				t.Errorf("%+v", c)
			}
			r.prompt("four")
			said1, leaf := said(r.Messages()), r.Session().LeafID()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := session.Open(memory.NewFrom(store.Bytes()), session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if got := said(again.Context().Messages); got != said1 || again.LeafID() != leaf {
				t.Errorf("opened again: %s at %s\nwas %s at %s", got, again.LeafID(), said1, leaf)
			}
		})
	}
}

// What is steered while a run is active is said by that run, also in its last
// moments.
func TestSteeredInTheLastMoment(t *testing.T) {
	const rounds = 400
	r := newRig(t, harness.Options{SteeringMode: harness.All})
	var mu sync.Mutex
	for range rounds * 6 {
		r.model.Script(faux.Say("a"))
	}
	var ended chan struct{}
	r.Subscribe(func(_ context.Context, ev harness.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if ev.Type == agent.AgentEnd && ended != nil {
			close(ended)
			ended = nil
		}
		return nil
	})
	late := 0
	for i := range rounds {
		over := make(chan struct{})
		mu.Lock()
		ended = over
		mu.Unlock()
		var due []string
		var other sync.WaitGroup
		other.Go(func() {
			<-over
			for range rand.IntN(60) {
				runtime.Gosched()
			}
			for k := range 3 {
				text := fmt.Sprintf("s%d.%d", i, k)
				if err := r.Steer(text); err != nil {
					t.Error(err)
				}
				if r.Phase() != harness.PhaseIdle { // still, so it was when the text was taken
					due = append(due, text)
				}
			}
		})
		r.prompt("go")
		all := said(r.Messages())
		other.Wait()
		late += len(due)
		for _, text := range due {
			if !strings.Contains(all, "user:"+text+" ") {
				t.Fatalf("round %d: %s was not said, waiting %v", i, text, r.Queued())
			}
		}
	}
	t.Logf("%d texts came in the last moments of %d runs", late, rounds)
	if n := r.count(harness.AgentSettled); n != rounds {
		t.Errorf("settled %d times", n)
	}
	r.paired()
}

// toldStore calls told before each write.
type toldStore struct {
	*memory.Store
	told func(lines []byte)
}

func (s *toldStore) Append(at session.Position, lines []byte) (session.Position, error) {
	if s.told != nil {
		s.told(lines)
	}
	return s.Store.Append(at, lines)
}

// spokenAtRest is a rig that is steered while its first run comes to rest: the
// last thing that a run does is to write what waited for its end.
func spokenAtRest(t *testing.T) (r *rig, spoke *int) {
	store := &toldStore{Store: memory.New()}
	sess, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spoke = new(int)
	r = newRig(t, harness.Options{Session: sess}, faux.Say("a"), faux.Say("b"), faux.Say("c"), faux.Say("d"))
	r.on(agent.AgentEnd, 1, func(harness.Event) error {
		return r.AppendMessage(&session.BashExecution{Command: "ls", Timestamp: 1})
	})
	store.told = func(lines []byte) {
		if !strings.Contains(string(lines), "bashExecution") {
			return
		}
		*spoke++
		if p := r.Phase(); p == harness.PhaseIdle {
			t.Errorf("phase %s", p)
		}
		if err := errors.Join(r.Steer("more"), r.FollowUp("and more")); err != nil {
			t.Error(err)
		}
	}
	return r, spoke
}

// Whoever speaks while a run comes to rest still finds it active, and is heard
// by it.
func TestSteeredWhileTheRunComesToRest(t *testing.T) {
	r, spoke := spokenAtRest(t)
	if m := r.prompt("go"); *spoke != 1 || llm.TextOf(m.Content, "") != "c" {
		t.Errorf("spoke %d times, answer %+v", *spoke, m)
	}
	r.wantSaid("user:go assistant:a bash:ls user:more assistant:b user:and more assistant:c")
	if n := r.count(harness.AgentSettled); n != 1 || r.Phase() != harness.PhaseIdle {
		t.Errorf("settled %d times", n)
	}
	r.paired()
}

// A virtual model has its summaries written by whom its router names, over the
// same way as its answers.
func TestCompactionWithAVirtualModel(t *testing.T) {
	long := strings.Repeat("word ", 50)
	var models []*llm.Model
	v := newVirtual(func(llm.RouteRequest) (llm.Route, error) {
		return llm.Route{Model: models[0], Level: llm.LevelHigh}, nil
	})
	var keyed []string
	r := newRig(t, harness.Options{
		Model: v.Model, Router: v.router, Compaction: keepLittle(),
		Credentials: func(_ context.Context, m *llm.Model) (harness.Credentials, error) {
			keyed = append(keyed, m.ID)
			return harness.Credentials{Key: "k"}, nil
		},
	}, faux.Say(long), faux.Say(long), faux.Say("sum"), faux.Say("prefix"), faux.Fail("overloaded"), faux.Say("fine"))
	models = r.model.Models()
	r.prompt("one")
	r.prompt("two")
	keyed = nil
	c, err := r.Compact(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var used int64
	for _, call := range r.model.Requests()[2:] {
		if call.Model.ID != "one" || call.Request.APIKey != "k" || call.Request.Reasoning != llm.LevelHigh {
			t.Errorf("a summary is asked of %s with %+v", call.Model.ID, call.Request.Options)
		}
		used++
	}
	if d := c.Entry.Data().(*session.CompactionEntry); used == 0 || c.Usage == nil || d.Usage == nil || d.Usage.Output == 0 || !slices.Equal(keyed, []string{"one"}) {
		t.Errorf("%d requests, usage %+v, keys for %v", used, c.Usage, keyed)
	}
	// An answer that did not fit is recovered from by the model that gave it.
	r.model.Rescript(faux.Say(long), faux.Fail(overflow), faux.Say("sum"), faux.Say("prefix"), faux.Say("fine"))
	r.prompt("three")
	if m := r.prompt("four"); m.StopReason != llm.StopStop || m.Model != "one" {
		t.Errorf("answer %+v", m)
	}
	if got := ends(r); len(got) != 2 || got[1].Compacted == nil || !got[1].WillRetry {
		t.Errorf("ends %+v", got)
	}
	r.paired()
}

// What it then says may fail as anything may, or its goroutine end: the harness
// is idle afterwards and has settled once.
func TestSteeredAtRestAndFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"fails": func() error { return errors.New("listener failed") },
		"leaves its goroutine": func() error {
			runtime.Goexit()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := spokenAtRest(t)
			r.on(agent.AgentStart, 2, func(harness.Event) error { return fail() })
			var prompt sync.WaitGroup
			prompt.Go(func() { _, _ = r.Prompt(context.Background(), "go") })
			prompt.Wait()
			if err := r.WaitForIdle(t.Context()); err != nil || r.Phase() != harness.PhaseIdle {
				t.Fatalf("%v, %s", err, r.Phase())
			}
			if n := r.count(harness.AgentSettled); n != 1 {
				t.Errorf("settled %d times", n)
			}
			if q := r.Queued(); len(q.FollowUp) != 1 {
				t.Errorf("waiting %+v", q)
			}
			if m := r.prompt("again"); m == nil {
				t.Error("no answer")
			}
		})
	}
}
