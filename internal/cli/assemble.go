package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/demo"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/internal/version"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/llm/replay"
	"github.com/pinch-agent/pinch/resource"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/tool"
)

// running is everything that a run of prompts needs, put together.
type running struct {
	harness *harness.Harness
	env     env.ExecutionEnv
	read    *agent.Tool
	catalog *catalog.Catalog
	demo    *demo.Server // nil unless the model is scripted

	cwd       string
	settings  *settings.Store
	scope     []catalog.Choice // models to switch between; none for all
	skills    []resource.Skill
	templates []resource.Template

	warn   func(format string, args ...any)
	warned string // what credentials warned of last
}

// close ends the run and lets go of the session.
func (r *running) close() {
	// What was said is in the session already; closing cannot lose it.
	_ = r.harness.Close()
	_ = r.env.Cleanup(context.Background())
	if r.demo != nil {
		r.demo.Close()
	}
}

// checkKey refuses a model without credentials before anything is sent.
func (r *running) checkKey(ctx context.Context) error {
	m := r.harness.Model()
	if p, _ := r.catalog.Provider(m.Provider); p.Machine || r.catalog.HasCredentials(m.Provider) {
		return nil
	}
	if err := r.catalog.StoredProblem(m.Provider); err != nil {
		return fmt.Errorf("No API key found for %s: %w", m.Ref(), err)
	}
	p, _ := r.catalog.Provider(m.Provider)
	_, err := r.catalog.Auth(ctx, m)
	missing, named := errors.AsType[*auth.UnresolvedError](err)
	switch {
	case named && len(missing.Names) > 0:
		return fmt.Errorf("No API key found for %s: models.json names %s, which is not set. Set it in the environment, or give --api-key", m.Ref(), strings.Join(missing.Names, " and "))
	case len(p.Env) > 0:
		return fmt.Errorf("No API key found for %s. Store one with pinch auth login %s, set %s in the environment, or give --api-key", m.Ref(), p.ID, strings.Join(p.Env, " or "))
	case isOwn(r.catalog, &p):
		return fmt.Errorf("No API key found for %s. Store one with pinch auth login %s, set apiKey for %s in models.json (any word where the service wants none), or give --api-key", m.Ref(), p.ID, p.ID)
	}
	return fmt.Errorf("No API key found for %s, which knows sign-ins only. Describe yours in signin.json (docs/signin.md says how, and what works instead), or choose a model of another provider with --model", m.Ref())
}

// workspace is what a working folder says about a run.
type workspace struct {
	folders  resource.Folders
	store    *settings.Store    // for modes that go on, or write settings
	settings *settings.Settings // at the start
	trusted  bool
}

// openWorkspace reads the settings of a folder and decides whether its own
// resources count.
func (p *program) openWorkspace(a *Args, cwd string) (*workspace, error) {
	w := &workspace{folders: resource.Locate(p.getenv, p.home, cwd)}
	user := settings.Read(filepath.Join(w.folders.Agent, "settings.json"))
	trust := resource.TrustQuery{
		Needed:  resource.NeedsTrust(w.folders),
		Flag:    a.Approve,
		Dir:     cwd,
		Default: settings.Merge(user, nil).DefaultProjectTrust(),
	}
	if trust.Flag == nil {
		store, err := resource.ReadTrust(w.folders.Agent)
		if err != nil && trust.Needed { // else there is nothing to decide about
			return nil, err
		}
		trust.Store = store
	}
	w.trusted = trust.Trusted()
	project := ""
	if w.trusted {
		project = cmp.Or(w.folders.Project("settings.json"), filepath.Join(w.folders.ProjectFolder(), "settings.json"))
	} else if err := settings.Read(w.folders.Project("settings.json")).Err; err != nil {
		p.warnSettings([]error{err}, false) // its sessionDir would count
	}
	w.store = settings.OpenStore(user.Path, project)
	w.settings = w.store.Settings()
	p.warnSettings(w.settings.Problems(), a.Verbose)
	return w, nil
}

// warnSettings tells what is wrong with settings. What is an error where it is
// used is left to that, and of names that no setting has only those are named
// that look like a slip; all of them when asked for.
func (p *program) warnSettings(problems []error, all bool) {
	for _, err := range problems {
		problem, single := errors.AsType[*settings.Problem](err)
		switch {
		case !single:
			p.warn("%s (%s; it counts as empty)", sentence(err), mend(err))
		case problem.AtUse, !all && problem.Kind == settings.Unknown && problem.Suggestion == "":
		default:
			p.warn("%s", sentence(err))
		}
	}
}

// sessionDirSetting is the sessionDir setting, which counts before it is known
// whether the project is trusted.
func (p *program) sessionDirSetting() (agentFolder, dir string) {
	f := resource.Locate(p.getenv, p.home, p.cwd)
	s := settings.Merge(settings.Read(filepath.Join(f.Agent, "settings.json")), settings.Read(f.Project("settings.json")))
	return f.Agent, s.SessionDir()
}

// wireFormats are those that this program speaks.
func (p *program) wireFormats() *llm.Registry {
	return llm.NewRegistry(all.Formats(all.Config{
		Client: wire.NewClient(http.ProxyFromEnvironment), Version: version.Version, Getenv: p.getenv,
	})...)
}

// catalogFor makes the catalogue of models; apis limits it to those wire
// formats, nil to none.
func (p *program) catalogFor(apis []string) *catalog.Catalog {
	return p.catalogWith(apis, p.openCredentials())
}

// catalogWith is catalogFor with the credentials that are open already.
func (p *program) catalogWith(apis []string, creds *credentials) *catalog.Catalog {
	agentFolder := resource.AgentFolder(p.getenv, p.home)
	return catalog.New(catalog.Options{
		ModelsFile: filepath.Join(agentFolder, "models.json"),
		StoreFile:  filepath.Join(agentFolder, "models-store.json"),
		Store:      creds.store,
		SignIn:     creds.use,
		APIs:       apis,
	})
}

// startCatalog makes the catalogue of models that this program can talk to, and
// the registry of wire formats behind it.
func (p *program) startCatalog(creds *credentials) (*catalog.Catalog, *llm.Registry) {
	registry := p.wireFormats()
	return p.catalogWith(append(registry.IDs(), replay.ID), creds), registry
}

// warnModelsFile tells why models.json does not count, and of slips in it.
func (p *program) warnModelsFile(c *catalog.Catalog) {
	if err := c.Problem(); err != nil {
		p.sayModelsFile("Warning", err, "; built-in providers and models work all the same")
	}
	for _, r := range c.Remarks() {
		p.warn("%v", r)
	}
}

// sayModelsFile says why models.json does not count, and what to do.
func (p *program) sayModelsFile(kind string, err error, more string) {
	for i, line := range lines(err) {
		if i == 0 {
			line = kind + ": " + line
		} else {
			line = "  " + line
		}
		fmt.Fprintln(p.errs, line)
	}
	fmt.Fprintf(p.errs, "  %s%s.\n", sentenceCase(mend(err)), more)
}

// modelsFileDecided tells of a models.json that cannot be used. Without a model
// (err), or without a key for it, the file is the cause and all there is to say;
// otherwise it is a warning, once.
func (b *base) modelsFileDecided(chosen *llm.Model, err error) error {
	problem := b.catalog.Problem()
	keyless := func() bool {
		provider, _ := b.catalog.Provider(chosen.Provider)
		return !provider.Machine && !b.catalog.HasCredentials(chosen.Provider) && b.args.APIKey == "" && b.args.Mode != ModeRPC
	}
	if problem != nil && (err != nil || chosen != nil && keyless()) {
		b.p.sayModelsFile("Error", problem, "")
		return exitError(1)
	}
	if err == nil && chosen != nil && !b.toldModelsFile {
		b.toldModelsFile = true
		b.p.warnModelsFile(b.catalog)
	}
	return err
}

// base is what all sessions of one start have in common.
type base struct {
	p        *program
	args     *Args
	catalog  *catalog.Catalog
	registry *llm.Registry
	asked    *catalog.Choice // the model that --model names; nil for none
	sessions *jsonl.Repository
	recorder *replay.Recorder // nil without --record

	toldModelsFile bool // what is wrong with models.json has been said
}

// leadsNowhere reports whether path is a link without a target; err is what
// os.Stat said. Nothing can be stored there, and what it would hold is not missing
// but out of reach.
func leadsNowhere(path string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}

// prepare reads what does not depend on a session.
func (p *program) prepare(a *Args) (*base, error) {
	if err := checkModelOptions(a); err != nil {
		return nil, err
	}
	for _, source := range a.Extensions {
		if strings.Contains(source, ":") {
			continue // of npm or git
		}
		if _, err := os.Stat(p.path(source)); err != nil {
			return nil, fmt.Errorf("The extension %s cannot be loaded: %w", source, err)
		}
	}
	if left := p.leftOut(a.Extensions); left != nil {
		p.warn("This version loads no extensions: %s left out", strings.Join(left, ", "))
	}
	folder := resource.AgentFolder(p.getenv, p.home)
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("The agent folder %s is no folder: move it away, or name another one in PINCH_AGENT_DIR", folder)
	} else if leadsNowhere(folder, err) {
		return nil, fmt.Errorf("The agent folder %s is a link to something that is not there: put it right, or name another one in PINCH_AGENT_DIR", folder)
	}
	creds := p.openCredentials()
	b := &base{p: p, args: a}
	b.catalog, b.registry = p.startCatalog(creds)
	forget(b.catalog.SecretNames(), a.keys)
	if err := creds.store.Exposure(); err != nil && p.errTerminal {
		p.warn("%s", sentence(err))
	}
	addDemo(b.catalog, a.Provider, a.Model)
	if err := p.addRecording(b.catalog, b.registry, a); err != nil {
		return nil, err
	}
	var err error
	if b.asked, err = p.resolveAsked(b.catalog, a); err != nil {
		if namesDemo(a.Provider, a.Model) {
			return nil, err // which no file has a part in
		}
		return nil, b.modelsFileDecided(nil, err)
	}
	agentFolder, sessionDir := p.sessionDirSetting()
	b.sessions = p.repository(a, agentFolder, sessionDir)
	return b, nil
}

// close ends the recording.
func (b *base) close() {
	if b.recorder != nil {
		if err := b.recorder.Close(); err != nil {
			b.p.warn("%s", sentence(err))
		}
	}
}

// start opens the session that the arguments ask for.
func (b *base) start(ctx context.Context) (*running, error) {
	sess, cwd, err := b.p.openSession(ctx, b.args, b.sessions)
	if err != nil {
		return nil, err
	}
	return b.run(sess, cwd, b.args.Name)
}

// run chooses the model for a session and puts the harness together. name is the
// name to give the session, "" for none. The session is closed after an error.
func (b *base) run(sess *session.Session, cwd, name string) (_ *running, err error) {
	defer func() {
		if err != nil {
			sess.Close()
		}
	}()
	p, a, c := b.p, b.args, b.catalog
	if err := sess.Incomplete(); err != nil {
		p.warn("%s", sentence(err))
	}
	w, err := p.openWorkspace(a, cwd)
	if err != nil {
		return nil, err
	}
	chosen, err := p.chooseModel(c, a, w.settings, sess, b.asked)
	if err = b.modelsFileDecided(chosen.model, err); err != nil {
		return nil, err
	}
	if a.APIKey != "" {
		c.SetKey(chosen.model.Provider, auth.NewSecret(a.APIKey))
	}
	if name != "" {
		if _, err := sess.SetName(name); err != nil {
			return nil, err
		}
	}
	r := &running{catalog: c, warn: p.warn, cwd: cwd, scope: chosen.scope, settings: w.store}
	if chosen.model.Provider == demoProvider {
		if r.demo, err = serveDemo(p, chosen.model.ID); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				r.demo.Close()
			}
		}()
	}
	local := p.localEnv(c, w)
	r.env = local
	tools, err := p.tools(a, w, local, r, sess)
	if err != nil {
		return nil, err
	}
	o := harness.Options{
		Model:         chosen.model,
		ThinkingLevel: chosen.level,
		Stream:        b.registry.Stream,
		Session:       sess,
		Tools:         tools,
		Credentials:   r.credentials,
		Router:        c.Router,
	}
	if err := applySettings(&o, w.settings); err != nil {
		return nil, err
	}
	if r.skills, r.templates, err = p.loadResources(a, w, &o); err != nil {
		return nil, err
	}
	if b.recorder == nil {
		if b.recorder, err = p.record(a, c, b.registry); err != nil {
			return nil, err
		}
	}
	if r.harness, err = harness.New(o); err != nil {
		return nil, plain(err)
	}
	return r, nil
}

// applySettings gives a harness what the settings say of its runs.
func applySettings(o *harness.Options, s *settings.Settings) (err error) {
	if o.Request, err = requestOptions(s); err != nil {
		return err
	}
	if o.Compaction, err = compactionOptions(s); err != nil {
		return err
	}
	if o.BranchReserveTokens, err = s.BranchReserveTokens(); err != nil {
		return err
	}
	o.SteeringMode, o.FollowUpMode = harness.QueueMode(s.SteeringMode()), harness.QueueMode(s.FollowUpMode())
	o.Retry = retryOptions(s.Retry())
	if s.ImagesBlocked() {
		o.ToLLM = new(session.ImageBlocker).ToLLM
	}
	return nil
}

// credentials finds what a request needs.
func (r *running) credentials(ctx context.Context, m *llm.Model) (harness.Credentials, error) {
	if r.demo != nil && m.Provider == demoProvider {
		return harness.Credentials{Key: r.demo.Key, BaseURL: r.demo.URL}, nil
	}
	if m.IsUnknown() {
		return harness.Credentials{}, errNoModels
	}
	access, err := r.catalog.Auth(ctx, m)
	if err != nil {
		return harness.Credentials{}, err
	}
	if access.Warning != nil && access.Warning.Error() != r.warned {
		r.warned = access.Warning.Error()
		r.warn("%s", r.warned)
	}
	return harness.Credentials{
		Key: access.Key.Reveal(), Headers: access.Headers, BaseURL: access.BaseURL, Env: access.Env,
	}, nil
}

// localEnv is this machine as the tools see it. Commands learn that an agent
// runs them, and not the keys of its models.
func (p *program) localEnv(c *catalog.Catalog, w *workspace) *env.Local {
	return &env.Local{
		Hide:    c.SecretNames(),
		Dir:     w.folders.Cwd,
		Home:    p.home,
		Shell:   p.shell(w.settings),
		Environ: append(os.Environ(), "AI_AGENT=pinch", "PINCH_CODING_AGENT=true", "PI_CODING_AGENT=true"),
	}
}

// shell is the shell that the settings name; ~ is the home folder.
func (p *program) shell(s *settings.Settings) string {
	path := s.ShellPath()
	if strings.HasPrefix(path, "~") {
		path = p.path(path)
	}
	return path
}

// tools makes the built-in tools that the arguments, the session and the settings
// select.
func (p *program) tools(a *Args, w *workspace, e *env.Local, r *running, sess *session.Session) ([]*agent.Tool, error) {
	model := func() *llm.Model {
		if r.harness == nil {
			return nil
		}
		return r.harness.Model()
	}
	var queue tool.FileQueue
	r.read = tool.Read(tool.ReadOptions{Env: e, Model: model, KeepImageSize: !w.settings.ImagesAutoResize()})
	vars := func() tool.SessionVars {
		v := tool.SessionVars{ID: sess.ID(), File: sess.File()}
		if m := model(); m != nil {
			v.Provider, v.Model, v.ReasoningLevel = m.Provider, m.ID, r.harness.ThinkingLevel()
		}
		return v
	}
	all := []*agent.Tool{
		r.read,
		tool.Bash(tool.BashOptions{Env: e, Prefix: w.settings.ShellCommandPrefix(), Session: vars}),
		tool.PowerShell(tool.BashOptions{Env: e, Session: vars}),
		tool.Edit(tool.EditOptions{Env: e, Queue: &queue}),
		tool.Write(tool.WriteOptions{Env: e, Queue: &queue}),
		tool.Grep(tool.GrepOptions{Env: e, ConfigDir: p.getenv("XDG_CONFIG_HOME")}),
		tool.Find(tool.FindOptions{Env: e, ConfigDir: p.getenv("XDG_CONFIG_HOME")}),
		tool.Ls(tool.LsOptions{Env: e}),
	}
	patch := tool.ApplyPatch(tool.ApplyPatchOptions{Env: e, Queue: &queue})
	all = append(all, patch)
	var known []string
	for _, t := range all {
		known = append(known, t.Name)
	}
	names, err := resource.SelectTools(resource.ToolSelection{
		Builtin:   known,
		Hidden:    []string{patch.Name},
		Allow:     a.Tools,
		Exclude:   a.ExcludeTools,
		NoTools:   a.NoTools,
		NoBuiltin: a.NoBuiltinTools,
		Default:   w.settings.DefaultTools(),
		Session:   session.DeclaredTools(sess.Context().Messages),
	})
	if err != nil {
		return nil, err
	}
	if p.errTerminal { // for scripts an unknown name is nothing, as with pi
		for _, entry := range a.Tools {
			name := strings.TrimLeft(entry, "+-")
			if !slices.Contains(known, name) && !strings.Contains(name, "*") {
				p.warn("--tools: there is no tool %q; there are %s", name, strings.Join(known, ", "))
			}
		}
	}
	var chosen []*agent.Tool
	for _, name := range names {
		for _, t := range all {
			if t.Name == name {
				chosen = append(chosen, t)
			}
		}
	}
	return chosen, nil
}

// requestOptions are the options of every request that settings name.
func requestOptions(s *settings.Settings) (llm.Options, error) {
	retry := s.Retry()
	o := llm.Options{
		Timeout:       retry.ProviderTimeout,
		IdleTimeout:   orNone(s.HTTPIdleTimeout()),
		MaxRetries:    retry.ProviderMaxRetries,
		MaxRetryDelay: orNone(retry.ProviderMaxRetryDelay),
	}
	for level, tokens := range s.ThinkingBudgets() {
		if o.ThinkingBudgets == nil {
			o.ThinkingBudgets = map[llm.ThinkingLevel]int{}
		}
		o.ThinkingBudgets[llm.ThinkingLevel(level)] = tokens
	}
	if proxy := s.HTTPProxy(); proxy != "" {
		address, err := proxyAddress(proxy)
		if err != nil {
			return o, err
		}
		o.Client = wire.NewClient(wire.FixedProxy(address, cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy"))))
		return o, nil
	}
	// The standard library passes over a value that it cannot read, so that
	// requests would go past the proxy. One without a scheme is fine.
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		value := os.Getenv(name)
		if !strings.Contains(value, "://") {
			value = "http://" + value
		}
		if _, err := url.Parse(value); err != nil {
			return o, fmt.Errorf("%s is no address: write it like http://proxy.example.com:3128", name)
		}
	}
	return o, nil
}

// proxyAddress reads the setting httpProxy. The error does not quote it, as it may
// hold a password.
func proxyAddress(setting string) (*url.URL, error) {
	address, err := url.Parse(setting)
	if err == nil && address.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, address.Scheme) {
		return address, nil
	}
	return nil, errors.New("The setting httpProxy is no address: write it like http://proxy.example.com:3128")
}

// orNone turns the settings' 0, which is "no bound", into the negative value
// that says so to the engine.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func compactionOptions(s *settings.Settings) (compact.Settings, error) {
	c, err := s.Compaction()
	out := compact.Settings{
		Disabled: !c.Enabled, ReserveTokens: c.ReserveTokens, KeepRecentTokens: c.KeepRecentTokens,
		Overrides: make(map[string]compact.Override, len(c.Overrides)),
	}
	for model, o := range c.Overrides {
		out.Overrides[model] = compact.Override(o)
	}
	return out, err
}

func retryOptions(r settings.Retry) harness.Retry {
	return harness.Retry{
		Disabled:   !r.Enabled || r.MaxRetries == 0,
		MaxRetries: r.MaxRetries,
		BaseDelay:  max(r.BaseDelay, 1), // 0 is the engine's "by default"
		MaxDelay:   max(r.MaxAgentDelay, 1),
	}
}
