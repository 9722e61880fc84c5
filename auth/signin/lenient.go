package signin

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// lenient is a good answer in the form that x/oauth2 insists on. It gives up an
// answer, tokens and all, for one odd member beside them: a life of "soon" or
// 3600.0, a scope of another kind. But the issuer honours a code or a refresh
// token once, so that an answer thrown away is a sign-in lost. Numbers are made
// whole, texts and numbers are told apart, and what makes no sense is left out.
func lenient(body []byte) []byte {
	text := func(name string) string { s, _ := textOf(jsonwire.Get(body, name)); return s }
	hasToken := text("access_token") != ""
	o := jsonwire.Begin(nil)
	var r jsonwire.Reader
	r.Reset(body)
	for r.Object(); r.More(); {
		name := string(r.Key())
		raw := slices.Clone(r.Raw())
		// Names are compared as x/oauth2 does it.
		switch folded := strings.ToLower(name); folded {
		case "access_token", "refresh_token", "device_code", "user_code", "verification_uri", "verification_url", "verification_uri_complete":
			if s, ok := textOf(raw); ok {
				o.Text(name, s)
			}
		case "expires_in", "interval":
			if n, ok := secondsOf(raw); ok {
				o.Int(name, n)
			}
		case "token_type", "error", "error_description", "error_uri":
			s, ok := textOf(raw)
			switch {
			case ok:
				o.Text(name, s)
			case !hasToken && folded == "error" && string(raw) != "null":
				o.Raw(name, raw) // no token, and why not
			}
		default:
			o.Member(name, raw)
		}
	}
	if r.End() != nil {
		return body
	}
	return o.End()
}

// textOf is the text of a member; a number counts as its digits.
func textOf(raw []byte) (string, bool) {
	if s, ok := jsonwire.StringValue(raw); ok {
		return s, true
	}
	if _, err := strconv.ParseFloat(string(raw), 64); err == nil {
		return string(raw), true
	}
	return "", false
}

// secondsOf is a number of seconds, rounded down.
func secondsOf(raw []byte) (int64, bool) {
	s, _ := textOf(raw)
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	switch {
	case math.IsNaN(f) || err != nil && !math.IsInf(f, 0):
		return 0, false
	case f > 0 && f < 1:
		return 1, true // 0 stands for no answer
	}
	return int64(max(min(f, math.MaxInt32), math.MinInt32)), true
}
