package bedrock

import (
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// kind is what the model behind an id can do. The protocol does not say, so it
// is told by the id, or by the name where the id is the ARN of a profile.
type kind struct {
	claude   bool
	adaptive bool // Claude that chooses its thinking budget itself
	binding  bool // adaptive Claude whose thinking can be bound to its place
	caches   bool // Claude that takes cache points
	gptOSS   bool
	gpt      bool // and not gptOSS
	strict   bool // the service enforces schemas of tools
}

func kindOf(m *llm.Model) kind {
	var k kind
	for _, s := range [...]string{slug(m.ID), slug(m.Name)} {
		claude := strings.Contains(s, "claude")
		k.claude = k.claude || claude
		k.caches = k.caches || claude && containsAny(s, "-4-", "opus-5", "sonnet-5", "haiku-5", "fable-5", "claude-3-7-sonnet", "claude-3-5-haiku")
		if containsAny(s, "opus-5", "sonnet-5", "haiku-5", "fable-5") || minorOf(s, "opus-4-") >= 7 {
			k.adaptive, k.binding = true, true
		} else if minorOf(s, "opus-4-") == 6 || minorOf(s, "sonnet-4-") == 6 {
			k.adaptive = true
		}
		k.gptOSS = k.gptOSS || strings.Contains(s, "gpt-oss")
		k.gpt = k.gpt || strings.Contains(s, "gpt-")
	}
	k.adaptive, k.binding = k.adaptive && k.claude, k.binding && k.claude
	k.gptOSS = k.gptOSS && !k.claude
	k.gpt = k.gpt && !k.gptOSS && !k.claude
	k.strict = string(jsonwire.Get(m.Compat, "supportsStrictMode")) == "true"
	return k
}

// slug is a name in lower case with hyphens where names of models have spaces,
// dots, colons and underscores, each run of them one.
func slug(s string) string {
	b := make([]byte, 0, len(s))
	for _, c := range []byte(strings.ToLower(s)) {
		switch c {
		case ' ', '\t', '\n', '.', ':', '_', '-':
			if n := len(b); n > 0 && b[n-1] == '-' {
				continue
			}
			c = '-'
		}
		b = append(b, c)
	}
	return string(b)
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// minorOf is the version number behind a family such as opus-4-; 0 when none
// follows. A longer number is the date of a version without one.
func minorOf(s, family string) int {
	for {
		_, rest, found := strings.Cut(s, family)
		if !found {
			return 0
		}
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if minor, err := strconv.Atoi(rest[:n]); err == nil && n <= 2 {
			return minor
		}
		s = rest
	}
}

// govCloud reports whether a model is served from AWS GovCloud, whose version
// of Claude does not know some fields.
func govCloud(m *llm.Model, region string) bool {
	id := strings.ToLower(m.ID)
	return strings.HasPrefix(strings.ToLower(region), "us-gov-") || strings.HasPrefix(id, "us-gov.") || strings.HasPrefix(id, "arn:aws-us-gov:")
}
