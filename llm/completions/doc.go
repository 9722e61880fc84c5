// Package completions is the wire format openai-completions: the chat
// completions protocol, which most model services and local servers speak.
//
// Services differ in small ways: which field limits the tokens, how thinking is
// switched on, what a message must not lack. Compat names these differences.
// They are detected from the provider and the base URL, and Model.Compat
// overrules what was detected, flag by flag:
//
//	m := &llm.Model{
//		ID: "qwen3", API: completions.ID, Provider: "local", BaseURL: "http://localhost:8000/v1",
//		Compat: jsontext.Value(`{"thinkingFormat":"qwen-chat-template","maxTokensField":"max_tokens"}`),
//	}
//
// # Reasoning
//
// Servers send reasoning in one of three fields. The name of the field is the
// signature of the thinking block, and later requests send the text back in the
// field that it came in. Gateways send lossless reasoning details instead; then
// the signature is the JSON of their list, which is sent back as it came.
//
// # Block ends
//
// The protocol does not say when a block of an answer is complete, so all end
// events come at the end of the stream.
package completions
