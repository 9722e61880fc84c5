package packages

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/packages/packagestest"
	"github.com/pinch-agent/pinch/resource"
)

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		os.Exit(beVictim())
	}
	goleak.VerifyTestMain(m)
}

// registry is a registry that ends with the test.
type registry struct{ *packagestest.Registry }

func newRegistry(t testing.TB) registry {
	r := packagestest.New()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return registry{r}
}

func (r registry) publish(t testing.TB, name, version string, files map[string]string) {
	t.Helper()
	if err := r.Publish(name, version, files); err != nil {
		t.Fatal(err)
	}
}

// fixture is an agent folder with an installer.
type fixture struct {
	t       *testing.T
	folders resource.Folders
	in      *Installer
}

func newFixture(t *testing.T, registry string) *fixture {
	root := t.TempDir()
	f := &fixture{t: t, folders: resource.Folders{Agent: filepath.Join(root, "agent"), Home: filepath.Join(root, "home"), Cwd: root}}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f.in = &Installer{Client: &http.Client{Transport: transport}, Home: f.folders.Home, Getenv: func(name string) string {
		if name == "npm_config_registry" {
			return registry
		}
		return ""
	}}
	return f
}

func (f *fixture) place(source string) resource.PackagePlace {
	f.t.Helper()
	place, ok := f.folders.PlacePackage(source, f.folders.Agent, resource.User)
	if !ok {
		f.t.Fatalf("%s has no place", source)
	}
	return place
}

func (f *fixture) install(source string, force bool) (Outcome, error) {
	f.t.Helper()
	return f.in.Install(f.t.Context(), source, f.place(source), force)
}

func (f *fixture) must(source string) Outcome {
	f.t.Helper()
	o, err := f.install(source, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

// has checks the content of a package, and that nothing unfinished is left.
func (f *fixture) has(source, file, want string) {
	f.t.Helper()
	place := f.place(source)
	if b, err := os.ReadFile(filepath.Join(place.Dir, filepath.FromSlash(file))); err != nil || string(b) != want {
		f.t.Errorf("%s of %s: %q %v, want %q", file, source, b, err, want)
	}
	if left, err := os.ReadDir(filepath.Join(place.Root, tempName)); err != nil || len(left) > 0 {
		f.t.Errorf("left behind: %v %v", left, err)
	}
}

func (f *fixture) fails(kind Kind, text string, err error) {
	f.t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind || !strings.Contains(err.Error(), text) {
		f.t.Errorf("got %v, want %s: %s", err, kind, text)
	}
}

func TestNPM(t *testing.T) {
	r := newRegistry(t)
	r.publish(t, "@me/a", "1.0.0", map[string]string{"skills/s.md": "one"})
	r.publish(t, "@me/a", "1.1.0", map[string]string{"skills/s.md": "two"})
	f := newFixture(t, r.URL)
	o := f.must("npm:@me/a@1.0.0")
	f.has("npm:@me/a", "skills/s.md", "one")
	if o.Current || o.Previous != nil || o.Record.Version != "1.0.0" || !strings.HasPrefix(o.Record.Integrity, "sha512-") || o.Record.Source != "npm:@me/a@1.0.0" {
		t.Errorf("%+v", o)
	}
	if o := f.must("npm:@me/a@1.0.0"); !o.Current {
		t.Errorf("%+v", o)
	}
	o = f.must("npm:@me/a@^1")
	f.has("npm:@me/a", "skills/s.md", "two")
	if o.Previous == nil || o.Previous.Version != "1.0.0" || o.Record.Version != "1.1.0" {
		t.Errorf("%+v", o)
	}
	if s, err := Inspect(f.place("npm:@me/a").Dir); err != nil || s.Status != Intact || s.Record.Content != o.Record.Content {
		t.Errorf("%+v %v", s, err)
	}
	// What does not come leaves what is there.
	for _, c := range []struct {
		source, text string
		kind         Kind
	}{
		{"npm:@me/a@2", `no version "2"`, NotFound},
		{"npm:@me/a@nightly", `no version "nightly"`, NotFound},
		{"npm:@me/none", "no such package", NotFound},
		{"npm:@me/a@npm:b", "no version, tag or range", Invalid},
	} {
		_, err := f.install(c.source, false)
		f.fails(c.kind, c.text, err)
	}
	f.has("npm:@me/a", "skills/s.md", "two")
	f.in.Offline = true
	_, err := f.install("npm:@me/a", false)
	f.fails(Offline, "network is not used", err)
	f.in.Offline = false
	if kept, err := f.in.Remove(t.Context(), "npm:@me/a", f.place("npm:@me/a")); kept || err != nil {
		t.Error(kept, err)
	}
	if left, _ := filepath.Glob(filepath.Join(f.place("npm:@me/a").Root, "node_modules", "*")); len(left) > 0 {
		t.Error(left)
	}
}

func TestWhatIsPromisedIsChecked(t *testing.T) {
	r := newRegistry(t)
	r.publish(t, "a", "1.0.0", map[string]string{"skills/s.md": "one"})
	f := newFixture(t, r.URL)
	f.must("npm:a")
	r.publish(t, "a", "1.1.0", map[string]string{"skills/s.md": "two"})
	other := sha512.Sum512(nil)
	for integrity, text := range map[string]string{sri(other[:]): "not the one", "sha1-abc": "no sha512", "": "no sha512"} {
		r.Integrity["a@1.1.0"] = integrity
		_, err := f.install("npm:a", false)
		f.fails(Integrity, text, err)
		f.has("npm:a", "skills/s.md", "one")
	}
	delete(r.Integrity, "a@1.1.0")
	for _, address := range []string{"ftp://x/y", "http://198.51.100.1/x.tgz", "file:///etc/passwd", "https://key@x/y", ""} {
		r.Tarball["a@1.1.0"] = address
		_, err := f.install("npm:a", false)
		f.fails(Refused, "no https address", err)
	}
	delete(r.Tarball, "a@1.1.0")
	// A version is what it was once.
	r.publish(t, "a", "1.0.0", map[string]string{"skills/s.md": "another one"})
	_, err := f.install("npm:a@1.0.0", false)
	f.fails(Integrity, "another one", err)
	f.has("npm:a", "skills/s.md", "one")
	// A bad archive leaves nothing but what was there.
	r.PublishArchive("a", "1.2.0", gzipped(t, tarOf(t, entry{name: "package/ok", content: "x"}, entry{name: "package/../../../evil", content: "x"})))
	_, err = f.install("npm:a", false)
	f.fails(Refused, "leads out", err)
	f.has("npm:a", "skills/s.md", "one")
	f.in.Limits = Limits{Archive: 10}
	r.publish(t, "a", "1.3.0", map[string]string{"x": "y"})
	_, err = f.install("npm:a", false)
	f.fails(Refused, "larger than 10 bytes", err)
}

func TestChangedAndForeignFolders(t *testing.T) {
	r := newRegistry(t)
	r.publish(t, "a", "1.0.0", map[string]string{"skills/s.md": "one", "b": "b"})
	f := newFixture(t, r.URL)
	f.must("npm:a")
	dir := f.place("npm:a").Dir
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("skills/s.md", "mine")
	write("new", "mine")
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	s, err := Inspect(dir)
	if err != nil || s.Status != Altered || s.Differences.String() != "b (missing), new (new), skills/s.md" {
		t.Fatalf("%+v %v", s, err)
	}
	r.publish(t, "a", "1.1.0", map[string]string{"skills/s.md": "two"})
	_, err = f.install("npm:a", false)
	f.fails(Changed, "b (missing), new (new), skills/s.md", err)
	f.has("npm:a", "skills/s.md", "mine")
	if _, err := f.install("npm:a", true); err != nil {
		t.Fatal(err)
	}
	f.has("npm:a", "skills/s.md", "two")
	write(File, `{"files": {}}`)
	if s, err := Inspect(dir); err != nil || s.Status != Altered {
		t.Errorf("%+v %v", s, err)
	}
	// Another program's folder is left alone.
	if err := os.Remove(filepath.Join(dir, File)); err != nil {
		t.Fatal(err)
	}
	if s, err := Inspect(dir); err != nil || s.Status != Strange {
		t.Errorf("%+v %v", s, err)
	}
	_, err = f.install("npm:a", false)
	f.fails(Foreign, "not put there by pinch", err)
	if kept, err := f.in.Remove(t.Context(), "npm:a", f.place("npm:a")); !kept || err != nil {
		t.Error(kept, err)
	}
	f.has("npm:a", "skills/s.md", "two")
}

func TestKeysGoWhereTheyBelong(t *testing.T) {
	elsewhere := newRegistry(t)
	elsewhere.publish(t, "a", "1.0.0", map[string]string{"x": "y"})
	r := newRegistry(t)
	r.PublishArchive("a", "1.0.0", elsewhere.Archive("a", "1.0.0"))
	r.Tarball["a@1.0.0"] = elsewhere.URL + "/-/a@@1.0.0"
	r.Key = "Bearer geheim"
	f := newFixture(t, r.URL)
	_, err := f.install("npm:a", false)
	f.fails(Transport, "wants a key", err)
	if err := os.MkdirAll(f.folders.Home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.folders.Home, ".npmrc"), []byte(strings.TrimPrefix(r.URL, "http:")+"/:_authToken=geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := f.must("npm:a")
	if asked := elsewhere.Asked(); len(asked) != 1 || asked[0] != " /-/a@@1.0.0" {
		t.Errorf("%q", asked)
	}
	b, err := os.ReadFile(filepath.Join(f.place("npm:a").Dir, File))
	if err != nil || strings.Contains(string(b), "geheim") || o.Record.Archive == "" {
		t.Errorf("%s %v", b, err)
	}
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, r.URL+q.URL.Path, http.StatusFound)
	}))
	defer redirect.Close()
	r.Key = ""
	f.in.Getenv = func(name string) string {
		if name == "npm_config_registry" {
			return redirect.URL
		}
		return ""
	}
	if err := os.WriteFile(filepath.Join(f.folders.Home, ".npmrc"), []byte(strings.TrimPrefix(redirect.URL, "http:")+"/:_authToken=geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Asked()
	if _, err := f.install("npm:a", true); err != nil {
		t.Fatal(err)
	}
	for _, line := range r.Asked() {
		if strings.Contains(line, "geheim") {
			t.Errorf("the key went along: %q", line)
		}
	}
}

// Many at once, of one package and of several: each ends well, one after another.
func TestConcurrentInstalls(t *testing.T) {
	r := newRegistry(t)
	for _, name := range []string{"a", "b"} {
		r.publish(t, name, "1.0.0", map[string]string{"x": "one"})
		r.publish(t, name, "2.0.0", map[string]string{"x": "two"})
	}
	f := newFixture(t, r.URL)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			source := fmt.Sprintf("npm:%c@%d.0.0", "ab"[i%2], 1+i/2%2)
			if _, err := f.in.Install(t.Context(), source, f.place(source), false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"npm:a", "npm:b"} {
		if s, err := Inspect(f.place(name).Dir); err != nil || s.Status != Intact {
			t.Errorf("%+v %v", s, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	held, err := enter(t.Context(), f.place("npm:a").Root)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.in.Install(ctx, "npm:a", f.place("npm:a"), false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	held.leave()
}

// Where folders cannot change places, one that died between two steps is put
// right by the next.
func TestUnfinishedReplacement(t *testing.T) {
	r := newRegistry(t)
	r.publish(t, "@me/a", "1.0.0", map[string]string{"x": "one"})
	f := newFixture(t, r.URL)
	f.must("npm:@me/a")
	place := f.place("npm:@me/a")
	w, err := enter(t.Context(), place.Root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.files, "x"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.moveAside(s.files, place.Dir); err != nil {
		t.Fatal(err)
	}
	w.leave()
	f.has("npm:@me/a", "x", "new")
	if w, err = enter(t.Context(), place.Root); err != nil {
		t.Fatal(err)
	}
	if err := w.moveAside(filepath.Join(place.Root, "nothing"), place.Dir); err == nil {
		t.Error("a folder was replaced by none")
	}
	w.leave()
	f.has("npm:@me/a", "x", "new")
	if w, err = enter(t.Context(), place.Root); err != nil {
		t.Fatal(err)
	}
	if s, err = w.stage(); err != nil {
		t.Fatal(err)
	}
	if err := w.moveAside(s.files, place.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(place.Dir); err != nil { // as if the second step had not been
		t.Fatal(err)
	}
	w.leave()
	f.has("npm:@me/a", "x", "new")
}

// repositoryOf makes a repository with a commit of each content, tagged v1, v2, …
func repositoryOf(t testing.TB, contents ...map[string]string) (dir string, commits []string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed")
	}
	dir = t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q", "-b", "main")
	for i, files := range contents {
		for name, content := range files {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if target, ok := strings.CutPrefix(content, "-> "); ok {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "-A")
		run("commit", "-q", "-m", "x")
		run("tag", fmt.Sprintf("v%d", i+1))
		commits = append(commits, run("rev-parse", "HEAD"))
	}
	return dir, commits
}

// gitFixture is a fixture whose git takes repositories of this machine.
func gitFixture(t *testing.T) *fixture {
	f := newFixture(t, "")
	f.in.protocols = []string{"file"}
	f.in.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.folders.Home, "ANTHROPIC_API_KEY=geheim"}
	return f
}

func (f *fixture) installGit(dir, ref string, force bool) (Outcome, error) {
	f.t.Helper()
	source := "git:file://" + filepath.ToSlash(dir)
	if ref != "" {
		source += "@" + ref
	}
	return f.in.Install(f.t.Context(), source, f.place("git:example.com/me/a"), force)
}

func TestGit(t *testing.T) {
	dir, commits := repositoryOf(t, map[string]string{
		"skills/s.md": "one\n", "secret.md": "kept $Format:%H$", ".gitattributes": "secret.md export-ignore export-subst\n*.md text eol=crlf filter=evil\n",
		".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% /nowhere\n",
	}, map[string]string{"skills/s.md": "two"})
	f := gitFixture(t)
	o, err := f.installGit(dir, "v1", false)
	if err != nil {
		t.Fatal(err)
	}
	f.has("git:example.com/me/a", "skills/s.md", "one\n")
	f.has("git:example.com/me/a", "secret.md", "kept $Format:%H$")
	if o.Record.Commit != commits[0] {
		t.Errorf("%+v", o.Record)
	}
	if _, err := os.Stat(filepath.Join(f.place("git:example.com/me/a").Dir, ".git")); err == nil {
		t.Error("there is a .git")
	}
	if o, err = f.installGit(dir, commits[0], false); err != nil || !o.Current {
		t.Errorf("%+v %v", o, err)
	}
	for _, ref := range []string{"", "main", commits[1], commits[1][:10]} {
		if o, err = f.installGit(dir, ref, ref != ""); err != nil || o.Record.Commit != commits[1] {
			t.Errorf("%q: %+v %v", ref, o.Record, err)
		}
		f.has("git:example.com/me/a", "skills/s.md", "two")
	}
	_, err = f.installGit(dir, "none", false)
	f.fails(Transport, "none", err)
	_, err = f.installGit(dir, "0123456789", false)
	f.fails(NotFound, "no commit", err)
	_, err = f.installGit(filepath.Join(dir, "nowhere"), "", false)
	f.fails(Transport, "git fetch", err)
	f.has("git:example.com/me/a", "skills/s.md", "two")
	// Without the exception of the tests, no repository of this machine.
	f.in.protocols = nil
	_, err = f.installGit(dir, "v1", false)
	f.fails(Invalid, "not by file", err)
}

func TestLinksOfRepositories(t *testing.T) {
	dir, _ := repositoryOf(t, map[string]string{"skills/s.md": "one", "out": "-> /etc/passwd"})
	f := gitFixture(t)
	_, err := f.installGit(dir, "", false)
	f.fails(Refused, `"out" is a link`, err)
	if _, err := os.Stat(f.place("git:example.com/me/a").Dir); err == nil {
		t.Error("something was installed")
	}
}

func TestGitEnvironment(t *testing.T) {
	got := strings.Join(gitEnviron([]string{"PATH=/bin", "ANTHROPIC_API_KEY=geheim", "GIT_DIR=/x", "GIT_CONFIG_COUNT=1", "SSH_AUTH_SOCK=/s", "https_proxy=p"}), " ")
	for _, unwanted := range []string{"geheim", "GIT_DIR", "GIT_CONFIG"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("%s in %s", unwanted, got)
		}
	}
	for _, wanted := range []string{"PATH=/bin", "SSH_AUTH_SOCK=/s", "https_proxy=p", "GIT_TERMINAL_PROMPT=0"} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %s in %s", wanted, got)
		}
	}
}
