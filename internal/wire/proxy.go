package wire

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// FixedProxy is one proxy for all requests but those to the hosts that except
// lists, in the form of the variable NO_PROXY: names separated by commas, each
// with all that end in it, addresses, ranges such as 10.0.0.0/8, any of them with
// a port, or * for every host.
func FixedProxy(proxy *url.URL, except string) func(*http.Request) (*url.URL, error) {
	rules := strings.FieldsFunc(strings.ToLower(except), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	return func(req *http.Request) (*url.URL, error) {
		host := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), ".")
		port := req.URL.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[req.URL.Scheme]
		}
		for _, rule := range rules {
			if excepts(rule, host, port) {
				return nil, nil
			}
		}
		return proxy, nil
	}
}

func excepts(rule, host, port string) bool {
	if rule == "*" {
		return true
	}
	ip, noIP := netip.ParseAddr(host)
	if block, err := netip.ParsePrefix(rule); err == nil {
		return noIP == nil && block.Contains(ip.Unmap())
	}
	if name, only, err := net.SplitHostPort(rule); err == nil {
		if only != port {
			return false
		}
		rule = name
	}
	rule = strings.Trim(rule, "[]")
	if only, err := netip.ParseAddr(rule); err == nil {
		return noIP == nil && only.Unmap() == ip.Unmap()
	}
	name := strings.TrimPrefix(strings.TrimPrefix(rule, "*"), ".")
	if name == "" || noIP == nil {
		return false
	}
	return host == name && name == rule || strings.HasSuffix(host, "."+name)
}
