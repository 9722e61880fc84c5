package wire

import (
	"compress/gzip"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// Services quote the key that they refuse, in the body of a refusal and in the
// middle of an answer.
func TestKeysAreTakenOutOfErrors(t *testing.T) {
	const key = "sk-0123456789abcdef"
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuses" {
			w.WriteHeader(401)
		}
		io.WriteString(w, `{"error":{"message":"no such key `+key+` (Bearer other-credential, none)"}}`)
	})
	header := http.Header{"Authorization": {"Bearer other-credential"}, "X-Short-Key": {"none"}}
	o := &llm.Options{APIKey: key}
	_, err := h.Send(t.Context(), &Call{URL: url + "/refuses", Header: header}, &llm.Model{}, o)
	const want = `{"error":{"message":"no such key [redacted] ([redacted], none)"}}`
	if err == nil || err.Error() != "401 "+want {
		t.Errorf("got %v", err)
	}
	s := llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, o, &keyed{lines{url: url}, header}))
	if got := trace(s, nil); !strings.HasSuffix(got, "error error (200 "+want+")") {
		t.Errorf("got %s", got)
	}
	s = llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, o, &keyed{lines{url: url, fail: &ProviderError{"bad " + key}}, header}))
	if got := trace(s, nil); strings.Contains(got, "200") || !strings.Contains(got, "bad ") {
		t.Errorf("got %s", got)
	}
}

// A request that cannot be built says why without its key.
func TestKeysAreTakenOutOfErrorsBeforeTheRequest(t *testing.T) {
	const key, other = "sk-0123456789abcdef", "gateway-secret"
	o := &llm.Options{APIKey: key, Headers: map[string]*string{"x-gateway-token": new(other)}}
	s := llm.NewStream(NewSource(t.Context(), Host{}.Default(), "lines", &llm.Model{}, o, &unbuilt{err: &ProviderError{"bad address https://" + key + "/" + other}}))
	if m := s.Result(); m.ErrorMessage != "bad address https://[redacted]/[redacted]" {
		t.Errorf("got %s", m.ErrorMessage)
	}
}

// unbuilt is lines whose request cannot be built.
type unbuilt struct {
	lines
	err error
}

func (u *unbuilt) Request() (*Call, error) { return nil, u.err }

// keyed is lines with header fields.
type keyed struct {
	lines
	header http.Header
}

func (k *keyed) Request() (*Call, error) {
	c, err := k.lines.Request()
	c.Header = k.header
	return c, err
}

// What is no stream of events is an error in the server's words, and what is one
// is read whatever its type is called.
func TestOtherBodies(t *testing.T) {
	for _, c := range []struct{ name, contentType, encoding, body, want string }{
		{"error object", "application/json", "", "\n{\"error\":\"busy\"}\n", `200 {"error":"busy"}`},
		{"page", "text/html; charset=utf-8", "", "<html>\n\n<title>Log in</title>\n\n</html>", "200 <html>"},
		{"events by another name", "text/plain", "", "data: word\n\n", "[word]"},
		{"events without a name", "", "", "data: word\n\n{", "[word]"},
		{"packed", "text/event-stream", "gzip", "data: word\n\n", "[word]"},
		{"packed by another method", "text/event-stream", "br", "x", `200 in the encoding "br"`},
		{"not packed at all", "text/event-stream", "GZIP", "data: word\n\n", "Connection error: gzip: invalid header"},
	} {
		url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = []string{c.contentType}
			if c.encoding != "" {
				w.Header().Set("Content-Encoding", c.encoding)
			}
			if c.encoding == "gzip" {
				z := gzip.NewWriter(w)
				defer z.Close()
				io.WriteString(z, c.body)
				return
			}
			io.WriteString(w, c.body)
		})
		s := llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, &llm.Options{}, &lines{url: url}))
		if got := trace(s, nil); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
}

// What can never be sent is said at once and not tried again.
func TestRequestsThatCannotBeSent(t *testing.T) {
	url, h, waits := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("sent") })
	for _, c := range []struct {
		url, name, value, want string
	}{
		{url, "Authorization", "Bearer k\nX: y", "header Authorization for provider p holds a line break"},
		{url, "X A", "v", `header name "X A" of provider p`},
		{"ftp://host/secret", "A", "b", "address of provider p cannot be used"},
		{"no address", "A", "b", "address of provider p cannot be used"},
		{"http://host:99999/secret", "A", "b", "address of provider p cannot be used (there is no port 99999)"},
		{"http:///secret", "A", "b", "address of provider p cannot be used"},
		{"http://u:secret@[::1", "A", "b", "address of provider p cannot be used"},
	} {
		_, err := h.Send(t.Context(), &Call{URL: c.url, Header: http.Header{c.name: {c.value}}}, &llm.Model{Provider: "p"}, &llm.Options{MaxRetries: 3})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", c.want, err)
			continue
		}
		if llm.IsRetryable(&llm.Assistant{StopReason: llm.StopError, ErrorMessage: err.Error()}) || len(*waits) > 0 {
			t.Errorf("%q is tried again", err)
		}
	}
}

// Another attempt does not make a certificate fit.
func TestServersThatCannotBeTrusted(t *testing.T) {
	_, h, waits := serve(t, nil)
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain, _, _ := serve(t, nil)
	for url, want := range map[string]string{
		secure.URL: "the certificate of the server is refused: x509: ",
		strings.Replace(plain, "http:", "https:", 1): "the server does not speak TLS: ",
	} {
		_, err := h.Send(t.Context(), &Call{URL: url}, &llm.Model{}, &llm.Options{MaxRetries: 2})
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(*waits) > 0 {
			t.Errorf("%s: %v after %v", want, err, *waits)
			continue
		}
		if llm.IsRetryable(&llm.Assistant{StopReason: llm.StopError, ErrorMessage: err.Error()}) {
			t.Errorf("%q is tried again", err)
		}
	}
}

// What an address carries is as secret as a key.
func TestAddressesAreTakenOutOfErrors(t *testing.T) {
	for _, c := range []struct{ user, query, text, want string }{
		{"team:pass%40word-1@", "", "Basic dGVhbTpwYXNzQHdvcmQtMQ== pass@word-1 pass%40word-1 team", "Basic [redacted] [redacted] [redacted] team"},
		{"token-12345@", "", "dG9rZW4tMTIzNDU6 token-12345", "[redacted] [redacted]"},
		{"", "code=a%2Bb%2Bc%2Bd%2Be&api-version=2025-04-01-preview&alt=sse", "a%2Bb%2Bc%2Bd%2Be a+b+c+d+e 2025-04-01-preview", "[redacted] [redacted] 2025-04-01-preview"},
		{"", "", "no secrets", "no secrets"},
	} {
		address, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(401)
			io.WriteString(w, c.text)
		})
		address = strings.Replace(address, "://", "://"+c.user, 1) + "/?" + c.query
		_, err := h.Send(t.Context(), &Call{URL: address, Header: http.Header{}}, &llm.Model{}, &llm.Options{})
		if err == nil || err.Error() != "401 "+c.want {
			t.Errorf("%s\n got %v\nwant %s", address, err, c.want)
		}
	}
}

func TestPublicAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://host/a%2Fb": "https://host/a%2Fb",
		"http://user:word@host:8/a?api-version=1&code=2&x#f": "http://host:8/a?api-version=1&code=[redacted]&x=[redacted]",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := PublicAddress(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
