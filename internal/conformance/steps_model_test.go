package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/llm/pimessages"
	"github.com/pinch-agent/pinch/session"
)

// place is a wire format with a model, and the rules of its service.
type place struct {
	name  string
	api   llm.API
	model *llm.Model
	check func(body map[string]any) error
}

// newPlaces are models of all wire formats.
func newPlaces() []place {
	var out []place
	for _, t := range pairingTargets() {
		out = append(out, place{t.name, t.api, t.model, t.check})
	}
	return append(out, place{"pi-messages", pimessages.New(pimessages.Config{}), &llm.Model{
		ID: "auto", API: pimessages.ID, Provider: "radius", BaseURL: "http://127.0.0.1:1", Reasoning: true, Input: []string{"text", "image"},
	}, checkPiMessages})
}

// checkPiMessages knows a backend that repairs histories itself: what it wants
// is the transcript as it is.
func checkPiMessages(body map[string]any) error {
	c, _ := body["context"].(map[string]any)
	messages := asObjects(c["messages"])
	if len(messages) == 0 {
		return errNoMessages
	}
	for i, m := range messages {
		if role, _ := m["role"].(string); !slices.Contains([]string{"system", "user", "assistant", "toolResult"}, role) {
			return fmt.Errorf("message %d has role %q", i, role)
		}
	}
	return nil
}

// checkDeclarations refuses a tool that is declared twice at one place.
func checkDeclarations(body map[string]any) error {
	declared := asObjects(body["tools"])
	if c, ok := body["toolConfig"].(map[string]any); ok && c["tools"] != nil {
		declared = asObjects(c["tools"])
	}
	seen := map[string]bool{}
	for _, t := range declared {
		for _, in := range append(asObjects(t["functionDeclarations"]), t) {
			for _, key := range []string{"function", "toolSpec"} {
				if inner, ok := in[key].(map[string]any); ok {
					in = inner
				}
			}
			name, ok := in["name"].(string)
			if ok && seen[name] {
				return fmt.Errorf("the tool %q is declared twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// virtualModel stands for another model at each request.
var virtualModel = llm.Model{ID: "auto", Provider: "router", API: llm.APIVirtual, Reasoning: true, ContextWindow: 900, MaxTokens: 60}

// randomModel is a model of some wire format with a window that is soon full.
func (w *trial) randomModel(d draw) *llm.Model {
	if d.one(12) {
		return &virtualModel
	}
	return w.physical(d)
}

func (w *trial) physical(d draw) *llm.Model {
	m := *pick(d, w.places...).model
	m.ContextWindow = pick(d, 0, 400, 900, 2500, 200_000)
	m.MaxTokens = pick(d, 20, 60, 300)
	return &m
}

// route is the router of the virtual model.
func (w *trial) route(_ context.Context, r llm.RouteRequest) (llm.Route, error) {
	d := w.at("route")
	if d.one(12) && w.step("the router fails") {
		return llm.Route{}, errors.New("no route")
	}
	route := llm.Route{Model: w.physical(d), Level: pick(d, "", llm.LevelHigh)}
	if d.one(3) {
		route.State = jsontext.Value(fmt.Sprintf(`{"n":%d}`, d.IntN(9)))
	}
	return route, nil
}

// request checks what a model is about to be asked in the wire format's bytes.
func (l *life) request(ctx context.Context, p place, m *llm.Model, req *llm.Request, memo *llm.Memo) error {
	stop := errors.New("enough")
	var body jsontext.Value
	var hooked error
	asked := *req
	asked.Memo = memo
	asked.OnPayload = func(b jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		body = bytes.Clone(b)
		if req.OnPayload != nil {
			_, hooked = req.OnPayload(b, m)
		}
		return nil, stop
	}
	st, err := p.api.Stream(ctx, m, &asked)
	if err != nil {
		l.w.failf("%s: %v", p.name, err)
		return nil
	}
	answer := st.Result()
	st.Close()
	if body == nil {
		if ctx.Err() == nil {
			l.w.failf("%s: no request: %s", p.name, answer.ErrorMessage)
		}
		return nil
	}
	var parsed map[string]any
	err = json.Unmarshal(body, &parsed)
	if err == nil {
		err = p.check(parsed)
	}
	if err == nil {
		err = checkDeclarations(parsed)
	}
	if err == errNoMessages && !l.clear() {
		err = nil // a hook took them out
	}
	if err != nil {
		var h strings.Builder
		for _, m := range req.Messages {
			fmt.Fprintf(&h, "%s\n", m.AppendJSON(nil))
		}
		l.w.failf("%s: %v\nhistory:\n%s\nbody:\n%s", p.name, err, h.String(), body)
	}
	return hooked
}

// shows checks that a request of a run says what the session shows.
func (l *life) shows(req *llm.Request) {
	if !l.clear() {
		return
	}
	got := req.Messages
	want := session.ToLLM(l.h.Session().Context().Messages)
	if l.w.opts.Prompt == harness.FixedPrompt {
		want = slices.DeleteFunc(slices.Clone(want), func(m llm.Message) bool { return m.Role() == llm.RoleSystem })
		if len(got) > 0 && got[0].Role() == llm.RoleSystem {
			got = got[1:]
		}
	}
	if !slices.EqualFunc(got, want, func(a, b llm.Message) bool {
		x, ok := a.(*llm.User)
		y, _ := b.(*llm.User)
		// A message of an extension is one object in the run and another in the
		// session, which gives it a time of its own.
		return a == b || ok && y != nil && bytes.Equal(x.Content.AppendJSON(nil), y.Content.AppendJSON(nil))
	}) {
		l.w.failf("a request shows %d messages and not the %d of the session", len(got), len(want))
	}
	for _, m := range slices.Backward(got) {
		if m.Role() == llm.RoleAssistant {
			l.w.failf("a request ends with an answer")
		}
		if m.Role() != llm.RoleSystem {
			break
		}
	}
}

var (
	passing  = []string{"429 Too Many Requests", "500 internal server error", "overloaded_error: Overloaded", "fetch failed", "503 Service Unavailable"}
	final    = []string{"400 invalid_request_error: no", "401 invalid api key", "insufficient_quota: you are out of credit", "content was refused"}
	overflow = []string{"prompt is too long: 210000 tokens > 200000 maximum", "413 Request Entity Too Large", "Input is too long for requested model.",
		"Your input exceeds the context window of this model", "The input token count (9) exceeds the maximum number of tokens allowed (8)",
		"Please reduce the length of the messages or completion", "context_length_exceeded", "too large for model with 8 maximum context length"}
	callIDs = []string{"call_1", "toolu_3", "fc|item", "weird id!{}", strings.Repeat("long", 30), "", "a|b|c", "ünï", "call_9|fc_9", "call_9|rs_9", "|", "abcdefghi", "abcdefgh!"}
)

// stream answers a request with something.
func (l *life) stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	w := l.w
	d := w.at("model")
	phase := l.h.Phase()
	summary := phase == harness.PhaseCompaction || phase == harness.PhaseBranchSummary
	if !summary {
		l.shows(req)
	}
	at := slices.IndexFunc(w.places, func(p place) bool {
		return p.model.API == m.API && p.model.Provider == m.Provider && p.model.ID == m.ID && string(p.model.Compat) == string(m.Compat)
	})
	if at < 0 {
		w.failf("a request to a model that there is not: %+v", m)
		return nil, errors.New("no model")
	}
	w.note("  request of %d messages to %s%s", len(req.Messages), w.places[at].name, map[bool]string{true: ", for a summary", false: ""}[summary])
	if err := l.request(ctx, w.places[at], m, req, req.Memo); err != nil {
		return llm.Failed(m, err, time.Now().UnixMilli()), nil
	}
	if d.one(4) { // as if the model had been switched before
		p := pick(d, w.places...)
		asked := *req
		asked.OnPayload = nil
		_ = l.request(ctx, p, p.model, &asked, nil)
	}
	what := "an answer"
	if !w.calm.Load() && w.budget.Load() > 0 && d.one(4) {
		what = pick(d, "fails passing", "fails passing", "fails passing", "fails for good", "overflows", "overflows", "breaks", "ends early", "hangs",
			"is cut", "is empty", "no stream", "nil stream", "panics", "aborts itself")
		if !w.step("the model " + what) {
			what = "an answer"
		}
	}
	a := &llm.Assistant{Content: l.answer(d, summary), StopReason: llm.StopStop}
	if len(a.ToolCalls()) > 0 && !d.one(20) {
		a.StopReason = llm.StopToolUse
	}
	end := -1
	switch what {
	case "fails passing":
		a.StopReason, a.ErrorMessage = llm.StopError, pick(d, passing...)
	case "fails for good":
		a.StopReason, a.ErrorMessage = llm.StopError, pick(d, final...)
	case "overflows":
		a.StopReason, a.ErrorMessage = llm.StopError, pick(d, overflow...)
	case "aborts itself":
		a.StopReason, a.ErrorMessage = llm.StopAborted, "Request was aborted"
	case "breaks":
		end = d.IntN(6)
		a.StopReason, a.ErrorMessage = llm.StopError, pick(d, passing...)
	case "ends early":
		end = d.IntN(6)
	case "hangs":
		a.StopReason = llm.StopPending
		stop := d.delay(100 * time.Millisecond)
		w.beside(func() { time.Sleep(stop); l.h.Abort() })
	case "is cut":
		a.StopReason = llm.StopLength
	case "is empty":
		a.Content = nil
	case "no stream":
		return nil, errors.New("no stream on purpose")
	case "nil stream":
		return nil, nil
	case "panics":
		if d.one(2) {
			panic("the stream function panicked on purpose")
		}
		end = -2 - d.IntN(6)
	}
	if d.one(2) && a.StopReason == llm.StopError {
		a.Content = nil
	}
	l.model.Rescript(faux.Message(a))
	st, err := l.model.Stream(ctx, m, req)
	if err != nil {
		return nil, err
	}
	return llm.NewStream(&answer{l: l, ctx: ctx, st: st, d: d, m: m, req: req, end: end}), nil
}

// answer makes the content of one.
func (l *life) answer(d draw, summary bool) []llm.Block {
	if summary {
		return []llm.Block{&llm.Text{Text: pick(d, "They talked.", "They talked.", "## Goal\nNone.", "", " \n", strings.Repeat("nonsense ", 400))}}
	}
	blocks := []llm.Block{}
	if d.one(3) {
		th := &llm.Thinking{Thinking: pick(d, "Let me think.", "", "hm")}
		if d.one(2) {
			th.Signature = new(pick(d, "c2lnbmF0dXJl", "reasoning_content", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`, ""))
		}
		blocks = append(blocks, th)
	}
	if !d.one(8) {
		blocks = append(blocks, &llm.Text{Text: pick(d, "I see.", "", " ", "ünï 🙈", strings.Repeat("At length. ", d.IntN(40))) + l.w.token("a")})
	}
	if l.w.calm.Load() || l.w.budget.Load() <= 0 || d.one(2) {
		return blocks
	}
	names := []string{"gone"}
	for _, t := range l.h.Tools() {
		names = append(names, t.Name, t.Name)
	}
	for range 1 + d.IntN(pick(d, 1, 2, 5)) {
		c := faux.ToolCall(pick(d, names...), pick(d, `{}`, `{"n":1}`, `{"n":1}`, `{"n":"x"}`, `{"n":"\ud83d"}`))
		c.Arguments = jsontext.Value(strings.Replace(string(c.Arguments), "{", `{"mark":"`+l.w.token("c")+`",`, 1))
		c.Arguments = jsontext.Value(strings.Replace(string(c.Arguments), ",}", "}", 1))
		if c.ID = pick(d, callIDs...); d.one(2) {
			c.ID = l.w.token("call_")
		}
		if d.one(12) {
			c.Arguments, c.ArgumentsError = jsontext.Value(`{}`), "unexpected end of JSON input\n\nReceived arguments:\n{\"n\":"
		}
		blocks = append(blocks, c)
	}
	return blocks
}

// answer is a stream that takes its time, and in which things happen.
type answer struct {
	l   *life
	ctx context.Context
	st  *llm.Stream
	d   draw
	m   *llm.Model
	req *llm.Request
	n   int
	end int // after so many events it ends without an answer; from -2 on it panics
}

func (a *answer) Close() { a.st.Close() }

func (a *answer) Next() (llm.Event, bool) {
	select {
	case <-time.After(a.d.delay(2 * time.Millisecond)):
	case <-a.ctx.Done():
	}
	if a.n++; a.end >= 0 && a.n > a.end {
		return llm.Event{}, false
	}
	if a.end <= -2 && a.n > -2-a.end {
		panic("the stream panicked on purpose")
	}
	if err := a.l.act(a.ctx, a.l.w.at("delta"), 40, "delta"); err != nil {
		panic("the stream panicked on purpose")
	}
	ev, ok := a.st.Next()
	if ok && ev.Message != nil && ev.Type == llm.EventDone {
		u := &ev.Message.Usage
		if a.d.one(4) { // what services report is sometimes nothing, or near the window
			*u = llm.Usage{Input: int64(a.d.IntN(a.m.ContextWindow/10*12 + 1)), Output: int64(a.d.IntN(60))}
			u.TotalTokens = u.Input + u.Output
		}
	}
	return ev, ok
}

func messageTexts(messages []agent.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.AppendJSON(nil)))
	}
	return out
}
