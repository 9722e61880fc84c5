package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/pinch-agent/pinch/internal/packages"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/resource"
)

const updateText = `Packages whose source names an exact version or a ref stay as they are; all that
are missing are installed. A package that was changed here is left alone without
--force.
`

// errNoSelfUpdate answers who asks pinch to update itself.
var errNoSelfUpdate = errors.New("pinch has no public home yet that it could update itself from: build it again from its sources. pinch update --extensions updates packages, pinch update --models fetches lists of models, --all does both")

// runUpdate is "pinch update".
func runUpdate(ctx context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	asked := 0
	for _, name := range []string{"--models", "--extensions", "--extension", "--self", "--all"} {
		if g.has(name) {
			asked++
		}
	}
	source := g.options["--extension"]
	switch {
	case g.has("--models") && asked == 1:
		return p.updateModels(ctx, g)
	case g.has("--url"):
		return p.misused("--url belongs to --models.\nUsage: pinch %s", c.line())
	case asked == 0 && len(g.words) == 1:
		if source = g.words[0]; source != "self" && source != "pi" && source != "pinch" {
			break
		}
		return errNoSelfUpdate
	case len(g.words) > 0 || asked > 1 || g.has("--extension") && source == "":
		return p.misused("Usage: pinch %s", c.line())
	case asked == 0 || g.has("--self"):
		return errNoSelfUpdate
	}
	err = p.updatePackages(ctx, g, source)
	if g.has("--all") {
		err = errors.Join(err, p.updateModels(ctx, g))
	}
	if _, isStatus := errors.AsType[exitError](err); isStatus {
		return exitError(1)
	}
	return err
}

// updatePackages brings all packages up to date, or the one of a source.
func (p *program) updatePackages(ctx context.Context, g *given, source string) error {
	if p.offline() && source == "" {
		return p.printLine("Skipped package updates (offline mode)")
	}
	conf, _, err := p.openConfig(g)
	if err != nil {
		return err
	}
	matched, failed := false, false
	for _, scope := range []settings.Scope{settings.Project, settings.User} {
		file := conf.file(scope)
		if file == nil {
			continue
		}
		in, err := conf.installer(scope)
		if err != nil {
			return err
		}
		for _, entry := range file.Packages() {
			place, ok := conf.place(entry.Source, scope)
			if source != "" {
				if wanted, _ := conf.placeFrom(source, p.cwd, scope); wanted.Identity != place.Identity {
					continue
				}
			}
			matched = true
			if p.offline() {
				continue
			}
			if !ok {
				p.warn("%s is not the source of a package", entry.Source)
				failed = true
				continue
			}
			if err := conf.update(ctx, in, entry.Source, place, g.has("--force")); err != nil {
				if ctx.Err() != nil {
					return err
				}
				fmt.Fprintln(p.errs, "Error: "+sentence(err))
				failed = true
			}
		}
	}
	switch {
	case source != "" && !matched:
		return p.noPackage(source)
	case p.offline():
		return p.printLine("Skipped package updates (offline mode)")
	case failed:
		return exitError(1)
	case source != "":
		return p.printLine("Updated %s", source)
	}
	return p.printLine("Updated packages")
}

// update brings one package up to date.
func (s *config) update(ctx context.Context, in *packages.Installer, source string, place resource.PackagePlace, force bool) error {
	if place.Kind == resource.LocalPackage {
		return nil
	}
	state, err := packages.Inspect(place.Dir)
	if err != nil {
		return err
	}
	if state.Status == packages.Intact && state.Record.Source == source && packages.Pinned(source, place) && !force {
		return nil
	}
	outcome, err := in.Install(ctx, source, place, force)
	if err != nil || outcome.Current {
		return err
	}
	s.remark(place)
	if before := outcome.Previous; before != nil && before.Short() != "" {
		return s.p.printLine("%s: %s instead of %s", source, outcome.Record.Short(), before.Short())
	}
	return s.p.printLine("%s: %s", source, outcome.Record.Short())
}
