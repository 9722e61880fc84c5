package packages

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/version"
)

// npmSpec is a source of the form npm:NAME[@VERSION].
type npmSpec struct {
	name    string
	version string // a version, a tag or a range; "" for the tag latest
}

func parseNPM(source string) (npmSpec, error) {
	spec := strings.TrimPrefix(jsonwire.Trim(source), "npm:")
	at := strings.LastIndexByte(spec, '@')
	s := npmSpec{name: spec}
	if at > 0 {
		s = npmSpec{spec[:at], strings.TrimSpace(spec[at+1:])}
		if s.version == "" {
			return s, faultf(Invalid, "there is no version behind the @")
		}
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(s.name, "@"), "/") {
		if strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!'()*") != "" || strings.HasPrefix(part, ".") {
			return s, faultf(Invalid, "%q is no name of a package", s.name)
		}
	}
	if strings.ContainsAny(s.version, ":/\\") {
		return s, faultf(Invalid, "%q is no version, tag or range", s.version)
	}
	return s, nil
}

const (
	metadataTime = time.Minute
	archiveTime  = 15 * time.Minute
	maxMetadata  = 64 << 20
)

// published is what a registry says about a package.
type published struct {
	Tags     map[string]string `json:"dist-tags"`
	Versions map[string]struct {
		Dist struct {
			Tarball   string `json:"tarball"`
			Integrity string `json:"integrity"`
		} `json:"dist"`
	} `json:"versions"`
}

func (in *Installer) fetchNPM(ctx context.Context, spec npmSpec, s *staging, known *Record) (*Record, error) {
	config := in.npmConfig()
	registry, err := config.registryOf(spec.name)
	if err != nil {
		return nil, err
	}
	p, err := in.published(ctx, &config, registry, spec.name)
	if err != nil {
		return nil, err
	}
	chosen, err := p.choose(spec)
	if err != nil {
		return nil, err
	}
	dist := p.Versions[chosen].Dist
	integrity, err := strongest(dist.Integrity)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Version == chosen && known.Integrity == integrity {
		return nil, nil
	}
	address, err := url.Parse(dist.Tarball)
	if err != nil || address.Host == "" || address.User != nil || !safeTransport(address) || registry.Scheme == "https" && address.Scheme != "https" {
		return nil, faultf(Refused, "the registry names no https address for the archive of version %s", clip(chosen))
	}
	archive := filepath.Join(s.dir, "archive")
	if err := in.download(ctx, &config, address, archive, integrity); err != nil {
		return nil, err
	}
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := unpackGzip(ctx, f, s.files, 1, in.limits())
	if err != nil {
		return nil, err
	}
	return &Record{Version: chosen, Archive: plainAddress(address), Integrity: integrity, Files: files}, nil
}

// plainAddress is an address without what may be a key.
func plainAddress(u *url.URL) string {
	plain := *u
	plain.RawQuery, plain.Fragment, plain.User = "", "", nil
	return plain.String()
}

// choose picks the version that a source asks for.
func (p *published) choose(spec npmSpec) (string, error) {
	has := func(v string) bool { _, ok := p.Versions[v]; return ok }
	if v, ok := p.Tags[cmp.Or(spec.version, "latest")]; ok && has(v) {
		return v, nil
	}
	asked, exact := parseVersion(spec.version)
	wanted, isRange := parseRange(spec.version)
	latest, _ := parseVersion(p.Tags["latest"])
	best, found := semver{}, ""
	for name := range p.Versions {
		v, ok := parseVersion(name)
		switch {
		case !ok:
		case exact && v.compare(asked) != 0:
		case !exact && spec.version != "" && (!isRange || !wanted.admits(v)):
		case !exact && spec.version == "" && len(v.pre) > 0:
		// What its owner calls the latest goes before what is newer still.
		case v.compare(latest) == 0 && has(p.Tags["latest"]):
			return name, nil
		case found == "" || v.compare(best) > 0:
			best, found = v, name
		}
	}
	if found == "" {
		return "", faultf(NotFound, "there is no version %q of it", cmp.Or(spec.version, "latest"))
	}
	return found, nil
}

// strongest is the sha512 of an integrity text.
func strongest(integrity string) (string, error) {
	for word := range strings.FieldsSeq(integrity) {
		word, _, _ = strings.Cut(word, "?")
		if strings.HasPrefix(word, "sha512-") {
			return word, nil
		}
	}
	return "", faultf(Integrity, "the registry has no sha512 of the archive, so that it cannot be checked")
}

func (in *Installer) published(ctx context.Context, config *npmConfig, registry *url.URL, name string) (*published, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	address := *registry
	address.Path = strings.TrimSuffix(registry.Path, "/") + "/" + name
	address.RawPath = strings.TrimSuffix(registry.EscapedPath(), "/") + "/" + strings.ReplaceAll(name, "/", "%2f")
	body, err := in.get(ctx, config, &address, "application/vnd.npm.install-v1+json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxMetadata+1))
	if err != nil {
		return nil, transport(&address, err)
	}
	var p published
	if len(b) > maxMetadata || json.Unmarshal(b, &p) != nil || len(p.Versions) == 0 {
		return nil, faultf(Transport, "what %s says about it cannot be read", address.Host)
	}
	return &p, nil
}

// download fetches an archive into a file and checks it.
func (in *Installer) download(ctx context.Context, config *npmConfig, address *url.URL, file, integrity string) error {
	ctx, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	body, err := in.get(ctx, config, address, "*/*")
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	hash := sha512.New()
	limit := in.limits().Archive
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(body, limit+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return transport(address, err)
	case n > limit:
		return faultf(Refused, "the archive is larger than %d bytes", limit)
	case sri(hash.Sum(nil)) != integrity:
		return faultf(Integrity, "the archive from %s is not the one that the registry promises", address.Host).advise("try again; if it stays so, ask its owner")
	}
	return nil
}

// get asks for an address. Keys go where the configuration has them for, and never
// along with a redirection to somewhere else.
func (in *Installer) get(ctx context.Context, config *npmConfig, address *url.URL, accept string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", "pinch/"+version.Version)
	config.authorize(r)
	client := http.Client{}
	if in.Client != nil {
		client = *in.Client
	}
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if len(via) >= 5 || !safeTransport(next.URL) {
			return errors.New("redirected to nowhere safe")
		}
		config.authorize(next)
		return nil
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, transport(address, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, faultf(NotFound, "%s has no such package, or not for you", address.Host)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, faultf(Transport, "%s wants a key, or another one", address.Host).advise("sign in with npm, or put //" + address.Host + "/:_authToken=… into .npmrc")
	}
	return nil, faultf(Transport, "%s answers %s", address.Host, resp.Status)
}

// transport is an error on the way, without the address, which may hold a key.
func transport(address *url.URL, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return &fault{kind: Transport, err: fmt.Errorf("%s: %w", address.Host, err)}
}
