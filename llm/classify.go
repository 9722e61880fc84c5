package llm

import (
	"regexp"
	"strings"
	"sync"
	"time"
)

// Services say in prose that a prompt is too long or that one may try again.
// The words below are theirs, lower case, collected from recorded answers.

// notOverflow are words of throttling that overflow patterns would take for
// their own.
var notOverflow = [...]string{"rate limit", "too many requests"}

var notOverflowPrefix = [...]string{"throttling error:", "service unavailable:"}

var overflowWords = [...]string{
	"prompt too long", "prompt is too long", "prompt exceeds max length", "request_too_large", // Anthropic, z.ai, Ollama
	"input is too long for requested model",                 // Bedrock
	"exceeds the context window", "context window exceeded", // OpenAI and proxies
	"reduce the length of the messages",                                     // Groq
	"exceeds the available context size", "greater than the context length", // llama.cpp, LM Studio
	"context window exceeds limit", "exceeded model token limit", // MiniMax, Kimi
	"model_context_window_exceeded",   // z.ai
	"range of input length should be", // Qwen
	"too many tokens", "token limit exceeded",
}

// overflowPatterns are those with something variable in them; each is tried
// only when its literal part is in the text.
var overflowPatterns = sync.OnceValue(func() []guarded {
	return []guarded{
		guard("maximum context length", `exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))`),
		guard("exceeded", `context[_ ]length[_ ]exceeded`),
		guard("exceeds the maximum", `input token count.*exceeds the maximum`),     // Google
		guard("maximum prompt length is", `maximum prompt length is \d+`),          // xAI
		guard("maximum context length is", `maximum context length is \d+ tokens`), // OpenRouter
		guard("maximum allowed input length", `exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?`),
		guard("is longer than the model", `input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)`), // Together
		guard("exceeds the limit of", `exceeds the limit of \d+`),                                                           // Copilot
		guard("the configured context size", `prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?`),
		guard("too large for model with", `too large for model with \d+ maximum context length`), // Mistral
		guard("413", `^(?:[\w .-]+ api error \(413\):|413(?:\s|:|$)|\{"error":\{.*"code":413[,}])`),
	}
})

// emptyRefusal is how Cerebras answers a prompt that is too long.
var emptyRefusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^4(?:00|13)\s*(?:status code)?\s*\(no body\)`)
})

var quotaWords = [...]string{
	"gousagelimiterror", "freeusagelimiterror", "monthly usage limit reached", "available balance",
	"insufficient_quota", "out of budget", "quota exceeded", "billing",
	"subscription_sharing_usage_limit_exceeded", "subscription_sharing_workplace_individual_usage_limit_exceeded",
}

var quotaPatterns = sync.OnceValue(func() []guarded {
	return []guarded{guard("1308", `"code"\s*:\s*"?1308(?:\D|$)`)}
})

var transientWords = [...]string{
	"overloaded", "server_busy", "servers are currently busy", "currently experiencing high demand",
	"model is at capacity", "too many requests",
	"exceeded request buffer limit while retrying upstream", "unable to forward upstream",
	"upstream_stream_read_error", "stream was interrupted", "http2 stream failed", "http/2 stream failed",
	"other side closed", "fetch failed", "getaddrinfo", "connection reset by peer", "eai_again",
	"reset before headers", "socket hang up", "socket connection was closed", "time out", "timed out", "timeout",
	"terminated", "ended without", "stream ended before message_stop",
	"stream ended before a terminal response event", "http2 request did not get a response",
	"stream disconnected before completion", "cut short after the reply had begun",
	"pending stream has been canceled", "retry delay", "you can retry your request",
	"try your request again", "please retry your request", "resourceexhausted",
	"subscription_sharing_usage_unavailable", "subscription_sharing_user_unavailable",
}

var transientPatterns = sync.OnceValue(func() []guarded {
	return []guarded{
		guard("rate", `rate.?limit`),
		guard("", `(?:^|[^a-z0-9])(?:429|500|502|503|504|520|524)(?:[^a-z0-9]|$)`),
		guard("unavailable", `service.?(?:is.?)?(?:temporarily.?)?unavailable`),
		guard("error", `server.?error|internal.?error|network.?error|provider.?returned.?(?:an.?)?error`),
		guard("upstream", `upstream.?request.?failed|upstream.?connect`),
		guard("connection", `connection.?(?:error|refused|lost|closed)|websocket.?connection.?limit.?reached`),
		guard("request to", `request to \S+ failed, reason:`),
		guard("", `(?:^|[^a-z0-9_])(?:econnreset|econnaborted|econnrefused|etimedout|epipe)(?:[^a-z0-9_]|$)`),
		guard("websocket", `websocket.?(?:closed|error)`),
		guard("enotfound", `(?:^|[^a-z0-9_])enotfound`), // and no ResourceNotFoundException
	}
})

// guarded is a pattern over lower-case text behind a literal that it contains.
type guarded struct {
	literal string
	re      *regexp.Regexp
}

func guard(literal, pattern string) guarded {
	return guarded{literal, regexp.MustCompile(pattern)}
}

func matchesAny(text string, words []string, patterns func() []guarded) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	for _, p := range patterns() {
		if strings.Contains(text, p.literal) && p.re.MatchString(text) {
			return true
		}
	}
	return false
}

// IsContextOverflow reports whether an answer says that the request did not fit
// into the model's context: by the words of its error, or by its usage, as some
// services cut the prompt and answer all the same. window is the context window
// in tokens, 0 when it is not known.
func IsContextOverflow(m *Assistant, window int) bool {
	input := m.Usage.Input + m.Usage.CacheRead
	switch m.StopReason {
	case StopError:
		return saysOverflow(m)
	case StopStop:
		return window > 0 && input > int64(window)
	case StopLength:
		return window > 0 && m.Usage.Output == 0 && float64(input) >= 0.99*float64(window)
	}
	return false
}

func saysOverflow(m *Assistant) bool {
	if m.ErrorMessage == "" {
		return false
	}
	text := strings.ToLower(m.ErrorMessage)
	for _, p := range notOverflowPrefix {
		if strings.HasPrefix(text, p) {
			return false
		}
	}
	for _, w := range notOverflow {
		if strings.Contains(text, w) {
			return false
		}
	}
	return matchesAny(text, overflowWords[:], overflowPatterns) ||
		m.Provider == "cerebras" && emptyRefusal().MatchString(text)
}

// IsCutShort reports whether an answer ended for want of room although it was
// shorter than the output limit that was wanted, in tokens: the context was
// full, so that a shorter history lets it go on.
func IsCutShort(m *Assistant, wanted int) bool {
	return m.StopReason == StopLength && m.Usage.Output < int64(wanted)
}

// IsRetryable reports whether a failed answer may succeed when the same request
// is sent again later: an overloaded service or a broken connection, but not a
// quota that is used up. Callers test IsContextOverflow first, as the same
// request would overflow again.
func IsRetryable(m *Assistant) bool {
	if m.StopReason != StopError || m.ErrorMessage == "" {
		return false
	}
	text := strings.ToLower(m.ErrorMessage)
	return !matchesAny(text, quotaWords[:], quotaPatterns) &&
		matchesAny(text, transientWords[:], transientPatterns)
}

// RetryDelay is how long to wait before attempt n, from 1, at sending a failed
// request again: base, doubled with each attempt, at most limit. A limit of 0
// is a minute.
func RetryDelay(base, limit time.Duration, n int) time.Duration {
	if limit <= 0 {
		limit = time.Minute
	}
	for ; n > 1 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}
