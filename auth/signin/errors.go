package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Kind tells failures of a sign-in apart.
type Kind string

// The kinds.
const (
	Denied      Kind = "denied"      // the person, or the issuer on their behalf, said no
	Mismatched  Kind = "mismatched"  // the answer belongs to another sign-in, or comes from another issuer
	TimedOut    Kind = "timed out"   // nobody answered in time, or the code expired
	Refused     Kind = "refused"     // the issuer did not accept what it was sent
	Ended       Kind = "ended"       // a stored sign-in is no longer valid
	Unreachable Kind = "unreachable" // no answer
	BadAnswer   Kind = "bad answer"  // an answer that makes no sense
	Local       Kind = "local"       // something on this machine: a port, a setting
)

// Error says why a sign-in or a renewal failed, in one sentence and without
// codes or tokens.
type Error struct {
	Name   string // of the provider, for people
	Kind   Kind
	Status int    // of the answer, 0 for none
	Code   string // the issuer's error code, such as invalid_grant; "" for none
	Detail string // what happened
	Cause  error  // nil, or what lies below
	// Renewal is set when a stored sign-in was to be renewed, where the caller
	// says so in words of its own.
	Renewal bool
}

func (e *Error) Error() string {
	if e.Renewal {
		return e.Detail
	}
	return fmt.Sprintf("Sign-in to %s failed: %s", e.Name, e.Detail)
}

// Unwrap gives the cause. A sign-in that ended is an auth.ErrSignInEnded, too.
func (e *Error) Unwrap() []error {
	var list []error
	if e.Cause != nil {
		list = append(list, e.Cause)
	}
	if e.Kind == Ended {
		list = append(list, auth.ErrSignInEnded)
	}
	return list
}

// codeMeaning is the kind of a standard error code of an issuer, and its words.
func codeMeaning(code string) (Kind, string) {
	switch code {
	case "access_denied":
		return Denied, "access was denied"
	case "expired_token":
		return TimedOut, "the code expired before it was entered"
	case "invalid_grant":
		return Refused, "the code was wrong, used before, or too old"
	case "invalid_client", "unauthorized_client":
		return Refused, "the client is not known there or may not sign in this way"
	case "invalid_scope":
		return Refused, "the client may not ask for these scopes"
	case "redirect_uri_mismatch":
		return Refused, "the issuer does not know the redirect address of this client"
	case "server_error", "temporarily_unavailable":
		return BadAnswer, "the issuer has trouble of its own"
	}
	return Refused, "the issuer refused it"
}

// secrets are texts that no error may repeat.
type secrets []string

const hidden = "(hidden)"

// spellings are the ways in which an answer may repeat a secret: as it is, as the
// request had it in a form, a path or a header, and as JSON has it. The longest
// of all come first, as one may be part of another.
func (s secrets) spellings() []string {
	var list []string
	for _, secret := range s {
		if len(secret) < 4 {
			continue // hides nothing, and is part of every word
		}
		quoted := jsonwire.AppendString(nil, secret)
		list = append(list, secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1:len(quoted)-1]),
			strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"))
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(list)
}

// clean is text of an issuer as part of a sentence: one line, not long, without
// control characters and without secrets.
func (s secrets) clean(text string) string {
	for _, secret := range s.spellings() {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ". ")
	const most = 200
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// fromIssuer words an answer with a standard error.
func (f *flow) fromIssuer(status int, code, description string) *Error {
	kind, words := codeMeaning(code)
	e := f.errorf(kind, "%s", words)
	e.Status, e.Code = status, f.hide.clean(code)
	if f.renewal && code == "invalid_grant" {
		e.Kind, e.Detail = Ended, "the issuer no longer accepts it"
	}
	var notes []string
	if e.Code != "" {
		notes = append(notes, e.Code)
	}
	if description = f.hide.clean(description); description != "" {
		notes = append(notes, description)
	}
	if notes != nil {
		e.Detail += " (" + strings.Join(notes, ": ") + ")"
	}
	return e
}

func (f *flow) errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Name: f.d.DisplayName(), Kind: kind, Detail: fmt.Sprintf(format, args...), Renewal: f.renewal}
}

// ended is ctx's own error when ctx is what ended the work, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
