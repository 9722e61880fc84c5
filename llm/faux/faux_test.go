package faux

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/llm"
)

func stream(t *testing.T, ctx context.Context, a *API, req *llm.Request) *llm.Stream {
	t.Helper()
	s, err := a.Stream(ctx, a.Model(), req)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEventsOfAnAnswer(t *testing.T) {
	a := New(Options{})
	a.Script(Reply(Think("hm"), Text(strings.Repeat("word ", 20)), ToolCall("add", `{"a":1,"text":"a longer one, in pieces"}`)))
	var types []string
	deltas := map[int]string{}
	var last llm.Event
	s := stream(t, t.Context(), a, &llm.Request{})
	for ev := range s.Events() {
		if n := len(types); n == 0 || types[n-1] != ev.Type.String() {
			types = append(types, ev.Type.String())
		}
		deltas[ev.Index] += ev.Delta
		if c := ev.ToolCall(); ev.Type == llm.EventToolCallDelta && c != nil && c.Streaming == nil {
			t.Error("a call that streams has no value so far")
		}
		last = ev
	}
	want := "start thinking_start thinking_delta thinking_end text_start text_delta text_end toolcall_start toolcall_delta toolcall_end done"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("events %s", got)
	}
	m := last.Message
	if m.StopReason != llm.StopToolUse || m.API != "faux" || m.Provider != "faux" || m.Model != "faux-1" || m.Timestamp == 0 {
		t.Errorf("final message %+v", m)
	}
	call := m.ToolCalls()[0]
	if call.ID == "" || call.Streaming != nil || string(call.Arguments) != deltas[2] {
		t.Errorf("call %+v, streamed %s", call, deltas[2])
	}
	if deltas[1] != strings.Repeat("word ", 20) {
		t.Errorf("text %q", deltas[1])
	}
}

func TestScriptIsNotChanged(t *testing.T) {
	a := New(Options{})
	r := Reply(ToolCall("x", ""))
	a.Script(r, r)
	first := stream(t, t.Context(), a, &llm.Request{}).Result().ToolCalls()[0]
	second := stream(t, t.Context(), a, &llm.Request{}).Result().ToolCalls()[0]
	if first.ID == second.ID {
		t.Errorf("both calls are %s", first.ID)
	}
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name     string
		response Response
		stop     llm.StopReason
		text     string
	}{
		{"empty script", nil, llm.StopError, "No more faux responses queued"},
		{"error", Fail("boom", Text("par")), llm.StopError, "boom"},
		{"failing response", func(context.Context, Call) (*llm.Assistant, error) { return nil, errors.New("down") }, llm.StopError, "down"},
		{"empty response", func(context.Context, Call) (*llm.Assistant, error) { return nil, nil }, llm.StopError, "the scripted response is empty"},
		{"own reason", Message(&llm.Assistant{StopReason: llm.StopLength}), llm.StopLength, ""},
		{"response from a request", func(ctx context.Context, c Call) (*llm.Assistant, error) {
			return Say(c.Model.ID)(ctx, c)
		}, llm.StopStop, ""},
	} {
		a := New(Options{})
		if c.response != nil {
			a.Script(c.response)
		}
		m := stream(t, t.Context(), a, &llm.Request{}).Result()
		if m == nil || m.StopReason != c.stop || m.ErrorMessage != c.text {
			t.Errorf("%s: %+v", c.name, m)
		}
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{TokensPerSecond: 10})
		a.Script(Say(strings.Repeat("abcd", 100)), Hang(Text("wait")))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		m := stream(t, ctx, a, &llm.Request{}).Result()
		if m.StopReason != llm.StopAborted || m.ErrorMessage != "Request was aborted" {
			t.Errorf("%s %q", m.StopReason, m.ErrorMessage)
		}
		if n := len(llm.TextOf(m.Content, "")); n < 100 || n > 200 {
			t.Errorf("%d characters in 5 seconds at 10 tokens a second", n)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if m := stream(t, ctx, a, &llm.Request{}).Result(); m.StopReason != llm.StopAborted || llm.TextOf(m.Content, "") != "wait" {
			t.Errorf("hang ended with %+v", m)
		}
	})
}

func TestUsage(t *testing.T) {
	a := New(Options{Models: []llm.Model{{ID: "m", Cost: llm.Rates{Input: 1, CacheWrite: 1}}}})
	a.Script(Say("12345678"), Say(""), Say(""), Say(""))
	user := llm.UserText("hello", 1) // user:hello
	use := func(req *llm.Request) llm.Usage { return stream(t, t.Context(), a, req).Result().Usage }
	if u := use(&llm.Request{Messages: []llm.Message{user}}); u.Input != 3 || u.Output != 2 || u.CacheWrite != 0 || u.TotalTokens != 5 || u.Cost.Total == 0 {
		t.Errorf("no session: %+v", u)
	}
	with := llm.Options{SessionID: "s"}
	if u := use(&llm.Request{Messages: []llm.Message{user}, Options: with}); u.Input != 0 || u.CacheRead != 0 || u.CacheWrite != 3 {
		t.Errorf("first of a session: %+v", u)
	}
	if u := use(&llm.Request{Messages: []llm.Message{user, user}, Options: with}); u.CacheRead != 3 || u.CacheWrite != 3 {
		t.Errorf("second of a session: %+v", u)
	}
	with.CacheRetention = "none"
	if u := use(&llm.Request{Messages: []llm.Message{user}, Options: with}); u.Input != 3 || u.CacheRead != 0 {
		t.Errorf("no retention: %+v", u)
	}
}

func TestCallbacksAndRecord(t *testing.T) {
	a := New(Options{ID: "script"})
	a.Script(Say("a"), Say("b"))
	if a.Left() != 2 {
		t.Errorf("%d left", a.Left())
	}
	status := 0
	req := &llm.Request{Options: llm.Options{OnResponse: func(code int, _ http.Header, _ *llm.Model) error {
		status = code
		return errors.New("no more")
	}}}
	m := stream(t, t.Context(), a, req).Result()
	if status != 200 || m.ErrorMessage != "no more" || m.API != "script" {
		t.Errorf("status %d, %+v", status, m)
	}
	a.Rescript()
	if got := a.Requests(); len(got) != 1 || got[0].Request != req || got[0].N != 1 || a.Left() != 0 {
		t.Errorf("%d requests, %d left", len(got), a.Left())
	}
}
