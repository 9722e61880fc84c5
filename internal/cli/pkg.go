package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/packages"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/resource"
)

const packageText = `A source is a folder, npm:NAME[@VERSION], git:HOST/PATH[@REF], or the https or
ssh address of a git repository. A folder is used where it is. Nothing of a package
is run when it is installed.
`

// place says where the package of a source is that stands in the settings of a
// scope.
func (s *config) place(source string, scope settings.Scope) (resource.PackagePlace, bool) {
	return s.placeFrom(source, s.file(scope).Folder(), scope)
}

// asked is place for a source as a person writes it, here.
func (s *config) asked(source string, scope settings.Scope) (resource.PackagePlace, error) {
	place, ok := s.placeFrom(source, s.p.cwd, scope)
	if !ok {
		return place, fmt.Errorf("%q is not the source of a package: that is a folder, npm:NAME, git:HOST/PATH, or the https or ssh address of a git repository", source)
	}
	return place, nil
}

func (s *config) placeFrom(source, folder string, scope settings.Scope) (resource.PackagePlace, bool) {
	return s.w.folders.PlacePackage(source, folder, resource.Scope(scope))
}

// installer fetches packages as the settings say.
func (s *config) installer(scope settings.Scope) (*packages.Installer, error) {
	request, err := requestOptions(s.w.settings)
	if err != nil {
		return nil, err
	}
	in := &packages.Installer{
		Client: request.Client, Getenv: s.p.getenv, Environ: os.Environ(), Home: s.p.home, Offline: s.p.offline(),
	}
	if in.Client == nil {
		in.Client = wire.NewClient(http.ProxyFromEnvironment)
	}
	perm := os.FileMode(0o700)
	if scope == settings.Project {
		in.Project, perm = s.w.folders.Cwd, 0o755
	}
	return in, os.MkdirAll(s.file(scope).Folder(), perm)
}

// offline reports whether the network is not to be used without need.
func (p *program) offline() bool {
	switch strings.ToLower(p.variable("OFFLINE")) {
	case "1", "true", "yes":
		return true
	}
	return false
}

// oneSource is the source that a command is about.
func (c *command) oneSource(p *program, g *given) (string, error) {
	switch {
	case len(g.words) == 0 || strings.TrimSpace(g.words[0]) == "":
		return "", p.misused("Missing %s source.\nUsage: pinch %s", c.name, c.line())
	case len(g.words) > 1:
		return "", p.misused("Unexpected argument %s.\nUsage: pinch %s", printable(g.words[1]), c.line())
	}
	return g.words[0], nil
}

// namedPackage is the package that a command is about.
type namedPackage struct {
	conf   *config
	scope  settings.Scope
	source string
	place  resource.PackagePlace
}

// onePackage finds the package that a command is about, and says that work on it
// begins. Without one everything has been said, see parse.
func (c *command) onePackage(p *program, words []string, doing string) (*namedPackage, error) {
	g, ok, err := c.parse(p, words)
	if !ok {
		return nil, err
	}
	n := &namedPackage{}
	if n.source, err = c.oneSource(p, g); err != nil {
		return nil, err
	}
	if n.conf, n.scope, err = p.openConfig(g); err != nil {
		return nil, err
	}
	if err := p.printLine(doing+" %s...", n.source); err != nil {
		return nil, err
	}
	if n.place, err = n.conf.asked(n.source, n.scope); err != nil {
		return nil, err
	}
	return n, nil
}

func runInstall(ctx context.Context, p *program, c *command, words []string) error {
	n, err := c.onePackage(p, words, "Installing")
	if n == nil {
		return err
	}
	conf, scope, source, place := n.conf, n.scope, n.source, n.place
	if place.Kind == resource.LocalPackage {
		switch info, err := os.Stat(place.Dir); {
		case err != nil && strings.Contains(source, "://"):
			return fmt.Errorf("%q is no address of a package: that begins with https:// or ssh://, and a repository on this machine is given by its folder", source)
		case err != nil:
			return fmt.Errorf("Path does not exist: %s", place.Dir)
		case !info.IsDir() && !info.Mode().IsRegular():
			return fmt.Errorf("%s is a pipe or a device: a package is a folder", place.Dir)
		case info.Mode().IsRegular() && !resource.IsExtension(place.Dir):
			return fmt.Errorf("%s is a file: a package is a folder, or one file of an extension; unpack an archive first", place.Dir)
		}
	}
	in, err := conf.installer(scope)
	if err != nil {
		return err
	}
	if _, err := in.Install(ctx, source, place, false); err != nil {
		return err
	}
	if err := conf.enter(ctx, source, place, scope); err != nil {
		return err
	}
	if err := p.printLine("Installed %s", source); err != nil {
		return err
	}
	conf.remark(place)
	if scope == settings.Project && p.errTerminal {
		return conf.remarkTrust("the package does")
	}
	return nil
}

// remarkTrust tells a person when what was written for the project does not count from now
// on: this run may have been told to trust it, and what had nothing to trust needed no word.
func (s *config) remarkTrust(what string) error {
	store, err := resource.ReadTrust(s.w.folders.Agent)
	if err != nil {
		return err
	}
	q := resource.TrustQuery{Needed: true, Dir: s.w.folders.Cwd, Store: store, Default: s.w.settings.DefaultProjectTrust()}
	if !q.Trusted() {
		s.p.warn("This project is not trusted, so %s not count yet: pinch trust yes trusts it from now on, --approve for one run", what)
	}
	return nil
}

// enter puts a package into the settings. An entry of it that is there already
// gets the new source and keeps its filters.
func (s *config) enter(ctx context.Context, source string, place resource.PackagePlace, scope settings.Scope) error {
	source = s.sourceFor(strings.TrimSpace(source), place, scope)
	return s.w.store.EditPackages(ctx, scope, func(list []jsontext.Value) ([]settings.Change, error) {
		i := slices.IndexFunc(list, s.is(place, scope))
		switch {
		case i < 0:
			i = len(list)
		case place.Kind == resource.LocalPackage: // its path is written in another way
			return nil, nil
		case list[i].Kind() == '{':
			return []settings.Change{settings.Set(fmt.Sprintf("packages.%d.source", i), source)}, nil
		}
		return []settings.Change{settings.Set(fmt.Sprintf("packages.%d", i), source)}, nil
	})
}

// is tells the entries of a package.
func (s *config) is(place resource.PackagePlace, scope settings.Scope) func(entry jsontext.Value) bool {
	return func(entry jsontext.Value) bool {
		if entry.Kind() == '{' {
			entry = jsonwire.Get(entry, "source")
		}
		source, ok := jsonwire.StringValue(entry)
		if !ok {
			return false
		}
		other, _ := s.place(source, scope)
		return other.Identity == place.Identity
	}
}

// remark tells what a person should know of a package: what is hidden in its
// texts, and what of it does nothing here.
func (s *config) remark(place resource.PackagePlace) {
	o := resource.Folders{Agent: s.w.folders.Agent, Home: s.w.folders.Home, Cwd: place.Dir}
	found, _ := resource.FindPackages(resource.PackageOptions{Folders: o, Temporary: []string{place.Dir}})
	var report resourceReport
	skills, problems := resource.LoadSkills(resource.Places{Folders: o, None: true, Packages: found})
	report.problems(problems)
	for _, skill := range skills {
		report.findings(skill.Findings)
	}
	templates, problems := resource.LoadTemplates(resource.Places{Folders: o, None: true, Packages: found})
	report.problems(problems)
	for _, t := range templates {
		report.findings(t.Findings)
	}
	report.print(s.p, false, []string{place.Dir})
	if !s.p.errTerminal {
		return // for scripts this is noise; pinch list --verbose says it too
	}
	extensions := countExtensions(found)
	if info, err := os.Stat(place.Dir); err == nil && !info.IsDir() {
		extensions = 1
	}
	if extensions > 0 {
		fmt.Fprintf(s.p.errs, "Extensions: %d, kept and inactive, as this version has no JavaScript host\n", extensions)
	}
}

func runRemove(ctx context.Context, p *program, c *command, words []string) error {
	n, err := c.onePackage(p, words, "Removing")
	if n == nil {
		return err
	}
	conf, scope, source, place := n.conf, n.scope, n.source, n.place
	err = conf.w.store.EditPackages(ctx, scope, func(list []jsontext.Value) ([]settings.Change, error) {
		var changes []settings.Change
		for i, entry := range slices.Backward(list) { // so that those before keep their numbers
			if conf.is(place, scope)(entry) {
				changes = append(changes, settings.Unset(fmt.Sprintf("packages.%d", i)))
			}
		}
		if changes == nil {
			return nil, errNoPackage
		}
		return changes, nil
	})
	if errors.Is(err, errNoPackage) {
		return p.noPackage(source)
	}
	if err != nil {
		return err
	}
	in, err := conf.installer(scope)
	if err != nil {
		return err
	}
	kept, err := in.Remove(ctx, source, place)
	if err != nil {
		return err
	}
	if kept {
		p.warn("The folder %s stays: pinch did not put it there", place.Dir)
	}
	return p.printLine("Removed %s", source)
}

var errNoPackage = errors.New("no such package")

func (p *program) noPackage(source string) error {
	return p.misused("No matching package found for %s", printable(source))
}

func runList(_ context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parseOptions(p, words)
	if !ok {
		return err
	}
	conf, _, err := p.openConfig(g)
	if err != nil {
		return err
	}
	sections := 0
	for _, scope := range []settings.Scope{settings.User, settings.Project} {
		file := conf.file(scope)
		if file == nil || len(file.Packages()) == 0 {
			continue
		}
		if sections++; sections > 1 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintln(p.out, map[settings.Scope]string{settings.User: "User packages:", settings.Project: "Project packages:"}[scope])
		for _, entry := range file.Packages() {
			if err := conf.show(entry, scope, g.has("--verbose")); err != nil {
				return err
			}
		}
	}
	if sections == 0 {
		return p.printLine("No packages installed.")
	}
	return nil
}

// show lists a package.
func (s *config) show(entry settings.Package, scope settings.Scope, verbose bool) error {
	p := s.p
	filtered := ""
	if entry.Delta || entry.Extensions != nil || entry.Skills != nil || entry.Prompts != nil || entry.Themes != nil {
		filtered = " (filtered)"
	}
	if err := p.printLine("  %s%s", entry.Source, filtered); err != nil {
		return err
	}
	place, ok := s.place(entry.Source, scope)
	if !ok {
		p.warn("%s is not the source of a package", entry.Source)
		return nil
	}
	if _, err := os.Stat(place.Dir); err != nil {
		if verbose || p.errTerminal {
			p.warn("%s is not installed: pinch update --extension %s does it", entry.Source, entry.Source)
		}
		return nil
	}
	if err := p.printLine("    %s", place.Dir); err != nil {
		return err
	}
	if place.Kind != resource.LocalPackage {
		state, err := packages.Inspect(place.Dir)
		if err != nil {
			return err
		}
		if state.Status == packages.Altered {
			p.warn("%s was changed after it was installed: %s", entry.Source, state.Differences)
		}
		if r := state.Record; verbose && r != nil && r.Content != "" {
			_ = p.printLine("      %s from %s", r.Short(), r.Archive)
			_ = p.printLine("      %s", r.Content)
		} else if verbose {
			_ = p.printLine("      installed by another program")
		}
	}
	if !verbose {
		return nil
	}
	return s.showOffers(entry, place)
}

// showOffers lists what a package offers, and what becomes of it.
func (s *config) showOffers(entry settings.Package, place resource.PackagePlace) error {
	only := resource.PackageEntry(entry)
	only.Source = place.Dir
	found, _ := resource.FindPackages(resource.PackageOptions{
		Folders: s.w.folders, User: resource.PackageEntries{Folder: s.w.folders.Cwd, List: []resource.PackageEntry{only}},
	})
	if len(found) == 0 { // a file
		return s.p.printLine("      extension: %s", shownState("extensions", true))
	}
	for _, offer := range found[0].Offers() {
		state := shownState(offer.Kind, offer.On)
		name, err := filepath.Rel(place.Dir, offer.Path)
		if err != nil {
			name = offer.Path
		}
		if err := s.p.printLine("      %s %s: %s", strings.TrimSuffix(offer.Kind, "s"), filepath.ToSlash(name), state); err != nil {
			return err
		}
	}
	if missing := packages.Dependencies(place.Dir); len(missing) > 0 {
		return s.p.printLine("      npm dependencies, for extensions only: %s; not installed", strings.Join(missing, ", "))
	}
	return nil
}
