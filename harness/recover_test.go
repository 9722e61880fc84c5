package harness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// cut is a conversation whose last run was cut off, and the journal of that run.
type cut struct {
	t       *testing.T
	s       *session.Session
	answer  string // entry id
	journal []byte
}

func (c *cut) say(m agent.Message) string {
	c.t.Helper()
	e, err := c.s.AppendMessage(m)
	if err != nil {
		c.t.Fatal(err)
	}
	return e.ID
}

func (c *cut) add(data session.Data) {
	c.t.Helper()
	if _, err := c.s.Append(data); err != nil {
		c.t.Fatal(err)
	}
}

// calls notes and appends an answer with calls, each "id:tool".
func (c *cut) calls(calls ...string) {
	c.t.Helper()
	m := &llm.Assistant{StopReason: llm.StopToolUse}
	for _, call := range calls {
		id, tool, _ := strings.Cut(call, ":")
		m.Content = append(m.Content, &llm.ToolCall{ID: id, Name: tool, Arguments: []byte("{}")})
	}
	c.journal = fmt.Appendf(c.journal, `{"type":"answer","after":%q}`+"\n", c.s.LeafID())
	c.answer = c.say(m)
}

func result(id, text string) *llm.ToolResult {
	return &llm.ToolResult{ToolCallID: id, ToolName: "t", Content: []llm.Block{&llm.Text{Text: text}}, Timestamp: 5}
}

// began and ended note that in the journal.
func (c *cut) began(index int, id string) {
	c.journal = appendRecord(c.journal, callKey{c.answer, index}, id, nil)
}

func (c *cut) ended(index int, id string) {
	c.journal = appendRecord(c.journal, callKey{c.answer, index}, id, result(id, "journal "+id))
}

func (c *cut) tear(n int) { c.journal = c.journal[:len(c.journal)-n] }

// became says what decide makes of it.
func (c *cut) became() string {
	safe := func(name string) bool { return name == "read" }
	d := decide(c.s.Entries(), c.s.Path(), readJournal(c.journal), safe, 7)
	var out []string
	for _, m := range d.results {
		text := llm.TextOf(m.Content, "")
		switch text {
		case strings.TrimSpace(outcomeUnknown):
			text = "unknown"
		case strings.TrimSpace(notStarted):
			text = "not started"
		}
		if made := m.Timestamp == 7; made != m.IsError {
			c.t.Errorf("%s: error %v at %d", m.ToolCallID, m.IsError, m.Timestamp)
		}
		out = append(out, m.ToolCallID+"="+text)
	}
	for i, call := range d.again {
		if d.lost[i].ToolCallID != call.ID {
			c.t.Errorf("call %s is given up as %s", call.ID, d.lost[i].ToolCallID)
		}
		out = append(out, "again "+call.ID)
	}
	if d.Dropped > 0 {
		out = append(out, fmt.Sprintf("dropped %d", d.Dropped))
	}
	if n := d.Results + d.Unknown + d.NotStarted; n != len(d.results) || d.Again != len(d.again) {
		c.t.Errorf("the counts %+v tell of other results", d.Recovery)
	}
	return strings.Join(out, ", ")
}

// Calls of one answer that share an id keep their own results, and one that was
// refused leaves the others alone.
func TestEndsOfCallsThatShareAnID(t *testing.T) {
	u := underWay{}
	call := func(index int, name, args string) {
		c := &llm.ToolCall{ID: "x", Name: name, Arguments: []byte(args)}
		u["x"] = append(u["x"], begunCall{callKey{"a", index}, c})
	}
	end := func(name, args string) int {
		ev := agent.Event{ToolCallID: "x", ToolName: name, Args: []byte(args)}
		if key, ok := u.end(ev); ok {
			return key.index
		}
		return -1
	}
	call(0, "bash", `{"c":1}`)
	call(2, "bash", `{"c":2}`)
	call(3, "bash", `{"c":2}`)
	call(4, "read", `{"c":1}`)
	var got []int
	for _, e := range [][2]string{{"gone", `{"c":1}`}, {"bash", `{"c":3}`}, {"bash", `{"c":2}`}, {"read", `{"c":1}`}, {"bash", `{"c":2}`}, {"bash", `{"c":1}`}, {"bash", `{"c":1}`}} {
		got = append(got, end(e[0], e[1]))
	}
	if want := "[-1 -1 2 4 3 0 -1]"; fmt.Sprint(got) != want {
		t.Errorf("ended %v, want %s", got, want)
	}
}

// A run can be cut off when the next answer was about to be saved.
func TestCutOffBeforeTheNextAnswer(t *testing.T) {
	s, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cut{t: t, s: s}
	next := func() bool {
		journal := fmt.Appendf(c.journal, `{"type":"answer","after":%q}`+"\n", s.LeafID())
		return decide(s.Entries(), s.Path(), readJournal(journal), func(string) bool { return false }, 7).CutOff
	}
	c.say(llm.UserText("go", 1))
	if next() {
		t.Error("there are no calls")
	}
	c.calls("a:bash")
	c.began(0, "a")
	c.say(result("a", "session"))
	if !next() {
		t.Error("the conversation ends in the calls of the run")
	}
}

func TestDecide(t *testing.T) {
	// Four calls, of which the second looks only.
	four := func(c *cut) { c.calls("a:bash", "b:read", "c:edit", "d:write") }
	for _, tc := range []struct {
		name string
		make func(c *cut)
		want string
	}{
		{"nothing began", four, "a=not started, c=not started, d=not started, again b"},
		{"no journal", func(c *cut) { four(c); c.journal = nil }, ""},
		{"the answer was noted and never saved", func(c *cut) {
			c.calls("a:bash")
			c.began(0, "a")
			c.ended(0, "a")
			c.say(result("a", "session"))
			c.journal = fmt.Appendf(c.journal, `{"type":"answer","after":%q}`+"\n", c.s.LeafID())
		}, ""},
		{"a line that was torn before the answer", func(c *cut) {
			c.calls("z:read")
			c.began(0, "z")
			c.tear(9)
			c.journal = append(c.journal, '\n') // of the store, when the run went on
			c.say(result("z", "session"))
			c.calls("a:bash", "b:bash")
			c.began(0, "a")
		}, "a=unknown, b=not started"},
		{"another program answered", func(c *cut) {
			c.journal = fmt.Appendf(c.journal, `{"type":"answer","after":%q}`+"\n", c.s.LeafID())
			c.say(llm.UserText("in another program", 9))
			journal := c.journal
			four(c)
			c.journal = journal
		}, ""},
		{"the first began", func(c *cut) { four(c); c.began(0, "a") },
			"a=unknown, c=not started, d=not started, again b"},
		{"all began", func(c *cut) { four(c); c.began(0, "a"); c.began(1, "b"); c.began(2, "c"); c.began(3, "d") },
			"a=unknown, c=unknown, d=unknown, again b"},
		{"results in the order of the calls", func(c *cut) {
			four(c)
			for i, id := range []string{"a", "b", "c", "d"} {
				c.began(i, id)
			}
			c.ended(3, "d")
			c.ended(0, "a")
			c.ended(1, "b")
		}, "a=journal a, b=journal b, c=unknown, d=journal d"},
		{"a result in the session", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.began(1, "b")
			c.ended(1, "b")
			c.say(result("a", "session"))
		}, "b=journal b, c=not started, d=not started"},
		{"a later result in the session", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.began(3, "d")
			c.ended(3, "d")
			c.say(result("d", "session"))
		}, "a=unknown, c=not started, again b"},
		{"all results in the session", func(c *cut) {
			four(c)
			for i, id := range []string{"a", "b", "c", "d"} {
				c.began(i, id)
				c.ended(i, id)
				c.say(result(id, "session"))
			}
		}, ""},
		{"two calls of one id", func(c *cut) {
			c.calls("x:bash", "x:bash", "x:read")
			c.began(0, "x")
			c.began(1, "x")
			c.ended(1, "x")
			c.say(result("x", "session"))
		}, "x=journal x, again x"},
		{"entries that say nothing in between", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.add(&session.ModelChangeEntry{Provider: "acme", ModelID: "other"})
			c.add(&session.InfoEntry{Name: "a name"})
			c.say(result("b", "session"))
			c.add(&session.CustomEntry{CustomType: "note"})
		}, "a=journal a, c=not started, d=not started"},
		{"the conversation went on", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.say(llm.UserText("something else", 9))
		}, "dropped 1"},
		{"the conversation went on behind the results", func(c *cut) {
			c.calls("a:bash")
			c.began(0, "a")
			c.ended(0, "a")
			c.say(result("a", "session"))
			c.say(&llm.Assistant{StopReason: llm.StopStop})
		}, ""},
		{"a command of the user in between", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.say(&session.BashExecution{Command: "ls", Timestamp: 9})
		}, "dropped 1"},
		{"a note of an extension in between", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.add(&session.CustomMessageEntry{CustomType: "note", Content: llm.Plain("x")})
		}, "dropped 1"},
		{"the answer was taken out", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			c.add(&session.ContextEditEntry{TargetID: c.answer})
		}, "dropped 1"},
		{"another branch", func(c *cut) {
			first := c.s.LeafID()
			four(c)
			c.began(0, "a")
			c.ended(0, "a")
			if err := c.s.Branch(first); err != nil {
				c.t.Fatal(err)
			}
			c.say(llm.UserText("another way", 9))
		}, "dropped 1"},
		{"another branch, all results saved", func(c *cut) {
			first := c.s.LeafID()
			c.calls("a:bash")
			c.began(0, "a")
			c.ended(0, "a")
			c.say(result("a", "session"))
			if err := c.s.Branch(first); err != nil {
				c.t.Fatal(err)
			}
			c.say(llm.UserText("another way", 9))
		}, ""},
		{"the answer was never saved", func(c *cut) {
			c.answer = "0badcafe"
			c.began(0, "a")
			c.ended(0, "a")
			c.began(1, "b")
		}, "dropped 1"},
		{"records of earlier answers", func(c *cut) {
			c.calls("a:bash")
			c.began(0, "a")
			c.ended(0, "a")
			c.say(result("a", "session"))
			c.calls("a:bash", "b:bash")
			c.began(1, "b")
		}, "a=not started, b=unknown"},
		{"a torn note of an answer", func(c *cut) { four(c); c.tear(4) }, ""},
		{"a torn beginning", func(c *cut) { four(c); c.began(0, "a"); c.began(2, "c"); c.tear(9) },
			"a=unknown, c=not started, d=not started, again b"},
		{"a torn result", func(c *cut) { four(c); c.began(0, "a"); c.ended(0, "a"); c.tear(9) },
			"a=unknown, c=not started, d=not started, again b"},
		{"a line without its break", func(c *cut) { four(c); c.began(0, "a"); c.ended(0, "a"); c.tear(1) },
			"a=journal a, c=not started, d=not started, again b"},
		{"a bad line in the middle", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.journal = append(c.journal, "{\"type\":\"call\",\x00\n"...)
			c.ended(0, "a")
		}, "a=journal a, c=unknown, d=unknown, again b"},
		{"a line of another kind", func(c *cut) {
			four(c)
			c.journal = append(c.journal, `{"type":"weather","answer":"x"}`+"\n\n"...)
			c.began(0, "a")
		}, "a=unknown, c=not started, d=not started, again b"},
		{"a record of another call", func(c *cut) { four(c); c.began(0, "z"); c.ended(0, "z") },
			"a=unknown, c=unknown, d=unknown, again b"},
		{"a result that is none", func(c *cut) {
			four(c)
			c.began(0, "a")
			c.journal = append(c.journal, `{"type":"result","answer":"`+c.answer+`","index":0,"id":"a","message":{"role":"user","content":"a"}}`+"\n"...)
		}, "a=unknown, c=unknown, d=unknown, again b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := memory.Open(session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := &cut{t: t, s: s}
			c.say(llm.UserText("go", 1))
			tc.make(c)
			if got := c.became(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestJournalTornAtEveryByte reads every beginning of a journal: what stands
// there in whole lines counts, and the rest is taken for nothing else.
func TestJournalTornAtEveryByte(t *testing.T) {
	var lines [][]byte
	var whole []byte
	for i := range 3 {
		id := fmt.Sprint("call ", i, ` "ü"`)
		lines = append(lines, appendRecord(nil, callKey{"a1", i}, id, nil), appendRecord(nil, callKey{"a1", i}, id, result(id, "häßlich\n😀")))
	}
	for _, l := range lines {
		whole = append(whole, l...)
	}
	for n := range len(whole) + 1 {
		j := readJournal(whole[:n])
		complete := 0
		for size := 0; complete < len(lines); complete++ {
			if size += len(lines[complete]); n < size-1 {
				break
			}
		}
		if len(j.began) != (complete+1)/2 || len(j.finished) != complete/2 || j.damaged {
			t.Fatalf("%d bytes, %d lines: %+v", n, complete, j)
		}
	}
}

// FuzzJournal reads anything, and does not take one record for two.
func FuzzJournal(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, callKey{"a", 0}, "x", nil), callKey{"a", 0}, "x", result("x", "y")))
	f.Add(appendRecord(appendRecord(nil, callKey{"a", 0}, "x", result("x", "y")), callKey{"a", 0}, "z", nil)) // a call has one id
	f.Add([]byte("{\"type\":\"call\",\"answer\":\"a\",\"index\":99999999999999999999,\"id\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := readJournal(data)
		if n := strings.Count(string(data), "\n") + 1; len(j.began) > n {
			t.Errorf("%d calls in %d lines", len(j.began), n)
		}
		for key, m := range j.finished {
			if _, ok := j.began[key]; !ok || key.index < 0 || m == nil {
				t.Errorf("a result for %v", key)
			}
		}
		for key := range j.began {
			again := readJournal(appendRecord(nil, key, j.began[key], j.finished[key]))
			if again.began[key] != j.began[key] || (again.finished[key] == nil) != (j.finished[key] == nil) {
				t.Errorf("%v is read back otherwise", key)
			}
		}
	})
}
