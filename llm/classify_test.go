package llm

import (
	"slices"
	"strings"
	"testing"
)

func TestIsContextOverflow(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"PROMPT IS TOO LONG", true},
		{"prompt too long; exceeded max context length", true},
		{"Input exceeds the model's maximum context length of 262,144 tokens", true},
		{"exceeds maximum context length", false},
		{"context length exceeded", true},
		{"input (9000 tokens) is longer than the model's context length (8192 tokens)", true},
		{"prompt token count of 9 exceeds the limit of 8", true},
		{"exceeds the limit of many", false},
		{"the prompt has 9,000 tokens, but the configured context size is 8,192 tokens", true},
		{"Range of input length should be [1, 8]", true},
		{"openai API error (413): x", true},
		{"an openai API error (413): x", true},
		{"my.gateway API error (413): x", true},
		{`{"error":{"code":413,"message":"large"}}`, true},
		{`{"error":{"message":"large","code":413}}`, true},
		{`{"error":{"message":"large","code":4130}}`, false},
		{"code: 413", false},
		{"413", true},
		{"too many requests: prompt is too long", false},
		{"throttling error: prompt is too long", false},
		{"no throttling error: prompt is too long", true},
		{"400 status code (no body)", false},
	} {
		m := &Assistant{StopReason: StopError, ErrorMessage: c.text, Provider: "p"}
		if got := IsContextOverflow(m, 0); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
	for _, text := range []string{"400 status code (no body)", "413(no body)"} {
		if !IsContextOverflow(&Assistant{StopReason: StopError, ErrorMessage: text, Provider: "cerebras"}, 0) {
			t.Errorf("%q of cerebras is none", text)
		}
	}
}

func TestIsRetryable(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"x429x", false}, {"_429_", true}, {"(503)", true}, {"5030", false}, {"1.500", true},
		{"Service is temporarily unavailable", true}, {"service_unavailable", true},
		{"provider returned an error", true}, {"upstream request failed", true}, {"Upstream connect error", true},
		{"read tcp: ECONNRESET", true}, {"_ECONNRESET", false}, {"dial: ECONNREFUSED.", true}, {"EPIPE", true}, {"xETIMEDOUT", false},
		{"connect: connection refused", true}, {"connection lost", true}, {"WebSocket closed 1006", true},
		{"HTTP/2 stream failed", true}, {"http2 stream failed", true}, {"time out", true}, {"timed  out", false},
		{"getaddrinfo ENOTFOUND api.x", true}, {"ENOTFOUND", true}, {"ResourceNotFoundException: no such model", false},
		{"request to https://x failed, reason: y", true}, {"request to failed, reason:", false},
		{`{"code": 1308} timeout`, false}, {`{"code": 13081} timeout`, true}, {"billing timeout", false},
		{"unauthorized", false}, {"", false},
	} {
		m := &Assistant{StopReason: StopError, ErrorMessage: c.text}
		if got := IsRetryable(m); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
		m.StopReason = StopAborted
		if IsRetryable(m) {
			t.Errorf("%q of an aborted answer is retried", c.text)
		}
	}
}

func TestWordsAreLowerCase(t *testing.T) {
	all := slices.Concat(notOverflow[:], notOverflowPrefix[:], overflowWords[:], quotaWords[:], transientWords[:])
	for _, ps := range [][]guarded{overflowPatterns(), quotaPatterns(), transientPatterns()} {
		for _, p := range ps {
			all = append(all, p.literal)
		}
	}
	for _, w := range all {
		if w != strings.ToLower(w) {
			t.Errorf("%q can never be found", w)
		}
	}
}

func TestIsCutShort(t *testing.T) {
	for _, c := range []struct {
		stop           StopReason
		output, wanted int
		want           bool
	}{
		{StopLength, 100, 200, true}, {StopLength, 200, 200, false}, {StopLength, 0, 0, false}, {StopStop, 10, 200, false},
	} {
		m := &Assistant{StopReason: c.stop, Usage: Usage{Output: int64(c.output)}}
		if got := IsCutShort(m, c.wanted); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
}
