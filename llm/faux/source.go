package faux

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

const (
	tokenChars  = 4 // characters of a token
	minTokens   = 3 // of a piece
	maxTokens   = 5
	abortedText = "Request was aborted"
)

// source streams one answer.
type source struct {
	ctx     context.Context
	api     *API
	call    Call
	respond Response
	rng     *rand.Rand

	script  *llm.Assistant // nil before the first read
	out     *llm.Assistant // what has been streamed
	args    wire.Args      // of the call that streams
	block   int            // of script.Content
	open    bool           // the block has started
	sent    int            // bytes of its text
	over    bool
	elapsed time.Duration // that the pieces so far should have taken
	begun   time.Time
}

func newSource(ctx context.Context, a *API, c Call, respond Response) *source {
	return &source{
		ctx: ctx, api: a, call: c, respond: respond,
		rng: rand.New(rand.NewPCG(a.opts.Seed, uint64(c.N))),
	}
}

// Close implements llm.Source.
func (s *source) Close() { s.over = true }

// Next implements llm.Source.
func (s *source) Next() (llm.Event, bool) {
	switch {
	case s.over:
		return llm.Event{}, false
	case s.script == nil:
		return s.begin(), true
	case s.ctx.Err() != nil:
		return s.fail(llm.StopAborted, abortedText), true
	case s.block == len(s.script.Content):
		return s.end(), true
	case !s.open:
		return s.openBlock(), true
	}
	full := blockText(s.script.Content[s.block])
	if s.sent == len(full) {
		return s.closeBlock(), true
	}
	piece := s.piece(full[s.sent:])
	if !s.wait(piece) {
		return s.fail(llm.StopAborted, abortedText), true
	}
	return s.delta(full, piece), true
}

// begin takes the response and starts the message.
func (s *source) begin() llm.Event {
	s.begun = time.Now()
	m := s.call.Model
	s.out = &llm.Assistant{
		Content: []llm.Block{},
		API:     m.API, Provider: m.Provider, Model: m.ID,
		StopReason: llm.StopPending,
		Timestamp:  s.begun.UnixMilli(),
	}
	script, err := s.respond(s.ctx, s.call)
	switch {
	case s.ctx.Err() != nil:
		return s.fail(llm.StopAborted, abortedText)
	case err == nil && script == nil:
		err = errors.New("the scripted response is empty")
		fallthrough
	case err != nil:
		return s.fail(llm.StopError, err.Error())
	}
	if on := s.call.Request.OnResponse; on != nil {
		if err := on(http.StatusOK, http.Header{}, m); err != nil {
			return s.fail(llm.StopError, err.Error())
		}
	}
	c := *script
	s.script = &c
	s.out.ResponseID, s.out.ResponseModel, s.out.Diagnostics = c.ResponseID, c.ResponseModel, c.Diagnostics
	s.out.RawStopReason, s.out.EndTurn, s.out.Extra = c.RawStopReason, c.EndTurn, c.Extra
	s.out.Usage = s.api.usage(s.call, c.Content)
	return llm.Event{Type: llm.EventStart, Partial: s.out}
}

func (s *source) event(t llm.EventType) llm.Event {
	return llm.Event{Type: t, Index: s.block, Partial: s.out}
}

func (s *source) openBlock() llm.Event {
	s.open, s.sent = true, 0
	var started llm.Block
	t := llm.EventTextStart
	switch b := s.script.Content[s.block].(type) {
	case *llm.Text:
		started = &llm.Text{}
	case *llm.Thinking:
		t = llm.EventThinkingStart
		started = &llm.Thinking{Redacted: b.Redacted}
	case *llm.ToolCall:
		t = llm.EventToolCallStart
		c := *b
		if c.ID == "" {
			c.ID = s.api.nextID()
		}
		s.args.Reset()
		c.Arguments, c.ArgumentsError, c.Streaming = []byte("{}"), "", &s.args
		started = &c
	default: // an image, or what nobody knows: no text, passed on as it is
		started = b
	}
	s.out.Content = append(s.out.Content, started)
	return s.event(t)
}

func (s *source) delta(full, piece string) llm.Event {
	s.sent += len(piece)
	ev := s.event(llm.EventTextDelta)
	ev.Delta = piece
	switch b := s.out.Content[s.block].(type) {
	case *llm.Text:
		b.Text = full[:s.sent]
	case *llm.Thinking:
		ev.Type = llm.EventThinkingDelta
		b.Thinking = full[:s.sent]
	case *llm.ToolCall:
		ev.Type = llm.EventToolCallDelta
		s.args.WriteString(piece)
	}
	return ev
}

func (s *source) closeBlock() llm.Event {
	ev := s.event(llm.EventTextEnd)
	switch b := s.out.Content[s.block].(type) {
	case *llm.Text:
		b.Signature = s.script.Content[s.block].(*llm.Text).Signature
	case *llm.Thinking:
		ev.Type = llm.EventThinkingEnd
		b.Signature = s.script.Content[s.block].(*llm.Thinking).Signature
	case *llm.ToolCall:
		ev.Type = llm.EventToolCallEnd
		from := s.script.Content[s.block].(*llm.ToolCall)
		b.Arguments, b.ArgumentsError, b.Streaming = from.Arguments, from.ArgumentsError, nil
	}
	s.block++
	s.open = false
	return ev
}

func (s *source) end() llm.Event {
	switch s.script.StopReason {
	case llm.StopPending:
		<-s.ctx.Done()
		return s.fail(llm.StopAborted, abortedText)
	case llm.StopError, llm.StopAborted:
		return s.fail(s.script.StopReason, s.script.ErrorMessage)
	case "":
		s.out.StopReason = llm.StopStop
	default:
		s.out.StopReason = s.script.StopReason
	}
	s.over = true
	return llm.Event{Type: llm.EventDone, Message: s.out}
}

func (s *source) fail(reason llm.StopReason, text string) llm.Event {
	s.over = true
	m := s.out.Snapshot()
	m.StopReason, m.ErrorMessage = reason, text
	return llm.Event{Type: llm.EventError, Message: m}
}

// piece is the next piece of text.
func (s *source) piece(text string) string {
	n := tokenChars * (minTokens + s.rng.IntN(maxTokens-minTokens+1))
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// wait keeps the speed of the answer. It returns false when the context ends.
func (s *source) wait(piece string) bool {
	if s.api.opts.TokensPerSecond <= 0 {
		return true
	}
	tokens := float64(utf8.RuneCountInString(piece)) / tokenChars
	s.elapsed += time.Duration(tokens / s.api.opts.TokensPerSecond * float64(time.Second))
	t := time.NewTimer(time.Until(s.begun.Add(s.elapsed)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// blockText is what streams of a block.
func blockText(b llm.Block) string {
	switch b := b.(type) {
	case *llm.Text:
		return b.Text
	case *llm.Thinking:
		return b.Thinking
	case *llm.ToolCall:
		return string(b.Arguments)
	}
	return ""
}
