package packages

import (
	"cmp"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/regular"
)

const defaultRegistry = "https://registry.npmjs.org/"

// npmConfig is what npm's own configuration says about registries.
type npmConfig struct {
	registry string
	scopes   map[string]string // registries of scopes, such as @me
	header   map[string]string // Authorization by //host/path/
}

// npmConfig reads the user's .npmrc and, for names of registries only, that of a
// trusted project: what a project brings along must not name variables of the
// environment that are sent somewhere.
func (in *Installer) npmConfig() npmConfig {
	c := npmConfig{registry: defaultRegistry, scopes: map[string]string{}, header: map[string]string{}}
	user := cmp.Or(in.Getenv("NPM_CONFIG_USERCONFIG"), in.Getenv("npm_config_userconfig"))
	if user == "" && in.Home != "" {
		user = filepath.Join(in.Home, ".npmrc")
	}
	if user != "" {
		c.read(user, in.Getenv)
	}
	if in.Project != "" {
		c.read(filepath.Join(in.Project, ".npmrc"), nil)
	}
	c.registry = cmp.Or(in.Getenv("npm_config_registry"), in.Getenv("NPM_CONFIG_REGISTRY"), c.registry)
	return c
}

// read adds the lines of a file. Without getenv it takes nothing but registries.
func (c *npmConfig) read(path string, getenv func(string) string) {
	b, err := regular.ReadFile(path)
	if err != nil {
		return // as good as none
	}
	basic := map[string][2]string{} // name and password
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"`)
		if getenv != nil {
			value = expandVariables(value, getenv)
		} else if strings.Contains(value, "${") {
			continue
		}
		scope, isScope := strings.CutSuffix(key, ":registry")
		switch {
		case key == "registry":
			c.registry = value
		case isScope && strings.HasPrefix(scope, "@"):
			c.scopes[scope] = value
		case getenv == nil || value == "" || !strings.HasPrefix(key, "//"):
		default:
			at := strings.LastIndexByte(key, ':')
			if at < 0 {
				continue
			}
			place := strings.TrimSuffix(key[:at], "/") + "/"
			pair := basic[place]
			switch key[at+1:] {
			case "_authToken":
				c.header[place] = "Bearer " + value
			case "_auth":
				c.header[place] = "Basic " + value
			case "username":
				pair[0] = value
			case "_password":
				if password, err := base64.StdEncoding.DecodeString(value); err == nil {
					pair[1] = string(password)
				}
			}
			basic[place] = pair
		}
	}
	for place, pair := range basic {
		if _, ok := c.header[place]; !ok && pair[0] != "" && pair[1] != "" {
			c.header[place] = "Basic " + base64.StdEncoding.EncodeToString([]byte(pair[0]+":"+pair[1]))
		}
	}
}

// expandVariables puts values of the environment in place of ${NAME}; an unknown
// name stays, as npm has it.
func expandVariables(s string, getenv func(string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(cmp.Or(getenv(name), "${"+name+"}"))
		s = after
	}
}

// registryOf is the address of the registry of a package.
func (c *npmConfig) registryOf(name string) (*url.URL, error) {
	address := c.registry
	if scope, _, ok := strings.Cut(name, "/"); ok && c.scopes[scope] != "" {
		address = c.scopes[scope]
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !safeTransport(u) {
		return nil, faultf(Invalid, "the registry of %s is no https address", name).advise("look at the registry lines of .npmrc and at npm_config_registry")
	}
	if u.User != nil {
		return nil, faultf(Invalid, "the address of the registry of %s has a key in it", name).advise("put it into .npmrc, as //HOST/:_authToken=…")
	}
	return u, nil
}

// safeTransport reports whether what comes from an address is what its host sent:
// https, or this machine.
func safeTransport(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// authorize adds what belongs to the place of a request, the nearest first.
func (c *npmConfig) authorize(r *http.Request) {
	r.Header.Del("Authorization")
	place := "//" + r.URL.Host + r.URL.EscapedPath()
	for place = place[:strings.LastIndexByte(place, '/')+1]; len(place) > len("//"); place = place[:strings.LastIndexByte(strings.TrimSuffix(place, "/"), '/')+1] {
		if value, ok := c.header[place]; ok {
			r.Header.Set("Authorization", value)
			return
		}
	}
}
