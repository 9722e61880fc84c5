package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// version of the file format. A reader refuses a newer one.
const version = 1

// head is the first line of a recording.
type head struct {
	Type    string `json:"type"` // recording
	Version int    `json:"version"`
	Program string `json:"program,omitempty"`
	Created string `json:"created"` // RFC 3339
}

// exchange is one HTTP request and its answer.
type exchange struct {
	Type     string    `json:"type"` // exchange
	Model    llm.Model `json:"model"`
	Key      keyKind   `json:"key,omitempty"`
	Request  request   `json:"request"`
	Response *response `json:"response,omitempty"`
	// Error is why there was no response, or why one broke off.
	Error string `json:"error,omitempty"`
	// Cut says that the program stopped reading before the answer was over.
	Cut bool `json:"cut,omitempty"`
}

type request struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header"`
	// Body is the JSON that was sent, before any compression; Text is a body
	// that is no JSON.
	Body jsontext.Value `json:"body,omitempty"`
	Text string         `json:"text,omitempty"`
}

type response struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Text   string            `json:"text,omitempty"`
	Base64 string            `json:"base64,omitempty"` // in place of Text where the body is no UTF-8
	// Sizes are the bytes of each read, and Times the milliseconds from the
	// request to it. Sizes is absent where a secret was taken out.
	Sizes []int   `json:"sizes,omitempty"`
	Times []int64 `json:"times,omitempty"`
}

// setBody stores what was read.
func (r *response) setBody(body []byte, sizes []int, secrets []string) {
	text := wire.Redact(string(body), secrets)
	if text == string(body) {
		r.Sizes = sizes
	}
	if utf8.Valid(body) {
		r.Text = text
	} else { // frames with a secret no longer fit their checksums: not to store it weighs more
		r.Base64 = base64.StdEncoding.EncodeToString([]byte(text))
	}
}

// chunks are the pieces in which the body arrived.
func (r *response) chunks() ([][]byte, error) {
	body := []byte(r.Text)
	if r.Base64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Base64); err != nil {
			return nil, fmt.Errorf("base64: %w", err)
		}
	}
	var out [][]byte
	for _, n := range r.Sizes {
		if n < 0 || n > len(body) {
			return nil, errors.New("sizes do not fit the body")
		}
		out = append(out, body[:n])
		body = body[n:]
	}
	if len(body) > 0 {
		out = append(out, body)
	}
	return out, nil
}

// The header fields that are stored. Others may carry credentials, accounts or
// addresses; of them only the name is.
var (
	requestFields = []string{
		"accept", "anthropic-beta", "anthropic-version", "content-encoding", "content-type", "openai-beta",
		"openai-intent", "originator", "user-agent", "x-initiator",
	}
	responseFields = []string{
		"content-encoding", "content-type", "date", "retry-after", "retry-after-ms", "x-should-retry",
		"request-id", "x-request-id", "x-amzn-requestid", "x-amzn-errortype",
	}
)

// fields are the header fields of a request or a response that may be kept.
func fields(header http.Header, known, secrets []string, names bool) map[string]string {
	out := map[string]string{}
	for name, values := range header {
		name = strings.ToLower(name)
		switch {
		case slices.Contains(known, name):
			out[name] = wire.Redact(strings.Join(values, ", "), secrets)
		case names:
			out[name] = wire.Redacted
		}
	}
	return out
}

// publicModel is m without what may be secret: its own header fields, and user
// and query of its address.
func publicModel(m *llm.Model, secrets []string) llm.Model {
	public := *m
	public.Headers = nil
	if u, err := url.Parse(m.BaseURL); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		if m.BaseURL != "" {
			public.BaseURL = wire.Redact(u.String(), secrets)
		}
	}
	return public
}

// setBody stores a request's body.
func (r *request) setBody(body []byte, secrets []string) {
	text := wire.Redact(string(body), secrets)
	if jsonwire.Check([]byte(text)) == nil && utf8.ValidString(text) {
		r.Body = jsontext.Value(text)
	} else {
		r.Text = string(jsonwire.AppendUTF8(nil, text))
	}
}

// line is v as one line of a file.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// readAll reads the lines of a recording.
func readAll(data []byte) (*head, []exchange, error) {
	var h *head
	var all []exchange
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		if h == nil {
			h = &head{}
			if err := json.Unmarshal(raw, h); err != nil || h.Type != "recording" {
				return nil, nil, errors.New("it does not begin like a recording")
			}
			if h.Version > version {
				return nil, nil, fmt.Errorf("it has version %d and this program reads up to %d: update the program", h.Version, version)
			}
			continue
		}
		var e exchange
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		if e.Type != "exchange" {
			continue // of a later version
		}
		if e.Model.API == ID {
			return nil, nil, fmt.Errorf("line %d: it is the recording of a recording", number)
		}
		if e.Response != nil {
			if _, err := e.Response.chunks(); err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
		all = append(all, e)
	}
	if h == nil {
		return nil, nil, errors.New("it is empty")
	}
	return h, all, nil
}

// keyKind is what a wire format can tell from a key, and decides by.
type keyKind string

const (
	keyAnthropicOAuth keyKind = "sk-ant-oat"
	keyPlatform       keyKind = "sk-"
	keyToken          keyKind = "jwt"
)

func kindOf(key string) keyKind {
	switch {
	case strings.Contains(key, string(keyAnthropicOAuth)):
		return keyAnthropicOAuth
	case strings.HasPrefix(key, string(keyPlatform)):
		return keyPlatform
	case strings.Count(key, ".") == 2:
		return keyToken
	}
	return ""
}

// stand is a key of this kind that opens nothing.
func (k keyKind) stand() string {
	switch k {
	case keyAnthropicOAuth, keyPlatform:
		return strings.TrimSuffix(string(k), "-") + "-recorded"
	case keyToken:
		part := base64.RawURLEncoding.EncodeToString
		claims := `{"https://api.openai.com/auth":{"chatgpt_account_id":"recorded"}}`
		return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + "." + part([]byte("recorded"))
	}
	return "recorded"
}
