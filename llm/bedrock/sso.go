package bedrock

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// The login of IAM Identity Center: `aws sso login` leaves a token in a file,
// which gives the credentials of a role.

// login is what that file holds.
type login struct {
	access, refresh        string
	client, secret         string // of the program that signed in
	expires, clientExpires time.Time
	raw                    []byte
}

// signOn gets the credentials of a profile's role.
func (f *finder) signOn(ctx context.Context, p *profiles, name string) (keys, error) {
	s := p.profile[name]
	fail := func(cause error, advice string) (keys, error) {
		return keys{}, &CredentialsError{Origin: profileOrigin(name), Cause: cause, Advice: advice}
	}
	start, region, cacheName := s["sso_start_url"], s["sso_region"], s["sso_start_url"]
	if session := s["sso_session"]; session != "" {
		of := p.sessions[session]
		if of == nil {
			return fail(fmt.Errorf("its sso_session %q is not in the configuration file", session), "")
		}
		start, region, cacheName = of["sso_start_url"], of["sso_region"], session
	}
	account, role := s["sso_account_id"], s["sso_role_name"]
	switch {
	case account == "" || role == "":
		return fail(errors.New("sso_account_id or sso_role_name is missing"), "")
	case !isRegion(region):
		return fail(&RegionError{Region: region}, "Set sso_region")
	case f.home() == "":
		return fail(errors.New("there is no home folder with its login"), "")
	}
	advice := "Run `aws sso login --profile " + name + "`"
	sum := sha1.Sum([]byte(cacheName))
	file := filepath.Join(f.home(), ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json")
	text, err := os.ReadFile(file)
	if err != nil {
		return fail(fmt.Errorf("nobody has signed in at %s", start), advice)
	}
	l := readLogin(text)
	if now := f.now().Add(f.skew); l.access == "" || now.Add(renewBefore).After(l.expires) {
		fresh, err := f.renew(ctx, l, region, file)
		switch {
		case err == nil:
			l = fresh
		case ctx.Err() != nil:
			return keys{}, context.Cause(ctx)
		case l.access == "" || now.After(l.expires):
			return fail(fmt.Errorf("its login has expired (%w)", err), advice)
		}
	}
	return f.roleKeys(ctx, l, region, account, role, name)
}

func readLogin(text []byte) login {
	l := login{raw: text}
	var r jsonwire.Reader
	r.Reset(text)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "accessToken":
			l.access = r.Text()
		case "refreshToken":
			l.refresh = r.Text()
		case "clientId":
			l.client = r.Text()
		case "clientSecret":
			l.secret = r.Text()
		case "expiresAt":
			l.expires = readTime(r.Text())
		case "registrationExpiresAt":
			l.clientExpires = readTime(r.Text())
		default:
			r.Skip()
		}
	}
	return l
}

// readTime reads a time, also in the form that older programs wrote.
func readTime(s string) time.Time {
	for _, form := range [...]string{time.RFC3339, "2006-01-02T15:04:05UTC"} {
		if t, err := time.Parse(form, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// renew gets a new token with the one for that, and puts it into the file.
func (f *finder) renew(ctx context.Context, l login, region, file string) (login, error) {
	if l.refresh == "" || l.client == "" || l.secret == "" {
		return l, errors.New("it cannot be renewed")
	}
	if now := f.now().Add(f.skew); !l.clientExpires.IsZero() && now.After(l.clientExpires) {
		return l, errors.New("it can be renewed no more")
	}
	o := jsonwire.Begin(nil)
	o.Text("clientId", l.client)
	o.Text("clientSecret", l.secret)
	o.Text("grantType", "refresh_token")
	o.Text("refreshToken", l.refresh)
	base := first(f.env("AWS_ENDPOINT_URL_SSO_OIDC"), f.env("AWS_ENDPOINT_URL"), "https://oidc."+region+"."+domainOf(region))
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/token", bytes.NewReader(o.End()))
	if err != nil {
		return l, errors.New("the address of the sign-in service cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	status, reply, err := ask(f.client, req)
	if err != nil {
		return l, fmt.Errorf("the sign-in service cannot be reached: %w", withoutURL(err))
	}
	if status != http.StatusOK {
		code, _ := jsonwire.StringValue(jsonwire.Get(quoted(req, reply, l.refresh, l.secret), "error"))
		return l, fmt.Errorf("the sign-in service answers %d %s", status, code)
	}
	access, _ := jsonwire.StringValue(jsonwire.Get(reply, "accessToken"))
	if access == "" {
		return l, errors.New("the reply of the sign-in service holds no token")
	}
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(reply, "expiresIn"))
	l.access, l.expires = access, f.now().Add(time.Duration(r.Int())*time.Second)
	if next, _ := jsonwire.StringValue(jsonwire.Get(reply, "refreshToken")); next != "" {
		l.refresh = next
	}
	l.raw = l.rewritten()
	// Where the file cannot be written the login still holds for this run.
	_ = store(file, l.raw)
	return l, nil
}

// rewritten is the text of the file with the new tokens; all else in it stays.
func (l *login) rewritten() []byte {
	o := jsonwire.Begin(nil)
	o.Text("accessToken", l.access)
	o.Text("expiresAt", l.expires.UTC().Format(time.RFC3339))
	o.Text("refreshToken", l.refresh)
	var r jsonwire.Reader
	r.Reset(l.raw)
	for r.Object(); r.More(); {
		switch name := string(r.Key()); name {
		case "accessToken", "expiresAt", "refreshToken":
			r.Skip()
		default:
			o.Member(name, r.Raw())
		}
	}
	return o.End()
}

// store replaces a file that other programs read.
func store(file string, text []byte) error {
	t, err := os.CreateTemp(filepath.Dir(file), ".pinch-*") // only its owner may read it
	if err != nil {
		return err
	}
	_, err = t.Write(text)
	err = errors.Join(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), file)
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}

// roleKeys gets the credentials of a role for a token.
func (f *finder) roleKeys(ctx context.Context, l login, region, account, role, name string) (keys, error) {
	fail := func(cause error, advice string) (keys, error) {
		return keys{}, &CredentialsError{Origin: profileOrigin(name), Cause: cause, Advice: advice}
	}
	base := first(f.env("AWS_ENDPOINT_URL_SSO"), f.env("AWS_ENDPOINT_URL"), "https://portal.sso."+region+"."+domainOf(region))
	query := url.Values{"account_id": {account}, "role_name": {role}}
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/federation/credentials?"+query.Encode(), nil)
	if err != nil {
		return fail(errors.New("the address of the sign-in portal cannot be used"), "")
	}
	req.Header.Set("X-Amz-Sso_bearer_token", l.access)
	status, reply, err := ask(f.client, req)
	switch {
	case err != nil:
		return fail(fmt.Errorf("the sign-in portal cannot be reached: %w", withoutURL(err)), "")
	case status == http.StatusUnauthorized:
		return fail(errors.New("its login has expired"), "Run `aws sso login --profile "+name+"`")
	case status != http.StatusOK:
		message, _ := jsonwire.StringValue(jsonwire.Get(quoted(req, reply), "message"))
		return fail(fmt.Errorf("the sign-in portal answers %d %s", status, message), "")
	}
	k := keys{origin: profileOrigin(name)}
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(reply, "roleCredentials"))
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "accessKeyId":
			k.id = r.Text()
		case "secretAccessKey":
			k.secret = r.Text()
		case "sessionToken":
			k.token = r.Text()
		case "expiration":
			k.lastUntil(time.UnixMilli(r.Int()))
		default:
			r.Skip()
		}
	}
	if k.id == "" || k.secret == "" {
		return fail(errors.New("the reply of the sign-in portal holds no keys"), "")
	}
	return k, nil
}
