package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// The bounds of what is kept, in bytes: of one answer, and of a recording, which
// is no longer than one that can be read.
const (
	maxAnswer    = 16 << 20
	maxRecording = 64 << 20
)

// Options are those of a Recorder. The zero value works.
type Options struct {
	Program string // name and version of the program, for whoever reads the file
	// Secrets are further values that must not be stored, such as those of
	// environment variables. It is asked at each request.
	Secrets func() []string
	Client  *http.Client     // for requests that bring none; nil for one that follows the environment's proxy
	Now     func() time.Time // nil for time.Now
}

// Recorder stores the traffic of the wire formats that it wraps. It is safe for
// concurrent use.
type Recorder struct {
	o    Options
	mu   sync.Mutex
	file *os.File
	size int
	err  error // of the first write that failed
}

// Create starts a recording in a new file that only its owner can read.
func Create(path string, o Options) (*Recorder, error) {
	if o.Client == nil {
		o.Client = wire.NewClient(http.ProxyFromEnvironment)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the recording %s exists: choose another name or remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the recording cannot be made: %w", err)
	}
	r := &Recorder{o: o, file: f}
	r.write(head{Type: "recording", Version: version, Program: o.Program, Created: o.Now().UTC().Format(time.RFC3339)})
	if r.err != nil {
		err := r.Close()
		os.Remove(path)
		return nil, err
	}
	return r, nil
}

// Close ends the recording. Its error is the first one of writing: what came
// before it is in the file.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		if err := r.file.Close(); r.err == nil {
			r.err = err
		}
		r.file = nil
	}
	if r.err != nil {
		return fmt.Errorf("the recording is not complete: %w", r.err)
	}
	return nil
}

// write adds a line. A failure must not end the run that is recorded: it is
// kept for Close.
func (r *Recorder) write(v any) {
	b, err := line(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && r.file != nil {
		switch {
		case err != nil:
		case r.size+len(b) > maxRecording:
			err = fmt.Errorf("it would be longer than %d MiB", maxRecording>>20)
		default:
			_, err = r.file.Write(b)
			r.size += len(b)
		}
		r.err = err
	}
}

// Wrap is api with its requests recorded.
func (r *Recorder) Wrap(api llm.API) llm.API { return recorded{api, r} }

type recorded struct {
	llm.API
	r *Recorder
}

// Stream implements llm.API.
func (a recorded) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	mine := *req
	client := a.r.o.Client
	if req.Client != nil {
		client = req.Client
	}
	t := &recordingTransport{r: a.r, base: client.Transport, model: m, options: &mine.Options}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	// The payload as it is before a wire format compresses it.
	mine.OnPayload = func(payload jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		t.payload = payload
		if req.OnPayload == nil {
			return nil, nil
		}
		other, err := req.OnPayload(payload, m)
		if other != nil {
			t.payload = other
		}
		return other, err
	}
	c := *client
	c.Transport = t
	mine.Client = &c
	return a.API.Stream(ctx, m, &mine)
}

// recordingTransport stores the attempts of one stream.
type recordingTransport struct {
	r       *Recorder
	base    http.RoundTripper
	model   *llm.Model
	options *llm.Options
	payload jsontext.Value
}

// RoundTrip implements http.RoundTripper.
func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	call := wire.CallOf(req.Context())
	if call == nil { // a request for a token, or the like
		return t.base.RoundTrip(req)
	}
	more := slices.Concat(call.Secrets, wire.AddressSecrets(req.URL))
	if t.r.o.Secrets != nil {
		more = slices.Concat(more, t.r.o.Secrets())
	}
	secrets := wire.Secrets(req.Header, t.options, more...)
	e := &exchange{
		Type: "exchange", Model: publicModel(t.model, secrets), Key: kindOf(t.options.APIKey),
		Request: request{
			Method: req.Method, URL: wire.Redact(wire.PublicAddress(req.URL), secrets), Header: fields(req.Header, requestFields, secrets, true),
		},
	}
	if t.model.BaseURL == "" { // the wire format has its own rule for it
		e.Model.BaseURL = req.URL.Scheme + "://" + req.URL.Host
	}
	body := call.Body
	if t.payload != nil {
		body = t.payload
	}
	e.Request.setBody(body, secrets)
	start := t.r.o.Now()
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		e.Error, e.Cut = wire.Redact(err.Error(), secrets), req.Context().Err() != nil
		t.r.write(e)
		return nil, err
	}
	e.Response = &response{Status: resp.StatusCode, Header: fields(resp.Header, responseFields, secrets, false)}
	resp.Body = &recordingBody{ReadCloser: resp.Body, ctx: req.Context(), t: t, e: e, start: start, secrets: secrets}
	return resp, nil
}

// recordingBody keeps what is read of an answer, and writes the exchange when
// it is over.
type recordingBody struct {
	io.ReadCloser
	ctx     context.Context // of the request
	t       *recordingTransport
	e       *exchange
	start   time.Time
	secrets []string
	body    bytes.Buffer
	sizes   []int
	long    bool // more came than is kept
	once    sync.Once
}

func (b *recordingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.body.Len()+n > maxAnswer {
		b.long = true
	}
	if n > 0 && !b.long {
		b.body.Write(p[:n])
		b.sizes = append(b.sizes, n)
		b.e.Response.Times = append(b.e.Response.Times, b.t.r.o.Now().Sub(b.start).Milliseconds())
	}
	if err != nil {
		b.done(b.broken(err))
	}
	return n, err
}

// broken notes why an answer ended early and reports whether the program wanted
// that.
func (b *recordingBody) broken(err error) (cut bool) {
	var silent *wire.TimeoutError
	switch {
	case errors.Is(err, io.EOF):
		return false
	case errors.As(context.Cause(b.ctx), &silent):
		err = silent
	case b.ctx.Err() != nil:
		return true
	}
	b.e.Error = wire.Redact(err.Error(), b.secrets)
	return false
}

func (b *recordingBody) Close() error {
	b.done(true)
	return b.ReadCloser.Close()
}

func (b *recordingBody) done(cut bool) {
	b.once.Do(func() {
		b.e.Cut = cut
		if b.long {
			b.e.Cut, b.e.Error = false, fmt.Sprintf("the recording keeps %d MiB of an answer, and this one was longer", maxAnswer>>20)
		}
		b.e.Response.setBody(b.body.Bytes(), b.sizes, b.secrets)
		b.t.r.write(b.e)
	})
}
