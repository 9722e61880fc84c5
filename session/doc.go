// Package session keeps conversations: trees of entries over append-only logs,
// in the file format that pi reads and writes.
//
// A log is JSON Lines. Its first line is the header; every other line is an
// entry with an id and the id of its parent, so that a session is a tree. The
// leaf is the entry at which the conversation goes on: Append adds an entry
// below it and moves it there, Branch moves it to any other entry. Nothing that
// is in a log ever changes.
//
//	s, err := jsonl.Open(path, jsonl.Options{})  // or memory.Open
//	…
//	s.AppendMessage(llm.UserText("What is this?", now))
//	c := s.Context()                             // what a model sees of the branch
//	request := session.ToLLM(c.Messages)
//
// # Context
//
// What a model sees is a projection of the branch from a root to the leaf: the
// last compaction stands for what was before its kept tail, context edits
// change or take out what earlier entries said, and entries that are no
// messages say nothing. A message is the same pointer in every projection, and
// converts to the same *llm.User, so that what was encoded for a request once
// need not be encoded again. After an append the projection costs what is new.
//
// # Reading
//
// Opening a log reads where its entries stand and decodes none of them but labels
// and names. What an entry says is read from the log when somebody asks, and kept:
// a long session takes the memory of its active context and about 150 bytes for
// each other entry. Raw lines stay in the log, so unknown members, entry types and
// roles survive whatever rewrites it: a fork, an export, a migration from version
// 1 or 2. A log that somebody shortened while it was open says so: Session.Err.
//
// Damage costs what is damaged. A last line that a crash tore gets its line
// break, so that the next append is whole; a line that is no JSON is passed
// over and stays; parents that go round in a circle end at their first repeat.
// Only a log without a valid header is refused, and left as it is.
//
// # Writing
//
// A new session has no log before its first user or assistant message; then
// everything so far is written at once. Later entries are one write of one line
// each. A write that fails leaves log and session as they were, and its *Error
// says what to do.
//
// A log has one writer at a time. The packages jsonl and memory keep logs in
// files and in memory; other places need a Store. A Store that is a Journal as
// well lets a run outlast a crash with all its results: see package harness.
package session
