package llm

import (
	"iter"
	"time"
)

// EventType tells what an Event reports.
type EventType uint8

// The event types, in the order of a block's life.
const (
	EventStart EventType = iota + 1
	EventTextStart
	EventTextDelta
	EventTextEnd
	EventThinkingStart
	EventThinkingDelta
	EventThinkingEnd
	EventToolCallStart
	EventToolCallDelta
	EventToolCallEnd
	EventDone
	EventError
)

var eventNames = [...]string{
	EventStart: "start", EventTextStart: "text_start", EventTextDelta: "text_delta", EventTextEnd: "text_end",
	EventThinkingStart: "thinking_start", EventThinkingDelta: "thinking_delta", EventThinkingEnd: "thinking_end",
	EventToolCallStart: "toolcall_start", EventToolCallDelta: "toolcall_delta", EventToolCallEnd: "toolcall_end",
	EventDone: "done", EventError: "error",
}

// String is the event's JSON name, such as text_delta.
func (t EventType) String() string {
	if int(t) < len(eventNames) {
		return eventNames[t]
	}
	return ""
}

// Event is one step of an answer.
//
// EventStart comes before all others but a lone EventError. Blocks may
// interleave, and a block open at an error gets no end. Exactly one EventDone
// or EventError is the last event.
type Event struct {
	Type  EventType
	Index int // position of the block in Partial.Content; it never changes

	// Delta is the new text of a *_delta event: of a text, of thinking, of the
	// JSON of arguments. It stays valid.
	Delta string

	// Partial is the message so far, the same object in all events: a view
	// whose state is now, not then. Snapshot keeps it. Nil in the last event.
	Partial *Assistant

	// Message is the final message; only in the last event.
	Message *Assistant
}

// Text is the whole text of the block that an EventTextEnd or EventThinkingEnd
// closes.
func (e *Event) Text() string {
	if e.Partial == nil || e.Index >= len(e.Partial.Content) {
		return ""
	}
	switch b := e.Partial.Content[e.Index].(type) {
	case *Text:
		return b.Text
	case *Thinking:
		return b.Thinking
	}
	return ""
}

// ToolCall is the call that a toolcall event is about, nil for other events.
func (e *Event) ToolCall() *ToolCall {
	if e.Partial == nil || e.Index >= len(e.Partial.Content) {
		return nil
	}
	c, _ := e.Partial.Content[e.Index].(*ToolCall)
	return c
}

// Source produces the events of one answer, driven by its reader: it has no
// goroutine of its own. Next returns false after the terminal event.
type Source interface {
	Next() (Event, bool)
	// Close ends the request and frees what it holds. It may be called at any
	// time, more than once.
	Close()
}

// Stream is one answer as it arrives. Read it with Next, or range over Events,
// or take the Result; Close it when done early. It belongs to one goroutine.
type Stream struct {
	src    Source
	opened time.Time
	result *Assistant
}

// NewStream makes a Stream of a Source; wire formats call it.
func NewStream(src Source) *Stream { return &Stream{src: src, opened: time.Now()} }

// StreamOf makes a Stream of a sequence, so that a wire format can be written as
// a loop: the sequence sends the request when it is first read, yields the
// events, EventDone or EventError last, and frees what it holds when it returns.
// It should do that soon after a yield that was false: nobody reads any more, and
// what is yielded still is dropped.
func StreamOf(events iter.Seq[Event]) *Stream {
	next, stop := iter.Pull(func(yield func(Event) bool) {
		left := false
		events(func(ev Event) bool {
			left = left || !yield(ev)
			return !left
		})
	})
	return NewStream(&pulled{next, stop})
}

type pulled struct {
	next func() (Event, bool)
	stop func()
}

func (p *pulled) Next() (Event, bool) { return p.next() }

func (p *pulled) Close() { p.stop() }

// Next returns the next event, false after the terminal one. The terminal event
// arrives whatever happens; problems are in its message.
func (s *Stream) Next() (Event, bool) {
	if s.result != nil {
		return Event{}, false
	}
	ev, ok := s.src.Next()
	if !ok {
		return Event{}, false
	}
	if ev.Type == EventDone || ev.Type == EventError {
		s.result = ev.Message
		if m := s.result; m != nil && m.DurationMs == nil && m.Timestamp >= s.opened.UnixMilli() {
			m.DurationMs = new(max(0, time.Since(s.opened).Round(time.Millisecond).Milliseconds()))
		}
		s.src.Close()
	}
	return ev, true
}

// Events ranges over the events and closes the stream when the loop ends.
func (s *Stream) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		defer s.Close()
		for {
			ev, ok := s.Next()
			if !ok || !yield(ev) {
				return
			}
		}
	}
}

// Result reads the stream to its end and returns the final message; its
// StopReason and ErrorMessage tell how it went. It is nil only for a source
// that ends without a terminal event, which no wire format does.
func (s *Stream) Result() *Assistant {
	for range s.Events() {
	}
	return s.result
}

// Close ends the request early. It is safe to call more than once.
func (s *Stream) Close() { s.src.Close() }

// Failed is a stream whose only event is an error: what went wrong before a
// request could be sent. The timestamp is in Unix milliseconds.
func Failed(m *Model, err error, timestamp int64) *Stream {
	return NewStream(&failed{message: &Assistant{
		Content: []Block{},
		API:     m.API, Provider: m.Provider, Model: m.ID,
		StopReason:   StopError,
		ErrorMessage: err.Error(),
		Timestamp:    timestamp,
	}})
}

type failed struct {
	message *Assistant
	done    bool
}

func (f *failed) Next() (Event, bool) {
	if f.done {
		return Event{}, false
	}
	f.done = true
	return Event{Type: EventError, Message: f.message}, true
}

func (*failed) Close() {}
