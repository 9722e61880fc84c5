// Package llm is the message model that every wire format shares: messages and
// their content blocks, tools, models, usage, the options of a request and the
// stream of events that answers it.
//
// A program picks wire formats by importing them and puts them into a Registry;
// nothing else is linked. The packages below llm are those formats (llm/all has
// every one), the catalogue of models (llm/catalog), recordings of what providers
// say (llm/replay) and a scripted model for tests (llm/faux).
//
// # An answer
//
// A Stream is read as it arrives, or to its end at once:
//
//	stream, err := registry.Stream(ctx, model, request)
//	if err != nil { … } // nothing can be asked: no key, no such wire format
//	for ev := range stream.Events() {
//		if ev.Type == llm.EventTextDelta {
//			fmt.Print(ev.Delta)
//		}
//	}
//	answer := stream.Result() // the message, also when it failed
//	if err := answer.Err(); err != nil { … }
//
// Whatever goes wrong once a request is on its way is in the message:
// StopReason error or aborted, and ErrorMessage. IsRetryable and
// IsContextOverflow tell what can be done about it. Package harness does, and
// runs the tools that an answer calls.
//
// # A wire format
//
// An API of a program's own stands in a Registry beside the others. StreamOf makes
// its stream of a loop; transcript.Build makes a history that it can send.
//
// # Text
//
// Text is a Go string. Peers written in JavaScript send and store halves of
// UTF-16 surrogate pairs; such a half is held in its three-byte form, is written
// back to files as \udxxx, and is dropped when a request is built.
//
// # JSON
//
// Messages read and write the JSON of session files (ParseMessage, AppendJSON).
// Unknown members survive in Extra fields; argument objects, schemas and
// signatures are kept as the bytes that came.
package llm
