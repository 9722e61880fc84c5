package bedrock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

// cloud stands for the services that credentials come from, and for the
// machine: its home folder and its environment.
type cloud struct {
	*httptest.Server
	t    *testing.T
	home string
	env  map[string]string
	now  time.Time

	mu    sync.Mutex
	asked []string // paths and actions, in order
	reply map[string]string
	check func(r *http.Request, body string)
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, home: t.TempDir(), now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC), reply: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	c.env = map[string]string{
		"HOME": c.home, "USERPROFILE": c.home, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL_STS": c.URL + "/sts", "AWS_ENDPOINT_URL_SSO": c.URL + "/portal", "AWS_ENDPOINT_URL_SSO_OIDC": c.URL + "/oidc",
	}
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	what := r.Method + " " + r.URL.Path
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") != "" {
		what = form.Get("Action") + " " + form.Get("RoleArn")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, what)
	if c.check != nil {
		c.check(r, string(body))
	}
	reply, ok := c.reply[what]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if status, rest, ok := strings.Cut(reply, "!"); ok {
		n := 0
		fmt.Sscan(status, &n)
		w.WriteHeader(n)
		reply = rest
	}
	io.WriteString(w, reply)
}

func (c *cloud) file(name, text string) string {
	path := filepath.Join(c.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *cloud) finder() *finder {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &finder{env: func(name string) string { return c.env[name] }, client: client, now: func() time.Time { return c.now }, signer: v4.NewSigner(), region: "eu-test-1"}
}

// sessionKeys is a reply with keys in the form of containers and instances.
func sessionKeys(id string, expires time.Time) string {
	return fmt.Sprintf(`{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":"secret-%s","Token":"token-%s","Expiration":%q}`, id, id, id, expires.Format(time.RFC3339))
}

func roleReply(action, id string, expires time.Time) string {
	return fmt.Sprintf(`<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%sResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>secret-%s</SecretAccessKey>`+
		`<SessionToken>token-%s</SessionToken><Expiration>%s</Expiration></Credentials></%sResult></%sResponse>`, action, action, id, id, id, expires.Format(time.RFC3339), action, action)
}

const keyFile = "[base]\naws_access_key_id = AKBASE\naws_secret_access_key = secret-AKBASE\n"

func TestFindCredentials(t *testing.T) {
	end := time.Date(2026, 5, 6, 8, 0, 0, 0, time.UTC)
	const role, role2 = "arn:aws:iam::1:role/one", "arn:aws:iam::1:role/two"
	for _, c := range []struct {
		name    string
		profile string
		setup   func(*cloud)
		want    string // id, token, origin
		asked   string
	}{
		{"static keys", "base", func(c *cloud) { c.file(".aws/credentials", keyFile) }, `AKBASE  the profile "base"`, ""},
		{"default profile", "", func(c *cloud) {
			c.file(".aws/config", "# mine\n[default]\nregion = x ; there\naws_access_key_id=AKCONF\naws_secret_access_key = s # secret\ns3 =\n  aws_access_key_id = AKNESTED\n[services other]\naws_access_key_id = AKNO\n")
		}, `AKCONF  the profile "default"`, ""},
		{"indented lines", "deep", func(c *cloud) {
			c.file(".aws/config", "\uFEFF[default]\naws_access_key_id=AKNO\naws_secret_access_key=s\n  [profile\tdeep]\n    region = x\n\taws_access_key_id = AKDEEP\n    s3 =\n        aws_access_key_id = AKNESTED\n"+
				"aws_secret_access_key = s\n    aws_session_token = t\n[profile]\naws_session_token = no\n")
		}, `AKDEEP t the profile "deep"`, ""},
		{"a byte order mark", "", func(c *cloud) {
			c.file(".aws/credentials", "\uFEFF[default]\r\naws_access_key_id=AKBOM\r\naws_secret_access_key=s\r\n")
		}, `AKBOM  the profile "default"`, ""},
		{"nothing wins over no value", "base", func(c *cloud) {
			c.file(".aws/config", "[profile base]\naws_session_token=t\n")
			c.file(".aws/credentials", keyFile+"aws_session_token =\n")
		}, `AKBASE t the profile "base"`, ""},
		{"credentials file wins", "a b", func(c *cloud) {
			c.file(".aws/config", "[profile \"a b\"]\naws_access_key_id=AKCONF\naws_secret_access_key=s\naws_session_token=t\n")
			c.file(".aws/credentials", "[a b]\r\naws_access_key_id=AKCRED\r\naws_secret_access_key=s\r\n")
		}, `AKCRED t the profile "a b"`, ""},
		{"files named", "base", func(c *cloud) {
			c.env["AWS_SHARED_CREDENTIALS_FILE"], c.env["AWS_CONFIG_FILE"] = c.file("elsewhere", keyFile), "~/nowhere"
		}, `AKBASE  the profile "base"`, ""},
		{"a named profile wins over keys", "base", func(c *cloud) {
			c.env["AWS_ACCESS_KEY_ID"], c.env["AWS_SECRET_ACCESS_KEY"] = "AKENV", "s"
			c.file(".aws/credentials", keyFile)
		}, `AKBASE  the profile "base"`, ""},
		{"role", "r", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile r]\nrole_arn = "+role+"\nsource_profile = base\nexternal_id = x\nduration_seconds = 900\nrole_session_name = me\nregion = eu-role-1\n")
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKROLE", end)
			c.check = func(r *http.Request, body string) {
				form, _ := url.ParseQuery(body)
				if form.Get("ExternalId") != "x" || form.Get("DurationSeconds") != "900" || form.Get("RoleSessionName") != "me" {
					c.t.Errorf("sent %s", body)
				}
				checkSignature(c.t, r, body, "AKBASE", "secret-AKBASE", "eu-role-1", "sts")
			}
		}, `AKROLE token-AKROLE the profile "r"`, "AssumeRole " + role},
		{"role over a role", "r2", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile r]\nrole_arn="+role+"\nsource_profile=base\n[profile r2]\nrole_arn="+role2+"\nsource_profile=r\n")
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKONE", end)
			c.reply["AssumeRole "+role2] = roleReply("AssumeRole", "AKTWO", end)
		}, `AKTWO token-AKTWO the profile "r2"`, "AssumeRole " + role + ", AssumeRole " + role2},
		{"role over keys of a profile with a role", "r", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile base]\nrole_arn="+role2+"\nsource_profile=base\n[profile r]\nrole_arn="+role+"\nsource_profile=base\n")
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKROLE", end)
			c.check = func(r *http.Request, body string) {
				checkSignature(c.t, r, body, "AKBASE", "secret-AKBASE", "eu-test-1", "sts")
			}
		}, `AKROLE token-AKROLE the profile "r"`, "AssumeRole " + role},
		{"role over its own keys", "base", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile base]\nrole_arn="+role+"\nsource_profile=base\n")
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKROLE", end)
		}, `AKROLE token-AKROLE the profile "base"`, "AssumeRole " + role},
		{"role over the environment", "r", func(c *cloud) {
			c.env["AWS_ACCESS_KEY_ID"], c.env["AWS_SECRET_ACCESS_KEY"] = "AKENV", "s"
			c.file(".aws/config", "[profile r]\nrole_arn="+role+"\ncredential_source=Environment\n")
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKROLE", end)
			c.check = func(r *http.Request, body string) { checkSignature(c.t, r, body, "AKENV", "s", "eu-test-1", "sts") }
		}, `AKROLE token-AKROLE the profile "r"`, "AssumeRole " + role},
		{"role over the container", "r", func(c *cloud) {
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = c.URL + "/task"
			c.file(".aws/config", "[profile r]\nrole_arn="+role+"\ncredential_source=EcsContainer\n")
			c.reply["GET /task"] = sessionKeys("AKTASK", end)
			c.reply["AssumeRole "+role] = roleReply("AssumeRole", "AKROLE", end)
		}, `AKROLE token-AKROLE the profile "r"`, "GET /task, AssumeRole " + role},
		{"web identity", "", func(c *cloud) {
			c.env["AWS_WEB_IDENTITY_TOKEN_FILE"], c.env["AWS_ROLE_ARN"] = c.file("token", "the-token\n"), role
			c.reply["AssumeRoleWithWebIdentity "+role] = roleReply("AssumeRoleWithWebIdentity", "AKWEB", end)
			c.check = func(r *http.Request, body string) {
				if form, _ := url.ParseQuery(body); form.Get("WebIdentityToken") != "the-token" || !strings.HasPrefix(form.Get("RoleSessionName"), "pinch-") || r.Header.Get("Authorization") != "" {
					c.t.Errorf("sent %s, %v", body, r.Header)
				}
			}
		}, "AKWEB token-AKWEB AWS_WEB_IDENTITY_TOKEN_FILE", "AssumeRoleWithWebIdentity " + role},
		{"web identity of a profile", "w", func(c *cloud) {
			c.file(".aws/config", "[profile w]\nrole_arn="+role+"\nweb_identity_token_file="+c.file("token", "the-token")+"\n")
			c.reply["AssumeRoleWithWebIdentity "+role] = roleReply("AssumeRoleWithWebIdentity", "AKWEB", end)
		}, `AKWEB token-AKWEB the profile "w"`, "AssumeRoleWithWebIdentity " + role},
		{"container", "", func(c *cloud) {
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], c.env["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = c.URL+"/task", "Basic x"
			c.reply["GET /task"] = sessionKeys("AKTASK", end)
			c.check = func(r *http.Request, _ string) {
				if r.Header.Get("Authorization") != "Basic x" {
					c.t.Errorf("%v", r.Header)
				}
			}
		}, "AKTASK token-AKTASK the container's credentials endpoint", "GET /task"},
		{"container with a token file", "", func(c *cloud) {
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], c.env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = c.URL+"/task", c.file("pod", "pod-token\n")
			c.reply["GET /task"] = sessionKeys("AKTASK", end)
			c.check = func(r *http.Request, _ string) {
				if r.Header.Get("Authorization") != "pod-token" {
					c.t.Errorf("%v", r.Header)
				}
			}
		}, "AKTASK token-AKTASK the container's credentials endpoint", "GET /task"},
		{"instance", "", func(c *cloud) {
			c.env["AWS_EC2_METADATA_DISABLED"], c.env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "", c.URL+"/"
			c.reply["PUT /latest/api/token"] = "session"
			c.reply["GET /latest/meta-data/iam/security-credentials/"] = "the-role\n"
			c.reply["GET /latest/meta-data/iam/security-credentials/the-role"] = sessionKeys("AKINST", end)
			c.check = func(r *http.Request, _ string) {
				if r.Method == http.MethodGet && r.Header.Get("X-Aws-Ec2-Metadata-Token") != "session" {
					c.t.Errorf("%v", r.Header)
				}
			}
		}, "AKINST token-AKINST the instance's metadata",
			"PUT /latest/api/token, GET /latest/meta-data/iam/security-credentials/, GET /latest/meta-data/iam/security-credentials/the-role"},
		{"a profile that names nothing", "plain", func(c *cloud) {
			c.file(".aws/config", "[profile plain]\nregion = eu-west-1\n")
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = c.URL + "/task"
			c.reply["GET /task"] = sessionKeys("AKTASK", end)
		}, "AKTASK token-AKTASK the container's credentials endpoint", "GET /task"},
		{"sign-on session", "sso", func(c *cloud) {
			c.file(".aws/config", "[profile sso]\nsso_session=corp\nsso_account_id=12\nsso_role_name=dev\n[sso-session corp]\nsso_region=eu-sso-1\nsso_start_url=https://corp.test\n")
			c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T09:00:00Z"}`)
			c.reply["GET /portal/federation/credentials"] = roleCredentials("AKSSO", end)
			c.check = func(r *http.Request, _ string) {
				if r.Header.Get("X-Amz-Sso_bearer_token") != "access-1" || r.URL.RawQuery != "account_id=12&role_name=dev" {
					c.t.Errorf("%s %v", r.URL, r.Header)
				}
			}
		}, `AKSSO token-AKSSO the profile "sso"`, "GET /portal/federation/credentials"},
		{"sign-on of the old kind", "sso", func(c *cloud) {
			c.file(".aws/config", "[profile sso]\nsso_start_url=https://corp.test\nsso_region=eu-sso-1\nsso_account_id=12\nsso_role_name=dev\n")
			c.login("https://corp.test", `{"accessToken":"access-1","expiresAt":"2026-05-06T09:00:00UTC"}`)
			c.reply["GET /portal/federation/credentials"] = roleCredentials("AKSSO", end)
		}, `AKSSO token-AKSSO the profile "sso"`, "GET /portal/federation/credentials"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newCloud(t)
			c.setup(cloud)
			k, err := cloud.finder().find(t.Context(), c.profile)
			if err != nil {
				t.Fatal(err)
			}
			if got := k.id + " " + k.token + " " + k.origin; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if k.token != "" && strings.HasPrefix(k.token, "token-") && (!k.expires.Equal(end) || !k.until.Equal(end.Add(-renewBefore)) || k.secret != "secret-"+k.id) {
				t.Errorf("%+v", k)
			}
			if got := strings.Join(cloud.asked, ", "); got != c.asked {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
		})
	}
}

func roleCredentials(id string, expires time.Time) string {
	return fmt.Sprintf(`{"roleCredentials":{"accessKeyId":%q,"secretAccessKey":"secret-%s","sessionToken":"token-%s","expiration":%d}}`, id, id, id, expires.UnixMilli())
}

func (c *cloud) login(name, text string) string {
	sum := sha1.Sum([]byte(name))
	return c.file(".aws/sso/cache/"+hex.EncodeToString(sum[:])+".json", text)
}

func TestRenewedLogin(t *testing.T) {
	c := newCloud(t)
	c.file(".aws/config", "[profile sso]\nsso_session=corp\nsso_account_id=12\nsso_role_name=dev\n[sso-session corp]\nsso_region=eu-sso-1\nsso_start_url=https://corp.test\n")
	file := c.login("corp", `{"startUrl":"https://corp.test","accessToken":"access-1","expiresAt":"2026-05-06T07:10:00Z","clientId":"id","clientSecret":"cs","refreshToken":"refresh-1","registrationExpiresAt":"2027-01-01T00:00:00Z","odd":[1, 2]}`)
	c.reply["POST /oidc/token"] = `{"accessToken":"access-2","expiresIn":3600,"refreshToken":"refresh-2"}`
	c.reply["GET /portal/federation/credentials"] = roleCredentials("AKSSO", c.now.Add(time.Hour))
	c.check = func(r *http.Request, body string) {
		switch r.URL.Path {
		case "/oidc/token":
			if body != `{"clientId":"id","clientSecret":"cs","grantType":"refresh_token","refreshToken":"refresh-1"}` {
				t.Errorf("sent %s", body)
			}
		default:
			if r.Header.Get("X-Amz-Sso_bearer_token") != "access-2" {
				t.Errorf("%v", r.Header)
			}
		}
	}
	if _, err := c.finder().find(t.Context(), "sso"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	want := `{"accessToken":"access-2","expiresAt":"2026-05-06T08:08:09Z","refreshToken":"refresh-2","startUrl":"https://corp.test","clientId":"id","clientSecret":"cs","registrationExpiresAt":"2027-01-01T00:00:00Z","odd":[1,2]}`
	if err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if rest, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".pinch-*")); len(rest) > 0 {
		t.Errorf("left over: %v", rest)
	}
}

// A login that cannot be stored is renewed all the same.
func TestRenewedLoginWithoutStore(t *testing.T) {
	c := newCloud(t)
	c.file(".aws/config", "[profile sso]\nsso_session=corp\nsso_account_id=12\nsso_role_name=dev\n[sso-session corp]\nsso_region=eu-sso-1\nsso_start_url=https://corp.test\n")
	file := c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T07:00:00Z","clientId":"id","clientSecret":"cs","refreshToken":"refresh-1"}`)
	c.reply["POST /oidc/token"] = `{"accessToken":"access-2","expiresIn":3600}`
	c.reply["GET /portal/federation/credentials"] = roleCredentials("AKSSO", c.now.Add(time.Hour))
	c.check = func(r *http.Request, body string) {
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			t.Error(err)
		}
		if token := r.Header.Get("X-Amz-Sso_bearer_token"); r.Method == http.MethodGet && token != "access-2" {
			t.Errorf("the token is %q", token)
		}
	}
	if k, err := c.finder().find(t.Context(), "sso"); err != nil || k.id != "AKSSO" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestCredentialProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test are those of a POSIX shell")
	}
	c := newCloud(t)
	profile := func(command string) (keys, error) {
		c.file(".aws/config", "[profile p]\ncredential_process = "+command+"\n")
		return c.finder().find(t.Context(), "p")
	}
	k, err := profile(`printf '{"Version":1,"AccessKeyId":"AKPROC","SecretAccessKey":"s","SessionToken":"t","Expiration":"%s"}' 2026-05-06T08:00:00Z`)
	if err != nil || k.id != "AKPROC" || k.token != "t" || !k.until.Equal(time.Date(2026, 5, 6, 7, 55, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err = profile(`echo '{"Version":1,"AccessKeyId":"AKPROC","SecretAccessKey":"s"}'`); err != nil || !k.until.IsZero() {
		t.Errorf("%+v, %v", k, err)
	}
	for command, want := range map[string]string{
		`echo the-secret >&2; exit 3`:           "ends with status 3",
		`echo the-secret`:                       "no JSON object",
		`echo '{"AccessKeyId":"x"}'`:            "holds no keys",
		`echo '{"AccessKeyId":"the-secret" x}'`: "no JSON object",
		`echo '{"AccessKeyId":"x","SecretAccessKey":"y","Expiration":"soon"}'`: `expires at "soon"`,
	} {
		if _, err := profile(command); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-secret") {
			t.Errorf("%s: %v", command, err)
		}
	}
	// The end of the request takes along what the command has started.
	c.file(".aws/config", "[profile p]\ncredential_process = sleep 60 | sleep 60\n")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.finder().find(ctx, "p"); err == nil || time.Since(began) > 60*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestNoCredentials(t *testing.T) {
	const role = "arn:aws:iam::1:role/one"
	sso := "[profile p]\nsso_session=corp\nsso_account_id=12\nsso_role_name=dev\n[sso-session corp]\nsso_region=eu-sso-1\nsso_start_url=https://corp.test\n"
	for _, c := range []struct {
		name, profile string
		setup         func(*cloud)
		want          []string // parts of the error
	}{
		{"nothing", "", func(*cloud) {}, []string{"No AWS credentials", "Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID"}},
		{"no home", "p", func(c *cloud) { delete(c.env, "HOME"); delete(c.env, "USERPROFILE") }, []string{`the profile "p"`, "no home folder"}},
		{"no such profile", "p", func(c *cloud) { c.file(".aws/config", "[profile other]\n") }, []string{`the profile "p"`, "it is not in", filepath.Join(".aws", "config"), "Correct AWS_PROFILE"}},
		{"a profile that names nothing", "p", func(c *cloud) { c.file(".aws/config", "[profile p]\nregion=x\n") }, []string{`the profile "p"`, "it names none"}},
		{"no source", "p", func(c *cloud) { c.file(".aws/config", "[profile p]\nrole_arn="+role+"\n") }, []string{"source_profile", "credential_source"}},
		{"source missing", "p", func(c *cloud) { c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=q\n") }, []string{`its source_profile "q" is not in`}},
		{"circle", "p", func(c *cloud) {
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=q\n[profile q]\nrole_arn="+role+"\nsource_profile=p\n")
		}, []string{"leads back to it"}},
		{"MFA", "p", func(c *cloud) {
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=q\nmfa_serial=x\n")
		}, []string{"MFA device"}},
		{"aws login", "p", func(c *cloud) { c.file(".aws/config", "[profile p]\nlogin_session=x\n") }, []string{"aws login", "credential_process = aws configure export-credentials --profile p"}},
		{"role refused", "p", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=base\n")
			c.reply["AssumeRole "+role] = `403!<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>`
		}, []string{`the profile "p"`, "403 AccessDenied: not you"}},
		{"signature refused", "p", func(c *cloud) {
			c.file(".aws/credentials", keyFile+"aws_session_token=the-secret-token\n")
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=base\n")
			c.reply["AssumeRole "+role] = `403!<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>x-amz-security-token:the-secret-token</Message></Error></ErrorResponse>`
		}, []string{"403 SignatureDoesNotMatch: x-amz-security-token:[redacted]"}},
		{"token refused", "", func(c *cloud) {
			c.env["AWS_WEB_IDENTITY_TOKEN_FILE"], c.env["AWS_ROLE_ARN"] = c.file("token", "the-secret-token\n"), role
			c.reply["AssumeRoleWithWebIdentity "+role] = `400!<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>the-secret-token is none</Message></Error></ErrorResponse>`
		}, []string{"400 InvalidIdentityToken: [redacted] is none"}},
		{"role without keys", "p", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=base\n")
			c.reply["AssumeRole "+role] = `{}`
		}, []string{"holds no keys"}},
		{"service not reached", "p", func(c *cloud) {
			c.file(".aws/credentials", keyFile)
			c.file(".aws/config", "[profile p]\nrole_arn="+role+"\nsource_profile=base\n")
			c.env["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:1"
		}, []string{"the Security Token Service cannot be reached"}},
		{"no token file", "", func(c *cloud) {
			c.env["AWS_WEB_IDENTITY_TOKEN_FILE"], c.env["AWS_ROLE_ARN"] = filepath.Join(c.home, "none"), role
		}, []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "none"}},
		{"no role for a token", "", func(c *cloud) { c.env["AWS_WEB_IDENTITY_TOKEN_FILE"] = "x" }, []string{"AWS_ROLE_ARN"}},
		{"not signed in", "p", func(c *cloud) { c.file(".aws/config", sso) }, []string{"nobody has signed in at https://corp.test", "aws sso login --profile p"}},
		{"login expired", "p", func(c *cloud) {
			c.file(".aws/config", sso)
			c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T07:00:00Z"}`)
		}, []string{"its login has expired", "aws sso login --profile p"}},
		{"login not renewed", "p", func(c *cloud) {
			c.file(".aws/config", sso)
			c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T07:00:00Z","clientId":"i","clientSecret":"the-secret","refreshToken":"r"}`)
			c.reply["POST /oidc/token"] = `400!{"error":"invalid_grant"}`
		}, []string{"400 invalid_grant"}},
		{"login refused", "p", func(c *cloud) {
			c.file(".aws/config", sso)
			c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T09:00:00Z"}`)
			c.reply["GET /portal/federation/credentials"] = `401!{}`
		}, []string{"its login has expired"}},
		{"role of a login refused", "p", func(c *cloud) {
			c.file(".aws/config", sso)
			c.login("corp", `{"accessToken":"access-1","expiresAt":"2026-05-06T09:00:00Z"}`)
			c.reply["GET /portal/federation/credentials"] = `403!{"message":"No access with access-1"}`
		}, []string{"403 No access with [redacted]"}},
		{"session missing", "p", func(c *cloud) {
			c.file(".aws/config", "[profile p]\nsso_session=corp\nsso_account_id=1\nsso_role_name=x\n")
		}, []string{`its sso_session "corp"`}},
		{"role of a login missing", "p", func(c *cloud) { c.file(".aws/config", "[profile p]\nsso_start_url=x\nsso_region=y\n") }, []string{"sso_account_id or sso_role_name"}},
		{"container elsewhere", "", func(c *cloud) { c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://evil.test/x" }, []string{"the container's credentials endpoint", "https://"}},
		{"container refuses", "", func(c *cloud) { c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = c.URL + "/task" }, []string{"the container's credentials endpoint", "status 404"}},
		{"container not reached", "", func(c *cloud) {
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:1/task?key=the-secret"
		}, []string{"the container's credentials endpoint", "127.0.0.1:1"}},
		{"container token missing", "", func(c *cloud) {
			c.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], c.env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = c.URL+"/task", filepath.Join(c.home, "none")
		}, []string{"none"}},
		{"instance without a role", "", func(c *cloud) {
			c.env["AWS_EC2_METADATA_DISABLED"], c.env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "", c.URL
			c.reply["PUT /latest/api/token"] = "session"
		}, []string{"the instance has no role"}},
		{"no instance", "", func(c *cloud) {
			c.env["AWS_EC2_METADATA_DISABLED"], c.env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "", c.URL
		}, []string{"No AWS credentials from the instance's metadata: this is no instance", "Set AWS_BEARER_TOKEN_BEDROCK"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := newCloud(t)
			c.setup(cloud)
			_, err := cloud.finder().find(t.Context(), c.profile)
			var typed *CredentialsError
			if !errors.As(err, &typed) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
			if strings.Count(err.Error(), "No AWS credentials") != 1 {
				t.Errorf("%q says it twice", err)
			}
			if strings.Contains(err.Error(), "the-secret") || strings.Contains(err.Error(), "access-1") {
				t.Errorf("a secret is in %q", err)
			}
		})
	}
}

// A request finds its region and its credentials in a profile, keeps them, and
// looks again when they end or the service takes them no more.
func TestCredentialsOfRequests(t *testing.T) {
	c := newCloud(t)
	c.env["AWS_PROFILE"] = "work"
	c.file(".aws/credentials", keyFile)
	c.file(".aws/config", "[profile work]\nregion = eu-work-1\nrole_arn = r\nsource_profile = base\n")
	c.reply["AssumeRole r"] = roleReply("AssumeRole", "AKROLE", c.now.Add(time.Hour))
	sts := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	service := says()
	// One client for both: what goes to the cloud really goes there.
	client := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.String(), c.URL) {
			return sts.Transport.RoundTrip(r)
		}
		return service.RoundTrip(r)
	})
	api := New(Config{Client: &http.Client{Transport: client}, Getenv: func(name string) string { return c.env[name] }, Now: func() time.Time { return c.now }})
	model := *testModel
	model.BaseURL = "https://bedrock-runtime.us-east-1.amazonaws.com"
	ask := func(want llm.StopReason, list ...answer) *http.Request {
		t.Helper()
		service.list, service.seen, service.sent = list, nil, nil
		m := result(t, api, &model, &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}})
		if m.StopReason != want {
			t.Fatal(m.ErrorMessage)
		}
		if len(service.seen) == 0 {
			return nil
		}
		return service.seen[len(service.seen)-1]
	}
	good := answer{body: join(start, ended, meta)}
	r := ask(llm.StopStop, good)
	if r.URL.Host != "bedrock-runtime.eu-work-1.amazonaws.com" {
		t.Errorf("sent to %s", r.URL.Host)
	}
	checkSignature(t, r, service.sent[0], "AKROLE", "secret-AKROLE", "eu-work-1", "bedrock")
	ask(llm.StopStop, good)
	if len(c.asked) != 1 {
		t.Errorf("asked %v", c.asked)
	}
	c.now = c.now.Add(56 * time.Minute) // soon at their end
	c.reply["AssumeRole r"] = roleReply("AssumeRole", "AKNEXT", c.now.Add(time.Hour))
	if r := ask(llm.StopStop, good); len(c.asked) != 2 || !strings.Contains(r.Header.Get("Authorization"), "AKNEXT") {
		t.Errorf("asked %v", c.asked)
	}
	c.now = c.now.Add(57 * time.Minute)
	c.reply["AssumeRole r"] = `500!` // the old ones still do
	if r := ask(llm.StopStop, good); !strings.Contains(r.Header.Get("Authorization"), "AKNEXT") {
		t.Error("keys that are still good are not used")
	}
	expired := answer{403, map[string]string{"X-Amzn-Errortype": "ExpiredTokenException"}, []byte(`{"message":"m"}`)}
	c.reply["AssumeRole r"] = roleReply("AssumeRole", "AKLAST", c.now.Add(time.Hour))
	c.now = c.now.Add(-30 * time.Minute)
	if r := ask(llm.StopStop, expired, good); !strings.Contains(r.Header.Get("Authorization"), "AKLAST") {
		t.Error("keys that the service refuses are not looked up anew")
	}
	if ask(llm.StopError, expired, expired, good); len(service.seen) != 2 {
		t.Errorf("%d requests", len(service.seen))
	}
	c.now = c.now.Add(9 * time.Hour)
	delete(c.reply, "AssumeRole r")
	if r := ask(llm.StopError); r != nil {
		t.Error("a request without credentials is sent")
	}
}

// One looks for credentials at a time, and who waits can give up.
func TestCredentialCache(t *testing.T) {
	var cache credentialCache
	now := func() time.Time { return time.Unix(1000, 0) }
	looking, found := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32
	find := func() (keys, error) {
		if looks.Add(1) == 1 {
			close(looking)
		}
		<-found
		return keys{id: "a"}, nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if k, err := cache.get(context.Background(), "k", now, find); err != nil || k.id != "a" {
				t.Errorf("%+v, %v", k, err)
			}
		})
	}
	<-looking
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.get(ctx, "k", now, find); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(found)
	wg.Wait()
	if n := looks.Load(); n != 1 {
		t.Errorf("looked %d times", n)
	}
	if !cache.forget("k") || cache.forget("k") {
		t.Error("forget does not tell whether there was anything")
	}
	for i := range 3 * maxCached {
		cache.get(t.Context(), fmt.Sprint(i), now, find)
	}
	if len(cache.entries) > maxCached {
		t.Errorf("%d entries", len(cache.entries))
	}
}

// An aborted request does not wait for its credentials.
func TestAbortWhileLooking(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	env := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": hang.URL}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := quick().Stream(ctx, testModel, signedRequest(says(), env))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if m := stream.Result(); m.StopReason != llm.StopAborted {
		t.Errorf("got %s, %q", m.StopReason, m.ErrorMessage)
	}
}

// What the environment does not name is not read: with none, nothing is.
func TestNoEnvironmentReadsNothing(t *testing.T) {
	if p := readProfiles(wiretest.NoEnv); len(p.files) != 0 || len(p.profile) != 0 {
		t.Errorf("read %v", p.files)
	}
	if got := homeOf(wiretest.NoEnv); got != "" {
		t.Errorf("home %s", got)
	}
}

func TestKeyTellsEnvironmentsApart(t *testing.T) {
	c := newCloud(t)
	base := c.finder().key("p")
	for _, name := range []string{"HOME", "AWS_CONFIG_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if runtime.GOOS == "windows" && name == "HOME" {
			name = "USERPROFILE"
		}
		was := c.env[name]
		c.env[name] = "another"
		if c.finder().key("p") == base {
			t.Errorf("%s makes no difference", name)
		}
		c.env[name] = was
	}
	if c.finder().key("q") == base {
		t.Error("the profile makes no difference")
	}
}
