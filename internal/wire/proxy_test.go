package wire

import (
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestFixedProxy(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.test:3128"}
	for _, c := range []struct {
		except, address string
		direct          bool
	}{
		{"", "http://127.0.0.1:1/", false},
		{"*", "https://a.test/", true},
		{"b.test, A.Test", "https://a.test/", true},
		{"a.test", "https://x.A.test./", true},
		{"a.test", "https://xa.test/", false},
		{".a.test", "https://x.a.test/", true},
		{".a.test", "https://a.test/", false},
		{"*.a.test", "https://x.a.test/", true},
		{"a.test:443", "https://a.test/", true},
		{"a.test:80", "https://a.test/", false},
		{"a.test:8080", "http://a.test:8080/", true},
		{"127.0.0.1", "http://127.0.0.1:8080/", true},
		{"10.0.0.0/8", "http://10.1.2.3/", true},
		{"10.0.0.0/8", "http://11.1.2.3/", false},
		{"10.0.0.0/8", "http://ten.test/", false},
		{"::1", "http://[::1]:8080/", true},
		{"[::1]:8080", "http://[::1]:8080/", true},
		{"1", "http://127.0.0.1/", false},
		{",. ,", "http://a.test/", false},
	} {
		got, err := FixedProxy(proxy, c.except)(httptest.NewRequest("GET", c.address, nil))
		if err != nil || (got == nil) != c.direct {
			t.Errorf("NO_PROXY=%q, %s: %v, %v", c.except, c.address, got, err)
		}
	}
}
