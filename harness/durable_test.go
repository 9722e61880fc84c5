package harness_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// kept is a store of a program's own that keeps a journal.
type kept struct {
	*memory.Store
	mu      sync.Mutex
	journal []byte
	broken  error // appends to the journal fail
}

func (k *kept) LoadJournal() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.journal), nil
}

func (k *kept) AppendJournal(lines []byte, fresh bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return k.broken
	}
	if fresh {
		k.journal = nil
	}
	k.journal = append(k.journal, lines...)
	return nil
}

func (k *kept) RemoveJournal() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.journal = nil
	return nil
}

// crashed is what would be left if the program ended now.
func (k *kept) crashed() *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &kept{Store: memory.NewFrom(k.Bytes()), journal: slices.Clone(k.journal)}
}

func (k *kept) open(t *testing.T) *session.Session {
	t.Helper()
	s, err := session.Open(k, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trace is what tools did, in order.
type trace struct {
	mu   sync.Mutex
	done []string
}

func (tr *trace) tool(name string, safe bool, do func()) *agent.Tool {
	return &agent.Tool{
		Tool: llm.Tool{Name: name, Parameters: []byte(`{"type":"object"}`)}, ReplaySafe: safe,
		Execute: func(context.Context, agent.Call) (agent.Result, error) {
			tr.mu.Lock()
			tr.done = append(tr.done, name)
			tr.mu.Unlock()
			if do != nil {
				do()
			}
			return agent.TextResult(name + " is done"), nil
		},
	}
}

func callOf(name, id string) *llm.ToolCall {
	return &llm.ToolCall{ID: id, Name: name, Arguments: []byte("{}")}
}

func (tr *trace) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return strings.Join(tr.done, " ")
}

// results lists the results in a conversation, each with its first word or, made
// up ones, with what they say.
func results(messages []agent.Message) string {
	var out []string
	for _, m := range messages {
		if r, ok := m.(*llm.ToolResult); ok {
			text, _, _ := strings.Cut(llm.TextOf(r.Content, ""), " ")
			switch {
			case r.IsError && strings.Contains(llm.TextOf(r.Content, ""), "outcome"):
				text = "unknown"
			case r.IsError && strings.Contains(llm.TextOf(r.Content, ""), "before this call began"):
				text = "unstarted"
			case r.IsError:
				text = "failed"
			}
			out = append(out, r.ToolCallID+"="+text)
		}
	}
	return strings.Join(out, " ")
}

// cutOff runs calls of write, look and send one after the other and gives what a
// crash leaves while send runs: write has ended, look has, and an edit behind
// them has not begun.
func cutOff(t *testing.T) *kept {
	t.Helper()
	k := &kept{Store: memory.New()}
	var left *kept
	var tr trace
	r := newRig(t, harness.Options{
		Session: k.open(t), Execution: agent.Sequential,
		Tools: []*agent.Tool{
			tr.tool("write", false, nil), tr.tool("edit", false, nil),
			tr.tool("look", true, nil),
			tr.tool("send", false, func() { left = k.crashed() }),
		},
	}, faux.Reply(
		callOf("write", "w"), callOf("look", "l"), callOf("send", "s"),
		callOf("look", "l2"), callOf("edit", "e")), faux.Say("done"))
	r.prompt("go")
	if k.journal != nil {
		t.Errorf("the journal stays behind the run: %s", k.journal)
	}
	if left == nil || len(left.journal) == 0 {
		t.Fatal("no journal at the crash")
	}
	return left
}

// reopened is a harness on what a crash left.
func reopened(t *testing.T, k *kept, o harness.Options, script ...faux.Response) (*rig, *trace) {
	t.Helper()
	var tr trace
	o.Session = k.open(t)
	o.Tools = []*agent.Tool{tr.tool("write", false, nil), tr.tool("edit", false, nil), tr.tool("look", true, nil), tr.tool("send", false, nil)}
	return newRig(t, o, script...), &tr
}

func TestContinueAfterCrash(t *testing.T) {
	left := cutOff(t)
	r, tr := reopened(t, left, harness.Options{}, faux.Say("went on"))
	if got, want := r.Recovered(), (harness.Recovery{CutOff: true, Unknown: 1, NotStarted: 1, Again: 1}); got != want {
		t.Errorf("recovered %+v, want %+v", got, want)
	}
	if got, want := results(r.Messages()), "w=write l=look s=unknown e=unstarted"; got != want {
		t.Errorf("after opening: %s, want %s", got, want)
	}
	m, err := r.Continue(t.Context())
	if err != nil || llm.TextOf(m.Content, "") != "went on" {
		t.Fatal(m, err)
	}
	if got := tr.String(); got != "look" {
		t.Errorf("ran %q", got)
	}
	if got, want := results(r.Messages()), "w=write l=look s=unknown e=unstarted l2=look"; got != want {
		t.Errorf("at the end: %s, want %s", got, want)
	}
	if left.journal != nil {
		t.Errorf("the journal stays: %s", left.journal)
	}
	if got, want := r.types(), "agent_start turn_start tool_execution_start tool_execution_end message_start message_end "+
		"message_start message_end turn_end agent_end agent_settled"; got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

// TestCrashAtEveryRecord cuts a run of parallel calls off wherever the journal
// or the session grew, cuts the next one off too, and goes on from there: each
// call has one result in the end, and no call that ended runs again.
func TestCrashAtEveryRecord(t *testing.T) {
	script := func() []faux.Response {
		return []faux.Response{
			faux.Reply(callOf("look", "1"), callOf("write", "2"), callOf("look", "3")),
			faux.Reply(callOf("edit", "4"), callOf("look", "5")),
			faux.Say("done"),
		}
	}
	// images are what a crash leaves, one for each event of a run.
	images := func(k *kept, run func(r *rig) error, script []faux.Response) []*kept {
		var out []*kept
		r, _ := reopened(t, k, harness.Options{}, script...)
		r.Subscribe(func(context.Context, harness.Event) error {
			out = append(out, k.crashed())
			return nil
		})
		if err := run(r); err != nil {
			t.Fatal(err)
		}
		return append(out, k.crashed())
	}
	finished := func(k *kept) map[string]bool {
		ids := map[string]bool{}
		for line := range strings.Lines(string(k.journal)) {
			for i := range 5 {
				if id := fmt.Sprint(i + 1); strings.Contains(line, `"type":"result"`) && strings.Contains(line, `"id":"`+id+`"`) {
					ids[id] = true
				}
			}
		}
		return ids
	}
	goOn := func(r *rig) error {
		if last := r.Messages()[len(r.Messages())-1]; last.Role() == llm.RoleAssistant && r.Recovered().Again == 0 {
			return nil
		}
		_, err := r.Continue(t.Context())
		return err
	}
	n, recovered := 0, 0
	for _, once := range images(&kept{Store: memory.New()}, func(r *rig) error { _, err := r.Prompt(t.Context(), "go"); return err }, script()) {
		if len(once.Bytes()) == 0 {
			continue
		}
		rest := script()[1:]
		if calls := strings.Count(string(once.Bytes()), `"toolCall"`); calls == 0 {
			rest = script()
		} else if calls == 5 {
			rest = rest[1:]
		}
		first := finished(once)
		for _, twice := range images(once, goOn, rest) {
			n++
			done := finished(twice)
			maps.Copy(done, first)
			r, tr := reopened(t, twice, harness.Options{}, faux.Say("done"))
			if err := goOn(r); err != nil {
				t.Fatal(err)
			}
			recovered += r.Recovered().Results
			seen := map[string]int{}
			for _, m := range r.Messages() {
				switch m := m.(type) {
				case *llm.ToolResult:
					seen[m.ToolCallID]++
					if done[m.ToolCallID] && m.IsError {
						t.Errorf("call %s had ended, and its result is %q", m.ToolCallID, llm.TextOf(m.Content, ""))
					}
				case *llm.Assistant:
					for _, c := range m.ToolCalls() {
						seen[c.ID] += 10
					}
				}
			}
			for id, n := range seen {
				if n != 11 {
					t.Errorf("call %s: %d calls and %d results", id, n/10, n%10)
				}
			}
			if ran := tr.String(); strings.Contains(ran, "write") || strings.Contains(ran, "edit") {
				t.Errorf("ran %q again", ran)
			}
			if twice.journal != nil {
				t.Errorf("the journal stays: %s", twice.journal)
			}
		}
	}
	if n < 200 || recovered < n/10 {
		t.Errorf("only %d pairs of crashes with %d results recovered", n, recovered)
	}
	t.Logf("%d pairs of crashes, %d results recovered", n, recovered)
}

// TestOtherThanContinue does something else than Continue after a crash: all
// calls have results before it.
func TestOtherThanContinue(t *testing.T) {
	all := "w=write l=look s=unknown e=unstarted l2=unstarted"
	for _, tc := range []struct {
		name string
		do   func(r *rig) error
		want string
	}{
		{"a prompt", func(r *rig) error { _, err := r.Prompt(t.Context(), "and now?"); return err }, all},
		{"a command of the user", func(r *rig) error {
			return r.AppendMessage(&session.BashExecution{Command: "ls"})
		}, all},
		{"a move", func(r *rig) error {
			_, err := r.NavigateTree(t.Context(), r.Session().Path()[2].ID, harness.TreeOptions{})
			return err
		}, ""},
		{"another model", func(r *rig) error {
			err := r.SetModel(r.model.Models()[1])
			if err == nil {
				_, err = r.Continue(t.Context())
			}
			return err
		}, "w=write l=look s=unknown e=unstarted l2=look"},
		{"a leaf that the program moved", func(r *rig) error {
			if err := r.Session().Branch(r.Session().Path()[2].ID); err != nil {
				return err
			}
			_, err := r.Prompt(t.Context(), "and now?")
			return err
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			left := cutOff(t)
			r, _ := reopened(t, left, harness.Options{}, faux.Say("went on"))
			at := r.Session().LeafID()
			if err := tc.do(r); err != nil {
				t.Fatal(err)
			}
			if got := results(r.Messages()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if journal, _ := left.LoadJournal(); len(journal) > 0 {
				t.Errorf("the journal stays:\n%s", journal)
			}
			if tc.name == "a move" { // the branch that was left is complete
				c := session.ContextOf(r.Session().PathTo(r.Session().Children(at)[0].ID))
				if got := results(c.Messages); got != all {
					t.Errorf("left behind: %s, want %s", got, all)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			again, _ := reopened(t, left, harness.Options{})
			if got := again.Recovered(); got != (harness.Recovery{}) {
				t.Errorf("recovered again: %+v", got)
			}
		})
	}
}

// TestResultsWithoutAPlace are kept where no model sees them, once.
func TestResultsWithoutAPlace(t *testing.T) {
	left := cutOff(t)
	s := left.open(t)
	if err := s.Branch(s.Path()[2].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(llm.UserText("another way", 9)); err != nil {
		t.Fatal(err)
	}
	line := `{"type":"result","answer":"0badcafe","index":0,"id":"z","message":{"role":"toolResult","toolCallId":"z","toolName":"write","content":[{"type":"text","text":"lost"}],"timestamp":1}}` + "\n"
	left.journal = append(left.journal, line...)
	r, _ := reopened(t, left, harness.Options{}, faux.Say("well"))
	if got, want := r.Recovered(), (harness.Recovery{Dropped: 1}); got != want {
		t.Errorf("recovered %+v, want %+v", got, want)
	}
	if left.journal != nil {
		t.Errorf("the journal stays: %s", left.journal)
	}
	kept := 0
	for _, e := range r.Session().Entries() {
		if d, ok := e.Data().(*session.CustomEntry); ok && d.CustomType == harness.DroppedType && strings.Contains(string(d.Value), `"text":"lost"`) {
			kept++
		}
	}
	if got := results(r.Messages()); kept != 1 || got != "" {
		t.Errorf("%d entries with it, and the model sees %q", kept, got)
	}
	r.prompt("go on")
}

// TestCutOffWaits keeps the calls for Continue while it cannot begin, and over
// a close.
func TestCutOffWaits(t *testing.T) {
	left := cutOff(t)
	denied := true
	o := harness.Options{Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
		if denied {
			return harness.Credentials{}, errors.New("no key")
		}
		return harness.Credentials{}, nil
	}}
	r, tr := reopened(t, left, o, faux.Say("went on"))
	if _, err := r.Continue(t.Context()); err == nil || left.journal == nil {
		t.Fatal(err, left.journal)
	}
	denied = false
	if err := r.Close(); err != nil || tr.String() != "" {
		t.Fatal(err, tr)
	}
	r, tr = reopened(t, left, o, faux.Say("went on"))
	if got, want := r.Recovered(), (harness.Recovery{CutOff: true, Again: 1}); got != want {
		t.Errorf("recovered %+v, want %+v", got, want)
	}
	if _, err := r.Continue(t.Context()); err != nil || tr.String() != "look" || left.journal != nil {
		t.Errorf("%v, ran %q, journal %q", err, tr, left.journal)
	}
}

// TestJournalCannotBeWritten runs no call whose beginning it cannot note, and
// says so.
func TestJournalCannotBeWritten(t *testing.T) {
	full := &session.Error{Kind: session.DiskFull, Op: "append to journal", Advice: "free some space and go on"}
	for _, execution := range []agent.Execution{agent.Sequential, agent.Parallel} {
		k := &kept{Store: memory.New()}
		var tr trace
		o := harness.Options{Session: k.open(t), Execution: execution, Tools: []*agent.Tool{
			tr.tool("write", false, nil), tr.tool("look", true, nil)}}
		calls := faux.Reply(callOf("write", "w"), callOf("look", "l"), callOf("look", "m"))
		r := newRig(t, o, calls, faux.Say("well"))
		r.on(agent.ToolExecutionStart, 2, func(harness.Event) error {
			k.mu.Lock()
			k.broken = full
			k.mu.Unlock()
			return nil
		})
		_, err := r.Prompt(t.Context(), "go")
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "free some space") {
			t.Fatal(err)
		}
		if tr.String() != "write" {
			t.Errorf("%s: ran %q", execution, &tr)
		}
		if got := results(r.Messages()); got != "w=write l=failed m=failed" {
			t.Errorf("%s: %s", execution, got)
		}
		r.paired()
		k.broken = nil
		if m, err := r.Continue(t.Context()); err != nil || llm.TextOf(m.Content, "") != "well" {
			t.Errorf("%s: %v, %v", execution, m, err)
		}
	}
}

// TestResultCannotBeNoted goes on: the result is in the session soon.
func TestResultCannotBeNoted(t *testing.T) {
	k := &kept{Store: memory.New()}
	var tr trace
	r := newRig(t, harness.Options{Session: k.open(t), Tools: []*agent.Tool{
		tr.tool("write", false, func() {
			k.mu.Lock()
			k.broken = errors.New("no space left")
			k.mu.Unlock()
		})}}, faux.Reply(callOf("write", "w")), faux.Say("well"))
	if m := r.prompt("go"); llm.TextOf(m.Content, "") != "well" || results(r.Messages()) != "w=write" {
		t.Errorf("%v, %s", m, results(r.Messages()))
	}
}

// The calls of a run are noted also when nobody has said anything before: the
// session has no file until then.
func TestJournalOfAConversationWithoutAPrompt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s, err := session.Open(jsonl.NewStore(path, jsonl.Options{}), session.Options{CWD: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	var tr trace
	noted := false
	write := tr.tool("write", false, func() {
		data, _ := os.ReadFile(path + ".run")
		noted = strings.Contains(string(data), `"type":"call"`)
	})
	r := newRig(t, harness.Options{Session: s, Tools: []*agent.Tool{write}}, faux.Reply(callOf("write", "a")), faux.Say("done"))
	if err := r.AppendMessage(&session.BashExecution{Command: "ls", Timestamp: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := r.Continue(t.Context())
	if err != nil || m.StopReason != llm.StopStop {
		t.Errorf("%v, %v", m, err)
	}
	if tr.String() != "write" || !noted {
		t.Errorf("ran %q, noted: %t", tr.String(), noted)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(jsonl.NewStore(path, jsonl.Options{}), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, want := len(again.Entries()), len(s.Entries()); got != want {
		t.Errorf("%d entries in the file, want %d", got, want)
	}
}

// TestJournalFile is the journal of a session file: it is there while calls run
// and no longer, and one that cannot be read stops calls, not the conversation.
func TestJournalFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	open := func(script ...faux.Response) (*rig, *trace) {
		s, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var tr trace
		return newRig(t, harness.Options{Session: s, Tools: []*agent.Tool{tr.tool("write", false, func() {
			if _, err := os.Stat(path + ".run"); err != nil {
				t.Error(err)
			}
		})}}, script...), &tr
	}
	call := faux.Reply(callOf("write", "w"))
	r, _ := open(faux.Say("hello"), call, faux.Say("done"))
	for _, text := range []string{"hello", "write"} {
		r.prompt(text)
		if _, err := os.Stat(path + ".run"); !os.IsNotExist(err) {
			t.Errorf("behind %q: %v", text, err)
		}
	}
	r.Close()
	if err := os.Mkdir(path+".run", 0o700); err != nil {
		t.Fatal(err)
	}
	r, tr := open(faux.Say("hello"), call, faux.Say("done"))
	if err := r.Recovered().Err; err == nil || !strings.Contains(err.Error(), "s.jsonl.run") {
		t.Error(err)
	}
	r.prompt("hello")
	if _, err := r.Prompt(t.Context(), "write"); err == nil || !strings.Contains(err.Error(), "move it away") || tr.String() != "" {
		t.Errorf("%v, ran %q", err, tr)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecoveryThatFails leaves everything for the next time.
func TestRecoveryThatFails(t *testing.T) {
	left := cutOff(t)
	s, err := session.Open(&failing{kept: left, at: 1}, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model := faux.New(faux.Options{})
	o := harness.Options{Model: model.Model(), Stream: model.Stream, Session: s}
	if _, err := harness.New(o); !errors.Is(err, &session.Error{Kind: session.DiskFull}) {
		t.Fatal(err)
	}
	s.Close()
	r, _ := reopened(t, left, harness.Options{})
	if got, want := results(r.Messages()), "w=write l=look s=unknown e=unstarted"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// failing is a store that is full after some appends.
type failing struct {
	*kept
	at int
}

func (f *failing) Append(at session.Position, lines []byte) (session.Position, error) {
	if f.at--; f.at < 0 {
		return 0, &session.Error{Kind: session.DiskFull, Op: "append"}
	}
	return f.kept.Append(at, lines)
}

// TestReadOnlySession leaves a journal alone.
func TestReadOnlySession(t *testing.T) {
	left := cutOff(t)
	journal := string(left.journal)
	s, err := session.Open(left, session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	model := faux.New(faux.Options{})
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Session: s, Embedded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Recovered() != (harness.Recovery{}) || string(left.journal) != journal {
		t.Errorf("%+v, %s", h.Recovered(), left.journal)
	}
}
