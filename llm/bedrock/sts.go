package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// webRole is a role that the token in a file gives.
type webRole struct {
	file, role, session string
	region, origin      string
}

// webIdentity takes on a role with a token that some identity provider keeps in
// a file.
func (f *finder) webIdentity(ctx context.Context, w webRole) (keys, error) {
	fail := func(cause error) (keys, error) { return keys{}, &CredentialsError{Origin: w.origin, Cause: cause} }
	if w.role == "" {
		return fail(errors.New("AWS_ROLE_ARN does not name the role for the token"))
	}
	token, err := os.ReadFile(w.file)
	if err != nil {
		return fail(err)
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {w.role}, "RoleSessionName": {f.sessionName(w.session)},
		"WebIdentityToken": {strings.TrimSpace(string(token))},
	}
	k, err := f.securityToken(ctx, form, nil, w.region)
	if err != nil {
		return fail(err)
	}
	k.origin = w.origin
	return k, nil
}

// assumeRole takes on the role of a profile with the keys of another.
func (f *finder) assumeRole(ctx context.Context, base keys, s section, region, origin string) (keys, error) {
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {s["role_arn"]}, "RoleSessionName": {f.sessionName(s["role_session_name"])}}
	if id := s["external_id"]; id != "" {
		form.Set("ExternalId", id)
	}
	if d := s["duration_seconds"]; d != "" {
		form.Set("DurationSeconds", d)
	}
	k, err := f.securityToken(ctx, form, &base, region)
	if err != nil {
		return keys{}, &CredentialsError{Origin: origin, Cause: err}
	}
	k.origin = origin
	return k, nil
}

func (f *finder) sessionName(given string) string {
	return first(given, "pinch-"+strconv.FormatInt(f.now().UnixNano(), 10))
}

// securityToken asks the Security Token Service; base are the keys to sign
// with, nil for an action that needs none.
func (f *finder) securityToken(ctx context.Context, form url.Values, base *keys, region string) (keys, error) {
	if !isRegion(region) {
		return keys{}, &RegionError{Region: region}
	}
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	form.Set("Version", "2011-06-15")
	body := form.Encode()
	address := first(f.env("AWS_ENDPOINT_URL_STS"), f.env("AWS_ENDPOINT_URL"), "https://sts."+region+"."+domainOf(region)+"/")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return keys{}, errors.New("the address of the Security Token Service cannot be used: correct AWS_ENDPOINT_URL_STS")
	}
	if req.URL.Path == "" {
		req.URL.Path = "/"
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if base != nil {
		sum := sha256.Sum256([]byte(body))
		err := f.signer.SignHTTP(ctx, aws.Credentials{AccessKeyID: base.id, SecretAccessKey: base.secret, SessionToken: base.token},
			req, hex.EncodeToString(sum[:]), "sts", region, f.now().Add(f.skew))
		if err != nil {
			return keys{}, err
		}
	}
	status, reply, err := ask(f.client, req)
	if err != nil {
		return keys{}, fmt.Errorf("the Security Token Service cannot be reached: %w", withoutURL(err))
	}
	if status != http.StatusOK {
		// A refused signature is explained with the header that was signed.
		reply = quoted(req, reply, form.Get("WebIdentityToken"))
	}
	return readToken(status, reply)
}

// quoted is a reply without what it repeats of the secrets of its request, for
// error texts.
func quoted(req *http.Request, reply []byte, more ...string) []byte {
	return []byte(wire.Redact(string(reply), wire.Secrets(req.Header, &llm.Options{}, more...)))
}

// withoutURL is the cause of an error of the HTTP client.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// readToken reads a reply of the Security Token Service.
func readToken(status int, reply []byte) (keys, error) {
	type credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      time.Time
	}
	var r struct {
		Role credentials                    `xml:"AssumeRoleResult>Credentials"`
		Web  credentials                    `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
		Err  struct{ Code, Message string } `xml:"Error"`
	}
	err := xml.Unmarshal(reply, &r)
	if status != http.StatusOK {
		if err != nil || r.Err.Code == "" {
			return keys{}, fmt.Errorf("the Security Token Service answers %d", status)
		}
		return keys{}, fmt.Errorf("the Security Token Service answers %d %s: %s", status, r.Err.Code, r.Err.Message)
	}
	c := r.Role
	if c.AccessKeyID == "" {
		c = r.Web
	}
	if err != nil || c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return keys{}, errors.New("the reply of the Security Token Service holds no keys")
	}
	k := keys{id: c.AccessKeyID, secret: c.SecretAccessKey, token: c.SessionToken}
	k.lastUntil(c.Expiration)
	return k, nil
}
