package packages

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/resource"
)

func TestRanges(t *testing.T) {
	for _, c := range []struct{ r, in, out string }{
		{"1.2.3", "1.2.3 1.2.3+b", "1.2.4 1.2.3-a"},
		{"^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-0 1.3.0-a"},
		{"^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"},
		{"^0.0.3", "0.0.3", "0.0.4 0.1.0"},
		{"^0.0", "0.0.0 0.0.9", "0.1.0"},
		{"^0", "0.0.0 0.9.9", "1.0.0"},
		{"^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-beta.10 1.2.3 1.3.0", "1.2.3-beta.1 1.2.4-beta.3 2.0.0"},
		{"~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"},
		{"~1", "1.0.0 1.9.9", "2.0.0"},
		{"~1.2", "1.2.0 1.2.9", "1.3.0"},
		{"1.x", "1.0.0 1.9.9", "2.0.0 0.9.9"},
		{"1.2.*", "1.2.0", "1.3.0"},
		{"1", "1.5.0", "2.0.0"},
		{"* ", "0.0.0 99.0.0", "1.0.0-a"},
		{"", "1.0.0", "1.0.0-a"},
		{">=1.2 <3", "1.2.0 2.9.9", "1.1.9 3.0.0 3.0.0-a"},
		{"> 1.2", "1.3.0", "1.2.9 1.2.0"},
		{">1.2.3", "1.2.4", "1.2.3"},
		{"<=1.2", "1.2.9 0.1.0", "1.3.0"},
		{"<1.2", "1.1.9", "1.2.0"},
		{"1.2.3 - 2.3", "1.2.3 2.3.9", "1.2.2 2.4.0"},
		{"^1 || ^3", "1.1.0 3.1.0", "2.0.0"},
		{"=v1.2.3", "1.2.3", "1.2.4"},
		{">*", "", "1.0.0 0.0.0"},
	} {
		r, ok := parseRange(c.r)
		if !ok {
			t.Errorf("%q is no range", c.r)
			continue
		}
		for _, v := range strings.Fields(c.in) {
			if p, ok := parseVersion(v); !ok || !r.admits(p) {
				t.Errorf("%q lets %s not in", c.r, v)
			}
		}
		for _, v := range strings.Fields(c.out) {
			if p, ok := parseVersion(v); !ok || r.admits(p) {
				t.Errorf("%q lets %s in", c.r, v)
			}
		}
	}
	for _, bad := range []string{"latest", "1.2.3.4", "1.x.3", "01.2.3", "1.2-beta", "=>1", "!1"} {
		if r, ok := parseRange(bad); ok {
			t.Errorf("%q is a range: %v", bad, r)
		}
	}
	order := strings.Fields("1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.10.0")
	for i := 1; i < len(order); i++ {
		a, _ := parseVersion(order[i-1])
		b, _ := parseVersion(order[i])
		if a.compare(b) >= 0 || b.compare(a) <= 0 || a.compare(a) != 0 {
			t.Errorf("%s is not before %s", order[i-1], order[i])
		}
	}
}

func TestNPMSources(t *testing.T) {
	for source, want := range map[string]string{
		"npm:a": "a|", "npm:@me/a": "@me/a|", "npm:a@1.2.3": "a|1.2.3", "npm:@me/a@^1 || 2": "@me/a|^1 || 2", "npm:a@next": "a|next",
	} {
		if s, err := parseNPM(source); err != nil || s.name+"|"+s.version != want {
			t.Errorf("%s: %+v %v", source, s, err)
		}
	}
	for _, bad := range []string{"npm:a@", "npm:a@npm:b", "npm:a@file:../x", "npm:a b", "npm:.a", "npm:a%2fb", "npm:a?x", "npm:a@../b", "npm:@me/.x"} {
		if s, err := parseNPM(bad); err == nil {
			t.Errorf("%s: %+v", bad, s)
		}
	}
}

func TestGitSources(t *testing.T) {
	for source, want := range map[string]string{
		"git:example.com/me/a":                     "https://example.com/me/a ",
		"git:example.com/me/a@v1":                  "https://example.com/me/a v1",
		"git:git@example.com:me/a.git@feature/x":   "ssh://git@example.com/me/a.git feature/x",
		"git:example.com:me/a":                     "ssh://git@example.com/me/a ",
		"git:git@example.com:a@v1":                 "ssh://git@example.com/a v1",
		"git:git@example.com:a":                    "ssh://git@example.com/a ",
		"https://example.com/me/a.git":             "https://example.com/me/a.git ",
		"git:HTTPS://Example.com//me/a.git/":       "https://example.com/me/a.git ",
		"git:hTtps://bücher.example/m":             "https://bücher.example/m ",
		"https://example.com:8443/me/a#0123abcd":   "https://example.com:8443/me/a 0123abcd",
		"ssh://git@example.com:2222/me/a@main":     "ssh://git@example.com:2222/me/a main",
		"git:https://example.com/me/a@v1.0.0-rc.1": "https://example.com/me/a v1.0.0-rc.1",
		"\ufeffgit:example.com/me/a\u3000":         "https://example.com/me/a ",
	} {
		r, err := parseGit(source, []string{"https", "ssh"})
		if err != nil || r.address+" "+r.ref != want {
			t.Errorf("%s: %q %q %v", source, r.address, r.ref, err)
		}
	}
	for _, bad := range []string{
		"http://example.com/me/a", "git://example.com/me/a", "git:file:///etc/x", "git:ext::sh -c x/y", "https://me:key@example.com/a", "https://key@example.com/a",
		"git:example.com/a@--upload-pack=x", "git:example.com/a@-x", "git:example.com/a@a:b", "git:example.com/a@a..b", "git:example.com/a@HEAD^", "git:example.com/a@x*",
		"git:-oProxyCommand=x:a/b", "git:-x/a", "https://-x/a", "ssh://-oProxyCommand=x/a", "https://example.com/a b", "https://example.com/a\nb", "git:example.com/a\ufeff@v1", "https://example.com/\u200ba", "https://example.com/a?x=y",
		"ssh://0:0é://0", "https://[::1]/me/a", "git:git@[::1]:me/a",
		"https://example.com/", "git:example.com/@v1", "https://example.com:x/a", "ssh://a b@example.com/a", "https://example.com", "git:",
	} {
		if r, err := parseGit(bad, []string{"https", "ssh"}); err == nil {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

func TestNPMConfiguration(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, ".npmrc"), `; mine
registry = https://mirror.example/npm
@corp:registry=https://corp.example/
//corp.example/:_authToken=${CORP_TOKEN}
//corp.example/deep/:_auth="YTpi"
//old.example/:username=me
//old.example/:_password=c2VjcmV0
//mirror.example/npm/:_authToken=m
`)
	write(filepath.Join(project, ".npmrc"), "@team:registry=https://team.example/\n@thief:registry=https://thief.example/${CORP_TOKEN}/\n//thief.example/:_authToken=${CORP_TOKEN}\n//corp.example/:_authToken=other\n")
	env := map[string]string{"CORP_TOKEN": "c0rp"}
	in := &Installer{Getenv: func(n string) string { return env[n] }, Home: home, Project: project}
	c := in.npmConfig()
	for name, want := range map[string]string{"a": "https://mirror.example/npm", "@corp/a": "https://corp.example/", "@team/a": "https://team.example/", "@thief/a": "https://mirror.example/npm"} {
		if u, err := c.registryOf(name); err != nil || u.String() != want {
			t.Errorf("%s: %v %v", name, u, err)
		}
	}
	for address, want := range map[string]string{
		"https://corp.example/a": "Bearer c0rp", "https://corp.example/deep/a/b": "Basic YTpi", "https://corp.example:8443/a": "", "https://corp.example.evil/a": "",
		"https://old.example/a": "Basic bWU6c2VjcmV0", "https://mirror.example/npm/a": "Bearer m", "https://mirror.example/npmx/a": "", "https://mirror.example/": "", "https://thief.example/a": "",
	} {
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "left over")
		if c.authorize(r); r.Header.Get("Authorization") != want {
			t.Errorf("%s: %q, want %q", address, r.Header.Get("Authorization"), want)
		}
	}
	for _, bad := range []string{"http://mirror.example/", "ftp://x/", "mirror", "https://key@mirror.example/", "file:///etc"} {
		env["npm_config_registry"] = bad
		c := in.npmConfig()
		if u, err := c.registryOf("a"); err == nil || strings.Contains(err.Error(), "key@") {
			t.Errorf("%s: %v %v", bad, u, err)
		}
	}
}

func TestPinned(t *testing.T) {
	f := resource.Folders{Agent: "/a", Cwd: "/w"}
	for source, want := range map[string]bool{
		"npm:a": false, "npm:a@1.2.3": true, "npm:@me/a@1.2.3": true, "npm:@me/a": false, "npm:a@^1": false, "npm:a@1.2": false, "npm:a@next": false,
		"git:git@example.com:me/a": false, "git:git@example.com:me/a@v1": true, "git:example.com/me/a": false, "ssh://git@example.com/me/a": false,
		"https://example.com/me/a#abc": true, "./a@1.0.0": false,
	} {
		if place, ok := f.PlacePackage(source, "/a", resource.User); !ok || Pinned(source, place) != want {
			t.Errorf("%s: %v", source, !want)
		}
	}
}

// What is fetched is the repository that the settings take the source for, and
// nothing in an address is an option to git or ssh.
func FuzzGitSources(f *testing.F) {
	for _, s := range []string{
		"git:git@example.com:me/a.git@feature/x", "https://example.com:8443/me/a#0123abcd", "ssh://git@example.com:2222/me/a@main", "git:https://example.com/me/a@v1",
		"git:example.com/me@x/a", "https://example.com@evil.example/a/b", "ssh://a@b@c/d", "git:a:b/c:d", "https://example.com#x/y", "git:example.com/%2e%2e/x", "git:EXAMPLE.com/a/b/", "git:hTtps://example.com/m", "git:0/\ufeff#",
	} {
		f.Add(s)
	}
	folders := resource.Folders{Agent: "/a", Cwd: "/w"}
	f.Fuzz(func(t *testing.T, source string) {
		place, ok := folders.PlacePackage(source, "/a", resource.User)
		if !ok || place.Kind != resource.GitPackage {
			return
		}
		r, err := parseGit(source, []string{"https", "ssh"})
		if err != nil {
			return
		}
		again, ok := folders.PlacePackage("git:"+r.address, "/a", resource.User)
		if !ok || again.Identity != place.Identity {
			t.Errorf("%q is %s, and %s is fetched as %s", source, place.Identity, again.Identity, r.address)
		}
		u, err := url.Parse(r.address)
		if err != nil || u.Scheme != "https" && u.Scheme != "ssh" || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(r.ref, "-") || !strings.HasPrefix(place.Identity, "git:"+strings.ToLower(u.Hostname())+"/") {
			t.Errorf("%q: %q %q, %s", source, r.address, r.ref, place.Identity)
		}
	})
}
