// Package llm is the message model that every wire format shares: messages and
// their content blocks, tools, models, usage, the options of a request and the
// stream of events that answers it.
//
// A program picks wire formats by importing them and puts them into a Registry;
// nothing else is linked. The packages below llm are those formats, the
// catalogue of models (llm/catalog) and a scripted model for tests (llm/faux).
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
