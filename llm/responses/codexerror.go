package responses

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// The codes of a plan that is used up, or that does not cover the model: no
// attempt succeeds before the plan is renewed.
const (
	codeUsageLimit  = "usage_limit_reached"
	codeNotIncluded = "usage_not_included"
	codeRateLimit   = "rate_limit_exceeded"
)

// codexStatusText words an error response: for limits of the plan when it can
// be used again, else the service's own words.
func codexStatusText(e *wire.StatusError, now time.Time) string {
	object := e.ErrorObject()
	if len(object) == 0 || object[0] != '{' {
		return wire.PlainError(e)
	}
	switch e.Code() {
	case codeUsageLimit, codeNotIncluded, codeRateLimit:
		return usageLimitText(object, now)
	}
	if e.Status == http.StatusTooManyRequests {
		return usageLimitText(object, now)
	}
	if text, _ := jsonwire.StringValue(jsonwire.Get(object, "message")); text != "" {
		return wire.Truncate(text, wire.MaxErrorText)
	}
	return wire.StructuredError("")(e)
}

func usageLimitText(object []byte, now time.Time) string {
	text := "You have hit your ChatGPT usage limit"
	if plan, _ := jsonwire.StringValue(jsonwire.Get(object, "plan_type")); plan != "" {
		text += " (" + strings.ToLower(plan) + " plan)"
	}
	text += "."
	if wait, ok := untilReset(object, now); ok {
		text += fmt.Sprintf(" Try again in ~%.0f min.", math.Round(wait.Minutes()))
	}
	return text
}

// untilReset is how long a limit lasts: an error object says either when it
// ends, in Unix seconds, or after how many seconds.
func untilReset(object []byte, now time.Time) (time.Duration, bool) {
	if at, ok := positive(jsonwire.Get(object, "resets_at")); ok {
		return max(0, time.Unix(0, int64(at*float64(time.Second))).Sub(now)), true
	}
	if in, ok := positive(jsonwire.Get(object, "resets_in_seconds")); ok {
		return time.Duration(in * float64(time.Second)), true
	}
	return 0, false
}

// positive reads a number of seconds that a time.Duration can hold.
func positive(raw []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && f > 0 && f < math.MaxInt64/float64(time.Second)
}

// maxBackoff bounds the delays that no server asked for.
const maxBackoff = time.Minute

// codexRetry decides on another attempt after the one of that number, which
// counts from 0: when the service is in passing trouble or there was no answer,
// after the delay that the server names, else a second, doubled each time.
func codexRetry(err error, attempt int, now time.Time) (d time.Duration, asked, again bool) {
	d = time.Second << min(attempt, 6)
	d = min(d, maxBackoff)
	var status *wire.StatusError
	if !errors.As(err, &status) {
		return d, false, wire.Retryable(err)
	}
	if !passing(status) {
		return 0, false, false
	}
	if wanted, ok := wire.ServerDelay(status.Header, now); ok {
		return wanted, true, true
	}
	return d, false, true
}

// passing reports whether an error response is about passing trouble, by its
// status or by its words.
func passing(e *wire.StatusError) bool {
	switch e.Code() {
	case codeUsageLimit, codeNotIncluded:
		return false
	}
	switch e.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	// The status is one of the words: 429 counts unless the body speaks of a quota.
	return llm.IsRetryable(&llm.Assistant{
		StopReason: llm.StopError, ErrorMessage: strconv.Itoa(e.Status) + " " + string(e.Body),
	})
}

// codexEventError is the error that an event of type error reports.
func codexEventError(_, event []byte) error {
	for _, object := range [][]byte{event, jsonwire.Get(event, "error")} {
		for _, name := range []string{"message", "code"} {
			if text, _ := jsonwire.StringValue(jsonwire.Get(object, name)); text != "" {
				return codexProblem(text)
			}
		}
	}
	text, err := jsonwire.AppendCompact(nil, event)
	if err != nil {
		text = event
	}
	return codexProblem(string(text))
}

func codexProblem(text string) error {
	return &wire.ProviderError{Message: "Codex error: " + wire.Truncate(text, wire.MaxErrorText)}
}

// codexFailed is the error of a response that failed: its own words, else what
// is known besides.
func codexFailed(response []byte) error {
	text, _ := jsonwire.StringValue(jsonwire.Get(jsonwire.Get(response, "error"), "message"))
	if text == "" {
		text = "Codex response failed"
		r := readResponse(response)
		if code, _ := jsonwire.StringValue(jsonwire.Get(r.problem, "code")); code != "" {
			text += ": " + code
		} else if r.reason != "" {
			text += ": " + r.reason
		}
	}
	return &wire.ProviderError{Message: wire.Truncate(text, wire.MaxErrorText)}
}
