package conformance

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// loopResponse is one scripted reply of the loop vectors.
type loopResponse struct {
	Text      *string `json:"text"`
	Thinking  *string `json:"thinking"`
	ToolCalls []struct {
		ID             string          `json:"id"`
		Name           string          `json:"name"`
		Arguments      json.RawMessage `json:"arguments"`
		ArgumentsError string          `json:"argumentsError"`
	} `json:"toolCalls"`
	StopReason     llm.StopReason `json:"stopReason"`
	Error          string         `json:"error"`
	NoStart        bool           `json:"noStart"`
	HangAtStart    bool           `json:"hangAtStart"`
	HangAfterDelta int            `json:"hangAfterDelta"`
	Chunks         int            `json:"chunks"`
	Throw          string         `json:"throw"`
	DelayMs        int            `json:"delayMs"`

	Usage json.RawMessage `json:"usage"` // nil for zeros
}

// loopSource streams a reply: steps change the message, then tell.
type loopSource struct {
	ctx    context.Context
	resp   *loopResponse
	out    *llm.Assistant
	steps  []func() llm.Event
	deltas int
	begun  bool
	done   bool
}

func newLoopSource(ctx context.Context, m *llm.Model, resp *loopResponse) *loopSource {
	s := &loopSource{ctx: ctx, resp: resp, out: &llm.Assistant{
		Content: []llm.Block{}, API: m.API, Provider: m.Provider, Model: m.ID,
		StopReason: llm.StopPending, Timestamp: time.Now().UnixMilli(),
	}}
	if !resp.NoStart {
		s.steps = append(s.steps, func() llm.Event { return llm.Event{Type: llm.EventStart} })
	}
	if resp.HangAtStart {
		return s
	}
	index := 0
	if resp.Thinking != nil {
		b := &llm.Thinking{}
		s.text(index, b, *resp.Thinking, llm.EventThinkingStart, func(d string) { b.Thinking += d })
		index++
	}
	if resp.Text != nil {
		b := &llm.Text{}
		s.text(index, b, *resp.Text, llm.EventTextStart, func(d string) { b.Text += d })
		index++
	}
	for _, c := range resp.ToolCalls {
		args := c.Arguments
		if args == nil {
			args = json.RawMessage("{}")
		}
		at := index
		b := &llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: jsontext.Value("{}")}
		s.steps = append(s.steps,
			func() llm.Event {
				s.out.Content = append(s.out.Content, b)
				return llm.Event{Type: llm.EventToolCallStart, Index: at}
			},
			func() llm.Event {
				return llm.Event{Type: llm.EventToolCallDelta, Index: at, Delta: loopCompact(args)}
			},
			func() llm.Event {
				b.Arguments, b.ArgumentsError = jsontext.Value(loopCompact(args)), c.ArgumentsError
				return llm.Event{Type: llm.EventToolCallEnd, Index: at}
			})
		index++
	}
	return s
}

// text adds the steps of a block of text; start is its first event type, which
// delta and end follow.
func (s *loopSource) text(index int, b llm.Block, text string, start llm.EventType, grow func(string)) {
	s.steps = append(s.steps, func() llm.Event {
		s.out.Content = append(s.out.Content, b)
		return llm.Event{Type: start, Index: index}
	})
	for _, d := range loopPieces(text, max(1, s.resp.Chunks)) {
		s.steps = append(s.steps, func() llm.Event {
			grow(d)
			return llm.Event{Type: start + 1, Index: index, Delta: d}
		})
	}
	s.steps = append(s.steps, func() llm.Event { return llm.Event{Type: start + 2, Index: index} })
}

// loopPieces cuts text into n pieces of equal length in UTF-16 units.
func loopPieces(text string, n int) []string {
	units := utf16.Encode([]rune(text))
	size := (len(units) + n - 1) / n
	if size == 0 {
		return []string{""}
	}
	var out []string
	for i := 0; i < len(units); i += size {
		out = append(out, string(utf16.Decode(units[i:min(len(units), i+size)])))
	}
	return out
}

func (s *loopSource) Close() { s.done = true }

func (s *loopSource) Next() (llm.Event, bool) {
	if s.done {
		return llm.Event{}, false
	}
	if !s.begun {
		s.begun = true
		if s.resp.DelayMs > 0 {
			time.Sleep(time.Duration(s.resp.DelayMs) * time.Millisecond)
		}
	}
	if s.resp.HangAfterDelta > 0 && s.deltas == s.resp.HangAfterDelta || s.resp.HangAtStart && len(s.steps) == 0 {
		<-s.ctx.Done()
		return s.finish(llm.EventError, llm.StopAborted, "Request was aborted"), true
	}
	if len(s.steps) > 0 {
		ev := s.steps[0]()
		s.steps = s.steps[1:]
		ev.Partial = s.out
		switch ev.Type {
		case llm.EventTextDelta, llm.EventThinkingDelta, llm.EventToolCallDelta:
			s.deltas++
		}
		return ev, true
	}
	if s.resp.Error != "" {
		return s.finish(llm.EventError, llm.StopError, s.resp.Error), true
	}
	stop := s.resp.StopReason
	switch {
	case stop != "":
	case len(s.resp.ToolCalls) > 0:
		stop = llm.StopToolUse
	default:
		stop = llm.StopStop
	}
	return s.finish(llm.EventDone, stop, ""), true
}

func (s *loopSource) finish(t llm.EventType, stop llm.StopReason, text string) llm.Event {
	s.done = true
	m := s.out.Snapshot()
	m.StopReason, m.ErrorMessage = stop, text
	m.Usage = sessionRunUsage(s.resp.Usage)
	return llm.Event{Type: t, Message: m}
}
