package compact

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

const (
	// maxPieces is in how many pieces a conversation is read at most, which
	// bounds the requests of a summary to twice as many.
	maxPieces = 16
	// minPiece is the length in bytes below which a piece is not divided.
	minPiece = 2000
)

// writer writes the summaries of one compaction.
type writer struct {
	op     string
	o      Options
	id     string // routes the requests to one place
	usage  llm.Usage
	wrote  bool // usage is that of at least one request
	report func(Progress)
}

func newWriter(op string, o Options) (*writer, error) {
	if o.Model == nil || o.Stream == nil {
		return nil, &Error{Kind: Failed, Op: op, Err: errors.New("Options.Model and Options.Stream are needed")}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	id, err := session.NewID(o.Now(), rand.Reader)
	if err != nil {
		return nil, &Error{Kind: Failed, Op: op, Err: err}
	}
	w := &writer{op: op, o: o, id: id, report: o.Progress}
	if w.report == nil {
		w.report = func(Progress) {}
	}
	return w, nil
}

// write sums up messages that go on where the previous summary ends. What the
// model says is too long for it is read in two halves.
func (w *writer) write(ctx context.Context, part Part, messages []agent.Message, previous string) (string, error) {
	queue := [][]string{paragraphs(messages)}
	if w.oversized(previous) {
		// As of a model with a larger window. No request would fit beside it.
		queue[0] = slices.Insert(queue[0], 0, paragraphs([]agent.Message{&session.CompactionSummary{Summary: previous}})...)
		previous = ""
		if part == Update {
			part = Initial
		}
	}
	at := Progress{Part: part, Piece: 1, Pieces: 1}
	for len(queue) > 0 {
		tooLong := w.exceedsWindow(at, queue[0], previous)
		left, right, divisible := halve(queue[0])
		divisible = divisible && at.Pieces < maxPieces
		if !tooLong || !divisible {
			text, err := w.ask(ctx, at, strings.Join(queue[0], "\n\n"), previous)
			tooLong = errors.Is(err, &Error{Kind: TooLong})
			// A summary of a conversation that the service may have cut is better
			// than none.
			if err == nil || tooLong && !divisible && text != "" {
				previous = text
				queue = queue[1:]
				at.Step, at.Bytes = StepReply, len(text)
				w.report(at)
				at.Bytes = 0
				at.Piece++
				continue
			}
			if !tooLong || !divisible {
				return "", err
			}
		}
		queue = append([][]string{left, right}, queue[1:]...)
		at.Pieces++
		at.Step = StepSplit
		w.report(at)
	}
	return previous, nil
}

// exceedsWindow reports whether a request about the paragraphs cannot fit into
// a context window that is known. Some services cut such a request instead of
// refusing it.
func (w *writer) exceedsWindow(at Progress, paragraphs []string, previous string) bool {
	if w.o.Model.ContextWindow <= 0 {
		return false
	}
	units := jsonwire.UTF16Len(w.prompt(at, "", previous)) + len(systemText)
	for _, p := range paragraphs {
		units += jsonwire.UTF16Len(p) + 2
	}
	return units/4 > w.o.Model.ContextWindow
}

// oversized reports whether a summary takes more than half of a context window
// that is known: the conversation could not go on behind it.
func (w *writer) oversized(summary string) bool {
	return w.o.Model.ContextWindow > 0 && jsonwire.UTF16Len(summary)/4 > w.o.Model.ContextWindow/2
}

// halve divides paragraphs into two halves of about the same length. A single
// one is divided itself.
func halve(paragraphs []string) (left, right []string, ok bool) {
	total := 0
	for _, p := range paragraphs {
		total += len(p)
	}
	if total < 2*minPiece {
		return nil, nil, false
	}
	n := 0
	for i, p := range paragraphs {
		if n+len(p) <= total/2 {
			n += len(p)
			continue
		}
		if n >= total/4 {
			return paragraphs[:i], paragraphs[i:], true
		}
		if n+len(p) <= total-total/4 {
			return paragraphs[:i+1], paragraphs[i+1:], true
		}
		// The paragraph in the middle is longer than all others together.
		cut := total/2 - n
		for cut > 0 && p[cut]&0xC0 == 0x80 {
			cut--
		}
		left = append(append(left, paragraphs[:i]...), p[:cut])
		right = append(append(right, p[cut:]), paragraphs[i+1:]...)
		return left, right, true
	}
	return nil, nil, false
}

// ask has the model sum up one piece. Failures that pass are repeated. A text
// that comes with an error of kind TooLong may be of a part of the piece only.
func (w *writer) ask(ctx context.Context, at Progress, conversation, previous string) (string, error) {
	prompt := w.prompt(at, conversation, previous)
	var m *llm.Assistant
	var err error
	for retries := 0; ; {
		at.Step = StepRequest
		w.report(at)
		m, err = w.request(ctx, at, prompt)
		again := err == nil && ctx.Err() == nil && w.o.Retry.Repeats(m, w.o.Model.ContextWindow, retries)
		if !again {
			break
		}
		retries++
		at.Attempt, at.MaxAttempts = retries, w.o.Retry.Max()
		at.Delay, at.Err = w.o.Retry.Delay(retries), errors.New(m.ErrorMessage)
		at.Step = StepRetryScheduled
		w.report(at)
		if !sleep(ctx, at.Delay) {
			break
		}
		at.Step = StepRetryStart
		w.report(at)
	}
	text := ""
	if err == nil {
		text, err = w.judge(ctx, at.Part, m)
	}
	if at.Attempt > 0 {
		at.Step, at.Err = StepRetryFinished, err
		w.report(at)
	}
	if err != nil && text == "" {
		return "", err
	}
	if !w.wrote {
		w.usage, w.wrote = m.Usage, true
	} else {
		w.usage = session.AddUsage(w.usage, m.Usage)
	}
	return text, err
}

// prompt is the user message of a request.
func (w *writer) prompt(at Progress, conversation, previous string) string {
	var b strings.Builder
	b.WriteString("<conversation>\n" + conversation + "\n</conversation>\n\n")
	if previous != "" {
		b.WriteString("<previous-summary>\n" + previous + "\n</previous-summary>\n\n")
	}
	part := at.Part
	if part == Initial && at.Piece > 1 {
		part = Update
	}
	replaced := w.o.Replace && part == Branch && w.o.Instructions != ""
	if replaced {
		b.WriteString(w.o.Instructions)
	} else {
		b.WriteString(Instructions(part))
	}
	if at.Piece > 1 && part != Update {
		b.WriteString("\n\n" + strings.TrimSpace(continueText))
	}
	if w.o.Instructions != "" && !replaced {
		b.WriteString("\n\n" + FocusLeadIn() + w.o.Instructions)
	}
	return b.String()
}

// request sends one request and reads the answer to its end.
func (w *writer) request(ctx context.Context, at Progress, prompt string) (*llm.Assistant, error) {
	if ctx.Err() != nil {
		return nil, w.aborted(ctx)
	}
	model := w.o.Model
	req := &llm.Request{
		Messages: llm.Fold(strings.TrimSpace(systemText), nil, []llm.Message{llm.UserText(prompt, w.o.Now().UnixMilli())}),
		Options:  w.o.Request,
	}
	req.MaxTokens, req.ToolChoice, req.Memo = 0, "", nil
	req.CacheRetention, req.SessionID = "none", w.id
	req.Reasoning = ""
	if level := w.o.ThinkingLevel; model.Reasoning && level != "" {
		req.Reasoning = model.ClampLevel(level)
	}
	s, err := w.o.Stream(ctx, model, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, w.aborted(ctx)
	case err != nil:
		return nil, &Error{Kind: Failed, Op: w.op, Err: err}
	case s == nil:
		return nil, &Error{Kind: Failed, Op: w.op, Err: errors.New("the stream function returned no stream")}
	}
	at.Step = StepText
	for ev := range s.Events() {
		if ev.Type == llm.EventTextDelta {
			at.Bytes += len(ev.Delta)
			w.report(at)
		}
	}
	if m := s.Result(); m != nil {
		return m, nil
	}
	return nil, &Error{Kind: Failed, Op: w.op, Err: errors.New("the stream ended without an answer")}
}

// judge takes the summary out of an answer.
func (w *writer) judge(ctx context.Context, part Part, m *llm.Assistant) (string, error) {
	fail := func(k Kind, err error, advice string) (string, error) {
		return "", &Error{Kind: k, Op: w.op, Part: part, Err: err, Advice: advice}
	}
	if ctx.Err() != nil || m.StopReason == llm.StopAborted {
		return "", w.aborted(ctx)
	}
	overflow := llm.IsContextOverflow(m, w.o.Model.ContextWindow)
	if overflow && m.StopReason != llm.StopStop {
		return fail(TooLong, causeOf(m), tooLongAdvice)
	}
	switch m.StopReason {
	case llm.StopStop, llm.StopToolUse:
	case llm.StopLength:
		return fail(Truncated, nil, "choose a model with a larger output limit")
	default:
		text := m.ErrorMessage
		if text == "" {
			text = "the answer ended with " + string(m.StopReason)
		}
		return fail(Failed, errors.New(text), "")
	}
	if len(m.ToolCalls()) > 0 {
		return fail(CalledTool, nil, "try again, or choose another model")
	}
	text := llm.TextOf(m.Content, "\n")
	if jsonwire.Blank(text) {
		return fail(EmptySummary, nil, "try again, or choose another model")
	}
	if w.oversized(text) {
		return fail(Oversized, nil, "try again, or choose another model")
	}
	if overflow {
		_, err := fail(TooLong, nil, tooLongAdvice)
		return text, err
	}
	return text, nil
}

const tooLongAdvice = "choose a model with a larger context window"

// causeOf is what the provider said, nil when it said nothing.
func causeOf(m *llm.Assistant) error {
	if m.ErrorMessage == "" {
		return nil
	}
	return errors.New(m.ErrorMessage)
}

func (w *writer) aborted(ctx context.Context) error {
	return &Error{Kind: Aborted, Op: w.op, Err: context.Cause(ctx)}
}

// sleep waits and reports whether the context lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
