package compact

import (
	"context"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Options say how summaries are written. Model and Stream are needed.
type Options struct {
	Model  *llm.Model
	Stream agent.StreamFunc // adds credentials; such as the Stream method of an llm.Registry

	// ThinkingLevel is how hard the model thinks, if it does at all; it is
	// clamped to what the model supports. "" is off.
	ThinkingLevel llm.ThinkingLevel

	// Instructions are what the user wants to be minded, besides the built-in
	// instructions; "" for nothing.
	Instructions string
	// Replace puts Instructions in the place of the built-in ones. Only branch
	// summaries heed it.
	Replace bool

	// Retry says how requests that fail in passing are repeated.
	Retry llm.Retry

	// Progress hears of each step, if it is not nil, from the goroutine that
	// compacts. It should return soon.
	Progress func(Progress)

	// Request holds what else goes into each request, such as headers, timeouts
	// and the identity. Its limits, cache, session and thinking are not used.
	Request llm.Options

	Now func() time.Time // nil for time.Now
}

// Step is what a Progress reports.
type Step uint8

// The steps of a summary.
const (
	StepRequest        Step = iota + 1 // a request goes out
	StepText                           // the summary grew
	StepReply                          // the summary of this piece is complete
	StepSplit                          // the piece was too long and is read in two
	StepRetryScheduled                 // the request failed and is repeated after Delay
	StepRetryStart                     // it is repeated now
	StepRetryFinished                  // the repeating is over; Err is nil when it helped
)

// Progress tells how far a summary is.
type Progress struct {
	Step   Step
	Part   Part
	Piece  int // from 1
	Pieces int // so far known; most summaries take 1
	Bytes  int // of the summary so far, with StepText and StepReply

	// With the steps of retries.
	Attempt     int // from 1
	MaxAttempts int
	Delay       time.Duration
	Err         error
}

// Result is a compaction that can be appended to the session.
type Result struct {
	Summary      string // with the lists of files at its end
	FirstKept    string // id of the entry at which the kept tail begins
	TokensBefore int64
	Usage        llm.Usage // of all requests that gave a summary
	Files        Files
}

// Entry is the entry to append.
func (r *Result) Entry() *session.CompactionEntry {
	return &session.CompactionEntry{
		Summary: r.Summary, FirstKept: r.FirstKept, TokensBefore: r.TokensBefore,
		Details: r.Files.details(), Usage: &r.Usage, FromHook: new(false),
	}
}

// Run writes the summaries of a compaction. It changes nothing: the caller
// appends Result.Entry to the session, whose leaf must still be the end of the
// path that was prepared.
//
// What is too long for one request is read in pieces, each with the summary of
// those before it. The error is an *Error of kind Truncated, CalledTool,
// EmptySummary, Oversized, TooLong, Failed or Aborted. Run ends soon after ctx does.
func Run(ctx context.Context, p *Preparation, o Options) (*Result, error) {
	w, err := newWriter("compact", o)
	if err != nil {
		return nil, err
	}
	summary := p.PreviousSummary
	if len(p.History) > 0 || len(p.TurnPrefix) == 0 || w.oversized(summary) {
		part := Initial
		if p.PreviousSummary != "" {
			part = Update
		}
		if summary, err = w.write(ctx, part, p.History, p.PreviousSummary); err != nil {
			return nil, err
		}
	}
	if len(p.TurnPrefix) > 0 {
		prefix, err := w.write(ctx, TurnPrefix, p.TurnPrefix, "")
		if err != nil {
			return nil, err
		}
		if summary == "" {
			summary = NoHistory()
		}
		summary += "\n\n---\n\n" + SplitTurnHeading() + "\n\n" + prefix
	}
	return &Result{
		Summary:   summary + FormatFiles(p.Files.Lists()),
		FirstKept: p.FirstKept, TokensBefore: p.TokensBefore,
		Usage: w.usage, Files: p.Files,
	}, nil
}
