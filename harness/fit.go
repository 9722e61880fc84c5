package harness

import (
	"context"
	"errors"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// What a person is told when a conversation does not fit and compacting it does
// not help.
const (
	gaveUpText = "The conversation is still too long for the model after it was compacted. " +
		"Choose a model with a larger context window, go back to an earlier message, or start a new session."
	nothingText = "The request is too long for the model and there is nothing to compact. " +
		"Shorten the message, use fewer tools, or choose a model with a larger context window."
	futileText = "Three compactions in a row failed or made no room, so the conversation is not compacted by itself any more. " +
		"Choose a model with a larger context window, use fewer tools, compact it by hand, or start a new session."
)

// fit makes room in a conversation whose context has become too large, after a
// run or before a prompt. again says that the answer that did not fit is to be
// asked for once more. That the compaction fails is no error.
func (h *Harness) fit(r *run, beforePrompt bool) (again, compacted bool, err error) {
	if r.ctx.Err() != nil || r.broken != nil {
		return false, false, nil
	}
	model := h.nextModel(r)
	if !h.compaction().For(model).Enabled {
		return false, false, nil
	}
	d := compact.Decide(compact.Situation{
		Path: h.sess.Path(), Model: model, Settings: h.compaction(), Meter: &h.meter,
		BeforePrompt: beforePrompt, Recovered: h.recovered,
	})
	switch {
	case d.GaveUp:
		return false, false, h.endUnfit(r, compact.Overflow, gaveUpText) // recorded without a start
	case d.Reason == "" && d.Tokens > 0:
		h.futile.n = 0 // there is room, whatever made it
		return false, false, nil
	case d.Reason == "", d.Answer == nil && h.futile.on(model):
		return false, false, nil
	}
	c := compaction{reason: d.Reason, willRetry: d.Answer != nil && !beforePrompt}
	if d.Answer != nil {
		h.recovered = true
		c.answerFailed = true
		c.refused = d.Answer.Message().(*llm.Assistant).StopReason == llm.StopError
		if err := h.omitAnswer(r, d.Answer); err != nil {
			return false, false, err
		}
	}
	before := h.meter.Tokens(h.sess.Path())
	tried, compacted, err := h.compactAuto(r, c)
	if err != nil || !c.willRetry || r.ctx.Err() != nil {
		return false, compacted, err
	}
	shortened := false
	if c.refused {
		// The estimate or the window is not what the service thinks, and there is
		// one try left.
		shortened, err = h.shortenResults(r, before/2)
	}
	switch {
	case err != nil:
		return false, compacted, err
	case compacted || shortened:
	case c.refused && !tried:
		return false, false, h.tellUnfit(r, compact.Overflow, nothingText)
	default:
		return false, false, nil
	}
	last := lastMessage(h.sess.Context().Messages)
	return last != nil && last.Role() != llm.RoleAssistant, compacted, nil
}

// fitBetween makes room between two turns of a run.
func (h *Harness) fitBetween(r *run) error {
	model := h.nextModel(r)
	if r.ctx.Err() != nil || r.broken != nil || model.ContextWindow <= 0 || !h.compaction().For(model).Enabled {
		return nil
	}
	if compact.Between(h.sess.Path(), model, h.compaction(), &h.meter).Reason == "" {
		h.futile.n = 0
		return nil
	}
	if !r.uncompacted && !h.futile.on(model) {
		if _, _, err := h.compactAuto(r, compaction{reason: compact.Threshold}); err != nil {
			return err
		}
	}
	if window := int64(model.ContextWindow); h.meter.Tokens(h.sess.Path()) > window {
		_, err := h.shortenResults(r, window-h.compaction().For(model).ReserveTokens)
		return err
	}
	return nil
}

// tellUnfit tells a person why no room is made: as a compaction that ends at
// once.
func (h *Harness) tellUnfit(r *run, reason compact.Reason, text string) error {
	err := h.emit(r.ctx, &Event{Event: agent.Event{Type: CompactionStart}, Reason: string(reason)})
	return first(err, h.endUnfit(r, reason, text))
}

func (h *Harness) endUnfit(r *run, reason compact.Reason, text string) error {
	return h.emit(r.ctx, &Event{Event: agent.Event{Type: CompactionEnd}, Reason: string(reason), ErrorMessage: text})
}

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
		if err := h.edit(r, &session.ContextEditEntry{TargetID: id}); err != nil {
			return err
		}
	}
	if answer.ID == r.lastID && r.last != nil && r.last.StopReason != llm.StopError {
		r.last = nil // half an answer, which the conversation does not show
	}
	return nil
}

// edit changes what the context shows of an entry and tells of it.
func (h *Harness) edit(r *run, edit *session.ContextEditEntry) error {
	h.saving.Lock()
	e, err := h.sess.Append(edit)
	h.saving.Unlock()
	if err != nil {
		return &Error{KindSession, r.op, err}
	}
	return h.emit(r.ctx, &Event{Event: agent.Event{Type: EntryAppended}, Entry: e})
}

// shortenResults cuts results of tools when the context takes more than so many
// tokens still: no compaction cuts between a call and its result. It reports
// whether it did. The results stay whole in the session.
func (h *Harness) shortenResults(r *run, most int64) (done bool, err error) {
	path := h.sess.Path()
	for _, edit := range compact.ShortenResults(path, h.meter.Tokens(path)-most) {
		if err := h.edit(r, edit); err != nil {
			return done, err
		}
		done = true
	}
	return done, nil
}

// compactAuto makes a compaction that nobody asked for. It is not tried when
// there is nothing to sum up. The error is that of a listener or of the session.
func (h *Harness) compactAuto(r *run, c compaction) (tried, done bool, err error) {
	path, l := h.sess.Path(), h.compaction().For(h.nextModel(r))
	p, err := compact.Prepare(path, l)
	if err != nil && c.refused {
		p, err = compact.PrepareHalf(path, l)
	}
	if err != nil {
		return false, false, nil
	}
	defer h.enter(r, PhaseCompaction)()
	_, failed, err := h.announced(r, c, func(ctx context.Context) (*Compacted, error) { return h.summarize(ctx, r, c, p) })
	if failed != nil {
		r.uncompacted = true
	}
	switch {
	case err != nil:
		return true, false, err
	case isBroken(failed) || h.faultOf(failed):
		return true, false, failed
	case !c.answerFailed && h.futile.n == maxFutile:
		err = h.tellUnfit(r, c.reason, futileText)
	}
	return true, failed == nil, err
}

// maxFutile is how many compactions in a row may leave no room before none is
// made by itself any more.
const maxFutile = 3

// futile counts compactions in a row that failed, or after which the context was
// as good as full.
type futile struct {
	n     int
	model *llm.Model
}

// on reports whether compacting for a model has turned out to be of no use.
func (f *futile) on(m *llm.Model) bool { return f.n >= maxFutile && f.model == m }

// noteUse counts a compaction that failed by itself or made no room. One that
// somebody refused or ended says nothing.
func (h *Harness) noteUse(r *run, c compaction, out *Compacted, failed error) {
	m := h.nextModel(r)
	if h.futile.model != m {
		h.futile = futile{model: m}
	}
	switch {
	case out != nil:
		l := h.compaction().For(m)
		l.Enabled = true
		if h.futile.n++; m.ContextWindow <= 0 || !compact.Should(out.TokensAfter, int64(m.ContextWindow), l) {
			h.futile.n = 0
		}
	case c.reason != compact.Manual && !errors.Is(failed, &compact.Error{Kind: compact.Aborted}):
		h.futile.n++
	}
}
