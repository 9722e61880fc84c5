package bedrock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Containers and instances get their credentials from an address on the machine.

// localClient reaches it: never through a proxy, which would get to see them.
func localClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// localTime bounds the wait for one reply.
const localTime = 5 * time.Second

// container finds the credentials of a container; errNothing outside of one.
func (f *finder) container(ctx context.Context) (keys, error) {
	const origin = "the container's credentials endpoint"
	fail := func(cause error) (keys, error) { return keys{}, &CredentialsError{Origin: origin, Cause: cause} }
	address := f.env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := f.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = "http://169.254.170.2" + path
	}
	if address == "" {
		return keys{}, errNothing
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLocal(u.Hostname())) {
		return fail(errors.New("its address must begin with https://, or be one of this machine or of a container service"))
	}
	token := f.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := f.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fail(err)
		}
		token = strings.TrimSpace(string(text))
	}
	if strings.ContainsAny(token, "\r\n") {
		return fail(errors.New("the authorization token holds a line break"))
	}
	body, err := f.local(ctx, http.MethodGet, address, "Authorization", token)
	if err != nil {
		return fail(err)
	}
	k, err := readKeys(body, origin)
	if err != nil {
		return fail(err)
	}
	return k, nil
}

// isLocal reports whether a host is this machine or one of the addresses at
// which container services give out credentials.
func isLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip.IsLoopback() || ip.Equal(net.IPv4(169, 254, 170, 2)) || ip.Equal(net.IPv4(169, 254, 170, 23)) || ip.Equal(net.ParseIP("fd00:ec2::23"))
}

// instance finds the credentials of the role of an EC2 instance; errNothing when
// that is switched off.
func (f *finder) instance(ctx context.Context) (keys, error) {
	const origin = "the instance's metadata"
	if strings.EqualFold(f.env("AWS_EC2_METADATA_DISABLED"), "true") {
		return keys{}, errNothing
	}
	fail := func(what string, cause error) (keys, error) {
		return keys{}, &CredentialsError{Origin: origin, Cause: fmt.Errorf("%s: %w", what, cause)}
	}
	base := strings.TrimSuffix(f.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	if base == "" {
		base = "http://169.254.169.254"
		if strings.EqualFold(f.env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "IPv6") {
			base = "http://[fd00:ec2::254]"
		}
	}
	token, err := f.local(ctx, http.MethodPut, base+"/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	if err != nil {
		return fail("this is no instance, or its metadata cannot be reached", err)
	}
	const header = "X-Aws-Ec2-Metadata-Token"
	list := base + "/latest/meta-data/iam/security-credentials/"
	names, err := f.local(ctx, http.MethodGet, list, header, string(token))
	if err != nil {
		return fail("the instance has no role", err)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(names)), "\n")
	body, err := f.local(ctx, http.MethodGet, list+url.PathEscape(strings.TrimSpace(name)), header, string(token))
	if err != nil {
		return fail("the role "+name, err)
	}
	k, err := readKeys(body, origin)
	if err != nil {
		return fail("the role "+name, err)
	}
	return k, nil
}

// local asks an address of the machine, with one header field. Its errors do not
// repeat the address, which may hold a key.
func (f *finder) local(ctx context.Context, method, address, header, value string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	if value != "" {
		req.Header.Set(header, value)
	}
	status, body, err := ask(localClient(), req)
	switch {
	case err != nil:
		return nil, withoutURL(err)
	case status != http.StatusOK:
		return nil, fmt.Errorf("status %d", status)
	}
	return body, nil
}
