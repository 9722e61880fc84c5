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

// AutoCompaction reports whether the conversation is compacted by itself; what
// Options.Compaction says of single models counts all the same.
func (h *Harness) AutoCompaction() bool { return !h.compaction().Disabled }

// SetAutoCompaction says whether the conversation is compacted by itself, from
// the next look at its size on.
func (h *Harness) SetAutoCompaction(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opts.Compaction.Disabled = !on
}

func (h *Harness) compaction() compact.Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opts.Compaction
}

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
	answerFailed bool // there is no answer that the person could go on from
	refused      bool // the request did not fit, so that something must go
}

// Compact puts a summary in the place of all but the end of the conversation,
// also when that is not done by itself. instructions say what the summary should
// mind, "" for nothing. A run that is active is aborted first; with
// Options.Embedded it is refused as busy instead, and makes a summary also where
// all of the conversation is recent. As it waits, listeners and
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
		made, failed, err := h.announced(r, c, func(ctx context.Context) (*Compacted, error) {
			path, l := h.sess.Path(), h.compaction().For(h.nextModel(r))
			p, err := compact.Prepare(path, l)
			if h.opts.Embedded && errors.Is(err, &compact.Error{Kind: compact.NothingToCompact}) {
				p, err = compact.PrepareAll(path, l) // a program that asks for a summary gets one
			}
			if err != nil {
				return nil, err
			}
			return h.summarize(ctx, r, c, p)
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

// announced makes a compaction and tells of its beginning and its end, which
// comes whatever fails. failed says why there is none; err is of a listener. The
// context of summarize ends with AbortCompaction too.
func (h *Harness) announced(r *run, c compaction, summarize func(ctx context.Context) (*Compacted, error)) (out *Compacted, failed, err error) {
	ctx, done := h.abortable(r)
	defer done()
	err = h.emit(r.ctx, &Event{Event: agent.Event{Type: CompactionStart}, Reason: string(c.reason)})
	if failed = err; err == nil {
		failed = guarded(r.op, func() (err error) {
			out, err = summarize(ctx)
			return err
		})
	}
	h.noteUse(r, c, out, failed)
	return out, failed, first(err, h.endCompaction(ctx, r, c, out, failed))
}

// abortable is a context for what AbortCompaction or AbortBranchSummary may end
// by itself, while the run goes on.
func (h *Harness) abortable(r *run) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	h.mu.Lock()
	r.stopSummary = cancel
	h.mu.Unlock()
	return ctx, func() {
		h.mu.Lock()
		r.stopSummary = nil
		h.mu.Unlock()
		cancel()
	}
}

// AbortCompaction ends a compaction and nothing else. One that a run makes by
// itself is told as aborted and the run goes on without it; Compact returns as
// after Abort. While none is made it does nothing.
func (h *Harness) AbortCompaction() { h.abortSummary(PhaseCompaction) }

// AbortBranchSummary ends a NavigateTree, which then changes nothing. While
// nobody moves in the tree it does nothing.
func (h *Harness) AbortBranchSummary() { h.abortSummary(PhaseBranchSummary) }

func (h *Harness) abortSummary(p Phase) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.run; r != nil && r.phase == p && r.stopSummary != nil {
		r.stopSummary()
	}
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
func (h *Harness) endCompaction(ctx context.Context, r *run, c compaction, out *Compacted, failed error) error {
	end := Event{Event: agent.Event{Type: CompactionEnd}, Reason: string(c.reason)}
	note := Event{Event: agent.Event{Type: SessionCompact}, Reason: string(c.reason)}
	switch {
	case failed == nil:
		end.Compacted, end.WillRetry = out, c.willRetry
		note.Compacted, note.Entry, note.WillRetry = out, out.Entry, c.willRetry
	case errors.Is(failed, &compact.Error{Kind: compact.Aborted}) || ctx.Err() != nil:
		end.Aborted = true
	default:
		end.ErrorMessage = "Auto-compaction failed: " + Explain(failed)
		switch c.reason {
		case compact.Manual:
			end.ErrorMessage = "Compaction failed: " + Explain(failed)
		case compact.Overflow:
			end.ErrorMessage = "Context overflow recovery failed: " + Explain(failed)
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

// Explain is what an error of the harness says to a person, without the
// operation that failed.
func Explain(err error) string {
	e, ok := errors.AsType[*compact.Error](err)
	if !ok {
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Err.Error()
		}
		return err.Error()
	}
	reason := e.Reason()
	if e.Kind == compact.Failed && e.Err != nil {
		reason = e.Err.Error()
	}
	switch {
	case e.Kind == compact.NothingToCompact:
		return "Nothing to compact (session too small)"
	case e.Kind == compact.AlreadyCompacted:
		return "Already compacted"
	case e.Kind == compact.Aborted && (e.Err == nil || errors.Is(e.Err, context.Canceled)):
		return "Compaction cancelled" // by somebody who knows why
	case e.Kind == compact.Aborted:
		return "Compaction cancelled: " + e.Err.Error()
	case e.Part == compact.TurnPrefix:
		return "Turn prefix summarization failed: " + reason
	case e.Part == compact.Branch:
		return "Branch summarization failed: " + reason
	case e.Part != "":
		return "Summarization failed: " + reason
	}
	return reason
}

// summarize asks the hooks, has the summary written and appends it.
func (h *Harness) summarize(ctx context.Context, r *run, c compaction, p *compact.Preparation) (*Compacted, error) {
	path := h.sess.Path()
	decision, err := h.beforeCompact(ctx, Compacting{
		FirstKept: p.FirstKept, Messages: slices.Clone(p.History), TurnPrefix: slices.Clone(p.TurnPrefix),
		PreviousSummary: p.PreviousSummary, TokensBefore: p.TokensBefore, Branch: slices.Clone(path),
		Instructions: c.instructions, Reason: CompactReason(c.reason), WillRetry: c.willRetry,
	})
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, err
	case decision.Cancel:
		return nil, &compact.Error{Kind: compact.Aborted, Op: "compact", Err: errors.New("a hook refused it")}
	}
	entry := decision.Compaction
	if entry == nil && ctx.Err() == nil {
		var result *compact.Result
		err := h.withSummaries(ctx, r, "compaction", string(c.reason), func(ctx context.Context, o compact.Options) (err error) {
			o.Instructions = c.instructions
			result, err = compact.Run(ctx, p, o)
			return err
		})
		if err != nil {
			return nil, err
		}
		entry = result.Entry()
	} else if entry != nil && entry.FirstKept != "" && !slices.ContainsFunc(path, func(e *session.Entry) bool { return e.ID == entry.FirstKept }) {
		return nil, &Error{KindHook, "compact", fmt.Errorf("the entry %q, from which a hook wants to keep, is not on the branch", entry.FirstKept)}
	}
	if ctx.Err() != nil {
		return nil, &compact.Error{Kind: compact.Aborted, Op: "compact", Err: context.Cause(ctx)}
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
	after := compact.EstimatePath(h.sess.Path()).Tokens
	return &Compacted{
		Entry: e, Summary: d.Summary, FirstKept: d.FirstKept, TokensBefore: d.TokensBefore,
		TokensAfter: after, Usage: d.Usage, Details: d.Details,
		FromHook: d.FromHook != nil && *d.FromHook,
	}, nil
}

// withSummaries lets write ask the model for summaries as the harness would ask
// it. The error is that of write, of a listener or of the credentials.
func (h *Harness) withSummaries(ctx context.Context, r *run, source, reason string, write func(ctx context.Context, o compact.Options) error) error {
	model, level, err := h.summaryModel(ctx, r)
	if err != nil {
		return &compact.Error{Kind: compact.Failed, Op: r.op, Err: err}
	}
	key, err := h.credentials(ctx, model)
	if err != nil && ctx.Err() == nil {
		return &Error{KindAuth, r.op, err}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var fault error // of a listener
	err = write(ctx, compact.Options{
		Model: model, ThinkingLevel: level, Request: h.Request(), Retry: h.repeats(), Now: h.now,
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
func (h *Harness) summaryModel(ctx context.Context, r *run) (*llm.Model, llm.ThinkingLevel, error) {
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
	route, err := req.Resolve(ctx, router)
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
