package signin

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every built-in definition can be used as it is, or says what it lacks, and none
// brings the client of another program.
func TestBuiltin(t *testing.T) {
	ready := map[string]bool{"openrouter": true, "huggingface": true, "github-copilot": false}
	var ids []string
	for _, d := range Builtin() {
		ids = append(ids, d.Provider)
		if d.ClientID != "" || d.ClientSecret != "" || len(d.Headers) > 0 || d.Mint != nil && len(d.Mint.Headers) > 0 {
			t.Errorf("%s has a client built in", d.Provider)
		}
		err := d.Ready()
		if (err == nil) != ready[d.Provider] {
			t.Errorf("%s: %v", d.Provider, err)
		}
		if err != nil && (d.Hint == "" || !strings.Contains(err.Error(), "clientId") || !strings.Contains(err.Error(), d.Hint)) {
			t.Errorf("%s: %v", d.Provider, err)
		}
		p := &parser{}
		p.whole("x", &d, d.PublicDomain != "")
		for _, address := range []string{d.Issuer, d.AuthorizeURL, d.TokenURL, d.DeviceURL, d.RegisterURL, d.KeyURL, d.BaseURL.Fixed} {
			p.address("x", []byte(`"`+address+`"`), &address)
		}
		if p.problems != nil {
			t.Errorf("%s: %v", d.Provider, p.problems)
		}
	}
	if len(ids) != len(ready) || !slices.Equal(NewDefinitions(Builtin()...).Providers(), []string{"openrouter", "huggingface"}) {
		t.Errorf("built in: %v", ids)
	}
}

func TestParse(t *testing.T) {
	d, err := Parse([]byte("\uFEFF" + `{
		"$schema": "x",
		"providers": {
			"acme": {
				"name": " Acme ", "issuer": "https://id.acme.example", "authorizeUrl": "https://id.acme.example/authorize",
				"tokenUrl": "https://id.{domain}/token", "deviceUrl": "http://127.0.0.1:9/device", "registerUrl": "https://id.acme.example/register",
				"clientId": "c", "clientSecret": "$ACME_SECRET", "clientAuth": "header", "scopes": ["a", "b"],
				"redirect": {"host": "localhost", "port": 1455, "exactPort": true, "path": "/auth/callback"},
				"authorizeParams": {"audience": "x"}, "deviceParams": {"d": "y"}, "tokenParams": {"resource": "z"}, "headers": {"X-Own": "v"},
				"use": "bearer", "baseUrl": "https://api.acme.example/v1", "baseUrlFromToken": "ep", "renew": "never",
				"mint": {"url": "https://id.acme.example/mint", "scheme": "token", "headers": {"X-M": "1"}, "tokenMember": "t", "expiresMember": "e"},
				"domain": "corp.example"
			},
			"huggingface": {"clientId": "mine", "scopes": "inference-api"},
			"github-copilot": {"clientId": "mine", "domain": "corp.ghe.com", "mint": {"headers": {"Editor-Version": "own/1"}}},
			"router": {"authorizeUrl": "https://r.example/auth", "keyUrl": "https://r.example/keys"}
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := d.Lookup("acme")
	want := Definition{
		Provider: "acme", Name: "Acme", Issuer: "https://id.acme.example", AuthorizeURL: "https://id.acme.example/authorize",
		TokenURL: "https://id.{domain}/token", DeviceURL: "http://127.0.0.1:9/device", RegisterURL: "https://id.acme.example/register",
		ClientID: "c", ClientSecret: "$ACME_SECRET", ClientAuth: InHeader, Scopes: []string{"a", "b"},
		Redirect:        Redirect{Host: "localhost", Port: 1455, ExactPort: true, Path: "/auth/callback"},
		AuthorizeParams: map[string]string{"audience": "x"}, DeviceParams: map[string]string{"d": "y"},
		TokenParams: map[string]string{"resource": "z"}, Headers: map[string]string{"X-Own": "v"},
		Use: AsBearer, BaseURL: BaseURL{FromToken: "ep", Fixed: "https://api.acme.example/v1"}, Renew: Never,
		Mint:   &Mint{URL: "https://id.acme.example/mint", Scheme: "token", Headers: map[string]string{"X-M": "1"}, Token: "t", Expires: "e"},
		Domain: "corp.example",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if in := got.in(""); in.TokenURL != "https://id.corp.example/token" {
		t.Errorf("token address %s", in.TokenURL)
	}
	hf, _ := d.Lookup("huggingface")
	if hf.ClientID != "mine" || hf.TokenURL == "" || !slices.Equal(hf.Scopes, []string{"inference-api"}) {
		t.Errorf("got %+v", hf)
	}
	copilot, _ := d.Lookup("github-copilot")
	if in := copilot.in(""); copilot.Ready() != nil || in.Mint.URL != "https://api.corp.ghe.com/copilot_internal/v2/token" || in.DeviceURL != "https://corp.ghe.com/login/device/code" || in.Mint.Headers["Editor-Version"] != "own/1" {
		t.Errorf("got %+v, %v", in, copilot.Ready())
	}
	if builtin, _ := NewDefinitions(Builtin()...).Lookup("github-copilot"); builtin.Mint.Headers != nil {
		t.Error("the built-in definition changed")
	}
	if router, _ := d.Lookup("router"); router.Ready() != nil {
		t.Error(router.Ready())
	}
}

func TestParseProblems(t *testing.T) {
	in := func(member string) string { return `{"providers": {"acme": {` + member + `}}}` }
	for _, c := range []struct{ text, want string }{
		{`[]`, "the file has to be an object"},
		{`{"provider": {}}`, "provider is not known"},
		{`{"providers": []}`, "providers has to be an object"},
		{`{"providers": {"": {}}}`, "providers has an entry without a name"},
		{`{"providers": {"a": {}, "a": {}}}`, "providers.a is there twice"},
		{`{"providers": {"a": 1}}`, "providers.a has to be an object"},
		{`{"providers"`, "Invalid sign-in file"},
		{in(`"tokenURL": "https://a.example"`), "providers.acme.tokenURL is not known"},
		{in(`"clientId": 7`), "providers.acme.clientId has to be a text"},
		{in(`"tokenUrl": "a.example/token"`), "providers.acme.tokenUrl has to be an address"},
		{in(`"tokenUrl": "http://a.example/token"`), "providers.acme.tokenUrl has to begin with https://"},
		{in(`"tokenUrl": "javascript:alert(1)"`), "providers.acme.tokenUrl has to be an address"},
		{in(`"tokenUrl": "https://me:secret-pw@a.example/token"`), "providers.acme.tokenUrl must have no user"},
		{in(`"authorizeUrl": "https://a.example/#x"`), "must have no #"},
		{in(`"tokenUrl": "https://{domain}/token"`), "providers.acme.tokenUrl has {domain} in it, and there is no domain"},
		{in(`"domain": "https://a.example"`), "providers.acme.domain has to be a domain"},
		{in(`"domain": "a.example/x"`), "providers.acme.domain has to be a domain"},
		{in(`"clientAuth": "basic"`), "providers.acme.clientAuth has to be one of body, header"},
		{in(`"clientAuth": "header", "clientId": "c"`), "needs a clientSecret"},
		{in(`"clientSecret": "secret-pw"`), "providers.acme.clientSecret needs a clientId"},
		{in(`"use": true`), "providers.acme.use has to be a text"},
		{in(`"use": "cookie"`), "providers.acme.use has to be one of bearer, key"},
		{in(`"renew": "x"`), "providers.acme.renew has to be one of never, refreshToken"},
		{in(`"scopes": 1`), "providers.acme.scopes has to be a list of texts"},
		{in(`"scopes": ["a b"]`), "providers.acme.scopes has to be a list of texts without blanks"},
		{in(`"redirect": {"host": "0.0.0.0"}`), "the answer must not leave this machine"},
		{in(`"redirect": {"port": 70000}`), "providers.acme.redirect.port has to be a port"},
		{in(`"redirect": {"port": "80"}`), "providers.acme.redirect.port has to be a port"},
		{in(`"redirect": {"exactPort": true}`), "providers.acme.redirect.exactPort needs a port"},
		{in(`"redirect": {"exactPort": 1}`), "has to be true or false"},
		{in(`"redirect": {"path": "callback"}`), "providers.acme.redirect.path has to be a plain path"},
		{in(`"redirect": {"path": "/a?b"}`), "providers.acme.redirect.path has to be a plain path"},
		{in(`"redirect": {"scheme": "x"}`), "providers.acme.redirect.scheme is not known"},
		{in(`"authorizeParams": {"state": "x"}`), "providers.acme.authorizeParams.state is set by the sign-in itself"},
		{in(`"tokenParams": {"grant_type": "password"}`), "providers.acme.tokenParams.grant_type is set"},
		{in(`"headers": {"Authorization": "secret-pw"}`), "providers.acme.headers.Authorization is set"},
		{in(`"headers": {"X Y": "1"}`), "cannot be sent as a header"},
		{in(`"headers": {"X": "1\r\nY: 2"}`), "cannot be sent as a header"},
		{in(`"mint": {}`), "providers.acme.mint.url is missing"},
		{in(`"mint": {"url": "https://a.example", "scheme": "a b"}`), "providers.acme.mint.scheme has to be a word"},
		{in(`"keyUrl": "https://a.example", "tokenUrl": "https://a.example"`), "providers.acme.keyUrl excludes tokenUrl"},
		{in(`"clientId": 1, "name": 2`), "providers.acme.clientId has to be a text; providers.acme.name has to be a text"},
	} {
		_, err := Parse([]byte(c.text))
		if _, ok := errors.AsType[*FileError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret-pw") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signin.json")
	d, err := Load(path)
	if err != nil || len(d.Providers()) != 2 {
		t.Errorf("without a file: %v, %v", d, err)
	}
	os.WriteFile(path, []byte(`{"providers": {"huggingface": {"tokenUrl": "https://evil.example"}, "acme": {"x": 1}}}`), 0o600)
	d, err = Load(path)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "providers.acme.x is not known") {
		t.Errorf("got %v", err)
	}
	if hf, _ := d.Lookup("huggingface"); hf.TokenURL != "https://huggingface.co/oauth/token" {
		t.Errorf("a file that is wrong is in use: %+v", hf)
	}
	os.WriteFile(path, nil, 0o600)
	if _, err = Load(path); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		d    Definition
		want []string
	}{
		{Definition{}, []string{"clientId", "tokenUrl", "authorizeUrl or deviceUrl"}},
		{Definition{ClientID: "c", TokenURL: "t"}, []string{"authorizeUrl or deviceUrl"}},
		{Definition{ClientID: "c", TokenURL: "t", DeviceURL: "d"}, nil},
		{Definition{RegisterURL: "r", TokenURL: "t", AuthorizeURL: "a"}, nil},
		{Definition{Issuer: "i"}, nil},
		{Definition{KeyURL: "k"}, []string{"authorizeUrl"}},
		{Definition{KeyURL: "k", AuthorizeURL: "a"}, nil},
	} {
		err := c.d.Ready()
		e, _ := err.(*IncompleteError)
		if err == nil && c.want != nil || err != nil && !slices.Equal(e.Missing, c.want) {
			t.Errorf("%+v: %v, want %v", c.d, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"providers": {"a": {"tokenUrl": "https://{domain}/t", "redirect": {"port": 1}, "mint": {"url": "https://a.example"}, "scopes": "a b"}}}`))
	f.Add([]byte(`{"providers": {"github-copilot": {"mint": null, "domain": "x"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if (d == nil) != (err != nil) {
			t.Fatalf("%v and %v", d, err)
		}
		if err != nil {
			return
		}
		for _, def := range d.list {
			_ = def.Ready()
			for _, address := range []string{def.in("").TokenURL, def.in("").AuthorizeURL} {
				if strings.HasPrefix(address, "http://") && !strings.Contains(address, "127.0.0.1") && !strings.Contains(address, "localhost") && !strings.Contains(address, "::1") {
					t.Errorf("tokens would go to %s", address)
				}
			}
		}
	})
}

func FuzzPasted(f *testing.F) {
	for _, s := range []string{"http://localhost:1/callback?code=a&state=b", "a#b", "code=a&state=b", "error=x", " ", "https://["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, inPath := range []bool{false, true} {
			c, err := parsePasted(s, inPath)
			if err == nil && c.code == "" && c.errorCode == "" {
				t.Errorf("%q: nothing came of it", s)
			}
		}
	})
}

func TestBrowserCommand(t *testing.T) {
	for _, c := range []struct {
		system, variable string
		want             string // "" for an error
	}{
		{"linux", "DISPLAY", "xdg-open"}, {"linux", "WAYLAND_DISPLAY", "xdg-open"}, {"linux", "WSL_DISTRO_NAME", "xdg-open"},
		{"linux", "", ""}, {"freebsd", "", ""}, {"darwin", "", "open"}, {"windows", "", "rundll32 url.dll,FileProtocolHandler"},
	} {
		words, err := browserCommand(c.system, func(name string) string {
			if name == c.variable {
				return "x"
			}
			return ""
		})
		if got := strings.Join(words, " "); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s with %q: %q, %v", c.system, c.variable, got, err)
		}
	}
	for _, bad := range []string{"file:///etc/passwd", "-x", "javascript:alert(1)", "http://acme.example", ""} {
		if OpenBrowser(bad, nil) == nil {
			t.Errorf("%q was opened", bad)
		}
	}
}
