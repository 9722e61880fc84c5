package signin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

const (
	requestTimeout = 30 * time.Second // of one request to an issuer, its body included
	maxAnswer      = 1 << 20          // bytes; tokens are far shorter
)

// bounded is the client of the person's program with what a sign-in needs: an
// end with ctx (parts of x/oauth2 send requests without a context), a deadline,
// answers read whole and not above a size, no redirects, which would carry codes
// elsewhere, and the definition's headers.
func (f *flow) bounded(ctx context.Context) *http.Client {
	client := http.DefaultClient
	if f.o.Client != nil {
		client = f.o.Client
	}
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	return &http.Client{
		Transport: &transport{base: base, ctx: ctx, headers: f.d.Headers},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

type transport struct {
	base    http.RoundTripper
	ctx     context.Context // of the whole sign-in
	headers map[string]string
	form    map[string]string // added to bodies that are forms
	lenient bool              // whether x/oauth2 reads the answers
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	req = req.Clone(ctx)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	for name, value := range t.headers {
		req.Header.Set(name, value)
	}
	if err := t.extendForm(req); err != nil {
		return nil, err
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		if t.ctx.Err() != nil {
			return nil, context.Cause(t.ctx)
		}
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	resp.Body.Close()
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	switch {
	case t.ctx.Err() != nil:
		return nil, context.Cause(t.ctx)
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, &answerError{status: resp.StatusCode, what: fmt.Sprintf("an answer of more than %d bytes", maxAnswer)}
	}
	if err := normalize(resp, body); err != nil {
		return nil, err
	}
	if t.lenient && resp.StatusCode >= 200 && resp.StatusCode <= 299 && jsonwire.IsObject(body) {
		body = lenient(body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

// extendForm adds parameters to a form that x/oauth2 composed.
func (t *transport) extendForm(req *http.Request) error {
	if len(t.form) == 0 || req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return err
	}
	for name, value := range t.form {
		values.Set(name, value)
	}
	text := values.Encode()
	req.Body = io.NopCloser(strings.NewReader(text))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	req.ContentLength = int64(len(text))
	return nil
}

// normalize gives JSON its content type, which decides in x/oauth2 how an answer
// is read, and refuses what is neither JSON nor a form.
func normalize(resp *http.Response, body []byte) error {
	if jsonwire.IsObject(body) {
		resp.Header.Set("Content-Type", "application/json")
		return nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	text := strings.TrimSpace(string(body))
	if (kind == "application/x-www-form-urlencoded" || kind == "text/plain") && !strings.ContainsAny(text, "< \n") && strings.Contains(text, "=") {
		return nil
	}
	what := "an answer that is no JSON object"
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		what = "a redirect"
	case kind == "text/html" || strings.HasPrefix(text, "<"):
		what = "a web page"
	case text == "":
		what = "an empty answer"
	}
	return &answerError{status: resp.StatusCode, what: what}
}

// answerError says that an issuer sent something that no client can read.
type answerError struct {
	status int
	what   string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the issuer sent %s (%d %s)", e.what, e.status, http.StatusText(e.status))
}

// answer is what an issuer said in JSON.
type answer struct {
	status int
	body   []byte
}

func (a *answer) ok() bool { return a.status >= 200 && a.status < 300 }

func (a *answer) text(name string) string {
	s, _ := jsonwire.StringValue(jsonwire.Get(a.body, name))
	return s
}

// problem finds the words of an error: the standard members, or those that
// services use instead.
func (a *answer) problem() (code, description string) {
	if e := jsonwire.Get(a.body, "error"); jsonwire.IsObject(e) {
		inner := answer{body: e}
		description = inner.text("message")
	} else {
		code = a.text("error")
		description = a.text("error_description")
	}
	for _, name := range []string{"message", "detail", "error_message"} {
		if description == "" {
			description = a.text(name)
		}
	}
	return code, description
}

// ask sends a request whose answer is JSON. A nil body sends none.
func (f *flow) ask(ctx context.Context, method, address string, headers map[string]string, body []byte) (*answer, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(resp.Body) // in memory already
	if err != nil {
		return nil, err
	}
	return &answer{status: resp.StatusCode, body: b}, nil
}
