// Package bench holds the end-to-end benchmarks and the budgets: what a delta,
// a turn, a resumed session and a start may cost, measured through the packages
// as a program puts them together.
//
// Budgets are tests. They count allocations, bytes, packages and the size of
// the program, which are the same on every machine; times are what the
// benchmarks are for:
//
//	go test -run '^$' -bench . ./internal/bench
//
// With -long the budgets of large sessions and long conversations are checked at
// full size: 128 MB and 10,000 turns.
//
// What one package does alone is measured beside it: the decoding of a delta in
// llm/anthropic and llm/completions, opening and appending in session/jsonl,
// transcripts in llm/transcript, edits, reads and commands in tool.
package bench
