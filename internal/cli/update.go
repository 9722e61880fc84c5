package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/resource"
)

// updateModels fetches lists of models.
func (p *program) updateModels(ctx context.Context, g *given) error {
	o := catalog.RefreshOptions{Force: g.has("--force"), URL: g.options["--url"], Providers: g.words}
	if o.URL != "" && len(o.Providers) != 1 {
		return errors.New("--url is the list of one provider: name it behind --models")
	}
	user := settings.Read(filepath.Join(resource.AgentFolder(p.getenv, p.home), "settings.json"))
	request, err := requestOptions(settings.Merge(user, nil))
	if err != nil {
		return err
	}
	o.Client = request.Client
	c := p.catalogFor(nil)
	if err := c.Problem(); err != nil {
		return err // it may name the address
	}
	results, err := c.Refresh(ctx, o)
	if errors.Is(err, catalog.ErrOffline) {
		_, err := fmt.Fprintln(p.out, err)
		return err
	}
	failed := false
	for _, r := range results {
		switch r.Outcome {
		case catalog.RefreshUpdated:
			_, _ = fmt.Fprintf(p.out, "%s: took over the list (models: %d)\n", printable(r.Provider), r.Models)
		case catalog.RefreshUnchanged:
			_, _ = fmt.Fprintf(p.out, "%s: nothing new\n", printable(r.Provider))
		case catalog.RefreshRecent:
			_, _ = fmt.Fprintf(p.out, "%s: fetched less than four hours ago; --force fetches it again\n", printable(r.Provider))
		case catalog.RefreshFailed:
			failed = true
			_, _ = fmt.Fprintln(p.errs, "Error: "+sentence(r.Err))
		}
	}
	if err != nil {
		return err
	}
	if failed {
		return exitError(1)
	}
	return nil
}
