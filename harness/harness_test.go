package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// rig is a harness over a scripted model, and what its listener saw.
type rig struct {
	*harness.Harness
	t     *testing.T
	model *faux.API

	mu     sync.Mutex
	events []harness.Event
}

// newRig makes a rig; o lacks only what the rig gives.
func newRig(t *testing.T, o harness.Options, script ...faux.Response) *rig {
	t.Helper()
	r := &rig{t: t, model: faux.New(faux.Options{Models: []llm.Model{
		{ID: "one", Reasoning: true, ContextWindow: 1000, MaxTokens: 100}, {ID: "two", MaxTokens: 100},
	}})}
	r.model.Script(script...)
	if o.Model == nil {
		o.Model = r.model.Model()
	}
	if o.Stream == nil {
		o.Stream = r.model.Stream
	}
	if o.Retry == (harness.Retry{}) {
		o.Retry.BaseDelay = time.Microsecond
	}
	h, err := harness.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Harness = h
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, ev)
		return nil
	})
	t.Cleanup(func() { _ = h.Close() })
	return r
}

// on reacts to the nth event of a type.
func (r *rig) on(t agent.EventType, nth int, do func(harness.Event) error) {
	n := 0
	r.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type != t {
			return nil
		}
		if n++; n != nth {
			return nil
		}
		return do(ev)
	})
}

func (r *rig) prompt(text string) *llm.Assistant {
	r.t.Helper()
	m, err := r.Prompt(r.t.Context(), text)
	if err != nil {
		r.t.Fatalf("prompt %q: %v", text, err)
	}
	return m
}

// types lists the events so far by type, without updates of answers.
func (r *rig) types() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, ev := range r.events {
		if ev.Type != agent.MessageUpdate {
			out = append(out, string(ev.Type))
		}
	}
	return strings.Join(out, " ")
}

func (r *rig) count(t agent.EventType) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, ev := range r.events {
		if ev.Type == t {
			n++
		}
	}
	return n
}

// paired checks that what begins ends, and ends where it belongs.
func (r *rig) paired() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var open []agent.EventType
	var calls []string
	ends := map[agent.EventType]agent.EventType{
		agent.AgentEnd: agent.AgentStart, agent.TurnEnd: agent.TurnStart, agent.MessageEnd: agent.MessageStart,
		harness.AutoRetryEnd: harness.AutoRetryStart,
	}
	for i, ev := range r.events {
		switch ev.Type {
		case agent.AgentStart, agent.TurnStart, agent.MessageStart:
			open = append(open, ev.Type)
		case agent.AgentEnd, agent.TurnEnd, agent.MessageEnd:
			if len(open) == 0 || open[len(open)-1] != ends[ev.Type] {
				r.t.Fatalf("event %d, %s, ends what is not open: %v", i, ev.Type, open)
			}
			open = open[:len(open)-1]
		case agent.ToolExecutionStart:
			calls = append(calls, ev.ToolCallID)
		case agent.ToolExecutionEnd:
			at := slices.Index(calls, ev.ToolCallID)
			if at < 0 {
				r.t.Fatalf("event %d ends the call %s, which does not run", i, ev.ToolCallID)
			}
			calls = slices.Delete(calls, at, at+1)
		case harness.AgentSettled:
			if len(open) > 0 {
				r.t.Fatalf("settled with %v open", open)
			}
			calls = nil
		}
	}
	if len(open) > 0 {
		r.t.Fatalf("%v is still open", open)
	}
}

// said renders messages, system messages left out.
func said(messages []agent.Message) string {
	var out []string
	for _, m := range messages {
		switch m := m.(type) {
		case *llm.User:
			out = append(out, "user:"+llm.TextOf(m.Content.Blocks, ""))
		case *llm.Assistant:
			text := llm.TextOf(m.Content, "")
			for _, c := range m.ToolCalls() {
				text += "<" + c.Name + ">"
			}
			if m.StopReason == llm.StopError || m.StopReason == llm.StopAborted {
				text += "!" + string(m.StopReason)
			}
			out = append(out, "assistant:"+text)
		case *llm.ToolResult:
			out = append(out, "result:"+llm.TextOf(m.Content, ""))
		case *session.Custom:
			out = append(out, "custom:"+m.Content.Text)
		case *session.BashExecution:
			out = append(out, "bash:"+m.Command)
		}
	}
	return strings.Join(out, " ")
}

func (r *rig) wantSaid(want string) {
	r.t.Helper()
	if got := said(r.Messages()); got != want {
		r.t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
}

func entryTypes(s *session.Session) string {
	var out []string
	for _, e := range s.Entries() {
		kind := string(e.Type)
		if e.Role() != "" {
			kind = string(e.Role())
		}
		out = append(out, kind)
	}
	return strings.Join(out, " ")
}

// askedOf renders what request n, from 1, showed the model.
func (r *rig) askedOf(n int) string {
	var messages []agent.Message
	for _, m := range r.model.Requests()[n-1].Request.Messages {
		messages = append(messages, m)
	}
	return said(messages)
}

func toolOf(name string, run func(ctx context.Context) (string, error)) *agent.Tool {
	t := &agent.Tool{Execute: func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		text, err := run(ctx)
		return agent.TextResult(text), err
	}}
	t.Name, t.Description, t.Parameters = name, "test", jsontext.Value(`{"type":"object","properties":{}}`)
	return t
}

func ping() *agent.Tool {
	return toolOf("ping", func(context.Context) (string, error) { return "pong", nil })
}

func kindOf(err error) harness.Kind {
	e, ok := errors.AsType[*harness.Error](err)
	if !ok {
		return harness.Kind(fmt.Sprint(err))
	}
	return e.Kind
}

func TestToolTurn(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	r := newRig(t, harness.Options{
		Tools: []*agent.Tool{ping()}, SystemPrompt: "be brief", ThinkingLevel: llm.LevelHigh,
		Now: func() time.Time { return now },
	}, faux.Reply(faux.ToolCall("ping", "")), faux.Say("done"))
	m := r.prompt("go")
	if llm.TextOf(m.Content, "") != "done" || m.ThinkingLevel != llm.LevelHigh {
		t.Errorf("answer %+v", m)
	}
	r.wantSaid("user:go assistant:<ping> result:pong assistant:done")
	want := "agent_start turn_start message_start message_end message_start message_end message_start message_end " +
		"tool_execution_start tool_execution_end message_start message_end turn_end " +
		"turn_start message_start message_end turn_end agent_end agent_settled"
	if got := r.types(); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	r.paired()
	if got := entryTypes(r.Session()); got != "model_change thinking_level_change system user assistant toolResult assistant" {
		t.Error(got)
	}
	for _, m := range r.Messages() {
		if m.Role() != llm.RoleAssistant && m.Time() != now.UnixMilli() {
			t.Errorf("%s message at %d", m.Role(), m.Time())
		}
	}
	sys := r.Messages()[0].(*llm.System)
	if len(sys.Sections) != 1 || sys.Sections[0].Text != "be brief" || len(sys.ToolsAdded) != 1 {
		t.Errorf("system message %+v", sys)
	}
}

func TestPromptPatch(t *testing.T) {
	sections := []llm.Section{{Name: "a", Text: "1"}, {Name: "b", Text: "2"}}
	var h *rig
	store := memory.New()
	sess, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h = newRig(t, harness.Options{Session: sess, Sections: func([]*agent.Tool) []llm.Section {
		if h != nil {
			h.Model() // a callback may ask the harness
		}
		return sections
	}}, faux.Say("x"), faux.Say("x"), faux.Say("x"))
	last := func() string {
		var out string
		for _, m := range h.Messages() {
			if s, ok := m.(*llm.System); ok {
				out = ""
				for _, p := range s.Sections {
					out += fmt.Sprintf("%s=%s/%v ", p.Name, p.Text, p.Removed)
				}
			}
		}
		return out
	}
	h.prompt("one")
	if got := last(); got != "a=1/false b=2/false " {
		t.Error(got)
	}
	before := entryTypes(h.Session())
	h.prompt("two")
	if got := entryTypes(h.Session()); got != before+" user assistant" {
		t.Error("an unchanged prompt was said again: ", got)
	}
	sections = []llm.Section{{Name: "b", Text: "3"}, {Name: "c", Text: "4"}}
	h.prompt("three")
	if got := last(); got != "b=3/false c=4/false a=/true " {
		t.Error(got)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	// A branch without system messages gets all of it.
	sess, err = session.Open(memory.NewFrom(store.Bytes()), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sess.ResetLeaf()
	h = newRig(t, harness.Options{Session: sess, Tools: []*agent.Tool{ping()}, Sections: func([]*agent.Tool) []llm.Section { return sections }}, faux.Say("x"))
	h.prompt("four")
	if got := last(); got != "b=3/false c=4/false " {
		t.Error(got)
	}
}

func TestResume(t *testing.T) {
	store := memory.New()
	open := func(data []byte) *session.Session {
		s, err := session.Open(memory.NewFrom(data), session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := session.Open(store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, harness.Options{Session: s, Tools: []*agent.Tool{ping()}}, faux.Say("a"))
	r.prompt("one")
	log := store.Bytes()

	// The same model and tools: nothing is recorded or declared anew.
	again := newRig(t, harness.Options{Session: open(log), Tools: []*agent.Tool{ping()}}, faux.Say("b"))
	again.prompt("two")
	if got := entryTypes(again.Session()); got != "model_change thinking_level_change system user assistant user assistant" {
		t.Error(got)
	}
	if got := again.askedOf(1); got != "user:one assistant:a user:two" {
		t.Error(got)
	}
	// Other ones are.
	pong := toolOf("pong", func(context.Context) (string, error) { return "", nil })
	other := newRig(t, harness.Options{Session: open(log), Tools: []*agent.Tool{pong}, ThinkingLevel: llm.LevelLow}, faux.Say("c"))
	other.prompt("three")
	if got := entryTypes(other.Session()); got != "model_change thinking_level_change system user assistant thinking_level_change system user assistant" {
		t.Error(got)
	}
	sys := other.Messages()[3].(*llm.System)
	if len(sys.ToolsAdded) != 1 || sys.ToolsAdded[0].Name != "pong" || !slices.Equal(sys.ToolsRemoved, []string{"ping"}) {
		t.Errorf("declared %+v", sys)
	}
	// A session without a level gets one.
	bare := open([]byte(`{"type":"session","version":3,"id":"x","timestamp":"2024-01-01T00:00:00.000Z","cwd":"/"}` + "\n" +
		`{"type":"model_change","id":"00000001","parentId":null,"timestamp":"2024-01-01T00:00:00.000Z","provider":"faux","modelId":"one"}` + "\n"))
	newRig(t, harness.Options{Session: bare})
	if got := entryTypes(bare); got != "model_change thinking_level_change" {
		t.Error(got)
	}
}

func TestNewRefuses(t *testing.T) {
	model := faux.New(faux.Options{})
	for name, o := range map[string]harness.Options{
		"no model":        {Stream: model.Stream},
		"no stream":       {Model: model.Model()},
		"nameless tool":   {Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{{}}},
		"two of one name": {Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{ping(), ping()}},
	} {
		if _, err := harness.New(o); kindOf(err) != harness.KindInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMisuse(t *testing.T) {
	r := newRig(t, harness.Options{}, faux.Say("a"))
	ctx := t.Context()
	refused := func(what string, want harness.Kind, err error) {
		t.Helper()
		if kindOf(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	_, err := r.Continue(ctx)
	refused("continue of nothing", harness.KindInvalidState, err)
	_, err = r.PromptMessages(ctx)
	refused("prompt without messages", harness.KindInvalidArgument, err)
	for _, m := range []agent.Message{nil, (*llm.User)(nil), &session.BranchSummary{}} {
		_, err = r.PromptMessages(ctx, m)
		refused("prompt", harness.KindInvalidArgument, err)
		refused("append", harness.KindInvalidArgument, r.AppendMessage(m))
		refused("next turn", harness.KindInvalidArgument, r.NextTurn(m))
	}
	refused("set model", harness.KindInvalidArgument, r.SetModel(nil))
	refused("set tools", harness.KindInvalidArgument, r.SetTools([]*agent.Tool{nil}))
	r.on(agent.TurnStart, 1, func(harness.Event) error {
		_, err := r.Prompt(ctx, "again")
		refused("prompt during a run", harness.KindBusy, err)
		_, err = r.Continue(ctx)
		refused("continue during a run", harness.KindBusy, err)
		return nil
	})
	r.prompt("go")
	_, err = r.Continue(ctx)
	refused("continue after an answer", harness.KindInvalidState, err)
	if n := r.count(harness.AgentSettled); n != 1 {
		t.Errorf("settled %d times: refusals are no runs", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error("a second close:", err)
	}
	_, err = r.Prompt(ctx, "late")
	refused("prompt after close", harness.KindInvalidState, err)
	refused("steer after close", harness.KindInvalidState, r.Steer("late"))
	refused("model after close", harness.KindInvalidState, r.SetModel(r.Model()))
	refused("name after close", harness.KindInvalidState, r.SetName("late"))
	refused("append after close", harness.KindInvalidState, r.AppendMessage(llm.UserText("late", 1)))
	refused("next turn after close", harness.KindInvalidState, r.NextTurn(llm.UserText("late", 1)))
	r.wantSaid("user:go assistant:a")
}
