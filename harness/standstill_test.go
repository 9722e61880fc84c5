package harness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// stuckOn is a hook for events of a type that waits for its context, or for
// nothing at all until over is closed.
func stuckOn(t agent.EventType, over chan struct{}) harness.Hooks {
	return harness.Hooks{On: map[agent.EventType]harness.Listener{t: func(ctx context.Context, _ harness.Event) error {
		if over != nil {
			<-over
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}}
}

// No run is active any more when agent_settled is told, or none at all when a
// model is set. A hook that does not return then holds up nobody for good.
func TestHookThatHangsOutsideARun(t *testing.T) {
	soon := func(t *testing.T, what string, do func()) {
		t.Helper()
		begun := time.Now()
		if do(); time.Since(begun) > 60*time.Second {
			t.Errorf("%s took %v", what, time.Since(begun))
		}
	}
	for name, deaf := range map[string]bool{"until its context ends": false, "for ever": true} {
		t.Run("settled "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var over chan struct{}
				if deaf {
					over = make(chan struct{})
					defer close(over)
				}
				r := newRig(t, harness.Options{Hooks: []harness.Hooks{stuckOn(harness.AgentSettled, over)}}, faux.Say("a"))
				var prompt sync.WaitGroup
				prompt.Go(func() {
					if m, _ := r.Prompt(context.Background(), "go"); m == nil {
						t.Error("no answer")
					}
				})
				synctest.Wait()
				soon(t, "Close", func() {
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				})
				prompt.Wait()
				r.paired()
			})
		})
		t.Run("aborted and settled "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var over chan struct{}
				if deaf {
					over = make(chan struct{})
					defer close(over)
				}
				r := newRig(t, harness.Options{Hooks: []harness.Hooks{stuckOn(harness.AgentSettled, over)}}, faux.Hang(), faux.Say("a"))
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				soon(t, "the end of the prompt", func() {
					if _, err := r.Prompt(ctx, "go"); err != nil {
						t.Error(err)
					}
				})
				var prompt sync.WaitGroup
				prompt.Go(func() { _, _ = r.Prompt(context.Background(), "again") })
				synctest.Wait()
				soon(t, "an abort of what has settled", func() {
					r.Abort()
					prompt.Wait()
				})
				if n := r.count(harness.AgentSettled); n != 2 {
					t.Errorf("settled %d times", n)
				}
			})
		})
		t.Run("idle "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var over chan struct{}
				if deaf {
					over = make(chan struct{})
					defer close(over)
				}
				r := newRig(t, harness.Options{Hooks: []harness.Hooks{stuckOn(harness.ModelSelect, over)}}, faux.Say("a"))
				var set sync.WaitGroup
				set.Go(func() { _ = r.SetModel(r.model.Models()[1]) })
				synctest.Wait()
				set.Go(func() { _, _ = r.Prompt(context.Background(), "go") })
				synctest.Wait()
				soon(t, "the end of an aborted run", func() {
					r.Abort()
					if err := r.WaitForIdle(context.Background()); err != nil {
						t.Error(err)
					}
					set.Wait()
				})
				set.Go(func() { _ = r.SetModel(r.model.Models()[0]) })
				synctest.Wait()
				soon(t, "Close", func() {
					if err := r.Close(); err != nil {
						t.Error(err)
					}
					set.Wait()
				})
				r.paired()
			})
		})
	}
}

// A listener that fails at the beginning of a compaction ends it, and the others
// see the end.
func TestCompactionEndsWhenAListenerFails(t *testing.T) {
	long := strings.Repeat("word ", 50)
	fails := func(harness.Event) error { return errors.New("listener failed") }
	t.Run("manual", func(t *testing.T) {
		r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Say(long))
		r.prompt("one")
		r.prompt("two")
		r.on(harness.CompactionStart, 1, fails)
		if c, err := r.Compact(t.Context(), ""); kindOf(err) != harness.KindUnknown || c != nil {
			t.Error(c, err)
		}
		if got := ends(r); len(got) != 1 || !strings.Contains(got[0].ErrorMessage, "listener failed") {
			t.Errorf("ends %+v", got)
		}
	})
	t.Run("automatic", func(t *testing.T) {
		r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Fail(overflow))
		r.prompt("one")
		r.on(harness.CompactionStart, 1, fails)
		if _, err := r.Prompt(t.Context(), "two"); kindOf(err) != harness.KindUnknown {
			t.Error(err)
		}
		if got := ends(r); len(got) != 1 || got[0].Compacted != nil {
			t.Errorf("ends %+v", got)
		}
		if n := r.count(harness.AgentSettled); n != 2 {
			t.Errorf("settled %d times", n)
		}
	})
}

// A callback that panics while the context is compacted ends the prompt, not the
// process.
func TestCallbackPanicsInACompaction(t *testing.T) {
	long := strings.Repeat("word ", 50)
	compacts := false
	r := newRig(t, harness.Options{
		Compaction: keepLittle(),
		Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
			if compacts {
				panic("no key ring")
			}
			return harness.Credentials{}, nil
		},
	}, faux.Say(long), faux.Fail(overflow), faux.Say("fine"))
	r.prompt("one")
	r.on(harness.CompactionStart, 1, func(harness.Event) error { compacts = true; return nil })
	if _, err := r.Prompt(t.Context(), "two"); kindOf(err) != harness.KindUnknown {
		t.Error(err)
	}
	if got := ends(r); len(got) != 1 || !strings.Contains(got[0].ErrorMessage, "no key ring") {
		t.Errorf("ends %+v", got)
	}
	if n := r.count(harness.AgentSettled); n != 2 || !r.IsIdle() || r.Phase() != harness.PhaseIdle {
		t.Errorf("settled %d times, %s", n, r.Phase())
	}
	r.paired()
}

// What is said while the last hooks think is said in the same prompt.
func TestQueuedBeforeItSettles(t *testing.T) {
	var r *rig
	once := false
	r = newRig(t, harness.Options{Hooks: []harness.Hooks{{
		AgentBeforeSettle: func(context.Context, harness.Settling) (*harness.Drafts, error) {
			if once {
				return nil, nil
			}
			once = true
			return nil, r.Steer("more")
		},
	}}}, faux.Say("a"), faux.Say("b"))
	r.prompt("go")
	r.wantSaid("user:go assistant:a user:more assistant:b")
	if n := r.count(harness.AgentSettled); n != 1 {
		t.Errorf("settled %d times", n)
	}
	r.paired()
}

// Prompts that follow each other closely: one settles before the next begins.
func TestSettlesBeforeTheNextBegins(t *testing.T) {
	var script []faux.Response
	for range 200 {
		script = append(script, faux.Say("a"))
	}
	r := newRig(t, harness.Options{}, script...)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				_, err := r.Prompt(t.Context(), "go")
				for kindOf(err) == harness.KindBusy {
					_, err = r.Prompt(t.Context(), "go")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var order []agent.EventType
	for _, ev := range r.events {
		if ev.Type == agent.AgentStart || ev.Type == harness.AgentSettled {
			order = append(order, ev.Type)
		}
	}
	for pair := range slices.Chunk(order, 2) {
		if !slices.Equal(pair, []agent.EventType{agent.AgentStart, harness.AgentSettled}) {
			t.Fatalf("order %v", pair)
		}
	}
}

// A move whose label could not be written has moved, and says so.
func TestNavigateTellsOfAMoveWithoutItsLabel(t *testing.T) {
	store := &fullStore{Store: memory.New()}
	store.room.Store(-1)
	sess, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, harness.Options{Session: sess}, faux.Say("a"), faux.Say("b"))
	r.prompt("one")
	target := sess.LeafID()
	r.prompt("two")
	var moved []string
	r.SubscribeAll(func(_ context.Context, ev harness.Event) error {
		if ev.Type == harness.SessionTree {
			moved = append(moved, ev.NewLeaf)
		}
		return nil
	})
	store.room.Store(0)
	got, err := r.NavigateTree(t.Context(), target, harness.TreeOptions{Label: "here"})
	store.room.Store(-1)
	if kindOf(err) != harness.KindSession || got.Leaf != sess.LeafID() {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Leaf == target && !slices.Equal(moved, []string{target}) || got.Leaf != target && len(moved) > 0 {
		t.Errorf("the leaf is %s, told was %v", got.Leaf, moved)
	}
}

// A hook that asks for what would wait for it is refused, and hangs nothing.
func TestHookThatWaitsForItself(t *testing.T) {
	var r *rig
	var got []error
	r = newRig(t, harness.Options{Hooks: []harness.Hooks{{On: map[agent.EventType]harness.Listener{
		harness.AgentSettled: func(ctx context.Context, _ harness.Event) error {
			_, err1 := r.Prompt(ctx, "again")
			_, err2 := r.Continue(ctx)
			_, err3 := r.Compact(ctx, "")
			_, err4 := r.NavigateTree(ctx, "", harness.TreeOptions{})
			got = []error{err1, err2, err3, err4}
			return nil
		},
	}}}}, faux.Say("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := r.Prompt(ctx, "go"); err != nil || len(got) != 4 {
		t.Fatal(err, got)
	}
	for _, err := range got {
		if kindOf(err) != harness.KindInvalidState {
			t.Error(err)
		}
	}
	r.wantSaid("user:go assistant:a")
}

// Who moves in the tree need not wait for a hook that does not return.
func TestHookThatHangsAfterAMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, harness.Options{Hooks: []harness.Hooks{stuckOn(harness.SessionTree, nil)}}, faux.Say("a"), faux.Say("b"))
		r.prompt("one")
		target := r.Session().LeafID()
		r.prompt("two")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begun := time.Now()
		got, err := r.NavigateTree(ctx, target, harness.TreeOptions{})
		if err != nil || got.Leaf != target || time.Since(begun) > 60*time.Second {
			t.Errorf("%+v, %v after %v", got, err, time.Since(begun))
		}
	})
}
