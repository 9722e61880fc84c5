// Package responses is OpenAI's Responses protocol in its three forms: the wire
// formats openai-responses (New), for OpenAI itself and the many services that
// copied it, azure-openai-responses (NewAzure) and openai-codex-responses
// (NewCodex). They share all that this page says; what Azure and Codex do their
// own way stands with their types.
//
// The protocol is documented at https://platform.openai.com/docs/api-reference/responses
// and https://platform.openai.com/docs/api-reference/responses-streaming.
//
// Services differ in small ways, which Compat names. The flags of Model.Compat
// overrule what provider and base URL tell:
//
//	m := &llm.Model{
//		ID: "grok-4", API: responses.ID, Provider: "xai", BaseURL: "https://api.x.ai/v1",
//		Compat: jsontext.Value(`{"supportsLongCacheRetention":false}`),
//	}
//
// # Items
//
// A conversation is a list of items, sent whole with each request: the service
// is asked to store nothing. What a message needs to become items again is in
// its blocks:
//
//   - The signature of a thinking block is the JSON of the whole reasoning item,
//     with its encrypted content, which only the service can read.
//   - The signature of a text is {"v":1,"id":…} with the id of its item and the
//     phase of the answer, or in old sessions the id alone.
//   - A tool call has two ids, of the call and of the item, in one: call|item.
//
// Sessions hold signatures and ids of other services, of edits and of cut
// answers, and the service refuses a whole request for one wrong item. So a
// signature that is no reasoning item, or one without content, is left out;
// reasoning that led to no answer is left out; an id that is too long, or that
// an earlier item has, is replaced or left out.
//
// # Answers
//
// Items can stream side by side, and the end of an item repeats it: that text
// counts, and takes the place of what was streamed without another event. An
// item whose start never came is a block that is complete at its start event. A
// stream that ends without its last event is an error (ErrTruncated), as is a
// good end with a call whose arguments never ended (UnfinishedCallError).
//
// # Changes in the middle
//
// By default later system messages are folded into the first. Where the flags
// allow it they stay in place, and so do changes of the tools: as items with a
// set of tools (SupportsAdditionalTools) or as results of a tool search
// (SupportsToolSearch). With SupportsMidConvoEffort the effort of reasoning is an
// item too, so that a change of it keeps the cached prompt; the effort of an
// answer is its ProviderThinkingLevel.
package responses
