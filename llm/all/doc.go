// Package all has every wire format of this module in one list, for programs
// that let their users choose any model of the catalogue:
//
//	registry := llm.NewRegistry(all.Formats(all.Config{Version: "1.2.3"})...)
//	stream, err := registry.Stream(ctx, model, req)
//
// Importing it links them all. A program that knows which models it talks to
// imports their formats alone, as each costs only what it brings.
//
// The formats, by the names that Model.API and models.json use:
//
//   - anthropic-messages (package anthropic)
//   - openai-completions (package completions)
//   - openai-responses, azure-openai-responses, openai-codex-responses
//     (package responses)
//   - google-generative-ai, google-vertex (package google)
//   - bedrock-converse-stream (package bedrock)
//   - mistral-conversations (package mistral)
//   - pi-messages (package pimessages)
package all
