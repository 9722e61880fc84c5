// Package transcript turns any history of messages into one that a model
// accepts.
//
// Histories come from session files that other programs wrote, from runs that
// were cut off between a tool call and its result, from other models, and from
// edits by hand. Services refuse most of that. A wire format therefore never
// reads a request's messages itself; its first line is a Build:
//
//	h := transcript.HistoryOf[encoded](req.Memo, key)
//	t := h.Build(req.Messages, &transcript.Rules{Model: m, NormalizeID: legalID})
//	defer t.Done()
//	for i := range t.Items {
//		it := &t.Items[i]
//		if it.Wire.json == nil {
//			it.Wire.json = encode(it.Message)
//		}
//		body = append(body, it.Wire.json...)
//	}
//
// # What a built transcript promises
//
//   - Every tool call has exactly one result, and the results of a message's
//     calls stand directly behind it: results that came late are moved to their
//     call, missing ones are made up, those without a call are left out.
//   - Tool call ids are not empty, and no two calls share one. Ids of other
//     models, and those that Rules.LegalID refuses, went through
//     Rules.NormalizeID; results follow their call.
//   - Answers that failed or were aborted are gone.
//   - Reasoning and signatures of other models are gone, and so are pictures
//     where the model takes none, blocks of unknown types and halves of UTF-16
//     surrogate pairs in texts. Signed reasoning keeps its halves, because the
//     signature covers them; a format that sends it as text drops them itself.
//
// Contents can be empty; which empty ones a service refuses is the business of
// its format.
//
// # Cost
//
// Messages are immutable, so a History compares the messages of a request with
// those of the one before and works on the new ones only. What a format keeps in
// an Item's Wire slot stays there from request to request.
package transcript

import (
	"github.com/pinch-agent/pinch/llm"
)

// Rules say what the target of a transcript accepts.
type Rules struct {
	// Model is the target. Messages of the same provider, wire format and model
	// keep reasoning and signatures; pictures stay when it takes images.
	Model *llm.Model

	// SystemInPlace keeps system messages behind the first message where they
	// are. Otherwise all are collapsed into the leading one.
	SystemInPlace bool
	// Tools says which changes of the tool list can stay in place; anything
	// but ToolsFolded needs SystemInPlace.
	Tools ToolMode

	// NormalizeID makes a legal tool call id of one from another model; from is
	// the message with the call. Nil keeps ids.
	NormalizeID func(id string, from *llm.Assistant) string
	// LegalID reports whether the service takes an id. Ids of the target's own
	// messages that it refuses, as edits and other programs leave them, go
	// through NormalizeID too. Nil takes all.
	LegalID func(id string) bool
	// VariantID makes another legal id for a call whose id is empty or taken by
	// an earlier call; n counts from 2 and grows until the result is free. Nil
	// appends _n, in front of a | if there is one, within 64 bytes.
	VariantID func(id string, n int) string
	// CallKey is the part of an id by which a result names its call; an id without
	// one counts as empty. Calls of one message may have it in common when the
	// whole ids differ, as peers send them. Nil for the whole id.
	CallKey func(id string) string
	// NormalizeName makes a legal tool name of one that the history holds,
	// which a model may have invented. Nil keeps all but the empty name.
	NormalizeName func(name string) string
}

// key is what must be unique of a tool call id.
func (r *Rules) key(id string) string {
	if r.CallKey == nil {
		return id
	}
	return r.CallKey(id)
}

// Item is one message of a built transcript.
type Item[T any] struct {
	// Message is the message to send: the one that was given, or a changed
	// copy. A *llm.System is one that stays in place.
	Message llm.Message
	// SameModel marks an assistant message that the target itself produced.
	SameModel bool
	// ToolsFolded marks a system message whose changes of the tool list are in
	// Transcript.Tools already, so that only its text is left to send.
	ToolsFolded bool
	// Wire belongs to the wire format, which keeps the encoded message here. It
	// is the zero T when the item is new or has changed.
	Wire T
}

// Transcript is what a target accepts of a history.
type Transcript[T any] struct {
	// System is the leading system message: the first message of the history
	// or, without Rules.SystemInPlace, all system messages collapsed. Nil when
	// there is none. SystemText is its text.
	System *llm.System
	// Tools are the tools of the request by Rules.Tools.
	Tools []llm.Tool
	// Items are all other messages, in the order to send them.
	Items []Item[T]
	// Head is a slot like Item.Wire for what a format makes of System and
	// Tools; zero when one of them has changed.
	Head *T
	// Estimate is the size of the given history.
	Estimate ContextEstimate

	history *History[T]
}

// Done gives the transcript back to its History. Its items are not valid after
// that. A History whose transcript is out builds the next one without memory,
// so that requests that overlap don't wait for each other; one whose Done is
// forgotten never remembers again. More calls do nothing.
func (t *Transcript[T]) Done() {
	if h := t.history; h != nil {
		t.history = nil
		h.mu.Unlock()
	}
}
