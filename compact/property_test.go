package compact_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// grow appends what a conversation may hold, in an order that it may have: the
// results of an answer's calls come right behind it.
func grow(t *rapid.T, s *session.Session) {
	add := func(data session.Data) *session.Entry {
		e, err := s.Append(data)
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		return e
	}
	text := func() string { return strings.Repeat("x", rapid.IntRange(0, 200).Draw(t, "length")) }
	var calls int
	metadata := func() {
		switch rapid.IntRange(0, 6).Draw(t, "metadata") {
		case 0:
			add(&session.CustomEntry{CustomType: "n"})
		case 1:
			add(&session.ThinkingLevelEntry{Level: llm.LevelLow})
		case 2:
			add(&session.MessageEntry{Message: &llm.System{Content: llm.Plain(text()), Timestamp: 1}})
		}
	}
	for range rapid.IntRange(0, 25).Draw(t, "entries") {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			add(&session.MessageEntry{Message: llm.UserText(text(), 1)})
		case 2, 3, 4:
			m := &llm.Assistant{Content: []llm.Block{&llm.Text{Text: text()}}, StopReason: llm.StopStop, Timestamp: 1}
			n := rapid.IntRange(0, 3).Draw(t, "calls")
			for range n {
				calls++
				m.Content = append(m.Content, &llm.ToolCall{
					ID: fmt.Sprint("c", calls), Name: "read", Arguments: jsontext.Value(fmt.Sprintf(`{"path":"f%d"}`, calls)),
				})
			}
			m.Usage.Input = rapid.SampledFrom([]int64{0, 0, 500}).Draw(t, "usage")
			add(&session.MessageEntry{Message: m})
			for i := range n {
				metadata()
				add(&session.MessageEntry{Message: &llm.ToolResult{
					ToolCallID: fmt.Sprint("c", calls-n+1+i), ToolName: "read", Content: []llm.Block{&llm.Text{Text: text()}}, Timestamp: 1,
				}})
			}
		case 5:
			add(&session.MessageEntry{Message: &session.BashExecution{Command: text(), Timestamp: 1}})
		case 6:
			add(&session.BranchSummaryEntry{Summary: text(), FromID: "x"})
		case 7:
			metadata()
		case 8:
			edit(t, s, add)
		case 9:
			p, err := compact.Prepare(s.Path(), drawLimits(t))
			if err == nil {
				add(&session.CompactionEntry{Summary: text(), FirstKept: p.FirstKept})
			}
		}
	}
}

// edit changes a message, or takes it out: answers together with their results,
// as the rules of this module's harness do.
func edit(t *rapid.T, s *session.Session, add func(session.Data) *session.Entry) {
	path := s.Path()
	if len(path) == 0 {
		return
	}
	i := rapid.IntRange(0, len(path)-1).Draw(t, "target")
	switch path[i].Role() {
	case llm.RoleUser:
		add(&session.ContextEditEntry{TargetID: path[i].ID, Replacement: new(llm.Plain("short"))})
	case llm.RoleAssistant:
		m := path[i].Message().(*llm.Assistant)
		add(&session.ContextEditEntry{TargetID: path[i].ID})
		for _, e := range path[i:] {
			if r, ok := e.Message().(*llm.ToolResult); ok && slices.ContainsFunc(m.ToolCalls(), func(c *llm.ToolCall) bool { return c.ID == r.ToolCallID }) {
				add(&session.ContextEditEntry{TargetID: e.ID})
			}
		}
	}
}

func drawLimits(t *rapid.T) compact.Limits {
	return limits(rapid.Int64Range(0, 300).Draw(t, "keep"))
}

// said is the context without system prompts and the summary at its head.
func said(messages []agent.Message) []agent.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m agent.Message) bool {
		return m.Role() == llm.RoleSystem || m.Role() == session.RoleCompactionSummary
	})
}

func TestPreparationProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := memory.Open(session.Options{CWD: "/srv/demo"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		grow(t, s)
		path, l := s.Path(), drawLimits(t)
		p, err := compact.Prepare(path, l)
		again, err2 := compact.Prepare(path, l)
		if !reflect.DeepEqual(p, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("a second preparation differs: %+v, %+v", p, again)
		}
		before := session.ContextOf(path).Messages
		if err != nil {
			if p != nil {
				t.Fatal("a preparation and an error")
			}
			return
		}
		summed := slices.Concat(p.History, p.TurnPrefix)
		all := said(before)
		if len(summed) > len(all) || !slices.Equal(summed, all[:len(summed)]) {
			t.Fatal("what is summed up is not the beginning of the context")
		}
		tail := all[len(summed):]
		checkPairs(t, summed, tail)
		checkSize(t, tail, l.KeepRecentTokens)
		if p.SplitTurn != (len(p.TurnPrefix) > 0) {
			t.Fatalf("split %v with a beginning of %d messages", p.SplitTurn, len(p.TurnPrefix))
		}

		// The compaction leaves a summary and the tail.
		model := faux.New(faux.Options{})
		model.Script(faux.Say("ONE"), faux.Say("TWO"))
		result, err := compact.Run(t.Context(), p, compact.Options{Model: model.Model(), Stream: model.Stream})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(result.Entry()); err != nil {
			t.Fatal(err)
		}
		after := s.Context().Messages
		if !slices.Equal(said(after), tail) {
			t.Fatalf("%d messages stay, want %d", len(said(after)), len(tail))
		}
		if i := slices.IndexFunc(after, func(m agent.Message) bool { return m.Role() != llm.RoleSystem }); i < 0 || after[i].Role() != session.RoleCompactionSummary {
			t.Fatal("no summary stands at the head")
		}
	})
}

// checkPairs refuses a result that is kept without its call, and the reverse.
func checkPairs(t *rapid.T, summed, tail []agent.Message) {
	side := map[string]bool{}
	for _, m := range summed {
		if a, ok := m.(*llm.Assistant); ok {
			for _, c := range a.ToolCalls() {
				side[c.ID] = false
			}
		}
	}
	for _, m := range tail {
		switch m := m.(type) {
		case *llm.Assistant:
			for _, c := range m.ToolCalls() {
				side[c.ID] = true
			}
		case *llm.ToolResult:
			if kept, ok := side[m.ToolCallID]; !ok || !kept {
				t.Fatalf("the result of %s is kept without its call", m.ToolCallID)
			}
		}
	}
	for _, m := range summed {
		if r, ok := m.(*llm.ToolResult); ok && side[r.ToolCallID] {
			t.Fatalf("the call %s is kept without its result", r.ToolCallID)
		}
	}
}

// checkSize refuses a tail that could have begun later: at any later message at
// which it may begin it is smaller than what is to be kept.
func checkSize(t *rapid.T, tail []agent.Message, keep int64) {
	var sum int64
	for i := len(tail) - 1; i > 0; i-- {
		sum += session.Tokens(tail[i])
		if tail[i].Role() != llm.RoleToolResult && sum > 0 && sum >= keep {
			t.Fatalf("%d tokens of %d messages would do, %d are to be kept", sum, len(tail)-i, keep)
		}
	}
}

// Compacting over and over, with nothing said in between, comes to an end: each
// time less of the conversation stays, until there is nothing to compact.
func TestRepeatedCompactionEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := memory.Open(session.Options{CWD: "/srv/demo"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		grow(t, s)
		l := drawLimits(t)
		most := len(said(s.Context().Messages))
		for round := 0; ; round++ {
			p, err := compact.Prepare(s.Path(), l)
			if err != nil {
				if !errors.Is(err, &compact.Error{Kind: compact.NothingToCompact}) && !errors.Is(err, &compact.Error{Kind: compact.AlreadyCompacted}) {
					t.Fatal(err)
				}
				if errors.Is(err, &compact.Error{Kind: compact.NothingToCompact}) {
					return
				}
			} else {
				before := said(s.Context().Messages)
				model := faux.New(faux.Options{})
				model.Script(faux.Say("ONE"), faux.Say("TWO"))
				result, err := compact.Run(t.Context(), p, compact.Options{Model: model.Model(), Stream: model.Stream})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Append(result.Entry()); err != nil {
					t.Fatal(err)
				}
				after := said(s.Context().Messages)
				if len(after) >= len(before) {
					t.Fatalf("round %d: %d messages stay of %d", round, len(after), len(before))
				}
				checkPairs(t, before[:len(before)-len(after)], after)
			}
			if round > 2*most+1 {
				t.Fatalf("no end after %d rounds", round)
			}
			// Something that is no message, so that the compaction is not the leaf.
			if _, err := s.Append(&session.CustomEntry{CustomType: "n"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Results are cut as far as asked for and no further, calls and results stay
// together, and all that a cut result says stood in it, but for the note.
func TestShortenResultsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := memory.Open(session.Options{CWD: "/srv/demo"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		grow(t, s)
		n := rapid.IntRange(1, 8).Draw(t, "results")
		m := &llm.Assistant{StopReason: llm.StopToolUse, Timestamp: 1}
		for i := range n {
			m.Content = append(m.Content, &llm.ToolCall{ID: fmt.Sprint("r", i), Name: "read", Arguments: jsontext.Value(`{}`)})
		}
		if _, err := s.AppendMessage(m); err != nil {
			t.Fatal(err)
		}
		whole := map[string]string{}
		for i := range n {
			text := strings.Repeat(rapid.SampledFrom([]string{"x", "é", "🙈", "line\n"}).Draw(t, "text"), rapid.IntRange(0, 9000).Draw(t, "length"))
			whole[fmt.Sprint("r", i)] = text
			r := &llm.ToolResult{ToolCallID: fmt.Sprint("r", i), ToolName: "read", Content: []llm.Block{&llm.Text{Text: text}}, Timestamp: 1}
			if _, err := s.AppendMessage(r); err != nil {
				t.Fatal(err)
			}
		}
		size := func() (total, floor int64) {
			for _, m := range s.Context().Messages {
				n := session.Tokens(m)
				if total += n; m.Role() == llm.RoleToolResult {
					n = min(n, 500)
				}
				floor += n
			}
			return total, floor
		}
		before, floor := size()
		excess := rapid.Int64Range(-100, before).Draw(t, "excess")
		edits := compact.ShortenResults(s.Path(), excess)
		for _, e := range edits {
			if _, err := s.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		after, _ := size()
		switch {
		case excess <= 0 && len(edits) > 0:
			t.Fatalf("%d edits for nothing", len(edits))
		case after > max(before-excess, floor)+int64(n):
			t.Fatalf("%d tokens, %d are to go, %d stay", before, excess, after)
		case len(edits) > 0 && after < before-excess-int64(n)*50 && after < floor-int64(n)*50:
			t.Fatalf("%d tokens, %d are to go, only %d stay", before, excess, after)
		}
		for _, m := range s.Context().Messages {
			r, ok := m.(*llm.ToolResult)
			if !ok || whole[r.ToolCallID] == "" || llm.TextOf(r.Content, "") == whole[r.ToolCallID] {
				continue
			}
			parts := strings.Split(llm.TextOf(r.Content, ""), "\n\n")
			head, tail := parts[0], parts[len(parts)-1]
			if text := whole[r.ToolCallID]; len(parts) != 3 || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) ||
				!utf8.ValidString(head) || !utf8.ValidString(tail) || !strings.Contains(parts[1], "characters of this result are left out") {
				t.Fatalf("shows %q", parts)
			}
		}
	})
}
