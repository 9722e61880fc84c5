package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/llm"
)

// letters is a framing of its own: each byte is an event, ! is no event.
type letters struct{ src io.Reader }

func (l *letters) MediaType() string   { return "application/x-letters" }
func (l *letters) Reset(src io.Reader) { l.src = src }

func (l *letters) Next() (name, data []byte, err error) {
	var b [1]byte
	if _, err := io.ReadFull(l.src, b[:]); err != nil {
		return nil, nil, err
	}
	if b[0] == '!' || b[0] == '{' {
		return nil, nil, &FrameError{Problem: "no letter"}
	}
	return []byte("letter"), bytes.Clone(b[:]), nil
}

// framed is a wire format in that framing. Its event ^ starts the answer.
type framed struct {
	call *Call
	text *Block
}

func (f *framed) Request() (*Call, error)    { return f.call, nil }
func (f *framed) Rejected(*StatusError) bool { return false }

func (f *framed) Event(a *Answer, _, data []byte) error {
	if string(data) == "^" {
		a.Start()
		return nil
	}
	if f.text == nil {
		f.text = a.Text(nil)
	}
	f.text.Append(data)
	return nil
}

func (f *framed) End(a *Answer, cause error) error {
	a.Message.StopReason = llm.StopStop
	return cause
}

// body answers every request with a text.
type body200 struct{ media, text string }

func (b body200) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {b.media}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader(b.text)), Request: r}, nil
}

func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name, media, text string
		own               bool
		want              string
	}{
		{"own framing", "application/x-letters", "ab", false, "start text_start text_delta:a text_delta:b done"},
		{"own start", "application/x-letters", "^a^b", true, "start text_start text_delta:a text_delta:b done"},
		{"start that never comes", "application/x-letters", "!", true, "error:the event stream is damaged: no letter"},
		{"damaged", "application/x-letters", "a!b", false, "start text_start text_delta:a error:the event stream is damaged: no letter"},
		{"an error in place of events", "application/json", `{"message":"no"}`, true, `error:200 no`},
		{"an error in the guise of events", "application/x-letters", `{"message":"no"}`, true, "error:the event stream is damaged: no letter"},
		{"events that are not announced", "", "ab", false, "start text_start text_delta:a text_delta:b done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &framed{call: &Call{URL: "http://host.test", Frames: &letters{}, OwnStart: c.own}}
			opts := &llm.Options{Client: &http.Client{Transport: body200{c.media, c.text}}}
			s := llm.NewStream(NewSource(t.Context(), Host{}.Default(), "letters", &llm.Model{}, opts, f))
			var got []string
			for ev := range s.Events() {
				word := ev.Type.String()
				if ev.Delta != "" {
					word += ":" + ev.Delta
				}
				if ev.Type == llm.EventError {
					word += ":" + ev.Message.ErrorMessage
				}
				got = append(got, word)
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("got  %s\nwant %s", g, c.want)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	var tokens []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("X-Stamp"))
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "not with "+r.Header.Get("X-Stamp")+" and short")
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	h := Host{Client: client, Wait: func(context.Context, time.Duration) error { return nil }}.Default()
	c := &Call{URL: server.URL, Header: http.Header{"X-Given": {"g"}}}
	n := 0
	c.Prepare = func(r *http.Request) error {
		if r.Header.Get("X-Given") != "g" || r.Header.Get("X-Stamp") != "" || CallOf(r.Context()) != c {
			t.Errorf("prepared twice: %v", r.Header)
		}
		n++
		r.Header.Set("X-Stamp", "long-secret-"+string(rune('0'+n)))
		c.Secrets = []string{r.Header.Get("X-Stamp"), "short"}
		return nil
	}
	_, err := h.Send(t.Context(), c, &llm.Model{}, &llm.Options{MaxRetries: 2})
	if got := strings.Join(tokens, " "); got != "long-secret-1 long-secret-2 long-secret-3" {
		t.Errorf("sent %s", got)
	}
	if err == nil || err.Error() != "503 not with "+Redacted+" and short" {
		t.Errorf("got %v", err)
	}
	if c.Header.Get("X-Stamp") != "" {
		t.Error("the header of the call has changed")
	}

	own := errors.New("no key")
	tokens = nil
	c.Prepare = func(*http.Request) error { return own }
	if _, err := h.Send(t.Context(), c, &llm.Model{}, &llm.Options{MaxRetries: 2}); err != own || tokens != nil {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.Prepare = func(*http.Request) error { cancel(); return own }
	if _, err := h.Send(ctx, c, &llm.Model{}, &llm.Options{}); err != ErrAborted {
		t.Errorf("got %v", err)
	}
	c.Prepare = func(r *http.Request) error { r.Header.Set("X-Stamp", "a\nb"); return nil }
	if _, err := h.Send(t.Context(), c, &llm.Model{}, &llm.Options{}); err == nil || !strings.Contains(err.Error(), "X-Stamp") || tokens != nil {
		t.Errorf("a field that cannot be sent gives %v", err)
	}
}

func TestHTTP1(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	used := NewClient(nil)
	used.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	get := func(c *http.Client) string {
		defer c.CloseIdleConnections()
		resp, err := c.Get(server.URL)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	if got := get(used); got != "HTTP/2.0" {
		t.Errorf("got %s", got)
	}
	if got := get(HTTP1(used)); got != "HTTP/1.1" {
		t.Errorf("got %s", got)
	}
	if got := get(used); got != "HTTP/2.0" {
		t.Errorf("the client itself has changed: %s", got)
	}
	other := &http.Client{Transport: body200{}}
	if HTTP1(other) != other {
		t.Error("a transport of another kind is replaced")
	}
}
