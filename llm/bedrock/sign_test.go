package bedrock

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// A signature, computed anew from the parts of a request by the published rules.
// The path of the canonical request is encoded twice.
func signature(r *http.Request, body, secret, region, service string) (string, error) {
	auth := r.Header.Get("Authorization")
	_, names, ok := strings.Cut(auth, "SignedHeaders=")
	if !ok {
		return "", fmt.Errorf("no signed headers in %q", auth)
	}
	names, _, _ = strings.Cut(names, ",")
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := strings.TrimSpace(r.Header.Get(name))
		switch name {
		case "host":
			if value = r.Host; value == "" {
				value = r.URL.Host
			}
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, value)
	}
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	mac := func(key []byte, s string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(s))
		return h.Sum(nil)
	}
	path := strings.ReplaceAll(r.URL.EscapedPath(), "%", "%25")
	canonical := strings.Join([]string{r.Method, path, r.URL.RawQuery, headers.String(), names, hash(body)}, "\n")
	date := r.Header.Get("X-Amz-Date")
	if len(date) < 8 {
		return "", fmt.Errorf("no date in %v", r.Header)
	}
	scope := date[:8] + "/" + region + "/" + service + "/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+secret), date[:8]), region), service), "aws4_request")
	return hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, hash(canonical)}, "\n"))), nil
}

func checkSignature(t *testing.T, r *http.Request, body, id, secret, region, service string) {
	t.Helper()
	want, err := signature(r, body, secret, region, service)
	if err != nil {
		t.Error(err)
		return
	}
	auth := r.Header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential="+id+"/") || !strings.HasSuffix(auth, "Signature="+want) {
		t.Errorf("signed %s, want …Signature=%s", auth, want)
	}
}

// The example of the published signature documentation, for the check above and
// for the signer.
func TestPublishedSignature(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	empty := sha256.Sum256(nil)
	err = v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: secret}, r,
		hex.EncodeToString(empty[:]), "iam", "us-east-1", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	const want = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("the signer says %s", got)
	}
	if got, err := signature(r, "", secret, "us-east-1", "iam"); got != want || err != nil {
		t.Errorf("the check says %s, %v", got, err)
	}
}

// signedRequest is a request for credentials of an environment.
func signedRequest(client http.RoundTripper, env map[string]string) *llm.Request {
	req := request(client)
	req.APIKey, req.Env = "", env
	return req
}

func TestSigning(t *testing.T) {
	good := join(start, ended, meta)
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_SESSION_TOKEN": "token-of-the-test", "AWS_REGION": "eu-test-1"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	api := New(Config{Getenv: wiretest.NoEnv, Now: func() time.Time { at = at.Add(time.Second); return at }, Wait: func(context.Context, time.Duration) error { return nil }})
	model := *testModel
	for _, id := range []string{"anthropic.claude-sonnet-4-20250514-v1:0", "arn:aws:bedrock:us-west-2:1:application-inference-profile/x y", "plain"} {
		model.ID = id
		client := &answers{list: []answer{{status: 503}, {body: good}}}
		req := signedRequest(client, env)
		req.Headers = map[string]*string{"X-Mine": new("a  b"), "x-amz-date": new("no"), "AUTHORIZATION": new("no"), "Host": new("no"), "User-Agent": nil}
		if m := result(t, api, &model, req); m.StopReason != llm.StopStop {
			t.Fatal(m.ErrorMessage)
		}
		region := "eu-test-1"
		if strings.HasPrefix(id, "arn:") {
			region = "us-west-2"
		}
		for i, r := range client.seen {
			r.Header.Set("X-Mine", "a b") // as it is signed
			checkSignature(t, r, client.sent[i], "AKIDTEST", "secret-of-the-test", region, "bedrock")
			if r.Header.Get("X-Amz-Security-Token") != "token-of-the-test" || r.Header.Get("User-Agent") != "" || r.Host != "bedrock.test" {
				t.Errorf("%v", r.Header)
			}
			if auth := r.Header.Get("Authorization"); !strings.Contains(auth, "x-mine") || !strings.Contains(auth, "x-amz-content-sha256") {
				t.Errorf("not all is signed: %s", auth)
			}
			if !strings.HasSuffix(r.URL.RequestURI(), "/model/"+strings.NewReplacer(":", "%3A", "/", "%2F", " ", "%20").Replace(id)+"/converse-stream") {
				t.Errorf("path %s", r.URL.RequestURI())
			}
		}
		if client.seen[0].Header.Get("X-Amz-Date") == client.seen[1].Header.Get("X-Amz-Date") {
			t.Error("the second attempt has the time of the first")
		}
	}
}

// What a server sees of a request has the signature that it computes, whatever
// the caller adds and however the address is written.
func TestSignatureOnTheWire(t *testing.T) {
	for _, fields := range []map[string]string{
		{}, {"connection": "keep-alive", "Keep-Alive": "a"}, {"Trailer": "a"}, {"Proxy-Connection": "a"}, {"cache-control": "no-cache", "TE": "trailers"},
		{"Content-Length": "3"}, {"X-Mine": "a"},
	} {
		for _, http2 := range []bool{false, true} {
			var seen *http.Request
			var sent []byte
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = r
				sent, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
				w.Write(join(start, ended, meta))
			}))
			if server.EnableHTTP2 = http2; http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			model := *testModel
			model.ID, model.BaseURL = "some:0/model", server.URL+"/a gate"
			req := signedRequest(nil, map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_REGION": "eu-test-1"})
			req.Client, req.Headers = server.Client(), map[string]*string{}
			for name, v := range fields {
				req.Headers[name] = &v
			}
			if m := result(t, quick(), &model, req); m.StopReason != llm.StopStop {
				t.Fatal(fields, m.ErrorMessage)
			}
			if seen.RequestURI != "/a%20gate/model/some%3A0%2Fmodel/converse-stream" {
				t.Errorf("path %s", seen.RequestURI)
			}
			checkSignature(t, seen, string(sent), "AK", "secret-of-the-test", "eu-test-1", "bedrock")
			if v := seen.Header.Get("Cache-Control"); v != fields["cache-control"] {
				t.Errorf("the field that is not signed is %q", v)
			}
			server.Client().CloseIdleConnections()
			server.Close()
		}
	}
}

func TestSignIn(t *testing.T) {
	good := join(start, ended, meta)
	send := func(t *testing.T, key string, env map[string]string, o Options) http.Header {
		t.Helper()
		client := says(good)
		req := signedRequest(client, env)
		req.APIKey = key
		if m := quick().StreamWith(t.Context(), testModel, req, o).Result(); m.StopReason != llm.StopStop {
			t.Fatal(m.ErrorMessage)
		}
		return client.seen[0].Header
	}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s"}
	with := func(name, v string) map[string]string {
		return map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s", name: v}
	}
	for _, c := range []struct {
		name, key string
		env       map[string]string
		own       Options
		want      string
	}{
		{"key", "k", keys, Options{}, "Bearer k"},
		{"option", "k", keys, Options{BearerToken: "o"}, "Bearer o"},
		{"environment", "", with("AWS_BEARER_TOKEN_BEDROCK", "e"), Options{}, "Bearer e"},
		{"keys", "", keys, Options{}, "AWS4-HMAC-SHA256 Credential=AKIDTEST/"},
		{"nothing means anything", "k", with("AWS_BEDROCK_SKIP_AUTH", "1"), Options{}, "AWS4-HMAC-SHA256 Credential=dummy-access-key/"},
	} {
		if got := send(t, c.key, c.env, c.own).Get("Authorization"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	h := send(t, "k", nil, Options{})
	if h.Get("X-Amz-Date") != "" || h.Get("Accept") != "" || !strings.HasPrefix(h.Get("User-Agent"), "pinch/") {
		t.Errorf("%v", h)
	}
}

// Texts of the service may quote what was sent.
func TestSecretsStayOut(t *testing.T) {
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_SESSION_TOKEN": "token-of-the-test"}
	quote := []byte(`{"message":"the canonical string has x-amz-security-token:token-of-the-test secret-of-the-test"}`)
	header := map[string]string{"X-Amzn-Errortype": "InvalidSignatureException"}
	m := result(t, quick(), testModel, signedRequest(&answers{list: []answer{{403, header, quote}}}, env))
	in := result(t, quick(), testModel, signedRequest(says(join(start, exception("validationException", string(quote)))), env))
	for _, m := range []*llm.Assistant{m, in} {
		if text := string(m.AppendJSON(nil)); strings.Contains(text, "-of-the-test") || !strings.Contains(text, "[redacted]") {
			t.Errorf("%s", text)
		}
	}
	if !strings.HasSuffix(m.ErrorMessage, "(signed with AWS_ACCESS_KEY_ID)") {
		t.Errorf("got %q", m.ErrorMessage)
	}
	env["AWS_SESSION_TOKEN"] = "a\nb-secret"
	client := says(join(start, ended))
	if m := result(t, quick(), testModel, signedRequest(client, env)); len(client.seen) != 0 || strings.Contains(m.ErrorMessage, "b-secret") || !strings.Contains(m.ErrorMessage, "X-Amz-Security-Token") {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestRegions(t *testing.T) {
	for _, c := range []struct {
		name, id, base string
		env            map[string]string
		own            Options
		region, host   string
	}{
		{name: "nothing", region: "us-east-1", host: "bedrock-runtime.us-east-1.amazonaws.com"},
		{name: "standard endpoint", base: "https://bedrock-runtime.ap-south-1.amazonaws.com/", region: "ap-south-1", host: "bedrock-runtime.ap-south-1.amazonaws.com"},
		{name: "fips endpoint", base: "https://bedrock-runtime-fips.us-west-2.amazonaws.com", region: "us-west-2", host: "bedrock-runtime-fips.us-west-2.amazonaws.com"},
		{name: "environment", base: "https://bedrock-runtime.ap-south-1.amazonaws.com", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-3"}, region: "eu-west-1", host: "bedrock-runtime.eu-west-1.amazonaws.com"},
		{name: "default region", env: map[string]string{"AWS_DEFAULT_REGION": "eu-west-3"}, region: "eu-west-3", host: "bedrock-runtime.eu-west-3.amazonaws.com"},
		{name: "option", env: map[string]string{"AWS_REGION": "eu-west-1"}, own: Options{Region: "eu-north-1"}, region: "eu-north-1", host: "bedrock-runtime.eu-north-1.amazonaws.com"},
		{name: "ARN", id: "arn:aws:bedrock:us-west-2:1:inference-profile/x", env: map[string]string{"AWS_REGION": "eu-west-1"}, own: Options{Region: "eu-north-1"}, region: "us-west-2", host: "bedrock-runtime.us-west-2.amazonaws.com"},
		{name: "own endpoint", base: "https://proxy.test:8443/aws", env: map[string]string{"AWS_REGION": "eu-west-1"}, region: "eu-west-1", host: "proxy.test:8443"},
		{name: "lookalike", base: "https://bedrock-runtime.us-west-2.amazonaws.com.test", region: "us-east-1", host: "bedrock-runtime.us-west-2.amazonaws.com.test"},
		{name: "China", env: map[string]string{"AWS_REGION": "cn-north-1"}, region: "cn-north-1", host: "bedrock-runtime.cn-north-1.amazonaws.com.cn"},
		{name: "fips", env: map[string]string{"AWS_REGION": "us-gov-west-1", "AWS_USE_FIPS_ENDPOINT": "true"}, region: "us-gov-west-1", host: "bedrock-runtime-fips.us-gov-west-1.amazonaws.com"},
		{name: "endpoint of the environment", base: "https://bedrock-runtime.ap-south-1.amazonaws.com", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "https://vpce.test/"}, region: "eu-west-1", host: "vpce.test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := says(join(start, ended, meta))
			env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s"}
			for k, v := range c.env {
				env[k] = v
			}
			model := *testModel
			model.BaseURL = c.base
			if c.id != "" {
				model.ID = c.id
			}
			if m := quick().StreamWith(t.Context(), &model, signedRequest(client, env), c.own).Result(); m.StopReason != llm.StopStop {
				t.Fatal(m.ErrorMessage)
			}
			r := client.seen[0]
			if parts := strings.Split(r.Header.Get("Authorization"), "/"); r.URL.Host != c.host || parts[2] != c.region {
				t.Errorf("sent to %s, signed for %s", r.URL.Host, parts[2])
			}
		})
	}
	client := says(nil)
	m := result(t, quick(), testModel, signedRequest(client, map[string]string{"AWS_REGION": "evil.test/", "AWS_BEARER_TOKEN_BEDROCK": "k"}))
	if len(client.seen) != 0 || !strings.Contains(m.ErrorMessage, "is no AWS region") {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestClock(t *testing.T) {
	service := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test", "AWS_REGION": "eu-test-1"}
	good := answer{body: join(start, ended, meta)}
	refuse := func(code, message string, dated bool) answer {
		a := answer{403, map[string]string{"X-Amzn-Errortype": code}, []byte(`{"message":"` + message + `"}`)}
		if dated {
			a.header["Date"] = service.Format(http.TimeFormat)
		}
		return a
	}
	expired := "Signature expired: 20260304T114500Z is now earlier than 20260304T115500Z (20260304T120000Z - 5 min.)"
	early := "Signature not yet current: 20260304T121500Z is still later than 20260304T120500Z (20260304T120000Z + 5 min.)"
	for _, c := range []struct {
		name string
		off  time.Duration // of our clock
		list []answer
		sent int
		err  string // start of it; "" for a good answer
	}{
		{"behind", -15 * time.Minute, []answer{refuse("RequestTimeTooSkewed", "m", true), good}, 2, ""},
		{"ahead", 15 * time.Minute, []answer{refuse("InvalidSignatureException", early, true), good}, 2, ""},
		{"no header", -15 * time.Minute, []answer{refuse("InvalidSignatureException", expired, false), good}, 2, ""},
		{"far behind", -50 * 24 * time.Hour, []answer{refuse("InvalidSignatureException", "The request signature we calculated does not match", true), good}, 2, ""},
		{"still refused", -15 * time.Minute, []answer{refuse("RequestTimeTooSkewed", "m", true), refuse("RequestTimeTooSkewed", "m", true), good}, 2,
			"The clock of this machine is 15m0s behind that of AWS, which refuses the request: set it right. (RequestTimeTooSkewed: m)"},
		{"ahead and refused", time.Hour, []answer{refuse("RequestTimeTooSkewed", "m", true), refuse("RequestTimeTooSkewed", "m", true)}, 2,
			"The clock of this machine is 1h0m0s ahead of that of AWS"},
		{"no time is told", -15 * time.Minute, []answer{refuse("RequestTimeTooSkewed", "m", false), good}, 1,
			"AWS refuses the request because of its time: set the clock of this machine right."},
		{"not the clock", 0, []answer{refuse("InvalidSignatureException", "The request signature we calculated does not match", true), good}, 1,
			"InvalidSignatureException: The request signature we calculated does not match (signed with AWS_ACCESS_KEY_ID)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := New(Config{Getenv: wiretest.NoEnv, Now: func() time.Time { return service.Add(c.off) }})
			client := &answers{list: c.list}
			m := result(t, api, testModel, signedRequest(client, env))
			if len(client.seen) != c.sent || c.err == "" && m.StopReason != llm.StopStop || !strings.HasPrefix(m.ErrorMessage, c.err) {
				t.Fatalf("%d requests, %s %q", len(client.seen), m.StopReason, m.ErrorMessage)
			}
			if c.err != "" {
				return
			}
			if got := client.seen[1].Header.Get("X-Amz-Date"); got != service.Format(amzDate) {
				t.Errorf("signed for %s", got)
			}
			checkSignature(t, client.seen[1], client.sent[1], "AKIDTEST", "secret-of-the-test", "eu-test-1", "bedrock")
			// The next request knows.
			client = says(join(start, ended, meta))
			if m := result(t, api, testModel, signedRequest(client, env)); m.StopReason != llm.StopStop || client.seen[0].Header.Get("X-Amz-Date") != service.Format(amzDate) {
				t.Errorf("the next request is signed for %s", client.seen[0].Header.Get("X-Amz-Date"))
			}
		})
	}
	// With a key there is no signature to have a time.
	client := &answers{list: []answer{refuse("RequestTimeTooSkewed", "m", true), good}}
	if m := result(t, quick(), testModel, request(client)); len(client.seen) != 1 || m.ErrorMessage != "RequestTimeTooSkewed: m" {
		t.Errorf("got %q", m.ErrorMessage)
	}
}

func TestEscapeID(t *testing.T) {
	for _, id := range []string{"", "a-b_c.d~e", "a:b/c d", "ü!'()*", "100%"} {
		got := escapeID(id)
		if back, err := url.PathUnescape(got); err != nil || back != id || strings.ContainsAny(got, "/:!'()* ") {
			t.Errorf("%q: %q", id, got)
		}
	}
	if got := escapeID("a/b"); got != "a%2Fb" {
		t.Errorf("%s is not the form of the vendor's clients", got)
	}
}
