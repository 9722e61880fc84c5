package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// The session vectors run a harness over a session in memory: what listeners
// see, what the model is asked, what the session keeps.

func TestLoopSession(t *testing.T) {
	g := newGroup("loop/session")
	for _, file := range vectorFiles(t, "loop") {
		var v struct {
			Driver string          `json:"driver"`
			Input  sessionRunInput `json:"input"`
			Expect json.RawMessage `json:"expect"`
		}
		readVector(t, file, &v)
		if v.Driver != "session" {
			continue
		}
		var got map[string]any
		synctest.Test(t, func(t *testing.T) { got = runSessionVector(t, &v.Input) })
		var want map[string]any
		if err := json.Unmarshal(v.Expect, &want); err != nil {
			t.Fatal(err)
		}
		context, _ := want["context"].([]any)
		for _, m := range context {
			// The recording has the reference's own words there.
			if m := m.(map[string]any); m["role"] == string(session.RoleBranchSummary) {
				_, said, _ := strings.Cut(m["summary"].(string), "\n\n")
				m["summary"] = "«BRANCH_PREAMBLE»" + said
			}
		}
		g.report(t, strings.TrimSuffix(filepath.Base(file), ".json"), loopCompare(want, loopPlain(t, got).(map[string]any)), nil)
	}
}

type sessionRunInput struct {
	Tools     []loopTool     `json:"tools"`
	Responses []loopResponse `json:"responses"`
	Settings  struct {
		Retry *struct {
			Enabled         *bool `json:"enabled"`
			MaxRetries      *int  `json:"maxRetries"`
			BaseDelayMs     int   `json:"baseDelayMs"`
			MaxAgentDelayMs int   `json:"maxAgentDelayMs"`
		} `json:"retry"`
		Compaction struct {
			Enabled          *bool  `json:"enabled"`
			ReserveTokens    *int64 `json:"reserveTokens"`
			KeepRecentTokens *int64 `json:"keepRecentTokens"`
		} `json:"compaction"`
		BranchSummary struct {
			ReserveTokens *int64 `json:"reserveTokens"`
		} `json:"branchSummary"`
		SteeringMode harness.QueueMode `json:"steeringMode"`
		FollowUpMode harness.QueueMode `json:"followUpMode"`
	} `json:"settings"`
	ContextWindow int               `json:"contextWindow"`
	MaxTokens     int               `json:"maxTokens"`
	ThinkingLevel llm.ThinkingLevel `json:"thinkingLevel"`
	On            []loopReaction    `json:"on"`
	Steps         []loopAction      `json:"steps"`
}

// sessionRunPrompt is the length of the recorded prompt in characters, rounded
// up to tokens; its text was not recorded, but counts in the sizes of contexts.
const sessionRunPrompt = 36

// sessionRun drives one harness.
type sessionRun struct {
	*loopRig
	h            *harness.Harness
	log          []any
	queueUpdates []any
	actions      []any
}

func (in *sessionRunInput) retry() harness.Retry {
	var out harness.Retry
	if r := in.Settings.Retry; r != nil {
		out.Disabled = r.Enabled != nil && !*r.Enabled
		if r.MaxRetries != nil {
			out.MaxRetries = *r.MaxRetries
			out.Disabled = out.Disabled || *r.MaxRetries == 0
		}
		out.BaseDelay = time.Duration(r.BaseDelayMs) * time.Millisecond
		out.MaxDelay = time.Duration(r.MaxAgentDelayMs) * time.Millisecond
	}
	return out
}

func runSessionVector(t *testing.T, in *sessionRunInput) map[string]any {
	d := &sessionRun{loopRig: newLoopRig(t, &loopInput{Tools: in.Tools, Responses: in.Responses}), log: []any{}}
	model := loopModel("alpha-1")
	model.ContextWindow, model.MaxTokens = in.ContextWindow, in.MaxTokens
	if model.ContextWindow == 0 {
		model.ContextWindow = 100_000
	}
	sess, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compaction := in.Settings.Compaction
	ask := d.stream(false)
	d.h, err = harness.New(harness.Options{
		Compaction: compact.Settings{
			Disabled:      compaction.Enabled != nil && !*compaction.Enabled,
			ReserveTokens: compaction.ReserveTokens, KeepRecentTokens: compaction.KeepRecentTokens,
		},
		BranchReserveTokens: in.Settings.BranchSummary.ReserveTokens,
		Model:               model, ThinkingLevel: in.ThinkingLevel, Session: sess,
		Stream: func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
			s, err := ask(ctx, m, req)
			if req.CacheRetention == "none" && len(d.requests) > 0 { // only summaries are asked for so
				d.requests[len(d.requests)-1] = map[string]any{"summarisation": true}
			}
			return s, err
		},
		Tools: d.tools(), SystemPrompt: strings.Repeat("p", sessionRunPrompt), Retry: in.retry(),
		SteeringMode: in.Settings.SteeringMode, FollowUpMode: in.Settings.FollowUpMode,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[agent.EventType]int{}
	d.h.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.MessageUpdate:
		case harness.QueueUpdate:
			d.queueUpdates = append(d.queueUpdates, map[string]any{"steering": ev.Steering, "followUp": ev.FollowUp})
		default:
			d.log = append(d.log, sessionRunEvent(ev))
		}
		seen[ev.Type]++
		for _, on := range in.On {
			if on.Event == string(ev.Type) && seen[ev.Type] == max(1, on.Nth) {
				for _, a := range on.Do {
					d.do(a, func(entry map[string]any) { d.actions = append(d.actions, entry) })
				}
			}
		}
		return nil
	})
	for _, step := range in.Steps {
		d.do(step, func(entry map[string]any) { d.log = append(d.log, entry) })
	}
	got := d.result()
	if err := d.h.Close(); err != nil {
		t.Error(err)
	}
	return got
}

// do takes one step or reaction; note books what it shows.
func (d *sessionRun) do(action loopAction, note func(map[string]any)) {
	ctx := context.Background()
	for name, arg := range action {
		var text string
		var ms int
		_ = json.Unmarshal(arg, &text) // only some steps have a text, others a number
		_ = json.Unmarshal(arg, &ms)
		var err error
		switch name {
		case "prompt":
			// A run that failed has an answer that says so.
			if m, e := d.h.Prompt(ctx, text); m == nil {
				err = e
			}
		case "promptSteer", "promptFollowUp":
			in := harness.Input{Text: text, Behavior: harness.AsSteering}
			if name == "promptFollowUp" {
				in.Behavior = harness.AsFollowUp
			}
			if m, e := d.h.Submit(ctx, in); m == nil {
				err = e
			}
		case "steer":
			err = d.h.Steer(text)
		case "followUp":
			err = d.h.FollowUp(text)
		case "clearQueue":
			d.h.ClearQueues()
		case "abort":
			d.h.Abort()
		case "abortRetry":
			d.h.AbortRetry()
		case "sleep":
			time.Sleep(time.Duration(ms) * time.Millisecond)
		case "bash":
			err = d.bash(arg)
		case "custom":
			err = d.custom(ctx, arg)
		case "compact":
			var c *harness.Compacted
			if c, err = d.h.Compact(ctx, text); err == nil {
				note(map[string]any{"compacted": map[string]any{
					"summary": c.Summary, "firstKept": d.place(c.FirstKept), "tokensBefore": c.TokensBefore,
				}})
			}
		case "navigate":
			var to struct {
				To, CustomInstructions, Label  string
				Summarize, ReplaceInstructions bool
			}
			_ = json.Unmarshal(arg, &to)
			var n harness.Navigated
			n, err = d.h.NavigateTree(ctx, d.entryID(to.To), harness.TreeOptions{
				Summarize: to.Summarize, Instructions: to.CustomInstructions,
				ReplaceInstructions: to.ReplaceInstructions, Label: to.Label,
			})
			if err == nil {
				note(map[string]any{"navigated": loopNavigated(n, d.place)})
			}
		case "usage":
			usage := map[string]any{"tokens": nil, "percent": nil, "contextWindow": d.h.Model().ContextWindow}
			if tokens, known := d.h.ContextUsage(); known {
				usage["tokens"], usage["percent"] = tokens, float64(tokens)/float64(d.h.Model().ContextWindow)*100
			}
			note(map[string]any{"contextUsage": usage})
		case "stats":
			note(map[string]any{"stats": d.stats()})
		case "lastText":
			note(map[string]any{"lastText": d.lastText()})
		default:
			err = fmt.Errorf("the harness has no operation %q", name)
		}
		if err != nil {
			note(map[string]any{"action": name, "error": sessionRunCode(err)})
		}
	}
}

// place is the name of an entry in the vectors, nil for none.
func (d *sessionRun) place(id string) any {
	for i, e := range d.h.Session().Entries() {
		if e.ID == id {
			return fmt.Sprintf("e%d", i)
		}
	}
	return nil
}

func (d *sessionRun) entryID(place string) string {
	var at int
	if _, err := fmt.Sscanf(place, "e%d", &at); err == nil && at < len(d.h.Session().Entries()) {
		return d.h.Session().Entries()[at].ID
	}
	return place
}

func loopNavigated(n harness.Navigated, place func(string) any) map[string]any {
	out := map[string]any{"cancelled": n.Cancelled, "leaf": place(n.Leaf)}
	if n.Editable {
		out["editorText"] = n.EditorText
	}
	if n.Summary != nil {
		out["summary"] = place(n.Summary.ID)
	}
	if n.Aborted {
		out["aborted"] = true
	}
	return out
}

func sessionRunCode(err error) string {
	if e, ok := errors.AsType[*compact.Error](err); ok {
		if e.Kind == compact.Failed {
			return harness.Explain(err)
		}
		return string(e.Kind)
	}
	if e, ok := errors.AsType[*harness.Error](err); ok {
		return string(e.Kind)
	}
	return err.Error()
}

func (d *sessionRun) bash(arg []byte) error {
	var b struct {
		Command, Output string
		Exclude         bool
		ExitCode        int64
	}
	if err := json.Unmarshal(arg, &b); err != nil {
		return err
	}
	return d.h.AppendMessage(&session.BashExecution{
		Command: b.Command, Output: b.Output, ExitCode: &b.ExitCode, ExcludeFromContext: b.Exclude, Timestamp: 1,
	})
}

func (d *sessionRun) custom(ctx context.Context, arg []byte) error {
	var c struct {
		Content     string
		TriggerTurn *bool
	}
	if err := json.Unmarshal(arg, &c); err != nil {
		return err
	}
	m := &session.Custom{CustomType: "note", Content: llm.Plain(c.Content), Display: true, Timestamp: 1}
	switch {
	case c.TriggerTurn != nil && *c.TriggerTurn && d.h.IsIdle():
		if answer, err := d.h.PromptMessages(ctx, m); answer == nil {
			return err
		}
		return nil
	case !d.h.IsIdle() && (c.TriggerTurn == nil || *c.TriggerTurn):
		return errors.New("the harness queues no custom messages")
	}
	return d.h.AppendMessage(m)
}

func (d *sessionRun) stats() map[string]any {
	s := d.h.Session().Stats()
	u := s.Usage
	return map[string]any{
		"user": s.UserMessages, "assistant": s.AssistantMessages, "toolCalls": s.ToolCalls,
		"toolResults": s.ToolResults, "total": s.Messages,
		"tokens": map[string]any{
			"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite,
			"total": u.Input + u.Output + u.CacheRead + u.CacheWrite,
		},
	}
}

func (d *sessionRun) lastText() any {
	for _, m := range slices.Backward(d.h.Messages()) {
		a, ok := m.(*llm.Assistant)
		if text := ""; ok {
			if text = jsonwire.Trim(llm.TextOf(a.Content, "")); text != "" {
				return text
			} else if a.StopReason == llm.StopStop {
				return nil
			}
		}
	}
	return nil
}

// result is what the run left, in the form of the expectation.
func (d *sessionRun) result() map[string]any {
	sess := d.h.Session()
	ids := map[string]string{}
	entries := []any{}
	for i, e := range sess.Entries() {
		ids[e.ID] = fmt.Sprintf("e%d", i)
		entries = append(entries, sessionRunEntry(e, ids))
	}
	messages := []any{}
	for _, m := range d.h.Messages() {
		if m.Role() != llm.RoleSystem {
			messages = append(messages, sessionRunMessage(m))
		}
	}
	requests := []any{}
	for _, r := range d.requests {
		seen := []any{}
		messages, ok := r.(map[string]any)["messages"].([]any)
		if !ok {
			requests = append(requests, r)
			continue
		}
		for _, m := range messages {
			if m.(map[string]any)["role"] != llm.RoleSystem {
				seen = append(seen, m)
			}
		}
		requests = append(requests, map[string]any{"messages": seen})
	}
	out := map[string]any{
		"log": d.log, "requests": requests, "entries": entries, "leaf": ids[sess.LeafID()], "context": messages,
	}
	if len(d.queueUpdates) > 0 {
		out["queueUpdates"] = d.queueUpdates
	}
	if len(d.actions) > 0 {
		out["actions"] = d.actions
	}
	return out
}

func sessionRunMessage(m agent.Message) map[string]any {
	switch m := m.(type) {
	case *llm.System:
		return map[string]any{"role": m.Role()}
	case *session.Custom:
		return map[string]any{"role": m.Role(), "text": loopContent(m.Content)}
	case *session.BashExecution:
		return map[string]any{"role": m.Role(), "command": m.Command}
	case *session.CompactionSummary:
		return map[string]any{"role": m.Role(), "summary": m.Summary}
	case *session.BranchSummary:
		return map[string]any{"role": m.Role(), "summary": m.Summary}
	}
	return loopMessage(m)
}

func sessionRunEvent(ev harness.Event) map[string]any {
	out := loopEvent(ev.Event)
	switch ev.Type {
	case agent.MessageStart, agent.MessageEnd:
		out["message"] = sessionRunMessage(ev.Message)
	case agent.AgentEnd:
		out["willRetry"] = ev.WillRetry
	case harness.AgentSettled:
		out["aborted"] = ev.Aborted
	case harness.EntryAppended:
		out["entry"] = ev.Entry.Type
	case harness.AutoRetryStart:
		out["attempt"], out["maxAttempts"], out["delayMs"] = ev.Attempt, ev.MaxAttempts, ev.DelayMs
		out["error"] = ev.ErrorMessage
	case harness.AutoRetryEnd:
		out["success"], out["attempt"] = ev.Success, ev.Attempt
		if !ev.Success {
			out["finalError"] = ev.FinalError
		}
	case harness.CompactionStart:
		out["reason"] = ev.Reason
	case harness.CompactionEnd:
		out["reason"], out["aborted"], out["willRetry"] = ev.Reason, ev.Aborted, ev.WillRetry
		if ev.Compacted != nil {
			out["tokensBefore"] = ev.Compacted.TokensBefore
		}
		if ev.ErrorMessage != "" {
			out["error"] = ev.ErrorMessage
		}
	case harness.ThinkingLevelChanged:
		out["level"] = ev.Level
	}
	return out
}

func sessionRunEntry(e *session.Entry, ids map[string]string) map[string]any {
	out := map[string]any{"type": e.Type}
	switch d := e.Data().(type) {
	case *session.ModelChangeEntry:
		out["provider"], out["modelId"] = d.Provider, d.ModelID
	case *session.ThinkingLevelEntry:
		out["level"] = d.Level
	case *session.MessageEntry:
		m := sessionRunMessage(d.Message)
		if s, ok := d.Message.(*llm.System); ok {
			added := []string{}
			for _, t := range s.ToolsAdded {
				added = append(added, t.Name)
			}
			m["sections"], m["added"] = len(s.Sections) > 0, added
		}
		out["message"] = m
	case *session.CustomMessageEntry:
		out["customType"], out["content"] = d.CustomType, loopContent(d.Content)
	case *session.CompactionEntry:
		out["summary"], out["firstKept"], out["tokensBefore"] = d.Summary, ids[d.FirstKept], d.TokensBefore
		out["fromHook"], out["checkpoint"] = d.FromHook != nil && *d.FromHook, d.System != nil
	case *session.BranchSummaryEntry:
		out["summary"], out["fromId"] = d.Summary, ids[d.FromID]
	case *session.LabelEntry:
		out["target"], out["label"] = ids[d.TargetID], d.Label
	case *session.ContextEditEntry:
		out["target"], out["replacement"] = ids[d.TargetID], d.Replacement
	}
	return out
}

// sessionRunUsage reads the usage of a scripted reply.
func sessionRunUsage(raw json.RawMessage) llm.Usage {
	if raw == nil {
		return llm.Usage{}
	}
	var r jsonwire.Reader
	r.Reset(raw)
	return llm.ReadUsage(&r)
}
