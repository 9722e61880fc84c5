package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/llm"
)

// The bounds that apply where a request names none.
const (
	DefaultTimeout       = 10 * time.Minute // wait for response headers
	DefaultIdleTimeout   = 5 * time.Minute  // silence in a response
	DefaultMaxRetryDelay = time.Minute      // delay that a server may ask for
	maxErrorBody         = 256 << 10        // bytes of an error response that are read
)

// Host is what a wire format gets from its program. The zero value is filled
// by Default; each wire format has one of its own.
type Host struct {
	Client  *http.Client                                     // nil for one of NewClient
	Version string                                           // of pinch, for the User-Agent
	Getenv  func(string) string                              // process environment; nil for os.Getenv
	Now     func() time.Time                                 // nil for time.Now
	Wait    func(ctx context.Context, d time.Duration) error // nil for a timer that ctx ends
	Random  func() float64                                   // in [0, 1), for the jitter of delays
}

// Default returns h with every absent part filled in.
func (h Host) Default() *Host {
	if h.Client == nil {
		h.Client = NewClient(http.ProxyFromEnvironment)
	}
	if h.Getenv == nil {
		h.Getenv = os.Getenv
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Wait == nil {
		h.Wait = wait
	}
	if h.Random == nil {
		h.Random = rand.Float64
	}
	return &h
}

// Env looks a variable up in the request's own environment, then in that of
// the process.
func (h *Host) Env(o *llm.Options, name string) string {
	if v, ok := o.Env[name]; ok {
		return v
	}
	return h.Getenv(name)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Call is one HTTP request that may take several attempts.
type Call struct {
	Method string // POST when empty
	URL    string
	Header http.Header
	Body   []byte

	// ErrorText words an error response; nil for PlainError.
	ErrorText func(*StatusError) string
	// AllResponses calls Options.OnResponse for error responses too.
	AllResponses bool
	// NoRetry makes one attempt whatever the options say.
	NoRetry bool
	// Retry decides on another attempt after one that failed, by the attempt's
	// number from 0, while Options.MaxRetries allows one: whether to make it,
	// after which delay, and whether the server asked for that delay. Nil for
	// Retryable and RetryDelay.
	Retry func(err error, attempt int) (d time.Duration, asked, again bool)

	// Prepare, when not nil, finishes the request of each attempt, for example
	// with a signature that holds the time. An error of its ends the call.
	Prepare func(req *http.Request) error
	// Secrets are values that Prepare sends and that no text may repeat, beside
	// the key and what Header holds.
	Secrets []string

	// Frames cuts the response into events; nil for server-sent events.
	Frames Frames
	// OwnStart says that the start event is due when the format calls
	// Answer.Start, not as soon as the response begins.
	OwnStart bool
}

type callKey struct{}

// CallOf is the call that an HTTP request of this context is an attempt of; nil
// for requests that Send did not make, such as those for a token.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Response is a successful answer whose body is still to be read.
type Response struct {
	*http.Response
	body *body
}

// Read reads the body. An error says what went wrong in words that a
// classification of errors understands.
func (r *Response) Read(p []byte) (int, error) { return r.body.Read(p) }

// Progress says that the bytes read last held data: the deadline on silence
// starts anew with the next read.
func (r *Response) Progress() { r.body.progress = true }

// Close ends the request. It is safe to call more than once.
func (r *Response) Close() { r.body.close() }

// Send makes the attempts of a call and returns the first success. An error is
// a *StatusError, a *ConnectionError, a *TimeoutError, a *DelayError, or
// ErrAborted when ctx ended.
func (h *Host) Send(ctx context.Context, c *Call, m *llm.Model, o *llm.Options) (*Response, error) {
	retries := o.MaxRetries
	if c.NoRetry {
		retries = 0
	}
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return nil, ErrAborted
		}
		resp, err := h.attempt(ctx, c, m, o)
		if err == nil {
			return resp, nil
		}
		if errors.Is(err, ErrAborted) || attempt >= retries {
			return nil, err
		}
		d, asked, again := h.retry(c, err, attempt)
		if !again {
			return nil, err
		}
		limit := o.MaxRetryDelay
		if limit == 0 {
			limit = DefaultMaxRetryDelay
		}
		if asked && limit > 0 && d > limit {
			return nil, &DelayError{Asked: d, Limit: limit, Cause: err}
		}
		if err := h.Wait(ctx, d); err != nil {
			return nil, ErrAborted
		}
	}
}

func (h *Host) retry(c *Call, err error, attempt int) (d time.Duration, asked, again bool) {
	if c.Retry != nil {
		return c.Retry(err, attempt)
	}
	if !Retryable(err) {
		return 0, false, false
	}
	d, asked = RetryDelay(err, attempt, h.Now(), h.Random)
	return d, asked, true
}

// request is the request of one attempt, checked before anything is sent.
func (c *Call) request(ctx context.Context, m *llm.Model) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(c.Method, http.MethodPost), c.URL, bytes.NewReader(c.Body))
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, which may hold a key
		}
		if s, _, ok := strings.Cut(strings.ToLower(c.URL), "://"); !ok || s != "http" && s != "https" {
			err = errNoAddress
		}
		return nil, badAddress(m, err)
	}
	if s := req.URL.Scheme; s != "http" && s != "https" || req.URL.Host == "" {
		return nil, badAddress(m, errNoAddress)
	}
	if port := req.URL.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, badAddress(m, fmt.Errorf("there is no port %s", port))
		}
	}
	req.Header = c.Header.Clone()
	if c.Prepare != nil {
		if err := c.Prepare(req); err != nil {
			if ctx.Err() != nil {
				return nil, ErrAborted
			}
			return nil, err
		}
	}
	if err := checkHeader(req.Header, m); err != nil {
		return nil, err
	}
	return req, nil
}

// attempt sends the request once. A response that is none of success is an error.
func (h *Host) attempt(ctx context.Context, c *Call, m *llm.Model, o *llm.Options) (*Response, error) {
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, callKey{}, c))
	req, err := c.request(inner, m)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	stop := func() {}
	if limit := cmp.Or(o.Timeout, DefaultTimeout); limit > 0 {
		timer := time.AfterFunc(limit, func() {
			cancel(&TimeoutError{What: "no response headers", After: limit})
		})
		stop = func() { timer.Stop() }
	}
	resp, err := cmp.Or(o.Client, h.Client).Do(req)
	if err != nil {
		stop()
		err = TransportError(inner, ctx, err)
		cancel(nil)
		return nil, err
	}
	if err := decode(resp); err != nil {
		stop()
		resp.Body.Close()
		cancel(nil)
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		stop()
		b := &body{src: resp.Body, outer: ctx, inner: inner, cancel: cancel, idle: cmp.Or(o.IdleTimeout, DefaultIdleTimeout), progress: true}
		if o.OnResponse != nil {
			if err := o.OnResponse(resp.StatusCode, resp.Header, m); err != nil {
				b.close()
				return nil, err
			}
		}
		return &Response{Response: resp, body: b}, nil
	}
	// The deadline on the headers also bounds the reading of an error's body.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is better than nothing
	stop()
	resp.Body.Close()
	if ctx.Err() != nil {
		cancel(nil)
		return nil, ErrAborted
	}
	cancel(nil)
	if c.AllResponses && o.OnResponse != nil {
		if err := o.OnResponse(resp.StatusCode, resp.Header, m); err != nil {
			return nil, err
		}
	}
	return nil, c.statusError(resp, text, o)
}

// statusError makes the error of a response from its body. Some services quote
// the key that they refuse: it must not get into messages and sessions.
func (c *Call) statusError(resp *http.Response, text []byte, o *llm.Options) *StatusError {
	keys := c.secrets(o)
	text = []byte(Redact(strings.TrimPrefix(string(text), "\uFEFF"), keys))
	e := &StatusError{Status: resp.StatusCode, Header: resp.Header, Body: text}
	e.Reason = Truncate(Redact(reason(resp), keys), maxReason)
	if c.ErrorText != nil {
		e.Message = c.ErrorText(e)
	} else {
		e.Message = PlainError(e)
	}
	return e
}

var errNoAddress = errors.New("it has to begin with https:// or http:// and the name of a host")

func badAddress(m *llm.Model, why error) error {
	return fmt.Errorf("the address of provider %s cannot be used (%w): correct its baseUrl in models.json", m.Provider, why)
}

// body reads a response and ends it when it stays silent too long. The timer
// only runs while a read waits, so a slow consumer is not taken for a silent
// server.
type body struct {
	src          io.ReadCloser
	outer, inner context.Context
	cancel       context.CancelCauseFunc
	idle         time.Duration // negative for no bound
	deadline     time.Time
	timer        *time.Timer
	progress     bool
	closed       bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, ErrAborted
	}
	if b.idle > 0 {
		now := time.Now()
		if b.progress {
			b.progress = false
			b.deadline = now.Add(b.idle)
		}
		left := b.deadline.Sub(now)
		if left <= 0 {
			// A timer might be stopped before it runs, again and again, while
			// there is always something to read.
			b.expire()
			return 0, TransportError(b.inner, b.outer, context.Cause(b.inner))
		}
		if b.timer == nil {
			b.timer = time.AfterFunc(left, b.expire)
		} else {
			b.timer.Reset(left)
		}
	}
	n, err := b.src.Read(p)
	if b.timer != nil {
		b.timer.Stop()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = TransportError(b.inner, b.outer, err)
	}
	return n, err
}

func (b *body) expire() {
	b.cancel(&TimeoutError{What: "no data in the response", After: b.idle})
}

// drain reads the rest, at most for d, so that the connection can be used again.
func (b *body) drain(d time.Duration) { b.drainTo(io.Discard, d) }

func (b *body) drainTo(w io.Writer, d time.Duration) {
	if b.closed {
		return
	}
	t := time.AfterFunc(d, func() { b.cancel(nil) })
	defer t.Stop()
	io.Copy(w, io.LimitReader(b.src, maxErrorBody))
}

func (b *body) close() {
	if b.closed {
		return
	}
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.cancel(nil)
	b.src.Close()
}

// Retryable reports whether another attempt may succeed: the server says so,
// or no response came, or its status is one of passing trouble.
func Retryable(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		var conn *ConnectionError
		var timeout *TimeoutError
		return errors.As(err, &conn) || errors.As(err, &timeout)
	}
	switch status.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch s := status.Status; s {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return s >= 500
	}
}

// RetryDelay is how long to wait before the attempt after the given one, which
// counts from 0; asked tells that the server named the delay.
func RetryDelay(err error, attempt int, now time.Time, random func() float64) (d time.Duration, asked bool) {
	var status *StatusError
	if errors.As(err, &status) {
		if d, ok := ServerDelay(status.Header, now); ok {
			return d, true
		}
	}
	backoff := min(0.5*math.Pow(2, float64(attempt)), 8)
	return time.Duration(backoff * (1 - 0.25*random()) * float64(time.Second)), false
}

// ServerDelay is the delay that a response asks for, in retry-after-ms or
// retry-after.
func ServerDelay(header http.Header, now time.Time) (time.Duration, bool) {
	if ms, ok := headerNumber(header.Get("Retry-After-Ms")); ok {
		return seconds(ms / 1000), true
	}
	v := header.Get("Retry-After")
	if s, ok := headerNumber(v); ok {
		return seconds(s), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), 1e9) * float64(time.Second))
}

// aborted is the reason of an answer whose consumer gave up.
type aborted struct{}

func (aborted) Error() string { return "Request was aborted" }

// ErrAborted says that the request's context ended.
var ErrAborted error = aborted{}

// TimeoutError says that a server kept silent for too long.
type TimeoutError struct {
	What  string // what did not come
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("Request timed out: %s within %s", e.What, e.After)
}

// DelayError says that a server asks for a longer wait than the request allows.
type DelayError struct {
	Asked, Limit time.Duration
	Cause        error
}

func (e *DelayError) Error() string {
	return fmt.Sprintf("Server requested %ds retry delay (max: %ds). %v", ceil(e.Asked), ceil(e.Limit), e.Cause)
}

func (e *DelayError) Unwrap() error { return e.Cause }

func ceil(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// ConnectionError says that no response came, or that one broke off.
type ConnectionError struct{ Cause error }

func (e *ConnectionError) Error() string {
	deepest := e.Cause
	for next := errors.Unwrap(deepest); next != nil; next = errors.Unwrap(next) {
		deepest = next
	}
	text := e.Cause.Error()
	if code := errorCode(deepest); code != "" && !strings.Contains(text, code) {
		text += " (" + code + ")"
	}
	return "Connection error: " + text
}

func (e *ConnectionError) Unwrap() error { return e.Cause }
