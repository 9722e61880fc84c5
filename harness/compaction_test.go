package harness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

// keepLittle keeps a few words of a conversation, so that short ones have
// something to sum up.
func keepLittle() compact.Settings {
	return compact.Settings{KeepRecentTokens: new(int64(2)), ReserveTokens: new(int64(10))}
}

const overflow = "prompt is too long: context_length_exceeded"

func ends(r *rig) (out []harness.Event) {
	for _, ev := range r.events {
		if ev.Type == harness.CompactionEnd {
			out = append(out, ev)
		}
	}
	return out
}

func TestOverflowStorm(t *testing.T) {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle()},
		faux.Say(long), faux.Fail(overflow), faux.Say("sum"), faux.Fail(overflow))
	r.prompt("one")
	m := r.prompt("two")
	if m == nil || m.ErrorMessage != overflow {
		t.Errorf("answer %+v", m)
	}
	got := ends(r)
	if len(got) != 2 || got[0].ErrorMessage != "" || !got[0].WillRetry ||
		!strings.Contains(got[1].ErrorMessage, "larger context window") || got[1].WillRetry {
		t.Fatalf("ends %+v", got)
	}
	r.model.Rescript(faux.Say("fine"))
	if m, err := r.Prompt(t.Context(), "three"); err != nil || m.ErrorMessage != "" {
		t.Error(m, err)
	}
}

func TestSummaryFails(t *testing.T) {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Say(long), faux.Fail("invalid api key"))
	r.prompt("one")
	r.prompt("two")
	before := len(r.Session().Entries())
	_, err := r.Compact(t.Context(), "")
	if kindOf(err) != harness.KindCompaction || !errors.Is(err, &compact.Error{Kind: compact.Failed}) {
		t.Errorf("%v", err)
	}
	if got := ends(r); len(got) != 1 || got[0].ErrorMessage != "Compaction failed: Summarization failed: invalid api key" || got[0].Aborted {
		t.Errorf("ends %+v", got)
	}
	if n := len(r.Session().Entries()); n != before {
		t.Errorf("%d entries, want %d", n, before)
	}
	r.model.Rescript(faux.Say("sum"), faux.Say("prefix"), faux.Say(long), faux.Say("sum"), faux.Say("prefix"))
	if c, err := r.Compact(t.Context(), "mind the names"); err != nil || c.FromHook || c.Summary == "" {
		t.Fatal(c, err)
	}
	if _, err := r.Compact(t.Context(), ""); !errors.Is(err, &compact.Error{Kind: compact.AlreadyCompacted}) {
		t.Error(err)
	}
	if tokens, known := r.ContextUsage(); known {
		t.Errorf("the context is known to take %d", tokens)
	}
}

// TestExplain: the words for a failed summary say which one, where a model
// answered at all.
func TestExplain(t *testing.T) {
	cause := errors.New("overloaded")
	for want, err := range map[string]error{
		"Summarization failed: overloaded":             &compact.Error{Kind: compact.Failed, Op: "compact", Part: compact.Update, Err: cause},
		"Turn prefix summarization failed: overloaded": &compact.Error{Kind: compact.Failed, Op: "compact", Part: compact.TurnPrefix, Err: cause},
		"Branch summarization failed: overloaded":      &harness.Error{Kind: harness.KindBranchSummary, Op: "navigate", Err: &compact.Error{Kind: compact.Failed, Part: compact.Branch, Err: cause}},
		"Summarization failed: the model wrote no summary (try again)": &compact.Error{
			Kind: compact.EmptySummary, Op: "compact", Part: compact.Initial, Advice: "try again"},
		"overloaded":                             &compact.Error{Kind: compact.Failed, Op: "compact", Err: cause},
		"Nothing to compact (session too small)": &compact.Error{Kind: compact.NothingToCompact, Op: "compact"},
		"Already compacted":                      &compact.Error{Kind: compact.AlreadyCompacted, Op: "compact"},
		"Compaction cancelled":                   &harness.Error{Kind: harness.KindCompaction, Op: "compact", Err: &compact.Error{Kind: compact.Aborted, Op: "compact", Err: context.Canceled}},
		"Compaction cancelled: a hook refused":   &compact.Error{Kind: compact.Aborted, Op: "compact", Err: errors.New("a hook refused")},
	} {
		if got := harness.Explain(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCompactionAborted(t *testing.T) {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Say(long), faux.Hang())
	r.prompt("one")
	r.prompt("two")
	r.on(harness.CompactionStart, 1, func(harness.Event) error { r.Abort(); return nil })
	_, err := r.Compact(t.Context(), "")
	if kindOf(err) != harness.KindCompaction || !errors.Is(err, &compact.Error{Kind: compact.Aborted}) {
		t.Errorf("%v", err)
	}
	if got := ends(r); len(got) != 1 || !got[0].Aborted || got[0].ErrorMessage != "" {
		t.Errorf("ends %+v", got)
	}
	if !r.IsIdle() {
		t.Error("not idle")
	}
}

func TestCompactionHooks(t *testing.T) {
	long := strings.Repeat("word ", 50)
	decision := &harness.CompactDecision{Cancel: true}
	var told []agent.EventType
	note := func(_ context.Context, ev harness.Event) error { told = append(told, ev.Type); return nil }
	r := newRig(t, harness.Options{Compaction: keepLittle(), Hooks: []harness.Hooks{{
		SessionBeforeCompact: func(context.Context, harness.Compacting) (*harness.CompactDecision, error) { return decision, nil },
		On:                   map[agent.EventType]harness.Listener{harness.SessionCompact: note, harness.SessionCompactFailed: note},
	}}}, faux.Say(long), faux.Say(long))
	r.prompt("one")
	r.prompt("two")
	if _, err := r.Compact(t.Context(), ""); !errors.Is(err, &compact.Error{Kind: compact.Aborted}) {
		t.Error(err)
	}
	decision = &harness.CompactDecision{Compaction: &session.CompactionEntry{Summary: "by hand", FirstKept: "nowhere"}}
	if _, err := r.Compact(t.Context(), ""); kindOf(err) != harness.KindHook {
		t.Error(err)
	}
	decision.Compaction.FirstKept = r.Session().LeafID()
	if c, err := r.Compact(t.Context(), ""); err != nil || !c.FromHook || c.Summary != "by hand" {
		t.Error(c, err)
	}
	if want := []agent.EventType{harness.SessionCompactFailed, harness.SessionCompactFailed, harness.SessionCompact}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestNavigateTree(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"), faux.Say("b"), faux.Fail("invalid api key"))
	r.prompt("one")
	first := r.Session().LeafID()
	r.prompt("two")
	leaf := r.Session().LeafID()
	if _, err := r.NavigateTree(t.Context(), "nowhere", harness.TreeOptions{}); kindOf(err) != harness.KindInvalidArgument {
		t.Error(err)
	}
	if _, err := r.NavigateTree(t.Context(), first, harness.TreeOptions{Summarize: true}); kindOf(err) != harness.KindBranchSummary {
		t.Error(err)
	}
	if got := r.Session().LeafID(); got != leaf {
		t.Errorf("the leaf moved to %s", got)
	}
	r.model.Rescript(faux.Hang())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := r.NavigateTree(ctx, first, harness.TreeOptions{Summarize: true}); err != nil || !n.Cancelled || !n.Aborted || n.Leaf != leaf {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := r.NavigateTree(t.Context(), first, harness.TreeOptions{}); err != nil || n.Cancelled || n.Leaf != first {
		t.Errorf("%+v, %v", n, err)
	}
	r.wantSaid("user:one assistant:a")
}

// The tools that were in force at a place are so again.
func TestNavigateTreeRestoresTools(t *testing.T) {
	nothing := func(context.Context) (string, error) { return "", nil }
	tools := []*agent.Tool{toolOf("a", nothing), toolOf("b", nothing)}
	for _, c := range []struct {
		prompt harness.PromptKind
		want   string
	}{{harness.RecordedPrompt, "b"}, {harness.FixedPrompt, "a"}} {
		r := newRig(t, harness.Options{Tools: tools, ActiveTools: []string{"b"}, Prompt: c.prompt}, faux.Say("x"), faux.Say("y"))
		r.prompt("one")
		first := r.Session().LeafID()
		if err := r.SetActiveTools("a"); err != nil {
			t.Fatal(err)
		}
		r.prompt("two")
		if _, err := r.NavigateTree(t.Context(), first, harness.TreeOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := r.Tools(); len(got) != 1 || got[0].Name != c.want {
			t.Errorf("%s: %v", c.prompt, got)
		}
	}
}

func TestAutoCompactionAborted(t *testing.T) {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle()}, faux.Say(long), faux.Fail(overflow), faux.Hang())
	r.prompt("one")
	r.on(harness.CompactionStart, 1, func(harness.Event) error {
		if p := r.Phase(); p != harness.PhaseCompaction {
			t.Errorf("phase %s", p)
		}
		r.Abort()
		return nil
	})
	if _, err := r.Prompt(t.Context(), "two"); err != nil {
		t.Error(err)
	}
	if got := ends(r); len(got) != 1 || !got[0].Aborted || got[0].WillRetry {
		t.Errorf("ends %+v", got)
	}
	if last := r.events[len(r.events)-1]; last.Type != harness.AgentSettled || !last.Aborted {
		t.Errorf("last %+v", last)
	}
}

func TestRecoveryDeliversWhatIsQueued(t *testing.T) {
	long := strings.Repeat("word ", 50)
	r := newRig(t, harness.Options{Compaction: keepLittle()},
		faux.Say(long), faux.Fail(overflow), faux.Say("sum"), faux.Say("recovered"), faux.Say("queued"))
	r.prompt("one")
	r.on(harness.CompactionStart, 1, func(harness.Event) error { return r.FollowUp("more") })
	r.prompt("two")
	if all := said(r.Messages()); !strings.Contains(all, "user:more assistant:queued") {
		t.Error(all)
	}
}
