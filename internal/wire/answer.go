package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// Answer builds the message of an answer and the events that tell of it.
//
// One event of a server may make several of ours. They are queued, and each
// changes the message only when the consumer takes it: the message that an
// event shows is the message as of that event.
type Answer struct {
	// Message is the message so far. Formats set what is not content: ids,
	// usage, the raw stop reason. StopReason stays pending until Exchange.End.
	Message *llm.Assistant

	queue     []step
	head      int
	blocks    []*Block // in order of their index
	started   bool     // by Start
	keepAlive bool
}

// step is a queued event and what it does to the message.
type step struct {
	block *Block
	typ   llm.EventType
	delta string
	upto  int // length of the block's text after a delta, -1 for what is shown already
}

// Block is one content block as it grows.
type Block struct {
	answer *Answer
	index  int
	text   Text
	ended  bool

	// One of these is the block in the message.
	plain    *llm.Text
	thinking *llm.Thinking
	call     *llm.ToolCall

	args    Args
	initial jsontext.Value // arguments that came with the start
	written bool           // a piece of the arguments was shown
}

// Start queues the start event, for calls with OwnStart. A second call does nothing.
func (a *Answer) Start() {
	if !a.started {
		a.started = true
		a.queue = append(a.queue, step{typ: llm.EventStart})
	}
}

// Text opens a text block with text that came with its start; nil for none.
func (a *Answer) Text(initial []byte) *Block {
	b := &Block{plain: &llm.Text{}}
	b.text.Append(initial)
	b.plain.Text = b.text.String()
	return a.open(b, llm.EventTextStart)
}

// Thinking opens a block of reasoning with text that came with its start.
func (a *Answer) Thinking(initial []byte) *Block {
	b := &Block{thinking: &llm.Thinking{}}
	b.text.Append(initial)
	b.thinking.Thinking = b.text.String()
	return a.open(b, llm.EventThinkingStart)
}

// Redacted opens a block of reasoning that only the provider can read. It is
// complete; End closes it.
func (a *Answer) Redacted(data string) *Block {
	b := &Block{thinking: &llm.Thinking{Thinking: RedactedThinking, Signature: &data, Redacted: true}}
	b.text.Append([]byte(RedactedThinking))
	return a.open(b, llm.EventThinkingStart)
}

// RedactedThinking is the visible text of reasoning that only the provider can read.
const RedactedThinking = "[Reasoning redacted]"

// ToolCall opens a tool call. initial are arguments that came with its start,
// shown until the first piece arrives; nil for none. They must be an object.
func (a *Answer) ToolCall(id, name string, initial jsontext.Value) *Block {
	b := &Block{call: &llm.ToolCall{ID: id, Name: name, Arguments: jsontext.Value("{}")}, initial: initial}
	b.call.Streaming = b
	return a.open(b, llm.EventToolCallStart)
}

func (a *Answer) open(b *Block, typ llm.EventType) *Block {
	b.answer, b.index = a, len(a.blocks)
	a.blocks = append(a.blocks, b)
	a.queue = append(a.queue, step{block: b, typ: typ})
	return b
}

// Blocks are the blocks opened so far.
func (a *Answer) Blocks() []*Block { return a.blocks }

// KeepAlive says that the event at hand carries nothing, so that it does not
// put off the deadline on silence.
func (a *Answer) KeepAlive() { a.keepAlive = true }

// Append adds a piece and queues its delta, also when the piece is empty.
func (b *Block) Append(p []byte) {
	b.push(b.text.Append(p))
}

// Extend is Append without an event when nothing became visible.
func (b *Block) Extend(p []byte) {
	if d := b.text.Append(p); d != "" {
		b.push(d)
	}
}

func (b *Block) push(delta string) {
	typ := llm.EventTextDelta
	switch {
	case b.call != nil:
		typ = llm.EventToolCallDelta
	case b.thinking != nil:
		typ = llm.EventThinkingDelta
	}
	b.answer.queue = append(b.answer.queue, step{block: b, typ: typ, delta: delta, upto: b.text.Len()})
}

// Touch queues an empty delta of a call that leaves its arguments as shown.
func (b *Block) Touch() {
	b.answer.queue = append(b.answer.queue, step{block: b, typ: llm.EventToolCallDelta, upto: -1})
}

// End closes the block; a second call does nothing.
func (b *Block) End() {
	if b.ended {
		return
	}
	b.ended = true
	if rest := b.text.Flush(); rest != "" {
		b.push(rest)
	}
	typ := llm.EventTextEnd
	switch {
	case b.call != nil:
		typ = llm.EventToolCallEnd
	case b.thinking != nil:
		typ = llm.EventThinkingEnd
	}
	b.answer.queue = append(b.answer.queue, step{block: b, typ: typ})
}

// Complete makes text the whole text of the block, as some services repeat it
// when it is finished. What it adds to the text so far is one more delta; a text
// that does not continue what was streamed takes its place without an event.
func (b *Block) Complete(text []byte) {
	if !bytes.HasPrefix(text, b.text.buf) {
		b.Replace(text)
		return
	}
	b.text.held = false // it is part of text
	b.Extend(text[b.text.Len():])
}

// Replace puts text in the place of what was streamed, without an event.
func (b *Block) Replace(text []byte) {
	if b.text.same(text) {
		return
	}
	b.text = Text{}
	b.text.Append(text)
	b.text.Flush() // text is whole
	n := b.text.Len()
	for i := range b.answer.queue {
		if s := &b.answer.queue[i]; s.block == b {
			s.upto = n
		}
	}
	switch {
	case b.plain != nil:
		b.plain.Text = b.text.String()
	case b.thinking != nil:
		b.thinking.Thinking = b.text.String()
	case b.call != nil:
		b.args.Reset()
		b.show(n)
	}
}

// Ended reports whether End was called.
func (b *Block) Ended() bool { return b.ended }

// Index is the position of the block in the message.
func (b *Block) Index() int { return b.index }

// Raw is all text of the block, which for a tool call is the JSON text of its
// arguments, whether shown or not.
func (b *Block) Raw() string { return b.text.String() }

// TextBlock is the block in the message, nil when it is of another type.
func (b *Block) TextBlock() *llm.Text { return b.plain }

// ThinkingBlock is the block in the message, nil when it is of another type.
func (b *Block) ThinkingBlock() *llm.Thinking { return b.thinking }

// Call is the block in the message, nil when it is of another type.
func (b *Block) Call() *llm.ToolCall { return b.call }

// Value is the arguments of a streaming tool call so far.
func (b *Block) Value() jsontext.Value {
	if !b.written && b.initial != nil {
		return b.initial
	}
	return b.args.Value()
}

// show makes the first n bytes of the text the arguments so far. They are the
// text's own: bytes once written do not change.
func (b *Block) show(n int) {
	b.args.raw = b.text.buf[:n:n]
	b.written = true
}

// next applies the next queued step and returns its event.
func (a *Answer) next(ev *llm.Event) bool {
	if a.head == len(a.queue) {
		return false
	}
	s := &a.queue[a.head]
	*ev = llm.Event{Type: s.typ, Delta: s.delta, Partial: a.Message}
	if s.block != nil { // not so for the start
		a.apply(s)
		ev.Index = s.block.index
	}
	*s = step{}
	if a.head++; a.head == len(a.queue) {
		a.queue, a.head = a.queue[:0], 0
	}
	return true
}

func (a *Answer) apply(s *step) {
	b := s.block
	switch s.typ {
	case llm.EventTextStart:
		a.Message.Content = append(a.Message.Content, b.plain)
	case llm.EventThinkingStart:
		a.Message.Content = append(a.Message.Content, b.thinking)
	case llm.EventToolCallStart:
		a.Message.Content = append(a.Message.Content, b.call)
	case llm.EventTextDelta:
		b.plain.Text = b.text.Prefix(s.upto)
	case llm.EventThinkingDelta:
		b.thinking.Thinking = b.text.Prefix(s.upto)
	case llm.EventToolCallDelta:
		if s.upto >= 0 {
			b.show(s.upto)
		}
	case llm.EventToolCallEnd:
		b.call.Arguments, b.call.ArgumentsError = b.args.Final()
		b.call.Streaming = nil
	}
}

// settle takes queued events as read.
func (a *Answer) settle() {
	var ev llm.Event
	for a.next(&ev) {
	}
}

// seal ends the streaming state of the message. A call without its end is read
// as complete when the answer ended well, and shows what came when it did not.
func (a *Answer) seal(well bool) {
	a.settle()
	for _, b := range a.blocks {
		if b.ended {
			continue
		}
		rest := b.text.Flush() // no twin will come
		switch {
		case b.plain != nil:
			b.plain.Text = b.text.String()
		case b.thinking != nil:
			b.thinking.Thinking = b.text.String()
		case b.call != nil:
			if rest != "" {
				b.show(b.text.Len())
			}
			if well {
				b.call.Arguments, b.call.ArgumentsError = b.args.Final()
			} else {
				b.call.Arguments = b.Value()
			}
			b.call.Streaming = nil
		}
	}
}
