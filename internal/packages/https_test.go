package packages

import (
	"encoding/pem"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real server of repositories: git's own, behind TLS. It gives no single commits
// by itself, as many do not.
func TestGitOverHTTPS(t *testing.T) {
	dir, commits := repositoryOf(t, map[string]string{"skills/s.md": "one"}, map[string]string{"skills/s.md": "two"})
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("this git has no git-http-backend")
	}
	server := httptest.NewTLSServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}})
	defer server.Close()
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, "")
	f.in.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.folders.Home, "GIT_SSL_CAINFO=" + trusted}
	address := server.URL + "/" + filepath.Base(dir) + "/.git"
	for _, c := range []struct{ ref, want, commit string }{{"", "two", commits[1]}, {"@v1", "one", commits[0]}, {"@main", "two", commits[1]}, {"@" + commits[0][:12], "one", commits[0]}} {
		o, err := f.in.Install(t.Context(), address+c.ref, f.place("git:example.com/me/a"), false)
		if err != nil {
			t.Fatal(err)
		}
		f.has("git:example.com/me/a", "skills/s.md", c.want)
		if o.Record.Commit != c.commit || o.Record.Archive != address {
			t.Errorf("%+v", o.Record)
		}
	}
	f.in.Environ = f.in.Environ[:2]
	_, err = f.in.Install(t.Context(), address, f.place("git:example.com/me/a"), false)
	f.fails(Transport, "git fetch: ", err)
	f.has("git:example.com/me/a", "skills/s.md", "one")
}
