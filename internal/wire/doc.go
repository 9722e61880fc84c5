// Package wire is what the wire formats share: sending a request with its
// retries, reading server-sent events, growing the blocks of an answer, and the
// driver that turns both into the events of an llm.Stream.
//
// A format implements Exchange, which knows how its request is written and what
// each of its events means, and hands it to NewSource. Everything about time
// and transport is here: attempts and their delays, deadlines, abort, the order
// of the callbacks, the one terminal event.
package wire
