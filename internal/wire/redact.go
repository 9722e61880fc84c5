package wire

import (
	"encoding/base64"
	"net/http"
	"net/url"
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

// Secrets are the values of a request that no text may repeat: its key, what its
// header fields hold that carry credentials, and more, such as Call.Secrets. The
// longest come first, as one may be part of another.
func Secrets(header http.Header, o *llm.Options, more ...string) []string {
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

// secrets are those of the call's header fields, of what Prepare adds, those of
// its address, and the key.
func (c *Call) secrets(o *llm.Options) []string {
	more := c.Secrets
	if u, err := url.Parse(c.URL); err == nil {
		more = slices.Concat(more, AddressSecrets(u))
	}
	return Secrets(c.Header, o, more...)
}

// AddressSecrets are the values of an address that may be credentials: its
// password, or a user alone, which is a token then, as they are and as they are
// sent, and what its query holds.
func AddressSecrets(u *url.URL) []string {
	var out []string
	if u.User != nil {
		name := u.User.Username()
		password, both := u.User.Password()
		out = append(out, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
		_, escaped, _ := strings.Cut(u.User.String(), ":")
		if !both {
			password, escaped = name, u.User.String()
		}
		out = append(out, password, escaped)
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if publicParameter(name) {
			continue
		}
		out = append(out, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			out = append(out, plain)
		}
	}
	return out
}

// PublicAddress is an address for a file or a person: without its user, and with
// the values of its query replaced but for those that only say how to answer.
func PublicAddress(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		switch {
		case name == "":
		case publicParameter(name):
			query = append(query, part)
		default:
			query = append(query, name+"="+Redacted)
		}
	}
	shown.RawQuery = strings.Join(query, "&")
	return shown.String()
}

// publicParameter reports whether a parameter of an address only says how to
// answer, so that its value is no secret.
func publicParameter(name string) bool {
	switch name {
	case "alt", "api-version", "beta", "debug":
		return true
	}
	return false
}

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

// Redact is text with the given values replaced.
func Redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, Redacted)
	}
	return text
}
