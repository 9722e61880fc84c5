package cli

import (
	"context"
	"errors"

	"github.com/pinch-agent/pinch/resource"
)

const trustText = `A decision holds for a folder and all below it; the nearest one counts. Without a
decision the setting defaultProjectTrust counts, and --approve and --no-approve
before both. AGENTS.md and its like are read in any case.
`

// runTrust is "pinch trust".
func runTrust(ctx context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	decision, dir := "", p.cwd
	if len(g.words) > 0 {
		decision = g.words[0]
	}
	switch len(g.words) {
	case 0, 1:
	case 2:
		dir = p.path(g.words[1])
	default:
		return p.misused("Usage: pinch %s", c.line())
	}
	f := resource.Locate(p.getenv, p.home, dir)
	switch decision {
	case "yes", "no":
		err = resource.SaveTrust(ctx, f.Agent, map[string]*bool{dir: new(decision == "yes")})
	case "forget":
		err = resource.SaveTrust(ctx, f.Agent, map[string]*bool{dir: nil})
	case "":
	default:
		return p.misused("Usage: pinch %s", c.line())
	}
	if err != nil {
		return err
	}
	store, err := resource.ReadTrust(f.Agent)
	if err != nil {
		return err
	}
	trusted, known := store.Decision(dir)
	switch {
	case known && trusted:
		return p.printLine("%s is trusted", dir)
	case known:
		return p.printLine("%s is not trusted", dir)
	case !resource.NeedsTrust(f):
		return p.printLine("Nothing is decided about %s, and it has nothing of its own to decide about", dir)
	}
	return p.printLine("Nothing is decided about %s", dir)
}

// errNotTrusted refuses to change the settings of a project that do not count.
var errNotTrusted = errors.New("This project is not trusted, so its own settings do not count: --approve trusts it for this run, pinch trust yes from now on")
