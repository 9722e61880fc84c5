package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/resource"
)

const updateUsage = "Usage: pinch update --models [PROVIDER...] [--url URL] [--force]"

// runUpdate fetches lists of models. The peer's other updates are refused as
// before.
func runUpdate(ctx context.Context, p *program, words []string) error {
	if asksHelp(words) {
		_, err := fmt.Fprintln(p.out, updateUsage)
		return err
	}
	if !slices.Contains(words, "--models") {
		return missing("Name skills, prompt templates and themes in settings.json, or put them into the agent folder; pinch update --models fetches lists of models")(ctx, p, words)
	}
	var o catalog.RefreshOptions
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--models":
		case word == "--force":
			o.Force = true
		case word == "--url" && i+1 < len(words) && words[i+1] != "":
			i++
			o.URL = words[i]
		case strings.HasPrefix(word, "-"):
			return errors.New(updateUsage)
		default:
			o.Providers = append(o.Providers, word)
		}
	}
	if o.URL != "" && len(o.Providers) != 1 {
		return errors.New("--url is the list of one provider: name it. " + updateUsage)
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
