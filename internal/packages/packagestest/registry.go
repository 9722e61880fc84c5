// Package packagestest is a registry of npm packages on this machine, for tests.
package packagestest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Registry is a registry. Its maps are changed only while nobody asks it.
type Registry struct {
	*httptest.Server
	Integrity map[string]string // in place of the true ones, by name@version
	Tarball   map[string]string // likewise: where archives are
	Key       string            // wanted in Authorization; "" for none

	mu       sync.Mutex
	versions map[string]map[string][]byte // archives by name and version
	latest   map[string]string
	asked    []string
}

// New starts a registry without packages.
func New() *Registry {
	r := &Registry{
		Integrity: map[string]string{}, Tarball: map[string]string{},
		versions: map[string]map[string][]byte{}, latest: map[string]string{},
	}
	r.Server = httptest.NewServer(r)
	return r
}

// Publish adds a version, which becomes the latest. Files are by their path.
func (r *Registry) Publish(name, version string, files map[string]string) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := t.WriteHeader(&tar.Header{Name: "package/" + path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[path]))}); err != nil {
			return err
		}
		if _, err := t.Write([]byte(files[path])); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	r.PublishArchive(name, version, b.Bytes())
	return nil
}

// PublishArchive is Publish for an archive of any content.
func (r *Registry) PublishArchive(name, version string, archive []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions[name] == nil {
		r.versions[name] = map[string][]byte{}
	}
	r.versions[name][version], r.latest[name] = archive, version
}

// Archive is the archive of a version.
func (r *Registry) Archive(name, version string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[name][version]
}

// Asked lists the requests since the last call: what was in Authorization, a
// blank, and the path.
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.Header.Get("Authorization")+" "+q.URL.EscapedPath())
	if r.Key != "" && q.Header.Get("Authorization") != r.Key {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if rest, ok := strings.CutPrefix(q.URL.Path, "/-/"); ok {
		name, version, _ := strings.Cut(rest, "@@")
		_, _ = w.Write(r.versions[name][version]) // who does not listen misses it
		return
	}
	name := strings.TrimPrefix(q.URL.Path, "/")
	if r.versions[name] == nil || strings.Contains(q.URL.EscapedPath()[1:], "/") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	versions := map[string]any{}
	for version, archive := range r.versions[name] {
		sum := sha512.Sum512(archive)
		dist := map[string]string{
			"tarball":   r.URL + "/-/" + name + "@@" + version,
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		if s, ok := r.Integrity[name+"@"+version]; ok {
			dist["integrity"] = s
		}
		if s, ok := r.Tarball[name+"@"+version]; ok {
			dist["tarball"] = s
		}
		versions[version] = map[string]any{"dist": dist}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"dist-tags": map[string]string{"latest": r.latest[name]}, "versions": versions})
}
