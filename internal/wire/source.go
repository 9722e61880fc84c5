package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// Exchange is what a wire format knows about one request and its answer.
// Source calls it from one goroutine, in the order of its methods.
type Exchange interface {
	// Request builds the request, with Options.OnPayload applied (see
	// Payload). It is called again when Rejected asks for that. An error ends
	// the stream before it starts.
	Request() (*Call, error)

	// Rejected sees a failed response and reports whether another Request is
	// to be made in its place.
	Rejected(err *StatusError) bool

	// Event interprets one event of the answer. name and data are valid during
	// the call. An error ends the answer with it; ErrFinished ends it well,
	// without waiting for the end of the stream.
	Event(a *Answer, name, data []byte) error

	// End is called once, when the answer is over: with nil at the regular end
	// of the stream, else with what cut it off, ErrAborted among others. It
	// may still queue events. Its result is the error that the stream ends
	// with; nil for a good end, for which it sets Message.StopReason.
	End(a *Answer, cause error) error
}

// ErrFinished is returned by Exchange.Event behind the last event of an answer.
var ErrFinished = errors.New("answer is complete")

// drainTime bounds the wait for the end of a response whose last event was read.
const drainTime = 100 * time.Millisecond

// Source drives an Exchange as its consumer reads. It implements llm.Source and
// has no goroutine of its own.
type Source struct {
	host  *Host
	ctx   context.Context
	model *llm.Model
	opts  *llm.Options
	ex    Exchange

	answer Answer
	sse    SSE
	frames Frames // of the call, or sse
	call   *Call  // that was sent last
	resp   *Response
	other  bytes.Buffer // start of a body that may be no stream of events
	events bool         // one was read
	state  state
	err    error // of the terminal event
}

type state uint8

const (
	stateNew    state = iota // nothing sent
	stateStart               // response began, start event due
	stateBody                // reading events
	stateEnding              // Exchange.End was called, queued events remain
	stateDone
)

// NewSource makes the source of a stream. The request is built and sent when
// the first event is asked for. header of the message: api is the wire format.
func NewSource(ctx context.Context, h *Host, api string, m *llm.Model, o *llm.Options, ex Exchange) *Source {
	return &Source{
		host: h, ctx: ctx, model: m, opts: o, ex: ex,
		answer: Answer{Message: NewMessage(api, m)},
	}
}

// NewMessage is the message of an answer that has not begun.
func NewMessage(api string, m *llm.Model) *llm.Assistant {
	return &llm.Assistant{
		Content: []llm.Block{}, API: api, Provider: m.Provider, Model: m.ID, StopReason: llm.StopPending,
	}
}

// Raw is the lines of the event being interpreted, joined by sep, for error
// texts; formats reach it through the Source that they made.
func (s *Source) Raw(sep string) string { return s.sse.Raw(sep) }

// Header is that of the response being read, nil before there is one.
func (s *Source) Header() http.Header {
	if s.resp == nil {
		return nil
	}
	return s.resp.Header
}

// Message is the message being built, for what formats record outside Event.
func (s *Source) Message() *llm.Assistant { return s.answer.Message }

// Next implements llm.Source.
func (s *Source) Next() (llm.Event, bool) {
	var ev llm.Event
	for {
		switch s.state {
		case stateDone:
			return llm.Event{}, false
		case stateNew:
			s.answer.Message.Timestamp = s.host.Now().UnixMilli()
			if err := s.open(); err != nil {
				s.err = err
				return s.terminal(), true
			}
			s.state = stateStart
		case stateStart:
			if s.ctx.Err() != nil {
				s.end(ErrAborted)
				continue
			}
			s.state = stateBody
			if s.call.OwnStart {
				continue
			}
			return llm.Event{Type: llm.EventStart, Partial: s.answer.Message}, true
		case stateBody:
			if s.answer.next(&ev) {
				return ev, true
			}
			s.read()
		case stateEnding:
			if s.answer.next(&ev) {
				return ev, true
			}
			return s.terminal(), true
		}
	}
}

// open sends the request, as often as the format wants it.
func (s *Source) open() error {
	for {
		if s.ctx.Err() != nil {
			return ErrAborted
		}
		call, err := s.ex.Request()
		if err != nil {
			return err
		}
		s.call = call
		resp, err := s.host.Send(s.ctx, call, s.model, s.opts)
		if err == nil {
			s.resp = resp
			if s.frames = call.Frames; s.frames == nil {
				s.frames = &s.sse
			}
			s.frames.Reset(s.source())
			s.sse.arrives = resp.Progress
			return nil
		}
		var status *StatusError
		if !errors.As(err, &status) || !s.ex.Rejected(status) {
			return err
		}
	}
}

// Frames cuts the body of a response into events. SSE is one; a format with
// another framing brings its own.
type Frames interface {
	// MediaType is the type that a response in this framing is announced as.
	MediaType() string
	// Reset starts reading src.
	Reset(src io.Reader)
	// Next returns the next event, with slices that are valid until the next
	// call. At the end of the stream err is io.EOF; bytes that are no event are
	// a *FrameError.
	Next() (name, data []byte, err error)
}

// FrameError says that a response does not have the framing of its format.
type FrameError struct{ Problem string }

func (e *FrameError) Error() string { return "the event stream is damaged: " + e.Problem }

// source is the body of the response. The start of one that is not announced as
// a stream of events is kept.
func (s *Source) source() io.Reader {
	body := untilDone{s.ctx, s.resp}
	if t, _, _ := mime.ParseMediaType(s.resp.Header.Get("Content-Type")); t == s.frames.MediaType() {
		return body
	}
	return io.TeeReader(body, (*opening)(&s.other))
}

// untilDone reads r while ctx lasts.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, ErrAborted
	}
	return u.r.Read(p)
}

// opening keeps the start of what is written.
type opening bytes.Buffer

func (o *opening) Write(p []byte) (int, error) {
	b := (*bytes.Buffer)(o)
	b.Write(p[:min(len(p), max(maxErrorBody-b.Len(), 0))])
	return len(p), nil
}

// notEvents is the error of a response that says 200 and holds an error, or a
// page, in place of events; nil when it is not that.
func (s *Source) notEvents() error {
	text := bytes.TrimSpace(s.other.Bytes())
	if s.events || len(text) == 0 || text[0] != '{' && text[0] != '<' {
		return nil
	}
	return s.call.statusError(s.resp.Response, text, s.opts)
}

// read takes one event of the response to the format. Of an aborted request it is
// one that has been received: neither its text nor what a service says behind it,
// such as the tokens that it counted, is lost.
func (s *Source) read() {
	aborted := s.ctx.Err() != nil
	name, data, err := s.frames.Next()
	switch {
	case err == nil:
		s.events = true
		s.answer.keepAlive = false
		err = s.ex.Event(&s.answer, name, data)
		if !s.answer.keepAlive {
			s.resp.Progress()
		}
		if err == nil {
			return
		}
		switch {
		case aborted:
		case err == ErrFinished:
			s.resp.body.drain(drainTime)
			err = nil
		case s.sse.cut && !jsontext.Value(data).IsValid():
			err = nil // half an event: the stream ended before its answer did
		}
	case aborted:
	case errors.Is(err, io.EOF):
		err = s.notEvents()
	default:
		var frame *FrameError
		if errors.As(err, &frame) && s.other.Len() > 0 {
			s.resp.body.drainTo((*opening)(&s.other), drainTime)
			if other := s.notEvents(); other != nil {
				err = other
			}
		}
	}
	if aborted {
		err = ErrAborted // even where all of the answer was received
	}
	s.end(err)
}

func (s *Source) end(cause error) {
	s.state = stateEnding
	s.err = s.ex.End(&s.answer, cause)
}

// terminal makes the last event.
func (s *Source) terminal() llm.Event {
	s.state = stateDone
	s.release()
	s.answer.seal(s.err == nil)
	m := s.answer.Message
	if s.err == nil {
		return llm.Event{Type: llm.EventDone, Message: m}
	}
	m.StopReason, m.ErrorMessage = llm.StopError, Redact(s.err.Error(), s.secrets())
	if errors.Is(s.err, ErrAborted) {
		m.StopReason = llm.StopAborted
	}
	return llm.Event{Type: llm.EventError, Message: m}
}

// secrets are the values that the error may not repeat. A request that could not
// be built was to have at least the key and what is configured for its header.
func (s *Source) secrets() []string {
	if s.call != nil {
		return s.call.secrets(s.opts)
	}
	header := http.Header{}
	Override(header, s.model, s.opts)
	return Secrets(header, s.opts)
}

// Close implements llm.Source.
func (s *Source) Close() {
	s.state = stateDone
	s.release()
}

func (s *Source) release() {
	if s.resp != nil {
		s.resp.Close()
	}
}

// Payload applies Options.OnPayload to a request body and reports whether it
// was replaced.
func Payload(body []byte, m *llm.Model, o *llm.Options) (sent []byte, replaced bool, err error) {
	if o.OnPayload == nil {
		return body, false, nil
	}
	other, err := o.OnPayload(jsontext.Value(body), m)
	if err != nil {
		return nil, false, err
	}
	if other == nil {
		return body, false, nil
	}
	return other, true, nil
}

// ProviderEvent applies Options.OnProviderEvent.
func ProviderEvent(event []byte, m *llm.Model, o *llm.Options) error {
	if o.OnProviderEvent == nil {
		return nil
	}
	return o.OnProviderEvent(jsontext.Value(event), m)
}
