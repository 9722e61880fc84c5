package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// The harness vectors run an embedded harness with a fixed prompt: what all
// listeners and hooks see, what the model is asked, what the session keeps.
// They were recorded from an API of another language, whose names differ:
//
//	vector                      here
//	steer, followUp             Steer, FollowUp of an embedded harness
//	nextTurn                    NextTurn
//	abort                       AbortAndClear, from a goroutine of its own as it waits
//	append                      AppendMessage
//	setModel, setThinking       SetModel, SetThinkingLevel
//	setActive                   SetActiveTools
//	skill, template             Skill, PromptFromTemplate
//	compact, navigate           operations of the harness on its session
//	before_provider_request     BeforeProviderRequest; streamOptions are a RequestPatch
//	settled                     agent_settled
//	queue_update.steer          Event.Steering
//	abort.clearedSteer          Event.Steering of abort, and clearedFollowUp its FollowUp
//	a prompt that returns the   an answer together with an error of kind unknown or hook
//	  message of a failed run
//
// An answer has no thinking level and a result no duration there, and a person's
// events (thinking_level_changed, entry_appended) do not exist.
func TestLoopHarness(t *testing.T) {
	g := newGroup("loop/harness")
	for _, file := range vectorFiles(t, "loop") {
		var v struct {
			Driver string          `json:"driver"`
			Input  harnessInput    `json:"input"`
			Expect json.RawMessage `json:"expect"`
		}
		readVector(t, file, &v)
		if v.Driver != "harness" {
			continue
		}
		var got map[string]any
		synctest.Test(t, func(t *testing.T) { got = runHarnessVector(t, &v.Input) })
		var want map[string]any
		if err := json.Unmarshal(v.Expect, &want); err != nil {
			t.Fatal(err)
		}
		has := loopPlain(t, got).(map[string]any)
		harnessSummaryWording(want)
		harnessSummaryWording(has)
		g.report(t, strings.TrimSuffix(filepath.Base(file), ".json"), loopCompare(want, has), nil)
	}
}

// harnessSummaryWording leaves of the requests for summaries what is no wording:
// the conversation, the summary before it and the headings that are asked for.
func harnessSummaryWording(v map[string]any) {
	for _, req := range asObjects(v["requests"]) {
		for _, m := range asObjects(req["messages"]) {
			text, _ := m["text"].(string)
			end := strings.LastIndex(text, "\n</previous-summary>\n\n")
			if end < 0 {
				end = strings.Index(text, "\n</conversation>\n\n")
			}
			if !strings.HasPrefix(text, "<conversation>\n") || end < 0 || req["prompt"] == "" {
				continue
			}
			kept := text[:end]
			for line := range strings.Lines(text[end:]) {
				if strings.HasPrefix(line, "#") {
					kept += "\n" + strings.TrimSpace(line)
				}
			}
			m["text"], req["prompt"] = kept, "a prompt for summaries"
		}
	}
}

type harnessInput struct {
	Tools         []loopTool             `json:"tools"`
	Active        []string               `json:"activeToolNames"`
	Responses     []loopResponse         `json:"responses"`
	ThinkingLevel llm.ThinkingLevel      `json:"thinkingLevel"`
	SteeringMode  harness.QueueMode      `json:"steeringMode"`
	FollowUpMode  harness.QueueMode      `json:"followUpMode"`
	StreamOptions harnessOptions         `json:"streamOptions"`
	Resources     harnessResources       `json:"resources"`
	Hooks         map[string]harnessHook `json:"hooks"`
	FailOn        string                 `json:"failOn"`
	On            []loopReaction         `json:"on"`
	Steps         []loopAction           `json:"steps"`
}

type harnessHook struct {
	Return json.RawMessage            `json:"return"`
	ByCall map[string]json.RawMessage `json:"byCall"`
	Throw  string                     `json:"throw"`
}

type harnessResources struct {
	Skills          []struct{ Name, Description, Content, FilePath string }
	PromptTemplates []struct{ Name, Description, Content string }
}

func (r harnessResources) resources() harness.Resources {
	var out harness.Resources
	for _, s := range r.Skills {
		out.Skills = append(out.Skills, harness.Skill{Name: s.Name, Description: s.Description, Content: s.Content, FilePath: s.FilePath})
	}
	for _, p := range r.PromptTemplates {
		out.Templates = append(out.Templates, harness.Template{Name: p.Name, Description: p.Description, Content: p.Content})
	}
	return out
}

// harnessOptions are the options of requests; null takes one back.
type harnessOptions struct {
	Headers         map[string]*string         `json:"headers"`
	Metadata        map[string]json.RawMessage `json:"metadata"`
	TimeoutMs       *int64                     `json:"timeoutMs"`
	MaxRetries      *int                       `json:"maxRetries"`
	MaxRetryDelayMs *int64                     `json:"maxRetryDelayMs"`
	CacheRetention  *string                    `json:"cacheRetention"`
}

// harnessPatch reads a patch: a member that is there and null clears.
func harnessPatch(raw json.RawMessage) (*harness.RequestPatch, error) {
	var o harnessOptions
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &o), json.Unmarshal(raw, &members)); err != nil {
		return nil, err
	}
	p := &harness.RequestPatch{Headers: o.Headers, MaxRetries: o.MaxRetries, CacheRetention: o.CacheRetention}
	millis := func(ms *int64) *time.Duration {
		if ms == nil {
			return nil
		}
		return new(time.Duration(*ms) * time.Millisecond)
	}
	p.Timeout, p.MaxRetryDelay = millis(o.TimeoutMs), millis(o.MaxRetryDelayMs)
	for name, v := range o.Metadata {
		if p.Metadata == nil {
			p.Metadata = map[string]jsontext.Value{}
		}
		if p.Metadata[name] = jsontext.Value(v); string(v) == "null" {
			p.Metadata[name] = nil
		}
	}
	for name, v := range members {
		if string(v) != "null" {
			continue
		}
		switch name {
		case "headers":
			p.ClearHeaders = true
		case "metadata":
			p.ClearMetadata = true
		case "timeoutMs":
			p.Timeout = new(time.Duration(0))
		case "maxRetries":
			p.MaxRetries = new(0)
		case "maxRetryDelayMs":
			p.MaxRetryDelay = new(time.Duration(0))
		case "cacheRetention":
			p.CacheRetention = new("")
		}
	}
	return p, nil
}

// harnessRun drives one harness.
type harnessRun struct {
	*loopRig
	in *harnessInput
	h  *harness.Harness

	mu       sync.Mutex
	log      []any
	returned chan struct{}  // closed when the prompt under way has returned
	aborts   sync.WaitGroup // that wait for the run
}

func (d *harnessRun) note(entry map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, entry)
}

func runHarnessVector(t *testing.T, in *harnessInput) map[string]any {
	d := &harnessRun{loopRig: newLoopRig(t, &loopInput{Tools: in.Tools, Responses: in.Responses}), in: in, log: []any{}}
	sess, err := memory.Open(session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	request := llm.Options{Headers: in.StreamOptions.Headers}
	if in.StreamOptions.Metadata != nil {
		if request.Metadata, err = json.Marshal(in.StreamOptions.Metadata); err != nil {
			t.Fatal(err)
		}
	}
	d.h, err = harness.New(harness.Options{
		Embedded: true, Prompt: harness.FixedPrompt, SystemPrompt: "BASE",
		Model: loopModel("alpha-1"), ThinkingLevel: in.ThinkingLevel, Stream: d.ask, Session: sess,
		Tools: d.tools(), ActiveTools: in.Active, Resources: in.Resources.resources(), Request: request,
		SteeringMode: in.SteeringMode, FollowUpMode: in.FollowUpMode,
		Retry: harness.Retry{Disabled: true}, Compaction: compact.Settings{Disabled: true},
		Credentials: func(context.Context, *llm.Model) (harness.Credentials, error) {
			return harness.Credentials{Headers: map[string]*string{"x-auth": new("1")}}, nil
		},
		Hooks: []harness.Hooks{d.hooks()},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[agent.EventType]int{}
	d.h.SubscribeAll(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.MessageUpdate, harness.ThinkingLevelChanged, harness.EntryAppended, harness.SessionInfoChanged,
			harness.CompactionStart, harness.CompactionEnd, harness.SessionCompactFailed:
			return nil
		case harness.AbortDone:
			if wait := d.waiting(); wait != nil {
				<-wait // the prompt that was aborted has returned first
			}
		}
		entry := harnessEvent(ev)
		d.note(entry)
		name := agent.EventType(entry["type"].(string))
		seen[name]++
		for _, on := range in.On {
			if on.Event == string(name) && seen[name] == max(1, on.Nth) {
				for _, a := range on.Do {
					d.do(a, true)
				}
			}
		}
		if in.FailOn == string(name) {
			return errors.New("listener failed")
		}
		return nil
	})
	for _, step := range in.Steps {
		d.do(step, false)
		d.aborts.Wait()
	}
	got := map[string]any{"log": d.log, "requests": d.requests, "entries": d.entries()}
	if err := d.h.Close(); err != nil {
		t.Error(err)
	}
	return got
}

func (d *harnessRun) waiting() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.returned
}

// ask is the model.
func (d *harnessRun) ask(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	messages, tools, prompt := []any{}, []string{}, ""
	for _, msg := range req.Messages {
		if s, ok := msg.(*llm.System); ok {
			prompt += loopContent(s.Content)
			for _, t := range s.ToolsAdded {
				tools = append(tools, t.Name)
			}
			continue
		}
		messages = append(messages, harnessMessage(msg))
	}
	headers := map[string]string{}
	for name, v := range req.Headers {
		if v != nil {
			headers[name] = *v
		}
	}
	d.requests = append(d.requests, map[string]any{
		"prompt": prompt, "tools": tools, "messages": messages, "level": req.Reasoning, "headers": headers, "model": m.ID,
	})
	if d.next >= len(d.in.Responses) {
		return nil, errors.New("script exhausted")
	}
	resp := &d.in.Responses[d.next]
	d.next++
	if resp.Throw != "" {
		return nil, errors.New(resp.Throw)
	}
	return llm.NewStream(newLoopSource(ctx, m, resp)), nil
}

// hook notes a call of a hook and gives its scripted return, nil for none.
func (d *harnessRun) hook(name, call string) (json.RawMessage, error) {
	h := d.in.Hooks[name]
	d.note(map[string]any{"hook": name})
	if h.Throw != "" {
		return nil, errors.New(h.Throw)
	}
	if v, ok := h.ByCall[call]; ok {
		return v, nil
	}
	return h.Return, nil
}

// hooks makes those that the vector names.
func (d *harnessRun) hooks() harness.Hooks {
	var h harness.Hooks
	into := func(name, call string, v any) (bool, error) {
		raw, err := d.hook(name, call)
		if err != nil || raw == nil {
			return false, err
		}
		return true, json.Unmarshal(raw, v)
	}
	for name := range d.in.Hooks {
		switch name {
		case "before_agent_start":
			h.BeforeAgentStart = func(context.Context, harness.Starting) (*harness.StartingChange, error) {
				var v struct {
					SystemPrompt *string
					Messages     []json.RawMessage
				}
				if ok, err := into(name, "", &v); !ok {
					return nil, err
				}
				return &harness.StartingChange{SystemPrompt: v.SystemPrompt, Messages: d.messages(v.Messages)}, nil
			}
		case "context":
			h.Context = func(context.Context, []agent.Message) ([]agent.Message, error) {
				var v struct{ Messages []json.RawMessage }
				if ok, err := into(name, "", &v); !ok || v.Messages == nil {
					return nil, err
				}
				return append([]agent.Message{}, d.messages(v.Messages)...), nil
			}
		case "before_provider_request":
			h.BeforeProviderRequest = func(context.Context, harness.ProviderRequest) (*harness.RequestPatch, error) {
				var v struct{ StreamOptions json.RawMessage }
				if ok, err := into(name, "", &v); !ok || v.StreamOptions == nil {
					return nil, err
				}
				return harnessPatch(v.StreamOptions)
			}
		case "before_provider_payload":
			h.BeforeProviderPayload = func(context.Context, harness.ProviderPayload) (jsontext.Value, error) {
				var v struct{ Payload json.RawMessage }
				_, err := into(name, "", &v)
				return jsontext.Value(v.Payload), err
			}
		case "tool_call":
			h.ToolCall = func(_ context.Context, c *harness.ToolCall) (*agent.Block, error) {
				var v struct {
					Block  bool
					Reason string
				}
				if ok, err := into(name, c.ToolCallID, &v); !ok || !v.Block {
					return nil, err
				}
				return &agent.Block{Reason: v.Reason}, nil
			}
		case "tool_result":
			h.ToolResult = func(_ context.Context, r harness.ToolResult) (*agent.ResultPatch, error) {
				var v struct {
					Content, Details   json.RawMessage
					IsError, Terminate *bool
				}
				if ok, err := into(name, r.ToolCallID, &v); !ok {
					return nil, err
				}
				p := &agent.ResultPatch{IsError: v.IsError, Terminate: v.Terminate}
				if v.Content != nil {
					p.Content = new(loopBlocks(v.Content))
				}
				if v.Details != nil {
					p.Details = new(jsontext.Value(v.Details))
				}
				return p, nil
			}
		case "session_before_compact":
			h.SessionBeforeCompact = func(context.Context, harness.Compacting) (*harness.CompactDecision, error) {
				var v struct {
					Cancel     bool
					Compaction *struct {
						Summary          string
						FirstKeptEntryID string
						TokensBefore     int64
					}
				}
				if ok, err := into(name, "", &v); !ok {
					return nil, err
				}
				out := &harness.CompactDecision{Cancel: v.Cancel}
				if c := v.Compaction; c != nil {
					out.Compaction = &session.CompactionEntry{
						Summary: c.Summary, FirstKept: d.entryID(c.FirstKeptEntryID), TokensBefore: c.TokensBefore,
					}
				}
				return out, nil
			}
		case "session_before_tree":
			h.SessionBeforeTree = func(context.Context, harness.TreeMove) (*harness.TreeDecision, error) {
				var v struct {
					Cancel              bool
					Summary             *struct{ Summary string }
					CustomInstructions  *string
					ReplaceInstructions *bool
					Label               *string
				}
				if ok, err := into(name, "", &v); !ok {
					return nil, err
				}
				out := &harness.TreeDecision{
					Cancel: v.Cancel, Instructions: v.CustomInstructions, ReplaceInstructions: v.ReplaceInstructions, Label: v.Label,
				}
				if v.Summary != nil {
					out.Summary = &session.BranchSummaryEntry{Summary: v.Summary.Summary}
				}
				return out, nil
			}
		default:
			d.t.Errorf("the harness has no hook %q", name)
		}
	}
	return h
}

// do takes one step, or one reaction of a listener.
func (d *harnessRun) do(action loopAction, inListener bool) {
	ctx := context.Background()
	for name, arg := range action {
		var text string
		var named struct {
			Name, Extra string
			Args        []string
		}
		var names []string
		var ms int
		// Each step has one form; the others leave their variable empty.
		_, _, _, _ = json.Unmarshal(arg, &text), json.Unmarshal(arg, &named), json.Unmarshal(arg, &names), json.Unmarshal(arg, &ms)
		var err error
		switch name {
		case "prompt":
			err = d.prompt(inListener, func() (*llm.Assistant, error) { return d.h.Prompt(ctx, text) })
		case "skill":
			err = d.prompt(inListener, func() (*llm.Assistant, error) { return d.h.Skill(ctx, named.Name, named.Extra) })
		case "template":
			err = d.prompt(inListener, func() (*llm.Assistant, error) {
				return d.h.PromptFromTemplate(ctx, named.Name, named.Args...)
			})
		case "steer":
			err = d.h.Steer(text)
		case "followUp":
			err = d.h.FollowUp(text)
		case "nextTurn":
			err = d.h.NextTurn(llm.UserText(text, 1))
		case "append":
			err = d.h.AppendMessage(llm.UserText(text, 1))
		case "setModel":
			err = d.h.SetModel(loopModel(text))
		case "setThinking":
			err = d.h.SetThinkingLevel(llm.ThinkingLevel(text))
		case "setActive":
			err = d.h.SetActiveTools(names...)
		case "setSteeringMode":
			err = d.h.SetSteeringMode(harness.QueueMode(text))
		case "setFollowUpMode":
			err = d.h.SetFollowUpMode(harness.QueueMode(text))
		case "abort":
			d.aborts.Go(func() {
				if _, err := d.h.AbortAndClear(ctx); err != nil {
					d.t.Error(err)
				}
			})
			synctest.Wait() // the queues are empty before anything else happens
		case "compact":
			var c *harness.Compacted
			if c, err = d.h.Compact(ctx, text); err == nil {
				d.note(map[string]any{"compacted": map[string]any{
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
				d.note(map[string]any{"navigated": loopNavigated(n, d.place)})
			}
		case "waitForIdle":
			err = d.h.WaitForIdle(ctx)
		case "sleep":
			time.Sleep(time.Duration(ms) * time.Millisecond)
		default:
			err = fmt.Errorf("the harness has no operation %q", name)
		}
		if err != nil {
			d.note(map[string]any{"action": name, "code": harnessCode(err)})
		}
	}
}

// prompt notes the answer of a prompt. A failed run has one too.
func (d *harnessRun) prompt(inListener bool, do func() (*llm.Assistant, error)) error {
	if !inListener {
		d.mu.Lock()
		d.returned = make(chan struct{})
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			close(d.returned)
			d.returned = nil
		}()
	}
	m, err := do()
	if m == nil {
		return err
	}
	d.note(map[string]any{"result": harnessMessage(m)})
	return nil
}

func harnessCode(err error) string {
	if e, ok := errors.AsType[*harness.Error](err); ok {
		return string(e.Kind)
	}
	return "none"
}

// place is the name of an entry in the vectors, nil for none.
func (d *harnessRun) place(id string) any {
	for i, e := range d.h.Session().Entries() {
		if e.ID == id {
			return fmt.Sprintf("e%d", i)
		}
	}
	return nil
}

// entryID is the id of an entry that a vector names by its position.
func (d *harnessRun) entryID(name string) string {
	entries := d.h.Session().Entries()
	var at int
	if _, err := fmt.Sscanf(name, "e%d", &at); err == nil && at < len(entries) {
		return entries[at].ID
	}
	return name
}

func harnessMessage(m agent.Message) map[string]any {
	out := loopMessage(m)
	delete(out, "level")
	delete(out, "timed")
	return out
}

func harnessEvent(ev harness.Event) map[string]any {
	out := loopEvent(ev.Event)
	out["type"] = string(ev.Type)
	delete(out, "timed")
	texts := func(list []string) []string { return append([]string{}, list...) }
	switch ev.Type {
	case agent.MessageStart, agent.MessageEnd, agent.TurnEnd:
		out["message"] = harnessMessage(ev.Message)
	case harness.QueueUpdate:
		out["steer"], out["followUp"], out["nextTurn"] = texts(ev.Steering), texts(ev.FollowUp), texts(ev.NextTurn)
	case harness.SavePoint:
		out["hadPendingMutations"] = ev.HadPendingMutations
	case harness.AgentSettled:
		out["type"], out["nextTurnCount"] = "settled", ev.NextTurnCount
	case harness.SessionTree:
		out["hasSummary"], out["fromHook"] = ev.Entry != nil, ev.FromHook
	case harness.AbortDone:
		out["clearedSteer"], out["clearedFollowUp"] = texts(ev.Steering), texts(ev.FollowUp)
	case harness.ModelSelect:
		out["model"], out["previous"], out["source"] = ev.Model.ID, ev.PreviousModel.ID, "set"
	case harness.ThinkingLevelSelect:
		out["level"], out["previous"] = ev.Level, ev.PreviousLevel
	}
	return out
}

// entries are those of the session with their parents.
func (d *harnessRun) entries() []any {
	out := []any{}
	ids := map[string]any{"": nil}
	for i, e := range d.h.Session().Entries() {
		ids[e.ID] = fmt.Sprintf("e%d", i)
		entry := map[string]any{"id": ids[e.ID], "parent": ids[e.ParentID], "type": e.Type}
		switch data := e.Data().(type) {
		case *session.MessageEntry:
			entry["message"] = harnessMessage(data.Message)
		case *session.ModelChangeEntry:
			entry["modelId"] = data.ModelID
		case *session.ThinkingLevelEntry:
			entry["level"] = data.Level
		case *session.LeafEntry:
			entry["target"] = ids[data.TargetID]
		case *session.LabelEntry:
			entry["target"] = ids[data.TargetID]
		}
		out = append(out, entry)
	}
	return slices.Clip(out)
}
