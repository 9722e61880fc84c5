package compact_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// sketch makes a session of a sketch: one word an entry. A letter tells what it
// is, a number behind it how many tokens it takes, 1 without one:
//
//	u user, a answer, c answer with a call (one token more), r result of the
//	last call, b bash, m custom message, s branch summary, y system, l label,
//	x custom entry, k compaction that keeps nothing, K one that keeps all,
//	o takes the last answer out of the context, e edits the last question to
//	one token
func sketch(t testing.TB, words string) *session.Session {
	t.Helper()
	s, err := memory.Open(session.Options{CWD: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	last := map[llm.Role]string{}
	for _, w := range strings.Fields(words) {
		text := strings.Repeat("x", 4*number(w[1:]))
		var data session.Data
		message := func(m agent.Message) { data = &session.MessageEntry{Message: m} }
		switch w[0] {
		case 'u':
			message(llm.UserText(text, 1))
		case 'a':
			message(&llm.Assistant{Content: []llm.Block{&llm.Text{Text: text}}, StopReason: llm.StopStop, Timestamp: 1})
		case 'c':
			message(&llm.Assistant{
				Content:    []llm.Block{&llm.Text{Text: text}, &llm.ToolCall{ID: "c", Name: "tt", Arguments: jsontext.Value("{}")}},
				StopReason: llm.StopToolUse, Timestamp: 1,
			})
		case 'r':
			message(&llm.ToolResult{ToolCallID: "c", ToolName: "tt", Content: []llm.Block{&llm.Text{Text: text}}, Timestamp: 1})
		case 'b':
			message(&session.BashExecution{Command: text, Timestamp: 1})
		case 'm':
			data = &session.CustomMessageEntry{CustomType: "n", Content: llm.Plain(text)}
		case 'y':
			message(&llm.System{Content: llm.Plain(text), Timestamp: 1})
		case 's':
			data = &session.BranchSummaryEntry{Summary: text, FromID: "x"}
		case 'x':
			data = &session.CustomEntry{CustomType: "n"}
		case 'k':
			data = &session.CompactionEntry{Summary: text, TokensBefore: 1}
		case 'K':
			data = &session.CompactionEntry{Summary: text, FirstKept: s.Path()[0].ID, TokensBefore: 1}
		case 'o':
			data = &session.ContextEditEntry{TargetID: last[llm.RoleAssistant]}
		case 'e':
			data = &session.ContextEditEntry{TargetID: last[llm.RoleUser], Replacement: new(llm.Plain("xxxx"))}
		case 'l':
			data = &session.LabelEntry{TargetID: s.LeafID(), Label: "here"}
		default:
			t.Fatalf("unknown word %q", w)
		}
		e, err := s.Append(data)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		last[e.Role()] = e.ID
	}
	return s
}

func number(s string) (n int) {
	if s == "" {
		return 1
	}
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

func TestCutPoint(t *testing.T) {
	for _, c := range []struct {
		name  string
		words string
		keep  int64
		want  compact.Cut
	}{
		{"nothing", "", 5, compact.Cut{TurnStart: -1}},
		{"all fits", "u5 a5", 11, compact.Cut{TurnStart: -1}},
		{"exactly a turn", "u5 a5 u5 a5", 10, compact.Cut{FirstKept: 2, TurnStart: -1}},
		{"one token less splits it", "u5 a5 u5 a5", 5, compact.Cut{FirstKept: 3, Split: true, TurnStart: 2}},
		{"a result stays with its call", "u5 c5 r50", 10, compact.Cut{FirstKept: 1, Split: true, TurnStart: 0}},
		{"a result over the budget goes", "u5 c5 r50 a5", 10, compact.Cut{FirstKept: 3, Split: true, TurnStart: 0}},
		{"a bash run begins a turn", "u5 a5 b5 a5", 10, compact.Cut{FirstKept: 2, TurnStart: -1}},
		{"metadata before the cut stays", "u5 a5 l x u5 a5", 10, compact.Cut{FirstKept: 2, Split: true, TurnStart: 0}},
		{"system prompts are no cut", "u5 a5 y5 a5", 6, compact.Cut{FirstKept: 3, Split: true, TurnStart: 0}},
		{"no turn start before", "a5 a5 a5", 5, compact.Cut{FirstKept: 2, TurnStart: -1}},
		{"a failed answer taken out", "u9 a9 u9 a9 o", 5, compact.Cut{FirstKept: 3, Split: true, TurnStart: 2}},
		{"also behind a label", "u9 a9 u9 a9 o l", 5, compact.Cut{FirstKept: 3, Split: true, TurnStart: 2}},
		{"not with something said after", "u9 a9 u9 a9 o a9", 5, compact.Cut{FirstKept: 3, Split: true, TurnStart: 2}},
		{"not when all fits", "u9 a9 o", 50, compact.Cut{TurnStart: -1}},
		{"not with an edit of what stands before", "u9 a9 u9 a9 o e", 1, compact.Cut{FirstKept: 2, TurnStart: -1}},
		{"nor with an older compaction", "u9 a9 u9 a9 K o K", 5, compact.Cut{FirstKept: 2, TurnStart: -1}},
		{"metadata back to an older compaction", "u5 a5 K x u5 a5 K", 10, compact.Cut{FirstKept: 3, Split: true, TurnStart: 0}},
		{"an older compaction weighs nothing", "u5 a5 K90 u5 a5 K", 12, compact.Cut{FirstKept: 1, Split: true, TurnStart: 0}},
		{"an edit counts as it is", "u90 e a9", 10, compact.Cut{TurnStart: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := session.Project(sketch(t, c.words).Path())
			if len(entries) > 0 && entries[0].Entry.Type == session.TypeCompaction {
				entries = entries[1:]
			}
			if got := compact.CutPoint(entries, c.keep); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func limits(keep int64) compact.Limits {
	return compact.Settings{KeepRecentTokens: &keep}.For(nil)
}
