package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/llm"
)

// Provider is the provider of the models that a recording stands in for, and ID
// the name of its wire format.
const (
	Provider = "replay"
	ID       = "replay"
)

// Recording is a recording that is played back: each HTTP request gets the next
// answer, whatever it asks. It is safe for concurrent use.
type Recording struct {
	path string
	all  []exchange

	mu   sync.Mutex
	next int
}

// Open reads a recording.
func Open(path string) (*Recording, error) {
	data, err := regular.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the recording cannot be read: %w", err)
	}
	_, all, err := readAll(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no recording that can be played: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the recording %s holds no request", path)
	}
	return &Recording{path: path, all: all}, nil
}

// Models are the models that were recorded, in the order of their first request.
func (r *Recording) Models() []*llm.Model {
	var out []*llm.Model
	seen := map[string]bool{}
	for i := range r.all {
		m := &r.all[i].Model
		if ref := m.API + " " + m.Ref(); !seen[ref] {
			seen[ref] = true
			out = append(out, m)
		}
	}
	return out
}

// Model is the model to ask for the recorded answers: it has the given id, and
// the facts of the first model that was recorded.
func (r *Recording) Model(id string) *llm.Model {
	m := r.all[0].Model
	m.Name = "Recording of " + m.Ref() + " (" + filepath.Base(r.path) + ")"
	m.ID, m.Provider, m.API = id, Provider, ID
	return &m
}

// Left is how many recorded requests have not been played.
func (r *Recording) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) - r.next
}

// API is the recording as a wire format. stream reaches the wire formats of the
// recorded models, such as the Stream of the registry that the result is
// registered in.
func (r *Recording) API(stream func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error)) llm.API {
	return player{r, stream}
}

type player struct {
	r      *Recording
	stream func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error)
}

// ID implements llm.API.
func (player) ID() string { return ID }

// Stream implements llm.API.
func (p player) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	e, err := p.r.take(0)
	if err != nil {
		return llm.Failed(m, err, time.Now().UnixMilli()), nil
	}
	physical := e.Model
	if strings.ContainsAny(physical.BaseURL, "{}") {
		physical.BaseURL = strings.NewReplacer("{", "", "}", "").Replace(physical.BaseURL)
	}
	mine := *req
	mine.APIKey = e.Key.stand()
	mine.Headers = nil
	mine.Client = &http.Client{Transport: p.r}
	return p.stream(ctx, &physical, &mine)
}

// take is the next exchange; n is 1 to go on behind it, 0 to look.
func (r *Recording) take(n int) (*exchange, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next >= len(r.all) {
		return nil, &EndError{Path: r.path, Requests: len(r.all)}
	}
	e := &r.all[r.next]
	r.next += n
	return e, nil
}

// EndError says that more was asked than was recorded.
type EndError struct {
	Path     string
	Requests int
}

func (e *EndError) Error() string {
	return fmt.Sprintf("the recording %s is over: it holds %d requests", e.Path, e.Requests)
}

// RoundTrip implements http.RoundTripper with the next recorded answer.
func (r *Recording) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	e, err := r.take(1)
	if err != nil {
		return nil, err
	}
	if e.Response == nil {
		return nil, errors.New(e.Error)
	}
	header := http.Header{}
	for name, value := range e.Response.Header {
		header.Set(name, value)
	}
	chunks, err := e.Response.chunks()
	if err != nil {
		return nil, err
	}
	body := &playedBody{ctx: req.Context(), chunks: chunks, end: io.EOF}
	switch {
	case e.Error != "":
		body.end = errors.New(e.Error)
	case e.Cut:
		body.end = errors.New("the recorded program stopped reading here")
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", e.Response.Status, http.StatusText(e.Response.Status)), StatusCode: e.Response.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: body, ContentLength: -1, Request: req,
	}, nil
}

// playedBody gives the pieces of an answer as they came, without waiting.
type playedBody struct {
	ctx    context.Context
	chunks [][]byte
	reader bytes.Reader
	end    error
}

func (b *playedBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	for b.reader.Len() == 0 {
		if len(b.chunks) == 0 {
			return 0, b.end
		}
		b.reader.Reset(b.chunks[0])
		b.chunks = b.chunks[1:]
	}
	return b.reader.Read(p)
}

func (b *playedBody) Close() error { return nil }
