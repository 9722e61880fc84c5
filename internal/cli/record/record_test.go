package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func delta(text string) *harness.Event {
	m := &llm.Assistant{Content: []llm.Block{&llm.Text{Text: text}}}
	return &harness.Event{Event: agent.Event{
		Type: agent.MessageUpdate, Message: m, Update: &llm.Event{Type: llm.EventTextDelta, Delta: text, Partial: m},
	}}
}

func TestAppendEvent(t *testing.T) {
	call := &llm.ToolCall{ID: "c", Name: "read", Arguments: jsontext.Value(`{"path":"x"}`)}
	partial := &llm.Assistant{Content: []llm.Block{&llm.Thinking{Thinking: "why"}, call}}
	update := func(typ llm.EventType, index int) harness.Event {
		return harness.Event{Event: agent.Event{Type: agent.MessageUpdate, Message: partial,
			Update: &llm.Event{Type: typ, Index: index, Partial: partial}}}
	}
	user := llm.UserText("hi", 5)
	const usage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	for _, c := range []struct {
		ev   harness.Event
		want string
	}{
		{harness.Event{Event: agent.Event{Type: agent.AgentStart}}, `{"type":"agent_start"}`},
		{harness.Event{Event: agent.Event{Type: agent.TurnStart}}, `{"type":"turn_start"}`},
		{harness.Event{Event: agent.Event{Type: agent.MessageEnd, Message: user}},
			`{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}}`},
		{harness.Event{Event: agent.Event{Type: agent.AgentEnd, Messages: []agent.Message{user}}, WillRetry: true},
			`{"type":"agent_end","messages":[{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}],"willRetry":true}`},
		{harness.Event{Event: agent.Event{Type: harness.AgentSettled}, Aborted: true}, `{"type":"agent_settled","aborted":true}`},
		{update(llm.EventStart, 0), ``},
		{update(llm.EventThinkingStart, 0), `{"type":"message_update",` + usage + `,"assistantMessageEvent":{"type":"thinking_start","contentIndex":0}}`},
		{update(llm.EventThinkingEnd, 0), `{"type":"message_update",` + usage + `,"assistantMessageEvent":{"type":"thinking_end","contentIndex":0,"content":"why"}}`},
		{update(llm.EventToolCallStart, 1), `{"type":"message_update",` + usage + `,"assistantMessageEvent":{"type":"toolcall_start","contentIndex":1,"id":"c","toolName":"read"}}`},
		{update(llm.EventToolCallEnd, 1), `{"type":"message_update",` + usage + `,"assistantMessageEvent":{"type":"toolcall_end","contentIndex":1,"toolCall":{"type":"toolCall","id":"c","name":"read","arguments":{"path":"x"}}}}`},
		{harness.Event{Event: agent.Event{Type: agent.ToolExecutionStart, ToolCallID: "c", ToolName: "read", Args: jsontext.Value(`{ "a" : 1 }`)}},
			`{"type":"tool_execution_start","toolCallId":"c","toolName":"read","args":{"a":1}}`},
		{harness.Event{Event: agent.Event{Type: agent.ToolExecutionEnd, ToolCallID: "c", ToolName: "read", IsError: true, DurationMs: new(int64(3)),
			Result: &agent.Result{Details: jsontext.Value("{}"), IsError: true}}},
			`{"type":"tool_execution_end","toolCallId":"c","toolName":"read","result":{"content":[],"details":{}},"isError":true,"durationMs":3}`},
		{harness.Event{Event: agent.Event{Type: harness.QueueUpdate}, Steering: []string{"a\n"}}, `{"type":"queue_update","steering":["a\n"],"followUp":[]}`},
		{harness.Event{Event: agent.Event{Type: harness.AutoRetryStart}, Attempt: 1, MaxAttempts: 3, DelayMs: 15, ErrorMessage: "x"},
			`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":15,"errorMessage":"x"}`},
		{harness.Event{Event: agent.Event{Type: harness.AutoRetryEnd}, Attempt: 1, FinalError: "x"},
			`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"x"}`},
		{harness.Event{Event: agent.Event{Type: harness.AutoRetryEnd}, Attempt: 2, Success: true}, `{"type":"auto_retry_end","success":true,"attempt":2}`},
		{harness.Event{Event: agent.Event{Type: harness.SessionInfoChanged}}, `{"type":"session_info_changed"}`},
		{harness.Event{Event: agent.Event{Type: harness.ThinkingLevelChanged}, Level: "low"}, `{"type":"thinking_level_changed","level":"low"}`},
		{*delta("a\u2028\xED\xA0\xBD"), `{"type":"message_update",` + usage + `,"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a` + "\u2028" + `\ud83d"}}`},
	} {
		got := string(Current.AppendEvent(nil, &c.ev))
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.ev.Type, got, c.want)
		}
		if got != "" && !json.Valid([]byte(got)) {
			t.Errorf("no JSON: %s", got)
		}
	}
}

func TestLegacy(t *testing.T) {
	m := &llm.Assistant{Content: []llm.Block{&llm.Text{Text: "ab"}}, StopReason: llm.StopPending, API: "a", Provider: "p", Model: "m", Timestamp: 5}
	const partial = `{"role":"assistant","content":[{"type":"text","text":"ab"}],"api":"a","provider":"p","model":"m",` +
		`"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},` +
		`"stopReason":"stop","timestamp":5}`
	ev := harness.Event{Event: agent.Event{Type: agent.MessageUpdate, Message: m, Update: &llm.Event{Type: llm.EventTextDelta, Delta: "b", Partial: m}}}
	want := `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"b","partial":` + partial + `},"message":` + partial + `}`
	if got := string(Legacy.AppendEvent(nil, &ev)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if m.StopReason != llm.StopPending {
		t.Error("the message was changed")
	}
	ev.Update.Type = llm.EventStart
	if got := Legacy.AppendEvent(nil, &ev); len(got) > 0 {
		t.Errorf("a record of the start: %s", got)
	}
}

// TestDeltaCost keeps the cost of a delta free of the length of the answer and
// of allocations.
func TestDeltaCost(t *testing.T) {
	long := delta("word ")
	long.Message.(*llm.Assistant).Content[0].(*llm.Text).Text = strings.Repeat("x", 1<<20)
	buf := make([]byte, 0, 1<<12)
	if n := testing.AllocsPerRun(100, func() { buf = Current.AppendEvent(buf[:0], long) }); n != 0 {
		t.Errorf("%v allocations a delta", n)
	}
	if len(buf) > 400 {
		t.Errorf("a delta of 5 bytes makes a record of %d", len(buf))
	}
}

func BenchmarkDelta(b *testing.B) {
	ev := delta("word ")
	w := NewWriter(io.Discard)
	defer w.Close(b.Context())
	fill := func(dst []byte) []byte { return append(Current.AppendEvent(dst, ev), '\n') }
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(b.Context(), fill); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWriterKeepsOrder(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	var want strings.Builder
	for i := range 5000 {
		line := strings.Repeat("x", i%97) + "\n"
		want.WriteString(line)
		if err := w.Write(t.Context(), func(dst []byte) []byte { return append(dst, line...) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Error("the output is not what was written")
	}
}

// stuck is an output that does not read until it is told to.
type stuck struct {
	free chan struct{}
	n    int
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.n += len(p)
	return len(p), nil
}

func TestWriterWaitsForASlowReader(t *testing.T) {
	out := &stuck{free: make(chan struct{})}
	w := NewWriter(out)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	piece := bytes.Repeat([]byte("x"), 10_000)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = w.Write(ctx, func(dst []byte) []byte { return append(dst, piece...) })
	}
	if !errors.Is(err, context.DeadlineExceeded) || n > 20 {
		t.Errorf("%d pieces were taken before it waited: %v", n, err)
	}
	close(out.free)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out.n != n*len(piece) {
		t.Errorf("%d bytes came, %d were written", out.n, n*len(piece))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterFails(t *testing.T) {
	w := NewWriter(broken{})
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := w.Write(t.Context(), func(dst []byte) []byte { return append(dst, 'x') })
		if err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the failure is not reported")
		}
	}
	if err := w.Close(t.Context()); err == nil {
		t.Error("Close hides the failure")
	}
}

// A reader that stopped reading holds up the end for a moment only, also when
// the end comes while the last records wait.
func TestFinish(t *testing.T) {
	out := &stuck{free: make(chan struct{})}
	w := NewWriter(out)
	if err := w.Write(t.Context(), func(dst []byte) []byte { return append(dst, 'x') }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := w.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(out.free)
	if err := w.Finish(t.Context()); err != nil || out.n != 1 {
		t.Error(err, out.n)
	}
}
