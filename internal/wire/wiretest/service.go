// Package wiretest is what the tests of the wire formats share: a service
// without a network, streams read as lines, and the words that messages of
// tests are made of. Tests alone import it.
package wiretest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// NoEnv is an environment in which nothing is set.
func NoEnv(string) string { return "" }

// RoundTrip is a transport that is a function.
type RoundTrip func(*http.Request) (*http.Response, error)

func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Client is a client whose requests f answers.
func Client(f RoundTrip) *http.Client { return &http.Client{Transport: f} }

// Response is an answer to r.
func Response(r *http.Request, status int, contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), Request: r}
}

// Answers is a client that answers each request with the next body, and
// refuses those for which none is left.
func Answers(bodies ...io.Reader) *http.Client {
	return Client(func(r *http.Request) (*http.Response, error) {
		if len(bodies) == 0 {
			return nil, fmt.Errorf("unexpected request to %s", r.URL)
		}
		body := bodies[0]
		bodies = bodies[1:]
		return Response(r, http.StatusOK, "text/event-stream", body), nil
	})
}

// Always answers every request with one body and keeps nothing of what was sent.
func Always(body string) RoundTrip {
	return func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return Response(r, http.StatusOK, "text/event-stream", strings.NewReader(body)), err
	}
}

// Sent is a request as it reaches a service.
type Sent struct {
	URL    string
	Header http.Header
	Body   []byte
}

// Keep is a client that keeps each request in last and answers it with body.
func Keep(last *Sent, body string) *http.Client {
	return Client(func(r *http.Request) (*http.Response, error) {
		sent, err := io.ReadAll(r.Body)
		*last = Sent{r.URL.String(), r.Header, sent}
		return Response(r, http.StatusOK, "text/event-stream", strings.NewReader(body)), err
	})
}

// SSE is a body of server-sent events, one for each text.
func SSE(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}
