package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// MaxErrorText bounds the part of an error response that a message quotes, in
// UTF-16 code units.
const MaxErrorText = 4000

// StatusError is a response of another status than success.
type StatusError struct {
	Status  int
	Reason  string // words of the status line, such as Not Found
	Header  http.Header
	Body    []byte // as sent, cut at 256 KiB
	Message string // in the words of the wire format
}

func (e *StatusError) Error() string { return e.Message }

// maxReason bounds the words of a status line that are kept, in UTF-16 code
// units.
const maxReason = 200

// reason is the words of a response's status line.
func reason(resp *http.Response) string {
	text := strings.TrimSpace(strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode)))
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	return string(jsonwire.AppendUTF8(nil, text))
}

// ErrorObject is the body's error member, nil when the body is no JSON object
// or has none.
func (e *StatusError) ErrorObject() []byte { return jsonwire.Get(e.Body, "error") }

// Code is the machine's word for the error: error.details.error_code,
// error.code or error.type, "" for none.
func (e *StatusError) Code() string {
	obj := e.ErrorObject()
	for _, raw := range [][]byte{jsonwire.Get(jsonwire.Get(obj, "details"), "error_code"), jsonwire.Get(obj, "code"), jsonwire.Get(obj, "type")} {
		if s, ok := jsonwire.StringValue(raw); ok && s != "" {
			return s
		}
	}
	return ""
}

// ProviderError is an error that a provider reports inside an answer, in its
// own words, or one that its answer amounts to.
type ProviderError struct{ Message string }

func (e *ProviderError) Error() string { return e.Message }

// PlainError is the status and the message or the compact JSON of the body, or
// the body as it came when it is no JSON: the form of Anthropic.
func PlainError(e *StatusError) string { return statusWords(e, compactBody(e)) }

// StructuredError is the form of the OpenAI families: the status and the
// compact error object of the body, behind a prefix such as
// "OpenAI API error" where the family has one. A body that is an object without
// error is the error object itself.
func StructuredError(prefix string) func(*StatusError) string {
	return func(e *StatusError) string {
		object := compactBody(e)
		if inner := jsonwire.Get(object, "error"); !empty(inner) {
			object = inner
		}
		text := statusWords(e, object)
		// An object without a message is in the text already, as a whole.
		structured := jsonwire.IsObject(object) && !empty(jsonwire.Get(object, "message"))
		if structured {
			text = Truncate(string(object), MaxErrorText)
		}
		switch {
		case prefix != "":
			return fmt.Sprintf("%s (%d): %s", prefix, e.Status, text)
		case structured:
			return fmt.Sprintf("%d: %s", e.Status, text)
		default:
			return text
		}
	}
}

// statusWords is the status and the message that a JSON value has, else the
// value itself; with nil for a value, the body.
func statusWords(e *StatusError, value []byte) string {
	text := bodyText(e)
	if value != nil {
		text = string(value)
		if message := jsonwire.Get(value, "message"); !empty(message) {
			text = string(message)
			if s, ok := jsonwire.StringValue(message); ok {
				text = string(jsonwire.AppendUTF8(nil, s))
			}
		}
	}
	if text == "" {
		return fmt.Sprintf("%d status code (no body)", e.Status)
	}
	return fmt.Sprintf("%d %s", e.Status, Truncate(text, MaxErrorText))
}

// empty reports whether a member that tells of an error tells nothing.
func empty(raw []byte) bool {
	switch string(raw) {
	case "", "null", `""`, "false", "0":
		return true
	}
	return false
}

// compactBody is the body in the shortest form of its JSON, nil when it is none.
func compactBody(e *StatusError) []byte {
	compact, err := jsonwire.AppendCompact(nil, e.Body)
	if err != nil {
		return nil
	}
	return compact
}

func bodyText(e *StatusError) string {
	return strings.TrimSpace(string(jsonwire.AppendUTF8(nil, e.Body)))
}

// Truncate cuts text at a number of UTF-16 code units and says how many are missing.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text // no text has more units than bytes
	}
	text = string(jsonwire.AppendUTF8(nil, text))
	n := jsonwire.UTF16Len(text)
	if n <= limit {
		return text
	}
	at, units := 0, 0
	for i, r := range text {
		w := 1
		if r > 0xFFFF {
			w = 2
		}
		if units+w > limit {
			break
		}
		units += w
		at = i + utf8.RuneLen(r)
	}
	return fmt.Sprintf("%s... [truncated %d chars]", text[:at], n-units)
}

// TransportError words an error of an HTTP client, of Send's and of requests that
// formats make beside their call, as for a token: ErrAborted when outer, the
// caller's context, ended, the *TimeoutError that is the cause of inner's end, a
// *ConnectionError, or what no other attempt would change.
func TransportError(inner, outer context.Context, err error) error {
	if outer.Err() != nil {
		return ErrAborted
	}
	var timeout *TimeoutError
	if cause := context.Cause(inner); errors.As(cause, &timeout) {
		return timeout
	}
	// The URL may hold a key; the cause is what helps.
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	// A server that cannot prove who it is will not do so the next time.
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &cert):
		return fmt.Errorf("the certificate of the server is refused: %w", cert.Err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("the server does not speak TLS: %w", err)
	}
	var refused *ProxyError
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
		return refused
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" && refused == nil {
		err = fmt.Errorf("the proxy cannot be used (is HTTPS_PROXY or the httpProxy setting right?): %w", op.Err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("connection closed by the server: %w", err)
	}
	return &ConnectionError{Cause: err}
}

// headerNumber reads the number that a header begins with: services write units
// behind it. Blank and other text give false.
func headerNumber(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.' || n == 0 && (s[n] == '+' || s[n] == '-')) {
		n++
	}
	f, err := strconv.ParseFloat(s[:n], 64)
	return f, err == nil
}
