package wire

import (
	"net/http"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// Redacted stands where an error text quoted a key.
const Redacted = "[redacted]"

// minSecret is the length in bytes from which a value is taken for a secret. A
// shorter one, such as the "none" of a local server, protects nothing and may
// be a word of the text.
const minSecret = 8

// secrets are the values of a request that no text may repeat: the key, what
// the header fields hold that carry credentials, and more. The longest come
// first, as one may be part of another.
func secrets(header http.Header, o *llm.Options, more []string) []string {
	var out []string
	add := func(v string) {
		if v = strings.TrimSpace(v); len(v) >= minSecret && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	add(o.APIKey)
	for name, values := range header {
		if !carriesSecret(name) {
			continue
		}
		for _, v := range values {
			add(v)
			if _, bare, ok := strings.Cut(v, " "); ok { // Bearer and the like
				add(bare)
			}
		}
	}
	for _, v := range more {
		add(v)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// Secrets are the values of a request that no text may repeat: its key, what its
// header fields hold that carry credentials, and more, such as Call.Secrets.
func Secrets(header http.Header, o *llm.Options, more ...string) []string {
	return secrets(header, o, more)
}

// Redact is text with the given values replaced.
func Redact(text string, secrets []string) string { return redact(text, secrets) }

// secrets are those of the call's header fields, of what Prepare adds, and the key.
func (c *Call) secrets(o *llm.Options) []string { return secrets(c.Header, o, c.Secrets) }

// carriesSecret reports whether a header field of this name holds credentials.
func carriesSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"auth", "key", "token", "secret", "cookie", "password"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, Redacted)
	}
	return text
}
