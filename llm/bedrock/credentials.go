package bedrock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// keys are credentials for signing.
type keys struct {
	id, secret, token string
	origin            string    // where they come from, for error texts
	expires           time.Time // zero when that is not known
	until             time.Time // when to look again; zero for never
}

// renewBefore is how long before their end credentials are looked up anew.
const renewBefore = 5 * time.Minute

// keepFor is how long keys without an end are kept that other programs replace
// in a file.
const keepFor = time.Minute

func (k *keys) lastUntil(expires time.Time) {
	k.expires, k.until = expires, expires.Add(-renewBefore)
}

// CredentialsError says that a request cannot be signed.
type CredentialsError struct {
	Origin string // where credentials were looked for
	Cause  error
	Advice string // what the user can do; "" for nothing in particular
}

func (e *CredentialsError) Error() string {
	text := "No AWS credentials"
	if e.Origin != "" {
		text += " from " + e.Origin
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Advice != "" {
		text += ". " + e.Advice
	}
	return text
}

func (e *CredentialsError) Unwrap() error { return e.Cause }

// credentials are those to sign a request with.
func (x *exchange) credentials(ctx context.Context, at site) (keys, error) {
	x.chainKey = ""
	if x.skipsAuth() {
		return keys{id: "dummy-access-key", secret: "dummy-secret-key", origin: "keys that mean nothing (AWS_BEDROCK_SKIP_AUTH)"}, nil
	}
	client := x.opts.Client
	if client == nil {
		client = x.api.host.Client
	}
	f := finder{env: x.env, client: client, now: x.api.host.Now, skew: time.Duration(x.api.skew.Load()), signer: x.api.signer, region: at.region}
	if at.profile == "" {
		if k, ok := f.environment(); ok {
			return k, nil
		}
	}
	x.chainKey = f.key(at.profile)
	return x.api.chain.get(ctx, x.chainKey, f.now, func() (keys, error) { return f.find(ctx, at.profile) })
}

// credentialCache keeps what was found, for each environment that it was found
// in. The zero value is ready.
type credentialCache struct {
	mu      sync.Mutex
	entries map[string]*cached
}

type cached struct {
	turn chan struct{} // holds one: whose turn it is to look
	keys keys
	ok   bool
}

// maxCached bounds the environments that are remembered.
const maxCached = 256

func (c *credentialCache) entry(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		if c.entries == nil || len(c.entries) >= maxCached {
			c.entries = map[string]*cached{}
		}
		e = &cached{turn: make(chan struct{}, 1)}
		c.entries[key] = e
	}
	return e
}

// get returns what is kept under key, or what find finds. One looks at a time;
// others wait for the result, or for the end of their own ctx.
func (c *credentialCache) get(ctx context.Context, key string, now func() time.Time, find func() (keys, error)) (keys, error) {
	e := c.entry(key)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return keys{}, context.Cause(ctx)
	}
	defer func() { <-e.turn }()
	t := now()
	if e.ok && (e.keys.until.IsZero() || t.Before(e.keys.until)) {
		return e.keys, nil
	}
	k, err := find()
	if err != nil {
		if e.ok && t.Before(e.keys.expires) {
			return e.keys, nil // the old ones still do
		}
		return keys{}, err
	}
	e.keys, e.ok = k, true
	return k, nil
}

// forget drops what is kept under key and reports whether there was anything.
func (c *credentialCache) forget(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.entries[key]
	delete(c.entries, key)
	return ok
}

// finder looks for credentials by the rules that the vendor's clients share.
type finder struct {
	env    func(string) string
	client *http.Client // for services on the internet
	now    func() time.Time
	skew   time.Duration // what the services' clock is ahead
	signer *v4.Signer
	region string
}

// key tells apart the environments that find depends on. Secrets are no part.
func (f *finder) key(profile string) string {
	var b strings.Builder
	for _, v := range [...]string{
		profile, f.region, f.home(), f.env("AWS_CONFIG_FILE"), f.env("AWS_SHARED_CREDENTIALS_FILE"), f.env("AWS_ACCESS_KEY_ID"),
		f.env("AWS_WEB_IDENTITY_TOKEN_FILE"), f.env("AWS_ROLE_ARN"), f.env("AWS_ROLE_SESSION_NAME"),
		f.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), f.env("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		f.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), f.env("AWS_EC2_METADATA_DISABLED"),
	} {
		b.WriteString(v)
		b.WriteByte(0)
	}
	return b.String()
}

// environment are the keys of the environment itself.
func (f *finder) environment() (keys, bool) {
	k := keys{id: f.env("AWS_ACCESS_KEY_ID"), secret: f.env("AWS_SECRET_ACCESS_KEY"), token: f.env("AWS_SESSION_TOKEN"), origin: "AWS_ACCESS_KEY_ID"}
	return k, k.id != "" && k.secret != ""
}

// find looks for credentials: those of the named profile, or of whatever the
// environment offers.
func (f *finder) find(ctx context.Context, named string) (keys, error) {
	if file := f.env("AWS_WEB_IDENTITY_TOKEN_FILE"); named == "" && file != "" {
		return f.webIdentity(ctx, webRole{file: file, role: f.env("AWS_ROLE_ARN"), session: f.env("AWS_ROLE_SESSION_NAME"), region: f.region, origin: "AWS_WEB_IDENTITY_TOKEN_FILE"})
	}
	p := readProfiles(f.env)
	name := first(named, "default")
	if p.has(name) {
		k, err := f.profile(ctx, p, name, nil)
		if !errors.Is(err, errNothing) {
			return k, err
		}
	} else if named != "" {
		return keys{}, &CredentialsError{Origin: profileOrigin(named), Cause: p.missing(), Advice: "Correct AWS_PROFILE, or add the profile"}
	}
	k, err := f.container(ctx)
	if !errors.Is(err, errNothing) {
		return k, err
	}
	k, err = f.instance(ctx)
	if err == nil {
		return k, nil
	}
	if ctx.Err() != nil {
		return keys{}, context.Cause(ctx)
	}
	var origin string
	if e, ok := errors.AsType[*CredentialsError](err); ok {
		origin, err = e.Origin, e.Cause
	} else if errors.Is(err, errNothing) {
		err = nil
	}
	const advice = "Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
	if named != "" {
		return keys{}, &CredentialsError{Origin: profileOrigin(named), Cause: errors.New("it names none, and neither do the container and the instance"), Advice: advice}
	}
	return keys{}, &CredentialsError{Origin: origin, Cause: err, Advice: advice}
}

// errNothing says that a source has no credentials to offer, which is no fault.
var errNothing = errors.New("nothing is configured there")

// maxReply bounds what is read of a reply with credentials.
const maxReply = 1 << 20

// replyTime bounds the wait for one.
const replyTime = 20 * time.Second

// ask sends a request and reads its reply, of any status.
func ask(client *http.Client, req *http.Request) (status int, body []byte, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	return resp.StatusCode, body, err
}

// readKeys reads the form that containers, instances and processes give
// credentials in.
func readKeys(body []byte, origin string) (keys, error) {
	k := keys{origin: origin}
	var expires string
	var r jsonwire.Reader
	r.Reset(body)
	if r.Kind() != '{' {
		return keys{}, errors.New("the reply is no JSON object")
	}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "AccessKeyId":
			k.id = r.Text()
		case "SecretAccessKey":
			k.secret = r.Text()
		case "Token", "SessionToken":
			k.token = r.Text()
		case "Expiration":
			expires = r.Text()
		default:
			r.Skip()
		}
	}
	switch {
	case r.End() != nil:
		return keys{}, errors.New("the reply is no JSON object") // its text may hold secrets
	case k.id == "" || k.secret == "":
		return keys{}, errors.New("the reply holds no keys")
	case expires == "":
		return k, nil
	}
	t, err := time.Parse(time.RFC3339, expires)
	if err != nil {
		return keys{}, fmt.Errorf("the reply expires at %q, which is no time", expires)
	}
	k.lastUntil(t)
	return k, nil
}
