package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and a Host whose waits are recorded instead of waited.
func serve(t *testing.T, handler http.HandlerFunc) (url string, h *Host, waits *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(handler)
	client := NewClient(http.ProxyFromEnvironment)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
	})
	waits = new([]time.Duration)
	h = Host{
		Client: client,
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Random: func() float64 { return 0 },
		Wait: func(ctx context.Context, d time.Duration) error {
			*waits = append(*waits, d)
			return ctx.Err()
		},
	}.Default()
	return server.URL, h, waits
}

func TestSendRetries(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		header   map[string]string
		options  llm.Options
		attempts int
		waits    []time.Duration
		err      string
	}{
		{"success", []int{200}, nil, llm.Options{MaxRetries: 2}, 1, nil, ""},
		{"none allowed", []int{500}, nil, llm.Options{}, 1, nil, "500 oops"},
		{"backoff", []int{500, 503, 200}, nil, llm.Options{MaxRetries: 2}, 3, []time.Duration{500 * time.Millisecond, time.Second}, ""},
		{"backoff is capped", []int{500, 500, 500, 500, 500, 500, 200}, nil, llm.Options{MaxRetries: 6}, 7,
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second}, ""},
		{"exhausted", []int{429, 529}, nil, llm.Options{MaxRetries: 1}, 2, []time.Duration{500 * time.Millisecond}, "529 oops"},
		{"client errors", []int{400}, nil, llm.Options{MaxRetries: 2}, 1, nil, "400 oops"},
		{"conflict", []int{409, 408, 200}, nil, llm.Options{MaxRetries: 2}, 3, []time.Duration{500 * time.Millisecond, time.Second}, ""},
		{"server forbids", []int{500}, map[string]string{"x-should-retry": "false"}, llm.Options{MaxRetries: 2}, 1, nil, "500 oops"},
		{"server asks", []int{400, 200}, map[string]string{"x-should-retry": "true"}, llm.Options{MaxRetries: 2}, 2, []time.Duration{500 * time.Millisecond}, ""},
		{"milliseconds win", []int{500, 200}, map[string]string{"retry-after-ms": "7", "retry-after": "9"}, llm.Options{MaxRetries: 1}, 2,
			[]time.Duration{7 * time.Millisecond}, ""},
		{"number with a unit", []int{500, 200}, map[string]string{"retry-after-ms": "7ms"}, llm.Options{MaxRetries: 1}, 2,
			[]time.Duration{7 * time.Millisecond}, ""},
		{"no number", []int{500, 200}, map[string]string{"retry-after-ms": "Infinity", "retry-after": "2 seconds"}, llm.Options{MaxRetries: 1}, 2,
			[]time.Duration{2 * time.Second}, ""},
		{"seconds", []int{500, 200}, map[string]string{"retry-after": "1.5"}, llm.Options{MaxRetries: 1}, 2, []time.Duration{1500 * time.Millisecond}, ""},
		{"date", []int{500, 200}, map[string]string{"retry-after": "Fri, 02 Jan 2026 03:04:15 GMT"}, llm.Options{MaxRetries: 1}, 2,
			[]time.Duration{10 * time.Second}, ""},
		{"too long", []int{429}, map[string]string{"retry-after": "61"}, llm.Options{MaxRetries: 1}, 1, nil,
			"Server requested 61s retry delay (max: 60s). 429 oops"},
		{"too long, rounded up", []int{429}, map[string]string{"retry-after-ms": "1600"}, llm.Options{MaxRetries: 1, MaxRetryDelay: 1500 * time.Millisecond}, 1, nil,
			"Server requested 2s retry delay (max: 2s). 429 oops"},
		{"no bound", []int{429, 200}, map[string]string{"retry-after": "6000"}, llm.Options{MaxRetries: 1, MaxRetryDelay: -1}, 2,
			[]time.Duration{6000 * time.Second}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var bodies []string
			url, h, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(b))
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.statuses[len(bodies)-1])
				io.WriteString(w, "oops")
			})
			resp, err := h.Send(t.Context(), &Call{URL: url, Body: []byte("question")}, &llm.Model{}, &c.options)
			if err == nil {
				io.Copy(io.Discard, resp)
				resp.Close()
			}
			if got := text(err); got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
			if len(bodies) != c.attempts || slices.ContainsFunc(bodies, func(b string) bool { return b != "question" }) {
				t.Errorf("bodies %q, want %d", bodies, c.attempts)
			}
			if !slices.Equal(*waits, c.waits) {
				t.Errorf("waits %v, want %v", *waits, c.waits)
			}
		})
	}
}

// A call with a rule of its own is repeated by it, within what the options allow.
func TestSendRetriesByRule(t *testing.T) {
	const far = time.Hour
	for _, c := range []struct {
		name     string
		asked    bool
		retries  int
		attempts int
		waits    []time.Duration
		err      string
	}{
		{"while the rule says so", false, 9, 3, []time.Duration{0, far}, "404 oops"},
		{"while the options allow", false, 1, 2, []time.Duration{0}, "404 oops"},
		{"no longer than the options allow", true, 9, 2, []time.Duration{0}, "Server requested 3600s retry delay (max: 60s). 404 oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			attempts := 0
			url, h, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
				attempts++
				w.WriteHeader(404)
				io.WriteString(w, "oops")
			})
			call := &Call{URL: url, Retry: func(err error, attempt int) (time.Duration, bool, bool) {
				return time.Duration(attempt) * far, c.asked, attempt < 2 && text(err) == "404 oops"
			}}
			_, err := h.Send(t.Context(), call, &llm.Model{}, &llm.Options{MaxRetries: c.retries})
			if text(err) != c.err || attempts != c.attempts || !slices.Equal(*waits, c.waits) {
				t.Errorf("%d attempts, waits %v, error %q", attempts, *waits, text(err))
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Words that callers take for passing trouble (retry classes of the agent).
var transient = regexp.MustCompile(`(?i)connection.?(error|refused|lost|closed)|ECONNRE|timed? out|timeout`)

func TestSendConnectionErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, h, waits := serve(t, nil)
	_, err = h.Send(t.Context(), &Call{URL: "http://" + address + "/?key=secret"}, &llm.Model{}, &llm.Options{MaxRetries: 2})
	var conn *ConnectionError
	if !errors.As(err, &conn) || !transient.MatchString(err.Error()) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if len(*waits) != 2 {
		t.Errorf("%d retries, want 2", len(*waits))
	}
}

func TestSendTimeout(t *testing.T) {
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	_, err := h.Send(t.Context(), &Call{URL: url}, &llm.Model{}, &llm.Options{Timeout: 30 * time.Millisecond})
	var timeout *TimeoutError
	if !errors.As(err, &timeout) || !transient.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestIdleTimeout(t *testing.T) {
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w).Flush
		io.WriteString(w, "data: 1\n\n")
		flush()
		for r.Context().Err() == nil { // signs of life without data
			io.WriteString(w, ": keep-alive\n\n")
			flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	resp, err := h.Send(t.Context(), &Call{URL: url}, &llm.Model{}, &llm.Options{IdleTimeout: 60 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	var s SSE
	s.Reset(resp)
	if _, data, err := s.Next(); err != nil || string(data) != "1" {
		t.Fatalf("got %q, %v", data, err)
	}
	resp.Progress()
	time.Sleep(100 * time.Millisecond) // a slow consumer is no silent server
	_, _, err = s.Next()
	var timeout *TimeoutError
	if !errors.As(err, &timeout) || !transient.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

// endless has always something to read that says nothing.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, ": keep-alive\n\n"), nil }
func (endless) Close() error               { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestIdleTimeoutUnderAFlood checks that the deadline does not hang on a timer
// that has no time to run.
func TestIdleTimeoutUnderAFlood(t *testing.T) {
	h := (&Host{Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}, Request: r}, nil
	})}}).Default()
	resp, err := h.Send(t.Context(), &Call{URL: "http://127.0.0.1:1"}, &llm.Model{}, &llm.Options{IdleTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	var s SSE
	s.Reset(resp)
	_, _, err = s.Next()
	var timeout *TimeoutError
	if !errors.As(err, &timeout) {
		t.Errorf("got %v", err)
	}
}

func TestSendAborted(t *testing.T) {
	var requests atomic.Int32
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithCancel(t.Context())
	h.Wait = func(ctx context.Context, d time.Duration) error {
		cancel()
		return wait(ctx, d)
	}
	_, err := h.Send(ctx, &Call{URL: url}, &llm.Model{}, &llm.Options{MaxRetries: 3})
	if !errors.Is(err, ErrAborted) || requests.Load() != 1 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
	if _, err := h.Send(ctx, &Call{URL: url}, &llm.Model{}, &llm.Options{}); !errors.Is(err, ErrAborted) || requests.Load() != 1 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
}

func TestSendBodyCutOff(t *testing.T) {
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "data")
	})
	resp, err := h.Send(t.Context(), &Call{URL: url}, &llm.Model{}, &llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if _, err := io.ReadAll(resp); err == nil || !transient.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

// Keys travel in header fields of their own, which must not follow a redirect
// to another host.
func TestRedirects(t *testing.T) {
	var leaked atomic.Bool
	other, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { leaked.Store(true) })
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			b, _ := io.ReadAll(r.Body)
			io.WriteString(w, string(b)+r.Header.Get("X-Api-Key"))
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, other+"/away", http.StatusTemporaryRedirect)
		}
	})
	header := http.Header{"X-Api-Key": {"k"}}
	resp, err := h.Send(t.Context(), &Call{URL: url + "/moved", Header: header, Body: []byte("b")}, &llm.Model{}, &llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp); string(b) != "bk" {
		t.Errorf("got %q", b)
	}
	resp.Close()
	var status *StatusError
	if _, err := h.Send(t.Context(), &Call{URL: url, Header: header}, &llm.Model{}, &llm.Options{}); !errors.As(err, &status) || status.Status != 307 {
		t.Errorf("got %v", err)
	}
	if leaked.Load() {
		t.Error("the key went to another host")
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct{ body, plain, structured, prefixed string }{
		{"", "403 status code (no body)", "403 status code (no body)", "P (403): 403 status code (no body)"},
		{"<h1>busy</h1>", "403 <h1>busy</h1>", "403 <h1>busy</h1>", "P (403): 403 <h1>busy</h1>"},
		{`{"error": {"message": "m", "code": 1.0}}`, `403 {"error":{"message":"m","code":1}}`, `403: {"message":"m","code":1}`, `P (403): {"message":"m","code":1}`},
		{`{"error":"no model"}`, `403 {"error":"no model"}`, `403 "no model"`, `P (403): 403 "no model"`},
		{`{"detail":"x"}`, `403 {"detail":"x"}`, `403 {"detail":"x"}`, `P (403): 403 {"detail":"x"}`},
		{`{"message":"top","code":5}`, `403 top`, `403: {"message":"top","code":5}`, `P (403): {"message":"top","code":5}`},
		{`{"error":{"message":{"a": 1}}}`, `403 {"error":{"message":{"a":1}}}`, `403: {"message":{"a":1}}`, `P (403): {"message":{"a":1}}`},
		{`{"error":{"message":"","code":5}}`, `403 {"error":{"message":"","code":5}}`, `403 {"message":"","code":5}`, `P (403): 403 {"message":"","code":5}`},
		{`{"error":["a"]}`, `403 {"error":["a"]}`, `403 ["a"]`, `P (403): 403 ["a"]`},
		{`{"error":null}`, `403 {"error":null}`, `403 {"error":null}`, `P (403): 403 {"error":null}`},
		{`{"error":{"message":"cut`, `403 {"error":{"message":"cut`, `403 {"error":{"message":"cut`, `P (403): 403 {"error":{"message":"cut`},
		{"bad \xFF bytes", "403 bad \uFFFD bytes", "403 bad \uFFFD bytes", "P (403): 403 bad \uFFFD bytes"},
	} {
		e := &StatusError{Status: 403, Body: []byte(c.body)}
		if got := PlainError(e); got != c.plain {
			t.Errorf("plain %q, want %q", got, c.plain)
		}
		if got := StructuredError("")(e); got != c.structured {
			t.Errorf("structured %q, want %q", got, c.structured)
		}
		if got := StructuredError("P")(e); got != c.prefixed {
			t.Errorf("prefixed %q, want %q", got, c.prefixed)
		}
	}
	long := &StatusError{Status: 500, Body: []byte(strings.Repeat("🙈", 2001))}
	if got, want := PlainError(long), "500 "+strings.Repeat("🙈", 2000)+"... [truncated 2 chars]"; got != want {
		t.Errorf("got %.40q…%q", got, got[len(got)-30:])
	}
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe... [truncated 1 chars]"},
		{"a🙈b", 3, "a🙈... [truncated 1 chars]"},
		{"a🙈b", 2, "a... [truncated 3 chars]"},
		{strings.Repeat("\xf6", 6), 4, strings.Repeat("\uFFFD", 4) + "... [truncated 2 chars]"},
		{"x\xf6\xf6y", 3, "x\uFFFD\uFFFD... [truncated 1 chars]"},
	} {
		if got := Truncate(c.text, c.limit); got != c.want {
			t.Errorf("%q at %d: got %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
