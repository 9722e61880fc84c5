package wire

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// trusting is the default client with the certificate of a test server.
func trusting(t *testing.T, ts *httptest.Server) *http.Client {
	t.Helper()
	c := NewClient(nil)
	roots := x509.NewCertPool()
	roots.AddCert(ts.Certificate())
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig = ts.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	tr.TLSClientConfig.RootCAs = roots
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestClientKeepsConnections(t *testing.T) {
	for _, c := range []struct {
		name  string
		http2 bool
		proto string
	}{{"HTTP/1.1", false, "HTTP/1.1"}, {"HTTP/2", true, "HTTP/2.0"}} {
		t.Run(c.name, func(t *testing.T) {
			peers := map[string]bool{}
			ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				peers[r.RemoteAddr] = true
				if r.Proto != c.proto {
					t.Errorf("request over %s", r.Proto)
				}
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, "answer")
			}))
			ts.EnableHTTP2 = c.http2
			ts.StartTLS()
			t.Cleanup(ts.Close)
			h := Host{Client: trusting(t, ts)}.Default()
			for range 3 {
				resp, err := h.Send(t.Context(), &Call{URL: ts.URL, Body: []byte("question")}, &llm.Model{}, &llm.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(resp); string(b) != "answer" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				resp.Close()
			}
			if len(peers) != 1 {
				t.Errorf("%d connections for three requests", len(peers))
			}
		})
	}
}

func TestClientSpeaksOfTheProxy(t *testing.T) {
	refusing := func(status int) string {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
		}))
		t.Cleanup(ts.Close)
		return ts.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nothing listens there now
	for _, c := range []struct {
		name, proxy string
		want        []string
		retryable   bool
	}{
		{"unreachable", "http://user:secretpassword@" + l.Addr().String(), []string{"Connection error: the proxy cannot be used", "HTTPS_PROXY", l.Addr().String()}, true},
		{"wants a password", refusing(407), []string{"refuses to connect (407 Proxy Authentication Required)", "password"}, false},
		{"forbids", refusing(403), []string{"(403 Forbidden)", "NO_PROXY"}, false},
		{"in trouble", refusing(503), []string{"Connection error", "503 Service Unavailable"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy, err := url.Parse(c.proxy)
			if err != nil {
				t.Fatal(err)
			}
			client := NewClient(http.ProxyURL(proxy))
			t.Cleanup(client.CloseIdleConnections)
			h := Host{Client: client}.Default()
			_, err = h.Send(t.Context(), &Call{URL: "https://api.example.invalid/v1"}, &llm.Model{Provider: "p"}, &llm.Options{})
			got := text(err)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q lacks %q", got, want)
				}
			}
			if strings.Contains(got, "secretpassword") {
				t.Errorf("%q shows the password", got)
			}
			if Retryable(err) != c.retryable {
				t.Errorf("retryable: %v (%q)", !c.retryable, got)
			}
		})
	}
}

func TestClientRefusesAForeignCertificate(t *testing.T) {
	ts := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(ts.Close)
	client := trusting(t, ts)
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "other.invalid"
	h := Host{Client: client}.Default()
	_, err := h.Send(t.Context(), &Call{URL: ts.URL}, &llm.Model{}, &llm.Options{MaxRetries: 3})
	if got := text(err); !strings.Contains(got, "certificate of the server is refused") || !strings.Contains(got, "other.invalid") {
		t.Errorf("error %q", got)
	}
}

// An address without its beginning is told so, whatever else a parser makes of it.
func TestAddressWithoutScheme(t *testing.T) {
	for _, address := range []string{"127.0.0.1:80/v1", "//host/v1", "host", "", " http://host", "ftp://host", "unix:///socket"} {
		_, err := Host{}.Default().Send(t.Context(), &Call{URL: address, Header: http.Header{}}, &llm.Model{Provider: "acme"}, &llm.Options{})
		if err == nil || !strings.Contains(err.Error(), "of provider acme cannot be used (it has to begin with https://") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
