package witness

// What a vendor's library does not know of pinch's requests, by format. All
// other members come back from it as they were.

var anthropicExceptions = []exception{
	{"temperature", "lost", "Anthropic", "version 2 of the library dropped it with the models that took it; older models and other vendors take it"},
}

var completionsExceptions = []exception{
	{"messages[].content", "lost empty", "OpenAI", "a message that only calls tools has no content: null and absent are the same"},
	{"messages[].reasoning", "lost", "OpenRouter, vLLM", "reasoning goes back in the field that it came in"},
	{"messages[].reasoning_content", "lost", "DeepSeek, Z.ai", "reasoning goes back in the field that it came in"},
	{"messages[].reasoning_content", "lost empty", "DeepSeek", "calls of a thinking model come with their reasoning, also where there was none"},
	{"messages[].reasoning_details", "lost", "OpenRouter", "signed reasoning goes back as it came"},
	{"messages[].name", "lost", "older servers", "results that name their tool (requiresToolResultName)"},
	{"messages[].tools", "lost", "compatible servers", "tools that are added in mid-conversation (supportsMidConvoToolAdditions)"},
	{"messages[].content[].cache_control", "lost", "OpenRouter", "cache markers of Anthropic's models (cacheControlFormat)"},
	{"tools[].cache_control", "lost", "OpenRouter", "cache markers of Anthropic's models (cacheControlFormat)"},
	{"reasoning", "lost", "OpenRouter, Together, Ant Ling", "how much to think (thinkingFormat)"},
	{"thinking", "lost", "DeepSeek, Z.ai", "whether to think (thinkingFormat)"},
	{"enable_thinking", "lost", "Qwen", "whether to think (thinkingFormat)"},
	{"chat_template_kwargs", "lost", "vLLM, SGLang", "whether to think, in the words of a chat template (thinkingFormat)"},
	{"chat_template_args", "lost", "Baseten", "whether to think, in the words of a chat template (thinkingFormat)"},
	{"thinking_budget", "lost", "Qwen", "how much to think (thinkingTokenBudgetField)"},
	{"thinking_token_budget", "lost", "vLLM", "how much to think (supportsThinkingTokenBudget)"},
	{"tool_stream", "lost", "Z.ai", "arguments as they are written (zaiToolStream)"},
	{"priority", "lost", "vLLM", "place in the scheduler's queue (vllmPriority)"},
	{"provider", "lost", "OpenRouter", "which provider may serve (openRouterRouting)"},
	{"providerOptions", "lost", "Vercel AI Gateway", "which provider may serve (vercelGatewayRouting)"},
	{"top_k", "lost", "vLLM and others", "sampling parameters are passed on as the user gave them"},
}

var responsesExceptions = []exception{
	{"seed", "lost", "servers of the same protocol", "sampling parameters are passed on as the user gave them"},
	{"top_k", "lost", "servers of the same protocol", "sampling parameters are passed on as the user gave them"},
}

var googleExceptions = []exception{
	{"contents[].parts[].text", "lost empty", "Google", "the library leaves out text that is empty"},
}

// Answers that a library reads in another way than the recorded vectors.

var anthropicDissents = []dissent{
	{"sse-prefilled-blocks-*", "calls", "the library takes over input that a block starts with; no server sends any, and the vectors ignore it"},
	{"sse-surrogate-halves-*", "text", "the library replaces halves of characters, also where two deltas make a whole one"},
	{"sse-tool-non-object-*", "calls", "the library keeps arguments that are no object; pinch makes the call fail with them"},
	{"sse-tool-repairable-*", "calls", "the library drops arguments that are no JSON; pinch repairs what can be repaired"},
}

var completionsDissents = []dissent{
	{"compat-grammar-*", "calls", "the library's accumulator does not collect calls of grammar tools"},
	{"http-404-string-error-*", "status", "an error that is a string has no place in the library's type; Ollama and others send it"},
	{"sse-null-choices-*", "error", "the library's accumulator refuses chunks of several ids; gateways send them"},
	{"sse-surrogate-halves-*", "error", "the library's accumulator refuses chunks without a model or of several ids"},
	{"sse-tool-bad-json-*", "calls", "the library keeps arguments that are no JSON; pinch makes the call fail with them"},
	{"sse-tool-id-first-then-index-*", "calls", "the library's accumulator knows calls by index alone; some servers name the id alone"},
	{"sse-tool-neither-index-nor-id-*", "calls", "the library takes a missing index for 0"},
	{"sse-tools-no-index-*", "calls", "the library takes a missing index for 0; pinch goes by the id"},
	{"sse-usage-choice-*", "usage", "Moonshot counts tokens inside of the choice"},
	{"sse-usage-deepseek-*", "usage", "DeepSeek has fields of its own for cached tokens"},
}

var responsesDissents = []dissent{
	{"grammar-tool-*", "calls", "the library gives the bare text of a grammar tool's call; pinch makes it the value of the tool's parameter"},
	{"sse-tool-bad-json-*", "calls", "the library keeps arguments that are no JSON; pinch makes the call fail with them"},
}

var codexDissents = []dissent{
	{"sse-done-event-*", "usage", "the library does not know the event response.done, which ChatGPT sends"},
	{"sse-eof-frame-*", "usage", "the library drops a last event that no blank line ends"},
}

var googleDissents = []dissent{
	{"sse-tools-duplicate-id-*", "calls", "the library keeps an id that two calls have; pinch gives the second one its own"},
}

var bedrockDissents = []dissent{
	{"stream-tool-bad-json-*", "calls", "the library keeps arguments that are no JSON; pinch makes the call fail with them"},
}

// Errors that pinch does not class by what the vendor means: it goes by the
// words of the message, and these are recorded.
var verdicts = []verdict{
	{"openai-responses/event error server_error", final, "the text of the event is its message without the code"},
	{"openai-responses/event error rate_limit_exceeded", final, "the text of the event is its message without the code"},
	{"azure-openai-responses/event error server_error", final, "the text of the event is its message without the code"},
	{"azure-openai-responses/event error rate_limit_exceeded", final, "the text of the event is its message without the code"},
	{"openai-codex-responses/event error server_error", final, "the text of the event is its message without the code"},
	{"openai-codex-responses/event error rate_limit_exceeded", final, "the text of the event is its message without the code"},
	{"openai-codex-responses/event response.failed server_error", final, "ChatGPT's errors are worded without their code"},
	{"openai-codex-responses/event response.failed rate_limit_exceeded", final, "ChatGPT's errors are worded without their code"},
	{"openai-codex-responses/status 500 server_error", final, "ChatGPT's errors are worded without their code and status; the format itself tries again"},
	{"bedrock-converse-stream/status 429 ModelNotReadyException", final, "none of the words; the format itself has tried three times"},
	{"bedrock-converse-stream/status 429 ThrottlingException", final, "none of the words; the format itself has tried three times"},
}
