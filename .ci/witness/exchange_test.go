package witness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is what a vector says of one request and its answer.
type exchange struct {
	Entry   string // stream for the entry with the format's own options
	Model   json.RawMessage
	Context struct {
		SystemPrompt json.RawMessage
		Tools        []json.RawMessage
		Messages     []json.RawMessage
	}
	Options json.RawMessage
	Script  []response `json:"responseScript"`
	Throw   string     `json:"expectThrow"`
}

// response is one scripted HTTP response.
type response struct {
	Status       int
	Headers      map[string]string
	Chunks       []string
	ChunksBase64 [][]byte
}

func (r *response) body() []byte {
	b := []byte(strings.Join(r.Chunks, ""))
	return append(b, bytes.Join(r.ChunksBase64, nil)...)
}

// ownVectors is the folder of the recorded cases that tests name.
const ownVectors = "../../internal/conformance/testdata"

// vectors is the folder of the recorded cases.
func vectors() string { return cmp.Or(os.Getenv("PINCH_VECTORS"), ownVectors) }

// cases lists the exchanges of each vector of a format, by the vector's name.
func cases(t *testing.T, folder, api, baseURL string) (names []string, steps map[string][]exchange) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "ai", api, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors for %s: %v", api, err)
	}
	steps = map[string][]exchange{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("{{BASE_URL}}"), []byte(baseURL))
		text = bytes.ReplaceAll(text, []byte("{{BASE_HOST}}"), []byte(strings.TrimPrefix(baseURL, "http://")))
		var vector struct {
			exchange
			Steps []exchange
		}
		if err := json.Unmarshal(text, &vector); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		names = append(names, name)
		if steps[name] = vector.Steps; vector.Steps == nil {
			steps[name] = []exchange{vector.exchange}
		}
	}
	return names, steps
}

// question is an exchange of a format without anything special.
func question(t *testing.T, api, baseURL string) *exchange {
	t.Helper()
	_, steps := cases(t, ownVectors, api, baseURL)
	return &steps["text-a"][0]
}

// ask lets pinch send the exchange and returns its final message, nil when
// there was nothing to send. Aborts of the vector are left out: the request is
// what counts.
func (x *exchange) ask(t *testing.T, f *format, api llm.API, memo *llm.Memo) *llm.Assistant {
	t.Helper()
	m := &llm.Model{}
	if err := json.Unmarshal(x.Model, m); err != nil {
		t.Fatal(err)
	}
	prompt, _ := jsonwire.StringValue(x.Context.SystemPrompt)
	var tools []llm.Tool
	for _, raw := range x.Context.Tools {
		var r jsonwire.Reader
		r.Reset(raw)
		tools = append(tools, llm.ReadTool(&r))
	}
	var messages []llm.Message
	for _, raw := range x.Context.Messages {
		msg, err := llm.ParseMessage(raw)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, msg)
	}
	req := &llm.Request{Messages: llm.Fold(prompt, tools, messages)}
	// The members of the vectors are named like the fields. A tool choice that
	// is an object only fits the options of a format.
	var wrongKind *json.UnmarshalTypeError
	if err := json.Unmarshal(x.Options, &req.Options); err != nil && !(errors.As(err, &wrongKind) && wrongKind.Field == "ToolChoice") {
		t.Fatal(err)
	}
	// Waits of a retry are short in the vectors; longer ones are refused.
	req.MaxRetryDelay = time.Second
	req.Memo = memo
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var stream *llm.Stream
	var err error
	if x.Entry == "stream" {
		stream, err = f.stream(ctx, api, m, req, x.Options)
	} else {
		stream, err = api.Stream(ctx, m, req)
	}
	if err != nil {
		if x.Throw == "" {
			t.Fatal(err)
		}
		return nil
	}
	return stream.Result()
}

// server answers requests by a script and keeps what was sent. It never keeps a
// connection open: what an abort would end, ends by itself.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	script []response
	sent   []request
}

type request struct {
	path string // with the query
	body []byte
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) load(script ...response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.sent = script, nil
}

func (s *server) taken() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "zstd" {
		body, err = unpack(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n := len(s.sent)
	s.sent = append(s.sent, request{path: r.URL.RequestURI(), body: body})
	var resp response
	if n < len(s.script) {
		resp = s.script[n]
	} else {
		resp = response{Status: http.StatusTeapot}
	}
	s.mu.Unlock()
	w.Header()["Content-Type"] = nil
	for name, v := range resp.Headers {
		w.Header().Set(name, v)
	}
	w.WriteHeader(resp.Status)
	w.Write(resp.body())
}

func unpack(body []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(body, nil)
}
