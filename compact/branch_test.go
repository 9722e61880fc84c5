package compact_test

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

func rolesOf(messages []agent.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Role()))
	}
	return strings.Join(out, " ")
}

func TestLeft(t *testing.T) {
	s := sketch(t, "u a u a")
	old := s.Path()
	if err := s.Branch(old[1].ID); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, &session.MessageEntry{Message: llm.UserText("x", 1)})
	left, shared := compact.Left(old, s.Path())
	if len(left) != 2 || left[0] != old[2] || shared != old[1] {
		t.Errorf("%v, %v", left, shared)
	}
	if left, shared = compact.Left(old, nil); len(left) != 4 || shared != nil {
		t.Errorf("%v, %v", left, shared)
	}
	if left, shared = compact.Left(nil, old); len(left) != 0 || shared != nil {
		t.Errorf("%v, %v", left, shared)
	}
	if left, shared = compact.Left(old[:2], old); len(left) != 0 || shared != old[1] {
		t.Errorf("%v, %v", left, shared)
	}
}

func TestPrepareBranch(t *testing.T) {
	for _, c := range []struct {
		name   string
		words  string
		budget int64
		want   string
		tokens int64
	}{
		{"all", "u5 c5 r50 a5", 0, "user assistant assistant", 16},
		{"the newest", "u5 a5 u5 a5", 12, "user assistant", 10},
		{"exactly", "u5 a5", 10, "user assistant", 10},
		{"none", "u5 a50", 10, "", 0},
		{"a summary without words", "s0 u5", 0, "branchSummary user", 5},
		{"a summary squeezed in", "s50 u8", 9, "branchSummary user", 58},
		{"not at nine tenths", "s50 u9", 10, "user", 9},
		{"a compaction squeezed in", "k50 u8", 9, "compactionSummary user", 58},
		{"nothing before a summary that was squeezed in", "u1 s50 u8", 9, "branchSummary user", 58},
		{"taken out", "u5 a5 o u5", 0, "user user", 10},
		{"system prompts", "y5 u5", 0, "system user", 10},
		{"a compaction without its system prompt", "y5 u5 k5 u5", 0, "system user compactionSummary user", 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compact.PrepareBranch(sketch(t, c.words).Path(), c.budget)
			if got := rolesOf(p.Messages); got != c.want || p.Tokens != c.tokens {
				t.Errorf("got %q, %d tokens", got, p.Tokens)
			}
		})
	}
}

func TestBranchBudget(t *testing.T) {
	for _, c := range [][3]int64{{100000, 16384, 83616}, {0, 16384, 111616}, {16000, 16384, 8000}, {1, 1, 1}} {
		if got := compact.BranchBudget(c[0], c[1]); got != c[2] {
			t.Errorf("window %d, reserve %d: %d", c[0], c[1], got)
		}
	}
}

func TestRunBranch(t *testing.T) {
	model := faux.New(faux.Options{})
	r, err := compact.RunBranch(t.Context(), &compact.BranchPreparation{}, options(model))
	if err != nil || r.Summary != compact.NothingToSummarize() || r.Usage != nil || r.Entry().Details != nil {
		t.Errorf("%v, %v", r, err)
	}
	s := sketch(t, "u5 a5 u5 a5")
	p := compact.PrepareBranch(s.Path()[2:], 0)
	p.Files.Read = []string{"a.go"}
	model.Script(faux.Say("BODY"), faux.Say("OTHER"))
	if r, err = compact.RunBranch(t.Context(), p, options(model)); err != nil {
		t.Fatal(err)
	}
	if want := compact.BranchPreamble() + "BODY\n\n<read-files>\na.go\n</read-files>"; r.Summary != want {
		t.Errorf("summary %q", r.Summary)
	}
	e, err := s.BranchWithSummary(s.Path()[1].ID, r.Entry())
	if err != nil {
		t.Fatal(err)
	}
	if d := e.Data().(*session.BranchSummaryEntry); string(d.Details) != `{"readFiles":["a.go"],"modifiedFiles":[]}` || d.Usage == nil {
		t.Errorf("%s", e.Raw())
	}
	// Instructions may stand alone.
	o := options(model)
	o.Instructions, o.Replace = "One line only.", true
	if _, err = compact.RunBranch(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	if got := asked(model)[1]; !strings.HasSuffix(got, "</conversation>\n\nOne line only.") {
		t.Errorf("asked %s", got)
	}
}
