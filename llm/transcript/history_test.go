package transcript

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/llm"
)

var target = &llm.Model{ID: "m", API: "x", Provider: "p", Input: []string{"text", "image"}}

func user(text string) *llm.User { return llm.UserText(text, 1) }

func asks(ids ...string) *llm.Assistant {
	m := &llm.Assistant{API: "x", Provider: "p", Model: "m", StopReason: llm.StopToolUse, Timestamp: 2}
	for _, id := range ids {
		m.Content = append(m.Content, &llm.ToolCall{ID: id, Name: "t", Arguments: jsontext.Value("{}")})
	}
	return m
}

func foreign(m *llm.Assistant) *llm.Assistant {
	m.Provider = "other"
	return m
}

func failing(m *llm.Assistant) *llm.Assistant {
	m.StopReason = llm.StopError
	return m
}

func answers(id, text string) *llm.ToolResult {
	return &llm.ToolResult{ToolCallID: id, ToolName: "t", Content: []llm.Block{&llm.Text{Text: text}}, Timestamp: 3}
}

func system(text string) *llm.System { return &llm.System{Content: llm.Plain(text), Timestamp: 4} }

// outline shows a transcript as a line: u:text, a(ids), r:id=text, s:text.
func outline(list []llm.Message) string {
	var out []string
	for _, m := range list {
		switch m := m.(type) {
		case *llm.System:
			out = append(out, "s:"+m.Content.Text)
		case *llm.User:
			out = append(out, "u:"+m.Content.Text+llm.TextOf(m.Content.Blocks, "+"))
		case *llm.Assistant:
			var parts []string
			for _, b := range m.Content {
				switch b := b.(type) {
				case *llm.ToolCall:
					parts = append(parts, b.ID)
				case *llm.Text:
					parts = append(parts, b.Text)
				case *llm.Thinking:
					parts = append(parts, "?"+b.Thinking)
				}
			}
			out = append(out, "a("+strings.Join(parts, ",")+")")
		case *llm.ToolResult:
			text := llm.TextOf(m.Content, "+")
			if text == "No result provided" {
				text = "!"
			}
			out = append(out, "r:"+m.ToolCallID+"="+text)
		}
	}
	return strings.Join(out, " ")
}

func TestBuildPairsCallsAndResults(t *testing.T) {
	thinking := asks()
	sig := "sig"
	thinking.Content = []llm.Block{&llm.Thinking{Thinking: "why", Signature: &sig}, &llm.Text{Text: "so", Signature: &sig}, &llm.UnknownBlock{Type: "audio"}}
	blank := asks()
	blank.Content = []llm.Block{&llm.Thinking{Thinking: " \u2003\n\xed\xa0\xbd"}, &llm.Thinking{Thinking: "\xed\xa0\xbdw"},
		&llm.Thinking{Thinking: "s\xed\xa0\xbd", Signature: new("sig")}, &llm.Text{Text: "x\xed\xa0\xbdy"}}
	for _, c := range []struct {
		name  string
		given []llm.Message
		want  string
	}{
		{"complete", []llm.Message{user("q"), asks("a", "b"), answers("a", "1"), answers("b", "2")}, "u:q a(a,b) r:a=1 r:b=2"},
		{"results stay in the order they came", []llm.Message{asks("a", "b"), answers("b", "2"), answers("a", "1")}, "a(a,b) r:b=2 r:a=1"},
		{"missing at the end", []llm.Message{asks("a", "b"), answers("b", "2")}, "a(a,b) r:b=2 r:a=!"},
		{"missing before a user", []llm.Message{asks("a"), user("q")}, "a(a) r:a=! u:q"},
		{"missing before an answer", []llm.Message{asks("a"), asks("b"), answers("b", "2")}, "a(a) r:a=! a(b) r:b=2"},
		{"late", []llm.Message{asks("a"), user("q"), answers("a", "1")}, "a(a) r:a=1 u:q"},
		{"orphan", []llm.Message{answers("a", "1"), user("q"), answers("b", "1")}, "u:q"},
		{"doubled", []llm.Message{asks("a"), answers("a", "1"), answers("a", "2")}, "a(a) r:a=1"},
		{"doubled, late", []llm.Message{asks("a"), user("q"), answers("a", "1"), answers("a", "2")}, "a(a) r:a=1 u:q"},
		{"failed answer", []llm.Message{user("q"), failing(asks("a")), answers("a", "1"), user("r")}, "u:q u:r"},
		{"failed answer closes calls", []llm.Message{asks("a"), failing(asks("b")), answers("b", "1"), user("r")}, "a(a) r:a=! u:r"},
		{"a failed answer's id hides an earlier one", []llm.Message{asks("a"), failing(asks("a")), answers("a", "1")}, "a(a) r:a=!"},
		{"id used twice", []llm.Message{asks("a"), answers("a", "1"), asks("a"), answers("a", "2")}, "a(a) r:a=1 a(a_2) r:a_2=2"},
		{"id used thrice", []llm.Message{asks("a", "a"), answers("a", "1"), answers("a", "2"), asks("a")}, "a(a,a_2) r:a=1 r:a_2=2 a(a_3) r:a_3=!"},
		{"variant is taken", []llm.Message{asks("a", "a_2", "a")}, "a(a,a_2,a_3) r:a=! r:a_2=! r:a_3=!"},
		{"no id", []llm.Message{asks("", ""), answers("", "1")}, "a(call_2,call_3) r:call_2=1 r:call_3=!"},
		{"two-part id", []llm.Message{asks("c|f", "c|f")}, "a(c|f,c_2|f) r:c|f=! r:c_2|f=!"},
		{"foreign ids", []llm.Message{foreign(asks("a", "B", "b")), answers("b", "1"), answers("a", "2")}, "a(A,B,B_2) r:B_2=1 r:A=2 r:B=!"},
		{"system message waits", []llm.Message{asks("a"), system("n"), answers("a", "1"), user("q")}, "a(a) r:a=1 s:n u:q"},
		{"system message waits till the end", []llm.Message{asks("a"), system("n")}, "a(a) r:a=! s:n"},
		{"leading system message", []llm.Message{system("n"), user("q"), system("o")}, "s:n u:q s:o"},
		{"own reasoning", []llm.Message{thinking}, "a(?why,so)"},
		{"foreign reasoning", []llm.Message{foreign(thinking.Snapshot())}, "a(so)"},
		{"blank reasoning and surrogates", []llm.Message{blank}, "a(?w,?s,xy)"},
		{"nothing", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := &Rules{Model: target, SystemInPlace: true, NormalizeID: func(id string, _ *llm.Assistant) string { return strings.ToUpper(id) }}
			before := fmt.Sprint(appendAll(c.given))
			if got := outline(Build(c.given, rules)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if fmt.Sprint(appendAll(c.given)) != before {
				t.Error("Build changed a message")
			}
		})
	}
}

func appendAll(list []llm.Message) string {
	var b []byte
	for _, m := range list {
		b = m.AppendJSON(b)
	}
	return string(b)
}

func TestBuildDropsWhatTheTargetCannotTake(t *testing.T) {
	sig := "s"
	m := foreign(asks("a"))
	m.Content[0].(*llm.ToolCall).ThoughtSignature = &sig
	m.Content = append(m.Content, &llm.Text{Text: "t", Signature: &sig})
	out := Build([]llm.Message{m}, &Rules{Model: target})[0].(*llm.Assistant)
	if c := out.Content[0].(*llm.ToolCall); c.ThoughtSignature != nil {
		t.Error("a foreign call keeps its signature")
	}
	if x := out.Content[1].(*llm.Text); x.Signature != nil {
		t.Error("a foreign text keeps its signature")
	}

	nameless := asks("a")
	nameless.Content[0].(*llm.ToolCall).Name = ""
	res := answers("a", "1")
	res.ToolName = ""
	list := Build([]llm.Message{nameless, res}, &Rules{Model: target})
	if got := list[0].(*llm.Assistant).ToolCalls()[0].Name; got == "" || got != list[1].(*llm.ToolResult).ToolName {
		t.Errorf("call %q, result %q", got, list[1].(*llm.ToolResult).ToolName)
	}

	odd := asks("a")
	odd.Content[0].(*llm.ToolCall).Name = "my tool"
	list = Build([]llm.Message{odd}, &Rules{Model: target, NormalizeName: func(s string) string { return strings.ReplaceAll(s, " ", "_") }})
	if got := list[1].(*llm.ToolResult).ToolName; got != "my_tool" {
		t.Errorf("result of %q", got)
	}

	list = Build([]llm.Message{asks("A", "b"), answers("b", "1")}, &Rules{Model: target,
		NormalizeID: func(id string, _ *llm.Assistant) string { return strings.ToUpper(id) },
		LegalID:     func(id string) bool { return id == strings.ToUpper(id) }})
	if got := outline(list); got != "a(A,B) r:B=1 r:A=!" {
		t.Error(got)
	}

	img := &llm.Image{Data: "A", MimeType: "image/png"}
	blind := &llm.Model{Input: []string{"text"}}
	list = Build([]llm.Message{&llm.User{Content: llm.Blocks(img, img, &llm.Text{Text: userImageOmitted}, img)}}, &Rules{Model: blind})
	if got := outline(list); got != "u:"+userImageOmitted+"+"+userImageOmitted {
		t.Error(got)
	}
}

func TestVariantIDs(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"a", "a_2"}, {"", "call_2"}, {"a|b", "a_2|b"},
		{strings.Repeat("x", 70), strings.Repeat("x", 62) + "_2"},
		{strings.Repeat("é", 40), strings.Repeat("é", 31) + "_2"},
	} {
		if got := variantID(c.id, 2); got != c.want {
			t.Errorf("variantID(%q) = %q, want %q", c.id, got, c.want)
		}
	}
}

// counted is a Wire slot that knows how often it was filled.
type counted struct{ json string }

func fill(tr *Transcript[counted]) (encoded int) {
	for i := range tr.Items {
		if it := &tr.Items[i]; it.Wire.json == "" {
			it.Wire.json = string(it.Message.AppendJSON(nil)) + fmt.Sprint(it.ToolsFolded)
			encoded++
		}
	}
	return encoded
}

func TestHistoryEncodesOnlyWhatIsNew(t *testing.T) {
	memo := &llm.Memo{}
	rules := &Rules{Model: target}
	build := func(list []llm.Message) int {
		tr := HistoryOf[counted](memo, "k").Build(list, rules)
		defer tr.Done()
		return fill(tr)
	}
	fold := func(list ...llm.Message) []llm.Message {
		return llm.Fold("prompt", []llm.Tool{{Name: "t", Parameters: jsontext.Value(`{"type":"object"}`)}}, list)
	}
	list := []llm.Message{user("q"), asks("a"), answers("a", "1"), asks("b")}
	for _, c := range []struct {
		name string
		list []llm.Message
		want int
	}{
		{"all at first", fold(list...), 5},
		{"the result of the last call", fold(append(list[:4:4], answers("b", "2"))...), 1},
		{"nothing", fold(append(list[:4:4], answers("b", "2"))...), 0},
		{"copies of the same content", fold(user("q"), asks("a"), answers("a", "1"), asks("b"), answers("b", "2")), 0},
		{"an edit in the middle", fold(list[0], asks("a"), answers("a", "other"), asks("b"), answers("b", "2")), 4},
		{"a shorter branch", fold(list[0]), 0},
		{"the next message", fold(list[0], user("r")), 1},
		{"another start", fold(user("z"), user("r")), 2},
	} {
		if got := build(c.list); got != c.want {
			t.Errorf("%s: encoded %d messages, want %d", c.name, got, c.want)
		}
	}
}

func TestHistoryKeepsTheHead(t *testing.T) {
	var h History[counted]
	rules := &Rules{Model: target, SystemInPlace: true, Tools: ToolAdditions}
	tool := func(name string) llm.Tool { return llm.Tool{Name: name} }
	list := []llm.Message{&llm.System{ToolsAdded: []llm.Tool{tool("a")}}, user("q")}
	step := func(wantHead bool, wantNew int, wantTools string, m ...llm.Message) {
		t.Helper()
		list = append(list, m...)
		tr := h.Build(list, rules)
		defer tr.Done()
		if kept := tr.Head.json != ""; kept != wantHead {
			t.Errorf("head kept: %v", kept)
		}
		tr.Head.json = "x"
		if n := fill(tr); n != wantNew {
			t.Errorf("encoded %d items, want %d", n, wantNew)
		}
		var names []string
		for _, x := range tr.Tools {
			names = append(names, x.Name)
		}
		if got := strings.Join(names, ","); got != wantTools {
			t.Errorf("tools %s, want %s", got, wantTools)
		}
	}
	step(false, 1, "a")
	step(true, 1, "a", user("r"))
	step(false, 1, "a", &llm.System{ToolsAdded: []llm.Tool{tool("b")}})
	// The removal folds the addition before it, whose item changes with it.
	step(false, 2, "b", &llm.System{ToolsRemoved: []string{"a"}})
	step(true, 0, "b")
}

func TestHistoryServesOverlappingRequests(t *testing.T) {
	var h History[counted]
	rules := &Rules{Model: target}
	list := []llm.Message{user("q")}
	first := h.Build(list, rules)
	fill(first)
	second := h.Build(list, rules)
	if n := fill(second); n != 1 {
		t.Errorf("the second request shares %d items with the first", 1-n)
	}
	second.Done()
	first.Done()
	first.Done()
	third := h.Build(list, rules)
	if n := fill(third); n != 0 {
		t.Errorf("encoded %d items again", n)
	}
	third.Done()
}

// genHistory draws a history with all the faults that sessions have.
func genHistory(t *rapid.T) []llm.Message {
	ids := []string{"", "a", "b", "A", "a_2", "c|f"}
	id := rapid.SampledFrom(ids)
	n := rapid.IntRange(0, 14).Draw(t, "messages")
	var list []llm.Message
	for range n {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			list = append(list, user("q"))
		case 1:
			s := system("s")
			s.ToolsAdded = []llm.Tool{{Name: id.Draw(t, "tool")}}
			if rapid.Bool().Draw(t, "removes") {
				s.ToolsRemoved = []string{id.Draw(t, "removed")}
			}
			list = append(list, s)
		case 2, 3:
			m := asks(rapid.SliceOfN(id, 0, 3).Draw(t, "calls")...)
			switch rapid.IntRange(0, 5).Draw(t, "sort") {
			case 0:
				m.StopReason = llm.StopAborted
			case 1:
				foreign(m)
			}
			list = append(list, m)
		default:
			list = append(list, answers(id.Draw(t, "answer"), fmt.Sprint(len(list))))
		}
	}
	return list
}

func genRules(t *rapid.T) *Rules {
	return &Rules{
		Model: target, SystemInPlace: rapid.Bool().Draw(t, "in place"),
		Tools:       ToolMode(rapid.IntRange(0, 2).Draw(t, "tools")),
		NormalizeID: func(id string, _ *llm.Assistant) string { return strings.ToUpper(id) },
	}
}

func TestAnyHistoryIsPaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := genHistory(t)
		var h History[counted]
		tr := h.Build(given, genRules(t))
		seen := map[string]bool{}
		open := map[string]bool{}
		for i := range tr.Items {
			switch m := tr.Items[i].Message.(type) {
			case *llm.ToolResult:
				if !open[m.ToolCallID] {
					t.Fatalf("result %q without its call in %v", m.ToolCallID, outline(given))
				}
				delete(open, m.ToolCallID)
			default:
				if len(open) > 0 {
					t.Fatalf("calls %v have no result in %v", open, outline(given))
				}
				a, ok := m.(*llm.Assistant)
				if !ok {
					continue
				}
				if failed(a) {
					t.Fatal("a failed answer is sent")
				}
				for _, c := range a.ToolCalls() {
					if c.ID == "" || seen[c.ID] {
						t.Fatalf("id %q is empty or taken in %v", c.ID, outline(given))
					}
					seen[c.ID], open[c.ID] = true, true
				}
			}
		}
		if len(open) > 0 {
			t.Fatalf("calls %v have no result at the end of %v", open, outline(given))
		}
	})
}

// A History that has seen any other requests makes the transcript that a new
// one makes, with the same Wire slots.
func TestHistoryRemembersNothingWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := genRules(t)
		var h History[counted]
		list := genHistory(t)
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			if len(list) > 0 && rapid.Bool().Draw(t, "goes back") {
				list = list[:rapid.IntRange(0, len(list)-1).Draw(t, "keeps")]
			}
			list = append(list[:len(list):len(list)], genHistory(t)...)
			tr := h.Build(list, rules)
			fill(tr)
			var fresh History[counted]
			want := fresh.Build(list, rules)
			fill(want)
			if !slices.EqualFunc(tr.Items, want.Items, func(a, b Item[counted]) bool { return reflect.DeepEqual(a, b) }) {
				t.Fatalf("%s:\ngot  %s\nwant %s", outline(list), outline(sent(tr)), outline(sent(want)))
			}
			if !reflect.DeepEqual(tr.System, want.System) || !reflect.DeepEqual(tr.Tools, want.Tools) {
				t.Fatalf("head differs: %v %v, want %v %v", tr.System, tr.Tools, want.System, want.Tools)
			}
			if e := Estimate(list); tr.Estimate != e || want.Estimate != e {
				t.Fatalf("estimates %v, %v, want %v", tr.Estimate, want.Estimate, e)
			}
			tr.Done()
		}
	})
}

func sent(tr *Transcript[counted]) []llm.Message {
	var list []llm.Message
	for i := range tr.Items {
		list = append(list, tr.Items[i].Message)
	}
	return list
}

// conversation is a session of n turns: a question, a call, its result, an answer.
func conversation(turns int) []llm.Message {
	var list []llm.Message
	for i := range turns {
		id := fmt.Sprint("call_", i)
		list = append(list, user("q"), asks(id), answers(id, "1"))
		a := asks()
		a.Content = []llm.Block{&llm.Text{Text: "done"}}
		a.Usage.Input = 10
		list = append(list, a)
	}
	return list
}

func TestTurnCostsTheSameInLongSessions(t *testing.T) {
	perTurn := func(before int) float64 {
		const turns = 200
		all := conversation(before/4 + turns + 1)
		var h History[counted]
		rules := &Rules{Model: target}
		at := before
		fill(h.Build(all[:at], rules))
		h.mu.Unlock()
		return testing.AllocsPerRun(turns-1, func() {
			at += 4
			tr := h.Build(all[:at], rules)
			fill(tr)
			tr.Done()
		})
	}
	short, long := perTurn(8), perTurn(10_000)
	t.Logf("allocations per turn: %v after 8 messages, %v after 10,000", short, long)
	if long > short+1 {
		t.Errorf("a turn allocates %v times after 10,000 messages, %v after 8", long, short)
	}
}

func BenchmarkTurnAfter10000Messages(b *testing.B) {
	const turns = 1000
	all := conversation(2500 + turns)
	rules := &Rules{Model: target}
	var h *History[counted]
	b.ReportAllocs()
	at := len(all)
	for b.Loop() {
		if at >= len(all) {
			b.StopTimer()
			at, h = 10_000, new(History[counted])
			tr := h.Build(all[:at], rules)
			fill(tr)
			tr.Done()
			b.StartTimer()
		}
		at += 4
		tr := h.Build(all[:at], rules)
		fill(tr)
		tr.Done()
	}
}
