package wire

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// The bounds of making a connection, and of noticing that one is dead: without
// the pings of HTTP/2 a connection that a router forgot would be silent until
// the deadline on silence.
const (
	connectTimeout = 30 * time.Second
	tlsTimeout     = 15 * time.Second
	pingAfter      = 30 * time.Second
	pingTimeout    = 15 * time.Second
)

// NewClient makes the client that requests use by default. proxy chooses the
// proxy of a request, as in http.Transport; by default the environment does
// (http.ProxyFromEnvironment). The client keeps connections for the next
// request, speaks HTTP/2 where the server does, asks for no compression, which
// would delay events, and follows redirects only within the host, as keys go in
// headers that the standard client would carry to any other.
func NewClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    tlsTimeout,
			ExpectContinueTimeout:  time.Second,
			DisableCompression:     true,
			OnProxyConnectResponse: proxyAnswer,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0].URL
			if len(via) >= 10 || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// HTTP1 is c for servers and proxies that get along with HTTP/1.1 only. A client
// whose transport is of another kind than the standard one stays as it is.
func HTTP1(c *http.Client) *http.Client {
	t, ok := c.Transport.(*http.Transport)
	if !ok {
		return c
	}
	t = t.Clone()
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSNextProto = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // a transport that was used has put h2 there
	}
	other := *c
	other.Transport = t
	return &other
}

// ProxyError says that a proxy was reached and would not connect.
type ProxyError struct {
	Proxy  string // host and port
	Status int
}

func (e *ProxyError) Error() string {
	text := fmt.Sprintf("the proxy %s refuses to connect (%d %s)", e.Proxy, e.Status, http.StatusText(e.Status))
	if e.Status == http.StatusProxyAuthRequired {
		return text + ": put the user and the password for it into its address"
	}
	return text + ": change the proxy in HTTPS_PROXY or in the httpProxy setting, or name the host in NO_PROXY"
}

func proxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Host, Status: resp.StatusCode}
}
