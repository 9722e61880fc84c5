// Package pimessages is the wire format pi-messages: the protocol of backends
// that take the transcript as it is stored and answer with the events of
// package llm themselves. Such a backend routes a request to a model of its
// choice, so it does what the other wire formats do here: repair the history,
// fit the token limit, translate the thinking level.
//
//	model := &llm.Model{
//		ID: "auto", API: pimessages.ID, Provider: "radius", BaseURL: "https://radius.pi.dev/v1",
//		Reasoning: true, Input: []string{"text", "image"}, ContextWindow: 200_000, MaxTokens: 32_000,
//	}
//
// # What is sent
//
// All of the transcript, with what a model never sees: details of tool results,
// usage, diagnostics, unknown members. Options go along only where they were
// given. Nothing is estimated, cut or replaced.
//
// # What comes back
//
// Usage and cost are the backend's own. A rewritten history is reported as a
// diagnostic of type pi_messages_rewrite.
//
// The backend is not trusted to keep to the protocol: an index that is neither
// the next block's nor that of an open block of the right kind, an event of an
// unknown type, a value of a wrong type end the answer with an error. Unless
// the backend itself says in an error event that the answer failed, the message
// of a failed answer has no content, since nobody can tell what of it is sound.
//
// A request is tried once. An error response becomes "402 Payment Required: "
// and what the backend says, and a diagnostic of type
// pi_messages_response_failure keeps its parts.
package pimessages
