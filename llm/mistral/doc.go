// Package mistral is the wire format mistral-conversations: the chat protocol
// of Mistral's own service.
//
//	model := &llm.Model{
//		ID: "magistral-medium-latest", API: mistral.ID, Provider: "mistral", BaseURL: "https://api.mistral.ai",
//		Reasoning: true, Input: []string{"text", "image"}, ContextWindow: 128_000, MaxTokens: 40_000,
//	}
//	stream, err := mistral.New(mistral.Config{}).Stream(ctx, model, req)
//
// A base URL has no /v1; a path that it has, as gateways do, is kept.
//
// Two flags of Model.Compat change what is sent:
//
//   - supportsStrictMode: tools that ask for it are declared with a schema that
//     the service enforces.
//   - supportsMidConvoSystemMessages: later changes of the system prompt stay
//     where they happened instead of moving to the front.
//
// # Tool call ids
//
// The service takes ids of exactly nine letters and digits. Ids of other models
// are cut down to that: an id that has nine of them left keeps those, any other
// is replaced by a hash, and ids that would become alike are told apart.
//
// # Reasoning
//
// The service signs no reasoning, so that of the model itself is sent back as
// it is and that of other models is left out. A model with a map of thinking
// levels gets reasoning_effort, one without a map the prompt mode "reasoning".
//
// # Errors
//
// A failed request is not tried again, whatever the options say: the service's
// limits are per second and the caller knows better when to come back. The last
// event of such a stream says "Mistral API error (429): " and what the service
// said. Response headers are waited for a minute unless Options.Timeout says
// otherwise.
package mistral
