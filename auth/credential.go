package auth

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Credential is one entry of the store: an *APIKey, an *OAuth or, kept but not
// used, an *UnknownCredential.
type Credential interface{ credential() }

// APIKey is a stored key: {"type": "api_key", "key": …, "env": {…}}.
type APIKey struct {
	Key Secret // a value: literal, template or command; empty for none
	// Keychain names the item of the system's keychain that holds the key, as
	// service/account; "" for none. It counts before Key. See KeychainItem.
	Keychain string
	// Env are variables that go with the key, such as an account id. When an
	// entry is written, nil keeps the stored ones; an empty map takes them away.
	Env map[string]string
}

// OAuth is a stored sign-in: {"type": "oauth", "access": …, "refresh": …,
// "expires": ms, …}.
type OAuth struct {
	Access  Secret
	Refresh Secret // empty for a token that cannot be renewed
	// Expires is when Access ends. Keys that never end are stored with the
	// largest exact number of the file's other readers; see Permanent.
	Expires time.Time
	// Raw is the whole entry as stored, with the members that a provider added;
	// nil for a new one. It holds the tokens: do not print it. Writing keeps
	// what it has beside the fields above; Extra and SetExtra reach into it.
	Raw jsontext.Value
}

// UnknownCredential is an entry of a type that this version does not know. It
// cannot be written, and stays as it is.
type UnknownCredential struct{ Type string }

func (*APIKey) credential()            {}
func (*OAuth) credential()             {}
func (*UnknownCredential) credential() {}

// Permanent is the Expires of a token that does not end.
func Permanent() time.Time { return time.UnixMilli(maxExpires) }

// maxExpires is the largest integer that a JavaScript number holds exactly.
const maxExpires = 1<<53 - 1

// Extra is the text of a member that a provider added, "" when it has none or
// the member is no text.
func (c *OAuth) Extra(name string) string {
	s, _ := jsonwire.StringValue(jsonwire.Get(c.Raw, name))
	return s
}

// SetExtra sets a member that a provider added. The value is JSON text; nil
// takes the member away, and so does what is no JSON. Raw is replaced, not
// changed, so that copies of the credential are independent.
func (c *OAuth) SetExtra(name string, value jsontext.Value) {
	raw := c.Raw
	if raw == nil {
		raw = jsontext.Value(`{}`)
	}
	if jsonwire.Check(value) != nil {
		value = nil
	}
	if raw, err := editText(raw, edit{value, []string{name}}); err == nil {
		c.Raw = raw
	}
}

// SetExtraText is SetExtra for a text; "" takes the member away.
func (c *OAuth) SetExtraText(name, text string) {
	if text == "" {
		c.SetExtra(name, nil)
		return
	}
	c.SetExtra(name, jsonwire.AppendString(nil, text))
}

// parseCredential reads an entry. What is missing or of another kind is empty.
func parseCredential(raw jsontext.Value) Credential {
	text := func(name string) string {
		s, _ := jsonwire.StringValue(jsonwire.Get(raw, name))
		return s
	}
	switch kind := text("type"); kind {
	case "api_key":
		c := &APIKey{Key: NewSecret(text("key")), Keychain: text("keychain")}
		if env := jsonwire.Get(raw, "env"); env != nil {
			var r jsonwire.Reader
			r.Reset(env)
			for r.Object(); r.More(); {
				name := string(r.Key())
				if c.Env == nil {
					c.Env = map[string]string{}
				}
				c.Env[name] = r.Text()
			}
		}
		return c
	case "oauth":
		return &OAuth{
			Access:  NewSecret(text("access")),
			Refresh: NewSecret(text("refresh")),
			Expires: time.UnixMilli(parseExpires(jsonwire.Get(raw, "expires"))),
			Raw:     slices.Clone(raw),
		}
	default:
		return &UnknownCredential{Type: kind}
	}
}

// encodeExpires is a time as the file has it: milliseconds since 1970.
func encodeExpires(t time.Time) int64 { return min(max(t.UnixMilli(), 0), maxExpires) }

// parseExpires reads milliseconds since 1970. What makes no sense is 0: long
// over, so that the token is renewed rather than trusted.
func parseExpires(raw []byte) int64 {
	text, quoted := jsonwire.StringValue(raw)
	if !quoted {
		text = string(raw)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	return int64(min(f, maxExpires))
}

// Use is how a stored sign-in goes with a request. The zero value sends its
// token as a key, to the model's address.
type Use struct {
	// Bearer is whether the token goes as Authorization: Bearer in place of the
	// wire format's own header.
	Bearer bool
	// BaseURL is where to send it; "" for the model's address.
	BaseURL string
}
