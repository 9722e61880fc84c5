package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Compacted is what a compaction did.
type Compacted struct {
	Entry        *session.Entry // holds a *session.CompactionEntry
	Summary      string
	FirstKept    string         // id of the entry at which the kept tail begins
	TokensBefore int64          // size of the context before
	TokensAfter  int64          // and after, estimated
	Usage        *llm.Usage     // what the summary took; nil when unknown
	Details      jsontext.Value // of the entry; nil for none
	FromHook     bool           // a hook gave the summary
}

// compaction is one that is to be made.
type compaction struct {
	reason       compact.Reason
	instructions string
	willRetry    bool // a failed request is repeated afterwards
}

// Compact puts a summary in the place of all but the end of the conversation,
// also when that is not done by itself. instructions say what the summary should
// mind, "" for nothing. A run that is active is aborted first; with
// Options.Embedded it is refused as busy instead. As it waits, listeners and
// hooks must leave it to a goroutine of their own.
//
// An *Error of kind compaction says why there is none, and holds a
// *compact.Error; the session is then as it was.
func (h *Harness) Compact(ctx context.Context, instructions string) (*Compacted, error) {
	const op = "compact"
	if err := h.interrupt(ctx, op); err != nil {
		return nil, err
	}
	var out *Compacted
	err := h.structural(ctx, op, PhaseCompaction, func(_ context.Context, r *run) error {
		c := compaction{reason: compact.Manual, instructions: instructions}
		made, failed, err := h.announced(r, c, func() (*Compacted, error) {
			p, err := compact.Prepare(h.sess.Path(), h.opts.Compaction.For(h.nextModel(r)))
			if err != nil {
				return nil, err
			}
			return h.summarize(r, c, p)
		})
		out = made
		return first(failed, err)
	})
	return out, wrapCompaction(op, err)
}

// interrupt ends a run, so that an operation on the session can begin.
func (h *Harness) interrupt(ctx context.Context, op string) error {
	h.mu.Lock()
	r := h.run
	if r != nil && (h.opts.Embedded || r.structural()) {
		defer h.mu.Unlock()
		return h.busy(op)
	}
	h.mu.Unlock()
	if r == nil {
		return nil
	}
	h.Abort()
	if err := h.WaitForIdle(ctx); err != nil {
		return &Error{KindBusy, op, err}
	}
	return nil
}

func wrapCompaction(op string, err error) error {
	if e, ok := errors.AsType[*compact.Error](err); ok {
		return &Error{KindCompaction, op, e}
	}
	return err
}

// fit compacts a conversation whose context has become too large, after a run or
// before a prompt. again says that the answer that did not fit is to be asked
// for once more. That the compaction fails is no error.
func (h *Harness) fit(r *run, beforePrompt bool) (again, compacted bool, err error) {
	if r.ctx.Err() != nil || r.broken != nil {
		return false, false, nil
	}
	model := h.nextModel(r)
	if !h.opts.Compaction.For(model).Enabled {
		return false, false, nil
	}
	d := compact.Decide(compact.Situation{
		Path: h.sess.Path(), Model: model, Settings: h.opts.Compaction, Meter: &h.meter,
		BeforePrompt: beforePrompt, Recovered: h.recovered,
	})
	switch {
	case d.GaveUp:
		return false, false, h.emit(r.ctx, &Event{
			Event: agent.Event{Type: CompactionEnd}, Reason: string(compact.Overflow), ErrorMessage: gaveUpText,
		})
	case d.Reason == "":
		return false, false, nil
	}
	repeat := d.Answer != nil && !beforePrompt
	if d.Answer != nil {
		h.recovered = true
		if err := h.omitAnswer(r, d.Answer); err != nil {
			return false, false, err
		}
	}
	compacted, err = h.compactAuto(r, compaction{reason: d.Reason, willRetry: repeat})
	if err != nil || !compacted || !repeat {
		return false, compacted, err
	}
	last := lastMessage(h.sess.Context().Messages)
	return last != nil && last.Role() != llm.RoleAssistant, true, nil
}

// gaveUpText tells a person that compacting did not help.
const gaveUpText = "The conversation is still too long for the model after it was compacted. " +
	"Choose a model with a larger context window, go back to an earlier message, or start a new session."

// omitAnswer takes an answer and the results of its calls out of the context.
func (h *Harness) omitAnswer(r *run, answer *session.Entry) error {
	m, _ := answer.Message().(*llm.Assistant)
	omit := []string{answer.ID}
	path := h.sess.Path()
	for _, e := range path[slices.Index(path, answer)+1:] {
		result, ok := e.Message().(*llm.ToolResult)
		if ok && m != nil && slices.ContainsFunc(m.Content, func(b llm.Block) bool {
			call, ok := b.(*llm.ToolCall)
			return ok && call.ID == result.ToolCallID
		}) {
			omit = append(omit, e.ID)
		}
	}
	for _, id := range omit {
		e, err := h.omit(r.op, id)
		if err != nil {
			return err
		}
		if err := h.emit(r.ctx, &Event{Event: agent.Event{Type: EntryAppended}, Entry: e}); err != nil {
			return err
		}
	}
	if answer.ID == r.lastID && r.last != nil && r.last.StopReason != llm.StopError {
		r.last = nil // half an answer, which the conversation does not show
	}
	return nil
}

// fitBetween compacts between two turns of a run.
func (h *Harness) fitBetween(r *run) error {
	model := h.nextModel(r)
	if r.ctx.Err() != nil || r.broken != nil || r.uncompacted || model.ContextWindow <= 0 || !h.opts.Compaction.For(model).Enabled {
		return nil
	}
	if d := compact.Between(h.sess.Path(), model, h.opts.Compaction, &h.meter); d.Reason != "" {
		_, err := h.compactAuto(r, compaction{reason: d.Reason})
		return err
	}
	return nil
}

// compactAuto makes a compaction that nobody asked for. When there is nothing to
// sum up nobody hears of it. The error is that of a listener or of the session.
func (h *Harness) compactAuto(r *run, c compaction) (done bool, err error) {
	p, err := compact.Prepare(h.sess.Path(), h.opts.Compaction.For(h.nextModel(r)))
	if err != nil {
		return false, nil
	}
	defer h.enter(r, PhaseCompaction)()
	_, failed, err := h.announced(r, c, func() (*Compacted, error) { return h.summarize(r, c, p) })
	if failed != nil {
		r.uncompacted = true
	}
	if err != nil {
		return false, err
	}
	if isBroken(failed) || h.faultOf(failed) {
		return false, failed
	}
	return failed == nil, nil
}

// announced makes a compaction and tells of its beginning and its end, which
// comes whatever fails. failed says why there is none; err is of a listener.
func (h *Harness) announced(r *run, c compaction, summarize func() (*Compacted, error)) (out *Compacted, failed, err error) {
	err = h.emit(r.ctx, &Event{Event: agent.Event{Type: CompactionStart}, Reason: string(c.reason)})
	if failed = err; err == nil {
		failed = guarded(r.op, func() (err error) {
			out, err = summarize()
			return err
		})
	}
	return out, failed, first(err, h.endCompaction(r, c, out, failed))
}

// faultOf reports whether err ends a run: it is neither the summary's nor a
// hook's nor that of the credentials.
func (h *Harness) faultOf(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := errors.AsType[*compact.Error](err); ok {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Kind != KindHook && e.Kind != KindAuth
}

// endCompaction tells how a compaction ended.
func (h *Harness) endCompaction(r *run, c compaction, out *Compacted, failed error) error {
	end := Event{Event: agent.Event{Type: CompactionEnd}, Reason: string(c.reason)}
	note := Event{Event: agent.Event{Type: SessionCompact}, Reason: string(c.reason)}
	switch {
	case failed == nil:
		end.Compacted, end.WillRetry = out, c.willRetry
		note.Compacted, note.Entry, note.WillRetry = out, out.Entry, c.willRetry
	case errors.Is(failed, &compact.Error{Kind: compact.Aborted}) || r.ctx.Err() != nil:
		end.Aborted = true
	default:
		end.ErrorMessage = "Auto-compaction failed: " + failureText(failed)
		switch c.reason {
		case compact.Manual:
			end.ErrorMessage = "Compaction failed: " + failureText(failed)
		case compact.Overflow:
			end.ErrorMessage = "Context overflow recovery failed: " + failureText(failed)
		}
	}
	if failed != nil {
		note.Type, note.Aborted, note.ErrorMessage = SessionCompactFailed, end.Aborted, end.ErrorMessage
	}
	h.mu.Lock()
	h.post(note)
	h.mu.Unlock()
	return h.emit(r.ctx, &end)
}

// failureText is a failed compaction in a person's words.
func failureText(err error) string {
	e, ok := errors.AsType[*compact.Error](err)
	if !ok {
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Err.Error()
		}
		return err.Error()
	}
	switch {
	case e.Kind == compact.NothingToCompact:
		return "Nothing to compact (session too small)"
	case e.Kind == compact.AlreadyCompacted:
		return "Already compacted"
	case e.Kind != compact.Failed || e.Err == nil:
		return e.Error()
	case e.Advice != "":
		return e.Err.Error() + " (" + e.Advice + ")"
	}
	return e.Err.Error()
}

// summarize asks the hooks, has the summary written and appends it.
func (h *Harness) summarize(r *run, c compaction, p *compact.Preparation) (*Compacted, error) {
	path := h.sess.Path()
	decision, err := h.beforeCompact(r.ctx, Compacting{
		FirstKept: p.FirstKept, Messages: slices.Clone(p.History), TurnPrefix: slices.Clone(p.TurnPrefix),
		PreviousSummary: p.PreviousSummary, TokensBefore: p.TokensBefore, Branch: slices.Clone(path),
		Instructions: c.instructions, Reason: CompactReason(c.reason), WillRetry: c.willRetry,
	})
	switch {
	case err != nil:
		return nil, err
	case decision.Cancel:
		return nil, &compact.Error{Kind: compact.Aborted, Op: "compact", Err: errors.New("a hook refused it")}
	}
	entry := decision.Compaction
	if entry == nil {
		var result *compact.Result
		err := h.withSummaries(r, "compaction", string(c.reason), func(ctx context.Context, o compact.Options) (err error) {
			o.Instructions = c.instructions
			result, err = compact.Run(ctx, p, o)
			return err
		})
		if err != nil {
			return nil, err
		}
		entry = result.Entry()
	} else if entry.FirstKept != "" && !slices.ContainsFunc(path, func(e *session.Entry) bool { return e.ID == entry.FirstKept }) {
		return nil, &Error{KindHook, "compact", fmt.Errorf("the entry %q, from which a hook wants to keep, is not on the branch", entry.FirstKept)}
	}
	if err := r.ctx.Err(); err != nil {
		return nil, &compact.Error{Kind: compact.Aborted, Op: "compact", Err: err}
	}
	h.saving.Lock()
	err = h.flush()
	var e *session.Entry
	if err == nil {
		e, err = h.sess.Append(entry)
	}
	h.saving.Unlock()
	if err != nil {
		return nil, &Error{KindSession, r.op, err}
	}
	d := e.Data().(*session.CompactionEntry)
	return &Compacted{
		Entry: e, Summary: d.Summary, FirstKept: d.FirstKept, TokensBefore: d.TokensBefore,
		TokensAfter: compact.EstimatePath(h.sess.Path()).Tokens, Usage: d.Usage, Details: d.Details,
		FromHook: d.FromHook != nil && *d.FromHook,
	}, nil
}

// withSummaries lets write ask the model for summaries as the harness would ask
// it. The error is that of write, of a listener or of the credentials.
func (h *Harness) withSummaries(r *run, source, reason string, write func(ctx context.Context, o compact.Options) error) error {
	model, level, err := h.summaryModel(r)
	if err != nil {
		return &compact.Error{Kind: compact.Failed, Op: r.op, Err: err}
	}
	key, err := h.credentials(r.ctx, model)
	if err != nil && r.ctx.Err() == nil {
		return &Error{KindAuth, r.op, err}
	}
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	var fault error // of a listener
	err = write(ctx, compact.Options{
		Model: model, ThinkingLevel: level, Request: h.Request(), Retry: h.opts.Retry, Now: h.now,
		Stream: func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
			m = key.addTo(m, req)
			if err := h.beforeRequest(ctx, r, m, req); err != nil {
				return nil, err
			}
			return h.opts.Stream(ctx, m, req)
		},
		Progress: func(p compact.Progress) {
			if ev := progressEvent(p, source, reason); ev != nil && fault == nil {
				if fault = h.emit(r.ctx, ev); fault != nil {
					stop()
				}
			}
		},
	})
	return first(fault, h.takeFault(r), err)
}

func progressEvent(p compact.Progress, source, reason string) *Event {
	switch p.Step {
	case compact.StepRetryScheduled:
		ev := &Event{
			Event:   agent.Event{Type: SummarizationRetryScheduled},
			Attempt: p.Attempt, MaxAttempts: p.MaxAttempts, DelayMs: p.Delay.Milliseconds(),
		}
		if p.Err != nil {
			ev.ErrorMessage = p.Err.Error()
		}
		return ev
	case compact.StepRetryStart:
		return &Event{Event: agent.Event{Type: SummarizationRetryAttemptStart}, Source: source, Reason: reason}
	case compact.StepRetryFinished:
		return &Event{Event: agent.Event{Type: SummarizationRetryFinished}}
	}
	return nil
}

// nextModel is the model that the next request goes to: the one in force, or
// who answered last in its place when that is virtual.
func (h *Harness) nextModel(r *run) *llm.Model {
	m := h.Model()
	if h.router(m) != nil || m.IsVirtual() {
		return r.answers(h)
	}
	return m
}

// summaryModel is the model that writes summaries.
func (h *Harness) summaryModel(r *run) (*llm.Model, llm.ThinkingLevel, error) {
	m, level := h.nextModel(r), h.ThinkingLevel()
	router := h.router(m)
	if router == nil && !m.IsVirtual() {
		return m, level, nil
	}
	messages := h.sess.Context().Messages
	req := llm.RouteRequest{
		Selected: llm.Pair{Provider: m.Provider, Model: m.ID, Level: level},
		Reason:   reasonFor(messages), Previous: lastPair(messages), State: h.routerState(m),
	}
	route, err := req.Resolve(r.ctx, router)
	if err != nil {
		return nil, "", err
	}
	return route.Model, route.Level, nil
}

// rearm notes what was said: after a message of the user, and after a good
// answer, a request that does not fit is recovered from again.
func (h *Harness) rearm(r *run, m agent.Message) {
	switch m := m.(type) {
	case *llm.User:
		h.recovered = false
	case *llm.Assistant:
		model := r.answers(h)
		if m.StopReason != llm.StopError && m.StopReason != llm.StopAborted &&
			!llm.IsContextOverflow(m, model.ContextWindow) && !llm.IsCutShort(m, model.MaxTokens) {
			h.recovered = false
		}
	}
}

// ContextUsage is how many tokens the context takes, counted or estimated.
// known is false after a compaction until the next answer.
func (h *Harness) ContextUsage() (tokens int64, known bool) {
	path := h.sess.Path()
	if e, ok := compact.MeasuredPath(path); ok {
		return e.Tokens, true
	}
	if session.LatestCompaction(path) >= 0 {
		return 0, false
	}
	return compact.EstimatePath(path).Tokens, true
}
