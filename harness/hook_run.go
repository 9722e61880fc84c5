package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// beforeStart asks the hooks about a run that is about to begin with prompts,
// and returns what they add.
func (h *Harness) beforeStart(r *run, prompts []agent.Message) ([]agent.Message, error) {
	sets := h.sets()
	if !anyHook(sets, func(s *Hooks) bool { return s.BeforeAgentStart != nil }) {
		return nil, nil
	}
	start := Starting{Message: prompts[len(prompts)-1], Resources: r.snap.resources.clone()}
	switch m := start.Message.(type) {
	case *llm.User:
		start.Prompt, start.Images = contentText(m.Content), imagesOf(m.Content)
	case *session.Custom:
		start.Prompt, start.Images = contentText(m.Content), imagesOf(m.Content)
	}
	if h.fixed() {
		start.SystemPrompt = r.snap.prompt
	} else {
		said := slices.Concat(h.sess.Context().Messages, r.snap.patches())
		if folded := session.FoldSystem(said); folded != nil {
			start.SystemPrompt = session.Prompt(folded)
		}
	}
	var added []agent.Message
	for _, s := range sets {
		if s.BeforeAgentStart == nil {
			continue
		}
		told := start
		told.Images = slices.Clone(start.Images)
		change, err := askSet(r.ctx, h, s, HookBeforeAgentStart, false, func(ctx context.Context) (*StartingChange, error) {
			c, err := s.BeforeAgentStart(ctx, told)
			if err == nil && c != nil {
				if e := checkMessages(r.op, c.Messages); e != nil {
					err = errors.Unwrap(e)
				}
			}
			return c, err
		})
		if err != nil {
			return nil, hookFailure(r.op, err)
		}
		if change == nil {
			continue
		}
		added = append(added, change.Messages...)
		if change.SystemPrompt != nil {
			start.SystemPrompt = *change.SystemPrompt
			r.forced = change.SystemPrompt
		}
	}
	if r.forced != nil && h.fixed() {
		r.snap.prompt = *r.forced
		r.snap.head = h.headFor(*r.forced, r.snap.tools)
		r.forced = nil
	}
	return added, nil
}

func contentText(c llm.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return llm.TextOf(c.Blocks, "")
}

func imagesOf(c llm.Content) []*llm.Image {
	var out []*llm.Image
	for _, b := range c.Blocks {
		if img, ok := b.(*llm.Image); ok {
			out = append(out, img)
		}
	}
	return out
}

// transform is what a request shows of the conversation.
func (h *Harness) transform(ctx context.Context, r *run, messages []agent.Message) ([]agent.Message, error) {
	r.rewritten = false
	if h.opts.TransformContext != nil {
		var err error
		if messages, err = h.opts.TransformContext(ctx, messages); err != nil {
			return nil, err
		}
		r.rewritten = true
	}
	for _, s := range h.sets() {
		for _, hook := range []struct {
			name HookName
			fn   func(context.Context, []agent.Message) ([]agent.Message, error)
			hide bool // system messages
		}{
			{HookContext, s.Context, true},
			{HookContextWithSystem, s.ContextWithSystem, false},
		} {
			if hook.fn == nil {
				continue
			}
			shown, of := ownAll(messages)
			if hook.hide {
				shown = slices.DeleteFunc(shown, isSystem)
			}
			got, err := askSet(ctx, h, s, hook.name, false, func(ctx context.Context) ([]agent.Message, error) {
				got, err := hook.fn(ctx, shown)
				if err == nil {
					err = checkList(got)
				}
				return slices.Clone(got), err
			})
			switch {
			case err != nil:
				return nil, hookFailure(r.op, err)
			case got == nil:
				continue
			case hook.hide:
				got = restoreSystem(messages, got, of)
			case s.Report != nil && leadingSystem(messages) && !leadingSystem(got):
				_ = s.failed(ctx, hook.name, false, errors.New("took out the leading system message: the model gets no prompt"))
			}
			for i, m := range got {
				got[i] = of.unchanged(m)
			}
			messages, r.rewritten = got, true
		}
	}
	if r.forced != nil {
		messages, r.rewritten = forcePrompt(messages, *r.forced), true
	}
	return messages, nil
}

func isSystem(m agent.Message) bool { return m.Role() == llm.RoleSystem }

func leadingSystem(messages []agent.Message) bool { return len(messages) > 0 && isSystem(messages[0]) }

// restoreSystem puts the system messages of before into after, which a hook made
// of the others: each before the message that it stood before, else behind the
// one that it stood behind, else at the head. of knows the copies in after.
func restoreSystem(before, after []agent.Message, of owned) []agent.Message {
	place := make(map[agent.Message]int, len(after))
	for i, m := range after {
		m = of.original(m)
		if _, ok := place[m]; !ok {
			place[m] = i
		}
	}
	at := make([][]agent.Message, len(after)+1) // system messages in front of each place
	for i, m := range before {
		if !isSystem(m) {
			continue
		}
		where := 0
		found := false
		for _, n := range before[i+1:] {
			if where, found = place[n]; found {
				break
			}
		}
		if !found {
			for _, n := range slices.Backward(before[:i]) {
				if where, found = place[n]; found {
					where++
					break
				}
			}
		}
		at[where] = append(at[where], m)
	}
	out := make([]agent.Message, 0, len(before)+len(after))
	for i, m := range after {
		out = append(append(out, at[i]...), m)
	}
	return append(out, at[len(after)]...)
}

// forcePrompt puts a prompt in the place of all system messages; the tools that
// they declare stay.
func forcePrompt(messages []agent.Message, prompt string) []agent.Message {
	one := &llm.System{Content: llm.Plain(prompt)}
	if folded := session.FoldSystem(messages); folded != nil {
		one.ToolsAdded = folded.ToolsAdded
	}
	rest := slices.DeleteFunc(slices.Clone(messages), isSystem)
	return append([]agent.Message{one}, rest...)
}

// toolCall asks who may keep a call from running. The first block counts.
func (h *Harness) toolCall(ctx context.Context, info agent.CallInfo) (*agent.Block, error) {
	args := info.Args
	set := func(other jsontext.Value) {
		args = other
		info.SetArgs(other)
	}
	if h.opts.BeforeToolCall != nil {
		own := info
		own.SetArgs = set
		if block, err := h.opts.BeforeToolCall(ctx, own); block != nil || err != nil {
			return block, err
		}
	}
	for _, s := range h.sets() {
		if s.ToolCall == nil {
			continue
		}
		// The hook has a call of its own until it returns, so that one that was
		// left behind changes nothing.
		c := ToolCall{ToolCallID: info.Call.ID, ToolName: info.Call.Name, Input: slices.Clone(args)}
		type verdict struct {
			block *agent.Block
			input jsontext.Value
		}
		v, err := askSet(ctx, h, s, HookToolCall, true, func(ctx context.Context) (verdict, error) {
			block, err := s.ToolCall(ctx, &c)
			return verdict{block, c.Input}, err
		})
		if err != nil {
			return nil, errors.Unwrap(err) // the model reads it
		}
		if v.block != nil {
			return v.block, nil
		}
		if v.input != nil {
			set(v.input)
		}
	}
	return nil, nil
}

// toolResult lets hooks change a result, one after the other.
func (h *Harness) toolResult(ctx context.Context, info agent.CallInfo, result agent.Result) (*agent.ResultPatch, error) {
	changed := false
	change := func(p *agent.ResultPatch) {
		if p != nil {
			result, changed = p.Apply(result), true
		}
	}
	if h.opts.AfterToolCall != nil {
		p, err := h.opts.AfterToolCall(ctx, info, result)
		if err != nil {
			return nil, err
		}
		change(p)
	}
	for _, s := range h.sets() {
		if s.ToolResult == nil {
			continue
		}
		told := ToolResult{
			ToolCallID: info.Call.ID, ToolName: info.Call.Name, Input: slices.Clone(info.Args), Result: result,
		}
		told.Result.Content, told.Result.Details = ownBlocks(result.Content), slices.Clone(result.Details)
		told.Result.StructuredContent = slices.Clone(result.StructuredContent)
		p, err := askSet(ctx, h, s, HookToolResult, false, func(ctx context.Context) (*agent.ResultPatch, error) {
			return s.ToolResult(ctx, told)
		})
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		change(p)
	}
	if !changed {
		return nil, nil
	}
	return &agent.ResultPatch{
		Content: &result.Content, Details: &result.Details, StructuredContent: &result.StructuredContent,
		IsError: &result.IsError, Usage: &result.Usage, Terminate: &result.Terminate,
	}, nil
}

// messageEnd lets hooks replace a message before anybody has seen it whole. What
// the loop made, and nobody else has, is changed in its place; the loop takes
// others from the session.
func (h *Harness) messageEnd(ctx context.Context, r *run, m agent.Message) (agent.Message, error) {
	now := m
	for _, s := range h.sets() {
		if s.MessageEnd == nil {
			continue
		}
		shown := own(now)
		of := owned{shown: now}
		got, err := askSet(ctx, h, s, HookMessageEnd, false, func(ctx context.Context) (agent.Message, error) {
			got, err := s.MessageEnd(ctx, shown)
			switch {
			case err != nil || got == nil:
				return nil, err
			case isNil(got):
				return nil, errors.New("returned a message that is nil")
			case got.Role() != m.Role():
				return nil, fmt.Errorf("returned a %s message for a %s message", got.Role(), m.Role())
			}
			return got, nil
		})
		if err != nil {
			return now, hookFailure(r.op, err)
		}
		if got != nil {
			now = of.unchanged(got)
		}
	}
	if now == m {
		return m, nil
	}
	switch m := m.(type) {
	case *llm.Assistant:
		if other, ok := now.(*llm.Assistant); ok {
			*m = *other
			return m, nil
		}
	case *llm.ToolResult:
		if other, ok := now.(*llm.ToolResult); ok {
			id, name := m.ToolCallID, m.ToolName
			*m = *other
			m.ToolCallID, m.ToolName = id, name
			return m, nil
		}
	}
	if r.replaced == nil {
		r.replaced = map[agent.Message]agent.Message{}
	}
	r.replaced[m], r.stale = now, true
	return now, nil
}

// replacedIn is messages with what hooks put in the place of some.
func (r *run) replacedIn(messages []agent.Message) []agent.Message {
	if len(r.replaced) == 0 {
		return messages
	}
	out := slices.Clone(messages)
	for i, m := range out {
		if other := r.replaced[m]; other != nil {
			out[i] = other
		}
	}
	return out
}

// draft is an entry that a hook wants to be appended.
type draft struct {
	set  *hookSet
	hook HookName
	data session.Data
}

// turnEnd asks the hooks what follows a turn.
func (h *Harness) turnEnd(ctx context.Context, r *run, t agent.Turn) (agent.Decision, error) {
	var told *TurnEnding
	var outcome TurnOutcome
	switch t.Message.StopReason {
	case llm.StopError:
		outcome = TurnFailed
	case llm.StopAborted:
		outcome = TurnAborted
	default:
		outcome = TurnCompleted
	}
	more, err := h.askDrafts(ctx, r, HookTurnEnd, func(s *hookSet, have Drafts) func(context.Context) (*Drafts, error) {
		if s.TurnEnd == nil {
			return nil
		}
		if told == nil {
			told = &TurnEnding{
				TurnIndex: r.turns, Message: t.Message, MessageEntryID: r.lastID, Outcome: outcome, Context: h.Messages(),
			}
		}
		ev := *told
		ev.ToolResults, ev.ResultEntryIDs, ev.Drafts = slices.Clone(t.ToolResults), slices.Clone(r.resultIDs), have
		return func(ctx context.Context) (*Drafts, error) { return s.TurnEnd(ctx, ev) }
	})
	if err != nil {
		return agent.Default, err
	}
	if more && h.answerable(r, t) {
		return agent.Continue, nil
	}
	return agent.Default, nil
}

// answerable reports whether a model that is asked behind a turn finds something
// to answer, once what waits for the end of the turn is in the session.
func (h *Harness) answerable(r *run, t agent.Turn) bool {
	if len(t.ToolResults) > 0 {
		return true
	}
	h.mu.Lock()
	writes := slices.Clone(h.turnWrites)
	h.mu.Unlock()
	for _, d := range r.drafts {
		writes = append(writes, d.data)
	}
	hidden := false
	for _, data := range writes {
		switch d := data.(type) {
		case *session.MessageEntry:
			if session.Convert(d.Message) != nil && d.Message.Role() != llm.RoleSystem {
				return true
			}
		case *session.CustomMessageEntry:
			return true
		case *session.CompactionEntry:
			if h.sess.Entry(d.FirstKept) == nil {
				return true // nothing but the summary is left
			}
		case *session.ContextEditEntry:
			hidden = hidden || r.lastID != "" && d.TargetID == r.lastID && d.Replacement == nil
		}
	}
	if !hidden {
		return false
	}
	messages := h.Messages()
	last := lastMessage(messages[:max(0, len(messages)-1)])
	return last != nil && last.Role() != llm.RoleAssistant
}

// beforeSettle asks the hooks whether anything is left to do, and reports
// whether the model is to be asked again.
func (h *Harness) beforeSettle(r *run) (bool, error) {
	if r.ctx.Err() != nil {
		return false, nil
	}
	more, err := h.askDrafts(r.ctx, r, HookAgentBeforeSettle, func(s *hookSet, have Drafts) func(context.Context) (*Drafts, error) {
		if s.AgentBeforeSettle == nil {
			return nil
		}
		ev := Settling{Drafts: have, Context: h.Messages()}
		return func(ctx context.Context) (*Drafts, error) { return s.AgentBeforeSettle(ctx, ev) }
	})
	err = first(err, h.writeDrafts(r))
	h.deliver()
	if err != nil || !more || r.last != nil && r.last.StopReason == llm.StopError {
		return false, err
	}
	if last := lastMessage(h.sess.Context().Messages); last == nil || last.Role() == llm.RoleAssistant {
		return false, nil // there is nothing that the model could answer
	}
	return true, nil
}

// askDrafts asks all sets and keeps their entries in r. hook makes the call of
// one set, nil for none.
func (h *Harness) askDrafts(ctx context.Context, r *run, name HookName, hook func(s *hookSet, have Drafts) func(context.Context) (*Drafts, error)) (more bool, err error) {
	var have Drafts
	for _, s := range h.sets() {
		fn := hook(s, Drafts{slices.Clone(have.Entries), have.Continue})
		if fn == nil {
			continue
		}
		d, err := askSet(ctx, h, s, name, false, func(ctx context.Context) (*Drafts, error) {
			d, err := fn(ctx)
			if err == nil && d != nil {
				err = checkDrafts(d.Entries)
			}
			return d, err
		})
		if err != nil {
			return false, hookFailure(r.op, err)
		}
		if d == nil {
			continue
		}
		have.Continue = have.Continue || d.Continue
		have.Entries = append(have.Entries, d.Entries...)
		for _, data := range d.Entries {
			r.drafts = append(r.drafts, draft{s, name, data})
		}
	}
	return have.Continue, nil
}

func checkDrafts(entries []session.Data) error {
	for _, data := range entries {
		if isNil(data) {
			return errors.New("returned an entry that is nil")
		}
		switch data.(type) {
		case *session.CustomEntry, *session.CustomMessageEntry, *session.ContextEditEntry, *session.CompactionEntry:
		default:
			return fmt.Errorf("returned a %s entry: only custom, custom_message, context_edit and compaction are for hooks", data.EntryType())
		}
	}
	return nil
}

// writeDrafts appends what hooks drafted. An entry that the session refuses is a
// failure of its hook; one that cannot be written ends the run.
func (h *Harness) writeDrafts(r *run) (err error) {
	drafts := r.drafts
	r.drafts = nil
	if len(drafts) == 0 {
		return nil
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	for _, d := range drafts {
		e, werr := h.sess.Append(d.data)
		switch {
		case werr == nil:
			h.mu.Lock()
			h.announceEntry(e)
			h.mu.Unlock()
		case isRefused(werr):
			err = first(err, hookFailure(r.op, d.set.failed(r.ctx, d.hook, false, werr)))
		default:
			return &Error{KindSession, r.op, werr}
		}
	}
	return err
}

// announceEntry tells of an entry that is no message of the loop; h.mu is held.
func (h *Harness) announceEntry(e *session.Entry) {
	if d, ok := e.Data().(*session.CustomMessageEntry); ok {
		m := &session.Custom{
			CustomType: d.CustomType, Content: d.Content, Display: d.Display, Details: d.Details,
			Timestamp: e.Time().UnixMilli(),
		}
		h.post(Event{Event: agent.Event{Type: agent.MessageStart, Message: m}})
		h.post(Event{Event: agent.Event{Type: agent.MessageEnd, Message: m}})
		return
	}
	h.post(Event{Event: agent.Event{Type: EntryAppended}, Entry: e})
}
