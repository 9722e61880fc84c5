package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/auth/signin"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/packages"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/internal/version"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/resource"
)

// examine makes all checks. It fails only when ctx ends.
func (d *doctor) examine(ctx context.Context, online bool) error {
	w := d.workspace()
	c, store := d.p.lookCatalog()
	for _, part := range []struct {
		topic string
		check func(ctx context.Context)
	}{
		{"program", d.program},
		{"folders", d.folders},
		{"settings", func(context.Context) { d.settings(w) }},
		{"keys", func(ctx context.Context) { d.keys(ctx, c, store) }},
		{"model", func(context.Context) { d.model(c, w) }},
		{"sessions", d.sessions},
		{"project", func(context.Context) { d.project(w) }},
		{"resources", func(context.Context) { d.resources(w) }},
		{"packages", func(context.Context) { d.packages(w) }},
		{"shell", func(ctx context.Context) { d.shell(ctx, w) }},
		{"network", func(context.Context) { d.network() }},
		{"terminal", func(context.Context) { d.terminal() }},
		{"online", func(ctx context.Context) {
			if online {
				d.online(ctx, w)
			}
		}},
	} {
		d.topic = part.topic
		part.check(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// workspace opens the working folder without a word. A trust store that cannot be
// read lets nothing pass, which is told where trust is.
func (d *doctor) workspace() *workspace {
	quiet := *d.p
	quiet.errs = io.Discard
	w, err := quiet.openWorkspace(&Args{}, quiet.cwd)
	if err != nil {
		w, _ = quiet.openWorkspace(&Args{Approve: new(false)}, quiet.cwd) // fails only where trust is looked up
	}
	return w
}

func (d *doctor) program(context.Context) {
	d.ok("pinch %s, %s, %s/%s", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (d *doctor) folders(context.Context) {
	p := d.p
	if p.home == "" {
		d.warn("set HOME", "No home folder is known")
	}
	folder := resource.AgentFolder(p.getenv, p.home)
	own, pi := p.getenv("PINCH_AGENT_DIR"), p.getenv("PI_CODING_AGENT_DIR")
	from := ""
	switch {
	case own != "" && pi != "" && p.path(own) != p.path(pi):
		from = " (PINCH_AGENT_DIR; PI_CODING_AGENT_DIR is another one and does not count)"
	case own != "":
		from = " (PINCH_AGENT_DIR)"
	case pi != "":
		from = " (PI_CODING_AGENT_DIR)"
	}
	info, err := os.Stat(folder)
	switch {
	case leadsNowhere(folder, err):
		d.fail("put it right, or name another folder", "Agent folder %s%s is a link to something that is not there", folder, from)
		return
	case errors.Is(err, os.ErrNotExist):
		advice := ""
		if _, err := os.Stat(filepath.Join(p.home, ".pi", "agent")); err == nil && from == "" {
			advice = "pinch import pi takes over what ~/.pi/agent holds"
		}
		d.add(fine, advice, "Agent folder %s%s: not there yet, made when something is stored", folder, from)
		d.writable("Agent folder", folder)
		return
	case err != nil:
		d.fail("make it a folder that you can read", "Agent folder %s%s: %v", folder, from, err)
		return
	case !info.IsDir():
		d.fail("move it away", "Agent folder %s%s is no folder", folder, from)
		return
	}
	d.ok("Agent folder %s%s", folder, from)
	d.writable("Agent folder", folder)
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		d.warn("chmod go-w "+folder, "Other users may write to %s: they could change what pinch does", folder)
	}
	for _, name := range []string{"signin.json", "models.json", "settings.json"} {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS == "windows" {
			continue
		}
		if info.Mode().Perm()&0o022 != 0 {
			d.warn("chmod 600 "+path, "Other users may write to %s", path)
		}
	}
}

func (d *doctor) settings(w *workspace) {
	found := 0
	for _, problem := range w.settings.Problems() {
		p, single := errors.AsType[*settings.Problem](problem)
		switch {
		case !single:
			d.fail(mend(problem)+"; it counts as empty", "%v", problem)
		case p.Kind == settings.Unknown && p.Suggestion == "":
			continue // of another version or an extension
		case p.AtUse:
			d.fail("correct it; no run starts before", "%v", problem)
		default:
			d.warn("correct or remove it", "%v", problem)
		}
		found++
	}
	if _, err := requestOptions(w.settings); err != nil {
		d.fail("correct it; no run starts before", "%v", err)
		found++
	}
	for _, f := range []*settings.File{w.settings.User, w.settings.Project} {
		if f == nil || f.Path == "" || f.Err != nil {
			continue
		}
		if _, err := os.Stat(f.Path); err == nil && found == 0 {
			d.ok("%s", f.Path)
		} else if err != nil && f == w.settings.User {
			d.ok("%s: not there, defaults count", f.Path)
		}
	}
}

// keys looks at the files of credentials and models and at every provider that is
// set up.
func (d *doctor) keys(ctx context.Context, c *catalog.Catalog, store *auth.Store) {
	folder := resource.AgentFolder(d.p.getenv, d.p.home)
	if err := c.Problem(); err != nil {
		d.fail(mend(err)+"; built-in models work all the same", "%s", strings.Join(lines(err), "; "))
	}
	for _, r := range c.Remarks() {
		d.warn("correct it, or leave it: it counts for nothing", "%v", r)
	}
	if err := store.Problem(); err != nil {
		d.fail(mend(err)+"; what it holds does not count", "%v", err)
	}
	if err := store.Exposure(); err != nil {
		d.warn("chmod 600 "+store.Path(), "%v", err)
	}
	if _, err := signin.Load(filepath.Join(folder, "signin.json")); err != nil {
		d.fail(mend(err)+"; stored sign-ins are not used before", "%v", err)
	}
	if old, err := readOldKeys(folder); err == nil && len(old.keys)+len(old.oauth) > 0 {
		d.warn("start pinch with a prompt once: it moves them to auth.json where it can", "There are keys in files of former times (apiKeys in settings.json, oauth.json)")
	}
	if store.Problem() != nil {
		return // no provider is asked for before
	}
	for _, s := range providerStates(ctx, c, store) {
		from, kind := s.from(), s.what()
		if s.problem != "" {
			advice := "pinch auth login " + s.id + " stores another one"
			if _, known := c.Provider(s.id); !known {
				advice = "remove the entry, or describe the provider in models.json"
			}
			d.warn(advice, "%s: %s from %s: %s", s.id, kind, from, s.problem)
			continue
		}
		if s.kind == typeOAuth {
			kind += ", expires: " + s.expiry(time.Now())
		}
		d.ok("%s: %s from %s", s.id, kind, from)
		if path := filepath.Join(folder, s.source); s.source == "models.json" && s.value == "literal" && runtime.GOOS != "windows" {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o044 != 0 {
				d.warn("chmod 600 "+path, "Other users may read %s, which may hold the key of %s", path, s.id)
			}
		}
	}
	if len(c.Available()) == 0 {
		d.fail("pinch auth login PROVIDER, or a key in the environment, such as ANTHROPIC_API_KEY", "No provider is set up")
	}
}

// model looks at the model that a new session starts with.
func (d *doctor) model(c *catalog.Catalog, w *workspace) {
	s := w.settings
	addDemo(c, s.DefaultProvider(), "")
	if len(c.Available()) == 0 {
		return // there is no provider
	}
	var scope []catalog.Choice
	if patterns := s.EnabledModels(); len(patterns) > 0 {
		var warnings []string
		scope, warnings = c.Scope(patterns)
		for _, text := range warnings {
			d.warn("correct enabledModels; pinch --list-models shows what is set up", "%s", text)
		}
	}
	start, err := c.Start(catalog.StartOptions{Scope: scope, Provider: s.DefaultProvider(), Model: s.DefaultModel()})
	if err != nil {
		d.fail("set defaultProvider and defaultModel to one of pinch --list-models", "%v", err)
		return
	}
	ref := start.Model.Ref()
	if want := s.DefaultModel(); want != "" && !strings.HasSuffix(ref, want) {
		d.warn("change defaultProvider and defaultModel, or sign in to the provider", "New sessions start with %s, as the default %s/%s is not set up or not in enabledModels", ref, s.DefaultProvider(), want)
		return
	}
	if _, err := d.p.wireFormats().API(start.Model.API); err != nil {
		d.fail("choose another model with --list-models", "%s speaks the wire format %s, which this version does not", ref, start.Model.API)
		return
	}
	d.ok("New sessions start with %s", ref)
}

func (d *doctor) project(w *workspace) {
	d.ok("Working folder %s", w.folders.Cwd)
	if !resource.NeedsTrust(w.folders) {
		d.ok("It brings no settings, skills, templates or prompts of its own that would need trust")
		return
	}
	if _, err := resource.ReadTrust(w.folders.Agent); err != nil {
		d.fail(mend(err)+"; pinch does not start here without --approve or --no-approve", "%v", err)
	}
	if w.trusted {
		d.ok("It is trusted: its own settings, skills, templates and prompts count")
		return
	}
	d.warn("look at them; --approve trusts them for one run, pinch trust yes for good", "It is not trusted: its own settings, skills, templates and prompts do not count")
}

// maxRemarks is how many remarks on resources are listed.
const maxRemarks = 20

func (d *doctor) resources(w *workspace) {
	f := d.p.findResources(&Args{}, w)
	d.ok("%s, %s, %s, %s", plural(len(f.files), "context file"), plural(len(f.skills), "skill"),
		plural(len(f.templates), "template"), plural(len(f.packages), "package"))
	servers := filepath.Join(w.folders.Agent, "mcp.json")
	if _, err := os.Lstat(servers); err == nil {
		d.ok("%s is kept: this version uses no MCP servers", servers)
	}
	said := map[string]bool{}
	for _, l := range f.report.lines {
		if l.weight < forOwners || said[l.text] {
			continue
		}
		said[l.text] = true
		if len(said) <= maxRemarks {
			hint := "look at the file before you use it"
			if strings.HasSuffix(l.text, " is not installed") {
				hint = "pinch update --extensions installs what the settings name"
			}
			d.warn(hint, "%s", l.text)
		}
	}
	if n := len(said) - maxRemarks; n > 0 {
		d.warn("pinch --verbose with a prompt lists all", "%d more remarks", n)
	}
}

// packages compares what is installed with what was. What is not there at all is
// among the remarks on resources.
func (d *doctor) packages(w *workspace) {
	conf := &config{d.p, w}
	intact := 0
	for _, scope := range []settings.Scope{settings.User, settings.Project} {
		file := conf.file(scope)
		if file == nil {
			continue
		}
		for _, entry := range file.Packages() {
			place, ok := conf.place(entry.Source, scope)
			if !ok || place.Kind == resource.LocalPackage {
				continue // it is used as it stands
			}
			again := fmt.Sprintf("pinch update --extension %s --force", entry.Source)
			switch state, err := packages.Inspect(place.Dir); {
			case err != nil:
				d.warn(again+" puts it there again", "%s cannot be looked at: %v", entry.Source, err)
			case state.Status == packages.Altered:
				d.warn(again+" puts it there as it was published; what was changed is lost",
					"%s was changed after it was installed, in %s: %s", entry.Source, place.Dir, state.Differences)
			case state.Status == packages.Strange:
				d.add(fine, again+" puts one there that can", "%s was put there by another program, and cannot be checked", entry.Source)
			case state.Status == packages.Intact:
				intact++
			}
		}
	}
	if intact > 0 {
		d.ok("Packages that are as they were installed: %d", intact)
	}
}

// shellPatience is how long a shell may take to say a word.
const shellPatience = 10 * time.Second

func (d *doctor) shell(ctx context.Context, w *workspace) {
	local := &env.Local{Dir: d.p.cwd, Home: d.p.home, Shell: d.p.shell(w.settings)}
	var out bytes.Buffer
	exit, err := local.Exec(ctx, env.Command{Line: `printf '%s %s' "$0" "$BASH_VERSION"`, Timeout: shellPatience, Output: &out})
	_ = local.Cleanup(context.WithoutCancel(ctx))
	switch {
	case err != nil:
		d.fail("install bash, or name a shell in the setting shellPath", "Commands cannot be run: %v", err)
	case exit.Code != 0:
		d.fail("run it by hand; the setting shellPath names another one", "The shell ends with status %d: %s", exit.Code, out.String())
	default:
		d.ok("Commands run in %s", out.String())
	}
	git, err := exec.LookPath("git")
	if err != nil {
		d.warn("install git: models use it, and packages come by it", "git is not on PATH")
		return
	}
	d.ok("git is %s", git)
}

// network tells by which ways requests go. Addresses may hold passwords.
func (d *doctor) network() {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"} {
		value := d.p.getenv(name)
		if value == "" {
			name = strings.ToLower(name)
			value = d.p.getenv(name)
		}
		switch address, err := url.Parse(value); {
		case value == "":
		case strings.EqualFold(name, "NO_PROXY"):
			d.ok("%s is %s", name, value)
		case strings.EqualFold(name, "ALL_PROXY"):
			d.warn("set HTTPS_PROXY and HTTP_PROXY", "%s is set and not looked at", name)
		case err == nil && address.Host != "":
			d.ok("%s is %s", name, address.Host)
		case err == nil && address.Scheme == "", err != nil && !strings.Contains(value, "//"):
			d.ok("%s is set, without a scheme; http is meant", name)
		default:
			d.fail("write it like http://proxy.example.com:3128", "%s is no address", name)
		}
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if path := d.p.getenv(name); path != "" && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
			if _, err := os.Stat(path); err != nil && !strings.Contains(path, ":") {
				d.warn("correct or unset it: certificates are looked for there", "%s: %v", name, err)
			}
		}
	}
	if v := d.p.variable("OFFLINE"); v != "" {
		d.ok("Offline (%s): nothing is fetched, requests to models go out all the same", v)
	}
	if len(d.checks) > 0 && d.checks[len(d.checks)-1].topic != d.topic {
		d.ok("No proxy is set")
	}
}

func (d *doctor) terminal() {
	p := d.p
	var names []string
	for _, s := range []struct {
		name string
		is   bool
	}{{"input", p.inTerminal}, {"output", p.outTerminal}, {"errors", p.errTerminal}} {
		if s.is {
			names = append(names, s.name)
		}
	}
	if len(names) == 0 {
		d.ok("No stream is a terminal")
		return
	}
	text := "A terminal for " + strings.Join(names, ", ")
	term := p.getenv("TERM")
	if term != "" {
		text += ", TERM " + term
	}
	if c := p.getenv("COLORTERM"); c != "" {
		text += ", COLORTERM " + c
	}
	if p.getenv("NO_COLOR") != "" {
		text += ", NO_COLOR"
	}
	d.ok("%s", text)
	if runtime.GOOS == "windows" {
		return
	}
	if term == "" || term == "dumb" {
		d.warn("set TERM to the name of the terminal, such as xterm-256color", "TERM does not say what the terminal can do")
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		locale := p.getenv(name)
		if locale == "" {
			continue
		}
		if l := strings.ToLower(locale); !strings.Contains(l, "utf-8") && !strings.Contains(l, "utf8") {
			d.warn("set "+name+" to a UTF-8 locale, such as C.UTF-8", "%s is %s: other characters than ASCII may not show", name, locale)
		}
		break
	}
}

// size is a number of bytes for people.
func size(n uint64) string {
	for _, unit := range []struct {
		of   uint64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.of {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.of), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
