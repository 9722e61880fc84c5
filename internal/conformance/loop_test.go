package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// The loop vectors run the low-level loop, the stateful agent and argument
// validation against a scripted model. Time is virtual: calls with equal delays
// start a virtual millisecond apart, in source order.

var loopDeviations = []deviation{
	// Bodies start together: the quick call may be done before the abort that the
	// slow one's progress causes.
	{"loop/loop", "loop-abort-during-parallel-tools", "call.c2"},
	{"loop/loop", "loop-abort-during-parallel-tools", "order"},
}

func TestLoop(t *testing.T) {
	groups := map[string]*group{}
	for _, driver := range []string{"loop", "agent", "validate"} {
		groups[driver] = newGroup("loop/" + driver)
	}
	for _, file := range vectorFiles(t, "loop") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		var v struct {
			Driver string             `json:"driver"`
			Input  loopInput          `json:"input"`
			Expect json.RawMessage    `json:"expect"`
			Cases  []loopValidateCase `json:"cases"`
		}
		readVector(t, file, &v)
		switch v.Driver {
		case "loop", "agent":
			var got map[string]any
			synctest.Test(t, func(t *testing.T) {
				if v.Driver == "loop" {
					got = runLoopVector(t, &v.Input)
				} else {
					got = runAgentVector(t, &v.Input)
				}
			})
			var want map[string]any
			if err := json.Unmarshal(v.Expect, &want); err != nil {
				t.Fatal(err)
			}
			groups[v.Driver].report(t, name, loopCompare(want, loopPlain(t, got).(map[string]any)), loopDeviations)
		case "validate":
			for i, c := range v.Cases {
				groups["validate"].report(t, fmt.Sprintf("%s#%d", name, i+1), c.run(), loopDeviations)
			}
		case "session", "harness":
			// TestLoopSession and TestLoopHarness run them.
		default:
			t.Errorf("%s: unknown driver %q", name, v.Driver)
		}
	}
}

type loopValidateCase struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Arguments  json.RawMessage `json:"arguments"`
	Value      json.RawMessage `json:"value"`
	Error      string          `json:"error"`
}

func (c *loopValidateCase) run() outcome {
	o := outcome{}
	args, err := agent.Validate(
		llm.Tool{Name: "probe", Parameters: jsontext.Value(c.Parameters)},
		&llm.ToolCall{ID: "c1", Name: "probe", Arguments: jsontext.Value(c.Arguments)},
	)
	switch {
	case err != nil && c.Error == "":
		o.add("value", "%s: refused: %v", c.Name, err)
	case err != nil && err.Error() != c.Error:
		o.add("error", "%s:\n%s\nwant\n%s", c.Name, err, c.Error)
	case err == nil && c.Error != "":
		o.add("error", "%s: accepted as %s", c.Name, args)
	case err == nil && loopCompact(args) != loopCompact(c.Value):
		o.add("value", "%s: %s, want %s", c.Name, args, c.Value)
	}
	return o
}

func loopCompact(raw []byte) string {
	b, err := jsonwire.AppendCompact(nil, raw)
	if err != nil {
		return "not JSON: " + string(raw)
	}
	return string(b)
}

type loopInput struct {
	Tools     []loopTool     `json:"tools"`
	Responses []loopResponse `json:"responses"`

	// driver loop
	Continue bool              `json:"continue"`
	Prompts  []json.RawMessage `json:"prompts"`
	Context  struct {
		Messages []json.RawMessage `json:"messages"`
	} `json:"context"`
	Config  loopConfig `json:"config"`
	AbortOn *struct {
		Event string `json:"event"`
		Nth   int    `json:"nth"`
	} `json:"abortOn"`

	// driver agent
	SystemPrompt  string            `json:"systemPrompt"`
	Messages      []json.RawMessage `json:"messages"`
	SteeringMode  agent.QueueMode   `json:"steeringMode"`
	FollowUpMode  agent.QueueMode   `json:"followUpMode"`
	ToolExecution agent.Execution   `json:"toolExecution"`
	ThinkingLevel llm.ThinkingLevel `json:"thinkingLevel"`
	On            []loopReaction    `json:"on"`
	Listeners     []loopListener    `json:"listeners"`
	Steps         []loopAction      `json:"steps"`
}

type loopConfig struct {
	ToolExecution   agent.Execution           `json:"toolExecution"`
	ThinkingLevel   llm.ThinkingLevel         `json:"thinkingLevel"`
	Steering        [][]json.RawMessage       `json:"steering"`
	FollowUp        [][]json.RawMessage       `json:"followUp"`
	FinishTurn      []struct{ Action string } `json:"finishTurn"`
	PrepareNextTurn []loopNext                `json:"prepareNextTurn"`
	PrepareRequest  []loopNext                `json:"prepareRequest"`
	Before          map[string]loopBefore     `json:"beforeToolCall"`
	After           map[string]loopAfter      `json:"afterToolCall"`
	KeepLast        int                       `json:"keepLast"`
}

type loopNext struct {
	Model         string            `json:"model"`
	ThinkingLevel llm.ThinkingLevel `json:"thinkingLevel"`
	Messages      []json.RawMessage `json:"messages"`
}

type loopBefore struct {
	Block     bool   `json:"block"`
	Reason    string `json:"reason"`
	Terminate bool   `json:"terminate"`
	Throw     string `json:"throw"`
	Abort     bool   `json:"abort"`
}

type loopAfter struct {
	Content           json.RawMessage `json:"content"`
	Details           json.RawMessage `json:"details"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           *bool           `json:"isError"`
	Terminate         *bool           `json:"terminate"`
	Throw             string          `json:"throw"`
	Abort             bool            `json:"abort"`
}

// loopRig is what both drivers share: model, tools and the record of requests.
type loopRig struct {
	t        *testing.T
	in       *loopInput
	next     int // response
	requests []any
	order    map[string]int // of call ids in their answer
}

func newLoopRig(t *testing.T, in *loopInput) *loopRig {
	r := &loopRig{t: t, in: in, requests: []any{}, order: map[string]int{}}
	for _, resp := range in.Responses {
		for i, c := range resp.ToolCalls {
			r.order[c.ID] = i
		}
	}
	return r
}

func loopModel(id string) *llm.Model {
	return &llm.Model{ID: id, Name: id, API: "mock-api", Provider: "acme", Reasoning: true, Input: []string{"text"}}
}

func (r *loopRig) messages(raw []json.RawMessage) []agent.Message {
	r.t.Helper()
	var out []agent.Message
	for _, b := range raw {
		m, err := llm.ParseMessage(b)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func (r *loopRig) stream(withModel bool) agent.StreamFunc {
	return func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
		seen := []any{}
		for _, msg := range req.Messages {
			seen = append(seen, loopMessage(msg))
		}
		record := map[string]any{"messages": seen, "level": req.Reasoning}
		if withModel {
			record["model"] = m.ID
		}
		r.requests = append(r.requests, record)
		if r.next >= len(r.in.Responses) {
			return nil, errors.New("script exhausted")
		}
		resp := &r.in.Responses[r.next]
		r.next++
		if resp.Throw != "" {
			return nil, errors.New(resp.Throw)
		}
		return llm.NewStream(newLoopSource(ctx, m, resp)), nil
	}
}

func runLoopVector(t *testing.T, in *loopInput) map[string]any {
	r := newLoopRig(t, in)
	ctx, abort := context.WithCancel(context.Background())
	defer abort()
	events := []any{}
	record := func(ev map[string]any) { events = append(events, ev) }
	cfg := r.config(record, abort)
	seen := map[agent.EventType]int{}
	sink := func(_ context.Context, ev agent.Event) error {
		record(loopEvent(ev))
		seen[ev.Type]++
		if on := in.AbortOn; on != nil && string(ev.Type) == on.Event && seen[ev.Type] == max(1, on.Nth) {
			abort()
		}
		return nil
	}
	c := agent.Context{Messages: r.messages(in.Context.Messages), Tools: r.tools()}
	var added []agent.Message
	var err error
	if in.Continue {
		added, err = agent.Resume(ctx, cfg, c, sink)
	} else {
		added, err = agent.Run(ctx, cfg, c, r.messages(in.Prompts), sink)
	}
	got := map[string]any{"events": events, "requests": r.requests}
	if err != nil {
		got["error"] = loopErrorCode(err)
		return got
	}
	returned := []any{}
	for _, m := range added {
		returned = append(returned, loopMessage(m))
	}
	got["returned"] = returned
	return got
}

// loopErrorCode is the code of misuse, and the text of other errors.
func loopErrorCode(err error) string {
	var e *agent.Error
	if errors.As(err, &e) {
		return string(e.Kind)
	}
	return err.Error()
}

func (r *loopRig) config(record func(map[string]any), abort func()) agent.Config {
	c := &r.in.Config
	cfg := agent.Config{
		Model: loopModel("alpha-1"), ThinkingLevel: c.ThinkingLevel,
		Stream: r.stream(true), Execution: c.ToolExecution,
	}
	poll := func(lists [][]json.RawMessage) func() []agent.Message {
		return func() []agent.Message {
			if len(lists) == 0 {
				return nil
			}
			out := r.messages(lists[0])
			lists = lists[1:]
			return out
		}
	}
	cfg.Steering, cfg.FollowUp = poll(c.Steering), poll(c.FollowUp)
	if decisions := c.FinishTurn; decisions != nil {
		cfg.FinishTurn = func(context.Context, agent.Turn) (agent.Decision, error) {
			if len(decisions) == 0 {
				return agent.Default, nil
			}
			d := decisions[0]
			decisions = decisions[1:]
			return agent.Decision(d.Action), nil
		}
	}
	each := func(list []loopNext) func() agent.NextTurn {
		return func() agent.NextTurn {
			if len(list) == 0 {
				return agent.NextTurn{}
			}
			n := list[0]
			list = list[1:]
			out := agent.NextTurn{ThinkingLevel: n.ThinkingLevel, Messages: r.messages(n.Messages)}
			if n.Model != "" {
				out.Model = loopModel(n.Model)
			}
			return out
		}
	}
	if c.PrepareNextTurn != nil {
		next := each(c.PrepareNextTurn)
		cfg.PrepareNextTurn = func(context.Context, agent.Turn) (agent.NextTurn, error) { return next(), nil }
	}
	if c.PrepareRequest != nil {
		next := each(c.PrepareRequest)
		cfg.PrepareRequest = func(context.Context, agent.Context, *llm.Model, llm.ThinkingLevel) (agent.NextTurn, error) {
			return next(), nil
		}
	}
	if c.Before != nil {
		cfg.BeforeToolCall = func(_ context.Context, info agent.CallInfo) (*agent.Block, error) {
			record(map[string]any{"hook": "before", "call": info.Call.ID, "args": info.Args})
			h := c.Before[info.Call.ID]
			if h.Abort {
				abort()
			}
			if h.Throw != "" {
				return nil, errors.New(h.Throw)
			}
			if !h.Block {
				return nil, nil
			}
			return &agent.Block{Reason: h.Reason, Terminate: h.Terminate}, nil
		}
	}
	if c.After != nil {
		cfg.AfterToolCall = func(_ context.Context, info agent.CallInfo, res agent.Result) (*agent.ResultPatch, error) {
			record(map[string]any{"hook": "after", "call": info.Call.ID, "isError": res.IsError, "text": loopText(res.Content)})
			h := c.After[info.Call.ID]
			if h.Abort {
				abort()
			}
			if h.Throw != "" {
				return nil, errors.New(h.Throw)
			}
			p := &agent.ResultPatch{IsError: h.IsError, Terminate: h.Terminate}
			if h.Content != nil {
				p.Content = new(loopBlocks(h.Content))
			}
			if h.Details != nil {
				p.Details = new(jsontext.Value(h.Details))
			}
			if h.StructuredContent != nil {
				p.StructuredContent = new(jsontext.Value(h.StructuredContent))
			}
			return p, nil
		}
	}
	if c.KeepLast > 0 {
		cfg.TransformContext = func(_ context.Context, messages []agent.Message) ([]agent.Message, error) {
			return messages[max(0, len(messages)-c.KeepLast):], nil
		}
	}
	return cfg
}

func loopBlocks(raw []byte) []llm.Block {
	var r jsonwire.Reader
	r.Reset(raw)
	return llm.ReadBlocks(&r)
}

type loopTool struct {
	Name          string                     `json:"name"`
	Description   string                     `json:"description"`
	Parameters    json.RawMessage            `json:"parameters"`
	ExecutionMode agent.Execution            `json:"executionMode"`
	Prepare       map[string]json.RawMessage `json:"prepare"`
	ByCall        map[string]json.RawMessage `json:"byCall"`
	loopBody
}

// loopBody is what a call of a tool does; byCall overrides fields of it.
type loopBody struct {
	DelayMs    int             `json:"delayMs"`
	Text       *string         `json:"text"`
	Echo       bool            `json:"echo"`
	Updates    []string        `json:"updates"`
	LateUpdate string          `json:"lateUpdate"`
	Throw      string          `json:"throw"`
	IsError    bool            `json:"isError"`
	Details    json.RawMessage `json:"details"`
	Terminate  bool            `json:"terminate"`
	WaitAbort  string          `json:"waitAbort"`
}

func (r *loopRig) tools() []*agent.Tool {
	var out []*agent.Tool
	for _, lt := range r.in.Tools {
		t := &agent.Tool{Execution: lt.ExecutionMode}
		t.Name = lt.Name
		t.Description = "tool " + lt.Name
		if lt.Description != "" {
			t.Description = lt.Description
		}
		t.Parameters = jsontext.Value(`{"type":"object","properties":{}}`)
		if lt.Parameters != nil {
			t.Parameters = jsontext.Value(lt.Parameters)
		}
		if lt.Prepare != nil {
			t.Prepare = func(args jsontext.Value) (jsontext.Value, error) {
				return loopMerge(args, lt.Prepare), nil
			}
		}
		t.Execute = func(ctx context.Context, c agent.Call) (agent.Result, error) {
			time.Sleep(time.Duration(r.order[c.ID]) * time.Millisecond)
			body := lt.loopBody
			if over := lt.ByCall[c.ID]; over != nil {
				// Decoding writes into what the fields point at.
				if body.Text != nil {
					body.Text = new(*body.Text)
				}
				body.Updates, body.Details = slices.Clone(body.Updates), slices.Clone(body.Details)
				if err := json.Unmarshal(over, &body); err != nil {
					return agent.Result{}, err
				}
			}
			return body.run(ctx, lt.Name, c)
		}
		out = append(out, t)
	}
	return out
}

// loopMerge puts the members of over into an object, whose order stays.
func loopMerge(args jsontext.Value, over map[string]json.RawMessage) jsontext.Value {
	var r jsonwire.Reader
	r.Reset(args)
	o := jsonwire.Begin(nil)
	seen := map[string]bool{}
	for r.Object(); r.More(); {
		name := string(r.Key())
		value := r.Raw()
		if v, ok := over[name]; ok {
			value = v
		}
		o.Raw(name, value)
		seen[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		if !seen[name] {
			o.Raw(name, over[name])
		}
	}
	return o.End()
}

func (b *loopBody) run(ctx context.Context, name string, c agent.Call) (agent.Result, error) {
	for _, text := range b.Updates {
		c.Update(agent.TextResult(text))
	}
	if b.DelayMs > 0 {
		time.Sleep(time.Duration(b.DelayMs) * time.Millisecond)
	}
	if b.WaitAbort != "" {
		<-ctx.Done()
	}
	if b.LateUpdate != "" {
		time.AfterFunc(time.Millisecond, func() { c.Update(agent.TextResult(b.LateUpdate)) })
	}
	if b.Throw != "" {
		return agent.Result{}, errors.New(b.Throw)
	}
	text := name + " done"
	if b.Text != nil {
		text = *b.Text
	}
	if b.Echo {
		text = loopCompact(c.Args)
	}
	res := agent.TextResult(text)
	res.IsError, res.Terminate = b.IsError, b.Terminate
	if b.Details != nil {
		res.Details = jsontext.Value(b.Details)
	}
	return res, nil
}

// loopPlain turns v into what encoding/json makes of it.
func loopPlain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func loopText(content []llm.Block) string {
	var parts []string
	for _, b := range content {
		switch b := b.(type) {
		case *llm.Text:
			parts = append(parts, b.Text)
		case *llm.Thinking:
			parts = append(parts, "<think "+b.Thinking+">")
		case *llm.ToolCall:
			parts = append(parts, "<call "+b.ID+" "+b.Name+">")
		}
	}
	return strings.Join(parts, "|")
}

func hasDetails(d jsontext.Value) bool {
	return d != nil && !slices.Contains([]string{"{}", "null"}, loopCompact(d))
}

func loopMessage(m agent.Message) map[string]any {
	out := map[string]any{"role": m.Role()}
	switch m := m.(type) {
	case *llm.System:
		if text := loopContent(m.Content); text != "" {
			out["text"] = text
		}
		var added []string
		for _, t := range m.ToolsAdded {
			added = append(added, t.Name)
		}
		if len(added) > 0 {
			out["added"] = added
		}
		if len(m.ToolsRemoved) > 0 {
			out["removed"] = m.ToolsRemoved
		}
	case *llm.User:
		out["text"] = loopContent(m.Content)
	case *llm.ToolResult:
		out["call"], out["tool"] = m.ToolCallID, m.ToolName
		out["text"], out["isError"] = loopText(m.Content), m.IsError
		if hasDetails(m.Details) {
			out["details"] = m.Details
		}
		if m.DurationMs != nil {
			out["timed"] = true
		}
	case *llm.Assistant:
		out["text"], out["stop"] = loopText(m.Content), m.StopReason
		if m.ErrorMessage != "" {
			out["error"] = m.ErrorMessage
		}
		if m.ThinkingLevel != "" && m.StopReason != llm.StopPending {
			out["level"] = m.ThinkingLevel
		}
		if m.Model != "alpha-1" {
			out["model"] = m.Model
		}
	}
	return out
}

func loopContent(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return loopText(c.Blocks)
}

func loopEvent(ev agent.Event) map[string]any {
	out := map[string]any{"type": ev.Type}
	switch ev.Type {
	case agent.MessageStart, agent.MessageEnd:
		out["message"] = loopMessage(ev.Message)
	case agent.MessageUpdate:
		out["ev"] = ev.Update.Type.String()
		if strings.HasSuffix(ev.Update.Type.String(), "_delta") {
			out["delta"] = ev.Update.Delta
		}
		out["text"] = loopText(ev.Message.(*llm.Assistant).Content)
	case agent.ToolExecutionStart:
		out["call"], out["tool"], out["args"] = ev.ToolCallID, ev.ToolName, slices.Clone(ev.Args)
	case agent.ToolExecutionUpdate:
		out["call"], out["partial"] = ev.ToolCallID, loopText(ev.Result.Content)
	case agent.ToolExecutionEnd:
		out["call"], out["tool"] = ev.ToolCallID, ev.ToolName
		out["text"], out["isError"] = loopText(ev.Result.Content), ev.IsError
		if ev.DurationMs != nil {
			out["timed"] = true
		}
		if ev.Result.Terminate {
			out["terminate"] = true
		}
	case agent.TurnEnd:
		ids := []string{}
		for _, r := range ev.ToolResults {
			ids = append(ids, r.ToolCallID)
		}
		out["message"], out["results"] = loopMessage(ev.Message), ids
	case agent.AgentEnd:
		roles := []string{}
		for _, m := range ev.Messages {
			roles = append(roles, string(m.Role()))
		}
		out["messages"] = roles
	}
	return out
}
